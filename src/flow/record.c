#include "flow/job.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "filter_payload.h"
#include "flow/attempts.h"
#include "flow/keep.h"

#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *number_if(bool known, uint64_t value)
{
    return known ? number(value) : json_null();
}

/* A path as text: what is not plain UTF-8 is written \xNN, and a backslash too, so that it can be read back.
 */
static json_t *path_text(const char *path, size_t n)
{
    static const char hex[] = "0123456789ABCDEF";
    char *out = malloc(4 * n + 1);
    size_t at = 0;
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < n;) {
        size_t length = 1;
        unsigned char byte = (unsigned char)path[i];
        if (byte >= 0xc0)
            for (length = 4; length > 1 && (i + length > n || !hc_utf8_valid(path + i, length)); length--)
                continue;
        if (length == 1 && (byte < 32 || byte >= 127 || byte == '\\')) {
            out[at++] = '\\';
            out[at++] = 'x';
            out[at++] = hex[byte >> 4];
            out[at++] = hex[byte & 15];
        } else {
            memcpy(out + at, path + i, length);
            at += length;
        }
        i += length;
    }
    json_t *text = json_stringn(out, at);
    free(out);
    return text;
}

static json_t *base64(const void *data, size_t n)
{
    char *out = malloc(4 * ((n + 2) / 3) + 1);
    if (out == NULL)
        return NULL;
    int length = EVP_EncodeBlock((unsigned char *)out, data, (int)n);
    json_t *text = json_stringn(out, (size_t)length);
    free(out);
    return text;
}

static json_t *redactions_of(const struct hc_redacted *redacted)
{
    json_t *list = json_array();
    for (size_t i = 0; i < redacted->kinds; i++)
        (void)json_array_append_new(list, json_pack("{s:s, s:o}", "kind", redacted->counts[i].kind, "count",
                                                    number(redacted->counts[i].count)));
    return list;
}

/* The same scrubbing for a short text that was taken from the output, which has counted it. */
static json_t *scrubbed(const struct hc_job *job, const char *text)
{
    struct hc_redacted redacted;
    size_t n = strlen(text);
    if (hc_redact(job->redact, (const uint8_t *)text, n, n, &redacted) < 0)
        return NULL;
    json_t *value =
        redacted.data != NULL ? json_stringn((const char *)redacted.data, redacted.bytes) : json_string(text);
    hc_redacted_done(&redacted);
    return value;
}

/* What leaves is scrubbed; the digest and the lengths are those of what the run wrote. */
static json_t *stream(const struct hc_job *job, const struct hc_captured *captured)
{
    if (captured->data == NULL)
        return json_null();
    struct hc_redacted redacted;
    if (hc_redact(job->redact, captured->data, captured->kept_bytes, captured->head_bytes, &redacted) < 0)
        return NULL;
    const uint8_t *data = redacted.data != NULL ? redacted.data : captured->data;
    size_t bytes = redacted.data != NULL ? redacted.bytes : captured->kept_bytes;
    bool text = hc_utf8_valid(data, bytes);
    json_t *body = text ? json_stringn((const char *)data, bytes) : base64(data, bytes);
    json_t *redactions = redactions_of(&redacted);
    hc_redacted_done(&redacted);
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:b, s:o, s:s, s:o}", "text", text ? body : json_null(),
                     "base64", text ? json_null() : body, "encoding", text ? "utf-8" : "base64", "bytes",
                     number(captured->total_bytes), "kept_bytes", number(captured->kept_bytes), "head_bytes",
                     number(captured->head_bytes), "truncated", captured->kept_bytes < captured->total_bytes,
                     "omitted_bytes", number(captured->omitted_bytes), "sha256", captured->sha256,
                     "redactions", redactions);
}

static json_t *signal_name(int signal)
{
    char name[32];
    if (signal == 0)
        return json_null();
    const char *abbreviation = sigabbrev_np(signal);
    if (abbreviation != NULL)
        (void)snprintf(name, sizeof name, "SIG%s", abbreviation);
    else
        (void)snprintf(name, sizeof name, "SIGRTMIN+%d", signal - SIGRTMIN);
    return json_string(name);
}

