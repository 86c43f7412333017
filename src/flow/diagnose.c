#include "flow/diagnose.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No program has more lines; a larger number was made up. */
#define LINE_MAX_NUMBER 1000000000

/* Copies a line, cut on a character border; bytes that are not UTF-8 become question marks, for the record is
 * text. */
static void copy_line(char *to, size_t size, const char *from, size_t n)
{
    n = n < size ? n : size - 1;
    n = hc_utf8_floor((const uint8_t *)from, n);
    memcpy(to, from, n);
    to[n] = '\0';
    if (!hc_utf8_valid(to, n))
        for (char *at = to; *at != '\0'; at++)
            if ((unsigned char)*at >= 128)
                *at = '?';
}

static bool type_name(const char *line, size_t n, size_t *ret_length)
{
    size_t length = 0;
    if (n == 0 || !(isalpha((unsigned char)line[0]) || line[0] == '_'))
        return false;
    while (length < n && (isalnum((unsigned char)line[length]) || line[length] == '_' || line[length] == '.'))
        length++;
    *ret_length = length;
    return length == n || (line[length] == ':' && (length + 1 == n || line[length + 1] == ' '));
}

/* `  File "main.py", line 3, in f` */
static bool frame_line(const char *line, size_t n, const char *program_name, long *ret_line)
{
    const char head[] = "  File \"";
    char file[300];
    if (n < sizeof head || strncmp(line, head, sizeof head - 1) != 0)
        return false;
    const char *from = line + sizeof head - 1;
    const char *quote = memchr(from, '"', n - (sizeof head - 1));
    if (quote == NULL || (size_t)(quote - from) >= sizeof file)
        return false;
    memcpy(file, from, (size_t)(quote - from));
    file[quote - from] = '\0';
    const char *base = strrchr(file, '/');
    base = base != NULL ? base + 1 : file;
    if (strcmp(base, program_name) != 0 || strncmp(quote, "\", line ", 8) != 0)
        return false;
    *ret_line = strtol(quote + 8, NULL, 10);
    return *ret_line > 0 && *ret_line <= LINE_MAX_NUMBER;
}

/* The exceptions that may come without any frame: the file could not even be read as Python. */
static bool unparsed(const char *line, size_t name)
{
    static const char *const types[] = {"SyntaxError", "IndentationError", "TabError"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i]) == name && strncmp(types[i], line, name) == 0)
            return true;
    return false;
}

static bool begins(const char *line, const char *end, const char *head)
{
    size_t n = strlen(head);
    return (size_t)(end - line) >= n && strncmp(line, head, n) == 0;
}

/* Lines of an exception group begin with this; those of its members are set in further. */
static const char group_margin[] = "  | ";

/* Where the last traceback begins: behind its head line, or the whole text when there is none (a program that
 * does not parse is reported without one). */
static const char *last_traceback(const char *text, const char *end, bool *ret_group)
{
    const char *found = text;
    *ret_group = false;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const char *next = stop != NULL ? stop + 1 : end;
        bool group = begins(line, next, "  + Exception Group Traceback");
        if (group || begins(line, next, "Traceback")) {
            found = next;
            *ret_group = group;
        }
        line = next;
    }
    return found;
}

/* After the head come the frames, indented, and then the exception: its first line is the first that is not
 * indented. What follows is the rest of its message. */
void hc_diagnose_python(const char *stderr_text, size_t n, const char *program_name, struct hc_diagnosis *ret)
{
    bool group;
    const char *end = stderr_text + n, *from = last_traceback(stderr_text, end, &group);
    bool framed = false, headed = from != stderr_text;
    memset(ret, 0, sizeof *ret);
    for (const char *line = from; line < end && !ret->found;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (group && begins(line, end, group_margin))
            line += sizeof group_margin - 1;
        else if (group) /* members follow */
            break;
        size_t length = (size_t)((stop != NULL ? stop : end) - line), name = 0;
        long number = 0;
        if (frame_line(line, length, program_name, &number)) {
            ret->line = number;
            framed = true;
        } else if (type_name(line, length, &name) && (framed || headed || unparsed(line, name))) {
            copy_line(ret->type, sizeof ret->type, line, name);
            if (name + 2 <= length)
                copy_line(ret->message, sizeof ret->message, line + name + 2, length - name - 2);
            ret->found = true;
        }
        line = stop != NULL ? stop + 1 : end;
    }
    if (framed && ret->found)
        (void)snprintf(ret->file, sizeof ret->file, "%s", program_name);
    else
        ret->line = 0;
}

/* A positive decimal number followed by `stop`. */
static bool number_before(const char *text, char stop, long *ret_number, const char **ret_rest)
{
    char *rest = NULL;
    if (!isdigit((unsigned char)*text))
        return false;
    *ret_number = strtol(text, &rest, 10);
    *ret_rest = rest + 1;
    return *rest == stop && *ret_number > 0 && *ret_number <= LINE_MAX_NUMBER;
}

