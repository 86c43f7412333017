#include "eval/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* ---- as one document ---- */

static json_t *times_of(const struct hc_eval_times *times)
{
    if (times->total == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:I}", "p50", (json_int_t)hc_eval_times_at(times, 500), "p95",
                     (json_int_t)hc_eval_times_at(times, 950), "p99",
                     (json_int_t)hc_eval_times_at(times, 990));
}

static json_t *statuses_of(const struct hc_tally *tally)
{
    json_t *statuses = json_object();
    for (int i = 0; i < HC_STATUS_COUNT; i++)
        if (tally->statuses[i] > 0)
            (void)json_object_set_new(statuses, hc_statuses[i].name,
                                      json_integer((json_int_t)tally->statuses[i]));
    return statuses;
}

/* {class: {count, kinds}}, without what is no error. */
static json_t *errors_of(const struct hc_tally *t)
{
    json_t *errors = json_object();
    for (int i = HC_CLASS_NONE + 1; i < HC_CLASS_COUNT; i++)
        if (t->classes[i] > 0)
            (void)json_object_set_new(
                errors, hc_error_classes[i].name,
                json_pack("{s:I, s:O}", "count", (json_int_t)t->classes[i], "kinds", t->kinds[i]));
    return errors;
}

static json_t *stages_of(const struct hc_tally *t)
{
    json_t *stages = json_object();
    for (int i = 0; i < HC_TALLY_STAGES; i++)
        (void)json_object_set_new(stages, hc_tally_stages[i], times_of(&t->stages[i]));
    return stages;
}

static json_t *rate(uint64_t part, uint64_t whole)
{
    return whole > 0 ? json_real(share(part, whole)) : json_null();
}

static json_t *execution_of(const struct hc_tally *t)
{
    uint64_t attempted = hc_tally_attempted(t), ok = t->statuses[HC_STATUS_OK];
    return json_pack("{s:I, s:I, s:o, s:I, s:I, s:o, s:O, s:o, s:o, s:o}", "attempted", (json_int_t)attempted,
                     "ok", (json_int_t)ok, "success_rate", rate(ok, attempted), "faults",
                     (json_int_t)t->statuses[HC_STATUS_FAULT], "cancelled",
                     (json_int_t)t->statuses[HC_STATUS_CANCELLED], "statuses", statuses_of(t), "error_types",
                     t->error_types, "wall_us", times_of(&t->wall), "total_us", times_of(&t->total), "stages",
                     stages_of(t));
}

static json_t *acceptance_of(const struct hc_tally *t)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:O}", "right", (json_int_t)t->right, "wrong",
                     (json_int_t)t->wrong, "not_judged", (json_int_t)t->not_judged, "accuracy",
                     rate(t->right, t->right + t->wrong), "suites", t->suites);
}

static json_t *findings_of(const struct hc_tally *t)
{
    return json_pack("{s:I, s:I, s:O, s:O}", "items_with_network_attempts", (json_int_t)t->tried_network,
                     "items_with_denied_calls", (json_int_t)t->tried_calls, "denied_calls", t->denied,
                     "policy", t->findings);
}

json_t *hc_eval_report(const struct hc_tally *t)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:b, s:I, s:{s:I, s:O}, s:o, s:o, s:o, s:o}", "schema",
                     "hotcell.eval/1", "items", (json_int_t)t->items, "results", (json_int_t)t->results,
                     "resumed", (json_int_t)t->resumed, "ids_not_found", (json_int_t)t->missing_ids,
                     "interrupted", t->interrupted > 0 ? 1 : 0, "elapsed_us", (json_int_t)t->elapsed_us,
                     "bad_lines", "count", (json_int_t)t->bad_lines, "first", t->bad, "execution",
                     execution_of(t), "acceptance", acceptance_of(t), "errors", errors_of(t), "findings",
                     findings_of(t));
}

/* ---- for people ---- */

static void print_times(const char *name, const struct hc_eval_times *times, FILE *out)
{
    if (times->total > 0)
        (void)fprintf(out, "  %-22s p50 %.1f ms, p95 %.1f ms, p99 %.1f ms\n", name,
                      (double)hc_eval_times_at(times, 500) / 1e3, (double)hc_eval_times_at(times, 950) / 1e3,
                      (double)hc_eval_times_at(times, 990) / 1e3);
}

static int by_count(const void *a, const void *b)
{
    const json_t *const *left = a, *const *right = b;
    json_int_t x = json_integer_value(json_array_get(*left, 1)),
               y = json_integer_value(json_array_get(*right, 1));
    return x < y   ? 1
           : x > y ? -1
                   : strcmp(json_string_value(json_array_get(*left, 0)),
                            json_string_value(json_array_get(*right, 0)));
}

