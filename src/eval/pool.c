#include "eval/pool.h"

#include "base/cleanup.h"
#include "eval/frame.h"
#include "eval/result.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define TRIES_MAX 2

int hc_pool_init(struct hc_pool *pool, unsigned count, const struct hc_worker_setup *setup)
{
    *pool = (struct hc_pool){.setup = *setup, .count = count};
    pool->workers = calloc(count, sizeof *pool->workers);
    if (pool->workers == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++)
        pool->workers[i].socket = -1;
    return 0;
}

static void forget_item(struct hc_pool *pool, struct hc_pool_worker *worker)
{
    free(worker->line);
    free(worker->id);
    free(worker->language);
    free(worker->suite);
    worker->line = worker->id = worker->language = worker->suite = NULL;
    pool->busy -= worker->busy ? 1 : 0;
    worker->busy = false;
}

static void reap(struct hc_pool_worker *worker)
{
    hc_close_fd(&worker->socket);
    while (worker->pid > 0 && waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    worker->pid = 0;
}

/* A worker leads a process group of its own: a Ctrl-C at the terminal reaches the parent only, which then
 * cancels in order. It must not hold the parent's ends of the other sockets, or those would never see them
 * closed. */
static int start(struct hc_pool *pool, struct hc_pool_worker *worker)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0);
        (void)close(ends[0]);
        for (unsigned i = 0; i < pool->count; i++)
            hc_close_fd(&pool->workers[i].socket);
        _exit(hc_eval_worker(ends[1], &pool->setup));
    }
    int error = pid < 0 ? -errno : 0;
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return error;
    }
    worker->pid = pid;
    worker->socket = ends[0];
    return 0;
}

static int send_item(struct hc_pool *pool, struct hc_pool_worker *worker)
{
    int error = worker->pid == 0 ? start(pool, worker) : 0;
    worker->tries++;
    if (error < 0)
        return error;
    error = hc_frame_send(worker->socket, worker->line, worker->line_bytes);
    return error == -ECONNRESET ? 0 : error; /* it died: seen when its answer is awaited */
}

int hc_pool_give(struct hc_pool *pool, const char *line, size_t bytes, const char *id, const char *language,
                 const char *suite)
{
    struct hc_pool_worker *worker = pool->workers;
    while (worker->busy)
        worker++;
    worker->line = malloc(bytes + 1);
    worker->id = strdup(id);
    worker->language = strdup(language);
    worker->suite = suite != NULL ? strdup(suite) : NULL;
    if (worker->line == NULL || worker->id == NULL || worker->language == NULL ||
        (suite != NULL && worker->suite == NULL))
        return -ENOMEM;
    memcpy(worker->line, line, bytes);
    worker->line_bytes = bytes;
    worker->busy = true;
    worker->tries = 0;
    pool->busy++;
    return send_item(pool, worker);
}

static int answer_of(struct hc_pool_worker *worker, json_t **ret_result)
{
    hc_autofree char *text = NULL;
    size_t bytes = 0;
    int error = hc_frame_receive(worker->socket, &text, &bytes);
    if (error < 0)
        return error;
    *ret_result = json_loadb(text, bytes, JSON_ALLOW_NUL, NULL);
    return *ret_result != NULL ? 0 : -EPROTO;
}

int hc_pool_take(struct hc_pool *pool, unsigned index, json_t **ret_result, char **ret_line,
                 size_t *ret_bytes)
{
    struct hc_pool_worker *worker = &pool->workers[index];
    *ret_result = NULL;
    int error = answer_of(worker, ret_result);
    if (error < 0) {
        if (worker->pid > 0)
            (void)kill(worker->pid, SIGKILL);
        reap(worker);
        if (!worker->busy)
            return 0;
        if (worker->tries < TRIES_MAX)
            return send_item(pool, worker);
        *ret_result = hc_eval_result_fault(worker->id, worker->language, worker->suite,
                                           "the worker died twice over this item");
        if (*ret_result == NULL)
            return -ENOMEM;
    }
    *ret_line = worker->line;
    *ret_bytes = worker->line_bytes;
    worker->line = NULL;
    forget_item(pool, worker);
    return 0;
}

void hc_pool_cancel(struct hc_pool *pool, bool by_force)
{
    for (unsigned i = 0; i < pool->count; i++) {
        struct hc_pool_worker *worker = &pool->workers[i];
        worker->tries = TRIES_MAX; /* nothing begins again */
        if (worker->pid > 0)
            (void)(by_force ? kill(worker->pid, SIGKILL) : shutdown(worker->socket, SHUT_WR));
    }
}

void hc_pool_done(struct hc_pool *pool)
{
    for (unsigned i = 0; i < pool->count && pool->workers != NULL; i++)
        hc_close_fd(&pool->workers[i].socket);
    for (unsigned i = 0; i < pool->count && pool->workers != NULL; i++) {
        reap(&pool->workers[i]);
        forget_item(pool, &pool->workers[i]);
    }
    free(pool->workers);
    *pool = (struct hc_pool){0};
}