static json_t *error_of(const struct hc_job *job)
{
    const struct hc_diagnosis *d = &job->diagnosis;
    const struct hc_setup_failure *f = &job->outcome.failure;
    if (job->verdict.state == HC_STATE_REFUSED && job->refusal.cause != HC_CAUSE_NONE)
        return json_pack("{s:n, s:s, s:n, s:o, s:o, s:o, s:o}", "type", "message", job->refusal.message,
                         "file", "line", number_if(job->refusal.line > 0, job->refusal.line), "column",
                         number_if(job->refusal.column > 0, job->refusal.column), "field",
                         text_or_null(job->refusal.field), "detail",
                         job->refusal.cause == HC_CAUSE_HOST || job->refusal.cause == HC_CAUSE_GRADE
                             ? json_string(job->refusal.field)
                             : json_null());
    if (job->verdict.state == HC_STATE_FAULT)
        return json_pack("{s:n, s:s, s:n, s:n, s:n, s:n, s:s}", "type", "message", job->refusal.message,
                         "file", "line", "column", "field", "detail", hc_stage_names[f->stage]);
    if (!d->found || job->verdict.status == HC_STATUS_OK)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:n, s:n, s:n}", "type", text_or_null(d->type), "message",
                     d->message[0] != '\0' ? scrubbed(job, d->message) : json_null(), "file",
                     text_or_null(d->file), "line", number_if(d->line > 0, (uint64_t)d->line), "column",
                     "field", "detail");
}

static json_t *compile_of(const struct hc_job *job)
{
    const struct hc_stage_result *c = &job->compile;
    if (!c->ran)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:s}", "exit_code",
                     number_if(c->verdict.exit_code >= 0, (uint64_t)c->verdict.exit_code), "stdout",
                     stream(job, &c->outcome.out), "stderr", stream(job, &c->outcome.err), "wall_us",
                     number(c->outcome.usage.wall_us), "status", hc_statuses[c->verdict.status].name);
}

static const char *finding_message(const char *rule)
{
    static const struct {
        const char *rule, *message;
    } messages[] = {
        {"symlink", "a symbolic link: not followed, not exported"},
        {"fifo", "a named pipe: not opened, not exported"},
        {"socket", "a socket: not exported"},
        {"device", "a device node: not exported"},
        {"several_names", "the file has several names (hard links)"},
        {"sparse", "the file has holes: its size is larger than what it occupies"},
        {"set_id_bits", "set-user-id or set-group-id bits, dropped on export"},
        {"odd_name", "the name holds control characters or is not UTF-8"},
        {"over_artifact_size", "larger than artifact_size: not read"},
        {"unreadable", "could not be opened"},
    };
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (strcmp(messages[i].rule, rule) == 0)
            return messages[i].message;
    return rule;
}

static json_t *artifact(const struct hc_artifact *a)
{
    json_t *findings = json_array();
    for (unsigned i = 0; i < a->finding_count; i++)
        (void)json_array_append_new(
            findings, json_pack("{s:s, s:n, s:n, s:n, s:s, s:s}", "rule", a->findings[i], "line", "column",
                                "name", "message", finding_message(a->findings[i]), "severity", "warning"));
    bool odd = !hc_utf8_valid(a->path, a->path_bytes);
    for (size_t i = 0; i < a->path_bytes; i++)
        odd = odd || (unsigned char)a->path[i] < 32 || a->path[i] == 127 || a->path[i] == '\\';
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "path", path_text(a->path, a->path_bytes),
                     "path_base64", odd ? base64(a->path, a->path_bytes) : json_null(), "bytes",
                     number(a->bytes), "sha256", text_or_null(a->sha256), "type", text_or_null(a->type),
                     "exported", a->exported, "findings", findings);
}

