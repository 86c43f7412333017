#include "flow/request_document.h"

#include "base/base64.h"
#include "base/canonical.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/utsname.h>

/* ---- texts that may hold any bytes ---- */

static json_t *bytes_json(const char *data, size_t n)
{
    if (hc_utf8_valid(data, n))
        return json_stringn(data, n);
    hc_autofree char *text = hc_base64_encode(data, n);
    return text != NULL ? json_pack("{s:s}", "base64", text) : NULL;
}

static json_t *text_json(const char *text)
{
    return text != NULL ? bytes_json(text, strlen(text)) : json_null();
}

static json_t *list_json(char *const *texts, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(list, text_json(texts[i]));
    return list;
}

/* New memory; NULL when it is no such text, or holds a NUL. */
static char *text_of(const json_t *value)
{
    uint8_t *data = NULL;
    size_t n = 0;
    const json_t *base64 = json_object_get(value, "base64");
    if (json_is_string(base64) &&
        hc_base64_decode(json_string_value(base64), json_string_length(base64), &data, &n) == 0) {
        if (strlen((char *)data) == n)
            return (char *)data;
        free(data);
        return NULL;
    }
    const char *text = json_string_value(value);
    return text != NULL && strlen(text) == json_string_length(value) ? strdup(text) : NULL;
}

/* ---- writing ---- */

json_t *hc_request_host(void)
{
    struct utsname name;
    if (uname(&name) != 0)
        memset(&name, 0, sizeof name);
    return json_pack("{s:s, s:s, s:I, s:s}", "kernel", name.release, "machine", name.machine, "cpus",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "program", "hotcell " HC_VERSION);
}

static json_t *inputs_json(const struct hc_spec *spec)
{
    json_t *inputs = json_array();
    for (size_t i = 0; i < spec->input_count; i++) {
        const struct hc_input *input = &spec->inputs[i];
        (void)json_array_append_new(inputs,
                                    json_pack("{s:o, s:b, s:i, s:o}", "name", text_json(input->name),
                                              "folder", input->folder, "mode", (int)input->mode, "sha256",
                                              input->folder ? json_null() : json_string(input->sha256)));
    }
    return inputs;
}

static json_t *limits_json(const struct hc_spec *spec)
{
    json_t *limits = json_object();
    for (int i = 0; i < HC_LIMIT_COUNT; i++)
        if (spec->limit_asked[i])
            (void)json_object_set_new(limits, hc_limits[i].name, json_integer((json_int_t)spec->limits[i]));
    return limits;
}

static json_t *allow_json(const struct hc_spec *spec)
{
    json_t *layers = json_array();
    for (int i = 0; i < HC_LAYER_COUNT; i++)
        if ((spec->allow_layers >> i & 1) != 0)
            (void)json_array_append_new(layers, json_string(hc_layers[i].name));
    return layers;
}

static bool stdin_kept(const struct hc_job *job)
{
    return job->outcome.in.data != NULL && !job->outcome.in.truncated;
}

static json_t *stdin_json(const struct hc_job *job)
{
    const struct hc_captured *in = &job->outcome.in;
    if (job->spec.stdin_fd < 0 && in->data == NULL)
        return json_null();
    return json_pack("{s:o, s:I, s:b}", "sha256", in->data != NULL ? json_string(in->sha256) : json_null(),
                     "bytes", (json_int_t)in->total_bytes, "kept", stdin_kept(job));
}

