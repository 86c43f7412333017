#include "flow/engine_inside.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "flow/permit.h"
#include "flow/redact_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

int hc_engine_open(const struct hc_engine_options *options, struct hc_engine **ret_engine,
                   struct hc_problem *problem)
{
    hc_autofree struct hc_engine *engine = calloc(1, sizeof *engine);
    const char *share = options->share != NULL ? options->share : hc_default_share();
    hc_autofree char *folder = hc_printf("%s/runtimes", share);
    if (engine == NULL || folder == NULL)
        return -ENOMEM;
    const char *folders[] = {folder, "/etc/hotcell/runtimes", options->runtimes};
    size_t count = options->runtimes != NULL ? 3 : 2;
    int outcome = -ENOENT;
    if (options->only_language != NULL)
        outcome = hc_runtimes_load_one(folders, count, options->only_language, &engine->runtimes, problem);
    if (outcome == -ENOENT) /* none given, or an alias */
        outcome = hc_runtimes_load(folders, count, &engine->runtimes, problem);
    if (outcome != 0)
        return outcome;
    engine->options = *options;
    if (options->fault_program == HC_FAULT_LIBRARY)
        hc_fault_arm(options->fault_nth);
    engine->programs = strdup(options->programs != NULL ? options->programs : hc_default_programs());
    engine->share = strdup(share);
    if (engine->programs == NULL || engine->share == NULL)
        return -ENOMEM;
    hc_warm_init(&engine->warm, engine->programs, engine->share);
    if (hc_policies_init(&engine->policies, engine->share) < 0)
        return -ENOMEM;
    engine->redact = hc_redact_rules_new(NULL);
    if (engine->redact == NULL || hc_redact_add_host(engine->redact, options->store) < 0) {
        hc_engine_close(hc_take_pointer(&engine));
        return -ENOMEM;
    }
    *ret_engine = hc_take_pointer(&engine);
    return 0;
}

void hc_engine_leave(struct hc_engine *engine)
{
    if (engine != NULL)
        hc_hall_leave(engine->hall);
}

void hc_engine_close(struct hc_engine *engine)
{
    if (engine == NULL)
        return;
    hc_hall_close(engine->hall);
    hc_warm_done(&engine->warm);
    hc_policies_done(&engine->policies);
    hc_runtimes_done(engine->runtimes);
    hc_redact_rules_done(engine->redact);
    free(engine->programs);
    free(engine->share);
    free(engine);
}

const struct hc_runtimes *hc_engine_runtimes(const struct hc_engine *engine)
{
    return engine->runtimes;
}

/* Limits that are rlimits can't be above the caller's own hard ones: a default gives way, a wish is refused.
 */
static int fit_hard_limits(struct hc_job *job)
{
    static const struct {
        enum hc_limit limit;
        int resource;
    } rows[] = {{HC_LIMIT_OPEN_FILES, RLIMIT_NOFILE},
                {HC_LIMIT_FILE_SIZE, RLIMIT_FSIZE},
                {HC_LIMIT_STACK, RLIMIT_STACK}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct hc_limit_row *row = &hc_limits[rows[i].limit];
        uint64_t *value = &job->effective.limits[rows[i].limit];
        uint64_t room = hc_hard_limit_room(rows[i].resource, *value);
        if (*value <= room)
            continue;
        if (job->spec.limit_asked[rows[i].limit] || room < row->min_value)
            return hc_refuse(&job->refusal, HC_CAUSE_FIELD, row->name,
                             "--%s: the caller's own hard limit allows at most %llu (ulimit -H)", row->flag,
                             (unsigned long long)room);
        *value = room;
    }
    return 0;
}

/* --warm is a demand: what can't be had is refused, not served cold. */
static int check_warmth(const struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime)
{
    if (job->spec.warmth != HC_WARMTH_WARM)
        return 0;
    const char *reason = hc_warm_unfit(&engine->warm, job, runtime);
    if (reason == NULL && engine->options.warm_cells == 0)
        reason = "no warm cells are kept here";
    return reason == NULL ? 0 : hc_refuse(&job->refusal, HC_CAUSE_FIELD, "warm", "--warm: %s", reason);
}

/* What is scrubbed from the record of a job: the host's rows and the patterns of the request. */
static int add_redactions(const struct hc_engine *engine, struct hc_job *job)
{
    char reason[128];
    job->redact = hc_redact_rules_new(engine->redact);
    int error = job->redact == NULL ? -ENOMEM : 0;
    for (size_t i = 0; error == 0 && i < job->spec.redact_count; i++)
        error = hc_redact_add_pattern(job->redact, "pattern", job->spec.redact[i], reason);
    return error > 0 ? -EINVAL : error;
}

