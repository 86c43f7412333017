/* `hotcell task`: a goal that programs are tried at, within a budget. */
#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "cli/request.h"
#include "cli/run.h"
#include "flow/engine.h"
#include "flow/task.h"
#include "store/store.h"
#include "store/tasks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GOAL_BYTES_MAX     8192
#define FEEDBACK_BYTES_MAX (64ull * 1024)
#define ATTEMPTS_MAX       1000
#define LISTED_MAX         1000
#define HAND_OVER          126

/* ---- options ---- */

enum {
    NEW_GOAL,
    NEW_RETRIES,
    NEW_WALL,
    NEW_TOTAL,
    NEW_OVERHEAD,
    NEW_FEEDBACK,
    NEW_ACCEPT,
    NEW_STDOUT,
    NEW_NUMBER,
    NEW_STORE,
    NEW_JSON,
    NEW_HELP,
    NEW_COUNT
};
static const struct hc_option new_options[NEW_COUNT] = {
    [NEW_GOAL] = {"goal", 0, "TEXT", "what is to be done, for people"},
    [NEW_RETRIES] = {"retries", 0, "N", "attempts after the first one (3)"},
    [NEW_WALL] = {"wall", 0, "TIME", "time of one attempt, all its cells together (30s)"},
    [NEW_TOTAL] = {"wall-total", 0, "TIME", "time in all (what the others add up to)"},
    [NEW_OVERHEAD] = {"overhead", 0, "TIME", "queue and start-up of all attempts (12s)"},
    [NEW_FEEDBACK] = {"feedback", 0, "SIZE", "text of the program that an answer may hold (2K)"},
    [NEW_ACCEPT] = {"accept", 0, "FILE", "predicates, as of hotcell run"},
    [NEW_STDOUT] = {"expect-stdout", 0, "FILE", "likewise"},
    [NEW_NUMBER] = {"expect-number", 0, "N[~TOL]", "likewise"},
    [NEW_STORE] = {"store", 0, "DIR", "where tasks and records are ($XDG_STATE_HOME/hotcell)"},
    [NEW_JSON] = {"json", 0, NULL, "print one JSON document"},
    [NEW_HELP] = {"help", 'h', NULL, "show this help"},
};

enum { SHOW_STORE, SHOW_JSON, SHOW_HELP, SHOW_COUNT };
static const struct hc_option show_options[SHOW_COUNT] = {
    [SHOW_STORE] = {"store", 0, "DIR", "where tasks and records are ($XDG_STATE_HOME/hotcell)"},
    [SHOW_JSON] = {"json", 0, NULL, "print one JSON document"},
    [SHOW_HELP] = {"help", 'h', NULL, "show this help"},
};

static int task_new(int argc, char **argv), task_try(int argc, char **argv), task_show(int argc, char **argv),
    task_list(int argc, char **argv);

static const struct hc_command commands[] = {
    {"task new", "[options] --accept FILE", "Makes a task: predicates and a budget. Prints its id.",
     new_options, NEW_COUNT, task_new},
    {"task try", "ID [options of hotcell run] [FILE | -c CODE | -] [-- ARG...]",
     "Runs a program as one attempt, and says what it needs to know to do better.", NULL, 0, task_try},
    {"task show", "ID [--json]", "Shows a task and its attempts.", show_options, SHOW_COUNT, task_show},
    {"task list", "[--json]", "Lists tasks, the newest first.", show_options, SHOW_COUNT, task_list},
};

const struct hc_option hc_task_options[] = {{"help", 'h', NULL, "show this help"}};
const size_t hc_task_option_count = 1;

