/* What selftest asks of the kernel that no command shows: selftest-probe landlock|seccomp|clone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER 4242 /* what the supervisor says that getppid() returns */

static int fail(const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    return 1;
}

static int probe_landlock(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1)
        return fail("landlock_create_ruleset");
    printf("ABI %ld\n", abi);
    return 0;
}

static int install_listener(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* The filter is set before the fork, so that both have the listener without passing it. */
static int probe_seccomp(void)
{
    int listener = install_listener();
    if (listener < 0)
        return fail("seccomp");
    pid_t child = fork();
    if (child < 0)
        return fail("fork");
    if (child == 0)
        _exit(syscall(SYS_getppid) == ANSWER ? 0 : 1);
    struct seccomp_notif request = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request))
        return fail("SECCOMP_IOCTL_NOTIF_RECV");
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &request.id))
        return fail("SECCOMP_IOCTL_NOTIF_ID_VALID");
    struct seccomp_notif_resp answer = {.id = request.id, .val = ANSWER};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer))
        return fail("SECCOMP_IOCTL_NOTIF_SEND");
    int status;
    if (waitpid(child, &status, 0) != child)
        return fail("waitpid");
    return status != 0;
}

static int probe_clone(void)
{
    const char *group = "/sys/fs/cgroup/selftest-clone";
    if (mkdir(group, 0755))
        return fail("mkdir");
    int group_fd = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC), pidfd = -1;
    struct clone_args arguments = {
        .flags = CLONE_INTO_CGROUP | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)&pidfd,
        .cgroup = (uint64_t)group_fd,
        .exit_signal = SIGCHLD,
    };
    long child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0) {
        char line[256] = "";
        int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
        _exit(read(fd, line, sizeof line - 1) > 0 && strcmp(line, "0::/selftest-clone\n") == 0 ? 0 : 1);
    }
    if (child < 0)
        return fail("clone3");
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED))
        return fail("waitid");
    if (rmdir(group))
        return fail("rmdir");
    return info.si_status != 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "landlock") == 0)
        return probe_landlock();
    if (argc == 2 && strcmp(argv[1], "seccomp") == 0)
        return probe_seccomp();
    if (argc == 2 && strcmp(argv[1], "clone") == 0)
        return probe_clone();
    return 2;
}
