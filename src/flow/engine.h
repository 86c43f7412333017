/* The library's heart: one engine runs jobs, one after the other, in fresh cells of one hall. */
#ifndef HC_FLOW_ENGINE_H
#define HC_FLOW_ENGINE_H

#include "flow/job.h"
#include "runtime/manifest.h"

struct hc_engine_options {
    const char *programs; /* NULL: beside the calling program */
    const char *share;    /* NULL: likewise */
    const char *runtimes; /* one more folder of manifests; NULL: none */
    uint64_t allow_layers;
    const char *store;         /* where records go: a path that output must not show; NULL: none */
    const char *only_language; /* the one runtime that is needed; NULL: all */
    unsigned cells_ahead;      /* empty cells that are kept ready */
    unsigned warm_cells;       /* ready cells per runtime that can be kept warm; 0: all runs are cold */
    bool warm_where_it_gains;  /* ready cells only for programs that name a module which lies ready */
    uint32_t fault_program, fault_nth; /* test builds */
};

/* What the caller sees while a job runs. */
struct hc_live {
    int out, err; /* -1: nothing live */
    bool visible_out, visible_err;
    int cancel_fd; /* -1: none */
};

struct hc_engine;

/* HC_BAD_INPUT: a manifest is wrong, `problem` says where. */
int hc_engine_open(const struct hc_engine_options *options, struct hc_engine **ret_engine,
                   struct hc_problem *problem);
/* No more jobs: the hall's end begins and goes on beside the caller's other work, until hc_engine_close waits
 * for it. */
void hc_engine_leave(struct hc_engine *engine);
void hc_engine_close(struct hc_engine *engine);

/* Builds the hall and waits until `wanted` warm cells of `language` (at most warm_cells) are ready. 0;
 * HC_REFUSED: they can't be, `refusal` says why; negative errno: a fault. */
int hc_engine_await_warm(struct hc_engine *engine, const char *language, unsigned wanted, int timeout_ms,
                         struct hc_refusal *refusal);

/* The engine's hall, built if need be; for measurements and self-tests, which run commands that are no
 * runtime's. As above. */
int hc_engine_hall(struct hc_engine *engine, struct hc_hall **ret_hall, struct hc_refusal *refusal);

/* Runs that found a ready cell, and that fit one and found none. */
void hc_engine_warm_counts(const struct hc_engine *engine, uint64_t *ret_hits, uint64_t *ret_misses);

const struct hc_runtimes *hc_engine_runtimes(const struct hc_engine *engine);

/* Takes the job's spec through gate, cell, run, capture, classify, accept. Always leaves a verdict, also for
 * refusals and faults; negative errno only without memory. `predicates` is borrowed; NULL: none.
 * `out_folder`: where artifacts go. */
int hc_engine_run(struct hc_engine *engine, struct hc_job *job, const struct hc_live *live,
                  const json_t *predicates, const char *out_folder);

/* Begins a job: id and time. */
void hc_job_begin(struct hc_job *job);
/* The verdict of a request that never got to the engine. */
void hc_job_refuse(struct hc_job *job);

/* Programs and share folder as found beside the running program; static storage. */
const char *hc_default_programs(void);
const char *hc_default_share(void);

#endif
