#include "eval/result.h"

#include "base/strings.h"
#include "base/utf8.h"

#include <string.h>

#define TAIL_CHARACTERS 300
#define NAMES_MAX       8 /* of denied calls and of findings, per item */

static json_t *copy(const json_t *record, const char *outer, const char *name)
{
    const json_t *from = outer != NULL ? json_object_get(record, outer) : record;
    json_t *value = json_object_get(from, name);
    return value != NULL ? json_incref(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

/* The last characters of a text that may be anything. */
static json_t *tail(const struct hc_captured *err)
{
    char out[8 * 4 * TAIL_CHARACTERS];
    size_t n = err->data != NULL ? err->kept_bytes : 0, take = 4 * TAIL_CHARACTERS, characters = 0;
    const uint8_t *from = err->data;
    if (n == 0)
        return json_null();
    if (n > take) {
        from += n - take;
        from += hc_utf8_ceil(from, take);
    }
    n = (size_t)(err->data + err->kept_bytes - from);
    if (hc_utf8_valid(from, n)) {
        size_t at = n;
        while (at > 0 && characters < TAIL_CHARACTERS)
            characters += (from[--at] & 0xC0) != 0x80 ? 1 : 0;
        return json_stringn((const char *)from + at, n - at);
    }
    if (n > TAIL_CHARACTERS)
        from += n - TAIL_CHARACTERS;
    n = n > TAIL_CHARACTERS ? TAIL_CHARACTERS : n;
    size_t shown = hc_escape_visible(from, n, out, sizeof out);
    return json_stringn(out, shown);
}

static json_t *accepted(const struct hc_job *job)
{
    return job->acceptance.status == HC_ACCEPTED   ? json_true()
           : job->acceptance.status == HC_REJECTED ? json_false()
                                                   : json_null();
}

/* What the program tried: attempts at the network, and all calls that were denied. */
static json_t *denied_calls(const json_t *record)
{
    size_t i;
    json_t *row;
    json_int_t count = 0;
    json_array_foreach(json_object_get(record, "syscalls_denied"), i, row)
    {
        count += json_integer_value(json_object_get(row, "count"));
    }

    return json_integer(count);
}

/* Sockets of the cell itself are no network: the C library looks for a name service there. */
static json_t *attempts(const json_t *record)
{
    size_t i;
    json_t *row;
    json_int_t count = 0;
    json_array_foreach(json_object_get(json_object_get(record, "network"), "attempts"), i, row)
    {
        count += hc_string_equal(json_string_value(json_object_get(row, "protocol")), "unix") ? 0 : 1;
    }

    return json_integer(count);
}

/* Different values of one member in a list of objects, in their order. */
static json_t *names_in(const json_t *list, const char *member)
{
    size_t i, n;
    json_t *row, *name, *names = json_array();
    json_array_foreach((json_t *)list, i, row)
    {
        bool there = false;
        const json_t *value = json_object_get(row, member);
        json_array_foreach(names, n, name)
        {
            there = there || json_equal(name, value);
        }

        if (!there && json_is_string(value) && json_array_size(names) < NAMES_MAX)
            (void)json_array_append_new(names, json_string(json_string_value(value)));
    }
    return names;
}

/* The first predicate that did not hold: its kind, and what was found instead of what was wanted. */
static json_t *wrong(const json_t *record)
{
    size_t i;
    json_t *row;
    if (!hc_string_equal(json_string_value(json_object_get(json_object_get(record, "acceptance"), "status")),
                         "rejected"))
        return json_null();
    json_array_foreach(json_object_get(json_object_get(record, "acceptance"), "predicates"), i, row)
    {
        if (json_is_true(json_object_get(row, "ok")))
            continue;
        return json_pack("{s:o, s:o, s:o}", "kind", copy(row, NULL, "kind"), "expected",
                         copy(row, NULL, "expected"), "got", copy(row, NULL, "got"));
    }
    return json_null();
}

/* Refusals and faults say why in words, runs say how they failed. */
static json_t *error_type(const struct hc_job *job, const json_t *record)
{
    if (job->verdict.state == HC_STATE_FINISHED)
        return copy(record, "error", "type");
    return text_or_null(job->refusal.field[0] != '\0' ? job->refusal.field : NULL);
}

json_t *hc_eval_result(const struct hc_eval_item *item, const struct hc_job *job, const json_t *record)
{
    const struct hc_captured *err =
        job->outcome.err.data != NULL ? &job->outcome.err : &job->compile.outcome.err;
    json_t *said = job->verdict.state == HC_STATE_FINISHED ? tail(err) : text_or_null(job->refusal.message);
    json_t *result = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", item->id, "status", copy(record, NULL, "status"),
        "cause", copy(record, NULL, "cause"), "exit_code", copy(record, NULL, "exit_code"), "accepted",
        accepted(job), "stdout_sha256", copy(record, "stdout", "sha256"), "wall_us",
        copy(record, "usage", "wall_us"), "total_us", copy(record, "timing", "total_us"));
    json_t *extras = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "timing",
        copy(record, NULL, "timing"), "error_message", copy(record, "error", "message"), "error_line",
        copy(record, "error", "line"), "wrong", wrong(record), "denied",
        names_in(json_object_get(record, "syscalls_denied"), "name"), "findings",
        names_in(json_object_get(json_object_get(record, "policy"), "findings"), "rule"), "stdout_tail",
        tail(&job->outcome.out), "run", job->id, "suite", text_or_null(item->suite), "language",
        item->language, "signal", copy(record, NULL, "signal"), "error_type", error_type(job, record),
        "memory_peak_bytes", copy(record, "usage", "memory_peak_bytes"), "network_attempts", attempts(record),
        "calls_denied", denied_calls(record), "stderr_tail", said);
    if (result == NULL || extras == NULL || json_object_update(result, extras) != 0) {
        json_decref(result);
        result = NULL;
    }
    json_decref(extras);
    return result;
}

json_t *hc_eval_result_fault(const char *id, const char *language, const char *suite, const char *why)
{
    return json_pack("{s:s, s:s, s:s, s:n, s:n, s:n, s:n, s:n, s:n, s:o, s:s, s:n, s:s, s:n, s:n, s:n, s:s}",
                     "id", id, "status", hc_statuses[HC_STATUS_FAULT].name, "cause",
                     hc_causes[HC_CAUSE_HOST].name, "exit_code", "accepted", "stdout_sha256", "wall_us",
                     "total_us", "run", "suite", text_or_null(suite), "language", language, "signal",
                     "error_type", "worker", "memory_peak_bytes", "network_attempts", "calls_denied",
                     "stderr_tail", why);
}
