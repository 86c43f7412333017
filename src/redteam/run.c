/* Rows into cells, and what is seen from outside. */
#include "redteam/redteam.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "eval/limits.h"
#include "flow/accept.h"
#include "redteam/catalogue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

const char *const hc_held_names[4] = {"held", "not_applicable", "not_promised", "NOT HELD"};

struct session {
    const struct hc_redteam_options *options;
    struct hc_engine *engine;
    struct hc_bait bait;
};

struct verdict {
    enum hc_held held;
    char evidence[400];
    char status[32];
    json_t *values; /* lines VALUE of the program */
};

static __attribute__((format(printf, 2, 3))) void breach(struct verdict *verdict, const char *format, ...)
{
    va_list args;
    if (verdict->held == HC_NOT_HELD) /* the first one is told */
        return;
    verdict->held = HC_NOT_HELD;
    va_start(args, format);
    (void)vsnprintf(verdict->evidence, sizeof verdict->evidence, format, args);
    va_end(args);
    for (char *at = verdict->evidence; *at != '\0'; at++)
        if ((unsigned char)*at < 32 || (unsigned char)*at > 126)
            *at = '?';
}

static int fill_spec(const struct session *session, const json_t *row, struct hc_spec *spec,
                     struct hc_refusal *refusal)
{
    const char *language = json_string_value(json_object_get(row, "language"));
    int error = hc_spec_init(spec);
    hc_autofree char *program =
        hc_bait_fill(&session->bait, json_string_value(json_object_get(row, "program")));
    if (error < 0 || program == NULL)
        return error < 0 ? error : -ENOMEM;
    spec->language = strdup(language != NULL ? language : "python");
    spec->code_bytes = strlen(program);
    spec->code = (uint8_t *)hc_take_pointer(&program);
    spec->code_given = true;
    free(spec->profile);
    spec->profile = strdup(session->options->profile);
    if (strcmp(spec->language, "python") == 0)
        spec->warmth = session->options->warmth;
    if (spec->language == NULL || spec->profile == NULL)
        return -ENOMEM;
    return hc_eval_limits(spec, json_object_get(row, "limits"), refusal);
}

static int run_job(const struct session *session, const json_t *row, struct hc_job **ret_job)
{
    struct hc_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    *ret_job = job;
    hc_job_begin(job);
    int error = fill_spec(session, row, &job->spec, &job->refusal);
    if (error == 0)
        error = hc_engine_run(session->engine, job, NULL, json_object_get(row, "accept"), NULL);
    return error;
}

static void free_job(struct hc_job *job)
{
    if (job != NULL)
        hc_job_done(job);
    free(job);
}

/* ---- what a row has to show ---- */

static bool has_line(const struct hc_captured *out, const char *word, char *line, size_t size)
{
    const char *text = (const char *)out->data;
    for (const char *at = text; at != NULL && (at = strstr(at, word)) != NULL; at++)
        if (at == text || at[-1] == '\n') {
            (void)snprintf(line, size, "%.*s", (int)strcspn(at, "\n"), at);
            return true;
        }
    return false;
}

static bool status_expected(const json_t *expect, const char *status)
{
    const json_t *statuses = json_object_get(expect, "statuses"), *item;
    size_t i;
    if (statuses == NULL)
        return strcmp(status, "ok") == 0;
    json_array_foreach((json_t *)(uintptr_t)statuses, i, item)
    {
        if (strcmp(json_string_value(item), status) == 0)
            return true;
    }
    return false;
}

