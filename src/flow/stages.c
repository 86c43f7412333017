#include "flow/engine_inside.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "flow/accept.h"
#include "flow/accept_cells.h"
#include "flow/keep.h"
#include "flow/scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only after a failure, so that success costs nothing. */
static int check_syntax(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime)
{
    struct hc_command command;
    struct hc_outcome *outcome;
    struct hc_verdict verdict = {0};
    uint64_t began_us = hc_now_us();
    if (runtime->check.count == 0 || job->verdict.status != HC_STATUS_RUNTIME_ERROR ||
        job->verdict.exit_code < 0)
        return 0;
    outcome = calloc(1, sizeof *outcome);
    if (outcome == NULL)
        return -ENOMEM;
    int error = hc_command_build(job, runtime, HC_COMMAND_CHECK, NULL, &command);
    if (error == 0)
        error = hc_command_run(engine, job, &command, NULL, -1, outcome);
    hc_command_done(&command);
    if (error == 0) {
        hc_classify(outcome, &verdict);
        /* 127 is the loader's word: the parser did not start */
        if (verdict.status == HC_STATUS_RUNTIME_ERROR && verdict.exit_code > 0 && verdict.exit_code != 127)
            job->verdict.status = HC_STATUS_SYNTAX_ERROR;
        hc_engine_end_outcome(engine, outcome);
    }
    hc_outcome_done(outcome);
    free(outcome);
    job->check_us = hc_now_us() - began_us;
    return error;
}

static void diagnose(struct hc_job *job, const struct hc_runtime *runtime)
{
    const struct hc_captured *err = &job->outcome.err;
    bool wanted =
        job->verdict.status == HC_STATUS_RUNTIME_ERROR || job->verdict.status == HC_STATUS_SYNTAX_ERROR ||
        job->verdict.status == HC_STATUS_PROCESS_LIMIT || job->verdict.status == HC_STATUS_DISK_LIMIT;
    if (!wanted || err->data == NULL)
        return;
    if (runtime->error_style == HC_ERROR_STYLE_PYTHON)
        hc_diagnose_python((const char *)err->data, err->kept_bytes, job->program_name, &job->diagnosis);
    else
        hc_diagnose_rules(&runtime->error_rules, (const char *)err->data, err->kept_bytes, false,
                          job->program_name, &job->diagnosis);
    if (job->verdict.cause == HC_CAUSE_EXIT_CODE && job->diagnosis.found && runtime->error_exit_code > 0 &&
        job->verdict.exit_code == (int)runtime->error_exit_code)
        job->verdict.cause = HC_CAUSE_EXCEPTION;
}

/* ---- what was left ---- */

/* A scanner that a hostile archive can slow down or take over runs like any other program. */
static void scan_archives(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime,
                          struct hc_scan *scan)
{
    char count[24];
    char *argv[] = {"/work/" HC_SCAN_PROGRAM, count, NULL},
         *env[] = {"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", NULL};
    struct hc_command command = {.runtime = runtime,
                                 .argv = {.items = argv, .count = 2},
                                 .env = env,
                                 .files = scan->files,
                                 .file_count = scan->count + 1,
                                 .scanner = true};
    struct hc_verdict verdict = {0};
    hc_autofree struct hc_outcome *outcome = calloc(1, sizeof *outcome);
    if (outcome == NULL) {
        hc_scan_report(scan, NULL, 0);
        return;
    }
    (void)snprintf(count, sizeof count, "%zu", scan->count);
    int error = hc_scan_load_program(scan, engine->programs);
    if (error == 0)
        error = hc_command_run(engine, job, &command, NULL, -1, outcome);
    if (error == 0) {
        hc_classify(outcome, &verdict);
        hc_engine_end_outcome(engine, outcome);
    }
    bool good = error == 0 && verdict.status == HC_STATUS_OK && verdict.state == HC_STATE_FINISHED &&
                outcome->out.data != NULL && !outcome->out.truncated;
    hc_scan_report(scan, good ? (const char *)outcome->out.data : NULL, good ? outcome->out.kept_bytes : 0);
    hc_outcome_done(outcome);
}

static int inspect(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime)
{
    struct hc_scan scan = {0};
    int error = 0;
    if (job->artifact_rules.scan)
        error = hc_scan_begin(job->outcome.cell->working_folder, &job->collection, &scan);
    if (error == 0 && scan.count > 0)
        scan_archives(engine, job, runtime, &scan);
    hc_scan_done(&scan);
    hc_artifacts_judge(&job->collection, &job->artifact_rules);
    return error;
}

static int collect(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime)
{
    uint64_t began_us = hc_now_us();
    struct hc_collect_rules rules = {
        .glob = job->spec.collect,
        .total_bytes = job->effective.limits[HC_LIMIT_ARTIFACTS],
        .file_bytes = job->effective.limits[HC_LIMIT_ARTIFACT_SIZE],
        .file_count = job->effective.limits[HC_LIMIT_ARTIFACT_COUNT],
        .compile_output = runtime->compile_output,
        .program_name = job->program_name,
        .spec = &job->spec,
        .program_uid = job->outcome.host_uid,
    };
    int error = hc_collect(job->outcome.cell->working_folder, &rules, &job->collection);
    if (error == 0)
        error = inspect(engine, job, runtime);
    job->collect_us = hc_now_us() - began_us;
    return error;
}

/* ---- second cells of acceptance ---- */

