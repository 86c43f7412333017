/* Two files of results beside each other: what became better, worse, otherwise, quicker. */
#ifndef HC_EVAL_COMPARE_H
#define HC_EVAL_COMPARE_H

#include "cell/spec.h"
#include "eval/tally.h"

#include <jansson.h>
#include <stdio.h>

struct hc_compare {
    const char *path[2];
    uint64_t results[2], ok[2], right[2], judged[2];
    uint64_t common, same, better, worse, changed;
    uint64_t only[2];              /* in one file alone */
    json_t *moves;                 /* "ok, right -> timeout": count */
    json_t *list;                  /* the first that moved: {id, suite, from, to, direction} */
    json_t *only_ids[2];           /* the first of them */
    struct hc_eval_times wall[2];  /* of common items that both ran */
    struct hc_eval_times permille; /* the second wall time in thousandths of the first */
};

/* HC_REFUSED: a file can't be read or holds something else; `refusal` says where. Negative errno. */
int hc_compare_files(const char *first, const char *second, struct hc_compare *ret,
                     struct hc_refusal *refusal);
void hc_compare_done(struct hc_compare *compare);

/* New reference, NULL without memory; text for people; a page. */
json_t *hc_compare_report(const struct hc_compare *compare);
int hc_compare_print(const struct hc_compare *compare, FILE *out);
int hc_compare_page(const struct hc_compare *compare, FILE *out);

/* What is counted as a move, from worse to better; both are lines of results. */
enum hc_direction { HC_MOVE_NONE, HC_MOVE_BETTER, HC_MOVE_WORSE, HC_MOVE_OTHER };
enum hc_direction hc_compare_direction(enum hc_status a, int accepted_a, enum hc_status b, int accepted_b);

#endif