/* Predicates hold numbers with fractions, which have no place under a digest: they are kept as text. */
static json_t *predicates_json(const json_t *predicates)
{
    hc_autofree char *text =
        predicates != NULL ? json_dumps(predicates, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    return text != NULL ? json_string(text) : json_null();
}

/* Values of variables may be secrets with few possibilities: the digest of the document must not let them be
 * guessed. */
static json_t *nonce_json(const struct hc_spec *spec)
{
    uint8_t random[16];
    char text[33];
    if (spec->env_count == 0 || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return json_null();
    for (size_t i = 0; i < sizeof random; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", random[i]);
    return json_string(text);
}

static const char *const warmths[] = {
    [HC_WARMTH_DEFAULT] = "default", [HC_WARMTH_COLD] = "cold", [HC_WARMTH_WARM] = "warm"};

static json_t *document_of(const struct hc_job *job, const json_t *predicates, json_t *kept)
{
    const struct hc_spec *spec = &job->spec;
    char grade[2] = {(char)('A' + (int)spec->min_grade), '\0'};
    json_t *deterministic =
        spec->deterministic ? json_pack("{s:o}", "seed", text_json(spec->seed)) : json_null();
    /* which of the installed versions was asked for belongs to the request */
    const char *version = spec->language != NULL ? strchr(spec->language, '@') : NULL;
    return json_pack(
        "{s:s, s:o, s:s+, s:{s:o, s:s}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:s, s:o, s:o,"
        " s:o, s:o}",
        "schema", "hotcell.request/1", "nonce", nonce_json(spec), "language", job->language,
        version != NULL ? version : "", "program", "name", text_json(job->program_name), "sha256",
        job->code_sha256, "inputs", inputs_json(spec), "flags", list_json(spec->flags, spec->flag_count),
        "arguments", list_json(spec->args, spec->arg_count), "environment",
        list_json(spec->env, spec->env_count), "stdin", stdin_json(job), "limits", limits_json(spec),
        "profile", text_json(spec->profile), "collect", text_json(spec->collect), "deterministic",
        deterministic, "min_grade", grade, "allow", allow_json(spec), "warmth", warmths[spec->warmth],
        "redact", list_json(spec->redact, spec->redact_count), "predicates", predicates_json(predicates),
        "host", hc_request_host(), "kept", kept);
}

static void add_blob(struct hc_request_blobs *blobs, const char *sha256, const void *data, size_t n)
{
    for (size_t i = 0; i < blobs->count; i++)
        if (strcmp(blobs->blobs[i].sha256, sha256) == 0)
            return;
    struct hc_blob *blob = &blobs->blobs[blobs->count++];
    *blob = (struct hc_blob){.data = data, .bytes = n};
    (void)snprintf(blob->sha256, sizeof blob->sha256, "%s", sha256);
}

static void list_blobs(const struct hc_job *job, struct hc_request_blobs *blobs)
{
    const struct hc_spec *spec = &job->spec;
    add_blob(blobs, job->code_sha256, spec->code, spec->code_bytes);
    for (size_t i = 0; i < spec->input_count; i++)
        if (!spec->inputs[i].folder)
            add_blob(blobs, spec->inputs[i].sha256, spec->inputs[i].data, spec->inputs[i].bytes);
    if (stdin_kept(job))
        add_blob(blobs, job->outcome.in.sha256, job->outcome.in.data, job->outcome.in.kept_bytes);
    for (size_t i = 0; i < job->kept_count; i++)
        if (job->collection.artifacts[job->kept[i].artifact].exported)
            add_blob(blobs, job->collection.artifacts[job->kept[i].artifact].sha256, job->kept[i].data,
                     job->kept[i].bytes);
}

int hc_request_document_make(const struct hc_job *job, const json_t *predicates, struct hc_request_blobs *ret)
{
    struct hc_request_blobs blobs = {0};
    json_t *kept = json_array();
    blobs.blobs = calloc(job->spec.input_count + job->kept_count + 3, sizeof *blobs.blobs);
    if (blobs.blobs == NULL || kept == NULL) {
        json_decref(kept);
        free(blobs.blobs);
        return -ENOMEM;
    }
    list_blobs(job, &blobs);
    for (size_t i = 0; i < blobs.count; i++)
        (void)json_array_append_new(kept, json_string(blobs.blobs[i].sha256));
    json_t *document = document_of(job, predicates, kept);
    blobs.text = document != NULL ? hc_json_canonical(document) : NULL;
    json_decref(document);
    int error = blobs.text == NULL ? -ENOMEM : hc_sha256_hex(blobs.text, strlen(blobs.text), blobs.sha256);
    if (error < 0) {
        hc_request_blobs_done(&blobs);
        return error;
    }
    add_blob(&blobs, blobs.sha256, blobs.text, strlen(blobs.text));
    *ret = blobs;
    return 0;
}

void hc_request_blobs_done(struct hc_request_blobs *blobs)
{
    free(blobs->text);
    free(blobs->blobs);
    *blobs = (struct hc_request_blobs){0};
}

/* ---- reading ---- */

struct source {
    const json_t *document;
    hc_blob_reader *read;
    void *context;
    struct hc_refusal *refusal;
};

static int malformed(const struct source *source, const char *field)
{
    return hc_refuse(source->refusal, HC_CAUSE_FIELD, field,
                     "the document of the request: %s is not what this version of hotcell writes", field);
}

static int take_blob(const struct source *source, const char *field, const json_t *sha256, uint8_t **ret_data,
                     size_t *ret_bytes)
{
    void *data = NULL;
    char digest[65] = "";
    const char *name = json_string_value(sha256);
    if (name == NULL)
        return malformed(source, field);
    int outcome = source->read(source->context, name, &data, ret_bytes);
    if (outcome == HC_STORE_ABSENT)
        return hc_refuse(source->refusal, HC_CAUSE_FIELD, field, "%s: its content (%.12s…) was not kept",
                         field, name);
    if (outcome == 0)
        outcome = hc_sha256_hex(data, *ret_bytes, digest);
    if (outcome == 0 && strcmp(digest, name) != 0) {
        free(data);
        return hc_refuse(source->refusal, HC_CAUSE_FIELD, field,
                         "%s: its content was changed (%.12s… is now %.12s…)", field, name, digest);
    }
    if (outcome == 0)
        *ret_data = data;
    return outcome;
}

static int set_text(const struct source *source, const char *field, const json_t *value, bool null,
                    char **slot)
{
    if (null && json_is_null(value))
        return 0;
    char *text = text_of(value);
    if (text == NULL)
        return malformed(source, field);
    free(*slot);
    *slot = text;
    return 0;
}

static int each_text(const struct source *source, const char *field, struct hc_spec *spec,
                     int (*add)(struct hc_spec *spec, const char *text, struct hc_refusal *refusal))
{
    size_t i;
    json_t *item;
    const json_t *list = json_object_get(source->document, field);
    if (!json_is_array(list))
        return malformed(source, field);
    json_array_foreach(list, i, item)
    {
        hc_autofree char *text = text_of(item);
        int error = text == NULL ? malformed(source, field) : add(spec, text, source->refusal);
        if (error != 0)
            return error;
    }
    return 0;
}

static int add_arg(struct hc_spec *spec, const char *text, struct hc_refusal *refusal)
{
    (void)refusal;
    return hc_spec_add_arg(spec, text);
}

static int add_allow(struct hc_spec *spec, const char *text, struct hc_refusal *refusal)
{
    int layer = hc_layer_by_name(text);
    if (layer < 0 || !hc_layers[layer].removable)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "allow",
                         "allow: there is no layer %.60s that can be absent", text);
    spec->allow_layers |= 1ull << layer;
    return 0;
}

static int take_inputs(const struct source *source, struct hc_spec *spec)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(source->document, "inputs"), i, item)
    {
        hc_autofree char *name = text_of(json_object_get(item, "name"));
        bool folder = json_is_true(json_object_get(item, "folder"));
        uint8_t *data = NULL;
        size_t n = 0;
        int error = name == NULL ? malformed(source, "inputs") : 0;
        if (error == 0 && !folder)
            error = take_blob(source, "inputs", json_object_get(item, "sha256"), &data, &n);
        if (error == 0)
            error = hc_spec_add_input(spec, name, folder, data, n, source->refusal);
        if (error != 0)
            return error;
        spec->inputs[spec->input_count - 1].mode =
            (uint32_t)json_integer_value(json_object_get(item, "mode")) & 0777;
    }
    return 0;
}

