/* Acceptance: the form of predicates, and what each kind says of outputs, right, wrong and hostile. */
#include "flow/accept.h"
#include "flow/accept_cells.h"

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the form ---- */

static int form(const char *json, struct hc_refusal *refusal)
{
    json_t *predicates = json_loads(json, JSON_DECODE_ANY, NULL);
    HC_ASSERT(predicates != NULL);
    int outcome = hc_predicates_check(predicates, refusal);
    json_decref(predicates);
    return outcome;
}

static void form_ok(const char *json)
{
    struct hc_refusal refusal = {0};
    if (form(json, &refusal) != 0)
        hc_test_fail(__FILE__, __LINE__, "%s: %s", json, refusal.message);
}

static void form_refused(const char *json, const char *message)
{
    struct hc_refusal refusal = {0};
    HC_ASSERT_EQ_INT(form(json, &refusal), HC_REFUSED);
    HC_ASSERT_STREQ(refusal.field, "accept");
    if (strstr(refusal.message, message) == NULL)
        hc_test_fail(__FILE__, __LINE__, "%s: '%s' lacks '%s'", json, refusal.message, message);
}

HC_TEST(good_forms)
{
    form_ok("[{\"kind\":\"exit_zero\"}]");
    form_ok("[{\"kind\":\"stdout_equals\",\"value\":\"\"}]");
    form_ok("[{\"kind\":\"stdout_equals\",\"value\":\"x\",\"trim\":\"none\"},{\"kind\":\"exit_zero\"}]");
    form_ok("[{\"kind\":\"stdout_number\",\"value\":-1.5e3,\"abs\":0,\"rel\":0.1}]");
    form_ok("[{\"kind\":\"stdout_number\",\"value\":\"3.14\"}]"); /* as the YAML reader gives fractions */
}

HC_TEST(bad_forms)
{
    form_refused("{}", "list of at least one");
    form_refused("[]", "list of at least one");
    form_refused("[1]", "must be an object");
    form_refused("[{}]", "unknown kind");
    form_refused("[{\"kind\":1}]", "unknown kind");
    form_refused("[{\"kind\":\"exit_zero\"},{\"kind\":\"stdout\"}]", "predicate 1: unknown kind");
    form_refused("[{\"kind\":\"exit_zero\",\"value\":0}]", "unknown field 'value'");
    form_refused("[{\"kind\":\"stdout_equals\"}]", "lacks value");
    form_refused("[{\"kind\":\"stdout_equals\",\"value\":1}]", "must be a text");
    form_refused("[{\"kind\":\"stdout_equals\",\"value\":\"x\",\"trim\":\"some\"}]", "none, lines or all");
    form_refused("[{\"kind\":\"stdout_equals\",\"value\":\"x\",\"trim\":1}]", "none, lines or all");
    form_refused("[{\"kind\":\"stdout_number\",\"value\":\"x\"}]", "finite number");
    form_refused("[{\"kind\":\"stdout_number\",\"value\":\"nan\"}]", "finite number");
    form_refused("[{\"kind\":\"stdout_number\",\"value\":\"\"}]", "finite number");
    form_refused("[{\"kind\":\"stdout_number\",\"value\":1,\"abs\":-1}]", "not negative");
    form_refused("[{\"kind\":\"stdout_number\",\"value\":1,\"tolerance\":1}]", "unknown field 'tolerance'");
    char many[4000] = "[{\"kind\":\"exit_zero\"}";
    for (int i = 0; i < 100; i++)
        strcat(many, ",{\"kind\":\"exit_zero\"}");
    strcat(many, "]");
    form_refused(many, "more than 100");
}

