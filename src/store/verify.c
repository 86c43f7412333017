#include "store/verify.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct hc_verifier {
    struct hc_verification result;
    struct hc_link previous, anchor;
    bool anchored, anchor_seen;
    json_t *requests; /* digest of a request's document → seq of its record */
    json_t *wanted;   /* digest of another blob → seq */
    json_t *seen;     /* digest → true */
};

struct hc_verifier *hc_verifier_new(const struct hc_link *anchor)
{
    struct hc_verifier *v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->requests = json_object();
    v->wanted = json_object();
    v->seen = json_object();
    if (v->requests == NULL || v->wanted == NULL || v->seen == NULL) {
        hc_verifier_done(v);
        return NULL;
    }
    v->anchored = anchor != NULL;
    if (anchor != NULL)
        v->anchor = *anchor;
    return v;
}

void hc_verifier_done(struct hc_verifier *v)
{
    if (v == NULL)
        return;
    json_decref(v->requests);
    json_decref(v->wanted);
    json_decref(v->seen);
    free(v);
}

const struct hc_verification *hc_verifier_result(const struct hc_verifier *v)
{
    return &v->result;
}

int hc_verifier_broken(struct hc_verifier *v, uint64_t line, const char *rule, const char *expected,
                       const char *got, const char *message, ...)
{
    char raw[200];
    va_list args;
    struct hc_defect *defect = &v->result.defect;
    *defect = (struct hc_defect){.rule = rule};
    va_start(args, message);
    (void)vsnprintf(raw, sizeof raw, message, args);
    va_end(args);
    size_t n =
        hc_escape_visible((const uint8_t *)raw, strlen(raw), defect->message, sizeof defect->message - 1);
    defect->message[n] = '\0';
    (void)snprintf(defect->expected, sizeof defect->expected, "%s", expected != NULL ? expected : "");
    (void)snprintf(defect->got, sizeof defect->got, "%s", got != NULL ? got : "");
    v->result.broken = true;
    v->result.bad_line = line;
    return HC_LINK_BROKEN;
}

void hc_verifier_start(struct hc_verifier *v, const struct hc_link *previous)
{
    v->previous = *previous;
}

const char *hc_record_request_sha256(const json_t *record)
{
    return json_string_value(json_object_get(json_object_get(record, "request"), "sha256"));
}

static int defect_at(struct hc_verifier *v, int64_t seq, uint64_t line)
{
    v->result.broken = true;
    v->result.bad_seq = seq;
    v->result.bad_line = line;
    return HC_LINK_BROKEN;
}

static int check_anchor(struct hc_verifier *v, const struct hc_link *link, uint64_t line)
{
    if (!v->anchored || link->seq != v->anchor.seq)
        return 0;
    v->anchor_seen = true;
    if (strcmp(link->sha256, v->anchor.sha256) == 0)
        return 0;
    v->result.bad_seq = link->seq;
    return hc_verifier_broken(v, line, "head", v->anchor.sha256, link->sha256,
                              "record %" PRId64 " is not the one that the given head names", link->seq);
}

int hc_verifier_record(struct hc_verifier *v, const char *text, size_t n, uint64_t line)
{
    struct hc_link link;
    json_t *record = NULL;
    int outcome = hc_link_read(text, n, &link, &record, &v->result.defect);
    if (outcome < 0)
        return outcome;
    if (outcome != 0)
        return defect_at(v, v->previous.seq + 1, line);
    if (!hc_link_follows(&v->previous, &link, &v->result.defect)) {
        json_decref(record);
        return defect_at(v, v->previous.seq + 1, line);
    }
    const char *request = hc_record_request_sha256(record);
    if (request != NULL && json_object_set_new(v->requests, request, json_integer(link.seq)) != 0)
        outcome = -ENOMEM;
    json_decref(record);
    if (outcome == 0)
        outcome = check_anchor(v, &link, line);
    if (v->result.records++ == 0)
        v->result.first_seq = link.seq;
    v->previous = v->result.last = link;
    return outcome;
}

/* A request's document names what was kept beside it. */
static int take_kept(struct hc_verifier *v, int64_t seq, const void *data, size_t n)
{
    json_t *document = json_loadb(data, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL), *item;
    size_t i;
    int error = 0;
    json_array_foreach(json_object_get(document, "kept"), i, item)
    {
        if (error == 0 && json_is_string(item) &&
            json_object_get(v->wanted, json_string_value(item)) == NULL &&
            json_object_set_new(v->wanted, json_string_value(item), json_integer(seq)) != 0)
            error = -ENOMEM;
    }
    json_decref(document);
    return error;
}

int hc_verifier_blob(struct hc_verifier *v, const char *sha256, const void *data, size_t n, uint64_t line)
{
    char digest[65];
    int error = hc_sha256_hex(data, n, digest);
    if (error < 0)
        return error;
    const json_t *request = json_object_get(v->requests, sha256);
    if (strcmp(digest, sha256) != 0) {
        const json_t *seq = request != NULL ? request : json_object_get(v->wanted, sha256);
        v->result.bad_seq = json_integer_value(seq);
        return hc_verifier_broken(v, line, "blob", sha256, digest,
                                  "a blob was changed: its digest is another");
    }
    v->result.blobs++;
    if (json_object_set_new(v->seen, sha256, json_true()) != 0)
        return -ENOMEM;
    return request != NULL ? take_kept(v, json_integer_value(request), data, n) : 0;
}

