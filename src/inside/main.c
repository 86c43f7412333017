#include "inside/inside.h"
#include "inside/shed.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "filter_init.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>

HC_FAULT_STORAGE

static struct hc_inside inside;
static struct hc_plan_view view;

static _Noreturn void fail(int error)
{
    struct hc_init_report report = {
        .version = HC_WIRE_VERSION, .kind = HC_INIT_FAILED, .stage = (uint32_t)inside.stage, .error = error};
    (void)hc_message_send(HC_FD_INIT_SOCKET, &report, sizeof report, NULL, 0, 0);
    _exit(1);
}

static void tell(enum hc_init_report_kind kind, const int *fds, unsigned fd_count)
{
    struct hc_init_report report = {
        .version = HC_WIRE_VERSION, .kind = (uint32_t)kind, .facts = inside.facts};
    if (hc_message_send(HC_FD_INIT_SOCKET, &report, sizeof report, fds, fd_count, 0) < 0)
        _exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Process 1 shares the cell with hostile code from the exec on: it keeps no capability and hardly a system
 * call. */
static int shed(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    struct sock_fprog program = {.len = HC_FILTER_INIT_LEN, .filter = (struct sock_filter *)hc_filter_init};
    int error = (int)HC_SYS(syscall(SYS_capset, &header, none));
    if (error == 0)
        error = (int)HC_SYS(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
    if (error == 0)
        error = (int)HC_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (error == 0)
        error = (int)HC_SYS(hc_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program));
    return error;
}

static void report_end(int report_fd, struct hc_end_report *report)
{
    report->version = HC_WIRE_VERSION;
    (void)hc_message_send(report_fd, report, sizeof *report, NULL, 0, 0);
}

/* The payload's first word: that it is ready, or which stage failed. It may also die before it says anything.
 */
static int await_ready(int ready, int pidfd, struct hc_payload_report *ret_report)
{
    struct pollfd wait[2] = {{.fd = ready, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    while (poll(wait, 2, -1) < 0)
        if (errno != EINTR)
            return -errno;
    if ((wait[0].revents & POLLIN) == 0)
        return -ECHILD;
    return read(ready, ret_report, sizeof *ret_report) == (ssize_t)sizeof *ret_report ? 0 : -EIO;
}

/* After the library's byte: the time just before the exec, then nothing (the exec closed the pipe) or a
 * failure. */
static void await_exec(int ready, int pidfd, int *ready_write, int report_fd)
{
    struct hc_end_report report = {.kind = HC_END_FAILED, .stage = HC_STAGE_EXEC, .error = -ECHILD};
    struct hc_payload_report failure;
    struct pollfd wait[2] = {{.fd = ready, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    uint64_t at_ns = 0;
    while (poll(wait, 2, -1) < 0 && errno == EINTR)
        continue;
    if ((wait[0].revents & POLLIN) != 0 && read(ready, &at_ns, sizeof at_ns) == (ssize_t)sizeof at_ns) {
        hc_close_fd(ready_write);
        ssize_t n = read(ready, &failure, sizeof failure);
        if (n == 0) {
            report = (struct hc_end_report){.kind = HC_END_EXECED, .at_ns = at_ns};
        } else if (n == (ssize_t)sizeof failure) {
            report.stage = failure.stage;
            report.error = failure.error;
        }
    }
    report_end(report_fd, &report);
}

/* Nobody is left to reap. The library ends the cell; until then process 1 has to stay. */
static _Noreturn void wait_for_end(int report_fd)
{
    char byte;
    while (read(report_fd, &byte, 1) > 0)
        continue;
    _exit(0);
}

static _Noreturn void reap_until_killed(pid_t payload, int report_fd)
{
    for (;;) {
        int status = 0;
        pid_t pid = wait4(-1, &status, 0, NULL);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            break;
        if (pid != payload)
            continue;
        struct hc_end_report report = {.kind = HC_END_EXITED, .at_ns = now_ns(), .wait_status = status};
        struct statfs info;
        if (fstatfs(inside.working_folder, &info) == 0) {
            report.scratch_free_bytes = (uint64_t)info.f_bfree * (uint64_t)info.f_bsize;
            report.scratch_free_inodes = info.f_ffree;
        }
        report_end(report_fd, &report);
    }
    wait_for_end(report_fd);
}

/* Returns the socket of a payload that waits in this cell already, -1 without one. */
static int receive_start(int fds[HC_START_FDS + 1])
{
    struct hc_init_order order;
    unsigned count = 0;
    long n = hc_message_receive(HC_FD_INIT_SOCKET, &order, sizeof order, fds, HC_START_FDS + 1, &count, 0);
    if (n <= 0)
        _exit(0);
    inside.stage = HC_STAGE_PLAN;
    if (n != (long)sizeof order || order.version != HC_WIRE_VERSION || order.kind != HC_INIT_START ||
        (count != HC_START_FDS && count != HC_START_FDS + 1))
        fail(-EPROTO);
    return count > HC_START_FDS ? fds[HC_START_FDS] : -1;
}

static pid_t fork_payload(const int fds[HC_START_FDS], int ready_write, int *ret_pidfd)
{
    /* A shared descriptor table: the listener that the payload's filter makes appears in ours, although the
     * payload can't send it any more (sendmsg is one of the notified calls). */
    struct clone_args args = {
        .flags = CLONE_FILES | CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)ret_pidfd, .exit_signal = SIGCHLD};
    inside.stage = HC_STAGE_FORK;
    pid_t payload = (pid_t)HC_SYS(hc_clone3(&args));
    if (payload == 0)
        hc_payload(&inside, &view, fds, ready_write);
    if (payload < 0)
        fail(payload);
    return payload;
}

static void close_streams(const int fds[HC_START_FDS])
{
    for (int i = HC_START_PLAN; i < HC_START_REPORT; i++)
        close(fds[i]);
}

static void shed_power(void)
{
    inside.stage = HC_STAGE_CAPABILITIES;
    int error = shed();
    if (error < 0)
        fail(error);
    inside.stage = HC_STAGE_FORK;
}

static void take_ready(int ready, int pidfd, struct hc_payload_report *ret_report)
{
    int error = await_ready(ready, pidfd, ret_report);
    if (error < 0)
        fail(error);
    if (ret_report->stage != HC_STAGE_NONE) {
        inside.stage = ret_report->stage < HC_STAGE_COUNT ? (enum hc_stage)ret_report->stage : HC_STAGE_FORK;
        fail(ret_report->error);
    }
    inside.facts.layers_applied |= ret_report->layers_applied;
}

/* The payload was made by a warm host and stands in this cell; its parent is the keeper, who sees its end. */
static _Noreturn void run_warm(int fds[HC_START_FDS], int payload)
{
    struct hc_warm_start begin = {.version = HC_WIRE_VERSION};
    struct hc_payload_report report = {0};
    char byte;
    /* What loses its parent in here becomes our child; nobody asks how it ended. */
    (void)signal(SIGCHLD, SIG_IGN);
    shed_power();
    int error = hc_message_send(payload, &begin, sizeof begin, fds, HC_START_FDS, 0);
    if (error < 0)
        fail(error);
    take_ready(payload, -1, &report);
    tell(HC_INIT_READY, &inside.working_folder, 1);
    /* The library's byte on the report socket is for the payload, which then says itself that it has begun
     * and closes its end. */
    while (read(payload, &byte, 1) > 0)
        continue;
    close(payload);
    close_streams(fds);
    wait_for_end(fds[HC_START_REPORT]);
}

static _Noreturn void run(int fds[HC_START_FDS])
{
    int ready[2], pidfd = -1;
    struct hc_payload_report report = {0};
    inside.stage = HC_STAGE_FORK;
    int error = (int)HC_SYS(pipe2(ready, O_CLOEXEC));
    if (error < 0)
        fail(error);
    pid_t payload = fork_payload(fds, ready[1], &pidfd);
    shed_power();
    take_ready(ready[0], pidfd, &report);
    int handed[3] = {pidfd, inside.working_folder, report.listener};
    tell(HC_INIT_READY, handed, 3);
    close(report.listener);
    await_exec(ready[0], pidfd, &ready[1], fds[HC_START_REPORT]);
    /* What is still open of the run's streams would keep its readers waiting. */
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    close(pidfd);
    close(ready[0]);
    close_streams(fds);
    reap_until_killed(payload, fds[HC_START_REPORT]);
}

static int be_host(void)
{
    int fds[HC_START_FDS + 1];
    (void)receive_start(fds);
    int error = hc_plan_open(fds[HC_START_PLAN], &view);
    if (error == 0)
        error = hc_become_host(&inside, &view, fds);
    fail(error);
}

int main(void)
{
    int fds[HC_START_FDS + 1];
    long n = hc_message_receive(HC_FD_INIT_SOCKET, &inside.config, sizeof inside.config, NULL, 0, NULL, 0);
    if (n != (long)sizeof inside.config || inside.config.version != HC_WIRE_VERSION)
        return 1;
    (void)fcntl(HC_FD_INIT_SOCKET, F_SETFD, FD_CLOEXEC);
    hc_fault_arm(inside.config.fault_nth);
    inside.landlock = inside.working_folder = -1;
    if (inside.config.mode == HC_INIT_OF_HOST)
        return be_host();
    hc_layer_applied(&inside, HC_LAYER_USER_NAMESPACE);
    int error = hc_prepare(&inside);
    if (error < 0)
        fail(error);
    tell(HC_INIT_MADE, NULL, 0);
    int payload = receive_start(fds);
    if ((error = hc_plan_open(fds[HC_START_PLAN], &view)) < 0 ||
        (error = hc_scratch_fill(&inside, &view)) < 0)
        fail(error);
    if (payload >= 0)
        run_warm(fds, payload);
    run(fds);
}
