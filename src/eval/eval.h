/* An evaluation: every item of a data set in a cell of its own, several at once, and what became of them all.
 */
#ifndef HC_EVAL_EVAL_H
#define HC_EVAL_EVAL_H

#include "cell/spec.h"
#include "eval/tally.h"

#include <jansson.h>

struct hc_eval_options {
    const char *file;     /* "-": standard input */
    const char *results;  /* NULL: none */
    const char *store;    /* folder; NULL: none */
    const char *runtimes; /* one more folder of manifests; NULL: none */
    const char *report;   /* page to be written; NULL: none */
    unsigned jobs;
    uint64_t limit; /* first items of the file; 0: all */
    json_t *only;   /* object whose names are the wanted ids; NULL: all */
    bool resume, progress;
    struct hc_spec defaults; /* limits and policy of items that do not say otherwise */
};

/* HC_REFUSED: nothing was begun, `refusal` says why. Negative errno: it could not be finished; the tally
 * tells how far it got. */
int hc_eval(const struct hc_eval_options *options, struct hc_tally *tally, struct hc_refusal *refusal);

#endif
