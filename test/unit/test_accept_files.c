/* Predicates over files and structured output, on real folders; the reader of tables. */
#include "flow/accept.h"
#include "flow/csv.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"

#include "harness.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char folder[64];
static struct hc_cell_handle cell;
static struct hc_job job;

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static void put(const char *name, const char *data, size_t n)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    hc_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    HC_ASSERT(fd >= 0);
    HC_ASSERT_EQ_INT(hc_write_all(fd, data, n), 0);
}
#define PUT(name, text) put(name, text, strlen(text))

static void begin(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/hc-accept-XXXXXX");
    HC_ASSERT(mkdtemp(folder) != NULL);
    memset(&job, 0, sizeof job);
    HC_ASSERT_EQ_INT(hc_spec_init(&job.spec), 0);
    job.verdict.state = HC_STATE_FINISHED;
    job.verdict.status = HC_STATUS_OK;
    job.outcome.started = HC_STARTED;
    job.outcome.out.data = (uint8_t *)strdup("");
}

static void collect(void)
{
    struct hc_collect_rules rules = {.total_bytes = 1 << 20,
                                     .file_bytes = 1 << 20,
                                     .file_count = 100,
                                     .program_name = "main.py",
                                     .spec = &job.spec,
                                     .program_uid = getuid()};
    cell.working_folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    HC_ASSERT(cell.working_folder >= 0);
    job.outcome.cell = &cell;
    HC_ASSERT_EQ_INT(hc_collect(cell.working_folder, &rules, &job.collection), 0);
}

static void end(void)
{
    hc_close_fd(&cell.working_folder);
    hc_job_done(&job);
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int judged(const char *json)
{
    json_t *predicates = json_loads(json, 0, NULL);
    struct hc_refusal refusal = {0};
    HC_ASSERT(predicates != NULL);
    if (hc_predicates_check(predicates, &refusal) != 0)
        hc_test_fail(__FILE__, __LINE__, "%s: %s", json, refusal.message);
    json_decref(job.acceptance.predicates);
    HC_ASSERT_EQ_INT(hc_accept(&job, predicates, NULL), 0);
    json_decref(predicates);
    return job.acceptance.status;
}
static void printed(const char *text)
{
    free(job.outcome.out.data);
    job.outcome.out.data = (uint8_t *)strdup(text);
    job.outcome.out.kept_bytes = job.outcome.out.total_bytes = strlen(text);
}

static void refused(const char *json, const char *message)
{
    json_t *predicates = json_loads(json, 0, NULL);
    struct hc_refusal refusal = {0};
    HC_ASSERT(predicates != NULL);
    HC_ASSERT_EQ_INT(hc_predicates_check(predicates, &refusal), HC_REFUSED);
    if (strstr(refusal.message, message) == NULL)
        hc_test_fail(__FILE__, __LINE__, "%s: '%s' lacks '%s'", json, refusal.message, message);
    json_decref(predicates);
}

HC_TEST(wrong_forms)
{
    refused("[{\"kind\":\"file_exists\"}]", "lacks path");
    refused("[{\"kind\":\"file_exists\",\"path\":1}]", "path is not a text");
    refused("[{\"kind\":\"file_exists\",\"path\":\"/etc/passwd\"}]", "path is absolute");
    refused("[{\"kind\":\"file_exists\",\"path\":\"a/../../b\"}]", "path has a part '..'");
    refused("[{\"kind\":\"file_sha256\",\"path\":\"a\",\"value\":\"ABC\"}]", "SHA-256");
    refused("[{\"kind\":\"file_json\",\"path\":\"a\",\"schema\":{\"$ref\":\"http://x\"}}]", "$ref");
    refused("[{\"kind\":\"stdout_json\"}]", "lacks schema");
    refused("[{\"kind\":\"stdout_json\",\"schema\":{\"x\":1}}]", "x: unknown keyword");
    refused("[{\"kind\":\"file_csv\",\"path\":\"a\",\"columns\":[]}]", "columns");
    refused("[{\"kind\":\"file_csv\",\"path\":\"a\",\"columns\":[1]}]", "columns");
    refused("[{\"kind\":\"file_csv\",\"path\":\"a\",\"rows\":-1}]", "rows");
    refused("[{\"kind\":\"file_csv\",\"path\":\"a\",\"rows\":{}}]", "rows");
    refused("[{\"kind\":\"file_csv\",\"path\":\"a\",\"rows\":{\"min\":3,\"max\":2}}]", "rows");
    refused("[{\"kind\":\"file_csv\",\"path\":\"a\",\"rows\":{\"least\":3}}]", "rows");
    refused("[{\"kind\":\"file_csv\",\"path\":\"a\",\"delimiter\":\"ab\"}]", "delimiter");
}

HC_TEST(files_that_are_there)
{
    char digest[65], json[300];
    begin();
    PUT("a.txt", "hello");
    HC_ASSERT_EQ_INT(hc_sha256_hex("hello", 5, digest), 0);
    char path[200];
    (void)snprintf(path, sizeof path, "%s/link", folder);
    HC_ASSERT_EQ_INT(symlink("a.txt", path), 0);
    (void)snprintf(path, sizeof path, "%s/d", folder);
    HC_ASSERT_EQ_INT(mkdir(path, 0755), 0);
    PUT("d/b.txt", "");
    collect();
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_exists\",\"path\":\"a.txt\"}]"), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_exists\",\"path\":\"d/b.txt\"}]"), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_exists\",\"path\":\"d\"}]"), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_exists\",\"path\":\"link\"}]"), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_exists\",\"path\":\"b.txt\"}]"), HC_REJECTED);
    (void)snprintf(json, sizeof json, "[{\"kind\":\"file_sha256\",\"path\":\"a.txt\",\"value\":\"%s\"}]",
                   digest);
    HC_ASSERT_EQ_INT(judged(json), HC_ACCEPTED);
    job.collection.artifacts[0].sha256[0] = '\0'; /* as of one that was not collected */
    HC_ASSERT_EQ_INT(judged(json), HC_ACCEPTED);
    json[strlen(json) - 4] ^= 1;
    HC_ASSERT_EQ_INT(judged(json), HC_REJECTED);
    job.collection.truncated = true;
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_exists\",\"path\":\"b.txt\"}]"), HC_ACCEPT_ERROR);
    end();
}

