#include "eval/item.h"

#include "base/utf8.h"
#include "eval/limits.h"
#include "eval/shapes.h"
#include "flow/accept.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#define ID_BYTES_MAX 512
#define REPEATS_MAX  1000000000
#define DEPTH_MAX    64

/* Types that a field may have, as bits. */
enum { TEXT = 1, NUMBER = 2, LIST = 4, OBJECT = 8, NOTHING = 16, ANY = 32 };

struct field {
    const char *name;
    unsigned types;
    const char *wanted; /* in words */
};

/* What is ANY is allowed and not looked at: notes of those who made the data set. */
static const struct field fields[] = {
    {"id", TEXT, "a text"},
    {"language", TEXT, "a text"},
    {"program", TEXT, "a text"},
    {"code", TEXT, "a text"},
    {"stdin", TEXT | OBJECT | NOTHING, "null, a text, or {repeat, times}"},
    {"files", LIST | NOTHING, "a list"},
    {"flags", LIST | NOTHING, "a list of flags for the compile step"},
    {"limits", OBJECT | NOTHING, "an object"},
    {"expect", OBJECT | LIST | NOTHING, "an object"},
    {"suite", TEXT | NOTHING, "a text"},
    {"group", ANY, NULL},
    {"question", ANY, NULL},
    {"author", ANY, NULL},
    {"source", ANY, NULL},
    {"licence", ANY, NULL},
    {"license", ANY, NULL},
    {"wrapper", ANY, NULL},
    {"cells", ANY, NULL},
    {"bare", ANY, NULL},
    {"note", ANY, NULL},
    {"tags", ANY, NULL},
};

static unsigned type_of(const json_t *value)
{
    return json_is_string(value)   ? TEXT
           : json_is_number(value) ? NUMBER
           : json_is_array(value)  ? LIST
           : json_is_object(value) ? OBJECT
           : json_is_null(value)   ? NOTHING
                                   : 0;
}

static const struct field *field_named(const char *name)
{
    static const struct field upstream = {"upstream_*", ANY, NULL};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return strncmp(name, "upstream_", 9) == 0 ? &upstream : NULL;
}

static int bad(struct hc_refusal *refusal, const char *field, const char *what)
{
    return hc_refuse(refusal, HC_CAUSE_FIELD, field, "%.60s %.300s", field, what);
}

/* A text without NUL and other controls, for names. */
static bool plain(const json_t *text, size_t max_bytes)
{
    const char *value = json_string_value(text);
    size_t n = json_string_length(text);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)value[i] < 32 || value[i] == 127)
            return false;
    return n > 0 && n <= max_bytes;
}

static int check_fields(const json_t *root, struct hc_refusal *refusal)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)root, name, value)
    {
        const struct field *field = field_named(name);
        if (field == NULL)
            return hc_refuse(refusal, HC_CAUSE_FIELD, "line", "unknown field '%.60s'", name);
        if (field->types != ANY && (type_of(value) & field->types) == 0)
            return hc_refuse(refusal, HC_CAUSE_FIELD, field->name, "%s must be %s", field->name,
                             field->wanted);
    }
    const json_t *program = json_object_get(root, "program"), *code = json_object_get(root, "code");
    if (json_object_get(root, "id") == NULL)
        return bad(refusal, "id", "is missing");
    if (!plain(json_object_get(root, "id"), ID_BYTES_MAX))
        return bad(refusal, "id", "must have 1 to 512 bytes and no control characters");
    if (json_object_get(root, "language") == NULL)
        return bad(refusal, "language", "is missing");
    if (!plain(json_object_get(root, "language"), 64))
        return bad(refusal, "language", "is not the name of a language");
    if (program == NULL && code == NULL)
        return bad(refusal, "program", "is missing");
    return program != NULL && code != NULL ? bad(refusal, "program", "and code are both given") : 0;
}

static int check_stdin(const json_t *input, struct hc_refusal *refusal)
{
    if (!json_is_object(input))
        return 0;
    const json_t *text = json_object_get(input, "repeat"), *times = json_object_get(input, "times");
    double count = json_number_value(times); /* a real where the line holds integers beyond 64 bits */
    if (json_object_size(input) != 2 || !json_is_string(text) || !json_is_number(times) ||
        count != floor(count))
        return bad(refusal, "stdin", "must be null, a text, or {repeat, times}");
    if (count < 0 || count > REPEATS_MAX ||
        (uint64_t)count * json_string_length(text) > HC_SPEC_INPUT_BYTES_MAX)
        return bad(refusal, "stdin", "is larger than 256M");
    return 0;
}

/* Whether a relative path stays below its folder as far as its text goes; links are settled when it is
 * opened. */
static bool stays_below(const char *path)
{
    if (path[0] == '/' || path[0] == '\0')
        return false;
    for (const char *part = path; part != NULL;
         part = strchr(part, '/') != NULL ? strchr(part, '/') + 1 : NULL)
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return false;
    return true;
}

