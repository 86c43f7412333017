/* The chain: every kind of change to an exported log is found, at its place; so is every change to a store.
 */
#include "store/chain.h"
#include "store/log_file.h"
#include "store/store.h"
#include "store/verify.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"

#include "harness.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { RECORDS = 5 };

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_folder(char **folder)
{
    (void)nftw(*folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(*folder);
}
#define in_folder __attribute__((cleanup(remove_folder)))

static char *make_folder(void)
{
    /* In memory where there is a place: these tests write thousands of times and prove nothing of a disk. */
    char *folder =
        strdup(access("/dev/shm", W_OK) == 0 ? "/dev/shm/hc-chain-XXXXXX" : "/tmp/hc-chain-XXXXXX");
    HC_ASSERT(folder != NULL && mkdtemp(folder) != NULL);
    return folder;
}

static struct hc_blob blob_of(const void *data, size_t n)
{
    struct hc_blob blob = {.data = data, .bytes = n};
    HC_ASSERT_EQ_INT(hc_sha256_hex(data, n, blob.sha256), 0);
    return blob;
}

static json_t *record(const char *id, const char *text, const char *request)
{
    json_t *made =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:s}, s:s, s:{s:s?}, s:n}", "schema", "hotcell.run/1", "id",
                  id, "created_at", "2026-01-01T00:00:00Z", "state", "finished", "status", "ok", "runtime",
                  "language", "python", "text", text, "request", "sha256", request, "chain");
    HC_ASSERT(made != NULL);
    return made;
}

static int append(struct hc_store *store, const char *id, const char *text)
{
    char message[256] = "";
    hc_autofree char *program = hc_printf("program of %s", id);
    struct hc_blob blobs[2] = {blob_of(program, strlen(program))};
    hc_autofree char *document = hc_printf("{\"kept\":[\"%s\"]}", blobs[0].sha256);
    blobs[1] = blob_of(document, strlen(document));
    json_t *made = record(id, text, blobs[1].sha256);
    int error = hc_store_append_with(store, made, blobs, 2, message);
    json_decref(made);
    return error;
}

static struct hc_store *filled(const char *folder)
{
    struct hc_store *store = NULL;
    char message[256], id[32];
    HC_ASSERT_EQ_INT(hc_store_open(folder, &store, message), 0);
    for (int i = 1; i <= RECORDS; i++) {
        (void)snprintf(id, sizeof id, "run-%d", i);
        HC_ASSERT_EQ_INT(append(store, id, "text \xc3\xa4 \x01 \"q\" \\ end"), 0);
    }
    return store;
}

/* ---- an exported log, as bytes ---- */

static char *exported(const char *folder, bool blobs, size_t *ret_bytes)
{
    struct hc_store *store = filled(folder);
    const struct hc_log_export what = {.blobs = blobs};
    struct hc_link head;
    char message[256], *data = NULL;
    FILE *out = open_memstream(&data, ret_bytes);
    HC_ASSERT_EQ_INT(hc_log_write(store, &what, out, &head, message), 0);
    HC_ASSERT_EQ_INT(fclose(out), 0);
    HC_ASSERT_EQ_INT(head.seq, RECORDS);
    hc_store_close(store);
    return data;
}

static struct hc_verification verified(const char *folder, const char *data, size_t n,
                                       const struct hc_link *anchor)
{
    hc_autofree char *path = hc_printf("%s/log", folder);
    struct hc_verification found;
    char message[256];
    FILE *file = fopen(path, "we");
    HC_ASSERT(file != NULL && fwrite(data, 1, n, file) == n && fclose(file) == 0);
    HC_ASSERT_EQ_INT(hc_verify_file(path, anchor, &found, message), 0);
    return found;
}

struct lines {
    const char *at[32];
    size_t bytes[32], count;
};

