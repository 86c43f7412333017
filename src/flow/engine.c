#include "flow/engine.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "flow/accept.h"
#include "flow/accept_cells.h"
#include "flow/deterministic.h"
#include "flow/keep.h"
#include "flow/ordinary.h"
#include "flow/permit.h"
#include "flow/redact_host.h"
#include "flow/scan.h"
#include "flow/warm.h"
#include "runtime/version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define COMPILE_OUTPUT_MAX    (128ull * 1024 * 1024)
#define HEAP_FACTOR           4 /* heap limit of an interpreter over the memory limit of the cell: never met first */
#define DIALOGUE_OUTPUT_BYTES (64 * 1024)
#define SCANNER_WALL_US       10000000u
#define SCANNER_MEMORY_BYTES  (256ull << 20)
#define CEILING_PROCESSES     4096u
#define CEILING_MEMORY        (64ull * 1024 * 1024 * 1024)

/* An identity that was read within this time is not read again: packages change by the hour, runs come by the
 * millisecond. */
#define IDENTITY_AGE_MAX_US 2000000u

struct identity {
    const struct hc_runtime *runtime;
    uint64_t read_at_us;
    char version[64], environment_sha256[65];
};

struct hc_engine {
    struct identity identity;
    struct hc_engine_options options;
    char *programs;
    struct hc_runtimes *runtimes;
    struct hc_hall *hall;
    char *share;
    struct hc_warm warm;
    struct hc_policies policies;
    struct hc_redact_rules *redact; /* of this host, for every job */
};

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

void hc_job_begin(struct hc_job *job)
{
    uint8_t random[10];
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        memset(random, 0, sizeof random);
    char *at = job->id + snprintf(job->id, sizeof job->id, "run-");
    for (size_t i = 0; i < sizeof random; i++) {
        *at++ = digits[random[i] & 31];
        *at++ = digits[(random[i] >> 3 ^ random[(i + 3) % sizeof random]) & 31];
    }
    *at = '\0';
    hc_rfc3339_now(job->created_at);
    job->began_us = hc_now_us();
    job->verdict = (struct hc_verdict){.exit_code = -1};
    job->compile.verdict.exit_code = -1;
    job->outcome.layers.missing = -1;
    job->artifact_rules = hc_artifact_rules_default();
}

void hc_job_refuse(struct hc_job *job)
{
    job->verdict = (struct hc_verdict){
        .state = HC_STATE_REFUSED, .status = HC_STATUS_REFUSED, .cause = job->refusal.cause, .exit_code = -1};
}

static int fault(struct hc_job *job, enum hc_stage stage, int error)
{
    job->verdict = (struct hc_verdict){
        .state = HC_STATE_FAULT, .status = HC_STATUS_FAULT, .cause = HC_CAUSE_HOST, .exit_code = -1};
    job->outcome.failure.stage = stage;
    job->outcome.failure.error = error;
    (void)snprintf(job->refusal.message, sizeof job->refusal.message, "%s: %s", hc_stage_names[stage],
                   strerror(-error));
    return HC_REFUSED;
}

/* ---- the hall, built when the first job needs it ---- */

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
static int refuse_by_failure(struct hc_job *job, const struct hc_setup_failure *failure, enum hc_cause cause)
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

static int need_hall(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime)
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
        return refuse_by_failure(job, &failure, HC_CAUSE_HOST);
    if (error == 0 && engine->options.warm_cells > 0)
        start_warm(engine);
    return error < 0 ? fault(job, HC_STAGE_HALL_KEEPER, error) : 0;
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

/* ---- the runtime of a job ---- */

static const struct hc_runtime *choose_runtime(const struct hc_engine *engine, struct hc_job *job)
{
    const struct hc_spec *spec = &job->spec;
    const struct hc_runtime *runtime = NULL;
    if (spec->language != NULL) {
        hc_autofree char *name = strdup(spec->language);
        char *at = name != NULL ? strchr(name, '@') : NULL;
        if (at != NULL)
            *at = '\0';
        runtime = name != NULL ? hc_runtime_by_name(engine->runtimes, name) : NULL;
    } else if (spec->program_name != NULL) {
        runtime = hc_runtime_by_extension(engine->runtimes, spec->program_name);
    }
    if (runtime == NULL && spec->language == NULL)
        runtime = hc_runtime_by_name(engine->runtimes, "python");
    return runtime;
}

