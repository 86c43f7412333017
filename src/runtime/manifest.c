#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/manifest.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "cell/wire.h"
#include "runtime/interpreters.h"
#include "runtime/manifest_read.h"
#include "runtime/template.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <string.h>

enum { NAME_BYTES_MAX = 63 };

#define FLAGS       (1u << HC_TEMPLATE_FLAGS)
#define TREE        (1u << HC_TEMPLATE_TREE)
#define FIX_NAME    (((1u << HC_TEMPLATE_COUNT) - 1) & ~FLAGS & ~TREE)
#define ANY_NAME    ((FIX_NAME | TREE) & ~(1u << HC_TEMPLATE_SEED) & ~(1u << HC_TEMPLATE_HOOK))
#define INTERPRETER (1u << HC_TEMPLATE_INTERPRETER)
#define FILE_NAME   (1u << HC_TEMPLATE_FILE)

struct reader {
    const struct hc_yaml *yaml;
    struct hc_problem *problem;
};

/* One key of a mapping: how its value is read, where to, and which templates it may hold. */
struct field {
    const char *key;
    int (*read)(struct reader *reader, const struct field *field, json_t *value, const char *path,
                void *slot);
    size_t offset;
    bool required;
    unsigned allowed;
    bool (*valid)(const char *text);
    const char *expected;
};

static const char *kind_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "a mapping";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "nothing";
    }
    return "something else";
}

static int refuse_kind(struct reader *r, const char *path, const char *expected, const json_t *value)
{
    const char *key = strrchr(path, '/');

    return hc_yaml_problem(r->yaml, path, r->problem, "%s%sexpected %s, found %s", key ? key + 1 : "",
                           key ? ": " : "", expected, kind_name(value));
}

/* ---- what texts may look like ---- */

static bool is_name(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+#._-");

    return n > 0 && n <= NAME_BYTES_MAX && !text[n] && isalnum((unsigned char)text[0]);
}

static bool is_extension(const char *text)
{
    return text[0] == '.' && text[1] && strlen(text) <= NAME_BYTES_MAX && !strpbrk(text, "/\n");
}

static bool is_file_name(const char *text)
{
    return *text && *text != '.' && *text != '-' && strlen(text) <= NAME_BYTES_MAX && !strpbrk(text, "/\n");
}

/* A slash at the end makes it a folder. */
static bool is_output(const char *text)
{
    size_t n = strlen(text);
    hc_autofree char *name = n > 0 && text[n - 1] == '/' ? strndup(text, n - 1) : strdup(text);

    return name && is_file_name(name);
}

static bool is_absolute(const char *text)
{
    size_t n = strlen(text);

    return n > 1 && n < HC_PATH_SIZE && text[0] == '/' && text[n - 1] != '/' && !strstr(text, "//") &&
           !strstr(text, "/./") && !strstr(text, "/../") && !(n > 2 && strcmp(text + n - 2, "/.") == 0) &&
           !(n > 3 && strcmp(text + n - 3, "/..") == 0);
}

/* Absolute, or below a tree: a clean path of plain parts; which of the two, is checked when all is read. */
static bool is_interpreter(const char *text)
{
    hc_autofree char *below = hc_printf("/%s", text);

    return is_absolute(text) || (text[0] != '/' && below != NULL && is_absolute(below));
}

/* Where a tree may lie in a cell: not on or in the folders that every cell has. */
static bool is_cell_place(const char *text)
{
    static const char *const taken[] = {"/bin",   "/sbin",  "/lib",    "/dev",     "/etc", "/proc",
                                        "/run",   "/sys",   "/tmp",    "/usr",     "/var", "/work",
                                        "/lib64", "/lib32", "/libx32", "/scratch", "/cell"};

    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        size_t n = strlen(taken[i]);
        if (strncmp(text, taken[i], n) == 0 && (text[n] == '/' || text[n] == '\0'))
            return false;
    }
    return is_absolute(text) && !strpbrk(text, "*?[");
}

static bool is_accept(const char *text)
{
    return strcmp(text, "accept") == 0;
}

/* A variant stands where a version could: it must not look like one. */
static bool is_variant(const char *text)
{
    return is_name(text) && !isdigit((unsigned char)text[0]);
}

/* One word of a compiler, which begins with a dash; a star only at the end. */
static bool is_flag(const char *text)
{
    const char *star = strchr(text, '*');

    return text[0] == '-' && text[1] && text[1] != '*' && strlen(text) <= NAME_BYTES_MAX &&
           !strpbrk(text, " \n@") && (!star || !star[1]);
}