static struct lines split(const char *data, size_t n)
{
    struct lines lines = {0};
    while (n > 0) {
        const char *newline = memchr(data, '\n', n);
        size_t length = newline != NULL ? (size_t)(newline - data) + 1 : n;
        lines.at[lines.count] = data;
        lines.bytes[lines.count++] = length;
        data += length;
        n -= length;
    }
    return lines;
}

/* The lines of that order joined; -1 ends it. */
static struct hc_verification with_lines(const char *folder, const struct lines *lines, const int *order)
{
    size_t n = 0;
    hc_autofree char *data = malloc(1 << 20);
    for (; *order >= 0; order++) {
        memcpy(data + n, lines->at[*order], lines->bytes[*order]);
        n += lines->bytes[*order];
    }
    return verified(folder, data, n, NULL);
}

HC_TEST(good_logs)
{
    for (int blobs = 0; blobs < 2; blobs++) {
        in_folder char *folder = make_folder();
        size_t n;
        hc_autofree char *data = exported(folder, blobs != 0, &n);
        struct hc_verification found = verified(folder, data, n, NULL);
        if (found.broken)
            hc_test_fail(__FILE__, __LINE__, "%s", found.defect.message);
        HC_ASSERT_EQ_INT(found.records, RECORDS);
        HC_ASSERT_EQ_INT(found.blobs, blobs ? 2 * RECORDS : 0);
    }
}

/* Every single byte of the file, changed in several ways, cut there, or with another put before it. */
HC_TEST(every_byte_counts, .timeout_s = 180)
{
    in_folder char *folder = make_folder();
    size_t n;
    hc_autofree char *data = exported(folder, true, &n);
    hc_autofree char *changed = malloc(n + 2);
    struct lines lines = split(data, n);
    static const uint8_t flips[] = {1, 0x20, 0x80};
    for (size_t at = 0; at < n; at++) {
        size_t line = 0;
        for (size_t sum = lines.bytes[0]; sum <= at; sum += lines.bytes[++line])
            continue;
        for (size_t f = 0; f < sizeof flips + 2; f++) {
            size_t length = n;
            memcpy(changed, data, n);
            if (f < sizeof flips)
                changed[at] = (char)(changed[at] ^ flips[f]);
            else if (f == sizeof flips) { /* cut */
                length = at;
            } else { /* one more */
                memmove(changed + at + 1, changed + at, n - at);
                changed[at] = ' ';
                length = n + 1;
            }
            struct hc_verification found = verified(folder, changed, length, NULL);
            if (!found.broken)
                hc_test_fail(__FILE__, __LINE__, "change %zu of byte %zu (line %zu) was not found", f, at,
                             line + 1);
            bool near = found.bad_line == 0 || (found.bad_line >= line + 1 && found.bad_line <= line + 2) ||
                        found.bad_line == lines.count;
            if (!near)
                hc_test_fail(__FILE__, __LINE__, "byte %zu is of line %zu, line %d is named", at, line + 1,
                             (int)found.bad_line);
            /* A changed byte inside a record is told of that record. */
            if (f < 2 && line >= 1 && line <= RECORDS && at + 1 < n && data[at] != '\n' &&
                changed[at] != '\n')
                HC_ASSERT_EQ_INT(found.bad_line, line + 1);
        }
    }
}

