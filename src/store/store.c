#include "store/store.h"

#include "base/canonical.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct hc_store {
    sqlite3 *database;
    sqlite3_stmt *last, *insert;
};

static const char schema[] = "CREATE TABLE IF NOT EXISTS records("
                             " seq INTEGER PRIMARY KEY,"
                             " id TEXT NOT NULL UNIQUE,"
                             " created_at TEXT NOT NULL,"
                             " state TEXT NOT NULL,"
                             " status TEXT NOT NULL,"
                             " language TEXT,"
                             " sha256 TEXT NOT NULL,"
                             " record TEXT NOT NULL) STRICT;";

static int errno_of(sqlite3 *database)
{
    switch (sqlite3_errcode(database) & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return -EACCES;
    case SQLITE_CANTOPEN:
        return -ENOENT;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EBADMSG;
    default:
        return -EIO;
    }
}

static int failed(struct hc_store *store, char ret_message[256])
{
    (void)snprintf(ret_message, 256, "%s", sqlite3_errmsg(store->database));
    return errno_of(store->database);
}

static int make_folders(const char *folder)
{
    hc_autofree char *path = strdup(folder);
    if (path == NULL)
        return -ENOMEM;
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return -errno;
        if (slash == NULL)
            return 0;
        *slash = '/';
    }
}

static int execute(struct hc_store *store, const char *sql, char ret_message[256])
{
    return sqlite3_exec(store->database, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(store, ret_message);
}

/* Several processes may open a new store at once; the change of mode needs it alone and does not wait by
 * itself. */
static int switch_to_wal(struct hc_store *store, char ret_message[256])
{
    int error = -EBUSY;
    for (int round = 0; round < 1000 && error == -EBUSY; round++) {
        if (round > 0)
            (void)sqlite3_sleep(20);
        error = execute(store, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;", ret_message);
    }
    return error;
}

static int prepare(struct hc_store *store, char ret_message[256])
{
    /* WAL without a sync per run: a killed process loses nothing, a power cut may lose the last records,
     * never the order. */
    int error = switch_to_wal(store, ret_message);
    if (error == 0)
        error = execute(store, schema, ret_message);
    if (error < 0)
        return error;
    if (sqlite3_prepare_v2(store->database, "SELECT seq, sha256 FROM records ORDER BY seq DESC LIMIT 1", -1,
                           &store->last, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(store->database,
                           "INSERT INTO records(seq, id, created_at, state, status, language, sha256, record)"
                           " VALUES(?,?,?,?,?,?,?,?)",
                           -1, &store->insert, NULL) != SQLITE_OK)
        return failed(store, ret_message);
    return 0;
}

int hc_store_open(const char *folder, struct hc_store **ret_store, char ret_message[256])
{
    hc_autofree char *path = hc_printf("%s/records.sqlite", folder);
    struct hc_store *store = calloc(1, sizeof *store);
    if (path == NULL || store == NULL) {
        free(store);
        return -ENOMEM;
    }
    int error = make_folders(folder);
    if (error < 0) {
        (void)snprintf(ret_message, 256, "%.150s: %s", folder, strerror(-error));
        free(store);
        return error;
    }
    if (sqlite3_open_v2(path, &store->database,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        error = failed(store, ret_message);
    if (error == 0) {
        (void)sqlite3_busy_timeout(store->database, 20000);
        /* A checkpoint at every close would sync the disk once a run; the log is folded in every thousand
         * pages anyway. */
        (void)sqlite3_db_config(store->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        error = prepare(store, ret_message);
    }
    if (error < 0)
        hc_store_close(store);
    else
        *ret_store = store;
    return error;
}

void hc_store_close(struct hc_store *store)
{
    if (store == NULL)
        return;
    (void)sqlite3_finalize(store->last);
    (void)sqlite3_finalize(store->insert);
    (void)sqlite3_close(store->database);
    free(store);
}

static const char *text_at(const json_t *record, const char *name)
{
    return json_string_value(json_object_get(record, name));
}

static int chain(struct hc_store *store, json_t *record, int64_t *ret_seq, char ret_sha256[65])
{
    const char *previous = NULL;
    int64_t seq = 1;
    if (sqlite3_step(store->last) == SQLITE_ROW) {
        seq = sqlite3_column_int64(store->last, 0) + 1;
        previous = (const char *)sqlite3_column_text(store->last, 1);
    }
    json_t *link = json_pack("{s:I, s:o}", "seq", (json_int_t)seq, "previous_sha256",
                             previous != NULL ? json_string(previous) : json_null());
    (void)sqlite3_reset(store->last);
    if (link == NULL || json_object_set_new(record, "chain", link) != 0)
        return -ENOMEM;
    hc_autofree char *canonical = hc_json_canonical(record);
    if (canonical == NULL)
        return -ENOMEM;
    int error = hc_sha256_hex(canonical, strlen(canonical), ret_sha256);
    if (error == 0 && json_object_set_new(link, "sha256", json_string(ret_sha256)) != 0)
        error = -ENOMEM;
    *ret_seq = seq;
    return error;
}

static int insert(struct hc_store *store, const json_t *record, int64_t seq, const char *sha256)
{
    hc_autofree char *canonical = hc_json_canonical(record);
    if (canonical == NULL)
        return -ENOMEM;
    const char *texts[] = {text_at(record, "id"),
                           text_at(record, "created_at"),
                           text_at(record, "state"),
                           text_at(record, "status"),
                           text_at(json_object_get(record, "runtime"), "language"),
                           sha256,
                           canonical};
    (void)sqlite3_bind_int64(store->insert, 1, seq);
    for (int i = 0; i < 7; i++)
        (void)sqlite3_bind_text(store->insert, i + 2, texts[i], -1, SQLITE_STATIC);
    int done = sqlite3_step(store->insert);
    int error = done == SQLITE_DONE ? 0 : errno_of(store->database);
    (void)sqlite3_reset(store->insert);
    (void)sqlite3_clear_bindings(store->insert);
    return error;
}

int hc_store_append(struct hc_store *store, json_t *record, char ret_message[256])
{
    char sha256[65];
    int64_t seq = 0;
    /* IMMEDIATE: the last link is read under the writer's lock, so two writers can't follow the same one. */
    int error = execute(store, "BEGIN IMMEDIATE", ret_message);
    if (error < 0)
        return error;
    error = chain(store, record, &seq, sha256);
    if (error == 0)
        error = insert(store, record, seq, sha256);
    if (error == 0)
        error = execute(store, "COMMIT", ret_message);
    else
        (void)snprintf(ret_message, 256, "%s", sqlite3_errmsg(store->database));
    if (error < 0) {
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
        (void)json_object_set_new(record, "chain", json_null());
    }
    return error;
}

char *hc_store_default_folder(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state != NULL && state[0] == '/')
        return hc_printf("%s/hotcell", state);
    if (home != NULL && home[0] == '/')
        return hc_printf("%s/.local/state/hotcell", home);
    return NULL;
}
