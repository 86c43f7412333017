#include "task/task.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t hc_task_worst_us(const struct hc_task_budget *budget)
{
    return budget->attempts * budget->wall_us + budget->startup_us;
}

static uint64_t number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value != NULL ? value : "";
}

static const json_t *budget_of(const struct hc_task *task)
{
    return json_object_get(task->state, "budget");
}

/* The whole new state is on disk before the old one goes. */
static int save(const struct hc_task *task)
{
    hc_autofree char *fresh = hc_printf("%s.new", task->path);
    hc_autofree char *data = json_dumps(task->state, JSON_INDENT(1) | JSON_SORT_KEYS);
    if (fresh == NULL || data == NULL)
        return -ENOMEM;
    hc_autoclose int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int error = fd < 0 ? -errno : hc_write_all(fd, data, strlen(data));
    if (error == 0 && (fsync(fd) != 0 || rename(fresh, task->path) != 0))
        error = -errno;
    return error;
}

static int folder_of(const char *store, char **ret_folder)
{
    hc_autofree char *folder = hc_printf("%s/tasks", store);
    if (folder == NULL)
        return -ENOMEM;
    if (mkdir(store, 0700) != 0 && errno != EEXIST)
        return -errno;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return -errno;
    *ret_folder = hc_take_pointer(&folder);
    return 0;
}

static bool good_id(const char *id)
{
    size_t n = strlen(id);
    return n > 5 && n < 40 && strncmp(id, "task-", 5) == 0 &&
           strspn(id + 5, "0123456789abcdefghijklmnopqrstuvwxyz") == n - 5;
}

/* The lock lies beside the state: the state's own file is replaced with every change. */
static int lock_task(const char *folder, const char *id)
{
    hc_autofree char *path = hc_printf("%s/%s.lock", folder, id);
    if (path == NULL)
        return -ENOMEM;
    hc_autoclose int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        return -errno;
    while (flock(lock, LOCK_EX) != 0)
        if (errno != EINTR)
            return -errno;
    return hc_take_fd(&lock);
}

int hc_task_new(const char *folder, const char *goal, const char *language, const char *profile,
                const json_t *predicates, const struct hc_task_budget *budget, struct hc_task **ret_task)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    uint8_t random[12];
    char now[40];
    hc_autofree char *place = NULL;
    struct hc_task *task = calloc(1, sizeof *task);
    int error = task != NULL ? folder_of(folder, &place) : -ENOMEM;
    if (error == 0 && getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        error = -EIO;
    if (error != 0) {
        free(task);
        return error;
    }
    (void)strcpy(task->id, "task-");
    for (size_t i = 0; i < sizeof random; i++)
        task->id[5 + i] = digits[random[i] & 31];
    hc_rfc3339_now(now);
    uint64_t worst = hc_task_worst_us(budget);
    task->lock = lock_task(place, task->id);
    task->path = hc_printf("%s/%s.json", place, task->id);
    task->state = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:O, s:{s:I, s:I, s:I, s:I, s:I}, s:[], s:s}",
                            "schema", "hotcell.task/1", "id", task->id, "created_at", now, "goal", goal,
                            "language", language, "profile", profile, "predicates", predicates, "budget",
                            "attempts", (json_int_t)budget->attempts, "wall_us", (json_int_t)budget->wall_us,
                            "total_us", (json_int_t)(budget->total_us > 0 ? budget->total_us : worst),
                            "startup_us", (json_int_t)budget->startup_us, "feedback_bytes",
                            (json_int_t)budget->feedback_bytes, "attempts", "state", "open");
    error = task->lock < 0 ? task->lock : task->path == NULL || task->state == NULL ? -ENOMEM : save(task);
    if (error < 0)
        hc_task_close(task);
    else
        *ret_task = task;
    return error;
}

