/* The plan of a cell: bounds of the builder, and whether hotcell-init reads what was written and refuses
 * everything else. */
#include "cell/plan.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "inside/inside.h"
#include "kernel/syscalls.h"

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char *const argv[] = {"/usr/bin/python3", "main.py", "", "\xff odd", NULL};
static const char *const env[] = {"PATH=/usr/bin", "EMPTY=", NULL};
static const struct hc_plan_file files[] = {
    {.name = "main.py", .mode = 0444, .data = "print(1)\n", .bytes = 9},
    {.name = "data", .folder = true, .payload_owned = true, .mode = 0755},
    {.name = "data/empty", .mode = 0444},
    {.name = "data/nul", .mode = 0600, .data = "a\0b", .bytes = 3},
};
static const struct hc_plan_rlimit rlimits[] = {{RLIMIT_NOFILE, 0, 256, 256}, {RLIMIT_CORE, 0, 1, 1}};

static struct hc_plan_source source(void)
{
    return (struct hc_plan_source){.argv = argv,
                                   .env = env,
                                   .files = files,
                                   .file_count = 4,
                                   .rlimits = rlimits,
                                   .rlimit_count = 2,
                                   .scratch_bytes = 1 << 20,
                                   .scratch_inodes = 100,
                                   .allow_layers = 5};
}

static struct hc_plan_view view;

HC_TEST(what_was_written_is_read)
{
    struct hc_plan_source from = source();
    hc_autoclose int plan = hc_plan_build(&from);
    HC_ASSERT(plan >= 0);
    HC_ASSERT_EQ_INT(hc_plan_open(plan, &view), 0);
    for (int i = 0; i < 5; i++)
        HC_ASSERT_STREQ(view.argv[i], argv[i]);
    for (int i = 0; i < 3; i++)
        HC_ASSERT_STREQ(view.envp[i], env[i]);
    HC_ASSERT_EQ_INT(view.plan->entry_count, 4);
    for (int i = 0; i < 4; i++) {
        const struct hc_plan_entry *entry = &view.entries[i];
        HC_ASSERT_STREQ((const char *)view.bytes + entry->name_offset, files[i].name);
        HC_ASSERT_EQ_INT(entry->kind, files[i].folder ? HC_ENTRY_FOLDER : HC_ENTRY_FILE);
        HC_ASSERT_EQ_INT(entry->mode, files[i].mode);
        HC_ASSERT_EQ_INT(entry->payload_owned, files[i].payload_owned);
        HC_ASSERT_EQ_INT(entry->data_bytes, files[i].bytes);
        HC_ASSERT(entry->data_bytes == 0 ||
                  memcmp(view.bytes + entry->data_offset, files[i].data, files[i].bytes) == 0);
    }
    HC_ASSERT_EQ_INT(view.plan->rlimit_count, 2);
    HC_ASSERT(memcmp(view.plan->rlimits, rlimits, sizeof rlimits) == 0);
    HC_ASSERT_EQ_INT(view.plan->scratch_bytes, 1 << 20);
    HC_ASSERT_EQ_INT(view.plan->scratch_inodes, 100);
    HC_ASSERT_EQ_INT(view.plan->allow_layers, 5);
}

HC_TEST(the_plan_is_sealed)
{
    struct hc_plan_source from = source();
    hc_autoclose int plan = hc_plan_build(&from);
    HC_ASSERT(plan >= 0);
    HC_ASSERT_EQ_INT(fcntl(plan, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    HC_ASSERT_EQ_INT(write(plan, "x", 1), -1);
    HC_ASSERT_EQ_INT(ftruncate(plan, 1), -1);
    HC_ASSERT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, plan, 0) == MAP_FAILED);
}

