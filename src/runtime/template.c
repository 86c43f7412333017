#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/template.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "runtime/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* In the order of enum hc_template_name. */
static const struct {
    const char *name;
    size_t offset;
    bool number;
} names[HC_TEMPLATE_COUNT] = {
    {"interpreter", offsetof(struct hc_template_values, interpreter), false},
    {"file", offsetof(struct hc_template_values, file), false},
    {"output", offsetof(struct hc_template_values, output), false},
    {"home", offsetof(struct hc_template_values, home), false},
    {"threads", offsetof(struct hc_template_values, threads), true},
    {"memory_mib", offsetof(struct hc_template_values, memory_mib), true},
    {"heap_mib", offsetof(struct hc_template_values, heap_mib), true},
    {"seed", offsetof(struct hc_template_values, seed), false},
    {"hook", offsetof(struct hc_template_values, hook), false},
    {"tree", offsetof(struct hc_template_values, tree), false},
    {"flags", 0, false},
};

/* The row of "${name}" at text, and its length; HC_TEMPLATE_COUNT when there is no such row. */
static unsigned find_name(const char *text, size_t *ret_length)
{
    size_t n = strcspn(text + 2, "}");

    *ret_length = 2 + n + (text[2 + n] == '}');
    if (text[2 + n] == '}')
        for (unsigned i = 0; i < HC_TEMPLATE_COUNT; i++)
            if (strlen(names[i].name) == n && memcmp(names[i].name, text + 2, n) == 0)
                return i;
    return HC_TEMPLATE_COUNT;
}

bool hc_template_allowed(const char *template, unsigned allowed, const char **ret_at, size_t *ret_length)
{
    for (const char *at = template; (at = strchr(at, '$'));) {
        size_t length = at[1] == '$' ? 2 : 1;
        if (at[1] == '{') {
            unsigned row = find_name(at, &length);
            if (row == HC_TEMPLATE_COUNT || !(allowed & 1u << row)) {
                *ret_at = at;
                *ret_length = length;
                return false;
            }
        }
        at += length;
    }
    return true;
}

static int put_value(FILE *out, unsigned row, const struct hc_template_values *values)
{
    const void *field = (const char *)values + names[row].offset;

    if (row == HC_TEMPLATE_FLAGS)
        return HC_BAD_INPUT;
    if (names[row].number) {
        (void)fprintf(out, "%" PRIu64, *(const uint64_t *)field);
        return 0;
    }
    const char *text = *(const char *const *)field;
    if (!text)
        return -EINVAL;
    (void)fputs(text, out);
    return 0;
}

static int expand_into(FILE *out, const char *template, const struct hc_template_values *values)
{
    for (const char *at = template; *at;) {
        size_t length = 1;
        if (at[0] == '$' && at[1] == '{') {
            unsigned row = find_name(at, &length);
            int r = row == HC_TEMPLATE_COUNT ? HC_BAD_INPUT : put_value(out, row, values);
            if (r)
                return r;
        } else {
            (void)fputc(*at, out);
            length = at[0] == '$' && at[1] == '$' ? 2 : 1;
        }
        at += length;
    }
    return 0;
}

int hc_template_expand(const char *template, const struct hc_template_values *values, char **ret)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    if (!out)
        return -ENOMEM;
    int r = expand_into(out, template, values);
    bool broken = ferror(out) != 0;
    if (fclose(out) != 0 || broken)
        r = r ? r : -ENOMEM;
    if (r) {
        free(text);
        return r;
    }
    *ret = text;
    return 0;
}

/* The caller's flags, as many words as they are. */
static int add_flags(const struct hc_template_values *values, struct hc_strings *made)
{
    for (size_t i = 0; i < values->flag_count; i++) {
        made->items[made->count] = strdup(values->flags[i]);
        if (!made->items[made->count])
            return -ENOMEM;
        made->count++;
    }
    return 0;
}

static int expand_word(const char *template, const struct hc_template_values *values, struct hc_strings *made)
{
    if (strcmp(template, "${flags}") == 0)
        return add_flags(values, made);
    int r = hc_template_expand(template, values, &made->items[made->count]);
    made->count += r == 0;
    return r;
}

int hc_template_expand_all(const struct hc_strings *templates, const struct hc_template_values *values,
                           struct hc_strings *ret)
{
    size_t most = templates->count * (values->flag_count + 1);
    struct hc_strings made = {.items = calloc(most + 1, sizeof(char *))};

    if (!made.items)
        return -ENOMEM;
    for (size_t i = 0; i < templates->count; i++) {
        int r = expand_word(templates->items[i], values, &made);
        if (r) {
            hc_strings_done(&made);
            return r;
        }
    }
    *ret = made;
    return 0;
}

void hc_strings_done(struct hc_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
    *strings = (struct hc_strings){0};
}
