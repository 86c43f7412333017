#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "cli/request.h"
#include "flow/engine.h"
#include "flow/keep.h"
#include "flow/permit.h"
#include "store/store.h"
#include "task/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_GOAL,
    OPTION_ACCEPT,
    OPTION_ATTEMPTS,
    OPTION_WALL,
    OPTION_WALL_TOTAL,
    OPTION_STARTUP,
    OPTION_FEEDBACK,
    OPTION_LANGUAGE,
    OPTION_PROFILE,
    OPTION_STORE,
    OPTION_JSON,
    OPTION_HELP,
    OPTION_COUNT
};

const struct hc_option hc_task_options[OPTION_COUNT] = {
    [OPTION_GOAL] = {"goal", 0, "TEXT", "new: what is to be reached"},
    [OPTION_ACCEPT] = {"accept", 0, "FILE", "new: the predicates that decide, as for run"},
    [OPTION_ATTEMPTS] = {"attempts", 0, "N", "new: attempts in all (what the profile says: 4)"},
    [OPTION_WALL] = {"wall", 0, "TIME", "new: time of each attempt, judging included (30s)"},
    [OPTION_WALL_TOTAL] = {"wall-total", 0, "TIME", "new: time of all attempts together (the worst case)"},
    [OPTION_STARTUP] = {"startup", 0, "TIME", "new: allowed for waiting and start-up (12s)"},
    [OPTION_FEEDBACK] = {"feedback", 0, "SIZE", "new: most bytes of an answer's diagnosis (2K)"},
    [OPTION_LANGUAGE] = {"language", 'l', "NAME[@VERSION]", "new: language of the attempts (python)"},
    [OPTION_PROFILE] = {"profile", 0, "NAME|FILE", "new: policy of the attempts (standard)"},
    [OPTION_STORE] = {"store", 0, "DIR", "where tasks and records lie ($XDG_STATE_HOME/hotcell)"},
    [OPTION_JSON] = {"json", 0, NULL, "print one JSON document"},
    [OPTION_HELP] = {"help", 'h', NULL, "show this help"},
};
const size_t hc_task_option_count = OPTION_COUNT;

struct request {
    bool json, help;
    const char *verb, *id, *goal, *accept, *language, *profile, *store;
    struct hc_task_budget budget;
    char **rest; /* of `try`: what run would take */
    int rest_count;
};

static int fail(const struct request *request, int code, const char *field, const char *message)
{
    if (request->json) {
        json_t *document =
            json_pack("{s:s, s:s, s:s, s:s, s:s}", "state", "refused", "status", "refused", "cause",
                      code == 126 ? "client" : "field", "field", field, "message", message);
        (void)json_dumpf(document, stdout, JSON_INDENT(1));
        (void)putchar('\n');
        json_decref(document);
    } else {
        hc_say("refused: %s", message);
    }
    return code;
}

static void print_json(json_t *document)
{
    (void)json_dumpf(document, stdout, JSON_INDENT(1));
    (void)putchar('\n');
    json_decref(document);
}

/* ---- arguments ---- */

static int take_quantity(const char *flag, int outcome, const char *value, const uint64_t *got, uint64_t most,
                         char message[256])
{
    if (outcome == HC_QUANTITY_OK && *got >= 1 && *got <= most)
        return 0;
    (void)snprintf(message, 256, "--%s %.60s: %s", flag, value,
                   outcome != HC_QUANTITY_OK ? hc_quantity_reason(outcome) : "is out of bounds");
    return -1;
}

