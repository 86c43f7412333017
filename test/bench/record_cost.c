/* What a record costs: canonical form, digest, request and blobs, one transaction. Reads a record (JSON) and
 * appends it with ids of its own.
 *
 *   record_cost RECORD.json [ROUNDS]
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/hc-cost-XXXXXX", message[256] = "", id[40], text[64];
    int rounds = argc > 2 ? atoi(argv[2]) : 1000;
    json_t *record = argc > 1 ? json_load_file(argv[1], 0, NULL) : NULL;
    struct hc_store *store = NULL;
    hc_autofree uint64_t *times = calloc((size_t)rounds + 1, sizeof *times);
    if (record == NULL || times == NULL || rounds < 1 || mkdtemp(folder) == NULL ||
        hc_store_open(folder, &store, message) != 0) {
        (void)fprintf(stderr, "usage: record_cost RECORD.json [ROUNDS]\n");
        return 2;
    }
    for (int i = 0; i < rounds; i++) {
        struct hc_blob blobs[2] = {{.data = text, .bytes = 40}, {.data = id, .bytes = 20}};
        (void)snprintf(id, sizeof id, "run-cost-%020d", i);
        (void)snprintf(text, sizeof text, "program %040d", i);
        uint64_t began = hc_now_ns();
        for (int b = 0; b < 2; b++)
            (void)hc_sha256_hex(blobs[b].data, blobs[b].bytes, blobs[b].sha256);
        (void)json_object_set_new(record, "id", json_string(id));
        if (hc_store_append_with(store, record, blobs, 2, message) != 0) {
            (void)fprintf(stderr, "record_cost: %s\n", message);
            return 1;
        }
        times[i] = hc_now_ns() - began;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_size);
    printf("record: p50 %llu us, p99 %llu us, max %llu us over %d (%s)\n",
           (unsigned long long)times[rounds / 2] / 1000, (unsigned long long)times[rounds * 99 / 100] / 1000,
           (unsigned long long)times[rounds - 1] / 1000, rounds, folder);
    hc_store_close(store);
    json_decref(record);
    return 0;
}
