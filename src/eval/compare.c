#include "eval/compare.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "eval/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 1000, IDS_MAX = 100 };

/* What is kept of a result of the first file: memory for a million of them is 40 MB. */
struct row {
    uint8_t key[16];
    uint64_t wall_us;
    uint8_t status;
    int8_t accepted; /* -1: not judged */
    bool seen;
};

struct table {
    struct row *rows;
    size_t count, room;
};

/* ---- lines of results ---- */

struct file {
    const char *path;
    int fd;
    struct hc_lines lines;
};

static int open_file(struct file *file, const char *path, struct hc_refusal *refusal)
{
    *file = (struct file){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)};
    if (file->fd < 0)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "compare", "--compare %.200s: %s", path, strerror(errno));
    hc_lines_init(&file->lines, file->fd);
    return 0;
}

static void close_file(struct file *file)
{
    if (file->path != NULL)
        hc_lines_done(&file->lines);
    hc_close_fd(&file->fd);
}

static int status_of(const json_t *result)
{
    const char *name = json_string_value(json_object_get(result, "status"));
    for (int i = 0; name != NULL && i < HC_STATUS_COUNT; i++)
        if (strcmp(hc_statuses[i].name, name) == 0)
            return i;
    return -1;
}

/* The next result, NULL at the end; a last line that was cut is no error. */
static int next_result(struct file *file, json_t **ret_result, struct hc_refusal *refusal)
{
    const char *line;
    size_t bytes = 0;
    bool cut = false;
    *ret_result = NULL;
    int outcome = HC_LINE;
    while (outcome == HC_LINE && bytes == 0) {
        outcome = hc_lines_next(&file->lines, &line, &bytes, &cut);
        if (outcome == HC_LINE_END)
            return 0;
    }
    if (outcome < 0)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "compare", "--compare %.200s: %s", file->path,
                         strerror(-outcome));
    json_t *result = outcome == HC_LINE ? json_loadb(line, bytes, JSON_ALLOW_NUL, NULL) : NULL;
    if (result != NULL && status_of(result) >= 0 && json_is_string(json_object_get(result, "id"))) {
        *ret_result = result;
        return 0;
    }
    json_decref(result);
    return cut ? 0
               : hc_refuse(refusal, HC_CAUSE_FIELD, "compare", "--compare %.200s:%llu: is no result",
                           file->path, (unsigned long long)file->lines.number);
}

static int row_of(const json_t *result, struct row *ret_row)
{
    char sha256[65];
    const json_t *id = json_object_get(result, "id"), *wall = json_object_get(result, "wall_us");
    const json_t *accepted = json_object_get(result, "accepted");
    int error = hc_sha256_hex(json_string_value(id), json_string_length(id), sha256);
    *ret_row = (struct row){.status = (uint8_t)status_of(result),
                            .accepted = json_is_true(accepted)    ? 1
                                        : json_is_false(accepted) ? 0
                                                                  : -1,
                            .wall_us = json_is_integer(wall) && json_integer_value(wall) > 0
                                           ? (uint64_t)json_integer_value(wall)
                                           : 0};
    memcpy(ret_row->key, sha256, sizeof ret_row->key); /* 64 bits of it: a clash in a million is unheard of */
    return error;
}

static int by_key(const void *a, const void *b)
{
    return memcmp(((const struct row *)a)->key, ((const struct row *)b)->key, sizeof((struct row *)0)->key);
}

static int add_row(struct table *table, const struct row *row)
{
    if (table->count == table->room) {
        size_t room = table->room > 0 ? 2 * table->room : 1024;
        struct row *rows = reallocarray(table->rows, room, sizeof *rows);
        if (rows == NULL)
            return -ENOMEM;
        table->rows = rows;
        table->room = room;
    }
    table->rows[table->count++] = *row;
    return 0;
}

static struct row *find_row(const struct table *table, const struct row *row)
{
    return table->count > 0 ? bsearch(row, table->rows, table->count, sizeof *row, by_key) : NULL;
}

/* ---- counting ---- */

static void count_one(struct hc_compare *c, int side, const struct row *row)
{
    c->results[side]++;
    c->ok[side] += row->status == HC_STATUS_OK ? 1 : 0;
    c->right[side] += row->accepted == 1 ? 1 : 0;
    c->judged[side] += row->accepted >= 0 ? 1 : 0;
}

/* Right, ended well and not judged, ended well and wrong, anything else; what says nothing has no place. */
static int rank(enum hc_status status, int accepted)
{
    if (status == HC_STATUS_FAULT || status == HC_STATUS_CANCELLED)
        return -1;
    return accepted == 1 ? 3 : status != HC_STATUS_OK ? 0 : accepted < 0 ? 2 : 1;
}

