/* What became of many items, in memory that does not grow with them. */
#ifndef HC_EVAL_TALLY_H
#define HC_EVAL_TALLY_H

#include "cell/words.h"
#include "eval/taxonomy.h"

#include <jansson.h>

/* Times by size: 64 steps to each power of two, so that a percentile is told to 1.6 %. */
#define HC_TALLY_STEPS 64
#define HC_TALLY_SLOTS (64 * HC_TALLY_STEPS)

/* Stages of a run, by their names in `timing` of a result. */
#define HC_TALLY_STAGES 6
extern const char *const hc_tally_stages[HC_TALLY_STAGES];

struct hc_eval_times {
    uint64_t counts[HC_TALLY_SLOTS];
    uint64_t total;
};

struct hc_tally {
    uint64_t items;   /* of the file that were good and wanted */
    uint64_t results; /* all that are below */
    uint64_t resumed; /* of these, from an earlier run */
    uint64_t bad_lines, interrupted, missing_ids;
    uint64_t statuses[HC_STATUS_COUNT];
    uint64_t right, wrong, not_judged;
    uint64_t tried_network, tried_calls; /* items with such findings */
    uint64_t elapsed_us;
    struct hc_eval_times wall, total;
    struct hc_eval_times stages[HC_TALLY_STAGES]; /* by hc_tally_stages */
    uint64_t classes[HC_CLASS_COUNT];
    json_t *kinds[HC_CLASS_COUNT]; /* kinds of each class; name: count */
    json_t *error_types;           /* name: count */
    json_t *suites;                /* name: {attempted, ok, right, wrong, not_judged} */
    json_t *denied, *findings;     /* calls, rules of the policy; name: number of items */
    json_t *bad;                   /* the first of them: {line, message} */
};

int hc_tally_init(struct hc_tally *tally);
void hc_tally_done(struct hc_tally *tally);

/* Counts a line of results. HC_TALLY_NO_RESULT: it is none. */
enum { HC_TALLY_NO_RESULT = 1 };
int hc_tally_add(struct hc_tally *tally, const json_t *result);
int hc_tally_bad_line(struct hc_tally *tally, uint64_t line, const char *message);

/* Everything but faults and what was cancelled. */
uint64_t hc_tally_attempted(const struct hc_tally *tally);

void hc_eval_times_add(struct hc_eval_times *times, uint64_t us);
/* The time that `permille` of all do not exceed, as the middle of its step; 0 when there are none. */
uint64_t hc_eval_times_at(const struct hc_eval_times *times, unsigned permille);

#endif
