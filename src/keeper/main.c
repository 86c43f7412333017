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

/* What an epoll event is about: the low half says which cell. */
enum source { SOURCE_LIBRARY, SOURCE_INIT, SOURCE_INIT_DEATH, SOURCE_LISTENER };

static uint64_t tag(enum source source, uint32_t slot)
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

static int watch(int fd, enum source source, uint32_t slot)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag(source, slot)};
    return (int)HC_SYS(epoll_ctl(keeper.epoll, EPOLL_CTL_ADD, fd, &event));
}

static void clear_cell(struct hc_cell *cell, uint32_t slot)
{
    memset(cell, 0, sizeof *cell);
    cell->slot = slot;
    cell->init_pidfd = cell->init_socket = cell->payload_pidfd = cell->listener = -1;
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
    hc_leaf_remove(&keeper, cell, &event.u.residue);
    count_residue(&event.u.residue);
    clear_cell(cell, slot);
    hc_keeper_send(&event, NULL, 0);
}

static void end_cell(struct hc_cell *cell)
{
    hc_leaf_kill(cell);
    cell->state = HC_CELL_DYING;
    if (cell->init_pidfd < 0 || cell->reaped)
        finish_cell(cell);
}

static void tell_failure(struct hc_cell *cell, enum hc_stage stage, int error)
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
        error = watch(cell->init_socket, SOURCE_INIT, cell->slot);
    if (cell->init_pidfd >= 0) {
        int watched = watch(cell->init_pidfd, SOURCE_INIT_DEATH, cell->slot);
        if (watched < 0) { /* without its death we would wait for ever: take it down here and now */
            (void)kill(cell->init_pid, SIGKILL);
            (void)waitpid(cell->init_pid, NULL, 0);
            cell->reaped = true;
            error = error < 0 ? error : watched;
        }
    }
    if (error < 0)
        tell_failure(cell, stage, error);
}

static void start(struct hc_cell *cell, const struct hc_request *request, const int *fds)
{
    int error = hc_leaf_limit(&keeper, cell, request);
    cell->state = HC_CELL_STARTING;
    cell->calls_max = request->calls_max;
    if (error < 0) {
        tell_failure(cell, HC_STAGE_LIMITS, error);
        return;
    }
    struct hc_init_order order = {.version = HC_WIRE_VERSION, .kind = HC_INIT_START};
    error = hc_message_send(cell->init_socket, &order, sizeof order, fds, HC_START_FDS, MSG_DONTWAIT);
    if (error < 0)
        tell_failure(cell, HC_STAGE_PLAN, error);
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
static const bool permitted[HC_OP_DESTROY + 1][HC_CELL_DYING + 1] = {
    [HC_OP_MAKE][HC_CELL_FREE] = true,       [HC_OP_START][HC_CELL_EMPTY] = true,
    [HC_OP_ATTEST][HC_CELL_RUNNING] = true,  [HC_OP_DESTROY][HC_CELL_MAKING] = true,
    [HC_OP_DESTROY][HC_CELL_EMPTY] = true,   [HC_OP_DESTROY][HC_CELL_STARTING] = true,
    [HC_OP_DESTROY][HC_CELL_RUNNING] = true,
};

static bool acceptable(const struct hc_request *request, unsigned fd_count)
{
    if (request->version != HC_WIRE_VERSION || request->slot >= HC_CELL_MAX || request->op < HC_OP_MAKE ||
        request->op > HC_OP_DESTROY)
        return false;
    if (!permitted[request->op][keeper.cells[request->slot].state])
        return false;
    if (request->op != HC_OP_START)
        return fd_count == 0;
    return fd_count == HC_START_FDS && request->memory_bytes > 0 &&
           request->memory_bytes <= keeper.config.ceiling_memory_bytes && request->processes > 0 &&
           request->processes <= keeper.config.ceiling_processes && request->cpu_quota_us >= 1000 &&
           request->cpu_period_us >= 1000 && request->cpu_period_us <= 1000000;
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
    } else {
        end_cell(cell);
    }
    for (unsigned i = 0; i < fd_count; i++)
        close(fds[i]);
}

