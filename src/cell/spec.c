#include "cell/spec.h"

#include "base/cleanup.h"
#include "base/redact.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "cell/plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FLAGS_MAX = 64, FLAG_BYTES_MAX = 256 };

#define ENV_MAX       256
#define ENV_BYTES_MAX 65536
#define REDACT_MAX    64

int hc_refuse(struct hc_refusal *refusal, enum hc_cause cause, const char *field, const char *message, ...)
{
    va_list args;
    char raw[512];
    refusal->cause = cause;
    (void)snprintf(refusal->field, sizeof refusal->field, "%s", field);
    va_start(args, message);
    (void)vsnprintf(raw, sizeof raw, message, args);
    va_end(args);
    /* The message quotes the caller's bytes, perhaps cut in the middle of a character: it has to be text all
     * the same. */
    size_t n =
        hc_escape_visible((const uint8_t *)raw, strlen(raw), refusal->message, sizeof refusal->message - 1);
    refusal->message[n] = '\0';
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
    free(spec->index);
    free_strings(spec->args, spec->arg_count);
    free_strings(spec->flags, spec->flag_count);
    free_strings(spec->env, spec->env_count);
    free_strings(spec->redact, spec->redact_count);
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

int hc_spec_add_redact(struct hc_spec *spec, const char *pattern, struct hc_refusal *refusal)
{
    char reason[128];
    struct hc_redact_rules *trial = hc_redact_rules_new(NULL);
    int outcome = trial != NULL ? hc_redact_add_pattern(trial, "pattern", pattern, reason) : -ENOMEM;
    hc_redact_rules_done(trial);
    if (outcome == HC_REDACT_BAD)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "redact", "--redact %.100s: %s", pattern, reason);
    if (outcome == 0 && spec->redact_count >= REDACT_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "redact", "--redact: more than %d patterns", REDACT_MAX);
    return outcome < 0 ? outcome : append_string(&spec->redact, &spec->redact_count, pattern);
}

int hc_spec_add_flag(struct hc_spec *spec, const char *flag, struct hc_refusal *refusal)
{
    if (flag[0] != '-' || flag[1] == '\0' || strlen(flag) > FLAG_BYTES_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "flag",
                         "--flag %.64s: a flag begins with '-' and has 2 to %d bytes", flag, FLAG_BYTES_MAX);
    if (spec->flag_count >= FLAGS_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "flag", "more than %d flags", FLAGS_MAX);
    return append_string(&spec->flags, &spec->flag_count, flag);
}

/* Variables through which a loader or interpreter of ours could be steered are the program's own business
 * inside its cell: only the form is checked. */
int hc_spec_add_env(struct hc_spec *spec, const char *assignment, struct hc_refusal *refusal)
{
    size_t name = strcspn(assignment, "=");
    size_t bytes = strlen(assignment);
    if (assignment[name] != '=')
        return hc_refuse(refusal, HC_CAUSE_FIELD, "env", "--env %.64s: wanted NAME=VALUE", assignment);
    if (name == 0 || isdigit((unsigned char)assignment[0]))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "env", "--env %.64s: a name begins with a letter or _",
                         assignment);
    for (size_t i = 0; i < name; i++)
        if (!isalnum((unsigned char)assignment[i]) && assignment[i] != '_')
            return hc_refuse(refusal, HC_CAUSE_FIELD, "env",
                             "--env %.64s: a name holds letters, digits and _ only", assignment);
    for (size_t i = 0; i < spec->env_count; i++) {
        if (strncmp(spec->env[i], assignment, name + 1) == 0)
            return hc_refuse(refusal, HC_CAUSE_FIELD, "env", "--env %.*s: given twice", (int)name,
                             assignment);
        bytes += strlen(spec->env[i]);
    }
    if (spec->env_count >= ENV_MAX || bytes > ENV_BYTES_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "env", "--env: more than %d variables or %d bytes in all",
                         ENV_MAX, ENV_BYTES_MAX);
    return append_string(&spec->env, &spec->env_count, assignment);
}

/* FNV-1a. Names come from the caller, who could only slow down himself. */
static size_t slot_of(const struct hc_spec *spec, const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return (size_t)(hash & (spec->index_size - 1));
}

/* The slot that holds `name`, or the empty one where it would go. */
static size_t probe(const struct hc_spec *spec, const char *name)
{
    size_t slot = slot_of(spec, name);
    while (spec->index[slot] != 0 && strcmp(spec->inputs[spec->index[slot] - 1].name, name) != 0)
        slot = (slot + 1) & (spec->index_size - 1);
    return slot;
}

const struct hc_input *hc_spec_find_input(const struct hc_spec *spec, const char *name)
{
    if (spec->index_size == 0)
        return NULL;
    size_t slot = probe(spec, name);
    return spec->index[slot] != 0 ? &spec->inputs[spec->index[slot] - 1] : NULL;
}

/* At most half full. */
static int grow_index(struct hc_spec *spec)
{
    if ((spec->input_count + 1) * 2 <= spec->index_size)
        return 0;
    size_t size = spec->index_size == 0 ? 128 : spec->index_size * 2;
    uint32_t *grown = calloc(size, sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    free(spec->index);
    spec->index = grown;
    spec->index_size = size;
    for (size_t i = 0; i < spec->input_count; i++)
        spec->index[probe(spec, spec->inputs[i].name)] = (uint32_t)i + 1;
    return 0;
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
    int grown = grow_index(spec);
    if (grown < 0) {
        free(input->name);
        return grown;
    }
    size_t slot = probe(spec, name);
    spec->input_count++;
    spec->index[slot] = (uint32_t)spec->input_count;
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
        const struct hc_input *there = hc_spec_find_input(spec, path);
        int error = there == NULL   ? append_input(spec, path, true, NULL, 0)
                    : there->folder ? 0
                                    : hc_refuse(refusal, HC_CAUSE_FIELD, "file",
                                                "--file %.200s: '%.200s' is a file already", name, path);
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
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file: the name in the cell '%.200s' %s", name,
                         reason);
    const struct hc_input *there = hc_spec_find_input(spec, name);
    if (there != NULL && folder && there->folder)
        return 0;
    if (there != NULL)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file",
                         "--file: the name in the cell '%.200s' is given twice", name);
    if (spec->input_bytes + bytes > HC_SPEC_INPUT_BYTES_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file %.200s: input files may have 256M in all",
                         name);
    if (spec->input_count >= 20000)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file %.200s: more than 20000 input files", name);
    int error = add_parents(spec, name, refusal);
    if (error != 0)
        return error;
    return append_input(spec, name, folder, hc_take_pointer(&held), bytes);
}
