/* What runs may do: a profile, below the host's ceiling.
 *
 * The ceiling bounds every limit and grant. A profile has a default and a maximum per limit, the maximum at
 * most the ceiling's. A request may choose anything up to the profile's maximum and can only take grants
 * away. */
#ifndef HC_POLICY_POLICY_H
#define HC_POLICY_POLICY_H

#include "base/problem.h"
#include "cell/spec.h"
#include "cell/words.h"

#include <jansson.h>

enum hc_risk { HC_RISK_LOW, HC_RISK_MEDIUM, HC_RISK_HIGH };
extern const char *const hc_risk_names[3];

/* Where an effective value comes from. */
enum hc_origin { HC_ORIGIN_BUILT_IN, HC_ORIGIN_CEILING, HC_ORIGIN_PROFILE };
extern const char *const hc_origin_names[3];

struct hc_names {
    char **items;
    size_t count;
    bool given; /* the word stands in the profile: an empty list is one too */
};

struct hc_policy {
    char *name;  /* of the profile */
    char *path;  /* of its file; NULL: none */
    char *title; /* may be NULL */
    uint64_t version;
    enum hc_risk risk;
    struct {
        uint64_t default_value, max_value;
        enum hc_origin default_origin, max_origin;
    } limits[HC_LIMIT_COUNT];
    struct hc_names modules_allow, modules_deny, calls_deny, dependencies_allow;
    bool subprocesses; /* false: the gate refuses programs that start some, as far as it can see them */
    bool no_files;     /* inputs are refused */
    bool cold;         /* no warm cells */
    bool deterministic;
    bool injection_refuses; /* obvious injection patterns are refusals, not advice */
    enum hc_grade min_grade;
    uint64_t source_bytes_max, nesting_max, attempts;
    /* Data for others: what may leave, and what is scrubbed. */
    struct hc_names artifact_types, artifact_scan, redact;
    json_t *document; /* canonical form of all that is effective */
    char sha256[65];
};

/* The profile of that name below the folders (NAME.yaml), or the file if `name` holds a slash or ends in
 * .yaml or .json, below the ceiling of `ceiling_path` (absent: the built-in one). Outcome: HC_BAD_INPUT, with
 * file, line and column. Errors: -ENOENT (no such profile), -ENOMEM, what reading says. */
int hc_policy_load(const char *name, const char *const *folders, size_t folder_count,
                   const char *ceiling_path, struct hc_policy **ret_policy, struct hc_problem *problem);
/* The same from bytes; for tests and fuzzing. `ceiling` may be NULL. */
int hc_policy_read(const char *name, const char *data, size_t n, const char *ceiling, size_t ceiling_n,
                   struct hc_policy **ret_policy, struct hc_problem *problem);
void hc_policy_done(struct hc_policy *policy);

#define HC_POLICY_CEILING "/etc/hotcell/ceiling.yaml"
#define HC_POLICY_FOLDER  "/etc/hotcell/profiles"

/* Whether programs have to be read before they may run. */
bool hc_policy_reads_programs(const struct hc_policy *policy);

/* ---- the static gate: facts in, findings out ---- */

enum hc_severity { HC_SEVERITY_ADVICE, HC_SEVERITY_REFUSAL };

struct hc_finding {
    const char *rule; /* "module-not-allowed", … */
    enum hc_cause cause;
    enum hc_severity severity;
    unsigned line, column;
    char name[128];
    char message[320];
};

#define HC_FINDINGS_MAX 100

struct hc_findings {
    struct hc_finding items[HC_FINDINGS_MAX];
    size_t count, omitted;
};

/* Judges the facts that a runtime's fact finder printed about a program: a JSON list of [kind, name, line,
 * column], kind one of import, call, text; or {"syntax_error": true}. 0, or -EBADMSG when that is not their
 * form (they come out of a cell). */
int hc_policy_judge(const struct hc_policy *policy, const char *facts, size_t n,
                    struct hc_findings *ret_findings, bool *ret_syntax_error);
/* Without a fact finder: what can be said of any text. */
void hc_policy_judge_text(const struct hc_policy *policy, const uint8_t *code, size_t n,
                          struct hc_findings *findings);
/* The first finding that refuses; NULL: none. */
const struct hc_finding *hc_findings_refusal(const struct hc_findings *findings);

/* Whether a pinned dependency (name==version) is on the list; else the nearest allowed one, or NULL. */
bool hc_policy_allows_dependency(const struct hc_policy *policy, const char *requirement,
                                 const char **ret_nearest);

#endif
