#include "flow/deterministic.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define HOOK_BYTES_MAX (256u * 1024)

static bool given(const struct hc_spec *spec, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < spec->env_count; i++)
        if (strncmp(spec->env[i], name, n) == 0 && spec->env[i][n] == '=')
            return true;
    return false;
}

static bool holds(const struct hc_job *job, const struct hc_runtime_fix *fix)
{
    for (size_t i = 0; i < fix->env_count; i++)
        if (given(&job->spec, fix->env[i].name))
            return false;
    return job->spec.deterministic;
}

void hc_deterministic_names(struct hc_job *job, const struct hc_runtime *runtime,
                            const char *ret_names[HC_FIXED_NAMES_MAX + 1])
{
    size_t count = 0;
    job->fixed_count = 0;
    for (size_t i = 0; i < runtime->fix_count; i++) {
        const struct hc_runtime_fix *fix = &runtime->fixes[i];
        if (!holds(job, fix))
            continue;
        job->fixed[job->fixed_count++] = fix->fixes;
        for (size_t e = 0; e < fix->env_count && count < HC_FIXED_NAMES_MAX; e++) {
            size_t known = 0;
            while (known < count && strcmp(ret_names[known], fix->env[e].name) != 0)
                known++;
            if (known == count)
                ret_names[count++] = fix->env[e].name;
        }
    }
    ret_names[count] = NULL;
}

const struct hc_runtime_variable *hc_deterministic_variable(const struct hc_runtime *runtime,
                                                            const char *name)
{
    for (size_t i = 0; i < runtime->fix_count; i++)
        for (size_t e = 0; e < runtime->fixes[i].env_count; e++)
            if (strcmp(runtime->fixes[i].env[e].name, name) == 0)
                return &runtime->fixes[i].env[e];
    return NULL;
}

static int insert(struct hc_strings *argv, size_t at, char *word)
{
    char **grown = word != NULL ? reallocarray(argv->items, argv->count + 2, sizeof *grown) : NULL;
    if (grown == NULL) {
        free(word);
        return -ENOMEM;
    }
    argv->items = grown;
    memmove(grown + at + 1, grown + at, (argv->count + 1 - at) * sizeof *grown);
    grown[at] = word;
    argv->count++;
    return 0;
}

int hc_deterministic_options(const struct hc_job *job, const struct hc_runtime *runtime,
                             const struct hc_template_values *values, struct hc_strings *argv)
{
    size_t at = 1;
    int error = 0;
    for (size_t i = 0; i < runtime->fix_count; i++) {
        const struct hc_runtime_fix *fix = &runtime->fixes[i];
        for (size_t o = 0; holds(job, fix) && o < fix->options.count && error == 0; o++) {
            char *word = NULL;
            error = hc_template_expand(fix->options.items[o], values, &word);
            if (error == 0)
                error = insert(argv, at++, word);
        }
    }
    return error;
}

static int read_hook(const struct hc_runtime *runtime, const char *hook, void **ret_data, size_t *ret_bytes)
{
    const char *slash = strrchr(runtime->manifest_path, '/');
    hc_autofree char *path =
        hc_printf("%.*s%s", slash != NULL ? (int)(slash + 1 - runtime->manifest_path) : 0,
                  runtime->manifest_path, hook);
    if (path == NULL)
        return -ENOMEM;
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? -errno : hc_read_all_fd(fd, HOOK_BYTES_MAX, ret_data, ret_bytes);
}

static bool is_there(const struct hc_plan_file *files, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (files[i].hook && strcmp(files[i].name, name) == 0)
            return true;
    return false;
}

int hc_deterministic_hooks(const struct hc_job *job, const struct hc_runtime *runtime,
                           struct hc_plan_file *files, size_t *file_count, void *data[HC_RUNTIME_FIXES_MAX])
{
    for (size_t i = 0; i < runtime->fix_count; i++) {
        const struct hc_runtime_fix *fix = &runtime->fixes[i];
        if (fix->hook == NULL || !holds(job, fix))
            continue;
        const char *slash = strrchr(fix->hook, '/');
        const char *name = slash != NULL ? slash + 1 : fix->hook;
        size_t bytes = 0;
        if (is_there(files, *file_count, name))
            continue;
        int error = read_hook(runtime, fix->hook, &data[i], &bytes);
        if (error < 0)
            return error;
        files[(*file_count)++] =
            (struct hc_plan_file){.name = name, .hook = true, .mode = 0444, .data = data[i], .bytes = bytes};
    }
    return 0;
}
