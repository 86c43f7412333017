/* The report as one page that needs nothing else: plots, tables, and the items that failed. */
#ifndef HC_EVAL_PAGE_H
#define HC_EVAL_PAGE_H

#include "cell/spec.h"
#include "eval/tally.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Items that failed, written out one after the other as they come. Of very many only the first ones. */
struct hc_page {
    char *path, *temporary; /* the page appears whole, or not at all */
    FILE *cards;            /* a file without a name */
    uint64_t card_count, omitted;
    json_t *waiting; /* results of an earlier run whose items come later, by id */
};

/* Checks that the page can be written and prepares it. HC_REFUSED says what is wrong. */
int hc_page_open(struct hc_page *page, const char *path, struct hc_refusal *refusal);

/* A result, with the line of its item (NULL: not known). What did not fail is left out. */
int hc_page_add(struct hc_page *page, const json_t *result, const char *line, size_t bytes);
/* A result of an earlier run: its item may come by hc_page_item. */
int hc_page_wait(struct hc_page *page, const json_t *result);
int hc_page_item(struct hc_page *page, const char *id, const char *line, size_t bytes);

/* Writes all of it. Errors: -ENOMEM, -EIO, or what the file system reports. */
int hc_page_write(struct hc_page *page, const char *title, const struct hc_tally *tally);
void hc_page_done(struct hc_page *page);

#endif
