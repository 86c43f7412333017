#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/quantity.h"
#include "cli/request.h"
#include "eval/compare.h"
#include "eval/eval.h"
#include "eval/limits.h"
#include "eval/pool.h"
#include "eval/report.h"
#include "flow/engine.h"
#include "flow/permit.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct hc_option own_options[] = {
    {"jobs", 'j', "N", "items that run at the same time (one per CPU)"},
    {"results", 0, "OUT.jsonl", "write one line per item to this file, in order of completion"},
    {"report", 0, "OUT.html", "write the report as one page, with the items that failed"},
    {"compare", 0, NULL, "compare two files of results, A.jsonl B.jsonl, instead of running anything"},
    {"resume", 0, NULL, "continue OUT.jsonl: skip the items that are in it"},
    {"limit", 0, "N", "only the first N items of the file"},
    {"only", 0, "ID,...", "only these items; repeatable"},
    {"progress", 0, NULL, "a line every 10 s on stderr that is no terminal"},
    {"json", 0, NULL, "print one JSON document, the report, and nothing else"},
    {"help", 'h', NULL, "show this help"},
};

/* Taken over from `run`: limits, and what is decided for all items alike. */
static const char *const shared_options[] = {"profile", "deterministic", "min-grade", "allow",
                                             "store",   "cold",          "warm",      "runtimes"};

struct hc_option hc_eval_options_table[HC_EVAL_OPTION_MAX];

static bool is_shared(const char *name)
{
    for (size_t i = 0; i < sizeof shared_options / sizeof *shared_options; i++)
        if (strcmp(shared_options[i], name) == 0)
            return true;
    return hc_eval_limit_of_option(name) >= 0;
}

/* The rows of `run` are used again, so that no option is described twice. */
size_t hc_eval_options_fill(void)
{
    size_t count = 0, own = sizeof own_options / sizeof *own_options;
    for (; count < own - 1; count++)
        hc_eval_options_table[count] = own_options[count];
    for (size_t i = 0; i < hc_run_option_count && count < HC_EVAL_OPTION_MAX - 1; i++)
        if (is_shared(hc_run_options[i].name))
            hc_eval_options_table[count++] = hc_run_options[i];
    hc_eval_options_table[count++] = own_options[own - 1];
    return count;
}

struct request {
    struct hc_eval_options options;
    bool json, help, compare;
    const char *second; /* file, to be compared with options.file */
    char *store, *runtimes;
};

static int bad(struct hc_refusal *refusal, const char *flag, const char *value, const char *reason)
{
    return hc_refuse(refusal, HC_CAUSE_FIELD, flag, "--%s %.100s: %s", flag, value, reason);
}

static int add_ids(struct request *request, const char *list, struct hc_refusal *refusal)
{
    if (request->options.only == NULL)
        request->options.only = json_object();
    for (const char *at = list;;) {
        size_t n = strcspn(at, ",");
        hc_autofree char *id = strndup(at, n);
        if (id == NULL)
            return -ENOMEM;
        if (n == 0 || json_object_set_new(request->options.only, id, json_true()) != 0)
            return bad(refusal, "only", list, "wanted ids with commas between them");
        if (at[n] == '\0')
            return 0;
        at += n + 1;
    }
}

static int set_count(const char *flag, const char *value, uint64_t most, uint64_t *ret_count,
                     struct hc_refusal *refusal)
{
    int outcome = hc_parse_count(value, ret_count);
    if (outcome != HC_QUANTITY_OK)
        return bad(refusal, flag, value, hc_quantity_reason(outcome));
    return *ret_count > most ? bad(refusal, flag, value, "is too large") : 0;
}