/* The most frequent names first. */
static int print_names(const json_t *counts, FILE *out)
{
    size_t n = 0, size = json_object_size(counts);
    const char *name;
    json_t *count, **rows = calloc(size + 1, sizeof *rows);
    if (rows == NULL)
        return -ENOMEM;
    json_object_foreach((json_t *)counts, name, count)
    {
        rows[n] = json_pack("[s, O]", name, count);
        n += rows[n] != NULL ? 1 : 0;
    }
    qsort(rows, n, sizeof *rows, by_count);
    for (size_t i = 0; i < n; i++) {
        if (i < 15)
            (void)fprintf(out, "    %-20.60s %8" JSON_INTEGER_FORMAT "\n",
                          json_string_value(json_array_get(rows[i], 0)),
                          json_integer_value(json_array_get(rows[i], 1)));
        json_decref(rows[i]);
    }
    if (n > 15)
        (void)fprintf(out, "    and %zu more kinds\n", n - 15);
    free(rows);
    return 0;
}

/* Error classes, and the kinds of each. */
static int print_errors(const struct hc_tally *t, FILE *out)
{
    int error = 0;
    for (int i = HC_CLASS_NONE + 1; i < HC_CLASS_COUNT && error == 0; i++) {
        if (t->classes[i] == 0)
            continue;
        (void)fprintf(out, "  %-22s %8" PRIu64 "  %s\n", hc_error_classes[i].name, t->classes[i],
                      hc_error_classes[i].meaning);
        error = print_names(t->kinds[i], out);
    }
    return error;
}

static void print_execution(const struct hc_tally *t, FILE *out)
{
    uint64_t attempted = hc_tally_attempted(t), ok = t->statuses[HC_STATUS_OK];
    (void)fprintf(out, "Execution\n  %-22s %" PRIu64 "\n", "attempted", attempted);
    (void)fprintf(out, "  %-22s %.2f %% (%" PRIu64 " ok)\n", "success rate", 100 * share(ok, attempted), ok);
    for (int i = 0; i < HC_STATUS_COUNT; i++)
        if (t->statuses[i] > 0 && i != HC_STATUS_OK)
            (void)fprintf(out, "    %-20s %8" PRIu64 "%s\n", hc_statuses[i].name, t->statuses[i],
                          i == HC_STATUS_FAULT || i == HC_STATUS_CANCELLED ? " (left out)" : "");
    print_times("wall time", &t->wall, out);
    print_times("total time", &t->total, out);
    for (int i = 0; i < HC_TALLY_STAGES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "  %.*s", (int)strlen(hc_tally_stages[i]) - 3, hc_tally_stages[i]);
        if (hc_eval_times_at(&t->stages[i], 1000) > 0)
            print_times(name, &t->stages[i], out);
    }
}

static void print_acceptance(const struct hc_tally *t, FILE *out)
{
    const char *name;
    json_t *row;
    (void)fprintf(out, "Acceptance                 attempted       ok    right    wrong  not judged\n");
    json_object_foreach(t->suites, name, row)
    {
        (void)fprintf(out, "  %-22.40s", name);
        static const struct {
            const char *name;
            int width;
        } columns[] = {{"attempted", 12}, {"ok", 9}, {"right", 9}, {"wrong", 9}, {"not_judged", 12}};
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
            (void)fprintf(out, "%*" JSON_INTEGER_FORMAT, columns[i].width,
                          json_integer_value(json_object_get(row, columns[i].name)));
        (void)fputc('\n', out);
    }
    (void)fprintf(out, "  %-22s%12" PRIu64 "%9" PRIu64 "%9" PRIu64 "%9" PRIu64 "%12" PRIu64 "\n", "all",
                  hc_tally_attempted(t), t->statuses[HC_STATUS_OK], t->right, t->wrong, t->not_judged);
    if (t->right + t->wrong > 0)
        (void)fprintf(out, "  %-22s %.2f %% of what was judged\n", "right",
                      100 * share(t->right, t->right + t->wrong));
}

static int print_findings(const struct hc_tally *t, FILE *out)
{
    (void)fprintf(out, "Security\n  %-22s %" PRIu64 " items tried it\n  %-22s %" PRIu64 " items made some\n",
                  "network", t->tried_network, "denied calls", t->tried_calls);
    int error = print_names(t->denied, out);
    if (error == 0 && json_object_size(t->findings) > 0) {
        (void)fprintf(out, "  policy\n");
        error = print_names(t->findings, out);
    }
    return error;
}

int hc_eval_report_print(const struct hc_tally *t, FILE *out)
{
    uint64_t now = t->results - t->resumed;
    (void)fprintf(out, "%" PRIu64 " items in %.1f s, %.1f per second", now, (double)t->elapsed_us / 1e6,
                  t->elapsed_us > 0 ? (double)now * 1e6 / (double)t->elapsed_us : 0);
    if (t->resumed > 0)
        (void)fprintf(out, "; %" PRIu64 " from an earlier run", t->resumed);
    (void)fprintf(out, "%s\n\n", t->interrupted > 0 ? "; INTERRUPTED" : "");
    print_execution(t, out);
    (void)fputc('\n', out);
    print_acceptance(t, out);
    (void)fputs("\nErrors\n", out);
    int error = print_errors(t, out);
    (void)fputc('\n', out);
    if (error == 0)
        error = print_findings(t, out);
    if (t->bad_lines > 0)
        (void)fprintf(out, "\n%" PRIu64 " bad lines\n", t->bad_lines);
    if (t->missing_ids > 0)
        (void)fprintf(out, "\n%" PRIu64 " ids of --only are not in the file\n", t->missing_ids);
    return error < 0 ? error : fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
