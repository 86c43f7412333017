/* The file of results: complete lines only, one writer at a time. */
#ifndef HC_EVAL_OUTPUT_H
#define HC_EVAL_OUTPUT_H

#include "cell/spec.h"
#include "eval/ids.h"
#include "eval/page.h"
#include "eval/tally.h"

/* Opens or makes the file, for appending. With `resume` what it holds is counted and its ids are noted, and a
 * cut last line is dropped (and `page`, if not NULL, waits for their items); without it there must be nothing
 * in it. HC_REFUSED says what is wrong. */
int hc_output_open(const char *path, bool resume, struct hc_ids *done, struct hc_tally *tally,
                   struct hc_page *page, int *ret_fd, struct hc_refusal *refusal);

/* Writes one line, all of it or an error. */
int hc_output_write(int fd, const json_t *result);

#endif
