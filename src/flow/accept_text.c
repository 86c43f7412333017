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
#ifdef __SANITIZE_ADDRESS__
#define MATCH_MEMORY_BYTES 0ull /* its shadow would count */
#else
#define MATCH_MEMORY_BYTES (512ull << 20)
#endif

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

/* 1,234,567: commas between groups of three belong to the number, unless it stands in a list. Copies it
 * without them; returns how long it was. */
static size_t grouped(const char *line, const char *at, char out[64])
{
    size_t head = strspn(at, "0123456789"), n = head, length = head;
    bool in_list = at > line && strchr("([{,", at[-1]) != NULL;
    if (head == 0 || head > 3 || at[0] == '0' || in_list)
        return 0;
    memcpy(out, at, head);
    while (at[n] == ',' && strspn(at + n + 1, "0123456789") == 3 && length < 48) {
        memcpy(out + length, at + n + 1, 3);
        length += 3;
        n += 4;
    }
    bool whole = n > head && at[n] != ',' && !(at[n] != '\0' && strchr(")]}", at[n]) != NULL);
    if (!whole)
        return 0;
    size_t fraction = at[n] == '.' ? 1 + strspn(at + n + 1, "0123456789") : 0;
    fraction = fraction < 63 - length ? fraction : 0;
    memcpy(out + length, at + n, fraction);
    out[length + fraction] = '\0';
    return n + fraction;
}

/* The 03 of 2020-01-03 is no negative number, and no part of a name is a sign either. */
static bool is_sign(const char *line, const char *at)
{
    return (*at == '-' || *at == '+') && (at == line || !(isalnum((unsigned char)at[-1]) || at[-1] == ')'));
}

/* Reads the number that begins here, if one does; returns its end or NULL. */
static const char *number_at(const char *line, const char *at, double *ret_number)
{
    char digits[64], *rest = NULL;
    const char *first = at + (is_sign(line, at) ? 1 : 0);
    if (!isdigit((unsigned char)first[0]) && !(first[0] == '.' && isdigit((unsigned char)first[1])))
        return NULL;
    size_t length = grouped(line, first, digits);
    if (length == 0) {
        *ret_number = strtod(at, &rest);
        return rest;
    }
    *ret_number = strtod(digits, NULL) * (*at == '-' ? -1 : 1);
    return first + length;
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
    for (const char *at = line; at != NULL && *at != '\0';) {
        const char *rest = number_at(line, at, ret_number);
        found = found || rest != NULL;
        at = rest != NULL ? rest : at + 1;
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

const char *hc_pattern_check(const json_t *value, char room[256])
{
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

const char *hc_check_pattern(const json_t *predicate, char room[256])
{
    return hc_pattern_check(json_object_get(predicate, "pattern"), room);
}

/* In the child: its exit code is the answer. */
_Noreturn static void match(const char *pattern, const char *data, size_t n)
{
    const struct rlimit cpu = {1, 1}, core = {0, 0}, memory = {MATCH_MEMORY_BYTES, MATCH_MEMORY_BYTES};
    regmatch_t all = {.rm_so = 0, .rm_eo = (regoff_t)n};
    regex_t compiled;
    if (setrlimit(RLIMIT_CORE, &core) != 0 || setrlimit(RLIMIT_CPU, &cpu) != 0 ||
        (MATCH_MEMORY_BYTES > 0 && setrlimit(RLIMIT_DATA, &memory) != 0) ||
        regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE) != 0)
        _exit(HC_CANNOT_TELL);
    int error = regexec(&compiled, data, 1, &all, REG_STARTEND);
    _exit(error == 0 ? HC_YES : error == REG_NOMATCH ? HC_NO : HC_CANNOT_TELL);
}

int hc_pattern_search(const char *pattern, const char *data, size_t n)
{
    int status = 0;
    if (n > MATCHED_BYTES_MAX)
        return HC_CANNOT_TELL;
    pid_t child = fork();
    if (child == 0)
        match(pattern, data, n);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return HC_CANNOT_TELL;
    if (child < 0 || !WIFEXITED(status))
        return HC_CANNOT_TELL;
    return WEXITSTATUS(status) == HC_YES || WEXITSTATUS(status) == HC_NO ? WEXITSTATUS(status)
                                                                         : HC_CANNOT_TELL;
}

/* Somewhere in the output; ^ and $ are the ends of lines. */
void hc_judge_stdout_matches(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const struct hc_captured *out = &job->outcome.out;
    const char *pattern = json_string_value(json_object_get(predicate, "pattern"));
    hc_show_bytes(answer->got, (const char *)out->data, out->kept_bytes);
    hc_show_bytes(answer->expected, pattern, strlen(pattern));
    if (!out->truncated)
        answer->ok = hc_pattern_search(pattern, (const char *)out->data, out->kept_bytes);
}
