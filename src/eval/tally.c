#include "eval/tally.h"

#include <errno.h>
#include <string.h>

#define NAMES_MAX 1000 /* of error types and of suites; the others are counted together */
#define BAD_MAX   100

const char *const hc_tally_stages[HC_TALLY_STAGES] = {"provision_us", "check_us",  "compile_us",
                                                      "run_us",       "accept_us", "teardown_us"};

int hc_tally_init(struct hc_tally *tally)
{
    memset(tally, 0, sizeof *tally);
    tally->error_types = json_object();
    tally->suites = json_object();
    tally->bad = json_array();
    tally->denied = json_object();
    tally->findings = json_object();
    bool whole = tally->error_types != NULL && tally->suites != NULL && tally->bad != NULL &&
                 tally->denied != NULL && tally->findings != NULL;
    for (int i = 0; i < HC_CLASS_COUNT; i++) {
        tally->kinds[i] = json_object();
        whole = whole && tally->kinds[i] != NULL;
    }
    return whole ? 0 : -ENOMEM;
}

void hc_tally_done(struct hc_tally *tally)
{
    json_decref(tally->error_types);
    json_decref(tally->suites);
    json_decref(tally->bad);
    json_decref(tally->denied);
    json_decref(tally->findings);
    for (int i = 0; i < HC_CLASS_COUNT; i++)
        json_decref(tally->kinds[i]);
    memset(tally, 0, sizeof *tally);
}

/* ---- times ---- */

static unsigned slot_of(uint64_t us)
{
    if (us < HC_TALLY_STEPS)
        return (unsigned)us;
    unsigned power = 63u - (unsigned)__builtin_clzll(us); /* at least 6 */
    return (power - 5) * HC_TALLY_STEPS + (unsigned)((us >> (power - 6)) & (HC_TALLY_STEPS - 1));
}

static uint64_t middle_of(unsigned slot)
{
    unsigned power = slot / HC_TALLY_STEPS;
    if (power == 0)
        return slot;
    uint64_t step = 1ull << (power - 1);
    return (HC_TALLY_STEPS + slot % HC_TALLY_STEPS) * step + step / 2;
}

void hc_eval_times_add(struct hc_eval_times *times, uint64_t us)
{
    times->counts[slot_of(us)]++;
    times->total++;
}

uint64_t hc_eval_times_at(const struct hc_eval_times *times, unsigned permille)
{
    uint64_t rank = (times->total * permille + 999) / 1000, seen = 0;
    for (unsigned slot = 0; slot < HC_TALLY_SLOTS && times->total > 0; slot++) {
        seen += times->counts[slot];
        if (seen >= rank && seen > 0)
            return middle_of(slot);
    }
    return 0;
}

/* ---- counts by name ---- */

static const char *bounded(const json_t *names, const char *name)
{
    return json_object_get(names, name) != NULL || json_object_size(names) < NAMES_MAX ? name : "(others)";
}

static int count_name(json_t *counts, const char *name)
{
    name = bounded(counts, name);
    json_int_t count = json_integer_value(json_object_get(counts, name));
    return json_object_set_new(counts, name, json_integer(count + 1)) != 0 ? -ENOMEM : 0;
}

/* Every name of a list once. */
static int count_names(json_t *counts, const json_t *names)
{
    size_t i;
    json_t *name;
    int error = 0;
    json_array_foreach((json_t *)names, i, name)
    {
        if (error == 0 && json_is_string(name))
            error = count_name(counts, json_string_value(name));
    }
    return error;
}

static int judge(struct hc_tally *tally, const json_t *accepted, const char *suite, bool ok)
{
    const char *word = json_is_true(accepted) ? "right" : json_is_false(accepted) ? "wrong" : "not_judged";
    uint64_t *count = json_is_true(accepted)    ? &tally->right
                      : json_is_false(accepted) ? &tally->wrong
                                                : &tally->not_judged;
    (*count)++;
    suite = bounded(tally->suites, suite != NULL ? suite : "(none)");
    json_t *row = json_object_get(tally->suites, suite);
    if (row == NULL) {
        row = json_pack("{s:i, s:i, s:i, s:i, s:i}", "attempted", 0, "ok", 0, "right", 0, "wrong", 0,
                        "not_judged", 0);
        if (json_object_set_new(tally->suites, suite, row) != 0)
            return -ENOMEM;
    }
    int error = count_name(row, "attempted");
    if (error == 0 && ok)
        error = count_name(row, "ok");
    return error == 0 ? count_name(row, word) : error;
}

static int status_named(const char *name)
{
    for (int i = 0; name != NULL && i < HC_STATUS_COUNT; i++)
        if (strcmp(hc_statuses[i].name, name) == 0)
            return i;
    return -1;
}

static void add_time(struct hc_eval_times *times, const json_t *us)
{
    if (json_is_integer(us) && json_integer_value(us) >= 0)
        hc_eval_times_add(times, (uint64_t)json_integer_value(us));
}

int hc_tally_add(struct hc_tally *tally, const json_t *result)
{
    int status = status_named(json_string_value(json_object_get(result, "status")));
    const char *error_type = json_string_value(json_object_get(result, "error_type"));
    if (status < 0 || json_string_value(json_object_get(result, "id")) == NULL)
        return HC_TALLY_NO_RESULT;
    tally->results++;
    tally->statuses[status]++;
    char kind[128];
    enum hc_error_class class = hc_eval_class(result, kind);
    tally->classes[class]++;
    if (class != HC_CLASS_NONE && count_name(tally->kinds[class], kind) != 0)
        return -ENOMEM;
    if (status == HC_STATUS_FAULT || status == HC_STATUS_CANCELLED)
        return 0;
    add_time(&tally->wall, json_object_get(result, "wall_us"));
    add_time(&tally->total, json_object_get(result, "total_us"));
    for (int i = 0; i < HC_TALLY_STAGES; i++)
        add_time(&tally->stages[i], json_object_get(json_object_get(result, "timing"), hc_tally_stages[i]));
    tally->tried_network += json_integer_value(json_object_get(result, "network_attempts")) > 0 ? 1 : 0;
    tally->tried_calls += json_integer_value(json_object_get(result, "calls_denied")) > 0 ? 1 : 0;
    int error = error_type != NULL && status != HC_STATUS_OK ? count_name(tally->error_types, error_type) : 0;
    if (error == 0)
        error = count_names(tally->denied, json_object_get(result, "denied"));
    if (error == 0)
        error = count_names(tally->findings, json_object_get(result, "findings"));
    return error == 0 ? judge(tally, json_object_get(result, "accepted"),
                              json_string_value(json_object_get(result, "suite")), status == HC_STATUS_OK)
                      : error;
}

int hc_tally_bad_line(struct hc_tally *tally, uint64_t line, const char *message)
{
    if (++tally->bad_lines > BAD_MAX)
        return 0;
    json_t *row = json_pack("{s:I, s:s}", "line", (json_int_t)line, "message", message);
    return row == NULL || json_array_append_new(tally->bad, row) != 0 ? -ENOMEM : 0;
}

uint64_t hc_tally_attempted(const struct hc_tally *tally)
{
    return tally->results - tally->statuses[HC_STATUS_FAULT] - tally->statuses[HC_STATUS_CANCELLED];
}
