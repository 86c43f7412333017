#include "flow/execute.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "flow/meters.h"
#include "flow/stream.h"
#include "kernel/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#define CPU_PERIOD_US   20000u
#define SAMPLE_EVERY_US 20000u
/* How long the pipes are drained after everything in the cell is dead: only bytes that lie in them already.
 */
#define DRAIN_TIMEOUT_US 2000000u
#define STDIN_KEPT_MAX   (64ull * 1024 * 1024)
#define READY_TIMEOUT_MS 60000

struct running {
    struct hc_hall *hall;
    const struct hc_execution *execution;
    struct hc_outcome *outcome;
    struct hc_cell_handle *cell;
    struct hc_stream out, err;
    int stdin_pipe; /* our end; -1: closed */
    int stdin_source;
    struct hc_capture in; /* kept for the record: a replay gets the same */
    uint8_t input[65536];
    size_t input_bytes, input_at;
    uint64_t cpu_base_us, cpu_user_base_us, cpu_system_base_us;
    uint64_t next_sample_us, oom_seen_us;
    bool execed, exited, init_gone;
};

/* CAP_SYS_RESOURCE, bit 24: then the hall raises what it hands down. */
static bool may_raise_limits(void)
{
    char status[4096], *line;
    return hc_file_read(AT_FDCWD, "/proc/self/status", status, sizeof status) > 0 &&
           (line = strstr(status, "CapEff:")) != NULL && (strtoull(line + 7, NULL, 16) >> 24 & 1) != 0;
}

uint64_t hc_hard_limit_room(int resource, uint64_t wanted)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
        return 0;
    return wanted <= limit.rlim_max || may_raise_limits() ? wanted : limit.rlim_max;
}

static int add_rlimits(const struct hc_execution *execution, struct hc_plan_rlimit *rlimits)
{
    const uint64_t *limits = execution->limits;
    uint64_t cpu_s = (limits[HC_LIMIT_CPU] + 999999) / 1000000;
    const struct hc_plan_rlimit rows[] = {
        {RLIMIT_NOFILE, 0, limits[HC_LIMIT_OPEN_FILES], limits[HC_LIMIT_OPEN_FILES]},
        {RLIMIT_FSIZE, 0, limits[HC_LIMIT_FILE_SIZE], limits[HC_LIMIT_FILE_SIZE]},
        {RLIMIT_STACK, 0, limits[HC_LIMIT_STACK], limits[HC_LIMIT_STACK]},
        /* 1, not 0: the kernel calls a core_pattern pipe handler even at 0, but never at 1 */
        {RLIMIT_CORE, 0, 1, 1},
        /* behind the cell's own clock, should the library be starved */
        {RLIMIT_CPU, 0, cpu_s + 1, cpu_s + 2},
        {RLIMIT_MEMLOCK, 0, 65536, 65536},
        {RLIMIT_MSGQUEUE, 0, 819200, 819200},
        {RLIMIT_SIGPENDING, 0, 1024, 1024},
        {RLIMIT_NICE, 0, 0, 0},
        {RLIMIT_RTPRIO, 0, 0, 0},
    };
    const int count = (int)(sizeof rows / sizeof *rows);
    memcpy(rlimits, rows, sizeof rows);
    /* What the caller itself is not allowed nobody below it can have; a tighter limit is kept, never refused.
     */
    for (int i = 0; i < count; i++) {
        rlimits[i].hard = hc_hard_limit_room((int)rlimits[i].resource, rlimits[i].hard);
        rlimits[i].soft = rlimits[i].soft < rlimits[i].hard ? rlimits[i].soft : rlimits[i].hard;
    }
    return count;
}

static int build_plan(const struct hc_execution *execution)
{
    struct hc_plan_rlimit rlimits[HC_RLIMIT_MAX];
    struct hc_plan_source source = {
        .argv = execution->argv,
        .env = execution->env,
        .files = execution->files,
        .file_count = execution->file_count,
        .rlimits = rlimits,
        .rlimit_count = (size_t)add_rlimits(execution, rlimits),
        .scratch_bytes = execution->limits[HC_LIMIT_DISK] + execution->input_bytes,
        .scratch_inodes = execution->limits[HC_LIMIT_INODES] + execution->input_inodes,
        .allow_layers = execution->allow_layers,
    };
    return hc_plan_build(&source);
}