static int take(struct request *request, int option, const char *value, char message[256])
{
    struct hc_task_budget *budget = &request->budget;
    const char *flag = hc_task_options[option].name;
    const uint64_t day = 86400ull * 1000000;
    switch (option) {
    case OPTION_GOAL:
        request->goal = value;
        return 0;
    case OPTION_ACCEPT:
        request->accept = value;
        return 0;
    case OPTION_ATTEMPTS:
        return take_quantity(flag, hc_parse_count(value, &budget->attempts), value, &budget->attempts, 1000,
                             message);
    case OPTION_WALL:
        return take_quantity(flag, hc_parse_duration_us(value, &budget->wall_us), value, &budget->wall_us,
                             day, message);
    case OPTION_WALL_TOTAL:
        return take_quantity(flag, hc_parse_duration_us(value, &budget->total_us), value, &budget->total_us,
                             30 * day, message);
    case OPTION_STARTUP:
        return take_quantity(flag, hc_parse_duration_us(value, &budget->startup_us), value,
                             &budget->startup_us, day, message);
    case OPTION_FEEDBACK:
        return take_quantity(flag, hc_parse_bytes(value, &budget->feedback_bytes), value,
                             &budget->feedback_bytes, 1u << 20, message);
    case OPTION_LANGUAGE:
        request->language = value;
        return 0;
    case OPTION_PROFILE:
        request->profile = value;
        return 0;
    case OPTION_STORE:
        request->store = value;
        return 0;
    case OPTION_JSON:
        request->json = true;
        return 0;
    default:
        request->help = true;
        return 0;
    }
}

static int parse(int argc, char **argv, struct request *request, char message[256])
{
    const struct hc_command *command = hc_command_named("task");
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value;
    for (int i = 1; i < argc; i++)
        request->json = request->json || strcmp(argv[i], "--json") == 0;
    for (;;) {
        /* After `try ID` everything is as for run. */
        if (request->id != NULL && strcmp(request->verb, "try") == 0) {
            request->rest = argv + arguments.at;
            request->rest_count = argc - arguments.at;
            return 0;
        }
        int option = hc_option_next(command, &arguments, &value, message);
        if (option == HC_OPTION_END && arguments.at >= argc)
            return 0;
        if (option == HC_OPTION_BAD)
            return -1;
        if (option >= 0) {
            if (take(request, option, value, message) != 0)
                return -1;
            continue;
        }
        if (request->id != NULL) {
            (void)snprintf(message, 256, "'%.100s': one task at a time", argv[arguments.at]);
            return -1;
        }
        *(request->verb == NULL ? &request->verb : &request->id) = argv[arguments.at++];
    }
}

/* ---- new, show, list ---- */

static void add_worst(json_t *document, const struct hc_task *task)
{
    const json_t *budget = json_object_get(task->state, "budget");
    json_int_t total_us = json_integer_value(json_object_get(budget, "total_us"));
    struct hc_task_budget b = {.attempts = (uint64_t)json_integer_value(json_object_get(budget, "attempts")),
                               .wall_us = (uint64_t)json_integer_value(json_object_get(budget, "wall_us")),
                               .startup_us =
                                   (uint64_t)json_integer_value(json_object_get(budget, "startup_us"))};
    json_int_t worst_us = (json_int_t)hc_task_worst_us(&b);
    (void)json_object_set_new(document, "worst_case_us",
                              json_integer(total_us > 0 && total_us < worst_us ? total_us : worst_us));
}

static int print_task(const struct request *request, const struct hc_task *task)
{
    json_t *document = json_deep_copy(task->state), *attempt;
    size_t i;
    /* Whoever may look at a task may be the one who tries: the answers stay in the file. */
    json_t *kinds = json_array(), *predicate;
    json_array_foreach(json_object_get(document, "predicates"), i, predicate)
    {
        (void)json_array_append(kinds, json_object_get(predicate, "kind"));
    }

    (void)json_object_set_new(document, "predicates", kinds);
    add_worst(document, task);
    if (request->json) {
        print_json(document);
        return 0;
    }
    const json_t *budget = json_object_get(document, "budget");
    char worst[32], wall[32];
    hc_format_duration((uint64_t)json_integer_value(json_object_get(document, "worst_case_us")), worst);
    hc_format_duration((uint64_t)json_integer_value(json_object_get(budget, "wall_us")), wall);
    printf("%s  %s\n%s\n%lld attempts of %s each; worst case %s\n", task->id,
           json_string_value(json_object_get(document, "state")),
           json_string_value(json_object_get(document, "goal")),
           (long long)json_integer_value(json_object_get(budget, "attempts")), wall, worst);
    json_array_foreach(json_object_get(document, "attempts"), i, attempt)
    {
        const char *run = json_string_value(json_object_get(attempt, "run")),
                   *status = json_string_value(json_object_get(attempt, "status"));
        printf("  %zu. %s  %s%s\n", i + 1, run != NULL ? run : "under way, or it never came back",
               status != NULL ? status : "",
               json_is_true(json_object_get(attempt, "accepted")) ? ", accepted" : "");
    }
    json_decref(document);
    return 0;
}

