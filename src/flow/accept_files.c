/* Predicates over structured output and over files that the run left. A file is what the listing of the
 * working folder has as created or changed: an input that lies there untouched is none. */
#include "flow/accept_kinds.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "cell/plan.h"
#include "flow/csv.h"
#include "flow/json_schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define READ_BYTES_MAX (64ull * 1024 * 1024)
#define COLUMNS_MAX    1000

/* ---- form ---- */

const char *hc_check_path(const json_t *predicate, char room[256])
{
    const json_t *value = json_object_get(predicate, "path");
    const char *path = json_string_value(value), *reason = "is not a text";
    if (path != NULL && strlen(path) == json_string_length(value) && hc_plan_name_ok(path, &reason))
        return NULL;
    (void)snprintf(room, 256, "path %.200s", reason != NULL ? reason : "is not a plain name");
    return room;
}

const char *hc_check_schema(const json_t *predicate, char room[256])
{
    return hc_schema_check(json_object_get(predicate, "schema"), room);
}

const char *hc_check_file_json(const json_t *predicate, char room[256])
{
    const char *wrong = hc_check_path(predicate, room);
    return wrong == NULL && json_object_get(predicate, "schema") != NULL ? hc_check_schema(predicate, room)
                                                                         : wrong;
}

const char *hc_check_file_sha256(const json_t *predicate, char room[256])
{
    const char *text = json_string_value(json_object_get(predicate, "value"));
    if (text == NULL || strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
        return "value must be a SHA-256 of 64 hexadecimal digits in lower case";
    return hc_check_path(predicate, room);
}

static bool is_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

/* A number, or {min, max} with one of them at least. */
static bool is_range(const json_t *rows)
{
    const json_t *low = json_object_get(rows, "min"), *high = json_object_get(rows, "max");
    size_t known = (low != NULL) + (high != NULL);
    if (!json_is_object(rows))
        return is_count(rows);
    return known > 0 && known == json_object_size(rows) && (low == NULL || is_count(low)) &&
           (high == NULL || is_count(high)) &&
           (known < 2 || json_integer_value(low) <= json_integer_value(high));
}

const char *hc_check_file_csv(const json_t *predicate, char room[256])
{
    const json_t *columns = json_object_get(predicate, "columns"), *rows = json_object_get(predicate, "rows"),
                 *delimiter = json_object_get(predicate, "delimiter");
    size_t i;
    json_t *name;
    json_array_foreach(columns, i, name)
    {
        if (!json_is_string(name))
            return "columns must be a list of names";
    }
    if (columns != NULL && (!json_is_array(columns) || i == 0 || i > COLUMNS_MAX))
        return "columns must be a list of 1 to 1000 names";
    if (rows != NULL && !is_range(rows))
        return "rows must be a number, or {min, max} with one of them at least";
    if (delimiter != NULL &&
        (json_string_length(delimiter) != 1 || strchr("\"\r\n", json_string_value(delimiter)[0])))
        return "delimiter must be one character";
    return hc_check_path(predicate, room);
}

/* ---- files ---- */

static const struct hc_artifact *artifact_at(const struct hc_job *job, const char *path)
{
    for (size_t i = 0; i < job->collection.count; i++) {
        const struct hc_artifact *artifact = &job->collection.artifacts[i];
        if (artifact->change != HC_DELETED && strcmp(artifact->path, path) == 0)
            return artifact;
    }
    return NULL;
}

/* The listed plain file; NULL with the answer that there is none. */
static const struct hc_artifact *file_of(const struct hc_job *job, const json_t *predicate,
                                         struct hc_answer *answer)
{
    const char *path = json_string_value(json_object_get(predicate, "path"));
    const struct hc_artifact *artifact = artifact_at(job, path);
    if (artifact != NULL && artifact->plain)
        return artifact;
    answer->ok = artifact == NULL && job->collection.truncated ? HC_CANNOT_TELL : HC_NO;
    (void)snprintf(answer->got, sizeof answer->got, "%s",
                   artifact != NULL            ? artifact->type
                   : job->collection.truncated ? "the working folder holds more than can be listed"
                                               : "the run left no such file");
    return NULL;
}

static int read_file(const struct hc_job *job, const struct hc_artifact *artifact, uint8_t **ret_data,
                     size_t *ret_bytes, struct hc_answer *answer)
{
    int error = job->outcome.cell == NULL ? -EBADF : 0;
    if (error == 0)
        error = hc_collect_read(job->outcome.cell->working_folder, artifact->path, READ_BYTES_MAX, ret_data,
                                ret_bytes);
    if (error == 0)
        return 0;
    /* What the program did to its own file is no fault of the predicate. */
    answer->ok = error == -EACCES ? HC_NO : HC_CANNOT_TELL;
    (void)snprintf(answer->got, sizeof answer->got, "%s",
                   error == -EFBIG ? "more than 64M are not read" : strerror(-error));
    return error;
}

void hc_judge_file_exists(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    (void)snprintf(answer->expected, sizeof answer->expected, "a file that the run made or changed");
    const struct hc_artifact *artifact = file_of(job, predicate, answer);
    if (artifact == NULL)
        return;
    answer->ok = HC_YES;
    (void)snprintf(answer->got, sizeof answer->got, "%llu bytes", (unsigned long long)artifact->bytes);
}

void hc_judge_file_sha256(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const char *wanted = json_string_value(json_object_get(predicate, "value"));
    const struct hc_artifact *artifact = file_of(job, predicate, answer);
    char digest[65] = "";
    (void)snprintf(answer->expected, sizeof answer->expected, "%s", wanted);
    if (artifact == NULL)
        return;
    (void)snprintf(digest, sizeof digest, "%s", artifact->sha256);
    if (digest[0] == '\0') { /* not collected: it was not read yet */
        hc_autofree uint8_t *data = NULL;
        size_t bytes = 0;
        if (read_file(job, artifact, &data, &bytes, answer) < 0 || hc_sha256_hex(data, bytes, digest) < 0)
            return;
    }
    (void)snprintf(answer->got, sizeof answer->got, "%s", digest);
    answer->ok = strcmp(digest, wanted) == 0 ? HC_YES : HC_NO;
}

/* ---- JSON ---- */

static void judge_json(const char *text, size_t n, const json_t *schema, struct hc_answer *answer)
{
    json_error_t error;
    char reason[256] = "";
    json_t *document = json_loadb(text, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (document == NULL) {
        /* A number that does not fit says nothing of the rest. */
        bool ours = json_error_code(&error) == json_error_numeric_overflow ||
                    json_error_code(&error) == json_error_out_of_memory;
        answer->ok = ours ? HC_CANNOT_TELL : HC_NO;
        (void)snprintf(reason, sizeof reason, "not JSON: line %d, column %d: %.160s", error.line,
                       error.column, error.text);
        hc_show_bytes(answer->got, reason, strlen(reason));
        return;
    }
    enum hc_schema_outcome outcome =
        schema != NULL ? hc_schema_judge(schema, document, reason) : HC_SCHEMA_HOLDS;
    json_decref(document);
    answer->ok = outcome == HC_SCHEMA_HOLDS ? HC_YES : outcome == HC_SCHEMA_DIFFERS ? HC_NO : HC_CANNOT_TELL;
    hc_show_bytes(answer->got, reason, strlen(reason));
}

void hc_judge_stdout_json(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const struct hc_captured *out = &job->outcome.out;
    (void)snprintf(answer->expected, sizeof answer->expected, "JSON that fits the schema");
    if (!out->truncated)
        judge_json((const char *)out->data, out->kept_bytes, json_object_get(predicate, "schema"), answer);
}

void hc_judge_file_json(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const json_t *schema = json_object_get(predicate, "schema");
    const struct hc_artifact *artifact = file_of(job, predicate, answer);
    hc_autofree uint8_t *data = NULL;
    size_t bytes = 0;
    (void)snprintf(answer->expected, sizeof answer->expected, "JSON%s",
                   schema != NULL ? " that fits the schema" : "");
    if (artifact != NULL && read_file(job, artifact, &data, &bytes, answer) == 0)
        judge_json((const char *)data, bytes, schema, answer);
}

/* ---- tables ---- */

struct table {
    const json_t *columns;
    struct hc_answer *answer;
    uint64_t width, rows;
};
enum { NOT_AS_WANTED = 2 };

static int take_field(void *context, const struct hc_csv_field *field)
{
    struct table *table = context;
    const json_t *wanted = json_array_get(table->columns, field->column);
    char name[512];
    if (field->row == 0 && table->columns != NULL &&
        (wanted == NULL || json_string_length(wanted) != field->bytes ||
         memcmp(json_string_value(wanted), field->text, field->bytes) != 0)) {
        hc_show_bytes(name, field->text, field->bytes);
        (void)snprintf(table->answer->got, sizeof table->answer->got, "column %llu is '%.100s'",
                       (unsigned long long)field->column + 1, name);
        return NOT_AS_WANTED;
    }
    if (field->columns == 0)
        return 0;
    table->rows = field->row + 1;
    if (field->row == 0)
        table->width = field->columns;
    if (field->columns == table->width &&
        (table->columns == NULL || table->width == json_array_size(table->columns)))
        return 0;
    (void)snprintf(table->answer->got, sizeof table->answer->got, "row %llu has %llu columns",
                   (unsigned long long)field->row, (unsigned long long)field->columns);
    return NOT_AS_WANTED;
}

static bool in_range(const json_t *rows, uint64_t count)
{
    const json_t *low = json_object_get(rows, "min"), *high = json_object_get(rows, "max");
    if (rows == NULL)
        return true;
    if (json_is_integer(rows))
        return (uint64_t)json_integer_value(rows) == count;
    return (low == NULL || count >= (uint64_t)json_integer_value(low)) &&
           (high == NULL || count <= (uint64_t)json_integer_value(high));
}

static void judge_table(const char *data, size_t n, char delimiter, const json_t *predicate,
                        struct hc_answer *answer)
{
    struct table table = {.columns = json_object_get(predicate, "columns"), .answer = answer};
    uint64_t line = 0;
    int outcome = hc_csv_walk(data, n, delimiter, take_field, &table, &line);
    if (outcome < 0)
        return;
    answer->ok = HC_NO;
    if (outcome == HC_CSV_BROKEN)
        (void)snprintf(answer->got, sizeof answer->got,
                       "line %llu: a quoted field does not end where it should", (unsigned long long)line);
    if (outcome != 0)
        return;
    uint64_t rows = table.rows > 0 ? table.rows - 1 : 0; /* without the header */
    (void)snprintf(answer->got, sizeof answer->got, "%llu columns, %llu rows",
                   (unsigned long long)table.width, (unsigned long long)rows);
    answer->ok = table.rows > 0 && in_range(json_object_get(predicate, "rows"), rows) ? HC_YES : HC_NO;
}

void hc_judge_file_csv(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer)
{
    const char *path = json_string_value(json_object_get(predicate, "path"));
    const char *delimiter = json_string_value(json_object_get(predicate, "delimiter"));
    const struct hc_artifact *artifact = file_of(job, predicate, answer);
    hc_autofree uint8_t *data = NULL;
    size_t bytes = 0, n = strlen(path);
    char between = ',';
    if (delimiter != NULL)
        between = delimiter[0];
    else if (n > 4 && strcmp(path + n - 4, ".tsv") == 0)
        between = '\t';
    (void)snprintf(answer->expected, sizeof answer->expected, "a table with the wanted columns and rows");
    if (artifact != NULL && read_file(job, artifact, &data, &bytes, answer) == 0)
        judge_table((const char *)data, bytes, between, predicate, answer);
}
