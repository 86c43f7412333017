#include "flow/json_schema.h"

#include "flow/accept_kinds.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA_DEPTH_MAX 64
#define SCHEMA_NODES_MAX 10000
#define JUDGE_DEPTH_MAX  256
#define STEPS_MAX        1000000
#define PATTERNS_MAX     100 /* each costs a child process */

/* ---- the keywords, and what their values look like ---- */

enum shape {
    ANYTHING,
    TEXT,
    TEXTS,
    LIST,
    NUMBER,
    COUNT,
    FLAG,
    TYPES,
    PATTERN,
    REFERENCE,
    SCHEMA,
    SCHEMAS,
    NAMED_SCHEMAS
};
static const char *const shape_words[] = {
    "",
    "a text",
    "a list of texts",
    "a list that is not empty",
    "a number",
    "a number of at least 0",
    "true or false",
    "null, boolean, integer, number, string, array or object, or a list of them",
    "",
    "",
    "a schema (an object, true or false)",
    "a list of schemas that is not empty",
    "an object of schemas"};

static const char *const types[] = {"null",   "boolean", "integer", "number",
                                    "string", "array",   "object",  NULL};

struct judging;
typedef bool rule(struct judging *j, const json_t *value, const json_t *schema, const json_t *document);
static rule by_type, by_enum, by_const, by_minimum, by_maximum, by_above, by_below, by_multiple,
    by_min_length, by_max_length, by_pattern, by_items, by_prefix, by_min_items, by_max_items, by_unique,
    by_contains, by_properties, by_required, by_additional, by_names, by_min_properties, by_max_properties,
    by_all, by_any, by_one, by_not, by_reference;

/* `judge` NULL: says nothing by itself. */
static const struct keyword {
    const char *name;
    enum shape shape;
    rule *judge;
} keywords[] = {
    {"$ref", REFERENCE, by_reference},
    {"type", TYPES, by_type},
    {"enum", LIST, by_enum},
    {"const", ANYTHING, by_const},
    {"minimum", NUMBER, by_minimum},
    {"maximum", NUMBER, by_maximum},
    {"exclusiveMinimum", NUMBER, by_above},
    {"exclusiveMaximum", NUMBER, by_below},
    {"multipleOf", NUMBER, by_multiple},
    {"minLength", COUNT, by_min_length},
    {"maxLength", COUNT, by_max_length},
    {"pattern", PATTERN, by_pattern},
    {"prefixItems", SCHEMAS, by_prefix},
    {"items", SCHEMA, by_items},
    {"minItems", COUNT, by_min_items},
    {"maxItems", COUNT, by_max_items},
    {"uniqueItems", FLAG, by_unique},
    {"contains", SCHEMA, by_contains},
    {"properties", NAMED_SCHEMAS, by_properties},
    {"required", TEXTS, by_required},
    {"additionalProperties", SCHEMA, by_additional},
    {"propertyNames", SCHEMA, by_names},
    {"minProperties", COUNT, by_min_properties},
    {"maxProperties", COUNT, by_max_properties},
    {"allOf", SCHEMAS, by_all},
    {"anyOf", SCHEMAS, by_any},
    {"oneOf", SCHEMAS, by_one},
    {"not", SCHEMA, by_not},
    {"$defs", NAMED_SCHEMAS, NULL},
    {"definitions", NAMED_SCHEMAS, NULL},
    {"$schema", TEXT, NULL},
    {"$comment", TEXT, NULL},
    {"title", TEXT, NULL},
    {"description", TEXT, NULL},
    {"default", ANYTHING, NULL},
    {"examples", LIST, NULL},
};
#define KEYWORDS (sizeof keywords / sizeof *keywords)

const char *hc_schema_keyword(size_t index)
{
    return index < KEYWORDS ? keywords[index].name : NULL;
}

static const struct keyword *keyword_named(const char *name)
{
    for (size_t i = 0; i < KEYWORDS; i++)
        if (strcmp(keywords[i].name, name) == 0)
            return &keywords[i];
    return NULL;
}

/* ---- the form of a schema ---- */

struct checking {
    const json_t *root;
    char *room;
    size_t nodes;
};

static bool check_schema(struct checking *c, const json_t *schema, unsigned depth);