/* Never a whole tree that holds secrets or devices: something below a folder of the distribution. */
static bool is_visible_path(const char *text)
{
    static const char *const below[] = {"/etc/", "/usr/", "/opt/", "/var/cache/", "/var/lib/"};

    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (strncmp(text, below[i], strlen(below[i])) == 0)
            return is_absolute(text);
    return false;
}

static bool is_variable(const char *text)
{
    return *text && !isdigit((unsigned char)*text) &&
           !text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")];
}

static bool is_text(const char *text)
{
    return *text != '\0';
}

/* ---- what a program says of its failure ---- */

static char *escaped(const char *name)
{
    char *text = malloc(2 * strlen(name) + 1), *to = text;

    for (const char *at = name; text && *at; at++) {
        if (strchr(".[]\\()*+?{}|^$", *at))
            *to++ = '\\';
        *to++ = *at;
    }
    if (text)
        *to = '\0';
    return text;
}

int hc_error_rule_compile(const struct hc_error_rule *rule, const char *file, regex_t *ret_regex,
                          char ret_reason[128])
{
    hc_autofree char *name = escaped(file);
    hc_autofree char *pattern = NULL;
    struct hc_template_values values = {.file = name};

    if (!name)
        return -ENOMEM;
    int r = hc_template_expand(rule->pattern, &values, &pattern);
    if (r)
        return r;
    int code = regcomp(ret_regex, pattern, REG_EXTENDED);
    if (code == 0)
        return 0;
    (void)regerror(code, NULL, ret_reason, 128);
    return code == REG_ESPACE ? -ENOMEM : HC_BAD_INPUT;
}

/* ---- texts and lists ---- */

static int copy_text(struct reader *r, const struct field *field, const json_t *value, const char *path,
                     char **slot)
{
    const char *text = json_string_value(value), *at = NULL;
    size_t length = 0;

    if (!text)
        return refuse_kind(r, path, "a text", value);
    if (field->valid && !field->valid(text))
        return hc_yaml_problem(r->yaml, path, r->problem, "\"%s\" is not %s", text, field->expected);
    if (field->allowed && !hc_template_allowed(text, field->allowed, &at, &length))
        return hc_yaml_problem(r->yaml, path, r->problem, "\"%.*s\" is not known here", (int)length, at);
    *slot = strdup(text);
    return *slot ? 0 : -ENOMEM;
}

static int read_text(struct reader *r, const struct field *field, json_t *value, const char *path, void *slot)
{
    return copy_text(r, field, value, path, slot);
}

static int read_list(struct reader *r, const struct field *field, json_t *value, const char *path, void *slot)
{
    struct hc_strings *list = slot;

    if (!json_is_array(value))
        return refuse_kind(r, path, "a list of texts", value);
    if (field->required && json_array_size(value) == 0)
        return hc_yaml_problem(r->yaml, path, r->problem, "%s: the list is empty", field->key);
    list->items = calloc(json_array_size(value) + 1, sizeof(char *));
    if (!list->items)
        return -ENOMEM;
    for (size_t i = 0; i < json_array_size(value); i++) {
        hc_autofree char *below = hc_printf("%s/%zu", path, i);
        if (!below)
            return -ENOMEM;
        int result = copy_text(r, field, json_array_get(value, i), below, &list->items[i]);
        if (result)
            return result;
        list->count++;
    }
    return 0;
}

/* One text is a list of one. */
static int read_text_or_list(struct reader *r, const struct field *field, json_t *value, const char *path,
                             void *slot)
{
    struct hc_strings *list = slot;

    if (!json_is_string(value))
        return read_list(r, field, value, path, slot);
    list->items = calloc(2, sizeof(char *));
    if (!list->items)
        return -ENOMEM;
    int result = copy_text(r, field, value, path, &list->items[0]);
    list->count = result == 0;
    return result;
}

/* ---- mappings by table ---- */

static const struct field *find_field(const struct field *fields, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(fields[i].key, key) == 0)
            return &fields[i];
    return NULL;
}

static int refuse_key(struct reader *r, const char *path, const char *key)
{
    hc_autofree char *member = hc_yaml_path(path, key);
    unsigned line = 0, column = 0;

    if (!member)
        return -ENOMEM;
    (void)hc_yaml_key_position(r->yaml, member, &line, &column);
    return hc_problem_set(r->problem, line, column, "the key \"%s\" is not known here", key);
}

static int read_field(struct reader *r, const struct field *field, json_t *object, const char *path,
                      void *base)
{
    hc_autofree char *member = hc_yaml_path(path, field->key);
    json_t *value = json_object_get(object, field->key);

    if (!member)
        return -ENOMEM;
    if (value)
        return field->read(r, field, value, member, (char *)base + field->offset);
    if (field->required)
        return hc_yaml_problem(r->yaml, path, r->problem, "the key \"%s\" is missing", field->key);
    return 0;
}

