/* The reader of records: any bytes are read or refused, and what is read is the one canonical form of itself.
 *
 * With clang: clang -fsanitize=fuzzer,address,undefined -DHC_FUZZ …, corpus in any folder. Otherwise a plain
 * program: record_reader [FILE...]      without files it makes changed records of its own, reproducibly
 */
#include "base/canonical.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "store/chain.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "record_reader: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct hc_link link = {0}, again = {0};
    struct hc_defect defect = {0};
    json_t *record = NULL;
    hc_autofree char *text = malloc(n + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, n);
    text[n] = '\0';
    int outcome = hc_link_read(text, n, &link, &record, &defect);
    must(outcome == 0 || (outcome == HC_LINK_BROKEN && defect.rule != NULL && defect.message[0] != '\0'),
         "neither read nor refused with a reason");
    if (outcome == 0) {
        /* What was read is its own canonical form, and linking it again at the same place gives the same
         * bytes. */
        hc_autofree char *canonical = hc_json_canonical(record);
        must(canonical != NULL && strlen(canonical) == n && memcmp(canonical, text, n) == 0, "not canonical");
        struct hc_link previous = {.seq = link.seq - 1};
        memcpy(previous.sha256, link.previous_sha256, sizeof previous.sha256);
        if ((previous.seq == 0) == (previous.sha256[0] == '\0')) {
            hc_autofree char *made = hc_link_make(record, &previous, &again);
            must(made != NULL && strcmp(made, text) == 0, "linking it again gives other bytes");
        }
        json_decref(record);
    }
    struct hc_link head;
    (void)hc_head_parse(text, &head);
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

static json_t *any_value(uint64_t *state, unsigned depth)
{
    static const char *const texts[] = {"",
                                        "a",
                                        "\"\\/\b\f\n\r\t\x01\x1f\x7f",
                                        "\xc3\xa4\xe2\x82\xac",
                                        "\\u001B",
                                        "\xf0\x9f\x92\xa9",
                                        "\"chain\":{\"previous_sha256\":null,\"sha256\":\""};
    switch (next(state) % (depth > 3 ? 5 : 7)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(next(state) % 2);
    case 2:
        return json_integer((json_int_t)next(state));
    case 3:
        return json_stringn("a\0b", 3);
    case 4:
        return json_string(texts[next(state) % 7]);
    case 5: {
        json_t *list = json_array();
        for (uint64_t i = next(state) % 5; i > 0; i--)
            (void)json_array_append_new(list, any_value(state, depth + 1));
        return list;
    }
    default: {
        json_t *object = json_object();
        for (uint64_t i = next(state) % 5; i > 0; i--) {
            const char *name = texts[next(state) % 7];
            (void)json_object_set_new(object, name, any_value(state, depth + 1));
        }
        return object;
    }
    }
}

/* A good record, read as it is; then the same with a few bytes changed, which must never pass. */
static void one_round(uint64_t *state)
{
    struct hc_link previous = {.seq = (int64_t)(next(state) % 3)}, link, found;
    struct hc_defect defect;
    json_t *record = json_object();
    if (previous.seq > 0)
        (void)hc_sha256_hex("x", 1, previous.sha256);
    for (int i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + (int)(next(state) % 26)), '\0'};
        (void)json_object_set_new(record, name, any_value(state, 0));
    }
    hc_autofree char *text = hc_link_make(record, &previous, &link);
    must(text != NULL, "no memory");
    size_t n = strlen(text);
    must(hc_link_read(text, n, &found, NULL, &defect) == 0, "a good record is refused");
    must(hc_link_follows(&previous, &found, &defect), "it does not follow what it was made to follow");
    (void)LLVMFuzzerTestOneInput((uint8_t *)text, n);
    for (int i = 0; i < 8; i++) {
        size_t at = next(state) % n;
        char before = text[at];
        text[at] = (char)(before ^ (1 << next(state) % 8));
        must(hc_link_read(text, n, &found, NULL, &defect) == HC_LINK_BROKEN, "a changed record passes");
        (void)LLVMFuzzerTestOneInput((uint8_t *)text, n);
        text[at] = before;
        (void)LLVMFuzzerTestOneInput((uint8_t *)text, at);
    }
    json_decref(record);
}

static int one_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 1;
    size_t n = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    return LLVMFuzzerTestOneInput(data, n);
}

int main(int argc, char **argv)
{
    uint64_t state = 1;
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= one_file(argv[i]);
    for (int round = 0; argc == 1 && round < 4000; round++)
        one_round(&state);
    printf("1..1\n%s 1 - record_reader\n", failed ? "not ok" : "ok");
    return failed;
}
#endif
