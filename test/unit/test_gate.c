/* The gate: bounds of every limit, limits that follow from others, what is refused and by which name. */
#include "flow/gate.h"

#include "base/cleanup.h"

#include "harness.h"

#include <string.h>

#define MIB (1024ull * 1024)

static void gate_passes(const struct hc_spec *spec, struct hc_effective *ret_effective)
{
    struct hc_refusal refusal = {0};
    if (hc_gate(spec, NULL, ret_effective, &refusal) != 0)
        hc_test_fail(__FILE__, __LINE__, "refused: %s: %s", refusal.field, refusal.message);
}

static void gate_refuses(const struct hc_spec *spec, const char *field, const char *message)
{
    struct hc_effective effective;
    struct hc_refusal refusal = {0};
    HC_ASSERT_EQ_INT(hc_gate(spec, NULL, &effective, &refusal), HC_REFUSED);
    HC_ASSERT_STREQ(refusal.field, field);
    HC_ASSERT_EQ_INT(refusal.cause, HC_CAUSE_FIELD);
    if (strstr(refusal.message, message) == NULL)
        hc_test_fail(__FILE__, __LINE__, "'%s' lacks '%s'", refusal.message, message);
}

static void ask(struct hc_spec *spec, enum hc_limit limit, uint64_t value)
{
    spec->limits[limit] = value;
    spec->limit_asked[limit] = true;
}

static struct hc_spec fresh(void)
{
    struct hc_spec spec;
    HC_ASSERT_EQ_INT(hc_spec_init(&spec), 0);
    return spec;
}
#define autospec __attribute__((cleanup(hc_spec_done))) struct hc_spec

HC_TEST(defaults)
{
    autospec spec = fresh();
    struct hc_effective e;
    gate_passes(&spec, &e);
    for (int i = 0; i < HC_LIMIT_COUNT; i++) {
        if (hc_limits[i].default_value != HC_LIMIT_AUTO)
            HC_ASSERT_EQ_INT(e.limits[i], hc_limits[i].default_value);
        HC_ASSERT(e.limits[i] != HC_LIMIT_AUTO);
        HC_ASSERT(i == HC_LIMIT_IO ||
                  (e.limits[i] >= hc_limits[i].min_value && e.limits[i] <= hc_limits[i].max_value));
    }
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_DISK], 256 * MIB);
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_INODES], 16384);
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_FILE_SIZE], hc_limits[HC_LIMIT_FILE_SIZE].max_value);
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_OUTPUT_TOTAL], 128 * MIB);
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_IO], HC_LIMIT_NONE);
}

HC_TEST(bounds_of_every_limit)
{
    for (int i = 0; i < HC_LIMIT_COUNT; i++) {
        const struct hc_limit_row *row = &hc_limits[i];
        struct hc_effective e;
        if (row->flag == NULL)
            continue;
        autospec spec = fresh();
        /* what others must be so that this one can be at its ends */
        if (i == HC_LIMIT_DISK)
            ask(&spec, HC_LIMIT_MEMORY, hc_limits[HC_LIMIT_MEMORY].max_value);
        if (i == HC_LIMIT_OUTPUT_TOTAL)
            ask(&spec, HC_LIMIT_OUTPUT, 1);
        ask(&spec, (enum hc_limit)i, row->max_value);
        gate_passes(&spec, &e);
        HC_ASSERT_EQ_INT(e.limits[i], row->max_value);
        ask(&spec, (enum hc_limit)i, row->min_value);
        gate_passes(&spec, &e);
        HC_ASSERT_EQ_INT(e.limits[i], row->min_value);
        ask(&spec, (enum hc_limit)i, row->max_value + 1);
        gate_refuses(&spec, row->name, "at most");
        ask(&spec, (enum hc_limit)i, UINT64_MAX);
        gate_refuses(&spec, row->name, "at most");
        ask(&spec, (enum hc_limit)i, row->min_value - 1);
        gate_refuses(&spec, row->name, "nothing can start");
    }
}

HC_TEST(refusals_name_option_value_and_bound)
{
    autospec spec = fresh();
    ask(&spec, HC_LIMIT_MEMORY, 8192 * MIB);
    gate_refuses(&spec, "memory", "--memory 8G: the profile 'standard' allows at most 4G");
    ask(&spec, HC_LIMIT_MEMORY, 1 * MIB);
    gate_refuses(&spec, "memory", "--memory 1M: below 4M nothing can start");
    ask(&spec, HC_LIMIT_MEMORY, 64 * MIB);
    ask(&spec, HC_LIMIT_WALL, 3600ull * 1000000);
    gate_refuses(&spec, "wall", "--wall 1h: the profile 'standard' allows at most 10m");
    ask(&spec, HC_LIMIT_WALL, 1000000);
    ask(&spec, HC_LIMIT_CPUS, 65500);
    gate_refuses(&spec, "cpus", "--cpus 65.500");
}

HC_TEST(disk_follows_memory)
{
    autospec spec = fresh();
    struct hc_effective e;
    ask(&spec, HC_LIMIT_MEMORY, 5 * MIB + 4096);
    gate_passes(&spec, &e);
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_DISK], (5 * MIB + 4096) / 2 / 4096 * 4096);
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_INODES], 1024);
    ask(&spec, HC_LIMIT_DISK, 5 * MIB + 4097);
    gate_refuses(&spec, "disk", "can't be larger than --memory");
    ask(&spec, HC_LIMIT_DISK, 5 * MIB + 4096);
    gate_passes(&spec, &e);
    ask(&spec, HC_LIMIT_DISK, 4097); /* whole pages: never less than was asked for */
    gate_passes(&spec, &e);
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_DISK], 8192);
    /* A full disk is told by the scratch space, so one file has no bound of its own unless it was asked for.
     */
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_FILE_SIZE], hc_limits[HC_LIMIT_FILE_SIZE].max_value);
}

HC_TEST(output_total_follows_output)
{
    autospec spec = fresh();
    struct hc_effective e;
    ask(&spec, HC_LIMIT_OUTPUT, 1000);
    gate_passes(&spec, &e);
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_OUTPUT_TOTAL], 64 * MIB);
    ask(&spec, HC_LIMIT_OUTPUT, 64 * MIB);
    gate_passes(&spec, &e);
    HC_ASSERT_EQ_INT(e.limits[HC_LIMIT_OUTPUT_TOTAL], 4096 * MIB);
    ask(&spec, HC_LIMIT_OUTPUT_TOTAL, 64 * MIB - 1);
    gate_refuses(&spec, "output_total", "could then never be kept");
    ask(&spec, HC_LIMIT_OUTPUT_TOTAL, 64 * MIB);
    gate_passes(&spec, &e);
}

HC_TEST(other_refusals)
{
    autospec spec = fresh();
    struct hc_effective e;
    spec.code_bytes = HC_SPEC_CODE_BYTES_MAX;
    gate_passes(&spec, &e);
    spec.code_bytes++;
    gate_refuses(&spec, "code", "at most");
    spec.code_bytes = 0;
    spec.warmth = HC_WARMTH_COLD;
    gate_passes(&spec, &e);
    spec.warmth = HC_WARMTH_WARM; /* whether there are warm cells is not the gate's to know */
    gate_passes(&spec, &e);
}
