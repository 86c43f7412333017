#include "base/quantity.h"

#include "harness.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define BYTES_MAX       UINT64_C(9007199254740991)
#define DURATION_US_MAX UINT64_C(1000000000000000)
#define UNTOUCHED       UINT64_C(0xDEADBEEF)

typedef int parser(const char *text, uint64_t *ret_value);
typedef void formatter(uint64_t value, char out[32]);

struct example {
    const char *text;
    int outcome;
    uint64_t value;
};

static void check(parser *parse, const struct example *examples, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct example *e = &examples[i];
        uint64_t value = UNTOUCHED;
        printf("text: [%s]\n", e->text ? e->text : "NULL");
        HC_ASSERT_EQ_INT(parse(e->text, &value), e->outcome);
        HC_ASSERT_EQ_INT(value, e->outcome == HC_QUANTITY_OK ? e->value : UNTOUCHED);
    }
}

#define CHECK(parse, ...)                                                                                    \
    check(parse, (const struct example[]){__VA_ARGS__},                                                      \
          sizeof((const struct example[]){__VA_ARGS__}) / sizeof(struct example))

HC_TEST(quantity_bytes_accepts)
{
    CHECK(hc_parse_bytes, {"1", 0, 1}, {"4096", 0, 4096}, {"1K", 0, 1024}, {"512M", 0, 536870912},
          {"1.5G", 0, 1610612736}, {"0.5K", 0, 512}, {"2T", 0, UINT64_C(2199023255552)}, {"1.0", 0, 1},
          {"1.50000000000000000000000000K", 0, 1536}, {"007", 0, 7}, {"0.0009765625K", 0, 1},
          {"9007199254740991", 0, BYTES_MAX}, {"8191.5T", 0, UINT64_C(9006649498927104)},
          {"1.0000000000009094947017729282379150390625T", 0, UINT64_C(1099511627777)});
}

HC_TEST(quantity_bytes_refuses)
{
    CHECK(hc_parse_bytes, {"9007199254740992", HC_QUANTITY_OVERFLOW, 0}, {"8192T", HC_QUANTITY_OVERFLOW, 0},
          {"18446744073709551616", HC_QUANTITY_OVERFLOW, 0},
          {"18446744073709551617", HC_QUANTITY_OVERFLOW, 0},
          {"99999999999999999999999999T", HC_QUANTITY_OVERFLOW, 0}, {"0", HC_QUANTITY_ZERO, 0},
          {"0.0", HC_QUANTITY_ZERO, 0}, {"0T", HC_QUANTITY_ZERO, 0}, {"1.5", HC_QUANTITY_FINER, 0},
          {"0.1K", HC_QUANTITY_FINER, 0}, {"0.0001K", HC_QUANTITY_FINER, 0}, {"1k", HC_QUANTITY_UNIT, 0},
          {"1KB", HC_QUANTITY_UNIT, 0}, {"1KiB", HC_QUANTITY_UNIT, 0}, {"1P", HC_QUANTITY_UNIT, 0},
          {"5s", HC_QUANTITY_UNIT, 0});
}

HC_TEST(quantity_durations)
{
    CHECK(hc_parse_duration_us, {"1us", 0, 1}, {"200ms", 0, 200000}, {"1.5s", 0, 1500000},
          {"0.5s", 0, 500000}, {"2m", 0, 120000000}, {"1h", 0, UINT64_C(3600000000)}, {"0.000001s", 0, 1},
          {"0.001ms", 0, 1}, {"0.00000000027777777777777777777h", HC_QUANTITY_FINER, 0},
          {"0.0000001s", HC_QUANTITY_FINER, 0}, {"1.5us", HC_QUANTITY_FINER, 0},
          {"1000000000000000us", 0, DURATION_US_MAX}, {"1000000000s", 0, DURATION_US_MAX},
          {"1000000000000001us", HC_QUANTITY_OVERFLOW, 0}, {"1000000000.000001s", HC_QUANTITY_OVERFLOW, 0},
          {"277777.5h", 0, UINT64_C(999999000000000)}, {"277778h", HC_QUANTITY_OVERFLOW, 0},
          {"5", HC_QUANTITY_UNIT, 0}, {"0", HC_QUANTITY_UNIT, 0}, {"5S", HC_QUANTITY_UNIT, 0},
          {"5sec", HC_QUANTITY_UNIT, 0}, {"5d", HC_QUANTITY_UNIT, 0}, {"0s", HC_QUANTITY_ZERO, 0},
          {"0.000us", HC_QUANTITY_ZERO, 0}, {"1m30s", HC_QUANTITY_GARBAGE, 0});
}

