/* UTF-8: strict validity, cuts that do not split characters, and rendering of untrusted bytes for a terminal.
 *
 * All sizes are bytes. No function fails, allocates, or needs NUL-terminated input. A NULL pointer is allowed
 * where the size beside it is 0.
 */
#ifndef HC_BASE_UTF8_H
#define HC_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether all n bytes are well-formed: no overlong forms, no surrogates, nothing above U+10FFFF, no character
 * left unfinished. NUL bytes are valid characters. */
bool hc_utf8_valid(const void *data, size_t n);

/* The largest m <= n such that data[0..m) does not end inside a character that began validly. At most 3 bytes
 * are given up. Where the last bytes are not the beginning of a character at all, the answer is n. */
size_t hc_utf8_floor(const uint8_t *data, size_t n);

/* How many continuation bytes (0 .. 3) lead data[0..n), to be skipped so that the rest begins at a border. */
size_t hc_utf8_ceil(const uint8_t *data, size_t n);

/* Whether a character of valid UTF-8 shows nothing or turns the order of others: C1 and bidirectional
 * controls, blanks without width, U+2028, U+2029, U+FEFF. */
bool hc_utf8_hides(const void *data, size_t n);

/* Renders n bytes so that a terminal shows them and obeys none of them. Printable characters, newline and tab
 * pass. Other ASCII controls, DEL and bytes that are not UTF-8 become \xNN; C1 controls, bidirectional
 * controls (U+061C, U+200E, U+200F, U+202A-202E, U+2066-2069) and U+FEFF become \u{NNNN}. A backslash passes
 * unchanged.
 *
 * out_size must be at least 8*n. With less, rendering stops before the first piece that does not fit; a piece
 * (a character or an escape) is never written in part. Returns the bytes written; no NUL is appended. */
size_t hc_escape_visible(const uint8_t *data, size_t n, char *out, size_t out_size);

/* The same for a stream that arrives in pieces, where a border may fall inside a character. Start from {0}.
 * The output does not depend on how the stream is divided. */
struct hc_visible {
    uint8_t pending[4];
    unsigned pending_len;
};

/* Renders what is certain so far. out_size must be at least 8*(n + 4). Returns the bytes written. */
size_t hc_visible_feed(struct hc_visible *visible, const uint8_t *data, size_t n, char *out, size_t out_size);

/* Renders a character that was never finished and resets the state. out_size must be at least 32. Returns the
 * bytes written. */
size_t hc_visible_finish(struct hc_visible *visible, char *out, size_t out_size);

#endif
