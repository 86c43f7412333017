#include "flow/engine_inside.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "flow/ordinary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CEILING_PROCESSES 4096u
#define CEILING_MEMORY    (64ull * 1024 * 1024 * 1024)

/* A bind more, or none where the place is taken. More than HC_BIND_MAX are counted and not written. */
static uint32_t add_bind(struct hc_bind *binds, uint32_t count, const char *path, const char *place,
                         bool required)
{
    if (strlen(path) >= HC_PATH_SIZE || strlen(place) >= HC_PATH_SIZE)
        return required ? HC_BIND_MAX + 1 : count;
    for (uint32_t i = 0; i < count && i < HC_BIND_MAX; i++)
        if (strcmp(binds[i].target, place) == 0)
            return count;
    if (count >= HC_BIND_MAX)
        return HC_BIND_MAX + 1;
    struct hc_bind *bind = &binds[count];
    memset(bind, 0, sizeof *bind);
    memcpy(bind->source, path, strlen(path));
    memcpy(bind->target, place, strlen(place));
    bind->flags = required ? 0 : HC_BIND_OPTIONAL;
    return count + 1;
}

static uint32_t add_tree(struct hc_bind *binds, uint32_t count, const struct hc_runtime *runtime)
{
    const struct hc_interpreter *one = runtime->interpreter;
    return one != NULL && one->tree_host != NULL
               ? add_bind(binds, count, one->tree_host, one->tree_cell, false)
               : count;
}

/* `only`: the one runtime that this hall is for; NULL: any. */
static uint32_t collect_binds(const struct hc_engine *engine, const struct hc_runtime *only,
                              struct hc_bind *binds)
{
    static const char *const top[] = {"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"};
    uint32_t count = add_bind(binds, 0, "/usr", "/usr", true);
    struct stat info;
    /* On distributions that have not merged them into /usr these are folders of their own. */
    for (size_t i = 0; i < sizeof top / sizeof *top; i++)
        if (lstat(top[i], &info) == 0 && S_ISDIR(info.st_mode))
            count = add_bind(binds, count, top[i], top[i], false);
    for (size_t i = 0; i < engine->runtimes->count; i++) {
        const struct hc_runtime *runtime = &engine->runtimes->items[i];
        for (size_t e = 0; e < runtime->etc_count; e++)
            count =
                add_bind(binds, count, runtime->etc[e].path, runtime->etc[e].path, runtime->etc[e].required);
        for (size_t v = 0; only == NULL && v <= runtime->variant_count; v++)
            count = add_tree(binds, count, v == 0 ? runtime : &runtime->variants[v - 1]);
        if (engine->options.warm_cells > 0 && hc_warm_possible(&engine->warm, runtime))
            count = hc_warm_binds(&engine->warm, runtime, binds, count);
    }
    return only != NULL ? add_tree(binds, count, only) : count;
}

/* A fault of the host in words that say what to do. */
int hc_refuse_by_failure(struct hc_job *job, const struct hc_setup_failure *failure, enum hc_cause cause)
{
    const char *fix = "";
    char missing[480];
    if (failure->stage <= HC_STAGE_HALL_KEEPER && geteuid() != 0 &&
        hc_ordinary_missing(missing, sizeof missing)) {
        (void)hc_refuse(&job->refusal, cause, hc_stage_names[failure->stage], "%s", missing);
        hc_job_refuse(job);
        return HC_REFUSED;
    }
    if (failure->stage == HC_STAGE_HALL_SLICE && failure->error == -EUSERS)
        fix = "; too many halls at once: wait for one to end";
    else if (failure->stage == HC_STAGE_HALL_CGROUP && failure->error == -EBUSY)
        fix = "; the cgroup at the top holds processes: delegate a group of its own to hotcell (systemd: "
              "Delegate=yes)";
    else if (failure->stage == HC_STAGE_HALL_CGROUP)
        fix = "; a writable cgroup tree with the memory, pids and cpu controllers is needed";
    else if (failure->stage == HC_STAGE_RLIMITS)
        fix = "; a hard limit of the caller is below what a cell needs (ulimit -H)";
    else if (failure->stage == HC_STAGE_HALL_NAMESPACES)
        fix = "; user namespaces are needed (sysctl user.max_user_namespaces, AppArmor's userns rule)";
    else if (failure->stage == HC_STAGE_ATTEST && failure->detail[0] != '\0')
        fix = "; the layer could not be read back";
    (void)hc_refuse(&job->refusal, cause, hc_stage_names[failure->stage], "%s%s%s: %s%s",
                    hc_stage_names[failure->stage], failure->detail[0] != '\0' ? ": " : "", failure->detail,
                    strerror(-failure->error), fix);
    hc_job_refuse(job);
    return HC_REFUSED;
}

static void start_warm(struct hc_engine *engine)
{
    for (size_t i = 0; i < engine->runtimes->count; i++) {
        const struct hc_runtime *runtime = &engine->runtimes->items[i];
        if (hc_warm_possible(&engine->warm, runtime))
            (void)hc_warm_start(&engine->warm, engine->hall, runtime, engine->options.warm_cells);
    }
    hc_warm_refill(&engine->warm, engine->hall);
}

int hc_engine_need_hall(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime)
{
    if (engine->hall != NULL)
        return 0;
    hc_autofree struct hc_bind *binds = calloc(HC_BIND_MAX, sizeof *binds);
    struct hc_setup_failure failure = {0};
    if (binds == NULL)
        return -ENOMEM;
    struct hc_hall_options options = {
        .programs = engine->programs,
        .binds = binds,
        .bind_count = collect_binds(engine, engine->options.only_language != NULL ? runtime : NULL, binds),
        .allow_layers = engine->options.allow_layers,
        .ceiling_processes = CEILING_PROCESSES,
        .ceiling_memory_bytes = CEILING_MEMORY,
        .fault_program = engine->options.fault_program,
        .fault_nth = engine->options.fault_nth,
    };
    if (options.bind_count > HC_BIND_MAX) {
        (void)hc_refuse(&job->refusal, HC_CAUSE_HOST, "runtimes",
                        "the manifests want more than %d host paths in a cell, or one that is too long",
                        HC_BIND_MAX);
        hc_job_refuse(job);
        return HC_REFUSED;
    }
    int error = hc_hall_open(&options, &engine->hall, &failure);
    if (error == HC_SETUP_FAILED)
        return hc_refuse_by_failure(job, &failure, HC_CAUSE_HOST);
    if (error == 0 && engine->options.warm_cells > 0)
        start_warm(engine);
    return error < 0 ? hc_job_fault(job, HC_STAGE_HALL_KEEPER, error) : 0;
}

/* A keeper that is gone or silent took its cells along; the next job gets a new hall. */
static void drop_broken_hall(struct hc_engine *engine, const struct hc_outcome *outcome)
{
    if (engine->hall != NULL && outcome->failure.error != 0 &&
        (outcome->failure.stage == HC_STAGE_HALL_KEEPER || outcome->failure.stage == HC_STAGE_TEARDOWN)) {
        hc_hall_close(engine->hall);
        hc_warm_done(&engine->warm);
        engine->hall = NULL;
    }
}

void hc_engine_end_outcome(struct hc_engine *engine, struct hc_outcome *outcome)
{
    if (engine->hall != NULL)
        (void)hc_execute_end(engine->hall, outcome);
    drop_broken_hall(engine, outcome);
}
