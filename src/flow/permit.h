/* Whether a request may run under its profile: what the gate needs besides numbers. */
#ifndef HC_FLOW_PERMIT_H
#define HC_FLOW_PERMIT_H

#include "flow/job.h"
#include "flow/second_cell.h"
#include "policy/policy.h"
#include "runtime/manifest.h"

#define HC_POLICIES_MAX 32

/* Profiles as they were read; one is read once. */
struct hc_policies {
    char *built_in; /* folder of the profiles that come with hotcell */
    struct {
        char *asked;
        struct hc_policy *policy;
    } items[HC_POLICIES_MAX];
    size_t count;
};

int hc_policies_init(struct hc_policies *policies, const char *share);
void hc_policies_done(struct hc_policies *policies);

/* Borrowed. HC_REFUSED: there is no such profile, or it is wrong: file, line and column are named. */
int hc_policies_get(struct hc_policies *policies, const char *name, const struct hc_policy **ret_policy,
                    struct hc_refusal *refusal);

/* Tightens the job's request to job->policy, or HC_REFUSED. */
int hc_permit_request(struct hc_job *job);

/* Has the program read by the runtime's fact finder, in a fresh cell, where the profile has lists; fills
 * job->findings. HC_REFUSED: one of them refuses. */
int hc_permit_program(struct hc_job *job, const struct hc_runtime *runtime, const char *share,
                      const struct hc_second_cell *second);

#endif