/* The output of the compile step, or something in it. */
static bool is_output(const struct hc_runtime *runtime, const char *name)
{
    size_t n = runtime->compile_output != NULL ? strlen(runtime->compile_output) : 0;
    return n > 0 && strncmp(name, runtime->compile_output, n) == 0 && (name[n] == '\0' || name[n] == '/');
}

static int refuse_version(struct hc_job *job, const struct hc_runtime *runtime, const char *named)
{
    char there[256] = "", version[64];
    for (size_t i = 0; i <= runtime->variant_count; i++) {
        const struct hc_runtime *one = i == 0 ? runtime : &runtime->variants[i - 1];
        size_t used = strlen(there);
        if (one->interpreter != NULL && hc_runtime_version(one, version) == 0)
            (void)snprintf(there + used, sizeof there - used, "%s%s%s%s", used > 0 ? ", " : "", version,
                           one->variant != NULL ? " as @" : "", one->variant != NULL ? one->variant : "");
    }
    return hc_refuse(&job->refusal, HC_CAUSE_RUNTIME, "language",
                     "--language %.100s: there is no such version; installed here: %s", named,
                     there[0] != '\0' ? there : "unknown");
}

/* One of the installed versions, and flags that its compile step may get. */
static int settle_version(struct hc_job *job, const struct hc_runtime **runtime, const char *named)
{
    const char *wanted = strchr(named, '@');
    const struct hc_runtime *chosen = hc_runtime_default(*runtime);
    if (chosen->interpreter == NULL)
        return hc_refuse(&job->refusal, HC_CAUSE_RUNTIME, "language", "--language %.100s: %s", named,
                         (*runtime)->missing);
    if (wanted != NULL)
        chosen = hc_runtime_of_version(*runtime, wanted + 1, job->runtime_version);
    if (chosen == NULL)
        return refuse_version(job, *runtime, named);
    for (size_t i = 0; i < job->spec.flag_count; i++)
        if (!hc_runtime_flag_allowed(chosen, job->spec.flags[i]))
            return hc_refuse(&job->refusal, HC_CAUSE_FIELD, "flag", "--flag %.100s: %s", job->spec.flags[i],
                             chosen->compile_flags.count > 0
                                 ? "is not one of those that the language's manifest allows"
                                 : "the language has no flags that could be given");
    *runtime = chosen;
    return 0;
}

static int settle_runtime(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime **ret_runtime)
{
    const struct hc_runtime *runtime = choose_runtime(engine, job);
    const char *named = job->spec.language != NULL ? job->spec.language : "python";
    if (runtime == NULL)
        return hc_refuse(&job->refusal, HC_CAUSE_RUNTIME, "language",
                         "--language %.100s: unknown; `hotcell runtimes` lists what there is", named);
    (void)snprintf(job->language, sizeof job->language, "%.31s", runtime->name);
    int error = settle_version(job, &runtime, named);
    if (error != 0)
        return error;
    const char *reason, *name = job->spec.program_name != NULL ? job->spec.program_name : runtime->file;
    if (!hc_plan_name_ok(name, &reason) || strchr(name, '/') != NULL ||
        strlen(name) >= sizeof job->program_name)
        return hc_refuse(&job->refusal, HC_CAUSE_FIELD, "file", "the program's file name %s",
                         reason != NULL ? reason : "is not a plain name");
    (void)snprintf(job->program_name, sizeof job->program_name, "%s", name);
    for (size_t i = 0; i < job->spec.input_count; i++)
        if (strcmp(job->spec.inputs[i].name, name) == 0 || is_output(runtime, job->spec.inputs[i].name))
            return hc_refuse(&job->refusal, HC_CAUSE_FIELD, "file",
                             "--file: the name in the cell '%.200s' is that of the program",
                             job->spec.inputs[i].name);
    *ret_runtime = runtime;
    return 0;
}

/* ---- what a compile step made ---- */

/* Files for the plan of the run's cell; their names are those of the listing. */
struct compiled {
    struct hc_collection listing;
    struct hc_plan_file *files;
    size_t count;
};

static void compiled_done(struct compiled *compiled)
{
    for (size_t i = 0; i < compiled->count; i++)
        free((void *)(uintptr_t)compiled->files[i].data);
    free(compiled->files);
    hc_collection_done(&compiled->listing);
}

static int take_output(int working_folder, const struct hc_artifact *artifact, uint64_t *left_bytes,
                       struct compiled *compiled)
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
                       const struct hc_outcome *outcome, struct compiled *compiled)
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
        if (is_output(runtime, compiled->listing.artifacts[i].path))
            error = take_output(outcome->cell->working_folder, &compiled->listing.artifacts[i], &left_bytes,
                                compiled);
    if (error == 0 && compiled->count == 0)
        error = -ENOENT;
    return error == 0 && compiled->files[0].folder != runtime->compile_folder ? -EINVAL : error;
}

