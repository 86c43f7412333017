/* Warm hosts of one hall: interpreters that have imported their modules, and the ready cells they keep
 * filled.
 *
 * A ready cell is used once. It is made behind the caller's back, by host and keeper; a run that finds none
 * ready goes cold. */
#ifndef HC_FLOW_WARM_H
#define HC_FLOW_WARM_H

#include "flow/hall.h"
#include "flow/job.h"
#include "runtime/manifest.h"

struct hc_warm_host {
    const struct hc_runtime *runtime; /* NULL: the place is free */
    uint32_t place;
    unsigned target; /* ready cells */
    unsigned starts; /* how often it was started */
    uint64_t started_at_us;
    int messages; /* what it writes to its stderr */
};

struct hc_warm {
    const char *programs, *share;
    struct hc_warm_host hosts[HC_HOST_MAX];
    uint64_t hits, misses;
};

void hc_warm_init(struct hc_warm *warm, const char *programs, const char *share);
void hc_warm_done(struct hc_warm *warm);

/* Whether hotcell can keep this runtime ready here; the native part may not have been built. */
bool hc_warm_possible(const struct hc_warm *warm, const struct hc_runtime *runtime);
/* What the hall has to copy into the cells' template for it, appended to binds[count]; returns the new count.
 */
uint32_t hc_warm_binds(const struct hc_warm *warm, const struct hc_runtime *runtime, struct hc_bind *binds,
                       uint32_t count);

/* Starts the runtime's host unless it is there. 0, -EBUSY (no place is left), or a fault. */
int hc_warm_start(struct hc_warm *warm, struct hc_hall *hall, const struct hc_runtime *runtime,
                  unsigned target);

/* Why the job can't run in a warm cell of this runtime; NULL: it can. A plain clause. */
const char *hc_warm_unfit(const struct hc_warm *warm, const struct hc_job *job,
                          const struct hc_runtime *runtime);

/* Whether the program's text names one of the modules that the host has imported: a guess, and nothing but
 * speed hangs on it. */
bool hc_warm_gains(const struct hc_job *job, const struct hc_runtime *runtime);

/* The place of the runtime's host, -1 without one. */
int hc_warm_place(const struct hc_warm *warm, const struct hc_runtime *runtime);

/* Refills what was used, and starts again a host that was lost, less and less often. */
void hc_warm_refill(struct hc_warm *warm, struct hc_hall *hall);

/* Waits until the runtime's cells are ready, or timeout_ms. 0, -ETIMEDOUT, or why the host was lost. */
int hc_warm_await(struct hc_warm *warm, struct hc_hall *hall, const struct hc_runtime *runtime,
                  unsigned wanted, int timeout_ms, struct hc_setup_failure *ret_failure);

#endif