static bool wrong(struct checking *c, const char *keyword, const char *what)
{
    (void)snprintf(c->room, 256, "schema: %.60s: %.170s", keyword, what);
    return false;
}

static bool is_type(const json_t *value)
{
    const char *name = json_string_value(value);
    for (size_t i = 0; name != NULL && types[i] != NULL; i++)
        if (strcmp(types[i], name) == 0)
            return true;
    return false;
}

static bool all(const json_t *list, bool (*good)(const json_t *), bool may_be_empty)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (!good(item))
            return false;
    }
    return json_is_array(list) && (may_be_empty || i > 0);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static const json_t *resolve(const json_t *root, const char *reference)
{
    static const char *const places[] = {"#/$defs/", "#/definitions/"};
    static const char *const names[] = {"$defs", "definitions"};
    if (strcmp(reference, "#") == 0)
        return root;
    for (size_t i = 0; i < 2; i++)
        if (strncmp(reference, places[i], strlen(places[i])) == 0)
            return json_object_get(json_object_get(root, names[i]), reference + strlen(places[i]));
    return NULL;
}

static bool check_reference(struct checking *c, const json_t *value)
{
    const char *reference = json_string_value(value);
    char what[200];
    if (reference != NULL && resolve(c->root, reference) != NULL)
        return true;
    if (reference != NULL && reference[0] != '#')
        (void)snprintf(what, sizeof what, "'%.80s': nothing outside of the schema is read", reference);
    else
        (void)snprintf(what, sizeof what,
                       "'%.80s': wanted #, #/$defs/NAME or #/definitions/NAME that is there",
                       reference != NULL ? reference : "");
    return wrong(c, "$ref", what);
}

static bool check_schemas(struct checking *c, const struct keyword *keyword, json_t *value, unsigned depth)
{
    size_t i;
    const char *name;
    json_t *item;
    if (keyword->shape == SCHEMAS) {
        if (!json_is_array(value) || json_array_size(value) == 0)
            return wrong(c, keyword->name, shape_words[SCHEMAS]);
        json_array_foreach(value, i, item)
        {
            if (!check_schema(c, item, depth + 1))
                return false;
        }
        return true;
    }
    if (!json_is_object(value))
        return wrong(c, keyword->name, shape_words[NAMED_SCHEMAS]);
    json_object_foreach(value, name, item)
    {
        if (!check_schema(c, item, depth + 1))
            return false;
    }
    return true;
}

static bool check_keyword(struct checking *c, const struct keyword *keyword, json_t *value, unsigned depth)
{
    double number;
    char reason[256];
    const char *bad;
    bool good = true;
    switch (keyword->shape) {
    case ANYTHING:
        break;
    case TEXT:
        good = json_is_string(value);
        break;
    case TEXTS:
        good = all(value, is_text, true);
        break;
    case LIST:
        good = json_array_size(value) > 0;
        break;
    case NUMBER:
        good = hc_predicate_number(value, &number) && isfinite(number) &&
               (keyword->judge != by_multiple || number > 0);
        break;
    case COUNT:
        good = json_is_integer(value) && json_integer_value(value) >= 0;
        break;
    case FLAG:
        good = json_is_boolean(value);
        break;
    case TYPES:
        good = is_type(value) || all(value, is_type, false);
        break;
    case PATTERN:
        bad = hc_pattern_check(value, reason);
        return bad == NULL || wrong(c, keyword->name, bad);
    case REFERENCE:
        return check_reference(c, value);
    case SCHEMA:
        return check_schema(c, value, depth + 1);
    case SCHEMAS:
    case NAMED_SCHEMAS:
        return check_schemas(c, keyword, value, depth);
    }
    return good || wrong(c, keyword->name, shape_words[keyword->shape]);
}

static bool check_schema(struct checking *c, const json_t *schema, unsigned depth)
{
    const char *name;
    json_t *value;
    if (depth > SCHEMA_DEPTH_MAX || ++c->nodes > SCHEMA_NODES_MAX)
        return wrong(c, "size", "more than 64 schemas inside each other, or 10000 in all");
    if (json_is_boolean(schema))
        return true;
    if (!json_is_object(schema))
        return wrong(c, "value", "a schema is an object, true or false");
    json_object_foreach((json_t *)schema, name, value)
    {
        const struct keyword *keyword = keyword_named(name);
        if (keyword == NULL)
            return wrong(c, name, "unknown keyword; hotcell-predicates(5) lists those that are known");
        if (!check_keyword(c, keyword, value, depth))
            return false;
    }
    return true;
}

