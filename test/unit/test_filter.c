/* The filters as compiled: every number, and the arguments an attacker would vary, through an evaluator of
 * the BPF instructions that they use; and once through the kernel itself. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "filter_init.h"
#include "filter_payload.h"
#include "notify_payload.h"
#include "test/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "no filter for this architecture"
#endif

enum {
    KILL = -1,
    ALLOW = 0,
    NOTIFY = 100000,
    BAD_PROGRAM = -1000
}; /* and an errno in between; 0 success: FAKED */
enum { FAKED = 200000 };

struct program {
    const struct sock_filter *code;
    unsigned length;
};

static const struct program payload = {hc_filter_payload, HC_FILTER_PAYLOAD_LEN};
static const struct program init = {hc_filter_init, HC_FILTER_INIT_LEN};

static bool jump_taken(const struct sock_filter *at, uint32_t word, bool *ret_taken)
{
    switch (at->code) {
    case BPF_JMP | BPF_JEQ | BPF_K:
        *ret_taken = word == at->k;
        return true;
    case BPF_JMP | BPF_JGT | BPF_K:
        *ret_taken = word > at->k;
        return true;
    case BPF_JMP | BPF_JGE | BPF_K:
        *ret_taken = word >= at->k;
        return true;
    default:
        return false;
    }
}

static uint32_t load_word(const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word;

    HC_ASSERT(offset % 4 == 0 && offset + 4 <= sizeof(*data));
    memcpy(&word, (const char *)data + offset, sizeof(word));
    return word;
}

/* What the program returns; *ret_read_args tells whether it looked at more than number and architecture. */
static uint32_t evaluate(const struct program *program, const struct seccomp_data *data, bool *ret_read_args)
{
    uint32_t word = 0;
    bool taken = false;

    *ret_read_args = false;
    for (unsigned pc = 0; pc < program->length; pc++) {
        const struct sock_filter *at = &program->code[pc];
        if (at->code == (BPF_RET | BPF_K))
            return at->k;
        if (at->code == (BPF_LD | BPF_W | BPF_ABS)) {
            word = load_word(data, at->k);
            *ret_read_args |= at->k >= offsetof(struct seccomp_data, args);
        } else if (at->code == (BPF_ALU | BPF_AND | BPF_K)) {
            word &= at->k;
        } else if (at->code == (BPF_JMP | BPF_JA)) {
            pc += at->k;
        } else if (jump_taken(at, word, &taken)) {
            pc += taken ? at->jt : at->jf;
        } else {
            hc_test_fail(__FILE__, __LINE__, "instruction %u has the unknown code 0x%x", pc, at->code);
        }
    }
    hc_test_fail(__FILE__, __LINE__, "the program was left without a return");
}

static int meaning(uint32_t value)
{
    switch (value & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_KILL_PROCESS:
        return KILL;
    case SECCOMP_RET_ALLOW:
        return ALLOW;
    case SECCOMP_RET_USER_NOTIF:
        return NOTIFY;
    case SECCOMP_RET_ERRNO:
        return value & SECCOMP_RET_DATA ? (int)(value & SECCOMP_RET_DATA) : FAKED;
    default:
        return BAD_PROGRAM;
    }
}

static int decide_data(const struct program *program, const struct seccomp_data *data)
{
    bool read_args;

    return meaning(evaluate(program, data, &read_args));
}

static int decide_number(const struct program *program, uint32_t arch, uint32_t number)
{
    return decide_data(program, &(struct seccomp_data){.nr = (int)number, .arch = arch});
}

#define ARGS(...) ((const uint64_t[6]){__VA_ARGS__})

/* The payload filter's decision, with arguments. */
static int decide(long number, const uint64_t args[6])
{
    struct seccomp_data data = {.nr = (int)number, .arch = OWN_ARCH};

    for (unsigned i = 0; i < 6; i++)
        data.args[i] = args[i];
    return decide_data(&payload, &data);
}

/* A notified call must have a row, and this is what the supervisor then answers. */
static int answer(long number, const uint64_t args[6])
{
    HC_ASSERT_EQ_INT(decide(number, args), NOTIFY);
    const struct hc_notify_rule *rule =
        hc_notify_find(hc_notify_payload, HC_NOTIFY_PAYLOAD_COUNT, (int)number, args);
    HC_ASSERT(rule);
    return rule->answer_errno;
}

static bool reads_args(long number)
{
    struct seccomp_data data = {.nr = (int)number, .arch = OWN_ARCH};
    bool read_args;

    (void)evaluate(&payload, &data, &read_args);
    return read_args;
}

/* Bits that the kernel cuts off an int argument. */
#define HIGH     (UINT64_C(1) << 32)
#define HIGH_ALL (UINT64_C(0xffffffff) << 32)

