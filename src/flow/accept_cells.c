#include "flow/accept_cells.h"

#include "base/cleanup.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "flow/engine.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#define CODE_BYTES_MAX (1024 * 1024)
#define RETURNED       "returned\n"
#define HELD           " held\n"
#define FAILED         " failed\n"
#define OUTPUTS        "outputs" /* where a checker finds the files of the run: never in its search path */

/* ---- form ---- */

static bool is_identifier(const char *text)
{
    if (*text == '\0' || isdigit((unsigned char)*text))
        return false;
    for (; *text != '\0'; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

/* Test code of data sets is a text or a list of texts, a statement each. */
static char *code_of(const json_t *code)
{
    size_t i, bytes = 0;
    json_t *line;
    if (json_is_string(code))
        return strlen(json_string_value(code)) == json_string_length(code) ? strdup(json_string_value(code))
                                                                           : NULL;
    json_array_foreach(code, i, line)
    {
        if (!json_is_string(line) || strlen(json_string_value(line)) != json_string_length(line))
            return NULL;
        bytes += json_string_length(line) + 1;
    }
    char *text = json_is_array(code) ? malloc(bytes + 1) : NULL, *at = text;
    if (text == NULL)
        return NULL;
    json_array_foreach(code, i, line) at += sprintf(at, "%s\n", json_string_value(line));
    *at = '\0';
    return text;
}

/* "def check(" is there, and no other "check(". */
static bool defines_check_only(const char *code)
{
    const char *definition = strstr(code, "def check(");
    if (definition == NULL)
        return false;
    for (const char *at = code; (at = strstr(at, "check(")) != NULL; at++)
        if (at != definition + 4)
            return false;
    return true;
}

const char *hc_check_asserts(const json_t *predicate, char room[256])
{
    const json_t *entry = json_object_get(predicate, "entry_point");
    const char *name = json_string_value(entry);
    hc_autofree char *code = code_of(json_object_get(predicate, "code"));
    (void)room;
    if (code == NULL || code[strspn(code, " \t\r\n")] == '\0')
        return "code must be a text, or a list of texts, that is not empty and holds no NUL";
    if (strlen(code) > CODE_BYTES_MAX)
        return "code: more than 1M";
    if (entry != NULL && (name == NULL || !is_identifier(name)))
        return "entry_point must be the name of a function";
    if (entry == NULL && defines_check_only(code))
        return "code defines check() but never calls it, so it would accept anything: give entry_point";
    return NULL;
}

static bool checker_wall(const json_t *predicate, uint64_t *ret_us)
{
    const char *text = json_string_value(json_object_get(predicate, "wall"));
    return text != NULL && hc_parse_duration_us(text, ret_us) == HC_QUANTITY_OK &&
           *ret_us >= hc_limits[HC_LIMIT_WALL].min_value && *ret_us <= hc_limits[HC_LIMIT_WALL].max_value;
}

const char *hc_check_checker(const json_t *predicate, char room[256])
{
    const json_t *language = json_object_get(predicate, "language"),
                 *code = json_object_get(predicate, "code"), *wall = json_object_get(predicate, "wall");
    (void)room;
    if (language != NULL &&
        (!json_is_string(language) || json_string_length(language) == 0 || json_string_length(language) > 60))
        return "language must be a name";
    if (!json_is_string(code) || json_string_length(code) == 0 ||
        strlen(json_string_value(code)) != json_string_length(code))
        return "code must be a text that is not empty and holds no NUL";
    if (json_string_length(code) > CODE_BYTES_MAX)
        return "code: more than 1M";
    uint64_t wall_us = 0;
    return wall != NULL && !checker_wall(predicate, &wall_us) ? "wall must be a time such as 5s, at most 10m"
                                                              : NULL;
}

/* ---- asserts ---- */

static int sealed_file(const void *data, size_t n)
{
    hc_autoclose int fd = memfd_create("dialogue", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = fd < 0 ? -errno : hc_write_all(fd, data, n);
    if (error == 0 && (lseek(fd, 0, SEEK_SET) != 0 ||
                       fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0))
        error = -errno;
    return error < 0 ? error : hc_take_fd(&fd);
}

static int make_nonce(char nonce[HC_ASSERTS_NONCE_BYTES + 1])
{
    uint8_t random[HC_ASSERTS_NONCE_BYTES / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return -EIO;
    for (size_t i = 0; i < sizeof random; i++)
        (void)sprintf(nonce + 2 * i, "%02x", random[i]);
    return 0;
}

static int make_dialogue(const json_t *predicate, const char *nonce)
{
    const char *entry = json_string_value(json_object_get(predicate, "entry_point"));
    hc_autofree char *code = code_of(json_object_get(predicate, "code"));
    hc_autofree char *call = entry != NULL ? hc_printf("\ncheck(%s)\n", entry) : strdup("\n");
    if (code == NULL || call == NULL)
        return -ENOMEM;
    hc_autofree char *text = hc_printf("%010zu\n%s%s%s", strlen(code) + strlen(call), code, call, nonce);
    return text == NULL ? -ENOMEM : sealed_file(text, strlen(text));
}

static bool begins(const char **at, size_t *left, const char *with, size_t n)
{
    if (*left < n || memcmp(*at, with, n) != 0)
        return false;
    *at += n;
    *left -= n;
    return true;
}

void hc_asserts_verdict(const uint8_t *output, size_t n, const char nonce[HC_ASSERTS_NONCE_BYTES],
                        struct hc_answer *answer)
{
    const char *at = (const char *)output;
    answer->ok = HC_NO;
    if (!begins(&at, &n, RETURNED, strlen(RETURNED)) || !begins(&at, &n, nonce, HC_ASSERTS_NONCE_BYTES))
        (void)snprintf(answer->got, sizeof answer->got, "no verdict");
    else if (n == strlen(HELD) && memcmp(at, HELD, n) == 0)
        answer->ok = HC_YES;
    else if (begins(&at, &n, FAILED, strlen(FAILED)))
        hc_show_bytes(answer->got, at, n);
    else
        (void)snprintf(answer->got, sizeof answer->got, "no verdict");
}

/* How a second cell ended, where that is all there is to say. */
static void show_ending(const struct hc_verdict *verdict, const char *before, struct hc_answer *answer)
{
    bool plain = verdict->status == HC_STATUS_OK || verdict->status == HC_STATUS_RUNTIME_ERROR;
    if (verdict->exit_code >= 0 && plain)
        (void)snprintf(answer->got, sizeof answer->got, "%s: exit code %d", before, verdict->exit_code);
    else
        (void)snprintf(answer->got, sizeof answer->got, "%s: %s", before, hc_statuses[verdict->status].name);
}

static void judge_dialogue(const struct hc_outcome *outcome, const struct hc_verdict *verdict,
                           const char *nonce, struct hc_answer *answer)
{
    if (verdict->state != HC_STATE_FINISHED || verdict->status == HC_STATUS_CANCELLED ||
        outcome->out.data == NULL || outcome->failure.error != 0) {
        show_ending(verdict, "the tests could not be run", answer);
        return;
    }
    answer->ok = HC_NO;
    if (outcome->out.total_bytes == 0)
        show_ending(verdict, "the program did not run to its end, no test was run", answer);
    else if (outcome->out.truncated || verdict->status != HC_STATUS_OK)
        show_ending(verdict, "the tests gave no verdict", answer);
    else
        hc_asserts_verdict(outcome->out.data, outcome->out.kept_bytes, nonce, answer);
}

int hc_judge_asserts(const struct hc_job *job, const json_t *predicate, const struct hc_accept_cells *cells,
                     struct hc_answer *answer)
{
    char nonce[HC_ASSERTS_NONCE_BYTES + 1];
    struct hc_verdict verdict = {.exit_code = -1};
    (void)snprintf(answer->expected, sizeof answer->expected, "all assertions hold");
    if (job->verdict.status != HC_STATUS_OK) { /* it would not get to its end the second time either */
        answer->ok = HC_NO;
        show_ending(&job->verdict, "the program failed, no test was run", answer);
        return 0;
    }
    int error = make_nonce(nonce);
    hc_autoclose int dialogue = error == 0 ? make_dialogue(predicate, nonce) : -1;
    hc_autofree struct hc_outcome *outcome = calloc(1, sizeof *outcome);
    if (error < 0 || dialogue < 0 || outcome == NULL)
        return error < 0 ? error : dialogue < 0 ? dialogue : -ENOMEM;
    error = cells->run_asserts(cells->context, dialogue, outcome, &verdict);
    if (error == HC_NOT_OFFERED)
        (void)snprintf(answer->got, sizeof answer->got, "asserts are not offered for %s; use a checker",
                       job->language);
    else if (error == 0)
        judge_dialogue(outcome, &verdict, nonce, answer);
    hc_outcome_done(outcome);
    return error < 0 ? error : 0;
}

/* ---- checker ---- */

/* The files that the run left, read-only, in a folder of their own: a file called json.py beside the checker
 * would be its module. */
static int give_outputs(const struct hc_job *job, struct hc_spec *spec, struct hc_refusal *refusal)
{
    const struct hc_collection *collection = &job->collection;
    int error = hc_spec_add_input(spec, OUTPUTS, true, NULL, 0, refusal);
    if (collection->truncated || collection->over_size || collection->over_total || collection->over_count)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "artifacts",
                         "the run left more files than its limits allow");
    for (size_t i = 0; i < collection->count && error == 0; i++) {
        const struct hc_artifact *artifact = &collection->artifacts[i];
        hc_autofree uint8_t *data = NULL;
        hc_autofree char *name = hc_printf(OUTPUTS "/%s", artifact->path);
        const char *reason;
        size_t bytes = 0;
        if (name == NULL)
            return -ENOMEM;
        if (!artifact->plain || !artifact->collected || artifact->change == HC_DELETED ||
            !hc_plan_name_ok(name, &reason))
            continue;
        error = hc_collect_read(job->outcome.cell->working_folder, artifact->path, artifact->bytes, &data,
                                &bytes);
        if (error == 0)
            error = hc_spec_add_input(spec, name, false, hc_take_pointer(&data), bytes, refusal);
    }
    return error;
}

static int fill_checker(const struct hc_job *job, const json_t *predicate, struct hc_spec *spec,
                        struct hc_refusal *refusal)
{
    const char *language = json_string_value(json_object_get(predicate, "language"));
    const json_t *code = json_object_get(predicate, "code");
    int error = hc_spec_init(spec);
    if (error < 0)
        return error;
    free(spec->profile); /* its limits and its grade; what it says of programs is not said of checkers */
    spec->profile = strdup(job->spec.profile);
    spec->language = strdup(language != NULL ? language : "python");
    spec->code = (uint8_t *)strdup(json_string_value(code));
    if (spec->profile == NULL || spec->language == NULL || spec->code == NULL)
        return -ENOMEM;
    spec->code_bytes = json_string_length(code);
    spec->code_given = true;
    spec->allow_layers = job->spec.allow_layers;
    spec->min_grade = job->spec.min_grade;
    spec->limit_asked[HC_LIMIT_WALL] = checker_wall(predicate, &spec->limits[HC_LIMIT_WALL]);
    spec->stdin_fd = sealed_file(job->outcome.out.data, job->outcome.out.kept_bytes);
    if (spec->stdin_fd < 0)
        return spec->stdin_fd;
    return job->outcome.cell != NULL && job->outcome.cell->working_folder >= 0
               ? give_outputs(job, spec, refusal)
               : 0;
}

static void judge_checker(const struct hc_job *checker, struct hc_answer *answer)
{
    const struct hc_verdict *verdict = &checker->verdict;
    const struct hc_captured *out = &checker->outcome.out;
    bool ended_itself = verdict->state == HC_STATE_FINISHED && verdict->exit_code >= 0 &&
                        (verdict->status == HC_STATUS_OK || verdict->status == HC_STATUS_RUNTIME_ERROR) &&
                        out->data != NULL;
    if (verdict->state != HC_STATE_FINISHED)
        (void)snprintf(answer->got, sizeof answer->got, "the checker did not run: %.400s",
                       checker->refusal.message);
    else if (!ended_itself)
        show_ending(verdict, "the checker gave no verdict", answer);
    else
        answer->ok = verdict->exit_code == 0 ? HC_YES : HC_NO;
    if (answer->ok == HC_CANNOT_TELL)
        return;
    const char *reason = (const char *)out->data;
    size_t n = out->kept_bytes;
    hc_trim(&reason, &n);
    hc_show_bytes(answer->got, reason, n);
    if (n == 0 && checker->diagnosis.found)
        hc_show_bytes(answer->got, checker->diagnosis.type, strlen(checker->diagnosis.type));
    else if (n == 0)
        show_ending(verdict, "the checker gave no reason", answer);
}

int hc_judge_checker(const struct hc_job *job, const json_t *predicate, const struct hc_accept_cells *cells,
                     struct hc_answer *answer)
{
    (void)snprintf(answer->expected, sizeof answer->expected, "the checker's exit code 0");
    if (job->outcome.out.truncated) {
        (void)snprintf(answer->got, sizeof answer->got, "the output was not kept whole: raise --output");
        return 0;
    }
    struct hc_job *checker = calloc(1, sizeof *checker);
    if (checker == NULL)
        return -ENOMEM;
    hc_job_begin(checker);
    int error = fill_checker(job, predicate, &checker->spec, &checker->refusal);
    if (error == HC_REFUSED)
        hc_job_refuse(checker);
    else if (error == 0)
        error = cells->run_checker(cells->context, checker);
    if (error >= 0)
        judge_checker(checker, answer);
    hc_job_done(checker);
    free(checker);
    return error < 0 ? error : 0;
}
