/* Records on disk: the chain holds, also with several writers at once and after a failure. */
#include "store/store.h"

#include "base/canonical.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "flow/job.h"

#include "harness.h"

#include <errno.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

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
    char *folder = strdup("/tmp/hc-store-XXXXXX");
    HC_ASSERT(folder != NULL && mkdtemp(folder) != NULL);
    return folder;
}

static json_t *record(const char *id, const char *text)
{
    json_t *made = json_pack("{s:s, s:s, s:s, s:s, s:{s:s}, s:s, s:n}", "id", id, "created_at",
                             "2026-01-01T00:00:00Z", "state", "finished", "status", "ok", "runtime",
                             "language", "python", "text", text, "chain");
    HC_ASSERT(made != NULL);
    return made;
}

static int append(struct hc_store *store, const char *id, const char *text)
{
    char message[256] = "";
    json_t *made = record(id, text);
    int error = hc_store_append(store, made, message);
    if (error < 0) {
        HC_ASSERT(json_is_null(json_object_get(made, "chain"))); /* no link that is not in the chain */
        HC_ASSERT(message[0] != '\0');
        (void)fprintf(stderr, "append: %s: %s\n", strerror(-error), message);
    } else {
        HC_ASSERT(json_integer_value(json_object_get(json_object_get(made, "chain"), "seq")) > 0);
    }
    json_decref(made);
    return error;
}

static struct hc_store *open_store(const char *folder)
{
    struct hc_store *store = NULL;
    char message[256] = "";
    int error = hc_store_open(folder, &store, message);
    if (error != 0) {
        (void)fprintf(stderr, "open: %s: %s\n", strerror(-error),
                      message); /* also from a child, whose report the parent's hides */
        hc_test_fail(__FILE__, __LINE__, "%s: %s", strerror(-error), message);
    }
    return store;
}

