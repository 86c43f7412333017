#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

HC_TEST(string_equal)
{
    char copy[] = "same";

    HC_ASSERT(hc_string_equal("same", copy));
    HC_ASSERT(hc_string_equal("", ""));
    HC_ASSERT(hc_string_equal(NULL, NULL));
    HC_ASSERT(!hc_string_equal("same", "samE"));
    HC_ASSERT(!hc_string_equal("same", "sam"));
    HC_ASSERT(!hc_string_equal(NULL, ""));
    HC_ASSERT(!hc_string_equal("", NULL));
}

HC_TEST(printf_allocates)
{
    hc_autofree char *text = hc_printf("%s-%d%%", "cell", -7);
    hc_autofree char *empty = hc_printf("%s", "");
    hc_autofree char *wide = hc_printf("%5000d", 1);

    HC_ASSERT_STREQ(text, "cell--7%");
    HC_ASSERT_STREQ(empty, "");
    HC_ASSERT(wide != NULL);
    HC_ASSERT_EQ_INT(strlen(wide), 5000);
}

static int filled_file(const char *data, size_t n)
{
    int fd = memfd_create("filled", MFD_CLOEXEC);

    HC_ASSERT(fd >= 0);
    HC_ASSERT_EQ_INT(hc_write_all(fd, data, n), 0);
    HC_ASSERT_EQ_INT(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

HC_TEST(read_all_at_every_border)
{
    static char content[20000];
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 8192, 8193, 16384, 20000};
    uint64_t seed = 31;

    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (char)(hc_test_random(&seed) & 0x7F);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        static const ptrdiff_t slack[] = {-1, 0, 1, 100000};
        for (size_t k = 0; k < 4; k++) {
            hc_autoclose int fd = filled_file(content, sizes[i]);
            hc_autofree void *data = NULL;
            size_t n = 12345;
            if (slack[k] < 0 && sizes[i] == 0)
                continue;
            int r = hc_read_all_fd(fd, (size_t)((ptrdiff_t)sizes[i] + slack[k]), &data, &n);
            HC_ASSERT_EQ_INT(r, slack[k] < 0 ? -EFBIG : 0);
            if (r < 0) {
                HC_ASSERT(data == NULL && n == 12345);
                continue;
            }
            HC_ASSERT_EQ_INT(n, sizes[i]);
            HC_ASSERT(memcmp(data, content, n) == 0 && ((char *)data)[n] == '\0');
        }
    }
}

HC_TEST(read_all_without_limit)
{
    hc_autoclose int fd = filled_file("abc", 3);
    hc_autofree void *data = NULL;
    size_t n = 0;

    HC_ASSERT_EQ_INT(hc_read_all_fd(fd, SIZE_MAX, &data, &n), 0);
    HC_ASSERT_EQ_INT(n, 3);
    HC_ASSERT_STREQ((const char *)data, "abc");
}

HC_TEST(read_all_stops_on_an_endless_source)
{
    hc_autoclose int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    void *data = NULL;
    size_t n = 0;

    HC_ASSERT(fd >= 0);
    HC_ASSERT_EQ_INT(hc_read_all_fd(fd, 100000, &data, &n), -EFBIG);
    HC_ASSERT_EQ_INT(hc_read_all_fd(fd, 0, &data, &n), -EFBIG);
    HC_ASSERT(data == NULL);
}

