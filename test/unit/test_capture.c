#include "base/capture.h"
#include "base/sha256.h"
#include "base/utf8.h"

#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

HC_TEST(sha256_known_digests)
{
    char out[65];

    HC_ASSERT_EQ_INT(hc_sha256_hex(NULL, 0, out), 0);
    HC_ASSERT_STREQ(out, EMPTY_SHA256);
    HC_ASSERT_EQ_INT(hc_sha256_hex("abc", 3, out), 0);
    HC_ASSERT_STREQ(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

HC_TEST(sha256_life_cycle)
{
    struct hc_sha256 sha = {0};
    char out[65];

    hc_sha256_done(&sha);
    HC_ASSERT_EQ_INT(hc_sha256_update(&sha, "a", 1), -EINVAL);
    HC_ASSERT_EQ_INT(hc_sha256_final_hex(&sha, out), -EINVAL);
    HC_ASSERT_EQ_INT(hc_sha256_init(&sha), 0);
    HC_ASSERT_EQ_INT(hc_sha256_update(&sha, "a", 1), 0);
    HC_ASSERT_EQ_INT(hc_sha256_update(&sha, NULL, 0), 0);
    HC_ASSERT_EQ_INT(hc_sha256_update(&sha, "bc", 2), 0);
    HC_ASSERT_EQ_INT(hc_sha256_final_hex(&sha, out), 0);
    HC_ASSERT_STREQ(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    HC_ASSERT_EQ_INT(hc_sha256_update(&sha, "d", 1), -EINVAL);
    hc_sha256_done(&sha);
    HC_ASSERT_EQ_INT(hc_sha256_init(&sha), 0);
    hc_sha256_done(&sha);
    hc_sha256_done(&sha);
}

static void capture_text(const char *text, uint64_t keep, uint64_t share, struct hc_captured *ret_captured)
{
    struct hc_capture capture;

    HC_ASSERT_EQ_INT(hc_capture_init(&capture, keep), 0);
    HC_ASSERT_EQ_INT(hc_capture_write(&capture, text, strlen(text)), 0);
    HC_ASSERT_EQ_INT(hc_capture_finish(&capture, share, ret_captured), 0);
    hc_capture_done(&capture);
}

static void check_text(const char *text, uint64_t keep, uint64_t share, const char *expected, size_t head)
{
    struct hc_captured captured;

    capture_text(text, keep, share, &captured);
    HC_ASSERT_STREQ((const char *)captured.data, expected);
    HC_ASSERT_EQ_INT(captured.kept_bytes, strlen(expected));
    HC_ASSERT_EQ_INT(captured.head_bytes, head);
    HC_ASSERT_EQ_INT(captured.total_bytes, strlen(text));
    HC_ASSERT_EQ_INT(captured.omitted_bytes, strlen(text) - strlen(expected));
    HC_ASSERT_EQ_INT(captured.truncated, strlen(expected) < strlen(text));
    hc_captured_done(&captured);
    hc_captured_done(&captured);
}

HC_TEST(capture_examples)
{
    check_text("", 8, 8, "", 0);
    check_text("12345678", 8, 8, "12345678", 8);
    check_text("123456789", 8, 8, "12456789", 2);
    check_text("123456789abcdefghij", 8, 8, "12efghij", 2);
    check_text("12345678", 8, 4, "1678", 1);
    check_text("12345678", 8, 100, "12345678", 8);
    check_text("123456789", 8, 100, "12456789", 2);
    check_text("12345678", 0, 8, "", 0);
    check_text("12345678", 8, 0, "", 0);
    check_text("12345678", 1, 1, "", 0);
    check_text("12345678", 8, 5, "1678", 1);
}

HC_TEST(capture_cuts_at_character_borders)
{
    /* Two-byte characters and odd parts: the head loses a byte downwards, the tail one upwards. */
    check_text("\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4", 12, 12,
               "\xC3\xA4\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4", 2);
    check_text("a\xF0\x9F\x98\x80"
               "bcdefghijklmnopqrstuv",
               16, 16, "aklmnopqrstuv", 1);
}

HC_TEST(capture_empty_stream)
{
    struct hc_capture capture;
    struct hc_captured captured;

    HC_ASSERT_EQ_INT(hc_capture_init(&capture, 1 << 20), 0);
    HC_ASSERT_EQ_INT(hc_capture_write(&capture, NULL, 0), 0);
    HC_ASSERT_EQ_INT(hc_capture_finish(&capture, 1 << 20, &captured), 0);
    HC_ASSERT(captured.data != NULL && captured.data[0] == '\0' && !captured.truncated);
    HC_ASSERT_STREQ(captured.sha256, EMPTY_SHA256);
    hc_captured_done(&captured);
    hc_capture_done(&capture);
}

HC_TEST(capture_life_cycle)
{
    struct hc_capture capture = {0};
    struct hc_captured captured = {0}, untouched = {0};

    hc_capture_done(&capture);
    hc_captured_done(&captured);
    HC_ASSERT_EQ_INT(hc_capture_init(&capture, UINT64_MAX), -EINVAL);
    HC_ASSERT_EQ_INT(hc_capture_init(&capture, 100), 0);
    HC_ASSERT_EQ_INT(hc_capture_write(&capture, "abc", 3), 0);
    HC_ASSERT_EQ_INT(hc_capture_finish(&capture, 100, &captured), 0);
    HC_ASSERT_EQ_INT(hc_capture_write(&capture, "d", 1), -EINVAL);
    HC_ASSERT_EQ_INT(hc_capture_finish(&capture, 100, &untouched), -EINVAL);
    HC_ASSERT(untouched.data == NULL && untouched.total_bytes == 0);
    hc_capture_done(&capture);
    hc_capture_done(&capture);
    hc_captured_done(&captured);

    HC_ASSERT_EQ_INT(hc_capture_init(&capture, 100), 0);
    HC_ASSERT_EQ_INT(hc_capture_write(&capture, "abandoned", 9), 0);
    hc_capture_done(&capture);
}

HC_TEST(capture_memory_grows_with_data_and_stays_bounded)
{
    enum { KEEP = 1 << 20 };
    static uint8_t chunk[3000];
    struct hc_capture capture;

    HC_ASSERT_EQ_INT(hc_capture_init(&capture, KEEP), 0);
    HC_ASSERT_EQ_INT(capture.buffer_bytes, 0);
    HC_ASSERT_EQ_INT(hc_capture_write(&capture, chunk, 10), 0);
    HC_ASSERT(capture.buffer_bytes <= 4096);
    for (int i = 0; i < 2000; i++) {
        HC_ASSERT_EQ_INT(hc_capture_write(&capture, chunk, sizeof(chunk)), 0);
        HC_ASSERT(capture.buffer_bytes <= KEEP + 1);
    }
    HC_ASSERT_EQ_INT(capture.total_bytes, 10 + 2000 * sizeof(chunk));
    hc_capture_done(&capture);
}

HC_TEST(capture_refuses_to_count_beyond_64_bits)
{
    struct hc_capture capture;

    HC_ASSERT_EQ_INT(hc_capture_init(&capture, 4), 0);
    capture.total_bytes = UINT64_MAX - 1;
    HC_ASSERT_EQ_INT(hc_capture_write(&capture, "ab", 2), -EOVERFLOW);
    HC_ASSERT(capture.total_bytes == UINT64_MAX - 1);
    hc_capture_done(&capture);
}

static void check_share(uint64_t a, uint64_t b, uint64_t keep, uint64_t expected_a, uint64_t expected_b)
{
    struct hc_capture first = {.total_bytes = a}, second = {.total_bytes = b};
    uint64_t share_a = 0, share_b = 0;

    hc_capture_share(&first, &second, keep, &share_a, &share_b);
    HC_ASSERT_EQ_INT(share_a, expected_a);
    HC_ASSERT_EQ_INT(share_b, expected_b);
}

HC_TEST(capture_share_examples)
{
    check_share(0, 0, 100, 50, 50);
    check_share(10, 10, 100, 50, 50);
    check_share(1000, 1000, 100, 50, 50);
    check_share(0, 1000, 100, 0, 100);
    check_share(1000, 10, 100, 90, 10);
    check_share(50, 51, 100, 50, 50);
    check_share(1000, 1000, 7, 4, 3);
    check_share(5, 5, 0, 0, 0);
    check_share(UINT64_MAX, 0, UINT64_MAX, UINT64_MAX, 0);
}

HC_TEST(capture_share_properties)
{
    uint64_t seed = 21;

    for (int i = 0; i < 200000; i++) {
        uint64_t keep = hc_test_random(&seed) % 200;
        struct hc_capture a = {.total_bytes = hc_test_random(&seed) % 300};
        struct hc_capture b = {.total_bytes = hc_test_random(&seed) % 300};
        uint64_t share_a = 0, share_b = 0;
        hc_capture_share(&a, &b, keep, &share_a, &share_b);
        HC_ASSERT(share_a + share_b <= keep);
        HC_ASSERT(share_a >= keep / 2 || share_a >= a.total_bytes);
        HC_ASSERT(share_b >= keep / 2 || share_b >= b.total_bytes);
        if (a.total_bytes + b.total_bytes <= keep)
            HC_ASSERT(share_a >= a.total_bytes && share_b >= b.total_bytes);
        else
            HC_ASSERT_EQ_INT(share_a + share_b, keep);
    }
}

/* The model has the whole stream and applies the rule as it is written down. */
static void check_against_model(const struct hc_captured *captured, const uint8_t *data, size_t n,
                                size_t share)
{
    char digest[65];

    HC_ASSERT_EQ_INT(hc_sha256_hex(data, n, digest), 0);
    HC_ASSERT_STREQ(captured->sha256, digest);
    HC_ASSERT_EQ_INT(captured->total_bytes, n);
    HC_ASSERT_EQ_INT(captured->omitted_bytes, n - captured->kept_bytes);
    HC_ASSERT_EQ_INT(captured->truncated, n > share);
    HC_ASSERT_EQ_INT(captured->data[captured->kept_bytes], 0);
    if (n <= share) {
        HC_ASSERT_EQ_INT(captured->kept_bytes, n);
        HC_ASSERT_EQ_INT(captured->head_bytes, n);
        HC_ASSERT(memcmp(captured->data, data, n) == 0);
        return;
    }
    size_t head = hc_utf8_floor(data, share / 4);
    size_t tail = 3 * share / 4;
    tail -= hc_utf8_ceil(data + n - tail, tail);
    HC_ASSERT_EQ_INT(captured->head_bytes, head);
    HC_ASSERT_EQ_INT(captured->kept_bytes, head + tail);
    HC_ASSERT(captured->kept_bytes <= share);
    HC_ASSERT(memcmp(captured->data, data, head) == 0);
    HC_ASSERT(memcmp(captured->data + head, data + n - tail, tail) == 0);
}

static size_t random_stream(uint64_t *seed, uint8_t *data, size_t most)
{
    static const char *const pieces[] = {"a", "z", "\n", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    bool binary = hc_test_random(seed) % 4 == 0;
    size_t target = hc_test_random(seed) % most, n = 0;

    while (n < target) {
        const char *piece = pieces[hc_test_random(seed) % 6];
        size_t length = strlen(piece);
        if (binary)
            data[n++] = (uint8_t)hc_test_random(seed);
        else if (n + length <= most) {
            memcpy(data + n, piece, length);
            n += length;
        }
    }
    return n;
}

static void feed_in_chunks(struct hc_capture *capture, const uint8_t *data, size_t n, size_t chunk_max,
                           uint64_t *seed)
{
    for (size_t at = 0; at < n;) {
        size_t chunk = hc_test_random(seed) % (chunk_max + 1);
        if (chunk > n - at)
            chunk = n - at;
        HC_ASSERT_EQ_INT(hc_capture_write(capture, data + at, chunk), 0);
        HC_ASSERT(capture->buffer_bytes <= capture->keep_bytes + 1);
        at += chunk;
    }
}

static void check_random_capture(uint64_t *seed, uint8_t *data, size_t stream_max, size_t keep_max)
{
    struct hc_capture capture;
    struct hc_captured captured;
    size_t keep = hc_test_random(seed) % keep_max, share = keep;

    if (hc_test_random(seed) % 2)
        share = hc_test_random(seed) % (keep + 1);
    size_t n = random_stream(seed, data, stream_max);
    HC_ASSERT_EQ_INT(hc_capture_init(&capture, keep), 0);
    feed_in_chunks(&capture, data, n, 1 + hc_test_random(seed) % stream_max, seed);
    HC_ASSERT_EQ_INT(hc_capture_finish(&capture, share, &captured), 0);
    check_against_model(&captured, data, n, share);
    hc_captured_done(&captured);
    hc_capture_done(&capture);
}

HC_TEST(capture_agrees_with_model_on_small_streams)
{
    uint8_t data[200];
    uint64_t seed = 22;

    for (int i = 0; i < 30000; i++)
        check_random_capture(&seed, data, sizeof(data), 100);
}

HC_TEST(capture_agrees_with_model_on_large_streams, .timeout_s = 60)
{
    static uint8_t data[100000];
    uint64_t seed = 23;

    for (int i = 0; i < 200; i++)
        check_random_capture(&seed, data, sizeof(data), 60000);
}

HC_TEST(capture_pairs_stay_within_the_common_limit)
{
    uint8_t data[200];
    uint64_t seed = 24;

    for (int i = 0; i < 5000; i++) {
        struct hc_capture pair[2];
        struct hc_captured captured;
        uint64_t shares[2], keep = hc_test_random(&seed) % 150, kept = 0, total = 0;
        for (int k = 0; k < 2; k++) {
            size_t n = random_stream(&seed, data, sizeof(data));
            HC_ASSERT_EQ_INT(hc_capture_init(&pair[k], keep), 0);
            feed_in_chunks(&pair[k], data, n, 50, &seed);
            total += n;
        }
        hc_capture_share(&pair[0], &pair[1], keep, &shares[0], &shares[1]);
        for (int k = 0; k < 2; k++) {
            HC_ASSERT_EQ_INT(hc_capture_finish(&pair[k], shares[k], &captured), 0);
            kept += captured.kept_bytes;
            hc_captured_done(&captured);
            hc_capture_done(&pair[k]);
        }
        HC_ASSERT(total <= keep ? kept == total : kept <= keep);
    }
}
