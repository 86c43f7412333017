#include "base/utf8.h"

#include "harness.h"

#include <stdio.h>
#include <string.h>

#define BYTES(literal) (const uint8_t *)(literal), (sizeof(literal) - 1)

/* Encodes without looking whether the point may be encoded. */
static size_t encode(uint32_t point, unsigned length, uint8_t *out)
{
    static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};

    if (length == 1) {
        out[0] = (uint8_t)point;
        return 1;
    }
    for (unsigned i = length - 1; i > 0; i--, point >>= 6)
        out[i] = (uint8_t)(0x80 | (point & 0x3F));
    out[0] = (uint8_t)(lead[length] | point);
    return length;
}

static unsigned proper_length(uint32_t point)
{
    return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

HC_TEST(utf8_valid_knows_every_point_in_every_length)
{
    uint8_t bytes[4];

    for (uint32_t point = 0; point < 0x200000; point++)
        for (unsigned length = proper_length(point); length <= 4; length++) {
            bool surrogate = point >= 0xD800 && point <= 0xDFFF;
            bool expected = length == proper_length(point) && !surrogate && point <= 0x10FFFF;
            size_t n = encode(point, length, bytes);
            if (hc_utf8_valid(bytes, n) != expected)
                hc_test_fail(__FILE__, __LINE__, "U+%04X in %u bytes", (unsigned)point, length);
        }
}

HC_TEST(utf8_valid_examples)
{
    HC_ASSERT(hc_utf8_valid(NULL, 0));
    HC_ASSERT(hc_utf8_valid(BYTES("plain\0text")));
    HC_ASSERT(hc_utf8_valid(BYTES("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80")));
    HC_ASSERT(!hc_utf8_valid(BYTES("\x80")));
    HC_ASSERT(!hc_utf8_valid(BYTES("\xC0\x80")));
    HC_ASSERT(!hc_utf8_valid(BYTES("\xC1\xBF")));
    HC_ASSERT(!hc_utf8_valid(BYTES("\xC3")));
    HC_ASSERT(!hc_utf8_valid(BYTES("\xE2\x82")));
    HC_ASSERT(!hc_utf8_valid(BYTES("\xE2\x82z")));
    HC_ASSERT(!hc_utf8_valid(BYTES("\xF5\x80\x80\x80")));
    HC_ASSERT(!hc_utf8_valid(BYTES("\xFF")));
    HC_ASSERT(!hc_utf8_valid(BYTES("ok\xE2\x82\xAC\xAC")));
}

HC_TEST(utf8_floor_examples)
{
    HC_ASSERT_EQ_INT(hc_utf8_floor(NULL, 0), 0);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("abc")), 3);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("a\xC3\xBC")), 3);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("a\xC3")), 1);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("a\xE2\x82")), 1);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("\xF0\x9F\x98")), 0);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("\xF0\x9F\x98\x80")), 4);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("a\x80")), 2);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("\x80\x80\x80\x80")), 4);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("a\xED\xA0")), 3);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("a\xE0\x80")), 3);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("a\xC0")), 2);
    HC_ASSERT_EQ_INT(hc_utf8_floor(BYTES("a\xFF")), 2);
}

HC_TEST(utf8_ceil_examples)
{
    HC_ASSERT_EQ_INT(hc_utf8_ceil(NULL, 0), 0);
    HC_ASSERT_EQ_INT(hc_utf8_ceil(BYTES("abc")), 0);
    HC_ASSERT_EQ_INT(hc_utf8_ceil(BYTES("\xC3\xBC")), 0);
    HC_ASSERT_EQ_INT(hc_utf8_ceil(BYTES("\xBC"
                                        "a")),
                     1);
    HC_ASSERT_EQ_INT(hc_utf8_ceil(BYTES("\x9F\x98\x80")), 3);
    HC_ASSERT_EQ_INT(hc_utf8_ceil(BYTES("\x80\x80\x80\x80\x80")), 3);
    HC_ASSERT_EQ_INT(hc_utf8_ceil(BYTES("\x80")), 1);
}

/* Every cut of valid text: both halves, trimmed, are valid, and no border nearer to the cut exists. */
HC_TEST(utf8_cuts_of_valid_text_are_tight)
{
    uint64_t seed = 11;

    for (int round = 0; round < 2000; round++) {
        uint8_t text[64];
        bool border[65] = {false};
        size_t n = 0;
        while (n < 60) {
            uint32_t point =
                (uint32_t)(hc_test_random(&seed) >> (43 + hc_test_random(&seed) % 14)) % 0x110000;
            if (point >= 0xD800 && point <= 0xDFFF)
                continue;
            border[n] = true;
            n += encode(point, proper_length(point), text + n);
        }
        border[n] = true;
        for (size_t cut = 0; cut <= n; cut++) {
            size_t down = cut, up = cut;
            while (!border[down])
                down--;
            while (!border[up])
                up++;
            HC_ASSERT_EQ_INT(hc_utf8_floor(text, cut), down);
            HC_ASSERT_EQ_INT(hc_utf8_ceil(text + cut, n - cut), up - cut);
        }
    }
}

static void check_escape(const uint8_t *data, size_t n, const char *expected)
{
    char out[512];

    HC_ASSERT(8 * n < sizeof(out));
    size_t used = hc_escape_visible(data, n, out, 8 * n);
    out[used] = '\0';
    HC_ASSERT_STREQ(out, expected);
    HC_ASSERT_EQ_INT(used, strlen(expected));
}

