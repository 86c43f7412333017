#include "store/inside.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define STORE_VERSION 2

/* state and status are of the record's own words: of a release its status, of a replay its verdict. `subject`
 * is the run that a record of another kind speaks of. `head` says where the chain ends, so that an end that
 * was cut off is missed. */
static const char schema[] = "CREATE TABLE IF NOT EXISTS records("
                             " seq INTEGER PRIMARY KEY,"
                             " id TEXT NOT NULL UNIQUE,"
                             " created_at TEXT NOT NULL,"
                             " state TEXT NOT NULL,"
                             " status TEXT NOT NULL,"
                             " language TEXT,"
                             " sha256 TEXT NOT NULL,"
                             " record TEXT NOT NULL) STRICT;";
static const char upgrade[] =
    "ALTER TABLE records ADD COLUMN kind TEXT NOT NULL DEFAULT 'hotcell.run/1';"
    "ALTER TABLE records ADD COLUMN subject TEXT;"
    "CREATE INDEX records_subject ON records(subject) WHERE subject IS NOT NULL;"
    "CREATE TABLE head(one INTEGER PRIMARY KEY CHECK(one = 1), seq INTEGER NOT NULL, sha256 TEXT NOT NULL) "
    "STRICT;"
    "INSERT INTO head SELECT 1, seq, sha256 FROM records ORDER BY seq DESC LIMIT 1;"
    "CREATE TABLE blobs(sha256 TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT, WITHOUT ROWID;";

int hc_store_errno(sqlite3 *database)
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