struct acceptance {
    struct hc_engine *engine;
    struct hc_job *job;
    const struct hc_runtime *runtime;
    struct hc_live live; /* nothing of it is shown */
};

static int run_asserts(void *context, int dialogue, struct hc_outcome *ret_outcome,
                       struct hc_verdict *ret_verdict)
{
    struct acceptance *acceptance = context;
    struct hc_command command;
    if (acceptance->runtime->asserts.count == 0)
        return HC_NOT_OFFERED;
    int error = hc_command_build(acceptance->job, acceptance->runtime, HC_COMMAND_ASSERTS, NULL, &command);
    if (error == 0)
        error = hc_command_run(acceptance->engine, acceptance->job, &command, &acceptance->live, dialogue,
                               ret_outcome);
    hc_command_done(&command);
    if (error != 0)
        return error < 0 ? error : -EIO;
    hc_classify(ret_outcome, ret_verdict);
    hc_engine_end_outcome(acceptance->engine, ret_outcome);
    return 0;
}

static int run_checker(void *context, struct hc_job *checker)
{
    struct acceptance *acceptance = context;
    const struct hc_job *job = acceptance->job;
    checker->judges = true;
    checker->latest_us = job->latest_us;
    if (job->whole_us > 0 &&
        (checker->latest_us == 0 || job->first_command_us + job->whole_us < checker->latest_us))
        checker->latest_us = job->first_command_us + job->whole_us;
    return hc_engine_run(acceptance->engine, checker, &acceptance->live, NULL, NULL);
}

static int accept(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime,
                  const struct hc_live *live, const json_t *predicates)
{
    struct acceptance acceptance = {
        .engine = engine,
        .job = job,
        .runtime = runtime,
        .live = {.out = -1, .err = -1, .cancel_fd = live != NULL ? live->cancel_fd : -1}};
    struct hc_accept_cells cells = {
        .context = &acceptance, .run_asserts = run_asserts, .run_checker = run_checker};
    uint64_t began_us = hc_now_us();
    int error = hc_accept(job, predicates, &cells);
    job->accept_us = hc_now_us() - began_us;
    return error;
}

static int finish_run(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime,
                      const struct hc_live *live, const json_t *predicates, const char *out_folder)
{
    int error = accept(engine, job, runtime, live, predicates);
    if (error < 0 || out_folder == NULL)
        return error;
    if (predicates != NULL && job->acceptance.status != HC_ACCEPTED) {
        (void)snprintf(job->export_message, sizeof job->export_message,
                       "nothing exported: the result was not accepted");
        return 0;
    }
    error = hc_export(job->outcome.cell->working_folder, &job->collection, out_folder, job->export_message);
    job->exported = error == 0;
    return error < 0 ? error : 0;
}

static int run_program(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime,
                       const struct hc_live *live, const struct hc_compiled *compiled)
{
    struct hc_command command;
    int error = hc_command_build(job, runtime, HC_COMMAND_RUN, compiled, &command);
    hc_rfc3339_now(job->cell_created_at);
    if (error == 0)
        error = hc_command_run(engine, job, &command, live, job->spec.stdin_fd, &job->outcome);
    hc_command_done(&command);
    if (error != 0)
        return error;
    hc_classify(&job->outcome, &job->verdict);
    if (job->outcome.started == HC_NEVER_STARTED) {
        error = hc_refuse_not_started(job, &job->outcome);
        hc_engine_end_outcome(engine, &job->outcome);
        return error;
    }
    if (job->verdict.state == HC_STATE_FAULT)
        (void)hc_job_fault(job,
                           job->outcome.failure.error != 0 ? job->outcome.failure.stage : HC_STAGE_CAPTURE,
                           job->outcome.failure.error != 0 ? job->outcome.failure.error : -ECHILD);
    return 0;
}

int hc_run_stages(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime,
                  const struct hc_live *live, const json_t *predicates, const char *out_folder)
{
    struct hc_compiled compiled = {0};
    int error = 0;
    hc_rfc3339_now(job->cell_created_at);
    if (runtime->compile.count > 0) {
        error = hc_compile(engine, job, runtime, live, &compiled);
        if (error == 0 && job->compile.verdict.status != HC_STATUS_OK) {
            hc_compiled_done(&compiled);
            hc_take_compile_verdict(job, runtime);
            return hc_accept(job, predicates, NULL);
        }
    }
    if (error == 0)
        error = run_program(engine, job, runtime, live, &compiled);
    hc_compiled_done(&compiled);
    if (error != 0)
        return error;
    if (job->outcome.cell != NULL && job->outcome.cell->working_folder >= 0)
        error = collect(engine, job, runtime);
    if (error < 0)
        (void)hc_job_fault(job, HC_STAGE_COLLECT, error);
    error = check_syntax(engine, job, runtime);
    diagnose(job, runtime);
    if (error == 0 && job->outcome.cell != NULL)
        error = finish_run(engine, job, runtime, live, predicates, out_folder);
    if (error == 0 && job->outcome.cell != NULL)
        error = hc_keep_artifacts(job, job->outcome.cell->working_folder);
    hc_engine_end_outcome(engine, &job->outcome);
    hc_rfc3339_now(job->cell_destroyed_at);
    if (job->outcome.failure.error != 0 && job->verdict.state == HC_STATE_FINISHED)
        (void)hc_job_fault(job, job->outcome.failure.stage, job->outcome.failure.error);
    return error;
}
