#include "eval/worker.h"

#include "base/cleanup.h"
#include "eval/frame.h"
#include "eval/item.h"
#include "eval/result.h"
#include "flow/engine.h"
#include "flow/keep.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CELLS_AHEAD 4
#define WARM_CELLS  3

struct worker {
    const struct hc_worker_setup *setup;
    struct hc_engine *engine;
    struct hc_store *store;
    int socket;
};

static int run_item(struct worker *worker, const struct hc_eval_item *item, json_t **ret_result)
{
    struct hc_job *job = calloc(1, sizeof *job);
    struct hc_live live = {.out = -1, .err = -1, .cancel_fd = worker->socket};
    if (job == NULL)
        return -ENOMEM;
    hc_job_begin(job);
    int error =
        hc_eval_item_spec(item, worker->setup->defaults, worker->setup->folder, &job->spec, &job->refusal);
    if (error == HC_REFUSED) {
        hc_job_refuse(job);
        error = 0;
    } else if (error == 0) {
        error = hc_engine_run(worker->engine, job, &live, item->predicates, NULL);
    }
    json_t *record = error == 0 ? hc_record_keep(job, item->predicates, worker->store) : NULL;
    *ret_result = record != NULL ? hc_eval_result(item, job, record) : NULL;
    json_decref(record);
    hc_job_done(job);
    free(job);
    return error < 0 ? error : *ret_result == NULL ? -ENOMEM : 0;
}

static int serve_one(struct worker *worker)
{
    hc_autofree char *line = NULL, *text = NULL;
    size_t bytes = 0;
    struct hc_eval_item item;
    struct hc_refusal refusal;
    json_t *result = NULL;
    int error = hc_frame_receive(worker->socket, &line, &bytes);
    if (error == 0)
        error = hc_eval_item_read(line, bytes, &item, &refusal);
    if (error != 0) /* the dispatcher sends good items only */
        return error > 0 ? -EPROTO : error;
    error = run_item(worker, &item, &result);
    hc_eval_item_done(&item);
    text = error == 0 ? json_dumps(result, JSON_COMPACT) : NULL;
    json_decref(result);
    if (error == 0 && text == NULL)
        error = -ENOMEM;
    return error == 0 ? hc_frame_send(worker->socket, text, strlen(text)) : error;
}

int hc_eval_worker(int socket, const struct hc_worker_setup *setup)
{
    struct worker worker = {.setup = setup, .socket = socket};
    struct hc_engine_options options = {.allow_layers = setup->defaults->allow_layers,
                                        .cells_ahead = CELLS_AHEAD,
                                        .warm_cells =
                                            setup->defaults->warmth != HC_WARMTH_COLD ? WARM_CELLS : 0,
                                        .warm_where_it_gains = true,
                                        .store = setup->store,
                                        .runtimes = setup->runtimes};
    struct hc_problem problem = {0};
    char message[256] = "";
    int error = hc_engine_open(&options, &worker.engine, &problem);
    if (error == 0 && setup->store != NULL)
        error = hc_store_open(setup->store, &worker.store, message);
    while (error == 0)
        error = serve_one(&worker);
    hc_engine_close(worker.engine);
    hc_store_close(worker.store);
    if (error != -ECONNRESET)
        (void)fprintf(stderr, "hotcell: a worker ends: %s\n",
                      message[0] != '\0' ? message
                      : error < 0        ? strerror(-error)
                                         : problem.message);
    return error == -ECONNRESET ? 0 : 1;
}
