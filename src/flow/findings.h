/* What is said of files that a run left, and what keeps them from being exported. */
#ifndef HC_FLOW_FINDINGS_H
#define HC_FLOW_FINDINGS_H

#include "flow/collect.h"
#include "policy/artifacts.h"
#include "policy/policy.h"

/* What a profile says of files. The defaults: any type, everything looked into, rows that block by
 * themselves. */
#define HC_ARTIFACT_TYPES_MAX 128

struct hc_artifact_rules {
    const char *types[HC_ARTIFACT_TYPES_MAX]; /* not owned: "text/csv", or "image/" followed by an asterisk */
    size_t type_count;
    bool any_type;
    uint64_t scan;   /* bit per finding: what is looked for; the rest of what is found is left out */
    uint64_t blocks; /* bit per finding */
};
#define HC_FINDINGS_OF_CONTENT (~0ull << HC_FINDING_DECEPTIVE_NAME)
struct hc_artifact_rules hc_artifact_rules_default(void);
/* With what a profile says; `policy` has to live as long. */
struct hc_artifact_rules hc_artifact_rules_of(const struct hc_policy *policy);

/* Adds a finding once. */
void hc_find(struct hc_artifact *artifact, enum hc_artifact_finding finding);
bool hc_found(const struct hc_artifact *artifact, enum hc_artifact_finding finding);

/* Marks what the rules keep from being exported: types that are not allowed, findings that block. */
void hc_artifacts_judge(struct hc_collection *collection, const struct hc_artifact_rules *rules);

#endif
