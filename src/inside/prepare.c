#include "inside/inside.h"
#include "inside/shed.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* A layer that may be missing here: absent when its absence was accepted by name or its grade only falls. */
static int tolerate(struct hc_inside *inside, enum hc_layer layer, int error)
{
    if (error == 0) {
        hc_layer_applied(inside, layer);
        return 0;
    }
    return hc_layer_accepted_absent(inside, layer) ? 0 : error;
}

/* The limit is written through the hall's full /proc while it is still there, and read back. */
static int forbid_nested(struct hc_inside *inside)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"};
    uint64_t value = 1;
    inside->stage = HC_STAGE_NESTED_NAMESPACES;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char buffer[64];
        struct hc_text path = HC_TEXT(buffer);
        hc_text_string(&path, "/proc/sys/user/max_");
        hc_text_string(&path, kinds[i]);
        hc_text_string(&path, "_namespaces");
        /* Our own cgroup namespace was made by this very user namespace: the count is over the limit, which
         * is allowed. */
        int error = hc_file_write(AT_FDCWD, buffer, "0");
        if (error == 0 && i == 0)
            error = hc_file_read_number(AT_FDCWD, buffer, &value);
        if (error < 0)
            return error;
    }
    inside->facts.nested_max = (uint32_t)value;
    if (value != 0)
        return -EPERM;
    hc_layer_applied(inside, HC_LAYER_NO_NESTED_NAMESPACES);
    return 0;
}

static int name_host(struct hc_inside *inside)
{
    inside->stage = HC_STAGE_HOSTNAME;
    int error = (int)HC_SYS(sethostname("cell", 4));
    if (error == 0)
        error = (int)HC_SYS(setdomainname("", 0));
    return error;
}

static int raise_loopback(struct hc_inside *inside)
{
    inside->stage = HC_STAGE_LOOPBACK;
    hc_autoclose int fd = (int)HC_SYS(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return fd;
    struct ifreq request = {.ifr_flags = IFF_UP | IFF_RUNNING};
    memcpy(request.ifr_name, "lo", 3);
    return (int)HC_SYS(ioctl(fd, SIOCSIFFLAGS, &request));
}

/* The host's session keyring would be shared by every cell and its quota is per user. */
static int new_keyring(struct hc_inside *inside)
{
    inside->stage = HC_STAGE_KEYRING;
    return tolerate(inside, HC_LAYER_KEYRING, hc_shed_keyring());
}

/* When the host runs out of memory, cells go first. Inherited by the payload. */
static int prefer_for_oom(struct hc_inside *inside)
{
    inside->stage = HC_STAGE_OOM_PREFERENCE;
    return tolerate(inside, HC_LAYER_OOM_PREFERENCE, hc_shed_oom_preference(&inside->facts.oom_score_adj));
}

static int mount_proc(struct hc_inside *inside)
{
    inside->stage = HC_STAGE_PROC;
    int error = (int)HC_SYS(
        mount("proc", "/cell/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid,hidepid=2"));
    if (error == 0)
        hc_layer_applied(inside, HC_LAYER_PRIVATE_PROC);
    return error;
}

static const struct {
    const char *source, *target;
    mode_t mode;
} scratch_parts[] = {
    {"/scratch/work", "/cell/work", 0755},
    {"/scratch/tmp", "/cell/tmp", 01777},
    {"/scratch/shm", "/cell/dev/shm", 01777},
};

/* One tmpfs, bound at three places, so that one limit holds for their sum. Its size comes with the plan. */
static int mount_scratch(struct hc_inside *inside)
{
    inside->stage = HC_STAGE_SCRATCH;
    int error = (int)HC_SYS(
        mount("tmpfs", "/scratch", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=16,mode=755"));
    for (size_t i = 0; error == 0 && i < sizeof scratch_parts / sizeof *scratch_parts; i++) {
        error = (int)HC_SYS(mkdir(scratch_parts[i].source, 0700));
        if (error == 0)
            error = (int)HC_SYS(chmod(scratch_parts[i].source, scratch_parts[i].mode));
        if (error == 0 && i == 0) /* the working folder is the program's own */
            error = (int)HC_SYS(chown(scratch_parts[i].source, HC_INSIDE_PAYLOAD_ID, HC_INSIDE_PAYLOAD_ID));
        if (error == 0)
            error = (int)HC_SYS(mount(scratch_parts[i].source, scratch_parts[i].target, NULL, MS_BIND, NULL));
    }
    if (error < 0)
        return error;
    inside->working_folder = (int)HC_SYS(open("/cell/work", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return inside->working_folder < 0 ? inside->working_folder : 0;
}

/* The template came with the copy of the hall's mount namespace and is locked there; a fresh recursive bind
 * of it is ours to pivot into. Everything of the hall, its full /proc first of all, goes with the old root.
 */
static int enter_cell(struct hc_inside *inside)
{
    inside->stage = HC_STAGE_PIVOT_ROOT;
    int error = (int)HC_SYS(chdir("/cell"));
    if (error == 0)
        error = (int)HC_SYS(hc_pivot_root(".", "."));
    if (error == 0)
        error = (int)HC_SYS(umount2(".", MNT_DETACH));
    if (error == 0)
        error = (int)HC_SYS(chdir("/"));
    if (error == 0 && faccessat(AT_FDCWD, "/scratch", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        error = -EXDEV; /* we are still in the hall's root */
    if (error < 0)
        return error;
    hc_layer_applied(inside, HC_LAYER_PRIVATE_ROOT);
    hc_layer_applied(inside, HC_LAYER_READ_ONLY_ROOT);
    hc_layer_applied(inside, HC_LAYER_DEVICES);
    return 0;
}

static int bind_cell(struct hc_inside *inside)
{
    inside->stage = HC_STAGE_PIVOT_ROOT;
    return (int)HC_SYS(mount("/cell", "/cell", NULL, MS_BIND | MS_REC, NULL));
}

static int prepare_landlock(struct hc_inside *inside)
{
    inside->stage = HC_STAGE_LANDLOCK;
    inside->landlock = hc_landlock_make(&inside->facts.landlock_abi);
    return inside->landlock < -1 ? inside->landlock : 0;
}

/* For process 1 and all that come after it: nothing can come back through an exec. Process 1 keeps what it
 * holds until the payload is born. */
static int drop_bounding_set(struct hc_inside *inside)
{
    inside->stage = HC_STAGE_CAPABILITIES;
    int error = hc_shed_bounding_set(&inside->facts.securebits);
    if (error == 0)
        hc_layer_applied(inside, HC_LAYER_SECUREBITS);
    return error;
}

int hc_prepare(struct hc_inside *inside)
{
    static int (*const steps[])(struct hc_inside *) = {
        forbid_nested, name_host,     raise_loopback, new_keyring,      prefer_for_oom,    bind_cell,
        mount_proc,    mount_scratch, enter_cell,     prepare_landlock, drop_bounding_set,
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int error = steps[i](inside);
        if (error < 0)
            return error;
    }
    return 0;
}
