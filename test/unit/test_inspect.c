/* What is seen in files, and that no content surprises those who look; the report of the scanner. */
#include "flow/inspect.h"
#include "flow/scan.h"
#include "policy/artifact_words.h"

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hc_artifact looked_at(const char *name, const void *data, size_t n)
{
    struct hc_artifact artifact = {.path = (char *)(uintptr_t)name,
                                   .path_bytes = strlen(name),
                                   .plain = true,
                                   .collected = true,
                                   .bytes = n};
    uint8_t *exact = malloc(n > 0 ? n : 1); /* so that a sanitizer sees a byte too many */
    HC_ASSERT(exact != NULL);
    memcpy(exact, data, n);
    artifact.type = hc_file_type(exact, n, name);
    hc_inspect(&artifact, exact, n);
    free(exact);
    return artifact;
}

static bool formula(const char *cell)
{
    char table[200];
    int n = snprintf(table, sizeof table, "a,b\n1,%s\n", cell);
    struct hc_artifact artifact = looked_at("t.csv", table, (size_t)n);
    return hc_found(&artifact, HC_FINDING_FORMULA);
}

HC_TEST(what_a_spreadsheet_would_compute)
{
    static const char *const bad[] = {"=1",   "\"=1\"", "@a",           "+a",  "-a",  "-1+2",   "+1-2",
                                      "\t=1", "-1e5+a", "\"-1,cmd|x\"", "+-1", "--1", "- 1 - 2"};
    static const char *const good[] = {
        "1",   "-1", "+1",  "-1.5", "-1e-5", "\"-1,5\"", "-",  "-5%",       "\"-1,234.50\"",
        "a=1", "--", "---", "",     "a-b",   "1=1",      " a", "2020-01-01"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!formula(bad[i]))
            hc_test_fail(__FILE__, __LINE__, "%s is a formula", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (formula(good[i]))
            hc_test_fail(__FILE__, __LINE__, "%s is no formula", good[i]);
}

HC_TEST(words_of_profiles)
{
    for (size_t i = 0; i < hc_scan_word_count; i++)
        for (size_t f = 0; hc_scan_words[i].findings[f] != NULL; f++)
            HC_ASSERT(hc_finding_named(hc_scan_words[i].findings[f], strlen(hc_scan_words[i].findings[f])) <
                      HC_FINDING_COUNT);
    HC_ASSERT(hc_type_word_fits("xlsx", "application/zip", "a/b.XLSX"));
    HC_ASSERT(!hc_type_word_fits("xlsx", "application/zip", "a.zip"));
    HC_ASSERT(!hc_type_word_fits("xlsx", "text/csv", "a.xlsx"));
    HC_ASSERT(!hc_type_word_fits("nothing", "text/plain", "a"));
    HC_ASSERT(hc_type_word_known("csv") && !hc_type_word_known("image/*"));
}

HC_TEST(rules_of_a_profile)
{
    static const char *const types[] = {"csv", "png"};
    struct hc_artifact artifacts[3] = {{.path = "a", .type = "text/csv", .plain = true, .collected = true},
                                       {.path = "b", .type = "image/jpeg", .plain = true, .collected = true},
                                       {.path = "c", .type = "image/png", .plain = true, .collected = true}};
    struct hc_collection collection = {.artifacts = artifacts, .count = 3};
    struct hc_artifact_rules rules = hc_artifact_rules_default();
    hc_find(&artifacts[0], HC_FINDING_FORMULA);
    hc_find(&artifacts[0], HC_FINDING_FORMULA);
    HC_ASSERT_EQ_INT(artifacts[0].finding_count, 1);
    hc_artifacts_judge(&collection, &rules);
    for (int i = 0; i < 3; i++)
        HC_ASSERT(artifacts[i].blocked_by == NULL);
    rules.any_type = false;
    rules.types = types;
    rules.type_count = 2;
    rules.blocks |= 1ull << HC_FINDING_FORMULA;
    hc_artifacts_judge(&collection, &rules);
    HC_ASSERT_STREQ(artifacts[0].blocked_by, "formula");
    HC_ASSERT_STREQ(artifacts[1].blocked_by, "type_not_allowed");
    HC_ASSERT(artifacts[2].blocked_by == NULL);
    for (int i = 0; i < HC_FINDING_COUNT; i++) {
        HC_ASSERT(hc_findings[i].name != NULL && hc_findings[i].message != NULL);
        HC_ASSERT_EQ_INT(hc_finding_named(hc_findings[i].name, strlen(hc_findings[i].name)), i);
    }
}

static bool whole(const char *report)
{
    struct hc_artifact artifacts[2] = {{.path = "a"}, {.path = "b"}};
    struct hc_artifact *list[2] = {&artifacts[0], &artifacts[1]};
    struct hc_scan scan = {.artifacts = list, .count = 2};
    hc_scan_report(&scan, report, report != NULL ? strlen(report) : 0);
    HC_ASSERT_EQ_INT(hc_found(&artifacts[0], HC_FINDING_NOT_INSPECTED),
                     hc_found(&artifacts[1], HC_FINDING_NOT_INSPECTED));
    return !hc_found(&artifacts[0], HC_FINDING_NOT_INSPECTED);
}

HC_TEST(reports_of_the_scanner)
{
    HC_ASSERT(whole("done\n"));
    HC_ASSERT(whole("0 archive_bomb\n1 office_macros\ndone\n"));
    static const char *const bad[] = {NULL,
                                      "",
                                      "done",
                                      "done\n\n",
                                      "done\ndone\n",
                                      "0 archive_bomb\n",
                                      "2 archive_bomb\ndone\n",
                                      "-1 archive_bomb\ndone\n",
                                      "0 nothing\ndone\n",
                                      "0 type_not_allowed\ndone\n",
                                      "0 symlink\ndone\n",
                                      "0 not_inspected\ndone\n",
                                      "0  archive_bomb\ndone\n",
                                      " archive_bomb\ndone\n",
                                      "0\ndone\n",
                                      "done\n0 archive_bomb\n",
                                      "99999999999999999999 archive_bomb\ndone\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (whole(bad[i]))
            hc_test_fail(__FILE__, __LINE__, "taken as whole: %s", bad[i] != NULL ? bad[i] : "(none)");
}

HC_TEST(any_content, .timeout_s = 60)
{
    static const char *const names[] = {"a.csv",  "a.tsv", "a.svg", "a.html", "a.png", "a.jpg",
                                        "a.webp", "a.gif", "a.bmp", "a.doc",  "a.pdf", "a"};
    static const char *const heads[] = {"\x89PNG\r\n\x1a\n",
                                        "\xff\xd8\xff",
                                        "GIF89a",
                                        "RIFF....WEBPVP8X",
                                        "BM",
                                        "<svg",
                                        "a,b\n",
                                        "%PDF-",
                                        "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
                                        "\x93NUMPY",
                                        "\x80\x04",
                                        ""};
    static const char bytes[] = "<>/=\"' onsrchf:@-+,;\n\t\xff\xc0\0\1AIHDR";
    uint64_t seed = 17;
    for (int round = 0; round < 100000; round++) {
        char data[96];
        const char *head = heads[hc_test_random(&seed) % 12];
        size_t n = strlen(head), end = n + hc_test_random(&seed) % (sizeof data - 20);
        memcpy(data, head, n);
        while (n < end)
            data[n++] = bytes[hc_test_random(&seed) % (sizeof bytes - 1)];
        struct hc_artifact artifact = looked_at(names[hc_test_random(&seed) % 12], data, n);
        HC_ASSERT(artifact.finding_count <= 16 && artifact.type != NULL);
    }
}