/* A language or profile that there is not would cost every attempt: it is told now. Takes the number of
 * attempts from the profile, unless the caller gave one. */
static int check_choices(const char *language, const char *profile, struct hc_task_budget *budget,
                         struct hc_refusal *refusal)
{
    struct hc_engine_options options = {0};
    struct hc_engine *engine = NULL;
    struct hc_policies policies = {0};
    const struct hc_policy *policy = NULL;
    struct hc_problem problem = {0};
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(language, "@"), language);
    int error = hc_engine_open(&options, &engine, &problem);
    if (error == HC_BAD_INPUT)
        error = hc_refuse(refusal, HC_CAUSE_FIELD, "language", "%.200s:%u:%u: %.200s", problem.file,
                          problem.line, problem.column, problem.message);
    const struct hc_runtime *runtime =
        error == 0 ? hc_runtime_by_name(hc_engine_runtimes(engine), name) : NULL;
    if (error == 0 && (runtime == NULL || hc_runtime_default(runtime)->interpreter == NULL))
        error = hc_refuse(
            refusal, HC_CAUSE_RUNTIME, "language",
            "--language %.100s: unknown, or not installed; `hotcell runtimes` lists what there is", language);
    if (error == 0)
        error = hc_policies_init(&policies, hc_default_share());
    if (error == 0)
        error = hc_policies_get(&policies, profile, &policy, refusal);
    if (error == 0 && budget->attempts == 0)
        budget->attempts = policy->attempts;
    hc_policies_done(&policies);
    hc_engine_close(engine);
    return error;
}

static int new_task(struct request *request, const char *folder)
{
    struct hc_run_request run = {0};
    struct hc_refusal refusal = {.field = "accept"};
    struct hc_task *task = NULL;
    const char *language = request->language != NULL ? request->language : "python";
    if (request->goal == NULL || request->accept == NULL)
        return fail(request, 125, "goal", "a new task wants --goal TEXT and --accept FILE");
    /* Attempts may be made from elsewhere. */
    hc_autofree char *whole = request->profile != NULL && strchr(request->profile, '/') != NULL
                                  ? realpath(request->profile, NULL)
                                  : NULL;
    const char *profile = whole != NULL ? whole : request->profile != NULL ? request->profile : "standard";
    int error = hc_run_accept_file(&run, request->accept, &refusal);
    if (error == 0)
        error = check_choices(language, profile, &request->budget, &refusal);
    if (error == 0)
        error =
            hc_task_new(folder, request->goal, language, profile, run.predicates, &request->budget, &task);
    json_decref(run.predicates);
    if (error != 0)
        return fail(request, refusal.cause == HC_CAUSE_RUNTIME ? 127 : 125, refusal.field,
                    error > 0 ? refusal.message : strerror(-error));
    int code = print_task(request, task);
    hc_task_close(task);
    return code;
}

static int list_tasks(const struct request *request, const char *folder)
{
    json_t *list = hc_task_list(folder), *row;
    size_t i;
    if (request->json) {
        print_json(list);
        return 0;
    }
    json_array_foreach(list, i, row)
    {
        printf("%-20s %-10s %lld of %lld  %s\n", json_string_value(json_object_get(row, "id")),
               json_string_value(json_object_get(row, "state")),
               (long long)json_integer_value(json_object_get(row, "used")),
               (long long)json_integer_value(json_object_get(row, "attempts")),
               json_string_value(json_object_get(row, "goal")));
    }

    json_decref(list);
    return 0;
}

/* ---- try ---- */

