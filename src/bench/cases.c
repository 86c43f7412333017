/* The cases, and the session that measures them. */
#include "bench/bench.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "flow/execute.h"
#include "flow/gate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CELLS_AHEAD   4
#define WARM_CELLS    4
#define PAUSE_US      5000
#define BURST_SECONDS 5.0

enum kind { KIND_COMMAND, KIND_COLD_TRUE, KIND_COLD_PYTHON, KIND_WARM };

#define PYTHON "/usr/bin/python3"
#define CODE   "print(2**100)"
#define BWRAP                                                                                                \
    "/usr/bin/bwrap", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib",   \
        "/lib", "--symlink", "usr/lib64", "/lib64", "--ro-bind", "/etc/alternatives", "/etc/alternatives",   \
        "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-all", "--die-with-parent",         \
        "--chdir", "/tmp"
#define NSJAIL                                                                                               \
    "/usr/bin/nsjail", "-Mo", "-q", "-R", "/usr", "-R", "/lib", "-R", "/lib64", "-R", "/bin", "-T", "/tmp",  \
        "--"

static const char *const argv_true[] = {"/bin/true", NULL};
static const char *const argv_python[] = {PYTHON, "-c", CODE, NULL};
static const char *const argv_pandas[] = {PYTHON, "-c", "import pandas\n" CODE, NULL};
static const char *const argv_bwrap_true[] = {BWRAP, "/bin/true", NULL};
static const char *const argv_bwrap_python[] = {BWRAP, PYTHON, "-c", CODE, NULL};
static const char *const argv_nsjail_true[] = {NSJAIL, "/bin/true", NULL};
static const char *const argv_nsjail_python[] = {NSJAIL, PYTHON, "-c", CODE, NULL};
static const char *const argv_runsc_true[] = {"/usr/bin/runsc", "--network=none", "do", "/bin/true", NULL};
static const char *const argv_runsc_python[] = {
    "/usr/bin/runsc", "--network=none", "do", PYTHON, "-c", CODE, NULL};

struct bench_case {
    const char *name;
    enum kind kind;
    const char *const *argv;
    unsigned every;     /* rounds: dear ones are measured less often */
    const char *second; /* a second row from the same runs: the time of the first output */
};

static const struct bench_case cases[] = {
    {"bare_true", KIND_COMMAND, argv_true, 1, NULL},
    {"bare_python", KIND_COMMAND, argv_python, 1, NULL},
    {"bare_pandas", KIND_COMMAND, argv_pandas, 8, NULL},
    {"cold_true", KIND_COLD_TRUE, argv_true, 1, NULL},
    {"cold_python", KIND_COLD_PYTHON, NULL, 1, NULL},
    {"warm_python_record", KIND_WARM, NULL, 1, "warm_python_first_output"},
    {"bubblewrap_true", KIND_COMMAND, argv_bwrap_true, 2, NULL},
    {"bubblewrap_python", KIND_COMMAND, argv_bwrap_python, 2, NULL},
    {"nsjail_true", KIND_COMMAND, argv_nsjail_true, 2, NULL},
    {"nsjail_python", KIND_COMMAND, argv_nsjail_python, 2, NULL},
    {"runsc_true", KIND_COMMAND, argv_runsc_true, 16, NULL},
    {"runsc_python", KIND_COMMAND, argv_runsc_python, 16, NULL},
};
#define CASES (sizeof cases / sizeof *cases)

struct session {
    const struct hc_bench_options *options;
    struct hc_engine *cold, *warm;
    uint64_t limits[HC_LIMIT_COUNT];
    struct hc_samples *samples[CASES], *first;
    const char *skipped[CASES];
    uint64_t wrong, leftovers, missed;
    struct hc_samples *provision, *run, *collect, *teardown;
};

static bool chosen(const struct session *session, const char *name)
{
    return session->options->only == NULL || json_object_get(session->options->only, name) != NULL;
}

static int cold_true(struct session *session, uint64_t *ret_us)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    struct hc_refusal refusal = {0};
    struct hc_hall *hall = NULL;
    struct hc_execution execution = {.argv = argv_true,
                                     .env = env,
                                     .input_inodes = 8,
                                     .min_grade = HC_GRADE_B,
                                     .stdin_fd = -1,
                                     .live_out = -1,
                                     .live_err = -1,
                                     .cancel_fd = -1,
                                     .warm_place = -1};
    struct hc_outcome outcome;
    int error = hc_engine_hall(session->cold, &hall, &refusal);
    if (error != 0)
        return error < 0 ? error : -ECANCELED;
    memcpy(execution.limits, session->limits, sizeof execution.limits);
    uint64_t began_us = hc_now_us();
    error = hc_execute(hall, &execution, &outcome);
    bool right = error == 0 && outcome.started == HC_STARTED && outcome.exited && outcome.wait_status == 0;
    if (error == 0)
        error = hc_execute_end(hall, &outcome);
    *ret_us = hc_now_us() - began_us;
    session->leftovers += outcome.residue.processes + outcome.residue.mounts + outcome.residue.cgroups;
    hc_outcome_done(&outcome);
    hc_hall_make_ahead(hall, CELLS_AHEAD);
    return error < 0 ? error : right ? 0 : -ECANCELED;
}