const char *hc_schema_check(const json_t *schema, char room[256])
{
    struct checking c = {.root = schema, .room = room};
    if (schema == NULL)
        return "lacks schema";
    return check_schema(&c, schema, 0) ? NULL : room;
}

/* ---- judging ---- */

struct judging {
    const json_t *root;
    char *reason;
    char path[160];
    size_t path_bytes;
    unsigned depth;
    unsigned quiet; /* inside of anyOf, not, …: a difference is nothing to tell */
    unsigned patterns;
    uint64_t steps;
    bool unsure;
};

static bool fits(struct judging *j, const json_t *schema, const json_t *document);

static bool step(struct judging *j)
{
    if (++j->steps > STEPS_MAX)
        j->unsure = true;
    return !j->unsure;
}

/* Always false. */
static bool differs(struct judging *j, const char *keyword, const char *what)
{
    if (j->quiet == 0 && j->reason[0] == '\0')
        (void)snprintf(j->reason, 256, "%s: %s%s%s", j->path_bytes > 0 ? j->path : "the document", keyword,
                       what[0] != '\0' ? ": " : "", what);
    return false;
}

static bool need(struct judging *j, bool holds, const char *keyword)
{
    return holds || differs(j, keyword, "does not hold");
}

static bool fits_below(struct judging *j, const json_t *schema, const json_t *document, const char *key,
                       size_t index)
{
    size_t before = j->path_bytes;
    int n = key != NULL ? snprintf(j->path + before, sizeof j->path - before, "/%.40s", key)
                        : snprintf(j->path + before, sizeof j->path - before, "/%zu", index);
    j->path_bytes = before + (size_t)n < sizeof j->path ? before + (size_t)n : sizeof j->path - 1;
    bool result = fits(j, schema, document);
    j->path_bytes = before;
    j->path[before] = '\0';
    return result;
}

static bool fits_quietly(struct judging *j, const json_t *schema, const json_t *document)
{
    j->quiet++;
    bool result = fits(j, schema, document);
    j->quiet--;
    return result;
}

/* 1 and 1.0 are the same number. */
static bool same(struct judging *j, const json_t *a, const json_t *b)
{
    size_t i;
    const char *name;
    json_t *item;
    if (!step(j))
        return false;
    if (json_is_number(a) && json_is_number(b))
        return json_is_integer(a) && json_is_integer(b) ? json_integer_value(a) == json_integer_value(b)
                                                        : json_number_value(a) == json_number_value(b);
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_array(a)) {
        if (json_array_size(a) != json_array_size(b))
            return false;
        json_array_foreach(a, i, item)
        {
            if (!same(j, item, json_array_get(b, i)))
                return false;
        }
        return true;
    }
    if (!json_is_object(a))
        return json_equal(a, b);
    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach((json_t *)a, name, item)
    {
        const json_t *other = json_object_get(b, name);
        if (other == NULL || !same(j, item, other))
            return false;
    }
    return true;
}

static bool has_type(const json_t *document, const char *type)
{
    switch (json_typeof(document)) {
    case JSON_NULL:
        return strcmp(type, "null") == 0;
    case JSON_TRUE:
    case JSON_FALSE:
        return strcmp(type, "boolean") == 0;
    case JSON_INTEGER:
        return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
    case JSON_REAL:
        return strcmp(type, "number") == 0 ||
               (strcmp(type, "integer") == 0 && json_real_value(document) == rint(json_real_value(document)));
    case JSON_STRING:
        return strcmp(type, "string") == 0;
    case JSON_ARRAY:
        return strcmp(type, "array") == 0;
    case JSON_OBJECT:
        return strcmp(type, "object") == 0;
    }
    return false;
}

#define RULE(name)                                                                                           \
    static bool name(struct judging *j, const json_t *value, const json_t *schema, const json_t *document)