HC_TEST(quantity_counts_and_thousandths)
{
    CHECK(hc_parse_count, {"1", 0, 1}, {"64", 0, 64}, {"0", HC_QUANTITY_ZERO, 0},
          {"9007199254740991", 0, BYTES_MAX}, {"9007199254740992", HC_QUANTITY_OVERFLOW, 0},
          {"1.0", HC_QUANTITY_GARBAGE, 0}, {"1.5", HC_QUANTITY_GARBAGE, 0}, {"1K", HC_QUANTITY_GARBAGE, 0});
    CHECK(hc_parse_milli, {"2", 0, 2000}, {"0.5", 0, 500}, {"0.001", 0, 1}, {"1.2500", 0, 1250},
          {"0.0001", HC_QUANTITY_FINER, 0}, {"1.0005", HC_QUANTITY_FINER, 0}, {"0.000", HC_QUANTITY_ZERO, 0},
          {"9007199254740.991", 0, BYTES_MAX}, {"9007199254740.992", HC_QUANTITY_OVERFLOW, 0},
          {"1m", HC_QUANTITY_GARBAGE, 0});
}

HC_TEST(quantity_every_parser_refuses_bad_forms)
{
    static parser *const parsers[] = {hc_parse_bytes, hc_parse_duration_us, hc_parse_count, hc_parse_milli};
    static const struct example bad[] = {
        {NULL, HC_QUANTITY_EMPTY, 0},       {"", HC_QUANTITY_EMPTY, 0},
        {" ", HC_QUANTITY_GARBAGE, 0},      {"1 ", HC_QUANTITY_GARBAGE, 0},
        {" 1", HC_QUANTITY_GARBAGE, 0},     {"1 s", HC_QUANTITY_GARBAGE, 0},
        {"+1", HC_QUANTITY_GARBAGE, 0},     {"-", HC_QUANTITY_GARBAGE, 0},
        {"--1", HC_QUANTITY_GARBAGE, 0},    {"0x10", HC_QUANTITY_GARBAGE, 0},
        {"1e3", HC_QUANTITY_GARBAGE, 0},    {"1.", HC_QUANTITY_GARBAGE, 0},
        {".5", HC_QUANTITY_GARBAGE, 0},     {"1.s", HC_QUANTITY_GARBAGE, 0},
        {"1.2.3", HC_QUANTITY_GARBAGE, 0},  {"1,5", HC_QUANTITY_GARBAGE, 0},
        {"1_000", HC_QUANTITY_GARBAGE, 0},  {"abc", HC_QUANTITY_GARBAGE, 0},
        {"K", HC_QUANTITY_GARBAGE, 0},      {"inf", HC_QUANTITY_GARBAGE, 0},
        {"1\n", HC_QUANTITY_GARBAGE, 0},    {"1\xC2\xB5s", HC_QUANTITY_GARBAGE, 0},
        {"-abc", HC_QUANTITY_GARBAGE, 0},   {"-1", HC_QUANTITY_NEGATIVE, 0},
        {"-1.5s", HC_QUANTITY_NEGATIVE, 0}, {"-0", HC_QUANTITY_NEGATIVE, 0},
    };

    for (size_t i = 0; i < sizeof(parsers) / sizeof(parsers[0]); i++)
        check(parsers[i], bad, sizeof(bad) / sizeof(bad[0]));
}

HC_TEST(quantity_reasons_differ)
{
    for (int a = HC_QUANTITY_OK; a <= HC_QUANTITY_FINER; a++)
        for (int b = HC_QUANTITY_OK; b < a; b++)
            HC_ASSERT(strcmp(hc_quantity_reason(a), hc_quantity_reason(b)) != 0);
    HC_ASSERT_STREQ(hc_quantity_reason(HC_QUANTITY_NEGATIVE), "is negative");
    HC_ASSERT(hc_quantity_reason(-1) != NULL && hc_quantity_reason(99) != NULL);
}

static void check_format(formatter *format, uint64_t value, const char *expected)
{
    char out[32];

    format(value, out);
    HC_ASSERT_STREQ(out, expected);
}

