#include "warm/join.h"

#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

HC_FAULT_STORAGE

/* Places in the payload's descriptor table once it has begun. */
#define CONTROL_FD 3
#define REPORT_FD  4

static void close_all(int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int hc_warm_next(struct hc_warm_job *ret_job)
{
    int fds[HC_WARM_FDS];
    unsigned count = 0;
    memset(ret_job, 0, sizeof *ret_job);
    long n = hc_message_receive(HC_FD_HOST_SOCKET, &ret_job->order, sizeof ret_job->order, fds, HC_WARM_FDS,
                                &count, 0);
    if (n <= 0)
        return n < 0 ? (int)n : 1;
    const struct hc_warm_order *order = &ret_job->order;
    if (n != (long)sizeof *order || order->version != HC_WIRE_VERSION || order->kind != HC_WARM_FORK ||
        order->leaves > HC_CONTROLLER_COUNT || count != 2 + order->leaves) {
        close_all(fds, count);
        return -EPROTO;
    }
    ret_job->init = fds[0];
    ret_job->control = fds[1];
    memcpy(ret_job->leaves, fds + 2, order->leaves * sizeof *fds);
    return 0;
}

/* write, not send: for a payload behind its filter a send is a notified call, and who would answer it is
 * about to read this. */
int hc_warm_tell(const struct hc_warm_report *report)
{
    ssize_t n = write(HC_FD_HOST_SOCKET, report, sizeof *report);
    return n == (ssize_t)sizeof *report ? 0 : n < 0 ? -errno : -EIO;
}

/* ---- the vfork child ---- */

static int fail_at(struct hc_warm_job *job, enum hc_stage stage, int error)
{
    job->stage = stage;
    return error;
}

/* cgroup2 lets only the owner of both groups' common ancestor move a process: that is the keeper. */
static int be_moved(struct hc_warm_job *job)
{
    struct hc_warm_report report = {.version = HC_WIRE_VERSION,
                                    .kind = HC_WARM_MOVE_ME,
                                    .slot = job->order.slot,
                                    .pid = (int32_t)syscall(SYS_getpid)};
    struct hc_warm_order answer;
    int error = hc_warm_tell(&report);
    if (error < 0)
        return error;
    long n = hc_message_receive(HC_FD_HOST_SOCKET, &answer, sizeof answer, NULL, 0, NULL, 0);
    return n == (long)sizeof answer && answer.kind == HC_WARM_MOVED ? 0 : n < 0 ? (int)n : -EPROTO;
}

/* A v1 group is joined by who may write its list and has the id that opened it: the leaf is lent to the host
 * for this. */
static int join_leaf(int folder)
{
    int list = (int)HC_SYS(openat(folder, "cgroup.procs", O_WRONLY | O_CLOEXEC));
    if (list < 0)
        return list;
    long n = HC_SYS(write(list, "0", 1));
    close(list);
    return n == 1 ? 0 : n < 0 ? (int)n : -EIO;
}

static int join(struct hc_warm_job *job)
{
    const int all = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                    CLONE_NEWCGROUP;
    int error = be_moved(job);
    for (uint32_t i = 0; error == 0 && i < job->order.leaves; i++)
        error = join_leaf(job->leaves[i]);
    if (error < 0)
        return fail_at(job, HC_STAGE_CGROUP_JOIN, error);
    error = (int)HC_SYS(setns(job->init, all));
    return error < 0 ? fail_at(job, HC_STAGE_CLONE, error) : 0;
}

/* Not inlined: the frame in which vfork returns twice must be this one and nothing else. */
__attribute__((noinline)) bool hc_warm_fork(struct hc_warm_job *job)
{
    job->pid = -1;
    job->error = -ECHILD;
    /* vfork and work in its child are the point: it joins the cell and forks out of this address space,
     * without a copy of its page tables on the way. The host has one thread, so that no lock of libc can be
     * held by another. */
    pid_t between = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    if (between == 0) {
        int error = join(job); // NOLINT(clang-analyzer-unix.Vfork)
        if (error == 0) {
            pid_t payload = fork(); // NOLINT(clang-analyzer-unix.Vfork)
            if (payload == 0)
                return true;
            job->pid = payload;
            error = payload < 0 ? fail_at(job, HC_STAGE_FORK, -errno) : 0;
        }
        job->error = error;
        _exit(0);
    }
    if (between < 0)
        job->error = fail_at(job, HC_STAGE_FORK, -errno);
    else
        while (waitpid(between, NULL, __WALL) < 0 && errno == EINTR)
            continue;
    close(job->init);
    close(job->control);
    close_all(job->leaves, job->order.leaves);
    return false;
}

/* ---- the payload ---- */

static _Noreturn void give_up(const struct hc_warm_job *job, enum hc_stage stage, int error)
{
    struct hc_warm_report report = {.version = HC_WIRE_VERSION,
                                    .kind = HC_WARM_FAILED,
                                    .slot = job->order.slot,
                                    .stage = (uint32_t)stage,
                                    .error = error};
    (void)hc_warm_tell(&report);
    _exit(127);
}

static void tolerate(struct hc_warm_job *job, struct hc_warm_report *report, enum hc_layer layer,
                     enum hc_stage stage, int error)
{
    if (error == 0)
        report->layers_applied |= 1ull << layer;
    else if ((job->order.allow_layers >> layer & 1) == 0)
        give_up(job, stage, error);
}

static void need(const struct hc_warm_job *job, enum hc_stage stage, int error)
{
    if (error < 0)
        give_up(job, stage, error);
}

void hc_warm_settle(struct hc_warm_job *job)
{
    struct hc_warm_report report = {
        .version = HC_WIRE_VERSION, .kind = HC_WARM_WAITS, .slot = job->order.slot};
    struct hc_shed shed = {.landlock = -1, .outlives_parent = true, .report = {.listener = -1}};
    /* Nothing of the host but its streams, its socket for one last word, and the way to init. */
    if (job->control != HC_FD_HOST_SOCKET + 1)
        need(job, HC_STAGE_STDIO, dup3(job->control, HC_FD_HOST_SOCKET + 1, O_CLOEXEC) < 0 ? -errno : 0);
    need(job, HC_STAGE_STDIO, hc_close_range(HC_FD_HOST_SOCKET + 2, ~0u, 0) < 0 ? -errno : 0);
    job->control = HC_FD_HOST_SOCKET + 1;
    need(job, HC_STAGE_SESSION, hc_shed_session(&shed));
    tolerate(job, &report, HC_LAYER_KEYRING, HC_STAGE_KEYRING, hc_shed_keyring());
    tolerate(job, &report, HC_LAYER_OOM_PREFERENCE, HC_STAGE_OOM_PREFERENCE,
             hc_shed_oom_preference(&report.oom_score_adj));
    shed.landlock = hc_landlock_make(&report.landlock_abi);
    need(job, HC_STAGE_LANDLOCK, shed.landlock < -1 ? shed.landlock : 0);
    need(job, HC_STAGE_CAPABILITIES, hc_shed_bounding_set(&report.securebits));
    report.layers_applied |= 1ull << HC_LAYER_SECUREBITS;
    need(job, HC_STAGE_IDENTITY, hc_shed_identity(&shed));
    need(job, HC_STAGE_CAPABILITIES, hc_shed_capabilities(&shed));
    need(job, HC_STAGE_LANDLOCK, hc_shed_landlock(&shed));
    if (shed.landlock >= 0)
        close(shed.landlock);
    need(job, HC_STAGE_SECCOMP, hc_shed_filter(&shed));
    report.layers_applied |= shed.report.layers_applied;
    report.listener = shed.report.listener;
    need(job, HC_STAGE_FORK, hc_warm_tell(&report));
    close(HC_FD_HOST_SOCKET);
}

void hc_warm_begin(struct hc_warm_job *job)
{
    struct hc_warm_start start;
    struct hc_payload_report report = {.listener = -1};
    struct hc_shed shed = {.landlock = -1, .fds = job->start_fds};
    unsigned count = 0;
    long n = hc_message_receive(job->control, &start, sizeof start, job->start_fds, HC_START_FDS, &count, 0);
    if (n != (long)sizeof start || start.version != HC_WIRE_VERSION || count != HC_START_FDS)
        _exit(127); /* the cell is being taken down */
    int error = hc_plan_open(job->start_fds[HC_START_PLAN], &job->view);
    report.stage = HC_STAGE_PLAN;
    if (error == 0) {
        report.stage = HC_STAGE_STDIO;
        error = hc_shed_stdio(&shed);
    }
    if (error == 0) {
        report.stage = HC_STAGE_RLIMITS;
        shed.plan = job->view.plan;
        error = hc_shed_rlimits(&shed);
    }
    if (error < 0) {
        report.error = error;
        (void)!write(job->control, &report, sizeof report);
        _exit(127);
    }
    job->layers_applied = shed.report.layers_applied;
}

void hc_warm_go(struct hc_warm_job *job)
{
    struct hc_payload_report ready = {.listener = -1, .layers_applied = job->layers_applied};
    struct hc_end_report begun = {.version = HC_WIRE_VERSION, .kind = HC_END_EXECED};
    struct timespec now;
    char byte = 0;
    /* The two that are still needed go to fixed places, and all else with them: the keeper holds the listener
     * by now. */
    int report = fcntl(job->start_fds[HC_START_REPORT], F_DUPFD_CLOEXEC, 512);
    int control = fcntl(job->control, F_DUPFD_CLOEXEC, 512);
    if (report < 0 || control < 0) { /* fewer descriptors allowed than that */
        report = fcntl(job->start_fds[HC_START_REPORT], F_DUPFD_CLOEXEC, 8);
        control = fcntl(job->control, F_DUPFD_CLOEXEC, 8);
    }
    if (dup3(control, CONTROL_FD, O_CLOEXEC) < 0 || dup3(report, REPORT_FD, O_CLOEXEC) < 0 ||
        hc_close_range(REPORT_FD + 1, ~0u, 0) != 0)
        _exit(127);
    if (write(CONTROL_FD, &ready, sizeof ready) != (ssize_t)sizeof ready || read(REPORT_FD, &byte, 1) != 1)
        _exit(127);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    begun.at_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (write(REPORT_FD, &begun, sizeof begun) != (ssize_t)sizeof begun)
        _exit(127);
    close(REPORT_FD);
    close(CONTROL_FD);
}
