#include "flow/engine_inside.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COMPILE_OUTPUT_MAX (128ull * 1024 * 1024)

void hc_compiled_done(struct hc_compiled *compiled)
{
    for (size_t i = 0; i < compiled->count; i++)
        free((void *)(uintptr_t)compiled->files[i].data);
    free(compiled->files);
    hc_collection_done(&compiled->listing);
}

static int take_output(int working_folder, const struct hc_artifact *artifact, uint64_t *left_bytes,
                       struct hc_compiled *compiled)
{
    struct hc_plan_file *file = &compiled->files[compiled->count];
    uint8_t *data = NULL;
    const char *reason;
    bool folder = strcmp(artifact->type, "folder") == 0;
    if ((!artifact->plain && !folder) || !hc_plan_name_ok(artifact->path, &reason))
        return -EINVAL;
    *file = (struct hc_plan_file){.name = artifact->path, .folder = folder, .mode = 0555};
    if (!folder) {
        int error = hc_collect_read(working_folder, artifact->path, *left_bytes, &data, &file->bytes);
        if (error < 0)
            return error;
        file->data = data;
        *left_bytes -= file->bytes;
    }
    compiled->count++;
    return 0;
}

/* The folder or the one file that the manifest names; -ENOENT when it is not there, -EINVAL when it is
 * something else. */
static int read_output(const struct hc_job *job, const struct hc_runtime *runtime,
                       const struct hc_outcome *outcome, struct hc_compiled *compiled)
{
    struct hc_collect_rules rules = {
        .glob = "", .program_name = job->program_name, .spec = &job->spec, .program_uid = outcome->host_uid};
    uint64_t left_bytes = COMPILE_OUTPUT_MAX;
    int error = hc_collect(outcome->cell->working_folder, &rules, &compiled->listing);
    if (error < 0)
        return error;
    if (compiled->listing.truncated)
        return -EFBIG;
    compiled->files = calloc(compiled->listing.count + 1, sizeof *compiled->files);
    if (compiled->files == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < compiled->listing.count && error == 0; i++)
        if (hc_is_compile_output(runtime, compiled->listing.artifacts[i].path))
            error = take_output(outcome->cell->working_folder, &compiled->listing.artifacts[i], &left_bytes,
                                compiled);
    if (error == 0 && compiled->count == 0)
        error = -ENOENT;
    return error == 0 && compiled->files[0].folder != runtime->compile_folder ? -EINVAL : error;
}

int hc_compile(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime,
               const struct hc_live *live, struct hc_compiled *ret_compiled)
{
    struct hc_command command;
    struct hc_outcome *outcome = &job->compile.outcome;
    uint64_t began_us = hc_now_us();
    struct hc_live quiet = {.out = -1,
                            .err = live != NULL ? live->err : -1,
                            .visible_err = live != NULL && live->visible_err,
                            .cancel_fd = live != NULL ? live->cancel_fd : -1};
    int error = hc_command_build(job, runtime, HC_COMMAND_COMPILE, NULL, &command);
    if (error == 0)
        error = hc_command_run(engine, job, &command, &quiet, -1, outcome);
    hc_command_done(&command);
    if (error != 0)
        return error;
    hc_classify(outcome, &job->compile.verdict);
    if (job->compile.verdict.status == HC_STATUS_RUNTIME_ERROR) /* of the compiler */
        job->compile.verdict.status = HC_STATUS_COMPILE_ERROR;
    job->compile.ran = outcome->started == HC_STARTED;
    if (outcome->started == HC_NEVER_STARTED) {
        error = hc_refuse_not_started(job, outcome);
    } else if (job->compile.verdict.status == HC_STATUS_OK) {
        error = read_output(job, runtime, outcome, ret_compiled);
        if (error < 0 && error != -ENOMEM) {
            job->compile.verdict.status = HC_STATUS_COMPILE_ERROR;
            error = 0;
        }
    }
    hc_engine_end_outcome(engine, outcome);
    job->compile_us = hc_now_us() - began_us;
    return error;
}

/* Limits keep their names, a refusal of the compiler is compile_error. */
void hc_take_compile_verdict(struct hc_job *job, const struct hc_runtime *runtime)
{
    const struct hc_captured *err = &job->compile.outcome.err;
    job->verdict = job->compile.verdict;
    job->outcome.usage = job->compile.outcome.usage;
    job->outcome.hits = job->compile.outcome.hits;
    job->outcome.facts = job->compile.outcome.facts;
    job->outcome.layers = job->compile.outcome.layers;
    job->outcome.host_uid = job->compile.outcome.host_uid;
    job->outcome.host_gid = job->compile.outcome.host_gid;
    job->outcome.residue = job->compile.outcome.residue;
    job->outcome.has_residue = job->compile.outcome.has_residue;
    /* The program itself has printed nothing. */
    struct hc_capture none[2] = {0};
    for (int i = 0; i < 2; i++)
        if (hc_capture_init(&none[i], 0) == 0)
            (void)hc_capture_finish(&none[i], 0, i == 0 ? &job->outcome.out : &job->outcome.err);
    for (int i = 0; i < 2; i++)
        hc_capture_done(&none[i]);
    job->outcome.mounts = job->compile.outcome.mounts != NULL ? strdup(job->compile.outcome.mounts) : NULL;
    if (err->data != NULL && runtime->compile_rules.count > 0)
        hc_diagnose_rules(&runtime->compile_rules, (const char *)err->data, err->kept_bytes, true,
                          job->program_name, &job->diagnosis);
    else if (err->data != NULL)
        hc_diagnose_compiler((const char *)err->data, err->kept_bytes, job->program_name, &job->diagnosis);
}
