#include "store/tasks.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "store/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

struct hc_tasks {
    sqlite3 *database;
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS tasks("
    " id TEXT PRIMARY KEY, created_at TEXT NOT NULL, document TEXT NOT NULL) STRICT;"
    "CREATE TABLE IF NOT EXISTS tries("
    " task TEXT NOT NULL REFERENCES tasks(id), attempt INTEGER NOT NULL,"
    " run TEXT NOT NULL, begun_at TEXT NOT NULL, reserved_us INTEGER NOT NULL,"
    " time_us INTEGER, counted INTEGER NOT NULL DEFAULT 1, accepted TEXT, status TEXT,"
    " PRIMARY KEY(task, attempt)) STRICT;";

static int failed(struct hc_tasks *tasks, char ret_message[256])
{
    int code = sqlite3_errcode(tasks->database) & 0xff;
    (void)snprintf(ret_message, 256, "%s", sqlite3_errmsg(tasks->database));
    return code == SQLITE_FULL                              ? -ENOSPC
           : code == SQLITE_BUSY || code == SQLITE_LOCKED   ? -EBUSY
           : code == SQLITE_NOMEM                           ? -ENOMEM
           : code == SQLITE_READONLY || code == SQLITE_PERM ? -EACCES
                                                            : -EIO;
}

static int execute(struct hc_tasks *tasks, const char *sql, char ret_message[256])
{
    return sqlite3_exec(tasks->database, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(tasks, ret_message);
}

static void finalize(sqlite3_stmt **statement)
{
    (void)sqlite3_finalize(*statement);
}
#define autostatement __attribute__((cleanup(finalize))) sqlite3_stmt

static int prepare(struct hc_tasks *tasks, const char *sql, sqlite3_stmt **ret_statement,
                   char ret_message[256])
{
    return sqlite3_prepare_v2(tasks->database, sql, -1, ret_statement, NULL) == SQLITE_OK
               ? 0
               : failed(tasks, ret_message);
}

static void bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    (void)sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

static int done(struct hc_tasks *tasks, sqlite3_stmt *statement, char ret_message[256])
{
    return sqlite3_step(statement) == SQLITE_DONE ? 0 : failed(tasks, ret_message);
}

int hc_tasks_open(const char *folder, struct hc_tasks **ret_tasks, char ret_message[256])
{
    struct hc_store *store = NULL;
    /* Makes the folder, with the rights it should have. */
    int error = hc_store_open(folder, &store, ret_message);
    hc_store_close(store);
    if (error < 0)
        return error;
    hc_autofree char *path = hc_printf("%s/tasks.sqlite", folder);
    struct hc_tasks *tasks = calloc(1, sizeof *tasks);
    if (path == NULL || tasks == NULL) {
        free(tasks);
        return -ENOMEM;
    }
    if (sqlite3_open_v2(path, &tasks->database,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        error = failed(tasks, ret_message);
    if (error == 0) {
        (void)sqlite3_busy_timeout(tasks->database, 20000);
        error = execute(tasks, schema, ret_message);
    }
    if (error < 0)
        hc_tasks_close(tasks);
    else
        *ret_tasks = tasks;
    return error;
}

void hc_tasks_close(struct hc_tasks *tasks)
{
    if (tasks == NULL)
        return;
    (void)sqlite3_close(tasks->database);
    free(tasks);
}

int hc_tasks_add(struct hc_tasks *tasks, const char *id, const char *created_at, const json_t *document,
                 char ret_message[256])
{
    autostatement *statement = NULL;
    hc_autofree char *text = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL)
        return -ENOMEM;
    int error = prepare(tasks, "INSERT INTO tasks VALUES(?,?,?)", &statement, ret_message);
    if (error < 0)
        return error;
    bind_text(statement, 1, id);
    bind_text(statement, 2, created_at);
    bind_text(statement, 3, text);
    return done(tasks, statement, ret_message);
}

static json_t *text_or_null(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text != NULL ? json_string(text) : json_null();
}

static json_t *number_or_null(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? json_null()
               : json_integer(sqlite3_column_int64(statement, column));
}

static int read_tries(struct hc_tasks *tasks, const char *id, json_t **ret_tries, char ret_message[256])
{
    autostatement *statement = NULL;
    int step = SQLITE_ERROR;
    json_t *tries = json_array();
    int error =
        prepare(tasks,
                "SELECT attempt, run, begun_at, reserved_us, time_us, counted, accepted, status FROM tries"
                " WHERE task = ? ORDER BY attempt",
                &statement, ret_message);
    if (error == 0)
        bind_text(statement, 1, id);
    while (error == 0 && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        json_t *row =
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "attempt", number_or_null(statement, 0),
                      "run", text_or_null(statement, 1), "begun_at", text_or_null(statement, 2),
                      "reserved_us", number_or_null(statement, 3), "time_us", number_or_null(statement, 4),
                      "counted", sqlite3_column_int(statement, 5), "accepted", text_or_null(statement, 6),
                      "status", text_or_null(statement, 7));
        if (row == NULL || json_array_append_new(tries, row) != 0)
            error = -ENOMEM;
    }
    if (error == 0 && step != SQLITE_DONE)
        error = failed(tasks, ret_message);
    if (error < 0)
        json_decref(tries);
    else
        *ret_tries = tries;
    return error;
}

static int take_task(struct hc_tasks *tasks, sqlite3_stmt *statement, json_t **ret_task,
                     char ret_message[256])
{
    const char *id = (const char *)sqlite3_column_text(statement, 0);
    json_t *document = json_loads((const char *)sqlite3_column_text(statement, 2), 0, NULL), *tries = NULL;
    if (document == NULL) {
        (void)snprintf(ret_message, 256, "the task %.60s is damaged", id);
        return -EBADMSG;
    }
    int error = read_tries(tasks, id, &tries, ret_message);
    if (error < 0) {
        json_decref(document);
        return error;
    }
    *ret_task = json_pack("{s:s, s:o, s:o, s:o}", "id", id, "created_at", text_or_null(statement, 1),
                          "document", document, "tries", tries);
    return *ret_task != NULL ? 0 : -ENOMEM;
}

int hc_tasks_get(struct hc_tasks *tasks, const char *id, json_t **ret_task, char ret_message[256])
{
    autostatement *statement = NULL;
    int error =
        prepare(tasks, "SELECT id, created_at, document FROM tasks WHERE id = ?", &statement, ret_message);
    if (error < 0)
        return error;
    bind_text(statement, 1, id);
    int step = sqlite3_step(statement);
    if (step == SQLITE_DONE) {
        (void)snprintf(ret_message, 256, "there is no task %.100s", id);
        return -ENOENT;
    }
    return step == SQLITE_ROW ? take_task(tasks, statement, ret_task, ret_message)
                              : failed(tasks, ret_message);
}

int hc_tasks_list(struct hc_tasks *tasks, unsigned limit, json_t **ret_list, char ret_message[256])
{
    autostatement *statement = NULL;
    json_t *list = json_array(), *task = NULL;
    int step = SQLITE_DONE;
    int error = prepare(tasks, "SELECT id, created_at, document FROM tasks ORDER BY rowid DESC LIMIT ?",
                        &statement, ret_message);
    if (error == 0)
        (void)sqlite3_bind_int64(statement, 1, limit);
    while (error == 0 && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        error = take_task(tasks, statement, &task, ret_message);
        if (error == 0 && json_array_append_new(list, task) != 0)
            error = -ENOMEM;
    }
    if (error == 0 && step != SQLITE_DONE)
        error = failed(tasks, ret_message);
    if (error < 0)
        json_decref(list);
    else
        *ret_list = list;
    return error;
}

static int insert_try(struct hc_tasks *tasks, const char *id, const char *run, const char *begun_at,
                      uint64_t wall_us, unsigned attempt, char ret_message[256])
{
    autostatement *statement = NULL;
    int error =
        prepare(tasks, "INSERT INTO tries(task, attempt, run, begun_at, reserved_us) VALUES(?,?,?,?,?)",
                &statement, ret_message);
    if (error < 0)
        return error;
    bind_text(statement, 1, id);
    (void)sqlite3_bind_int64(statement, 2, attempt);
    bind_text(statement, 3, run);
    bind_text(statement, 4, begun_at);
    (void)sqlite3_bind_int64(statement, 5, (sqlite3_int64)wall_us);
    return done(tasks, statement, ret_message);
}

int hc_tasks_reserve(struct hc_tasks *tasks, const char *id, const char *run, const char *begun_at,
                     uint64_t (*decide)(const json_t *task), uint64_t *ret_wall_us, unsigned *ret_attempt,
                     json_t **ret_task, char ret_message[256])
{
    *ret_task = NULL;
    int error = execute(tasks, "BEGIN IMMEDIATE", ret_message);
    if (error < 0)
        return error;
    error = hc_tasks_get(tasks, id, ret_task, ret_message);
    if (error == 0) {
        *ret_wall_us = decide(*ret_task);
        *ret_attempt = (unsigned)json_array_size(json_object_get(*ret_task, "tries")) + 1;
        error = *ret_wall_us == 0
                    ? HC_TASK_REFUSED
                    : insert_try(tasks, id, run, begun_at, *ret_wall_us, *ret_attempt, ret_message);
    }
    if (error == 0)
        error = execute(tasks, "COMMIT", ret_message);
    if (error != 0)
        (void)sqlite3_exec(tasks->database, "ROLLBACK", NULL, NULL, NULL);
    return error;
}

int hc_tasks_settle(struct hc_tasks *tasks, const char *id, const char *run, uint64_t time_us, bool counted,
                    const char *accepted, const char *status, char ret_message[256])
{
    autostatement *statement = NULL;
    int error = prepare(tasks,
                        "UPDATE tries SET time_us = ?, counted = ?, accepted = ?, status = ?"
                        " WHERE task = ? AND run = ?",
                        &statement, ret_message);
    if (error < 0)
        return error;
    (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)time_us);
    (void)sqlite3_bind_int(statement, 2, counted);
    bind_text(statement, 3, accepted);
    bind_text(statement, 4, status);
    bind_text(statement, 5, id);
    bind_text(statement, 6, run);
    return done(tasks, statement, ret_message);
}
