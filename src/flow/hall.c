#include "flow/hall.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "flow/opener.h"
#include "flow/ordinary.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define EVENT_FDS 16
/* A cell that can't be ended in this time hangs in the kernel: its slot is given up and the residue says so.
 */
#define END_TIMEOUT_MS   5000
#define LEAVE_TIMEOUT_MS 3000

struct hc_hall {
    pid_t guard;
    int guard_pidfd; /* -1: the guard is our own child */
    struct hc_opener *opener;
    int socket;
    bool broken;
    uint64_t opened_in_us;
    struct hc_keeper_config facts;
    struct hc_cell_handle cells[HC_CELL_MAX];
    struct {
        enum hc_warm_state state;
        struct hc_setup_failure failure;
    } hosts[HC_HOST_MAX];
};

static void clear_handle(struct hc_cell_handle *cell, uint32_t slot)
{
    memset(cell, 0, sizeof *cell);
    cell->slot = slot;
    cell->working_folder = cell->report = -1;
    for (int m = 0; m < HC_METER_COUNT; m++)
        cell->meters[m] = -1;
}

static void close_handle(struct hc_cell_handle *cell)
{
    hc_close_fd(&cell->working_folder);
    hc_close_fd(&cell->report);
    for (int m = 0; m < HC_METER_COUNT; m++)
        hc_close_fd(&cell->meters[m]);
    clear_handle(cell, cell->slot);
}

static int fill_config(const struct hc_hall_options *options, struct hc_hall_config *config)
{
    if (options->bind_count > HC_BIND_MAX)
        return -E2BIG;
    config->version = HC_WIRE_VERSION;
    config->size = sizeof *config;
    config->bind_count = options->bind_count;
    config->ceiling_processes = options->ceiling_processes;
    config->ceiling_memory_bytes = options->ceiling_memory_bytes;
    config->allow_layers = options->allow_layers;
    config->slice_count = HC_SLICES_MAX;
    config->fault_program = options->fault_program;
    config->fault_nth = options->fault_nth;
    memcpy(config->binds, options->binds, options->bind_count * sizeof *options->binds);
    int a = snprintf(config->keeper_path, sizeof config->keeper_path, "%s/hotcell-keeper", options->programs);
    int b = snprintf(config->init_path, sizeof config->init_path, "%s/hotcell-init", options->programs);
    return a < HC_PATH_SIZE && b < HC_PATH_SIZE ? 0 : -ENAMETOOLONG;
}

static int spawn_as_root(const char *path, int config, int socket, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return -error;
    /* The caller's streams must not be held open by a hall that outlives a killed caller by a moment. */
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, 0, 1);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, 0, 2);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, config, HC_FD_HALL_CONFIG);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, socket, HC_FD_HALL_SOCKET);
    posix_spawnattr_t attributes;
    sigset_t none;
    (void)sigemptyset(&none);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    sigset_t all;
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    char *const argv[] = {(char *)"hotcell-hall", NULL};
    char *const envp[] = {NULL};
    if (error == 0)
        error = posix_spawn(ret_pid, path, &actions, &attributes, argv, envp);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return -error;
}

/* Root makes the hall itself; an ordinary user has his door make it, which lives in his cgroups. */
static int start_hall(struct hc_hall *hall, const char *programs, int config, int socket,
                      struct hc_setup_failure *failure)
{
    char path[HC_PATH_SIZE + 16];
    *failure = (struct hc_setup_failure){.stage = HC_STAGE_HALL_KEEPER};
    if (snprintf(path, sizeof path, "%s/hotcell-hall", programs) >= (int)sizeof path)
        return -ENAMETOOLONG;
    (void)snprintf(failure->detail, sizeof failure->detail, "%.*s", (int)sizeof failure->detail - 1, path);
    if (geteuid() == 0)
        return spawn_as_root(path, config, socket, &hall->guard);
    hall->guard_pidfd = hc_door_start(path, config, socket, &hall->guard);
    if (hall->guard_pidfd >= 0)
        return 0;
    failure->stage = HC_STAGE_HALL_CGROUP;
    (void)snprintf(failure->detail, sizeof failure->detail, "the user's door");
    return hall->guard_pidfd;
}

static int move_high(int *fd)
{
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, 16);
    if (high < 0)
        return -errno;
    close(*fd);
    *fd = high;
    return 0;
}

