#include "policy/artifacts.h"

#include <stdio.h>
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

static const struct {
    const char *word;
    const char *patterns[4];
} types[] = {
    {"text", {"text/*", "application/json", "application/yaml"}},
    {"csv", {"text/csv", "text/tab-separated-values"}},
    {"json", {"application/json"}},
    {"yaml", {"application/yaml"}},
    {"html", {"text/html"}},
    {"images", {"image/*"}},
    {"png", {"image/png"}},
    {"jpeg", {"image/jpeg"}},
    {"gif", {"image/gif"}},
    {"webp", {"image/webp"}},
    {"svg", {"image/svg+xml"}},
    {"pdf", {"application/pdf"}},
    {"zip", {"application/zip"}},
    {"docx", {"application/zip"}}, /* by signature they are archives of that kind */
    {"xlsx", {"application/zip"}},
    {"pptx", {"application/zip"}},
    {"parquet", {"application/vnd.apache.parquet"}},
    {"npy", {"application/x-npy"}},
    {"sqlite", {"application/vnd.sqlite3"}},
    {"wav", {"audio/wav"}},
    {"archives", {"application/zip", "application/gzip", "application/x-tar"}},
    {"empty", {"application/x-empty"}},
};

#define BIT(name) (1ull << HC_FINDING_##name)

static const struct {
    const char *word;
    uint64_t findings;
} scans[] = {
    {"formulas", BIT(FORMULA)},
    {"scripts", BIT(ACTIVE_CONTENT) | BIT(FOREIGN_REFERENCE) | BIT(XML_ENTITIES) | BIT(SCRIPT)},
    {"macros", BIT(OFFICE_MACROS)},
    {"archives", BIT(ARCHIVE_ESCAPES) | BIT(ARCHIVE_LINKS) | BIT(ARCHIVE_BOMB) | BIT(ARCHIVE_NESTED) |
                     BIT(ARCHIVE_ENCRYPTED) | BIT(ARCHIVE_EXECUTABLE) | BIT(ARCHIVE_BROKEN)},
    {"images", BIT(HUGE_IMAGE) | BIT(BROKEN_IMAGE)},
    {"programs", BIT(EXECUTABLE) | BIT(PICKLE)},
    {"names", BIT(DECEPTIVE_NAME) | BIT(ENDING_DIFFERS)},
};

const char *const *hc_artifact_types_of(const char *word)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].word, word) == 0)
            return types[i].patterns;
    return NULL;
}

bool hc_artifact_type_ok(const char *word)
{
    const char *slash = strchr(word, '/');
    return hc_artifact_types_of(word) != NULL ||
           (slash != NULL && slash > word && slash[1] != '\0' && strchr(slash + 1, '/') == NULL);
}

uint64_t hc_artifact_scan_of(const char *word)
{
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++)
        if (strcmp(scans[i].word, word) == 0)
            return scans[i].findings;
    return 0;
}

void hc_artifact_words(bool of_types, char *out, size_t size)
{
    size_t count = of_types ? sizeof types / sizeof *types : sizeof scans / sizeof *scans, at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i > 0 ? ", " : "",
                               of_types ? types[i].word : scans[i].word);
}
