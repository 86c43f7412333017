/* Acceptance: predicates over what a dead run left. Pure but for reading the captured bytes. */
#ifndef HC_FLOW_ACCEPT_H
#define HC_FLOW_ACCEPT_H

#include "flow/job.h"

/* Checks the form of a list of predicates; HC_REFUSED names the wrong one. */
int hc_predicates_check(const json_t *predicates, struct hc_refusal *refusal);

/* From what an item of a data set expects (null, one predicate, or a list) to a checked list, a new
 * reference; NULL when it is of a kind that is not judged. A number without a tolerance gets 0.1 % there. */
int hc_predicates_of_expect(const json_t *expect, json_t **ret_predicates, struct hc_refusal *refusal);

struct hc_accept_cells;

/* Fills job->acceptance from what the run left. `cells`: how kinds that need a second cell get one; NULL:
 * they can't be judged. */
int hc_accept(struct hc_job *job, const json_t *predicates, const struct hc_accept_cells *cells);

/* Whether a program of a language of its own belongs to a predicate. */
bool hc_predicates_bring_programs(const json_t *predicates);

#endif
