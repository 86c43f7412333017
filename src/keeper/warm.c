/* Warm hosts: processes with an id of their own and no capability, which make payloads in cells that this id
 * owns.
 *
 * A host makes one payload at a time. Between our order and its last word three messages pass: the process in
 * between wants to be moved into the cell's cgroup2 leaf, the host names the payload, the payload waits. A
 * host that dies or stays silent costs the cell it is busy with, no other. */
#include "keeper/keeper.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

/* ---- hosts ---- */

/* Once, with the first host: children that are not process 1 of a cell come to us from now on. */
static int expect_children(struct hc_keeper *keeper)
{
    sigset_t set;
    if (keeper->children >= 0)
        return 0;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    int error = (int)HC_SYS(sigprocmask(SIG_BLOCK, &set, NULL));
    if (error == 0)
        error = (int)HC_SYS(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0));
    int fd = error < 0 ? error : (int)HC_SYS(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (fd < 0)
        return fd;
    keeper->children = fd;
    return hc_keeper_watch(fd, HC_SOURCE_CHILDREN, 0);
}

/* Nothing of it is left: its place can be taken again. */
static void clear_host(struct hc_keeper *keeper, struct hc_host *host)
{
    static struct hc_event event;
    struct hc_residue residue = {0};
    event = (struct hc_event){
        .kind = HC_EVENT_HOST_ENDED, .slot = host->place, .stage = host->stage, .error = host->error};
    hc_leaf_remove(keeper, &host->as_cell, &residue);
    hc_close_fd(&host->as_cell.init_pidfd);
    hc_cell_clear(&host->as_cell, HC_CELL_MAX + host->place);
    host->state = HC_HOST_NONE;
    hc_keeper_send(&event, NULL, 0);
}

/* Takes the process down, and the cells that wait for it; the rest comes when it is reaped. */
static void fell_host(struct hc_keeper *keeper, struct hc_host *host, enum hc_stage stage, int error)
{
    struct hc_cell *own = &host->as_cell;
    if (host->state == HC_HOST_ENDED)
        return;
    host->state = HC_HOST_ENDED;
    host->stage = (uint32_t)stage;
    host->error = error;
    hc_leaf_kill(own);
    if (own->init_pid > 0 && !own->reaped)
        (void)kill(own->init_pid, SIGKILL);
    hc_close_fd(&own->init_socket);
    for (uint32_t slot = 0; slot < HC_CELL_MAX; slot++) {
        struct hc_cell *cell = &keeper->cells[slot];
        if (cell->state == HC_CELL_WARMING && cell->warm && cell->host == host->place)
            hc_cell_fail(cell, HC_STAGE_FORK, -EPIPE);
    }
    if (own->init_pid <= 0 || own->reaped)
        clear_host(keeper, host);
}

void hc_host_start(struct hc_keeper *keeper, struct hc_host *host, const struct hc_request *request,
                   const int *fds)
{
    enum hc_stage stage = HC_STAGE_KEEPER_SETUP;
    struct hc_init_order order = {.version = HC_WIRE_VERSION, .kind = HC_INIT_START};
    host->state = HC_HOST_STARTING;
    int error = expect_children(keeper);
    if (error == 0)
        error = hc_birth_of_host(keeper, host, &stage);
    if (error == 0) {
        stage = HC_STAGE_LIMITS;
        error = hc_leaf_limit(keeper, &host->as_cell, request);
    }
    if (error == 0) {
        stage = HC_STAGE_PLAN;
        error =
            hc_message_send(host->as_cell.init_socket, &order, sizeof order, fds, HC_START_FDS, MSG_DONTWAIT);
    }
    if (error == 0)
        error = hc_keeper_watch(host->as_cell.init_socket, HC_SOURCE_HOST, host->place);
    if (error < 0)
        fell_host(keeper, host, stage, error);
}

void hc_host_end(struct hc_keeper *keeper, struct hc_host *host)
{
    fell_host(keeper, host, HC_STAGE_NONE, 0);
}