/* Reads the file as a stranger would, and follows the chain. Returns how many records there are. */
static long verify(const char *folder)
{
    hc_autofree char *path = hc_printf("%s/records.sqlite", folder);
    sqlite3 *database = NULL;
    sqlite3_stmt *rows = NULL;
    char previous[65] = "", digest[65];
    long seq = 0;
    HC_ASSERT(sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    HC_ASSERT(sqlite3_prepare_v2(database, "SELECT seq, sha256, record FROM records ORDER BY seq", -1, &rows,
                                 NULL) == SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        json_t *made = json_loads((const char *)sqlite3_column_text(rows, 2), JSON_REJECT_DUPLICATES, NULL);
        json_t *chain = json_object_get(made, "chain");
        HC_ASSERT_EQ_INT(sqlite3_column_int64(rows, 0), ++seq);
        HC_ASSERT_EQ_INT(json_integer_value(json_object_get(chain, "seq")), seq);
        const char *link = json_string_value(json_object_get(chain, "previous_sha256"));
        HC_ASSERT_STREQ(link, previous[0] != '\0' ? previous : NULL);
        (void)snprintf(previous, sizeof previous, "%s", json_string_value(json_object_get(chain, "sha256")));
        HC_ASSERT_STREQ((const char *)sqlite3_column_text(rows, 1), previous);
        (void)json_object_del(chain, "sha256");
        hc_autofree char *canonical = hc_json_canonical(made);
        HC_ASSERT_EQ_INT(hc_sha256_hex(canonical, strlen(canonical), digest), 0);
        HC_ASSERT_STREQ(digest, previous);
        json_decref(made);
    }
    (void)sqlite3_finalize(rows);
    (void)sqlite3_close(database);
    return seq;
}

HC_TEST(a_chain_grows)
{
    in_folder char *folder = make_folder();
    hc_autofree char *deep = hc_printf("%s/a/b", folder);
    struct hc_store *store = open_store(deep); /* made with its parents */
    HC_ASSERT_EQ_INT(append(store, "run-1", "\x1b[31m \xc3\xa4 \\ \" \x01"), 0);
    HC_ASSERT_EQ_INT(append(store, "run-2", ""), 0);
    hc_store_close(store);
    store = open_store(deep); /* and goes on after a restart */
    HC_ASSERT_EQ_INT(append(store, "run-3", "x"), 0);
    hc_store_close(store);
    HC_ASSERT_EQ_INT(verify(deep), 3);
    struct stat info;
    HC_ASSERT(stat(deep, &info) == 0);
    HC_ASSERT_EQ_INT(info.st_mode & 0777, 0700); /* outputs of runs are nobody else's business */
}

HC_TEST(a_refused_record_leaves_no_gap)
{
    in_folder char *folder = make_folder();
    struct hc_store *store = open_store(folder);
    HC_ASSERT_EQ_INT(append(store, "run-1", "x"), 0);
    HC_ASSERT(append(store, "run-1", "the same id") < 0);
    HC_ASSERT_EQ_INT(append(store, "run-2", "x"), 0);
    hc_store_close(store);
    HC_ASSERT_EQ_INT(verify(folder), 2);
}

HC_TEST(two_writers_at_once, .timeout_s = 90)
{
    enum { WRITERS = 2, EACH = 40 };
    in_folder char *folder = make_folder();
    pid_t writers[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        writers[w] = fork();
        HC_ASSERT(writers[w] >= 0);
        if (writers[w] > 0)
            continue;
        struct hc_store *store = open_store(folder); /* both may find no file yet */
        for (int i = 0; i < EACH; i++) {
            char id[32];
            (void)snprintf(id, sizeof id, "run-%d-%d", w, i);
            HC_ASSERT_EQ_INT(append(store, id, id), 0);
        }
        hc_store_close(store);
        _exit(0);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = -1;
        HC_ASSERT(waitpid(writers[w], &status, 0) == writers[w]);
        HC_ASSERT_EQ_INT(status, 0);
    }
    HC_ASSERT_EQ_INT(verify(folder), WRITERS * EACH);
}

HC_TEST(places_that_cannot_be)
{
    in_folder char *folder = make_folder();
    hc_autofree char *file = hc_printf("%s/file", folder), *below = hc_printf("%s/file/store", folder);
    struct hc_store *store = NULL;
    char message[256] = "";
    FILE *made = fopen(file, "we");
    HC_ASSERT(made != NULL && fclose(made) == 0);
    HC_ASSERT_EQ_INT(hc_store_open(below, &store, message), -ENOTDIR);
    HC_ASSERT(strstr(message, below) != NULL && store == NULL);
    /* A file of that name which is no database. */
    hc_autofree char *records = hc_printf("%s/records.sqlite", folder);
    made = fopen(records, "we");
    HC_ASSERT(made != NULL);
    for (int i = 0; i < 5000; i++)
        HC_ASSERT(fputs("no database ", made) >= 0);
    HC_ASSERT(fclose(made) == 0);
    HC_ASSERT_EQ_INT(hc_store_open(folder, &store, message), -EBADMSG);
    HC_ASSERT(store == NULL);
}

HC_TEST(canonical_form)
{
    static const struct {
        const char *json, *canonical;
    } rows[] = {
        {"{\"b\":1,\"a\":[true,null,\"x\"]}", "{\"a\":[true,null,\"x\"],\"b\":1}"},
        {"\"\\u001B\\u001f\\n\\t\\b\\f\\r\"", "\"\\u001b\\u001f\\n\\t\\b\\f\\r\""},
        {"\"\\\\u001B is text\"", "\"\\\\u001B is text\""}, /* not an escape: the letters of a program */
        {"\"\\u00e4\\/\\u007f\"", "\"\xc3\xa4/\x7f\""},
        {"\"\\\\\\\\u00AF\\\"\"", "\"\\\\\\\\u00AF\\\"\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *value = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);
        HC_ASSERT(value != NULL);
        json_t *list = json_pack("{s:o}", "v", value);
        hc_autofree char *found = hc_json_canonical(list);
        hc_autofree char *wanted = hc_printf("{\"v\":%s}", rows[i].canonical);
        HC_ASSERT_STREQ(found, wanted);
        json_decref(list);
    }
}

HC_TEST(default_folder)
{
    (void)setenv("XDG_STATE_HOME", "/state", 1);
    (void)setenv("HOME", "/home/x", 1);
    hc_autofree char *state = hc_store_default_folder();
    HC_ASSERT_STREQ(state, "/state/hotcell");
    (void)setenv("XDG_STATE_HOME", "relative", 1); /* the specification says: ignore it */
    hc_autofree char *home = hc_store_default_folder();
    HC_ASSERT_STREQ(home, "/home/x/.local/state/hotcell");
    (void)unsetenv("HOME");
    hc_autofree char *none = hc_store_default_folder();
    HC_ASSERT_STREQ(none, NULL);
}