static int read_mapping(struct reader *r, const struct field *fields, size_t count, json_t *object,
                        const char *path, void *base)
{
    const char *key = NULL;
    json_t *value = NULL;

    if (!json_is_object(object))
        return refuse_kind(r, path, "a mapping", object);
    json_object_foreach(object, key, value)
    {
        if (!find_field(fields, count, key))
            return refuse_key(r, path, key);
    }
    for (size_t i = 0; i < count; i++) {
        int result = read_field(r, &fields[i], object, path, base);
        if (result)
            return result;
    }
    return 0;
}

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* ---- the keys that are more than a text or a list ---- */

static int read_flag(struct reader *r, const struct field *field, json_t *value, const char *path, void *slot)
{
    (void)field;
    if (!json_is_boolean(value))
        return refuse_kind(r, path, "true or false", value);
    *(bool *)slot = json_is_true(value);
    return 0;
}

/* Groups and exit codes: small numbers from 1. */
static int read_number(struct reader *r, const struct field *field, json_t *value, const char *path,
                       void *slot)
{
    (void)field;
    if (!json_is_integer(value))
        return refuse_kind(r, path, "a number", value);
    if (json_integer_value(value) < 1 || json_integer_value(value) > 255)
        return hc_yaml_problem(r->yaml, path, r->problem, "%s: expected 1 to 255", field->key);
    *(unsigned *)slot = (unsigned)json_integer_value(value);
    return 0;
}

static int check_rule(struct reader *r, const struct hc_error_rule *rule, const char *path)
{
    regex_t regex;
    char reason[128];

    int result = hc_error_rule_compile(rule, "main.x", &regex, reason);
    if (result == HC_BAD_INPUT)
        return hc_yaml_problem(r->yaml, path, r->problem, "pattern: %s", reason);
    if (result)
        return result;
    size_t groups = regex.re_nsub;
    regfree(&regex);
    if (rule->type > groups || rule->message > groups || rule->line > groups)
        return hc_yaml_problem(r->yaml, path, r->problem, "the pattern has only %zu groups", groups);
    return 0;
}

static int read_rules(struct reader *r, const struct field *field, json_t *value, const char *path,
                      void *slot)
{
    static const struct field fields[] = {
        {"pattern", read_text, offsetof(struct hc_error_rule, pattern), true, FILE_NAME, is_text,
         "a regular expression"},
        {"type", read_number, offsetof(struct hc_error_rule, type), false, 0, NULL, NULL},
        {"message", read_number, offsetof(struct hc_error_rule, message), false, 0, NULL, NULL},
        {"line", read_number, offsetof(struct hc_error_rule, line), false, 0, NULL, NULL},
        {"last", read_flag, offsetof(struct hc_error_rule, last), false, 0, NULL, NULL},
    };
    struct hc_error_rules *rules = slot;

    (void)field;
    if (!json_is_array(value))
        return refuse_kind(r, path, "a list of rules", value);
    rules->items = calloc(json_array_size(value) + 1, sizeof *rules->items);
    if (!rules->items)
        return -ENOMEM;
    for (size_t i = 0; i < json_array_size(value); i++) {
        hc_autofree char *below = hc_printf("%s/%zu", path, i);
        if (!below)
            return -ENOMEM;
        struct hc_error_rule *rule = &rules->items[rules->count++];
        int result = read_mapping(r, fields, COUNT(fields), json_array_get(value, i), below, rule);
        if (result == 0)
            result = check_rule(r, rule, below);
        if (result)
            return result;
    }
    return 0;
}

static int read_compile(struct reader *r, const struct field *field, json_t *value, const char *path,
                        void *slot)
{
    static const struct field fields[] = {
        {"command", read_list, offsetof(struct hc_runtime, compile), true, ANY_NAME | FLAGS, NULL, NULL},
        {"output", read_text, offsetof(struct hc_runtime, compile_output), true, 0, is_output,
         "the name of a file, or of a folder with a slash at its end"},
        {"rules", read_rules, offsetof(struct hc_runtime, compile_rules), false, 0, NULL, NULL},
    };
    struct hc_runtime *runtime = slot;

    (void)field;
    int result = read_mapping(r, fields, COUNT(fields), value, path, slot);
    if (result)
        return result;
    char *slash = strchr(runtime->compile_output, '/');
    runtime->compile_folder = slash != NULL;
    if (slash)
        *slash = '\0';
    return 0;
}