HC_TEST(program_is_well_formed)
{
    HC_ASSERT(HC_FILTER_PAYLOAD_LEN < 1500);
    HC_ASSERT_EQ_INT(sizeof(hc_filter_payload) / sizeof(hc_filter_payload[0]), HC_FILTER_PAYLOAD_LEN);
    /* A call more or less is a decision: change the number together with the policy. */
    HC_ASSERT_EQ_INT(HC_FILTER_PAYLOAD_ALLOWED, OWN_ARCH == AUDIT_ARCH_X86_64 ? 282 : 246);
    HC_ASSERT_EQ_INT(strlen(hc_filter_payload_sha256), 64);
    HC_ASSERT_EQ_INT(strlen(hc_filter_init_sha256), 64);
    for (unsigned pc = 0; pc < payload.length; pc++) {
        const struct sock_filter *at = &payload.code[pc];
        bool taken;
        if (jump_taken(at, 0, &taken))
            HC_ASSERT(pc + 1 + at->jt < payload.length && pc + 1 + at->jf < payload.length);
    }
}

HC_TEST(other_architectures_are_killed_whatever_the_number)
{
    const uint32_t others[] = {
        AUDIT_ARCH_I386,    AUDIT_ARCH_ARM,
        AUDIT_ARCH_RISCV64, 0,
        UINT32_MAX,         OWN_ARCH == AUDIT_ARCH_X86_64 ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        for (uint32_t number = 0; number < 1024; number++) {
            HC_ASSERT_EQ_INT(decide_number(&payload, others[i], number), KILL);
            HC_ASSERT_EQ_INT(decide_number(&init, others[i], number), KILL);
        }
}

HC_TEST(x32_numbers_are_killed)
{
    int expected = OWN_ARCH == AUDIT_ARCH_X86_64 ? KILL : ENOSYS;

    for (uint32_t number = 0; number < 1024; number++) {
        HC_ASSERT_EQ_INT(decide_number(&payload, OWN_ARCH, 0x40000000u + number), expected);
        HC_ASSERT_EQ_INT(decide_number(&init, OWN_ARCH, 0x40000000u + number), KILL);
    }
    HC_ASSERT_EQ_INT(decide_number(&payload, OWN_ARCH, 0x3fffffffu), ENOSYS);
    HC_ASSERT_EQ_INT(decide_number(&payload, OWN_ARCH, 0xfffffffeu), expected);
    HC_ASSERT_EQ_INT(decide_number(&payload, OWN_ARCH, UINT32_MAX), ENOSYS); /* no call, not an x32 one */
}

HC_TEST(unknown_numbers_do_not_exist)
{
    for (uint32_t number = 468; number < 1024; number++)
        HC_ASSERT_EQ_INT(decide_number(&payload, OWN_ARCH, number), ENOSYS);
    for (uint32_t bit = 10; bit < 30; bit++)
        HC_ASSERT_EQ_INT(decide_number(&payload, OWN_ARCH, 1u << bit), ENOSYS);
}

/* No call may pass, or fail, in another way than the four that the policy knows; no notification without a
 * row. */
HC_TEST(every_number_with_many_arguments_has_a_meaning_and_a_row)
{
    uint64_t state = 1;

    for (uint32_t number = 0; number < 1024; number++)
        for (unsigned round = 0; round < 400; round++) {
            uint64_t args[6];
            for (unsigned i = 0; i < 6; i++) {
                uint64_t random = hc_test_random(&state);
                args[i] = round % 4 == 0 ? random & 0x3f : round % 4 == 1 ? random & 0xffff : random;
            }
            int decision = decide(number, args);
            HC_ASSERT(decision != BAD_PROGRAM && decision != KILL);
            const struct hc_notify_rule *rule =
                hc_notify_find(hc_notify_payload, HC_NOTIFY_PAYLOAD_COUNT, (int)number, args);
            if (decision == NOTIFY)
                HC_ASSERT(rule);
        }
}

HC_TEST(rows_are_sorted_and_end_without_tests)
{
    for (size_t i = 0; i < HC_NOTIFY_PAYLOAD_COUNT; i++) {
        const struct hc_notify_rule *row = &hc_notify_payload[i];
        bool last = i + 1 == HC_NOTIFY_PAYLOAD_COUNT || row[1].nr != row->nr;
        HC_ASSERT(i + 1 == HC_NOTIFY_PAYLOAD_COUNT || row->nr <= row[1].nr);
        HC_ASSERT(row->tests_count <= 2 && row->reads <= HC_NOTIFY_READS_PATH_1);
        HC_ASSERT(row->name && row->answer_errno >= 0);
        HC_ASSERT(!last || row->tests_count == 0);
    }
}

/* The kernel's bitmap holds calls whose decision needs no argument: the busiest must be among them. */
HC_TEST(busy_calls_read_no_argument)
{
    const long busy[] = {SYS_read,         SYS_write,  SYS_pread64,       SYS_close,
                         SYS_openat,       SYS_fstat,  SYS_mmap,          SYS_munmap,
                         SYS_mprotect,     SYS_brk,    SYS_futex,         SYS_lseek,
                         SYS_getpid,       SYS_execve, SYS_clock_gettime, SYS_clock_nanosleep,
                         SYS_statx,        SYS_ppoll,  SYS_wait4,         SYS_newfstatat,
                         SYS_rt_sigaction, SYS_recvmsg};

    for (size_t i = 0; i < sizeof(busy) / sizeof(busy[0]); i++) {
        HC_ASSERT_EQ_INT(decide(busy[i], ARGS(0)), ALLOW);
        HC_ASSERT(!reads_args(busy[i]));
    }
    HC_ASSERT(reads_args(SYS_ioctl));
}

HC_TEST(the_way_out_is_always_open)
{
    const long calls[] = {SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_restart_syscall,
                          SYS_set_robust_list};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        HC_ASSERT_EQ_INT(decide(calls[i], ARGS(~UINT64_C(0), ~UINT64_C(0))), ALLOW);
}

HC_TEST(missing_features_look_missing)
{
    const long calls[] = {
        SYS_clone3,
        SYS_io_uring_setup,
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_memfd_secret,
        SYS_io_setup,
        SYS_io_destroy,
        SYS_io_submit,
        SYS_io_cancel,
        SYS_io_getevents,
        SYS_io_pgetevents,
        SYS_nfsservctl,
        448 /* process_mrelease */,
        451 /* cachestat */,
        457 /* statmount */,
        458 /* listmount */,
        459 /* lsm_get_self_attr */,
        460,
        461,
#if defined(__x86_64__)
        SYS__sysctl,
        SYS_uselib,
        SYS_ustat,
        SYS_sysfs,
        SYS_create_module,
        SYS_get_kernel_syms,
        SYS_query_module,
        SYS_getpmsg,
        SYS_putpmsg,
        SYS_afs_syscall,
        SYS_tuxcall,
        SYS_security,
        SYS_vserver,
        SYS_epoll_ctl_old,
        SYS_epoll_wait_old,
        SYS_set_thread_area,
        SYS_get_thread_area,
#endif
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        HC_ASSERT_EQ_INT(decide(calls[i], ARGS(0)), ENOSYS);
}

HC_TEST(attempts_are_recorded_and_refused)
{
    const struct {
        long number;
        int answer;
    } calls[] = {
        {SYS_unshare, EPERM},
        {SYS_setns, EPERM},
        {SYS_mount, EPERM},
        {SYS_umount2, EPERM},
        {SYS_pivot_root, EPERM},
        {SYS_chroot, EPERM},
        {SYS_fsopen, EPERM},
        {SYS_fsconfig, EPERM},
        {SYS_fsmount, EPERM},
        {SYS_fspick, EPERM},
        {SYS_move_mount, EPERM},
        {SYS_open_tree, EPERM},
        {SYS_mount_setattr, EPERM},
        {467 /* open_tree_attr */, EPERM},
        {SYS_bpf, EPERM},
        {SYS_perf_event_open, EPERM},
        {SYS_userfaultfd, EPERM},
        {SYS_kexec_load, EPERM},
        {SYS_kexec_file_load, EPERM},
        {SYS_init_module, EPERM},
        {SYS_finit_module, EPERM},
        {SYS_delete_module, EPERM},
        {SYS_ptrace, EPERM},
        {SYS_pidfd_getfd, EPERM},
        {SYS_process_vm_readv, EPERM},
        {SYS_process_vm_writev, EPERM},
        {SYS_open_by_handle_at, EPERM},
        {SYS_name_to_handle_at, EPERM},
        {SYS_fanotify_init, EPERM},
        {SYS_reboot, EPERM},
        {SYS_swapon, EPERM},
        {SYS_swapoff, EPERM},
        {SYS_acct, EPERM},
        {SYS_syslog, EPERM},
        {SYS_sethostname, EPERM},
        {SYS_setdomainname, EPERM},
        {SYS_settimeofday, EPERM},
        {SYS_clock_settime, EPERM},
        {SYS_add_key, ENOSYS},
        {SYS_request_key, ENOSYS},
        {SYS_keyctl, ENOSYS},
        {SYS_connect, 0},
        {SYS_sendmsg, 0},
        {SYS_sendmmsg, 0},
#ifdef SYS_iopl
        {SYS_iopl, EPERM},
        {SYS_ioperm, EPERM},
#endif
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        HC_ASSERT_EQ_INT(answer(calls[i].number, ARGS(0)), calls[i].answer);
        HC_ASSERT_EQ_INT(answer(calls[i].number, ARGS(~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0),
                                                      ~UINT64_C(0), ~UINT64_C(0))),
                         calls[i].answer);
    }
}

HC_TEST(quiet_refusals)
{
    const long calls[] = {
        SYS_adjtimex,        SYS_clock_adjtime,  SYS_mbind,
        SYS_set_mempolicy,   SYS_migrate_pages,  SYS_move_pages,
        SYS_sched_setattr,   SYS_kcmp,           SYS_quotactl,
        SYS_quotactl_fd,     SYS_lookup_dcookie, SYS_vhangup,
        SYS_process_madvise, SYS_fanotify_mark,  450 /* set_mempolicy_home_node */,
#ifdef SYS_modify_ldt
        SYS_modify_ldt,
#endif
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        HC_ASSERT_EQ_INT(decide(calls[i], ARGS(0)), EPERM);
    HC_ASSERT_EQ_INT(decide(SYS_get_mempolicy, ARGS(0)), ALLOW);
}

HC_TEST(whole_host_sync_is_faked)
{
    HC_ASSERT_EQ_INT(decide(SYS_sync, ARGS(0)), FAKED);
    HC_ASSERT_EQ_INT(decide(SYS_syncfs, ARGS(3)), FAKED);
    HC_ASSERT_EQ_INT(decide(SYS_fsync, ARGS(3)), ALLOW);
}

HC_TEST(clone_makes_no_namespace)
{
    const uint64_t spaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                               CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};
    const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                            CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

    HC_ASSERT_EQ_INT(decide(SYS_clone, ARGS(thread)), ALLOW);
    HC_ASSERT_EQ_INT(decide(SYS_clone, ARGS(CLONE_VM | CLONE_VFORK | SIGCHLD)), ALLOW);
    HC_ASSERT_EQ_INT(decide(SYS_clone, ARGS(CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD)), ALLOW);
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        HC_ASSERT_EQ_INT(answer(SYS_clone, ARGS(spaces[i])), EPERM);
        HC_ASSERT_EQ_INT(answer(SYS_clone, ARGS(thread | spaces[i])), EPERM);
        HC_ASSERT_EQ_INT(answer(SYS_clone, ARGS(HIGH_ALL | SIGCHLD | spaces[i])), EPERM);
        HC_ASSERT_EQ_INT(answer(SYS_unshare, ARGS(spaces[i])), EPERM);
    }
}

