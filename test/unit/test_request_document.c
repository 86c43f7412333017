/* A request survives its document whole: a replay is given what the run was given. */
#include "flow/request_document.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "flow/engine.h"
#include "flow/keep.h"

#include "harness.h"

#include <string.h>

/* Blobs of a document, by digest; `missing` is not there, `changed` is not what it was. */
struct shelf {
    const struct hc_request_blobs *blobs;
    const char *missing, *changed;
};

static int read_blob(void *context, const char *sha256, void **ret_data, size_t *ret_bytes)
{
    const struct shelf *shelf = context;
    for (size_t i = 0; i < shelf->blobs->count; i++) {
        const struct hc_blob *blob = &shelf->blobs->blobs[i];
        if (strcmp(blob->sha256, sha256) != 0 || hc_string_equal(sha256, shelf->missing))
            continue;
        char *copy = malloc(blob->bytes + 1);
        HC_ASSERT(copy != NULL);
        memcpy(copy, blob->data, blob->bytes);
        copy[blob->bytes] = '\0';
        if (hc_string_equal(sha256, shelf->changed))
            copy[0] ^= 1;
        *ret_data = copy;
        *ret_bytes = blob->bytes;
        return 0;
    }
    return HC_STORE_ABSENT;
}

static struct hc_job *job(void)
{
    struct hc_job *made = calloc(1, sizeof *made);
    struct hc_refusal refusal;
    HC_ASSERT(made != NULL);
    struct hc_spec *spec = &made->spec;
    HC_ASSERT_EQ_INT(hc_spec_init(spec), 0);
    spec->code = (uint8_t *)strdup("print(1)\n");
    spec->code_bytes = 9;
    spec->code_given = true;
    spec->collect = strdup("*.csv");
    spec->deterministic = true;
    spec->seed = strdup("42");
    spec->min_grade = HC_GRADE_C;
    spec->warmth = HC_WARMTH_COLD;
    spec->limits[HC_LIMIT_WALL] = 1500000;
    spec->limit_asked[HC_LIMIT_WALL] = true;
    spec->allow_layers = 1ull << HC_LAYER_LANDLOCK;
    HC_ASSERT_EQ_INT(hc_spec_add_arg(spec, "\xff raw"), 0);
    HC_ASSERT_EQ_INT(hc_spec_add_arg(spec, ""), 0);
    HC_ASSERT_EQ_INT(hc_spec_add_env(spec, "API_KEY=\x01\xfe", &refusal), 0);
    HC_ASSERT_EQ_INT(hc_spec_add_redact(spec, "sk-[a-z]{8}", &refusal), 0);
    HC_ASSERT_EQ_INT(hc_spec_add_input(spec, "a/b.csv", false, (uint8_t *)strdup("1,2"), 3, &refusal), 0);
    (void)strcpy(made->language, "python");
    (void)strcpy(made->program_name, "main.py");
    HC_ASSERT_EQ_INT(hc_sha256_hex(spec->code, spec->code_bytes, made->code_sha256), 0);
    made->outcome.in =
        (struct hc_captured){.data = (uint8_t *)strdup("in"), .kept_bytes = 2, .total_bytes = 2};
    HC_ASSERT_EQ_INT(hc_sha256_hex("in", 2, made->outcome.in.sha256), 0);
    return made;
}

static void same_strings(char *const *a, size_t a_count, char *const *b, size_t b_count)
{
    HC_ASSERT_EQ_INT(a_count, b_count);
    for (size_t i = 0; i < a_count; i++)
        HC_ASSERT_STREQ(a[i], b[i]);
}