HC_TEST(escape_examples)
{
    check_escape(NULL, 0, "");
    check_escape(BYTES("a\tb\nc\\"), "a\tb\nc\\");
    check_escape(BYTES("\x1B[31m\r\a\b\x7F"), "\\x1B[31m\\x0D\\x07\\x08\\x7F");
    check_escape(BYTES("a\0b"), "a\\x00b");
    check_escape(BYTES("\xC2\x9B"
                       "31m \xC2\x80\xC2\xA0"),
                 "\\u{009B}31m \\u{0080}\xC2\xA0");
    check_escape(BYTES("\x9B\xFF\xC0\x80"), "\\x9B\\xFF\\xC0\\x80");
    check_escape(BYTES("\xE2\x80\xAE"
                       "evil\xE2\x81\xA6\xE2\x80\x8E\xE2\x80\x8F\xEF\xBB\xBF"),
                 "\\u{202E}evil\\u{2066}\\u{200E}\\u{200F}\\u{FEFF}");
    check_escape(BYTES("\xD8\x9C"), "\\u{061C}");
    check_escape(BYTES("\xE2\x80\xA9\xE2\x80\xAF\xE2\x81\xAA"), "\xE2\x80\xA9\xE2\x80\xAF\xE2\x81\xAA");
    check_escape(BYTES("\xE2\x82\xAC \xF0\x9F\x98\x80"), "\xE2\x82\xAC \xF0\x9F\x98\x80");
    check_escape(BYTES("x\xE2\x82"), "x\\xE2\\x82");
    check_escape(BYTES("\xE2\x82\x1B["), "\\xE2\\x82\\x1B[");
    check_escape(BYTES("\xF0\x9F\xC3\xBC"), "\\xF0\\x9F\xC3\xBC");
    check_escape(BYTES("\xED\xA0\x80"), "\\xED\\xA0\\x80");
}

HC_TEST(escape_stops_whole_when_room_ends)
{
    char out[16];

    memset(out, '#', sizeof(out));
    HC_ASSERT_EQ_INT(hc_escape_visible(BYTES("ab\x1B"
                                             "cd"),
                                       out, 5),
                     2);
    HC_ASSERT(memcmp(out, "ab##", 4) == 0);
    HC_ASSERT_EQ_INT(hc_escape_visible(BYTES("\xE2\x82\xAC"
                                             "a"),
                                       out, 2),
                     0);
    HC_ASSERT_EQ_INT(hc_escape_visible(BYTES("a"), NULL, 0), 0);
}

/* Bytes that meet in many almost-characters; uniform ones rarely get past the first byte. */
static size_t random_bytes(uint64_t *seed, uint8_t *out, size_t most)
{
    static const uint8_t spice[] = {0x1B, 0xC2, 0xC3, 0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF4, 0x80, 0x81, 0x8E,
                                    0x8F, 0x90, 0x9F, 0xA0, 0xA6, 0xAA, 0xAE, 0xBB, 0xBF, 'a',  '\n', '\r'};
    size_t n = hc_test_random(seed) % (most + 1);

    for (size_t i = 0; i < n; i++)
        out[i] = hc_test_random(seed) % 8 ? spice[hc_test_random(seed) % sizeof(spice)]
                                          : (uint8_t)hc_test_random(seed);
    return n;
}

static bool is_safe(const char *out, size_t n)
{
    char again[8192];

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)out[i];
        if (c == 0x7F || (c < 0x20 && c != '\n' && c != '\t'))
            return false;
    }
    return hc_utf8_valid(out, n) && hc_escape_visible((const uint8_t *)out, n, again, sizeof(again)) == n &&
           memcmp(again, out, n) == 0;
}

HC_TEST(escape_output_is_safe_and_independent_of_chunks)
{
    uint64_t seed = 12;

    for (int round = 0; round < 50000; round++) {
        uint8_t data[64];
        char whole[512], parts[1024];
        struct hc_visible visible = {0};
        size_t n = random_bytes(&seed, data, sizeof(data)), used = 0, at = 0;
        size_t expected = hc_escape_visible(data, n, whole, 8 * n);

        HC_ASSERT(is_safe(whole, expected));
        while (at < n) {
            size_t chunk = hc_test_random(&seed) % 5;
            if (chunk > n - at)
                chunk = n - at;
            used += hc_visible_feed(&visible, data + at, chunk, parts + used, 8 * (chunk + 4));
            HC_ASSERT(visible.pending_len < 4);
            at += chunk;
        }
        used += hc_visible_finish(&visible, parts + used, 32);
        HC_ASSERT_EQ_INT(visible.pending_len, 0);
        HC_ASSERT_EQ_INT(used, expected);
        HC_ASSERT(memcmp(parts, whole, used) == 0);
    }
}

HC_TEST(escape_of_printable_text_is_the_text)
{
    uint64_t seed = 13;

    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[4];
        char out[32];
        uint32_t point = (uint32_t)(0x3000 + hc_test_random(&seed) % 0x8000);
        size_t n = encode(point, proper_length(point), bytes);
        HC_ASSERT_EQ_INT(hc_escape_visible(bytes, n, out, sizeof(out)), n);
        HC_ASSERT(memcmp(out, bytes, n) == 0);
    }
}
