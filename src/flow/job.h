/* Everything known of one request on its way to a record. */
#ifndef HC_FLOW_JOB_H
#define HC_FLOW_JOB_H

#include "base/redact.h"
#include "cell/spec.h"
#include "flow/classify.h"
#include "flow/collect.h"
#include "flow/diagnose.h"
#include "flow/findings.h"
#include "flow/gate.h"

#include "policy/policy.h"

#include <jansson.h>

struct hc_stage_result { /* of a compile step */
    bool ran;
    struct hc_outcome outcome;
    struct hc_verdict verdict;
};

struct hc_acceptance {
    enum { HC_NOT_REQUESTED, HC_ACCEPTED, HC_REJECTED, HC_ACCEPT_ERROR } status;
    json_t *predicates;
};

struct hc_job {
    char id[40];
    const char *submitter; /* not owned; NULL: nobody said */
    char created_at[40], cell_created_at[40], cell_destroyed_at[40];
    uint64_t began_us;
    /* For who has to be done in time: all commands of the job together, judging included, may take `whole_us`
     * from the first one's start, and none goes on after `latest_us` (hc_now_us). 0: no such bound. */
    uint64_t whole_us, latest_us, first_command_us;
    struct hc_spec spec;
    struct hc_effective effective;
    bool gated;
    struct hc_refusal refusal; /* of state refused */
    char language[32], runtime_version[64], environment_sha256[65];
    char program_name[256];
    char code_sha256[65];
    struct hc_outcome outcome;
    struct hc_stage_result compile;
    struct hc_verdict verdict;
    struct hc_artifact_rules artifact_rules; /* as hc_job_begin sets it: the defaults */
    struct hc_collection collection;
    struct hc_diagnosis diagnosis;
    struct hc_acceptance acceptance;
    bool judges; /* a checker: its program and its files are not those of a run that somebody else wrote */
    const struct hc_policy *policy; /* not owned; NULL: none was settled */
    struct hc_findings *findings;   /* NULL: the program was not looked at */
    char export_message[256];
    bool export_wanted, exported;
    uint64_t gate_us, check_us, compile_us, accept_us, collect_us;
    const char *fixed[8]; /* what --deterministic fixed */
    unsigned fixed_count;
    struct hc_redact_rules *redact; /* what is scrubbed from the record; a profile may add to it */
    char request_sha256[65];        /* digest of the document by which the run can be replayed; "": none */
    bool keep_all;                  /* contents of artifacts are kept whether exported or not */
    struct hc_kept_file {           /* contents of artifacts, for the store or for a comparison */
        size_t artifact;            /* index in the collection */
        uint8_t *data;
        size_t bytes;
    } * kept;
    size_t kept_count;
};

void hc_job_done(struct hc_job *job);

/* The record of a job, without `chain`: a new reference, or NULL without memory. */
json_t *hc_record_make(const struct hc_job *job);

#endif
