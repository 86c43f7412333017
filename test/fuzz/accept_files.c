/* Those who look into files: any content under any ending is typed and looked at within its bytes, the reader
 * of tables ends, and no report of the scanner is believed that is not whole.
 *
 * Input: one byte that chooses an ending, then the content. With clang: clang
 * -fsanitize=fuzzer,address,undefined -DHC_FUZZ …, corpus in any folder. Otherwise a plain program:
 * accept_files [FILE...]      without files it makes inputs of its own, reproducibly
 */
#include "base/cleanup.h"
#include "flow/csv.h"
#include "flow/inspect.h"
#include "flow/scan.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "accept_files: %s\n", what);
    abort();
}

static const char *const names[] = {"a.csv", "a.tsv",  "a.svg", "a.html",          "a.png", "a.jpg",
                                    "a.gif", "a.webp", "a.bmp", "a.docx",          "a.doc", "a.pdf",
                                    "a.npy", "a.zip",  "a",     "d/.a\xe2\x80\xae"};

static int count(void *context, const struct hc_csv_field *field)
{
    *(size_t *)context += field->bytes;
    return 0;
}

static void look_at_report(const uint8_t *data, size_t n)
{
    struct hc_artifact artifacts[2] = {{.path = "a"}, {.path = "b"}};
    struct hc_artifact *list[2] = {&artifacts[0], &artifacts[1]};
    struct hc_scan scan = {.artifacts = list, .count = 2};
    hc_scan_report(&scan, (const char *)data, n);
    bool whole = !hc_found(&artifacts[0], HC_FINDING_NOT_INSPECTED);
    must(!whole || (n >= 5 && memcmp(data + n - 5, "done\n", 5) == 0),
         "a report without an end is taken as whole");
    must(whole != hc_found(&artifacts[1], HC_FINDING_NOT_INSPECTED), "whole for one and not for the other");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    const char *name = names[data[0] % (sizeof names / sizeof *names)];
    uint64_t line = 0;
    size_t bytes = 0;
    hc_autofree uint8_t *content = malloc(n); /* of exactly its size, so that a byte too many is seen */
    if (content == NULL)
        return 0;
    memcpy(content, data + 1, n - 1);
    struct hc_artifact artifact = {.path = (char *)(uintptr_t)name,
                                   .path_bytes = strlen(name),
                                   .plain = true,
                                   .collected = true,
                                   .bytes = n - 1,
                                   .type = hc_file_type(content, n - 1, name)};
    must(artifact.type != NULL, "no type");
    hc_inspect(&artifact, content, n - 1);
    must(artifact.finding_count <= sizeof artifact.findings / sizeof *artifact.findings, "too many findings");
    int outcome = hc_csv_walk((const char *)content, n - 1, ',', count, &bytes, &line);
    must((outcome == 0 || outcome == HC_CSV_BROKEN) && bytes <= n, "a table has more in it than the file");
    struct hc_collection collection = {.artifacts = &artifact, .count = 1};
    struct hc_artifact_rules rules = hc_artifact_rules_default();
    hc_artifacts_judge(&collection, &rules);
    look_at_report(content, n - 1);
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

#define HEAD(text)                                                                                           \
    {                                                                                                        \
        text, sizeof text - 1                                                                                \
    }

int main(int argc, char **argv)
{
    static const struct {
        const char *bytes;
        size_t n;
    } heads[] = {HEAD("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1"),
                 HEAD("\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x11\x08\0\1\0\1"),
                 HEAD("GIF89a\1\0\1\0"),
                 HEAD("RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
                 HEAD("BM\0\0\0\0\0\0\0\0\0\0\0\0(\0\0\0"),
                 HEAD("a,b\n1,\"=x\"\n-1,5;@y\n"),
                 HEAD("<svg onload='x'><script>"),
                 HEAD("<?xml version='1.0'?><svg>"),
                 HEAD("%PDF-1 /OpenAction"),
                 HEAD("\x80\4."),
                 HEAD("0 archive_bomb\n1 office_macros\ndone\n"),
                 HEAD("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
                 HEAD("#!/bin/sh\n"),
                 HEAD("")};
    uint64_t seed = 31;
    for (int i = 1; i < argc; i++)
        if (replay(argv[i]) != 0)
            return 1;
    for (int round = 0; argc == 1 && round < 200000; round++) {
        uint8_t input[160];
        uint64_t which = next(&seed) % (sizeof heads / sizeof *heads);
        size_t n = 1 + heads[which].n;
        input[0] = (uint8_t)next(&seed);
        memcpy(input + 1, heads[which].bytes, heads[which].n);
        for (uint64_t more = next(&seed) % 40; more > 0; more--)
            input[n++] =
                next(&seed) % 3 == 0 ? (uint8_t)next(&seed) : (uint8_t) "=,\"\n<on ->;"[next(&seed) % 11];
        for (uint64_t changes = next(&seed) % 4; changes > 0; changes--)
            input[next(&seed) % n] = (uint8_t)next(&seed);
        (void)LLVMFuzzerTestOneInput(input, next(&seed) % 8 == 0 ? next(&seed) % n : n);
    }
    (void)printf("ok 1 - any content is looked at within its bytes\n1..1\n");
    return 0;
}
#endif
