/* The reader of predicates and those who judge: any list of predicates is refused with a reason or judges any
 * output, twice in the same way, and what a limit has ended is never accepted.
 *
 * Input: predicates in JSON or YAML, a NUL, then standard output of a run. With clang: clang
 * -fsanitize=fuzzer,address,undefined -DHC_FUZZ …, corpus in any folder. Otherwise a plain program:
 * accept_predicates [FILE...]      without files it makes inputs of its own, reproducibly
 */
#include "base/cleanup.h"
#include "base/yaml.h"
#include "flow/accept.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "accept_predicates: %s\n", what);
    abort();
}

static json_t *read_list(const char *text, size_t n)
{
    struct hc_yaml yaml = {0};
    json_t *list = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    if (list != NULL || hc_yaml_read(text, n, &yaml, NULL) != 0)
        return list;
    list = json_incref(yaml.root);
    hc_yaml_done(&yaml);
    return list;
}

/* Each costs a process and up to a second: they have tests of their own. */
static bool has_pattern(const json_t *value)
{
    const char *name;
    json_t *member;
    size_t i;
    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, name, member)
        {
            if (strcmp(name, "pattern") == 0 || has_pattern(member))
                return true;
        }
    }
    json_array_foreach(value, i, member)
    {
        if (has_pattern(member))
            return true;
    }
    return false;
}

static int judge(const json_t *list, const uint8_t *out, size_t n, enum hc_status status)
{
    struct hc_job job = {.verdict = {.state = HC_STATE_FINISHED, .status = status, .exit_code = 0},
                         .outcome = {.started = HC_STARTED}};
    job.spec.stdin_fd = -1;
    for (int i = 0; i < 2; i++) {
        struct hc_captured *stream = i == 0 ? &job.outcome.out : &job.outcome.err;
        stream->data = malloc(n + 1);
        if (stream->data == NULL)
            exit(0);
        memcpy(stream->data, out, n);
        stream->data[n] = '\0';
        stream->kept_bytes = stream->head_bytes = n;
        stream->total_bytes = n;
    }
    must(hc_accept(&job, list, NULL) == 0, "not judged");
    must(json_array_size(job.acceptance.predicates) == json_array_size(list), "a row is missing");
    int verdict = job.acceptance.status;
    hc_job_done(&job);
    return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *end = memchr(data, '\0', n);
    size_t bytes = end != NULL ? (size_t)(end - data) : n, rest = end != NULL ? n - bytes - 1 : 0;
    struct hc_refusal refusal = {0};
    json_t *list = read_list((const char *)data, bytes), *again = NULL;
    if (list == NULL || has_pattern(list)) {
        json_decref(list);
        return 0;
    }
    int outcome = hc_predicates_check(list, &refusal);
    must(outcome == 0 ||
             (outcome == HC_REFUSED && refusal.message[0] != '\0' && strcmp(refusal.field, "accept") == 0),
         "neither taken nor refused with a reason");
    if (outcome == 0) {
        const uint8_t *out = end != NULL ? end + 1 : data;
        int verdict = judge(list, out, rest, HC_STATUS_OK);
        must(verdict == judge(list, out, rest, HC_STATUS_OK), "judged differently the second time");
        must(verdict == HC_ACCEPTED || verdict == HC_REJECTED || verdict == HC_ACCEPT_ERROR, "no verdict");
        const char *kind = json_string_value(json_object_get(json_array_get(list, 0), "kind"));
        if (strcmp(kind, "fails") != 0)
            must(judge(list, out, rest, HC_STATUS_TIMEOUT) == HC_REJECTED, "accepted after its time was up");
    }
    (void)hc_predicates_of_expect(list, &again, &refusal);
    json_decref(again);
    json_decref(list);
    return 0;
}

#ifndef HC_FUZZ
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    return z ^ (z >> 27);
}

static int replay(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return 1;
    size_t n = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    return LLVMFuzzerTestOneInput(data, n);
}

/* Good lists, with bytes changed, taken out and doubled, over outputs of the same making. */
int main(int argc, char **argv)
{
    static const char *const lists[] = {
        "[{\"kind\":\"exit_zero\"}]",
        "[{\"kind\":\"stdout_equals\",\"value\":\"a\\nb\",\"trim\":\"lines\"},{\"kind\":\"stdout_trim\","
        "\"value\":\"a b\"}]",
        "[{\"kind\":\"stdout_number\",\"value\":1234,\"abs\":0.5,\"rel\":\"0.1\"}]",
        "- kind: stdout_number\n  value: '3.5'\n- {kind: cells, value: [a, b]}\n",
        "[{\"kind\":\"answers\",\"value\":[[\"x\",1],[\"y\",\"z\"]]}]",
        "[{\"kind\":\"stdout_json\",\"schema\":{\"$defs\":{\"a\":{\"type\":[\"integer\",\"null\"]}},"
        "\"items\":{\"$ref\":\"#/$defs/a\"},"
        "\"minItems\":1,\"uniqueItems\":true}}]",
        "[{\"kind\":\"stdout_json\",\"schema\":{\"properties\":{\"a\":{\"enum\":[1,\"b\"]}},\"required\":["
        "\"a\"],\"additionalProperties\":false}}]",
        "[{\"kind\":\"file_csv\",\"path\":\"a/"
        "b.csv\",\"columns\":[\"x\"],\"rows\":{\"min\":1,\"max\":9},\"delimiter\":\";\"}]",
        "[{\"kind\":\"exception\",\"value\":\"KeyError\"}]",
        "[{\"kind\":\"fails\"}]",
        "[{\"kind\":\"asserts\",\"code\":[\"assert "
        "f(1)\"],\"entry_point\":\"f\"},{\"kind\":\"checker\",\"code\":\"x\",\"wall\":\"5s\"}]"};
    static const char *const outputs[] = {"1,234\n",     "a\nb \n",       "[1,2,null]", "{\"a\":1}",
                                          "@x[1] @y[z]", "KeyError: 'x'", "",           "2020-01-03"};
    uint64_t seed = 29;
    for (int i = 1; i < argc; i++)
        if (replay(argv[i]) != 0)
            return 1;
    for (int round = 0; argc == 1 && round < 60000; round++) {
        uint8_t input[1024];
        const char *list = lists[next(&seed) % 11], *output = outputs[next(&seed) % 8];
        size_t n = strlen(list) + 1;
        memcpy(input, list, n);
        memcpy(input + n, output, strlen(output));
        n += strlen(output);
        for (uint64_t changes = next(&seed) % 4; changes > 0 && n > 2; changes--) {
            size_t at = next(&seed) % n;
            uint64_t how = next(&seed) % 3;
            if (how == 0)
                input[at] = (uint8_t)next(&seed);
            else if (how == 1)
                memmove(input + at, input + at + 1, --n - at);
            else if (n < sizeof input - 1)
                memmove(input + at + 1, input + at, n++ - at);
        }
        (void)LLVMFuzzerTestOneInput(input, n);
    }
    (void)printf("ok 1 - any predicates judge any output or are refused with a reason\n1..1\n");
    return 0;
}
#endif
