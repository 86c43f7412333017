#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/version.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "runtime/version_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { ANSWER_BYTES_MAX = 4096 };

static const uint64_t command_us = 5 * 1000 * 1000;

/* ---- one bounded command ---- */

static _Noreturn void exec_command(char *const *argv, int out)
{
    static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", lang[] = "LANG=C.UTF-8";
    char *const env[] = {path, lang, NULL};
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    (void)setpgid(0, 0);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || chdir("/") < 0)
        _exit(127);
    (void)syscall(SYS_close_range, 3u, ~0u, 0u);
    (void)execve(argv[0], argv, env);
    _exit(127);
}

static int remaining_ms(uint64_t deadline_us)
{
    uint64_t now = hc_now_us();

    return now >= deadline_us ? 0 : (int)((deadline_us - now) / 1000 + 1);
}

static bool wait_readable(int fd, uint64_t deadline_us)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};
    int n = 0;

    do
        n = poll(&item, 1, remaining_ms(deadline_us));
    while (n < 0 && errno == EINTR);
    return n > 0;
}

/* Until the end of the output, the deadline, or a full buffer. */
static void read_answer(int fd, uint64_t deadline_us, char answer[ANSWER_BYTES_MAX + 1])
{
    size_t used = 0;

    while (used < ANSWER_BYTES_MAX && wait_readable(fd, deadline_us)) {
        ssize_t n = read(fd, answer + used, ANSWER_BYTES_MAX - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    for (size_t i = 0; i < used; i++) /* or a NUL would hide the rest */
        if (!answer[i])
            answer[i] = ' ';
    answer[used] = '\0';
}

/* The group is killed while its leader is not yet reaped: until then nobody else can have its number. */
static bool end_command(pid_t pid, uint64_t deadline_us)
{
    hc_autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool ended = pidfd >= 0 && wait_readable(pidfd, deadline_us);
    int status = 0;
    pid_t reaped = 0;

    (void)kill(-pid, SIGKILL);
    (void)kill(pid, SIGKILL);
    do
        reaped = waitpid(pid, &status, 0);
    while (reaped < 0 && errno == EINTR);
    return ended && reaped == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int run_command(char *const *argv, char answer[ANSWER_BYTES_MAX + 1], bool *ret_good)
{
    uint64_t deadline_us = hc_now_us() + command_us;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    hc_autoclose int from = ends[0];
    hc_autoclose int to = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        exec_command(argv, to);
    (void)setpgid(pid, pid);
    hc_close_fd(&to);
    read_answer(from, deadline_us, answer);
    hc_close_fd(&from); /* one that prints on and on gets SIGPIPE */
    *ret_good = end_command(pid, deadline_us);
    return 0;
}

/* ---- versions ---- */

static int match_version(const struct hc_runtime *runtime, const char *answer, char ret_version[64])
{
    regmatch_t found[2];
    char version[64];

    if (regexec(&runtime->version_regex, answer, 2, found, 0) != 0 || found[1].rm_so < 0)
        return HC_VERSION_UNKNOWN;
    size_t n = (size_t)(found[1].rm_eo - found[1].rm_so);
    if (n >= sizeof version)
        return HC_VERSION_UNKNOWN;
    memcpy(version, answer + found[1].rm_so, n);
    version[n] = '\0';
    if (!hc_version_valid(version))
        return HC_VERSION_UNKNOWN;
    memcpy(ret_version, version, n + 1);
    return HC_VERSION_OK;
}

static int ask_version(const struct hc_runtime *runtime, char ret_version[64])
{
    struct hc_template_values values = {.interpreter = runtime->interpreter_path};
    struct hc_strings argv = {0};
    char answer[ANSWER_BYTES_MAX + 1];
    bool good = false;

    int r = hc_template_expand_all(&runtime->version_command, &values, &argv);
    if (r == 0)
        r = run_command(argv.items, answer, &good);
    hc_strings_done(&argv);
    if (r)
        return r;
    return good ? match_version(runtime, answer, ret_version) : HC_VERSION_UNKNOWN;
}

/* Two runtimes may ask one interpreter different questions. */
static int cache_key(const struct hc_runtime *runtime, char **ret_key)
{
    struct hc_sha256 sha = {0};
    char question[65];

    int r = hc_sha256_init(&sha);
    for (size_t i = 0; r == 0 && i < runtime->version_command.count; i++)
        r = hc_sha256_update(&sha, runtime->version_command.items[i],
                             strlen(runtime->version_command.items[i]) + 1);
    if (r == 0)
        r = hc_sha256_update(&sha, runtime->version_pattern, strlen(runtime->version_pattern));
    if (r == 0)
        r = hc_sha256_final_hex(&sha, question);
    hc_sha256_done(&sha);
    if (r)
        return r;
    *ret_key = hc_printf("%s %.16s", runtime->interpreter_path, question);
    return *ret_key ? 0 : -ENOMEM;
}

int hc_runtime_version(const struct hc_runtime *runtime, char ret_version[64])
{
    hc_autofree char *key = NULL;
    struct stat st;

    if (!runtime->interpreter_path || stat(runtime->interpreter_path, &st) < 0)
        return HC_VERSION_ABSENT;
    int r = cache_key(runtime, &key);
    if (r)
        return r;
    if (hc_version_cache_get(key, &st, ret_version))
        return HC_VERSION_OK;
    r = ask_version(runtime, ret_version);
    if (r == HC_VERSION_OK)
        hc_version_cache_put(key, &st, ret_version);
    return r;
}
