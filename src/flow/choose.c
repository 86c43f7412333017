#include "flow/engine_inside.h"

#include "base/cleanup.h"
#include "runtime/version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
bool hc_is_compile_output(const struct hc_runtime *runtime, const char *name)
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

int hc_settle_runtime(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime **ret_runtime)
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
        if (strcmp(job->spec.inputs[i].name, name) == 0 ||
            hc_is_compile_output(runtime, job->spec.inputs[i].name))
            return hc_refuse(&job->refusal, HC_CAUSE_FIELD, "file",
                             "--file: the name in the cell '%.200s' is that of the program",
                             job->spec.inputs[i].name);
    *ret_runtime = runtime;
    return 0;
}