static bool recorded(const json_t *record, const char *list, const char *key, const char *name)
{
    const json_t *items = json_object_get(record, list), *item;
    size_t i;
    if (strcmp(list, "network") == 0)
        items = json_object_get(items, "attempts");
    json_array_foreach((json_t *)(uintptr_t)items, i, item)
    {
        const char *text = json_string_value(json_object_get(item, key));
        if (text != NULL && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

static void judge_record(const json_t *row, const struct hc_job *job, const json_t *record,
                         struct verdict *verdict)
{
    const json_t *expect = json_object_get(row, "expect");
    const char *hit = json_string_value(json_object_get(expect, "hit"));
    const char *attempt = json_string_value(json_object_get(expect, "attempt"));
    const char *denied = json_string_value(json_object_get(expect, "denied"));
    const json_t *limit = hit != NULL ? json_object_get(json_object_get(record, "limits"), hit) : NULL;
    const json_t *code = json_object_get(expect, "exit_code");
    if (!status_expected(expect, verdict->status))
        breach(verdict, "the run ended as %s (%s)", verdict->status, job->refusal.message);
    if (hit != NULL && !json_is_true(json_object_get(limit, "hit")))
        breach(verdict, "the limit %s was not met", hit);
    if (attempt != NULL && !recorded(record, "network", "call", attempt))
        breach(verdict, "the record does not tell of an attempt to %s", attempt);
    if (denied != NULL && !recorded(record, "syscalls_denied", "name", denied))
        breach(verdict, "the record does not tell of a refused %s", denied);
    if (code != NULL && json_integer_value(code) != job->verdict.exit_code)
        breach(verdict, "exit code %d was recorded", job->verdict.exit_code);
}

static void judge_outside(const struct session *session, const struct hc_job *job, struct verdict *verdict)
{
    const struct hc_captured *streams[] = {&job->outcome.out, &job->outcome.err};
    unsigned bites = hc_bait_bites(&session->bait);
    if (bites > 0)
        breach(verdict, "%u connections reached the host", bites);
    for (int i = 0; i < 2; i++)
        if (streams[i]->data != NULL && memmem(streams[i]->data, streams[i]->kept_bytes, session->bait.secret,
                                               strlen(session->bait.secret)) != NULL)
            breach(verdict, "the decoy's secret came out");
    for (size_t i = 0; i < job->collection.count; i++) {
        const struct hc_artifact *artifact = &job->collection.artifacts[i];
        if (!artifact->plain && artifact->exported)
            breach(verdict, "a %s was exported", artifact->type);
    }
    const struct hc_residue *left = &job->outcome.residue;
    if (job->outcome.has_residue && left->processes + left->mounts + left->cgroups + left->files > 0)
        breach(verdict, "left over: %u processes, %u mounts, %u groups", left->processes, left->mounts,
               left->cgroups);
    if (job->outcome.started == HC_STARTED && !job->outcome.has_residue)
        breach(verdict, "what was left over was not counted");
}

static void judge_said(const json_t *row, const struct hc_job *job, struct verdict *verdict)
{
    char line[300];
    const struct hc_captured *out = &job->outcome.out;
    if (out->data == NULL)
        return;
    if (has_line(out, "BREACH", line, sizeof line))
        breach(verdict, "%s", line);
    /* Without its last word a row that should run to its end has proved nothing. */
    if (json_object_get(json_object_get(row, "expect"), "statuses") == NULL &&
        !has_line(out, "DONE", line, sizeof line))
        breach(verdict, "the attack did not run to its end: %.200s",
               job->outcome.err.data != NULL ? (const char *)job->outcome.err.data : "");
    if (has_line(out, "VALUE", line, sizeof line))
        (void)json_array_append_new(verdict->values, json_string(line));
}

static int attack_once(const struct session *session, const json_t *row, struct verdict *verdict)
{
    struct hc_job *job = NULL;
    int error = run_job(session, row, &job);
    json_t *record = error == 0 ? hc_record_make(job) : NULL;
    if (error == 0 && record != NULL) {
        (void)snprintf(verdict->status, sizeof verdict->status, "%s", hc_statuses[job->verdict.status].name);
        bool absent = job->verdict.cause == HC_CAUSE_RUNTIME && job->verdict.state == HC_STATE_REFUSED;
        if (absent && verdict->held == HC_HELD) {
            verdict->held = HC_NOT_APPLICABLE;
            (void)snprintf(verdict->evidence, sizeof verdict->evidence, "%.300s", job->refusal.message);
        } else if (!absent) {
            judge_outside(session, job, verdict);
            judge_said(row, job, verdict);
            judge_record(row, job, record, verdict);
        }
    }
    json_decref(record);
    free_job(job);
    return error;
}

/* The next innocent run must not notice anything. */
static int innocent(const struct session *session, struct verdict *verdict)
{
    struct hc_job *job = NULL;
    json_t *row = json_pack("{s:s, s:s}", "language", "python", "program", "print(6 * 7)");
    int error = row != NULL ? run_job(session, row, &job) : -ENOMEM;
    if (error == 0 && (job->verdict.status != HC_STATUS_OK || job->outcome.out.data == NULL ||
                       strcmp((const char *)job->outcome.out.data, "42\n") != 0))
        breach(verdict, "the next innocent run ended as %s: %.200s", hc_statuses[job->verdict.status].name,
               job->refusal.message);
    json_decref(row);
    free_job(job);
    return error;
}

static void compare_values(const json_t *row, struct verdict *verdict)
{
    const char *first = json_string_value(json_array_get(verdict->values, 0)),
               *second = json_string_value(json_array_get(verdict->values, 1));
    char a[300], b[300], *save_a = NULL, *save_b = NULL;
    if (!json_is_true(json_object_get(json_object_get(row, "options"), "differ")) || first == NULL ||
        second == NULL)
        return;
    (void)snprintf(a, sizeof a, "%s", first);
    (void)snprintf(b, sizeof b, "%s", second);
    char *left, *right;
    (void)strtok_r(a, " ", &save_a); /* the word VALUE */
    (void)strtok_r(b, " ", &save_b);
    while ((left = strtok_r(NULL, " ", &save_a)) != NULL && (right = strtok_r(NULL, " ", &save_b)) != NULL)
        if (strcmp(left, right) == 0)
            breach(verdict, "two runs share %s", left);
}

static int attack(const struct session *session, const json_t *row, json_t *rows)
{
    struct verdict verdict = {.held = HC_HELD, .values = json_array()};
    const char *needs = json_string_value(json_object_get(row, "needs"));
    const char *not_promised = json_string_value(json_object_get(row, "not_promised"));
    if (not_promised == NULL && session->options->warmth == HC_WARMTH_WARM)
        not_promised = json_string_value(json_object_get(row, "not_promised_warm"));
    int times = json_is_true(json_object_get(json_object_get(row, "options"), "twice")) ? 2 : 1;
    int error = 0;
    if (needs != NULL && access(needs, F_OK) != 0) {
        verdict.held = HC_NOT_APPLICABLE;
        (void)snprintf(verdict.evidence, sizeof verdict.evidence, "%s is not there", needs);
    }
    for (int i = 0; error == 0 && verdict.held != HC_NOT_APPLICABLE && i < times; i++)
        error = attack_once(session, row, &verdict);
    if (error == 0 && verdict.held != HC_NOT_APPLICABLE) {
        compare_values(row, &verdict);
        error = innocent(session, &verdict);
    }
    if (verdict.held == HC_NOT_HELD && not_promised != NULL) {
        verdict.held = HC_NOT_PROMISED;
        (void)snprintf(verdict.evidence, sizeof verdict.evidence, "%.390s", not_promised);
    }
    json_decref(verdict.values);
    if (error == 0 &&
        json_array_append_new(rows,
                              json_pack("{s:O, s:O, s:O, s:s, s:s, s:s}", "id", json_object_get(row, "id"),
                                        "boundary", json_object_get(row, "boundary"), "title",
                                        json_object_get(row, "title"), "result", hc_held_names[verdict.held],
                                        "evidence", verdict.evidence, "status", verdict.status)) != 0)
        error = -ENOMEM;
    return error;
}

static int counter_example(const struct session *session, const json_t *row, json_t *list)
{
    struct hc_job *job = NULL;
    char evidence[300] = "";
    int error = run_job(session, row, &job);
    bool caught = error == 0 && job->acceptance.status == HC_REJECTED;
    if (error == 0)
        (void)snprintf(evidence, sizeof evidence, "execution %s, acceptance %s",
                       hc_statuses[job->verdict.status].name,
                       job->acceptance.status == HC_REJECTED   ? "rejected"
                       : job->acceptance.status == HC_ACCEPTED ? "ACCEPTED"
                                                               : "could not tell");
    free_job(job);
    if (error == 0 &&
        json_array_append_new(list, json_pack("{s:O, s:O, s:s, s:s}", "id", json_object_get(row, "id"),
                                              "title", json_object_get(row, "title"), "result",
                                              caught ? "caught" : "NOT CAUGHT", "evidence", evidence)) != 0)
        error = -ENOMEM;
    return error;
}

static bool chosen(const struct session *session, const json_t *row)
{
    const char *id = json_string_value(json_object_get(row, "id"));
    return session->options->only == NULL || json_object_get(session->options->only, id) != NULL;
}

/* ---- the card ---- */

static json_t *count_boundaries(const json_t *rows)
{
    json_t *boundaries = json_object(), *row;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)rows, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "boundary")),
                   *result = json_string_value(json_object_get(row, "result"));
        json_t *boundary = json_object_get(boundaries, name);
        if (boundary == NULL) {
            boundary = json_object();
            (void)json_object_set_new(boundaries, name, boundary);
        }
        (void)json_object_set_new(boundary, result,
                                  json_integer(json_integer_value(json_object_get(boundary, result)) + 1));
    }
    return boundaries;
}

