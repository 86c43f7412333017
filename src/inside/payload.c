#include "inside/inside.h"
#include "inside/shed.h"

#include "kernel/syscalls.h"

#include <errno.h>
#include <time.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif

static const struct {
    enum hc_stage stage;
    int (*run)(struct hc_shed *);
} steps[] = {
    {HC_STAGE_STDIO, hc_shed_stdio},
    {HC_STAGE_SESSION, hc_shed_session},
    {HC_STAGE_RLIMITS, hc_shed_rlimits},
    {HC_STAGE_IDENTITY, hc_shed_identity},
    {HC_STAGE_CAPABILITIES, hc_shed_capabilities},
    {HC_STAGE_LANDLOCK, hc_shed_landlock},
    {HC_STAGE_SECCOMP, hc_shed_filter},
};

static _Noreturn void give_up(struct hc_shed *context, int ready, enum hc_stage stage, int error)
{
    context->report.stage = (uint32_t)stage;
    context->report.error = error;
    (void)!write(ready, &context->report, sizeof context->report);
    _exit(127);
}

_Noreturn void hc_payload(struct hc_inside *inside, const struct hc_plan_view *view,
                          const int fds[HC_START_FDS], int ready)
{
    struct hc_shed context = {
        .landlock = inside->landlock, .plan = view->plan, .fds = fds, .report = {.listener = -1}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int error = steps[i].run(&context);
        if (error < 0)
            give_up(&context, ready, steps[i].stage, error);
    }
    char byte = 0;
    if (write(ready, &context.report, sizeof context.report) != (ssize_t)sizeof context.report ||
        read(fds[HC_START_REPORT], &byte, 1) != 1)
        _exit(127);
    /* From here init and payload have tables of their own: init must be able to close its end of the pipe and
     * then see ours close by the exec. */
    if (hc_close_range(~0u - 1, ~0u - 1, CLOSE_RANGE_UNSHARE) != 0)
        give_up(&context, ready, HC_STAGE_EXEC, -errno);
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (write(ready, &now_ns, sizeof now_ns) != (ssize_t)sizeof now_ns)
        _exit(127);
    (void)execve(view->argv[0], view->argv, view->envp);
    give_up(&context, ready, HC_STAGE_EXEC, -errno);
}