/* Checked when the profile was read. */
static int add_profile_redactions(struct hc_job *job)
{
    char reason[128];
    int error = 0;
    for (size_t i = 0; error == 0 && i < job->policy->redact.count; i++)
        error = hc_redact_add_pattern(job->redact, "profile", job->policy->redact.items[i], reason);
    return error > 0 ? -EINVAL : error;
}

static int run_second(void *context, struct hc_job *job)
{
    hc_job_begin(job);
    return hc_engine_run(context, job, NULL, NULL, NULL);
}

static int permit_program(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime)
{
    const struct hc_second_cell second = {.context = engine, .run = run_second};
    uint64_t began_us = hc_now_us();
    if (job->judges)
        return 0;
    int error = hc_permit_program(job, runtime, engine->share, &second);
    job->gate_us = hc_now_us() - began_us;
    return error;
}

int hc_engine_run(struct hc_engine *engine, struct hc_job *job, const struct hc_live *live,
                  const json_t *predicates, const char *out_folder)
{
    const struct hc_runtime *runtime = NULL;
    int error = hc_sha256_hex(job->spec.code, job->spec.code_bytes, job->code_sha256);
    if (error == 0)
        error = add_redactions(engine, job);
    if (error == 0)
        error = hc_settle_runtime(engine, job, &runtime);
    if (error == 0)
        error = hc_policies_get(&engine->policies, job->spec.profile, &job->policy, &job->refusal);
    if (error == 0)
        error = hc_gate(&job->spec, job->policy, &job->effective, &job->refusal);
    if (error == 0)
        error = add_profile_redactions(job);
    if (error == 0)
        job->artifact_rules = hc_artifact_rules_of(job->policy);
    if (error == 0)
        error = hc_permit_request(job);
    if (error == 0)
        error = permit_program(engine, job, runtime);
    if (error == HC_REFUSED) {
        hc_job_refuse(job);
        return 0;
    }
    if (error == 0)
        error = fit_hard_limits(job);
    if (error == 0)
        error = check_warmth(engine, job, runtime);
    if (error == HC_REFUSED) {
        hc_job_refuse(job);
        return 0;
    }
    job->gated = error == 0;
    if (error == 0 && runtime != NULL)
        error = hc_run_stages(engine, job, runtime, live, predicates, out_folder);
    if (engine->hall != NULL && engine->options.cells_ahead > 0)
        hc_hall_make_ahead(engine->hall, engine->options.cells_ahead);
    if (engine->hall != NULL && engine->options.warm_cells > 0)
        hc_warm_refill(&engine->warm, engine->hall);
    return error < 0 && error != -ENOMEM ? (hc_job_fault(job, HC_STAGE_CAPTURE, error), 0)
           : error < 0                   ? error
                                         : 0;
}

int hc_engine_await_warm(struct hc_engine *engine, const char *language, unsigned wanted, int timeout_ms,
                         struct hc_refusal *refusal)
{
    const struct hc_runtime *runtime = hc_runtime_by_name(engine->runtimes, language);
    struct hc_setup_failure failure = {0};
    hc_autofree struct hc_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    if (runtime == NULL || !hc_warm_possible(&engine->warm, runtime))
        return hc_refuse(refusal, HC_CAUSE_RUNTIME, "warm", "%.60s has no warm cells here", language);
    int error = hc_engine_need_hall(engine, job, runtime);
    if (error == HC_REFUSED)
        *refusal = job->refusal;
    if (error != 0)
        return error;
    error = hc_warm_await(&engine->warm, engine->hall, runtime, wanted, timeout_ms, &failure);
    if (error < 0)
        return hc_refuse(refusal, HC_CAUSE_HOST, "warm", "the warm host of %.60s: %s: %s%s%.200s", language,
                         hc_stage_names[failure.stage], strerror(-error),
                         failure.detail[0] != '\0' ? ": " : "", failure.detail);
    return 0;
}

void hc_engine_warm_counts(const struct hc_engine *engine, uint64_t *ret_hits, uint64_t *ret_misses)
{
    *ret_hits = engine->warm.hits;
    *ret_misses = engine->warm.misses;
}

int hc_engine_hall(struct hc_engine *engine, struct hc_hall **ret_hall, struct hc_refusal *refusal)
{
    hc_autofree struct hc_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    int error = hc_engine_need_hall(engine, job, NULL);
    if (error == HC_REFUSED)
        *refusal = job->refusal;
    *ret_hall = engine->hall;
    return error;
}