int hc_task_open(const char *folder, const char *id, struct hc_task **ret_task)
{
    hc_autofree char *place = NULL;
    struct hc_task *task = calloc(1, sizeof *task);
    int error = task == NULL ? -ENOMEM : !good_id(id) ? -ENOENT : folder_of(folder, &place);
    if (error < 0) {
        free(task);
        return error;
    }
    (void)snprintf(task->id, sizeof task->id, "%s", id);
    task->lock = -1;
    task->path = hc_printf("%s/%s.json", place, id);
    if (task->path == NULL || access(task->path, F_OK) != 0) {
        error = task->path == NULL ? -ENOMEM : -ENOENT;
        hc_task_close(task);
        return error;
    }
    task->lock = lock_task(place, id);
    task->state = task->lock >= 0 ? json_load_file(task->path, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool good = strcmp(text(task->state, "id"), id) == 0 &&
                json_is_array(json_object_get(task->state, "attempts")) &&
                json_is_object(json_object_get(task->state, "budget"));
    if (task->lock < 0 || !good) {
        error = task->lock < 0 ? task->lock : -EBADMSG;
        hc_task_close(task);
        return error;
    }
    *ret_task = task;
    return 0;
}

void hc_task_close(struct hc_task *task)
{
    if (task == NULL)
        return;
    hc_close_fd(&task->lock);
    json_decref(task->state);
    free(task->path);
    free(task);
}

json_t *hc_task_list(const char *folder)
{
    hc_autofree char *place = NULL;
    json_t *list = json_array();
    struct dirent **entries = NULL;
    int count =
        folder_of(folder, &place) == 0 && place != NULL ? scandir(place, &entries, NULL, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        size_t n = strlen(entries[i]->d_name);
        hc_autofree char *path = hc_printf("%s/%s", place, entries[i]->d_name);
        json_t *state = n > 5 && strcmp(entries[i]->d_name + n - 5, ".json") == 0 && path != NULL
                            ? json_load_file(path, 0, NULL)
                            : NULL;
        if (state != NULL)
            (void)json_array_append_new(
                list,
                json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "id", text(state, "id"), "created_at",
                          text(state, "created_at"), "goal", text(state, "goal"), "state",
                          text(state, "state"), "used",
                          (json_int_t)json_array_size(json_object_get(state, "attempts")), "attempts",
                          json_integer_value(json_object_get(json_object_get(state, "budget"), "attempts"))));
        json_decref(state);
        free(entries[i]);
    }
    free(entries);
    return list;
}

/* ---- the budget ---- */

/* What a reserved attempt that never settled may have taken is counted in full. */
static uint64_t spent_us(const struct hc_task *task)
{
    uint64_t spent = 0;
    size_t i;
    json_t *attempt;
    json_array_foreach(json_object_get(task->state, "attempts"), i, attempt)
    {
        spent += number(attempt, "spent_us");
    }
    return spent;
}

static uint64_t left_us(const struct hc_task *task)
{
    uint64_t total = number(budget_of(task), "total_us"), spent = spent_us(task);
    return total > spent ? total - spent : 0;
}

static uint64_t attempts_left(const struct hc_task *task)
{
    uint64_t used = json_array_size(json_object_get(task->state, "attempts")),
             all = number(budget_of(task), "attempts");
    return strcmp(text(task->state, "state"), "open") == 0 && all > used ? all - used : 0;
}

static uint64_t worst_left_us(const struct hc_task *task)
{
    uint64_t count = attempts_left(task), left = left_us(task),
             worst = count * number(budget_of(task), "wall_us") + number(budget_of(task), "startup_us");
    return count == 0 ? 0 : worst < left ? worst : left;
}

static int set_state(struct hc_task *task, const char *state)
{
    return json_object_set_new(task->state, "state", json_string(state)) == 0 ? 0 : -ENOMEM;
}

int hc_task_reserve(struct hc_task *task, struct hc_task_slot *ret_slot, struct hc_refusal *refusal)
{
    json_t *attempts = json_object_get(task->state, "attempts");
    uint64_t wall = number(budget_of(task), "wall_us"), left = left_us(task);
    if (strcmp(text(task->state, "state"), "accepted") == 0)
        return hc_refuse(refusal, HC_CAUSE_CLIENT, "task",
                         "%s: the goal is reached; no further attempt is taken", task->id);
    if (attempts_left(task) == 0 || left < 1000) {
        (void)set_state(task, "exhausted");
        (void)save(task);
        return hc_refuse(
            refusal, HC_CAUSE_CLIENT, "task",
            "%s: the budget is used up (%llu of %llu attempts, %llu ms left): hand over to a person",
            task->id, (unsigned long long)json_array_size(attempts),
            (unsigned long long)number(budget_of(task), "attempts"), (unsigned long long)(left / 1000));
    }
    *ret_slot = (struct hc_task_slot){.attempt = (unsigned)json_array_size(attempts) + 1,
                                      .wall_us = wall < left ? wall : left,
                                      .left_us = left};
    json_t *attempt = json_pack("{s:I, s:n, s:n, s:I}", "attempt", (json_int_t)ret_slot->attempt, "run",
                                "accepted", "spent_us", (json_int_t)ret_slot->wall_us);
    if (json_array_append_new(attempts, attempt) != 0)
        return -ENOMEM;
    return save(task);
}

