/* Scrubbing of output: pieces of text that must not leave are replaced by "[kind]", and each is counted.
 *
 * Pure: bytes and rules in, bytes and counts out; time is linear in the bytes for every rule. A rule is a
 * text or a pattern. Where a stream was cut, a piece of at least HC_REDACT_PIECE bytes of a match is scrubbed
 * too: what was cut in its middle is still most of a secret. Valid UTF-8 stays valid. */
#ifndef HC_BASE_REDACT_H
#define HC_BASE_REDACT_H

#include <stddef.h>
#include <stdint.h>

#define HC_REDACT_TEXT_MIN    3   /* shorter texts are no rules: they would tear everything apart */
#define HC_REDACT_PATTERN_MAX 256 /* bytes */
#define HC_REDACT_PIECE       4

enum hc_redact_edge {
    HC_REDACT_ANYWHERE,
    HC_REDACT_WORD, /* not in the middle of a longer word */
    HC_REDACT_PATH, /* likewise, and the rest of the path goes too */
};

struct hc_redact_rules;

/* `more`: rules that hold as well, borrowed; NULL: none. NULL without memory. */
struct hc_redact_rules *hc_redact_rules_new(const struct hc_redact_rules *more);
void hc_redact_rules_done(struct hc_redact_rules *rules);

/* `kind` is static text: a-z and _. A text below the least length is left out. 0 or -ENOMEM. */
int hc_redact_add_text(struct hc_redact_rules *rules, const char *kind, const char *text,
                       enum hc_redact_edge edge);

/* A pattern: letters as they are, "." any byte but a newline, [a-z] and [^a-z], \d \w \s and "\" before any
 * other sign, each followed by * + ? {m} {m,} {m,n} if wanted. No groups, alternatives or anchors: give
 * several patterns. HC_REDACT_BAD with a reason; -ENOMEM. */
enum { HC_REDACT_BAD = 1 };
int hc_redact_add_pattern(struct hc_redact_rules *rules, const char *kind, const char *pattern,
                          char ret_reason[128]);

struct hc_redact_count {
    const char *kind;
    uint64_t count;
};

#define HC_REDACT_KINDS_MAX 8

struct hc_redacted {
    uint8_t *data; /* NUL behind it; NULL: nothing was found, the input is what may leave */
    size_t bytes;
    struct hc_redact_count counts[HC_REDACT_KINDS_MAX];
    size_t kinds;
};

/* head_bytes < n: data is the first head_bytes and the last n - head_bytes of a longer stream. rules may be
 * NULL. 0 or -ENOMEM. */
int hc_redact(const struct hc_redact_rules *rules, const uint8_t *data, size_t n, size_t head_bytes,
              struct hc_redacted *ret);
void hc_redacted_done(struct hc_redacted *redacted);

#endif