static int read_pattern(struct reader *r, const struct field *field, json_t *value, const char *path,
                        void *slot)
{
    struct hc_runtime *runtime = slot;
    char reason[128];

    int result = copy_text(r, field, value, path, &runtime->version_pattern);
    if (result)
        return result;
    int code = regcomp(&runtime->version_regex, runtime->version_pattern, REG_EXTENDED | REG_NEWLINE);
    if (code == REG_ESPACE)
        return -ENOMEM;
    if (code) {
        (void)regerror(code, NULL, reason, sizeof reason);
        return hc_yaml_problem(r->yaml, path, r->problem, "pattern: %s", reason);
    }
    runtime->version_regex_made = true;
    if (runtime->version_regex.re_nsub != 1)
        return hc_yaml_problem(r->yaml, path, r->problem, "pattern: exactly one group (...) is expected");
    return 0;
}

static int read_version(struct reader *r, const struct field *field, json_t *value, const char *path,
                        void *slot)
{
    static const struct field fields[] = {
        {"command", read_list, offsetof(struct hc_runtime, version_command), true, INTERPRETER, NULL, NULL},
        {"pattern", read_pattern, 0, true, 0, is_text, "a regular expression"},
    };

    (void)field;
    return read_mapping(r, fields, COUNT(fields), value, path, slot);
}

static int read_style(struct reader *r, const struct field *field, json_t *value, const char *path,
                      void *slot)
{
    static const char *const styles[] = {
        [HC_ERROR_STYLE_NONE] = "none",
        [HC_ERROR_STYLE_PYTHON] = "python",
    };
    struct hc_runtime *runtime = slot;

    (void)field;
    for (size_t i = 0; i < COUNT(styles) && json_is_string(value); i++) {
        if (strcmp(json_string_value(value), styles[i]) == 0) {
            runtime->error_style = (enum hc_error_style)i;
            return 0;
        }
    }
    if (!json_is_string(value))
        return refuse_kind(r, path, "a text", value);
    return hc_yaml_problem(r->yaml, path, r->problem, "\"%s\" is no style of errors",
                           json_string_value(value));
}

static int read_error(struct reader *r, const struct field *field, json_t *value, const char *path,
                      void *slot)
{
    static const struct field fields[] = {
        {"style", read_style, 0, false, 0, NULL, NULL},
        {"exit_code", read_number, offsetof(struct hc_runtime, error_exit_code), false, 0, NULL, NULL},
        {"rules", read_rules, offsetof(struct hc_runtime, error_rules), false, 0, NULL, NULL},
    };
    const struct hc_runtime *runtime = slot;

    (void)field;
    int result = read_mapping(r, fields, COUNT(fields), value, path, slot);
    if (result == 0 && runtime->error_rules.count > 0 && runtime->error_style != HC_ERROR_STYLE_NONE)
        result = hc_yaml_problem(r->yaml, path, r->problem, "either a style or rules");
    return result;
}

static int read_variables(struct reader *r, const struct field *field, json_t *value, const char *path,
                          struct hc_runtime_variable **items, size_t *count)
{
    const char *key = NULL;
    json_t *text = NULL;

    if (!json_is_object(value))
        return refuse_kind(r, path, "a mapping", value);
    *items = calloc(json_object_size(value) + 1, sizeof **items);
    if (!*items)
        return -ENOMEM;
    json_object_foreach(value, key, text)
    {
        hc_autofree char *member = hc_yaml_path(path, key);
        struct hc_runtime_variable *variable = &(*items)[(*count)++];
        if (!member)
            return -ENOMEM;
        if (!is_variable(key))
            return hc_yaml_problem(r->yaml, member, r->problem, "\"%s\" is no name of a variable", key);
        int result = copy_text(r, field, text, member, &variable->value);
        if (result)
            return result;
        variable->name = strdup(key);
        if (!variable->name)
            return -ENOMEM;
    }
    return 0;
}

static int read_env(struct reader *r, const struct field *field, json_t *value, const char *path, void *slot)
{
    struct hc_runtime *runtime = slot;

    return read_variables(r, field, value, path, &runtime->env, &runtime->env_count);
}

/* ---- what --deterministic fixes ---- */

static int read_fix_env(struct reader *r, const struct field *field, json_t *value, const char *path,
                        void *slot)
{
    struct hc_runtime_fix *fix = slot;

    return read_variables(r, field, value, path, &fix->env, &fix->env_count);
}

/* A file below the manifest's own folder. */
static bool is_hook(const char *text)
{
    return *text && *text != '/' && *text != '.' && strlen(text) <= 200 && !strstr(text, "..") &&
           !strpbrk(text, "\n\\") && text[strlen(text) - 1] != '/';
}