static long receive_event(int socket, struct hc_event *event, int *fds, unsigned *fd_count, int flags)
{
    long n = hc_message_receive(socket, event, sizeof *event, fds, EVENT_FDS, fd_count, flags);
    if (n > 0 && (n < (long)offsetof(struct hc_event, u) || event->version != HC_WIRE_VERSION ||
                  n != (long)hc_event_size(event->kind)))
        return -EPROTO;
    return n == 0 ? -ECONNRESET : n;
}

static int await_hello(struct hc_hall *hall, struct hc_setup_failure *failure)
{
    struct hc_event event;
    int fds[EVENT_FDS];
    unsigned fd_count = 0;
    long n = receive_event(hall->socket, &event, fds, &fd_count, 0);
    *failure = (struct hc_setup_failure){.stage = HC_STAGE_HALL_KEEPER, .error = n < 0 ? (int)n : -EPROTO};
    hc_autoclose int namespace = fd_count > 0 ? fds[0] : -1;
    for (unsigned i = 1; i < fd_count; i++)
        hc_close_fd(&fds[i]);
    if (n < 0) /* the hall died without a word */
        return HC_SETUP_FAILED;
    if (event.kind == HC_EVENT_FAILED) {
        failure->stage = event.stage < HC_STAGE_COUNT ? (enum hc_stage)event.stage : HC_STAGE_NONE;
        failure->error = event.error;
        memcpy(failure->detail, event.u.detail, sizeof failure->detail - 1);
        return HC_SETUP_FAILED;
    }
    if (event.kind != HC_EVENT_HELLO || namespace < 0)
        return HC_SETUP_FAILED;
    hall->facts = event.u.hello;
    hall->opener = hc_opener_new(hc_take_fd(&namespace));
    return hall->opener == NULL ? -ENOMEM : 0;
}

int hc_hall_open(const struct hc_hall_options *options, struct hc_hall **ret_hall,
                 struct hc_setup_failure *ret_failure)
{
    uint64_t began_us = hc_now_us();
    hc_autofree struct hc_hall_config *config = calloc(1, sizeof *config);
    hc_autofree struct hc_hall *hall = calloc(1, sizeof *hall);
    int pair[2];
    if (config == NULL || hall == NULL)
        return -ENOMEM;
    hall->guard_pidfd = -1;
    int error = fill_config(options, config);
    if (error < 0)
        return error;
    if (geteuid() != 0 && (error = hc_ordinary_ids(config)) < 0) {
        *ret_failure = (struct hc_setup_failure){
            .stage = HC_STAGE_HALL_IDS, .error = error, .detail = "/etc/subuid, /etc/subgid"};
        return HC_SETUP_FAILED;
    }
    hc_autoclose int memfd = hc_memfd("hall", MFD_CLOEXEC);
    if (memfd < 0 || pwrite(memfd, config, sizeof *config, 0) != (ssize_t)sizeof *config)
        return -errno;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -errno;
    hc_autoclose int ours = pair[0];
    hc_autoclose int theirs = pair[1];
    /* Low numbers would collide with the places the hall expects its descriptors at. */
    if ((error = move_high(&memfd)) < 0 || (error = move_high(&theirs)) < 0)
        return error;
    if ((error = start_hall(hall, options->programs, memfd, theirs, ret_failure)) < 0) {
        ret_failure->error = error;
        return HC_SETUP_FAILED;
    }
    hc_close_fd(&theirs);
    hall->socket = hc_take_fd(&ours);
    for (uint32_t slot = 0; slot < HC_CELL_MAX; slot++)
        clear_handle(&hall->cells[slot], slot);
    error = await_hello(hall, ret_failure);
    if (error != 0) {
        hc_hall_close(hc_take_pointer(&hall));
        return error;
    }
    hall->opened_in_us = hc_now_us() - began_us;
    *ret_hall = hc_take_pointer(&hall);
    return 0;
}

void hc_hall_leave(struct hc_hall *hall)
{
    for (uint32_t slot = 0; hall != NULL && slot < HC_CELL_MAX; slot++)
        close_handle(&hall->cells[slot]);
    if (hall != NULL)
        hc_close_fd(&hall->socket);
}

