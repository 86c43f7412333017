/* How a warm host puts a child of its own into a cell: the part that no language knows of.
 *
 * The host is one thread. A vfork child, which shares its memory and so costs no copy of its page tables,
 * joins the cell's groups and namespaces; what it forks there is the payload, and the one copy that is made
 * is charged to the cell. No heap, no stdio; raw system calls, since the vfork child lives on the host's
 * memory. */
#ifndef HC_WARM_JOIN_H
#define HC_WARM_JOIN_H

#include "inside/inside.h"
#include "inside/shed.h"

#include <sys/types.h>

struct hc_warm_job {
    struct hc_warm_order order;
    int init;    /* pidfd of the cell's process 1 */
    int control; /* the payload's end towards init */
    int leaves[HC_CONTROLLER_COUNT];
    pid_t pid;                /* of the payload, in the hall's pid namespace */
    int error;                /* negative errno */
    enum hc_stage stage;      /* of the step that failed */
    struct hc_plan_view view; /* after hc_warm_begin */
    int start_fds[HC_START_FDS];
    uint64_t layers_applied; /* with the start */
};

/* Waits for the next order. 0: a job; 1: the keeper wants no more; negative errno. */
int hc_warm_next(struct hc_warm_job *ret_job);
/* Tells the keeper. */
int hc_warm_tell(const struct hc_warm_report *report);

/* Returns twice: with job->pid or job->error set in the host, and 0 in the payload, true for it. */
bool hc_warm_fork(struct hc_warm_job *job);

/* In the payload: sheds everything and tells the keeper that it waits. Does not return on failure. */
void hc_warm_settle(struct hc_warm_job *job);
/* In the payload: waits for the run, takes over its streams and limits; the plan is in job->view. */
void hc_warm_begin(struct hc_warm_job *job);
/* In the payload: says it is ready, waits until the library has judged it, notes the time. Nothing of ours is
 * open afterwards. */
void hc_warm_go(struct hc_warm_job *job);

#endif