/* A linker names no line of the program, only what it misses. */
static void diagnose_linker(const char *stderr_text, size_t n, struct hc_diagnosis *ret)
{
    static const char *const words[] = {"undefined reference to ", "multiple definition of "};
    for (size_t i = 0; i < sizeof words / sizeof *words && !ret->found; i++) {
        const char *found = memmem(stderr_text, n, words[i], strlen(words[i]));
        if (found == NULL)
            continue;
        const char *end = memchr(found, '\n', (size_t)(stderr_text + n - found));
        (void)snprintf(ret->type, sizeof ret->type, "error");
        copy_line(ret->message, sizeof ret->message, found,
                  (size_t)((end != NULL ? end : stderr_text + n) - found));
        ret->found = true;
    }
}

void hc_diagnose_compiler(const char *stderr_text, size_t n, const char *program_name,
                          struct hc_diagnosis *ret)
{
    size_t name = strlen(program_name);
    memset(ret, 0, sizeof *ret);
    for (const char *line = stderr_text; line < stderr_text + n;) {
        const char *end = memchr(line, '\n', (size_t)(stderr_text + n - line));
        end = end != NULL ? end : stderr_text + n;
        char text[600];
        const char *rest;
        long column = 0;
        copy_line(text, sizeof text, line, (size_t)(end - line));
        char *word = strstr(text, "error: ");
        if (strncmp(text, program_name, name) == 0 && text[name] == ':' && word != NULL &&
            number_before(text + name + 1, ':', &ret->line, &rest)) {
            (void)number_before(rest, ':', &column, &rest);
            (void)snprintf(ret->type, sizeof ret->type, "error");
            (void)snprintf(ret->message, sizeof ret->message, "%.500s", word + 7);
            (void)snprintf(ret->file, sizeof ret->file, "%s", program_name);
            ret->found = true;
            return;
        }
        line = end + 1;
    }
    ret->line = 0;
    diagnose_linker(stderr_text, n, ret);
}

/* ---- by rules ---- */

enum { RULE_TEXT_MAX = 64 * 1024, RULE_LINE_MAX = 1024, RULE_GROUPS = 10 };

static void take_group(char *to, size_t size, const char *line, const regmatch_t *groups, unsigned group)
{
    if (to[0] == '\0' && group > 0 && group < RULE_GROUPS && groups[group].rm_so >= 0)
        copy_line(to, size, line + groups[group].rm_so, (size_t)(groups[group].rm_eo - groups[group].rm_so));
}

/* What an earlier rule found stays. */
static void take_match(const struct hc_error_rule *rule, const char *line, const regmatch_t *groups,
                       struct hc_diagnosis *ret)
{
    char number[24] = "";
    take_group(ret->type, sizeof ret->type, line, groups, rule->type);
    take_group(ret->message, sizeof ret->message, line, groups, rule->message);
    take_group(number, sizeof number, line, groups, rule->line);
    if (ret->line == 0 && isdigit((unsigned char)number[0]))
        ret->line = strtol(number, NULL, 10);
    if (ret->line < 0 || ret->line > LINE_MAX_NUMBER)
        ret->line = 0;
}

/* Line by line and with short lines: what a regular expression may cost on hostile text stays small. */
static void apply_rule(const struct hc_error_rule *rule, const regex_t *regex, const char *text, size_t n,
                       struct hc_diagnosis *ret)
{
    regmatch_t groups[RULE_GROUPS], found[RULE_GROUPS];
    char line[RULE_LINE_MAX], kept[RULE_LINE_MAX];
    bool any = false;
    for (const char *at = text; at < text + n && (rule->last || !any);) {
        const char *end = memchr(at, '\n', (size_t)(text + n - at));
        end = end != NULL ? end : text + n;
        copy_line(line, sizeof line, at, (size_t)(end - at));
        if (regexec(regex, line, RULE_GROUPS, groups, 0) == 0) {
            memcpy(kept, line, sizeof kept);
            memcpy(found, groups, sizeof found);
            any = true;
        }
        at = end + 1;
    }
    if (any)
        take_match(rule, kept, found, ret);
}

void hc_diagnose_rules(const struct hc_error_rules *rules, const char *stderr_text, size_t n, bool at_head,
                       const char *program_name, struct hc_diagnosis *ret)
{
    memset(ret, 0, sizeof *ret);
    if (n > RULE_TEXT_MAX && !at_head)
        stderr_text += n - RULE_TEXT_MAX;
    n = n < RULE_TEXT_MAX ? n : RULE_TEXT_MAX;
    for (size_t i = 0; i < rules->count; i++) {
        char reason[128];
        regex_t regex;
        if (hc_error_rule_compile(&rules->items[i], program_name, &regex, reason) != 0)
            continue;
        apply_rule(&rules->items[i], &regex, stderr_text, n, ret);
        regfree(&regex);
    }
    ret->found = ret->type[0] != '\0' || ret->message[0] != '\0';
    if (!ret->found)
        ret->line = 0;
    if (ret->line > 0)
        (void)snprintf(ret->file, sizeof ret->file, "%s", program_name);
}
