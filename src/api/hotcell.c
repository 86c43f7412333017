/* The handle: a queue of requests and threads that work through it, each with an engine of its own. */
#include <hotcell.h>

#include "api/worker.h"
#include "base/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#define WORKERS_MAX     256
#define WAITING_DEFAULT 1024

enum state { WAITING, RUNNING, DONE };

struct ticket {
    uint64_t number;
    enum state state;
    bool fetching; /* one caller waits for it already: -EBUSY for others */
    char *request, *record;
    int error;
    struct ticket *next;
};

struct hotcell {
    pthread_mutex_t lock;
    pthread_cond_t queued, ended;
    struct ticket *first, **last;
    uint64_t numbers;
    unsigned held, waiting_max, workers, ready;
    bool closing;
    int error, cancel_fd;
    char message[256];
    char *programs, *share, *store;
    pthread_t threads[WORKERS_MAX];
};

/* Opening reads places and manifests through storage that the process has once. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static struct ticket *next_waiting(struct hotcell *handle)
{
    struct ticket *ticket = handle->first;
    while (ticket != NULL && ticket->state != WAITING)
        ticket = ticket->next;
    return ticket;
}

static void remove_ticket(struct hotcell *handle, struct ticket *ticket)
{
    struct ticket **at = &handle->first;
    while (*at != ticket)
        at = &(*at)->next;
    *at = ticket->next;
    if (handle->last == &ticket->next)
        handle->last = at;
    handle->held--;
    free(ticket->request);
    free(ticket->record);
    free(ticket);
}

/* Called with the lock held. */
static void work(struct hotcell *handle, struct hc_api_worker *worker)
{
    struct ticket *ticket;
    while (!handle->closing) {
        ticket = next_waiting(handle);
        if (ticket == NULL) {
            (void)pthread_cond_wait(&handle->queued, &handle->lock);
            continue;
        }
        ticket->state = RUNNING;
        (void)pthread_mutex_unlock(&handle->lock);
        int error = hc_api_worker_run(worker, ticket->request, &ticket->record);
        (void)pthread_mutex_lock(&handle->lock);
        ticket->error = error;
        ticket->state = DONE;
        (void)pthread_cond_broadcast(&handle->ended);
    }
}

static void *worker_main(void *argument)
{
    struct hotcell *handle = argument;
    struct hc_api_worker worker = {.cancel_fd = handle->cancel_fd};
    struct hc_engine_options options = {
        .programs = handle->programs, .share = handle->share, .store = handle->store, .cells_ahead = 2};
    char message[256] = "";
    (void)pthread_mutex_lock(&opening);
    int error = hc_api_worker_open(&worker, &options, message);
    (void)pthread_mutex_unlock(&opening);
    (void)pthread_mutex_lock(&handle->lock);
    handle->ready++;
    if (error != 0 && handle->error == 0) {
        handle->error = error;
        memcpy(handle->message, message, sizeof message);
    }
    (void)pthread_cond_broadcast(&handle->ended);
    if (error == 0)
        work(handle, &worker);
    (void)pthread_mutex_unlock(&handle->lock);
    hc_api_worker_close(&worker);
    return NULL;
}

/* Signals of the terminal are the caller's business, and its threads' alone. */
static int start_threads(struct hotcell *handle, unsigned wanted)
{
    sigset_t signals, before;
    int error = 0;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &signals, &before);
    while (error == 0 && handle->workers < wanted) {
        error = -pthread_create(&handle->threads[handle->workers], NULL, worker_main, handle);
        handle->workers += error == 0;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_mutex_lock(&handle->lock);
    while (handle->ready < handle->workers)
        (void)pthread_cond_wait(&handle->ended, &handle->lock);
    error = error != 0 ? error : handle->error;
    (void)pthread_mutex_unlock(&handle->lock);
    return error;
}

static int copy(char **slot, const char *text)
{
    *slot = text != NULL ? strdup(text) : NULL;
    return text != NULL && *slot == NULL ? -ENOMEM : 0;
}

static int prepare(struct hotcell *handle, const struct hotcell_options *options)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&handle->lock, NULL);
    (void)pthread_cond_init(&handle->queued, NULL);
    (void)pthread_cond_init(&handle->ended, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    handle->last = &handle->first;
    handle->waiting_max = options->waiting_max != 0 ? options->waiting_max : WAITING_DEFAULT;
    handle->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (handle->cancel_fd < 0)
        return -errno;
    int error = copy(&handle->programs, options->programs != NULL ? options->programs : HC_API_PROGRAMS);
    if (error == 0)
        error = copy(&handle->share, options->share != NULL ? options->share : HC_API_SHARE);
    return error == 0 ? copy(&handle->store, options->store) : error;
}