static void print_overview(void)
{
    printf(
        "Usage: hotcell task new|try|show|list ...\n\n"
        "A task is a goal with predicates and a budget. Each attempt is a run with a record of its own.\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        printf("  hotcell %s %s\n      %s\n", commands[i].name, commands[i].synopsis, commands[i].summary);
    printf("\n`hotcell task new --help` and so on tell more.\n");
}

int hc_cli_task(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_overview();
        return argc < 2 ? 125 : 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name + strlen("task ")) == 0)
            return commands[i].run(argc - 1, argv + 1);
    hc_say("task %.60s: there are new, try, show and list", argv[1]);
    return 125;
}

/* ---- answers ---- */

static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

/* An answer in JSON, also of errors. Takes the document. */
static int answer(json_t *document, int code)
{
    bool printed = document != NULL && json_dumpf(document, stdout, JSON_INDENT(2)) == 0 &&
                   putchar('\n') != EOF && fflush(stdout) == 0;
    json_decref(document);
    return printed ? code : 125;
}

static int refuse(bool json, const char *field, const char *message)
{
    if (json)
        return answer(json_pack("{s:s, s:s, s:{s:s, s:s}}", "schema", "hotcell.task/1", "state", "refused",
                                "error", "field", field, "message", message),
                      125);
    hc_say("%s", message);
    return 125;
}

static int open_tasks(const char *folder, struct hc_tasks **ret_tasks, char **ret_folder, char message[256])
{
    hc_autofree char *place = folder != NULL ? strdup(folder) : hc_store_default_folder();
    if (place == NULL || strcmp(place, "none") == 0) {
        (void)snprintf(message, 256, "a task needs a place where it is kept: --store DIR");
        return -EINVAL;
    }
    int error = hc_tasks_open(place, ret_tasks, message);
    if (error == 0 && ret_folder != NULL)
        *ret_folder = hc_take_pointer(&place);
    return error;
}

static void say_time(uint64_t us, char out[32])
{
    hc_format_duration(us >= 1000000 ? us / 1000000 * 1000000 : us, out);
}

/* ---- new ---- */

struct new_task {
    const char *goal, *store;
    bool json, help;
    struct hc_task_budget budget;
    uint64_t retries;
    char *run_arguments[32]; /* what is read as by hotcell run */
    int run_argument_count;
};

static const char *set_quantity(struct new_task *task, int option, const char *value, char message[256])
{
    uint64_t *slot = option == NEW_RETRIES    ? &task->retries
                     : option == NEW_WALL     ? &task->budget.wall_us
                     : option == NEW_TOTAL    ? &task->budget.total_us
                     : option == NEW_OVERHEAD ? &task->budget.overhead_us
                                              : &task->budget.feedback_bytes;
    bool none = (option == NEW_RETRIES && strcmp(value, "0") == 0) ||
                (option == NEW_OVERHEAD && strcmp(value, "0s") == 0);
    int outcome = option == NEW_RETRIES    ? hc_parse_count(value, slot)
                  : option == NEW_FEEDBACK ? hc_parse_bytes(value, slot)
                                           : hc_parse_duration_us(value, slot);
    if (none) {
        *slot = 0;
        return NULL;
    }
    (void)snprintf(message, 256, "--%s '%.60s': %s", new_options[option].name, value,
                   hc_quantity_reason(outcome));
    if (outcome != HC_QUANTITY_OK)
        return new_options[option].name;
    (void)snprintf(message, 256, "--%s %.60s: more than is taken", new_options[option].name, value);
    if ((option == NEW_RETRIES && *slot >= ATTEMPTS_MAX) ||
        (option == NEW_FEEDBACK && *slot > FEEDBACK_BYTES_MAX) ||
        (option == NEW_WALL && *slot > hc_limits[HC_LIMIT_WALL].max_value))
        return new_options[option].name;
    return NULL;
}

