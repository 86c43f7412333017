#include "cell/spec.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "cell/plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ENV_MAX       256
#define ENV_BYTES_MAX 65536

int hc_refuse(struct hc_refusal *refusal, enum hc_cause cause, const char *field, const char *message, ...)
{
    va_list args;
    refusal->cause = cause;
    (void)snprintf(refusal->field, sizeof refusal->field, "%s", field);
    va_start(args, message);
    (void)vsnprintf(refusal->message, sizeof refusal->message, message, args);
    va_end(args);
    return HC_REFUSED;
}

int hc_spec_init(struct hc_spec *spec)
{
    memset(spec, 0, sizeof *spec);
    spec->stdin_fd = -1;
    spec->min_grade = HC_GRADE_B;
    spec->profile = strdup("standard");
    return spec->profile != NULL ? 0 : -ENOMEM;
}

static void free_strings(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

void hc_spec_done(struct hc_spec *spec)
{
    for (size_t i = 0; i < spec->input_count; i++) {
        free(spec->inputs[i].name);
        free(spec->inputs[i].data);
    }
    free(spec->inputs);
    free_strings(spec->args, spec->arg_count);
    free_strings(spec->env, spec->env_count);
    free(spec->language);
    free(spec->program_name);
    free(spec->code);
    free(spec->profile);
    free(spec->collect);
    free(spec->seed);
    hc_close_fd(&spec->stdin_fd);
    memset(spec, 0, sizeof *spec);
    spec->stdin_fd = -1;
}

static int append_string(char ***strings, size_t *count, const char *string)
{
    char **grown = realloc(*strings, (*count + 1) * sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    *strings = grown;
    grown[*count] = strdup(string);
    if (grown[*count] == NULL)
        return -ENOMEM;
    (*count)++;
    return 0;
}

int hc_spec_add_arg(struct hc_spec *spec, const char *arg)
{
    return append_string(&spec->args, &spec->arg_count, arg);
}

/* Variables through which a loader or interpreter of ours could be steered are the program's own business inside its cell: only
 * the form is checked. */
int hc_spec_add_env(struct hc_spec *spec, const char *assignment, struct hc_refusal *refusal)
{
    size_t name = strcspn(assignment, "=");
    size_t bytes = strlen(assignment);
    if (assignment[name] != '=')
        return hc_refuse(refusal, HC_CAUSE_FIELD, "env", "--env %.64s: wanted NAME=VALUE", assignment);
    if (name == 0 || isdigit((unsigned char)assignment[0]))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "env", "--env %.64s: a name begins with a letter or _", assignment);
    for (size_t i = 0; i < name; i++)
        if (!isalnum((unsigned char)assignment[i]) && assignment[i] != '_')
            return hc_refuse(refusal, HC_CAUSE_FIELD, "env",
                             "--env %.64s: a name holds letters, digits and _ only", assignment);
    for (size_t i = 0; i < spec->env_count; i++) {
        if (strncmp(spec->env[i], assignment, name + 1) == 0)
            return hc_refuse(refusal, HC_CAUSE_FIELD, "env", "--env %.*s: given twice", (int)name, assignment);
        bytes += strlen(spec->env[i]);
    }
    if (spec->env_count >= ENV_MAX || bytes > ENV_BYTES_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "env", "--env: more than %d variables or %d bytes in all", ENV_MAX,
                         ENV_BYTES_MAX);
    return append_string(&spec->env, &spec->env_count, assignment);
}

static const struct hc_input *find_input(const struct hc_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->input_count; i++)
        if (strcmp(spec->inputs[i].name, name) == 0)
            return &spec->inputs[i];
    return NULL;
}

static int append_input(struct hc_spec *spec, const char *name, bool folder, uint8_t *data, size_t bytes)
{
    if (spec->input_count % 64 == 0) {
        struct hc_input *grown = realloc(spec->inputs, (spec->input_count + 64) * sizeof *grown);
        if (grown == NULL)
            return -ENOMEM;
        spec->inputs = grown;
    }
    struct hc_input *input = &spec->inputs[spec->input_count];
    *input = (struct hc_input){.folder = folder, .mode = folder ? 0755 : 0444, .data = data, .bytes = bytes};
    input->name = strdup(name);
    if (input->name == NULL)
        return -ENOMEM;
    int error = folder ? 0 : hc_sha256_hex(data, bytes, input->sha256);
    spec->input_count++;
    spec->input_bytes += bytes;
    return error;
}

static int add_parents(struct hc_spec *spec, const char *name, struct hc_refusal *refusal)
{
    hc_autofree char *path = strdup(name);
    if (path == NULL)
        return -ENOMEM;
    for (char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const struct hc_input *there = find_input(spec, path);
        int error = there == NULL ? append_input(spec, path, true, NULL, 0)
                    : there->folder
                        ? 0
                        : hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file %.200s: '%.200s' is a file already", name, path);
        *slash = '/';
        if (error != 0)
            return error;
    }
    return 0;
}

int hc_spec_add_input(struct hc_spec *spec, const char *name, bool folder, uint8_t *data, size_t bytes,
                      struct hc_refusal *refusal)
{
    hc_autofree uint8_t *held = data;
    const char *reason;
    if (!hc_plan_name_ok(name, &reason))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file: the name in the cell '%.200s' %s", name, reason);
    const struct hc_input *there = find_input(spec, name);
    if (there != NULL && folder && there->folder)
        return 0;
    if (there != NULL)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file: the name in the cell '%.200s' is given twice", name);
    if (spec->input_bytes + bytes > HC_SPEC_INPUT_BYTES_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file %.200s: input files may have 256M in all", name);
    if (spec->input_count >= 20000)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file %.200s: more than 20000 input files", name);
    int error = add_parents(spec, name, refusal);
    if (error != 0)
        return error;
    return append_input(spec, name, folder, hc_take_pointer(&held), bytes);
}
