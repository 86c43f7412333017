#include "flow/engine_inside.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "runtime/version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIALOGUE_OUTPUT_BYTES (64 * 1024)
#define SCANNER_WALL_US       10000000u
#define SCANNER_MEMORY_BYTES  (256ull << 20)

/* An identity that was read within this time is not read again: packages change by the hour, runs come by the
 * millisecond. */
#define IDENTITY_AGE_MAX_US 2000000u

struct identify {
    struct hc_job *job;
    const struct hc_runtime *runtime;
    struct hc_identity *known;
};

/* Version and digest go into the record only; reading them overlaps with the run. */
static void identify(void *context)
{
    const struct identify *what = context;
    struct hc_job *job = what->job;
    struct hc_identity *known = what->known;
    if (job->environment_sha256[0] != '\0')
        return;
    if (known->runtime != what->runtime || hc_now_us() - known->read_at_us > IDENTITY_AGE_MAX_US) {
        *known = (struct hc_identity){.runtime = what->runtime};
        (void)hc_runtime_version(what->runtime, known->version);
        (void)hc_runtime_digest(what->runtime, known->environment_sha256);
        known->read_at_us = hc_now_us();
    }
    memcpy(job->runtime_version, known->version, sizeof job->runtime_version);
    memcpy(job->environment_sha256, known->environment_sha256, sizeof job->environment_sha256);
}

/* How long a run that has to be warm waits for its cell: the host may just be importing. */
#define WARM_WAIT_MS 60000

static void settle_warmth(struct hc_engine *engine, const struct hc_job *job,
                          const struct hc_command *command, struct hc_execution *execution)
{
    execution->warm_place = -1;
    if (!command->whole_program || job->spec.warmth == HC_WARMTH_COLD || engine->options.warm_cells == 0 ||
        hc_warm_unfit(&engine->warm, job, command->runtime) != NULL)
        return;
    if (engine->options.warm_where_it_gains && job->spec.warmth == HC_WARMTH_DEFAULT &&
        !hc_warm_gains(job, command->runtime))
        return;
    execution->warm_place = hc_warm_place(&engine->warm, command->runtime);
    execution->warm_wait_ms = job->spec.warmth == HC_WARMTH_WARM ? WARM_WAIT_MS : 0;
}

/* The scanner's own, whatever those of the run are: archives lie in its memory as files, and once more as
 * data. */
static void set_scanner_limits(const struct hc_command *command, uint64_t limits[HC_LIMIT_COUNT])
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < command->file_count; i++)
        bytes += command->files[i].bytes;
    for (int i = 0; i < HC_LIMIT_COUNT; i++)
        if (hc_limits[i].default_value != HC_LIMIT_AUTO)
            limits[i] = hc_limits[i].default_value;
    limits[HC_LIMIT_WALL] = limits[HC_LIMIT_CPU] = SCANNER_WALL_US;
    limits[HC_LIMIT_MEMORY] = SCANNER_MEMORY_BYTES + 2 * bytes;
    limits[HC_LIMIT_PROCESSES] = 4;
    limits[HC_LIMIT_DISK] = 1 << 20;
    limits[HC_LIMIT_INODES] = 1024;
    limits[HC_LIMIT_OUTPUT_TOTAL] = 1 << 20;
    limits[HC_LIMIT_OUTPUT] = 1 << 20;
}

/* What is left of the time for the whole job bounds each of its commands. */
static void bound_wall(struct hc_job *job, uint64_t *wall_us)
{
    uint64_t now_us = hc_now_us(), least_us = hc_limits[HC_LIMIT_WALL].min_value, ends_us = job->latest_us;
    if (job->first_command_us == 0)
        job->first_command_us = now_us;
    if (job->whole_us > 0 && (ends_us == 0 || job->first_command_us + job->whole_us < ends_us))
        ends_us = job->first_command_us + job->whole_us;
    if (ends_us == 0)
        return;
    uint64_t left_us = ends_us > now_us ? ends_us - now_us : 0;
    if (left_us < *wall_us)
        *wall_us = left_us > least_us ? left_us : least_us;
}

