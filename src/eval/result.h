/* The line of results that is left of an item. */
#ifndef HC_EVAL_RESULT_H
#define HC_EVAL_RESULT_H

#include "eval/item.h"
#include "flow/job.h"

/* A view of the run's record. New reference, NULL without memory. */
json_t *hc_eval_result(const struct hc_eval_item *item, const struct hc_job *job, const json_t *record);

/* Of an item whose worker died: a fault. */
json_t *hc_eval_result_fault(const char *id, const char *language, const char *suite, const char *why);

#endif
