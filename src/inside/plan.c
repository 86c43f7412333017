#include "inside/inside.h"

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static bool spans(const struct hc_plan *plan, uint64_t offset, uint64_t bytes)
{
    return offset <= plan->total_bytes && bytes <= plan->total_bytes - offset;
}

/* The last byte of a plan is NUL, so a string that begins inside ends inside. */
static char *string_at(const struct hc_plan_view *view, uint64_t offset)
{
    return offset < view->plan->total_bytes ? (char *)(uintptr_t)(view->bytes + offset) : NULL;
}

static int take_strings(const struct hc_plan_view *view, uint64_t table, uint32_t count, char **ret_strings)
{
    if (!spans(view->plan, table, (uint64_t)count * sizeof(uint64_t)))
        return -EBADMSG;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t offset;
        memcpy(&offset, view->bytes + table + i * sizeof offset, sizeof offset);
        ret_strings[i] = string_at(view, offset);
        if (ret_strings[i] == NULL)
            return -EBADMSG;
    }
    ret_strings[count] = NULL;
    return 0;
}

/* Relative, without "." and "..", nothing empty between slashes: the second check, after the library's. */
static bool plain_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > HC_PLAN_NAME_MAX || name[n - 1] == '/')
        return false;
    for (const char *part = name; part != NULL;) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part = part[length] == '/' ? part + length + 1 : NULL;
    }
    return true;
}

static int check_entries(const struct hc_plan_view *view)
{
    const struct hc_plan *plan = view->plan;
    if (plan->entry_count > HC_PLAN_FILES_MAX || plan->entries_offset % 8 != 0 ||
        !spans(plan, plan->entries_offset, (uint64_t)plan->entry_count * sizeof(struct hc_plan_entry)))
        return -EBADMSG;
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        const struct hc_plan_entry *entry = &view->entries[i];
        const char *name = string_at(view, entry->name_offset);
        if (name == NULL || !plain_name(name) || !spans(plan, entry->data_offset, entry->data_bytes) ||
            (entry->kind != HC_ENTRY_FOLDER && entry->kind != HC_ENTRY_FILE &&
             entry->kind != HC_ENTRY_HOOK) ||
            (entry->kind == HC_ENTRY_HOOK && (strchr(name, '/') != NULL || entry->payload_owned != 0)) ||
            (entry->mode & ~0777u) != 0)
            return -EBADMSG;
    }
    return 0;
}

int hc_plan_open(int fd, struct hc_plan_view *ret_view)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_WRITE;
    struct stat info;
    int held = (int)HC_SYS(fcntl(fd, F_GET_SEALS));
    if (held < 0)
        return held;
    if ((held & seals) != seals)
        return -EPERM;
    int error = (int)HC_SYS(fstat(fd, &info));
    if (error < 0)
        return error;
    if (info.st_size < (off_t)sizeof(struct hc_plan) || (uint64_t)info.st_size > HC_PLAN_BYTES_MAX)
        return -EMSGSIZE;
    void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    ret_view->bytes = bytes;
    const struct hc_plan *plan = ret_view->plan = bytes;
    if (plan->magic != HC_PLAN_MAGIC || plan->version != HC_WIRE_VERSION ||
        plan->total_bytes != (uint64_t)info.st_size || plan->arg_count == 0 ||
        plan->arg_count > HC_PLAN_ARGS_MAX || plan->env_count > HC_PLAN_ENV_MAX ||
        plan->rlimit_count > HC_RLIMIT_MAX || ret_view->bytes[plan->total_bytes - 1] != '\0')
        return -EBADMSG;
    if (plan->entries_offset > plan->total_bytes)
        return -EBADMSG;
    ret_view->entries = (const void *)(ret_view->bytes + plan->entries_offset);
    if ((error = check_entries(ret_view)) < 0 ||
        (error = take_strings(ret_view, plan->args_offset, plan->arg_count, ret_view->argv)) < 0)
        return error;
    return take_strings(ret_view, plan->env_offset, plan->env_count, ret_view->envp);
}
