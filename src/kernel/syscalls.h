/* System calls that the C library of our oldest supported system does not wrap. Plain libc convention: -1 and
 * errno. */
#ifndef HC_KERNEL_SYSCALLS_H
#define HC_KERNEL_SYSCALLS_H

#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif
#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ULL
#endif
#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef OPEN_TREE_CLOEXEC
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif
#ifndef MOVE_MOUNT_T_EMPTY_PATH
#define MOVE_MOUNT_T_EMPTY_PATH 0x40
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef MOUNT_ATTR_RDONLY
#define MOUNT_ATTR_RDONLY 1
#define MOUNT_ATTR_NOSUID 2
#define MOUNT_ATTR_NODEV  4
#define MOUNT_ATTR_NOEXEC 8
#endif
#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x200000
#endif

struct hc_mount_attr {
    uint64_t attr_set, attr_clr, propagation, userns_fd;
};

static inline pid_t hc_clone3(struct clone_args *args)
{
    return (pid_t)syscall(SYS_clone3, args, sizeof *args);
}

static inline int hc_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int hc_pidfd_signal(int pidfd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

static inline int hc_close_range(unsigned first, unsigned last, unsigned flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int hc_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int hc_open_tree(int folder, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, folder, path, flags);
}

static inline int hc_move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
    return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int hc_mount_setattr(int folder, const char *path, unsigned flags,
                                   const struct hc_mount_attr *attr)
{
    return (int)syscall(SYS_mount_setattr, folder, path, flags, attr, sizeof *attr);
}

static inline int hc_openat2(int folder, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};
    return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

static inline int hc_seccomp(unsigned operation, unsigned flags, const void *args)
{
    return (int)syscall(SYS_seccomp, operation, flags, args);
}

static inline long hc_keyctl_join_new_session(void)
{
    return syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL);
}

static inline int hc_memfd(const char *name, unsigned flags)
{
    return (int)syscall(SYS_memfd_create, name, flags);
}

#endif
