/* `hotcell log`: what happened, by the records. */
#include "cli/records.h"

#include "base/cleanup.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "flow/release.h"
#include "store/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define ROWS_DEFAULT 50

const struct hc_option hc_log_options[HC_LOG_OPTION_COUNT] = {
    {"id", 0, "ID", "only this record; the same as the operand"},
    {"kind", 0, "run|release|replay", "only records of this kind"},
    {"status", 0, "STATUS", "only runs that ended so, releases or replays of that status"},
    {"language", 'l', "NAME", "only runs in this language"},
    {"since", 0, "TIME", "only records since: 2h, 30m, or 2026-05-17, 2026-05-17T08:00:00Z"},
    {"limit", 0, "N|all", "how many of the newest (50)"},
    {"export", 0, "FILE", "write the chain to one file that `hotcell verify` reads; - for standard output"},
    {"blobs", 0, NULL, "with --export: programs and inputs too, so that runs can be replayed from the file"},
    {"store", 0, "DIR", "where records are ($XDG_STATE_HOME/hotcell)"},
    {"json", 0, NULL, "print one JSON document"},
    {"help", 'h', NULL, "show this help"},
};

struct log_call {
    struct hc_records_call call;
    struct hc_store_filter filter;
    char kind[40], since[40];
    bool limit_given, all, blobs;
    const char *export;
};

static int take_kind(struct log_call *log, const char *value)
{
    if (strcmp(value, "run") != 0 && strcmp(value, "release") != 0 && strcmp(value, "replay") != 0)
        return hc_records_fail(&log->call, 125, "kind", "--kind %.60s: wanted run, release or replay", value);
    (void)snprintf(log->kind, sizeof log->kind, "hotcell.%s/1", value);
    log->filter.kind = log->kind;
    return 0;
}