/* A file in memory that nobody can change any more. */
static int take_stdin(const struct source *source, struct hc_spec *spec)
{
    const json_t *in = json_object_get(source->document, "stdin");
    hc_autofree uint8_t *data = NULL;
    size_t n = 0;
    if (json_is_null(in))
        return 0;
    if (!json_is_true(json_object_get(in, "kept")))
        return hc_refuse(source->refusal, HC_CAUSE_FIELD, "stdin",
                         "stdin: its content was not kept (more than 64M of it are not)");
    int error = take_blob(source, "stdin", json_object_get(in, "sha256"), &data, &n);
    if (error != 0)
        return error;
    hc_autoclose int fd = memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    error = fd < 0 ? -errno : hc_write_all(fd, data, n);
    if (error == 0 && (lseek(fd, 0, SEEK_SET) != 0 ||
                       fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0))
        error = -errno;
    if (error == 0)
        spec->stdin_fd = hc_take_fd(&fd);
    return error;
}

static int take_limits(const struct source *source, struct hc_spec *spec)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(source->document, "limits"), name, value)
    {
        int limit = hc_limit_by_name(name);
        if (limit < 0 || !json_is_integer(value) || json_integer_value(value) < 1)
            return malformed(source, "limits");
        spec->limits[limit] = (uint64_t)json_integer_value(value);
        spec->limit_asked[limit] = true;
    }
    return 0;
}

