/* Predicates of data sets: how a run ended, answers by name, the outputs of a notebook. */
#include "flow/accept_kinds.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_TOLERANCE 0.01
#define ROUNDING                                                                                             \
    1e-9 /* 3.99 is within 0.01 of 3.98 although their difference, as doubles, is a hair more                \
          */

static void show_ending(const struct hc_job *job, char out[512])
{
    if (job->verdict.exit_code >= 0)
        (void)snprintf(out, 512, "exit code %d", job->verdict.exit_code);
    else
        (void)snprintf(out, 512, "%s", hc_statuses[job->verdict.status].name);
}

void hc_judge_exit_zero(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    (void)predicate;
    answer->ok = job->verdict.status == HC_STATUS_OK ? HC_YES : HC_NO;
    (void)snprintf(answer->expected, sizeof answer->expected, "exit code 0");
    show_ending(job, answer->got);
}

void hc_judge_fails(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    (void)predicate;
    answer->ok = job->verdict.status != HC_STATUS_OK ? HC_YES : HC_NO;
    (void)snprintf(answer->expected, sizeof answer->expected, "any failure");
    show_ending(job, answer->got);
}

/* The last line of stderr begins with the exception's name, perhaps with its modules before it. */
void hc_judge_exception(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const struct hc_captured *err = &job->outcome.err;
    const char *name = json_string_value(json_object_get(predicate, "value")),
               *text = (const char *)err->data;
    size_t n = text != NULL ? err->kept_bytes : 0, wanted = strlen(name), word = 0;
    hc_trim(&text, &n);
    const char *line = text + n;
    while (line > text && line[-1] != '\n')
        line--;
    size_t length = (size_t)(text + n - line);
    hc_show_bytes(answer->expected, name, wanted);
    hc_show_bytes(answer->got, line, length);
    while (word < length && line[word] != ':' && !isspace((unsigned char)line[word]))
        word++;
    bool named = word >= wanted && wanted > 0 && memcmp(line + word - wanted, name, wanted) == 0 &&
                 (word == wanted || line[word - wanted - 1] == '.');
    answer->ok = named && job->verdict.status != HC_STATUS_OK ? HC_YES : HC_NO;
}

/* ---- answers: [[name, value], …] against @name[value] in the output ---- */

const char *hc_check_answers(const json_t *predicate, char room[256])
{
    const json_t *list = json_object_get(predicate, "value");
    size_t i;
    json_t *pair;
    (void)room;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return "value must be a list of pairs of name and value";
    json_array_foreach(list, i, pair)
    {
        const json_t *value = json_array_get(pair, 1);
        if (json_array_size(pair) != 2 || !json_is_string(json_array_get(pair, 0)) ||
            (!json_is_string(value) && !json_is_number(value)))
            return "value must be a list of pairs of name and value";
    }
    return NULL;
}

/* Where the bracket that opened before `text` closes, on the same line; NULL: nowhere. */
static const char *closing(const char *text, const char *end)
{
    for (unsigned depth = 1; text < end && *text != '\n'; text++) {
        depth += *text == '[' ? 1 : *text == ']' ? -1u : 0;
        if (depth == 0)
            return text;
    }
    return NULL;
}

/* The value of the last @name[value]; several may stand on one line. */
static const char *answer_named(const char *text, size_t n, const char *name, size_t *ret_bytes)
{
    size_t wanted = strlen(name);
    const char *found = NULL, *end = text + n;
    for (const char *at = text; (at = memchr(at, '@', (size_t)(end - at))) != NULL; at++) {
        if ((size_t)(end - at) < wanted + 3 || memcmp(at + 1, name, wanted) != 0 || at[wanted + 1] != '[')
            continue;
        const char *close = closing(at + wanted + 2, end);
        if (close == NULL)
            continue;
        found = at + wanted + 2;
        *ret_bytes = (size_t)(close - found);
    }
    return found;
}

static bool same_answer(const char *got, size_t n, const json_t *wanted)
{
    char text[128];
    double a = 0, b = 0;
    char *rest = NULL;
    hc_trim(&got, &n);
    (void)snprintf(text, sizeof text, "%.*s", (int)(n < 127 ? n : 127), got);
    a = strtod(text, &rest);
    if (n > 0 && n < 127 && *rest == '\0' && hc_predicate_number(wanted, &b))
        return isfinite(a) && fabs(a - b) <= ANSWER_TOLERANCE + ROUNDING;
    const char *value = json_string_value(wanted);
    size_t bytes = json_string_length(wanted);
    if (value == NULL)
        return false;
    hc_trim(&value, &bytes);
    return bytes == n && memcmp(value, got, n) == 0;
}

void hc_judge_answers(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const struct hc_captured *out = &job->outcome.out;
    size_t i;
    json_t *pair;
    if (out->truncated)
        return;
    hc_show_bytes(answer->got, (const char *)out->data, out->kept_bytes);
    answer->ok = HC_YES;
    json_array_foreach(json_object_get(predicate, "value"), i, pair)
    {
        const char *name = json_string_value(json_array_get(pair, 0));
        size_t bytes = 0;
        const char *got = answer_named((const char *)out->data, out->kept_bytes, name, &bytes);
        if (got != NULL && same_answer(got, bytes, json_array_get(pair, 1)))
            continue;
        answer->ok = HC_NO;
        const char *wanted = json_string_value(json_array_get(pair, 1));
        char line[300];
        int length = snprintf(line, sizeof line, "@%.100s[%.150s]", name, wanted != NULL ? wanted : "number");
        hc_show_bytes(answer->expected, line, (size_t)length);
        return;
    }
}

/* ---- cells: the outputs of a notebook's cells, joined ---- */

const char *hc_check_cells(const json_t *predicate, char room[256])
{
    const json_t *list = json_object_get(predicate, "value");
    size_t i;
    json_t *cell;
    (void)room;
    if (!json_is_array(list))
        return "value must be a list of texts";
    json_array_foreach(list, i, cell)
    {
        if (!json_is_string(cell))
            return "value must be a list of texts";
    }
    return NULL;
}

/* Blanks count nowhere: a notebook shows values where a script prints lines. */
void hc_judge_cells(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const struct hc_captured *out = &job->outcome.out;
    const char *got = (const char *)out->data, *end = got + out->kept_bytes;
    size_t i;
    json_t *cell;
    if (out->truncated)
        return;
    hc_show_bytes(answer->got, got, out->kept_bytes);
    answer->ok = HC_YES;
    json_array_foreach(json_object_get(predicate, "value"), i, cell)
    {
        const char *wanted = json_string_value(cell);
        for (const char *at = wanted; at < wanted + json_string_length(cell) && answer->ok == HC_YES; at++) {
            if (isspace((unsigned char)*at))
                continue;
            while (got < end && isspace((unsigned char)*got))
                got++;
            answer->ok = got < end && *got++ == *at ? HC_YES : HC_NO;
        }
    }
    while (got < end && isspace((unsigned char)*got))
        got++;
    answer->ok = answer->ok == HC_YES && got == end && job->verdict.status == HC_STATUS_OK ? HC_YES : HC_NO;
}