/* The policy on sockets, written a second time in another form. */
static int expected_socket(unsigned family, unsigned type, unsigned protocol, bool *ret_notified)
{
    unsigned kind = type & 0xf;

    *ret_notified = false;
    if (family == AF_UNIX)
        return kind == SOCK_STREAM || kind == SOCK_DGRAM || kind == SOCK_SEQPACKET ? 0 : ESOCKTNOSUPPORT;
    if (family == AF_INET || family == AF_INET6) {
        *ret_notified = kind == SOCK_RAW || kind == 10;
        if (*ret_notified)
            return EPERM;
        if (kind == SOCK_STREAM)
            return protocol == 0 || protocol == 6 ? 0 : EPROTONOSUPPORT;
        if (kind == SOCK_DGRAM)
            return protocol == 0 || protocol == 17 ? 0 : EPROTONOSUPPORT;
        return EPROTONOSUPPORT;
    }
    if (family == AF_NETLINK && (kind == SOCK_RAW || kind == SOCK_DGRAM) && protocol == 0)
        return 0;
    *ret_notified = true;
    return family == AF_NETLINK ? EPROTONOSUPPORT : EAFNOSUPPORT;
}

static void check_socket(unsigned family, unsigned type, unsigned protocol, uint64_t high)
{
    bool notified;
    int expected = expected_socket(family, type, protocol, &notified);
    const uint64_t args[6] = {high | family, high | type, high | protocol};

    if (notified)
        HC_ASSERT_EQ_INT(answer(SYS_socket, args), expected);
    else
        HC_ASSERT_EQ_INT(decide(SYS_socket, args), expected);
}