static int python(struct session *session, bool warm, uint64_t *ret_us)
{
    struct hc_job *job = NULL;
    uint64_t began_ns = hc_now_ns();
    int error = hc_bench_python(warm ? session->warm : session->cold, hc_bench_code, &job, ret_us);
    if (job == NULL)
        return error;
    const struct hc_outcome *outcome = &job->outcome;
    session->leftovers += outcome->residue.processes + outcome->residue.mounts + outcome->residue.cgroups;
    session->missed += warm && !outcome->warm;
    if (error == 0 && warm) {
        hc_samples_add(session->first, (outcome->first_output_at_ns - began_ns) / 1000);
        hc_samples_add(session->provision, outcome->times.provision_us);
        hc_samples_add(session->run, outcome->times.run_us);
        hc_samples_add(session->collect, job->collect_us);
        hc_samples_add(session->teardown, outcome->times.teardown_us);
    }
    hc_job_done(job);
    free(job);
    return error;
}

static void measure(struct session *session, size_t i, unsigned round)
{
    const struct bench_case *item = &cases[i];
    uint64_t us = 0;
    int error;
    if (session->skipped[i] != NULL || round % item->every != 0)
        return;
    (void)usleep(PAUSE_US);
    if (item->kind == KIND_COMMAND)
        error = hc_bench_command(item->argv, &us);
    else if (item->kind == KIND_COLD_TRUE)
        error = cold_true(session, &us);
    else
        error = python(session, item->kind == KIND_WARM, &us);
    if (error == 0)
        hc_samples_add(session->samples[i], us);
    else if (item->kind == KIND_COMMAND && round == 0)
        session->skipped[i] = "does not work here";
    else
        session->wrong++;
}