static int set_policy(struct hc_spec *spec, const char *name, const char *value, struct hc_refusal *refusal)
{
    if (strcmp(name, "profile") == 0)
        return hc_option_text(&spec->profile, value);
    if (strcmp(name, "cold") == 0 || strcmp(name, "warm") == 0) {
        enum hc_warmth wanted = strcmp(name, "cold") == 0 ? HC_WARMTH_COLD : HC_WARMTH_WARM;
        if (spec->warmth != HC_WARMTH_DEFAULT && spec->warmth != wanted)
            return hc_refuse(refusal, HC_CAUSE_FIELD, "warm", "--cold and --warm exclude each other");
        spec->warmth = wanted;
        return 0;
    }
    if (strcmp(name, "min-grade") == 0) {
        if (strlen(value) != 1 || value[0] < 'A' || value[0] > 'D')
            return bad(refusal, name, value, "wanted A, B, C or D");
        spec->min_grade = (enum hc_grade)(value[0] - 'A');
        return 0;
    }
    if (strcmp(name, "deterministic") == 0) {
        spec->deterministic = true;
        if (value == NULL)
            return 0;
        if (strlen(value) == 0 || strlen(value) > 9 || strspn(value, "0123456789") != strlen(value))
            return bad(refusal, name, value, "a seed is a number of at most nine digits");
        return hc_option_text(&spec->seed, value);
    }
    int layer = hc_layer_by_name(value);
    if (layer < 0 || !hc_layers[layer].removable)
        return bad(refusal, name, value, "no such layer, or it can't be done without");
    spec->allow_layers |= 1ull << layer;
    return 0;
}

static int take_option(struct request *request, const char *name, const char *value,
                       struct hc_refusal *refusal)
{
    struct hc_eval_options *options = &request->options;
    uint64_t count = 0;
    int limit = hc_eval_limit_of_option(name), error = 0;
    if (limit >= 0) {
        error = hc_eval_limit_text(&options->defaults, (enum hc_limit)limit, value, refusal);
    } else if (strcmp(name, "jobs") == 0) {
        error = set_count(name, value, HC_POOL_MAX, &count, refusal);
        options->jobs = (unsigned)count;
    } else if (strcmp(name, "limit") == 0) {
        error = set_count(name, value, UINT64_MAX, &options->limit, refusal);
    } else if (strcmp(name, "results") == 0) {
        options->results = value;
    } else if (strcmp(name, "report") == 0) {
        options->report = value;
        error = value[0] != '\0' ? 0 : bad(refusal, name, value, "wanted a file");
    } else if (strcmp(name, "compare") == 0) {
        request->compare = true;
    } else if (strcmp(name, "only") == 0) {
        error = add_ids(request, value, refusal);
    } else if (strcmp(name, "store") == 0) {
        error = value[0] != '\0' ? hc_option_text(&request->store, value)
                                 : bad(refusal, name, value, "wanted a folder or none");
    } else if (strcmp(name, "runtimes") == 0) {
        error = hc_cli_set_runtimes(&request->runtimes, value, refusal);
        options->runtimes = request->runtimes;
    } else if (strcmp(name, "resume") == 0) {
        options->resume = true;
    } else if (strcmp(name, "progress") == 0) {
        options->progress = true;
    } else if (strcmp(name, "json") == 0) {
        request->json = true;
    } else if (strcmp(name, "help") == 0) {
        request->help = true;
    } else {
        error = set_policy(&options->defaults, name, value, refusal);
    }
    return error;
}

/* Wrong for one is wrong for all: said before anything runs. */
static int check_defaults(const struct hc_spec *defaults, struct hc_refusal *refusal)
{
    __attribute__((cleanup(hc_policies_done))) struct hc_policies policies = {0};
    const struct hc_policy *policy = NULL;
    struct hc_effective effective;
    int error = hc_policies_init(&policies, hc_default_share());
    if (error == 0)
        error = hc_policies_get(&policies, defaults->profile, &policy, refusal);
    return error == 0 ? hc_gate(defaults, policy, &effective, refusal) : error;
}