static int read_fixes(struct reader *r, const struct field *field, json_t *value, const char *path,
                      void *slot)
{
    static const struct field fields[] = {
        {"fixes", read_text, offsetof(struct hc_runtime_fix, fixes), true, 0, is_name, "a word (a-z 0-9 _)"},
        {"env", read_fix_env, 0, false, FIX_NAME, NULL, NULL},
        {"options", read_list, offsetof(struct hc_runtime_fix, options), false, FIX_NAME, NULL, NULL},
        {"hook", read_text, offsetof(struct hc_runtime_fix, hook), false, 0, is_hook,
         "a file below the manifest's folder"},
    };
    struct hc_runtime *runtime = slot;

    (void)field;
    if (!json_is_array(value) || json_array_size(value) > HC_RUNTIME_FIXES_MAX)
        return refuse_kind(r, path, "a list of at most 8 mappings", value);
    runtime->fixes = calloc(json_array_size(value) + 1, sizeof *runtime->fixes);
    if (!runtime->fixes)
        return -ENOMEM;
    for (size_t i = 0; i < json_array_size(value); i++) {
        hc_autofree char *below = hc_printf("%s/%zu", path, i);
        if (!below)
            return -ENOMEM;
        int result = read_mapping(r, fields, COUNT(fields), json_array_get(value, i), below,
                                  &runtime->fixes[runtime->fix_count++]);
        if (result)
            return result;
    }
    return 0;
}

static int add_path(struct hc_runtime *runtime, const char *path, bool required)
{
    if (!path)
        return -EINVAL;
    struct hc_runtime_path *paths = reallocarray(runtime->etc, runtime->etc_count + 1, sizeof *paths);

    if (!paths)
        return -ENOMEM;
    runtime->etc = paths;
    paths[runtime->etc_count] = (struct hc_runtime_path){.path = strdup(path), .required = required};
    if (!paths[runtime->etc_count].path)
        return -ENOMEM;
    runtime->etc_count++;
    return 0;
}

static int add_matches(struct hc_runtime *runtime, const char *pattern)
{
    glob_t found = {0};
    int code = glob(pattern, 0, NULL, &found);
    int r = code == GLOB_NOSPACE ? -ENOMEM : 0;

    for (size_t i = 0; r == 0 && code == 0 && i < found.gl_pathc; i++)
        if (strlen(found.gl_pathv[i]) < HC_PATH_SIZE)
            r = add_path(runtime, found.gl_pathv[i], false);
    globfree(&found);
    return r;
}

struct path_entry {
    char *path;
    bool required;
};

static bool is_module(const char *text)
{
    return text[0] != '\0' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == strlen(text);
}

static int read_warm_kind(struct reader *r, const struct field *field, json_t *value, const char *path,
                          void *slot)
{
    (void)field;
    (void)slot;
    const char *text = json_string_value(value);
    if (text != NULL && strcmp(text, "fork") == 0)
        return 0;
    return hc_yaml_problem(r->yaml, path, r->problem, "expected fork");
}

static int read_warm(struct reader *r, const struct field *field, json_t *value, const char *path, void *slot)
{
    static const struct field fields[] = {
        {"kind", read_warm_kind, 0, true, 0, NULL, NULL},
        {"files", read_list, offsetof(struct hc_runtime, warm_files), false, 0, is_file_name, "a file name"},
        {"native", read_text, offsetof(struct hc_runtime, warm_native), true, 0, is_file_name, "a file name"},
        {"modules", read_list, offsetof(struct hc_runtime, warm_modules), false, 0, is_module,
         "a module's name"},
        {"cold_for", read_list, offsetof(struct hc_runtime, warm_cold_for), false, 0, is_module,
         "the beginning of a variable's name"},
    };
    (void)field;
    return read_mapping(r, fields, COUNT(fields), value, path, slot);
}

static int read_path(struct reader *r, struct hc_runtime *runtime, json_t *value, const char *path)
{
    static const char expected[] = "a path below /etc, /usr, /opt, /var/cache or /var/lib";
    static const struct field fields[] = {
        {"path", read_text, offsetof(struct path_entry, path), true, 0, is_visible_path, expected},
        {"required", read_flag, offsetof(struct path_entry, required), false, 0, NULL, NULL},
    };
    struct path_entry entry = {0};

    int result = json_is_string(value) ? read_text(r, &fields[0], value, path, &entry.path)
                                       : read_mapping(r, fields, COUNT(fields), value, path, &entry);
    bool pattern = result == 0 && entry.path != NULL && strpbrk(entry.path, "*?[") != NULL;
    if (pattern && entry.required)
        result = hc_yaml_problem(r->yaml, path, r->problem, "a path with wildcards cannot be required");
    else if (result == 0)
        result = pattern ? add_matches(runtime, entry.path) : add_path(runtime, entry.path, entry.required);
    free(entry.path);
    return result;
}