/* NULL, or the field that is wrong. */
static const char *take_new_option(struct new_task *task, int option, const char *value, char message[256])
{
    static const char *const names[] = {
        [NEW_ACCEPT] = "--accept", [NEW_STDOUT] = "--expect-stdout", [NEW_NUMBER] = "--expect-number"};
    switch (option) {
    case NEW_GOAL:
        task->goal = value;
        (void)snprintf(message, 256, "--goal: at most %d bytes of UTF-8 text", GOAL_BYTES_MAX);
        return strlen(value) <= GOAL_BYTES_MAX ? NULL : "goal";
    case NEW_ACCEPT:
    case NEW_STDOUT:
    case NEW_NUMBER:
        (void)snprintf(message, 256, "%s: given too often", names[option]);
        if (task->run_argument_count + 2 > 24)
            return names[option] + 2;
        task->run_arguments[task->run_argument_count++] = (char *)(uintptr_t)names[option];
        task->run_arguments[task->run_argument_count++] = (char *)(uintptr_t)value;
        return NULL;
    case NEW_STORE:
        task->store = value;
        return NULL;
    case NEW_JSON:
        return NULL;
    case NEW_HELP:
        task->help = true;
        return NULL;
    default:
        return set_quantity(task, option, value, message);
    }
}

static const char *parse_new(int argc, char **argv, struct new_task *task, char message[256])
{
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value, *wrong = NULL;
    task->run_arguments[task->run_argument_count++] = (char *)(uintptr_t) "run";
    for (int option; wrong == NULL && !task->help &&
                     (option = hc_option_next(&commands[0], &arguments, &value, message)) != HC_OPTION_END;) {
        if (option == HC_OPTION_OPERAND)
            (void)snprintf(message, 256, "'%.100s': task new takes options only",
                           arguments.argv[arguments.at]);
        wrong = option < 0 ? "arguments" : take_new_option(task, option, value, message);
    }
    task->budget.attempts = 1 + task->retries;
    return wrong;
}

static int show_new(const struct new_task *task, const char *id, json_t *stored)
{
    char wall[32], overhead[32], worst[32];
    json_t *summary = hc_task_summary(stored);
    if (task->json)
        return answer(summary, 0);
    hc_format_duration(task->budget.wall_us, wall);
    hc_format_duration(task->budget.overhead_us, overhead);
    hc_format_duration(hc_task_worst_case_us(&task->budget), worst);
    printf("%s\n", id);
    (void)fprintf(stderr,
                  "hotcell: %llu attempts of %s and %s for queue and start-up: %s in the worst case\n",
                  (unsigned long long)task->budget.attempts, wall, overhead, worst);
    json_decref(summary);
    return fflush(stdout) == 0 ? 0 : 125;
}

static int store_new(const struct new_task *task, const json_t *predicates)
{
    char message[256] = "";
    struct hc_tasks *tasks = NULL;
    hc_autofree struct hc_job *named = calloc(1, sizeof *named);
    char id[64];
    json_t *document, *stored = NULL;
    if (named == NULL)
        return 125;
    hc_job_begin(named); /* for a name that nobody has, and the time */
    (void)snprintf(id, sizeof id, "task-%s", strchr(named->id, '-') + 1);
    int error = open_tasks(task->store, &tasks, NULL, message);
    document = error == 0 ? hc_task_document(task->goal, &task->budget, predicates) : NULL;
    if (error == 0)
        error = document != NULL ? hc_tasks_add(tasks, id, named->created_at, document, message) : -EILSEQ;
    if (error == 0)
        error = hc_tasks_get(tasks, id, &stored, message);
    if (error == -EILSEQ)
        (void)snprintf(message, sizeof message, "--goal: is not UTF-8 text");
    int code = error < 0 ? refuse(task->json, error == -EILSEQ ? "goal" : "store",
                                  message[0] != '\0' ? message : strerror(-error))
                         : show_new(task, id, stored);
    json_decref(document);
    json_decref(stored);
    hc_tasks_close(tasks);
    return code;
}

