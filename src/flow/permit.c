#include "flow/permit.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hc_policies_init(struct hc_policies *policies, const char *share)
{
    memset(policies, 0, sizeof *policies);
    policies->built_in = hc_printf("%s/profiles", share);
    return policies->built_in != NULL ? 0 : -ENOMEM;
}

void hc_policies_done(struct hc_policies *policies)
{
    for (size_t i = 0; i < policies->count; i++) {
        free(policies->items[i].asked);
        hc_policy_done(policies->items[i].policy);
    }
    free(policies->built_in);
    memset(policies, 0, sizeof *policies);
}

static int refuse_unknown(const struct hc_policies *policies, const char *name, struct hc_refusal *refusal)
{
    char list[256] = "";
    size_t at = 0;
    const char *folders[] = {HC_POLICY_FOLDER, policies->built_in};
    for (size_t f = 0; f < 2; f++) {
        DIR *folder = opendir(folders[f]);
        for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
            size_t n = strlen(entry->d_name);
            if (n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0 && at + n + 3 < sizeof list)
                at += (size_t)snprintf(list + at, sizeof list - at, "%s%.*s", at > 0 ? ", " : "", (int)n - 5,
                                       entry->d_name);
        }
        if (folder != NULL)
            (void)closedir(folder);
    }
    return hc_refuse(refusal, HC_CAUSE_FIELD, "profile", "--profile %.100s: no such profile; there is: %s",
                     name, list);
}

int hc_policies_get(struct hc_policies *policies, const char *name, const struct hc_policy **ret_policy,
                    struct hc_refusal *refusal)
{
    const char *folders[] = {HC_POLICY_FOLDER, policies->built_in};
    struct hc_problem problem = {0};
    struct hc_policy *policy = NULL;
    for (size_t i = 0; i < policies->count; i++)
        if (strcmp(policies->items[i].asked, name) == 0) {
            *ret_policy = policies->items[i].policy;
            return 0;
        }
    if (policies->count == HC_POLICIES_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "profile", "--profile %.100s: too many profiles at once",
                         name);
    int error = hc_policy_load(name, folders, 2, HC_POLICY_CEILING, &policy, &problem);
    if (error == -ENOENT)
        return refuse_unknown(policies, name, refusal);
    if (error == HC_BAD_INPUT)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "profile", "--profile %.60s: %.160s:%u:%u: %.200s", name,
                         problem.file, problem.line, problem.column, problem.message);
    if (error < 0 && error != -ENOMEM)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "profile", "--profile %.100s: %s", name, strerror(-error));
    char *asked = error == 0 ? strdup(name) : NULL;
    if (asked == NULL) {
        hc_policy_done(policy);
        return -ENOMEM;
    }
    policies->items[policies->count].asked = asked;
    policies->items[policies->count++].policy = policy;
    *ret_policy = policy;
    return 0;
}

int hc_permit_request(struct hc_job *job)
{
    const struct hc_policy *policy = job->policy;
    struct hc_spec *spec = &job->spec;
    if (spec->min_grade > policy->min_grade)
        spec->min_grade = policy->min_grade;
    if (policy->cold && spec->warmth == HC_WARMTH_WARM)
        return hc_refuse(&job->refusal, HC_CAUSE_FIELD, "warm",
                         "--warm: profile %.60s wants a fresh interpreter", policy->name);
    if (policy->cold)
        spec->warmth = HC_WARMTH_COLD;
    spec->deterministic = spec->deterministic || policy->deterministic;
    if (policy->no_files && spec->input_count > 0 && !job->judges)
        return hc_refuse(&job->refusal, HC_CAUSE_FIELD, "file", "--file: profile %.60s takes no input files",
                         policy->name);
    if (spec->code_bytes > policy->source_bytes_max)
        return hc_refuse(&job->refusal, HC_CAUSE_FIELD, "code",
                         "the program has %zu bytes; profile %.60s takes at most %llu", spec->code_bytes,
                         policy->name, (unsigned long long)policy->source_bytes_max);
    return 0;
}

/* ---- reading the program ---- */

