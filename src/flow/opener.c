#include "flow/opener.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define RESOLVE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

struct hc_opener {
    struct hc_opener *next;
    int namespace, socket;
    pid_t child; /* 0: not started */
};

struct wish {
    uint64_t flags;
    char path[PATH_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hc_opener *openers; /* one per hall of this process */

/* ---- in the child: system calls only, as it is the copy of one thread among many ---- */

static int keep_reading_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};
    sets[0].permitted = sets[0].effective = 1u << CAP_DAC_READ_SEARCH;
    return (int)HC_SYS(syscall(SYS_capset, &header, sets));
}

/* The raw calls: libc's would ask every thread of the caller to follow. */
static int become_opener(int namespace, pid_t parent)
{
    int error = (int)HC_SYS(setns(namespace, CLONE_NEWUSER));
    if (error == 0)
        error = (int)HC_SYS(syscall(SYS_setgroups, 0, NULL));
    if (error == 0)
        error = (int)HC_SYS(syscall(SYS_setresgid, 0, 0, 0));
    if (error == 0)
        error = (int)HC_SYS(syscall(SYS_setresuid, 0, 0, 0));
    if (error == 0)
        error = keep_reading_rights();
    if (error == 0)
        error = (int)HC_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    /* After the id change, which clears it. */
    if (error == 0)
        error = (int)HC_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
    return error == 0 && getppid() != parent ? -ESRCH : error;
}

static _Noreturn void serve(int socket, int namespace, pid_t parent)
{
    static struct wish wish;
    /* Nothing of the caller's stays open here, least of all another opener's socket: that would not end. */
    if (dup2(socket, 0) != 0 || dup2(namespace, 1) != 1 || hc_close_range(2, ~0u, 0) != 0 ||
        become_opener(1, parent) < 0)
        _exit(1);
    (void)close(1);
    for (;;) {
        int folder = -1;
        unsigned count = 0;
        long n = hc_message_receive(0, &wish, sizeof wish, &folder, 1, &count, 0);
        if (n == 0 || (n < 0 && n != -EMSGSIZE))
            _exit(0);
        wish.path[sizeof wish.path - 1] = '\0';
        int fd = count == 1 ? hc_openat2(folder, wish.path, wish.flags, 0, RESOLVE) : -1;
        int error = fd < 0 ? -errno : 0;
        if (hc_message_send(0, &error, sizeof error, &fd, fd >= 0 ? 1 : 0, 0) < 0)
            _exit(0);
        hc_close_fd(&fd);
        hc_close_fd(&folder);
    }
}

/* ---- in the caller ---- */

static void stop(struct hc_opener *opener)
{
    hc_close_fd(&opener->socket);
    if (opener->child > 0) {
        (void)kill(opener->child, SIGKILL);
        while (waitpid(opener->child, NULL, __WALL) < 0 && errno == EINTR)
            continue;
    }
    opener->child = 0;
}

static int start(struct hc_opener *opener)
{
    int pair[2];
    sigset_t all, before;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -errno;
    hc_autoclose int theirs = pair[1];
    opener->socket = pair[0];
    pid_t parent = getpid();
    /* No handler of the caller's may run in the child. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    struct clone_args args = {
        .flags = CLONE_CLEAR_SIGHAND} /* no signal: no business of a caller who waits for his children */;
    pid_t child = (pid_t)HC_SYS(hc_clone3(&args));
    if (child == 0)
        serve(theirs, opener->namespace, parent);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child < 0) {
        hc_close_fd(&opener->socket);
        return child;
    }
    opener->child = child;
    return 0;
}

static int ask(struct hc_opener *opener, int folder, const struct wish *wish)
{
    int fd = -1, error = 0;
    unsigned count = 0;
    if (opener->child == 0 && (error = start(opener)) < 0)
        return error;
    error = hc_message_send(opener->socket, wish, sizeof *wish, &folder, 1, 0);
    if (error < 0)
        return -ECHILD;
    int answer = 0;
    long n = hc_message_receive(opener->socket, &answer, sizeof answer, &fd, 1, &count, 0);
    if (n != (long)sizeof answer || (answer == 0) != (count == 1)) {
        hc_close_fd(&fd);
        return -ECHILD;
    }
    return answer < 0 ? answer : fd;
}

/* An opener ends with the thread that started it: a second one is started then. */
static int ask_twice(struct hc_opener *opener, int folder, const struct wish *wish)
{
    int fd = -ECHILD;
    for (int round = 0; round < 2 && fd == -ECHILD; round++) {
        fd = ask(opener, folder, wish);
        if (fd == -ECHILD)
            stop(opener);
    }
    return fd == -ECHILD ? -EACCES : fd;
}

int hc_open_beneath(int folder, const char *path, uint64_t flags)
{
    /* Non-blocking, so that a FIFO nobody writes to can't hold us; no controlling terminal. */
    flags |= O_CLOEXEC | O_NOFOLLOW | ((flags & O_PATH) != 0 ? 0 : O_NONBLOCK | O_NOCTTY);
    int fd = (int)HC_SYS(hc_openat2(folder, path, flags, 0, RESOLVE));
    if (fd != -EACCES)
        return fd;
    hc_autofree struct wish *wish = calloc(1, sizeof *wish);
    size_t n = strlen(path);
    if (wish == NULL || n >= sizeof wish->path)
        return wish == NULL ? -ENOMEM : -ENAMETOOLONG;
    wish->flags = flags;
    memcpy(wish->path, path, n + 1);
    (void)pthread_mutex_lock(&lock);
    for (struct hc_opener *opener = openers; opener != NULL && fd == -EACCES; opener = opener->next)
        fd = ask_twice(opener, folder, wish);
    (void)pthread_mutex_unlock(&lock);
    return fd;
}

struct hc_opener *hc_opener_new(int namespace)
{
    struct hc_opener *opener = calloc(1, sizeof *opener);
    if (opener == NULL) {
        close(namespace);
        return NULL;
    }
    opener->namespace = namespace;
    opener->socket = -1;
    (void)pthread_mutex_lock(&lock);
    opener->next = openers;
    openers = opener;
    (void)pthread_mutex_unlock(&lock);
    return opener;
}

void hc_opener_done(struct hc_opener *opener)
{
    if (opener == NULL)
        return;
    (void)pthread_mutex_lock(&lock);
    for (struct hc_opener **at = &openers; *at != NULL; at = &(*at)->next)
        if (*at == opener) {
            *at = opener->next;
            break;
        }
    stop(opener);
    (void)pthread_mutex_unlock(&lock);
    hc_close_fd(&opener->namespace);
    free(opener);
}
