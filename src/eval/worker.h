/* A worker of an evaluation: a process with an engine of its own that runs the items it is sent, one after
 * the other. */
#ifndef HC_EVAL_WORKER_H
#define HC_EVAL_WORKER_H

#include "cell/spec.h"

struct hc_worker_setup {
    const struct hc_spec *defaults;
    const char *store;    /* NULL: no records */
    const char *runtimes; /* one more folder of manifests; NULL: none */
    int folder;           /* below which the files of items lie */
};

/* Serves `socket` until its other side closes; that also cancels the run of the moment. Returns the exit code
 * of the process. */
int hc_eval_worker(int socket, const struct hc_worker_setup *setup);

#endif