static void shuffle(size_t order[CASES])
{
    for (size_t i = CASES - 1; i > 0; i--) {
        uint32_t random = 0;
        (void)!getrandom(&random, sizeof random, 0);
        size_t other = random % (i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static void rounds(struct session *session)
{
    size_t order[CASES];
    for (size_t i = 0; i < CASES; i++)
        order[i] = i;
    for (unsigned round = 0; round < session->options->rounds; round++) {
        shuffle(order);
        for (size_t i = 0; i < CASES; i++)
            measure(session, order[i], round);
        if (session->options->progress != NULL)
            session->options->progress(session->options->progress_context, "rounds", round + 1,
                                       session->options->rounds);
    }
}

static json_t *row_of(const char *name, struct hc_samples *samples, const char *skipped)
{
    if (samples == NULL || samples->count == 0)
        return json_pack("{s:s, s:s}", "name", name, "skipped", skipped != NULL ? skipped : "no sample");
    hc_samples_sort(samples);
    return json_pack("{s:s, s:I, s:I, s:I, s:I}", "name", name, "p50_us",
                     (json_int_t)hc_samples_percentile(samples, 50), "p95_us",
                     (json_int_t)hc_samples_percentile(samples, 95), "p99_us",
                     (json_int_t)hc_samples_percentile(samples, 99), "n", (json_int_t)samples->count);
}

/* ---- the rest of the report ---- */

static json_t *throughput(const struct session *session, json_t *rows)
{
    static const struct {
        const char *name;
        enum hc_bench_work work;
    } works[] = {{"throughput_bare_python", HC_BENCH_BARE},
                 {"throughput_cold_python", HC_BENCH_COLD},
                 {"throughput_warm_python", HC_BENCH_WARM}};
    const struct hc_bench_options *options = session->options;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (!chosen(session, works[i].name) || options->seconds <= 0)
            continue;
        if (options->progress != NULL)
            options->progress(options->progress_context, works[i].name, (unsigned)i + 1, 3);
        bool absent = works[i].work == HC_BENCH_WARM && session->warm == NULL;
        double rate = absent ? -1 : hc_bench_rate(works[i].work, options->jobs, options->seconds);
        json_t *row = rate >= 0 ? json_pack("{s:s, s:f, s:i}", "name", works[i].name, "per_second", rate,
                                            "jobs", (int)options->jobs)
                                : json_pack("{s:s, s:s}", "name", works[i].name, "skipped",
                                            absent ? "no warm cells here" : "a run failed");
        (void)json_object_set_new(rows, works[i].name, row);
    }
    return rows;
}

/* Rates up to where a single caller is saturated. */
static json_t *burst(const struct session *session)
{
    static const double rates[] = {5, 10, 20, 40, 80, 160};
    json_t *list = json_array();
    for (size_t i = 0; session->options->burst && session->warm != NULL && i < sizeof rates / sizeof *rates;
         i++) {
        json_t *row = hc_bench_burst(rates[i], BURST_SECONDS);
        if (row == NULL)
            break;
        (void)json_array_append_new(list, row);
        if (json_integer_value(json_object_get(row, "p50_us")) > 1000000)
            break;
    }
    return list;
}

static json_t *stages(const struct session *session)
{
    json_t *object = json_object();
    const struct {
        const char *name;
        struct hc_samples *samples;
    } all[] = {{"provision", session->provision},
               {"run", session->run},
               {"collect", session->collect},
               {"teardown", session->teardown}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        (void)json_object_set_new(object, all[i].name, row_of(all[i].name, all[i].samples, "no warm run"));
    return object;
}

static json_t *machine(void)
{
    struct utsname names = {0};
    (void)uname(&names);
    return json_pack("{s:s, s:I}", "kernel", names.release, "cpus",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN));
}

static int prepare(struct session *session, struct hc_refusal *refusal)
{
    struct hc_spec spec;
    struct hc_effective effective;
    bool cold = false, warm = false;
    for (size_t i = 0; i < CASES; i++) {
        const struct bench_case *item = &cases[i];
        if (!chosen(session, item->name) && (item->second == NULL || !chosen(session, item->second)))
            session->skipped[i] = "not chosen";
        else if (item->kind == KIND_COMMAND && access(item->argv[0], X_OK) != 0)
            session->skipped[i] = "not installed";
        cold = cold || (session->skipped[i] == NULL &&
                        (item->kind == KIND_COLD_TRUE || item->kind == KIND_COLD_PYTHON));
        warm = warm || (session->skipped[i] == NULL && item->kind == KIND_WARM);
        session->samples[i] = calloc(1, sizeof **session->samples);
        if (session->samples[i] == NULL)
            return -ENOMEM;
    }
    struct hc_samples **others[] = {&session->first, &session->provision, &session->run, &session->collect,
                                    &session->teardown};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if ((*others[i] = calloc(1, sizeof **others[i])) == NULL)
            return -ENOMEM;
    int error = hc_spec_init(&spec);
    if (error == 0)
        error = hc_gate(&spec, NULL, &effective, refusal);
    hc_spec_done(&spec);
    memcpy(session->limits, effective.limits, sizeof session->limits);
    if (error == 0 && cold)
        error = hc_bench_engine(CELLS_AHEAD, 0, &session->cold, refusal);
    if (error != 0 || !(warm || session->options->burst || session->options->seconds > 0))
        return error;
    if (hc_bench_engine(0, WARM_CELLS, &session->warm, refusal) !=
        0) { /* the rest is worth knowing all the same */
        hc_engine_close(session->warm);
        session->warm = NULL;
        for (size_t i = 0; i < CASES; i++)
            if (cases[i].kind == KIND_WARM && session->skipped[i] == NULL)
                session->skipped[i] = refusal->message;
    }
    return 0;
}

static void session_done(struct session *session)
{
    hc_engine_close(session->cold);
    hc_engine_close(session->warm);
    for (size_t i = 0; i < CASES; i++)
        free(session->samples[i]);
    free(session->first);
    free(session->provision);
    free(session->run);
    free(session->collect);
    free(session->teardown);
}

int hc_bench(const struct hc_bench_options *options, json_t **ret_report, struct hc_refusal *refusal)
{
    __attribute__((cleanup(session_done))) struct session session = {.options = options};
    int error = prepare(&session, refusal);
    if (error != 0)
        return error;
    rounds(&session);
    json_t *rows = json_object();
    for (size_t i = 0; i < CASES; i++) {
        if (session.skipped[i] != NULL && strcmp(session.skipped[i], "not chosen") == 0)
            continue;
        (void)json_object_set_new(rows, cases[i].name,
                                  row_of(cases[i].name, session.samples[i], session.skipped[i]));
        if (cases[i].second != NULL)
            (void)json_object_set_new(rows, cases[i].second,
                                      row_of(cases[i].second, session.first, session.skipped[i]));
    }
    hc_engine_close(session.cold); /* what they keep ready would compete with the workers */
    session.cold = NULL;
    (void)throughput(&session, rows);
    *ret_report =
        json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "rows", rows, "stages", stages(&session), "burst",
                  burst(&session), "machine", machine(), "wrong", (json_int_t)session.wrong, "leftovers",
                  (json_int_t)session.leftovers, "missed", (json_int_t)session.missed);
    return *ret_report != NULL ? 0 : -ENOMEM;
}