static int task_new(int argc, char **argv)
{
    struct new_task task = {
        .json = wants_json(argc, argv),
        .retries = 3,
        .budget = {
            .wall_us = 30000000, .overhead_us = 12000000, .total_us = UINT64_MAX, .feedback_bytes = 2048}};
    char message[256] = "";
    struct hc_run_request request = {0};
    struct hc_refusal refusal = {0};
    const char *wrong = parse_new(argc, argv, &task, message);
    if (task.help) {
        hc_print_help(&commands[0]);
        return 0;
    }
    if (wrong != NULL)
        return refuse(task.json, wrong, message);
    task.budget.total_us = hc_task_worst_case_us(&task.budget);
    task.run_arguments[task.run_argument_count++] = (char *)(uintptr_t) "--code";
    task.run_arguments[task.run_argument_count++] = (char *)(uintptr_t) "-";
    int error = hc_run_request_parse(task.run_argument_count, task.run_arguments, &request, &refusal);
    int code = error != 0 ? refuse(task.json, refusal.field, refusal.message)
               : request.predicates == NULL
                   ? refuse(task.json, "accept", "a task needs a predicate: --accept FILE")
                   : store_new(&task, request.predicates);
    hc_run_request_done(&request);
    return code;
}

/* ---- try ---- */

static void say_try(const json_t *reply)
{
    const json_t *feedback = json_object_get(reply, "feedback"), *error = json_object_get(feedback, "error");
    const char *acceptance = json_string_value(json_object_get(reply, "acceptance"));
    const char *type = json_string_value(json_object_get(error, "type"));
    const char *tail = json_string_value(json_object_get(feedback, "tail"));
    char left[32], line[32] = "";
    size_t i;
    json_t *row;
    hc_say("attempt %lld: %s, %s", json_integer_value(json_object_get(reply, "attempt")),
           json_string_value(json_object_get(feedback, "status")), acceptance);
    if (json_is_integer(json_object_get(error, "line")))
        (void)snprintf(line, sizeof line, " in line %lld",
                       json_integer_value(json_object_get(error, "line")));
    if (type != NULL)
        hc_say("%s%s", type, line);
    json_array_foreach(json_object_get(feedback, "failed"), i, row)
        hc_say("predicate %lld (%s) %s", json_integer_value(json_object_get(row, "index")),
               json_string_value(json_object_get(row, "kind")),
               json_is_null(json_object_get(row, "ok")) ? "could not be judged" : "does not hold");
    if (tail != NULL && tail[0] != '\0')
        printf("%s\n", tail);
    say_time((uint64_t)json_integer_value(json_object_get(reply, "worst_case_left_us")), left);
    const char *next = json_string_value(json_object_get(reply, "next"));
    if (strcmp(next, "try again") == 0)
        hc_say("%lld attempts left, %s in the worst case",
               json_integer_value(json_object_get(reply, "attempts_left")), left);
    else if (strcmp(next, "hand over") == 0)
        hc_say("no attempt is left: hand over to somebody else");
}

static const char *next_of(const json_t *task)
{
    const char *state = hc_task_state(task);
    return strcmp(state, "accepted") == 0 ? "done" : strcmp(state, "open") == 0 ? "try again" : "hand over";
}

static json_t *reply_of(const json_t *task, const json_t *record, unsigned attempt)
{
    struct hc_task_budget budget = hc_task_budget_of(task);
    json_t *reply = hc_task_summary(task);
    json_t *more =
        json_pack("{s:i, s:O, s:O, s:o, s:s}", "attempt", (int)attempt, "run", json_object_get(record, "id"),
                  "acceptance", json_object_get(json_object_get(record, "acceptance"), "status"), "feedback",
                  hc_task_feedback(record, budget.feedback_bytes), "next", next_of(task));
    if (reply == NULL || more == NULL || json_object_update_new(reply, more) != 0) {
        json_decref(reply);
        return NULL;
    }
    return reply;
}