/* ---- one command in a cell ---- */

enum command_kind { COMMAND_RUN, COMMAND_CHECK, COMMAND_COMPILE, COMMAND_ASSERTS };

struct command {
    const struct hc_runtime *runtime;
    bool whole_program; /* a run, and of the program as it came: a warm cell can take it */
    struct hc_strings argv;
    char **env;
    struct hc_plan_file *files;
    size_t file_count;
    void *hooks[HC_RUNTIME_FIXES_MAX]; /* contents of files of the runtime's */
    bool dialogue;                     /* with test code, over standard input and output */
    bool scanner;
};

static void command_done(struct command *command)
{
    for (size_t i = 0; i < HC_RUNTIME_FIXES_MAX; i++)
        free(command->hooks[i]);
    hc_strings_done(&command->argv);
    for (size_t i = 0; command->env != NULL && command->env[i] != NULL; i++)
        free(command->env[i]);
    free(command->env);
    free(command->files);
}

static uint64_t threads_for(const struct hc_job *job)
{
    uint64_t cpus = (job->effective.limits[HC_LIMIT_CPUS] + 999) / 1000;
    if (job->spec.deterministic)
        return 1;
    uint64_t by_tasks = job->effective.limits[HC_LIMIT_PROCESSES] / 4;
    uint64_t host = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    cpus = cpus < host ? cpus : host;
    cpus = cpus < by_tasks ? cpus : by_tasks;
    return cpus > 0 ? cpus : 1;
}

static bool overridden(const struct hc_spec *spec, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < spec->env_count; i++)
        if (strncmp(spec->env[i], name, n) == 0 && spec->env[i][n] == '=')
            return true;
    return false;
}

static int add_variable(char **env, size_t *at, const struct hc_runtime_variable *variable,
                        const struct hc_template_values *values)
{
    hc_autofree char *value = NULL;
    int error = hc_template_expand(variable->value, values, &value);
    if (error != 0)
        return error < 0 ? error : -EINVAL;
    env[(*at)++] = hc_printf("%s=%s", variable->name, value);
    return 0;
}

static bool takes_part(const char *const *names, const char *name)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Variables of the manifest, those by which it makes runs deterministic, the caller's own; each name once,
 * the later one counts. */
static int build_env(struct hc_job *job, const struct hc_runtime *runtime,
                     const struct hc_template_values *values, char ***ret_env)
{
    const struct hc_spec *spec = &job->spec;
    const char *names[HC_FIXED_NAMES_MAX + 1] = {NULL};
    size_t room = runtime->env_count + spec->env_count + HC_FIXED_NAMES_MAX + 1, at = 0;
    int error = 0;
    char **env = calloc(room, sizeof *env);
    if (env == NULL)
        return -ENOMEM;
    *ret_env = env;
    hc_deterministic_names(job, runtime, names);
    for (size_t i = 0; error == 0 && i < runtime->env_count; i++)
        if (!overridden(spec, runtime->env[i].name) && !takes_part(names, runtime->env[i].name))
            error = add_variable(env, &at, &runtime->env[i], values);
    for (size_t i = 0; names[i] != NULL && error == 0; i++)
        error = add_variable(env, &at, hc_deterministic_variable(runtime, names[i]), values);
    for (size_t i = 0; error == 0 && i < spec->env_count; i++)
        env[at++] = strdup(spec->env[i]);
    for (size_t i = 0; error == 0 && i < at; i++)
        if (env[i] == NULL)
            return -ENOMEM;
    return error;
}

