#include "inside/inside.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/syscalls.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

static int size_scratch(struct hc_inside *inside, const struct hc_plan *plan)
{
    char buffer[96];
    struct hc_text options = HC_TEXT(buffer);
    hc_text_string(&options, "size=");
    hc_text_number(&options, plan->scratch_bytes);
    hc_text_string(&options, ",nr_inodes=");
    hc_text_number(&options, plan->scratch_inodes);
    int error = (int)HC_SYS(mount(NULL, "/work", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, buffer));
    struct statfs info = {0};
    if (error == 0)
        error = (int)HC_SYS(fstatfs(inside->working_folder, &info));
    if (error < 0)
        return error;
    inside->facts.scratch_applied_bytes = (uint64_t)info.f_blocks * (uint64_t)info.f_bsize;
    inside->facts.scratch_applied_inodes = info.f_files;
    if (inside->facts.scratch_applied_bytes > plan->scratch_bytes + (uint64_t)info.f_bsize ||
        inside->facts.scratch_applied_inodes > plan->scratch_inodes)
        return -ERANGE;
    hc_layer_applied(inside, HC_LAYER_SCRATCH_QUOTA);
    return 0;
}

static int write_file(int folder, const char *name, const struct hc_plan_entry *entry, const uint8_t *data)
{
    hc_autoclose int fd =
        (int)HC_SYS(openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd < 0)
        return fd;
    for (uint64_t done = 0; done < entry->data_bytes;) {
        long n = HC_SYS(write(fd, data + done, entry->data_bytes - done));
        if (n <= 0)
            return n < 0 ? (int)n : -EIO;
        done += (uint64_t)n;
    }
    int error = 0;
    if (entry->payload_owned != 0)
        error = (int)HC_SYS(fchown(fd, HC_INSIDE_PAYLOAD_ID, HC_INSIDE_PAYLOAD_ID));
    return error < 0 ? error : (int)HC_SYS(fchmod(fd, entry->mode));
}

/* Beside the program's own files, under init's id: the sticky bit of /tmp keeps the program from moving it.
 */
static int write_hook(const char *name, const struct hc_plan_entry *entry, const uint8_t *data)
{
    int error = (int)HC_SYS(mkdir(HC_HOOK_FOLDER, 0755));
    if (error < 0 && error != -EEXIST)
        return error;
    hc_autoclose int folder =
        (int)HC_SYS(open(HC_HOOK_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (folder < 0)
        return folder;
    error = (int)HC_SYS(fchmod(folder, 0755)); /* whatever the mask is */
    return error < 0 ? error : write_file(folder, name, entry, data);
}

static int write_entry(int folder, const struct hc_plan_view *view, const struct hc_plan_entry *entry)
{
    const char *name = (const char *)view->bytes + entry->name_offset; /* checked by hc_plan_open */
    if (entry->kind == HC_ENTRY_HOOK)
        return write_hook(name, entry, view->bytes + entry->data_offset);
    if (entry->kind == HC_ENTRY_FILE)
        return write_file(folder, name, entry, view->bytes + entry->data_offset);
    int error = (int)HC_SYS(mkdirat(folder, name, 0700));
    if (error == 0 && entry->payload_owned != 0)
        error = (int)HC_SYS(
            fchownat(folder, name, HC_INSIDE_PAYLOAD_ID, HC_INSIDE_PAYLOAD_ID, AT_SYMLINK_NOFOLLOW));
    return error < 0 ? error : (int)HC_SYS(fchmodat(folder, name, entry->mode, 0));
}

int hc_scratch_fill(struct hc_inside *inside, const struct hc_plan_view *view)
{
    struct statfs info = {0};
    inside->stage = HC_STAGE_SCRATCH;
    int error = size_scratch(inside, view->plan);
    if (error < 0)
        return error;
    inside->stage = HC_STAGE_INPUTS;
    for (uint32_t i = 0; i < view->plan->entry_count; i++)
        if ((error = write_entry(inside->working_folder, view, &view->entries[i])) < 0)
            return error;
    error = (int)HC_SYS(mkdir("/tmp/home", 0700));
    if (error == 0)
        error = (int)HC_SYS(chown("/tmp/home", HC_INSIDE_PAYLOAD_ID, HC_INSIDE_PAYLOAD_ID));
    if (error == 0)
        error = (int)HC_SYS(fstatfs(inside->working_folder, &info));
    if (error < 0)
        return error;
    inside->facts.scratch_used_bytes = (uint64_t)(info.f_blocks - info.f_bfree) * (uint64_t)info.f_bsize;
    inside->facts.scratch_used_inodes = info.f_files - info.f_ffree;
    return 0;
}
