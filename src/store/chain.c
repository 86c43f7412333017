#include "store/chain.h"

#include "base/canonical.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NO_DIGEST "0000000000000000000000000000000000000000000000000000000000000000"

static int broken(struct hc_defect *defect, const char *rule, const char *message, ...)
    __attribute__((format(printf, 3, 4)));

static int broken(struct hc_defect *defect, const char *rule, const char *message, ...)
{
    char raw[160];
    va_list args;
    *defect = (struct hc_defect){.rule = rule};
    va_start(args, message);
    (void)vsnprintf(raw, sizeof raw, message, args);
    va_end(args);
    size_t n =
        hc_escape_visible((const uint8_t *)raw, strlen(raw), defect->message, sizeof defect->message - 1);
    defect->message[n] = '\0';
    return HC_LINK_BROKEN;
}

static bool is_digest(const char *text)
{
    return text != NULL && strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* Where the 64 digits of the record's own digest lie in its canonical text. Raw quotes stand around names
 * only, so neither token can be part of a text; sha256 is the last name in chain. */
static char *own_digest(char *text)
{
    char *chain = strstr(text, "\"chain\":{\"previous_sha256\":");
    char *name = chain != NULL ? strstr(chain, ",\"sha256\":\"") : NULL;
    return name != NULL && strlen(name) >= 11 + 64 + 2 ? name + 11 : NULL;
}

/* The digest of the text without `,"sha256":"…"`. */
static int digest_of(const char *text, size_t n, const char *digits, char ret_sha256[65])
{
    const char *from = digits - 11, *to = digits + 64 + 1;
    struct hc_sha256 sha = {0};
    int error = hc_sha256_init(&sha);
    if (error == 0)
        error = hc_sha256_update(&sha, text, (size_t)(from - text));
    if (error == 0)
        error = hc_sha256_update(&sha, to, n - (size_t)(to - text));
    if (error == 0)
        error = hc_sha256_final_hex(&sha, ret_sha256);
    hc_sha256_done(&sha);
    return error;
}

static int read_chain(const json_t *record, struct hc_link *ret_link, struct hc_defect *defect)
{
    const json_t *chain = json_object_get(record, "chain");
    const json_t *seq = json_object_get(chain, "seq"), *previous = json_object_get(chain, "previous_sha256");
    const char *sha256 = json_string_value(json_object_get(chain, "sha256"));
    if (!json_is_object(chain) || json_object_size(chain) != 3 || !json_is_integer(seq) ||
        json_integer_value(seq) < 1 || !is_digest(sha256) ||
        !(json_is_null(previous) || is_digest(json_string_value(previous))))
        return broken(defect, "form", "chain is not {previous_sha256, seq, sha256}");
    *ret_link = (struct hc_link){.seq = json_integer_value(seq)};
    (void)snprintf(ret_link->sha256, 65, "%s", sha256);
    if (json_is_string(previous))
        (void)snprintf(ret_link->previous_sha256, 65, "%s", json_string_value(previous));
    return 0;
}

static int check_form(const json_t *record, const char *text, size_t n, struct hc_defect *defect)
{
    hc_autofree char *canonical = hc_json_canonical(record);
    if (canonical == NULL)
        return -ENOMEM;
    size_t length = strlen(canonical), at = 0;
    while (at < n && at < length && canonical[at] == text[at])
        at++;
    if (n == length && at == n)
        return 0;
    int outcome = broken(defect, "form", "byte %zu is not that of the canonical form", at + 1);
    (void)snprintf(defect->expected, sizeof defect->expected, "%zu bytes", length);
    (void)snprintf(defect->got, sizeof defect->got, "%zu bytes", n);
    return outcome;
}

int hc_link_read(const char *text, size_t n, struct hc_link *ret_link, json_t **ret_record,
                 struct hc_defect *ret_defect)
{
    json_error_t problem;
    struct hc_link link = {0};
    char sha256[65];
    if (n > HC_RECORD_BYTES_MAX)
        return broken(ret_defect, "form", "longer than any record");
    json_t *record = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
    if (!json_is_object(record)) {
        json_decref(record);
        return broken(ret_defect, "form", "is no JSON object: %.80s (byte %d)",
                      record == NULL ? problem.text : "another value", problem.position);
    }
    int outcome = read_chain(record, &link, ret_defect);
    if (outcome == 0)
        outcome = check_form(record, text, n, ret_defect);
    char *digits = outcome == 0 ? own_digest((char *)(uintptr_t)text) : NULL;
    if (outcome == 0 && digits == NULL)
        outcome = broken(ret_defect, "form", "chain is not where it belongs");
    if (outcome == 0)
        outcome = digest_of(text, n, digits, sha256);
    if (outcome == 0 && strcmp(sha256, link.sha256) != 0) {
        outcome = broken(ret_defect, "content", "the record was changed: its digest is another");
        (void)snprintf(ret_defect->expected, sizeof ret_defect->expected, "%s", link.sha256);
        (void)snprintf(ret_defect->got, sizeof ret_defect->got, "%s", sha256);
    }
    if (outcome == 0)
        *ret_link = link;
    if (outcome == 0 && ret_record != NULL)
        *ret_record = record;
    else
        json_decref(record);
    return outcome;
}

bool hc_link_follows(const struct hc_link *previous, const struct hc_link *link, struct hc_defect *ret_defect)
{
    int64_t seq = previous->seq + 1;
    if (link->seq != seq) {
        (void)broken(ret_defect, "order",
                     link->seq > seq ? "records are missing before it, or it was moved"
                                     : "it does not belong here: repeated, inserted or moved");
        (void)snprintf(ret_defect->expected, sizeof ret_defect->expected, "seq %" PRId64, seq);
        (void)snprintf(ret_defect->got, sizeof ret_defect->got, "seq %" PRId64, link->seq);
        return false;
    }
    if (strcmp(previous->sha256, link->previous_sha256) == 0)
        return true;
    (void)broken(ret_defect, "link", "it does not follow the record before it");
    (void)snprintf(ret_defect->expected, sizeof ret_defect->expected, "previous_sha256 %s",
                   previous->sha256[0] != '\0' ? previous->sha256 : "null");
    (void)snprintf(ret_defect->got, sizeof ret_defect->got, "previous_sha256 %s",
                   link->previous_sha256[0] != '\0' ? link->previous_sha256 : "null");
    return false;
}

char *hc_link_make(json_t *record, const struct hc_link *previous, struct hc_link *ret_link)
{
    struct hc_link link = {.seq = previous->seq + 1};
    memcpy(link.previous_sha256, previous->sha256, sizeof link.previous_sha256);
    json_t *chain =
        json_pack("{s:I, s:o, s:s}", "seq", (json_int_t)link.seq, "previous_sha256",
                  previous->seq > 0 ? json_string(previous->sha256) : json_null(), "sha256", NO_DIGEST);
    if (chain == NULL || json_object_set_new(record, "chain", chain) != 0)
        return NULL;
    hc_autofree char *text = hc_json_canonical(record);
    char *digits = text != NULL ? own_digest(text) : NULL;
    if (digits == NULL || digest_of(text, strlen(text), digits, link.sha256) != 0 ||
        json_object_set_new(chain, "sha256", json_string(link.sha256)) != 0)
        return NULL;
    memcpy(digits, link.sha256, 64);
    *ret_link = link;
    return hc_take_pointer(&text);
}

bool hc_head_parse(const char *text, struct hc_link *ret_head)
{
    size_t digits = strspn(text, "0123456789");
    *ret_head = (struct hc_link){0};
    if (digits == 0 || digits > 18 || text[0] == '0' || text[digits] != ':' || !is_digest(text + digits + 1))
        return false;
    ret_head->seq = strtoll(text, NULL, 10);
    memcpy(ret_head->sha256, text + digits + 1, 65);
    return true;
}
