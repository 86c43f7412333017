/* One item of a data set: a line of JSON. */
#ifndef HC_EVAL_ITEM_H
#define HC_EVAL_ITEM_H

#include "cell/spec.h"

#include <jansson.h>

struct hc_eval_item {
    json_t *root;
    json_t *predicates;                /* NULL: not judged */
    const char *id, *language, *suite; /* in root; suite may be NULL */
};

/* HC_REFUSED: the line is no item, `refusal` says why. -ENOMEM. */
int hc_eval_item_read(const char *line, size_t bytes, struct hc_eval_item *ret_item,
                      struct hc_refusal *refusal);
void hc_eval_item_done(struct hc_eval_item *item);

/* Fills an empty spec: the defaults (limits and policy are taken), then what the item says. Paths of files
 * are looked up below `folder`. HC_REFUSED: the run is refused. */
int hc_eval_item_spec(const struct hc_eval_item *item, const struct hc_spec *defaults, int folder,
                      struct hc_spec *ret_spec, struct hc_refusal *refusal);

#endif