/* Past the budget, or done already. */
static int refuse_more(const json_t *task, bool json)
{
    const char *next = next_of(task);
    bool is_done = strcmp(next, "done") == 0;
    if (json) {
        json_t *reply = hc_task_summary(task);
        (void)json_object_update_new(
            reply, json_pack("{s:s, s:{s:s, s:s}}", "next", next, "error", "field", "task", "message",
                             is_done ? "the task is accepted already" : "the budget is spent: hand over"));
        return answer(reply, HAND_OVER);
    }
    hc_say("%s",
           is_done ? "the task is accepted already" : "the budget is spent: hand over to somebody else");
    return HAND_OVER;
}

static int exit_code_of(const json_t *record)
{
    const char *status = json_string_value(json_object_get(json_object_get(record, "acceptance"), "status"));
    const char *state = json_string_value(json_object_get(record, "state"));
    if (status != NULL && strcmp(status, "accepted") == 0)
        return 0;
    bool policy = strcmp(state, "refused") == 0 && hc_task_counts(record);
    return policy || (status != NULL && strcmp(status, "rejected") == 0) ? 1 : 125;
}

struct attempt {
    struct hc_tasks *tasks;
    const char *id;
    char *folder;
    bool json;
    uint64_t began_us, wall_us;
    unsigned number;
};

static void limit_to_budget(const struct attempt *attempt, struct hc_run_request *request, struct hc_job *job)
{
    uint64_t *wall_us = &request->spec.limits[HC_LIMIT_WALL];
    bool asked = request->spec.limit_asked[HC_LIMIT_WALL];
    if (!asked || *wall_us > attempt->wall_us)
        *wall_us = attempt->wall_us;
    request->spec.limit_asked[HC_LIMIT_WALL] = true;
    job->wall_budget_us = attempt->wall_us;
    (void)snprintf(job->task_id, sizeof job->task_id, "%s", attempt->id);
    job->task_attempt = attempt->number;
}

static int run_attempt(struct attempt *attempt, struct hc_run_request *request, struct hc_job *job,
                       json_t *task)
{
    char message[256] = "";
    json_t *record = NULL, *after = NULL;
    request->predicates = json_incref(json_object_get(json_object_get(task, "document"), "predicates"));
    limit_to_budget(attempt, request, job);
    int error = hc_run_for_task(request, job, attempt->folder, &record);
    const json_t *acceptance = json_object_get(json_object_get(record, "acceptance"), "status");
    int settled = hc_tasks_settle(attempt->tasks, attempt->id, job->id, hc_now_us() - attempt->began_us,
                                  record == NULL || hc_task_counts(record), json_string_value(acceptance),
                                  json_string_value(json_object_get(record, "status")), message);
    if (settled == 0)
        settled = hc_tasks_get(attempt->tasks, attempt->id, &after, message);
    int code = 125;
    if (error < 0 || record == NULL) {
        code = refuse(attempt->json, "run", "out of memory");
    } else if (settled < 0) {
        code = refuse(attempt->json, "store", message);
    } else {
        json_t *reply = reply_of(after, record, attempt->number);
        code = exit_code_of(record);
        if (!attempt->json && reply != NULL &&
            strcmp(json_string_value(json_object_get(record, "state")), "finished") != 0)
            hc_say("%s", json_string_value(json_object_get(json_object_get(record, "error"), "message")));
        if (!attempt->json && reply != NULL)
            say_try(reply);
        if (attempt->json || reply == NULL)
            code = answer(reply, code);
        else
            json_decref(reply);
    }
    json_decref(record);
    json_decref(after);
    return code;
}