/* ---- payloads ---- */

static void order_fork(struct hc_keeper *keeper, struct hc_host *host, struct hc_cell *cell)
{
    int pair[2], fds[HC_WARM_FDS];
    int error = (int)HC_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    if (error < 0) {
        hc_cell_fail(cell, HC_STAGE_FORK, error);
        return;
    }
    cell->payload_socket = pair[0];
    fds[0] = cell->init_pidfd;
    fds[1] = pair[1];
    struct hc_warm_order order = {.version = HC_WIRE_VERSION,
                                  .kind = HC_WARM_FORK,
                                  .slot = cell->slot,
                                  .leaves = hc_leaf_folders(cell, fds + 2),
                                  .allow_layers = keeper->config.allow_layers};
    error = hc_leaf_lend(cell, HC_HOST_ID(cell->host));
    if (error == 0)
        error = hc_message_send(host->as_cell.init_socket, &order, sizeof order, fds, 2 + order.leaves,
                                MSG_DONTWAIT);
    close(pair[1]);
    if (error < 0) {
        hc_cell_fail(cell, HC_STAGE_FORK, error);
        return;
    }
    cell->asked = true;
    host->state = HC_HOST_BUSY;
    host->slot = cell->slot;
}

static void next_order(struct hc_keeper *keeper, struct hc_host *host)
{
    for (uint32_t slot = 0; host->state == HC_HOST_IDLE && slot < HC_CELL_MAX; slot++) {
        struct hc_cell *cell = &keeper->cells[slot];
        if (cell->state == HC_CELL_WARMING && cell->warm && cell->host == host->place && !cell->asked)
            order_fork(keeper, host, cell);
    }
}

void hc_warm_ask(struct hc_keeper *keeper, struct hc_cell *cell)
{
    struct hc_host *host = &keeper->hosts[cell->host];
    cell->state = HC_CELL_WARMING;
    if (host->state == HC_HOST_NONE || host->state == HC_HOST_ENDED)
        hc_cell_fail(cell, HC_STAGE_FORK, -ESRCH);
    else
        next_order(keeper, host);
}

/* The host may be in the middle of it: what it still says of this cell is then about nobody, and it goes on
 * when it has said it. */
void hc_warm_forget(struct hc_keeper *keeper, struct hc_cell *cell)
{
    if (cell->payload_pidfd < 0 && cell->payload_pid > 0)
        (void)kill(cell->payload_pid, SIGKILL);
    (void)keeper;
}

static void move(struct hc_keeper *keeper, struct hc_host *host, const struct hc_warm_report *report)
{
    struct hc_cell *cell = &keeper->cells[host->slot];
    struct hc_warm_order order = {.version = HC_WIRE_VERSION, .kind = HC_WARM_MOVED, .slot = host->slot};
    int error = report->pid <= 1 ? -EPROTO : 0;
    if (error == 0 && cell->state == HC_CELL_WARMING)
        error = hc_file_write_number(cell->leaves[HC_CONTROLLER_V2], "cgroup.procs", (uint64_t)report->pid);
    else if (error == 0)
        error = -ECANCELED;
    if (error < 0)
        order.kind = 0; /* it gives up and says so */
    (void)hc_message_send(host->as_cell.init_socket, &order, sizeof order, NULL, 0, MSG_DONTWAIT);
}

/* The process in between is gone and we are the payload's parent: its number can't become another's before we
 * reap it. */
