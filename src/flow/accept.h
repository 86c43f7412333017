/* Acceptance: predicates over what a dead run left. Pure but for reading the captured bytes. */
#ifndef HC_FLOW_ACCEPT_H
#define HC_FLOW_ACCEPT_H

#include "flow/job.h"

/* Checks the form of a list of predicates; HC_REFUSED names the wrong one. */
int hc_predicates_check(const json_t *predicates, struct hc_refusal *refusal);

/* Fills job->acceptance from the job's captured output and verdict. */
int hc_accept(struct hc_job *job, const json_t *predicates);

#endif