static int begin_attempt(struct attempt *attempt, struct hc_run_request *request, struct hc_job *job)
{
    char message[256] = "";
    json_t *task = NULL;
    int error = open_tasks(request->store, &attempt->tasks, &attempt->folder, message);
    if (error == 0)
        error = hc_tasks_reserve(attempt->tasks, attempt->id, job->id, job->created_at, hc_task_decide,
                                 &attempt->wall_us, &attempt->number, &task, message);
    int code = error == HC_TASK_REFUSED ? refuse_more(task, attempt->json)
               : error < 0              ? refuse(attempt->json, error == -ENOENT ? "task" : "store",
                                    message[0] != '\0' ? message : strerror(-error))
                                        : run_attempt(attempt, request, job, task);
    json_decref(task);
    hc_tasks_close(attempt->tasks);
    free(attempt->folder);
    return code;
}

static int task_try(int argc, char **argv)
{
    struct attempt attempt = {.began_us = hc_now_us(), .json = wants_json(argc, argv)};
    struct hc_run_request request = {0};
    struct hc_job *job = calloc(1, sizeof *job);
    int code;
    if (job == NULL)
        return 125;
    hc_job_begin(job);
    bool named = argc > 1 && argv[1][0] != '-';
    int error = named ? hc_run_request_parse(argc - 1, argv + 1, &request, &job->refusal) : 0;
    attempt.id = named ? argv[1] : NULL;
    if (!named && argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        hc_print_help(&commands[1]);
        code = 0;
    } else if (!named) {
        code = refuse(attempt.json, "task", "task try: the first argument is the task's id");
    } else if (request.help) {
        hc_print_help(&commands[1]);
        code = 0;
    } else if (error != 0) {
        code = refuse(attempt.json, job->refusal.field, job->refusal.message);
    } else if (request.predicates != NULL || request.out != NULL) {
        code = refuse(attempt.json, request.out != NULL ? "out" : "accept",
                      "predicates belong to the task, and files of an attempt are exported from no attempt");
    } else {
        code = begin_attempt(&attempt, &request, job);
    }
    hc_run_request_done(&request);
    hc_job_done(job);
    free(job);
    return code;
}

/* ---- show and list ---- */

struct show {
    const char *id, *store;
    bool json, help;
};

static const char *parse_show(const struct hc_command *command, int argc, char **argv, struct show *show,
                              char message[256])
{
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value;
    for (int option; (option = hc_option_next(command, &arguments, &value, message)) != HC_OPTION_END;) {
        if (option == HC_OPTION_BAD)
            return "arguments";
        if (option == HC_OPTION_OPERAND && (show->id != NULL || command->run == task_list)) {
            (void)snprintf(message, 256, "'%.100s': not wanted", arguments.argv[arguments.at]);
            return "arguments";
        }
        if (option == HC_OPTION_OPERAND)
            show->id = arguments.argv[arguments.at++];
        else if (option == SHOW_STORE)
            show->store = value;
        else if (option == SHOW_HELP)
            show->help = true;
    }
    if (show->id == NULL && command->run == task_show && !show->help) {
        (void)snprintf(message, 256, "task show: which one?");
        return "task";
    }
    return NULL;
}

static json_t *shown(const json_t *task)
{
    json_t *summary = hc_task_summary(task), *kinds = json_array(), *predicate;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(task, "document"), "predicates"), i, predicate)(void)
        json_array_append(kinds, json_object_get(predicate, "kind"));
    json_t *more =
        json_pack("{s:O, s:o, s:O}", "goal", json_object_get(json_object_get(task, "document"), "goal"),
                  "predicates", kinds, "tries", json_object_get(task, "tries"));
    (void)json_object_update_new(summary, more);
    return summary;
}