static int read_etc(struct reader *r, const struct field *field, json_t *value, const char *path, void *slot)
{
    (void)field;
    if (!json_is_array(value))
        return refuse_kind(r, path, "a list of paths", value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        hc_autofree char *below = hc_printf("%s/%zu", path, i);
        if (!below)
            return -ENOMEM;
        int result = read_path(r, slot, json_array_get(value, i), below);
        if (result)
            return result;
    }
    return 0;
}

static int read_tree(struct reader *r, const struct field *field, json_t *value, const char *path, void *slot)
{
    static const struct field fields[] = {
        {"host", read_text, offsetof(struct hc_runtime, tree_host), true, 0, is_absolute, "an absolute path"},
        {"cell", read_text, offsetof(struct hc_runtime, tree_cell), false, 0, is_cell_place,
         "a place for a tree in a cell, such as /opt/NAME"},
    };
    const struct hc_runtime *runtime = slot;

    (void)field;
    int result = read_mapping(r, fields, COUNT(fields), value, path, slot);
    if (result)
        return result;
    const char *wild = strpbrk(runtime->tree_host, "*?[");
    if (wild && strchr(wild, '/'))
        return hc_yaml_problem(r->yaml, path, r->problem,
                               "host: wildcards are for the last part of the path");
    if (!runtime->tree_cell && !wild && !is_cell_place(runtime->tree_host))
        return hc_yaml_problem(r->yaml, path, r->problem,
                               "host: \"%s\" can't be its place in a cell too: give cell, such as /opt/NAME",
                               runtime->tree_host);
    return 0;
}

static int read_accept(struct reader *r, const struct field *field, json_t *value, const char *path,
                       void *slot)
{
    char *text = NULL;

    int result = copy_text(r, field, value, path, &text);
    *(bool *)slot = result == 0;
    free(text);
    return result;
}

static int read_compile_flags(struct reader *r, const struct field *field, json_t *value, const char *path,
                              void *slot)
{
    static const struct field fields[] = {
        {"allow", read_list, offsetof(struct hc_runtime, compile_flags), true, 0, is_flag,
         "one flag: it begins with '-', and a star can only end it"},
    };

    (void)field;
    return read_mapping(r, fields, COUNT(fields), value, path, slot);
}

/* ---- one manifest ---- */

#define AT(member) offsetof(struct hc_runtime, member)

static const struct field manifest_fields[] = {
    {"name", read_text, AT(name), true, 0, is_name, "a name (a-z 0-9 + # . _ -, at most 63)"},
    {"title", read_text, AT(title), false, 0, is_text, "a title"},
    {"aliases", read_list, AT(aliases), false, 0, is_name, "a name (a-z 0-9 + # . _ -, at most 63)"},
    {"extensions", read_list, AT(extensions), false, 0, is_extension, "a file ending like .py"},
    {"file", read_text, AT(file), true, 0, is_file_name, "a file name"},
    {"interpreter", read_text_or_list, AT(interpreters), true, 0, is_interpreter, "a path"},
    {"tree", read_tree, 0, false, 0, NULL, NULL},
    {"private_paths", read_accept, AT(private_paths), false, 0, is_accept, "\"accept\""},
    {"run", read_list, AT(run), true, ANY_NAME, NULL, NULL},
    {"check", read_list, AT(check), false, ANY_NAME, NULL, NULL},
    {"asserts", read_list, AT(asserts), false, ANY_NAME, NULL, NULL},
    {"compile", read_compile, 0, false, 0, NULL, NULL},
    {"compile_flags", read_compile_flags, 0, false, 0, NULL, NULL},
    {"env", read_env, 0, false, ANY_NAME, NULL, NULL},
    {"deterministic", read_fixes, 0, false, 0, NULL, NULL},
    {"etc", read_etc, 0, false, 0, NULL, NULL},
    {"version", read_version, 0, true, 0, NULL, NULL},
    {"error", read_error, 0, false, 0, NULL, NULL},
    {"digest", read_list, AT(digest), false, 0, is_absolute, "an absolute path"},
    {"facts", read_text, AT(facts), false, 0, is_file_name, "a file name"},
    {"warm", read_warm, 0, false, 0, NULL, NULL},
    {"install", read_text, AT(install), true, 0, is_text, "a hint how to install it"},
    {"notes", read_text, AT(notes), false, 0, NULL, NULL},
};

/* Of a file that adds interpreters to a runtime of another one. */
static const struct field extension_fields[] = {
    {"extends", read_text, AT(extends), true, 0, is_name, "a name (a-z 0-9 + # . _ -, at most 63)"},
    {"variant", read_text, AT(variant), false, 0, is_variant, "a name that does not begin with a digit"},
    {"interpreter", read_text_or_list, AT(interpreters), true, 0, is_interpreter, "a path"},
    {"tree", read_tree, 0, false, 0, NULL, NULL},
    {"private_paths", read_accept, AT(private_paths), false, 0, is_accept, "\"accept\""},
    {"env", read_env, 0, false, ANY_NAME, NULL, NULL},
    {"etc", read_etc, 0, false, 0, NULL, NULL},
    {"digest", read_list, AT(digest), false, 0, is_absolute, "an absolute path"},
    {"notes", read_text, AT(notes), false, 0, NULL, NULL},
};

