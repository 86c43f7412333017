#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_TIMEOUT_S = 20, FD_LIMIT = 1024, SHOWN_OUTPUT_BYTES = 65536 };

enum verdict { UNDECIDED, PASSED, SKIPPED, FAILED };

/* Shared memory rather than a pipe: the test may close or count every descriptor it finds. */
struct report {
    enum verdict verdict;
    char message[8192];
};

static struct hc_test *all_tests;
static struct report *report;

/* The order of constructors is the linker's business; file and line make it ours. */
static bool runs_before(const struct hc_test *a, const struct hc_test *b)
{
    int order = strcmp(a->file, b->file);
    return order != 0 ? order < 0 : a->line < b->line;
}

void hc_test_register(struct hc_test *test)
{
    struct hc_test **slot = &all_tests;

    while (*slot && runs_before(*slot, test))
        slot = &(*slot)->next;
    test->next = *slot;
    *slot = test;
}

/* _exit: a leak report of a test that stopped half-way would bury the reason. */
static _Noreturn void leave(int status)
{
    (void)fflush(NULL);
    _exit(status);
}

_Noreturn void hc_test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list args;

    int n = snprintf(report->message, sizeof(report->message), "%s:%d: ", file, line);
    size_t used = n > 0 && (size_t)n < sizeof(report->message) ? (size_t)n : 0;
    va_start(args, fmt);
    (void)vsnprintf(report->message + used, sizeof(report->message) - used, fmt, args);
    va_end(args);
    report->verdict = FAILED;
    leave(1);
}

_Noreturn void hc_test_skip(const char *reason)
{
    (void)snprintf(report->message, sizeof(report->message), "%s", reason);
    report->verdict = SKIPPED;
    leave(0);
}

static void print_int(char *out, size_t size, hc_test_int value)
{
    if (value < 0)
        (void)snprintf(out, size, "%lld", (long long)value);
    else
        (void)snprintf(out, size, "%llu (0x%llx)", (unsigned long long)value, (unsigned long long)value);
}

void hc_test_equal_int(const char *file, int line, const char *text, hc_test_int a, hc_test_int b)
{
    char left[64], right[64];

    if (a == b)
        return;
    print_int(left, sizeof(left), a);
    print_int(right, sizeof(right), b);
    hc_test_fail(file, line, "not true: %s\n  left:  %s\n  right: %s", text, left, right);
}

void hc_test_equal_string(const char *file, int line, const char *text, const char *a, const char *b)
{
    if (a && b ? strcmp(a, b) == 0 : a == b)
        return;
    hc_test_fail(file, line, "not true: %s\n  left:  %s%s%s\n  right: %s%s%s", text, a ? "\"" : "",
                 a ? a : "NULL", a ? "\"" : "", b ? "\"" : "", b ? b : "NULL", b ? "\"" : "");
}

static void list_descriptors(bool open[FD_LIMIT])
{
    for (int fd = 0; fd < FD_LIMIT; fd++)
        open[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void compare_descriptors(const struct hc_test *test, const bool before[FD_LIMIT])
{
    bool after[FD_LIMIT];

    list_descriptors(after);
    for (int fd = 0; fd < FD_LIMIT; fd++) {
        char path[64], target[256] = "";
        if (before[fd] == after[fd])
            continue;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof(target) - 1) < 0)
            target[0] = '\0';
        hc_test_fail(test->file, test->line, "descriptor %d was %s %s", fd,
                     after[fd] ? "left open:" : "closed but is not the test's", target);
    }
}

static void prepare_child(const struct hc_test *test, int output_fd, pid_t runner)
{
    sigset_t none;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != runner)
        _exit(1);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);

    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(output_fd, 1) < 0 || dup2(output_fd, 2) < 0)
        _exit(1);
    if (null_fd > 2)
        (void)close(null_fd);
    if (output_fd > 2)
        (void)close(output_fd);

    /* Sanitizers catch some signals and turn them into an exit. */
    if (test->expect_signal) {
        (void)signal(test->expect_signal, SIG_DFL);
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    }
}

static _Noreturn void run_child(const struct hc_test *test, int output_fd, pid_t runner)
{
    bool open_before[FD_LIMIT];

    prepare_child(test, output_fd, runner);
    pid_t self = getpid();
    list_descriptors(open_before);
    test->run();
    if (getpid() != self)
        hc_test_fail(test->file, test->line, "a child process returned from the test");
    compare_descriptors(test, open_before);
    if (report->verdict == UNDECIDED)
        report->verdict = PASSED;
    /* exit, not _exit: leak detection runs there and turns the status non-zero. */
    exit(0);
}

static uint64_t now_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* SIGCHLD is blocked in the runner, so an end between the check and the wait stays pending and is not missed.
 * WNOWAIT keeps the number of the process, and with it of its group, from being given to someone else. */
static bool ended_in_time(pid_t child, unsigned timeout_s)
{
    uint64_t deadline_ns = now_ns() + timeout_s * UINT64_C(1000000000);
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child)
            return true;
        uint64_t at_ns = now_ns();
        if (at_ns >= deadline_ns)
            return false;
        uint64_t left_ns = deadline_ns - at_ns;
        struct timespec left = {.tv_sec = (time_t)(left_ns / UINT64_C(1000000000)),
                                .tv_nsec = (long)(left_ns % UINT64_C(1000000000))};
        (void)sigtimedwait(&set, NULL, &left);
    }
}

static unsigned timeout_of(const struct hc_test *test)
{
    if (test->timeout_s > 0)
        return test->timeout_s;
    const char *text = getenv("HC_TEST_TIMEOUT_S");
    unsigned long seconds = text ? strtoul(text, NULL, 10) : 0;
    return seconds > 0 && seconds < 1000000 ? (unsigned)seconds : DEFAULT_TIMEOUT_S;
}

