#include "flow/engine_inside.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void hc_job_begin(struct hc_job *job)
{
    uint8_t random[10];
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        memset(random, 0, sizeof random);
    char *at = job->id + snprintf(job->id, sizeof job->id, "run-");
    for (size_t i = 0; i < sizeof random; i++) {
        *at++ = digits[random[i] & 31];
        *at++ = digits[(random[i] >> 3 ^ random[(i + 3) % sizeof random]) & 31];
    }
    *at = '\0';
    hc_rfc3339_now(job->created_at);
    job->began_us = hc_now_us();
    job->verdict = (struct hc_verdict){.exit_code = -1};
    job->compile.verdict.exit_code = -1;
    job->outcome.layers.missing = -1;
    job->artifact_rules = hc_artifact_rules_default();
}

void hc_job_refuse(struct hc_job *job)
{
    job->verdict = (struct hc_verdict){
        .state = HC_STATE_REFUSED, .status = HC_STATUS_REFUSED, .cause = job->refusal.cause, .exit_code = -1};
}

int hc_job_fault(struct hc_job *job, enum hc_stage stage, int error)
{
    job->verdict = (struct hc_verdict){
        .state = HC_STATE_FAULT, .status = HC_STATUS_FAULT, .cause = HC_CAUSE_HOST, .exit_code = -1};
    job->outcome.failure.stage = stage;
    job->outcome.failure.error = error;
    (void)snprintf(job->refusal.message, sizeof job->refusal.message, "%s: %s", hc_stage_names[stage],
                   strerror(-error));
    return HC_REFUSED;
}