static int append_args(struct command *command, const struct hc_spec *spec)
{
    char **grown = realloc(command->argv.items, (command->argv.count + spec->arg_count + 1) * sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    command->argv.items = grown;
    for (size_t i = 0; i < spec->arg_count; i++) {
        grown[command->argv.count] = strdup(spec->args[i]);
        if (grown[command->argv.count] == NULL)
            return -ENOMEM;
        grown[++command->argv.count] = NULL;
    }
    return 0;
}

static int list_files(struct command *command, const struct hc_job *job, enum command_kind kind,
                      const struct compiled *compiled)
{
    const struct hc_spec *spec = &job->spec;
    command->files =
        calloc(spec->input_count + 1 + HC_RUNTIME_FIXES_MAX + (compiled != NULL ? compiled->count : 0),
               sizeof *command->files);
    if (command->files == NULL)
        return -ENOMEM;
    command->files[command->file_count++] = (struct hc_plan_file){
        .name = job->program_name, .mode = 0444, .data = spec->code, .bytes = spec->code_bytes};
    for (size_t i = 0; i < spec->input_count; i++)
        command->files[command->file_count++] = (struct hc_plan_file){.name = spec->inputs[i].name,
                                                                      .folder = spec->inputs[i].folder,
                                                                      .payload_owned = spec->inputs[i].folder,
                                                                      .mode = spec->inputs[i].mode,
                                                                      .data = spec->inputs[i].data,
                                                                      .bytes = spec->inputs[i].bytes};
    for (size_t i = 0; compiled != NULL && i < compiled->count; i++)
        command->files[command->file_count++] = compiled->files[i];
    return kind == COMMAND_RUN ? hc_deterministic_hooks(job, command->runtime, command->files,
                                                        &command->file_count, command->hooks)
                               : 0;
}

static bool compiled_is_empty(const struct compiled *compiled)
{
    return compiled == NULL || compiled->count == 0;
}

static int build_command(struct hc_job *job, const struct hc_runtime *runtime, enum command_kind kind,
                         const struct compiled *compiled, struct command *ret_command)
{
    char file[300], output[300];
    (void)snprintf(file, sizeof file, "%s%s", job->program_name[0] == '-' ? "./" : "", job->program_name);
    (void)snprintf(output, sizeof output, "./%s",
                   runtime->compile_output != NULL ? runtime->compile_output : "");
    struct hc_template_values values = {.interpreter = runtime->interpreter->place,
                                        .tree = runtime->interpreter->tree_cell,
                                        .flags = (const char *const *)job->spec.flags,
                                        .flag_count = job->spec.flag_count,
                                        .file = file,
                                        .output = output,
                                        .home = "/tmp/home",
                                        .seed = job->spec.seed != NULL ? job->spec.seed : "0",
                                        .hook = HC_HOOK_FOLDER,
                                        .threads = threads_for(job),
                                        .memory_mib = job->effective.limits[HC_LIMIT_MEMORY] >> 20,
                                        .heap_mib =
                                            HEAP_FACTOR * (job->effective.limits[HC_LIMIT_MEMORY] >> 20)};
    const struct hc_strings *templates = kind == COMMAND_RUN       ? &runtime->run
                                         : kind == COMMAND_CHECK   ? &runtime->check
                                         : kind == COMMAND_ASSERTS ? &runtime->asserts
                                                                   : &runtime->compile;
    memset(ret_command, 0, sizeof *ret_command);
    ret_command->runtime = runtime;
    ret_command->whole_program = kind == COMMAND_RUN && compiled_is_empty(compiled);
    int error = hc_template_expand_all(templates, &values, &ret_command->argv);
    if (error == 0 && kind == COMMAND_RUN)
        error = hc_deterministic_options(job, runtime, &values, &ret_command->argv);
    if (error == 0)
        error = build_env(job, runtime, &values, &ret_command->env);
    ret_command->dialogue = kind == COMMAND_ASSERTS;
    if (error == 0 && (kind == COMMAND_RUN || kind == COMMAND_ASSERTS))
        error = append_args(ret_command, &job->spec);
    if (error == 0)
        error = list_files(ret_command, job, kind, compiled);
    return error > 0 ? -EINVAL : error;
}

struct identify {
    struct hc_job *job;
    const struct hc_runtime *runtime;
    struct identity *known;
};

/* Version and digest go into the record only; reading them overlaps with the run. */
static void identify(void *context)
{
    const struct identify *what = context;
    struct hc_job *job = what->job;
    struct identity *known = what->known;
    if (job->environment_sha256[0] != '\0')
        return;
    if (known->runtime != what->runtime || hc_now_us() - known->read_at_us > IDENTITY_AGE_MAX_US) {
        *known = (struct identity){.runtime = what->runtime};
        (void)hc_runtime_version(what->runtime, known->version);
        (void)hc_runtime_digest(what->runtime, known->environment_sha256);
        known->read_at_us = hc_now_us();
    }
    memcpy(job->runtime_version, known->version, sizeof job->runtime_version);
    memcpy(job->environment_sha256, known->environment_sha256, sizeof job->environment_sha256);
}

/* How long a run that has to be warm waits for its cell: the host may just be importing. */
#define WARM_WAIT_MS 60000

static void settle_warmth(struct hc_engine *engine, const struct hc_job *job, const struct command *command,
                          struct hc_execution *execution)
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
static void set_scanner_limits(const struct command *command, uint64_t limits[HC_LIMIT_COUNT])
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

static int execute(struct hc_engine *engine, struct hc_job *job, const struct command *command,
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
    int error = need_hall(engine, job, command->runtime);
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
    return error < 0 ? fault(job, HC_STAGE_CAPTURE, error) : 0;
}

/* A stage that never started the program: refused, with the host's reason. */
static int refuse_not_started(struct hc_job *job, const struct hc_outcome *outcome)
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
    return refuse_by_failure(job, failure, HC_CAUSE_HOST);
}

