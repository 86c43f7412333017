#include "store/log_file.h"

#include "base/base64.h"
#include "base/canonical.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "store/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* ---- writing ---- */

struct writer {
    struct hc_store *store;
    FILE *out;
    struct hc_sha256 sha;
    struct hc_link last;
    int64_t records, blobs;
    json_t *wanted; /* digests of blobs */
};

static int put_line(struct writer *w, const char *text, size_t n)
{
    int error = hc_sha256_update(&w->sha, text, n);
    if (error == 0)
        error = hc_sha256_update(&w->sha, "\n", 1);
    if (error == 0 && (fwrite(text, 1, n, w->out) != n || fputc('\n', w->out) == EOF))
        error = errno != 0 ? -errno : -EIO;
    return error;
}

static int put_document(struct writer *w, json_t *document)
{
    hc_autofree char *text = document != NULL ? hc_json_canonical(document) : NULL;
    json_decref(document);
    return text == NULL ? -ENOMEM : put_line(w, text, strlen(text));
}

static int want(struct writer *w, const char *sha256)
{
    return json_object_set_new(w->wanted, sha256, json_true()) != 0 ? -ENOMEM : 0;
}

static int want_kept(struct writer *w, const char *request)
{
    hc_autofree void *data = NULL;
    size_t n = 0, i;
    json_t *item;
    int error = hc_store_blob(w->store, request, &data, &n);
    if (error != 0)
        return error < 0 ? error : 0;
    json_t *document = json_loadb(data, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    error = want(w, request);
    json_array_foreach(json_object_get(document, "kept"), i, item)
    {
        if (error == 0 && json_is_string(item))
            error = want(w, json_string_value(item));
    }
    json_decref(document);
    return error;
}

static int put_record(const struct hc_stored *stored, void *context)
{
    struct writer *w = context;
    w->last = (struct hc_link){.seq = stored->seq};
    (void)snprintf(w->last.sha256, sizeof w->last.sha256, "%s", stored->sha256);
    w->records++;
    int error = put_line(w, stored->text, stored->bytes);
    if (error < 0 || w->wanted == NULL)
        return error;
    json_t *record = json_loadb(stored->text, stored->bytes, JSON_ALLOW_NUL, NULL);
    const char *request = hc_record_request_sha256(record);
    error = request != NULL ? want_kept(w, request) : 0;
    json_decref(record);
    return error;
}

static int put_blobs(struct writer *w)
{
    const char *sha256;
    json_t *value;
    int error = 0;
    json_object_foreach(w->wanted, sha256, value)
    {
        hc_autofree void *data = NULL;
        size_t n = 0;
        error = hc_store_blob(w->store, sha256, &data, &n);
        if (error < 0)
            return error;
        if (error != 0) /* gone: verification of the file will say so */
            continue;
        hc_autofree char *text = hc_base64_encode(data, n);
        error = text == NULL ? -ENOMEM
                             : put_document(w, json_pack("{s:{s:s, s:I, s:s}}", "blob", "base64", text,
                                                         "bytes", (json_int_t)n, "sha256", sha256));
        if (error < 0)
            return error;
        w->blobs++;
    }
    return 0;
}

struct first {
    struct hc_link previous;
    int64_t seq;
};

static int take_first(const struct hc_stored *stored, void *context)
{
    struct first *first = context;
    json_t *record = json_loadb(stored->text, stored->bytes, JSON_ALLOW_NUL, NULL);
    const char *previous =
        json_string_value(json_object_get(json_object_get(record, "chain"), "previous_sha256"));
    first->seq = stored->seq;
    (void)snprintf(first->previous.sha256, 65, "%s", previous != NULL ? previous : "");
    json_decref(record);
    return 0;
}

static int put_header(struct writer *w, const struct hc_log_export *what, char ret_message[256])
{
    struct first first = {.seq = 1};
    struct hc_store_filter filter = {.from_seq = what->from_seq, .limit = 1};
    char now[40];
    int error = hc_store_each(w->store, &filter, take_first, &first, ret_message);
    if (error < 0)
        return error;
    hc_rfc3339_now(now);
    return put_document(
        w, json_pack("{s:s, s:s, s:s, s:b, s:I, s:o}", "schema", "hotcell.log/1", "created_at", now,
                     "program", "hotcell " HC_VERSION, "blobs", what->blobs, "first_seq",
                     (json_int_t)first.seq, "previous_sha256",
                     first.previous.sha256[0] != '\0' ? json_string(first.previous.sha256) : json_null()));
}

static int put_head(struct writer *w)
{
    char digest[65];
    int error = hc_sha256_final_hex(&w->sha, digest);
    if (error == 0)
        error = hc_sha256_init(&w->sha); /* put_line goes on counting; nobody asks any more */
    if (error < 0)
        return error;
    return put_document(w, json_pack("{s:s, s:I, s:o, s:I, s:I, s:s}", "schema", "hotcell.head/1", "seq",
                                     (json_int_t)w->last.seq, "sha256",
                                     w->last.seq > 0 ? json_string(w->last.sha256) : json_null(), "records",
                                     (json_int_t)w->records, "blobs", (json_int_t)w->blobs, "file_sha256",
                                     digest));
}

int hc_log_write(struct hc_store *store, const struct hc_log_export *what, FILE *out,
                 struct hc_link *ret_head, char ret_message[256])
{
    struct writer w = {.store = store, .out = out, .wanted = what->blobs ? json_object() : NULL};
    struct hc_store_filter filter = {.from_seq = what->from_seq, .limit = what->limit};
    int error = hc_sha256_init(&w.sha);
    ret_message[0] = '\0';
    if (error == 0)
        error = hc_store_read_begin(store, ret_message);
    if (error == 0)
        error = put_header(&w, what, ret_message);
    if (error == 0)
        error = hc_store_each(store, &filter, put_record, &w, ret_message);
    if (error == 0 && w.wanted != NULL)
        error = put_blobs(&w);
    if (error == 0)
        error = put_head(&w);
    if (error == 0 && fflush(out) != 0)
        error = -errno;
    hc_store_read_end(store);
    hc_sha256_done(&w.sha);
    json_decref(w.wanted);
    if (error < 0 && ret_message[0] == '\0')
        (void)snprintf(ret_message, 256, "%s", strerror(-error));
    *ret_head = w.last;
    return error;
}

/* ---- reading ---- */

struct reader {
    FILE *in;
    char *line;
    size_t room, n;
    uint64_t number;
    struct hc_sha256 sha;
};

/* 1: a line (without its newline); 0: the end; -EBADMSG: the last line is not ended. */
static int next_line(struct reader *r)
{
    errno = 0;
    ssize_t n = getline(&r->line, &r->room, r->in);
    if (n < 0)
        return ferror(r->in) || errno == ENOMEM ? (errno != 0 ? -errno : -EIO) : 0;
    r->number++;
    if (r->line[n - 1] != '\n')
        return -EBADMSG;
    r->n = (size_t)n - 1;
    r->line[r->n] = '\0';
    return 1;
}

static int count_line(struct reader *r)
{
    int error = hc_sha256_update(&r->sha, r->line, r->n);
    return error < 0 ? error : hc_sha256_update(&r->sha, "\n", 1);
}

/* A line of ours: an object in canonical form with exactly these names; NULL otherwise. */
static json_t *document_of(const struct reader *r, const char *const *names)
{
    json_t *document = json_loadb(r->line, r->n, JSON_REJECT_DUPLICATES, NULL);
    hc_autofree char *canonical = json_is_object(document) ? hc_json_canonical(document) : NULL;
    size_t count = 0;
    bool good = canonical != NULL && strlen(canonical) == r->n && memcmp(canonical, r->line, r->n) == 0;
    for (; good && names[count] != NULL; count++)
        good = json_object_get(document, names[count]) != NULL;
    if (good && json_object_size(document) == count)
        return document;
    json_decref(document);
    return NULL;
}

static bool begins(const struct reader *r, const char *text)
{
    return strncmp(r->line, text, strlen(text)) == 0;
}

static int read_header(struct reader *r, struct hc_verifier *v, bool *ret_blobs)
{
    static const char *const names[] = {"blobs",   "created_at", "first_seq", "previous_sha256",
                                        "program", "schema",     NULL};
    json_t *header = document_of(r, names);
    const char *schema = json_string_value(json_object_get(header, "schema"));
    const json_t *seq = json_object_get(header, "first_seq");
    const json_t *previous = json_object_get(header, "previous_sha256");
    int64_t first = json_integer_value(seq);
    bool good = header != NULL && hc_string_equal(schema, "hotcell.log/1") && json_is_integer(seq) &&
                first >= 1 && json_is_boolean(json_object_get(header, "blobs")) &&
                (json_is_null(previous) ? first == 1 : json_string_length(previous) == 64 && first > 1);
    if (good) {
        struct hc_link start = {.seq = first - 1};
        if (json_is_string(previous))
            memcpy(start.sha256, json_string_value(previous), 65);
        hc_verifier_start(v, &start);
        *ret_blobs = json_is_true(json_object_get(header, "blobs"));
    }
    json_decref(header);
    return good ? 0
                : hc_verifier_broken(v, r->number, "header", "a line of schema hotcell.log/1", NULL,
                                     "the file does not begin with the header of an exported log");
}

/* *ret_data is NULL when the line is no blob in its form. */
static int parse_blob(const struct reader *r, char ret_sha256[65], uint8_t **ret_data, size_t *ret_bytes)
{
    static const char *const names[] = {"blob", NULL};
    json_t *line = document_of(r, names);
    const json_t *blob = json_object_get(line, "blob");
    const json_t *text = json_object_get(blob, "base64");
    const char *sha256 = json_string_value(json_object_get(blob, "sha256"));
    int error = 0;
    *ret_data = NULL;
    if (json_object_size(blob) == 3 && json_is_string(text) && sha256 != NULL && strlen(sha256) == 64)
        error = hc_base64_decode(json_string_value(text), json_string_length(text), ret_data, ret_bytes);
    if (error == 0 && *ret_data != NULL) {
        memcpy(ret_sha256, sha256, 65);
        if ((json_int_t)*ret_bytes != json_integer_value(json_object_get(blob, "bytes"))) {
            free(*ret_data);
            *ret_data = NULL;
        }
    }
    json_decref(line);
    return error == -EINVAL ? 0 : error;
}

static int read_blob(struct reader *r, struct hc_verifier *v)
{
    char sha256[65];
    hc_autofree uint8_t *data = NULL;
    size_t n = 0;
    int error = parse_blob(r, sha256, &data, &n);
    if (error < 0)
        return error;
    if (data == NULL)
        return hc_verifier_broken(v, r->number, "form", NULL, NULL, "the line is no blob");
    return hc_verifier_blob(v, sha256, data, n, r->number);
}

static int read_head(struct reader *r, struct hc_verifier *v)
{
    static const char *const names[] = {"blobs", "file_sha256", "records", "schema", "seq", "sha256", NULL};
    const struct hc_verification *found = hc_verifier_result(v);
    char digest[65], expected[64], got[64];
    struct hc_link head = {0};
    json_t *line = document_of(r, names);
    int outcome = hc_sha256_final_hex(&r->sha, digest);
    if (outcome == 0 && (line == NULL || !hc_string_equal(json_string_value(json_object_get(line, "schema")),
                                                          "hotcell.head/1")))
        outcome = hc_verifier_broken(v, r->number, "form", NULL, NULL, "the line is no head");
    if (outcome == 0) {
        const char *sha256 = json_string_value(json_object_get(line, "sha256"));
        const char *file = json_string_value(json_object_get(line, "file_sha256"));
        int64_t records = json_integer_value(json_object_get(line, "records"));
        int64_t blobs = json_integer_value(json_object_get(line, "blobs"));
        head.seq = json_integer_value(json_object_get(line, "seq"));
        /* A longer text would be cut to what is expected. */
        bool fits = sha256 == NULL || strlen(sha256) == 64;
        (void)snprintf(head.sha256, sizeof head.sha256, "%s", sha256 == NULL ? "" : fits ? sha256 : "?");
        (void)snprintf(expected, sizeof expected, "%" PRId64 " records, %" PRId64 " blobs", records, blobs);
        (void)snprintf(got, sizeof got, "%" PRId64 " records, %" PRId64 " blobs", found->records,
                       found->blobs);
        outcome = hc_verifier_head(v, &head, r->number);
        if (outcome == 0 && strcmp(expected, got) != 0)
            outcome =
                hc_verifier_broken(v, r->number, "end", expected, got, "lines are missing or were added");
        if (outcome == 0 && !hc_string_equal(file, digest))
            outcome = hc_verifier_broken(v, r->number, "content", file, digest,
                                         "the file was changed: the digest of its lines is another");
    }
    json_decref(line);
    return outcome;
}

static int read_lines(struct reader *r, struct hc_verifier *v)
{
    bool blobs = false, in_blobs = false;
    int more = next_line(r);
    if (more == 0)
        return hc_verifier_broken(v, 1, "header", "a line of schema hotcell.log/1", "nothing",
                                  "the file is empty");
    int outcome = more == 1 ? read_header(r, v, &blobs) : more;
    if (outcome == 0)
        outcome = count_line(r);
    while (outcome == 0 && (more = next_line(r)) == 1) {
        if (begins(r, "{\"blobs\":")) {
            outcome = read_head(r, v);
            if (outcome == 0 && fgetc(r->in) != EOF)
                outcome = hc_verifier_broken(v, r->number + 1, "end", "the end of the file", "more lines",
                                             "something was added behind the head");
            return outcome != 0 ? outcome : hc_verifier_end(v, blobs);
        }
        in_blobs = in_blobs || begins(r, "{\"blob\":");
        outcome = in_blobs ? read_blob(r, v) : hc_verifier_record(v, r->line, r->n, r->number);
        if (outcome == 0)
            outcome = count_line(r);
    }
    if (outcome == 0 && more == 0)
        return hc_verifier_broken(v, r->number + 1, "end", "a line of schema hotcell.head/1",
                                  "the end of the file",
                                  "the file is cut off: its last line, the head, is missing");
    if (outcome == -EBADMSG || (outcome == 0 && more == -EBADMSG))
        return hc_verifier_broken(v, r->number, "form", "a newline", "the end of the file",
                                  "the file is cut off in the middle of a line");
    return outcome != 0 ? outcome : more;
}

static int open_file(const char *path, struct reader *r, char ret_message[256])
{
    struct stat info;
    memset(r, 0, sizeof *r);
    r->in = strcmp(path, "-") == 0 ? fdopen(dup(0), "re") : fopen(path, "re");
    int error = r->in == NULL ? -errno : hc_sha256_init(&r->sha);
    if (error == 0 && (fstat(fileno(r->in), &info) != 0 || S_ISDIR(info.st_mode)))
        error = -EISDIR;
    if (error < 0) {
        (void)snprintf(ret_message, 256, "%.180s: %s", path, strerror(-error));
        if (r->in != NULL)
            (void)fclose(r->in);
        hc_sha256_done(&r->sha);
    }
    return error;
}

static void close_file(struct reader *r)
{
    (void)fclose(r->in);
    free(r->line);
    hc_sha256_done(&r->sha);
}

int hc_verify_file(const char *path, const struct hc_link *anchor, struct hc_verification *ret,
                   char ret_message[256])
{
    struct reader r;
    struct hc_verifier *v = hc_verifier_new(anchor);
    int error = v == NULL ? -ENOMEM : open_file(path, &r, ret_message);
    if (error == 0) {
        error = read_lines(&r, v);
        close_file(&r);
        *ret = *hc_verifier_result(v);
        if (error < 0)
            (void)snprintf(ret_message, 256, "%.180s: %s", path, strerror(-error));
    }
    hc_verifier_done(v);
    return error < 0 ? error : 0;
}

/* ---- one record and the blobs ---- */

struct hc_log_blobs {
    char *path;
    json_t *offsets; /* digest → offset of its line */
};

static bool is_run(const json_t *record)
{
    return hc_string_equal(json_string_value(json_object_get(record, "schema")), "hotcell.run/1");
}

static int take_line(struct reader *r, const char *id, off_t offset, json_t **record,
                     struct hc_log_blobs *blobs)
{
    if (begins(r, "{\"blob\":")) {
        char sha256[65];
        hc_autofree uint8_t *data = NULL;
        size_t n = 0;
        int error = parse_blob(r, sha256, &data, &n);
        if (error == 0 && data != NULL &&
            json_object_set_new(blobs->offsets, sha256, json_integer(offset)) != 0)
            error = -ENOMEM;
        return error;
    }
    json_t *document = json_loadb(r->line, r->n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    bool wanted = is_run(document) &&
                  (id == NULL || hc_string_equal(json_string_value(json_object_get(document, "id")), id));
    if (wanted && *record != NULL) {
        json_decref(document);
        return HC_STORE_SEVERAL;
    }
    if (wanted)
        *record = document;
    else
        json_decref(document);
    return 0;
}

int hc_log_read(const char *path, const char *id, json_t **ret_record, struct hc_log_blobs **ret_blobs,
                char ret_message[256])
{
    struct reader r;
    json_t *record = NULL;
    struct hc_log_blobs *blobs = calloc(1, sizeof *blobs);
    int outcome = blobs == NULL ? -ENOMEM : open_file(path, &r, ret_message);
    if (outcome == 0) {
        blobs->path = strdup(path);
        blobs->offsets = json_object();
        off_t offset = 0;
        while (outcome == 0 && next_line(&r) == 1) {
            outcome = take_line(&r, id, offset, &record, blobs);
            offset += (off_t)r.n + 1;
        }
        close_file(&r);
    }
    if (outcome == 0 && record == NULL)
        outcome = HC_STORE_ABSENT;
    if (outcome == 0) {
        *ret_record = record;
        *ret_blobs = blobs;
    } else {
        json_decref(record);
        hc_log_blobs_done(blobs);
    }
    return outcome;
}

int hc_log_blob(const struct hc_log_blobs *blobs, const char *sha256, void **ret_data, size_t *ret_bytes)
{
    struct reader r;
    char message[256], found[65];
    const json_t *offset = json_object_get(blobs->offsets, sha256);
    if (offset == NULL)
        return HC_STORE_ABSENT;
    int error = open_file(blobs->path, &r, message);
    if (error < 0)
        return error;
    uint8_t *data = NULL;
    if (fseeko(r.in, (off_t)json_integer_value(offset), SEEK_SET) != 0 || next_line(&r) != 1)
        error = -EIO;
    if (error == 0)
        error = parse_blob(&r, found, &data, ret_bytes);
    close_file(&r);
    if (error == 0 && data == NULL)
        error = -EIO;
    if (error == 0)
        *ret_data = data;
    return error;
}

void hc_log_blobs_done(struct hc_log_blobs *blobs)
{
    if (blobs == NULL)
        return;
    free(blobs->path);
    json_decref(blobs->offsets);
    free(blobs);
}
