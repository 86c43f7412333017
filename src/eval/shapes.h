/* Data sets as they come: items in the form of GSM8K, MATH, HumanEval and MBPP made into items of ours. */
#ifndef HC_EVAL_SHAPES_H
#define HC_EVAL_SHAPES_H

#include "cell/spec.h"

#include <jansson.h>

/* `*ret_item`: a new reference, or NULL when the object has none of these shapes. HC_REFUSED: it has one, and
 * something in it is wrong. -ENOMEM. */
int hc_eval_shape(const json_t *root, json_t **ret_item, struct hc_refusal *refusal);

/* The value of a number as mathematics writes it: 1,234.5, -3, $42, 50\%, \frac{3}{4}, 3/4; false when it is
 * none. */
bool hc_eval_math_number(const char *text, double *ret_number);

/* The content of the last \boxed{...} of a text, in new memory; NULL when there is none. */
char *hc_eval_boxed(const char *text);

/* The program in what a model said: the first fenced block when there is one, else all of it. New memory. */
char *hc_eval_unfence(const char *text);

#endif