/* A program that no compile step makes cannot be run. */
static int check_output(struct reader *r, const struct hc_strings *list, const char *key)
{
    unsigned allowed = ANY_NAME & ~(1u << HC_TEMPLATE_OUTPUT);
    const char *at = NULL;
    size_t length = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (hc_template_allowed(list->items[i], allowed, &at, &length))
            continue;
        hc_autofree char *path = hc_printf("/%s/%zu", key, i);
        if (!path)
            return -ENOMEM;
        return hc_yaml_problem(r->yaml, path, r->problem, "\"${output}\" without \"compile\"");
    }
    return 0;
}

/* argv[0] is executed without a search in PATH. */
static int check_program(struct reader *r, const struct hc_strings *list, const char *path)
{
    const char *program = list->count ? list->items[0] : "${";

    if (is_absolute(program) || strncmp(program, "${", 2) == 0)
        return 0;
    hc_autofree char *first = hc_printf("%s/0", path);
    if (!first)
        return -ENOMEM;
    return hc_yaml_problem(r->yaml, first, r->problem,
                           "\"%s\" is neither an absolute path nor \"${interpreter}\" or \"${output}\"",
                           program);
}

/* Relative to the tree where there is one, else absolute. */
static int check_interpreters(struct reader *r, const struct hc_runtime *runtime)
{
    for (size_t i = 0; i < runtime->interpreters.count; i++) {
        const char *text = runtime->interpreters.items[i];
        if ((text[0] == '/') == (runtime->tree_host == NULL))
            continue;
        bool listed = json_is_array(json_object_get(r->yaml->root, "interpreter"));
        hc_autofree char *path = listed ? hc_printf("/interpreter/%zu", i) : strdup("/interpreter");
        return !path ? -ENOMEM
                     : hc_yaml_problem(r->yaml, path, r->problem, "\"%s\" is not %s", text,
                                       runtime->tree_host ? "relative to the tree" : "an absolute path");
    }
    return 0;
}

/* A bind mount shows in /proc/self/mountinfo where its folder lies on the host. */
static int check_privacy(struct reader *r, const struct hc_runtime *runtime)
{
    hc_autofree char *shown = NULL;

    if (!runtime->tree_host || runtime->private_paths)
        return 0;
    int result = hc_tree_shown_path(runtime->tree_host, &shown);
    if (result || !shown)
        return result;
    return hc_yaml_problem(r->yaml, "/tree", r->problem,
                           "programs would see the path %s: mount it as a file system of its own, or say "
                           "private_paths: accept",
                           shown);
}

/* ${tree} stands for something only where there is one. */
static int check_tree(struct reader *r, const struct hc_runtime *runtime)
{
    const struct hc_strings *lists[] = {&runtime->run, &runtime->check, &runtime->compile};
    bool used = false;

    for (size_t i = 0; i < COUNT(lists); i++)
        for (size_t w = 0; w < lists[i]->count; w++)
            used = used || strstr(lists[i]->items[w], "${tree}") != NULL;
    for (size_t i = 0; i < runtime->env_count; i++)
        used = used || strstr(runtime->env[i].value, "${tree}") != NULL;
    return used && !runtime->tree_host
               ? hc_yaml_problem(r->yaml, "", r->problem, "\"${tree}\" without \"tree\"")
               : 0;
}

/* ${flags} is a word of its own, and there when flags are. */
static int check_flags(struct reader *r, const struct hc_runtime *runtime)
{
    bool there = false;

    for (size_t i = 0; i < runtime->compile.count; i++) {
        const char *word = runtime->compile.items[i];
        bool whole = strcmp(word, "${flags}") == 0;
        hc_autofree char *path = hc_printf("/compile/command/%zu", i);
        if (!path)
            return -ENOMEM;
        if (strstr(word, "${flags}") && (!whole || there))
            return hc_yaml_problem(r->yaml, path, r->problem, "\"${flags}\" is a whole word, and there once");
        there = there || whole;
    }
    if (there == (runtime->compile_flags.count > 0))
        return 0;
    return hc_yaml_problem(r->yaml, there ? "/compile/command" : "/compile_flags", r->problem,
                           there ? "\"${flags}\" without \"compile_flags\""
                                 : "compile.command has no \"${flags}\"");
}

