/* Work through the library, and how much of it gets done per second. */
#include "bench/bench.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CELLS_AHEAD 4
#define WARM_CELLS  6
#define WAIT_MS     120000

const char hc_bench_code[] = "print(2**100)";
const char hc_bench_python_path[] = "/usr/bin/python3";
static const char answer[] = "1267650600228229401496703205376\n";

int hc_bench_engine(unsigned cells_ahead, unsigned warm_cells, struct hc_engine **ret_engine,
                    struct hc_refusal *refusal)
{
    struct hc_engine_options options = {
        .only_language = "python", .cells_ahead = cells_ahead, .warm_cells = warm_cells};
    struct hc_problem problem = {0};
    int error = hc_engine_open(&options, ret_engine, &problem);
    if (error == HC_BAD_INPUT)
        return hc_refuse(refusal, HC_CAUSE_RUNTIME, "runtime", "%.400s", problem.message);
    if (error == 0 && warm_cells > 0)
        error = hc_engine_await_warm(*ret_engine, "python", warm_cells, WAIT_MS, refusal);
    return error;
}

int hc_bench_python(struct hc_engine *engine, const char *code, struct hc_job **ret_job, uint64_t *ret_us)
{
    struct hc_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    int error = hc_spec_init(&job->spec);
    job->spec.language = strdup("python");
    job->spec.code = (uint8_t *)strdup(code);
    job->spec.code_bytes = strlen(code);
    job->spec.code_given = true;
    if (error == 0 && (job->spec.language == NULL || job->spec.code == NULL))
        error = -ENOMEM;
    uint64_t began_us = hc_now_us();
    hc_job_begin(job);
    if (error == 0)
        error = hc_engine_run(engine, job, NULL, NULL, NULL);
    json_t *record = error == 0 ? hc_record_make(job) : NULL;
    hc_autofree char *text = record != NULL ? json_dumps(record, JSON_COMPACT) : NULL;
    *ret_us = hc_now_us() - began_us;
    json_decref(record);
    const struct hc_captured *out = &job->outcome.out;
    bool right = text != NULL && job->verdict.status == HC_STATUS_OK && out->kept_bytes == strlen(answer) &&
                 memcmp(out->data, answer, strlen(answer)) == 0;
    *ret_job = job;
    return error < 0 ? error : right ? 0 : -ECANCELED;
}

struct tally {
    uint64_t runs, us;
    int error;
};

static int once(enum hc_bench_work work, struct hc_engine *engine)
{
    static const char *const bare[] = {hc_bench_python_path, "-c", hc_bench_code, NULL};
    struct hc_job *job = NULL;
    uint64_t us;
    if (work == HC_BENCH_BARE)
        return hc_bench_command(bare, &us);
    int error = hc_bench_python(engine, hc_bench_code, &job, &us);
    if (job != NULL)
        hc_job_done(job);
    free(job);
    return error;
}

/* Sets up, says so, waits for the common start, works for its time and hands in its count. */
static _Noreturn void worker(enum hc_bench_work work, double seconds, int socket)
{
    struct tally tally = {0};
    struct hc_engine *engine = NULL;
    struct hc_refusal refusal = {0};
    char byte = 'r';
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (work != HC_BENCH_BARE)
        tally.error = hc_bench_engine(work == HC_BENCH_COLD ? CELLS_AHEAD : 0,
                                      work == HC_BENCH_WARM ? WARM_CELLS : 0, &engine, &refusal);
    for (int i = 0; tally.error == 0 && i < 2; i++)
        tally.error = once(work, engine);
    if (send(socket, &byte, 1, MSG_NOSIGNAL) != 1 || recv(socket, &byte, 1, 0) != 1)
        _exit(1);
    uint64_t began_us = hc_now_us(), end_us = began_us + (uint64_t)(seconds * 1e6);
    while (tally.error == 0 && hc_now_us() < end_us) {
        tally.error = once(work, engine);
        tally.runs++;
    }
    tally.us = hc_now_us() - began_us;
    hc_engine_close(engine);
    (void)send(socket, &tally, sizeof tally, MSG_NOSIGNAL);
    _exit(0);
}

double hc_bench_rate(enum hc_bench_work work, unsigned jobs, double seconds)
{
    hc_autofree int *sockets = calloc(jobs, sizeof *sockets);
    hc_autofree pid_t *pids = calloc(jobs, sizeof *pids);
    double rate = 0;
    char byte = 'g';
    unsigned started = 0;
    for (; sockets != NULL && pids != NULL && started < jobs; started++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
            break;
        pids[started] = fork();
        if (pids[started] == 0)
            worker(work, seconds, pair[1]);
        (void)close(pair[1]);
        sockets[started] = pair[0];
    }
    for (unsigned i = 0; i < started; i++)
        (void)!recv(sockets[i], &byte, 1, 0);
    for (unsigned i = 0; i < started; i++)
        (void)!send(sockets[i], &byte, 1, MSG_NOSIGNAL);
    for (unsigned i = 0; i < started; i++) {
        struct tally tally = {.error = -ECONNRESET};
        if (recv(sockets[i], &tally, sizeof tally, 0) != sizeof tally || tally.error != 0)
            rate = -1;
        else if (rate >= 0)
            rate += (double)tally.runs * 1e6 / (double)tally.us;
        (void)waitpid(pids[i], NULL, 0);
        (void)close(sockets[i]);
    }
    return started == jobs ? rate : -1;
}

/* Requests come at exponential distances, whether the last one has been answered or not: one that has to wait
 * counts its waiting. */
json_t *hc_bench_burst(double per_second, double seconds)
{
    hc_autofree struct hc_samples *samples = calloc(1, sizeof *samples);
    struct hc_engine *engine = NULL;
    struct hc_refusal refusal = {0};
    uint64_t missed = 0, seed = 88172645463325252ull;
    int error = samples != NULL ? hc_bench_engine(CELLS_AHEAD, WARM_CELLS, &engine, &refusal) : -ENOMEM;
    uint64_t began_us = hc_now_us(), end_us = began_us + (uint64_t)(seconds * 1e6);
    double arrival_us = (double)began_us;
    while (error == 0 && arrival_us < (double)end_us && samples->count < HC_BENCH_SAMPLES_MAX) {
        uint64_t now_us = hc_now_us(), us;
        struct hc_job *job = NULL;
        if ((double)now_us < arrival_us)
            (void)usleep((useconds_t)(arrival_us - (double)now_us));
        error = hc_bench_python(engine, hc_bench_code, &job, &us);
        if (job != NULL) {
            missed += !job->outcome.warm;
            hc_job_done(job);
        }
        free(job);
        hc_samples_add(samples, (uint64_t)((double)hc_now_us() - arrival_us));
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        double uniform = (double)(seed >> 11) / 9007199254740992.0;
        arrival_us += -1e6 / per_second * (uniform > 1e-9 ? __builtin_log(uniform) : -20.7);
    }
    hc_engine_close(engine);
    if (error != 0)
        return NULL;
    hc_samples_sort(samples);
    return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I}", "per_second", per_second, "p50_us",
                     (json_int_t)hc_samples_percentile(samples, 50), "p95_us",
                     (json_int_t)hc_samples_percentile(samples, 95), "p99_us",
                     (json_int_t)hc_samples_percentile(samples, 99), "n", (json_int_t)samples->count,
                     "missed", (json_int_t)missed);
}
