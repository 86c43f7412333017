/* The reader of exported logs and of requests: any bytes are good, broken with a reason, or refused with one.
 *
 *   record_log [FILE...]      without files it makes changed logs of its own, reproducibly; with clang see
 * record_reader.c
 */
#include "base/cleanup.h"
#include "flow/request_document.h"
#include "store/verify.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int no_blob(void *context, const char *sha256, void **ret_data, size_t *ret_bytes)
{
    (void)context;
    (void)sha256;
    *ret_data = calloc(1, 1);
    *ret_bytes = 0;
    return *ret_data != NULL ? 0 : -12;
}

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "record_log: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[64], message[256] = "";
    struct hc_verification found = {0};
    hc_autoclose int fd = memfd_create("log", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int error = hc_verify_file(path, NULL, &found, message);
    must(error < 0 ? message[0] != '\0'
                   : !found.broken || (found.defect.rule != NULL && found.defect.message[0] != '\0'),
         "no reason is given");
    json_t *document = json_loadb((const char *)data, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (document != NULL) {
        struct hc_spec spec;
        struct hc_refusal refusal = {0};
        json_t *predicates = NULL;
        int outcome = hc_request_document_read(document, no_blob, NULL, &spec, &predicates, &refusal);
        must(outcome != HC_REFUSED || refusal.message[0] != '\0', "refused without a reason");
        json_decref(predicates);
        hc_spec_done(&spec);
        json_decref(document);
    }
    return 0;
}

#ifndef HC_FUZZ
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static const char *const seeds[] = {
    "{\"blobs\":true,\"created_at\":\"2026-01-01T00:00:00Z\",\"first_seq\":1,\"previous_sha256\":null,"
    "\"program\":"
    "\"hotcell 0\",\"schema\":\"hotcell.log/1\"}\n"
    "{\"blob\":{\"base64\":\"eA==\",\"bytes\":1,\"sha256\":"
    "\"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\"}}\n"
    "{\"blobs\":1,\"file_sha256\":\"\",\"records\":0,\"schema\":\"hotcell.head/"
    "1\",\"seq\":0,\"sha256\":null}\n",
    "{\"schema\":\"hotcell.request/"
    "1\",\"nonce\":null,\"language\":\"python\",\"program\":{\"name\":\"main.py\",\"sha256\":"
    "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"},\"inputs\":[{\"name\":\"a/"
    "b\",\"folder\":false,"
    "\"mode\":292,\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}],"
    "\"arguments\":[{"
    "\"base64\":\"/"
    "w==\"}],\"environment\":[\"A=b\"],\"stdin\":null,\"limits\":{\"wall\":5},\"profile\":\"standard\","
    "\"collect\":null,\"deterministic\":{\"seed\":\"1\"},\"min_grade\":\"B\",\"allow\":[\"landlock\"],"
    "\"warmth\":\"default\","
    "\"redact\":[\"abc[a-z]{3}\"],\"predicates\":\"[{}]\",\"host\":{},\"kept\":[]}"};

int main(int argc, char **argv)
{
    static uint8_t data[1 << 20];
    uint64_t state = 1;
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "re");
        size_t n = file != NULL ? fread(data, 1, sizeof data, file) : 0;
        if (file != NULL)
            (void)fclose(file);
        (void)LLVMFuzzerTestOneInput(data, n);
    }
    for (int round = 0; argc == 1 && round < 6000; round++) {
        const char *seed = seeds[round % 2];
        size_t n = strlen(seed);
        memcpy(data, seed, n);
        for (uint64_t changes = next(&state) % 4; changes > 0; changes--)
            data[next(&state) % n] = (uint8_t)next(&state);
        (void)LLVMFuzzerTestOneInput(data, next(&state) % 4 == 0 ? next(&state) % n : n);
    }
    printf("1..1\nok 1 - record_log\n");
    return 0;
}
#endif
