#include "keeper/keeper.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

HC_FAULT_STORAGE

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static struct hc_keeper keeper;

static uint64_t tag(enum hc_source source, uint32_t slot)
{
    return (uint64_t)source << 32 | slot;
}

/* The library may be slow: an event about a call is then left out and counted, everything else waits for
 * room. */
void hc_keeper_send(struct hc_event *event, const int *fds, unsigned fd_count)
{
    bool call = event->kind == HC_EVENT_CALL;
    event->version = HC_WIRE_VERSION;
    int error = hc_message_send(HC_FD_KEEPER_SOCKET, event, hc_event_size(event->kind), fds, fd_count,
                                call ? MSG_DONTWAIT : 0);
    if (error == -EAGAIN && call) {
        keeper.cells[event->slot].calls_forwarded--;
        keeper.cells[event->slot].calls_omitted++;
    } else if (error < 0 && error != -EAGAIN) {
        _exit(1); /* nobody is left to answer to; every cell ends with us */
    }
}

int hc_keeper_watch(int fd, enum hc_source source, uint32_t slot)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag(source, slot)};
    return (int)HC_SYS(epoll_ctl(keeper.epoll, EPOLL_CTL_ADD, fd, &event));
}

void hc_cell_clear(struct hc_cell *cell, uint32_t slot)
{
    memset(cell, 0, sizeof *cell);
    cell->slot = slot;
    cell->init_pidfd = cell->init_socket = cell->payload_pidfd = cell->listener = -1;
    cell->payload_socket = cell->report = cell->working_folder = -1;
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++)
        cell->leaves[c] = -1;
}

static void count_residue(struct hc_residue *residue)
{
    uint32_t mounts = hc_count_lines("/proc/self/mountinfo");
    residue->mounts += mounts > keeper.mounts_at_start ? mounts - keeper.mounts_at_start : 0;
}

/* The last step of every cell, when its process 1 is reaped: by the kernel's rule everything else in it is
 * gone too. */
static void finish_cell(struct hc_cell *cell)
{
    static struct hc_event event;
    uint32_t slot = cell->slot;
    event = (struct hc_event){.kind = HC_EVENT_DESTROYED, .slot = slot, .calls_omitted = cell->calls_omitted};
    hc_close_fd(&cell->listener);
    hc_close_fd(&cell->init_socket);
    hc_close_fd(&cell->payload_pidfd);
    hc_close_fd(&cell->init_pidfd);
    hc_close_fd(&cell->payload_socket);
    hc_close_fd(&cell->report);
    hc_close_fd(&cell->working_folder);
    hc_leaf_remove(&keeper, cell, &event.u.residue);
    count_residue(&event.u.residue);
    hc_cell_clear(cell, slot);
    hc_keeper_send(&event, NULL, 0);
}

static void end_cell(struct hc_cell *cell)
{
    hc_leaf_kill(cell);
    if (cell->warm)
        hc_warm_forget(&keeper, cell);
    cell->state = HC_CELL_DYING;
    if (cell->init_pidfd < 0 || cell->reaped)
        finish_cell(cell);
}

void hc_cell_fail(struct hc_cell *cell, enum hc_stage stage, int error)
{
    static struct hc_event event;
    event = (struct hc_event){
        .kind = HC_EVENT_FAILED, .slot = cell->slot, .stage = (uint32_t)stage, .error = error};
    hc_keeper_send(&event, NULL, 0);
    end_cell(cell);
}

static void make(struct hc_cell *cell)
{
    enum hc_stage stage = HC_STAGE_CGROUP_LEAF;
    cell->state = HC_CELL_MAKING;
    int error = hc_birth(&keeper, cell, &stage);
    if (error == 0)
        error = hc_keeper_watch(cell->init_socket, HC_SOURCE_INIT, cell->slot);
    if (cell->init_pidfd >= 0) {
        int watched = hc_keeper_watch(cell->init_pidfd, HC_SOURCE_INIT_DEATH, cell->slot);
        if (watched < 0) { /* without its death we would wait for ever: take it down here and now */
            (void)kill(cell->init_pid, SIGKILL);
            (void)waitpid(cell->init_pid, NULL, 0);
            cell->reaped = true;
            error = error < 0 ? error : watched;
        }
    }
    if (error < 0)
        hc_cell_fail(cell, stage, error);
}

