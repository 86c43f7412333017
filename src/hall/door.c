/* hotcell-door: where the halls of one ordinary user begin.
 *
 * A process can be put into a cgroup only by somebody who may write the common ancestor of where it is and
 * where it goes, and a user's session lies outside of what he may write. So root starts this once, inside the
 * user's own part of the tree and with the user's ids, and every hall is born here. It has no right that its
 * user has not, and does what he asks: it starts the program that he hands in.
 */
#include "base/cleanup.h"
#include "base/fault.h"
#include "cell/wire.h"
#include "cell/words.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

HC_FAULT_STORAGE

static int place_fds(const int fds[HC_DOOR_FDS], int *ret_program)
{
    int high[HC_DOOR_FDS];
    for (int i = 0; i < HC_DOOR_FDS; i++)
        if ((high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64)) < 0)
            return -errno;
    if (dup2(high[HC_DOOR_CONFIG], HC_FD_HALL_CONFIG) < 0 ||
        dup2(high[HC_DOOR_KEEPER_SOCKET], HC_FD_HALL_SOCKET) < 0)
        return -errno;
    *ret_program = high[HC_DOOR_PROGRAM];
    return 0;
}

static _Noreturn void become_hall(const int fds[HC_DOOR_FDS])
{
    static struct hc_event event;
    char *const argv[] = {(char *)"hotcell-hall", NULL};
    char *const envp[] = {NULL};
    int program = -1;
    /* Ignored signals stay ignored through every exec, down to the program in the cell. */
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    int error = place_fds(fds, &program);
    if (error == 0)
        error = (int)HC_SYS(syscall(SYS_execveat, program, "", argv, envp, AT_EMPTY_PATH));
    event = (struct hc_event){
        .version = HC_WIRE_VERSION, .kind = HC_EVENT_FAILED, .stage = HC_STAGE_HALL_KEEPER, .error = error};
    memcpy(event.u.detail, "hotcell-hall", sizeof "hotcell-hall");
    (void)hc_message_send(fds[HC_DOOR_KEEPER_SOCKET], &event, hc_event_size(event.kind), NULL, 0,
                          MSG_DONTWAIT);
    _exit(1);
}

static int start_hall(const int fds[HC_DOOR_FDS], pid_t *ret_pid)
{
    int pidfd = -1;
    struct clone_args args = {
        .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    pid_t pid = (pid_t)HC_SYS(hc_clone3(&args));
    if (pid == 0)
        become_hall(fds);
    *ret_pid = pid;
    return pid < 0 ? pid : pidfd;
}

static void serve(int connection)
{
    struct hc_door_request request = {0};
    struct hc_door_answer answer = {.version = HC_WIRE_VERSION};
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    int fds[HC_DOOR_FDS] = {-1, -1, -1};
    unsigned count = 0;
    pid_t pid = 0;
    /* A caller that says nothing must not keep the next one waiting for long. */
    const struct timeval patience = {.tv_sec = 1};
    (void)setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid())
        return;
    long n = hc_message_receive(connection, &request, sizeof request, fds, HC_DOOR_FDS, &count, 0);
    if (n <= 0)
        return;
    int pidfd = n != (long)sizeof request || request.version != HC_WIRE_VERSION || count != HC_DOOR_FDS ||
                        request.size != sizeof(struct hc_hall_config)
                    ? -EPROTO
                    : start_hall(fds, &pid);
    answer.error = pidfd < 0 ? pidfd : 0;
    answer.pid = pid;
    (void)hc_message_send(connection, &answer, sizeof answer, &pidfd, pidfd >= 0 ? 1 : 0, MSG_DONTWAIT);
    hc_close_fd(&pidfd);
    for (int i = 0; i < HC_DOOR_FDS; i++)
        hc_close_fd(&fds[i]);
}

/* Listens under a name of its own first: who finds the door finds it open. */
static int listen_here(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char buffer[sizeof address.sun_path];
    struct hc_text path = {.data = address.sun_path, .size = sizeof address.sun_path}, name = HC_TEXT(buffer);
    hc_text_string(&name, HC_RUN_FOLDER "/" HC_USER_FOLDER);
    hc_text_number(&name, getuid());
    hc_text_string(&name, "/" HC_DOOR_SOCKET);
    hc_text_string(&path, buffer);
    hc_text_string(&path, ".new");
    hc_autoclose int listener = (int)HC_SYS(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (listener < 0)
        return listener;
    (void)unlink(address.sun_path);
    (void)umask(0077);
    int error = (int)HC_SYS(bind(listener, (struct sockaddr *)&address, sizeof address));
    if (error == 0)
        error = (int)HC_SYS(listen(listener, 64));
    if (error == 0)
        error = (int)HC_SYS(syscall(SYS_renameat2, AT_FDCWD, address.sun_path, AT_FDCWD, buffer, 0));
    (void)umask(0022);
    return error < 0 ? error : hc_take_fd(&listener);
}

int main(void)
{
    (void)hc_close_range(3, ~0u, 0);
    (void)signal(SIGCHLD, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    int listener = listen_here();
    if (listener < 0)
        return 1;
    for (;;) {
        int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (connection < 0 && errno != EINTR && errno != ECONNABORTED) {
            struct timespec pause = {.tv_nsec = 50000000}; /* out of descriptors or memory: for a moment */
            (void)nanosleep(&pause, NULL);
        }
        if (connection >= 0) {
            serve(connection);
            close(connection);
        }
    }
}