static void print_task(const json_t *task)
{
    json_t *summary = hc_task_summary(task), *try;
    const char *goal = json_string_value(json_object_get(json_object_get(task, "document"), "goal"));
    char used[32], left[32], worst[32];
    size_t i;
    say_time((uint64_t)json_integer_value(json_object_get(summary, "time_used_us")), used);
    say_time((uint64_t)json_integer_value(json_object_get(summary, "worst_case_left_us")), left);
    say_time((uint64_t)json_integer_value(json_object_get(summary, "worst_case_us")), worst);
    printf("%s  %s\n", json_string_value(json_object_get(task, "id")), hc_task_state(task));
    if (goal != NULL)
        printf("goal        %s\n", goal);
    printf("attempts    %lld used, %lld left\n",
           json_integer_value(json_object_get(summary, "attempts_used")),
           json_integer_value(json_object_get(summary, "attempts_left")));
    printf("time        %s used, %s left in the worst case of %s\n", used, left, worst);
    json_array_foreach(json_object_get(task, "tries"), i, try)
    {
        const char *accepted = json_string_value(json_object_get(try, "accepted"));
        const char *status = json_string_value(json_object_get(try, "status"));
        const json_t *time = json_object_get(try, "time_us");
        say_time(
            (uint64_t)json_integer_value(json_is_integer(time) ? time : json_object_get(try, "reserved_us")),
            used);
        printf("  %-3lld %s  %-14s %-14s %s%s\n", json_integer_value(json_object_get(try, "attempt")),
               json_string_value(json_object_get(try, "run")), status != NULL ? status : "under way",
               accepted != NULL ? accepted : "-", used,
               json_is_true(json_object_get(try, "counted")) ? "" : "  (not counted)");
    }
    json_decref(summary);
}

static int task_show(int argc, char **argv)
{
    struct show show = {.json = wants_json(argc, argv)};
    char message[256] = "";
    const char *wrong = parse_show(&commands[2], argc, argv, &show, message);
    struct hc_tasks *tasks = NULL;
    json_t *task = NULL;
    if (show.help) {
        hc_print_help(&commands[2]);
        return 0;
    }
    int error = wrong == NULL ? open_tasks(show.store, &tasks, NULL, message) : 0;
    if (wrong == NULL && error == 0)
        error = hc_tasks_get(tasks, show.id, &task, message);
    int code = 0;
    if (wrong != NULL || error < 0)
        code = refuse(show.json, wrong != NULL ? wrong : error == -ENOENT ? "task" : "store", message);
    else if (show.json)
        code = answer(shown(task), 0);
    else
        print_task(task);
    json_decref(task);
    hc_tasks_close(tasks);
    return code;
}

static int print_list(const json_t *list, bool json)
{
    json_t *task, *rows = json_array();
    size_t i;
    json_array_foreach(list, i, task)
    {
        json_t *row = shown(task);
        const char *goal = json_string_value(json_object_get(row, "goal"));
        if (!json)
            printf("%s  %-9s %3lld used %3lld left  %.60s\n", json_string_value(json_object_get(task, "id")),
                   hc_task_state(task), json_integer_value(json_object_get(row, "attempts_used")),
                   json_integer_value(json_object_get(row, "attempts_left")), goal != NULL ? goal : "");
        (void)json_array_append_new(rows, row);
    }
    if (json)
        return answer(json_pack("{s:s, s:o}", "schema", "hotcell.tasks/1", "tasks", rows), 0);
    json_decref(rows);
    return fflush(stdout) == 0 ? 0 : 125;
}

static int task_list(int argc, char **argv)
{
    struct show show = {.json = wants_json(argc, argv)};
    char message[256] = "";
    const char *wrong = parse_show(&commands[3], argc, argv, &show, message);
    struct hc_tasks *tasks = NULL;
    json_t *list = NULL;
    if (show.help) {
        hc_print_help(&commands[3]);
        return 0;
    }
    int error = wrong == NULL ? open_tasks(show.store, &tasks, NULL, message) : 0;
    if (wrong == NULL && error == 0)
        error = hc_tasks_list(tasks, LISTED_MAX, &list, message);
    int code = wrong != NULL || error < 0 ? refuse(show.json, wrong != NULL ? wrong : "store", message)
                                          : print_list(list, show.json);
    json_decref(list);
    hc_tasks_close(tasks);
    return code;
}