static int pipe_pair(int *ret_read, int *ret_write)
{
    int ends[2];
    if ((int)HC_SYS(pipe2(ends, O_CLOEXEC)) < 0)
        return -errno;
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

static void not_started(struct hc_outcome *outcome, enum hc_stage stage, int error)
{
    outcome->started = HC_NEVER_STARTED;
    outcome->failure = (struct hc_setup_failure){.stage = stage, .error = error};
}

/* ---- start: the request with its descriptors, then the keeper's answer ---- */

static int send_start(struct running *run)
{
    const uint64_t *limits = run->execution->limits;
    struct hc_request request = {
        .op = HC_OP_START,
        .slot = run->cell->slot,
        .processes = (uint32_t)limits[HC_LIMIT_PROCESSES],
        .memory_bytes = limits[HC_LIMIT_MEMORY],
        .cpu_quota_us = (uint32_t)(limits[HC_LIMIT_CPUS] * CPU_PERIOD_US / 1000),
        .cpu_period_us = CPU_PERIOD_US,
        .calls_max = HC_CALLS_MAX,
    };
    /* The kernel takes no quota below 1 ms: a smaller share needs a longer period. */
    while (request.cpu_quota_us < 1000) {
        request.cpu_period_us *= 5;
        request.cpu_quota_us = (uint32_t)(limits[HC_LIMIT_CPUS] * request.cpu_period_us / 1000);
    }
    hc_autoclose int plan = build_plan(run->execution);
    hc_autoclose int stdin_read = -1;
    hc_autoclose int out_write = -1;
    hc_autoclose int err_write = -1;
    hc_autoclose int theirs = -1;
    int out_read = -1, err_read = -1, pair[2];
    if (plan < 0)
        return plan;
    int error = pipe_pair(&stdin_read, &run->stdin_pipe);
    if (error == 0)
        error = pipe_pair(&out_read, &out_write);
    if (error == 0) {
        error = hc_stream_init(&run->out, out_read, run->execution->live_out,
                               run->execution->live_visible_out, limits[HC_LIMIT_OUTPUT]);
        if (error == 0)
            error = pipe_pair(&err_read, &err_write);
    }
    if (error == 0)
        error = hc_stream_init(&run->err, err_read, run->execution->live_err,
                               run->execution->live_visible_err, limits[HC_LIMIT_OUTPUT]);
    if (error == 0)
        error = (int)HC_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    if (error < 0)
        return error;
    run->cell->report = pair[0];
    theirs = pair[1];
    if (run->execution->stdin_fd < 0)
        hc_close_fd(&run->stdin_pipe);
    else if (fcntl(run->stdin_pipe, F_SETFL, O_NONBLOCK) != 0)
        return -errno;
    int fds[HC_START_FDS] = {plan, stdin_read, out_write, err_write, theirs};
    return hc_hall_request(run->hall, &request, fds, HC_START_FDS);
}

static void keep_call(struct hc_outcome *outcome, const struct hc_call *call)
{
    if (outcome->calls == NULL)
        outcome->calls = calloc(HC_CALLS_MAX, sizeof *outcome->calls);
    if (outcome->calls == NULL || outcome->call_count == HC_CALLS_MAX)
        outcome->calls_omitted++;
    else
        outcome->calls[outcome->call_count++] = *call;
}

/* The host's core_pattern may hand cores to a program (|) or, since Linux 6.16, to a socket (@). */
static uint32_t core_handler(void)
{
    char pattern[16] = "|"; /* unreadable: as if there were one */
    (void)hc_file_read(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof pattern);
    return pattern[0] == '|' || pattern[0] == '@';
}

static void judge_ready(struct running *run, struct hc_event *event)
{
    struct hc_outcome *outcome = run->outcome;
    struct hc_attestation *seen = &event->u.ready.attestation;
    outcome->facts = event->u.ready.facts;
    outcome->host_uid = hc_hall_facts(run->hall)->id_base + seen->host_uid;
    outcome->host_gid = hc_hall_facts(run->hall)->gid_base + seen->host_gid;
    const char *name;
    outcome->facts.core_handler = core_handler();
    if (run->cell->meters[HC_METER_KILL] >= 0 && run->cell->meters[HC_METER_EVENTS] >= 0)
        outcome->facts.layers_applied |= 1ull << HC_LAYER_CGROUP_KILL;
    if (hc_meter_cpu_us(run->cell, &run->cpu_base_us, &run->cpu_user_base_us, &run->cpu_system_base_us,
                        &name))
        outcome->facts.layers_applied |= 1ull << HC_LAYER_CPU_METER;
    seen->status[sizeof seen->status - 1] = seen->mounts[sizeof seen->mounts - 1] = '\0';
    seen->limits[sizeof seen->limits - 1] = seen->cgroup[sizeof seen->cgroup - 1] = '\0';
    hc_layers_judge(&outcome->facts, seen, access("/proc/pressure/cpu", F_OK) == 0,
                    run->execution->allow_layers, &outcome->layers);
    if (outcome->mounts == NULL)
        outcome->mounts = strdup(seen->mounts);
}

/* Waits until the payload stands before its exec, and decides whether it may go. */
static int await_ready(struct running *run)
{
    struct hc_event *event = calloc(1, sizeof *event);
    struct hc_outcome *outcome = run->outcome;
    int fds[4] = {-1, -1, -1, -1}, error = 0;
    if (event == NULL)
        return -ENOMEM;
    do
        error = hc_hall_next(run->hall, run->cell, event, fds, NULL, READY_TIMEOUT_MS);
    while (error == 0 && event->kind != HC_EVENT_READY && event->kind != HC_EVENT_FAILED);
    if (error < 0) {
        not_started(outcome, HC_STAGE_HALL_KEEPER, error);
        outcome->cell = NULL; /* the keeper is gone or stuck: there is nothing to ask it for */
        error = HC_SETUP_FAILED;
    } else if (event->kind == HC_EVENT_FAILED) {
        not_started(outcome, event->stage < HC_STAGE_COUNT ? (enum hc_stage)event->stage : HC_STAGE_NONE,
                    event->error);
        error = HC_SETUP_FAILED;
    } else {
        run->cell->working_folder = fds[0];
        judge_ready(run, event);
        if (outcome->layers.missing >= 0) {
            not_started(outcome, HC_STAGE_ATTEST, -EPERM);
            (void)strncpy(outcome->failure.detail, hc_layers[outcome->layers.missing].name,
                          sizeof outcome->failure.detail - 1);
            error = HC_SETUP_FAILED;
        } else if (outcome->layers.grade > run->execution->min_grade) {
            not_started(outcome, HC_STAGE_ATTEST, -EPERM);
            outcome->grade_too_low = true;
            error = HC_SETUP_FAILED;
        }
    }
    free(event);
    return error;
}

/* ---- watching ---- */

static uint64_t since_exec_us(const struct running *run)
{
    uint64_t now_ns = hc_now_ns();
    return run->execed && now_ns > run->outcome->exec_at_ns ? (now_ns - run->outcome->exec_at_ns) / 1000 : 0;
}

static uint64_t cpu_used_us(const struct running *run)
{
    uint64_t total = 0, user, system;
    const char *name;
    if (!hc_meter_cpu_us(run->cell, &total, &user, &system, &name) || total < run->cpu_base_us)
        return 0;
    return total - run->cpu_base_us;
}

static void kill_cell(struct running *run)
{
    (void)!write(run->cell->meters[HC_METER_KILL], "1", 1);
}

static void sample_scratch(struct running *run)
{
    struct statfs info;
    if (run->cell->working_folder < 0 || fstatfs(run->cell->working_folder, &info) != 0)
        return;
    uint64_t used = (uint64_t)(info.f_blocks - info.f_bfree) * (uint64_t)info.f_bsize;
    uint64_t inodes = info.f_files - info.f_ffree;
    struct hc_usage *usage = &run->outcome->usage;
    usage->scratch_bytes = used > usage->scratch_bytes ? used : usage->scratch_bytes;
    usage->scratch_inodes = inodes > usage->scratch_inodes ? inodes : usage->scratch_inodes;
    run->outcome->hits.disk = run->outcome->hits.disk || info.f_bfree == 0;
    run->outcome->hits.inodes = run->outcome->hits.inodes || info.f_ffree == 0;
}

/* Returns how long to sleep at most, in microseconds. */
static uint64_t check_clocks(struct running *run)
{
    struct hc_hits *hits = &run->outcome->hits;
    const uint64_t *limits = run->execution->limits;
    uint64_t wall_us = since_exec_us(run);
    if (!run->execed)
        return 1000000;
    if (wall_us >= limits[HC_LIMIT_WALL]) {
        hits->wall = hits->killed_for_wall = true;
        kill_cell(run);
        return 0;
    }
    uint64_t now_us = hc_now_us(), cpu_us = cpu_used_us(run);
    if (cpu_us >= limits[HC_LIMIT_CPU]) {
        hits->cpu = hits->killed_for_cpu = true;
        kill_cell(run);
        return 0;
    }
    if (now_us >= run->next_sample_us) {
        sample_scratch(run);
        run->next_sample_us = now_us + SAMPLE_EVERY_US;
    }
    /* The soonest moment at which the CPU limit can be used up. */
    uint64_t cpu_left_us = (limits[HC_LIMIT_CPU] - cpu_us) * 1000 / limits[HC_LIMIT_CPUS] + 1;
    uint64_t sleep_us = limits[HC_LIMIT_WALL] - wall_us;
    sleep_us = cpu_left_us < sleep_us ? cpu_left_us : sleep_us;
    /* Sampling of the scratch space gets rarer in long runs. */
    uint64_t sample_us = SAMPLE_EVERY_US + wall_us / 20;
    return sample_us < sleep_us ? sample_us : sleep_us;
}

/* Of a warm cell the keeper sees the end, and it outlives our killing the cell: that end is our own doing,
 * not the program's. */
static bool ended_by_us(const struct running *run, int wait_status)
{
    const struct hc_hits *hits = &run->outcome->hits;
    bool killing = hits->killed_for_wall || hits->killed_for_cpu || hits->killed_for_output ||
                   hits->killed_for_memory || hits->killed_for_cancel || hits->killed_for_fault;
    return killing && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
}

static void take_report(struct running *run)
{
    struct hc_end_report report;
    long n = hc_message_receive(run->cell->report, &report, sizeof report, NULL, 0, NULL, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n != (long)sizeof report || report.version != HC_WIRE_VERSION) {
        run->init_gone = true;
        return;
    }
    struct hc_outcome *outcome = run->outcome;
    if (report.kind == HC_END_EXECED) {
        run->execed = true;
        outcome->started = HC_STARTED;
        outcome->exec_at_ns = report.at_ns;
    } else if (report.kind == HC_END_EXITED && ended_by_us(run, report.wait_status)) {
        run->init_gone = true;
    } else if (report.kind == HC_END_EXITED) {
        run->exited = true;
        outcome->exited = true;
        outcome->wait_status = report.wait_status;
        if (run->execed && report.at_ns > outcome->exec_at_ns)
            outcome->usage.wall_us = (report.at_ns - outcome->exec_at_ns) / 1000;
        outcome->hits.disk = outcome->hits.disk || report.scratch_free_bytes == 0;
        outcome->hits.inodes = outcome->hits.inodes || report.scratch_free_inodes == 0;
    } else if (report.kind == HC_END_FAILED) {
        not_started(outcome, report.stage < HC_STAGE_COUNT ? (enum hc_stage)report.stage : HC_STAGE_EXEC,
                    report.error);
        run->init_gone = true;
    }
}

static void take_event(struct running *run)
{
    static __thread struct hc_event event;
    int error = hc_hall_next(run->hall, run->cell, &event, NULL, NULL, 0);
    if (error == -ETIMEDOUT)
        return;
    if (error < 0) {
        run->outcome->failure = (struct hc_setup_failure){.stage = HC_STAGE_HALL_KEEPER, .error = error};
        run->init_gone = true;
    } else if (event.kind == HC_EVENT_CALL) {
        keep_call(run->outcome, &event.u.call);
    } else if (event.kind == HC_EVENT_ATTESTED && event.error == 0) {
        struct hc_layer_results again;
        struct hc_attestation *seen = &event.u.ready.attestation;
        seen->status[sizeof seen->status - 1] = seen->mounts[sizeof seen->mounts - 1] = '\0';
        seen->limits[sizeof seen->limits - 1] = '\0';
        hc_layers_judge(&run->outcome->facts, seen, access("/proc/pressure/cpu", F_OK) == 0,
                        run->execution->allow_layers, &again);
        hc_layers_tighten(&run->outcome->layers, &again);
        run->outcome->attested_after_exec = true;
        if (run->outcome->layers.missing >=
            0) { /* a boundary that is not there any more: nothing more may run */
            run->outcome->failure = (struct hc_setup_failure){.stage = HC_STAGE_ATTEST, .error = -EPERM};
            run->outcome->hits.killed_for_fault = true;
            kill_cell(run);
            run->init_gone = true;
        }
    }
}

static void pump_input(struct running *run, bool source_ready)
{
    if (run->input_at == run->input_bytes && source_ready) {
        ssize_t n = read(run->stdin_source, run->input, sizeof run->input);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            hc_close_fd(&run->stdin_pipe);
            return;
        }
        run->input_at = 0;
        run->input_bytes = (size_t)n;
        if (hc_capture_write(&run->in, run->input, (size_t)n) < 0)
            hc_capture_done(&run->in); /* no memory: the record says that it was not kept */
    }
    if (run->input_at < run->input_bytes) {
        ssize_t n = write(run->stdin_pipe, run->input + run->input_at, run->input_bytes - run->input_at);
        if (n > 0)
            run->input_at += (size_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            hc_close_fd(&run->stdin_pipe); /* the program does not read it: no error of anybody */
    }
}

static void check_output(struct running *run)
{
    uint64_t total = run->out.capture.total_bytes + run->err.capture.total_bytes;
    struct hc_hits *hits = &run->outcome->hits;
    if (total > run->execution->limits[HC_LIMIT_OUTPUT])
        hits->output = true;
    if (total > run->execution->limits[HC_LIMIT_OUTPUT_TOTAL] && !hits->output_total) {
        hits->output_total = hits->killed_for_output = true;
        kill_cell(run);
    }
}

/* cgroup v1 kills one process and lets the rest go on; a run that lost one of its processes to a limit is
 * over. The event comes at the moment of need, the counter just after. */
static void check_memory(struct running *run)
{
    if (run->cell->meters[HC_METER_OOM_EVENT] < 0 || run->outcome->hits.killed_for_memory)
        return;
    uint64_t raised;
    if (read(run->cell->meters[HC_METER_OOM_EVENT], &raised, sizeof raised) == sizeof raised &&
        run->oom_seen_us == 0)
        run->oom_seen_us = hc_now_us();
    if (run->oom_seen_us == 0)
        return;
    if (hc_meter_oom_kills(run->cell) > 0 || hc_now_us() - run->oom_seen_us > 50000) {
        run->outcome->hits.memory = run->outcome->hits.killed_for_memory = true;
        kill_cell(run);
    }
}

enum {
    WATCH_REPORT,
    WATCH_HALL,
    WATCH_OUT,
    WATCH_ERR,
    WATCH_LIVE_OUT,
    WATCH_LIVE_ERR,
    WATCH_STDIN,
    WATCH_SOURCE,
    WATCH_OOM,
    WATCH_CANCEL,
    WATCH_COUNT
};

static void fill_polls(const struct running *run, struct pollfd polls[WATCH_COUNT])
{
    for (int i = 0; i < WATCH_COUNT; i++)
        polls[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    polls[WATCH_REPORT].fd = run->init_gone ? -1 : run->cell->report;
    polls[WATCH_HALL].fd = hc_hall_socket(run->hall);
    polls[WATCH_OUT].fd = hc_stream_wants_read(&run->out) ? run->out.pipe : -1;
    polls[WATCH_ERR].fd = hc_stream_wants_read(&run->err) ? run->err.pipe : -1;
    polls[WATCH_LIVE_OUT] =
        (struct pollfd){.fd = hc_stream_wants_pass(&run->out) ? run->out.live : -1, .events = POLLOUT};
    polls[WATCH_LIVE_ERR] =
        (struct pollfd){.fd = hc_stream_wants_pass(&run->err) ? run->err.live : -1, .events = POLLOUT};
    if (run->stdin_pipe >= 0) {
        bool full = run->input_at < run->input_bytes;
        polls[WATCH_STDIN] = (struct pollfd){.fd = run->stdin_pipe, .events = full ? POLLOUT : 0};
        bool held = run->execution->stdin_after_output && run->out.capture.total_bytes == 0;
        polls[WATCH_SOURCE].fd = full || held ? -1 : run->stdin_source;
    }
    polls[WATCH_OOM].fd = run->outcome->hits.killed_for_memory ? -1 : run->cell->meters[HC_METER_OOM_EVENT];
    polls[WATCH_CANCEL].fd = run->outcome->hits.cancelled ? -1 : run->execution->cancel_fd;
}

static int serve_polls(struct running *run, const struct pollfd polls[WATCH_COUNT])
{
    int error = 0;
    if (polls[WATCH_OUT].revents != 0)
        error = hc_stream_read(&run->out);
    if (error == 0 && polls[WATCH_ERR].revents != 0)
        error = hc_stream_read(&run->err);
    if (run->outcome->first_output_at_ns == 0 &&
        run->out.capture.total_bytes + run->err.capture.total_bytes > 0)
        run->outcome->first_output_at_ns = hc_now_ns();
    if (polls[WATCH_LIVE_OUT].revents != 0)
        hc_stream_pass(&run->out);
    if (polls[WATCH_LIVE_ERR].revents != 0)
        hc_stream_pass(&run->err);
    if (run->stdin_pipe >= 0 && (polls[WATCH_STDIN].revents | polls[WATCH_SOURCE].revents) != 0) {
        if ((polls[WATCH_STDIN].revents & POLLERR) != 0)
            hc_close_fd(&run->stdin_pipe);
        else
            pump_input(run, polls[WATCH_SOURCE].revents != 0);
    }
    if (polls[WATCH_HALL].revents != 0)
        take_event(run);
    if (polls[WATCH_REPORT].revents != 0)
        take_report(run);
    if (polls[WATCH_CANCEL].revents != 0) {
        run->outcome->hits.cancelled = run->outcome->hits.killed_for_cancel = true;
        kill_cell(run);
    }
    check_output(run);
    check_memory(run);
    return error;
}

static int wait_once(struct running *run, uint64_t sleep_us)
{
    struct pollfd polls[WATCH_COUNT];
    struct timespec timeout = {.tv_sec = (time_t)(sleep_us / 1000000),
                               .tv_nsec = (long)(sleep_us % 1000000) * 1000};
    if (run->oom_seen_us != 0 && !run->outcome->hits.killed_for_memory && sleep_us > 1000)
        timeout = (struct timespec){.tv_nsec = 1000000};
    fill_polls(run, polls);
    int n = ppoll(polls, WATCH_COUNT, &timeout, NULL);
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    return serve_polls(run, polls);
}

static void ask_attest(struct running *run, bool *asked)
{
    if (*asked || !run->execed)
        return;
    struct hc_request request = {.op = HC_OP_ATTEST, .slot = run->cell->slot};
    (void)hc_hall_request(run->hall, &request, NULL, 0);
    *asked = true;
}

static int watch(struct running *run)
{
    bool asked = false;
    while (!run->exited && !run->init_gone) {
        int error = wait_once(run, check_clocks(run));
        if (error < 0)
            return error;
        if (!run->exited)
            ask_attest(run, &asked);
    }
    return 0;
}

/* Everything is dead: what lies in the pipes is the rest. */
static int drain(struct running *run)
{
    uint64_t deadline_us = hc_now_us() + DRAIN_TIMEOUT_US;
    while (run->out.pipe >= 0 || run->err.pipe >= 0 || hc_stream_wants_pass(&run->out) ||
           hc_stream_wants_pass(&run->err)) {
        if (run->outcome->hits
                .cancelled) { /* whoever reads our output has stopped, and the caller wants to go */
            run->out.live = run->err.live = -1;
            run->out.pending_bytes = run->err.pending_bytes = 0;
            run->out.pending_at = run->err.pending_at = 0;
        }
        bool at_end = run->out.pipe < 0 && run->err.pipe < 0;
        if (!at_end && !hc_stream_wants_pass(&run->out) && !hc_stream_wants_pass(&run->err) &&
            hc_now_us() > deadline_us)
            return -ETIMEDOUT;
        int error = wait_once(run, 100000);
        if (error < 0)
            return error;
    }
    return 0;
}

static int finish_streams(struct running *run)
{
    uint64_t out_share, err_share;
    hc_capture_share(&run->out.capture, &run->err.capture, run->execution->limits[HC_LIMIT_OUTPUT],
                     &out_share, &err_share);
    int error = hc_capture_finish(&run->out.capture, out_share, &run->outcome->out);
    if (error == 0)
        error = hc_capture_finish(&run->err.capture, err_share, &run->outcome->err);
    return error;
}

static void read_counters(struct running *run)
{
    struct hc_outcome *outcome = run->outcome;
    struct hc_usage *usage = &outcome->usage;
    uint64_t total = 0, user = 0, system = 0;
    usage->has_cpu = hc_meter_cpu_us(run->cell, &total, &user, &system, &usage->cpu_meter);
    usage->has_split = usage->has_cpu;
    usage->cpu_us = total > run->cpu_base_us ? total - run->cpu_base_us : 0;
    usage->cpu_user_us = user > run->cpu_user_base_us ? user - run->cpu_user_base_us : 0;
    usage->cpu_system_us = system > run->cpu_system_base_us ? system - run->cpu_system_base_us : 0;
    hc_meter_peaks(run->cell, usage);
    outcome->oom_kills = hc_meter_oom_kills(run->cell);
    if (outcome->oom_kills > 0 || outcome->hits.memory) {
        outcome->hits.memory = hc_meter_at_memory_limit(run->cell) || run->oom_seen_us != 0;
        outcome->hits.host_memory = !outcome->hits.memory;
    }
    outcome->hits.processes = hc_meter_refused_tasks(run->cell) > 0;
    if (!outcome->exited || usage->wall_us == 0)
        usage->wall_us = since_exec_us(run);
    if (usage->cpu_us >= run->execution->limits[HC_LIMIT_CPU])
        outcome->hits.cpu = true;
}

static void read_scratch(struct running *run)
{
    struct hc_usage *usage = &run->outcome->usage;
    sample_scratch(run);
    uint64_t used = run->outcome->facts.scratch_used_bytes, inodes = run->outcome->facts.scratch_used_inodes;
    usage->scratch_bytes -= used < usage->scratch_bytes ? used : usage->scratch_bytes;
    usage->scratch_inodes -= inodes < usage->scratch_inodes ? inodes : usage->scratch_inodes;
}

/* The keeper tells of a call before it answers it: what a dead program tried waits in the socket. A late look
 * at the process does not count: it was taken while the process was ending. */
static void take_last_calls(struct running *run)
{
    static __thread struct hc_event event;
    while (hc_hall_next(run->hall, run->cell, &event, NULL, NULL, 0) == 0)
        if (event.kind == HC_EVENT_CALL)
            keep_call(run->outcome, &event.u.call);
}

static int run_cell(struct running *run)
{
    struct hc_outcome *outcome = run->outcome;
    uint64_t began_us = hc_now_us();
    int error = send_start(run);
    if (error == 0)
        error = await_ready(run);
    outcome->times.provision_us += hc_now_us() - began_us;
    if (error != 0)
        return error;
    began_us = hc_now_us();
    run->stdin_source = run->execution->stdin_fd;
    if (send(run->cell->report, "g", 1, MSG_NOSIGNAL) != 1)
        run->init_gone = true;
    if (run->execution->meanwhile != NULL)
        run->execution->meanwhile(run->execution->meanwhile_context);
    error = watch(run);
    int killed = hc_meter_kill_all(run->cell);
    if (killed < 0)
        outcome->failure = (struct hc_setup_failure){.stage = HC_STAGE_TEARDOWN, .error = killed};
    hc_close_fd(&run->stdin_pipe);
    /* init may have reported the end while we were killing for another reason; the last report counts. */
    if (!run->exited && run->cell->report >= 0)
        take_report(run);
    if (error == 0 && killed == 0)
        error = drain(run);
    take_last_calls(run);
    outcome->times.run_us = hc_now_us() - began_us;
    if (error == 0)
        error = finish_streams(run);
    read_counters(run);
    read_scratch(run);
    return error;
}

/* Of a file all of it counts, whether the program read it or not; of a pipe what was taken from it. */
static void finish_input(struct running *run)
{
    struct stat info;
    bool file = run->stdin_source >= 0 && fstat(run->stdin_source, &info) == 0 && S_ISREG(info.st_mode);
    while (file && run->in.sha.context != NULL && run->in.total_bytes <= STDIN_KEPT_MAX) {
        ssize_t n = read(run->stdin_source, run->input, sizeof run->input);
        if (n <= 0 || hc_capture_write(&run->in, run->input, (size_t)n) < 0)
            break;
    }
    if (run->in.sha.context != NULL)
        (void)hc_capture_finish(&run->in, STDIN_KEPT_MAX, &run->outcome->in);
    hc_capture_done(&run->in);
}

/* Older ones have seen too much of the host's life: they are replaced. */
#define WARM_AGE_MAX_US (600ull * 1000000)

static int take_cell(struct running *run, int warm_place)
{
    struct hc_outcome *outcome = run->outcome;
    if (warm_place >= 0) {
        int error = hc_hall_take_warm(run->hall, (uint32_t)warm_place, run->execution->warm_wait_ms,
                                      WARM_AGE_MAX_US, &run->cell);
        outcome->warm = outcome->made_ahead = error == 0;
        if (error != -EAGAIN || run->execution->warm_only)
            return error;
    }
    return hc_hall_take_cell(run->hall, &run->cell, &outcome->made_ahead, &outcome->failure);
}

static int execute_once(struct hc_hall *hall, const struct hc_execution *execution, int warm_place,
                        struct hc_outcome *ret_outcome)
{
    memset(ret_outcome, 0, sizeof *ret_outcome);
    uint64_t began_us = hc_now_us();
    hc_autofree struct running *run = calloc(1, sizeof *run);
    if (run == NULL)
        return -ENOMEM;
    run->hall = hall;
    run->execution = execution;
    run->outcome = ret_outcome;
    run->stdin_pipe = run->stdin_source = run->out.pipe = run->err.pipe = run->out.live = run->err.live = -1;
    ret_outcome->layers.missing = -1;
    int error = take_cell(run, warm_place);
    ret_outcome->times.provision_us = hc_now_us() - began_us;
    if (error == HC_SETUP_FAILED)
        return 0;
    if (error < 0) {
        not_started(ret_outcome, HC_STAGE_CLONE, error);
        return error == -EBUSY ? 0 : error;
    }
    ret_outcome->cell = run->cell;
    ret_outcome->cell_slot = run->cell->slot;
    if (execution->stdin_fd >= 0)
        error = hc_capture_init(&run->in, STDIN_KEPT_MAX);
    if (error == 0)
        error = run_cell(run);
    finish_input(run);
    hc_stream_done(&run->out);
    hc_stream_done(&run->err);
    hc_close_fd(&run->stdin_pipe);
    return error == HC_SETUP_FAILED ? 0 : error;
}

int hc_execute(struct hc_hall *hall, const struct hc_execution *execution, struct hc_outcome *ret_outcome)
{
    int error = execute_once(hall, execution, execution->warm_place, ret_outcome);
    /* A ready cell that did not wake has run nothing of the program: an empty one does it. Layers that are
     * missing are missing. */
    bool asleep = error == 0 && ret_outcome->warm && !execution->warm_only &&
                  ret_outcome->started == HC_NEVER_STARTED && ret_outcome->layers.missing < 0 &&
                  !ret_outcome->grade_too_low && !ret_outcome->hits.cancelled &&
                  ret_outcome->failure.stage != HC_STAGE_HALL_KEEPER;
    if (!asleep)
        return error;
    error = hc_execute_end(hall, ret_outcome);
    hc_outcome_done(ret_outcome);
    return error < 0 ? error : execute_once(hall, execution, -1, ret_outcome);
}

int hc_execute_end(struct hc_hall *hall, struct hc_outcome *outcome)
{
    if (outcome->cell == NULL)
        return 0;
    uint64_t began_us = hc_now_us(), omitted = 0;
    int error = hc_hall_end_cell(hall, outcome->cell, &outcome->residue, &omitted);
    outcome->cell = NULL;
    outcome->calls_omitted += omitted;
    outcome->has_residue = error == 0;
    outcome->times.teardown_us = hc_now_us() - began_us;
    if (error < 0 && outcome->failure.error == 0)
        outcome->failure = (struct hc_setup_failure){.stage = HC_STAGE_TEARDOWN, .error = error};
    return error;
}

void hc_outcome_done(struct hc_outcome *outcome)
{
    hc_captured_done(&outcome->out);
    hc_captured_done(&outcome->err);
    hc_captured_done(&outcome->in);
    free(outcome->calls);
    free(outcome->mounts);
    outcome->calls = NULL;
    outcome->mounts = NULL;
}
