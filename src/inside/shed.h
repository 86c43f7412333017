/* What a payload's process sheds before foreign code may run in it, step by step. Used by init's child before
 * its exec, and by a payload that a warm host has made. No heap, no stdio. Each step is 0 or negative errno
 * and notes what it applied. */
#ifndef HC_INSIDE_SHED_H
#define HC_INSIDE_SHED_H

#include "cell/wire.h"
#include "cell/words.h"

struct hc_shed {
    int landlock; /* ruleset; -1: none */
    const struct hc_plan *plan;
    const int *fds;       /* of HC_OP_START */
    bool outlives_parent; /* the parent is a process in between: no signal at its death */
    struct hc_payload_report report;
};

/* Descriptors of a start, in the order of HC_OP_START. */
enum hc_start_fd { HC_START_PLAN, HC_START_STDIN, HC_START_STDOUT, HC_START_STDERR, HC_START_REPORT };

int hc_shed_stdio(struct hc_shed *context);
int hc_shed_session(struct hc_shed *context);
int hc_shed_rlimits(struct hc_shed *context);
int hc_shed_identity(struct hc_shed *context);
int hc_shed_capabilities(struct hc_shed *context);
int hc_shed_landlock(struct hc_shed *context);
int hc_shed_filter(struct hc_shed *context);

/* Also taken by init, for itself and what it forks. */
int hc_shed_keyring(void);
int hc_shed_oom_preference(int32_t *ret_score);
int hc_shed_bounding_set(uint32_t *ret_securebits);

/* A ruleset for a cell's own root. -1: this kernel has no Landlock, which lowers the grade (whether that is
 * enough is decided outside, from the facts); other negative errno: a fault. */
int hc_landlock_make(uint32_t *ret_abi);

#endif
