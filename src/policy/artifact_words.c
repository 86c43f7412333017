#include "policy/artifact_words.h"

#include <string.h>
#include <strings.h>

#define ZIP "application/zip"
#define OLE "application/x-ole-storage"

const struct hc_type_word hc_type_words[] = {
    {"text", "text/plain", NULL},
    {"markdown", "text/markdown", NULL},
    {"csv", "text/csv", NULL},
    {"tsv", "text/tab-separated-values", NULL},
    {"json", "application/json", NULL},
    {"yaml", "application/yaml", NULL},
    {"xml", "text/xml", NULL},
    {"html", "text/html", NULL},
    {"svg", "image/svg+xml", NULL},
    {"png", "image/png", NULL},
    {"jpeg", "image/jpeg", NULL},
    {"gif", "image/gif", NULL},
    {"webp", "image/webp", NULL},
    {"bmp", "image/bmp", NULL},
    {"pdf", "application/pdf", NULL},
    {"xlsx", ZIP, ".xlsx"},
    {"docx", ZIP, ".docx"},
    {"pptx", ZIP, ".pptx"},
    {"ods", ZIP, ".ods"},
    {"odt", ZIP, ".odt"},
    {"xls", OLE, ".xls"},
    {"doc", OLE, ".doc"},
    {"ppt", OLE, ".ppt"},
    {"zip", ZIP, NULL},
    {"gzip", "application/gzip", NULL},
    {"tar", "application/x-tar", NULL},
    {"zstd", "application/zstd", NULL},
    {"xz", "application/x-xz", NULL},
    {"bzip2", "application/x-bzip2", NULL},
    {"npy", "application/x-npy", NULL},
    {"npz", ZIP, ".npz"},
    {"parquet", "application/vnd.apache.parquet", NULL},
    {"sqlite", "application/vnd.sqlite3", NULL},
    {"wav", "audio/wav", NULL},
    {"binary", "application/octet-stream", NULL},
};
const size_t hc_type_word_count = sizeof hc_type_words / sizeof *hc_type_words;

const struct hc_scan_word hc_scan_words[] = {
    {"formulas", {"formula", NULL}},
    {"scripts", {"active_content", "foreign_reference", "xml_entities", "script", NULL}},
    {"macros", {"office_macros", NULL}},
    {"archives",
     {"archive_escapes", "archive_links", "archive_bomb", "archive_nested", "archive_encrypted",
      "archive_executable", "archive_broken", "not_inspected", NULL}},
    {"images", {"huge_image", "broken_image", NULL}},
    {"programs", {"executable", "archive_executable", "pickle", NULL}},
    {"names", {"odd_name", "deceptive_name", "ending_differs", NULL}},
};
const size_t hc_scan_word_count = sizeof hc_scan_words / sizeof *hc_scan_words;

static bool has_ending(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcasecmp(path + n - m, ending) == 0;
}

bool hc_type_word_fits(const char *word, const char *type, const char *path)
{
    for (size_t i = 0; i < hc_type_word_count; i++)
        if (strcmp(hc_type_words[i].word, word) == 0)
            return strcmp(hc_type_words[i].type, type) == 0 &&
                   (hc_type_words[i].ending == NULL || has_ending(path, hc_type_words[i].ending));
    return false;
}

bool hc_type_word_known(const char *word)
{
    for (size_t i = 0; i < hc_type_word_count; i++)
        if (strcmp(hc_type_words[i].word, word) == 0)
            return true;
    return false;
}

const struct hc_scan_word *hc_scan_word_named(const char *word)
{
    for (size_t i = 0; i < hc_scan_word_count; i++)
        if (strcmp(hc_scan_words[i].word, word) == 0)
            return &hc_scan_words[i];
    return NULL;
}