static void cell_made(struct hc_cell *cell, const struct hc_init_report *report)
{
    static struct hc_event event;
    int fds[HC_METER_COUNT];
    uint64_t of_leaf = cell->facts.layers_applied;
    cell->facts = report->facts;
    cell->facts.layers_applied |= of_leaf;
    cell->state = HC_CELL_EMPTY;
    event = (struct hc_event){.kind = HC_EVENT_MADE, .slot = cell->slot};
    unsigned count = hc_leaf_meters(&keeper, cell, fds, &event.meters);
    hc_keeper_send(&event, fds, count);
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

static void merge_facts(struct hc_cell *cell, const struct hc_cell_facts *from_init)
{
    struct hc_cell_facts merged = *from_init;
    merged.layers_applied |= cell->facts.layers_applied;
    merged.memory_applied_bytes = cell->facts.memory_applied_bytes;
    merged.processes_applied = cell->facts.processes_applied;
    merged.cpu_quota_applied_us = cell->facts.cpu_quota_applied_us;
    merged.cpu_period_applied_us = cell->facts.cpu_period_applied_us;
    cell->facts = merged;
}

static void cell_ready(struct hc_cell *cell, const struct hc_init_report *report, int *fds, unsigned fd_count)
{
    static struct hc_event event;
    merge_facts(cell, &report->facts);
    cell->payload_pidfd = hc_take_fd(&fds[0]);
    int working_folder = fds[1];
    if (fd_count > 2)
        cell->listener = hc_take_fd(&fds[2]);
    event = (struct hc_event){.kind = HC_EVENT_READY, .slot = cell->slot};
    int error = cell->listener >= 0 ? watch(cell->listener, SOURCE_LISTENER, cell->slot) : 0;
    if (error == 0)
        error = hc_attest(&keeper, cell, &event.u.ready.attestation);
    if (error < 0) {
        tell_failure(cell, HC_STAGE_ATTEST, error);
        return;
    }
    if (cell->listener >= 0)
        cell->facts.layers_applied |= 1ull << HC_LAYER_ATTEMPTS;
    event.u.ready.facts = cell->facts;
    cell->state = HC_CELL_RUNNING;
    hc_keeper_send(&event, &working_folder, 1);
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
        tell_failure(cell, cell->state == HC_CELL_MAKING ? HC_STAGE_EXEC_INIT : HC_STAGE_FORK,
                     n < 0 ? (int)n : -EPROTO);
    } else if (!whole) { /* init is gone: its pidfd tells the rest */
        (void)epoll_ctl(keeper.epoll, EPOLL_CTL_DEL, cell->init_socket, NULL);
    } else if (report.kind == HC_INIT_FAILED && cell->state < HC_CELL_RUNNING) {
        tell_failure(cell, report.stage < HC_STAGE_COUNT ? report.stage : HC_STAGE_NONE, report.error);
    } else if (report.kind == HC_INIT_MADE && cell->state == HC_CELL_MAKING) {
        cell_made(cell, &report);
    } else if (report.kind == HC_INIT_READY && cell->state == HC_CELL_STARTING && fd_count >= 2) {
        cell_ready(cell, &report, fds, fd_count);
    }
    for (unsigned i = 0; i < 3; i++)
        hc_close_fd(&fds[i]);
}

static void init_died(struct hc_cell *cell)
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
        tell_failure(cell, HC_STAGE_EXEC_INIT, -ECHILD);
    else if (cell->state == HC_CELL_STARTING)
        tell_failure(cell, HC_STAGE_FORK, -ECHILD);
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
    for (uint32_t slot = 0; slot < HC_CELL_MAX; slot++)
        clear_cell(&keeper.cells[slot], slot);
    keeper.mounts_at_start = hc_count_lines("/proc/self/mountinfo");
    keeper.host_without_swap =
        hc_count_lines("/proc/swaps") == 1; /* the head of the table and nothing in it */
    int error = watch(HC_FD_KEEPER_SOCKET, SOURCE_LIBRARY, 0);
    if (error < 0)
        return error;
    hello = (struct hc_event){.kind = HC_EVENT_HELLO};
    hello.u.hello = keeper.config;
    hc_keeper_send(&hello, NULL, 0);
    return 0;
}

static void serve(const struct epoll_event *event)
{
    struct hc_cell *cell = &keeper.cells[(uint32_t)event->data.u64 % HC_CELL_MAX];
    switch ((enum source)(event->data.u64 >> 32)) {
    case SOURCE_LIBRARY:
        serve_library();
        break;
    case SOURCE_INIT:
        if (cell->init_socket >= 0)
            serve_init(cell);
        break;
    case SOURCE_INIT_DEATH:
        if (cell->init_pidfd >= 0)
            init_died(cell);
        break;
    case SOURCE_LISTENER:
        if (cell->listener < 0)
            break;
        /* When the last filtered process is gone the descriptor hangs up for good. */
        if ((event->events & EPOLLHUP) != 0)
            (void)epoll_ctl(keeper.epoll, EPOLL_CTL_DEL, cell->listener, NULL);
        else
            hc_call_serve(cell);
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