HC_TEST(builder_bounds)
{
    struct hc_plan_source from = source();
    const char **many = calloc(HC_PLAN_ARGS_MAX + 2, sizeof *many);
    HC_ASSERT(many != NULL);
    static const char *const none[] = {NULL};
    from.argv = none;
    HC_ASSERT_EQ_INT(hc_plan_build(&from), -E2BIG);
    for (int i = 0; i < HC_PLAN_ARGS_MAX + 1; i++)
        many[i] = "x";
    from.argv = many;
    HC_ASSERT_EQ_INT(hc_plan_build(&from), -E2BIG);
    many[HC_PLAN_ARGS_MAX] = NULL;
    hc_autoclose int most = hc_plan_build(&from);
    HC_ASSERT(most >= 0);
    HC_ASSERT_EQ_INT(hc_plan_open(most, &view), 0);
    from = source();
    from.env = many;
    HC_ASSERT_EQ_INT(hc_plan_build(&from), -E2BIG);
    from = source();
    from.file_count = HC_PLAN_FILES_MAX + 1;
    HC_ASSERT_EQ_INT(hc_plan_build(&from), -E2BIG);
    from = source();
    from.rlimit_count = HC_RLIMIT_MAX + 1;
    HC_ASSERT_EQ_INT(hc_plan_build(&from), -E2BIG);
    struct hc_plan_file large = {.name = "large", .mode = 0444, .data = NULL, .bytes = HC_PLAN_BYTES_MAX};
    from = source();
    from.files = &large;
    from.file_count = 1;
    HC_ASSERT_EQ_INT(hc_plan_build(&from), -E2BIG); /* before a byte of it is touched */
    free(many);
}

