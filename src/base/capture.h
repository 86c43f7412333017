/* One captured output stream: everything is counted and hashed, and a bounded part of it is kept.
 *
 * While no more than keep_bytes have arrived, all of it is kept. After that the beginning (a quarter of
 * keep_bytes) and the end (the rest) are kept, because errors are reported at either end of an output and
 * hardly ever in its middle. Memory grows with the data and stays below keep_bytes plus a constant.
 *
 * The order of calls is init, write..., share (for a pair of streams), finish, done. One thread per capture.
 */
#ifndef HC_BASE_CAPTURE_H
#define HC_BASE_CAPTURE_H

#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The fields are private to capture.c, but total_bytes may be read. */
struct hc_capture {
    uint64_t total_bytes;
    uint8_t *buffer;
    size_t buffer_bytes;
    size_t keep_bytes;
    struct hc_sha256 sha;
};

/* What became of a stream. data holds head_bytes from the beginning followed by kept_bytes - head_bytes from
 * the end, then a NUL that is not counted; it is never NULL. Not truncated: head_bytes == kept_bytes ==
 * total_bytes. omitted_bytes == total_bytes - kept_bytes. sha256 is the digest of the whole stream in
 * hexadecimal. */
struct hc_captured {
    uint8_t *data;
    size_t kept_bytes;
    size_t head_bytes;
    uint64_t total_bytes;
    bool truncated;
    uint64_t omitted_bytes;
    char sha256[65];
};

/* Prepares an empty capture; keep_bytes may be 0. Errors: -EINVAL (keep_bytes beyond what memory can
 * address), -ENOMEM, -EIO (as hc_sha256_init). On failure there is nothing to release. */
int hc_capture_init(struct hc_capture *capture, uint64_t keep_bytes);

/* Adds n bytes; data may be NULL when n is 0. Errors: -ENOMEM, -EOVERFLOW (2^64 bytes), -EINVAL (finished),
 * -EIO. On failure nothing of the n bytes is counted or kept. */
int hc_capture_write(struct hc_capture *capture, const void *data, size_t n);

/* Divides keep_bytes between two streams by what they wrote: each is sure of half (of an odd number a gets
 * the larger half), and what one leaves of its half goes to the other if that one can use it. The shares
 * never add up to more than keep_bytes. Both captures should have been prepared with at least keep_bytes. */
void hc_capture_share(const struct hc_capture *a, const struct hc_capture *b, uint64_t keep_bytes,
                      uint64_t *ret_a, uint64_t *ret_b);

/* Ends the stream and hands over at most share_bytes of it (never more than the keep_bytes of init). A stream
 * beyond the share is cut to its first share/4 bytes, shortened to a UTF-8 border, and its last 3*share/4
 * bytes (both rounded down), likewise shortened. The memory of the capture itself is handed over, so that
 * ending takes no second copy. Errors: -EINVAL (finished before), -ENOMEM, -EIO. After an error only
 * hc_capture_done is allowed. */
int hc_capture_finish(struct hc_capture *capture, uint64_t share_bytes, struct hc_captured *ret_captured);

/* Both release everything and are harmless when repeated or on {0}. */
void hc_captured_done(struct hc_captured *captured);
void hc_capture_done(struct hc_capture *capture);

#endif