static void list_files(const struct hc_job *job, json_t **ret_artifacts, json_t **ret_files)
{
    json_t *artifacts = json_array(), *lists[3] = {json_array(), json_array(), json_array()};
    uint64_t omitted = job->collection.omitted;
    for (size_t i = 0; i < job->collection.count; i++) {
        const struct hc_artifact *a = &job->collection.artifacts[i];
        if (json_array_size(lists[a->change]) < HC_COLLECT_LIST_MAX)
            (void)json_array_append_new(lists[a->change], path_text(a->path, a->path_bytes));
        else
            omitted++;
        bool listed =
            a->change != HC_DELETED && (a->collected || (!a->plain && strcmp(a->type, "folder") != 0));
        if (listed && json_array_size(artifacts) < HC_COLLECT_LIST_MAX)
            (void)json_array_append_new(artifacts, artifact(a));
    }
    *ret_artifacts = artifacts;
    *ret_files = json_pack("{s:o, s:o, s:o, s:o}", "created", lists[HC_CREATED], "changed", lists[HC_CHANGED],
                           "deleted", lists[HC_DELETED], "omitted", number(omitted));
}

static void meter(json_t *usage, const char *name, bool known, uint64_t value, const char *mechanism,
                  const char *confidence)
{
    (void)json_object_set_new(usage, name, number_if(known, value));
    if (!known)
        return;
    (void)json_object_set_new(json_object_get(usage, "meters"), name, json_string(mechanism));
    (void)json_object_set_new(json_object_get(usage, "confidence"), name, json_string(confidence));
}

static json_t *usage_of(const struct hc_usage *u)
{
    json_t *usage = json_pack("{s:{}, s:{}}", "meters", "confidence");
    meter(usage, "wall_us", true, u->wall_us, "CLOCK_MONOTONIC, exec to exit", "exact");
    meter(usage, "cpu_us", u->has_cpu, u->cpu_us, u->cpu_meter, "exact");
    meter(usage, "cpu_user_us", u->has_split, u->cpu_user_us, u->cpu_meter, "sampled");
    meter(usage, "cpu_system_us", u->has_split, u->cpu_system_us, u->cpu_meter, "sampled");
    meter(usage, "memory_peak_bytes", u->has_memory_peak, u->memory_peak_bytes, u->memory_meter, "exact");
    meter(usage, "processes_peak", u->processes_peak > 0, u->processes_peak, u->processes_meter, "exact");
    meter(usage, "scratch_bytes", true, u->scratch_bytes, "statfs of the scratch tmpfs", "lower_bound");
    meter(usage, "scratch_inodes", true, u->scratch_inodes, "statfs of the scratch tmpfs", "lower_bound");
    meter(usage, "open_files", false, 0, NULL, NULL);
    meter(usage, "io_bytes", false, 0, NULL, NULL);
    return usage;
}

static bool limit_hit(const struct hc_job *job, enum hc_limit limit)
{
    const struct hc_hits *h = &job->outcome.hits;
    switch (limit) {
    case HC_LIMIT_WALL:
        return h->wall;
    case HC_LIMIT_CPU:
        return h->cpu;
    case HC_LIMIT_MEMORY:
        return h->memory;
    case HC_LIMIT_PROCESSES:
        return h->processes;
    case HC_LIMIT_DISK:
        return h->disk;
    case HC_LIMIT_INODES:
        return h->inodes;
    case HC_LIMIT_FILE_SIZE:
        return job->verdict.signal == SIGXFSZ;
    case HC_LIMIT_OUTPUT:
        return h->output;
    case HC_LIMIT_OUTPUT_TOTAL:
        return h->output_total;
    case HC_LIMIT_ARTIFACTS:
        return job->collection.over_total;
    case HC_LIMIT_ARTIFACT_SIZE:
        return job->collection.over_size;
    case HC_LIMIT_ARTIFACT_COUNT:
        return job->collection.over_count;
    default:
        return false;
    }
}

