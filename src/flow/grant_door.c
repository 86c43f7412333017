/* Starts and ends hotcell-door for a user: with his ids, in his part of the cgroup2 tree. */
#include "flow/grants.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "flow/ordinary.h"
#include "flow/trees.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define OPEN_TIMEOUT_US 3000000u

static bool v2_group(const struct hc_grants *grants, char *path, size_t size)
{
    struct hc_tree trees[HC_TREES_MAX];
    size_t count = hc_trees_find(trees);
    for (size_t i = 0; i < count; i++) {
        char folder[512];
        if (!trees[i].v2)
            continue;
        hc_tree_user_folder(&trees[i], grants->uid, folder, sizeof folder);
        (void)snprintf(path, size, "%s/" HC_CGROUP_DOOR, folder);
        return true;
    }
    return false;
}

/* Whether the running door is this very program and lives where it has to: an upgrade, or a tree that was
 * removed meanwhile, asks for a new one. */
static bool is_current(const struct hc_grants *grants, pid_t pid, const char *program)
{
    char path[64], text[2048], wanted[64];
    struct stat running, here;
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    if (stat(path, &running) != 0 || stat(program, &here) != 0 || running.st_ino != here.st_ino ||
        running.st_dev != here.st_dev)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    (void)snprintf(wanted, sizeof wanted, "/" HC_CGROUP_HOME "/" HC_USER_FOLDER "%u/" HC_CGROUP_DOOR "\n",
                   (unsigned)grants->uid);
    return hc_file_read(AT_FDCWD, path, text, sizeof text) > 0 && strstr(text, wanted) != NULL;
}

/* Halls raise what their cells may use, as far as the door could. */
static void raise_hard_limits(void)
{
    static const int resources[] = {RLIMIT_CORE,    RLIMIT_CPU,      RLIMIT_FSIZE,      RLIMIT_STACK,
                                    RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING, RLIMIT_NOFILE};
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        struct rlimit limit;
        bool files = resources[i] == RLIMIT_NOFILE;
        if (getrlimit((__rlimit_resource_t)resources[i], &limit) != 0)
            continue;
        limit.rlim_cur = files && limit.rlim_cur < 1024 ? 1024 : limit.rlim_cur;
        limit.rlim_max = !files ? RLIM_INFINITY : limit.rlim_max < 65536 ? 65536 : limit.rlim_max;
        (void)setrlimit((__rlimit_resource_t)resources[i], &limit);
    }
}

static int become_user(const struct hc_grants *grants, int group)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), error = hc_file_write(group, "cgroup.procs", "0");
    if (error < 0)
        return error;
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || chdir("/") != 0)
        return -errno;
    (void)umask(0022);
    (void)hc_file_write(AT_FDCWD, "/proc/self/oom_score_adj", "0");
    (void)hc_keyctl_join_new_session();
    raise_hard_limits();
    if (initgroups(grants->user, grants->gid) != 0 || setresgid(grants->gid, grants->gid, grants->gid) != 0 ||
        setresuid(grants->uid, grants->uid, grants->uid) != 0)
        return -errno;
    return 0;
}

static _Noreturn void child(const struct hc_grants *grants, const char *program, int group, int report)
{
    char *const argv[] = {(char *)"hotcell-door", NULL};
    char *const envp[] = {NULL};
    (void)setsid();
    if (fork() != 0) /* its parent is process 1 */
        _exit(0);
    int error = become_user(grants, group);
    if (error == 0) {
        (void)execve(program, argv, envp);
        error = -errno;
    }
    (void)!write(report, &error, sizeof error);
    _exit(1);
}

static int start_door(const struct hc_grants *grants, const char *program, const char *group_path)
{
    int pair[2], error = 0;
    hc_autoclose int group = open(group_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group < 0 || pipe2(pair, O_CLOEXEC) != 0)
        return -errno;
    hc_autoclose int report = pair[0];
    pid_t pid = fork();
    if (pid == 0)
        child(grants, program, group, pair[1]);
    close(pair[1]);
    if (pid < 0)
        return -errno;
    (void)waitpid(pid, NULL, 0);
    if (read(report, &error, sizeof error) == (ssize_t)sizeof error)
        return error;
    for (uint64_t until_us = hc_now_us() + OPEN_TIMEOUT_US; (error = hc_door_probe(grants->uid, NULL)) < 0;) {
        struct timespec pause = {.tv_nsec = 2000000};
        if (hc_now_us() > until_us)
            return error;
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

/* The number was true when the door began to listen, and the user may have let it go since: nobody else's
 * process is to be ended in its place. */
static void end_door(const struct hc_grants *grants, pid_t pid)
{
    char path[64];
    struct stat info;
    hc_autoclose int pidfd = hc_pidfd_open(pid);
    (void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (pidfd >= 0 && stat(path, &info) == 0 && info.st_uid == grants->uid && hc_pidfd_signal(pidfd, 0) == 0)
        (void)hc_pidfd_signal(pidfd, SIGKILL);
}

void hc_grant_door(struct hc_grants *grants)
{
    char program[512], group[600];
    const char *name = hc_need_names[HC_NEED_DOOR];
    pid_t pid = 0;
    (void)snprintf(program, sizeof program, "%s/hotcell-door", grants->programs);
    bool open_now = hc_door_probe(grants->uid, &pid) == 0;
    if (open_now && is_current(grants, pid, program)) {
        hc_grant_add(grants, name, HC_GRANT_ALREADY, true, "process %d", (int)pid);
        return;
    }
    if (grants->dry_run || !v2_group(grants, group, sizeof group)) {
        hc_grant_add(grants, name, grants->dry_run ? HC_GRANT_WOULD : HC_GRANT_FAILED, true, "%.350s",
                     program);
        return;
    }
    if (open_now)
        end_door(grants, pid);
    int error = start_door(grants, program, group);
    (void)hc_door_probe(grants->uid, &pid);
    if (error < 0)
        hc_grant_add(grants, name, HC_GRANT_FAILED, true, "%.250s can't be started as %s: %s", program,
                     grants->user, strerror(-error));
    else
        hc_grant_add(grants, name, HC_GRANT_DONE, true, "process %d%s", (int)pid,
                     open_now ? ", in the place of an older one" : "");
}

void hc_grant_door_undo(struct hc_grants *grants)
{
    pid_t pid = 0;
    bool open_now = hc_door_probe(grants->uid, &pid) == 0;
    if (open_now && !grants->dry_run)
        end_door(grants, pid);
    hc_grant_add(grants, hc_need_names[HC_NEED_DOOR],
                 !open_now         ? HC_GRANT_ALREADY
                 : grants->dry_run ? HC_GRANT_WOULD
                                   : HC_GRANT_DONE,
                 true, open_now ? "process %d ended" : "no door", (int)pid);
}
