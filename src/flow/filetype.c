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

const char *hc_file_type(const uint8_t *head, size_t n, const char *name)
{
    if (n == 0)
        return "application/x-empty";
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++)
        if (n >= signatures[i].offset + signatures[i].length &&
            memcmp(head + signatures[i].offset, signatures[i].bytes, signatures[i].length) == 0)
            return signatures[i].type;
    if (memchr(head, '\0', n) != NULL || !hc_utf8_valid(head, hc_utf8_floor(head, n)))
        return "application/octet-stream";
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof text_endings / sizeof *text_endings; i++) {
        size_t ending = strlen(text_endings[i].ending);
        if (length > ending && strcasecmp(name + length - ending, text_endings[i].ending) == 0)
            return text_endings[i].type;
    }
    return "text/plain";
}