static uint64_t limit_applied(const struct hc_job *job, enum hc_limit limit)
{
    const struct hc_cell_facts *f = &job->outcome.facts;
    if (limit == HC_LIMIT_MEMORY && f->memory_applied_bytes > 0)
        return f->memory_applied_bytes;
    if (limit == HC_LIMIT_PROCESSES && f->processes_applied > 0)
        return f->processes_applied - 1;
    if (limit == HC_LIMIT_CPUS && f->cpu_period_applied_us > 0)
        return f->cpu_quota_applied_us * 1000 / f->cpu_period_applied_us;
    return job->effective.limits[limit];
}

static json_t *limits_of(const struct hc_job *job)
{
    json_t *limits = json_object();
    for (int i = 0; i < HC_LIMIT_COUNT; i++) {
        enum hc_limit limit = (enum hc_limit)i;
        bool there = job->effective.limits[i] != HC_LIMIT_NONE && hc_limits[i].enforced_by != NULL;
        (void)json_object_set_new(
            limits, hc_limits[i].name,
            json_pack("{s:o, s:o, s:o, s:o}", "requested",
                      number_if(job->spec.limit_asked[i], job->spec.limits[i]), "applied",
                      number_if(there, limit_applied(job, limit)), "enforced_by",
                      there ? json_string(hc_limits[i].enforced_by) : json_null(), "hit",
                      there ? json_boolean(limit_hit(job, limit)) : json_null()));
    }
    return limits;
}

static void word_after(const char *line, unsigned index, char *out, size_t size)
{
    out[0] = '\0';
    for (unsigned i = 0; *line != '\0' && *line != '\n'; i++) {
        size_t n = strcspn(line, " \n");
        if (i == index) {
            n = n < size ? n : size - 1;
            memcpy(out, line, n);
            out[n] = '\0';
            return;
        }
        line += n + (line[n] == ' ' ? 1 : 0);
    }
}

/* "/work rw,nosuid,nodev tmpfs" out of a line of mountinfo */
static json_t *mounts_of(const char *mountinfo)
{
    json_t *mounts = json_array();
    for (const char *line = mountinfo; line != NULL && strchr(line, '\n') != NULL;
         line = strchr(line, '\n') + 1) {
        char point[256], options[256], type[32], text[600];
        const char *tail = strstr(line, " - ");
        word_after(line, 4, point, sizeof point);
        word_after(line, 5, options, sizeof options);
        word_after(tail != NULL ? tail + 3 : "", 0, type, sizeof type);
        (void)snprintf(text, sizeof text, "%s %s %s", point, options, type);
        (void)json_array_append_new(mounts, json_string(text));
    }
    return mounts;
}

static json_t *isolation_of(const struct hc_job *job)
{
    const struct hc_outcome *o = &job->outcome;
    json_t *layers = json_array();
    for (int i = 0; i < HC_LAYER_COUNT; i++)
        (void)json_array_append_new(layers,
                                    json_pack("{s:s, s:s, s:o}", "name", hc_layers[i].name, "state",
                                              hc_layer_state_names[o->layers.layers[i].state], "evidence",
                                              text_or_null(o->layers.layers[i].evidence)));
    bool none = o->layers.layers[HC_LAYER_CAPABILITIES].state == HC_LAYER_APPLIED;
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "tier", "native", "grade",
                     hc_grade_name(o->layers.grade), "attested",
                     o->attested_after_exec ? "after_exec" : "before_exec", "layers", layers, "uid",
                     number(o->host_uid), "gid", number(o->host_gid), "capabilities",
                     none ? json_string("0000000000000000") : json_null(), "mounts",
                     mounts_of(o->mounts != NULL ? o->mounts : ""));
}

static json_t *timing_of(const struct hc_job *job, uint64_t total_us)
{
    const struct hc_times *t = &job->outcome.times;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "queued_us", number(0), "provision_us",
                     number(t->provision_us), "check_us", number(job->check_us), "compile_us",
                     number(job->compile_us), "run_us", number(t->run_us), "collect_us",
                     number(job->collect_us), "accept_us", number(job->accept_us), "teardown_us",
                     number(t->teardown_us), "total_us", number(total_us));
}

/* Names only: values may be secrets. They are kept with the document of the request, which nobody but the
 * store's owner reads. */
