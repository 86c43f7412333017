#include "flow/inspect.h"

#include "base/utf8.h"
#include "flow/csv.h"
#include "flow/inspect_image.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool contains(const uint8_t *data, size_t n, const void *part, size_t bytes)
{
    return memmem(data, n, part, bytes) != NULL;
}

/* ---- names ---- */

static const char *ending_of(const char *path)
{
    const char *name = strrchr(path, '/'), *dot;
    name = name != NULL ? name + 1 : path;
    dot = strrchr(name, '.');
    return dot != NULL && dot != name ? dot + 1 : "";
}

/* What an ending promises: types, with the group "text/" for all of text. Endings that promise nothing in
 * particular are not here. */
static const struct {
    const char *ending;
    const char *types[4];
} promises[] = {
    {"png", {"image/png"}},
    {"jpg", {"image/jpeg"}},
    {"jpeg", {"image/jpeg"}},
    {"gif", {"image/gif"}},
    {"webp", {"image/webp"}},
    {"bmp", {"image/bmp"}},
    {"pdf", {"application/pdf"}},
    {"zip", {"application/zip"}},
    {"docx", {"application/zip"}},
    {"xlsx", {"application/zip"}},
    {"pptx", {"application/zip"}},
    {"docm", {"application/zip"}},
    {"xlsm", {"application/zip"}},
    {"pptm", {"application/zip"}},
    {"odt", {"application/zip"}},
    {"ods", {"application/zip"}},
    {"npz", {"application/zip"}},
    {"doc", {"application/x-ole-storage"}},
    {"xls", {"application/x-ole-storage"}},
    {"ppt", {"application/x-ole-storage"}},
    {"gz", {"application/gzip"}},
    {"tgz", {"application/gzip"}},
    {"xz", {"application/x-xz"}},
    {"bz2", {"application/x-bzip2"}},
    {"zst", {"application/zstd"}},
    {"7z", {"application/x-7z-compressed"}},
    {"tar", {"application/x-tar"}},
    {"npy", {"application/x-npy"}},
    {"parquet", {"application/vnd.apache.parquet"}},
    {"wav", {"audio/wav"}},
    {"csv", {"text/csv"}},
    {"tsv", {"text/tab-separated-values"}},
    {"json", {"application/json"}},
    {"txt", {"text/plain"}},
    {"md", {"text/markdown"}},
    {"html", {"text/html"}},
    {"htm", {"text/html"}},
    {"svg", {"image/svg+xml"}},
    {"xml", {"text/xml"}},
    {"yaml", {"application/yaml"}},
    {"yml", {"application/yaml"}},
};

static void look_at_name(struct hc_artifact *artifact)
{
    const char *ending = ending_of(artifact->path);
    if (hc_utf8_valid(artifact->path, artifact->path_bytes) &&
        hc_utf8_hides(artifact->path, artifact->path_bytes))
        hc_find(artifact, HC_FINDING_DECEPTIVE_NAME);
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        if (strcasecmp(ending, promises[i].ending) == 0 &&
            strcmp(artifact->type, "application/x-empty") != 0 &&
            strcmp(artifact->type, promises[i].types[0]) != 0)
            hc_find(artifact, HC_FINDING_ENDING_DIFFERS);
}

/* ---- programs ---- */

static void look_for_programs(struct hc_artifact *artifact, const uint8_t *data, size_t n)
{
    static const struct {
        const char *bytes;
        size_t length;
    } heads[] = {{"\x7f"
                  "ELF",
                  4},
                 {"MZ", 2},
                 {"\xfe\xed\xfa\xce", 4},
                 {"\xfe\xed\xfa\xcf", 4},
                 {"\xce\xfa\xed\xfe", 4},
                 {"\xcf\xfa\xed\xfe", 4},
                 {"\xca\xfe\xba\xbe", 4}, /* fat Mach-O, and Java classes */
                 {"\0asm", 4}};
    bool text = strncmp(artifact->type, "text/", 5) == 0;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (n >= heads[i].length && !text && memcmp(data, heads[i].bytes, heads[i].length) == 0)
            hc_find(artifact, HC_FINDING_EXECUTABLE);
    if (n >= 2 && memcmp(data, "#!", 2) == 0)
        hc_find(artifact, HC_FINDING_SCRIPT);
    /* Protocols 2 to 5 begin with their number; 0 and 1 look like text and can't be told. */
    bool pickle = n > 3 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5 && data[n - 1] == '.';
    bool objects =
        strcmp(artifact->type, "application/x-npy") == 0 && contains(data, n < 1024 ? n : 1024, "'|O'", 4);
    if (pickle || objects)
        hc_find(artifact, HC_FINDING_PICKLE);
}