int hc_store_failed(struct hc_store *store, char ret_message[256])
{
    (void)snprintf(ret_message, 256, "%s", sqlite3_errmsg(store->database));
    return hc_store_errno(store->database);
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
    return sqlite3_exec(store->database, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : hc_store_failed(store, ret_message);
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

static int read_version(struct hc_store *store, int *ret_version, char ret_message[256])
{
    sqlite3_stmt *query = NULL;
    if (sqlite3_prepare_v2(store->database, "PRAGMA user_version", -1, &query, NULL) != SQLITE_OK ||
        sqlite3_step(query) != SQLITE_ROW) {
        (void)sqlite3_finalize(query);
        return hc_store_failed(store, ret_message);
    }
    *ret_version = sqlite3_column_int(query, 0);
    (void)sqlite3_finalize(query);
    return 0;
}

/* Makes the tables, or brings those of an older version up; under the writer's lock, since several processes
 * may find the same old store. */
static int bring_up(struct hc_store *store, char ret_message[256])
{
    int version = 0;
    int error = read_version(store, &version, ret_message);
    if (error < 0 || version == STORE_VERSION)
        return error;
    if (version > STORE_VERSION) {
        (void)snprintf(ret_message, 256, "a newer version of hotcell made it (%d, this one knows %d)",
                       version, STORE_VERSION);
        return -EPROTONOSUPPORT;
    }
    error = execute(store, "BEGIN IMMEDIATE", ret_message);
    if (error == 0)
        error = read_version(store, &version, ret_message);
    if (error == 0 && version != STORE_VERSION) {
        error = execute(store, schema, ret_message);
        if (error == 0)
            error = execute(store, upgrade, ret_message);
        if (error == 0)
            error = execute(store, "PRAGMA user_version = 2", ret_message);
    }
    if (error == 0)
        error = execute(store, "COMMIT", ret_message);
    if (error < 0)
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    return error;
}

static int prepare(struct hc_store *store, char ret_message[256])
{
    const struct {
        sqlite3_stmt **slot;
        const char *sql;
    } rows[] = {
        {&store->last,
         "SELECT r.seq, r.sha256, h.seq, h.sha256 FROM (SELECT 1) LEFT JOIN head h LEFT JOIN records r"
         " ON r.seq = (SELECT max(seq) FROM records)"},
        {&store->insert,
         "INSERT INTO records(seq, id, created_at, state, status, language, sha256, record, kind,"
         " subject) VALUES(?,?,?,?,?,?,?,?,?,?)"},
        {&store->head, "INSERT OR REPLACE INTO head(one, seq, sha256) VALUES(1,?,?)"},
        {&store->keep_blob, "INSERT OR IGNORE INTO blobs(sha256, data) VALUES(?,?)"},
        {&store->find_blob, "SELECT data FROM blobs WHERE sha256 = ?"},
    };
    /* WAL without a sync per run: a killed process loses nothing, a power cut may lose the last records,
     * never the order. */
    int error = switch_to_wal(store, ret_message);
    if (error == 0)
        error = bring_up(store, ret_message);
    for (size_t i = 0; error == 0 && i < sizeof rows / sizeof *rows; i++)
        if (sqlite3_prepare_v2(store->database, rows[i].sql, -1, rows[i].slot, NULL) != SQLITE_OK)
            error = hc_store_failed(store, ret_message);
    return error;
}

static int open_in(const char *folder, int flags, struct hc_store **ret_store, char ret_message[256])
{
    hc_autofree char *path = hc_printf("%s/records.sqlite", folder);
    struct hc_store *store = calloc(1, sizeof *store);
    if (store != NULL) {
        store->blobs = -1;
        store->folder = strdup(folder);
    }
    if (path == NULL || store == NULL || store->folder == NULL) {
        hc_store_close(store);
        return -ENOMEM;
    }
    int error = 0;
    if (sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | flags, NULL) !=
        SQLITE_OK)
        error = hc_store_failed(store, ret_message);
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

int hc_store_open(const char *folder, struct hc_store **ret_store, char ret_message[256])
{
    int error = make_folders(folder);
    if (error < 0) {
        (void)snprintf(ret_message, 256, "%.150s: %s", folder, strerror(-error));
        return error;
    }
    return open_in(folder, SQLITE_OPEN_CREATE, ret_store, ret_message);
}

int hc_store_open_existing(const char *folder, struct hc_store **ret_store, char ret_message[256])
{
    struct stat info;
    hc_autofree char *path = hc_printf("%s/records.sqlite", folder);
    if (path == NULL)
        return -ENOMEM;
    if (stat(path, &info) != 0) {
        int error = -errno;
        (void)snprintf(ret_message, 256, "there are no records in %.180s: %s", folder, strerror(-error));
        return error;
    }
    return open_in(folder, 0, ret_store, ret_message);
}

void hc_store_close(struct hc_store *store)
{
    if (store == NULL)
        return;
    (void)sqlite3_finalize(store->last);
    (void)sqlite3_finalize(store->insert);
    (void)sqlite3_finalize(store->head);
    (void)sqlite3_finalize(store->keep_blob);
    (void)sqlite3_finalize(store->find_blob);
    (void)sqlite3_close(store->database);
    hc_close_fd(&store->blobs);
    free(store->folder);
    free(store);
}

static void take_link(sqlite3_stmt *row, int column, struct hc_link *link)
{
    const char *sha256 = (const char *)sqlite3_column_text(row, column + 1);
    *link = (struct hc_link){.seq = sqlite3_column_int64(row, column)};
    (void)snprintf(link->sha256, sizeof link->sha256, "%s",
                   sha256 == NULL         ? ""
                   : strlen(sha256) == 64 ? sha256
                                          : "?");
}

static int read_last(struct hc_store *store, struct hc_link *ret_last, struct hc_link *ret_head,
                     char ret_message[256])
{
    *ret_last = *ret_head = (struct hc_link){0};
    int done = sqlite3_step(store->last);
    int error = done == SQLITE_ROW || done == SQLITE_DONE ? 0 : hc_store_failed(store, ret_message);
    if (done == SQLITE_ROW) {
        take_link(store->last, 0, ret_last);
        take_link(store->last, 2, ret_head);
    }
    (void)sqlite3_reset(store->last);
    return error;
}

int hc_store_head(struct hc_store *store, struct hc_link *ret_head, char ret_message[256])
{
    struct hc_link last;
    return read_last(store, &last, ret_head, ret_message);
}

static const char *text_at(const json_t *record, const char *name)
{
    return json_string_value(json_object_get(record, name));
}

static int insert(struct hc_store *store, const json_t *record, const struct hc_link *link, const char *text)
{
    const char *state = text_at(record, "state");
    const char *status = text_at(record, "status"), *kind = text_at(record, "schema");
    const json_t *run = json_object_get(record, "run"), *origin = json_object_get(record, "origin");
    const char *texts[] = {text_at(record, "id"),
                           text_at(record, "created_at"),
                           state != NULL ? state : "",
                           status != NULL ? status : text_at(record, "verdict"),
                           text_at(json_object_get(record, "runtime"), "language"),
                           link->sha256,
                           text,
                           kind != NULL ? kind : "hotcell.run/1",
                           text_at(origin != NULL ? origin : run, "id")};
    (void)sqlite3_bind_int64(store->insert, 1, link->seq);
    for (int i = 0; i < 9; i++)
        (void)sqlite3_bind_text(store->insert, i + 2, texts[i], -1, SQLITE_STATIC);
    int error = sqlite3_step(store->insert) == SQLITE_DONE ? 0 : hc_store_errno(store->database);
    (void)sqlite3_reset(store->insert);
    (void)sqlite3_clear_bindings(store->insert);
    if (error < 0)
        return error;
    (void)sqlite3_bind_int64(store->head, 1, link->seq);
    (void)sqlite3_bind_text(store->head, 2, link->sha256, -1, SQLITE_STATIC);
    error = sqlite3_step(store->head) == SQLITE_DONE ? 0 : hc_store_errno(store->database);
    (void)sqlite3_reset(store->head);
    return error;
}

/* Whether the record that the head speaks of is still the one it spoke of. */
static bool holds_head(struct hc_store *store, const struct hc_link *head)
{
    sqlite3_stmt *find = NULL;
    bool same = false;
    if (sqlite3_prepare_v2(store->database, "SELECT sha256 FROM records WHERE seq = ?", -1, &find, NULL) !=
        SQLITE_OK)
        return false;
    (void)sqlite3_bind_int64(find, 1, head->seq);
    if (sqlite3_step(find) == SQLITE_ROW) {
        const char *sha256 = (const char *)sqlite3_column_text(find, 0);
        same = sha256 != NULL && strcmp(sha256, head->sha256) == 0;
    }
    (void)sqlite3_finalize(find);
    return same;
}

/* Nothing is put behind an end that was cut: that would hide the cut. Records behind the head are no cut:
 * versions before the head was kept append without it. */
static int check_end(struct hc_store *store, const struct hc_link *last, const struct hc_link *head,
                     char ret_message[256])
{
    if (last->seq == head->seq && strcmp(last->sha256, head->sha256) == 0)
        return 0;
    if (last->seq > head->seq && head->seq > 0 && holds_head(store, head))
        return 0;
    (void)snprintf(ret_message, 256,
                   "the chain does not end where it was left (record %lld is the last, %lld was): `hotcell "
                   "verify` tells more",
                   (long long)last->seq, (long long)head->seq);
    return -EBADMSG;
}

static int append(struct hc_store *store, json_t *record, const struct hc_blob *blobs, size_t blob_count,
                  char ret_message[256])
{
    struct hc_link last, head, link;
    int error = read_last(store, &last, &head, ret_message);
    if (error == 0)
        error = check_end(store, &last, &head, ret_message);
    for (size_t i = 0; error == 0 && i < blob_count; i++)
        error = hc_store_keep_blob(store, &blobs[i], ret_message);
    if (error < 0)
        return error;
    hc_autofree char *text = hc_link_make(record, &last, &link);
    if (text == NULL) {
        (void)snprintf(ret_message, 256, "out of memory");
        return -ENOMEM;
    }
    error = insert(store, record, &link, text);
    if (error < 0)
        (void)snprintf(ret_message, 256, "%s", sqlite3_errmsg(store->database));
    return error;
}

struct addition {
    const struct hc_blob *blobs;
    size_t blob_count;
    int (*check)(struct hc_store *store, void *context, char ret_message[256]);
    void *context;
};

static int append_locked(struct hc_store *store, json_t *record, const struct addition *with,
                         char ret_message[256])
{
    /* IMMEDIATE: the last link is read under the writer's lock, so two writers can't follow the same one. */
    int error = execute(store, "BEGIN IMMEDIATE", ret_message);
    if (error < 0)
        return error;
    if (with->check != NULL)
        error = with->check(store, with->context, ret_message);
    if (error == 0)
        error = append(store, record, with->blobs, with->blob_count, ret_message);
    if (error == 0)
        error = execute(store, "COMMIT", ret_message);
    if (error != 0) {
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
        (void)json_object_set_new(record, "chain", json_null());
    }
    return error;
}

int hc_store_append_with(struct hc_store *store, json_t *record, const struct hc_blob *blobs,
                         size_t blob_count, char ret_message[256])
{
    const struct addition with = {.blobs = blobs, .blob_count = blob_count};
    return append_locked(store, record, &with, ret_message);
}

int hc_store_append_if(struct hc_store *store, json_t *record,
                       int (*check)(struct hc_store *store, void *context, char ret_message[256]),
                       void *context, char ret_message[256])
{
    const struct addition with = {.check = check, .context = context};
    return append_locked(store, record, &with, ret_message);
}

int hc_store_read_begin(struct hc_store *store, char ret_message[256])
{
    return execute(store, "BEGIN", ret_message);
}

void hc_store_read_end(struct hc_store *store)
{
    (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
}

int hc_store_append(struct hc_store *store, json_t *record, char ret_message[256])
{
    return hc_store_append_with(store, record, NULL, 0, ret_message);
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