HC_TEST(json)
{
    begin();
    PUT("a.json", "{\"n\": 3}");
    PUT("twice.json", "{\"n\": 3, \"n\": 4}");
    PUT("nan.json", "NaN");
    PUT("big.json", "123456789012345678901234567890");
    collect();
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_json\",\"path\":\"a.json\"}]"), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(
        judged("[{\"kind\":\"file_json\",\"path\":\"a.json\",\"schema\":{\"required\":[\"n\"]}}]"),
        HC_ACCEPTED);
    HC_ASSERT_EQ_INT(
        judged("[{\"kind\":\"file_json\",\"path\":\"a.json\",\"schema\":{\"required\":[\"m\"]}}]"),
        HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_json\",\"path\":\"twice.json\"}]"), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_json\",\"path\":\"nan.json\"}]"), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_json\",\"path\":\"big.json\"}]"), HC_ACCEPT_ERROR);
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"file_json\",\"path\":\"none.json\"}]"), HC_REJECTED);
    printed("[1, 2]\n");
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"stdout_json\",\"schema\":{\"items\":{\"type\":\"integer\"}}}]"),
                     HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"stdout_json\",\"schema\":{\"items\":{\"type\":\"string\"}}}]"),
                     HC_REJECTED);
    printed("[1, 2]\nmore");
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"stdout_json\",\"schema\":true}]"), HC_REJECTED);
    printed("");
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"stdout_json\",\"schema\":true}]"), HC_REJECTED);
    job.outcome.out.truncated = true;
    HC_ASSERT_EQ_INT(judged("[{\"kind\":\"stdout_json\",\"schema\":true}]"), HC_ACCEPT_ERROR);
    end();
}

#define TABLE(name, rest) "[{\"kind\":\"file_csv\",\"path\":\"" name "\"" rest "}]"

HC_TEST(tables)
{
    begin();
    PUT("a.csv", "\xef\xbb\xbfname,\"the \"\"n\"\"\"\r\n\"x,\ny\",1\r\n\r\nz,2\r\n");
    PUT("b.tsv", "a\tb\n1\t2");
    PUT("ragged.csv", "a,b\n1\n");
    PUT("broken.csv", "a,\"b\n1,2\n");
    PUT("empty.csv", "");
    PUT("semicolon.csv", "a;b\n1;2\n");
    collect();
    HC_ASSERT_EQ_INT(judged(TABLE("a.csv", ",\"columns\":[\"name\",\"the \\\"n\\\"\"],\"rows\":2")),
                     HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged(TABLE("a.csv", ",\"columns\":[\"name\"]")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged(TABLE("a.csv", ",\"columns\":[\"name\",\"n\",\"m\"]")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged(TABLE("a.csv", ",\"rows\":3")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged(TABLE("a.csv", ",\"rows\":{\"min\":1,\"max\":2}")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged(TABLE("a.csv", ",\"rows\":{\"min\":3}")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged(TABLE("b.tsv", ",\"columns\":[\"a\",\"b\"],\"rows\":1")), HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged(TABLE("b.tsv", ",\"columns\":[\"a\",\"b\"],\"delimiter\":\",\"")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged(TABLE("semicolon.csv", ",\"columns\":[\"a\",\"b\"],\"delimiter\":\";\"")),
                     HC_ACCEPTED);
    HC_ASSERT_EQ_INT(judged(TABLE("ragged.csv", "")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged(TABLE("broken.csv", "")), HC_REJECTED);
    HC_ASSERT_EQ_INT(judged(TABLE("empty.csv", "")), HC_REJECTED);
    end();
}

/* ---- the reader of tables alone ---- */

struct seen {
    uint64_t row, column, fields;
    size_t bytes;
};
static int look(void *context, const struct hc_csv_field *field)
{
    struct seen *seen = context;
    HC_ASSERT_EQ_INT(field->row, seen->row);
    HC_ASSERT_EQ_INT(field->column, seen->column);
    seen->fields++;
    seen->bytes += field->bytes;
    seen->column++;
    if (field->columns != 0) {
        HC_ASSERT_EQ_INT(field->columns, seen->column);
        seen->row++;
        seen->column = 0;
    }
    return 0;
}

HC_TEST(any_table, .timeout_s = 60)
{
    static const char bytes[] = "ab,\"\"\n\r,;\t=";
    uint64_t seed = 3;
    for (int round = 0; round < 100000; round++) {
        char data[48];
        size_t n = hc_test_random(&seed) % sizeof data;
        for (size_t i = 0; i < n; i++)
            data[i] = bytes[hc_test_random(&seed) % (sizeof bytes - 1)];
        struct seen seen = {0};
        uint64_t line = 0;
        char *exact = malloc(n > 0 ? n : 1); /* so that a sanitizer sees a byte too many */
        HC_ASSERT(exact != NULL);
        memcpy(exact, data, n);
        int outcome = hc_csv_walk(exact, n, ',', look, &seen, &line);
        HC_ASSERT(outcome == 0 || outcome == HC_CSV_BROKEN);
        HC_ASSERT(seen.bytes <= n && line <= n + 1);
        HC_ASSERT(outcome != 0 || seen.column == 0);
        free(exact);
    }
}
