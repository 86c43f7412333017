#include "flow/gate.h"

#include "base/quantity.h"
#include "cell/limits.h"

#include <stdio.h>
#include <string.h>

#define MIB (1024ull * 1024)

static int check_one(const struct hc_spec *spec, const struct hc_policy *policy, enum hc_limit limit,
                     uint64_t *ret_value, struct hc_refusal *refusal)
{
    const struct hc_limit_row *row = &hc_limits[limit];
    char asked[32], bound[32];
    uint64_t max = policy != NULL ? policy->limits[limit].max_value : row->max_value;
    *ret_value = policy != NULL ? policy->limits[limit].default_value : row->default_value;
    if (!spec->limit_asked[limit])
        return 0;
    uint64_t value = spec->limits[limit];
    hc_limit_show(limit, value, asked);
    if (value > max) {
        hc_limit_show(limit, max, bound);
        return hc_refuse(refusal, HC_CAUSE_FIELD, row->name, "--%s %s: the profile '%s' allows at most %s",
                         row->flag, asked, spec->profile, bound);
    }
    if (value < row->min_value) {
        hc_limit_show(limit, row->min_value, bound);
        return hc_refuse(refusal, HC_CAUSE_FIELD, row->name, "--%s %s: below %s nothing can start", row->flag,
                         asked, bound);
    }
    *ret_value = value;
    return 0;
}

static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value > least ? value : least;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* Limits that follow from others unless they were asked for. */
static int settle(uint64_t *limits, struct hc_refusal *refusal)
{
    char asked[32], bound[32];
    if (limits[HC_LIMIT_DISK] == HC_LIMIT_AUTO)
        limits[HC_LIMIT_DISK] = limits[HC_LIMIT_MEMORY] / 2 / 4096 * 4096;
    /* Scratch lies in memory here and counts as such: more of it than memory could never be used. */
    if (limits[HC_LIMIT_DISK] > limits[HC_LIMIT_MEMORY]) {
        hc_format_bytes(limits[HC_LIMIT_DISK], asked);
        hc_format_bytes(limits[HC_LIMIT_MEMORY], bound);
        return hc_refuse(refusal, HC_CAUSE_FIELD, "disk",
                         "--disk %s: scratch space lies in memory here and can't be larger than --memory %s",
                         asked, bound);
    }
    limits[HC_LIMIT_DISK] = at_least((limits[HC_LIMIT_DISK] + 4095) / 4096 * 4096, 4096);
    if (limits[HC_LIMIT_INODES] == HC_LIMIT_AUTO)
        limits[HC_LIMIT_INODES] = at_least(limits[HC_LIMIT_DISK] / 16384, 1024);
    if (limits[HC_LIMIT_FILE_SIZE] == HC_LIMIT_AUTO)
        limits[HC_LIMIT_FILE_SIZE] =
            hc_limits[HC_LIMIT_FILE_SIZE].max_value; /* the scratch space is the bound */
    if (limits[HC_LIMIT_OUTPUT_TOTAL] == HC_LIMIT_AUTO)
        limits[HC_LIMIT_OUTPUT_TOTAL] = at_most(at_least(64 * limits[HC_LIMIT_OUTPUT], 64 * MIB),
                                                hc_limits[HC_LIMIT_OUTPUT_TOTAL].max_value);
    if (limits[HC_LIMIT_OUTPUT_TOTAL] < limits[HC_LIMIT_OUTPUT]) {
        hc_format_bytes(limits[HC_LIMIT_OUTPUT_TOTAL], asked);
        hc_format_bytes(limits[HC_LIMIT_OUTPUT], bound);
        return hc_refuse(refusal, HC_CAUSE_FIELD, "output_total",
                         "--output-total %s: is below --output %s, which could then never be kept", asked,
                         bound);
    }
    return 0;
}

int hc_gate(const struct hc_spec *spec, const struct hc_policy *policy, struct hc_effective *ret_effective,
            struct hc_refusal *refusal)
{
    memset(ret_effective, 0, sizeof *ret_effective);
    for (int i = 0; i < HC_LIMIT_COUNT; i++) {
        int error = check_one(spec, policy, (enum hc_limit)i, &ret_effective->limits[i], refusal);
        if (error != 0)
            return error;
    }
    if (spec->code_bytes > HC_SPEC_CODE_BYTES_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "code", "the program has %zu bytes; at most %llu are taken",
                         spec->code_bytes, (unsigned long long)HC_SPEC_CODE_BYTES_MAX);
    return settle(ret_effective->limits, refusal);
}