HC_TEST(sockets_of_every_family_type_and_protocol)
{
    const unsigned protocols[] = {0,  1,  2,  4,  6,   9,   12,  15,  16,  17,  33,
                                  41, 47, 50, 58, 103, 132, 136, 255, 256, 262, 0xffffffff};
    const unsigned flags[] = {0, SOCK_CLOEXEC, SOCK_CLOEXEC | SOCK_NONBLOCK, 0x10, 0x80000000};

    for (unsigned family = 0; family <= 46; family++)
        for (unsigned type = 0; type < 16; type++)
            for (size_t p = 0; p < sizeof(protocols) / sizeof(protocols[0]); p++)
                for (size_t f = 0; f < sizeof(flags) / sizeof(flags[0]); f++) {
                    check_socket(family, type | flags[f], protocols[p], 0);
                    check_socket(family, type | flags[f], protocols[p], HIGH_ALL);
                    check_socket(family | 0x10000u, type | flags[f], protocols[p], HIGH);
                }
    for (unsigned bit = 6; bit < 32; bit++)
        HC_ASSERT_EQ_INT(answer(SYS_socket, ARGS(1u << bit, SOCK_STREAM)), EAFNOSUPPORT);
}

HC_TEST(pairs_of_sockets_are_local)
{
    for (uint64_t family = 0; family <= 46; family++)
        HC_ASSERT_EQ_INT(decide(SYS_socketpair, ARGS(family, SOCK_STREAM)),
                         family == 1 ? ALLOW : EAFNOSUPPORT);
    HC_ASSERT_EQ_INT(decide(SYS_socketpair, ARGS(HIGH | AF_UNIX, SOCK_DGRAM)), ALLOW);
}

