/* What a profile can say of files that a run leaves: types that may leave, what they are searched for, and
 * which findings keep them in. The rows of all findings, since their names are words of profiles. */
#ifndef HC_POLICY_ARTIFACTS_H
#define HC_POLICY_ARTIFACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A word for types: media types, or groups of them that end in an asterisk. NULL: no such word; a media type
 * stands for itself. *ret_patterns ends with a NULL. */
const char *const *hc_artifact_types_of(const char *word);
/* Whether a word may stand among `types`: one of those, or a media type. */
bool hc_artifact_type_ok(const char *word);
/* Findings of a word of `scan`, bit per finding; 0: no such word. */
uint64_t hc_artifact_scan_of(const char *word);
/* All words, for messages: "csv, json, ...". */
void hc_artifact_words(bool types, char *out, size_t size);

#endif