static void end_outcome(struct hc_engine *engine, struct hc_outcome *outcome)
{
    if (engine->hall != NULL)
        (void)hc_execute_end(engine->hall, outcome);
    drop_broken_hall(engine, outcome);
}

/* ---- compile, run, check ---- */

static int compile(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime,
                   const struct hc_live *live, struct compiled *ret_compiled)
{
    struct command command;
    struct hc_outcome *outcome = &job->compile.outcome;
    uint64_t began_us = hc_now_us();
    struct hc_live quiet = {.out = -1,
                            .err = live != NULL ? live->err : -1,
                            .visible_err = live != NULL && live->visible_err,
                            .cancel_fd = live != NULL ? live->cancel_fd : -1};
    int error = build_command(job, runtime, COMMAND_COMPILE, NULL, &command);
    if (error == 0)
        error = execute(engine, job, &command, &quiet, -1, outcome);
    command_done(&command);
    if (error != 0)
        return error;
    hc_classify(outcome, &job->compile.verdict);
    job->compile.ran = outcome->started == HC_STARTED;
    if (outcome->started == HC_NEVER_STARTED) {
        error = refuse_not_started(job, outcome);
    } else if (job->compile.verdict.status == HC_STATUS_OK) {
        error = read_output(job, runtime, outcome, ret_compiled);
        if (error < 0 && error != -ENOMEM) {
            job->compile.verdict.status = HC_STATUS_COMPILE_ERROR;
            error = 0;
        }
    }
    end_outcome(engine, outcome);
    job->compile_us = hc_now_us() - began_us;
    return error;
}

/* The verdict of a failed compile stage is the run's: limits keep their names, a refusal of the compiler is
 * compile_error. */
