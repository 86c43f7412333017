#include "keeper/keeper.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

const char *const hc_ns_names[HC_NS_COUNT] = {"ns/user", "ns/pid", "ns/mnt",   "ns/net",
                                              "ns/ipc",  "ns/uts", "ns/cgroup"};

uint32_t hc_count_lines(const char *path)
{
    char buffer[1024];
    uint32_t lines = 0;
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (long n; fd >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0;)
        for (long i = 0; i < n; i++)
            lines += buffer[i] == '\n' ? 1 : 0;
    return lines;
}

/* A pidfd names its process for ever; its number in our pid namespace stands in fdinfo. -1: already reaped.
 */
static int payload_pid(const struct hc_cell *cell, uint64_t *ret_pid)
{
    char buffer[64], info[512];
    struct hc_text path = HC_TEXT(buffer);
    hc_text_string(&path, "/proc/self/fdinfo/");
    hc_text_number(&path, (uint64_t)cell->payload_pidfd);
    long n = hc_file_read(AT_FDCWD, buffer, info, sizeof info);
    if (n < 0)
        return (int)n;
    return hc_text_field(info, "Pid:", ret_pid) && *ret_pid > 0 ? 0 : -ESRCH;
}

static int read_namespaces(int folder, uint64_t ret_inodes[HC_NS_COUNT])
{
    for (int i = 0; i < HC_NS_COUNT; i++) {
        struct stat info;
        int error = (int)HC_SYS(fstatat(folder, hc_ns_names[i], &info, 0));
        if (error < 0)
            return error;
        ret_inodes[i] = info.st_ino;
    }
    return 0;
}

static int read_text(int folder, const char *name, char *buffer, size_t size, uint32_t *ret_length)
{
    long n = hc_file_read(folder, name, buffer, size);
    if (n <= 0)
        return n < 0 ? (int)n : -ESRCH;
    *ret_length = (uint32_t)n;
    return 0;
}

int hc_attest(const struct hc_keeper *keeper, const struct hc_cell *cell,
              struct hc_attestation *ret_attestation)
{
    static uint64_t own[HC_NS_COUNT];
    struct hc_attestation *a = ret_attestation;
    uint64_t pid = 0;
    int error = payload_pid(cell, &pid);
    if (error < 0)
        return error;
    char buffer[64];
    struct hc_text path = HC_TEXT(buffer);
    hc_text_string(&path, "/proc/");
    hc_text_number(&path, pid);
    hc_autoclose int folder = (int)HC_SYS(open(buffer, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder < 0)
        return folder;
    if (own[HC_NS_COUNT - 1] == 0) {
        hc_autoclose int self = (int)HC_SYS(open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (self < 0 || (error = read_namespaces(self, own)) < 0)
            return self < 0 ? self : error;
    }
    memset(a, 0, sizeof *a);
    memcpy(a->ns_keeper, own, sizeof own);
    a->host_uid = a->host_gid =
        HC_CELL_PAYLOAD_ID(cell->slot); /* the hall's /proc speaks of the hall's ids */
    a->listener = cell->listener >= 0;
    /* All or nothing: a process that ends in the middle of our reading must not look like one with layers
     * missing. */
    if ((error = read_namespaces(folder, a->ns_payload)) == 0 &&
        (error = read_text(folder, "status", a->status, sizeof a->status, &a->status_len)) == 0 &&
        (error = read_text(folder, "mountinfo", a->mounts, sizeof a->mounts, &a->mounts_len)) == 0 &&
        (error = read_text(folder, "cgroup", a->cgroup, sizeof a->cgroup, &a->cgroup_len)) == 0)
        error = read_text(folder, "limits", a->limits, sizeof a->limits, &a->limits_len);
    (void)keeper;
    return error;
}