/* A time of day as records write it compares as text. */
static bool is_date(const char *text)
{
    static const char form[] = "0000-00-00T00:00:00";
    size_t n = strlen(text);
    if (n != 10 && n != 20)
        return false;
    for (size_t i = 0; i < n && i < sizeof form - 1; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    return n == 10 || text[19] == 'Z';
}

static int take_since(struct log_call *log, const char *value)
{
    uint64_t us = 0;
    struct tm utc;
    if (is_date(value)) {
        (void)snprintf(log->since, sizeof log->since, "%.19s", value);
    } else if (hc_parse_duration_us(value, &us) == HC_QUANTITY_OK) {
        time_t then = time(NULL) - (time_t)(us / 1000000);
        (void)gmtime_r(&then, &utc);
        (void)strftime(log->since, sizeof log->since, "%Y-%m-%dT%H:%M:%S", &utc);
    } else {
        return hc_records_fail(&log->call, 125, "since",
                               "--since %.60s: wanted 30m, 2h, 2026-05-17 or 2026-05-17T08:00:00Z", value);
    }
    log->filter.since = log->since;
    return 0;
}

static int take_limit(struct log_call *log, const char *value)
{
    uint64_t n = 0;
    log->limit_given = true;
    log->all = strcmp(value, "all") == 0;
    if (!log->all && hc_parse_count(value, &n) != HC_QUANTITY_OK)
        return hc_records_fail(&log->call, 125, "limit", "--limit %.60s: wanted a number or all", value);
    log->filter.limit = (int64_t)n;
    return 0;
}

static int take(struct hc_records_call *call, const char *option, const char *value)
{
    struct log_call *log = call->context;
    if (strcmp(option, "kind") == 0)
        return take_kind(log, value);
    if (strcmp(option, "since") == 0)
        return take_since(log, value);
    if (strcmp(option, "limit") == 0)
        return take_limit(log, value);
    if (strcmp(option, "id") == 0)
        call->operands[call->operand_count++ < 1 ? 0 : 1] = value;
    else if (strcmp(option, "status") == 0)
        log->filter.status = value;
    else if (strcmp(option, "language") == 0)
        log->filter.language = value;
    else if (strcmp(option, "export") == 0)
        log->export = value;
    else if (strcmp(option, "blobs") == 0)
        log->blobs = true;
    return 0;
}

/* ---- the list ---- */

struct list {
    struct hc_store *store;
    json_t *rows;
    char *message;
};

static json_t *copy(const json_t *record, const char *object, const char *member)
{
    const json_t *from = object != NULL ? json_object_get(record, object) : record;
    json_t *value = json_object_get(from, member);
    return value != NULL ? json_incref(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static int add_row(const struct hc_stored *stored, void *context)
{
    struct list *list = context;
    json_t *record =
        json_loadb(stored->text != NULL ? stored->text : "", stored->bytes, JSON_ALLOW_NUL, NULL);
    json_t *release = NULL;
    bool run = strcmp(stored->kind, "hotcell.run/1") == 0;
    int error =
        run ? hc_release_present(list->store, stored->id, stored->sha256, &release, list->message) : 0;
    if (error < 0) {
        json_decref(record);
        return error;
    }
    json_t *row = json_pack(
        "{s:I, s:s, s:s, s:o, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "seq",
        (json_int_t)stored->seq, "id", stored->id, "schema", stored->kind, "subject",
        text_or_null(stored->subject), "created_at", stored->created_at, "state", text_or_null(stored->state),
        "status", stored->status, "cause", copy(record, NULL, "cause"), "language",
        text_or_null(stored->language), "exit_code", copy(record, NULL, "exit_code"), "wall_us",
        copy(record, "usage", "wall_us"), "acceptance", copy(record, "acceptance", "status"), "release",
        run ? copy(release, NULL, "status") : json_null(), "sha256", stored->sha256);
    json_decref(release);
    json_decref(record);
    return json_array_append_new(list->rows, row) != 0 ? -ENOMEM : 0;
}

static const char *text_at(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text != NULL ? text : "-";
}

/* A cell of the table: cut or filled to its width, nothing in it that a terminal obeys. */
static void put_cell(const char *text, int width)
{
    size_t n = strlen(text), most = (size_t)width;
    for (size_t i = 0; i < n && i < most; i++)
        (void)putchar((unsigned char)text[i] < 32 || (unsigned char)text[i] > 126 ? '?' : text[i]);
    printf("%*s ", (int)(n < most ? most - n : 0), "");
}

static void print_row(const json_t *row, bool colours)
{
    char number[32], wall[32] = "-";
    const char *status = text_at(row, "status"), *schema = text_at(row, "schema");
    bool run = strcmp(schema, "hotcell.run/1") == 0;
    bool good =
        strcmp(status, "ok") == 0 || strcmp(status, "identical") == 0 || strcmp(status, "authorised") == 0;
    const json_t *us = json_object_get(row, "wall_us");
    if (json_is_integer(us))
        hc_format_duration((uint64_t)json_integer_value(us) / 1000 * 1000, wall);
    (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(row, "seq")));
    put_cell(number, 6);
    put_cell(text_at(row, "created_at"), 19);
    put_cell(text_at(row, "id"), 28);
    put_cell(run                                        ? text_at(row, "language")
             : strcmp(schema, "hotcell.release/1") == 0 ? "release"
                                                        : "replay",
             10);
    if (colours)
        printf(good ? "\033[32m" : "\033[31m");
    put_cell(status, 19);
    if (colours)
        printf("\033[0m");
    put_cell(text_at(row, "cause"), 12);
    put_cell(wall, 9);
    put_cell(run ? text_at(row, "acceptance") : "-", 13);
    hc_print_visible(stdout, run ? text_at(row, "release") : text_at(row, "subject"),
                     strlen(run ? text_at(row, "release") : text_at(row, "subject")));
    (void)putchar('\n');
}

static int print_list(const struct log_call *log, const json_t *rows)
{
    size_t i;
    json_t *row;
    if (log->call.json)
        return hc_print_document(rows);
    if (json_array_size(rows) == 0) {
        printf("no records\n");
        return 0;
    }
    printf("%-6s %-19s %-28s %-10s %-19s %-12s %-9s %-13s %s\n", "SEQ", "TIME (UTC)", "ID", "LANGUAGE",
           "STATUS", "CAUSE", "WALL", "ACCEPTANCE", "RELEASE, OR OF");
    json_array_foreach(rows, i, row)
    {
        print_row(row, hc_colours(1));
    }

    return 0;
}

static int list_records(struct log_call *log, struct hc_store *store)
{
    char message[256] = "";
    struct list list = {.store = store, .rows = json_array(), .message = message};
    log->filter.newest_first = true;
    if (!log->limit_given)
        log->filter.limit = ROWS_DEFAULT;
    int error = hc_store_each(store, &log->filter, add_row, &list, message);
    int code = error < 0 ? hc_records_fail(&log->call, 125, "store", "records can't be read: %s", message)
                         : print_list(log, list.rows);
    json_decref(list.rows);
    return code;
}

/* ---- one record ---- */

static int print_one(const struct log_call *log, const json_t *record, json_t *release, json_t *related)
{
    if (log->call.json) {
        json_t *document =
            json_pack("{s:O, s:O?, s:O}", "record", record, "release", release, "related", related);
        int code = hc_print_document(document);
        json_decref(document);
        return code;
    }
    hc_print_record(record);
    if (release != NULL) {
        json_t *now = json_pack("{s:O}", "release now", release);
        hc_print_record(now);
        json_decref(now);
    }
    size_t i;
    json_t *row;
    json_array_foreach(related, i, row)
    {
        printf("%srelated: ", i == 0 ? "\n" : "");
        printf("%s %s %s %s\n", text_at(row, "id"), text_at(row, "created_at"), text_at(row, "schema"),
               text_at(row, "status"));
    }
    return 0;
}

static int show_record(struct log_call *log, struct hc_store *store, const char *id)
{
    char message[256] = "";
    json_t *record = NULL, *release = NULL;
    struct list list = {.store = store, .message = message};
    int outcome = hc_store_find(store, id, &record, NULL, message);
    if (outcome == HC_STORE_ABSENT)
        return hc_records_fail(&log->call, 125, "id", "%.100s: there is no such record", id);
    if (outcome == HC_STORE_SEVERAL)
        return hc_records_fail(&log->call, 125, "id", "%.100s: several records begin so", id);
    const char *full = json_string_value(json_object_get(record, "id"));
    list.rows = json_array();
    struct hc_store_filter related = {.subject = full};
    if (outcome == 0 && full != NULL)
        outcome = hc_store_each(store, &related, add_row, &list, message);
    if (outcome == 0 &&
        hc_string_equal(json_string_value(json_object_get(record, "schema")), "hotcell.run/1"))
        outcome = hc_release_present(
            store, full, json_string_value(json_object_get(json_object_get(record, "chain"), "sha256")),
            &release, message);
    int code = outcome < 0 ? hc_records_fail(&log->call, 125, "store", "%s", message)
                           : print_one(log, record, release, list.rows);
    json_decref(release);
    json_decref(record);
    json_decref(list.rows);
    return code;
}

/* ---- export ---- */

static int first_seq(const struct hc_stored *stored, void *context)
{
    *(int64_t *)context = stored->seq;
    return 0;
}

/* Of a chain only a part without gaps can be verified. */
static int choose_part(struct log_call *log, struct hc_store *store, const char *id,
                       struct hc_log_export *part)
{
    char message[256] = "";
    if (log->filter.kind != NULL || log->filter.status != NULL || log->filter.language != NULL)
        return hc_records_fail(
            &log->call, 125, "export",
            "--export: a chain with gaps can't be verified; --since, --limit and one ID leave none");
    if (id != NULL) {
        json_t *record = NULL;
        int outcome = hc_store_find(store, id, &record, NULL, message);
        if (outcome != 0)
            return hc_records_fail(&log->call, 125, "id", "%.100s: %s", id,
                                   outcome == HC_STORE_ABSENT    ? "there is no such record"
                                   : outcome == HC_STORE_SEVERAL ? "several records begin so"
                                                                 : message);
        part->from_seq = json_integer_value(json_object_get(json_object_get(record, "chain"), "seq"));
        part->limit = 1;
        json_decref(record);
        return 0;
    }
    struct hc_store_filter filter = {.since = log->filter.since, .newest_first = true};
    if (log->limit_given && !log->all)
        filter.limit = log->filter.limit;
    if (filter.since == NULL && filter.limit == 0)
        return 0;
    int error = hc_store_each(store, &filter, first_seq, &part->from_seq, message);
    if (error == 0 && part->from_seq == 0)
        return hc_records_fail(&log->call, 125, "since", "there are no records since %s", log->filter.since);
    return error < 0 ? hc_records_fail(&log->call, 125, "store", "%s", message) : 0;
}

static int write_file(struct hc_store *store, const struct hc_log_export *part, const char *path,
                      struct hc_link *ret_head, char ret_message[256])
{
    if (strcmp(path, "-") == 0)
        return hc_log_write(store, part, stdout, ret_head, ret_message);
    hc_autofree char *partial = hc_printf("%s.partial-%d", path, (int)getpid());
    int fd = partial != NULL ? open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    int error = out != NULL ? 0 : -errno;
    if (error == 0)
        error = hc_log_write(store, part, out, ret_head, ret_message);
    if (error == 0 && fsync(fd) != 0)
        error = -errno;
    if (out != NULL && fclose(out) != 0 && error == 0)
        error = -errno;
    if (error == 0 && rename(partial, path) != 0)
        error = -errno;
    if (error < 0 && fd >= 0)
        (void)unlink(partial);
    if (error < 0 && ret_message[0] == '\0')
        (void)snprintf(ret_message, 256, "%s", strerror(-error));
    return error;
}

static int export_records(struct log_call *log, struct hc_store *store, const char *id)
{
    char message[256] = "";
    struct hc_log_export part = {.blobs = log->blobs};
    struct hc_link head = {0};
    int failed = choose_part(log, store, id, &part);
    if (failed != 0)
        return failed;
    int error = write_file(store, &part, log->export, &head, message);
    if (error < 0)
        return hc_records_fail(&log->call, 125, "export", "--export %.150s: %s", log->export, message);
    if (strcmp(log->export, "-") == 0)
        return 0;
    if (!log->call.json) {
        printf("%s: head %" PRId64 ":%s\n", log->export, head.seq, head.sha256);
        return 0;
    }
    json_t *document =
        json_pack("{s:s, s:I, s:s}", "file", log->export, "seq", (json_int_t)head.seq, "sha256", head.sha256);
    int code = hc_print_document(document);
    json_decref(document);
    return code;
}

int hc_cli_log(int argc, char **argv)
{
    struct log_call log = {.call = {.command = "log", .operands_max = 1, .take = take, .context = &log}};
    struct hc_store *store = NULL;
    int failed = hc_records_arguments(argc, argv, &log.call);
    if (failed != 0 || log.call.help)
        return failed;
    if (log.call.operand_count > 1)
        return hc_records_fail(&log.call, 125, "id", "one record at a time");
    if (log.blobs && log.export == NULL)
        return hc_records_fail(&log.call, 125, "blobs", "--blobs: only with --export");
    const char *id = log.call.operand_count > 0 ? log.call.operands[0] : NULL;
    failed = hc_records_open(&log.call, false, &store);
    if (failed != 0)
        return failed;
    int code = log.export != NULL ? export_records(&log, store, id)
               : id != NULL       ? show_record(&log, store, id)
                                  : list_records(&log, store);
    hc_store_close(store);
    return code;
}