int hc_verifier_head(struct hc_verifier *v, const struct hc_link *head, uint64_t line)
{
    char expected[128], got[128];
    const struct hc_link *last = &v->result.last;
    if (head->seq == last->seq && strcmp(head->sha256, last->sha256) == 0)
        return 0;
    (void)snprintf(expected, sizeof expected, "%" PRId64 ":%s", head->seq, head->sha256);
    (void)snprintf(got, sizeof got, "%" PRId64 ":%s", last->seq, last->sha256);
    v->result.bad_seq = last->seq + (head->seq > last->seq ? 1 : 0);
    return hc_verifier_broken(v, line, "end", expected, got,
                              head->seq > last->seq ? "records are missing at the end"
                                                    : "the chain does not end where its head says");
}

static int missing(struct hc_verifier *v, const json_t *wanted, const char *what)
{
    const char *sha256;
    json_t *seq;
    json_object_foreach((json_t *)wanted, sha256, seq)
    {
        if (json_object_get(v->seen, sha256) != NULL)
            continue;
        v->result.bad_seq = json_integer_value(seq);
        return hc_verifier_broken(v, 0, "blob", sha256, "nothing", "%s is missing", what);
    }
    return 0;
}

int hc_verifier_end(struct hc_verifier *v, bool blobs_there)
{
    char expected[128];
    v->result.blobs_there = blobs_there;
    if (v->anchored && !v->anchor_seen) {
        (void)snprintf(expected, sizeof expected, "%" PRId64 ":%s", v->anchor.seq, v->anchor.sha256);
        v->result.bad_seq = v->anchor.seq;
        return hc_verifier_broken(v, 0, "head", expected, "no such record",
                                  v->anchor.seq > v->result.last.seq
                                      ? "records are missing at the end: the given head is beyond it"
                                      : "the given head lies before the first record");
    }
    int outcome = blobs_there ? missing(v, v->requests, "the document of a request") : 0;
    return outcome == 0 && blobs_there ? missing(v, v->wanted, "a blob that a request names") : outcome;
}

/* ---- a store ---- */

struct walk {
    struct hc_verifier *verifier;
    struct hc_store *store;
};

/* The columns are what `log` filters by: they have to say what the record says. */
static const char *wrong_column(const struct hc_stored *stored, const json_t *record)
{
    const char *status = json_string_value(json_object_get(record, "status"));
    const char *kind = json_string_value(json_object_get(record, "schema"));
    const json_t *origin = json_object_get(record, "origin"), *run = json_object_get(record, "run");
    const struct {
        const char *name, *column, *record;
    } rows[] = {
        {"id", stored->id, json_string_value(json_object_get(record, "id"))},
        {"kind", stored->kind, kind != NULL ? kind : "hotcell.run/1"},
        {"created_at", stored->created_at, json_string_value(json_object_get(record, "created_at"))},
        {"status", stored->status,
         status != NULL ? status : json_string_value(json_object_get(record, "verdict"))},
        {"language", stored->language,
         json_string_value(json_object_get(json_object_get(record, "runtime"), "language"))},
        {"subject", stored->subject, json_string_value(json_object_get(origin != NULL ? origin : run, "id"))},
        {"sha256", stored->sha256,
         json_string_value(json_object_get(json_object_get(record, "chain"), "sha256"))},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!hc_string_equal(rows[i].column, rows[i].record))
            return rows[i].name;
    return NULL;
}

static int visit_record(const struct hc_stored *stored, void *context)
{
    struct hc_verifier *v = ((struct walk *)context)->verifier;
    char number[32];
    int outcome = hc_verifier_record(v, stored->text != NULL ? stored->text : "", stored->bytes, 0);
    if (outcome != 0)
        return outcome;
    json_t *record = json_loadb(stored->text, stored->bytes, JSON_ALLOW_NUL, NULL);
    const char *column = wrong_column(stored, record);
    if (column == NULL && stored->seq != v->previous.seq)
        column = "seq";
    json_decref(record);
    if (column == NULL)
        return 0;
    (void)snprintf(number, sizeof number, "row %" PRId64, stored->seq);
    v->result.bad_seq = v->previous.seq;
    return hc_verifier_broken(v, 0, "row", "what the record says", number,
                              "the table's column %s is not what its record says", column);
}

static int visit_blob(const char *sha256, void *context)
{
    struct walk *walk = context;
    hc_autofree void *data = NULL;
    size_t n = 0;
    int outcome = hc_store_blob(walk->store, sha256, &data, &n);
    if (outcome == HC_STORE_ABSENT)
        return hc_verifier_broken(walk->verifier, 0, "blob", "64 hexadecimal digits", NULL,
                                  "blobs/ holds a file that is none: %.80s", sha256);
    return outcome != 0 ? outcome : hc_verifier_blob(walk->verifier, sha256, data, n, 0);
}

int hc_verify_store(struct hc_store *store, const struct hc_link *anchor, struct hc_verification *ret,
                    char ret_message[256])
{
    struct hc_store_filter all = {0};
    struct hc_link head;
    struct hc_verifier *v = hc_verifier_new(anchor);
    struct walk walk = {.verifier = v, .store = store};
    if (v == NULL)
        return -ENOMEM;
    int outcome = hc_store_read_begin(store, ret_message);
    if (outcome == 0)
        outcome = hc_store_each(store, &all, visit_record, &walk, ret_message);
    if (outcome == 0)
        outcome = hc_store_head(store, &head, ret_message);
    if (outcome == 0)
        outcome = hc_verifier_head(v, &head, 0);
    if (outcome == 0)
        outcome = hc_store_each_blob(store, visit_blob, &walk, ret_message);
    if (outcome == 0)
        outcome = hc_verifier_end(v, true);
    if (outcome == -EBADMSG) {
        v->result.bad_seq = v->previous.seq + 1;
        outcome = hc_verifier_broken(v, 0, "form", NULL, NULL, "the database is damaged: %s", ret_message);
    }
    hc_store_read_end(store);
    *ret = v->result;
    hc_verifier_done(v);
    return outcome < 0 ? outcome : 0;
}
