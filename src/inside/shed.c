#include "inside/shed.h"

#include "base/fault.h"
#include "filter_payload.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

int hc_shed_stdio(struct hc_shed *context)
{
    for (int i = 0; i < 3; i++) {
        int fd = (int)HC_SYS(dup2(context->fds[HC_START_STDIN + i], i));
        if (fd != i)
            return fd < 0 ? fd : -EBADF;
    }
    return 0;
}

/* No terminal to paste commands into (TIOCSTI), no process group shared with anybody. */
int hc_shed_session(struct hc_shed *context)
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

int hc_shed_rlimits(struct hc_shed *context)
{
    const struct hc_plan *plan = context->plan;
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

int hc_shed_identity(struct hc_shed *context)
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

int hc_shed_capabilities(struct hc_shed *context)
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
    if (!context->outlives_parent && (error = (int)HC_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))) < 0)
        return error;
    return (int)HC_SYS(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

int hc_shed_landlock(struct hc_shed *context)
{
    if (context->landlock < 0)
        return 0;
    int error = (int)HC_SYS(syscall(SYS_landlock_restrict_self, context->landlock, 0));
    if (error == 0)
        context->report.layers_applied |= 1ull << HC_LAYER_LANDLOCK;
    return error;
}

/* Last of all: init shares this descriptor table, finds the listener in it and hands it to the keeper. */
int hc_shed_filter(struct hc_shed *context)
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

int hc_shed_keyring(void)
{
    long serial = HC_SYS(hc_keyctl_join_new_session());
    return serial < 0 ? (int)serial : 0;
}

int hc_shed_oom_preference(int32_t *ret_score)
{
    uint64_t value = 0;
    int error = hc_file_write(AT_FDCWD, "/proc/self/oom_score_adj", "500");
    if (error == 0)
        error = hc_file_read_number(AT_FDCWD, "/proc/self/oom_score_adj", &value);
    *ret_score = (int32_t)value;
    return error == 0 && value != 500 ? -ERANGE : error;
}

static const unsigned locked_bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

int hc_shed_bounding_set(uint32_t *ret_securebits)
{
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
        int error = (int)HC_SYS(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0));
        if (error < 0)
            return error;
    }
    int error = (int)HC_SYS(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
    if (error == 0)
        error = (int)HC_SYS(prctl(PR_SET_SECUREBITS, locked_bits, 0, 0, 0));
    int bits = error < 0 ? error : (int)HC_SYS(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
    if (bits < 0)
        return bits;
    *ret_securebits = (uint32_t)bits;
    return (unsigned)bits == locked_bits ? 0 : -EPERM;
}
