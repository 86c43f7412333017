/* Predicates over the text of standard output: equal, equal but for blanks, a number in it, a pattern. */
#include "flow/accept_kinds.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* These bound what compiling a pattern costs. Matching can't be bounded by sizes: glibc needs seconds for
 * (a|b)*a(a|b){20}c over four kilobytes. So it happens in a child that has a second of CPU time. */
#define PATTERN_BYTES_MAX 256
#define MATCHED_BYTES_MAX (64 * 1024)
#define REPETITIONS_MAX   1000

bool hc_predicate_number(const json_t *value, double *ret_number)
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

void hc_show_bytes(char out[512], const char *bytes, size_t n)
{
    (void)snprintf(out, 512, "%.*s", (int)(n < 200 ? n : 200), bytes);
    for (char *at = out; *at != '\0'; at++)
        if ((unsigned char)*at < 32 || (unsigned char)*at > 126)
            *at = '?';
}

void hc_trim(const char **text, size_t *n)
{
    while (*n > 0 && isspace((unsigned char)(*text)[*n - 1]))
        (*n)--;
    while (*n > 0 && isspace((unsigned char)**text)) {
        (*text)++;
        (*n)--;
    }
}

/* ---- equality ---- */

const char *hc_check_text(const json_t *predicate, char room[256])
{
    (void)room;
    return json_is_string(json_object_get(predicate, "value")) ? NULL : "value must be a text";
}

const char *hc_check_equals(const json_t *predicate, char room[256])
{
    const char *rule = json_string_value(json_object_get(predicate, "trim"));
    if (json_object_get(predicate, "trim") != NULL &&
        (rule == NULL ||
         (strcmp(rule, "none") != 0 && strcmp(rule, "lines") != 0 && strcmp(rule, "all") != 0)))
        return "trim is none, lines or all";
    return hc_check_text(predicate, room);
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

/* The output and the wanted text; false when what was left out of the output can't be compared. */
static bool both_texts(const struct hc_job *job, const json_t *predicate, const char **ret_got,
                       size_t *ret_got_bytes, const char **ret_wanted, size_t *ret_wanted_bytes,
                       struct hc_answer *answer)
{
    const json_t *value = json_object_get(predicate, "value");
    *ret_got = (const char *)job->outcome.out.data;
    *ret_got_bytes = job->outcome.out.kept_bytes;
    *ret_wanted = json_string_value(value);
    *ret_wanted_bytes = json_string_length(value);
    hc_show_bytes(answer->got, *ret_got, *ret_got_bytes);
    hc_show_bytes(answer->expected, *ret_wanted, *ret_wanted_bytes);
    return !job->outcome.out.truncated;
}

void hc_judge_stdout_equals(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const char *got, *wanted, *rule = json_string_value(json_object_get(predicate, "trim"));
    size_t got_bytes, wanted_bytes;
    if (!both_texts(job, predicate, &got, &got_bytes, &wanted, &wanted_bytes, answer))
        return;
    bool equal;
    if (rule != NULL && strcmp(rule, "lines") == 0) {
        equal = equal_lines(got, got_bytes, wanted, wanted_bytes);
    } else {
        if (rule != NULL && strcmp(rule, "all") == 0) {
            hc_trim(&got, &got_bytes);
            hc_trim(&wanted, &wanted_bytes);
        }
        equal = got_bytes == wanted_bytes && memcmp(got, wanted, got_bytes) == 0;
    }
    answer->ok = equal ? HC_YES : HC_NO;
}

/* The next word, blanks before it skipped. */
static size_t next_word(const char **text, size_t *n)
{
    size_t length = 0;
    while (*n > 0 && isspace((unsigned char)**text)) {
        (*text)++;
        (*n)--;
    }
    while (length < *n && !isspace((unsigned char)(*text)[length]))
        length++;
    return length;
}

/* Equal word by word: how many blanks, and which, does not matter. */
void hc_judge_stdout_trim(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const char *got, *wanted;
    size_t got_bytes, wanted_bytes;
    if (!both_texts(job, predicate, &got, &got_bytes, &wanted, &wanted_bytes, answer))
        return;
    for (answer->ok = HC_YES; answer->ok == HC_YES;) {
        size_t a = next_word(&got, &got_bytes), b = next_word(&wanted, &wanted_bytes);
        if (a != b || memcmp(got, wanted, a) != 0)
            answer->ok = HC_NO;
        if (a == 0)
            break;
        got += a;
        got_bytes -= a;
        wanted += b;
        wanted_bytes -= b;
    }
}

/* ---- numbers ---- */

const char *hc_check_number(const json_t *predicate, char room[256])
{
    static const char *const fields[] = {"value", "abs", "rel"};
    double number = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const json_t *value = json_object_get(predicate, fields[i]);
        if (value == NULL ||
            (hc_predicate_number(value, &number) && isfinite(number) && (i == 0 || number >= 0)))
            continue;
        (void)snprintf(room, 256, "%s must be a finite number%s", fields[i], i > 0 ? ", not negative" : "");
        return room;
    }
    return NULL;
}