/* ---- tables ---- */

/* -3, +1.5e3, -1,234.50% are numbers, and a line of dashes is no formula either. What follows behind a
 * delimiter of another reading does not matter: -3;=1 is looked at once more, divided there. */
static bool harmless(const char *text, size_t n, char delimiter)
{
    size_t i = 1, digits = 0;
    size_t dashes = 0;
    while (dashes < n && text[dashes] == '-')
        dashes++;
    if (dashes == n)
        return true;
    for (; i < n && (isdigit((unsigned char)text[i]) || strchr("., ", text[i]) != NULL) && text[i] != '\0';
         i++)
        digits += isdigit((unsigned char)text[i]) != 0;
    if (i < n && digits > 0 && (text[i] == 'e' || text[i] == 'E')) {
        i += i + 1 < n && (text[i + 1] == '-' || text[i + 1] == '+') ? 2 : 1;
        while (i < n && isdigit((unsigned char)text[i]))
            i++;
    }
    if (i < n && text[i] == '%')
        i++;
    char behind = '\0';
    if (i < n && text[i - 1] == ',')
        behind = ',';
    else if (i < n)
        behind = text[i];
    bool divided = behind != delimiter && behind != '\0' && strchr(",;\t", behind) != NULL;
    return digits > 0 && (i == n || divided);
}

struct table {
    struct hc_artifact *artifact;
    char delimiter;
};

static int look_at_field(void *context, const struct hc_csv_field *field)
{
    const struct table *table = context;
    const char *text = field->text;
    size_t n = field->bytes;
    if (n == 0)
        return 0;
    bool starts = text[0] == '=' || text[0] == '@' || text[0] == '\t' || text[0] == '\r' ||
                  ((text[0] == '+' || text[0] == '-') && !harmless(text, n, table->delimiter));
    /* The same four in full width, which some spreadsheets take as well. */
    if (n >= 3 && (memcmp(text, "\xef\xbc\x9d", 3) == 0 || memcmp(text, "\xef\xbc\x8b", 3) == 0 ||
                   memcmp(text, "\xef\xbc\x8d", 3) == 0 || memcmp(text, "\xef\xbc\xa0", 3) == 0))
        starts = true;
    if (starts)
        hc_find(table->artifact, HC_FINDING_FORMULA);
    return starts ? 2 : 0;
}

/* Whoever opens it may divide it by another character than whoever wrote it. */
static void look_at_table(struct hc_artifact *artifact, const uint8_t *data, size_t n)
{
    static const char delimiters[] = ",;\t";
    uint64_t line;
    for (size_t i = 0; i < sizeof delimiters - 1 && !hc_found(artifact, HC_FINDING_FORMULA); i++) {
        if (data == NULL || (i > 0 && memchr(data, delimiters[i], n) == NULL))
            continue;
        const char *at = (const char *)data, *end = at + n;
        struct table table = {.artifact = artifact, .delimiter = delimiters[i]};
        /* A broken quote ends one reading; the next begins behind it. */
        for (unsigned tries = 0; at < end && tries < 1000; tries++) {
            if (hc_csv_walk(at, (size_t)(end - at), delimiters[i], look_at_field, &table, &line) !=
                HC_CSV_BROKEN)
                break;
            const char *next = at;
            for (uint64_t l = 0; l < line && next != NULL; l++)
                next = memchr(next, '\n', (size_t)(end - next)) != NULL
                           ? (const char *)memchr(next, '\n', (size_t)(end - next)) + 1
                           : NULL;
            at = next != NULL && next > at ? next : end;
        }
    }
}

/* ---- markup ---- */