#define UNUSED (void)schema

RULE(by_type)
{
    size_t i;
    json_t *type;
    UNUSED;
    bool found = json_is_string(value) && has_type(document, json_string_value(value));
    json_array_foreach(value, i, type) found = found || has_type(document, json_string_value(type));
    return found || differs(j, "type", "is another");
}

RULE(by_enum)
{
    size_t i;
    json_t *one;
    UNUSED;
    json_array_foreach(value, i, one)
    {
        if (same(j, one, document))
            return true;
    }
    return differs(j, "enum", "is none of them");
}

RULE(by_const)
{
    UNUSED;
    return need(j, same(j, value, document), "const");
}

static double bound(const json_t *value)
{
    double number = 0;
    (void)hc_predicate_number(value, &number);
    return number;
}

RULE(by_minimum)
{
    UNUSED;
    return !json_is_number(document) || need(j, json_number_value(document) >= bound(value), "minimum");
}
RULE(by_maximum)
{
    UNUSED;
    return !json_is_number(document) || need(j, json_number_value(document) <= bound(value), "maximum");
}
RULE(by_above)
{
    UNUSED;
    return !json_is_number(document) ||
           need(j, json_number_value(document) > bound(value), "exclusiveMinimum");
}
RULE(by_below)
{
    UNUSED;
    return !json_is_number(document) ||
           need(j, json_number_value(document) < bound(value), "exclusiveMaximum");
}

/* 0.3 is a multiple of 0.1 for everybody but a computer. */
RULE(by_multiple)
{
    UNUSED;
    if (!json_is_number(document))
        return true;
    double times = json_number_value(document) / bound(value);
    return need(j, isfinite(times) && fabs(times - rint(times)) <= 1e-9 * fmax(1, fabs(times)), "multipleOf");
}

static json_int_t characters(const json_t *text)
{
    json_int_t count = 0;
    const char *at = json_string_value(text);
    for (size_t i = 0; i < json_string_length(text); i++)
        count += ((unsigned char)at[i] & 0xc0) != 0x80;
    return count;
}

RULE(by_min_length)
{
    UNUSED;
    return !json_is_string(document) ||
           need(j, characters(document) >= json_integer_value(value), "minLength");
}
RULE(by_max_length)
{
    UNUSED;
    return !json_is_string(document) ||
           need(j, characters(document) <= json_integer_value(value), "maxLength");
}

RULE(by_pattern)
{
    UNUSED;
    if (!json_is_string(document))
        return true;
    int found = ++j->patterns > PATTERNS_MAX
                    ? HC_CANNOT_TELL
                    : hc_pattern_search(json_string_value(value), json_string_value(document),
                                        json_string_length(document));
    j->unsure = j->unsure || found == HC_CANNOT_TELL;
    return need(j, found == HC_YES, "pattern");
}

RULE(by_prefix)
{
    size_t i;
    json_t *one;
    UNUSED;
    json_array_foreach(value, i, one)
    {
        if (i < json_array_size(document) && !fits_below(j, one, json_array_get(document, i), NULL, i))
            return false;
    }
    return true;
}

RULE(by_items)
{
    for (size_t i = json_array_size(json_object_get(schema, "prefixItems")); i < json_array_size(document);
         i++)
        if (!fits_below(j, value, json_array_get(document, i), NULL, i))
            return false;
    return true;
}

RULE(by_min_items)
{
    UNUSED;
    return !json_is_array(document) ||
           need(j, (json_int_t)json_array_size(document) >= json_integer_value(value), "minItems");
}
RULE(by_max_items)
{
    UNUSED;
    return !json_is_array(document) ||
           need(j, (json_int_t)json_array_size(document) <= json_integer_value(value), "maxItems");
}

RULE(by_unique)
{
    UNUSED;
    for (size_t a = 1; json_is_true(value) && a < json_array_size(document) && !j->unsure; a++)
        for (size_t b = 0; b < a && !j->unsure; b++)
            if (same(j, json_array_get(document, a), json_array_get(document, b)))
                return differs(j, "uniqueItems", "one is there twice");
    return true;
}

