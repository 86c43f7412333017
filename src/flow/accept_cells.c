/* Predicates that run something: test code with the program, or a program of their own over what the run
 * left. Both in a second cell, after the run is dead; neither tests nor reference answers were ever in the
 * first. */
#include "flow/accept_cells.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "flow/accept_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define ANNOUNCEMENT "body returned\n"
#define CODE_MAX     (1u << 20)

const char *hc_check_asserts(const json_t *predicate, char room[256])
{
    (void)room;
    const json_t *code = json_object_get(predicate, "code");
    return !json_is_string(code)                 ? "code must be a text"
           : json_string_length(code) == 0       ? "code is empty"
           : json_string_length(code) > CODE_MAX ? "code has more than 1M"
                                                 : NULL;
}

const char *hc_check_checker(const json_t *predicate, char room[256])
{
    const json_t *language = json_object_get(predicate, "language");
    if (language != NULL && (!json_is_string(language) || json_string_length(language) == 0))
        return "language must be a name";
    return hc_check_asserts(predicate, room);
}

static __attribute__((format(printf, 2, 3))) void say(struct hc_answer *answer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(answer->got, sizeof answer->got, format, args);
    va_end(args);
}

/* The same limits, files and grants as the run had: what it was allowed its check is allowed. */
static int copy_spec(const struct hc_job *job, struct hc_spec *spec)
{
    const struct hc_spec *from = &job->spec;
    int error = hc_spec_init(spec);
    if (error < 0)
        return error;
    memcpy(spec->limits, from->limits, sizeof spec->limits);
    memcpy(spec->limit_asked, from->limit_asked, sizeof spec->limit_asked);
    spec->allow_layers = from->allow_layers;
    spec->min_grade = from->min_grade;
    free(spec->profile);
    spec->profile = strdup(from->profile);
    spec->warmth = HC_WARMTH_COLD;
    return spec->profile != NULL ? 0 : -ENOMEM;
}

static int add_copy(struct hc_spec *spec, const char *name, bool folder, const void *data, size_t bytes)
{
    struct hc_refusal refusal = {0};
    hc_autofree uint8_t *copy = malloc(bytes + 1);
    if (copy == NULL)
        return -ENOMEM;
    if (bytes > 0)
        memcpy(copy, data, bytes);
    int error =
        hc_spec_add_input(spec, name, folder, folder ? NULL : hc_take_pointer(&copy), bytes, &refusal);
    return error > 0 ? -EINVAL : error;
}

static int sealed_text(const char *name, const void *data, size_t bytes)
{
    hc_autoclose int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = fd < 0 ? -errno : hc_write_all(fd, data, bytes);
    if (error == 0 && lseek(fd, 0, SEEK_SET) != 0)
        error = -errno;
    return error < 0 ? error : hc_take_fd(&fd);
}

/* Why the second cell gave no answer, as the record says it. */
static void say_ending(struct hc_answer *answer, const struct hc_job *second)
{
    if (second->refusal.message[0] != '\0')
        say(answer, "%.400s", second->refusal.message);
    else
        say(answer, "%s (%s)", hc_statuses[second->verdict.status].name,
            hc_causes[second->verdict.cause].name);
}

/* ---- asserts ---- */

static int fill_asserts(const struct hc_job *job, const json_t *predicate, const char nonce[33],
                        struct hc_spec *spec)
{
    const json_t *code = json_object_get(predicate, "code");
    hc_autofree char *sent = malloc(34 + json_string_length(code));
    int error = copy_spec(job, spec);
    if (sent == NULL || error < 0)
        return error < 0 ? error : -ENOMEM;
    memcpy(sent, nonce, 32);
    sent[32] = '\n';
    memcpy(sent + 33, json_string_value(code), json_string_length(code));
    spec->language = strdup(job->language);
    spec->program_name = strdup("hotcell-asserts");
    spec->code = (uint8_t *)hc_read_whole(job->second->asserts_path, &spec->code_bytes);
    spec->code_given = true;
    if (spec->language == NULL || spec->program_name == NULL)
        return -ENOMEM;
    if (spec->code == NULL)
        return -ENOENT;
    for (size_t i = 0; error == 0 && i < job->spec.input_count; i++) {
        const struct hc_input *input = &job->spec.inputs[i];
        error = add_copy(spec, input->name, input->folder, input->data, input->bytes);
    }
    if (error == 0)
        error = add_copy(spec, job->program_name, false, job->spec.code, job->spec.code_bytes);
    if (error == 0)
        error = hc_spec_add_arg(spec, job->program_name);
    if (error == 0)
        error = spec->stdin_fd = sealed_text("tests", sent, 33 + json_string_length(code));
    spec->stdin_after = ANNOUNCEMENT;
    return error < 0 ? error : 0;
}