/* " onload=", with any blanks before and around; `at` is behind the blank or slash. */
static bool is_handler(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 5 || tolower(at[0]) != 'o' || tolower(at[1]) != 'n' || !isalpha(at[2]))
        return false;
    while (at < end && isalpha(*at))
        at++;
    while (at < end && isspace(*at))
        at++;
    return at < end && *at == '=';
}

static bool begins(const uint8_t *at, const uint8_t *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - at) >= n && strncasecmp((const char *)at, word, n) == 0;
}

static void look_at_markup(struct hc_artifact *artifact, const uint8_t *data, size_t n)
{
    static const char *const active[] = {
        "<script",     "<iframe",   "<object",          "<embed", "<applet", "<foreignobject",
        "javascript:", "vbscript:", "<meta http-equiv", "<set ",  "<handler"};
    static const char *const foreign[] = {"src=\"http", "src='http",    "src=\"//",   "src='//",
                                          "src=http",   "href=\"http",  "href='http", "href=\"//",
                                          "href='//",   "href=\"file:", "url(http",   "url(//",
                                          "url('http",  "url(\"http",   "@import"};
    const uint8_t *end = data + n;
    for (const uint8_t *at = data; at < end; at++) {
        if (*at == '<' && (begins(at, end, "<!entity") || begins(at, end, "<?xml-stylesheet")))
            hc_find(artifact, HC_FINDING_XML_ENTITIES);
        if ((isspace(*at) || *at == '/' || *at == '"' || *at == '\'') && is_handler(at + 1, end))
            hc_find(artifact, HC_FINDING_ACTIVE_CONTENT);
        if (*at != '<' && !strchr("jJvVsShHuU@", *at))
            continue;
        for (size_t i = 0; i < sizeof active / sizeof *active; i++)
            if (begins(at, end, active[i]))
                hc_find(artifact, HC_FINDING_ACTIVE_CONTENT);
        for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
            if (begins(at, end, foreign[i]))
                hc_find(artifact, HC_FINDING_FOREIGN_REFERENCE);
    }
}

/* ---- office, PDF ---- */

static void look_at_documents(struct hc_artifact *artifact, const uint8_t *data, size_t n)
{
    static const char *const pdf[] = {"/JavaScript", "/Launch", "/EmbeddedFile", "/OpenAction", "/RichMedia"};
    static const char storage[] = "_\0V\0B\0A\0_\0P\0R\0O\0J\0E\0C\0T", old[] = "M\0a\0c\0r\0o\0s";
    if (strcmp(artifact->type, "application/x-ole-storage") == 0 &&
        (contains(data, n, storage, sizeof storage - 1) || contains(data, n, old, sizeof old - 1)))
        hc_find(artifact, HC_FINDING_OFFICE_MACROS);
    for (size_t i = 0; strcmp(artifact->type, "application/pdf") == 0 && i < sizeof pdf / sizeof *pdf; i++)
        if (contains(data, n, pdf[i], strlen(pdf[i])))
            hc_find(artifact, HC_FINDING_ACTIVE_CONTENT);
}

/* ---- all of it ---- */

bool hc_is_archive(const char *type)
{
    static const char *const types[] = {"application/zip",
                                        "application/gzip",
                                        "application/zstd",
                                        "application/x-xz",
                                        "application/x-bzip2",
                                        "application/x-tar",
                                        "application/x-7z-compressed",
                                        "application/vnd.rar"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

static bool is_markup(const char *type)
{
    return strcmp(type, "text/html") == 0 || strcmp(type, "image/svg+xml") == 0 ||
           strcmp(type, "text/xml") == 0 || strcmp(type, "text/markdown") == 0;
}

void hc_inspect(struct hc_artifact *artifact, const uint8_t *data, size_t n)
{
    bool table =
        strcmp(artifact->type, "text/csv") == 0 || strcmp(artifact->type, "text/tab-separated-values") == 0;
    look_at_name(artifact);
    if (n == 0)
        return;
    look_for_programs(artifact, data, n);
    hc_inspect_image(artifact, data, n);
    look_at_documents(artifact, data, n);
    if (table)
        look_at_table(artifact, data, n);
    if (is_markup(artifact->type))
        look_at_markup(artifact, data, n);
}