RULE(by_contains)
{
    UNUSED;
    for (size_t i = 0; i < json_array_size(document); i++)
        if (fits_quietly(j, value, json_array_get(document, i)))
            return true;
    return !json_is_array(document) || differs(j, "contains", "none is there");
}

RULE(by_properties)
{
    const char *name;
    json_t *one;
    UNUSED;
    json_object_foreach((json_t *)value, name, one)
    {
        const json_t *member = json_object_get(document, name);
        if (member != NULL && !fits_below(j, one, member, name, 0))
            return false;
    }
    return true;
}

RULE(by_required)
{
    size_t i;
    json_t *name;
    UNUSED;
    json_array_foreach(value, i, name)
    {
        if (json_is_object(document) && json_object_get(document, json_string_value(name)) == NULL)
            return differs(j, "lacks", json_string_value(name));
    }
    return true;
}

RULE(by_additional)
{
    const json_t *known = json_object_get(schema, "properties");
    const char *name;
    json_t *member;
    if (!json_is_object(document))
        return true;
    json_object_foreach((json_t *)document, name, member)
    {
        if (json_object_get(known, name) == NULL && !fits_below(j, value, member, name, 0))
            return false;
    }
    return true;
}

RULE(by_names)
{
    const char *name;
    json_t *member;
    UNUSED;
    if (!json_is_object(document))
        return true;
    json_object_foreach((json_t *)document, name, member)
    {
        json_t *text = json_string(name);
        bool good = text != NULL && fits_quietly(j, value, text);
        j->unsure = j->unsure || text == NULL;
        json_decref(text);
        if (!good)
            return differs(j, "propertyNames", name);
    }
    return true;
}

RULE(by_min_properties)
{
    UNUSED;
    return !json_is_object(document) ||
           need(j, (json_int_t)json_object_size(document) >= json_integer_value(value), "minProperties");
}
RULE(by_max_properties)
{
    UNUSED;
    return !json_is_object(document) ||
           need(j, (json_int_t)json_object_size(document) <= json_integer_value(value), "maxProperties");
}

static size_t how_many_fit(struct judging *j, const json_t *schemas, const json_t *document)
{
    size_t i, count = 0;
    json_t *one;
    json_array_foreach(schemas, i, one) count += fits_quietly(j, one, document);
    return count;
}

RULE(by_all)
{
    size_t i;
    json_t *one;
    UNUSED;
    json_array_foreach(value, i, one)
    {
        if (!fits(j, one, document))
            return false;
    }
    return true;
}
RULE(by_any)
{
    UNUSED;
    return need(j, how_many_fit(j, value, document) > 0, "anyOf");
}
RULE(by_one)
{
    UNUSED;
    return need(j, how_many_fit(j, value, document) == 1, "oneOf");
}
RULE(by_not)
{
    UNUSED;
    return need(j, !fits_quietly(j, value, document), "not");
}
RULE(by_reference)
{
    UNUSED;
    return fits(j, resolve(j->root, json_string_value(value)), document);
}

/* In the order of the table, so that a reason does not depend on how a schema was written down. */
static bool fits(struct judging *j, const json_t *schema, const json_t *document)
{
    bool good = true;
    if (!step(j))
        return false;
    if (json_is_boolean(schema))
        return json_is_true(schema) || differs(j, "must not be there", "");
    if (++j->depth > JUDGE_DEPTH_MAX)
        j->unsure = true;
    for (size_t i = 0; i < KEYWORDS && good && !j->unsure; i++) {
        const json_t *value = keywords[i].judge != NULL ? json_object_get(schema, keywords[i].name) : NULL;
        if (value != NULL)
            good = keywords[i].judge(j, value, schema, document);
    }
    j->depth--;
    return good;
}

enum hc_schema_outcome hc_schema_judge(const json_t *schema, const json_t *document, char ret_reason[256])
{
    struct judging j = {.root = schema, .reason = ret_reason};
    ret_reason[0] = '\0';
    bool good = fits(&j, schema, document);
    if (!j.unsure)
        return good ? HC_SCHEMA_HOLDS : HC_SCHEMA_DIFFERS;
    (void)snprintf(ret_reason, 256, "too much to judge: the schema or the document is too deep or too large");
    return HC_SCHEMA_UNSURE;
}