static int check_file(const json_t *file, struct hc_refusal *refusal)
{
    static const char *const sources[] = {"path", "text", "base64"};
    const char *name;
    json_t *value;
    size_t given = 0;
    if (!json_is_object(file) || !json_is_string(json_object_get(file, "name")) ||
        !plain(json_object_get(file, "name"), 4096))
        return bad(refusal, "files", "must be a list of objects with a name");
    json_object_foreach((json_t *)file, name, value)
    {
        bool source = false;
        for (size_t i = 0; i < 3; i++)
            source = source || strcmp(sources[i], name) == 0;
        if (!source && strcmp(name, "name") != 0)
            return hc_refuse(refusal, HC_CAUSE_FIELD, "files", "files: unknown field '%.60s'", name);
        if (!json_is_string(value))
            return hc_refuse(refusal, HC_CAUSE_FIELD, "files", "files: %.60s must be a text", name);
        given += source ? 1 : 0;
    }
    if (given != 1)
        return bad(refusal, "files", "must each have one of path, text and base64");
    const json_t *path = json_object_get(file, "path");
    if (path != NULL && (!plain(path, 4000) || !stays_below(json_string_value(path))))
        return bad(refusal, "files", "have a path that leaves the data set's folder");
    return 0;
}

static int check_item(const json_t *root, struct hc_refusal *refusal)
{
    size_t i;
    json_t *file;
    int error = check_fields(root, refusal);
    if (error == 0)
        error = check_stdin(json_object_get(root, "stdin"), refusal);
    json_array_foreach(json_object_get(root, "files"), i, file)
    {
        if (error == 0)
            error = check_file(file, refusal);
    }
    json_array_foreach(json_object_get(root, "flags"), i, file)
    {
        if (error == 0 && !plain(file, 256))
            error = bad(refusal, "flags", "must be a list of texts");
    }
    return error == 0 ? hc_eval_limits(NULL, json_object_get(root, "limits"), refusal) : error;
}

/* jansson reads values by recursion; what nests deeper than any item does is turned away before it. */
static bool too_deep(const char *line, size_t bytes)
{
    unsigned depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        if (quoted && line[i] == '\\')
            i++;
        else if (line[i] == '"')
            quoted = !quoted;
        else if (!quoted && (line[i] == '[' || line[i] == '{') && ++depth > DEPTH_MAX)
            return true;
        else if (!quoted && (line[i] == ']' || line[i] == '}') && depth > 0)
            depth--;
    }
    return false;
}

static json_t *parse(const char *line, size_t bytes, json_error_t *ret_error)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_t *root = json_loadb(line, bytes, flags, ret_error);
    /* notes and expected values may hold integers beyond 64 bits */
    if (root == NULL && json_error_code(ret_error) == json_error_numeric_overflow)
        root = json_loadb(line, bytes, flags | JSON_DECODE_INT_AS_REAL, ret_error);
    return root;
}

/* An item of a known data set becomes one of ours. */
static int take_shape(struct hc_eval_item *item, struct hc_refusal *refusal)
{
    json_t *made = NULL;
    int error = hc_eval_shape(item->root, &made, refusal);
    if (error != 0 || made == NULL)
        return error;
    json_decref(item->root);
    item->root = made;
    return 0;
}

int hc_eval_item_read(const char *line, size_t bytes, struct hc_eval_item *ret_item,
                      struct hc_refusal *refusal)
{
    json_error_t wrong;
    if (!hc_utf8_valid(line, bytes))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "line", "is not UTF-8");
    if (too_deep(line, bytes))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "line", "nests deeper than %d", DEPTH_MAX);
    json_t *root = parse(line, bytes, &wrong);
    if (root == NULL)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "line", "not JSON: column %d: %.200s", wrong.column,
                         wrong.text);
    struct hc_eval_item item = {.root = root};
    int error = json_is_object(root) ? take_shape(&item, refusal)
                                     : hc_refuse(refusal, HC_CAUSE_FIELD, "line", "is no JSON object");
    root = item.root;
    if (error == 0)
        error = check_item(root, refusal);
    if (error == 0)
        error = hc_predicates_of_expect(json_object_get(root, "expect"), &item.predicates, refusal);
    if (error != 0) {
        hc_eval_item_done(&item);
        return error;
    }
    item.id = json_string_value(json_object_get(root, "id"));
    item.language = json_string_value(json_object_get(root, "language"));
    item.suite = json_string_value(json_object_get(root, "suite"));
    *ret_item = item;
    return 0;
}

void hc_eval_item_done(struct hc_eval_item *item)
{
    json_decref(item->root);
    json_decref(item->predicates);
    *item = (struct hc_eval_item){0};
}
