/* The two report cards of an evaluation. */
#ifndef HC_EVAL_REPORT_H
#define HC_EVAL_REPORT_H

#include "eval/tally.h"

#include <stdio.h>

/* New reference, NULL without memory. */
json_t *hc_eval_report(const struct hc_tally *tally);
int hc_eval_report_print(const struct hc_tally *tally, FILE *out);

#endif
