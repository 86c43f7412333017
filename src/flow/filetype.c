#include "base/utf8.h"
#include "flow/collect.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *type;
    size_t offset, length;
    const char *bytes;
} signatures[] = {
    {"image/png", 0, 8, "\x89PNG\r\n\x1a\n"},
    {"image/jpeg", 0, 3, "\xff\xd8\xff"},
    {"image/gif", 0, 4, "GIF8"},
    {"image/webp", 8, 4, "WEBP"},
    {"image/bmp", 0, 2, "BM"},
    {"application/pdf", 0, 5, "%PDF-"},
    {"application/zip", 0, 4, "PK\x03\x04"},
    {"application/zip", 0, 4, "PK\x05\x06"},
    {"application/gzip", 0, 2, "\x1f\x8b"},
    {"application/zstd", 0, 4, "\x28\xb5\x2f\xfd"},
    {"application/x-xz", 0, 6,
     "\xfd"
     "7zXZ\x00"},
    {"application/x-bzip2", 0, 3, "BZh"},
    {"application/x-tar", 257, 5, "ustar"},
    {"application/x-7z-compressed", 0, 6, "7z\xbc\xaf\x27\x1c"},
    {"application/vnd.rar", 0, 6, "Rar!\x1a\x07"},
    {"application/x-executable", 0, 4,
     "\x7f"
     "ELF"},
    {"application/vnd.sqlite3", 0, 16, "SQLite format 3"},
    {"application/vnd.apache.parquet", 0, 4, "PAR1"},
    {"application/x-npy", 0, 6, "\x93NUMPY"},
    {"application/x-ole-storage", 0, 8, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"},
    {"audio/wav", 8, 4, "WAVE"},
};

static const struct {
    const char *ending, *type;
} text_endings[] = {
    {".csv", "text/csv"},          {".tsv", "text/tab-separated-values"},
    {".json", "application/json"}, {".html", "text/html"},
    {".htm", "text/html"},         {".svg", "image/svg+xml"},
    {".xml", "text/xml"},          {".md", "text/markdown"},
    {".yaml", "application/yaml"}, {".yml", "application/yaml"},
};

/* Two letters are no signature: the size of the second head has to be one of those there are. */
static bool is_bitmap(const uint8_t *head, size_t n)
{
    static const uint8_t sizes[] = {12, 40, 52, 56, 64, 108, 124};
    return n >= 18 && head[15] == 0 && head[16] == 0 && head[17] == 0 &&
           memchr(sizes, head[14], sizeof sizes) != NULL;
}

/* What a browser takes for markup, whatever the name says. */
static const char *markup_type(const uint8_t *head, size_t n)
{
    static const struct {
        const char *begin, *type;
    } rows[] = {{"<!doctype html", "text/html"},
                {"<html", "text/html"},
                {"<svg", "image/svg+xml"},
                {"<?xml", "text/xml"}};
    size_t at = n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < n && (head[at] == ' ' || head[at] == '\t' || head[at] == '\n' || head[at] == '\r'))
        at++;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (n - at >= strlen(rows[i].begin) &&
            strncasecmp((const char *)head + at, rows[i].begin, strlen(rows[i].begin)) == 0)
            return strcmp(rows[i].type, "text/xml") == 0 &&
                           memmem(head + at, n - at < 1024 ? n - at : 1024, "<svg", 4) != NULL
                       ? "image/svg+xml"
                       : rows[i].type;
    return NULL;
}

const char *hc_file_type(const uint8_t *head, size_t n, const char *name)
{
    if (n == 0)
        return "application/x-empty";
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++)
        if (n >= signatures[i].offset + signatures[i].length &&
            memcmp(head + signatures[i].offset, signatures[i].bytes, signatures[i].length) == 0 &&
            (strcmp(signatures[i].type, "image/bmp") != 0 || is_bitmap(head, n)))
            return signatures[i].type;
    if (memchr(head, '\0', n) != NULL || !hc_utf8_valid(head, hc_utf8_floor(head, n)))
        return "application/octet-stream";
    const char *markup = markup_type(head, n), *xml = "text/xml";
    if (markup != NULL && strcmp(markup, xml) != 0)
        return markup;
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof text_endings / sizeof *text_endings; i++) {
        size_t ending = strlen(text_endings[i].ending);
        if (length > ending && strcasecmp(name + length - ending, text_endings[i].ending) == 0)
            return text_endings[i].type;
    }
    return markup != NULL ? xml : "text/plain";
}
