#include "base/utf8.h"

#include <string.h>

enum { UNFINISHED = 0, MALFORMED = -1 };

/* The range of the second byte is what excludes overlong forms, surrogates and points above U+10FFFF. */
struct lead {
    int length;
    uint8_t second_min;
    uint8_t second_max;
};

static struct lead classify_lead(uint8_t byte)
{
    if (byte < 0x80)
        return (struct lead){1, 0, 0};
    if (byte < 0xC2 || byte > 0xF4)
        return (struct lead){MALFORMED, 0, 0};
    if (byte < 0xE0)
        return (struct lead){2, 0x80, 0xBF};
    if (byte < 0xF0)
        return (struct lead){3, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF};
    return (struct lead){4, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF};
}

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Length of the character at the beginning of data (n >= 1), UNFINISHED when all n bytes could be the
 * beginning of one, else MALFORMED. */
static int character_length(const uint8_t *data, size_t n)
{
    struct lead lead = classify_lead(data[0]);

    if (lead.length <= 1)
        return lead.length;
    if (n >= 2 && (data[1] < lead.second_min || data[1] > lead.second_max))
        return MALFORMED;
    for (size_t i = 2; i < n && i < (size_t)lead.length; i++)
        if (!is_continuation(data[i]))
            return MALFORMED;
    return n < (size_t)lead.length ? UNFINISHED : lead.length;
}

static uint32_t code_point(const uint8_t *data, int length)
{
    static const uint8_t lead_mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t point = data[0] & lead_mask[length];

    for (int i = 1; i < length; i++)
        point = point << 6 | (data[i] & 0x3Fu);
    return point;
}

bool hc_utf8_valid(const void *data, size_t n)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i < n;) {
        int length = character_length(bytes + i, n - i);
        if (length <= 0)
            return false;
        i += (size_t)length;
    }
    return true;
}

size_t hc_utf8_floor(const uint8_t *data, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const uint8_t *at = data + (n - back);
        if (is_continuation(*at))
            continue;
        return character_length(at, back) == UNFINISHED ? n - back : n;
    }
    return n;
}

size_t hc_utf8_ceil(const uint8_t *data, size_t n)
{
    size_t skip = 0;

    while (skip < 3 && skip < n && is_continuation(data[skip]))
        skip++;
    return skip;
}

struct sink {
    char *out;
    size_t size;
    size_t used;
    bool full;
};

/* Once a piece did not fit nothing later may pass either, or the output would have a hole in its middle. */
static void put_piece(struct sink *sink, const char *piece, size_t n)
{
    if (sink->full || n > sink->size - sink->used) {
        sink->full = true;
        return;
    }
    memcpy(sink->out + sink->used, piece, n);
    sink->used += n;
}

static const char hex_digits[] = "0123456789ABCDEF";

static void put_byte_escape(struct sink *sink, uint8_t byte)
{
    const char piece[] = {'\\', 'x', hex_digits[byte >> 4], hex_digits[byte & 15]};
    put_piece(sink, piece, sizeof(piece));
}

static void put_point_escape(struct sink *sink, uint32_t point)
{
    const char piece[] = {'\\',
                          'u',
                          '{',
                          hex_digits[point >> 12 & 15],
                          hex_digits[point >> 8 & 15],
                          hex_digits[point >> 4 & 15],
                          hex_digits[point & 15],
                          '}'};
    put_piece(sink, piece, sizeof(piece));
}

/* C1 controls are commands in 8-bit terminals; bidirectional controls make a line read as another one than it
 * is (CVE-2021-42574); U+FEFF is invisible and hides differences. All of them have four hexadecimal digits.
 */
static bool is_hidden(uint32_t point)
{
    return (point >= 0x80 && point <= 0x9F) || point == 0x061C || point == 0x200E || point == 0x200F ||
           (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

bool hc_utf8_hides(const void *data, size_t n)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < n;) {
        int length = character_length(bytes + i, n - i);
        if (length <= 0)
            return false;
        uint32_t point = code_point(bytes + i, length);
        if (is_hidden(point) || (point >= 0x200B && point <= 0x200D) || point == 0x2028 || point == 0x2029 ||
            point == 0x2060)
            return true;
        i += (size_t)length;
    }
    return false;
}

static void put_character(struct sink *sink, const uint8_t *data, int length)
{
    uint32_t point = code_point(data, length);

    if (point == 0x7F || (point < 0x20 && point != '\n' && point != '\t'))
        put_byte_escape(sink, data[0]);
    else if (is_hidden(point))
        put_point_escape(sink, point);
    else
        put_piece(sink, (const char *)data, (size_t)length);
}

static void drop_pending(struct hc_visible *visible, unsigned n)
{
    visible->pending_len -= n;
    memmove(visible->pending, visible->pending + n, visible->pending_len);
}

static void drain(struct hc_visible *visible, struct sink *sink, bool at_end)
{
    while (visible->pending_len > 0) {
        int length = character_length(visible->pending, visible->pending_len);
        if (length == UNFINISHED && !at_end)
            return;
        if (length > 0) {
            put_character(sink, visible->pending, length);
            drop_pending(visible, (unsigned)length);
        } else {
            put_byte_escape(sink, visible->pending[0]);
            drop_pending(visible, 1);
        }
    }
}

size_t hc_visible_feed(struct hc_visible *visible, const uint8_t *data, size_t n, char *out, size_t out_size)
{
    struct sink sink = {.out = out, .size = out_size};

    for (size_t i = 0; i < n; i++) {
        visible->pending[visible->pending_len++] = data[i];
        drain(visible, &sink, false);
    }
    return sink.used;
}

size_t hc_visible_finish(struct hc_visible *visible, char *out, size_t out_size)
{
    struct sink sink = {.out = out, .size = out_size};

    drain(visible, &sink, true);
    return sink.used;
}

size_t hc_escape_visible(const uint8_t *data, size_t n, char *out, size_t out_size)
{
    struct hc_visible visible = {0};
    struct sink sink = {.out = out, .size = out_size};

    for (size_t i = 0; i < n; i++) {
        visible.pending[visible.pending_len++] = data[i];
        drain(&visible, &sink, false);
    }
    drain(&visible, &sink, true);
    return sink.used;
}
