#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/quantity.h"
#include "base/utf8.h"
#include "cli/request.h"
#include "flow/accept.h"
#include "flow/engine.h"
#include "flow/keep.h"
#include "store/store.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

/* ---- exit code ---- */

static int exit_code(const struct hc_job *job, bool predicates)
{
    const struct hc_verdict *v = &job->verdict;
    if (predicates && v->state == HC_STATE_FINISHED)
        return job->acceptance.status == HC_ACCEPTED ? 0 : job->acceptance.status == HC_REJECTED ? 1 : 125;
    const struct hc_status_row *row = &hc_statuses[v->status];
    if (row->exit_rule == HC_EXIT_OF_PROGRAM)
        return v->signal > 0 ? 128 + v->signal : v->exit_code >= 0 ? v->exit_code : row->exit_code;
    if (row->exit_rule == HC_EXIT_BY_CAUSE && hc_causes[v->cause].exit_code != 0)
        return hc_causes[v->cause].exit_code;
    return row->exit_code;
}

/* ---- the one plain line ---- */

static void limit_text(const struct hc_job *job, enum hc_limit limit, char out[64])
{
    char value[32];
    if (hc_limits[limit].unit == HC_UNIT_US)
        hc_format_duration(job->effective.limits[limit], value);
    else if (hc_limits[limit].unit == HC_UNIT_BYTES)
        hc_format_bytes(job->effective.limits[limit], value);
    else
        (void)snprintf(value, sizeof value, "%llu", (unsigned long long)job->effective.limits[limit]);
    (void)snprintf(out, 64, "--%s %s", hc_limits[limit].flag, value);
}

static int limit_of_cause(enum hc_cause cause)
{
    static const struct {
        enum hc_cause cause;
        enum hc_limit limit;
    } rows[] = {{HC_CAUSE_CPU_TIME, HC_LIMIT_CPU},
                {HC_CAUSE_WALL_TIME, HC_LIMIT_WALL},
                {HC_CAUSE_MEMORY, HC_LIMIT_MEMORY},
                {HC_CAUSE_PROCESSES, HC_LIMIT_PROCESSES},
                {HC_CAUSE_OUTPUT_BYTES, HC_LIMIT_OUTPUT_TOTAL},
                {HC_CAUSE_DISK_BYTES, HC_LIMIT_DISK},
                {HC_CAUSE_INODES, HC_LIMIT_INODES}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].cause == cause)
            return (int)rows[i].limit;
    return -1;
}

/* What the program said is somebody else's text: nothing of it may steer a terminal. */
static void say_error(const char *status, const struct hc_verdict *v, const struct hc_diagnosis *diagnosis)
{
    const char *words = diagnosis->type[0] != '\0' ? diagnosis->type : diagnosis->message;
    char shown[8 * sizeof diagnosis->message], line[32] = "";
    size_t n = hc_escape_visible((const uint8_t *)words, strlen(words), shown, sizeof shown - 1);
    shown[n] = '\0';
    if (diagnosis->line > 0)
        (void)snprintf(line, sizeof line, ", line %ld", diagnosis->line);
    hc_say("%s: exit code %d%s%s%s", status, v->exit_code, line, n > 0 ? ": " : "", shown);
}

static void say_ending(const struct hc_job *job)
{
    const struct hc_verdict *v = &job->verdict;
    const char *status = hc_statuses[v->status].name;
    char limit[64];
    if (v->status == HC_STATUS_OK)
        return;
    if (v->state != HC_STATE_FINISHED) {
        hc_say("%s: %s", status, job->refusal.message);
    } else if (limit_of_cause(v->cause) >= 0) {
        limit_text(job, (enum hc_limit)limit_of_cause(v->cause), limit);
        hc_say("%s: %s (%s)", status, hc_causes[v->cause].meaning, limit);
    } else if (job->diagnosis.found && v->exit_code >= 0) {
        say_error(status, v, &job->diagnosis);
    } else if (v->signal > 0) {
        hc_say("%s: signal %d (%s)", status, v->signal, strsignal(v->signal));
    } else if (v->exit_code >= 0) {
        hc_say("%s: exit code %d", status, v->exit_code);
    } else {
        hc_say("%s: %s", status,
               v->cause != HC_CAUSE_NONE ? hc_causes[v->cause].meaning : hc_statuses[v->status].meaning);
    }
}

/* The first predicate that decided against the result, or could not be judged, and what it saw. */
static void say_acceptance(const struct hc_acceptance *acceptance)
{
    const char *word = acceptance->status == HC_ACCEPTED   ? "accepted"
                       : acceptance->status == HC_REJECTED ? "rejected"
                                                           : "acceptance could not be decided";
    size_t i;
    json_t *row;
    json_array_foreach(acceptance->predicates, i, row)
    {
        const json_t *ok = json_object_get(row, "ok");
        const char *kind = json_string_value(json_object_get(row, "kind")),
                   *got = json_string_value(json_object_get(row, "got"));
        if (acceptance->status == HC_REJECTED ? !json_is_false(ok) : !json_is_null(ok))
            continue;
        hc_say("%s: %s%s%s", word, kind, got != NULL ? ": " : "", got != NULL ? got : "");
        return;
    }
    hc_say("%s", word);
}