HC_TEST(lines_moved_left_out_repeated)
{
    in_folder char *folder = make_folder();
    size_t n;
    hc_autofree char *data = exported(folder, false, &n);
    struct lines lines = split(data, n); /* 0: header, 1..5: records, 6: head */
    HC_ASSERT_EQ_INT(lines.count, RECORDS + 2);
    static const struct {
        int order[12];
        const char *rule;
        int64_t seq;
    } rows[] = {
        {{0, 1, 2, 3, 4, 5, 6, -1}, NULL, 0},       {{0, 2, 3, 4, 5, 6, -1}, "order", 1},
        {{0, 1, 2, 4, 5, 6, -1}, "order", 3},       {{0, 1, 3, 2, 4, 5, 6, -1}, "order", 2},
        {{0, 1, 2, 2, 3, 4, 5, 6, -1}, "order", 3}, {{0, 1, 2, 3, 4, 6, -1}, "end", 5},
        {{0, 1, 2, 3, 4, 5, -1}, "end", 0},         {{0, -1}, "end", 0},
        {{1, 2, 3, 4, 5, 6, -1}, "header", 0},      {{0, 1, 2, 3, 4, 5, 6, 6, -1}, "end", 0},
        {{0, 0, 1, 2, 3, 4, 5, 6, -1}, "form", 0},  {{-1}, "header", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hc_verification found = with_lines(folder, &lines, rows[i].order);
        HC_ASSERT_EQ_INT(found.broken, rows[i].rule != NULL);
        HC_ASSERT_STREQ(found.defect.rule, rows[i].rule);
        if (rows[i].seq > 0)
            HC_ASSERT_EQ_INT(found.bad_seq, rows[i].seq);
    }
}

/* Somebody who rewrites the whole end, head included, is found by whoever kept a link. */
HC_TEST(an_anchor_from_outside)
{
    in_folder char *folder = make_folder();
    size_t n;
    hc_autofree char *data = exported(folder, false, &n);
    char message[256];
    struct hc_verification found = verified(folder, data, n, NULL);
    struct hc_link anchor = found.last;
    HC_ASSERT(!verified(folder, data, n, &anchor).broken);
    anchor.seq = RECORDS + 1;
    found = verified(folder, data, n, &anchor);
    HC_ASSERT(found.broken);
    HC_ASSERT_STREQ(found.defect.rule, "head");
    anchor.seq = 3;
    found = verified(folder, data, n, &anchor);
    HC_ASSERT(found.broken && found.bad_seq == 3);
    /* the parser */
    static const char *const bad[] = {"", "1", "1:", "0:", ":ab", "x:y", "-1:00"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        HC_ASSERT(!hc_head_parse(bad[i], &anchor));
    (void)snprintf(message, sizeof message, "17:%s", found.last.sha256);
    HC_ASSERT(hc_head_parse(message, &anchor) && anchor.seq == 17);
}

/* ---- a store ---- */

static void sql(const char *folder, const char *statement)
{
    hc_autofree char *path = hc_printf("%s/records.sqlite", folder);
    sqlite3 *database = NULL;
    HC_ASSERT(sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    if (sqlite3_exec(database, statement, NULL, NULL, NULL) != SQLITE_OK)
        hc_test_fail(__FILE__, __LINE__, "%s: %s", statement, sqlite3_errmsg(database));
    (void)sqlite3_close(database);
}

HC_TEST(changes_to_a_store)
{
    static const struct {
        const char *sql, *rule;
        int64_t seq;
    } rows[] = {
        {"SELECT 1", NULL, 0},
        {"UPDATE records SET record = replace(record, 'end', 'END') WHERE seq = 3", "content", 3},
        {"DELETE FROM records WHERE seq = 2", "order", 2},
        {"DELETE FROM records WHERE seq = 5", "end", 5},
        {"DELETE FROM records", "end", 1},
        {"DELETE FROM head", "end", 0},
        {"UPDATE head SET sha256 = sha256 || ' '", "end", 0},
        {"UPDATE records SET status = 'timeout' WHERE seq = 4", "row", 4},
        {"UPDATE records SET language = 'c' WHERE seq = 4", "row", 4},
        {"UPDATE records SET id = 'run-9' WHERE seq = 4", "row", 4},
        {"UPDATE records SET sha256 = 'x' WHERE seq = 4", "row", 4},
        {"UPDATE records SET subject = 'x' WHERE seq = 4", "row", 4},
        {"UPDATE records SET record = '{}' WHERE seq = 1", "form", 1},
        {"UPDATE records SET record = ' ' || record WHERE seq = 1", "form", 1},
        {"UPDATE records SET seq = 6 WHERE seq = 5", "row", 5},
        {"UPDATE records SET record = (SELECT record FROM records WHERE seq = 1) WHERE seq = 2", "order", 2},
        {"UPDATE blobs SET data = CAST('changed' AS BLOB) WHERE sha256 = (SELECT min(sha256) FROM blobs)",
         "blob", 0},
        {"DELETE FROM blobs WHERE sha256 = (SELECT min(sha256) FROM blobs)", "blob", 0},
        {"DELETE FROM blobs WHERE sha256 = (SELECT max(sha256) FROM blobs)", "blob", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        in_folder char *folder = make_folder();
        char message[256];
        struct hc_verification found;
        struct hc_store *store = filled(folder);
        hc_store_close(store);
        sql(folder, rows[i].sql);
        HC_ASSERT_EQ_INT(hc_store_open_existing(folder, &store, message), 0);
        HC_ASSERT_EQ_INT(hc_verify_store(store, NULL, &found, message), 0);
        if (found.broken != (rows[i].rule != NULL) || !hc_string_equal(found.defect.rule, rows[i].rule))
            hc_test_fail(__FILE__, __LINE__, "%s: %s", rows[i].sql,
                         found.broken ? found.defect.rule : "good");
        if (rows[i].seq > 0)
            HC_ASSERT_EQ_INT(found.bad_seq, rows[i].seq);
        hc_store_close(store);
    }
}

HC_TEST(nothing_is_put_behind_a_cut)
{
    in_folder char *folder = make_folder();
    char message[256];
    struct hc_store *store = filled(folder);
    hc_store_close(store);
    sql(folder, "DELETE FROM records WHERE seq = 5");
    HC_ASSERT_EQ_INT(hc_store_open_existing(folder, &store, message), 0);
    HC_ASSERT_EQ_INT(append(store, "run-6", "x"), -EBADMSG);
    hc_store_close(store);
}

/* A store of the first version is brought up, and its chain goes on. */
HC_TEST(an_old_store)
{
    in_folder char *folder = make_folder();
    char message[256];
    struct hc_verification found;
    struct hc_link link, none = {0};
    json_t *old = record("run-old", "x", NULL);
    hc_autofree char *text = hc_link_make(old, &none, &link);
    hc_autofree char *path = hc_printf("%s/records.sqlite", folder);
    FILE *file = fopen(path, "we");
    HC_ASSERT(file != NULL && fclose(file) == 0);
    sql(folder,
        "CREATE TABLE records(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL,"
        " state TEXT NOT NULL, status TEXT NOT NULL, language TEXT, sha256 TEXT NOT NULL,"
        " record TEXT NOT NULL) STRICT");
    hc_autofree char *insert =
        hc_printf("INSERT INTO records VALUES(1,'run-old','2026-01-01T00:00:00Z','finished',"
                  "'ok','python','%s','%s')",
                  link.sha256, text);
    sql(folder, insert);
    struct hc_store *store = NULL;
    HC_ASSERT_EQ_INT(hc_store_open(folder, &store, message), 0);
    HC_ASSERT_EQ_INT(append(store, "run-new", "y"), 0);
    HC_ASSERT_EQ_INT(hc_verify_store(store, NULL, &found, message), 0);
    if (found.broken)
        hc_test_fail(__FILE__, __LINE__, "%s", found.defect.message);
    HC_ASSERT_EQ_INT(found.records, 2);
    hc_store_close(store);
    json_decref(old);
}

/* Writers that are killed at any moment leave whole records and a chain that holds. */
HC_TEST(killed_writers, .timeout_s = 120)
{
    in_folder char *folder = make_folder();
    uint64_t state = 3;
    char message[256];
    struct hc_store *store = NULL;
    struct hc_verification found;
    HC_ASSERT_EQ_INT(hc_store_open(folder, &store, message), 0);
    hc_store_close(store);
    for (int round = 0; round < 20; round++) {
        pid_t writers[2];
        for (int w = 0; w < 2; w++) {
            writers[w] = fork();
            HC_ASSERT(writers[w] >= 0);
            if (writers[w] > 0)
                continue;
            struct hc_store *own = NULL;
            if (hc_store_open(folder, &own, message) != 0)
                _exit(1);
            for (int i = 0;; i++) {
                char id[48];
                (void)snprintf(id, sizeof id, "run-%d-%d-%d", round, w, i);
                if (append(own, id, id) != 0)
                    _exit(1);
            }
        }
        const struct timespec pause = {.tv_nsec = (long)(hc_test_random(&state) % 40) * 1000000};
        (void)nanosleep(&pause, NULL);
        for (int w = 0; w < 2; w++) {
            int status = 0;
            (void)kill(writers[w], SIGKILL);
            HC_ASSERT(waitpid(writers[w], &status, 0) == writers[w]);
            HC_ASSERT(WIFSIGNALED(status)); /* it never ended by an error of its own */
        }
    }
    HC_ASSERT_EQ_INT(hc_store_open_existing(folder, &store, message), 0);
    HC_ASSERT_EQ_INT(hc_verify_store(store, NULL, &found, message), 0);
    if (found.broken)
        hc_test_fail(__FILE__, __LINE__, "record %d: %s", (int)found.bad_seq, found.defect.message);
    HC_ASSERT(found.records > 0);
    hc_store_close(store);
}

/* No room for one more byte: the append fails clearly, and everything before it is there. */
HC_TEST(no_room)
{
    in_folder char *folder = make_folder();
    char message[256] = "";
    struct hc_verification found;
    struct hc_store *store = filled(folder);
    const struct rlimit small = {.rlim_cur = 300000, .rlim_max = RLIM_INFINITY};
    const struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    hc_autofree char *large = malloc(200001);
    memset(large, 'x', 200000);
    large[200000] = '\0';
    (void)signal(SIGXFSZ, SIG_IGN);
    HC_ASSERT_EQ_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
    int error = 0, more = 0;
    for (; more < 20 && error == 0; more++) {
        char id[32];
        (void)snprintf(id, sizeof id, "run-large-%d", more);
        error = append(store, id, large);
    }
    HC_ASSERT(error < 0);
    HC_ASSERT_EQ_INT(setrlimit(RLIMIT_FSIZE, &none), 0);
    HC_ASSERT_EQ_INT(hc_verify_store(store, NULL, &found, message), 0);
    HC_ASSERT(!found.broken);
    HC_ASSERT_EQ_INT(found.records, RECORDS + more - 1);
    HC_ASSERT_EQ_INT(append(store, "run-after", "x"), 0); /* and it goes on when there is room again */
    hc_store_close(store);
}

HC_TEST(large_blobs_lie_beside)
{
    in_folder char *folder = make_folder();
    char message[256] = "";
    struct hc_verification found;
    struct hc_store *store = filled(folder);
    size_t n = 1 << 20, got = 0;
    hc_autofree char *large = calloc(1, n);
    struct hc_blob blob = blob_of(large, n);
    json_t *made = record("run-large", "x", NULL);
    HC_ASSERT_EQ_INT(hc_store_append_with(store, made, &blob, 1, message), 0);
    json_decref(made);
    hc_autofree void *data = NULL;
    HC_ASSERT_EQ_INT(hc_store_blob(store, blob.sha256, &data, &got), 0);
    HC_ASSERT(got == n && memcmp(data, large, n) == 0);
    hc_autofree char *path = hc_printf("%s/blobs/%s", folder, blob.sha256);
    FILE *file = fopen(path, "r+e");
    HC_ASSERT(file != NULL && fputc('x', file) != EOF && fclose(file) == 0);
    HC_ASSERT_EQ_INT(hc_verify_store(store, NULL, &found, message), 0);
    HC_ASSERT(found.broken);
    HC_ASSERT_STREQ(found.defect.rule, "blob");
    hc_store_close(store);
}
