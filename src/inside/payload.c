#include "inside/inside.h"

#include "base/fault.h"
#include "filter_payload.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif

struct step_context {
    struct hc_inside *inside;
    const struct hc_plan_view *view;
    const int *fds;
    struct hc_payload_report report;
};

static int connect_stdio(struct step_context *context)
{
    for (int i = 0; i < 3; i++) {
        int fd = (int)HC_SYS(dup2(context->fds[HC_START_STDIN + i], i));
        if (fd != i)
            return fd < 0 ? fd : -EBADF;
    }
    return 0;
}

/* No terminal to paste commands into (TIOCSTI), no process group shared with anybody. */
static int new_session(struct step_context *context)
{
    sigset_t none;
    (void)sigemptyset(&none);
    int error = (int)HC_SYS(sigprocmask(SIG_SETMASK, &none, NULL));
    long session = error < 0 ? error : HC_SYS(setsid());
    if (session < 0)
        return (int)session;
    context->report.layers_applied |= 1ull << HC_LAYER_SESSION;
    (void)umask(022);
    return (int)HC_SYS(chdir("/work"));
}

static int set_rlimits(struct step_context *context)
{
    const struct hc_plan *plan = context->view->plan;
    for (uint32_t i = 0; i < plan->rlimit_count; i++) {
        const struct hc_plan_rlimit *wanted = &plan->rlimits[i];
        struct rlimit limit = {wanted->soft, wanted->hard}, got = {0};
        int error = (int)HC_SYS(setrlimit(wanted->resource, &limit));
        if (error == 0)
            error = (int)HC_SYS(getrlimit(wanted->resource, &got));
        if (error == 0 && (got.rlim_cur != wanted->soft || got.rlim_max != wanted->hard))
            error = -ERANGE;
        if (error < 0)
            return error;
        if (wanted->resource == RLIMIT_CORE)
            context->report.layers_applied |= 1ull << HC_LAYER_CORE_DUMPS_OFF;
    }
    context->report.layers_applied |= 1ull << HC_LAYER_RLIMITS;
    return 0;
}

static int take_identity(struct step_context *context)
{
    uid_t real = 0, effective = 0, saved = 0;
    int error = (int)HC_SYS(setresgid(HC_INSIDE_PAYLOAD_ID, HC_INSIDE_PAYLOAD_ID, HC_INSIDE_PAYLOAD_ID));
    if (error == 0)
        error = (int)HC_SYS(setresuid(HC_INSIDE_PAYLOAD_ID, HC_INSIDE_PAYLOAD_ID, HC_INSIDE_PAYLOAD_ID));
    if (error == 0)
        error = (int)HC_SYS(getresuid(&real, &effective, &saved));
    if (error < 0)
        return error;
    if (real != HC_INSIDE_PAYLOAD_ID || effective != HC_INSIDE_PAYLOAD_ID || saved != HC_INSIDE_PAYLOAD_ID)
        return -EPERM;
    context->report.layers_applied |= 1ull << HC_LAYER_CELL_IDS;
    return 0;
}

static int drop_capabilities(struct step_context *context)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0}, got[2] = {0};
    int error = (int)HC_SYS(syscall(SYS_capset, &header, none));
    header.version = _LINUX_CAPABILITY_VERSION_3;
    if (error == 0)
        error = (int)HC_SYS(syscall(SYS_capget, &header, got));
    if (error == 0 && (got[0].permitted | got[1].permitted | got[0].effective | got[1].effective |
                       got[0].inheritable | got[1].inheritable) != 0)
        error = -EPERM;
    if (error < 0)
        return error;
    context->report.layers_applied |= 1ull << HC_LAYER_CAPABILITIES;
    if ((error = (int)HC_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))) < 0)
        return error;
    context->report.layers_applied |= 1ull << HC_LAYER_NO_NEW_PRIVS;
    /* Both were changed by the new id: a death signal to receive, and our own /proc entries to own. */
    if ((error = (int)HC_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))) < 0)
        return error;
    return (int)HC_SYS(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

static int enter_landlock(struct step_context *context)
{
    if (context->inside->landlock < 0)
        return 0;
    int error = (int)HC_SYS(syscall(SYS_landlock_restrict_self, context->inside->landlock, 0));
    if (error == 0)
        context->report.layers_applied |= 1ull << HC_LAYER_LANDLOCK;
    return error;
}

/* Last of all: init shares this descriptor table, finds the listener in it and hands it to the keeper. */
static int enter_filter(struct step_context *context)
{
    struct sock_fprog program = {.len = HC_FILTER_PAYLOAD_LEN,
                                 .filter = (struct sock_filter *)hc_filter_payload};
    int error = (int)HC_SYS(hc_close_range(3, ~0u, CLOSE_RANGE_CLOEXEC));
    if (error < 0)
        return error;
    long listener = HC_SYS(hc_seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
    if (listener < 0)
        return (int)listener;
    context->report.listener = (int32_t)listener;
    context->report.layers_applied |= 1ull << HC_LAYER_SECCOMP;
    return 0;
}

static const struct {
    enum hc_stage stage;
    int (*run)(struct step_context *);
} steps[] = {
    {HC_STAGE_STDIO, connect_stdio},
    {HC_STAGE_SESSION, new_session},
    {HC_STAGE_RLIMITS, set_rlimits},
    {HC_STAGE_IDENTITY, take_identity},
    {HC_STAGE_CAPABILITIES, drop_capabilities},
    {HC_STAGE_LANDLOCK, enter_landlock},
    {HC_STAGE_SECCOMP, enter_filter},
};

static _Noreturn void give_up(struct step_context *context, int ready, enum hc_stage stage, int error)
{
    context->report.stage = (uint32_t)stage;
    context->report.error = error;
    (void)!write(ready, &context->report, sizeof context->report);
    _exit(127);
}

_Noreturn void hc_payload(struct hc_inside *inside, const struct hc_plan_view *view,
                          const int fds[HC_START_FDS], int ready)
{
    struct step_context context = {.inside = inside, .view = view, .fds = fds, .report = {.listener = -1}};
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