HC_TEST(quantity_formats)
{
    check_format(hc_format_bytes, 0, "0");
    check_format(hc_format_bytes, 1, "1");
    check_format(hc_format_bytes, 512, "512");
    check_format(hc_format_bytes, 1000, "1000");
    check_format(hc_format_bytes, 1536, "1.5K");
    check_format(hc_format_bytes, 1280 << 20, "1280M");
    check_format(hc_format_bytes, 512 << 20, "512M");
    check_format(hc_format_bytes, UINT64_C(1610612736), "1.5G");
    check_format(hc_format_bytes, UINT64_C(1610612737), "1610612737");
    check_format(hc_format_bytes, UINT64_MAX, "18446744073709551615");
    check_format(hc_format_duration, 0, "0s");
    check_format(hc_format_duration, 7, "7us");
    check_format(hc_format_duration, 1500, "1.5ms");
    check_format(hc_format_duration, 200000, "200ms");
    check_format(hc_format_duration, 1500000, "1.5s");
    check_format(hc_format_duration, 1234567, "1234.567ms");
    check_format(hc_format_duration, 90000000, "90s");
    check_format(hc_format_duration, 120000000, "2m");
    check_format(hc_format_duration, UINT64_C(7200000000), "2h");
    check_format(hc_format_duration, UINT64_MAX, "18446744073709551.615ms");
}

/* Random magnitudes, half of them round numbers in some unit, since uniform ones never are. */
static uint64_t random_value(uint64_t *seed, uint64_t max)
{
    static const uint64_t grains[] = {1, 512, 1000, 1024, 1 << 19, 1 << 20, 1 << 30, 1000000, 60000000};

    uint64_t value = hc_test_random(seed) >> (hc_test_random(seed) % 63);
    if (hc_test_random(seed) % 2)
        value = value % 5000 * grains[hc_test_random(seed) % (sizeof(grains) / sizeof(grains[0]))];
    return value % max + 1;
}

static void check_round_trips(parser *parse, formatter *format, uint64_t max, uint64_t seed)
{
    for (int i = 0; i < 100000; i++) {
        char text[32];
        uint64_t value = random_value(&seed, max), back = 0;
        format(value, text);
        HC_ASSERT(strlen(text) < sizeof(text));
        HC_ASSERT_EQ_INT(parse(text, &back), HC_QUANTITY_OK);
        HC_ASSERT_EQ_INT(back, value);
    }
}

HC_TEST(quantity_printed_values_parse_to_themselves)
{
    check_round_trips(hc_parse_bytes, hc_format_bytes, BYTES_MAX, 1);
    check_round_trips(hc_parse_duration_us, hc_format_duration, DURATION_US_MAX, 2);
}

HC_TEST(quantity_thousandths_agree_with_integer_arithmetic)
{
    uint64_t seed = 3;

    for (int i = 0; i < 50000; i++) {
        char text[64];
        uint64_t whole = hc_test_random(&seed) % 1000000, thousandths = hc_test_random(&seed) % 1000,
                 value = 0;
        (void)snprintf(text, sizeof(text), "%" PRIu64 ".%03u", whole, (unsigned)thousandths);
        int outcome = hc_parse_milli(text, &value);
        HC_ASSERT_EQ_INT(outcome, whole + thousandths == 0 ? HC_QUANTITY_ZERO : HC_QUANTITY_OK);
        HC_ASSERT_EQ_INT(value, whole * 1000 + thousandths);
    }
}

HC_TEST(quantity_random_text_is_never_misread)
{
    static const char alphabet[] = "0123456789..-+ eExXKMGTushm\t";
    uint64_t seed = 4;

    for (int i = 0; i < 200000; i++) {
        char text[9] = "";
        uint64_t value = UNTOUCHED;
        for (size_t n = hc_test_random(&seed) % sizeof(text); n-- > 0;)
            text[n] = alphabet[hc_test_random(&seed) % (sizeof(alphabet) - 1)];
        bool ok = hc_parse_bytes(text, &value) == HC_QUANTITY_OK;
        HC_ASSERT(ok == (value != UNTOUCHED));
        HC_ASSERT(!ok || strspn(text, "0123456789.KMGT") == strlen(text));
        HC_ASSERT(!ok || (value > 0 && value <= BYTES_MAX));
    }
}
