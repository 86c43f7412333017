/* One worker of a handle: its engine, its store, the runs it is given. Belongs to one thread. */
#ifndef HC_API_WORKER_H
#define HC_API_WORKER_H

#include "flow/engine.h"
#include "store/store.h"

struct hc_api_worker {
    struct hc_engine *engine;
    struct hc_store *store;
    int cancel_fd; /* readable: what runs is to end. Not owned */
};

/* 0; HC_BAD_INPUT or negative errno, `message` says what. */
int hc_api_worker_open(struct hc_api_worker *worker, const struct hc_engine_options *options,
                       char message[256]);
void hc_api_worker_close(struct hc_api_worker *worker);

/* Runs a request. The record's text, in new memory, also when the request is refused; negative errno. */
int hc_api_worker_run(struct hc_api_worker *worker, const char *request, char **ret_record);

#endif