/* The last number of the last line that is not empty. */
static bool last_number(const char *text, size_t n, double *ret_number)
{
    hc_trim(&text, &n);
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

void hc_judge_stdout_number(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const struct hc_captured *out = &job->outcome.out;
    double wanted = 0, absolute = 0, relative = 0, got = 0;
    (void)hc_predicate_number(json_object_get(predicate, "value"), &wanted);
    (void)hc_predicate_number(json_object_get(predicate, "abs"), &absolute);
    (void)hc_predicate_number(json_object_get(predicate, "rel"), &relative);
    (void)snprintf(answer->expected, sizeof answer->expected, "%.17g", wanted);
    if (!last_number((const char *)out->data, out->kept_bytes, &got)) {
        answer->ok = HC_NO;
        (void)snprintf(answer->got, sizeof answer->got, "no number on the last line");
        return;
    }
    (void)snprintf(answer->got, sizeof answer->got, "%.17g", got);
    double room = fmax(absolute, fabs(wanted) * relative);
    answer->ok = isfinite(got) && fabs(got - wanted) <= room ? HC_YES : HC_NO;
}

/* ---- patterns ---- */

/* Counted repetitions are unrolled when a pattern is compiled, nested ones multiply. */
static bool repeats_too_often(const char *pattern)
{
    unsigned long product = 1;
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0') {
            at++;
            continue;
        }
        unsigned long most = 0;
        for (const char *digit = at + 1; *at == '{' && (isdigit((unsigned char)*digit) || *digit == ',');
             digit++) {
            unsigned long count = strtoul(digit, NULL, 10);
            most = count > most ? count : most;
        }
        if (most > REPETITIONS_MAX || (product *= most > 1 ? most : 1) > REPETITIONS_MAX)
            return true;
    }
    return false;
}

static bool refers_back(const char *pattern)
{
    for (const char *at = pattern; *at != '\0'; at++)
        if (*at == '\\' && at[1] != '\0' && isdigit((unsigned char)*++at))
            return true;
    return false;
}

const char *hc_check_pattern(const json_t *predicate, char room[256])
{
    const json_t *value = json_object_get(predicate, "pattern");
    const char *pattern = json_string_value(value);
    regex_t compiled;
    if (pattern == NULL || pattern[0] == '\0' || strlen(pattern) != json_string_length(value))
        return "pattern must be a text";
    if (strlen(pattern) > PATTERN_BYTES_MAX || repeats_too_often(pattern) || refers_back(pattern))
        return "pattern: at most 256 bytes and 1000 repetitions, no references back";
    int error = regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE);
    if (error == 0) {
        regfree(&compiled);
        return NULL;
    }
    char reason[128];
    (void)regerror(error, &compiled, reason, sizeof reason);
    (void)snprintf(room, 256, "pattern: %s", reason);
    return room;
}

/* In the child: its exit code is the answer. */
_Noreturn static void match(const char *pattern, const struct hc_captured *out)
{
    const struct rlimit cpu = {1, 1}, core = {0, 0};
    regmatch_t all = {.rm_so = 0, .rm_eo = (regoff_t)out->kept_bytes};
    regex_t compiled;
    if (setrlimit(RLIMIT_CORE, &core) != 0 || setrlimit(RLIMIT_CPU, &cpu) != 0 ||
        regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE) != 0)
        _exit(HC_CANNOT_TELL);
    int error = regexec(&compiled, (const char *)out->data, 1, &all, REG_STARTEND);
    _exit(error == 0 ? HC_YES : error == REG_NOMATCH ? HC_NO : HC_CANNOT_TELL);
}

/* Somewhere in the output; ^ and $ are the ends of lines. */
void hc_judge_stdout_matches(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const struct hc_captured *out = &job->outcome.out;
    const char *pattern = json_string_value(json_object_get(predicate, "pattern"));
    int status = 0;
    hc_show_bytes(answer->got, (const char *)out->data, out->kept_bytes);
    hc_show_bytes(answer->expected, pattern, strlen(pattern));
    if (out->truncated || out->kept_bytes > MATCHED_BYTES_MAX)
        return;
    pid_t child = fork();
    if (child == 0)
        match(pattern, out);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return;
    if (child > 0 && WIFEXITED(status) && (WEXITSTATUS(status) == HC_YES || WEXITSTATUS(status) == HC_NO))
        answer->ok = WEXITSTATUS(status) == HC_YES ? HC_YES : HC_NO;
}
