#include "base/capture.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BUFFER_BYTES = 4096 };

/* The buffer is filled straight on. Once it is full, the part behind the head becomes a ring, so that nothing
 * has to move at the moment of the change. */
static size_t head_limit(const struct hc_capture *capture)
{
    return capture->keep_bytes / 4;
}

static size_t ring_limit(const struct hc_capture *capture)
{
    return capture->keep_bytes - head_limit(capture);
}

static size_t ring_position(const struct hc_capture *capture)
{
    uint64_t behind_head = capture->total_bytes - head_limit(capture);
    return head_limit(capture) + (size_t)(behind_head % ring_limit(capture));
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int hc_capture_init(struct hc_capture *capture, uint64_t keep_bytes)
{
    *capture = (struct hc_capture){0};
    if (keep_bytes > PTRDIFF_MAX - 1)
        return -EINVAL;
    int r = hc_sha256_init(&capture->sha);
    if (r < 0)
        return r;
    capture->keep_bytes = (size_t)keep_bytes;
    return 0;
}

/* One byte more than the data needs, for the NUL of the result. */
static int reserve(struct hc_capture *capture, size_t data_bytes)
{
    size_t wanted = data_bytes + 1;
    if (wanted <= capture->buffer_bytes)
        return 0;

    size_t doubled = capture->buffer_bytes ? capture->buffer_bytes * 2 : FIRST_BUFFER_BYTES;
    if (wanted < doubled)
        wanted = (size_t)smaller(doubled, capture->keep_bytes + 1);
    uint8_t *grown = realloc(capture->buffer, wanted);
    if (!grown)
        return -ENOMEM;
    capture->buffer = grown;
    capture->buffer_bytes = wanted;
    return 0;
}

static void store_in_ring(struct hc_capture *capture, const uint8_t *data, size_t n)
{
    size_t ring = ring_limit(capture);

    if (ring == 0) {
        capture->total_bytes += n;
        return;
    }
    if (n > ring) {
        capture->total_bytes += n - ring;
        data += n - ring;
        n = ring;
    }
    size_t at = ring_position(capture);
    size_t until_end = (size_t)smaller(n, capture->keep_bytes - at);
    memcpy(capture->buffer + at, data, until_end);
    memcpy(capture->buffer + head_limit(capture), data + until_end, n - until_end);
    capture->total_bytes += n;
}

static void store(struct hc_capture *capture, const uint8_t *data, size_t n)
{
    size_t straight = 0;

    if (capture->total_bytes < capture->keep_bytes) {
        straight = (size_t)smaller(n, capture->keep_bytes - capture->total_bytes);
        memcpy(capture->buffer + capture->total_bytes, data, straight);
        capture->total_bytes += straight;
    }
    if (straight < n)
        store_in_ring(capture, data + straight, n - straight);
}

int hc_capture_write(struct hc_capture *capture, const void *data, size_t n)
{
    if (!capture->sha.context)
        return -EINVAL;
    if (n == 0)
        return 0;
    if (n > UINT64_MAX - capture->total_bytes)
        return -EOVERFLOW;
    if (capture->keep_bytes > 0) {
        int r = reserve(capture, (size_t)smaller(capture->total_bytes + n, capture->keep_bytes));
        if (r < 0)
            return r;
    }
    int r = hc_sha256_update(&capture->sha, data, n);
    if (r < 0)
        return r;
    store(capture, data, n);
    return 0;
}

void hc_capture_share(const struct hc_capture *a, const struct hc_capture *b, uint64_t keep_bytes,
                      uint64_t *ret_a, uint64_t *ret_b)
{
    uint64_t half_b = keep_bytes / 2;
    uint64_t half_a = keep_bytes - half_b;
    bool a_is_modest = a->total_bytes <= half_a;
    bool b_is_modest = b->total_bytes <= half_b;

    if (a_is_modest == b_is_modest) {
        *ret_a = half_a;
        *ret_b = half_b;
    } else if (a_is_modest) {
        *ret_a = a->total_bytes;
        *ret_b = keep_bytes - a->total_bytes;
    } else {
        *ret_a = keep_bytes - b->total_bytes;
        *ret_b = b->total_bytes;
    }
}

static void reverse(uint8_t *data, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        uint8_t byte = data[i];
        data[i] = data[n - 1 - i];
        data[n - 1 - i] = byte;
    }
}

/* In place: a second buffer would double the memory just when many streams end together. */
static void straighten_ring(struct hc_capture *capture)
{
    if (capture->total_bytes <= capture->keep_bytes || capture->keep_bytes == 0)
        return;
    uint8_t *ring = capture->buffer + head_limit(capture);
    size_t n = ring_limit(capture);
    size_t oldest = ring_position(capture) - head_limit(capture);
    reverse(ring, oldest);
    reverse(ring + oldest, n - oldest);
    reverse(ring, n);
}

/* Leaves head and tail side by side at the beginning of the buffer. */
static size_t cut_to_share(struct hc_capture *capture, size_t share, size_t *ret_head_bytes)
{
    straighten_ring(capture);
    size_t held = (size_t)smaller(capture->total_bytes, capture->keep_bytes);
    size_t head = hc_utf8_floor(capture->buffer, share / 4);
    size_t tail = share / 4 * 3 + share % 4 * 3 / 4;
    const uint8_t *end = capture->buffer + held;

    if (tail > 0) {
        tail -= hc_utf8_ceil(end - tail, tail);
        memmove(capture->buffer + head, end - tail, tail);
    }
    *ret_head_bytes = head;
    return head + tail;
}

static uint8_t *hand_over_buffer(struct hc_capture *capture, size_t kept)
{
    uint8_t *data = hc_take_pointer(&capture->buffer);

    data[kept] = '\0';
    capture->buffer_bytes = 0;
    uint8_t *fitted = realloc(data, kept + 1);
    return fitted ? fitted : data;
}

int hc_capture_finish(struct hc_capture *capture, uint64_t share_bytes, struct hc_captured *ret_captured)
{
    struct hc_captured captured = {.total_bytes = capture->total_bytes};
    size_t share = (size_t)smaller(share_bytes, capture->keep_bytes);

    int r = hc_sha256_final_hex(&capture->sha, captured.sha256);
    if (r < 0)
        return r;
    r = reserve(capture, 0);
    if (r < 0)
        return r;

    captured.truncated = capture->total_bytes > share;
    if (captured.truncated)
        captured.kept_bytes = cut_to_share(capture, share, &captured.head_bytes);
    else
        captured.kept_bytes = captured.head_bytes = (size_t)capture->total_bytes;
    captured.omitted_bytes = captured.total_bytes - captured.kept_bytes;
    captured.data = hand_over_buffer(capture, captured.kept_bytes);
    *ret_captured = captured;
    return 0;
}

void hc_captured_done(struct hc_captured *captured)
{
    free(captured->data);
    *captured = (struct hc_captured){0};
}

void hc_capture_done(struct hc_capture *capture)
{
    free(capture->buffer);
    hc_sha256_done(&capture->sha);
    *capture = (struct hc_capture){0};
}