void hc_hall_close(struct hc_hall *hall)
{
    if (hall == NULL)
        return;
    hc_hall_leave(hall);
    hc_opener_done(hall->opener);
    bool child = hall->guard_pidfd < 0;
    hc_autoclose int pidfd = child ? hc_pidfd_open(hall->guard) : hall->guard_pidfd;
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    /* A keeper that was stopped, or hangs, does not see our socket close; its parent can kill it. */
    if (pidfd >= 0 && poll(&end, 1, LEAVE_TIMEOUT_MS) == 0)
        (void)hc_pidfd_signal(pidfd, SIGTERM);
    while (child && waitpid(hall->guard, NULL, 0) < 0 && errno == EINTR)
        continue;
    while (!child && poll(&end, 1, -1) < 0 && errno == EINTR)
        continue;
    free(hall);
}

int hc_hall_socket(const struct hc_hall *hall)
{
    return hall->socket;
}

const struct hc_keeper_config *hc_hall_facts(const struct hc_hall *hall)
{
    return &hall->facts;
}

uint64_t hc_hall_opened_in_us(const struct hc_hall *hall)
{
    return hall->opened_in_us;
}

int hc_hall_request(struct hc_hall *hall, const struct hc_request *request, const int *fds, unsigned fd_count)
{
    struct hc_request sent = *request;
    sent.version = HC_WIRE_VERSION;
    return hc_message_send(hall->socket, &sent, sizeof sent, fds, fd_count, 0);
}

static void take_made(struct hc_cell_handle *cell, const struct hc_event *event, int *fds, unsigned fd_count)
{
    unsigned at = 0;
    for (int m = 0; m < HC_METER_COUNT && at < fd_count; m++)
        if ((event->meters >> m & 1) != 0)
            cell->meters[m] = hc_take_fd(&fds[at++]);
    cell->made = true;
    cell->made_at_us = hc_now_us();
}

static void take_host_event(struct hc_hall *hall, const struct hc_event *event)
{
    uint32_t place = event->slot % HC_HOST_MAX;
    hall->hosts[place].state = event->kind == HC_EVENT_HOST_READY ? HC_WARM_READY : HC_WARM_LOST;
    hall->hosts[place].failure = (struct hc_setup_failure){
        .stage = event->stage < HC_STAGE_COUNT ? (enum hc_stage)event->stage : HC_STAGE_NONE,
        .error = event->error};
}

static int left_ms(int timeout_ms, uint64_t deadline_us)
{
    uint64_t now_us = hc_now_us();
    if (timeout_ms < 0)
        return -1;
    return now_us >= deadline_us ? 0 : (int)((deadline_us - now_us + 999) / 1000);
}

/* Descriptors of an event that are for the caller go to him, all others away. */
static void hand_over(int *fds, unsigned fd_count, unsigned handed, int *ret_fds)
{
    for (unsigned i = 0; i < fd_count; i++)
        if (i < handed && i < 4 && ret_fds != NULL)
            ret_fds[i] = hc_take_fd(&fds[i]);
        else
            hc_close_fd(&fds[i]);
}

int hc_hall_next(struct hc_hall *hall, struct hc_cell_handle *cell, struct hc_event *ret_event, int *ret_fds,
                 unsigned *ret_fd_count, int timeout_ms)
{
    uint64_t deadline_us = timeout_ms < 0 ? UINT64_MAX : hc_now_us() + (uint64_t)timeout_ms * 1000;
    for (;;) {
        int fds[EVENT_FDS];
        unsigned fd_count = 0;
        struct pollfd wait = {.fd = hall->socket, .events = POLLIN};
        int ready = poll(&wait, 1, left_ms(timeout_ms, deadline_us));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return ready < 0 ? -errno : -ETIMEDOUT;
        long n = receive_event(hall->socket, ret_event, fds, &fd_count, 0);
        if (n < 0) {
            hall->broken = true;
            return (int)n;
        }
        if (ret_event->kind == HC_EVENT_HOST_READY || ret_event->kind == HC_EVENT_HOST_ENDED) {
            take_host_event(hall, ret_event);
            if (cell == NULL)
                return 0;
            continue;
        }
        struct hc_cell_handle *about = &hall->cells[ret_event->slot < HC_CELL_MAX ? ret_event->slot : 0];
        if (ret_event->kind == HC_EVENT_MADE)
            take_made(about, ret_event, fds, fd_count);
        else if (about != cell && ret_event->kind == HC_EVENT_DESTROYED)
            close_handle(about); /* a cell made ahead that failed: the next one is made when it is needed */
        unsigned handed = about == cell && ret_event->kind == HC_EVENT_READY ? fd_count : 0;
        hand_over(fds, fd_count, handed, ret_fds);
        if (ret_fd_count != NULL)
            *ret_fd_count = handed;
        if (about == cell || cell == NULL)
            return 0;
    }
}

