/* Whether a run that was done again came out the same: two records, compared field by field, and the contents
 * behind them byte by byte. Pure but for the reader of blobs. */
#ifndef HC_FLOW_REPLAY_H
#define HC_FLOW_REPLAY_H

#include "flow/job.h"
#include "flow/request_document.h"

enum hc_replay_verdict { HC_REPLAY_IDENTICAL, HC_REPLAY_DIFFERS, HC_REPLAY_ENVIRONMENT_CHANGED };
extern const char *const hc_replay_verdicts[3];

struct hc_replay_sides {
    const json_t *origin;      /* the record that is replayed */
    const json_t *origin_host; /* `host` of its request's document */
    const json_t *again;       /* the record of the run that was done now */
    const struct hc_job *job;  /* its job, for the contents of artifacts */
    hc_blob_reader *read;      /* of blobs beside the origin */
    void *context;
};

struct hc_replay {
    enum hc_replay_verdict verdict;
    json_t *environment; /* [{what, before, now}] */
    json_t *differences; /* [{what, before, now, offset, before_context, now_context}] */
};

/* 0 or -ENOMEM. */
int hc_replay_compare(const struct hc_replay_sides *sides, struct hc_replay *ret);
void hc_replay_done(struct hc_replay *replay);

/* The record of a replay (schema hotcell.replay/1), without chain; NULL without memory. */
json_t *hc_replay_record(const struct hc_replay *replay, const json_t *origin, const json_t *again);

/* The first byte in which two contents differ, SIZE_MAX: none. */
size_t hc_first_difference(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes);

#endif
