/* Lines of a file of any size: one buffer, which grows up to the longest line that is taken. */
#ifndef HC_EVAL_LINES_H
#define HC_EVAL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HC_EVAL_LINE_MAX (16u * 1024 * 1024)

struct hc_lines {
    int fd; /* borrowed */
    char *buffer;
    size_t room, begin, end;
    bool at_end;
    uint64_t number;         /* of the line read last, from 1 */
    uint64_t consumed_bytes; /* up to the end of that line */
};

enum hc_line_outcome {
    HC_LINE = 0,
    HC_LINE_END = 1,      /* nothing follows */
    HC_LINE_TOO_LONG = 2, /* skipped up to its end */
};

void hc_lines_init(struct hc_lines *lines, int fd);
void hc_lines_done(struct hc_lines *lines);

/* The next line without its newline, valid until the next call; `ret_cut` tells that no newline followed.
 * Negative errno: -ENOMEM, or what read(2) reports. */
int hc_lines_next(struct hc_lines *lines, const char **ret_line, size_t *ret_bytes, bool *ret_cut);

#endif
