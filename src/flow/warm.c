#include "flow/warm.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "cell/plan.h"
#include "runtime/template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST_MEMORY_BYTES (2ull * 1024 * 1024 * 1024)
#define HOST_PROCESSES    64
/* A host that was lost is started again after this much, doubled each time. */
#define RESTART_US 500000ull

void hc_warm_init(struct hc_warm *warm, const char *programs, const char *share)
{
    memset(warm, 0, sizeof *warm);
    warm->programs = programs;
    warm->share = share;
    for (uint32_t place = 0; place < HC_HOST_MAX; place++) {
        warm->hosts[place].place = place;
        warm->hosts[place].messages = -1;
    }
}

void hc_warm_done(struct hc_warm *warm)
{
    for (uint32_t place = 0; place < HC_HOST_MAX; place++) {
        hc_close_fd(&warm->hosts[place].messages);
        warm->hosts[place].runtime = NULL;
    }
}

bool hc_warm_possible(const struct hc_warm *warm, const struct hc_runtime *runtime)
{
    if (runtime->warm_native == NULL || runtime->interpreter_path == NULL)
        return false;
    hc_autofree char *path = hc_printf("%s/%s", warm->programs, runtime->warm_native);
    return path != NULL && access(path, R_OK) == 0;
}

static uint32_t add_copy(struct hc_bind *binds, uint32_t count, const char *folder, const char *name)
{
    char source[HC_PATH_SIZE], target[HC_PATH_SIZE];
    int a = snprintf(source, sizeof source, "%s/%s", folder, name);
    int b = snprintf(target, sizeof target, "%s/%s", HC_WARM_FOLDER, name);
    if (count == HC_BIND_MAX || a >= HC_PATH_SIZE || b >= HC_PATH_SIZE)
        return count;
    struct hc_bind *bind = &binds[count];
    memset(bind, 0, sizeof *bind);
    memcpy(bind->source, source, (size_t)a);
    memcpy(bind->target, target, (size_t)b);
    bind->flags = HC_BIND_COPY;
    return count + 1;
}

uint32_t hc_warm_binds(const struct hc_warm *warm, const struct hc_runtime *runtime, struct hc_bind *binds,
                       uint32_t count)
{
    hc_autofree char *share = hc_printf("%s/warm", warm->share);
    if (share == NULL)
        return count;
    count = add_copy(binds, count, warm->programs, runtime->warm_native);
    for (size_t i = 0; i < runtime->warm_files.count; i++)
        count = add_copy(binds, count, share, runtime->warm_files.items[i]);
    return count;
}

/* ---- the host's own plan ---- */

static char *join_names(const struct hc_strings *names)
{
    hc_autofree char *text = strdup("HOTCELL_WARM_MODULES=");
    for (size_t i = 0; text != NULL && i < names->count; i++) {
        char *longer = hc_printf("%s%s%s", text, i > 0 ? " " : "", names->items[i]);
        free(text);
        text = longer;
    }
    return hc_take_pointer(&text);
}

static int host_env(const struct hc_runtime *runtime, const struct hc_template_values *values, char **env)
{
    size_t at = 0;
    for (size_t i = 0; i < runtime->env_count; i++) {
        hc_autofree char *value = NULL;
        int error = hc_template_expand(runtime->env[i].value, values, &value);
        if (error != 0)
            return error < 0 ? error : -EINVAL;
        if ((env[at++] = hc_printf("%s=%s", runtime->env[i].name, value)) == NULL)
            return -ENOMEM;
    }
    env[at++] = strdup("PYTHONPATH=" HC_WARM_FOLDER);
    env[at] = join_names(&runtime->warm_modules);
    return env[at - 1] == NULL || env[at] == NULL ? -ENOMEM : 0;
}

static void free_texts(char ***texts)
{
    for (size_t i = 0; *texts != NULL && (*texts)[i] != NULL; i++)
        free((*texts)[i]);
    free(*texts);
}

static int host_plan(const struct hc_runtime *runtime)
{
    /* The streams' limits of the children come with their runs; that of core dumps can't be changed behind a
     * filter. */
    static const struct hc_plan_rlimit rlimits[] = {{RLIMIT_CORE, 0, 1, 1},
                                                    {RLIMIT_STACK, 0, 8u << 20, RLIM_INFINITY}};
    struct hc_template_values values = {.interpreter = runtime->interpreter->place,
                                        .tree = runtime->interpreter->tree_cell,
                                        .file = runtime->file,
                                        .output = "./",
                                        .home = "/tmp/home",
                                        .threads = 1,
                                        .memory_mib = HOST_MEMORY_BYTES >> 20,
                                        .heap_mib = HOST_MEMORY_BYTES >> 20};
    __attribute__((cleanup(hc_strings_done))) struct hc_strings argv = {0};
    __attribute__((cleanup(free_texts))) char **env = calloc(runtime->env_count + 3, sizeof *env);
    int error = env != NULL ? hc_template_expand_all(&runtime->run, &values, &argv) : -ENOMEM;
    if (error == 0)
        error = host_env(runtime, &values, env);
    if (error != 0)
        return error < 0 ? error : -EINVAL;
    struct hc_plan_source source = {.argv = (const char *const *)argv.items,
                                    .env = (const char *const *)env,
                                    .rlimits = rlimits,
                                    .rlimit_count = sizeof rlimits / sizeof *rlimits};
    return hc_plan_build(&source);
}

