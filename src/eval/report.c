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

json_t *hc_eval_report(const struct hc_tally *t)
{
    uint64_t attempted = hc_tally_attempted(t), ok = t->statuses[HC_STATUS_OK];
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:b, s:I, s:{s:I, s:O}, s:{s:I, s:I, s:o, s:I, s:I, s:o, s:O, s:o, s:o},"
        " s:{s:I, s:I, s:I, s:O}, s:{s:I, s:I}}",
        "schema", "hotcell.eval/1", "items", (json_int_t)t->items, "results", (json_int_t)t->results,
        "resumed", (json_int_t)t->resumed, "ids_not_found", (json_int_t)t->missing_ids, "interrupted",
        t->interrupted > 0 ? 1 : 0, "elapsed_us", (json_int_t)t->elapsed_us, "bad_lines", "count",
        (json_int_t)t->bad_lines, "first", t->bad, "execution", "attempted", (json_int_t)attempted, "ok",
        (json_int_t)ok, "success_rate", attempted > 0 ? json_real(share(ok, attempted)) : json_null(),
        "faults", (json_int_t)t->statuses[HC_STATUS_FAULT], "cancelled",
        (json_int_t)t->statuses[HC_STATUS_CANCELLED], "statuses", statuses_of(t), "error_types",
        t->error_types, "wall_us", times_of(&t->wall), "total_us", times_of(&t->total), "acceptance", "right",
        (json_int_t)t->right, "wrong", (json_int_t)t->wrong, "not_judged", (json_int_t)t->not_judged,
        "suites", t->suites, "findings", "items_with_network_attempts", (json_int_t)t->tried_network,
        "items_with_denied_calls", (json_int_t)t->tried_calls);
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

static int print_execution(const struct hc_tally *t, FILE *out)
{
    uint64_t attempted = hc_tally_attempted(t), ok = t->statuses[HC_STATUS_OK];
    (void)fprintf(out, "Execution\n  %-22s %" PRIu64 "\n", "attempted", attempted);
    (void)fprintf(out, "  %-22s %.2f %% (%" PRIu64 " ok)\n", "success rate", 100 * share(ok, attempted), ok);
    for (int i = 0; i < HC_STATUS_COUNT; i++)
        if (t->statuses[i] > 0 && i != HC_STATUS_OK)
            (void)fprintf(out, "    %-20s %8" PRIu64 "%s\n", hc_statuses[i].name, t->statuses[i],
                          i == HC_STATUS_FAULT || i == HC_STATUS_CANCELLED ? " (left out)" : "");
    int error = 0;
    if (json_object_size(t->error_types) > 0) {
        (void)fprintf(out, "  error types\n");
        error = print_names(t->error_types, out);
    }
    print_times("wall time", &t->wall, out);
    print_times("total time", &t->total, out);
    if (t->tried_network > 0 || t->tried_calls > 0)
        (void)fprintf(
            out, "  %-22s %" PRIu64 " items tried the network, %" PRIu64 " made calls that were denied\n",
            "findings", t->tried_network, t->tried_calls);
    return error;
}

static void print_acceptance(const struct hc_tally *t, FILE *out)
{
    const char *name;
    json_t *row;
    (void)fprintf(out, "Acceptance                    right    wrong  not judged\n");
    json_object_foreach(t->suites, name, row)(void) fprintf(
        out, "  %-22.40s %10" JSON_INTEGER_FORMAT " %8" JSON_INTEGER_FORMAT " %11" JSON_INTEGER_FORMAT "\n",
        name, json_integer_value(json_object_get(row, "right")),
        json_integer_value(json_object_get(row, "wrong")),
        json_integer_value(json_object_get(row, "not_judged")));
    (void)fprintf(out, "  %-22s %10" PRIu64 " %8" PRIu64 " %11" PRIu64 "\n", "all", t->right, t->wrong,
                  t->not_judged);
}

int hc_eval_report_print(const struct hc_tally *t, FILE *out)
{
    uint64_t now = t->results - t->resumed;
    (void)fprintf(out, "%" PRIu64 " items in %.1f s, %.1f per second", now, (double)t->elapsed_us / 1e6,
                  t->elapsed_us > 0 ? (double)now * 1e6 / (double)t->elapsed_us : 0);
    if (t->resumed > 0)
        (void)fprintf(out, "; %" PRIu64 " from an earlier run", t->resumed);
    (void)fprintf(out, "%s\n\n", t->interrupted > 0 ? "; INTERRUPTED" : "");
    int error = print_execution(t, out);
    (void)fputc('\n', out);
    print_acceptance(t, out);
    if (t->bad_lines > 0)
        (void)fprintf(out, "\n%" PRIu64 " bad lines\n", t->bad_lines);
    if (t->missing_ids > 0)
        (void)fprintf(out, "\n%" PRIu64 " ids of --only are not in the file\n", t->missing_ids);
    return error < 0 ? error : fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