HC_TEST(sending_to_an_address_is_recorded)
{
    HC_ASSERT_EQ_INT(decide(SYS_sendto, ARGS(3, 0x1000, 10, 0, 0, 0)), ALLOW);
    HC_ASSERT_EQ_INT(decide(SYS_sendto, ARGS(3, 0x1000, 10, 0, 0, 16)), ALLOW);
    HC_ASSERT_EQ_INT(answer(SYS_sendto, ARGS(3, 0x1000, 10, 0, 0x7fff0000, 16)), 0);
    HC_ASSERT_EQ_INT(answer(SYS_sendto, ARGS(3, 0x1000, 10, 0, UINT64_C(0x7f0000000000), 16)), 0);
    const long open[] = {SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_recvmmsg, SYS_shutdown};
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        HC_ASSERT_EQ_INT(decide(open[i], ARGS(3)), ALLOW);
}

static bool option_refused(uint32_t level, uint32_t option)
{
    switch (level) {
    case 0:
        return option == 16 || option == 17 || option >= 64;
    case 1:
        return option == 26 || (option >= 50 && option <= 52);
    case 6:
        return option == 31;
    case 17:
        return option == 100;
    case 41:
        return option == 34 || option == 35 || option == 64 || option == 65 || option >= 128;
    default:
        return level == 279;
    }
}

HC_TEST(socket_options)
{
    for (uint32_t level = 0; level < 300; level++)
        for (uint32_t i = 0; i < 1300; i++) {
            uint32_t option = i < 1290 ? i : UINT32_MAX - i + 1290;
            int expected = option_refused(level, option) ? EPERM : ALLOW;
            HC_ASSERT_EQ_INT(decide(SYS_setsockopt, ARGS(3, level, option)), expected);
            HC_ASSERT_EQ_INT(decide(SYS_setsockopt, ARGS(3, HIGH | level, HIGH_ALL | option)), expected);
        }
}

HC_TEST(terminal_ioctls_cannot_hide_in_high_bits)
{
    const uint64_t recorded[] = {0x5412, 0x541c, 0x541d, 0x5423};
    const uint64_t refused[] = {0x40086602, 0x40046602, 0x401c5820, 0x40806685, 1, 0x400454ca};
    const uint64_t copies[] = {0x40049409, 0x4020940d, 0xc0189436};
    const uint64_t usual[] = {0x5401, 0x5402, 0x5410, 0x5411, 0x5413,     0x541b,
                              0x5421, 0x5422, 0x5424, 0x8912, 0x80086601, 0x0};
    const uint64_t high[] = {0, HIGH, HIGH_ALL, UINT64_C(0x8000000000000000)};

    for (size_t h = 0; h < sizeof(high) / sizeof(high[0]); h++) {
        for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++)
            HC_ASSERT_EQ_INT(answer(SYS_ioctl, ARGS(0, high[h] | recorded[i])), EPERM);
        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
            HC_ASSERT_EQ_INT(decide(SYS_ioctl, ARGS(0, high[h] | refused[i])), EPERM);
        for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
            HC_ASSERT_EQ_INT(decide(SYS_ioctl, ARGS(0, high[h] | copies[i])), EOPNOTSUPP);
        for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
            HC_ASSERT_EQ_INT(decide(SYS_ioctl, ARGS(0, high[h] | usual[i])), ALLOW);
        for (uint64_t kvm = 0xae00; kvm <= 0xaeff; kvm++) {
            HC_ASSERT_EQ_INT(decide(SYS_ioctl, ARGS(0, high[h] | kvm)), EPERM);
            HC_ASSERT_EQ_INT(decide(SYS_ioctl, ARGS(0, high[h] | 0xc0080000u | kvm)), EPERM);
        }
        HC_ASSERT_EQ_INT(decide(SYS_ioctl, ARGS(0, high[h] | 0xadff)), ALLOW);
        HC_ASSERT_EQ_INT(decide(SYS_ioctl, ARGS(0, high[h] | 0xaf00)), ALLOW);
    }
}