static int settle(struct request *request, struct hc_refusal *refusal)
{
    struct hc_eval_options *options = &request->options;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (request->compare && (options->file == NULL || request->second == NULL))
        return bad(refusal, "compare", "A.jsonl B.jsonl", "two files of results are wanted");
    if (request->compare)
        return 0;
    if (request->second != NULL)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "arguments", "'%.100s': one data set at a time",
                         request->second);
    if (options->file == NULL)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file",
                         "no data set: give FILE.jsonl, or - for standard input");
    if (options->resume && options->results == NULL)
        return bad(refusal, "resume", "", "there is nothing to resume without --results");
    if (options->jobs == 0)
        options->jobs = cpus > 0 && cpus < HC_POOL_MAX ? (unsigned)cpus : 1;
    return check_defaults(&options->defaults, refusal);
}

static int parse(int argc, char **argv, struct request *request, struct hc_refusal *refusal)
{
    const struct hc_command *command = hc_command_named("eval");
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value;
    char message[256];
    for (int i = 1; i < argc; i++)
        request->json = request->json || strcmp(argv[i], "--json") == 0;
    int error = hc_spec_init(&request->options.defaults);
    while (error == 0 && !request->help) {
        int option = hc_option_next(command, &arguments, &value, message);
        if (option == HC_OPTION_BAD)
            return hc_refuse(refusal, HC_CAUSE_FIELD, "arguments", "%s", message);
        if (option == HC_OPTION_END && arguments.at < argc && strcmp(argv[arguments.at], "--") == 0 &&
            arguments.at + 1 < argc)
            arguments.at++, option = HC_OPTION_OPERAND;
        if (option == HC_OPTION_END)
            break;
        if (option != HC_OPTION_OPERAND)
            error = take_option(request, command->options[option].name, value, refusal);
        else if (request->options.file == NULL)
            request->options.file = argv[arguments.at++];
        else if (request->second == NULL)
            request->second = argv[arguments.at++];
        else
            error = hc_refuse(refusal, HC_CAUSE_FIELD, "arguments",
                              "'%.100s': one data set at a time, or two files with --compare",
                              argv[arguments.at]);
    }
    return error != 0 || request->help ? error : settle(request, refusal);
}

/* Workers open store and manifests for themselves: what is wrong with these is better said once. */
static int try_host(struct request *request, struct hc_refusal *refusal)
{
    struct hc_engine_options options = {.runtimes = request->runtimes};
    struct hc_engine *engine = NULL;
    struct hc_problem problem = {0};
    struct hc_store *store = NULL;
    char message[256] = "";
    if (request->store == NULL)
        request->store = hc_store_default_folder();
    if (request->store == NULL)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "store",
                         "neither HOME nor XDG_STATE_HOME is set: give --store DIR or none");
    int error = hc_engine_open(&options, &engine, &problem);
    hc_engine_close(engine);
    if (error == HC_BAD_INPUT)
        return hc_refuse(refusal, HC_CAUSE_RUNTIME, "runtimes", "%.200s:%u:%u: %.200s", problem.file,
                         problem.line, problem.column, problem.message);
    if (error < 0 || strcmp(request->store, "none") == 0)
        return error;
    request->options.store = request->store;
    error = hc_store_open(request->store, &store, message);
    hc_store_close(store);
    return error < 0 ? hc_refuse(refusal, HC_CAUSE_HOST, "store", "records can't be kept in %.200s: %.200s",
                                 request->store, message)
                     : 0;
}

static int print_refusal(const struct request *request, const struct hc_refusal *refusal)
{
    if (!request->json) {
        hc_say("%s", refusal->message);
        return 125;
    }
    json_t *answer = json_pack("{s:s, s:s, s:{s:s, s:s}}", "schema", "hotcell.eval/1", "state", "refused",
                               "error", "field", refusal->field, "message", refusal->message);
    (void)json_dumpf(answer, stdout, JSON_INDENT(2));
    (void)putchar('\n');
    json_decref(answer);
    (void)fflush(stdout);
    return 125;
}

