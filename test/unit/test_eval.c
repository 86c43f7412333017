/* Evaluation: lines, ids, items and their requests, the tally, and the text of the progress line. */
#include "eval/ids.h"
#include "eval/item.h"
#include "eval/lines.h"
#include "eval/output.h"
#include "eval/progress.h"
#include "eval/report.h"

#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- lines ---- */

static int file_of(const char *text, size_t n)
{
    int fd = memfd_create("lines", MFD_CLOEXEC);
    HC_ASSERT(fd >= 0);
    HC_ASSERT_EQ_INT(write(fd, text, n), n);
    HC_ASSERT_EQ_INT(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void expect_line(struct hc_lines *lines, const char *text, bool wanted_cut)
{
    const char *line;
    size_t bytes;
    bool cut;
    HC_ASSERT_EQ_INT(hc_lines_next(lines, &line, &bytes, &cut), HC_LINE);
    HC_ASSERT_EQ_INT(bytes, strlen(text));
    HC_ASSERT(memcmp(line, text, bytes) == 0);
    HC_ASSERT_EQ_INT(cut, wanted_cut);
}

HC_TEST(lines_are_found)
{
    struct hc_lines lines;
    const char *line;
    size_t bytes;
    bool cut;
    int fd = file_of("one\n\nthree\r\nfour", 16);
    hc_lines_init(&lines, fd);
    expect_line(&lines, "one", false);
    expect_line(&lines, "", false);
    expect_line(&lines, "three\r", false);
    expect_line(&lines, "four", true);
    HC_ASSERT_EQ_INT(lines.number, 4);
    HC_ASSERT_EQ_INT(lines.consumed_bytes, 16);
    HC_ASSERT_EQ_INT(hc_lines_next(&lines, &line, &bytes, &cut), HC_LINE_END);
    HC_ASSERT_EQ_INT(hc_lines_next(&lines, &line, &bytes, &cut), HC_LINE_END);
    hc_lines_done(&lines);
    (void)close(fd);
}

/* The longest line that is taken, one byte more, and what follows both. */
HC_TEST(long_lines_are_bounded)
{
    struct hc_lines lines;
    const char *line;
    size_t bytes, size = 2 * (size_t)HC_EVAL_LINE_MAX + 16;
    bool cut;
    char *text = malloc(size);
    HC_ASSERT(text != NULL);
    memset(text, 'x', size);
    text[HC_EVAL_LINE_MAX] = '\n';
    text[2 * HC_EVAL_LINE_MAX + 2] = '\n';
    memcpy(text + 2 * HC_EVAL_LINE_MAX + 3, "after\n", 6);
    int fd = file_of(text, 2 * (size_t)HC_EVAL_LINE_MAX + 9);
    hc_lines_init(&lines, fd);
    HC_ASSERT_EQ_INT(hc_lines_next(&lines, &line, &bytes, &cut), HC_LINE);
    HC_ASSERT_EQ_INT(bytes, HC_EVAL_LINE_MAX);
    HC_ASSERT_EQ_INT(hc_lines_next(&lines, &line, &bytes, &cut), HC_LINE_TOO_LONG);
    expect_line(&lines, "after", false);
    HC_ASSERT_EQ_INT(lines.number, 3);
    HC_ASSERT_EQ_INT(lines.consumed_bytes, 2 * (size_t)HC_EVAL_LINE_MAX + 9);
    HC_ASSERT(lines.room <= 4 * (size_t)HC_EVAL_LINE_MAX);
    hc_lines_done(&lines);
    (void)close(fd);
    free(text);
}

/* ---- ids ---- */

HC_TEST(ids_are_remembered)
{
    struct hc_ids ids = {0};
    char id[32];
    HC_ASSERT_EQ_INT(hc_ids_has(&ids, "x", 1), 0);
    for (int i = 0; i < 5000; i++) {
        int n = snprintf(id, sizeof id, "id/%d", i);
        HC_ASSERT_EQ_INT(hc_ids_add(&ids, id, (size_t)n), HC_IDS_ADDED);
    }
    HC_ASSERT_EQ_INT(hc_ids_add(&ids, "id/0", 4), HC_IDS_THERE);
    HC_ASSERT_EQ_INT(hc_ids_has(&ids, "id/4999", 7), HC_IDS_THERE);
    HC_ASSERT_EQ_INT(hc_ids_has(&ids, "id/5000", 7), 0);
    HC_ASSERT_EQ_INT(ids.count, 5000);
    hc_ids_done(&ids);
}

/* ---- items ---- */

static void refused(const char *line, const char *message)
{
    struct hc_eval_item item = {0};
    struct hc_refusal refusal = {0};
    HC_ASSERT_EQ_INT(hc_eval_item_read(line, strlen(line), &item, &refusal), HC_REFUSED);
    if (strstr(refusal.message, message) == NULL)
        hc_test_fail(__FILE__, __LINE__, "%s: '%s' lacks '%s'", line, refusal.message, message);
}

#define HEAD "{\"id\":\"a\",\"language\":\"python\",\"program\":\"x\""

HC_TEST(bad_items_are_told)
{
    refused("", "not JSON");
    refused("[]", "no JSON object");
    refused("{\"id\":\"a\",\"id\":\"b\"}", "not JSON");
    refused("\"\xff\"", "not UTF-8");
    refused("{}", "id is missing");
    refused("{\"id\":\"a\"}", "language is missing");
    refused("{\"id\":\"a\",\"language\":\"x\"}", "program is missing");
    refused("{\"id\":1,\"language\":\"x\",\"program\":\"\"}", "id must be a text");
    refused("{\"id\":\"a\\nb\",\"language\":\"x\",\"program\":\"\"}", "control characters");
    refused("{\"id\":\"a\\u0000b\",\"language\":\"x\",\"program\":\"\"}", "control characters");
    refused(HEAD ",\"code\":\"y\"}", "both given");
    refused(HEAD ",\"bogus\":1}", "unknown field 'bogus'");
    refused(HEAD ",\"stdin\":1}", "stdin must be null");
    refused(HEAD ",\"stdin\":{\"repeat\":\"x\"}}", "{repeat, times}");
    refused(HEAD ",\"stdin\":{\"repeat\":\"xxxxxxxx\",\"times\":100000000}}", "larger than 256M");
    refused(HEAD ",\"files\":{}}", "files must be a list");
    refused(HEAD ",\"files\":[{\"name\":\"x\"}]}", "one of path, text and base64");
    refused(HEAD ",\"files\":[{\"name\":\"x\",\"text\":\"\",\"path\":\"y\"}]}",
            "one of path, text and base64");
    refused(HEAD ",\"files\":[{\"name\":\"x\",\"path\":\"../y\"}]}", "leaves the data set's folder");
    refused(HEAD ",\"files\":[{\"name\":\"x\",\"path\":\"a/../../y\"}]}", "leaves the data set's folder");
    refused(HEAD ",\"files\":[{\"name\":\"x\",\"path\":\"/y\"}]}", "leaves the data set's folder");
    refused(HEAD ",\"limits\":{\"wall\":\"x\"}}", "wall 'x'");
    refused(HEAD ",\"limits\":{\"wall_s\":0}}", "wall_s must be positive");
    refused(HEAD ",\"limits\":{\"wall_s\":\"1s\"}}", "wall_s must be a number");
    refused(HEAD ",\"limits\":{\"time\":1}}", "unknown limit 'time'");
    refused(HEAD ",\"expect\":{\"kind\":\"nothing\"}}", "unknown kind");
    refused(HEAD ",\"expect\":{\"kind\":\"cells\",\"value\":1}}", "list of texts");
}

HC_TEST(deep_items_are_bounded)
{
    char line[4096] = HEAD ",\"note\":";
    size_t n = strlen(line);
    memset(line + n, '[', 2000);
    struct hc_eval_item item = {0};
    struct hc_refusal refusal = {0};
    HC_ASSERT_EQ_INT(hc_eval_item_read(line, n + 2000, &item, &refusal), HC_REFUSED);
    HC_ASSERT(strstr(refusal.message, "deeper") != NULL);
}

static void spec_of(const char *line, struct hc_spec *ret_spec)
{
    struct hc_eval_item item = {0};
    struct hc_refusal refusal = {0};
    struct hc_spec defaults;
    HC_ASSERT_EQ_INT(hc_spec_init(&defaults), 0);
    defaults.limits[HC_LIMIT_WALL] = 7000000;
    defaults.limit_asked[HC_LIMIT_WALL] = true;
    if (hc_eval_item_read(line, strlen(line), &item, &refusal) != 0)
        hc_test_fail(__FILE__, __LINE__, "%s: %s", line, refusal.message);
    int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (hc_eval_item_spec(&item, &defaults, folder, ret_spec, &refusal) != 0)
        hc_test_fail(__FILE__, __LINE__, "%s: %s", line, refusal.message);
    (void)close(folder);
    hc_eval_item_done(&item);
    hc_spec_done(&defaults);
}

HC_TEST(items_become_requests)
{
    struct hc_spec spec;
    char input[32] = "";
    spec_of(HEAD
            ",\"stdin\":{\"repeat\":\"ab\",\"times\":3},\"group\":[1],\"upstream_x\":"
            "123456789012345678901234567890,"
            "\"limits\":{\"cpu_s\":1.5,\"memory_mib\":64,\"processes\":9,\"output_kib\":2,\"disk\":4096,"
            "\"stack\":\"1M\"},"
            "\"files\":[{\"name\":\"d/t\",\"text\":\"\\u0000x\"},{\"name\":\"b\",\"base64\":\"aGVsbG8=\"}]}",
            &spec);
    HC_ASSERT_STREQ(spec.language, "python");
    HC_ASSERT_STREQ((const char *)spec.code, "x");
    HC_ASSERT_EQ_INT(spec.limits[HC_LIMIT_WALL], 7000000);
    HC_ASSERT_EQ_INT(spec.limits[HC_LIMIT_CPU], 1500000);
    HC_ASSERT_EQ_INT(spec.limits[HC_LIMIT_MEMORY], 64 * 1048576);
    HC_ASSERT_EQ_INT(spec.limits[HC_LIMIT_PROCESSES], 9);
    HC_ASSERT_EQ_INT(spec.limits[HC_LIMIT_OUTPUT], 2048);
    HC_ASSERT_EQ_INT(spec.limits[HC_LIMIT_DISK], 4096);
    HC_ASSERT_EQ_INT(spec.limits[HC_LIMIT_STACK], 1048576);
    HC_ASSERT_EQ_INT(spec.input_count, 3);
    HC_ASSERT_STREQ(spec.inputs[1].name, "d/t");
    HC_ASSERT_EQ_INT(spec.inputs[1].bytes, 2);
    HC_ASSERT_EQ_INT(spec.inputs[2].bytes, 5);
    HC_ASSERT(memcmp(spec.inputs[2].data, "hello", 5) == 0);
    HC_ASSERT_EQ_INT(read(spec.stdin_fd, input, sizeof input), 6);
    HC_ASSERT_STREQ(input, "ababab");
    HC_ASSERT(write(spec.stdin_fd, "x", 1) < 0);
    hc_spec_done(&spec);
}

/* A link below the folder that leads out of it. */
HC_TEST(paths_stay_below)
{
    char folder[] = "/tmp/hc-eval-XXXXXX", link[64];
    static const char *const lines[] = {
        HEAD ",\"files\":[{\"name\":\"x\",\"path\":\"link\"}]}",
        HEAD ",\"files\":[{\"name\":\"x\",\"path\":\"absent\"}]}",
        HEAD ",\"files\":[{\"name\":\"x\",\"path\":\".\"}]}",
        HEAD ",\"files\":[{\"name\":\"x\",\"base64\":\"====\"}]}",
        HEAD ",\"files\":[{\"name\":\"x\",\"base64\":\"ab c\"}]}",
        HEAD ",\"files\":[{\"name\":\"../x\",\"text\":\"\"}]}",
    };
    HC_ASSERT(mkdtemp(folder) != NULL);
    (void)snprintf(link, sizeof link, "%s/link", folder);
    HC_ASSERT_EQ_INT(symlink("/etc/passwd", link), 0);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct hc_eval_item item = {0};
        struct hc_refusal refusal = {0};
        struct hc_spec defaults, spec;
        HC_ASSERT_EQ_INT(hc_spec_init(&defaults), 0);
        HC_ASSERT_EQ_INT(hc_eval_item_read(lines[i], strlen(lines[i]), &item, &refusal), 0);
        HC_ASSERT_EQ_INT(hc_eval_item_spec(&item, &defaults, fd, &spec, &refusal), HC_REFUSED);
        hc_spec_done(&spec);
        hc_spec_done(&defaults);
        hc_eval_item_done(&item);
    }
    (void)close(fd);
    (void)unlink(link);
    (void)rmdir(folder);
}

/* ---- the tally ---- */

static void add(struct hc_tally *tally, const char *json, int wanted)
{
    json_t *result = json_loads(json, 0, NULL);
    HC_ASSERT(result != NULL);
    HC_ASSERT_EQ_INT(hc_tally_add(tally, result), wanted);
    json_decref(result);
}

HC_TEST(results_are_counted)
{
    struct hc_tally *tally = calloc(1, sizeof *tally);
    HC_ASSERT(tally != NULL);
    HC_ASSERT_EQ_INT(hc_tally_init(tally), 0);
    add(tally, "{\"id\":\"a\",\"status\":\"ok\",\"accepted\":true,\"wall_us\":10,\"suite\":\"s\"}", 0);
    add(tally,
        "{\"id\":\"b\",\"status\":\"runtime_error\",\"error_type\":\"KeyError\",\"accepted\":false,\"suite\":"
        "\"s\"}",
        0);
    add(tally, "{\"id\":\"c\",\"status\":\"refused\",\"accepted\":null}", 0);
    add(tally, "{\"id\":\"d\",\"status\":\"fault\"}", 0);
    add(tally, "{\"id\":\"e\",\"status\":\"cancelled\"}", 0);
    add(tally, "{\"id\":\"f\",\"status\":\"great\"}", HC_TALLY_NO_RESULT);
    add(tally, "{\"status\":\"ok\"}", HC_TALLY_NO_RESULT);
    HC_ASSERT_EQ_INT(tally->results, 5);
    HC_ASSERT_EQ_INT(hc_tally_attempted(tally), 3);
    HC_ASSERT_EQ_INT(tally->right, 1);
    HC_ASSERT_EQ_INT(tally->wrong, 1);
    HC_ASSERT_EQ_INT(tally->not_judged, 1);
    json_t *report = hc_eval_report(tally);
    HC_ASSERT(report != NULL);
    HC_ASSERT_EQ_INT(json_integer_value(json_object_get(json_object_get(report, "execution"), "ok")), 1);
    json_decref(report);
    hc_tally_done(tally);
    free(tally);
}

HC_TEST(names_are_bounded)
{
    struct hc_tally *tally = calloc(1, sizeof *tally);
    char json[128];
    HC_ASSERT(tally != NULL);
    HC_ASSERT_EQ_INT(hc_tally_init(tally), 0);
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(json, sizeof json,
                       "{\"id\":\"a\",\"status\":\"runtime_error\",\"error_type\":\"E%d\",\"suite\":\"s%d\"}",
                       i, i);
        add(tally, json, 0);
    }
    HC_ASSERT(json_object_size(tally->error_types) <= 1001);
    HC_ASSERT(json_object_size(tally->suites) <= 1001);
    hc_tally_done(tally);
    free(tally);
}