static json_int_t count_results(const json_t *list, const char *result)
{
    json_int_t count = 0;
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)(uintptr_t)list, i, row)
    {
        count += strcmp(json_string_value(json_object_get(row, "result")), result) == 0;
    }
    return count;
}

static json_t *host_of(void)
{
    struct utsname names = {0};
    (void)uname(&names);
    return json_pack("{s:s, s:s, s:b}", "kernel", names.release, "machine", names.machine, "root",
                     geteuid() == 0);
}

static int run_rows(struct session *session, const json_t *catalogue, json_t *rows, json_t *business)
{
    const json_t *list = json_object_get(catalogue, "rows"), *more = json_object_get(catalogue, "business");
    unsigned of = (unsigned)(json_array_size(list) + json_array_size(more)), done = 0;
    size_t i;
    json_t *row;
    int error = 0;
    json_array_foreach((json_t *)(uintptr_t)list, i, row)
    {
        if (session->options->progress != NULL)
            session->options->progress(session->options->progress_context,
                                       json_string_value(json_object_get(row, "id")), ++done, of);
        if (error == 0 && chosen(session, row))
            error = attack(session, row, rows);
    }
    json_array_foreach((json_t *)(uintptr_t)more, i, row)
    {
        if (session->options->progress != NULL)
            session->options->progress(session->options->progress_context,
                                       json_string_value(json_object_get(row, "id")), ++done, of);
        if (error == 0 && chosen(session, row))
            error = counter_example(session, row, business);
    }
    return error;
}