HC_TEST(prctl_options)
{
    for (uint64_t option = 0; option < 128; option++) {
        bool refused = option == 28 || option == 35 || option == 59 || option == 62;
        int expected = refused ? EPERM : option == 67 ? EINVAL : ALLOW;
        HC_ASSERT_EQ_INT(decide(SYS_prctl, ARGS(option)), expected);
        HC_ASSERT_EQ_INT(decide(SYS_prctl, ARGS(HIGH | option)), expected);
    }
    HC_ASSERT_EQ_INT(decide(SYS_prctl, ARGS(0x59616d61, 1)), EPERM);
    HC_ASSERT_EQ_INT(decide(SYS_prctl, ARGS(0x53564d41, 0)), ALLOW); /* names of memory ranges */
    for (uint64_t ambient = 1; ambient <= 4; ambient++)
        HC_ASSERT_EQ_INT(decide(SYS_prctl, ARGS(47, ambient, 21)), ambient == 2 ? EPERM : ALLOW);
}

HC_TEST(personalities)
{
    HC_ASSERT_EQ_INT(decide(SYS_personality, ARGS(0)), ALLOW);
    HC_ASSERT_EQ_INT(decide(SYS_personality, ARGS(0xffffffff)), ALLOW);
    HC_ASSERT_EQ_INT(decide(SYS_personality, ARGS(~UINT64_C(0))), ALLOW);
    HC_ASSERT_EQ_INT(decide(SYS_personality, ARGS(ADDR_NO_RANDOMIZE)), ALLOW);
    for (unsigned bit = 0; bit < 32; bit++) {
        if ((1u << bit) == ADDR_NO_RANDOMIZE)
            continue;
        HC_ASSERT_EQ_INT(answer(SYS_personality, ARGS(1u << bit)), EPERM);
        HC_ASSERT_EQ_INT(answer(SYS_personality, ARGS(HIGH | ADDR_NO_RANDOMIZE | 1u << bit)), EPERM);
    }
    HC_ASSERT_EQ_INT(answer(SYS_personality, ARGS(PER_LINUX32 | READ_IMPLIES_EXEC)), EPERM);
}

HC_TEST(seccomp_gives_no_listener)
{
    HC_ASSERT_EQ_INT(decide(SYS_seccomp, ARGS(SECCOMP_SET_MODE_FILTER, 0)), ALLOW);
    HC_ASSERT_EQ_INT(decide(SYS_seccomp, ARGS(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC)), ALLOW);
    for (uint64_t flags = 0; flags < 64; flags++)
        HC_ASSERT_EQ_INT(decide(SYS_seccomp, ARGS(SECCOMP_SET_MODE_FILTER, HIGH | flags)),
                         flags & 8 ? EPERM : ALLOW);
}

HC_TEST(core_limit_stays)
{
    for (uint64_t resource = 0; resource < 16; resource++) {
        int set = resource == RLIMIT_CORE ? FAKED : ALLOW;
        int set_and_get = resource == RLIMIT_CORE ? EPERM : ALLOW;
        HC_ASSERT_EQ_INT(decide(SYS_prlimit64, ARGS(0, resource, 0, 0x1000)), ALLOW);
        HC_ASSERT_EQ_INT(decide(SYS_prlimit64, ARGS(0, resource, 0x1000, 0)), set);
        HC_ASSERT_EQ_INT(decide(SYS_prlimit64, ARGS(0, HIGH | resource, HIGH, 0)), set);
        HC_ASSERT_EQ_INT(decide(SYS_prlimit64, ARGS(0, resource, HIGH_ALL, 0)), set);
        HC_ASSERT_EQ_INT(decide(SYS_prlimit64, ARGS(0, HIGH | resource, 1, 0x1000)), set_and_get);
        HC_ASSERT_EQ_INT(decide(SYS_prlimit64, ARGS(0, resource, HIGH, HIGH)), set_and_get);
        HC_ASSERT_EQ_INT(decide(SYS_setrlimit, ARGS(resource, 0x1000)), set);
        HC_ASSERT_EQ_INT(decide(SYS_setrlimit, ARGS(HIGH_ALL | resource, 0x1000)), set);
        HC_ASSERT_EQ_INT(decide(SYS_getrlimit, ARGS(resource, 0x1000)), ALLOW);
    }
}

static void check_mknod(long number, unsigned arg, uint64_t kind)
{
    bool device = kind == S_IFCHR || kind == S_IFBLK;
    uint64_t args[6] = {0};

    for (unsigned round = 0; round < 2; round++) {
        args[arg] = (round ? HIGH_ALL : 0) | 0x10000 | kind | 0644;
        if (device)
            HC_ASSERT_EQ_INT(answer(number, args), EPERM);
        else
            HC_ASSERT_EQ_INT(decide(number, args), ALLOW);
    }
}

