/* Looking into a store: by filter, by id. */
#include "store/inside.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *column(sqlite3_stmt *row, int index)
{
    return (const char *)sqlite3_column_text(row, index);
}

static struct hc_stored stored_of(sqlite3_stmt *row)
{
    struct hc_stored stored = {.seq = sqlite3_column_int64(row, 0),
                               .kind = column(row, 1),
                               .id = column(row, 2),
                               .subject = column(row, 3),
                               .created_at = column(row, 4),
                               .state = column(row, 5),
                               .status = column(row, 6),
                               .language = column(row, 7),
                               .sha256 = column(row, 8),
                               .text = column(row, 9)};
    stored.bytes = (size_t)sqlite3_column_bytes(row, 9);
    return stored;
}

int hc_store_each(struct hc_store *store, const struct hc_store_filter *filter,
                  int (*visit)(const struct hc_stored *stored, void *context), void *context,
                  char ret_message[256])
{
    const struct {
        const char *value, *condition;
    } rows[] = {{filter->id, " AND id = ?"},
                {filter->kind, " AND kind = ?"},
                {filter->subject, " AND subject = ?"},
                {filter->status, " AND status = ?"},
                {filter->language, " AND language = ?"},
                {filter->since, " AND created_at >= ?"}};
    char sql[512] = "SELECT seq, kind, id, subject, created_at, state, status, language, sha256, record"
                    " FROM records WHERE seq >= ?";
    size_t n = strlen(sql);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value != NULL)
            n += (size_t)snprintf(sql + n, sizeof sql - n, "%s", rows[i].condition);
    (void)snprintf(sql + n, sizeof sql - n, " ORDER BY seq %s LIMIT ?",
                   filter->newest_first ? "DESC" : "ASC");
    sqlite3_stmt *query = NULL;
    if (sqlite3_prepare_v2(store->database, sql, -1, &query, NULL) != SQLITE_OK)
        return hc_store_failed(store, ret_message);
    int at = 1, outcome = 0, done = SQLITE_ROW;
    (void)sqlite3_bind_int64(query, at++, filter->from_seq);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value != NULL)
            (void)sqlite3_bind_text(query, at++, rows[i].value, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(query, at, filter->limit > 0 ? filter->limit : -1);
    while (outcome == 0 && (done = sqlite3_step(query)) == SQLITE_ROW) {
        struct hc_stored stored = stored_of(query);
        outcome = visit(&stored, context);
    }
    if (outcome == 0 && done != SQLITE_DONE)
        outcome = hc_store_failed(store, ret_message);
    (void)sqlite3_finalize(query);
    return outcome;
}

static int find_seq(struct hc_store *store, const char *id, int64_t *ret_seq, char ret_message[256])
{
    sqlite3_stmt *query = NULL;
    bool number = id[0] != '\0' && strlen(id) <= 18 && id[strspn(id, "0123456789")] == '\0';
    const char *sql = number ? "SELECT seq, 1 FROM records WHERE seq = CAST(?1 AS INTEGER)"
                             : "SELECT seq, id = ?1 FROM records WHERE id = ?1 OR (length(?1) >= 4 AND"
                               " id >= ?1 AND substr(id, 1, length(?1)) = ?1) ORDER BY id != ?1, seq LIMIT 2";
    if (sqlite3_prepare_v2(store->database, sql, -1, &query, NULL) != SQLITE_OK)
        return hc_store_failed(store, ret_message);
    (void)sqlite3_bind_text(query, 1, id, -1, SQLITE_STATIC);
    int outcome = HC_STORE_ABSENT, done = sqlite3_step(query);
    if (done == SQLITE_ROW) {
        bool exact = sqlite3_column_int(query, 1) != 0;
        *ret_seq = sqlite3_column_int64(query, 0);
        outcome = 0;
        if (!exact && (done = sqlite3_step(query)) == SQLITE_ROW)
            outcome = HC_STORE_SEVERAL;
    }
    if (done != SQLITE_ROW && done != SQLITE_DONE)
        outcome = hc_store_failed(store, ret_message);
    (void)sqlite3_finalize(query);
    return outcome;
}

struct found {
    json_t *record;
    char *text;
};

static int take(const struct hc_stored *stored, void *context)
{
    struct found *found = context;
    found->text = malloc(stored->bytes + 1);
    if (found->text == NULL)
        return -ENOMEM;
    memcpy(found->text, stored->text != NULL ? stored->text : "", stored->bytes);
    found->text[stored->bytes] = '\0';
    found->record = json_loadb(found->text, stored->bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    return 0;
}

int hc_store_find(struct hc_store *store, const char *id, json_t **ret_record, char **ret_text,
                  char ret_message[256])
{
    int64_t seq = 0;
    struct found found = {0};
    int outcome = find_seq(store, id, &seq, ret_message);
    if (outcome != 0)
        return outcome;
    struct hc_store_filter filter = {.from_seq = seq, .limit = 1};
    outcome = hc_store_each(store, &filter, take, &found, ret_message);
    if (outcome == 0 && found.record == NULL) {
        (void)snprintf(ret_message, 256, "record %lld is damaged: `hotcell verify` tells more",
                       (long long)seq);
        outcome = -EBADMSG;
    }
    if (outcome == 0) {
        *ret_record = found.record;
        if (ret_text != NULL)
            *ret_text = found.text;
        else
            free(found.text);
        return 0;
    }
    free(found.text);
    json_decref(found.record);
    return outcome;
}