static int parse_program(const struct request *request, const struct hc_task *task,
                         struct hc_run_request *run, struct hc_refusal *refusal)
{
    hc_autofree char **argv = calloc((size_t)request->rest_count + 4, sizeof *argv);
    int argc = 0;
    if (argv == NULL)
        return -ENOMEM;
    argv[argc++] = (char *)"run";
    argv[argc++] = (char *)"--language";
    argv[argc++] = (char *)(uintptr_t)json_string_value(json_object_get(task->state, "language"));
    for (int i = 0; i < request->rest_count; i++)
        argv[argc++] = request->rest[i];
    int error = hc_run_request_parse(argc, argv, run, refusal);
    if (error == 0 && (run->predicates != NULL || run->out != NULL))
        error = hc_refuse(refusal, HC_CAUSE_FIELD, "accept",
                          "what is accepted is the task's, not an attempt's, and nothing is exported");
    if (error == 0 && run->store != NULL)
        error = hc_refuse(refusal, HC_CAUSE_FIELD, "store", "--store stands before the task's name");
    if (error == 0 && strcmp(run->spec.profile, "standard") != 0)
        error = hc_refuse(refusal, HC_CAUSE_FIELD, "profile", "the profile is the task's, not an attempt's");
    if (error == 0 && (run->spec.language == NULL || strcmp(run->spec.language, argv[2]) != 0))
        error = hc_refuse(refusal, HC_CAUSE_FIELD, "language", "the language is the task's: %.100s", argv[2]);
    return error;
}

static void print_answer(const json_t *answer)
{
    const json_t *feedback = json_object_get(answer, "feedback"), *kind;
    const char *message = json_string_value(json_object_get(feedback, "message")),
               *type = json_string_value(json_object_get(feedback, "type")),
               *lines = json_string_value(json_object_get(feedback, "last_lines"));
    size_t i, k;
    printf("attempt %lld: %s, %s\n", (long long)json_integer_value(json_object_get(answer, "attempt")),
           json_string_value(json_object_get(answer, "status")),
           json_is_true(json_object_get(answer, "accepted")) ? "accepted" : "not accepted");
    if (type != NULL || message != NULL)
        printf("%s%s%s, line %lld\n", type != NULL ? type : "", type != NULL && message != NULL ? ": " : "",
               message != NULL ? message : "",
               (long long)json_integer_value(json_object_get(feedback, "line")));
    if (lines != NULL)
        printf("%s%s", lines, lines[strlen(lines) - 1] == '\n' ? "" : "\n");
    json_array_foreach(json_object_get(feedback, "failed"), i, kind)
    {
        printf("%s%s", i == 0 ? "did not hold: " : ", ", json_string_value(kind));
    }

    json_array_foreach(json_object_get(feedback, "not_judged"), k, kind)
    {
        printf("%s%s",
               k > 0   ? ", "
               : i > 0 ? "\ncould not be judged: "
                       : "could not be judged: ",
               json_string_value(kind));
    }

    printf("%s%lld attempts left, at most %.1f s\n", i + k > 0 ? "\n" : "",
           (long long)json_integer_value(json_object_get(answer, "attempts_left")),
           (double)json_integer_value(json_object_get(answer, "worst_case_left_us")) / 1e6);
}

static int run_attempt(struct hc_run_request *run, const struct hc_task *task,
                       const struct hc_task_slot *slot, uint64_t began_us, const char *folder,
                       struct hc_store *store, json_t **ret_record)
{
    struct hc_engine_options options = {
        .store = folder, .runtimes = run->runtimes, .allow_layers = run->spec.allow_layers};
    struct hc_problem problem = {0};
    struct hc_engine *engine = NULL;
    struct hc_job *job = calloc(1, sizeof *job);
    const json_t *predicates = json_object_get(task->state, "predicates");
    if (job == NULL)
        return -ENOMEM;
    hc_job_begin(job);
    int error =
        hc_option_text(&run->spec.profile, json_string_value(json_object_get(task->state, "profile")));
    job->whole_us = slot->wall_us;
    job->latest_us = began_us + slot->left_us;
    if (!run->spec.limit_asked[HC_LIMIT_WALL] || run->spec.limits[HC_LIMIT_WALL] > slot->wall_us)
        run->spec.limits[HC_LIMIT_WALL] = slot->wall_us;
    run->spec.limit_asked[HC_LIMIT_WALL] = true;
    if (error == 0)
        error = hc_engine_open(&options, &engine, &problem);
    if (error == 0) {
        job->spec = run->spec;
        memset(&run->spec, 0, sizeof run->spec);
        run->spec.stdin_fd = -1;
        job->submitter = task->id;
        error = hc_engine_run(engine, job, NULL, predicates, NULL);
    }
    *ret_record = error == 0 ? hc_record_keep(job, predicates, store) : NULL;
    hc_engine_close(engine);
    hc_job_done(job);
    free(job);
    return error != 0 ? error : *ret_record == NULL ? -ENOMEM : 0;
}