/* A plan whose bytes somebody else chose. */
static int forged(const void *bytes, size_t n, int seals)
{
    int fd = hc_memfd("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    HC_ASSERT(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

static const int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

static uint8_t *good_bytes(size_t *ret_bytes)
{
    struct hc_plan_source from = source();
    hc_autoclose int plan = hc_plan_build(&from);
    struct stat info;
    HC_ASSERT(plan >= 0 && fstat(plan, &info) == 0);
    *ret_bytes = (size_t)info.st_size;
    uint8_t *bytes = malloc(*ret_bytes);
    HC_ASSERT(bytes != NULL && pread(plan, bytes, *ret_bytes, 0) == info.st_size);
    return bytes;
}

HC_TEST(unsealed_plans_are_refused)
{
    size_t n;
    hc_autofree uint8_t *bytes = good_bytes(&n);
    hc_autoclose int whole = forged(bytes, n, all_seals);
    HC_ASSERT_EQ_INT(hc_plan_open(whole, &view), 0);
    hc_autoclose int none = forged(bytes, n, 0), no_write = forged(bytes, n, F_SEAL_SHRINK);
    hc_autoclose int no_shrink = forged(bytes, n, F_SEAL_WRITE);
    HC_ASSERT_EQ_INT(hc_plan_open(none, &view), -EPERM);
    HC_ASSERT_EQ_INT(hc_plan_open(no_write, &view), -EPERM);
    HC_ASSERT_EQ_INT(hc_plan_open(no_shrink, &view), -EPERM);
    hc_autoclose int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    HC_ASSERT(hc_plan_open(file, &view) < 0);
}

static void refused(struct hc_plan *plan, uint8_t *bytes, size_t n)
{
    memcpy(bytes, plan, sizeof *plan);
    hc_autoclose int fd = forged(bytes, n, all_seals);
    HC_ASSERT_EQ_INT(hc_plan_open(fd, &view), -EBADMSG);
}

HC_TEST(wrong_heads_are_refused)
{
    size_t n;
    hc_autofree uint8_t *bytes = good_bytes(&n);
    struct hc_plan good;
    memcpy(&good, bytes, sizeof good);
#define WITH(field, value)                                                                                   \
    do {                                                                                                     \
        struct hc_plan plan = good;                                                                          \
        plan.field = (value);                                                                                \
        refused(&plan, bytes, n);                                                                            \
    } while (0)
    WITH(magic, 0);
    WITH(version, HC_WIRE_VERSION + 1);
    WITH(total_bytes, n - 1);
    WITH(total_bytes, UINT64_MAX);
    WITH(arg_count, 0);
    WITH(arg_count, HC_PLAN_ARGS_MAX + 1);
    WITH(arg_count, HC_PLAN_ARGS_MAX);
    WITH(env_count, HC_PLAN_ENV_MAX + 1);
    WITH(rlimit_count, HC_RLIMIT_MAX + 1);
    WITH(entry_count, HC_PLAN_FILES_MAX + 1);
    WITH(entry_count, HC_PLAN_FILES_MAX);
    WITH(args_offset, n);
    WITH(args_offset, UINT64_MAX - 7);
    WITH(env_offset, UINT64_MAX);
    WITH(entries_offset, good.entries_offset + 1);
    WITH(entries_offset, UINT64_MAX - 7);
    hc_autoclose int little = forged(bytes, sizeof good - 1, all_seals);
    HC_ASSERT_EQ_INT(hc_plan_open(little, &view), -EMSGSIZE);
    memcpy(bytes, &good, sizeof good);
    bytes[n - 1] = 'x'; /* strings would run on */
    hc_autoclose int open_ended = forged(bytes, n, all_seals);
    HC_ASSERT_EQ_INT(hc_plan_open(open_ended, &view), -EBADMSG);
}

HC_TEST(wrong_entries_are_refused)
{
    static const char *const names[] = {"../x.py", "/etc/xx", "a//b/cd", "a/./bcd", "a/../bc", "abcdef/"};
    size_t n;
    hc_autofree uint8_t *bytes = good_bytes(&n);
    struct hc_plan plan;
    memcpy(&plan, bytes, sizeof plan);
    struct hc_plan_entry entry, *first = (struct hc_plan_entry *)(void *)(bytes + plan.entries_offset);
    memcpy(&entry, first, sizeof entry);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        memcpy(bytes + entry.name_offset, names[i], 8); /* as long as "main.py" */
        refused(&plan, bytes, n);
    }
    memcpy(bytes + entry.name_offset, "main.py", 8);
    struct hc_plan_entry wrong[6];
    for (int i = 0; i < 6; i++)
        wrong[i] = entry;
    wrong[0].kind = HC_ENTRY_HOOK + 1;
    wrong[1].mode = 04755;
    wrong[2].name_offset = n;
    wrong[3].data_offset = n - 1;
    wrong[4].data_bytes = UINT64_MAX;
    wrong[5].name_offset = n - 1; /* the empty string */
    for (int i = 0; i < 6; i++) {
        *first = wrong[i];
        refused(&plan, bytes, n);
    }
    *first = entry;
    hc_autoclose int again = forged(bytes, n, all_seals);
    HC_ASSERT_EQ_INT(hc_plan_open(again, &view), 0);
}

/* Any change of any bytes: an error, or a plan whose every string and file lies within it. */
HC_TEST(random_changes, .timeout_s = 60)
{
    size_t n;
    hc_autofree uint8_t *good = good_bytes(&n);
    hc_autofree uint8_t *bytes = malloc(n);
    uint64_t seed = 99;
    HC_ASSERT(bytes != NULL);
    for (int round = 0; round < 20000; round++) {
        memcpy(bytes, good, n);
        for (uint64_t changes = 1 + hc_test_random(&seed) % 4; changes > 0; changes--)
            bytes[hc_test_random(&seed) % n] =
                (uint8_t)(hc_test_random(&seed) >> (hc_test_random(&seed) % 8 * 8));
        hc_autoclose int fd = forged(bytes, n, all_seals);
        memset(&view, 0, sizeof view);
        if (hc_plan_open(fd, &view) == 0) {
            for (uint32_t i = 0; i < view.plan->arg_count; i++)
                HC_ASSERT((uint8_t *)view.argv[i] >= view.bytes &&
                          (uint8_t *)view.argv[i] + strlen(view.argv[i]) < view.bytes + n);
            for (uint32_t i = 0; i < view.plan->entry_count; i++) {
                const struct hc_plan_entry *entry = &view.entries[i];
                HC_ASSERT(entry->data_offset + entry->data_bytes <= n && entry->name_offset < n);
            }
        }
        if (view.bytes != NULL)
            (void)munmap((void *)(uintptr_t)view.bytes, n);
    }
}

HC_TEST(names)
{
    const char *reason;
    char name[1100];
    HC_ASSERT(hc_plan_name_ok("a/b.c", &reason) && reason == NULL);
    static const char *const bad[][2] = {{"", "empty"},          {"/a", "absolute"}, {"a/", "slash"},
                                         {"a//b", "empty part"}, {".", "part '.'"},  {"a/..", "part '..'"},
                                         {"a\tb", "control"},    {"\x7f", "control"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        HC_ASSERT(!hc_plan_name_ok(bad[i][0], &reason));
        HC_ASSERT(strstr(reason, bad[i][1]) != NULL);
    }
    memset(name, 'x', sizeof name);
    name[255] = '\0';
    HC_ASSERT(hc_plan_name_ok(name, &reason));
    name[255] = 'x';
    name[256] = '\0';
    HC_ASSERT(!hc_plan_name_ok(name, &reason) && strstr(reason, "255") != NULL);
    memset(name, 'x', sizeof name);
    for (size_t i = 100; i < sizeof name; i += 100)
        name[i] = '/';
    name[1024] = '\0';
    HC_ASSERT(hc_plan_name_ok(name, &reason));
    name[1024] = 'x';
    name[1025] = '\0';
    HC_ASSERT(!hc_plan_name_ok(name, &reason) && strstr(reason, "1024") != NULL);
}