static struct hc_cell_handle *ask_for_cell(struct hc_hall *hall, const struct hc_request *how, int *ret_error)
{
    for (uint32_t slot = 0; slot < HC_CELL_MAX; slot++) {
        struct hc_cell_handle *cell = &hall->cells[slot];
        if (cell->in_use || cell->asked_at_us != 0)
            continue;
        struct hc_request request = *how;
        request.slot = slot;
        *ret_error = hc_hall_request(hall, &request, NULL, 0);
        cell->asked_at_us = hc_now_us();
        cell->warm = how->op == HC_OP_MAKE_WARM;
        cell->host = how->host;
        return *ret_error == 0 ? cell : NULL;
    }
    *ret_error = -EBUSY;
    return NULL;
}

static const struct hc_request make_empty = {.op = HC_OP_MAKE};

static unsigned count_waiting(const struct hc_hall *hall, struct hc_cell_handle **ret_best)
{
    unsigned waiting = 0;
    *ret_best = NULL;
    for (uint32_t slot = 0; slot < HC_CELL_MAX; slot++) {
        const struct hc_cell_handle *cell = &hall->cells[slot];
        if (cell->in_use || cell->asked_at_us == 0 || cell->warm)
            continue;
        waiting++;
        if (*ret_best == NULL || (cell->made && !(*ret_best)->made))
            *ret_best = (struct hc_cell_handle *)(uintptr_t)cell;
    }
    return waiting;
}

void hc_hall_make_ahead(struct hc_hall *hall, unsigned target)
{
    int error = 0;
    struct hc_cell_handle *best;
    unsigned waiting = count_waiting(hall, &best);
    if (waiting > target / 2)
        return;
    /* All at once: on cgroup v1 their attaches then share one grace period, during which no process anywhere
     * can fork. */
    for (; error == 0 && waiting < target; waiting++)
        (void)ask_for_cell(hall, &make_empty, &error);
}

int hc_hall_take_cell(struct hc_hall *hall, struct hc_cell_handle **ret_cell, bool *ret_made_ahead,
                      struct hc_setup_failure *ret_failure)
{
    int error = 0;
    struct hc_cell_handle *cell;
    (void)count_waiting(hall, &cell);
    *ret_made_ahead = cell != NULL;
    if (cell == NULL)
        cell = ask_for_cell(hall, &make_empty, &error);
    if (cell == NULL)
        return error;
    cell->in_use = true;
    while (!cell->made) {
        struct hc_event event;
        error = hc_hall_next(hall, cell, &event, NULL, NULL, END_TIMEOUT_MS);
        if (error < 0) {
            *ret_failure = (struct hc_setup_failure){.stage = HC_STAGE_HALL_KEEPER, .error = error};
            return HC_SETUP_FAILED;
        }
        if (event.kind == HC_EVENT_FAILED) {
            *ret_failure = (struct hc_setup_failure){
                .stage = event.stage < HC_STAGE_COUNT ? (enum hc_stage)event.stage : HC_STAGE_NONE,
                .error = event.error};
            /* The keeper clears the slot by itself; wait for that, so that the count of leftovers is known.
             */
            while (hc_hall_next(hall, cell, &event, NULL, NULL, END_TIMEOUT_MS) == 0 &&
                   event.kind != HC_EVENT_DESTROYED)
                continue;
            close_handle(cell);
            return HC_SETUP_FAILED;
        }
    }
    *ret_cell = cell;
    return 0;
}

int hc_hall_end_cell(struct hc_hall *hall, struct hc_cell_handle *cell, struct hc_residue *ret_residue,
                     uint64_t *ret_calls_omitted)
{
    struct hc_event event = {0};
    struct hc_request request = {.op = HC_OP_DESTROY, .slot = cell->slot};
    uint64_t late = 0;
    hc_close_fd(&cell->working_folder);
    hc_close_fd(&cell->report);
    int error = hc_hall_request(hall, &request, NULL, 0);
    uint64_t deadline_us = hc_now_us() + END_TIMEOUT_MS * 1000ull;
    while (error == 0) {
        error = hc_hall_next(hall, cell, &event, NULL, NULL, END_TIMEOUT_MS);
        if (error == 0 && event.kind == HC_EVENT_DESTROYED)
            break;
        if (error == 0 && event.kind == HC_EVENT_CALL)
            late++; /* told when nobody listened any more: counted all the same */
        if (error == 0 && hc_now_us() > deadline_us)
            error = -ETIMEDOUT;
    }
    if (error < 0)
        return error; /* the slot stays in use: nobody gets a cell that may still live */
    *ret_residue = event.u.residue;
    *ret_calls_omitted = event.calls_omitted + late;
    close_handle(cell);
    return 0;
}