int hc_redteam_list(const char *share, json_t **ret_rows, struct hc_problem *problem)
{
    json_t *catalogue = NULL;
    int error = hc_catalogue_read(share, &catalogue, problem);
    if (error == 0)
        *ret_rows = json_incref(json_object_get(catalogue, "rows"));
    json_decref(catalogue);
    return error;
}

int hc_redteam(const char *share, const struct hc_redteam_options *options, json_t **ret_card,
               struct hc_refusal *refusal, struct hc_problem *problem)
{
    struct session session = {.options = options};
    struct hc_engine_options engine_options = {.cells_ahead = 2,
                                               .warm_cells = options->warmth == HC_WARMTH_WARM ? 2 : 0};
    json_t *catalogue = NULL, *rows = json_array(), *business = json_array();
    struct hc_hall *hall = NULL;
    int error = hc_catalogue_read(share, &catalogue, problem);
    if (error == 0)
        error = hc_engine_open(&engine_options, &session.engine, problem);
    if (error == 0) {
        error = hc_bait_lay(&session.bait);
        if (error == 0)
            error = hc_engine_hall(session.engine, &hall, refusal);
        if (error == 0)
            error = run_rows(&session, catalogue, rows, business);
        hc_bait_remove(&session.bait);
    }
    hc_engine_close(session.engine);
    json_decref(catalogue);
    if (error == 0)
        *ret_card = json_pack("{s:o, s:s, s:s, s:O, s:o, s:O, s:I, s:I}", "host", host_of(), "profile",
                              options->profile, "warmth", options->warmth == HC_WARMTH_WARM ? "warm" : "cold",
                              "rows", rows, "boundaries", count_boundaries(rows), "business", business,
                              "not_held", count_results(rows, hc_held_names[HC_NOT_HELD]), "not_caught",
                              count_results(business, "NOT CAUGHT"));
    json_decref(rows);
    json_decref(business);
    return error == 0 && *ret_card == NULL ? -ENOMEM : error;
}