static void start(struct hc_cell *cell, const struct hc_request *request, const int *fds)
{
    int error = hc_leaf_limit(&keeper, cell, request);
    cell->state = HC_CELL_STARTING;
    cell->calls_max = request->calls_max;
    if (error < 0) {
        hc_cell_fail(cell, HC_STAGE_LIMITS, error);
        return;
    }
    struct hc_init_order order = {.version = HC_WIRE_VERSION, .kind = HC_INIT_START};
    int sent[HC_START_FDS + 1];
    memcpy(sent, fds, HC_START_FDS * sizeof *fds);
    sent[HC_START_FDS] = cell->payload_socket;
    if (cell->warm)
        cell->report = fcntl(fds[HC_START_FDS - 1], F_DUPFD_CLOEXEC, 0);
    error = hc_message_send(cell->init_socket, &order, sizeof order, sent, HC_START_FDS + cell->warm,
                            MSG_DONTWAIT);
    hc_close_fd(&cell->payload_socket);
    if (error < 0)
        hc_cell_fail(cell, HC_STAGE_PLAN, error);
}

static void attest_again(struct hc_cell *cell)
{
    static struct hc_event event;
    event = (struct hc_event){.kind = HC_EVENT_ATTESTED, .slot = cell->slot};
    event.error = cell->payload_pidfd < 0 ? -ESRCH : hc_attest(&keeper, cell, &event.u.ready.attestation);
    hc_keeper_send(&event, NULL, 0);
}

/* Which request a cell takes in which state. Anything outside the table is a broken library, and it ends
 * here. */
static const bool permitted[HC_OP_END][HC_CELL_DYING + 1] = {
    [HC_OP_MAKE][HC_CELL_FREE] = true,       [HC_OP_START][HC_CELL_EMPTY] = true,
    [HC_OP_ATTEST][HC_CELL_RUNNING] = true,  [HC_OP_DESTROY][HC_CELL_MAKING] = true,
    [HC_OP_DESTROY][HC_CELL_EMPTY] = true,   [HC_OP_DESTROY][HC_CELL_STARTING] = true,
    [HC_OP_DESTROY][HC_CELL_RUNNING] = true, [HC_OP_MAKE_WARM][HC_CELL_FREE] = true,
    [HC_OP_DESTROY][HC_CELL_WARMING] = true,
};

static bool limits_acceptable(const struct hc_request *request)
{
    return request->memory_bytes > 0 && request->memory_bytes <= keeper.config.ceiling_memory_bytes &&
           request->processes > 0 && request->processes <= keeper.config.ceiling_processes &&
           request->cpu_quota_us >= 1000 && request->cpu_period_us >= 1000 &&
           request->cpu_period_us <= 1000000;
}

static bool host_acceptable(const struct hc_request *request, unsigned fd_count)
{
    enum hc_host_state state = keeper.hosts[request->slot % HC_HOST_MAX].state;
    if (request->slot >= HC_HOST_MAX)
        return false;
    if (request->op == HC_OP_HOST_END)
        return fd_count == 0 && state != HC_HOST_NONE;
    return state == HC_HOST_NONE && fd_count == HC_START_FDS && limits_acceptable(request);
}