static int fill_reader(const struct hc_job *job, const char *path, struct hc_spec *spec)
{
    struct hc_refusal refusal = {0};
    int error = hc_spec_init(spec);
    spec->language = strdup(job->language);
    spec->program_name = strdup("hotcell-facts");
    spec->code = (uint8_t *)hc_read_whole(path, &spec->code_bytes);
    spec->code_given = true;
    spec->warmth = HC_WARMTH_COLD;
    spec->allow_layers = job->spec.allow_layers;
    uint8_t *copy = malloc(job->spec.code_bytes + 1);
    if (error < 0 || spec->language == NULL || spec->program_name == NULL || spec->code == NULL ||
        copy == NULL) {
        free(copy);
        return error < 0 ? error : spec->code == NULL ? -ENOENT : -ENOMEM;
    }
    memcpy(copy, job->spec.code, job->spec.code_bytes);
    error = hc_spec_add_input(spec, job->program_name, false, copy, job->spec.code_bytes, &refusal);
    if (error == 0)
        error = hc_spec_add_arg(spec, job->program_name);
    return error > 0 ? -EINVAL : error;
}

/* Modules that come as input files are the program's own. */
static bool is_own(const struct hc_job *job, const char *module)
{
    size_t n = strcspn(module, ".");
    char name[140];
    (void)snprintf(name, sizeof name, "%.*s.py", (int)(n < 120 ? n : 120), module);
    if (hc_spec_find_input(&job->spec, name) != NULL)
        return true;
    name[strlen(name) - 3] = '\0';
    return hc_spec_find_input(&job->spec, name) != NULL;
}

static void drop_own(struct hc_job *job)
{
    size_t kept = 0;
    for (size_t i = 0; i < job->findings->count; i++)
        if (job->findings->items[i].cause != HC_CAUSE_MODULE || !is_own(job, job->findings->items[i].name))
            job->findings->items[kept++] = job->findings->items[i];
    job->findings->count = kept;
}

static int read_program(struct hc_job *job, const struct hc_runtime *runtime, const char *share,
                        const struct hc_second_cell *second)
{
    struct hc_job *reader = calloc(1, sizeof *reader);
    hc_autofree char *path = hc_printf("%s/facts/%s", share, runtime->facts);
    bool syntax_error = false;
    if (reader == NULL || path == NULL) {
        free(reader);
        return -ENOMEM;
    }
    int error = fill_reader(job, path, &reader->spec);
    if (error == 0)
        error = second->run(second->context, reader);
    const struct hc_captured *out = &reader->outcome.out;
    bool told = error == 0 && reader->verdict.status == HC_STATUS_OK && out->data != NULL && !out->truncated;
    if (told && hc_policy_judge(job->policy, (const char *)out->data, out->kept_bytes, job->findings,
                                &syntax_error) < 0)
        told = false;
    /* A program that does not parse does nothing: its run says so in its own words. One that can't be read is
     * not let through. */
    if (error == 0 && !told && !syntax_error)
        error =
            hc_refuse(&job->refusal, HC_CAUSE_MODULE, "code",
                      "profile %.60s reads programs before they run, and this one could not be read: %.200s",
                      job->policy->name,
                      reader->refusal.message[0] != '\0' ? reader->refusal.message
                                                         : hc_statuses[reader->verdict.status].name);
    hc_job_done(reader);
    free(reader);
    drop_own(job);
    return error;
}

int hc_permit_program(struct hc_job *job, const struct hc_runtime *runtime, const char *share,
                      const struct hc_second_cell *second)
{
    const struct hc_policy *policy = job->policy;
    job->findings = calloc(1, sizeof *job->findings);
    if (job->findings == NULL)
        return -ENOMEM;
    hc_policy_judge_text(policy, job->spec.code, job->spec.code_bytes, job->findings);
    if (hc_policy_reads_programs(policy) && runtime->facts == NULL)
        return hc_refuse(
            &job->refusal, HC_CAUSE_MODULE, "language",
            "profile %.60s has lists of modules and calls, and programs in %s can't be read for them",
            policy->name, job->language);
    int error = hc_policy_reads_programs(policy) ? read_program(job, runtime, share, second) : 0;
    if (error != 0)
        return error;
    const struct hc_finding *refusal = hc_findings_refusal(job->findings);
    if (refusal == NULL)
        return 0;
    (void)hc_refuse(&job->refusal, refusal->cause, "code", "%s: %s", refusal->rule, refusal->message);
    job->refusal.line = refusal->line;
    job->refusal.column = refusal->column;
    return HC_REFUSED;
}
