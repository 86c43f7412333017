/* Limits of an item of a data set: the names of the record, and those with another unit that data sets use.
 */
#ifndef HC_EVAL_LIMITS_H
#define HC_EVAL_LIMITS_H

#include "cell/spec.h"

#include <jansson.h>

/* A limit as on the command line; HC_REFUSED says what is wrong with it. */
int hc_eval_limit_text(struct hc_spec *spec, enum hc_limit limit, const char *text,
                       struct hc_refusal *refusal);

/* Sets every limit of the object; `spec` may be NULL: check only. */
int hc_eval_limits(struct hc_spec *spec, const json_t *limits, struct hc_refusal *refusal);

/* The limit that a command line option sets, or -1. */
int hc_eval_limit_of_option(const char *option);

#endif
