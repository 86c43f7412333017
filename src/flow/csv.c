#include "flow/csv.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct walk {
    const char *at, *end;
    char delimiter;
    uint64_t line;
};

/* The rest of a quoted field into `buffer`, which has room for all that is left. */
static int quoted(struct walk *walk, char *buffer, size_t *ret_bytes)
{
    size_t n = 0;
    for (walk->at++; walk->at < walk->end; walk->at++) {
        if (*walk->at == '"' && walk->at + 1 < walk->end && walk->at[1] == '"') {
            walk->at++;
        } else if (*walk->at == '"') {
            walk->at++;
            *ret_bytes = n;
            bool ends = walk->at == walk->end || *walk->at == walk->delimiter || *walk->at == '\n' ||
                        *walk->at == '\r';
            return ends ? 0 : HC_CSV_BROKEN;
        }
        walk->line += *walk->at == '\n';
        buffer[n++] = *walk->at;
    }
    return HC_CSV_BROKEN;
}

static void plain(struct walk *walk, size_t *ret_bytes)
{
    const char *start = walk->at;
    while (walk->at < walk->end && *walk->at != walk->delimiter && *walk->at != '\n' && *walk->at != '\r')
        walk->at++;
    *ret_bytes = (size_t)(walk->at - start);
}

/* Goes over the end of a line, and over empty lines. */
static void line_ends(struct walk *walk)
{
    for (; walk->at < walk->end && (*walk->at == '\n' || *walk->at == '\r'); walk->at++)
        walk->line += *walk->at == '\n';
}

static int next_field(struct walk *walk, size_t n, char **buffer, struct hc_csv_field *field)
{
    field->text = walk->at;
    if (walk->at == walk->end || *walk->at != '"') {
        plain(walk, &field->bytes);
        return 0;
    }
    if (*buffer == NULL && (*buffer = malloc(n)) == NULL)
        return -ENOMEM;
    field->text = *buffer;
    return quoted(walk, *buffer, &field->bytes);
}

int hc_csv_walk(const char *data, size_t n, char delimiter,
                int (*take)(void *context, const struct hc_csv_field *field), void *context,
                uint64_t *ret_line)
{
    struct walk walk = {.at = data, .end = data + n, .delimiter = delimiter, .line = 1};
    struct hc_csv_field field = {0};
    hc_autofree char *buffer = NULL;
    if (n >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
        walk.at += 3;
    line_ends(&walk);
    for (; walk.at < walk.end; field.row++, line_ends(&walk)) {
        bool more = true;
        for (field.column = 0; more; field.column++) {
            int error = next_field(&walk, n, &buffer, &field);
            *ret_line = walk.line;
            if (error != 0)
                return error;
            more = walk.at < walk.end && *walk.at == delimiter;
            walk.at += more ? 1 : 0;
            field.columns = more ? 0 : field.column + 1;
            if ((error = take(context, &field)) != 0)
                return error;
        }
    }
    return 0;
}