/* ---- feedback ---- */

static void add_tail(json_t *feedback, const json_t *record, const char *stream, size_t bytes)
{
    const char *all = text(json_object_get(record, stream), "text");
    size_t n = strlen(all);
    while (n > 0 && all[n - 1] == '\n')
        n--;
    const char *from = n > bytes ? all + n - bytes : all;
    if (from > all && from[-1] != '\n') { /* whole lines, or at least whole characters */
        const char *newline = memchr(from, '\n', (size_t)(all + n - from));
        from = newline != NULL ? newline + 1
                               : from + hc_utf8_ceil((const uint8_t *)from, (size_t)(all + n - from));
    }
    if (from < all + n)
        (void)json_object_set_new(feedback, strcmp(stream, "stderr") == 0 ? "last_lines" : "output_tail",
                                  json_stringn(from, (size_t)(all + n - from)));
}

/* As much of a text as fits, in whole characters. */
static void add_bounded(json_t *feedback, const char *name, const char *value, size_t bytes)
{
    size_t n = strlen(value);
    if (n > bytes)
        n = hc_utf8_floor((const uint8_t *)value, bytes);
    if (n > 0)
        (void)json_object_set_new(feedback, name, json_stringn(value, n));
}

static void add_once(json_t *list, json_t *kind)
{
    size_t i;
    json_t *other;
    json_array_foreach(list, i, other)
    {
        if (json_equal(other, kind))
            return;
    }
    (void)json_array_append(list, kind);
}

json_t *hc_task_feedback(const json_t *record, size_t bytes)
{
    const json_t *error = json_object_get(record, "error"),
                 *predicates = json_object_get(json_object_get(record, "acceptance"), "predicates");
    json_t *feedback = json_object(), *failed = json_array(), *not_judged = json_array(), *predicate;
    size_t i;
    add_bounded(feedback, "type", text(error, "type"), bytes / 8);
    if (json_is_integer(json_object_get(error, "line")))
        (void)json_object_set(feedback, "line", json_object_get(error, "line"));
    add_bounded(feedback, "message", text(error, "message"), bytes / 4);
    /* Which kind failed, and neither what was wanted nor what a check printed: that could hold the answer. */
    json_array_foreach((json_t *)(uintptr_t)predicates, i, predicate)
    {
        const json_t *ok = json_object_get(predicate, "ok");
        if (!json_is_true(ok))
            add_once(json_is_false(ok) ? failed : not_judged, json_object_get(predicate, "kind"));
    }
    (void)json_object_set_new(feedback, "failed", failed);
    (void)json_object_set_new(feedback, "not_judged", not_judged);
    add_tail(feedback, record, "stderr", bytes / 2);
    return feedback;
}

int hc_task_settle(struct hc_task *task, unsigned attempt, const json_t *record, uint64_t spent,
                   json_t **ret_answer)
{
    json_t *row = json_array_get(json_object_get(task->state, "attempts"), attempt - 1);
    bool accepted = strcmp(text(json_object_get(record, "acceptance"), "status"), "accepted") == 0;
    /* A run that never was, for reasons of the host or of the profile's own refusal, has still cost the
     * attempt. */
    (void)json_object_set_new(row, "run", json_string(text(record, "id")));
    (void)json_object_set_new(row, "accepted", json_boolean(accepted));
    (void)json_object_set_new(row, "status", json_string(text(record, "status")));
    (void)json_object_set_new(row, "spent_us", json_integer((json_int_t)spent));
    int error = set_state(task, accepted ? "accepted" : "open");
    if (error == 0 && !accepted && attempts_left(task) == 0)
        error = set_state(task, "exhausted");
    if (error == 0)
        error = save(task);
    if (error < 0)
        return error;
    *ret_answer =
        json_pack("{s:s, s:I, s:b, s:s, s:s, s:o, s:I, s:I, s:I, s:s}", "task", task->id, "attempt",
                  (json_int_t)attempt, "accepted", accepted, "status", text(record, "status"), "run",
                  text(record, "id"), "feedback",
                  hc_task_feedback(record, (size_t)number(budget_of(task), "feedback_bytes")),
                  "attempts_left", (json_int_t)attempts_left(task), "wall_left_us", (json_int_t)left_us(task),
                  "worst_case_left_us", (json_int_t)worst_left_us(task), "state", text(task->state, "state"));
    return *ret_answer != NULL ? 0 : -ENOMEM;
}