int hotcell_open(const struct hotcell_options *options, struct hotcell **ret_handle, char message[256])
{
    struct hotcell_options defaults = {.size = sizeof defaults};
    char unused[256];
    if (message == NULL)
        message = unused;
    if (ret_handle == NULL)
        return -EINVAL;
    if (options == NULL)
        options = &defaults;
    if (options->size != sizeof *options || options->workers > WORKERS_MAX) {
        (void)snprintf(message, 256, "%s",
                       options->size != sizeof *options ? "size: is not that of struct hotcell_options"
                                                        : "workers: must be at most 256");
        return HOTCELL_BAD_INPUT;
    }
    struct hotcell *handle = calloc(1, sizeof *handle);
    if (handle == NULL)
        return -ENOMEM;
    int error = prepare(handle, options);
    if (error == 0)
        error = start_threads(handle, options->workers != 0 ? options->workers : 1);
    if (error == 0) {
        *ret_handle = handle;
        return 0;
    }
    (void)snprintf(message, 256, "%s", handle->message[0] != '\0' ? handle->message : strerror(-error));
    hotcell_close(handle);
    return error;
}

void hotcell_close(struct hotcell *handle)
{
    if (handle == NULL)
        return;
    (void)pthread_mutex_lock(&handle->lock);
    handle->closing = true;
    (void)pthread_cond_broadcast(&handle->queued);
    (void)pthread_mutex_unlock(&handle->lock);
    if (handle->cancel_fd >= 0)
        (void)eventfd_write(handle->cancel_fd, 1);
    for (unsigned i = 0; i < handle->workers; i++)
        (void)pthread_join(handle->threads[i], NULL);
    while (handle->first != NULL)
        remove_ticket(handle, handle->first);
    hc_close_fd(&handle->cancel_fd);
    (void)pthread_cond_destroy(&handle->queued);
    (void)pthread_cond_destroy(&handle->ended);
    (void)pthread_mutex_destroy(&handle->lock);
    free(handle->programs);
    free(handle->share);
    free(handle->store);
    free(handle);
}

int hotcell_submit(struct hotcell *handle, const char *request, uint64_t *ret_ticket)
{
    if (handle == NULL || request == NULL || ret_ticket == NULL)
        return -EINVAL;
    struct ticket *ticket = calloc(1, sizeof *ticket);
    char *text = strdup(request);
    if (ticket == NULL || text == NULL) {
        free(ticket);
        free(text);
        return -ENOMEM;
    }
    ticket->request = text;
    (void)pthread_mutex_lock(&handle->lock);
    bool full = handle->held >= handle->waiting_max;
    if (!full) {
        *ret_ticket = ticket->number = ++handle->numbers;
        *handle->last = ticket;
        handle->last = &ticket->next;
        handle->held++;
        (void)pthread_cond_signal(&handle->queued);
    }
    (void)pthread_mutex_unlock(&handle->lock);
    if (full) {
        free(text);
        free(ticket);
    }
    return full ? HOTCELL_FULL : 0;
}

static struct timespec deadline(int timeout_ms)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += timeout_ms / 1000;
    at.tv_nsec += timeout_ms % 1000 * 1000000L;
    at.tv_sec += at.tv_nsec / 1000000000L;
    at.tv_nsec %= 1000000000L;
    return at;
}

int hotcell_wait(struct hotcell *handle, uint64_t ticket, int timeout_ms, char **ret_record)
{
    if (handle == NULL || ret_record == NULL)
        return -EINVAL;
    struct timespec until = deadline(timeout_ms > 0 ? timeout_ms : 0);
    int late = 0, error = 0;
    (void)pthread_mutex_lock(&handle->lock);
    struct ticket *found = handle->first;
    while (found != NULL && found->number != ticket)
        found = found->next;
    if (found == NULL || found->fetching) {
        (void)pthread_mutex_unlock(&handle->lock);
        return found == NULL ? -ENOENT : -EBUSY;
    }
    found->fetching = true;
    while (found->state != DONE && late == 0)
        late = timeout_ms < 0 ? pthread_cond_wait(&handle->ended, &handle->lock)
                              : pthread_cond_timedwait(&handle->ended, &handle->lock, &until);
    found->fetching = false;
    if (found->state == DONE) {
        error = found->error;
        if (error == 0)
            *ret_record = hc_take_pointer(&found->record);
        remove_ticket(handle, found);
    } else {
        error = HOTCELL_PENDING;
    }
    (void)pthread_mutex_unlock(&handle->lock);
    return error;
}

int hotcell_poll(struct hotcell *handle, uint64_t ticket, char **ret_record)
{
    return hotcell_wait(handle, ticket, 0, ret_record);
}

int hotcell_run(struct hotcell *handle, const char *request, char **ret_record)
{
    uint64_t ticket;
    if (ret_record == NULL)
        return -EINVAL;
    int error = hotcell_submit(handle, request, &ticket);
    return error == 0 ? hotcell_wait(handle, ticket, -1, ret_record) : error;
}

void hotcell_free(void *memory)
{
    free(memory);
}

const char *hotcell_version(void)
{
    return HC_VERSION;
}
