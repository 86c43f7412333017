#include "flow/accept.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a predicate answers: held, and what was got, as text. */
struct answer {
    enum { YES, NO, CANNOT_TELL } ok;
    char got[512];
    char expected[512];
};

struct kind {
    const char *name;
    const char *const *fields; /* allowed besides `kind` */
    const char *const *required;
    void (*judge)(const struct hc_job *job, const json_t *predicate, struct answer *answer);
};

/* Numbers may come as JSON numbers or, from YAML, as text. */
static bool number_of(const json_t *value, double *ret_number)
{
    char *rest = NULL;
    if (json_is_number(value)) {
        *ret_number = json_number_value(value);
        return true;
    }
    const char *text = json_string_value(value);
    if (text == NULL || *text == '\0')
        return false;
    *ret_number = strtod(text, &rest);
    return *rest == '\0';
}

static void show_bytes(char out[512], const char *bytes, size_t n)
{
    (void)snprintf(out, 512, "%.*s", (int)(n < 200 ? n : 200), bytes);
    for (char *at = out; *at != '\0'; at++)
        if ((unsigned char)*at < 32 || (unsigned char)*at > 126)
            *at = '?';
}

static void judge_exit_zero(const struct hc_job *job, const json_t *predicate, struct answer *answer)
{
    (void)predicate;
    answer->ok = job->verdict.status == HC_STATUS_OK ? YES : NO;
    (void)snprintf(answer->expected, sizeof answer->expected, "exit code 0");
    if (job->verdict.exit_code >= 0)
        (void)snprintf(answer->got, sizeof answer->got, "exit code %d", job->verdict.exit_code);
    else
        (void)snprintf(answer->got, sizeof answer->got, "%s", hc_statuses[job->verdict.status].name);
}

/* Blanks at both ends of a piece of text. */
static void trim(const char **text, size_t *n)
{
    while (*n > 0 && isspace((unsigned char)(*text)[*n - 1]))
        (*n)--;
    while (*n > 0 && isspace((unsigned char)**text)) {
        (*text)++;
        (*n)--;
    }
}

/* Equal line by line, blanks at the ends of lines and empty lines at the end left out. */
static bool equal_lines(const char *a, size_t an, const char *b, size_t bn)
{
    while (an > 0 && isspace((unsigned char)a[an - 1]))
        an--;
    while (bn > 0 && isspace((unsigned char)b[bn - 1]))
        bn--;
    while (an > 0 || bn > 0) {
        const char *ae = an > 0 ? memchr(a, '\n', an) : NULL, *be = bn > 0 ? memchr(b, '\n', bn) : NULL;
        size_t al = ae != NULL ? (size_t)(ae - a) : an, bl = be != NULL ? (size_t)(be - b) : bn;
        size_t at = al, bt = bl;
        while (at > 0 && isspace((unsigned char)a[at - 1]))
            at--;
        while (bt > 0 && isspace((unsigned char)b[bt - 1]))
            bt--;
        if (at != bt || memcmp(a, b, at) != 0 || (ae == NULL) != (be == NULL))
            return false;
        a += al + (ae != NULL ? 1 : 0);
        an -= al + (ae != NULL ? 1 : 0);
        b += bl + (be != NULL ? 1 : 0);
        bn -= bl + (be != NULL ? 1 : 0);
    }
    return true;
}

static void judge_stdout_equals(const struct hc_job *job, const json_t *predicate, struct answer *answer)
{
    const struct hc_captured *out = &job->outcome.out;
    const char *got = (const char *)out->data, *wanted = json_string_value(json_object_get(predicate, "value"));
    size_t got_bytes = out->kept_bytes, wanted_bytes = json_string_length(json_object_get(predicate, "value"));
    const char *rule = json_string_value(json_object_get(predicate, "trim"));
    show_bytes(answer->got, got, got_bytes);
    show_bytes(answer->expected, wanted, wanted_bytes);
    if (out->truncated) { /* what was left out can't be compared */
        answer->ok = CANNOT_TELL;
        return;
    }
    bool equal;
    if (rule != NULL && strcmp(rule, "lines") == 0) {
        equal = equal_lines(got, got_bytes, wanted, wanted_bytes);
    } else {
        if (rule != NULL && strcmp(rule, "all") == 0) {
            trim(&got, &got_bytes);
            trim(&wanted, &wanted_bytes);
        }
        equal = got_bytes == wanted_bytes && memcmp(got, wanted, got_bytes) == 0;
    }
    answer->ok = equal ? YES : NO;
}

/* The last number of the last line that is not empty. */
static bool last_number(const char *text, size_t n, double *ret_number)
{
    trim(&text, &n);
    const char *start = text + n;
    while (start > text && start[-1] != '\n')
        start--;
    hc_autofree char *line = strndup(start, (size_t)(text + n - start));
    bool found = false;
    if (line == NULL)
        return false;
    for (char *at = line; *at != '\0';) {
        char *rest = NULL;
        bool begins = isdigit((unsigned char)*at) ||
                      ((*at == '-' || *at == '+' || *at == '.') &&
                       (isdigit((unsigned char)at[1]) || (at[1] == '.' && isdigit((unsigned char)at[2]))));
        if (!begins) {
            at++;
            continue;
        }
        double value = strtod(at, &rest);
        /* 1,234,567: the comma between groups of three is not the end of the number */
        if (rest == at)
            rest = at + 1;
        else {
            *ret_number = value;
            found = true;
        }
        at = rest;
    }
    return found;
}