static int try_task(const struct request *request, const char *folder)
{
    struct hc_run_request run = {0};
    struct hc_refusal refusal = {0};
    struct hc_task *task = NULL;
    struct hc_store *store = NULL;
    char message[256] = "";
    struct hc_task_slot slot = {0};
    json_t *record = NULL, *answer = NULL;
    int error = hc_task_open(folder, request->id, &task);
    if (error < 0)
        return fail(request, 125, "task", error == -ENOENT ? "there is no such task" : strerror(-error));
    /* Waiting for an attempt before this one is not this one's time. */
    uint64_t began_us = hc_now_us();
    /* A wrong request costs nothing: the attempt is reserved when it can be made. */
    error = parse_program(request, task, &run, &refusal);
    if (error == 0 && (error = hc_store_open(folder, &store, message)) < 0)
        error = hc_refuse(&refusal, HC_CAUSE_HOST, "store", "records can't be kept: %.200s", message);
    if (error == 0) {
        error = hc_task_reserve(task, &slot, &refusal);
        if (error == HC_REFUSED) {
            hc_task_close(task);
            hc_store_close(store);
            hc_run_request_done(&run);
            return fail(request, 126, "task", refusal.message);
        }
    }
    if (error == 0)
        error = run_attempt(&run, task, &slot, began_us, folder, store, &record);
    if (error == 0)
        error = hc_task_settle(task, slot.attempt, record, hc_now_us() - began_us, &answer);
    const char *verdict = json_string_value(json_object_get(json_object_get(record, "acceptance"), "status"));
    bool undecided = verdict != NULL && strcmp(verdict, "error") == 0;
    hc_store_close(store);
    hc_run_request_done(&run);
    json_decref(record);
    hc_task_close(task);
    if (error != 0)
        return fail(request, 125, refusal.field, error > 0 ? refusal.message : strerror(-error));
    bool accepted = json_is_true(json_object_get(answer, "accepted"));
    if (!request->json)
        print_answer(answer);
    request->json ? print_json(answer) : json_decref(answer);
    return accepted ? 0 : undecided ? 125 : 1;
}

int hc_cli_task(int argc, char **argv)
{
    struct request request = {
        .budget = {.wall_us = 30000000, .startup_us = 12000000, .feedback_bytes = 2048}};
    char message[256] = "";
    if (parse(argc, argv, &request, message) != 0)
        return fail(&request, 125, "arguments", message);
    if (request.help) {
        hc_print_help(hc_command_named("task"));
        return 0;
    }
    hc_autofree char *folder = request.store != NULL ? strdup(request.store) : hc_store_default_folder();
    if (folder == NULL)
        return fail(&request, 125, "store", "neither HOME nor XDG_STATE_HOME is set: give --store DIR");
    const char *verb = request.verb != NULL ? request.verb : "";
    if (strcmp(verb, "new") == 0 && request.id == NULL)
        return new_task(&request, folder);
    if (strcmp(verb, "list") == 0 && request.id == NULL)
        return list_tasks(&request, folder);
    if (strcmp(verb, "try") == 0 && request.id != NULL)
        return try_task(&request, folder);
    struct hc_task *task = NULL;
    if (strcmp(verb, "show") != 0 || request.id == NULL)
        return fail(&request, 125, "arguments", "wanted: task new, task try ID, task show ID, or task list");
    int error = hc_task_open(folder, request.id, &task);
    if (error < 0)
        return fail(&request, 125, "task", error == -ENOENT ? "there is no such task" : strerror(-error));
    int code = print_task(&request, task);
    hc_task_close(task);
    return code;
}
