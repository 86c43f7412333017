#include "base/quantity.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* JSON readers keep integers in doubles; beyond 2^53-1 they would report another number than was asked for.
 */
#define EXACT_MAX       ((UINT64_C(1) << 53) - 1)
#define DURATION_US_MAX UINT64_C(1000000000000000)

/* `step` is the finest part of a unit that printing may spend on decimals before it tries the next unit. */
struct unit {
    const char *suffix;
    uint64_t scale;
    uint64_t step;
};

/* Largest first: printing takes the first row that fits. */
static const struct unit byte_units[] = {
    {"T", UINT64_C(1) << 40, UINT64_C(1) << 39},
    {"G", UINT64_C(1) << 30, UINT64_C(1) << 29},
    {"M", UINT64_C(1) << 20, UINT64_C(1) << 19},
    {"K", UINT64_C(1) << 10, UINT64_C(1) << 9},
    {"", 1, 1},
};

static const struct unit duration_units[] = {
    {"h", UINT64_C(3600000000), UINT64_C(3600000000)},
    {"m", UINT64_C(60000000), UINT64_C(60000000)},
    {"s", UINT64_C(1000000), UINT64_C(1000)},
    {"ms", UINT64_C(1000), UINT64_C(1)},
    {"us", UINT64_C(1), UINT64_C(1)},
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

struct number {
    uint64_t whole;
    bool huge;
    const char *fraction;
    size_t fraction_digits;
    const char *suffix;
};

/* The locale decides what isdigit() and isalpha() accept; the grammar must not depend on it. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const char *scan_whole(const char *text, struct number *number)
{
    for (; is_digit(*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (number->whole > (UINT64_MAX - digit) / 10)
            number->huge = true;
        else
            number->whole = number->whole * 10 + digit;
    }
    return text;
}

static int scan(const char *text, struct number *ret_number)
{
    struct number number = {0};

    if (!text || !*text)
        return HC_QUANTITY_EMPTY;
    bool negative = *text == '-';
    text += negative;
    if (!is_digit(*text))
        return HC_QUANTITY_GARBAGE;
    text = scan_whole(text, &number);

    if (*text == '.') {
        number.fraction = ++text;
        while (is_digit(*text))
            text++;
        number.fraction_digits = (size_t)(text - number.fraction);
        if (number.fraction_digits == 0)
            return HC_QUANTITY_GARBAGE;
    }

    number.suffix = text;
    while (is_letter(*text))
        text++;
    if (*text)
        return HC_QUANTITY_GARBAGE;
    if (negative)
        return HC_QUANTITY_NEGATIVE;
    *ret_number = number;
    return HC_QUANTITY_OK;
}

/* Schoolbook multiplication from the last digit on: exact for any number of digits, where a floating or
 * fixed-width numerator would silently round long fractions. */
static bool fraction_times(const struct number *number, uint64_t scale, uint64_t *ret_part)
{
    uint64_t carry = 0;

    for (size_t i = number->fraction_digits; i-- > 0;) {
        carry += (uint64_t)(number->fraction[i] - '0') * scale;
        if (carry % 10 != 0)
            return false;
        carry /= 10;
    }
    *ret_part = carry;
    return true;
}

static int scale_number(const struct number *number, uint64_t scale, uint64_t max, uint64_t *ret_value)
{
    uint64_t part = 0;

    if (number->huge || number->whole > max / scale)
        return HC_QUANTITY_OVERFLOW;
    if (!fraction_times(number, scale, &part))
        return HC_QUANTITY_FINER;
    uint64_t value = number->whole * scale + part;
    if (value > max)
        return HC_QUANTITY_OVERFLOW;
    if (value == 0)
        return HC_QUANTITY_ZERO;
    *ret_value = value;
    return HC_QUANTITY_OK;
}

static int parse_with_units(const char *text, const struct unit *units, size_t n_units, uint64_t max,
                            uint64_t *ret_value)
{
    struct number number;

    int outcome = scan(text, &number);
    if (outcome != HC_QUANTITY_OK)
        return outcome;
    for (size_t i = 0; i < n_units; i++)
        if (strcmp(units[i].suffix, number.suffix) == 0)
            return scale_number(&number, units[i].scale, max, ret_value);
    return HC_QUANTITY_UNIT;
}

int hc_parse_bytes(const char *text, uint64_t *ret_bytes)
{
    return parse_with_units(text, byte_units, COUNT_OF(byte_units), EXACT_MAX, ret_bytes);
}

int hc_parse_duration_us(const char *text, uint64_t *ret_us)
{
    return parse_with_units(text, duration_units, COUNT_OF(duration_units), DURATION_US_MAX, ret_us);
}

int hc_parse_count(const char *text, uint64_t *ret_count)
{
    struct number number;

    int outcome = scan(text, &number);
    if (outcome != HC_QUANTITY_OK)
        return outcome;
    if (number.fraction || *number.suffix)
        return HC_QUANTITY_GARBAGE;
    return scale_number(&number, 1, EXACT_MAX, ret_count);
}

int hc_parse_milli(const char *text, uint64_t *ret_milli)
{
    struct number number;

    int outcome = scan(text, &number);
    if (outcome != HC_QUANTITY_OK)
        return outcome;
    if (*number.suffix)
        return HC_QUANTITY_GARBAGE;
    return scale_number(&number, 1000, EXACT_MAX, ret_milli);
}

const char *hc_quantity_reason(int outcome)
{
    switch (outcome) {
    case HC_QUANTITY_OK:
        return "is acceptable";
    case HC_QUANTITY_EMPTY:
        return "is empty";
    case HC_QUANTITY_GARBAGE:
        return "is not a number in the expected form";
    case HC_QUANTITY_NEGATIVE:
        return "is negative";
    case HC_QUANTITY_OVERFLOW:
        return "is too large";
    case HC_QUANTITY_ZERO:
        return "is zero";
    case HC_QUANTITY_UNIT:
        return "has no unit or an unknown one";
    case HC_QUANTITY_FINER:
        return "is finer than the smallest step";
    default:
        return "is refused for an unknown reason";
    }
}

static char *put_number(char *at, uint64_t value)
{
    char digits[20];
    size_t n = 0;

    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

static void print_in_unit(uint64_t value, const struct unit *unit, char *at)
{
    uint64_t rest = value % unit->scale;

    at = put_number(at, value / unit->scale);
    if (rest != 0)
        *at++ = '.';
    while (rest != 0) {
        rest *= 10;
        *at++ = (char)('0' + rest / unit->scale);
        rest %= unit->scale;
    }
    for (const char *c = unit->suffix; *c; c++)
        *at++ = *c;
    *at = '\0';
}

static void format_with_units(uint64_t value, const struct unit *units, size_t n_units, char *out)
{
    size_t i = 0;

    while (i + 1 < n_units && (value < units[i].scale || value % units[i].step != 0))
        i++;
    print_in_unit(value, &units[i], out);
}

void hc_format_bytes(uint64_t bytes, char out[32])
{
    format_with_units(bytes, byte_units, COUNT_OF(byte_units), out);
}

void hc_format_duration(uint64_t us, char out[32])
{
    if (us == 0)
        memcpy(out, "0s", sizeof("0s"));
    else
        format_with_units(us, duration_units, COUNT_OF(duration_units), out);
}