HC_TEST(forms_of_programs)
{
    form_ok("[{\"kind\":\"asserts\",\"code\":\"assert 1\"}]");
    form_ok("[{\"kind\":\"asserts\",\"code\":[\"assert 1\",\"assert 2\"]}]");
    form_ok("[{\"kind\":\"asserts\",\"code\":\"def check(f): pass\",\"entry_point\":\"f\"}]");
    form_ok("[{\"kind\":\"asserts\",\"code\":\"def check(f): pass\\ncheck(f)\"}]");
    form_ok("[{\"kind\":\"checker\",\"code\":\"x\",\"language\":\"c\",\"wall\":\"5s\"}]");
    form_refused("[{\"kind\":\"asserts\"}]", "lacks code");
    form_refused("[{\"kind\":\"asserts\",\"code\":\" \\n\"}]", "not empty");
    form_refused("[{\"kind\":\"asserts\",\"code\":[]}]", "not empty");
    form_refused("[{\"kind\":\"asserts\",\"code\":[1]}]", "list of texts");
    form_refused("[{\"kind\":\"asserts\",\"code\":\"x\",\"language\":\"c\"}]", "unknown field 'language'");
    form_refused("[{\"kind\":\"asserts\",\"code\":\"x\",\"entry_point\":\"f()\"}]", "name of a function");
    form_refused("[{\"kind\":\"asserts\",\"code\":\"def check(f): pass\"}]", "never calls it");
    form_refused("[{\"kind\":\"checker\"}]", "lacks code");
    form_refused("[{\"kind\":\"checker\",\"code\":\"\"}]", "not empty");
    form_refused("[{\"kind\":\"checker\",\"code\":\"x\",\"language\":1}]", "language");
    form_refused("[{\"kind\":\"checker\",\"code\":\"x\",\"wall\":\"1h\"}]", "wall");
    form_refused("[{\"kind\":\"checker\",\"code\":\"x\",\"wall\":5}]", "wall");
}

/* ---- the dialogue of asserts ---- */

static int said(const char *output, size_t n)
{
    struct hc_answer answer = {.ok = HC_CANNOT_TELL};
    hc_asserts_verdict((const uint8_t *)output, n, "0123456789abcdef0123456789abcdef", &answer);
    return answer.ok;
}
#define SAID(text) said(text, sizeof text - 1)
#define NONCE      "0123456789abcdef0123456789abcdef"

HC_TEST(only_the_exact_words_are_a_verdict)
{
    HC_ASSERT_EQ_INT(SAID("returned\n" NONCE " held\n"), HC_YES);
    HC_ASSERT_EQ_INT(SAID("returned\n" NONCE " failed\nno"), HC_NO);
    HC_ASSERT_EQ_INT(SAID(""), HC_NO);
    HC_ASSERT_EQ_INT(SAID("returned\n"), HC_NO);
    HC_ASSERT_EQ_INT(SAID("returned\n" NONCE), HC_NO);
    HC_ASSERT_EQ_INT(SAID("returned\n" NONCE " held"), HC_NO);
    HC_ASSERT_EQ_INT(SAID("returned\n" NONCE " held\n\n"), HC_NO);
    HC_ASSERT_EQ_INT(SAID("returned\nreturned\n" NONCE " held\n"), HC_NO);
    HC_ASSERT_EQ_INT(SAID("returned\n00000000000000000000000000000000 held\n"), HC_NO);
    HC_ASSERT_EQ_INT(SAID(NONCE " held\n"), HC_NO);
    HC_ASSERT_EQ_INT(SAID("x"
                          "returned\n" NONCE " held\n"),
                     HC_NO);
    static const char right[] = "returned\n" NONCE " held\n";
    for (size_t i = 0; i < sizeof right - 1; i++) { /* any other byte, and any shorter text */
        char wrong[sizeof right];
        memcpy(wrong, right, sizeof right);
        wrong[i] ^= 1;
        HC_ASSERT_EQ_INT(said(wrong, sizeof right - 1), HC_NO);
        HC_ASSERT_EQ_INT(said(right, i), HC_NO);
    }
}

/* ---- the judgement ---- */

static struct hc_job job_of(enum hc_status status, int exit_code, const char *out, size_t n)
{
    struct hc_job job = {.verdict = {.state = HC_STATE_FINISHED, .status = status, .exit_code = exit_code},
                         .outcome = {.started = HC_STARTED}};
    job.spec.stdin_fd = -1;
    job.outcome.out.data = malloc(n + 1);
    HC_ASSERT(job.outcome.out.data != NULL);
    memcpy(job.outcome.out.data, out, n);
    job.outcome.out.data[n] = '\0';
    job.outcome.out.kept_bytes = job.outcome.out.head_bytes = n;
    job.outcome.out.total_bytes = n;
    return job;
}

