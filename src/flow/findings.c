#include "flow/findings.h"

#include "policy/artifact_words.h"
#include "policy/policy.h"

#include <string.h>

const struct hc_finding_row hc_findings[HC_FINDING_COUNT] = {
    [HC_FINDING_SYMLINK] = {"symlink", "a symbolic link: not followed, not exported", false},
    [HC_FINDING_FIFO] = {"fifo", "a named pipe: not opened, not exported", false},
    [HC_FINDING_SOCKET] = {"socket", "a socket: not exported", false},
    [HC_FINDING_DEVICE] = {"device", "a device node: not exported", false},
    [HC_FINDING_SEVERAL_NAMES] = {"several_names", "the file has several names (hard links)", false},
    [HC_FINDING_SPARSE] = {"sparse", "the file has holes: its size is larger than what it occupies", false},
    [HC_FINDING_SET_ID_BITS] = {"set_id_bits", "set-user-id or set-group-id bits, dropped on export", false},
    [HC_FINDING_ODD_NAME] = {"odd_name", "the name holds control characters or is not UTF-8", false},
    [HC_FINDING_DECEPTIVE_NAME] = {"deceptive_name",
                                   "the name holds characters that show nothing or turn the order of others",
                                   false},
    [HC_FINDING_OVER_ARTIFACT_SIZE] = {"over_artifact_size", "larger than artifact_size: not read", false},
    [HC_FINDING_UNREADABLE] = {"unreadable", "could not be opened", true},
    [HC_FINDING_TYPE_NOT_ALLOWED] = {"type_not_allowed", "the profile does not allow this type", true},
    [HC_FINDING_ENDING_DIFFERS] = {"ending_differs",
                                   "the ending of the name says another type than the content", false},
    [HC_FINDING_EXECUTABLE] = {"executable", "a program of an operating system", false},
    [HC_FINDING_SCRIPT] = {"script", "begins with #!: a script that may be run by its name", false},
    [HC_FINDING_PICKLE] = {"pickle", "Python objects: loading them can run code", false},
    [HC_FINDING_FORMULA] = {"formula",
                            "a cell of the table begins like a formula: a spreadsheet would compute it",
                            false},
    [HC_FINDING_ACTIVE_CONTENT] = {"active_content", "scripts, event handlers or embedded programs", false},
    [HC_FINDING_FOREIGN_REFERENCE] = {"foreign_reference",
                                      "refers to other places, which a viewer would load", false},
    [HC_FINDING_XML_ENTITIES] = {"xml_entities",
                                 "declares entities: a parser may load files or use up memory", false},
    [HC_FINDING_HUGE_IMAGE] = {"huge_image",
                               "an image of more than 20000 pixels a side, or 100 million in all", false},
    [HC_FINDING_BROKEN_IMAGE] = {"broken_image", "the head of the image is cut or makes no sense", false},
    [HC_FINDING_OFFICE_MACROS] = {"office_macros", "macros of an office program", false},
    [HC_FINDING_ARCHIVE_ESCAPES] = {"archive_escapes",
                                    "a name or link in the archive leads out of the folder it is unpacked in",
                                    true},
    [HC_FINDING_ARCHIVE_LINKS] = {"archive_links", "the archive holds links, devices or pipes", false},
    [HC_FINDING_ARCHIVE_BOMB] =
        {"archive_bomb", "unpacked more than 100 times as large (and 20M), or more than 10000 members", true},
    [HC_FINDING_ARCHIVE_NESTED] = {"archive_nested",
                                   "archives more than three deep, or too large to look into", false},
    [HC_FINDING_ARCHIVE_ENCRYPTED] = {"archive_encrypted", "the archive is encrypted: nobody looked into it",
                                      false},
    [HC_FINDING_ARCHIVE_EXECUTABLE] = {"archive_executable",
                                       "the archive holds a program of an operating system", false},
    [HC_FINDING_ARCHIVE_BROKEN] = {"archive_broken", "the archive can't be read to its end", false},
    [HC_FINDING_NOT_INSPECTED] = {"not_inspected", "could not be looked into: the scanner gave no answer",
                                  true},
};

enum hc_artifact_finding hc_finding_named(const char *name, size_t n)
{
    int i = 0;
    while (i < HC_FINDING_COUNT &&
           (strlen(hc_findings[i].name) != n || memcmp(hc_findings[i].name, name, n) != 0))
        i++;
    return (enum hc_artifact_finding)i;
}

struct hc_artifact_rules hc_artifact_rules_default(void)
{
    struct hc_artifact_rules rules = {.any_type = true, .scan = true};
    for (int i = 0; i < HC_FINDING_COUNT; i++)
        rules.blocks |= hc_findings[i].blocks ? 1ull << i : 0;
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

static bool allowed(const struct hc_artifact_rules *rules, const struct hc_artifact *artifact)
{
    for (size_t i = 0; i < rules->type_count; i++)
        if (hc_type_word_fits(rules->types[i], artifact->type, artifact->path))
            return true;
    return rules->any_type || strcmp(artifact->type, "application/x-empty") == 0;
}

struct hc_artifact_rules hc_artifact_rules_of(const struct hc_policy *policy)
{
    struct hc_artifact_rules rules = hc_artifact_rules_default();
    rules.any_type = !policy->artifact_types.given;
    rules.types = (const char *const *)policy->artifact_types.items;
    rules.type_count = policy->artifact_types.count;
    for (size_t i = 0; i < policy->artifact_scan.count; i++) {
        const struct hc_scan_word *word = hc_scan_word_named(policy->artifact_scan.items[i]);
        for (size_t f = 0; word != NULL && word->findings[f] != NULL; f++)
            rules.blocks |= 1ull << hc_finding_named(word->findings[f], strlen(word->findings[f]));
    }
    return rules;
}

void hc_artifacts_judge(struct hc_collection *collection, const struct hc_artifact_rules *rules)
{
    for (size_t i = 0; i < collection->count; i++) {
        struct hc_artifact *artifact = &collection->artifacts[i];
        artifact->blocked_by = NULL;
        if (!artifact->plain || !artifact->collected || artifact->change == HC_DELETED)
            continue;
        if (!allowed(rules, artifact))
            hc_find(artifact, HC_FINDING_TYPE_NOT_ALLOWED);
        for (int f = 0; f < HC_FINDING_COUNT && artifact->blocked_by == NULL; f++)
            if ((rules->blocks >> f & 1) != 0 && hc_found(artifact, (enum hc_artifact_finding)f))
                artifact->blocked_by = hc_findings[f].name;
    }
}