static void take_compile_verdict(struct hc_job *job, const struct hc_runtime *runtime)
{
    const struct hc_captured *err = &job->compile.outcome.err;
    job->verdict = job->compile.verdict;
    if (job->verdict.status == HC_STATUS_RUNTIME_ERROR || job->verdict.status == HC_STATUS_OK)
        job->verdict.status = HC_STATUS_COMPILE_ERROR;
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

/* Only after a failure, so that success costs nothing. */
static int check_syntax(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime)
{
    struct command command;
    struct hc_outcome *outcome;
    struct hc_verdict verdict = {0};
    uint64_t began_us = hc_now_us();
    if (runtime->check.count == 0 || job->verdict.status != HC_STATUS_RUNTIME_ERROR ||
        job->verdict.exit_code < 0)
        return 0;
    outcome = calloc(1, sizeof *outcome);
    if (outcome == NULL)
        return -ENOMEM;
    int error = build_command(job, runtime, COMMAND_CHECK, NULL, &command);
    if (error == 0)
        error = execute(engine, job, &command, NULL, -1, outcome);
    command_done(&command);
    if (error == 0) {
        hc_classify(outcome, &verdict);
        /* 127 is the loader's word: the parser did not start */
        if (verdict.status == HC_STATUS_RUNTIME_ERROR && verdict.exit_code > 0 && verdict.exit_code != 127)
            job->verdict.status = HC_STATUS_SYNTAX_ERROR;
        end_outcome(engine, outcome);
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
    struct command command = {.runtime = runtime,
                              .argv = {.items = argv, .count = 2},
                              .env = env,
                              .files = scan->files,
                              .file_count = scan->count + 1,
                              .scanner = true};
    struct hc_verdict verdict = {0};
    hc_autofree struct hc_outcome *outcome = calloc(1, sizeof *outcome);
    (void)snprintf(count, sizeof count, "%zu", scan->count);
    int error = outcome == NULL ? -ENOMEM : hc_scan_load_program(scan, engine->programs);
    if (error == 0)
        error = execute(engine, job, &command, NULL, -1, outcome);
    if (error == 0) {
        hc_classify(outcome, &verdict);
        end_outcome(engine, outcome);
    }
    bool good = error == 0 && verdict.status == HC_STATUS_OK && verdict.state == HC_STATE_FINISHED &&
                outcome->out.data != NULL && !outcome->out.truncated;
    hc_scan_report(scan, good ? (const char *)outcome->out.data : NULL, good ? outcome->out.kept_bytes : 0);
    if (outcome != NULL)
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
    struct command command;
    if (acceptance->runtime->asserts.count == 0)
        return HC_NOT_OFFERED;
    int error = build_command(acceptance->job, acceptance->runtime, COMMAND_ASSERTS, NULL, &command);
    if (error == 0)
        error =
            execute(acceptance->engine, acceptance->job, &command, &acceptance->live, dialogue, ret_outcome);
    command_done(&command);
    if (error != 0)
        return error < 0 ? error : -EIO;
    hc_classify(ret_outcome, ret_verdict);
    end_outcome(acceptance->engine, ret_outcome);
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
                       const struct hc_live *live, const struct compiled *compiled)
{
    struct command command;
    int error = build_command(job, runtime, COMMAND_RUN, compiled, &command);
    hc_rfc3339_now(job->cell_created_at);
    if (error == 0)
        error = execute(engine, job, &command, live, job->spec.stdin_fd, &job->outcome);
    command_done(&command);
    if (error != 0)
        return error;
    hc_classify(&job->outcome, &job->verdict);
    if (job->outcome.started == HC_NEVER_STARTED) {
        error = refuse_not_started(job, &job->outcome);
        end_outcome(engine, &job->outcome);
        return error;
    }
    if (job->verdict.state == HC_STATE_FAULT)
        (void)fault(job, job->outcome.failure.error != 0 ? job->outcome.failure.stage : HC_STAGE_CAPTURE,
                    job->outcome.failure.error != 0 ? job->outcome.failure.error : -ECHILD);
    return 0;
}

static int run_all(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime,
                   const struct hc_live *live, const json_t *predicates, const char *out_folder)
{
    struct compiled compiled = {0};
    int error = 0;
    hc_rfc3339_now(job->cell_created_at);
    if (runtime->compile.count > 0) {
        error = compile(engine, job, runtime, live, &compiled);
        if (error == 0 && job->compile.verdict.status != HC_STATUS_OK) {
            compiled_done(&compiled);
            take_compile_verdict(job, runtime);
            return hc_accept(job, predicates, NULL);
        }
    }
    if (error == 0)
        error = run_program(engine, job, runtime, live, &compiled);
    compiled_done(&compiled);
    if (error != 0)
        return error;
    if (job->outcome.cell != NULL && job->outcome.cell->working_folder >= 0)
        error = collect(engine, job, runtime);
    if (error < 0)
        (void)fault(job, HC_STAGE_COLLECT, error);
    error = check_syntax(engine, job, runtime);
    diagnose(job, runtime);
    if (error == 0 && job->outcome.cell != NULL)
        error = finish_run(engine, job, runtime, live, predicates, out_folder);
    if (error == 0 && job->outcome.cell != NULL)
        error = hc_keep_artifacts(job, job->outcome.cell->working_folder);
    end_outcome(engine, &job->outcome);
    hc_rfc3339_now(job->cell_destroyed_at);
    if (job->outcome.failure.error != 0 && job->verdict.state == HC_STATE_FINISHED)
        (void)fault(job, job->outcome.failure.stage, job->outcome.failure.error);
    return error;
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
        uint64_t room = hc_hard_limit_room(rows[i].resource), *value = &job->effective.limits[rows[i].limit];
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
        error = settle_runtime(engine, job, &runtime);
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
        error = run_all(engine, job, runtime, live, predicates, out_folder);
    if (engine->hall != NULL && engine->options.cells_ahead > 0)
        hc_hall_make_ahead(engine->hall, engine->options.cells_ahead);
    if (engine->hall != NULL && engine->options.warm_cells > 0)
        hc_warm_refill(&engine->warm, engine->hall);
    return error < 0 && error != -ENOMEM ? (fault(job, HC_STAGE_CAPTURE, error), 0) : error < 0 ? error : 0;
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
    int error = need_hall(engine, job, runtime);
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
    int error = need_hall(engine, job, NULL);
    if (error == HC_REFUSED)
        *refusal = job->refusal;
    *ret_hall = engine->hall;
    return error;
}