HC_TEST(no_device_nodes)
{
    for (uint64_t kind = 0; kind <= S_IFMT; kind += 0010000) {
        check_mknod(SYS_mknodat, 2, kind);
#ifdef SYS_mknod
        check_mknod(SYS_mknod, 1, kind);
#endif
    }
    HC_ASSERT_EQ_INT(decide(SYS_renameat2, ARGS(0, 0, 0, 0, 4)), EINVAL);
    HC_ASSERT_EQ_INT(decide(SYS_renameat2, ARGS(0, 0, 0, 0, HIGH | 5)), EINVAL);
    HC_ASSERT_EQ_INT(decide(SYS_renameat2, ARGS(0, 0, 0, 0, 3)), ALLOW);
}

HC_TEST(no_set_id_bits)
{
    const struct {
        long number;
        unsigned arg;
    } calls[] = {
#ifdef SYS_chmod
        {SYS_chmod, 1},
#endif
        {SYS_fchmod, 1},
        {SYS_fchmodat, 2},
        {452 /* fchmodat2 */, 2}};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        for (uint64_t mode = 0; mode < 010000; mode++) {
            uint64_t args[6] = {0};
            args[calls[i].arg] = mode;
            HC_ASSERT_EQ_INT(decide(calls[i].number, args), mode & 06000 ? EPERM : ALLOW);
            args[calls[i].arg] = HIGH | 0xffff0000u | mode;
            HC_ASSERT_EQ_INT(decide(calls[i].number, args), mode & 06000 ? EPERM : ALLOW);
        }
}

HC_TEST(fcntl_commands)
{
    for (uint64_t command = 0; command < 1100; command++) {
        int expected = command == 1024 || command == 1026 || command == 1040 ? EPERM : ALLOW;
        HC_ASSERT_EQ_INT(decide(SYS_fcntl, ARGS(0, command)), expected);
        HC_ASSERT_EQ_INT(decide(SYS_fcntl, ARGS(0, HIGH_ALL | command)), expected);
    }
}

HC_TEST(no_real_time)
{
    for (uint64_t policy = 0; policy < 16; policy++) {
        int expected = policy == 1 || policy == 2 || policy == 6 ? EPERM : ALLOW;
        HC_ASSERT_EQ_INT(decide(SYS_sched_setscheduler, ARGS(0, policy)), expected);
        HC_ASSERT_EQ_INT(decide(SYS_sched_setscheduler, ARGS(0, HIGH | 0x40000000 | policy)), expected);
    }
    for (uint64_t class = 0; class < 8; class ++)
        HC_ASSERT_EQ_INT(decide(SYS_ioprio_set, ARGS(1, 0, class << 13 | 4)), class == 1 ? EPERM : ALLOW);
    HC_ASSERT_EQ_INT(decide(SYS_setpriority, ARGS(0, 0, 5)), ALLOW);
}

HC_TEST(memory_is_not_merged)
{
    for (uint64_t advice = 0; advice < 64; advice++) {
        HC_ASSERT_EQ_INT(decide(SYS_madvise, ARGS(0, 0, advice)), advice == 12 ? EINVAL : ALLOW);
        HC_ASSERT_EQ_INT(decide(SYS_madvise, ARGS(0, 0, HIGH | advice)), advice == 12 ? EINVAL : ALLOW);
    }
}

HC_TEST(process_one_does_nothing_but_wait)
{
    const long allowed[] = {
        SYS_read,    SYS_write,         SYS_close,           SYS_wait4,  SYS_waitid,
        SYS_ppoll,   SYS_clock_gettime, SYS_fstatfs,         SYS_sendto, SYS_sendmsg,
        SYS_recvmsg, SYS_rt_sigreturn,  SYS_restart_syscall, SYS_exit,   SYS_exit_group,
#ifdef SYS_poll
        SYS_poll,
#endif
    };
    const unsigned count = sizeof(allowed) / sizeof(allowed[0]);
    unsigned passed = 0;

    for (uint32_t number = 0; number < 1024; number++) {
        int decision = decide_number(&init, OWN_ARCH, number);
        HC_ASSERT(decision == ALLOW || decision == KILL);
        passed += decision == ALLOW;
    }
    HC_ASSERT_EQ_INT(passed, count);
    HC_ASSERT_EQ_INT(HC_FILTER_INIT_ALLOWED, count);
    for (unsigned i = 0; i < count; i++)
        HC_ASSERT_EQ_INT(decide_number(&init, OWN_ARCH, (uint32_t)allowed[i]), ALLOW);
}

/* ---- the same program in the kernel ---- */

