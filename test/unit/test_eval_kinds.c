/* The kinds of predicates that data sets use. */
#include "flow/accept.h"

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ending {
    const char *out, *err;
    enum hc_status status;
    bool truncated;
};

static int outcome(const char *expect, struct ending ending)
{
    struct hc_job *job = calloc(1, sizeof *job);
    struct hc_refusal refusal = {0};
    json_t *value = json_loads(expect, JSON_DECODE_ANY, NULL), *predicates = NULL;
    HC_ASSERT(job != NULL && value != NULL);
    if (hc_predicates_of_expect(value, &predicates, &refusal) != 0)
        hc_test_fail(__FILE__, __LINE__, "%s: %s", expect, refusal.message);
    job->outcome.started = HC_STARTED;
    job->verdict.state = HC_STATE_FINISHED;
    job->verdict.status = ending.status;
    job->verdict.exit_code = ending.status == HC_STATUS_OK ? 0 : 1;
    job->outcome.out.data = (uint8_t *)strdup(ending.out);
    job->outcome.out.kept_bytes = strlen(ending.out);
    job->outcome.out.truncated = ending.truncated;
    job->outcome.err.data = (uint8_t *)strdup(ending.err != NULL ? ending.err : "");
    job->outcome.err.kept_bytes = strlen((const char *)job->outcome.err.data);
    HC_ASSERT_EQ_INT(hc_accept(job, predicates, NULL), 0);
    int status = (int)job->acceptance.status;
    json_decref(job->acceptance.predicates);
    free(job->outcome.out.data);
    free(job->outcome.err.data);
    free(job);
    json_decref(predicates);
    json_decref(value);
    return status;
}

static void yes(const char *expect, const char *out)
{
    HC_ASSERT_EQ_INT(outcome(expect, (struct ending){out, NULL, HC_STATUS_OK, false}), HC_ACCEPTED);
}

static void no(const char *expect, const char *out)
{
    HC_ASSERT_EQ_INT(outcome(expect, (struct ending){out, NULL, HC_STATUS_OK, false}), HC_REJECTED);
}

static void refused(const char *expect)
{
    struct hc_refusal refusal = {0};
    json_t *value = json_loads(expect, 0, NULL), *predicates = NULL;
    HC_ASSERT(value != NULL);
    HC_ASSERT_EQ_INT(hc_predicates_of_expect(value, &predicates, &refusal), HC_REFUSED);
    json_decref(value);
}

HC_TEST(not_judged)
{
    HC_ASSERT_EQ_INT(outcome("null", (struct ending){"", NULL, HC_STATUS_OK, false}), HC_NOT_REQUESTED);
    HC_ASSERT_EQ_INT(
        outcome("{\"kind\":\"choice\",\"value\":\"A\"}", (struct ending){"A", NULL, HC_STATUS_OK, false}),
        HC_NOT_REQUESTED);
    HC_ASSERT_EQ_INT(outcome("[{\"kind\":\"exit_zero\"},{\"kind\":\"answer_text\"}]",
                             (struct ending){"A", NULL, HC_STATUS_OK, false}),
                     HC_NOT_REQUESTED);
}

HC_TEST(numbers_get_a_tolerance)
{
    yes("{\"kind\":\"stdout_number\",\"value\":1000}", "x 1000.9\n");
    no("{\"kind\":\"stdout_number\",\"value\":1000}", "x 1001.1\n");
    no("{\"kind\":\"stdout_number\",\"value\":1000,\"abs\":0.5}", "x 1000.9\n");
    yes("{\"kind\":\"stdout_number\",\"value\":0}", "0.0");
}

HC_TEST(trimmed_text)
{
    yes("{\"kind\":\"stdout_trim\",\"value\":\"a b\"}", " a \n b \n");
    no("{\"kind\":\"stdout_trim\",\"value\":\"a b\"}", "ab\n");
    no("{\"kind\":\"stdout_trim\",\"value\":\"a\"}", "a a\n");
    no("{\"kind\":\"stdout_trim\",\"value\":\"a a\"}", "a\n");
    yes("{\"kind\":\"stdout_trim\",\"value\":\"\"}", " \n");
    HC_ASSERT_EQ_INT(
        outcome("{\"kind\":\"stdout_trim\",\"value\":\"a\"}", (struct ending){"a", NULL, HC_STATUS_OK, true}),
        HC_ACCEPT_ERROR);
}

