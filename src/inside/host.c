/* The place of a warm host: like a cell it sees the template and nothing of the host, has no network and no
 * capability. Unlike a cell it lives in the hall's user and pid namespaces, since that is what lets it put
 * children into cells that its own id owns. It runs modules of the distribution only, never a program of a
 * run. */
#include "inside/inside.h"
#include "inside/shed.h"

#include "base/fault.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

static int enter_template(void)
{
    int error = (int)HC_SYS(mount("/cell", "/cell", NULL, MS_BIND | MS_REC, NULL));
    /* Libraries that keep a cache want a place for it; nothing of it reaches a cell. */
    if (error == 0)
        error = (int)HC_SYS(
            mount("tmpfs", "/cell/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,nr_inodes=4096,mode=1777"));
    if (error == 0)
        error = (int)HC_SYS(
            mount("proc", "/cell/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid,hidepid=2"));
    if (error == 0)
        error = (int)HC_SYS(chdir("/cell"));
    if (error == 0)
        error = (int)HC_SYS(hc_pivot_root(".", "."));
    if (error == 0)
        error = (int)HC_SYS(umount2(".", MNT_DETACH));
    return error == 0 ? (int)HC_SYS(chdir("/work")) : error;
}

static int drop_power(uint32_t id)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    uint32_t securebits;
    int error = (int)HC_SYS(setgroups(0, NULL));
    if (error == 0)
        error = hc_shed_bounding_set(&securebits);
    if (error == 0)
        error = (int)HC_SYS(setresgid(id, id, id));
    if (error == 0)
        error = (int)HC_SYS(setresuid(id, id, id));
    if (error == 0)
        error = (int)HC_SYS(syscall(SYS_capset, &header, none));
    if (error == 0)
        error = (int)HC_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    return error;
}

int hc_become_host(struct hc_inside *inside, const struct hc_plan_view *view, const int fds[HC_START_FDS])
{
    struct hc_shed context = {.landlock = -1, .plan = view->plan, .fds = fds};
    inside->stage = HC_STAGE_PIVOT_ROOT;
    int error = enter_template();
    if (error == 0) {
        inside->stage = HC_STAGE_RLIMITS;
        error = hc_shed_rlimits(&context);
    }
    if (error == 0) {
        inside->stage = HC_STAGE_IDENTITY;
        error = drop_power(HC_HOST_ID(inside->config.slot));
    }
    if (error == 0) {
        inside->stage = HC_STAGE_STDIO;
        error = hc_shed_stdio(&context);
    }
    if (error < 0)
        return error;
    inside->stage = HC_STAGE_EXEC;
    if (dup2(HC_FD_INIT_SOCKET, HC_FD_HOST_SOCKET) < 0 || fcntl(HC_FD_HOST_SOCKET, F_SETFD, 0) != 0 ||
        hc_close_range(HC_FD_HOST_SOCKET + 1, ~0u, 4 /* CLOSE_RANGE_CLOEXEC */) != 0)
        return -errno;
    (void)execve(view->argv[0], view->argv, view->envp);
    return -errno;
}
