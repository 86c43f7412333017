#include "eval/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK (256u * 1024)

void hc_lines_init(struct hc_lines *lines, int fd)
{
    *lines = (struct hc_lines){.fd = fd};
}

void hc_lines_done(struct hc_lines *lines)
{
    free(lines->buffer);
    *lines = (struct hc_lines){.fd = -1};
}

/* Room for another chunk behind what is kept. After a long line the buffer shrinks again. */
static int make_room(struct hc_lines *lines)
{
    size_t kept = lines->end - lines->begin;
    if (lines->begin > 0)
        memmove(lines->buffer, lines->buffer + lines->begin, kept);
    lines->begin = 0;
    lines->end = kept;
    size_t wanted = kept + CHUNK <= 2 * CHUNK ? 2 * CHUNK : lines->room;
    while (wanted < kept + CHUNK)
        wanted *= 2;
    if (wanted == lines->room)
        return 0;
    char *moved = realloc(lines->buffer, wanted);
    if (moved == NULL)
        return -ENOMEM;
    lines->buffer = moved;
    lines->room = wanted;
    return 0;
}

static int fill(struct hc_lines *lines)
{
    int error = make_room(lines);
    if (error < 0)
        return error;
    ssize_t got;
    do
        got = read(lines->fd, lines->buffer + lines->end, lines->room - lines->end);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    lines->end += (size_t)got;
    lines->at_end = got == 0;
    return 0;
}

/* Where the newline is, reading on as needed; `length` is what lies before it, or before the end of the file.
 */
static int find_end(struct hc_lines *lines, size_t *ret_length, bool *ret_newline, bool *ret_skipped)
{
    size_t searched = 0;
    *ret_skipped = *ret_newline = false;
    for (;;) {
        size_t there = lines->end - lines->begin;
        const char *from = there > 0 ? lines->buffer + lines->begin : lines->buffer;
        const char *newline = there > searched ? memchr(from + searched, '\n', there - searched) : NULL;
        *ret_newline = newline != NULL;
        *ret_length = newline != NULL ? (size_t)(newline - from) : there;
        if (*ret_length > HC_EVAL_LINE_MAX) { /* not kept: only its end is of interest */
            *ret_skipped = true;
            if (newline == NULL) {
                lines->consumed_bytes += there;
                lines->begin = lines->end = 0;
            }
        }
        if (newline != NULL || lines->at_end)
            return 0;
        searched = lines->end - lines->begin;
        int error = fill(lines);
        if (error < 0)
            return error;
    }
}

int hc_lines_next(struct hc_lines *lines, const char **ret_line, size_t *ret_bytes, bool *ret_cut)
{
    size_t length = 0;
    bool newline = false, skipped = false;
    int error = find_end(lines, &length, &newline, &skipped);
    if (error < 0)
        return error;
    if (length == 0 && !newline && !skipped)
        return HC_LINE_END;
    *ret_line = lines->buffer + lines->begin; /* a buffer is there: something was read */
    *ret_bytes = length;
    *ret_cut = !newline;
    lines->number++;
    lines->begin += length + (newline ? 1 : 0);
    lines->consumed_bytes += length + (newline ? 1 : 0);
    return skipped ? HC_LINE_TOO_LONG : HC_LINE;
}