static double now_us(void)
{
    struct timespec now;

    HC_ASSERT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int load(const struct program *program, unsigned flags)
{
    struct sock_fprog fprog = {.len = (unsigned short)program->length,
                               .filter = (struct sock_filter *)(uintptr_t)program->code};

    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &fprog);
}

static bool failed_with(long result, int expected)
{
    if (result == -1 && errno == expected)
        return true;
    (void)fprintf(stderr, "result %ld, errno %d, expected errno %d\n", result, errno, expected);
    return false;
}

static bool core_limit_cannot_change(void)
{
    struct rlimit before, after;

    return getrlimit(RLIMIT_CORE, &before) == 0 && setrlimit(RLIMIT_CORE, &(struct rlimit){7, 7}) == 0 &&
           getrlimit(RLIMIT_CORE, &after) == 0 && memcmp(&before, &after, sizeof(before)) == 0;
}

/* What the evaluator says must be what the kernel does; nobody listens, so a notified call fails with ENOSYS.
 */
static int act_filtered(int listener)
{
    bool good = failed_with(syscall(SYS_clone3, NULL, 0), ENOSYS);
    good &= failed_with(syscall(SYS_ioctl, 0, HIGH | 0x40086602u, 0), EPERM);
    good &= failed_with(
        syscall(SYS_prlimit64, 0, RLIMIT_CORE, &(struct rlimit){0, 0}, &(struct rlimit){0, 0}), EPERM);
    good &= core_limit_cannot_change();
    good &= failed_with(syscall(SYS_socket, AF_INET, SOCK_STREAM, 132), EPROTONOSUPPORT);
    good &= failed_with(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, NULL),
                        EPERM);
    good &= failed_with(syscall(1000), ENOSYS);
    good &= failed_with(syscall(-1), ENOSYS);
    good &= syscall(SYS_sync) == 0 && syscall(SYS_syncfs, -1) == 0;
    good &= close(listener) == 0;
    good &= failed_with(syscall(SYS_unshare, CLONE_NEWUSER), ENOSYS);
    return good ? 0 : 1;
}

static _Noreturn void run_filtered(int time_fd)
{
    bool filtered = prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER;
    double before_us = now_us();
    int listener = load(&payload, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    double took_us = now_us() - before_us;

    /* A filter around us has the one listener (EBUSY), or forbids another (EPERM). */
    if (listener < 0)
        _exit(filtered && (errno == EBUSY || errno == EPERM) ? 78 : 77);
    if (write(time_fd, &took_us, sizeof(took_us)) != (ssize_t)sizeof(took_us))
        _exit(2);
    _exit(act_filtered(listener));
}

static int wait_for(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, 0) < 0)
        HC_ASSERT_EQ_INT(errno, EINTR);
    return status;
}

HC_TEST(kernel_takes_the_payload_filter)
{
    int pipe_fds[2];
    double took_us = 0;

    HC_ASSERT(pipe2(pipe_fds, O_CLOEXEC) == 0);
    HC_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    pid_t child = fork();
    HC_ASSERT(child >= 0);
    if (child == 0)
        run_filtered(pipe_fds[1]);
    int status = wait_for(child);
    (void)close(pipe_fds[1]);
    ssize_t n = read(pipe_fds[0], &took_us, sizeof(took_us));
    (void)close(pipe_fds[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 78)
        HC_SKIP("a filter around the tests leaves no room for a listener");
    HC_ASSERT(WIFEXITED(status));
    HC_ASSERT_EQ_INT(WEXITSTATUS(status), 0);
    HC_ASSERT_EQ_INT(n, sizeof(took_us));
    (void)printf("payload filter: %d instructions, %d calls allowed, loaded in %.0f us\n",
                 HC_FILTER_PAYLOAD_LEN, HC_FILTER_PAYLOAD_ALLOWED, took_us);
}

static int status_of_call(const struct program *program, long number)
{
    pid_t child = fork();

    HC_ASSERT(child >= 0);
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || load(program, 0) != 0)
            _exit(77);
        (void)syscall(number, 0, 0, 0, 0, 0, 0);
        (void)syscall(SYS_exit_group, 0);
    }
    return wait_for(child);
}

HC_TEST(kernel_kills_what_process_one_should_not_call)
{
    int status = status_of_call(&init, SYS_getpid);
    HC_ASSERT(WIFSIGNALED(status));
    HC_ASSERT_EQ_INT(WTERMSIG(status), SIGSYS);
    HC_ASSERT_EQ_INT(status_of_call(&init, SYS_close), 0);
}

#if defined(__x86_64__)
HC_TEST(kernel_kills_x32_calls)
{
    int status = status_of_call(&payload, 0x40000000 + 39);
    HC_ASSERT(WIFSIGNALED(status));
    HC_ASSERT_EQ_INT(WTERMSIG(status), SIGSYS);
}
#endif