static int check_commands(struct reader *r, const struct hc_runtime *runtime)
{
    const struct {
        const struct hc_strings *list;
        const char *path;
    } commands[] = {
        {&runtime->run, "/run"},
        {&runtime->check, "/check"},
        {&runtime->asserts, "/asserts"},
        {&runtime->compile, "/compile/command"},
        {&runtime->version_command, "/version/command"},
    };
    int result = 0;

    for (size_t i = 0; i < COUNT(commands) && result == 0; i++)
        result = check_program(r, commands[i].list, commands[i].path);
    if (result == 0 && !runtime->compile_output)
        result = check_output(r, &runtime->run, "run");
    if (result == 0 && !runtime->compile_output)
        result = check_output(r, &runtime->check, "check");
    if (result == 0 && !runtime->compile_output)
        result = check_output(r, &runtime->asserts, "asserts");
    return result == 0 ? check_flags(r, runtime) : result;
}

static int check_whole(struct reader *r, const struct hc_runtime *runtime)
{
    int result = runtime->extends ? 0 : check_commands(r, runtime);

    if (result == 0)
        result = check_interpreters(r, runtime);
    if (result == 0)
        result = check_tree(r, runtime);
    return result == 0 ? check_privacy(r, runtime) : result;
}

static int fill_runtime(struct hc_runtime *runtime, const char *path, const struct hc_yaml *yaml,
                        struct hc_problem *problem)
{
    struct reader reader = {.yaml = yaml, .problem = problem};
    bool extends = json_object_get(yaml->root, "extends") != NULL;

    int r = extends
                ? read_mapping(&reader, extension_fields, COUNT(extension_fields), yaml->root, "", runtime)
                : read_mapping(&reader, manifest_fields, COUNT(manifest_fields), yaml->root, "", runtime);
    if (r == 0)
        r = check_whole(&reader, runtime);
    if (r)
        return r;
    runtime->manifest_path = strdup(path);
    if (!runtime->title && !extends)
        runtime->title = strdup(runtime->name);
    if (!runtime->manifest_path || (!runtime->title && !extends))
        return -ENOMEM;
    return hc_interpreters_find(runtime);
}

int hc_runtime_read(const char *path, const char *data, size_t n, struct hc_runtime *ret,
                    struct hc_problem *problem)
{
    struct hc_runtime runtime = {0};
    struct hc_yaml yaml = {0};

    int r = hc_sha256_hex(data, n, runtime.manifest_sha256);
    if (r == 0)
        r = hc_yaml_read(data, n, &yaml, problem);
    if (r == 0)
        r = fill_runtime(&runtime, path, &yaml, problem);
    hc_yaml_done(&yaml);
    if (r) {
        hc_runtime_done(&runtime);
        return r;
    }
    *ret = runtime;
    return 0;
}

static void rules_done(struct hc_error_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        free(rules->items[i].pattern);
    free(rules->items);
}

static void free_variables(struct hc_runtime_variable *variables, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(variables[i].name);
        free(variables[i].value);
    }
    free(variables);
}

void hc_runtime_done(struct hc_runtime *runtime)
{
    struct hc_strings *lists[] = {&runtime->aliases,    &runtime->extensions,      &runtime->interpreters,
                                  &runtime->run,        &runtime->check,           &runtime->compile,
                                  &runtime->digest,     &runtime->version_command, &runtime->compile_flags,
                                  &runtime->warm_files, &runtime->warm_modules,    &runtime->warm_cold_for,
                                  &runtime->absent,     &runtime->asserts,         NULL};
    char *texts[] = {runtime->manifest_path,   runtime->name,    runtime->title,       runtime->file,
                     runtime->compile_output,  runtime->install, runtime->notes,       runtime->missing,
                     runtime->version_pattern, runtime->extends, runtime->variant,     runtime->tree_host,
                     runtime->tree_cell,       runtime->facts,   runtime->warm_native, NULL};

    hc_interpreters_done(runtime);

    for (size_t i = 0; lists[i]; i++)
        hc_strings_done(lists[i]);
    for (size_t i = 0; i + 1 < COUNT(texts); i++)
        free(texts[i]);
    free_variables(runtime->env, runtime->env_count);
    for (size_t i = 0; i < runtime->fix_count; i++) {
        free(runtime->fixes[i].fixes);
        free(runtime->fixes[i].hook);
        free_variables(runtime->fixes[i].env, runtime->fixes[i].env_count);
        hc_strings_done(&runtime->fixes[i].options);
    }
    free(runtime->fixes);
    for (size_t i = 0; i < runtime->etc_count; i++)
        free(runtime->etc[i].path);
    free(runtime->etc);
    rules_done(&runtime->error_rules);
    rules_done(&runtime->compile_rules);
    if (runtime->version_regex_made)
        regfree(&runtime->version_regex);
    *runtime = (struct hc_runtime){0};
}