static void describe(enum verdict verdict, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What happened to the process explains more than what the test last said, except for a failed assertion. */
static void describe(enum verdict verdict, const char *fmt, ...)
{
    va_list args;

    if (report->verdict != FAILED) {
        va_start(args, fmt);
        (void)vsnprintf(report->message, sizeof(report->message), fmt, args);
        va_end(args);
    }
    report->verdict = verdict;
}

static void judge(const struct hc_test *test, bool in_time, int status)
{
    if (!in_time) {
        describe(FAILED, "timeout: still running after %u s", timeout_of(test));
    } else if (report->verdict == FAILED) {
        return;
    } else if (report->verdict == SKIPPED && WIFEXITED(status)) {
        return;
    } else if (test->expect_signal) {
        if (WIFSIGNALED(status) && WTERMSIG(status) == test->expect_signal)
            describe(PASSED, "%s", "");
        else
            describe(FAILED, "expected signal %d (%s), got %s %d", test->expect_signal,
                     strsignal(test->expect_signal), WIFSIGNALED(status) ? "signal" : "exit status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    } else if (WIFSIGNALED(status)) {
        describe(FAILED, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0) {
        describe(FAILED, "exit status %d", WEXITSTATUS(status));
    } else if (report->verdict != PASSED) {
        describe(FAILED, "the test left with status 0 before its end");
    }
}

static int run_test(const struct hc_test *test, int output_fd)
{
    pid_t runner = getpid();
    int status = 0;

    memset(report, 0, sizeof(*report));
    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0) {
        describe(FAILED, "fork: %s", strerror(errno));
        return 0;
    }
    if (child == 0)
        run_child(test, output_fd, runner);
    (void)setpgid(child, child);
    bool in_time = ended_in_time(child, timeout_of(test));
    (void)kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    judge(test, in_time, status);
    return 0;
}

/* The output of a test must not be able to look like a line of the protocol. */
static void print_diagnostics(const char *text, size_t n)
{
    bool at_start = true;

    for (size_t i = 0; i < n; i++) {
        if (at_start)
            (void)fputs("# ", stdout);
        (void)putchar(text[i]);
        at_start = text[i] == '\n';
    }
    if (!at_start)
        (void)putchar('\n');
}

static void print_output(int output_fd)
{
    static char text[SHOWN_OUTPUT_BYTES];

    off_t size = lseek(output_fd, 0, SEEK_END);
    if (size <= 0)
        return;
    off_t from = size > SHOWN_OUTPUT_BYTES ? size - SHOWN_OUTPUT_BYTES : 0;
    ssize_t n = pread(output_fd, text, sizeof(text), from);
    if (n <= 0)
        return;
    (void)printf("# output of the test%s:\n", from > 0 ? " (its end)" : "");
    print_diagnostics(text, (size_t)n);
}

static void print_result(const struct hc_test *test, unsigned number, int output_fd)
{
    report->message[sizeof(report->message) - 1] = '\0';
    if (report->verdict == PASSED) {
        (void)printf("ok %u - %s\n", number, test->name);
    } else if (report->verdict == SKIPPED) {
        for (char *c = report->message; *c; c++)
            if (*c == '\n')
                *c = ' ';
        (void)printf("ok %u - %s # SKIP %s\n", number, test->name, report->message);
    } else {
        (void)printf("not ok %u - %s\n", number, test->name);
        print_diagnostics(report->message, strlen(report->message));
        print_output(output_fd);
    }
    (void)fflush(stdout);
}

static bool selected(const struct hc_test *test, char **filters)
{
    if (!*filters)
        return true;
    for (; *filters; filters++)
        if (strstr(test->name, *filters))
            return true;
    return false;
}

static unsigned count_selected(char **filters)
{
    unsigned n = 0;

    for (const struct hc_test *test = all_tests; test; test = test->next)
        n += selected(test, filters);
    return n;
}

static int run_all(char **filters)
{
    unsigned number = 0, failed = 0;

    for (const struct hc_test *test = all_tests; test; test = test->next) {
        if (!selected(test, filters))
            continue;
        int output_fd = memfd_create("test-output", MFD_CLOEXEC);
        if (output_fd < 0 || run_test(test, output_fd) < 0) {
            (void)printf("Bail out! the runner itself failed: %s\n", strerror(errno));
            return 1;
        }
        print_result(test, ++number, output_fd);
        failed += report->verdict == FAILED;
        (void)close(output_fd);
    }
    return failed > 0;
}

static int prepare_runner(void)
{
    sigset_t set;

    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return -errno;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)signal(SIGCHLD, SIG_DFL);
    return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
    bool list = false;
    int first = 1;

    for (; first < argc && argv[first][0] == '-'; first++) {
        if (strcmp(argv[first], "--list") != 0) {
            (void)fprintf(stderr, "usage: %s [--list] [part of a name]...\n", argv[0]);
            return 2;
        }
        list = true;
    }
    char **filters = argv + first;
    unsigned n = count_selected(filters);
    if (n == 0) {
        (void)fprintf(stderr, "%s: no test has such a name\n", argv[0]);
        return 2;
    }
    if (list) {
        for (const struct hc_test *test = all_tests; test; test = test->next)
            if (selected(test, filters))
                (void)puts(test->name);
        return 0;
    }
    if (prepare_runner() < 0) {
        (void)fprintf(stderr, "%s: cannot prepare: %s\n", argv[0], strerror(errno));
        return 2;
    }
    (void)printf("1..%u\n", n);
    return run_all(filters);
}