HC_TEST(every_field_comes_back)
{
    struct hc_job *made = job();
    struct hc_request_blobs blobs;
    struct hc_spec again;
    struct hc_refusal refusal = {0};
    const struct hc_spec *spec = &made->spec;
    json_t *predicates = json_pack("[{s:s, s:f}]", "kind", "stdout_number", "value", 0.1), *read = NULL;
    HC_ASSERT_EQ_INT(hc_request_document_make(made, predicates, &blobs), 0);
    HC_ASSERT_EQ_INT(blobs.count, 4); /* program, input, standard input, document */
    json_t *document = json_loads(blobs.text, JSON_REJECT_DUPLICATES, NULL);
    struct shelf shelf = {.blobs = &blobs};
    int outcome = hc_request_document_read(document, read_blob, &shelf, &again, &read, &refusal);
    if (outcome != 0)
        hc_test_fail(__FILE__, __LINE__, "%s", refusal.message);
    HC_ASSERT_STREQ(again.language, "python");
    HC_ASSERT_STREQ(again.program_name, "main.py");
    HC_ASSERT(again.code_bytes == 9 && memcmp(again.code, spec->code, 9) == 0);
    same_strings(again.args, again.arg_count, spec->args, spec->arg_count);
    same_strings(again.env, again.env_count, spec->env, spec->env_count);
    same_strings(again.redact, again.redact_count, spec->redact, spec->redact_count);
    HC_ASSERT_EQ_INT(again.input_count, 2);
    HC_ASSERT(again.inputs[0].folder && strcmp(again.inputs[1].sha256, spec->inputs[1].sha256) == 0);
    HC_ASSERT_EQ_INT(again.inputs[1].mode, spec->inputs[1].mode);
    HC_ASSERT(memcmp(again.limits, spec->limits, sizeof again.limits) == 0);
    HC_ASSERT(memcmp(again.limit_asked, spec->limit_asked, sizeof again.limit_asked) == 0);
    HC_ASSERT_EQ_INT(again.allow_layers, spec->allow_layers);
    HC_ASSERT_EQ_INT(again.min_grade, spec->min_grade);
    HC_ASSERT_EQ_INT(again.warmth, spec->warmth);
    HC_ASSERT_STREQ(again.profile, spec->profile);
    HC_ASSERT_STREQ(again.collect, spec->collect);
    HC_ASSERT(again.deterministic);
    HC_ASSERT_STREQ(again.seed, "42");
    char in[8] = "";
    HC_ASSERT_EQ_INT(pread(again.stdin_fd, in, 8, 0), 2);
    HC_ASSERT_STREQ(in, "in");
    HC_ASSERT(json_equal(read, predicates));
    /* A field that was added to the request has to be added to its document, and to this test. */
    HC_ASSERT_EQ_INT(sizeof(struct hc_spec), 352);
    json_decref(read);
    json_decref(predicates);
    json_decref(document);
    hc_spec_done(&again);
    hc_request_blobs_done(&blobs);
    hc_job_done(made);
    free(made);
}

static int read_changed(struct hc_job *made, const char *name, json_t *value, struct shelf shelf,
                        struct hc_refusal *refusal)
{
    struct hc_request_blobs blobs;
    struct hc_spec again;
    json_t *read = NULL;
    HC_ASSERT_EQ_INT(hc_request_document_make(made, NULL, &blobs), 0);
    json_t *document = json_loads(blobs.text, JSON_REJECT_DUPLICATES, NULL);
    if (name != NULL)
        (void)json_object_set_new(document, name, value);
    shelf.blobs = &blobs;
    int outcome = hc_request_document_read(document, read_blob, &shelf, &again, &read, refusal);
    json_decref(read);
    json_decref(document);
    hc_spec_done(&again);
    hc_request_blobs_done(&blobs);
    return outcome;
}

HC_TEST(what_is_missing_or_unknown_is_refused)
{
    struct hc_job *made = job();
    struct hc_refusal refusal = {0};
    const struct shelf whole = {0};
    HC_ASSERT_EQ_INT(read_changed(made, NULL, NULL, whole, &refusal), 0);
    HC_ASSERT_EQ_INT(read_changed(made, "novelty", json_true(), whole, &refusal), HC_REFUSED);
    HC_ASSERT(strstr(refusal.message, "novelty") != NULL);
    HC_ASSERT_EQ_INT(read_changed(made, "schema", json_string("hotcell.request/2"), whole, &refusal),
                     HC_REFUSED);
    HC_ASSERT_EQ_INT(read_changed(made, "min_grade", json_string("E"), whole, &refusal), HC_REFUSED);
    HC_ASSERT_STREQ(refusal.field, "min_grade");
    HC_ASSERT_EQ_INT(read_changed(made, "limits", json_pack("{s:i}", "wall", -1), whole, &refusal),
                     HC_REFUSED);
    HC_ASSERT_EQ_INT(read_changed(made, "arguments", json_string("x"), whole, &refusal), HC_REFUSED);
    HC_ASSERT_EQ_INT(read_changed(made, "predicates", json_string("{"), whole, &refusal), HC_REFUSED);
    const struct shelf gone = {.missing = made->code_sha256},
                       other = {.changed = made->spec.inputs[1].sha256};
    HC_ASSERT_EQ_INT(read_changed(made, NULL, NULL, gone, &refusal), HC_REFUSED);
    HC_ASSERT_STREQ(refusal.field, "program");
    HC_ASSERT_EQ_INT(read_changed(made, NULL, NULL, other, &refusal), HC_REFUSED);
    HC_ASSERT_STREQ(refusal.field, "inputs");
    hc_job_done(made);
    free(made);
}

/* Two runs with the same secret in a variable have different digests: the secret can't be guessed from one.
 */
HC_TEST(variables_are_salted)
{
    struct hc_job *made = job();
    struct hc_request_blobs a, b;
    HC_ASSERT_EQ_INT(hc_request_document_make(made, NULL, &a), 0);
    HC_ASSERT_EQ_INT(hc_request_document_make(made, NULL, &b), 0);
    HC_ASSERT(strcmp(a.sha256, b.sha256) != 0);
    hc_request_blobs_done(&a);
    hc_request_blobs_done(&b);
    hc_job_done(made);
    free(made);
}