static int take_words(const struct source *source, struct hc_spec *spec)
{
    const char *grade = json_string_value(json_object_get(source->document, "min_grade"));
    const char *warmth = json_string_value(json_object_get(source->document, "warmth"));
    const json_t *deterministic = json_object_get(source->document, "deterministic");
    if (grade == NULL || strlen(grade) != 1 || grade[0] < 'A' || grade[0] > 'D')
        return malformed(source, "min_grade");
    spec->min_grade = (enum hc_grade)(grade[0] - 'A');
    size_t i = 0;
    while (i < sizeof warmths / sizeof *warmths && !hc_string_equal(warmth, warmths[i]))
        i++;
    if (i == sizeof warmths / sizeof *warmths)
        return malformed(source, "warmth");
    spec->warmth = (enum hc_warmth)i;
    spec->deterministic = json_is_object(deterministic);
    return spec->deterministic
               ? set_text(source, "deterministic", json_object_get(deterministic, "seed"), true, &spec->seed)
               : 0;
}

static int take_predicates(const struct source *source, json_t **ret_predicates)
{
    const json_t *text = json_object_get(source->document, "predicates");
    *ret_predicates = NULL;
    if (json_is_null(text))
        return 0;
    if (json_is_string(text))
        *ret_predicates = json_loads(json_string_value(text), JSON_REJECT_DUPLICATES, NULL);
    return json_is_array(*ret_predicates) ? 0 : malformed(source, "predicates");
}

static const char *const known[] = {"schema",    "nonce",       "language", "program",    "inputs",
                                    "arguments", "stdin",       "limits",   "profile",    "collect",
                                    "allow",     "environment", "warmth",   "redact",     "deterministic",
                                    "min_grade", "host",        "kept",     "predicates", "flags"};

static int check_names(const struct source *source)
{
    const char *name;
    json_t *value;
    if (!hc_string_equal(json_string_value(json_object_get(source->document, "schema")), "hotcell.request/1"))
        return malformed(source, "schema");
    json_object_foreach((json_t *)source->document, name, value)
    {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i], name) != 0)
            i++;
        if (i == sizeof known / sizeof *known)
            return hc_refuse(source->refusal, HC_CAUSE_FIELD, "request",
                             "the document of the request: this version of hotcell does not know '%.60s'",
                             name);
    }
    return 0;
}

int hc_request_document_read(const json_t *document, hc_blob_reader *read, void *context,
                             struct hc_spec *ret_spec, json_t **ret_predicates, struct hc_refusal *refusal)
{
    const struct source source = {document, read, context, refusal};
    const json_t *program = json_object_get(document, "program");
    struct hc_spec *spec = ret_spec;
    int error = hc_spec_init(spec);
    if (error == 0)
        error = check_names(&source);
    if (error == 0)
        error = set_text(&source, "language", json_object_get(document, "language"), false, &spec->language);
    if (error == 0)
        error = set_text(&source, "program", json_object_get(program, "name"), false, &spec->program_name);
    if (error == 0)
        error =
            take_blob(&source, "program", json_object_get(program, "sha256"), &spec->code, &spec->code_bytes);
    spec->code_given = error == 0;
    if (error == 0)
        error = take_inputs(&source, spec);
    if (error == 0)
        error = each_text(&source, "arguments", spec, add_arg);
    if (error == 0 && json_object_get(document, "flags") != NULL)
        error = each_text(&source, "flags", spec, hc_spec_add_flag);
    if (error == 0)
        error = each_text(&source, "environment", spec, hc_spec_add_env);
    if (error == 0)
        error = each_text(&source, "allow", spec, add_allow);
    if (error == 0)
        error = each_text(&source, "redact", spec, hc_spec_add_redact);
    if (error == 0)
        error = take_stdin(&source, spec);
    if (error == 0)
        error = take_limits(&source, spec);
    if (error == 0)
        error = set_text(&source, "profile", json_object_get(document, "profile"), false, &spec->profile);
    if (error == 0)
        error = set_text(&source, "collect", json_object_get(document, "collect"), true, &spec->collect);
    if (error == 0)
        error = take_words(&source, spec);
    return error == 0 ? take_predicates(&source, ret_predicates) : error;
}
