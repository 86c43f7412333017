#include "flow/task.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

static const json_t *at(const json_t *object, const char *a, const char *b)
{
    const json_t *inner = json_object_get(object, a);
    return b != NULL ? json_object_get(inner, b) : inner;
}

static uint64_t number_at(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

static json_t *number(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *hc_task_document(const char *goal, const struct hc_task_budget *budget, const json_t *predicates)
{
    return json_pack("{s:o, s:{s:o, s:o, s:o, s:o, s:o}, s:O}", "goal",
                     goal != NULL ? json_string(goal) : json_null(), "budget", "attempts",
                     number(budget->attempts), "wall_us", number(budget->wall_us), "overhead_us",
                     number(budget->overhead_us), "total_us", number(budget->total_us), "feedback_bytes",
                     number(budget->feedback_bytes), "predicates", (json_t *)predicates);
}

struct hc_task_budget hc_task_budget_of(const json_t *task)
{
    const json_t *budget = at(task, "document", "budget");
    return (struct hc_task_budget){.attempts = number_at(budget, "attempts"),
                                   .wall_us = number_at(budget, "wall_us"),
                                   .overhead_us = number_at(budget, "overhead_us"),
                                   .total_us = number_at(budget, "total_us"),
                                   .feedback_bytes = number_at(budget, "feedback_bytes")};
}

struct hc_task_spent hc_task_spent_of(const json_t *task)
{
    struct hc_task_spent spent = {0};
    size_t i;
    json_t *try;
    json_array_foreach(json_object_get(task, "tries"), i, try)
    {
        bool under_way = !json_is_integer(json_object_get(try, "time_us"));
        spent.attempts += json_is_true(json_object_get(try, "counted"));
        spent.time_us += number_at(try, under_way ? "reserved_us" : "time_us");
    }
    return spent;
}

static bool is_accepted(const json_t *task)
{
    size_t i;
    json_t *try;
    json_array_foreach(json_object_get(task, "tries"), i, try)
    {
        const char *accepted = json_string_value(json_object_get(try, "accepted"));
        if (accepted != NULL && strcmp(accepted, "accepted") == 0)
            return true;
    }
    return false;
}

uint64_t hc_task_decide(const json_t *task)
{
    struct hc_task_budget budget = hc_task_budget_of(task);
    struct hc_task_spent spent = hc_task_spent_of(task);
    return is_accepted(task) ? 0 : hc_task_next_wall_us(&budget, &spent);
}

const char *hc_task_state(const json_t *task)
{
    return is_accepted(task) ? "accepted" : hc_task_decide(task) > 0 ? "open" : "spent";
}

json_t *hc_task_summary(const json_t *task)
{
    struct hc_task_budget budget = hc_task_budget_of(task);
    struct hc_task_spent spent = hc_task_spent_of(task);
    bool open = hc_task_decide(task) > 0;
    return json_pack("{s:s, s:O, s:O, s:s, s:O, s:o, s:o, s:o, s:o, s:o}", "schema", "hotcell.task/1", "task",
                     json_object_get(task, "id"), "created_at", json_object_get(task, "created_at"), "state",
                     hc_task_state(task), "budget", (json_t *)at(task, "document", "budget"), "worst_case_us",
                     number(hc_task_worst_case_us(&budget)), "attempts_used", number(spent.attempts),
                     "time_used_us", number(spent.time_us), "attempts_left",
                     number(open ? hc_task_attempts_left(&budget, &spent) : 0), "worst_case_left_us",
                     number(open ? hc_task_worst_left_us(&budget, &spent) : 0));
}

/* ---- feedback ---- */

/* The end of a text in whole lines if one begins in time, never half a character. */
static json_t *tail_of(const char *text, size_t n, uint64_t bytes)
{
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' '))
        n--;
    const char *start = text;
    if (n > bytes) {
        start = text + (n - bytes);
        const char *line = start[-1] == '\n' ? start - 1 : memchr(start, '\n', bytes);
        start = line != NULL ? line + 1 : start + hc_utf8_ceil((const uint8_t *)start, (size_t)bytes);
    }
    return json_stringn(start, (size_t)(text + n - start));
}

static json_t *cut(const json_t *text, uint64_t *left)
{
    size_t n = json_string_length(text);
    if (!json_is_string(text))
        return json_null();
    n = n > *left ? hc_utf8_floor((const uint8_t *)json_string_value(text), (size_t)*left) : n;
    *left -= n;
    return json_stringn(json_string_value(text), n);
}

static json_t *failed_of(const json_t *record)
{
    json_t *failed = json_array(), *row;
    size_t i;
    json_array_foreach(at(record, "acceptance", "predicates"), i, row)
    {
        if (!json_is_true(json_object_get(row, "ok")))
            (void)json_array_append_new(failed, json_pack("{s:i, s:O, s:O}", "index", (int)i, "kind",
                                                          json_object_get(row, "kind"), "ok",
                                                          json_object_get(row, "ok")));
    }
    return failed;
}

json_t *hc_task_feedback(const json_t *record, uint64_t bytes)
{
    const json_t *error = json_object_get(record, "error");
    const json_t *err = at(record, "stderr", "text"), *out = at(record, "stdout", "text");
    uint64_t left = bytes;
    bool from_err = json_string_length(err) > 0;
    const json_t *text = from_err ? err : out;
    json_t *type = cut(json_object_get(error, "type"), &left),
           *message = cut(json_object_get(error, "message"), &left);
    json_t *line = json_object_get(error, "line");
    json_t *tail =
        json_is_string(text) ? tail_of(json_string_value(text), json_string_length(text), left) : json_null();
    return json_pack("{s:O, s:O, s:{s:o, s:o, s:o}, s:o, s:o, s:o}", "status",
                     json_object_get(record, "status"), "cause", json_object_get(record, "cause"), "error",
                     "type", type, "message", message, "line", line != NULL ? json_incref(line) : json_null(),
                     "failed", failed_of(record), "tail", tail, "tail_of",
                     json_is_string(text) ? json_string(from_err ? "stderr" : "stdout") : json_null());
}

bool hc_task_counts(const json_t *record)
{
    static const char *const not_counted[] = {"field", "host", "grade", "runtime", "queue_full", "client"};
    const char *state = json_string_value(json_object_get(record, "state"));
    const char *cause = json_string_value(json_object_get(record, "cause"));
    const char *status = json_string_value(json_object_get(record, "status"));
    if (state == NULL || strcmp(state, "fault") == 0 || (status != NULL && strcmp(status, "cancelled") == 0))
        return false;
    for (size_t i = 0;
         strcmp(state, "refused") == 0 && cause != NULL && i < sizeof not_counted / sizeof *not_counted; i++)
        if (strcmp(cause, not_counted[i]) == 0)
            return false;
    return true;
}