static void say_rest(const struct hc_job *job, bool predicates)
{
    char kept[32], all[32];
    const struct hc_outcome *o = &job->outcome;
    if (o->hits.output) {
        hc_format_bytes(o->out.kept_bytes + o->err.kept_bytes, kept);
        hc_format_bytes(o->out.total_bytes + o->err.total_bytes, all);
        hc_say("output of %s bytes; the record keeps %s of it", all, kept);
    }
    if (job->export_message[0] != '\0')
        hc_say("%s", job->export_message);
    if (predicates && job->verdict.state == HC_STATE_FINISHED)
        say_acceptance(&job->acceptance);
}

/* ---- store and answer ---- */

static int open_store(const char *folder, struct hc_store **ret_store, struct hc_refusal *refusal)
{
    char message[256] = "";
    if (folder != NULL && strcmp(folder, "none") == 0)
        return 0;
    if (folder == NULL)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "store",
                         "neither HOME nor XDG_STATE_HOME is set: give --store DIR or none");
    int error = hc_store_open(folder, ret_store, message);
    return error < 0 ? hc_refuse(refusal, HC_CAUSE_HOST, "store", "records can't be kept in %.200s: %.200s",
                                 folder, message)
                     : 0;
}

static int print_record(const json_t *record)
{
    if (record == NULL || json_dumpf(record, stdout, JSON_INDENT(2)) != 0 || putchar('\n') == EOF ||
        fflush(stdout) != 0)
        return -EIO;
    return 0;
}

static int cancel_descriptor(void)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run_job(struct hc_run_request *request, const char *folder, struct hc_job *job,
                   struct hc_engine **ret_engine)
{
    struct hc_engine *engine = NULL;
    struct hc_problem problem = {0};
    struct hc_engine_options options = {.allow_layers = request->spec.allow_layers,
                                        .warm_cells = request->spec.warmth == HC_WARMTH_WARM ? 1 : 0,
                                        .store = folder,
                                        .runtimes = request->runtimes};
#ifdef HC_FAULTS
    const char *faults = getenv("HOTCELL_FAULT"); /* PROGRAM:N */
    if (faults != NULL)
        (void)sscanf(faults, "%u:%u", &options.fault_program, &options.fault_nth);
#endif
    /* The usual request needs one manifest of all: by its name, or Python's when nothing points elsewhere. */
    char only[64];
    const struct hc_spec *spec = &request->spec;
    if (!hc_predicates_bring_programs(request->predicates) &&
        (spec->language != NULL || spec->program_name == NULL)) {
        (void)snprintf(only, sizeof only, "%.*s",
                       (int)strcspn(spec->language != NULL ? spec->language : "python", "@"),
                       spec->language != NULL ? spec->language : "python");
        options.only_language = only;
    }
    hc_autoclose int cancel = cancel_descriptor();
    struct hc_live live = {.out = request->json ? -1 : 1, .err = request->json ? -1 : 2, .cancel_fd = cancel};
    live.visible_out = live.out >= 0 && isatty(1);
    live.visible_err = live.err >= 0 && isatty(2);
    int error = hc_engine_open(&options, &engine, &problem);
    if (error == HC_BAD_INPUT) {
        (void)hc_refuse(&job->refusal, HC_CAUSE_RUNTIME, "runtimes", "%.200s:%u:%u: %.200s", problem.file,
                        problem.line, problem.column, problem.message);
        hc_job_refuse(job);
        return 0;
    }
    if (error == 0) {
        job->spec = request->spec;
        memset(&request->spec, 0, sizeof request->spec);
        request->spec.stdin_fd = -1;
        error = hc_engine_run(engine, job, &live, request->predicates, request->out);
    }
    hc_engine_leave(engine);
    *ret_engine = engine;
    return error;
}

int hc_cli_run(int argc, char **argv)
{
    struct hc_run_request request;
    struct hc_store *store = NULL;
    struct hc_engine *engine = NULL;
    struct hc_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return 125;
    hc_job_begin(job);
    int error = hc_run_request_parse(argc, argv, &request, &job->refusal);
    if (request.help) {
        hc_print_help(hc_command_named("run"));
        return 0;
    }
    hc_autofree char *folder = request.store != NULL ? strdup(request.store) : hc_store_default_folder();
    if (error == 0)
        error = open_store(folder, &store, &job->refusal);
    if (error == 0)
        error = run_job(&request, folder, job, &engine);
    else if (error == HC_REFUSED)
        hc_job_refuse(job);
    if (job->spec.profile ==
        NULL) { /* never got to the engine: the record speaks of the request as far as it was read */
        job->spec = request.spec;
        memset(&request.spec, 0, sizeof request.spec);
        request.spec.stdin_fd = -1;
    }
    bool predicates = request.predicates != NULL;
    json_t *record = error >= 0 ? hc_record_keep(job, request.predicates, store) : NULL;
    int code = exit_code(job, predicates);
    if (record == NULL || (request.json && print_record(record) < 0)) {
        hc_say(record == NULL ? "out of memory" : "the record can't be written to standard output");
        code = 125;
    }
    if (!request.json && record != NULL) {
        say_ending(job);
        say_rest(job, predicates);
    }
    json_decref(record);
    hc_store_close(store);
    hc_engine_close(engine); /* when we are gone, so is the hall */
    hc_run_request_done(&request);
    hc_job_done(job);
    free(job);
    return code;
}
