#include "flow/classify.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

struct rule {
    bool (*holds)(const struct hc_outcome *);
    enum hc_status status;
    enum hc_cause cause;
};

static bool failed(const struct hc_outcome *o)
{
    return o->exited && o->wait_status != 0;
}

static bool cancelled(const struct hc_outcome *o)
{
    return o->hits.killed_for_cancel && !o->exited;
}

static bool boundary_lost(const struct hc_outcome *o)
{
    return o->hits.killed_for_fault;
}

static bool memory(const struct hc_outcome *o)
{
    return o->hits.memory;
}

static bool host_memory(const struct hc_outcome *o)
{
    return o->hits.host_memory;
}

static bool processes(const struct hc_outcome *o)
{
    return o->hits.processes && failed(o);
}

/* SIGXCPU comes from the back-up limit of a single process: the cell's clock was late. */
static bool cpu(const struct hc_outcome *o)
{
    return (o->hits.killed_for_cpu && !o->exited) ||
           (failed(o) && WIFSIGNALED(o->wait_status) && o->hits.cpu &&
            (WTERMSIG(o->wait_status) == SIGXCPU || WTERMSIG(o->wait_status) == SIGKILL));
}

static bool wall(const struct hc_outcome *o)
{
    return o->hits.killed_for_wall && !o->exited;
}

static bool output(const struct hc_outcome *o)
{
    return o->hits.output_total;
}

static bool inodes(const struct hc_outcome *o)
{
    return o->hits.inodes && !o->hits.disk && failed(o);
}

static bool disk(const struct hc_outcome *o)
{
    return o->hits.disk && failed(o);
}

static bool by_filter(const struct hc_outcome *o)
{
    return failed(o) && WIFSIGNALED(o->wait_status) && WTERMSIG(o->wait_status) == SIGSYS;
}

static bool by_signal(const struct hc_outcome *o)
{
    return failed(o) && WIFSIGNALED(o->wait_status);
}

static bool no_end_seen(const struct hc_outcome *o)
{
    return !o->exited;
}

/* The first that holds. The order is part of the contract: when several limits were hit, the earlier one is
 * the cause. */
static const struct rule rules[] = {
    {boundary_lost, HC_STATUS_FAULT, HC_CAUSE_HOST},
    {memory, HC_STATUS_MEMORY_LIMIT, HC_CAUSE_MEMORY},
    {host_memory, HC_STATUS_MEMORY_LIMIT, HC_CAUSE_HOST_MEMORY},
    {processes, HC_STATUS_PROCESS_LIMIT, HC_CAUSE_PROCESSES},
    {cpu, HC_STATUS_TIMEOUT, HC_CAUSE_CPU_TIME},
    {wall, HC_STATUS_TIMEOUT, HC_CAUSE_WALL_TIME},
    {output, HC_STATUS_OUTPUT_LIMIT, HC_CAUSE_OUTPUT_BYTES},
    {disk, HC_STATUS_DISK_LIMIT, HC_CAUSE_DISK_BYTES},
    {inodes, HC_STATUS_DISK_LIMIT, HC_CAUSE_INODES},
    {cancelled, HC_STATUS_CANCELLED, HC_CAUSE_CLIENT},
    {by_filter, HC_STATUS_POLICY_VIOLATION, HC_CAUSE_SYSCALL},
    {by_signal, HC_STATUS_RUNTIME_ERROR, HC_CAUSE_SIGNAL},
    {failed, HC_STATUS_RUNTIME_ERROR, HC_CAUSE_EXIT_CODE},
    {no_end_seen, HC_STATUS_FAULT, HC_CAUSE_HOST},
};

static bool killed_by_us(const struct hc_hits *hits)
{
    return hits->killed_for_wall || hits->killed_for_cpu || hits->killed_for_output ||
           hits->killed_for_memory || hits->killed_for_cancel;
}

static void describe_end(const struct hc_outcome *outcome, struct hc_verdict *verdict)
{
    if (outcome->exited && WIFEXITED(outcome->wait_status))
        verdict->exit_code = WEXITSTATUS(outcome->wait_status);
    else if (outcome->exited && WIFSIGNALED(outcome->wait_status))
        verdict->signal = WTERMSIG(outcome->wait_status);
    else if (killed_by_us(&outcome->hits) || outcome->oom_kills > 0)
        verdict->signal = SIGKILL;
}

void hc_classify(const struct hc_outcome *outcome, struct hc_verdict *ret_verdict)
{
    *ret_verdict = (struct hc_verdict){.state = HC_STATE_FINISHED, .status = HC_STATUS_OK, .exit_code = -1};
    if (outcome->started == HC_NEVER_STARTED) {
        ret_verdict->state = HC_STATE_REFUSED;
        ret_verdict->status = HC_STATUS_REFUSED;
        ret_verdict->cause = outcome->grade_too_low ? HC_CAUSE_GRADE : HC_CAUSE_HOST;
        return;
    }
    describe_end(outcome, ret_verdict);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!rules[i].holds(outcome))
            continue;
        ret_verdict->status = rules[i].status;
        ret_verdict->cause = rules[i].cause;
        break;
    }
    if (ret_verdict->status == HC_STATUS_FAULT)
        ret_verdict->state = HC_STATE_FAULT;
}