static int verdict_of(struct hc_job *job, const char *json)
{
    json_t *predicates = json_loads(json, 0, NULL);
    struct hc_refusal refusal = {0};
    HC_ASSERT(predicates != NULL);
    HC_ASSERT_EQ_INT(hc_predicates_check(predicates, &refusal), 0);
    HC_ASSERT_EQ_INT(hc_accept(job, predicates, NULL), 0);
    HC_ASSERT_EQ_INT(json_array_size(job->acceptance.predicates), json_array_size(predicates));
    int status = job->acceptance.status;
    json_decref(predicates);
    hc_job_done(job);
    return status;
}

static int judged(const char *out, const char *json)
{
    struct hc_job job = job_of(HC_STATUS_OK, 0, out, strlen(out));
    return verdict_of(&job, json);
}

HC_TEST(not_requested)
{
    struct hc_job job = job_of(HC_STATUS_OK, 0, "x", 1);
    HC_ASSERT_EQ_INT(hc_accept(&job, NULL, NULL), 0);
    HC_ASSERT_EQ_INT(job.acceptance.status, HC_NOT_REQUESTED);
    HC_ASSERT(job.acceptance.predicates == NULL);
    hc_job_done(&job);
}

HC_TEST(exit_zero)
{
    struct hc_job good = job_of(HC_STATUS_OK, 0, "", 0), bad = job_of(HC_STATUS_RUNTIME_ERROR, 3, "", 0);
    HC_ASSERT_EQ_INT(verdict_of(&good, "[{\"kind\":\"exit_zero\"}]"), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(verdict_of(&bad, "[{\"kind\":\"exit_zero\"}]"), HC_REJECTED);
}

#define EQUALS(value, trim) "[{\"kind\":\"stdout_equals\",\"value\":\"" value "\",\"trim\":\"" trim "\"}]"

HC_TEST(stdout_equals)
{
    HC_ASSERT_EQ_INT(judged("a\n", EQUALS("a\\n", "none")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("a", EQUALS("a\\n", "none")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("", EQUALS("", "none")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("  a \n\n", EQUALS("a", "all")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("a b", EQUALS("a  b", "all")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("a  \r\nb\n\n\n", EQUALS("a\\nb", "lines")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("a\n\nb\n", EQUALS("a\\nb", "lines")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged(" a\n", EQUALS("a\\n", "lines")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("a\n", EQUALS("a\\nb", "lines")), HC_REJECTED);
    struct hc_job nul = job_of(HC_STATUS_OK, 0, "a\0c", 3);
    HC_ASSERT_EQ_INT(verdict_of(&nul, EQUALS("a", "none")), HC_REJECTED);
}

HC_TEST(what_was_not_kept_cannot_be_compared)
{
    struct hc_job job = job_of(HC_STATUS_OK, 0, "ab", 2);
    job.outcome.out.truncated = true;
    job.outcome.out.total_bytes = 1000;
    HC_ASSERT_EQ_INT(verdict_of(&job, EQUALS("ab", "none")), HC_ACCEPT_ERROR);
}

#define NUMBER(rest) "[{\"kind\":\"stdout_number\"," rest "}]"

HC_TEST(stdout_number)
{
    HC_ASSERT_EQ_INT(judged("18\n", NUMBER("\"value\":18")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("18.0", NUMBER("\"value\":18")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("7\nThe answer is -18.50 dollars.\n \n", NUMBER("\"value\":-18.5")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("1e3", NUMBER("\"value\":1000")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("3.14159", NUMBER("\"value\":3.14,\"abs\":0.01")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("3.16", NUMBER("\"value\":3.14,\"abs\":0.01")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("1001", NUMBER("\"value\":1000,\"rel\":0.001")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("1002", NUMBER("\"value\":1000,\"rel\":0.001")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("-1001", NUMBER("\"value\":-1000,\"rel\":0.001")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("18\nno number here\n", NUMBER("\"value\":18")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("", NUMBER("\"value\":0")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("nan", NUMBER("\"value\":0,\"abs\":1000000")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("inf", NUMBER("\"value\":0,\"rel\":1")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("1e999", NUMBER("\"value\":0,\"abs\":1e300")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("18 of 19", NUMBER("\"value\":19")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("$1,234,567.50", NUMBER("\"value\":1234567.5")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("-1,234 units", NUMBER("\"value\":-1234")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("1,234", NUMBER("\"value\":234")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("1,2", NUMBER("\"value\":2")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("[1,234]", NUMBER("\"value\":234")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("(100,200,300)", NUMBER("\"value\":300")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("0,234", NUMBER("\"value\":234")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("1,2345", NUMBER("\"value\":2345")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("2020-01-03", NUMBER("\"value\":3")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("x-3", NUMBER("\"value\":3")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("x = -3", NUMBER("\"value\":-3")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("$-3", NUMBER("\"value\":-3")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("(-3)", NUMBER("\"value\":-3")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("-.5", NUMBER("\"value\":-0.5")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("1e-3", NUMBER("\"value\":0.001")), HC_ACCEPTED);
}

HC_TEST(all_must_hold)
{
    HC_ASSERT_EQ_INT(judged("5", "[{\"kind\":\"exit_zero\"},{\"kind\":\"stdout_number\",\"value\":5}]"),
                     HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("5", "[{\"kind\":\"stdout_number\",\"value\":6},{\"kind\":\"exit_zero\"}]"),
                     HC_REJECTED);
}

/* Whatever was printed before: what a limit, a rule or the host ended has given no result. */
HC_TEST(ended_by_somebody_else)
{
    for (int status = 0; status < HC_STATUS_COUNT; status++) {
        bool itself =
            status == HC_STATUS_OK || status == HC_STATUS_RUNTIME_ERROR || status == HC_STATUS_SYNTAX_ERROR;
        struct hc_job job = job_of((enum hc_status)status, 0, "5", 1);
        int got = verdict_of(&job, NUMBER("\"value\":5"));
        if (got != (itself ? HC_ACCEPTED : HC_REJECTED))
            hc_test_fail(__FILE__, __LINE__, "%s: %d", hc_statuses[status].name, got);
    }
    struct hc_job fault = job_of(HC_STATUS_FAULT, -1, "5", 1);
    fault.verdict.state = HC_STATE_FAULT;
    fault.outcome.started = HC_NEVER_STARTED;
    HC_ASSERT_EQ_INT(verdict_of(&fault, NUMBER("\"value\":5")), HC_ACCEPT_ERROR);
}

HC_TEST(without_a_second_cell_nothing_is_said)
{
    HC_ASSERT_EQ_INT(judged("5", "[{\"kind\":\"asserts\",\"code\":\"assert 1\"}]"), HC_ACCEPT_ERROR);
    HC_ASSERT_EQ_INT(judged("5", "[{\"kind\":\"checker\",\"code\":\"x\"}]"), HC_ACCEPT_ERROR);
    struct hc_job late = job_of(HC_STATUS_TIMEOUT, -1, "5", 1);
    HC_ASSERT_EQ_INT(verdict_of(&late, "[{\"kind\":\"checker\",\"code\":\"x\"}]"), HC_REJECTED);
}

HC_TEST(any_output)
{
    static const char bytes[] = "0123456789+-.eExXnaNifI, \n\t\xff\xc3\0";
    uint64_t seed = 11;
    for (int round = 0; round < 20000; round++) {
        char out[64];
        size_t n = hc_test_random(&seed) % sizeof out;
        for (size_t i = 0; i < n; i++)
            out[i] = bytes[hc_test_random(&seed) % sizeof bytes];
        struct hc_job job = job_of(HC_STATUS_OK, 0, out, n);
        int got = verdict_of(&job, NUMBER("\"value\":1,\"abs\":1"));
        HC_ASSERT(got == HC_ACCEPTED || got == HC_REJECTED);
        job = job_of(HC_STATUS_OK, 0, out, n);
        got = verdict_of(&job, EQUALS("1", "lines"));
        HC_ASSERT(got == HC_ACCEPTED || got == HC_REJECTED);
    }
}