/* ---- warm ---- */

enum hc_warm_state hc_hall_host(const struct hc_hall *hall, uint32_t place,
                                struct hc_setup_failure *ret_failure)
{
    if (ret_failure != NULL)
        *ret_failure = hall->hosts[place].failure;
    return hall->hosts[place].state;
}

int hc_hall_ask_host(struct hc_hall *hall, uint32_t place, const struct hc_request *limits,
                     const int fds[HC_START_FDS])
{
    struct hc_request request = *limits;
    request.op = HC_OP_HOST;
    request.slot = place;
    int error = hc_hall_request(hall, &request, fds, HC_START_FDS);
    if (error == 0)
        hall->hosts[place].state = HC_WARM_STARTING;
    return error;
}

int hc_hall_end_host(struct hc_hall *hall, uint32_t place)
{
    struct hc_request request = {.op = HC_OP_HOST_END, .slot = place};
    return hc_hall_request(hall, &request, NULL, 0);
}

int hc_hall_read(struct hc_hall *hall, int wait_ms)
{
    static __thread struct hc_event event;
    int error = hc_hall_next(hall, NULL, &event, NULL, NULL, wait_ms);
    while (error == 0)
        error = hc_hall_next(hall, NULL, &event, NULL, NULL, 0);
    return error == -ETIMEDOUT ? 0 : error;
}

static unsigned count_warm(const struct hc_hall *hall, uint32_t place, bool made)
{
    unsigned count = 0;
    for (uint32_t slot = 0; slot < HC_CELL_MAX; slot++) {
        const struct hc_cell_handle *cell = &hall->cells[slot];
        count += cell->warm && cell->host == place && !cell->in_use && cell->asked_at_us != 0 &&
                 (cell->made || !made);
    }
    return count;
}

unsigned hc_hall_warm_ready(const struct hc_hall *hall, uint32_t place)
{
    return count_warm(hall, place, true);
}

void hc_hall_make_warm(struct hc_hall *hall, uint32_t place, unsigned target)
{
    int error = 0;
    struct hc_request request = {.op = HC_OP_MAKE_WARM, .host = place};
    for (unsigned waiting = count_warm(hall, place, false); error == 0 && waiting < target; waiting++)
        (void)ask_for_cell(hall, &request, &error);
}

static struct hc_cell_handle *oldest_warm(struct hc_hall *hall, uint32_t place)
{
    struct hc_cell_handle *best = NULL;
    for (uint32_t slot = 0; slot < HC_CELL_MAX; slot++) {
        struct hc_cell_handle *cell = &hall->cells[slot];
        if (cell->warm && cell->host == place && !cell->in_use && cell->made &&
            (best == NULL || cell->made_at_us < best->made_at_us))
            best = cell;
    }
    return best;
}

int hc_hall_take_warm(struct hc_hall *hall, uint32_t place, int wait_ms, uint64_t max_age_us,
                      struct hc_cell_handle **ret_cell)
{
    uint64_t deadline_us = hc_now_us() + (uint64_t)wait_ms * 1000;
    for (;;) {
        int error = hc_hall_read(hall, 0);
        if (error < 0)
            return error;
        struct hc_cell_handle *cell = oldest_warm(hall, place);
        if (cell != NULL && hc_now_us() - cell->made_at_us <= max_age_us) {
            cell->in_use = true;
            *ret_cell = cell;
            return 0;
        }
        if (cell != NULL) {
            struct hc_residue residue;
            uint64_t omitted;
            cell->in_use = true;
            if ((error = hc_hall_end_cell(hall, cell, &residue, &omitted)) < 0)
                return error;
            continue;
        }
        uint64_t now_us = hc_now_us();
        if (now_us >= deadline_us || hall->hosts[place].state == HC_WARM_LOST ||
            hall->hosts[place].state == HC_WARM_NONE)
            return -EAGAIN;
        if ((error = hc_hall_read(hall, (int)((deadline_us - now_us + 999) / 1000))) < 0)
            return error;
    }
}