HC_TEST(percentiles_are_near)
{
    struct hc_eval_times *times = calloc(1, sizeof *times);
    HC_ASSERT(times != NULL);
    HC_ASSERT_EQ_INT(hc_eval_times_at(times, 500), 0);
    for (uint64_t us = 1; us <= 100000; us++)
        hc_eval_times_add(times, us);
    for (unsigned permille = 10; permille <= 1000; permille += 10) {
        uint64_t exact = 100 * (uint64_t)permille, got = hc_eval_times_at(times, permille);
        HC_ASSERT(got >= exact - exact / 60 - 1 && got <= exact + exact / 60 + 1);
    }
    hc_eval_times_add(times, UINT64_MAX);
    HC_ASSERT(hc_eval_times_at(times, 1000) > UINT64_MAX / 2);
    free(times);
}

/* ---- results that are there already ---- */

HC_TEST(results_are_resumed)
{
    static const char there[] =
        "{\"id\":\"a\",\"status\":\"ok\"}\n{\"id\":\"b\",\"status\":\"ok\"}\n{\"id\":\"c\",\"st";
    char path[] = "/tmp/hc-results-XXXXXX";
    struct hc_tally *tally = calloc(1, sizeof *tally);
    struct hc_ids done = {0};
    struct hc_refusal refusal = {0};
    int fd = mkstemp(path), out = -1;
    HC_ASSERT(fd >= 0 && tally != NULL && hc_tally_init(tally) == 0);
    HC_ASSERT_EQ_INT(write(fd, there, sizeof there - 1), sizeof there - 1);
    HC_ASSERT_EQ_INT(hc_output_open(path, false, &done, tally, NULL, &out, &refusal), HC_REFUSED);
    HC_ASSERT(strstr(refusal.message, "--resume") != NULL);
    HC_ASSERT_EQ_INT(hc_output_open(path, true, &done, tally, NULL, &out, &refusal), 0);
    HC_ASSERT_EQ_INT(hc_ids_has(&done, "b", 1), HC_IDS_THERE);
    HC_ASSERT_EQ_INT(hc_ids_has(&done, "c", 1), 0);
    HC_ASSERT_EQ_INT(tally->resumed, 2);
    HC_ASSERT_EQ_INT(lseek(fd, 0, SEEK_END), strlen("{\"id\":\"a\",\"status\":\"ok\"}\n") * 2);
    int second = -1;
    HC_ASSERT_EQ_INT(hc_output_open(path, true, &done, tally, NULL, &second, &refusal),
                     HC_REFUSED); /* locked */
    (void)close(out);
    HC_ASSERT_EQ_INT(write(fd, "foreign\nmore\n", 13), 13);
    HC_ASSERT_EQ_INT(hc_output_open(path, true, &done, tally, NULL, &out, &refusal), HC_REFUSED);
    HC_ASSERT(strstr(refusal.message, ":3: is no result") != NULL);
    (void)close(fd);
    (void)unlink(path);
    hc_ids_done(&done);
    hc_tally_done(tally);
    free(tally);
}

HC_TEST(progress_is_told)
{
    struct hc_progress progress = {.began_us = 1000000, .total_bytes = 1000};
    char text[160];
    hc_progress_text(&progress, 11000000, 100, 0, 250, text);
    HC_ASSERT_STREQ(text, "hotcell: 100 items, 10.0/s, 25 %, 30s left");
    hc_progress_text(&progress, 11000000, 100, 100, 500, text);
    HC_ASSERT_STREQ(text, "hotcell: 200 items, 10.0/s, 50 %, 20s left");
    progress.total_bytes = 0;
    hc_progress_text(&progress, 11000000, 100, 0, 250, text);
    HC_ASSERT_STREQ(text, "hotcell: 100 items, 10.0/s");
}
