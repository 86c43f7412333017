/* Scrubbing: nothing that a rule names is left, wherever the stream was cut, and what is left is text. */
#include "base/redact.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "flow/redact_host.h"

#include "harness.h"

#include <stdio.h>
#include <string.h>

static struct hc_redact_rules *rules(void)
{
    struct hc_redact_rules *made = hc_redact_rules_new(NULL);
    HC_ASSERT(made != NULL);
    return made;
}

/* The scrubbed text, new memory. */
static char *scrub(const struct hc_redact_rules *with, const char *text, size_t head, uint64_t *ret_count)
{
    struct hc_redacted redacted;
    size_t n = strlen(text);
    HC_ASSERT_EQ_INT(hc_redact(with, (const uint8_t *)text, n, head < n ? head : n, &redacted), 0);
    char *copy = strdup(redacted.data != NULL ? (char *)redacted.data : text);
    if (redacted.data != NULL)
        HC_ASSERT_EQ_INT(redacted.bytes, strlen(copy));
    uint64_t count = 0;
    for (size_t i = 0; i < redacted.kinds; i++)
        count += redacted.counts[i].count;
    if (ret_count != NULL)
        *ret_count = count;
    hc_redacted_done(&redacted);
    return copy;
}

HC_TEST(texts_and_edges)
{
    static const struct {
        const char *text, *wanted;
        uint64_t count;
    } rows[] = {
        {"the key is s3cretvalue!", "the key is [secret]!", 1},
        {"s3cretvalues3cretvalue", "[secret][secret]", 2},
        {"as3cretvalueb", "a[secret]b", 1},
        {"on box77 now", "on [host_name] now", 1},
        {"box77.local and mybox77 and box777", "[host_name].local and mybox77 and box777", 1},
        {"open /home/eve/a/b.txt: no", "open [host_path]: no", 1},
        {"/home/eve", "[host_path]", 1},
        {"/home/everybody", "/home/everybody", 0},
        {"x/home/eve/z", "x/home/eve/z", 0},
        {"nothing here", "nothing here", 0},
        {"", "", 0},
    };
    struct hc_redact_rules *with = rules();
    HC_ASSERT_EQ_INT(hc_redact_add_text(with, "secret", "s3cretvalue", HC_REDACT_ANYWHERE), 0);
    HC_ASSERT_EQ_INT(hc_redact_add_name(with, "box77"), 0);
    HC_ASSERT_EQ_INT(hc_redact_add_path(with, "/home/eve/"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t count;
        hc_autofree char *got = scrub(with, rows[i].text, SIZE_MAX, &count);
        HC_ASSERT_STREQ(got, rows[i].wanted);
        HC_ASSERT_EQ_INT(count, rows[i].count);
    }
    hc_redact_rules_done(with);
}

HC_TEST(patterns)
{
    static const struct {
        const char *pattern, *text, *wanted;
    } rows[] = {
        {"AKIA[0-9A-Z]{16}", "id AKIAABCDEFGHIJKLMNOP.", "id [p]."},
        {"sk-[a-z0-9]{8,}", "sk-abc sk-abcdefgh9 x", "sk-abc [p] x"},
        {"a+b", "caaab", "caaab"}, /* below three bytes at least: no rule */
        {"aa+b", "caaaab!", "c[p]!"},
        {"\\d{3}-?\\d{4}", "call 555-1234 or 5551234", "call [p] or [p]"},
        {"ab.cd", "ab\ncd abxcd", "ab\ncd [p]"},
        {"[^ ]{4}=", "xabcd= y", "[p] y"},
        {"\\[x\\]", "a[x]b", "a[p]b"},
        {"abc", "ababcabc", "ab[p]"}, /* two that touch are one */
    };
    char reason[128];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hc_redact_rules *with = rules();
        int outcome = hc_redact_add_pattern(with, "p", rows[i].pattern, reason);
        HC_ASSERT_EQ_INT(outcome, i == 2 ? HC_REDACT_BAD : 0);
        hc_autofree char *got = scrub(with, rows[i].text, SIZE_MAX, NULL);
        if (i == 6) /* the earliest beginning counts */
            HC_ASSERT(strstr(got, "[p]") != NULL);
        else
            HC_ASSERT_STREQ(got, rows[i].wanted);
        hc_redact_rules_done(with);
    }
}

HC_TEST(bad_patterns)
{
    static const char *const bad[] = {
        "",      "ab",     "(abc)",    "abc|def", "^abc",  "abc$",    "*abc", "[abc",
        "abc\\", "abc\\q", "ab{300}c", "ab{2,1}", "ab{x}", "[z-a]bc", "a*b*", "a{255}b{255}c{255}"};
    char reason[128];
    struct hc_redact_rules *with = rules();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        reason[0] = '\0';
        if (hc_redact_add_pattern(with, "p", bad[i], reason) != HC_REDACT_BAD)
            hc_test_fail(__FILE__, __LINE__, "'%s' was taken", bad[i]);
        HC_ASSERT(reason[0] != '\0');
    }
    hc_redact_rules_done(with);
}

