/* What is said of a file that a run left: a row per finding, and which of them keep files from being
 * exported. */
#ifndef HC_FLOW_FINDINGS_H
#define HC_FLOW_FINDINGS_H

#include "flow/collect.h"

enum hc_artifact_finding {
    HC_FINDING_SYMLINK,
    HC_FINDING_FIFO,
    HC_FINDING_SOCKET,
    HC_FINDING_DEVICE,
    HC_FINDING_SEVERAL_NAMES,
    HC_FINDING_SPARSE,
    HC_FINDING_SET_ID_BITS,
    HC_FINDING_ODD_NAME,
    HC_FINDING_DECEPTIVE_NAME,
    HC_FINDING_OVER_ARTIFACT_SIZE,
    HC_FINDING_UNREADABLE,
    HC_FINDING_TYPE_NOT_ALLOWED,
    HC_FINDING_ENDING_DIFFERS,
    HC_FINDING_EXECUTABLE,
    HC_FINDING_SCRIPT,
    HC_FINDING_PICKLE,
    HC_FINDING_FORMULA,
    HC_FINDING_ACTIVE_CONTENT,
    HC_FINDING_FOREIGN_REFERENCE,
    HC_FINDING_XML_ENTITIES,
    HC_FINDING_HUGE_IMAGE,
    HC_FINDING_BROKEN_IMAGE,
    HC_FINDING_OFFICE_MACROS,
    HC_FINDING_ARCHIVE_ESCAPES,
    HC_FINDING_ARCHIVE_LINKS,
    HC_FINDING_ARCHIVE_BOMB,
    HC_FINDING_ARCHIVE_NESTED,
    HC_FINDING_ARCHIVE_ENCRYPTED,
    HC_FINDING_ARCHIVE_EXECUTABLE,
    HC_FINDING_ARCHIVE_BROKEN,
    HC_FINDING_NOT_INSPECTED,
    HC_FINDING_COUNT
};

struct hc_finding_row {
    const char *name, *message;
    bool blocks; /* the export, unless a profile says otherwise */
};
extern const struct hc_finding_row hc_findings[HC_FINDING_COUNT];

/* HC_FINDING_COUNT when there is none of that name. */
enum hc_artifact_finding hc_finding_named(const char *name, size_t n);

/* What a profile says of files. The defaults: any type, everything looked into, rows that block by
 * themselves. */
struct hc_artifact_rules {
    bool any_type;
    const char *const *types; /* words of hc_type_words that may leave; empty files always may. Not owned */
    size_t type_count;
    bool scan;
    uint64_t blocks; /* bit per finding */
};
struct hc_artifact_rules hc_artifact_rules_default(void);
struct hc_policy;
/* A profile can only tighten them. Its words are borrowed. */
struct hc_artifact_rules hc_artifact_rules_of(const struct hc_policy *policy);

/* Adds a finding once. */
void hc_find(struct hc_artifact *artifact, enum hc_artifact_finding finding);
bool hc_found(const struct hc_artifact *artifact, enum hc_artifact_finding finding);

/* Marks what the rules keep from being exported: types that are not allowed, findings that block. */
void hc_artifacts_judge(struct hc_collection *collection, const struct hc_artifact_rules *rules);

#endif
