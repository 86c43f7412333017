#include "flow/release.h"

#include "base/clock.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "store/verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void hc_record_id(const char *prefix, char out[40])
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    uint8_t random[20];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        memset(random, 0, sizeof random);
    char *at = out + snprintf(out, 40, "%.18s-", prefix);
    for (size_t i = 0; i < sizeof random; i++)
        *at++ = digits[random[i] & 31];
    *at = '\0';
}

static const char *text_at(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

__attribute__((format(printf, 2, 3))) static int refused(char ret_message[256], const char *message, ...)
{
    va_list args;
    va_start(args, message);
    (void)vsnprintf(ret_message, 256, message, args);
    va_end(args);
    return HC_RELEASE_REFUSED;
}

/* ---- what holds now ---- */

struct latest {
    const char *sha256;
    json_t *record;
};

static int take_latest(const struct hc_stored *stored, void *context)
{
    struct latest *latest = context;
    json_t *record = json_loadb(stored->text, stored->bytes, JSON_ALLOW_NUL, NULL);
    if (!hc_string_equal(text_at(json_object_get(record, "run"), "sha256"), latest->sha256)) {
        json_decref(record);
        return 0;
    }
    latest->record = record;
    return 1; /* the newest counts */
}

int hc_release_present(struct hc_store *store, const char *run, const char *sha256, json_t **ret_release,
                       char ret_message[256])
{
    struct hc_store_filter filter = {.kind = "hotcell.release/1", .subject = run, .newest_first = true};
    struct latest latest = {.sha256 = sha256};
    int outcome = hc_store_each(store, &filter, take_latest, &latest, ret_message);
    if (outcome < 0)
        return outcome;
    const json_t *r = latest.record;
    *ret_release =
        r == NULL
            ? json_pack("{s:s, s:n, s:n, s:n, s:n}", "status", "not_authorised", "by", "at", "note", "record")
            : json_pack("{s:O, s:O, s:O, s:O, s:O}", "status", json_object_get(r, "status"), "by",
                        json_object_get(r, "by"), "at", json_object_get(r, "created_at"), "note",
                        json_object_get(r, "note"), "record", json_object_get(r, "id"));
    json_decref(latest.record);
    return *ret_release != NULL ? 0 : -ENOMEM;
}

/* ---- a new one ---- */

static bool is_line(const char *text, size_t max)
{
    size_t n = strlen(text);
    bool good = n > 0 && n <= max && hc_utf8_valid(text, n);
    for (size_t i = 0; i < n; i++)
        good = good && (unsigned char)text[i] >= 32 && text[i] != 127;
    return good;
}

static int check_wish(const struct hc_release_wish *wish, char ret_message[256])
{
    if (wish->by == NULL || !is_line(wish->by, HC_RELEASE_BY_MAX))
        return refused(ret_message, "--by: wanted a name of 1 to 200 bytes, one line of UTF-8");
    if (wish->note != NULL && !is_line(wish->note, HC_RELEASE_NOTE_MAX))
        return refused(ret_message, "--note: wanted 1 to 2000 bytes, one line of UTF-8");
    return 0;
}

static int check_chain(struct hc_store *store, char ret_message[256])
{
    struct hc_verification found;
    int error = hc_verify_store(store, NULL, &found, ret_message);
    if (error < 0 || !found.broken)
        return error;
    (void)snprintf(ret_message, 256, "the chain is broken at record %lld (%s): `hotcell verify` tells more",
                   (long long)found.bad_seq, found.defect.rule);
    return HC_RELEASE_REFUSED;
}

static int find_run(struct hc_store *store, const char *id, json_t **ret_record, char ret_message[256])
{
    int outcome = hc_store_find(store, id, ret_record, NULL, ret_message);
    if (outcome == HC_STORE_ABSENT)
        return refused(ret_message, "%.100s: there is no such record", id);
    if (outcome == HC_STORE_SEVERAL)
        return refused(ret_message, "%.100s: several records begin so", id);
    if (outcome < 0)
        return outcome;
    const char *state = text_at(*ret_record, "state");
    if (!hc_string_equal(text_at(*ret_record, "schema"), "hotcell.run/1"))
        outcome = refused(ret_message, "%.100s: is not the record of a run", id);
    else if (!hc_string_equal(state, "finished"))
        outcome =
            refused(ret_message, "the run did not finish (state %.20s): there is nothing to release", state);
    if (outcome != 0)
        json_decref(*ret_record);
    return outcome;
}

struct check {
    const char *run, *sha256;
    bool revoke;
};

/* Under the writer's lock: two people can't both release it. */
static int check_state(struct hc_store *store, void *context, char ret_message[256])
{
    const struct check *check = context;
    json_t *present = NULL;
    int outcome = hc_release_present(store, check->run, check->sha256, &present, ret_message);
    if (outcome < 0)
        return outcome;
    bool authorised = hc_string_equal(text_at(present, "status"), "authorised");
    const char *by = text_at(present, "by");
    if (authorised && !check->revoke)
        outcome = refused(ret_message, "it is released already, by %.100s", by);
    else if (!authorised && check->revoke)
        outcome = refused(ret_message, "it is not released");
    json_decref(present);
    return outcome;
}

int hc_release(struct hc_store *store, const struct hc_release_wish *wish, json_t **ret_record,
               char ret_message[256])
{
    json_t *run = NULL;
    char id[40], now[40];
    int outcome = check_wish(wish, ret_message);
    if (outcome == 0)
        outcome = find_run(store, wish->run, &run, ret_message);
    if (outcome != 0)
        return outcome;
    struct check check = {text_at(run, "id"), text_at(json_object_get(run, "chain"), "sha256"), wish->revoke};
    outcome = check_chain(store, ret_message);
    hc_record_id("release", id);
    hc_rfc3339_now(now);
    json_t *record = json_pack(
        "{s:s, s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:s?, s:n}", "schema", "hotcell.release/1", "id", id,
        "created_at", now, "run", "id", check.run, "sha256", check.sha256, "status",
        wish->revoke ? "not_authorised" : "authorised", "by", wish->by, "note", wish->note, "chain");
    if (outcome == 0 && record == NULL)
        outcome = -ENOMEM;
    if (outcome == 0)
        outcome = hc_store_append_if(store, record, check_state, &check, ret_message);
    if (outcome == 0)
        *ret_record = json_incref(record);
    json_decref(record);
    json_decref(run);
    return outcome;
}
