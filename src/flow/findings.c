#include "flow/findings.h"

#include <string.h>

struct hc_artifact_rules hc_artifact_rules_default(void)
{
    struct hc_artifact_rules rules = {.any_type = true, .scan = ~0ull};
    for (int i = 0; i < HC_FINDING_COUNT; i++)
        rules.blocks |= hc_findings[i].blocks ? 1ull << i : 0;
    return rules;
}

static void add_type(struct hc_artifact_rules *rules, const char *type)
{
    if (rules->type_count < HC_ARTIFACT_TYPES_MAX)
        rules->types[rules->type_count++] = type;
}

struct hc_artifact_rules hc_artifact_rules_of(const struct hc_policy *policy)
{
    struct hc_artifact_rules rules = hc_artifact_rules_default();
    rules.any_type = !policy->artifact_types.given;
    for (size_t i = 0; i < policy->artifact_types.count; i++) {
        const char *const *patterns = hc_artifact_types_of(policy->artifact_types.items[i]);
        if (patterns == NULL)
            add_type(&rules, policy->artifact_types.items[i]);
        for (; patterns != NULL && *patterns != NULL; patterns++)
            add_type(&rules, *patterns);
    }
    if (policy->artifact_scan.given)
        rules.scan =
            ~HC_FINDINGS_OF_CONTENT | 1ull << HC_FINDING_TYPE_NOT_ALLOWED | 1ull << HC_FINDING_NOT_INSPECTED;
    for (size_t i = 0; i < policy->artifact_scan.count; i++)
        rules.scan |= hc_artifact_scan_of(policy->artifact_scan.items[i]);
    if (policy->artifact_block.given)
        rules.blocks = 1ull << HC_FINDING_UNREADABLE | 1ull << HC_FINDING_TYPE_NOT_ALLOWED;
    for (size_t i = 0; i < policy->artifact_block.count; i++) {
        const char *word = policy->artifact_block.items[i];
        enum hc_artifact_finding finding = hc_finding_named(word, strlen(word));
        rules.blocks |= finding < HC_FINDING_COUNT ? 1ull << finding : hc_artifact_scan_of(word);
    }
    return rules;
}

bool hc_found(const struct hc_artifact *artifact, enum hc_artifact_finding finding)
{
    for (unsigned i = 0; i < artifact->finding_count; i++)
        if (artifact->findings[i] == hc_findings[finding].name)
            return true;
    return false;
}

void hc_find(struct hc_artifact *artifact, enum hc_artifact_finding finding)
{
    if (finding < HC_FINDING_COUNT && !hc_found(artifact, finding) &&
        artifact->finding_count < sizeof artifact->findings / sizeof *artifact->findings)
        artifact->findings[artifact->finding_count++] = hc_findings[finding].name;
}

static bool allowed(const struct hc_artifact_rules *rules, const char *type)
{
    for (size_t i = 0; i < rules->type_count; i++) {
        const char *pattern = rules->types[i];
        size_t n = strlen(pattern);
        bool whole_group = n > 2 && strcmp(pattern + n - 2, "/*") == 0;
        if (whole_group ? strncmp(type, pattern, n - 1) == 0 : strcmp(type, pattern) == 0)
            return true;
    }
    return rules->any_type || strcmp(type, "application/x-empty") == 0; /* nothing is in it */
}

/* What nobody asked to be told. */
static void forget(struct hc_artifact *artifact, uint64_t findings)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < artifact->finding_count; i++) {
        const char *name = artifact->findings[i];
        if ((findings >> hc_finding_named(name, strlen(name)) & 1) == 0)
            artifact->findings[kept++] = name;
    }
    artifact->finding_count = kept;
}

void hc_artifacts_judge(struct hc_collection *collection, const struct hc_artifact_rules *rules)
{
    for (size_t i = 0; i < collection->count; i++) {
        struct hc_artifact *artifact = &collection->artifacts[i];
        artifact->blocked_by = NULL;
        forget(artifact, ~(rules->scan | rules->blocks));
        if (!artifact->plain || !artifact->collected || artifact->change == HC_DELETED)
            continue;
        if (!allowed(rules, artifact->type))
            hc_find(artifact, HC_FINDING_TYPE_NOT_ALLOWED);
        for (int f = 0; f < HC_FINDING_COUNT && artifact->blocked_by == NULL; f++)
            if ((rules->blocks >> f & 1) != 0 && hc_found(artifact, (enum hc_artifact_finding)f))
                artifact->blocked_by = hc_findings[f].name;
    }
}