static json_t *environment_names(const struct hc_spec *spec)
{
    json_t *names = json_array();
    for (size_t i = 0; i < spec->env_count; i++)
        (void)json_array_append_new(names, json_stringn(spec->env[i], strcspn(spec->env[i], "=")));
    return names;
}

static json_t *stdin_of(const struct hc_captured *in)
{
    return in->data != NULL ? json_pack("{s:o, s:s}", "bytes", number(in->total_bytes), "sha256", in->sha256)
                            : json_null();
}

static json_t *request_of(const struct hc_job *job)
{
    const struct hc_spec *spec = &job->spec;
    json_t *inputs = json_array(), *asked = json_object(), *args = json_array(), *flags = json_array();
    for (size_t i = 0; i < spec->input_count; i++)
        if (!spec->inputs[i].folder)
            (void)json_array_append_new(
                inputs, json_pack("{s:o, s:o, s:s}", "name",
                                  path_text(spec->inputs[i].name, strlen(spec->inputs[i].name)), "bytes",
                                  number(spec->inputs[i].bytes), "sha256", spec->inputs[i].sha256));
    for (int i = 0; i < HC_LIMIT_COUNT; i++)
        if (spec->limit_asked[i])
            (void)json_object_set_new(asked, hc_limits[i].name, number(spec->limits[i]));
    for (size_t i = 0; i < spec->arg_count; i++)
        (void)json_array_append_new(args, path_text(spec->args[i], strlen(spec->args[i])));
    for (size_t i = 0; i < spec->flag_count; i++)
        (void)json_array_append_new(flags, path_text(spec->flags[i], strlen(spec->flags[i])));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "flags", flags, "code_sha256",
                     text_or_null(job->code_sha256), "inputs", inputs, "limits", asked, "profile",
                     path_text(spec->profile, strlen(spec->profile)), "arguments", args, "stdin",
                     stdin_of(&job->outcome.in), "environment", environment_names(spec), "sha256",
                     text_or_null(job->request_sha256));
}

static json_t *acceptance_of(const struct hc_job *job)
{
    static const char *const names[] = {"not_requested", "accepted", "rejected", "error"};
    const struct hc_acceptance *a = &job->acceptance;
    size_t i;
    json_t *row;
    json_array_foreach(a->predicates, i, row)
    {
        const char *got = json_string_value(json_object_get(row, "got"));
        if (got != NULL) /* it quotes the output */
            (void)json_object_set_new(row, "got", scrubbed(job, got));
    }
    return json_pack("{s:s, s:o}", "status", names[a->status], "predicates",
                     a->predicates != NULL ? json_incref(a->predicates) : json_null());
}

static json_t *findings_of(const struct hc_findings *findings)
{
    json_t *list = json_array();
    for (size_t i = 0; findings != NULL && i < findings->count; i++) {
        const struct hc_finding *f = &findings->items[i];
        (void)json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:o, s:s}", "rule", f->rule, "line",
                                                    number_if(f->line > 0, f->line), "column",
                                                    number_if(f->column > 0, f->column), "name",
                                                    path_text(f->name, strlen(f->name)), "message",
                                                    path_text(f->message, strlen(f->message)), "severity",
                                                    f->severity == HC_SEVERITY_REFUSAL ? "error" : "note"));
    }
    return list;
}

static json_t *policy_of(const struct hc_job *job)
{
    const struct hc_policy *policy = job->policy;
    if (policy == NULL)
        return json_null();
    return json_pack("{s:s, s:I, s:s, s:s, s:o}", "profile", policy->name, "version",
                     (json_int_t)policy->version, "sha256", policy->sha256, "risk",
                     hc_risk_names[policy->risk], "findings", findings_of(job->findings));
}