static int print_report(const struct request *request, const struct hc_tally *tally)
{
    if (!request->json)
        return hc_eval_report_print(tally, stdout);
    json_t *report = hc_eval_report(tally);
    int error = report == NULL                                                            ? -ENOMEM
                : json_dumpf(report, stdout, JSON_INDENT(2)) != 0 || putchar('\n') == EOF ? -EIO
                                                                                          : 0;
    json_decref(report);
    return error < 0 ? error : fflush(stdout) != 0 ? -EIO : 0;
}

static int evaluate(struct request *request, struct hc_tally *tally)
{
    struct hc_refusal refusal = {0};
    int error = hc_eval(&request->options, tally, &refusal);
    if (error == HC_REFUSED)
        return print_refusal(request, &refusal);
    if (error < 0)
        hc_say("the evaluation stops: %s", strerror(-error));
    if (print_report(request, tally) < 0) {
        hc_say("the report can't be written");
        return 125;
    }
    if (error < 0)
        return 125;
    if (tally->interrupted > 0)
        return 130;
    return tally->bad_lines > 0 || tally->missing_ids > 0 || tally->statuses[HC_STATUS_FAULT] > 0 ? 1 : 0;
}

static int write_comparison(const struct hc_compare *compare, const char *path)
{
    FILE *out = fopen(path, "we");
    int error = out != NULL ? hc_compare_page(compare, out) : -errno;
    if (out != NULL && fclose(out) != 0 && error == 0)
        error = -errno;
    if (error < 0)
        hc_say("--report %.200s: %s", path, strerror(-error));
    return error;
}

static int print_comparison(const struct request *request, const struct hc_compare *compare)
{
    if (!request->json)
        return hc_compare_print(compare, stdout);
    json_t *report = hc_compare_report(compare);
    int error =
        report == NULL || json_dumpf(report, stdout, JSON_INDENT(2)) != 0 || putchar('\n') == EOF ? -EIO : 0;
    json_decref(report);
    return error < 0 || fflush(stdout) != 0 ? -EIO : 0;
}

/* 0: nothing became worse. */
static int compare_files(const struct request *request)
{
    struct hc_refusal refusal = {0};
    struct hc_compare *compare = calloc(1, sizeof *compare);
    int code = 125;
    int error = compare == NULL ? -ENOMEM
                                : hc_compare_files(request->options.file, request->second, compare, &refusal);
    if (error == HC_REFUSED)
        code = print_refusal(request, &refusal);
    else if (error < 0)
        hc_say("%s", strerror(-error));
    else if (print_comparison(request, compare) < 0)
        hc_say("the comparison can't be written");
    else if (request->options.report == NULL || write_comparison(compare, request->options.report) == 0)
        code = compare->worse > 0 ? 1 : 0;
    if (compare != NULL)
        hc_compare_done(compare);
    free(compare);
    return code;
}

int hc_cli_eval(int argc, char **argv)
{
    struct request request = {0};
    struct hc_refusal refusal = {0};
    struct hc_tally *tally = calloc(1, sizeof *tally);
    int code = 125;
    int error = tally == NULL ? -ENOMEM : hc_tally_init(tally);
    if (error == 0)
        error = parse(argc, argv, &request, &refusal);
    if (error == 0 && request.help) {
        hc_print_help(hc_command_named("eval"));
        code = 0;
    } else {
        if (error == 0 && !request.compare)
            error = try_host(&request, &refusal);
        if (error == 0 && request.compare)
            code = compare_files(&request);
        else if (error == HC_REFUSED)
            code = print_refusal(&request, &refusal);
        else if (error < 0)
            hc_say("%s", strerror(-error));
        else
            code = evaluate(&request, tally);
    }
    if (tally != NULL)
        hc_tally_done(tally);
    free(tally);
    hc_spec_done(&request.options.defaults);
    json_decref(request.options.only);
    free(request.store);
    free(request.runtimes);
    return code;
}