enum hc_direction hc_compare_direction(enum hc_status a, int accepted_a, enum hc_status b, int accepted_b)
{
    int before = rank(a, accepted_a), after = rank(b, accepted_b);
    if (a == b && accepted_a == accepted_b)
        return HC_MOVE_NONE;
    if (before < 0 || after < 0 || before == after)
        return HC_MOVE_OTHER;
    return after > before ? HC_MOVE_BETTER : HC_MOVE_WORSE;
}

static const char *outcome_name(const struct row *row, char out[64])
{
    (void)snprintf(out, 64, "%s%s", hc_statuses[row->status].name,
                   row->accepted == 1   ? ", right"
                   : row->accepted == 0 ? ", wrong"
                                        : "");
    return out;
}

static int note_move(struct hc_compare *c, const json_t *result, const struct row *a, const struct row *b)
{
    static const char *const names[] = {"same", "better", "worse", "changed"};
    char from[64], to[64], move[160];
    enum hc_direction direction = hc_compare_direction(a->status, a->accepted, b->status, b->accepted);
    uint64_t *counts[] = {&c->same, &c->better, &c->worse, &c->changed};
    (*counts[direction])++;
    if (direction == HC_MOVE_NONE)
        return 0;
    (void)snprintf(move, sizeof move, "%s -> %s", outcome_name(a, from), outcome_name(b, to));
    json_int_t count = json_integer_value(json_object_get(c->moves, move));
    if (json_object_set_new(c->moves, move, json_integer(count + 1)) != 0)
        return -ENOMEM;
    if (json_array_size(c->list) >= LIST_MAX)
        return 0;
    const json_t *suite = json_object_get(result, "suite");
    return json_array_append_new(
               c->list, json_pack("{s:O, s:O?, s:s, s:s, s:s, s:I, s:I}", "id", json_object_get(result, "id"),
                                  "suite", json_is_string(suite) ? suite : NULL, "from", from, "to", to,
                                  "direction", names[direction], "wall_us_before", (json_int_t)a->wall_us,
                                  "wall_us_after", (json_int_t)b->wall_us)) != 0
               ? -ENOMEM
               : 0;
}

static int note_only(struct hc_compare *c, int side, const json_t *result)
{
    c->only[side]++;
    if (json_array_size(c->only_ids[side]) >= IDS_MAX)
        return 0;
    return json_array_append(c->only_ids[side], json_object_get(result, "id")) != 0 ? -ENOMEM : 0;
}

/* Times say something when the same was done. */
static void note_times(struct hc_compare *c, const struct row *a, const struct row *b)
{
    if (a->status != b->status || a->wall_us == 0 || b->wall_us == 0)
        return;
    hc_eval_times_add(&c->wall[0], a->wall_us);
    hc_eval_times_add(&c->wall[1], b->wall_us);
    hc_eval_times_add(&c->permille, b->wall_us * 1000 / a->wall_us);
}

static int take_second(struct hc_compare *c, struct table *table, const json_t *result)
{
    struct row row;
    int error = row_of(result, &row);
    if (error < 0)
        return error;
    struct row *before = find_row(table, &row);
    if (before != NULL && before->seen) /* twice in one file: the first counts */
        return 0;
    count_one(c, 1, &row);
    if (before == NULL)
        return note_only(c, 1, result);
    before->seen = true;
    c->common++;
    note_times(c, before, &row);
    return note_move(c, result, before, &row);
}

static int take_first(struct hc_compare *c, struct table *table, const json_t *result)
{
    struct row row;
    int error = row_of(result, &row);
    if (error < 0)
        return error;
    count_one(c, 0, &row);
    return add_row(table, &row);
}

static int take_missing(struct hc_compare *c, struct table *table, const json_t *result)
{
    struct row row;
    int error = row_of(result, &row);
    if (error < 0)
        return error;
    const struct row *there = find_row(table, &row);
    return there != NULL && !there->seen ? note_only(c, 0, result) : 0;
}

static int for_each(const char *path, struct hc_compare *c, struct table *table,
                    int (*take)(struct hc_compare *c, struct table *table, const json_t *result),
                    struct hc_refusal *refusal)
{
    struct file file = {.fd = -1};
    json_t *result = NULL;
    int error = open_file(&file, path, refusal);
    if (error != 0)
        return error;
    while ((error = next_result(&file, &result, refusal)) == 0 && result != NULL && error == 0) {
        error = take(c, table, result);
        json_decref(result);
        if (error != 0)
            break;
    }
    close_file(&file);
    return error;
}