static bool acceptable(const struct hc_request *request, unsigned fd_count)
{
    if (request->version != HC_WIRE_VERSION || request->slot >= HC_CELL_MAX || request->op < HC_OP_MAKE ||
        request->op >= HC_OP_END)
        return false;
    if (request->op == HC_OP_HOST || request->op == HC_OP_HOST_END)
        return host_acceptable(request, fd_count);
    if (!permitted[request->op][keeper.cells[request->slot].state])
        return false;
    if (request->op == HC_OP_MAKE_WARM && request->host >= HC_HOST_MAX)
        return false;
    return request->op == HC_OP_START ? fd_count == HC_START_FDS && limits_acceptable(request)
                                      : fd_count == 0;
}

static void make_warm(struct hc_cell *cell, uint32_t host)
{
    cell->warm = true;
    cell->host = host;
    make(cell);
}

static void serve_library(void)
{
    static struct hc_request request;
    int fds[HC_START_FDS];
    unsigned fd_count = 0;
    long n = hc_message_receive(HC_FD_KEEPER_SOCKET, &request, sizeof request, fds, HC_START_FDS, &fd_count,
                                MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n <= 0)
        _exit(0); /* the library is gone: as process 1 of the hall we take every cell along */
    struct hc_cell *cell = &keeper.cells[request.slot < HC_CELL_MAX ? request.slot : 0];
    if (n != (long)sizeof request || !acceptable(&request, fd_count)) {
        static struct hc_event event;
        event = (struct hc_event){
            .kind = HC_EVENT_FAILED, .slot = request.slot, .stage = HC_STAGE_REQUEST, .error = -EPROTO};
        hc_keeper_send(&event, NULL, 0);
    } else if (request.op == HC_OP_MAKE) {
        make(cell);
    } else if (request.op == HC_OP_START) {
        start(cell, &request, fds);
    } else if (request.op == HC_OP_ATTEST) {
        attest_again(cell);
    } else if (request.op == HC_OP_MAKE_WARM) {
        make_warm(cell, request.host);
    } else if (request.op == HC_OP_HOST) {
        hc_host_start(&keeper, &keeper.hosts[request.slot], &request, fds);
    } else if (request.op == HC_OP_HOST_END) {
        hc_host_end(&keeper, &keeper.hosts[request.slot]);
    } else {
        end_cell(cell);
    }
    for (unsigned i = 0; i < fd_count; i++)
        close(fds[i]);
}

