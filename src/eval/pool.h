/* The workers of an evaluation, as their parent sees them. */
#ifndef HC_EVAL_POOL_H
#define HC_EVAL_POOL_H

#include "eval/worker.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#define HC_POOL_MAX 1024

struct hc_pool_worker {
    pid_t pid; /* 0: not there; made when an item comes */
    int socket;
    bool busy;
    unsigned tries; /* of the item */
    char *line, *id, *language, *suite;
    size_t line_bytes;
};

struct hc_pool {
    struct hc_worker_setup setup;
    struct hc_pool_worker *workers;
    unsigned count, busy;
};

int hc_pool_init(struct hc_pool *pool, unsigned count, const struct hc_worker_setup *setup);
/* Ends all workers, those that still run something with a cancellation, and waits for them. */
void hc_pool_done(struct hc_pool *pool);

/* Hands an item to an idle worker; the line is copied. */
int hc_pool_give(struct hc_pool *pool, const char *line, size_t bytes, const char *id, const char *language,
                 const char *suite);

/* The answer of a worker whose socket is readable. A worker that died is replaced and its item is tried once
 * more; after that it is a fault. `*ret_result` is NULL when the item runs again. With the result comes the
 * line of its item, for the caller to free. */
int hc_pool_take(struct hc_pool *pool, unsigned index, json_t **ret_result, char **ret_line,
                 size_t *ret_bytes);

/* Asks all busy workers to cancel. With `by_force` they are killed. */
void hc_pool_cancel(struct hc_pool *pool, bool by_force);

#endif
