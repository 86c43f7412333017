/* Quantities as people write them: sizes, durations, counts and thousandths.
 *
 * A number is decimal digits, optionally a point and more digits ("1.5"; never "1." or ".5"), and then, where
 * the function takes one, a unit glued to it. Signs, spaces, hexadecimal and exponents are refused; leading
 * zeros are accepted and mean nothing. Arithmetic is exact: no value is ever rounded.
 *
 * The parsers return an outcome of `enum hc_quantity_outcome`, never a negative errno, and set the
 * out-parameter only on HC_QUANTITY_OK. A NULL text counts as empty. When several things are wrong the order
 * of report is: empty, garbage, negative, unit, overflow, finer, zero.
 */
#ifndef HC_BASE_QUANTITY_H
#define HC_BASE_QUANTITY_H

#include <stdint.h>

enum hc_quantity_outcome {
    HC_QUANTITY_OK = 0,
    HC_QUANTITY_EMPTY,
    HC_QUANTITY_GARBAGE,
    HC_QUANTITY_NEGATIVE,
    HC_QUANTITY_OVERFLOW,
    HC_QUANTITY_ZERO,
    HC_QUANTITY_UNIT,
    HC_QUANTITY_FINER,
};

/* "4096", "512M", "1.5G": bytes, or a binary suffix K, M, G, T (capitals, 1K = 1024).
 * Result 1 .. 2^53-1 bytes; a fraction of a byte is FINER, any other letters are UNIT. */
int hc_parse_bytes(const char *text, uint64_t *ret_bytes);

/* "200ms", "1.5s", "2m": one of us, ms, s, m, h, and one is required (a bare number, even "0", is UNIT).
 * Result 1 .. 10^15 microseconds; a fraction of a microsecond is FINER. */
int hc_parse_duration_us(const char *text, uint64_t *ret_us);

/* "12": digits only; a point or a unit is GARBAGE. Result 1 .. 2^53-1. */
int hc_parse_count(const char *text, uint64_t *ret_count);

/* "2" is 2000, "0.5" is 500: thousandths, without unit (letters are GARBAGE).
 * Result 1 .. 2^53-1 thousandths; anything below a thousandth is FINER. */
int hc_parse_milli(const char *text, uint64_t *ret_milli);

/* A clause that completes "the value ...", for example "is negative". Static text, never NULL. */
const char *hc_quantity_reason(int outcome);

/* The shortest exact form: "512M", "1.5G" (halves only), else plain bytes. Always NUL-terminated.
 * For 1 .. 2^53-1, hc_parse_bytes gives the same number back. */
void hc_format_bytes(uint64_t bytes, char out[32]);

/* Microseconds as "2h", "90s", "1.5s", "200ms", "1234.567ms", "7us"; always exact, zero is "0s".
 * For 1 .. 10^15, hc_parse_duration_us gives the same number back. */
void hc_format_duration(uint64_t us, char out[32]);

#endif