static int take_payload(struct hc_cell *cell, int32_t pid)
{
    siginfo_t info = {0};
    if (pid <= 1 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return -ECHILD; /* not a child of ours */
    cell->payload_pid = pid;
    cell->payload_pidfd = (int)HC_SYS(hc_pidfd_open(pid));
    return cell->payload_pidfd < 0 ? cell->payload_pidfd : 0;
}

static void take_facts(struct hc_cell *cell, const struct hc_warm_report *report)
{
    cell->facts.layers_applied |= report->layers_applied;
    cell->facts.securebits = report->securebits;
    cell->facts.landlock_abi = report->landlock_abi;
    cell->facts.oom_score_adj = report->oom_score_adj;
    cell->listener_number = report->listener;
    cell->waits = true;
}

static int take_listener(struct hc_cell *cell)
{
    cell->listener = (int)HC_SYS(syscall(SYS_pidfd_getfd, cell->payload_pidfd, cell->listener_number, 0));
    if (cell->listener < 0)
        return cell->listener;
    int error = hc_keeper_watch(cell->listener, HC_SOURCE_LISTENER, cell->slot);
    return error == 0 ? hc_leaf_lend(cell, 0) : error;
}

/* Host and payload speak independently of each other, in either order: the cell is ready when both have. */
static void settle(struct hc_cell *cell, const struct hc_warm_report *report)
{
    bool wanted = cell->state == HC_CELL_WARMING;
    int error = 0;
    if (report->kind == HC_WARM_WAITS) {
        take_facts(cell, report);
    } else {
        error = take_payload(cell, report->pid);
        if (!wanted && error == 0) /* its cell has gone meanwhile; the kill may have come before the move */
            (void)kill(cell->payload_pid, SIGKILL);
    }
    if (!wanted)
        return;
    bool both = error == 0 && cell->waits && cell->payload_pidfd >= 0;
    if (both)
        error = take_listener(cell);
    if (error < 0)
        hc_cell_fail(cell, HC_STAGE_FORK, error);
    else if (both)
        hc_cell_empty(cell);
}

static void fork_failed(struct hc_keeper *keeper, struct hc_host *host, const struct hc_warm_report *report)
{
    struct hc_cell *cell = &keeper->cells[report->slot % HC_CELL_MAX];
    if (host->state == HC_HOST_BUSY && report->slot == host->slot)
        host->state = HC_HOST_IDLE;
    if (cell->state == HC_CELL_WARMING && cell->warm && cell->host == host->place)
        hc_cell_fail(cell, report->stage < HC_STAGE_COUNT ? (enum hc_stage)report->stage : HC_STAGE_FORK,
                     report->error < 0 ? report->error : -EPROTO);
}

static void host_up(struct hc_keeper *keeper, struct hc_host *host)
{
    static struct hc_event event;
    host->state = HC_HOST_IDLE;
    event = (struct hc_event){.kind = HC_EVENT_HOST_READY, .slot = host->place};
    hc_keeper_send(&event, NULL, 0);
    next_order(keeper, host);
}

void hc_host_serve(struct hc_keeper *keeper, struct hc_host *host)
{
    struct hc_warm_report report;
    union {
        struct hc_warm_report warm;
        struct hc_init_report init; /* before its exec it speaks as init does */
    } message;
    if (host->as_cell.init_socket < 0)
        return;
    long n =
        hc_message_receive(host->as_cell.init_socket, &message, sizeof message, NULL, 0, NULL, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n == (long)sizeof message.init && message.init.kind == HC_INIT_FAILED) {
        fell_host(keeper, host,
                  message.init.stage < HC_STAGE_COUNT ? (enum hc_stage)message.init.stage : HC_STAGE_EXEC,
                  message.init.error);
        return;
    }
    report = message.warm;
    if (n != (long)sizeof report || report.version != HC_WIRE_VERSION) {
        fell_host(keeper, host, HC_STAGE_FORK, n < 0 ? (int)n : n == 0 ? -ECHILD : -EPROTO);
        return;
    }
    /* A payload that waits may be heard after its host has said all: the cell's slot counts, not the host's.
     */
    if (report.kind == HC_WARM_UP && host->state == HC_HOST_STARTING) {
        host_up(keeper, host);
    } else if (report.kind == HC_WARM_FAILED) {
        fork_failed(keeper, host, &report);
    } else if (report.kind == HC_WARM_MOVE_ME && host->state == HC_HOST_BUSY && report.slot == host->slot) {
        move(keeper, host, &report);
    } else if ((report.kind == HC_WARM_FORKED || report.kind == HC_WARM_WAITS) && report.slot < HC_CELL_MAX &&
               keeper->cells[report.slot].warm && keeper->cells[report.slot].host == host->place) {
        settle(&keeper->cells[report.slot], &report);
        if (report.kind == HC_WARM_FORKED && host->state == HC_HOST_BUSY && report.slot == host->slot)
            host->state = HC_HOST_IDLE;
    }
    if (host->state == HC_HOST_IDLE)
        next_order(keeper, host);
}

/* ---- ends ---- */

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* As wait4 gives it. */
static int32_t wait_status(const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED)
        return (info->si_status & 0xff) << 8;
    return (info->si_status & 0x7f) | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

/* What init reports of its own child. */
static void payload_ended(struct hc_cell *cell, const siginfo_t *info)
{
    struct hc_end_report report = {.version = HC_WIRE_VERSION,
                                   .kind = HC_END_EXITED,
                                   .at_ns = now_ns(),
                                   .wait_status = wait_status(info),
                                   .scratch_free_bytes = 1,
                                   .scratch_free_inodes = 1};
    struct statfs space;
    if (cell->working_folder >= 0 && fstatfs(cell->working_folder, &space) == 0) {
        report.scratch_free_bytes = (uint64_t)space.f_bfree * (uint64_t)space.f_bsize;
        report.scratch_free_inodes = space.f_ffree;
    }
    hc_close_fd(&cell->working_folder);
    if (cell->state == HC_CELL_RUNNING && cell->report >= 0)
        (void)hc_message_send(cell->report, &report, sizeof report, NULL, 0, MSG_DONTWAIT);
    else if (cell->state == HC_CELL_WARMING || cell->state == HC_CELL_EMPTY ||
             cell->state == HC_CELL_STARTING)
        hc_cell_fail(cell, HC_STAGE_FORK, -ECHILD);
}

static struct hc_host *host_of(struct hc_keeper *keeper, pid_t pid)
{
    for (uint32_t place = 0; place < HC_HOST_MAX; place++)
        if (keeper->hosts[place].as_cell.init_pid == pid)
            return &keeper->hosts[place];
    return NULL;
}

static struct hc_cell *cell_of(struct hc_keeper *keeper, pid_t pid, bool *ret_is_init)
{
    for (uint32_t slot = 0; slot < HC_CELL_MAX; slot++) {
        struct hc_cell *cell = &keeper->cells[slot];
        *ret_is_init = cell->init_pid == pid && !cell->reaped && cell->state != HC_CELL_FREE;
        if (*ret_is_init || (cell->payload_pid == pid && pid > 0))
            return cell;
    }
    return NULL;
}

static void host_ended(struct hc_keeper *keeper, struct hc_host *host, const siginfo_t *info)
{
    host->as_cell.reaped = true;
    if (host->state == HC_HOST_ENDED)
        clear_host(keeper, host);
    else
        fell_host(keeper, host, HC_STAGE_FORK, info->si_code == CLD_EXITED ? -ECHILD : -EINTR);
}

void hc_children_serve(struct hc_keeper *keeper)
{
    struct signalfd_siginfo signals[4];
    while (read(keeper->children, signals, sizeof signals) > 0)
        continue;
    for (;;) {
        siginfo_t info = {0};
        bool is_init = false;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return;
        struct hc_cell *cell = cell_of(keeper, info.si_pid, &is_init);
        if (cell != NULL &&
            is_init) { /* its own descriptor tells of it, and it stays first in line until then */
            hc_init_died(cell);
            continue;
        }
        struct hc_host *host = host_of(keeper, info.si_pid);
        siginfo_t gone = {0};
        if (waitid(P_PID, (id_t)info.si_pid, &gone, WEXITED | WNOHANG) != 0)
            return;
        if (host != NULL) {
            host_ended(keeper, host, &gone);
        } else if (cell != NULL) {
            cell->payload_pid = 0;
            payload_ended(cell, &gone);
        }
    }
}