/* What only a run that took place has. */
static int set_run_parts(json_t *record, const struct hc_job *job, uint64_t total_us)
{
    const struct hc_outcome *o = &job->outcome;
    json_t *artifacts, *files, *attempts, *denied;
    list_files(job, &artifacts, &files);
    hc_attempts_split(o, &attempts, &denied);
    json_t *deterministic = json_array();
    for (unsigned i = 0; i < job->fixed_count; i++)
        (void)json_array_append_new(deterministic, json_string(job->fixed[i]));
    json_t *parts = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:{s:s, s:o, s:o}, s:o, s:{s:s, s:i}, s:o, s:{s:s, s:s, s:o, s:b, "
        "s:b},"
        " s:o, s:{s:s, s:o, s:o, s:o}, s:o, s:o}",
        "stdout", stream(job, &o->out), "stderr", stream(job, &o->err), "artifacts", artifacts, "files",
        files, "usage", usage_of(&o->usage), "limits", limits_of(job), "network", "mode", "none", "attempts",
        attempts, "omitted", number(o->calls_omitted), "syscalls_denied", denied, "filter", "sha256",
        hc_filter_payload_sha256, "allowed", (int)HC_FILTER_PAYLOAD_ALLOWED, "isolation", isolation_of(job),
        "cell", "id", job->id, "created_at", job->cell_created_at, "destroyed_at",
        text_or_null(job->cell_destroyed_at), "warm", o->warm, "made_ahead", o->made_ahead, "policy",
        policy_of(job), "runtime", "language", job->language, "version", text_or_null(job->runtime_version),
        "environment_sha256", text_or_null(job->environment_sha256), "deterministic", deterministic, "timing",
        timing_of(job, total_us), "residue",
        json_pack("{s:o, s:o, s:o, s:o}", "processes", number_if(o->has_residue, o->residue.processes),
                  "mounts", number_if(o->has_residue, o->residue.mounts), "cgroups",
                  number_if(o->has_residue, o->residue.cgroups), "files",
                  number_if(o->has_residue, o->residue.files)));
    return parts == NULL ? -1 : json_object_update_new(record, parts);
}

static int set_empty_parts(json_t *record)
{
    static const char *const names[] = {"stdout", "stderr",  "artifacts",       "files",  "usage",
                                        "limits", "network", "syscalls_denied", "filter", "isolation",
                                        "cell",   "policy",  "runtime",         "timing", "residue"};
    int error = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        error |= json_object_set_new(record, names[i], json_null());
    return error;
}

json_t *hc_record_make(const struct hc_job *job)
{
    const struct hc_verdict *v = &job->verdict;
    bool ran = job->outcome.started == HC_STARTED || job->compile.ran;
    json_t *record = json_pack(
        "{s:s, s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:n, s:o, s:o, s:{s:s, s:n, s:n}, s:o, s:n}",
        "schema", "hotcell.run/1", "id", job->id, "created_at", job->created_at, "submitter",
        text_or_null(job->submitter), "state", hc_state_names[v->state], "status",
        hc_statuses[v->status].name, "cause",
        hc_causes[v->cause].name != NULL ? json_string(hc_causes[v->cause].name) : json_null(), "exit_code",
        number_if(v->exit_code >= 0, (uint64_t)v->exit_code), "signal",
        number_if(v->signal > 0, (uint64_t)v->signal), "signal_name", signal_name(v->signal), "error",
        error_of(job), "result", "compile", compile_of(job), "acceptance", acceptance_of(job), "release",
        "status", "not_authorised", "by", "at", "request", request_of(job), "chain");
    if (record == NULL)
        return NULL;
    if ((ran ? set_run_parts(record, job, hc_now_us() - job->began_us) : set_empty_parts(record)) != 0) {
        json_decref(record);
        return NULL;
    }
    if (job->policy != NULL && json_object_set_new(record, "policy", policy_of(job)) != 0) {
        json_decref(record);
        return NULL;
    }
    return record;
}

void hc_job_done(struct hc_job *job)
{
    hc_spec_done(&job->spec);
    hc_outcome_done(&job->outcome);
    hc_outcome_done(&job->compile.outcome);
    hc_collection_done(&job->collection);
    json_decref(job->acceptance.predicates);
    free(job->findings);
    hc_kept_done(job);
    hc_redact_rules_done(job->redact);
}