void hc_cell_empty(struct hc_cell *cell)
{
    static struct hc_event event;
    int fds[HC_METER_COUNT];
    cell->state = HC_CELL_EMPTY;
    event = (struct hc_event){.kind = HC_EVENT_MADE, .slot = cell->slot};
    unsigned count = hc_leaf_meters(&keeper, cell, fds, &event.meters);
    hc_keeper_send(&event, fds, count);
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

static void cell_made(struct hc_cell *cell, const struct hc_init_report *report)
{
    uint64_t of_leaf = cell->facts.layers_applied;
    cell->facts = report->facts;
    cell->facts.layers_applied |= of_leaf;
    if (cell->warm)
        hc_warm_ask(&keeper, cell);
    else
        hc_cell_empty(cell);
}

static void merge_facts(struct hc_cell *cell, const struct hc_cell_facts *from_init)
{
    struct hc_cell_facts merged = *from_init;
    merged.layers_applied |= cell->facts.layers_applied;
    merged.memory_applied_bytes = cell->facts.memory_applied_bytes;
    if (cell->warm) { /* what the payload took by itself, init can't know */
        merged.securebits = cell->facts.securebits;
        merged.oom_score_adj = cell->facts.oom_score_adj;
        merged.landlock_abi = cell->facts.landlock_abi;
    }
    merged.processes_applied = cell->facts.processes_applied;
    merged.cpu_quota_applied_us = cell->facts.cpu_quota_applied_us;
    merged.cpu_period_applied_us = cell->facts.cpu_period_applied_us;
    cell->facts = merged;
}

static void cell_ready(struct hc_cell *cell, const struct hc_init_report *report, int *fds, unsigned fd_count)
{
    static struct hc_event event;
    merge_facts(cell, &report->facts);
    int error = 0;
    if (cell->warm) {
        cell->working_folder = hc_take_fd(&fds[0]);
    } else {
        cell->payload_pidfd = hc_take_fd(&fds[0]);
        cell->working_folder = hc_take_fd(&fds[1]);
        if (fd_count > 2)
            cell->listener = hc_take_fd(&fds[2]);
        if (cell->listener >= 0)
            error = hc_keeper_watch(cell->listener, HC_SOURCE_LISTENER, cell->slot);
    }
    event = (struct hc_event){.kind = HC_EVENT_READY, .slot = cell->slot};
    if (error == 0)
        error = hc_attest(&keeper, cell, &event.u.ready.attestation);
    if (error < 0) {
        hc_cell_fail(cell, HC_STAGE_ATTEST, error);
        return;
    }
    if (cell->listener >= 0)
        cell->facts.layers_applied |= 1ull << HC_LAYER_ATTEMPTS;
    event.u.ready.facts = cell->facts;
    cell->state = HC_CELL_RUNNING;
    hc_keeper_send(&event, &cell->working_folder, 1);
    if (!cell->warm)
        hc_close_fd(&cell->working_folder);
}

static void serve_init(struct hc_cell *cell)
{
    static struct hc_init_report report;
    int fds[3] = {-1, -1, -1};
    unsigned fd_count = 0;
    long n = hc_message_receive(cell->init_socket, &report, sizeof report, fds, 3, &fd_count, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    bool whole = n == (long)sizeof report && report.version == HC_WIRE_VERSION;
    if (!whole && n != 0 && (cell->state == HC_CELL_MAKING || cell->state == HC_CELL_STARTING)) {
        hc_cell_fail(cell, cell->state == HC_CELL_MAKING ? HC_STAGE_EXEC_INIT : HC_STAGE_FORK,
                     n < 0 ? (int)n : -EPROTO);
    } else if (!whole) { /* init is gone: its pidfd tells the rest */
        (void)epoll_ctl(keeper.epoll, EPOLL_CTL_DEL, cell->init_socket, NULL);
    } else if (report.kind == HC_INIT_FAILED && cell->state < HC_CELL_RUNNING) {
        hc_cell_fail(cell, report.stage < HC_STAGE_COUNT ? report.stage : HC_STAGE_NONE, report.error);
    } else if (report.kind == HC_INIT_MADE && cell->state == HC_CELL_MAKING) {
        cell_made(cell, &report);
    } else if (report.kind == HC_INIT_READY && cell->state == HC_CELL_STARTING &&
               fd_count >= (cell->warm ? 1 : 2)) {
        cell_ready(cell, &report, fds, fd_count);
    }
    for (unsigned i = 0; i < 3; i++)
        hc_close_fd(&fds[i]);
}

void hc_init_died(struct hc_cell *cell)
{
    siginfo_t info = {0}; /* si_pid stays 0 when there is nothing to reap */
    if (cell->reaped || waitid((idtype_t)P_PIDFD, (id_t)cell->init_pidfd, &info, WEXITED | WNOHANG) != 0 ||
        info.si_pid == 0)
        return;
    /* A dead init before its time has often said why: read that first. */
    if (cell->state == HC_CELL_MAKING || cell->state == HC_CELL_STARTING)
        serve_init(cell);
    if (cell->state == HC_CELL_FREE)
        return;
    cell->reaped = true;
    if (cell->state == HC_CELL_DYING) {
        finish_cell(cell);
        return;
    }
    (void)epoll_ctl(keeper.epoll, EPOLL_CTL_DEL, cell->init_pidfd, NULL);
    if (cell->state == HC_CELL_MAKING)
        hc_cell_fail(cell, HC_STAGE_EXEC_INIT, -ECHILD);
    else if (cell->state == HC_CELL_STARTING)
        hc_cell_fail(cell, HC_STAGE_FORK, -ECHILD);
    /* Running or empty: the library sees it on the report socket or asks for the end. */
}

static int set_up(void)
{
    static struct hc_event hello;
    for (int fd = HC_FD_KEEPER_SOCKET; fd < HC_FD_KEEPER_END; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    long n = HC_SYS(pread(HC_FD_KEEPER_CONFIG, &keeper.config, sizeof keeper.config, 0));
    if (n != (long)sizeof keeper.config || keeper.config.version != HC_WIRE_VERSION)
        return n < 0 ? (int)n : -EPROTO;
    if (keeper.config.fault_program == HC_FAULT_KEEPER)
        hc_fault_arm(keeper.config.fault_nth);
    keeper.cells_folder = (int)HC_SYS(
        openat(HC_FD_KEEPER_CGROUPS + HC_CONTROLLER_V2, "cells", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (keeper.cells_folder < 0)
        return keeper.cells_folder;
    keeper.epoll = (int)HC_SYS(epoll_create1(EPOLL_CLOEXEC));
    if (keeper.epoll < 0)
        return keeper.epoll;
    keeper.children = -1;
    for (uint32_t slot = 0; slot < HC_CELL_MAX; slot++)
        hc_cell_clear(&keeper.cells[slot], slot);
    for (uint32_t place = 0; place < HC_HOST_MAX; place++) {
        keeper.hosts[place].place = place;
        hc_cell_clear(&keeper.hosts[place].as_cell, HC_CELL_MAX + place);
    }
    keeper.mounts_at_start = hc_count_lines("/proc/self/mountinfo");
    keeper.host_without_swap =
        hc_count_lines("/proc/swaps") == 1; /* the head of the table and nothing in it */
    int error = hc_keeper_watch(HC_FD_KEEPER_SOCKET, HC_SOURCE_LIBRARY, 0);
    if (error < 0)
        return error;
    hello = (struct hc_event){.kind = HC_EVENT_HELLO};
    hello.u.hello = keeper.config;
    /* Whoever owns it may join it: so a caller who is not root reads the files that a run left. */
    hc_autoclose int namespace = (int)HC_SYS(open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC));
    if (namespace < 0)
        return namespace;
    hc_keeper_send(&hello, &namespace, 1);
    return 0;
}

static void serve(const struct epoll_event *event)
{
    struct hc_cell *cell = &keeper.cells[(uint32_t)event->data.u64 % HC_CELL_MAX];
    switch ((enum hc_source)(event->data.u64 >> 32)) {
    case HC_SOURCE_LIBRARY:
        serve_library();
        break;
    case HC_SOURCE_INIT:
        if (cell->init_socket >= 0)
            serve_init(cell);
        break;
    case HC_SOURCE_INIT_DEATH:
        if (cell->init_pidfd >= 0)
            hc_init_died(cell);
        break;
    case HC_SOURCE_LISTENER:
        if (cell->listener < 0)
            break;
        /* When the last filtered process is gone the descriptor hangs up for good. */
        if ((event->events & EPOLLHUP) != 0)
            (void)epoll_ctl(keeper.epoll, EPOLL_CTL_DEL, cell->listener, NULL);
        else
            hc_call_serve(cell);
        break;
    case HC_SOURCE_HOST:
        hc_host_serve(&keeper, &keeper.hosts[(uint32_t)event->data.u64 % HC_HOST_MAX]);
        break;
    case HC_SOURCE_CHILDREN:
        hc_children_serve(&keeper);
        break;
    }
}

int main(void)
{
    static struct epoll_event events[32];
    int error = set_up();
    if (error < 0) {
        static struct hc_event event;
        event = (struct hc_event){.kind = HC_EVENT_FAILED, .stage = HC_STAGE_KEEPER_SETUP, .error = error};
        hc_keeper_send(&event, NULL, 0);
        return 1;
    }
    for (;;) {
        int n = epoll_wait(keeper.epoll, events, sizeof events / sizeof *events, -1);
        for (int i = 0; i < n; i++)
            serve(&events[i]);
        if (n < 0 && errno != EINTR)
            return 1;
    }
}
