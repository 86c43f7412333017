/* A record as people read it: every field of it, in the order of the contract, nothing that a terminal obeys.
 */
#include "cli/records.h"

#include <string.h>

static const char *const order[] = {
    "schema",  "id",        "created_at",  "submitter",   "origin",     "run",         "verdict",
    "state",   "status",    "cause",       "exit_code",   "signal",     "signal_name", "error",
    "by",      "note",      "environment", "differences", "stdout",     "stderr",      "result",
    "compile", "artifacts", "files",       "usage",       "limits",     "network",     "syscalls_denied",
    "filter",  "isolation", "cell",        "policy",      "acceptance", "release",     "runtime",
    "timing",  "residue",   "request",     "chain"};

static void indent(unsigned depth)
{
    printf("%*s", (int)(2 * depth), "");
}

static bool is_short(const json_t *value)
{
    return !json_is_object(value) && !json_is_array(value) &&
           !(json_is_string(value) &&
             memchr(json_string_value(value), '\n', json_string_length(value)) != NULL);
}

static void print_short(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        hc_print_visible(stdout, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        printf("%lld", (long long)json_integer_value(value));
        break;
    case JSON_TRUE:
        printf("yes");
        break;
    case JSON_FALSE:
        printf("no");
        break;
    default:
        printf("-");
    }
}

static void print_lines(const json_t *text, unsigned depth)
{
    const char *at = json_string_value(text), *end = at + json_string_length(text);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        indent(depth);
        printf("| ");
        hc_print_visible(stdout, at, (size_t)(stop - at));
        (void)putchar('\n');
        at = stop + 1;
    }
}

static void print_value(const char *name, const json_t *value, unsigned depth);

static bool all_short(const json_t *list)
{
    size_t i, n = 0;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        n += json_is_string(item) ? json_string_length(item) + 2 : 8;
        if (!is_short(item) || n > 90)
            return false;
    }
    return true;
}

static void print_list(const char *name, const json_t *list, unsigned depth)
{
    size_t i;
    json_t *item;
    char number[24];
    indent(depth);
    printf("%s:", name);
    if (json_array_size(list) == 0)
        printf(" none");
    bool inline_ = all_short(list);
    if (inline_)
        json_array_foreach(list, i, item)
        {
            printf(i == 0 ? " " : ", ");
            print_short(item);
        }
    (void)putchar('\n');
    if (!inline_)
        json_array_foreach(list, i, item)
        {
            (void)snprintf(number, sizeof number, "%zu", i + 1);
            print_value(number, item, depth + 1);
        }
}

static void print_object(const char *name, const json_t *object, unsigned depth)
{
    const char *member;
    json_t *value;
    indent(depth);
    printf("%s:%s\n", name, json_object_size(object) == 0 ? " none" : "");
    json_object_foreach((json_t *)(uintptr_t)object, member, value)
    {
        print_value(member, value, depth + 1);
    }
}

static void print_value(const char *name, const json_t *value, unsigned depth)
{
    if (json_is_object(value)) {
        print_object(name, value, depth);
    } else if (json_is_array(value)) {
        print_list(name, value, depth);
    } else if (is_short(value)) {
        indent(depth);
        printf("%s: ", name);
        print_short(value);
        (void)putchar('\n');
    } else {
        indent(depth);
        printf("%s:\n", name);
        print_lines(value, depth + 1);
    }
}

static bool listed(const char *name)
{
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (strcmp(order[i], name) == 0)
            return true;
    return false;
}

void hc_print_record(const json_t *record)
{
    const char *name;
    json_t *value;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if ((value = json_object_get(record, order[i])) != NULL)
            print_value(order[i], value, 0);
    json_object_foreach((json_t *)(uintptr_t)record, name, value)
    {
        if (!listed(name))
            print_value(name, value, 0);
    }
}
