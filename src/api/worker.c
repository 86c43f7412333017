#include "api/worker.h"

#include "base/cleanup.h"
#include "eval/item.h"
#include "flow/keep.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int hc_api_worker_open(struct hc_api_worker *worker, const struct hc_engine_options *options,
                       char message[256])
{
    struct hc_problem problem = {0};
    int error = hc_engine_open(options, &worker->engine, &problem);
    if (error == HC_BAD_INPUT)
        (void)snprintf(message, 256, "%.80s:%u:%u: %.140s", problem.file, problem.line, problem.column,
                       problem.message);
    else if (error == 0 && options->store != NULL)
        error = hc_store_open(options->store, &worker->store, message);
    if (error < 0 && message[0] == '\0')
        (void)snprintf(message, 256, "%s", strerror(-error));
    return error;
}

void hc_api_worker_close(struct hc_api_worker *worker)
{
    hc_engine_close(worker->engine);
    hc_store_close(worker->store);
}

/* A request is an item of a data set whose id may be missing: the answer is handed to who asked. */
static int read_request(const char *request, struct hc_eval_item *item, struct hc_refusal *refusal)
{
    json_error_t wrong;
    json_t *root = json_loads(request, JSON_REJECT_DUPLICATES, &wrong);
    hc_autofree char *text = NULL;
    if (json_is_object(root) && json_object_get(root, "id") == NULL &&
        json_object_set_new(root, "id", json_string("run")) == 0)
        text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    const char *line = text != NULL ? text : request; /* what is malformed is refused with its place */
    return hc_eval_item_read(line, strlen(line), item, refusal);
}

/* Whoever writes requests may not read the files of this process: content is given, never a path. */
static int refuse_paths(const struct hc_eval_item *item, struct hc_refusal *refusal)
{
    size_t i;
    json_t *file;
    json_array_foreach(json_object_get(item->root, "files"), i, file)
    {
        if (json_object_get(file, "path") != NULL)
            return hc_refuse(refusal, HC_CAUSE_FIELD, "files", "files: path: give text or base64 instead");
    }
    return 0;
}

static int run_item(struct hc_api_worker *worker, const struct hc_eval_item *item, struct hc_job *job)
{
    struct hc_live live = {.out = -1, .err = -1, .cancel_fd = worker->cancel_fd};
    struct hc_spec defaults;
    int error = hc_spec_init(&defaults);
    if (error == 0)
        error = refuse_paths(item, &job->refusal);
    if (error == 0)
        error = hc_eval_item_spec(item, &defaults, -1, &job->spec, &job->refusal);
    hc_spec_done(&defaults);
    return error == 0 ? hc_engine_run(worker->engine, job, &live, item->predicates, NULL) : error;
}

int hc_api_worker_run(struct hc_api_worker *worker, const char *request, char **ret_record)
{
    struct hc_eval_item item = {0};
    struct hc_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    job->spec.stdin_fd = -1;
    hc_job_begin(job);
    int error = read_request(request, &item, &job->refusal);
    if (error == 0)
        error = run_item(worker, &item, job);
    if (error == HC_REFUSED) {
        hc_job_refuse(job);
        error = job->spec.profile == NULL ? hc_spec_init(&job->spec) : 0;
    }
    json_t *record = error == 0 ? hc_record_keep(job, item.predicates, worker->store) : NULL;
    char *text = record != NULL ? json_dumps(record, JSON_COMPACT) : NULL;
    json_decref(record);
    hc_eval_item_done(&item);
    hc_job_done(job);
    free(job);
    if (text == NULL)
        return error < 0 ? error : -ENOMEM;
    *ret_record = text;
    return 0;
}