static void read_verdict(const struct hc_job *second, const char nonce[33], struct hc_answer *answer)
{
    const char *text = (const char *)second->outcome.out.data;
    const char *line = text != NULL ? strstr(text, nonce) : NULL;
    if (second->outcome.started != HC_STARTED) {
        say_ending(answer, second);
        return;
    }
    answer->ok = HC_NO;
    if (line != NULL && strncmp(line + 32, " pass\n", 6) == 0) {
        answer->ok = HC_YES;
        say(answer, "all assertions held");
    } else if (line != NULL && strncmp(line + 32, " fail ", 6) == 0) {
        hc_show_bytes(answer->got, line + 38, strcspn(line + 38, "\n"));
    } else if (text != NULL && strncmp(text, "ended early", 11) == 0) {
        hc_show_bytes(answer->got, text, strcspn(text, "\n"));
    } else if (second->verdict.status != HC_STATUS_OK && second->verdict.status != HC_STATUS_RUNTIME_ERROR) {
        say_ending(answer, second);
    } else {
        say(answer, "the program ended before its tests were done");
    }
}

void hc_judge_asserts(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    uint8_t random[16];
    char nonce[33];
    if (job->second == NULL || job->second->asserts_path == NULL) {
        say(answer, "tests can't be run with programs in %s", job->language);
        return;
    }
    struct hc_job *second = calloc(1, sizeof *second);
    if (second == NULL || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        free(second);
        return;
    }
    for (size_t i = 0; i < sizeof random; i++)
        (void)snprintf(nonce + 2 * i, 3, "%02x", random[i]);
    int error = fill_asserts(job, predicate, nonce, &second->spec);
    if (error == 0)
        error = job->second->run(job->second->context, second);
    if (error == 0)
        read_verdict(second, nonce, answer);
    else
        say(answer, "%s", strerror(error < 0 ? -error : EINVAL));
    hc_job_done(second);
    free(second);
}

/* ---- checker ---- */

static int add_outputs(const struct hc_job *job, struct hc_spec *spec, const char *program_name)
{
    int error = 0;
    for (size_t i = 0; error == 0 && i < job->collection.count; i++) {
        const struct hc_artifact *artifact = &job->collection.artifacts[i];
        hc_autofree uint8_t *data = NULL;
        size_t bytes = 0;
        if (!artifact->plain || artifact->change == HC_DELETED || strcmp(artifact->path, program_name) == 0)
            continue;
        error = hc_collect_read(job->outcome.cell->working_folder, artifact->path,
                                job->effective.limits[HC_LIMIT_ARTIFACTS], &data, &bytes);
        if (error == 0)
            error = add_copy(spec, artifact->path, false, data, bytes);
    }
    return error;
}

static int fill_checker(const struct hc_job *job, const json_t *predicate, struct hc_spec *spec)
{
    const json_t *code = json_object_get(predicate, "code");
    const char *language = json_string_value(json_object_get(predicate, "language"));
    int error = copy_spec(job, spec);
    if (error < 0)
        return error;
    spec->warmth = HC_WARMTH_DEFAULT;
    spec->language = strdup(language != NULL ? language : "python");
    spec->code_bytes = json_string_length(code);
    spec->code = malloc(spec->code_bytes + 1);
    spec->code_given = true;
    if (spec->language == NULL || spec->code == NULL)
        return -ENOMEM;
    memcpy(spec->code, json_string_value(code), spec->code_bytes + 1);
    spec->stdin_fd = sealed_text("stdout", job->outcome.out.data, job->outcome.out.kept_bytes);
    if (spec->stdin_fd < 0)
        return spec->stdin_fd;
    return job->outcome.cell != NULL && job->outcome.cell->working_folder >= 0
               ? add_outputs(job, spec, job->program_name)
               : 0;
}

void hc_judge_checker(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    if (job->second == NULL)
        return;
    if (job->outcome.out.truncated) {
        say(answer, "the output was cut: a checker would judge a part of it");
        return;
    }
    struct hc_job *second = calloc(1, sizeof *second);
    if (second == NULL)
        return;
    int error = fill_checker(job, predicate, &second->spec);
    if (error == 0)
        error = job->second->run(job->second->context, second);
    const struct hc_captured *out = &second->outcome.out;
    if (error != 0) {
        say(answer, "%s", strerror(error < 0 ? -error : EINVAL));
    } else if (second->verdict.status == HC_STATUS_OK ||
               (second->verdict.status == HC_STATUS_RUNTIME_ERROR && second->verdict.exit_code > 0)) {
        answer->ok = second->verdict.status == HC_STATUS_OK ? HC_YES : HC_NO;
        if (out->data != NULL)
            hc_show_bytes(answer->got, (const char *)out->data, out->kept_bytes);
    } else {
        say_ending(answer, second);
    }
    hc_job_done(second);
    free(second);
}