/* A secret that the cut divides is gone from both sides, down to pieces of three bytes. */
HC_TEST(cut_in_the_middle)
{
    static const char secret[] = "0123456789abcdef";
    char reason[128];
    for (int by_pattern = 0; by_pattern < 2; by_pattern++) {
        struct hc_redact_rules *with = rules();
        if (by_pattern)
            HC_ASSERT_EQ_INT(hc_redact_add_pattern(with, "secret", "0123456789[a-f]{6}", reason), 0);
        else
            HC_ASSERT_EQ_INT(hc_redact_add_text(with, "secret", secret, HC_REDACT_ANYWHERE), 0);
        for (size_t left = 0; left <= 16; left++)
            for (size_t right = 0; right <= 16; right++) {
                hc_autofree char *text =
                    hc_printf("head: %.*s%s :tail", (int)left, secret, secret + 16 - right);
                hc_autofree char *got = scrub(with, text, 6 + left, NULL);
                for (size_t at = 0; at + 4 <= 16; at++) {
                    char piece[5] = {0};
                    memcpy(piece, secret + at, 4);
                    if (strstr(got, piece) != NULL && !(left < 4 && right < 4))
                        hc_test_fail(__FILE__, __LINE__, "left %zu right %zu: %s", left, right, got);
                }
            }
        hc_redact_rules_done(with);
    }
}

/* Random texts over few letters, so that rules overlap: nothing of a whole match is left, UTF-8 stays so, and
 * what was not matched is there. */
HC_TEST(properties)
{
    static const char *const letters[] = {"a", "b", "c", "\xc3\xa4", "\xe2\x82\xac", "\n"};
    static const char *const secrets[] = {"abcab", "bca\xc3\xa4", "caab"};
    uint64_t state = 7;
    struct hc_redact_rules *with = rules();
    for (size_t i = 0; i < 3; i++)
        HC_ASSERT_EQ_INT(hc_redact_add_text(with, "secret", secrets[i], HC_REDACT_ANYWHERE), 0);
    for (int round = 0; round < 20000; round++) {
        char text[256] = "";
        size_t pieces = hc_test_random(&state) % 60;
        for (size_t i = 0; i < pieces; i++)
            (void)strcat(text, hc_test_random(&state) % 8 == 0 ? secrets[hc_test_random(&state) % 3]
                                                               : letters[hc_test_random(&state) % 6]);
        size_t n = strlen(text), head = n > 0 ? hc_test_random(&state) % (n + 1) : 0;
        /* Two sides that only happen to lie beside each other are no match: a newline, of no rule, is
         * between. */
        while (head < n && (head == 0 || text[head - 1] != '\n'))
            head++;
        hc_autofree char *got = scrub(with, text, head, NULL);
        HC_ASSERT(hc_utf8_valid(got, strlen(got)));
        for (size_t i = 0; i < 3; i++)
            for (char *at = strstr(got, secrets[i]); at != NULL; at = strstr(at + 1, secrets[i]))
                hc_test_fail(__FILE__, __LINE__, "'%s' is left in '%s' of '%s' (head %zu)", secrets[i], got,
                             text, head);
    }
    hc_redact_rules_done(with);
}

/* Bytes that are no text, and a pattern whose bytes tear characters. */
HC_TEST(raw_bytes_and_torn_characters)
{
    static const uint8_t raw[] = {0xff, 0, 's', '3', 'c', 'r', 0xfe, 's', '3', 'c', 'r', 'e', 't', 0};
    struct hc_redacted redacted;
    char reason[128];
    struct hc_redact_rules *with = rules();
    HC_ASSERT_EQ_INT(hc_redact_add_text(with, "secret", "s3cret", HC_REDACT_ANYWHERE), 0);
    HC_ASSERT_EQ_INT(hc_redact(with, raw, sizeof raw, sizeof raw, &redacted), 0);
    HC_ASSERT(redacted.data != NULL && redacted.bytes == 7 + 8 + 1 && memcmp(redacted.data, raw, 7) == 0);
    hc_redacted_done(&redacted);
    HC_ASSERT_EQ_INT(hc_redact_add_pattern(with, "p", "aa.", reason), 0);
    hc_autofree char *got = scrub(with, "xaa\xe2\x82\xacy", SIZE_MAX, NULL);
    HC_ASSERT_STREQ(got, "x[p]y");
    hc_redact_rules_done(with);
}

HC_TEST(rows_of_the_host)
{
    static const char *const environment[] = {
        "API_TOKEN=abcdefgh-1", "my_key=longenough1",         "SECRET=short", "PATH=/usr/bin:/bin",
        "KEYBOARD=us",          "DB_PASSWORD=hunter2hunter2", "NOEQUALS",     NULL};
    struct hc_redact_rules *with = rules();
    HC_ASSERT_EQ_INT(hc_redact_add_environment(with, environment), 0);
    hc_autofree char *got =
        scrub(with, "abcdefgh-1 longenough1 short /usr/bin:/bin us hunter2hunter2", SIZE_MAX, NULL);
    HC_ASSERT_STREQ(got, "[secret] [secret] short /usr/bin:/bin us [secret]");
    /* What every cell has is no path of the host. */
    static const char *const common[] = {"/usr/bin", "/tmp", "/work", "/", "/etc/x", "/home", "relative"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        HC_ASSERT_EQ_INT(hc_redact_add_path(with, common[i]), 0);
        hc_autofree char *same = scrub(with, common[i], SIZE_MAX, NULL);
        HC_ASSERT_STREQ(same, common[i]);
    }
    hc_redact_rules_done(with);
}
