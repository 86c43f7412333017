/* Pieces of a page: text that can't become markup, and drawings. */
#ifndef HC_EVAL_HTML_H
#define HC_EVAL_HTML_H

#include "eval/tally.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Untrusted text as text, in elements and in quoted attributes: marks of HTML become references, controls and
 * what turns the direction of text are shown. */
void hc_html_text(FILE *out, const char *text, size_t bytes);
void hc_html_string(FILE *out, const char *text);

/* Head of a page up to <body>, with a policy that lets the page's own style and script run and nothing else;
 * the end with the script when `script`. Errors: -ENOMEM, -EIO. */
int hc_html_begin(FILE *out, const char *title);
int hc_html_end(FILE *out, bool script);

/* One bar of a drawing; `tone` is a class of the style: "", good, bad, warn. */
struct hc_bar {
    const char *name;
    uint64_t count;
    const char *tone;
};
/* Horizontal bars with names and counts; `label` says what it is to somebody who does not see it. */
void hc_html_bars(FILE *out, const char *label, const struct hc_bar *bars, size_t count);

/* Times as a histogram over a logarithmic axis. Nothing when there are none. */
void hc_html_times(FILE *out, const char *label, const struct hc_eval_times *times);

/* The members of {name: count}, the largest first; at most `room`. Returns how many. The names are borrowed.
 */
size_t hc_html_largest(const json_t *counts, struct hc_bar *bars, size_t room, const char *tone);

/* "12.3 ms", "1.20 s". */
const char *hc_html_duration(uint64_t us, char out[32]);

#endif