int hc_command_run(struct hc_engine *engine, struct hc_job *job, const struct hc_command *command,
                   const struct hc_live *live, int stdin_fd, struct hc_outcome *ret_outcome)
{
    struct identify what = {.job = job, .runtime = command->runtime, .known = &engine->identity};
    struct hc_execution execution = {
        .argv = (const char *const *)command->argv.items,
        .env = (const char *const *)command->env,
        .files = command->files,
        .file_count = command->file_count,
        .input_inodes = command->file_count + 8,
        .allow_layers = engine->options.allow_layers,
        .min_grade = job->spec.min_grade,
        .stdin_fd = stdin_fd,
        .stdin_after_output = command->dialogue,
        .live_out = live != NULL ? live->out : -1,
        .live_err = live != NULL ? live->err : -1,
        .live_visible_out = live != NULL && live->visible_out,
        .live_visible_err = live != NULL && live->visible_err,
        .cancel_fd = live != NULL ? live->cancel_fd : -1,
        .meanwhile = identify,
        .meanwhile_context = &what,
    };
    memcpy(execution.limits, job->effective.limits, sizeof execution.limits);
    if (command->dialogue) /* a verdict has to fit, however little output the run may have */
        execution.limits[HC_LIMIT_OUTPUT] = DIALOGUE_OUTPUT_BYTES;
    if (command->scanner)
        set_scanner_limits(command, execution.limits);
    for (size_t i = 0; i < command->file_count; i++)
        execution.input_bytes += (command->files[i].bytes + 4095) / 4096 * 4096 + 4096;
    int error = hc_engine_need_hall(engine, job, command->runtime);
    if (error != 0)
        return error;
    settle_warmth(engine, job, command, &execution);
    if (command->whole_program && job->spec.warmth == HC_WARMTH_WARM) {
        error = hc_engine_await_warm(engine, job->language, 1, WARM_WAIT_MS, &job->refusal);
        if (error == HC_REFUSED)
            hc_job_refuse(job);
        if (error != 0)
            return error;
        execution.warm_only = true;
    }
    bound_wall(job, &execution.limits[HC_LIMIT_WALL]);
    error = hc_execute(engine->hall, &execution, ret_outcome);
    if (error == 0 && execution.warm_place >= 0)
        *(ret_outcome->warm ? &engine->warm.hits : &engine->warm.misses) += 1;
    if (error < 0)
        (void)hc_execute_end(engine->hall, ret_outcome);
    return error < 0 ? hc_job_fault(job, HC_STAGE_CAPTURE, error) : 0;
}

/* A stage that never started the program: refused, with the host's reason. */
int hc_refuse_not_started(struct hc_job *job, const struct hc_outcome *outcome)
{
    const struct hc_setup_failure *failure = &outcome->failure;
    if (outcome->hits.cancelled) {
        (void)hc_refuse(&job->refusal, HC_CAUSE_CLIENT, "", "cancelled before the program started");
        job->verdict = (struct hc_verdict){.state = HC_STATE_REFUSED,
                                           .status = HC_STATUS_CANCELLED,
                                           .cause = HC_CAUSE_CLIENT,
                                           .exit_code = -1};
        return HC_REFUSED;
    }
    if (outcome->grade_too_low) {
        (void)hc_refuse(&job->refusal, HC_CAUSE_GRADE, "min_grade",
                        "the layers that hold here make grade %s; wanted is at least %s (--min-grade)",
                        hc_grade_name(outcome->layers.grade), hc_grade_name(job->spec.min_grade));
        for (int i = 0; i < HC_LAYER_COUNT; i++) {
            size_t used = strlen(job->refusal.message);
            if (outcome->layers.layers[i].state != HC_LAYER_APPLIED &&
                hc_layers[i].grade_if_absent > HC_GRADE_A)
                (void)snprintf(job->refusal.message + used, sizeof job->refusal.message - used,
                               "; %s is missing: %s", hc_layers[i].name, hc_layers[i].mend);
        }
        hc_job_refuse(job);
        return HC_REFUSED;
    }
    if (failure->stage == HC_STAGE_EXEC && (failure->error == -ENOENT || failure->error == -EACCES)) {
        (void)hc_refuse(&job->refusal, HC_CAUSE_RUNTIME, "language",
                        "the interpreter of %s can't be started in the cell: %s", job->language,
                        strerror(-failure->error));
        hc_job_refuse(job);
        return HC_REFUSED;
    }
    if (failure->error == -EBUSY && failure->stage == HC_STAGE_CLONE) {
        (void)hc_refuse(&job->refusal, HC_CAUSE_QUEUE_FULL, "cells", "all %d cells of this hall are in use",
                        HC_CELL_MAX);
        hc_job_refuse(job);
        return HC_REFUSED;
    }
    return hc_refuse_by_failure(job, failure, HC_CAUSE_HOST);
}