int hc_compare_files(const char *first, const char *second, struct hc_compare *ret,
                     struct hc_refusal *refusal)
{
    struct table table = {0};
    *ret = (struct hc_compare){.path = {first, second},
                               .moves = json_object(),
                               .list = json_array(),
                               .only_ids = {json_array(), json_array()}};
    int error = for_each(first, ret, &table, take_first, refusal);
    if (error == 0) {
        if (table.count > 0)
            qsort(table.rows, table.count, sizeof *table.rows, by_key);
        error = for_each(second, ret, &table, take_second, refusal);
    }
    if (error == 0 && ret->common < table.count)
        error = for_each(first, ret, &table, take_missing, refusal);
    free(table.rows);
    return error;
}

void hc_compare_done(struct hc_compare *c)
{
    json_decref(c->moves);
    json_decref(c->list);
    json_decref(c->only_ids[0]);
    json_decref(c->only_ids[1]);
    c->moves = c->list = c->only_ids[0] = c->only_ids[1] = NULL;
}

/* ---- as a document, and for people ---- */

static json_t *side_of(const struct hc_compare *c, int side)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:O, s:I}", "file", c->path[side], "results",
                     (json_int_t)c->results[side], "ok", (json_int_t)c->ok[side], "right",
                     (json_int_t)c->right[side], "judged", (json_int_t)c->judged[side], "only_here",
                     (json_int_t)c->only[side], "only_here_first", c->only_ids[side], "wall_us_p50",
                     (json_int_t)hc_eval_times_at(&c->wall[side], 500));
}

json_t *hc_compare_report(const struct hc_compare *c)
{
    json_t *ratio = c->permille.total == 0
                        ? json_null()
                        : json_pack("{s:f, s:f, s:f}", "p5", (double)hc_eval_times_at(&c->permille, 50) / 1e3,
                                    "p50", (double)hc_eval_times_at(&c->permille, 500) / 1e3, "p95",
                                    (double)hc_eval_times_at(&c->permille, 950) / 1e3);
    return json_pack("{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:O, s:O, s:o}", "schema", "hotcell.compare/1",
                     "first", side_of(c, 0), "second", side_of(c, 1), "common", (json_int_t)c->common, "same",
                     (json_int_t)c->same, "better", (json_int_t)c->better, "worse", (json_int_t)c->worse,
                     "changed", (json_int_t)c->changed, "moves", c->moves, "items", c->list, "wall_ratio",
                     ratio);
}

static void print_side(const struct hc_compare *c, int side, FILE *out)
{
    (void)fprintf(out, "  %-28.60s %8" PRIu64 " results %8" PRIu64 " ok %8" PRIu64 " right of %" PRIu64 "\n",
                  c->path[side], c->results[side], c->ok[side], c->right[side], c->judged[side]);
}

static void print_list(const struct hc_compare *c, const char *direction, FILE *out)
{
    size_t i, shown = 0;
    json_t *row;
    json_array_foreach(c->list, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "direction")), direction) != 0 || ++shown > 20)
            continue;
        (void)fprintf(out, "    %-32s %s -> %s\n", json_string_value(json_object_get(row, "id")),
                      json_string_value(json_object_get(row, "from")),
                      json_string_value(json_object_get(row, "to")));
    }
    if (shown > 20)
        (void)fprintf(out, "    and more\n");
}

int hc_compare_print(const struct hc_compare *c, FILE *out)
{
    const char *const names[] = {"worse", "better", "changed"};
    const uint64_t counts[] = {c->worse, c->better, c->changed};
    (void)fputs("Results\n", out);
    print_side(c, 0, out);
    print_side(c, 1, out);
    (void)fprintf(out,
                  "\n%" PRIu64 " items are in both, %" PRIu64 " only in the first, %" PRIu64
                  " only in the second\n",
                  c->common, c->only[0], c->only[1]);
    (void)fprintf(out, "  %-10s %8" PRIu64 "\n", "same", c->same);
    for (size_t i = 0; i < 3; i++) {
        (void)fprintf(out, "  %-10s %8" PRIu64 "\n", names[i], counts[i]);
        print_list(c, names[i], out);
    }
    if (c->permille.total > 0)
        (void)fprintf(out,
                      "\nWall time, second over first (%" PRIu64
                      " items that ended alike): median %.2f, 5 %% %.2f, 95 %% %.2f\n",
                      c->permille.total, (double)hc_eval_times_at(&c->permille, 500) / 1e3,
                      (double)hc_eval_times_at(&c->permille, 50) / 1e3,
                      (double)hc_eval_times_at(&c->permille, 950) / 1e3);
    return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
