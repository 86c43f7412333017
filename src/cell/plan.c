#include "cell/plan.h"

#include "base/cleanup.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct layout {
    uint64_t args, env, entries, strings, data, total;
    uint32_t arg_count, env_count;
};

static uint64_t aligned(uint64_t offset, uint64_t to)
{
    return (offset + to - 1) / to * to;
}

static uint64_t string_bytes(const char *const *strings, uint32_t *ret_count)
{
    uint64_t bytes = 0;
    uint32_t count = 0;
    for (; strings[count] != NULL; count++)
        bytes += strlen(strings[count]) + 1;
    *ret_count = count;
    return bytes;
}

static int lay_out(const struct hc_plan_source *source, struct layout *ret_layout)
{
    struct layout l = {0};
    uint64_t strings = string_bytes(source->argv, &l.arg_count) + string_bytes(source->env, &l.env_count);
    uint64_t data = 0;
    if (l.arg_count == 0 || l.arg_count > HC_PLAN_ARGS_MAX || l.env_count > HC_PLAN_ENV_MAX ||
        source->file_count > HC_PLAN_FILES_MAX || source->rlimit_count > HC_RLIMIT_MAX)
        return -E2BIG;
    for (size_t i = 0; i < source->file_count; i++) {
        strings += strlen(source->files[i].name) + 1;
        data += source->files[i].bytes;
    }
    l.args = aligned(sizeof(struct hc_plan), 8);
    l.env = l.args + (uint64_t)l.arg_count * 8;
    l.entries = l.env + (uint64_t)l.env_count * 8;
    l.strings = l.entries + source->file_count * sizeof(struct hc_plan_entry);
    l.data = l.strings + strings;
    l.total = l.data + data + 1; /* the closing NUL bounds every string */
    if (l.total > HC_PLAN_BYTES_MAX)
        return -E2BIG;
    *ret_layout = l;
    return 0;
}

static uint64_t put_string(uint8_t *bytes, uint64_t *at, const char *string)
{
    uint64_t offset = *at;
    size_t n = strlen(string) + 1;
    memcpy(bytes + offset, string, n);
    *at += n;
    return offset;
}

static void put_table(uint8_t *bytes, uint64_t table, uint64_t *at, const char *const *strings)
{
    for (size_t i = 0; strings[i] != NULL; i++) {
        uint64_t offset = put_string(bytes, at, strings[i]);
        memcpy(bytes + table + i * 8, &offset, 8);
    }
}

static void put_files(uint8_t *bytes, const struct layout *l, uint64_t *strings_at,
                      const struct hc_plan_source *source)
{
    uint64_t data_at = l->data;
    for (size_t i = 0; i < source->file_count; i++) {
        const struct hc_plan_file *file = &source->files[i];
        struct hc_plan_entry entry = {
            .kind = file->folder ? HC_ENTRY_FOLDER
                    : file->hook ? HC_ENTRY_HOOK
                                 : HC_ENTRY_FILE,
            .mode = file->mode,
            .name_offset = put_string(bytes, strings_at, file->name),
            .data_offset = data_at,
            .data_bytes = file->bytes,
            .payload_owned = file->payload_owned,
        };
        if (file->bytes > 0)
            memcpy(bytes + data_at, file->data, file->bytes);
        data_at += file->bytes;
        memcpy(bytes + l->entries + i * sizeof entry, &entry, sizeof entry);
    }
}

int hc_plan_build(const struct hc_plan_source *source)
{
    struct layout l;
    int error = lay_out(source, &l);
    if (error < 0)
        return error;
    hc_autoclose int memfd = hc_memfd("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memfd < 0 || ftruncate(memfd, (off_t)l.total) != 0)
        return -errno;
    uint8_t *bytes = mmap(NULL, l.total, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    struct hc_plan plan = {
        .magic = HC_PLAN_MAGIC,
        .version = HC_WIRE_VERSION,
        .total_bytes = l.total,
        .scratch_bytes = source->scratch_bytes,
        .scratch_inodes = source->scratch_inodes,
        .arg_count = l.arg_count,
        .env_count = l.env_count,
        .args_offset = l.args,
        .env_offset = l.env,
        .entry_count = (uint32_t)source->file_count,
        .rlimit_count = (uint32_t)source->rlimit_count,
        .entries_offset = l.entries,
        .allow_layers = source->allow_layers,
    };
    memcpy(plan.rlimits, source->rlimits, source->rlimit_count * sizeof *source->rlimits);
    memcpy(bytes, &plan, sizeof plan);
    uint64_t strings_at = l.strings;
    put_table(bytes, l.args, &strings_at, source->argv);
    put_table(bytes, l.env, &strings_at, source->env);
    put_files(bytes, &l, &strings_at, source);
    (void)munmap(bytes, l.total);
    if (fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
        return -errno;
    return hc_take_fd(&memfd);
}

bool hc_plan_name_ok(const char *name, const char **ret_reason)
{
    size_t n = strlen(name);
    *ret_reason = NULL;
    if (n == 0)
        *ret_reason = "is empty";
    else if (name[0] == '/')
        *ret_reason = "is absolute";
    else if (n > HC_PLAN_NAME_MAX)
        *ret_reason = "is longer than 1024 bytes";
    else if (name[n - 1] == '/')
        *ret_reason = "ends in a slash";
    for (const char *at = name; *ret_reason == NULL && *at != '\0'; at++)
        if ((unsigned char)*at < 32 || *at == 127)
            *ret_reason = "holds a control character";
    for (const char *part = name; *ret_reason == NULL && part != NULL;) {
        size_t length = strcspn(part, "/");
        if (length == 0)
            *ret_reason = "has an empty part";
        else if (length > 255)
            *ret_reason = "has a part longer than 255 bytes";
        else if (length == 1 && part[0] == '.')
            *ret_reason = "has a part '.'";
        else if (length == 2 && part[0] == '.' && part[1] == '.')
            *ret_reason = "has a part '..'";
        part = part[length] == '/' ? part + length + 1 : NULL;
    }
    return *ret_reason == NULL;
}
