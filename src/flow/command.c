#include "flow/engine_inside.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "flow/deterministic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAP_FACTOR 4 /* heap limit of an interpreter over the memory limit of the cell: never met first */

void hc_command_done(struct hc_command *command)
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

static int append_args(struct hc_command *command, const struct hc_spec *spec)
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

static int list_files(struct hc_command *command, const struct hc_job *job, enum hc_command_kind kind,
                      const struct hc_compiled *compiled)
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
    return kind == HC_COMMAND_RUN ? hc_deterministic_hooks(job, command->runtime, command->files,
                                                           &command->file_count, command->hooks)
                                  : 0;
}

static bool compiled_is_empty(const struct hc_compiled *compiled)
{
    return compiled == NULL || compiled->count == 0;
}

int hc_command_build(struct hc_job *job, const struct hc_runtime *runtime, enum hc_command_kind kind,
                     const struct hc_compiled *compiled, struct hc_command *ret_command)
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
    const struct hc_strings *templates = kind == HC_COMMAND_RUN       ? &runtime->run
                                         : kind == HC_COMMAND_CHECK   ? &runtime->check
                                         : kind == HC_COMMAND_ASSERTS ? &runtime->asserts
                                                                      : &runtime->compile;
    memset(ret_command, 0, sizeof *ret_command);
    ret_command->runtime = runtime;
    ret_command->whole_program = kind == HC_COMMAND_RUN && compiled_is_empty(compiled);
    int error = hc_template_expand_all(templates, &values, &ret_command->argv);
    if (error == 0 && kind == HC_COMMAND_RUN)
        error = hc_deterministic_options(job, runtime, &values, &ret_command->argv);
    if (error == 0)
        error = build_env(job, runtime, &values, &ret_command->env);
    ret_command->dialogue = kind == HC_COMMAND_ASSERTS;
    if (error == 0 && (kind == HC_COMMAND_RUN || kind == HC_COMMAND_ASSERTS))
        error = append_args(ret_command, &job->spec);
    if (error == 0)
        error = list_files(ret_command, job, kind, compiled);
    return error > 0 ? -EINVAL : error;
}
