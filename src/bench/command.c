/* Bare commands and other sandboxes: a process, its output in a pipe, its end. */
#include "bench/bench.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

int hc_bench_command(const char *const *argv, uint64_t *ret_us)
{
    static const char *const environment[] = {
        "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "TZ=UTC",
        "PYTHONDONTWRITEBYTECODE=1",         NULL};
    int ends[2], status = 0;
    char buffer[4096];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    (void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    uint64_t began_us = hc_now_us();
    int error = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv,
                            (char *const *)(uintptr_t)environment);
    (void)posix_spawn_file_actions_destroy(&actions);
    hc_autoclose int out = ends[0];
    close(ends[1]);
    if (error != 0)
        return -error;
    while (read(out, buffer, sizeof buffer) > 0)
        continue;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    *ret_us = hc_now_us() - began_us;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECANCELED;
}