HC_TEST(read_and_write_forward_errors)
{
    void *data = NULL;
    size_t n = 0;
    int ends[2];

    HC_ASSERT_EQ_INT(hc_read_all_fd(-1, 10, &data, &n), -EBADF);
    HC_ASSERT_EQ_INT(hc_write_all(-1, "x", 1), -EBADF);
    HC_ASSERT_EQ_INT(hc_write_all(-1, NULL, 0), 0);
    HC_ASSERT_EQ_INT(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    HC_ASSERT_EQ_INT(hc_read_all_fd(ends[0], 10, &data, &n), -EAGAIN);
    (void)close(ends[0]);
    (void)signal(SIGPIPE, SIG_IGN);
    HC_ASSERT_EQ_INT(hc_write_all(ends[1], "x", 1), -EPIPE);
    (void)close(ends[1]);
}

static void ignore_alarm(int number)
{
    (void)number;
}

static void interrupt_often(void)
{
    struct sigaction action = {.sa_handler = ignore_alarm};
    struct itimerval often = {.it_interval = {.tv_usec = 1000}, .it_value = {.tv_usec = 1000}};

    HC_ASSERT_EQ_INT(sigaction(SIGALRM, &action, NULL), 0);
    HC_ASSERT_EQ_INT(setitimer(ITIMER_REAL, &often, NULL), 0);
}

/* Both ends stall on purpose, so that both calls sit in the kernel when the alarm comes. */
HC_TEST(read_and_write_survive_interruptions)
{
    enum { SIZE = 1 << 20 };
    static char sent[SIZE];
    hc_autofree void *data = NULL;
    size_t n = 0;
    int ends[2], status = 0;
    uint64_t seed = 32;

    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (char)(hc_test_random(&seed) & 0x7F);
    HC_ASSERT_EQ_INT(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    HC_ASSERT(child >= 0);
    interrupt_often();
    if (child == 0) {
        (void)close(ends[0]);
        HC_ASSERT_EQ_INT(hc_write_all(ends[1], sent, SIZE / 2), 0);
        for (int i = 0; i < 20; i++)
            (void)usleep(5000);
        HC_ASSERT_EQ_INT(hc_write_all(ends[1], sent + SIZE / 2, SIZE / 2), 0);
        _exit(0);
    }
    (void)close(ends[1]);
    for (int i = 0; i < 20; i++)
        (void)usleep(5000);
    HC_ASSERT_EQ_INT(hc_read_all_fd(ends[0], SIZE, &data, &n), 0);
    HC_ASSERT_EQ_INT(n, SIZE);
    HC_ASSERT(memcmp(data, sent, SIZE) == 0);
    (void)close(ends[0]);
    (void)setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    HC_ASSERT_EQ_INT(waitpid(child, &status, 0), child);
    HC_ASSERT_EQ_INT(status, 0);
}

HC_TEST(errno_names)
{
    HC_ASSERT_STREQ(hc_errno_name(EPERM), "EPERM");
    HC_ASSERT_STREQ(hc_errno_name(-EPERM), "EPERM");
    HC_ASSERT_STREQ(hc_errno_name(-ENOSPC), "ENOSPC");
    HC_ASSERT_STREQ(hc_errno_name(0), "0");
    HC_ASSERT_STREQ(hc_errno_name(99999), "EUNKNOWN");
    HC_ASSERT_STREQ(hc_errno_name(INT_MIN), "EUNKNOWN");
    HC_ASSERT_STREQ(hc_errno_name(INT_MAX), "EUNKNOWN");
}

HC_TEST(clock_measures)
{
    uint64_t before_us = hc_now_us(), before_ns = hc_now_ns();

    (void)usleep(20000);
    uint64_t passed_us = hc_now_us() - before_us, passed_ns = hc_now_ns() - before_ns;
    HC_ASSERT(passed_us >= 20000 && passed_us < 10000000);
    HC_ASSERT(passed_ns >= UINT64_C(20000000) && passed_ns < UINT64_C(10000000000));
}

HC_TEST(rfc3339_reads_back)
{
    char text[40];
    struct tm parts = {0};

    time_t before = time(NULL);
    hc_rfc3339_now(text);
    HC_ASSERT_EQ_INT(strlen(text), 27);
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    HC_ASSERT(rest != NULL && rest[0] == '.' && strspn(rest + 1, "0123456789") == 6);
    HC_ASSERT_STREQ(rest + 7, "Z");
    time_t said = timegm(&parts);
    HC_ASSERT(said >= before - 1 && said <= time(NULL));
}