/* Pipes, as a run has: the interpreter looks at its streams when it starts. */
static int host_streams(int fds[HC_START_FDS], int *ret_messages)
{
    int in[2], out[2], err[2], report[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) != 0)
        return -errno;
    fds[1] = in[0];
    fds[2] = out[1];
    fds[3] = err[1];
    fds[4] = report[1];
    close(in[1]);
    close(out[0]);
    close(report[0]);
    *ret_messages = err[0];
    return 0;
}

static int start_host(struct hc_warm_host *host, struct hc_hall *hall)
{
    int fds[HC_START_FDS] = {-1, -1, -1, -1, -1};
    const struct hc_request limits = {.processes = HOST_PROCESSES,
                                      .memory_bytes = HOST_MEMORY_BYTES,
                                      .cpu_quota_us = 100000u * (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
                                      .cpu_period_us = 100000};
    hc_close_fd(&host->messages);
    fds[0] = host_plan(host->runtime);
    int error = fds[0] < 0 ? fds[0] : host_streams(fds, &host->messages);
    if (error == 0)
        error = hc_hall_ask_host(hall, host->place, &limits, fds);
    for (unsigned i = 0; i < HC_START_FDS; i++)
        hc_close_fd(&fds[i]);
    host->starts++;
    host->started_at_us = hc_now_us();
    return error;
}

int hc_warm_start(struct hc_warm *warm, struct hc_hall *hall, const struct hc_runtime *runtime,
                  unsigned target)
{
    if (hc_warm_place(warm, runtime) >= 0)
        return 0;
    for (uint32_t place = 0; place < HC_HOST_MAX; place++) {
        struct hc_warm_host *host = &warm->hosts[place];
        if (host->runtime != NULL)
            continue;
        host->runtime = runtime;
        host->target = target;
        return start_host(host, hall);
    }
    return -EBUSY;
}

int hc_warm_place(const struct hc_warm *warm, const struct hc_runtime *runtime)
{
    for (uint32_t place = 0; place < HC_HOST_MAX; place++)
        if (warm->hosts[place].runtime == runtime)
            return (int)place;
    return -1;
}

static bool only_fresh_heeds(const struct hc_runtime *runtime, const char *assignment)
{
    for (size_t i = 0; i < runtime->warm_cold_for.count; i++)
        if (strncmp(assignment, runtime->warm_cold_for.items[i], strlen(runtime->warm_cold_for.items[i])) ==
            0)
            return true;
    return false;
}

const char *hc_warm_unfit(const struct hc_warm *warm, const struct hc_job *job,
                          const struct hc_runtime *runtime)
{
    if (runtime->warm_native == NULL)
        return "this language has no warm cells";
    if (!hc_warm_possible(warm, runtime))
        return "hotcell was built without its part for this language (the headers of Python were missing)";
    if (strcmp(job->program_name, runtime->file) != 0)
        return "the program has a file name of its own, and a warm interpreter has been started for another";
    if (job->spec.deterministic)
        return "--deterministic fixes what only a fresh interpreter can heed";
    for (size_t i = 0; i < job->spec.env_count; i++)
        if (only_fresh_heeds(runtime, job->spec.env[i]))
            return "--env sets a variable that only a fresh interpreter heeds";
    return NULL;
}

bool hc_warm_gains(const struct hc_job *job, const struct hc_runtime *runtime)
{
    for (size_t i = 0; i < runtime->warm_modules.count; i++) {
        const char *name = runtime->warm_modules.items[i];
        if (memmem(job->spec.code, job->spec.code_bytes, name, strlen(name)) != NULL)
            return true;
    }
    return false;
}

void hc_warm_refill(struct hc_warm *warm, struct hc_hall *hall)
{
    for (uint32_t place = 0; place < HC_HOST_MAX; place++) {
        struct hc_warm_host *host = &warm->hosts[place];
        if (host->runtime == NULL)
            continue;
        enum hc_warm_state state = hc_hall_host(hall, place, NULL);
        unsigned doubled = host->starts < 8 ? host->starts : 8;
        if (state == HC_WARM_LOST && hc_now_us() - host->started_at_us > RESTART_US << doubled)
            (void)start_host(host, hall);
        else if (state == HC_WARM_READY || state == HC_WARM_STARTING)
            hc_hall_make_warm(hall, place, host->target);
    }
}

int hc_warm_await(struct hc_warm *warm, struct hc_hall *hall, const struct hc_runtime *runtime,
                  unsigned wanted, int timeout_ms, struct hc_setup_failure *ret_failure)
{
    int place = hc_warm_place(warm, runtime);
    uint64_t deadline_us = hc_now_us() + (uint64_t)timeout_ms * 1000;
    if (place < 0)
        return -ESRCH;
    hc_warm_refill(warm, hall);
    while (hc_hall_warm_ready(hall, (uint32_t)place) < wanted) {
        uint64_t now_us = hc_now_us();
        if (hc_hall_host(hall, (uint32_t)place, ret_failure) == HC_WARM_LOST) {
            ssize_t n =
                read(warm->hosts[place].messages, ret_failure->detail, sizeof ret_failure->detail - 1);
            ret_failure->detail[n > 0 ? n : 0] = '\0';
            return ret_failure->error < 0 ? ret_failure->error : -ECHILD;
        }
        if (now_us >= deadline_us)
            return -ETIMEDOUT;
        int error = hc_hall_read(hall, (int)((deadline_us - now_us + 999) / 1000));
        if (error < 0)
            return error;
    }
    return 0;
}