static void judge_stdout_number(const struct hc_job *job, const json_t *predicate, struct answer *answer)
{
    const struct hc_captured *out = &job->outcome.out;
    double wanted = 0, absolute = 0, relative = 0, got = 0;
    (void)number_of(json_object_get(predicate, "value"), &wanted);
    (void)number_of(json_object_get(predicate, "abs"), &absolute);
    (void)number_of(json_object_get(predicate, "rel"), &relative);
    (void)snprintf(answer->expected, sizeof answer->expected, "%.17g", wanted);
    if (!last_number((const char *)out->data, out->kept_bytes, &got)) {
        answer->ok = NO;
        (void)snprintf(answer->got, sizeof answer->got, "no number on the last line");
        return;
    }
    (void)snprintf(answer->got, sizeof answer->got, "%.17g", got);
    double room = fmax(absolute, fabs(wanted) * relative);
    answer->ok = isfinite(got) && fabs(got - wanted) <= room ? YES : NO;
}

static const char *const no_fields[] = {NULL};
static const char *const equals_fields[] = {"value", "trim", NULL};
static const char *const value_field[] = {"value", NULL};
static const char *const number_fields[] = {"value", "abs", "rel", NULL};

static const struct kind kinds[] = {
    {"exit_zero", no_fields, no_fields, judge_exit_zero},
    {"stdout_equals", equals_fields, value_field, judge_stdout_equals},
    {"stdout_number", number_fields, value_field, judge_stdout_number},
};

static const struct kind *kind_of(const json_t *predicate)
{
    const char *name = json_string_value(json_object_get(predicate, "kind"));
    for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static bool listed(const char *const *names, const char *name)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static int check_values(const json_t *p, const struct kind *kind, size_t index, struct hc_refusal *refusal)
{
    const char *trim_rule = json_string_value(json_object_get(p, "trim"));
    double number;
    if (json_object_get(p, "trim") != NULL &&
        (trim_rule == NULL || (strcmp(trim_rule, "none") != 0 && strcmp(trim_rule, "lines") != 0 && strcmp(trim_rule, "all") != 0)))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu (%s): trim is none, lines or all", index, kind->name);
    if (kind->judge == judge_stdout_equals && !json_is_string(json_object_get(p, "value")))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu (%s): value must be a text", index, kind->name);
    if (kind->judge == judge_stdout_number)
        for (const char *const *field = number_fields; *field != NULL; field++) {
            const json_t *value = json_object_get(p, *field);
            if (value == NULL)
                continue;
            if (!number_of(value, &number) || !isfinite(number) || (strcmp(*field, "value") != 0 && number < 0))
                return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu (%s): %s must be a finite number%s",
                                 index, kind->name, *field, strcmp(*field, "value") != 0 ? ", not negative" : "");
        }
    return 0;
}

static int check_one(const json_t *p, size_t index, struct hc_refusal *refusal)
{
    const struct kind *kind = kind_of(p);
    const char *name;
    json_t *value;
    if (!json_is_object(p))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu: must be an object", index);
    if (kind == NULL)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "accept",
                         "predicate %zu: unknown kind; there are exit_zero, stdout_equals, stdout_number", index);
    for (const char *const *field = kind->required; *field != NULL; field++)
        if (json_object_get(p, *field) == NULL)
            return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu (%s): lacks %s", index, kind->name,
                             *field);
    json_object_foreach((json_t *)p, name, value)
    {
        if (strcmp(name, "kind") != 0 && !listed(kind->fields, name))
            return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu (%s): unknown field '%.60s'", index,
                             kind->name, name);
    }
    return check_values(p, kind, index, refusal);
}

int hc_predicates_check(const json_t *predicates, struct hc_refusal *refusal)
{
    size_t i;
    json_t *predicate;
    if (!json_is_array(predicates) || json_array_size(predicates) == 0)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "wanted a list of at least one predicate");
    if (json_array_size(predicates) > 100)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "more than 100 predicates");
    json_array_foreach(predicates, i, predicate)
    {
        int outcome = check_one(predicate, i, refusal);
        if (outcome != 0)
            return outcome;
    }
    return 0;
}

int hc_accept(struct hc_job *job, const json_t *predicates)
{
    size_t i;
    json_t *predicate;
    bool all = true, unsure = false;
    if (predicates == NULL)
        return 0;
    /* Whatever the output looks like: a run that a limit or a rule ended has not given a result. */
    bool ended_itself = job->verdict.status == HC_STATUS_OK || job->verdict.status == HC_STATUS_RUNTIME_ERROR ||
                        job->verdict.status == HC_STATUS_SYNTAX_ERROR;
    job->acceptance.predicates = json_array();
    json_array_foreach(predicates, i, predicate)
    {
        const struct kind *kind = kind_of(predicate);
        struct answer answer = {.ok = CANNOT_TELL};
        if (job->outcome.started == HC_STARTED && ended_itself && job->outcome.out.data != NULL) {
            kind->judge(job, predicate, &answer);
        } else if (job->verdict.state == HC_STATE_FINISHED) {
            answer.ok = NO;
            (void)snprintf(answer.got, sizeof answer.got, "%s", hc_statuses[job->verdict.status].name);
        }
        all = all && answer.ok == YES;
        unsure = unsure || answer.ok == CANNOT_TELL;
        json_t *row = json_pack("{s:s, s:o, s:o, s:o}", "kind", kind->name, "ok",
                                answer.ok == CANNOT_TELL ? json_null() : json_boolean(answer.ok == YES), "expected",
                                answer.expected[0] != '\0' ? json_string(answer.expected) : json_null(), "got",
                                answer.got[0] != '\0' ? json_string(answer.got) : json_null());
        if (row == NULL || json_array_append_new(job->acceptance.predicates, row) != 0)
            return -ENOMEM;
    }
    job->acceptance.status = unsure ? HC_ACCEPT_ERROR : all ? HC_ACCEPTED : HC_REJECTED;
    return 0;
}
