/* How far an evaluation is: one line on a terminal, rewritten; elsewhere a line every ten seconds where asked
 * for. */
#ifndef HC_EVAL_PROGRESS_H
#define HC_EVAL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct hc_progress {
    bool terminal, plain; /* neither: silent */
    uint64_t began_us, shown_us;
    uint64_t total_bytes; /* 0: not known */
    uint64_t total_items; /* 0: not known */
    bool line_open;
};

void hc_progress_init(struct hc_progress *progress, bool plain, uint64_t total_bytes, uint64_t total_items);
/* `skipped` items took no time: they count for the share that is done, not for the rate. */
void hc_progress_show(struct hc_progress *progress, uint64_t done, uint64_t skipped, uint64_t bytes);
/* Wipes the line, so that something else can be printed. */
void hc_progress_clear(struct hc_progress *progress);

/* The text alone, for tests. */
void hc_progress_text(const struct hc_progress *progress, uint64_t now_us, uint64_t done, uint64_t skipped,
                      uint64_t bytes, char out[160]);

#endif