HC_TEST(answers_by_name)
{
    static const char *const both = "{\"kind\":\"answers\",\"value\":[[\"m\",\"3.98\"],[\"s\",\"Yes\"]]}";
    yes(both, "@s[Yes]\n@m[3.99]\n");
    yes(both, "noise\n @m[ 3.98 ] \r\n@s[ Yes ]\n");
    no(both, "@m[4.00]\n@s[Yes]\n");
    no(both, "@m[3.98]\n@s[yes]\n");
    no(both, "@m[3.98]\n");
    no(both, "@mm[3.98]\n@s[Yes]\n");
    no(both, "@m[nan]\n@s[Yes]\n");
    no(both, "@m[\n@s[Yes]\n");
    no(both, "@m[3.98\n@s[Yes]\n");
    yes(both, "@m[3.98], @s[Yes]");
    yes("{\"kind\":\"answers\",\"value\":[[\"l\",\"[1, [2]]\"]]}", "@l[[1, [2]]] @x[]");
    yes("{\"kind\":\"answers\",\"value\":[[\"x\",2]]}", "@x[1]\n@x[2]");
    refused("{\"kind\":\"answers\",\"value\":[]}");
    refused("{\"kind\":\"answers\",\"value\":[[\"x\"]]}");
}

HC_TEST(cells_joined)
{
    static const char *const two = "{\"kind\":\"cells\",\"value\":[\"a b\",\"c\"],\"answer_text\":\"x\"}";
    yes(two, "a\nbc\n");
    no(two, "abcd");
    no(two, "ab");
    no(two, "");
    yes("{\"kind\":\"cells\",\"value\":[]}", "\n");
}

HC_TEST(failures)
{
    static const char *const named = "{\"kind\":\"exception\",\"value\":\"KeyError\"}";
    HC_ASSERT_EQ_INT(
        outcome(named, (struct ending){"", "Trace\nKeyError: 'x'\n", HC_STATUS_RUNTIME_ERROR, false}),
        HC_ACCEPTED);
    HC_ASSERT_EQ_INT(outcome(named, (struct ending){"", "a.b.KeyError\n", HC_STATUS_RUNTIME_ERROR, false}),
                     HC_ACCEPTED);
    HC_ASSERT_EQ_INT(outcome(named, (struct ending){"", "MyKeyError: x", HC_STATUS_RUNTIME_ERROR, false}),
                     HC_REJECTED);
    HC_ASSERT_EQ_INT(
        outcome(named, (struct ending){"", "KeyError: 1\nother", HC_STATUS_RUNTIME_ERROR, false}),
        HC_REJECTED);
    HC_ASSERT_EQ_INT(outcome(named, (struct ending){"", "KeyError: 1", HC_STATUS_OK, false}), HC_REJECTED);
    HC_ASSERT_EQ_INT(outcome(named, (struct ending){"", "", HC_STATUS_RUNTIME_ERROR, false}), HC_REJECTED);
    for (int status = 0; status < HC_STATUS_REFUSED; status++)
        HC_ASSERT_EQ_INT(
            outcome("{\"kind\":\"fails\"}", (struct ending){"", "", (enum hc_status)status, false}),
            status == HC_STATUS_OK ? HC_REJECTED : HC_ACCEPTED);
    HC_ASSERT_EQ_INT(outcome("{\"kind\":\"fails\"}", (struct ending){"", "", HC_STATUS_CANCELLED, false}),
                     HC_REJECTED);
}

HC_TEST(patterns)
{
    yes("{\"kind\":\"stdout_matches\",\"pattern\":\"^4[0-9]$\"}", "x\n42\n");
    no("{\"kind\":\"stdout_matches\",\"pattern\":\"^4$\"}", "x\n42\n");
    yes("{\"kind\":\"stdout_matches\",\"pattern\":\"a{2,3}\"}", "baa");
    refused("{\"kind\":\"stdout_matches\",\"pattern\":\"(\"}");
    refused("{\"kind\":\"stdout_matches\",\"pattern\":\"\"}");
    refused("{\"kind\":\"stdout_matches\",\"pattern\":\"(a)\\\\1\"}");
    refused("{\"kind\":\"stdout_matches\",\"pattern\":\"((a{1,100}){1,100}){1,100}\"}");
    refused("{\"kind\":\"stdout_matches\",\"pattern\":\"a{1,99999999999999999999}\"}");
    refused("{\"kind\":\"stdout_matches\"}");
}

/* The dearest that the bounds let through. */
HC_TEST(patterns_do_not_blow_up, .timeout_s = 60)
{
    char *text = malloc(64 * 1024 + 1);
    HC_ASSERT(text != NULL);
    uint64_t state = 1;
    for (size_t i = 0; i < 64 * 1024; i++)
        text[i] = hc_test_random(&state) & 1 ? 'a' : 'b';
    text[64 * 1024] = '\0';
    HC_ASSERT_EQ_INT(outcome("{\"kind\":\"stdout_matches\",\"pattern\":\"(a|b)*a(a|b){900}c\"}",
                             (struct ending){text, NULL, HC_STATUS_OK, false}),
                     HC_ACCEPT_ERROR);
    free(text);
}
