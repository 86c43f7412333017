/* A task as a document, and what one attempt may learn of its failure. Pure. */
#ifndef HC_FLOW_TASK_H
#define HC_FLOW_TASK_H

#include "flow/task_budget.h"

#include <jansson.h>

/* The document that a store keeps: goal (may be NULL), budget, predicates (borrowed). */
json_t *hc_task_document(const char *goal, const struct hc_task_budget *budget, const json_t *predicates);

/* Of a task as hc_tasks_get gives it. */
struct hc_task_budget hc_task_budget_of(const json_t *task);
struct hc_task_spent hc_task_spent_of(const json_t *task);
/* "accepted", "open", or "spent": no attempt or no time is left. */
const char *hc_task_state(const json_t *task);
/* How long the next attempt may take; 0: none may begin. For hc_tasks_reserve. */
uint64_t hc_task_decide(const json_t *task);
/* Budget, use and what is left, as members of an answer. */
json_t *hc_task_summary(const json_t *task);

/* The necessary diagnosis: how the run ended, its error with line, the last lines of its output, which
 * predicates do not hold. Never what a predicate expected or got: that would be the answer. At most `bytes`
 * of text that the program has chosen. */
json_t *hc_task_feedback(const json_t *record, uint64_t bytes);

/* Whether an attempt of this record uses up one of the attempts: not when the request was wrong, or when the
 * host failed, for which the program can't help. */
bool hc_task_counts(const json_t *record);

#endif
