/* Maps of user namespaces: written by root itself, by newuidmap and newgidmap for everybody else. They, not
 * we, decide whether a range belongs to the caller. */
#include "hall/hall.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

struct map {
    const char *file, *program; /* of /proc/PID; the set-uid program */
    uint32_t base, own;
    bool with_own;
};

static int write_map(pid_t child, const struct map *map)
{
    char path[64], line[64];
    struct hc_text path_text = HC_TEXT(path), line_text = HC_TEXT(line);
    hc_text_string(&path_text, "/proc/");
    hc_text_number(&path_text, (uint64_t)child);
    hc_text_string(&path_text, map->file);
    hc_text_string(&line_text, "0 ");
    hc_text_number(&line_text, map->base);
    hc_text_string(&line_text, " ");
    hc_text_number(&line_text, HC_HALL_IDS);
    hc_text_string(&line_text, "\n");
    return hc_file_write(AT_FDCWD, path, line);
}

static _Noreturn void exec_mapper(const char *name, char *const argv[])
{
    static const char *const folders[] = {"/usr/bin/", "/bin/", "/usr/sbin/", "/run/wrappers/bin/"};
    char *const envp[] = {NULL};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char buffer[64];
        struct hc_text path = HC_TEXT(buffer);
        hc_text_string(&path, folders[i]);
        hc_text_string(&path, name);
        (void)execve(buffer, argv, envp);
    }
    _exit(127);
}

/* newuidmap PID 0 BASE 256 [256 OWN 1] */
static pid_t start_mapper(pid_t child, const struct map *map)
{
    char numbers[5][24];
    const uint64_t values[5] = {(uint64_t)child, map->base, HC_HALL_IDS, HC_HALL_IDS, map->own};
    for (int i = 0; i < 5; i++) {
        struct hc_text text = {.data = numbers[i], .size = sizeof numbers[i]};
        hc_text_number(&text, values[i]);
    }
    char zero[] = "0", one[] = "1";
    char *argv[] = {(char *)(uintptr_t)map->program,
                    numbers[0],
                    zero,
                    numbers[1],
                    numbers[2],
                    numbers[3],
                    numbers[4],
                    one,
                    NULL};
    if (!map->with_own)
        argv[5] = NULL;
    pid_t mapper = (pid_t)HC_SYS(fork());
    if (mapper == 0)
        exec_mapper(map->program, argv);
    return mapper;
}

static int await_mapper(pid_t mapper)
{
    int status = 0;
    while (waitpid(mapper, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (!WIFEXITED(status))
        return -EINTR;
    return WEXITSTATUS(status) == 0 ? 0 : WEXITSTATUS(status) == 127 ? -ENOENT : -EPERM;
}

int hc_ids_map(pid_t child, const struct hc_ids *ids, bool with_own, struct hc_hall_failure *failure)
{
    const struct map maps[2] = {
        {"/uid_map", "newuidmap", ids->uid_base, ids->own_uid, with_own},
        {"/gid_map", "newgidmap", ids->gid_base, ids->own_gid, with_own},
    };
    pid_t mappers[2] = {-1, -1};
    int error = 0;
    for (int i = 0; error == 0 && i < 2; i++) {
        hc_hall_detail(failure, HC_STAGE_HALL_IDS, ids->ordinary ? maps[i].program : maps[i].file + 1);
        if (!ids->ordinary)
            error = write_map(child, &maps[i]);
        else if ((mappers[i] = start_mapper(child, &maps[i])) < 0)
            error = mappers[i];
    }
    /* Both at once: each of them is a start of a program. */
    for (int i = 0; i < 2; i++) {
        int ended = mappers[i] > 0 ? await_mapper(mappers[i]) : 0;
        if (error == 0 && ended < 0) {
            hc_hall_detail(failure, HC_STAGE_HALL_IDS, maps[i].program);
            error = ended;
        }
    }
    return error;
}

int hc_ids_become_root(void)
{
    int error = (int)HC_SYS(setgroups(0, NULL));
    if (error == 0)
        error = (int)HC_SYS(setresgid(0, 0, 0));
    if (error == 0)
        error = (int)HC_SYS(setresuid(0, 0, 0));
    return error;
}

static _Noreturn void helper(int gate, int namespace, int (*work)(void *), void *context)
{
    char byte;
    if (read(gate, &byte, 1) != 1)
        _exit(EPIPE);
    int error = namespace >= 0 ? (int)HC_SYS(setns(namespace, CLONE_NEWUSER)) : 0;
    if (error == 0)
        error = hc_ids_become_root();
    if (error == 0)
        error = work(context);
    _exit(error < 0 && error > -126 ? -error : error != 0 ? EIO : 0);
}

int hc_ids_run(const struct hc_ids *ids, int namespace, int (*work)(void *), void *context,
               struct hc_hall_failure *failure)
{
    int gate[2], status = 0;
    int error = (int)HC_SYS(pipe2(gate, O_CLOEXEC));
    if (error < 0)
        return error;
    hc_autoclose int gate_read = gate[0], gate_write = gate[1];
    struct clone_args args = {.flags = namespace >= 0 ? 0 : CLONE_NEWUSER, .exit_signal = SIGCHLD};
    pid_t child = (pid_t)HC_SYS(hc_clone3(&args));
    if (child == 0) {
        hc_close_fd(&gate_write);
        helper(gate_read, namespace, work, context);
    }
    if (child < 0) {
        hc_hall_detail(failure, HC_STAGE_HALL_NAMESPACES, "clone3");
        return child;
    }
    error = namespace >= 0 ? 0 : hc_ids_map(child, ids, true, failure);
    if (error == 0 && HC_SYS(write(gate_write, "g", 1)) != 1)
        error = -EPIPE;
    hc_close_fd(&gate_write); /* without its byte the child goes by itself */
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (error == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        error = WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
    return error;
}
