/* hotcell bench: what a run costs beside the bare command and beside other sandboxes, in one session on one
 * machine.
 *
 * Every round takes all cases in a new random order, so that whatever else the machine does meets all of them
 * alike. A figure is worth something only beside another one of the same session: hence the ratios. */
#ifndef HC_BENCH_BENCH_H
#define HC_BENCH_BENCH_H

#include "flow/engine.h"

#include <jansson.h>

#define HC_BENCH_SAMPLES_MAX 8192

struct hc_samples {
    uint64_t us[HC_BENCH_SAMPLES_MAX];
    size_t count;
};

void hc_samples_add(struct hc_samples *samples, uint64_t us);
void hc_samples_sort(struct hc_samples *samples);
/* Of sorted samples; 0 without any. */
uint64_t hc_samples_percentile(const struct hc_samples *sorted, unsigned percent);

struct hc_bench_options {
    unsigned rounds;
    double seconds; /* of each throughput slice; 0: none */
    unsigned jobs;  /* at the same time, for throughput */
    bool burst;     /* arrival-rate sweep of warm runs */
    json_t *only;   /* NULL: all; an object with names as keys */
    void (*progress)(void *context, const char *what, unsigned done, unsigned of);
    void *progress_context;
};

/* Starts `argv` with its output into a pipe and waits; negative errno, or -ECANCELED when it did not end with
 * 0. */
int hc_bench_command(const char *const *argv, uint64_t *ret_us);

/* One JSON document: {"rows": {NAME: {"name", "p50_us", "p95_us", "p99_us", "n"} or {"name", "per_second",
 * "jobs"} or {"name", "skipped"}}, "stages": {...}, "memory": {...}, "burst": [...], "machine": {...},
 * "wrong": N, "leftovers": N}. A new reference. 0, HC_REFUSED, or negative errno. */
int hc_bench(const struct hc_bench_options *options, json_t **ret_report, struct hc_refusal *refusal);

/* The work of a throughput slice, in a process of its own. */
enum hc_bench_work { HC_BENCH_BARE, HC_BENCH_COLD, HC_BENCH_WARM };
/* Runs per second of `jobs` workers over `seconds`; negative: a run failed. */
double hc_bench_rate(enum hc_bench_work work, unsigned jobs, double seconds);

/* Latencies of warm runs that arrive at `per_second`: {"rate", "p50_us", "p95_us", "p99_us", "n", "missed",
 * "late"}; NULL on a failure. */
json_t *hc_bench_burst(double per_second, double seconds);

/* Opens an engine for Python alone and waits until its warm cells are ready. */
int hc_bench_engine(unsigned cells_ahead, unsigned warm_cells, struct hc_engine **ret_engine,
                    struct hc_refusal *refusal);
/* One run of Python code through the engine, its record made as text. The job is the caller's to release
 * (hc_job_done, free). */
int hc_bench_python(struct hc_engine *engine, const char *code, struct hc_job **ret_job, uint64_t *ret_us);

extern const char hc_bench_code[]; /* print(2**100) */
extern const char hc_bench_python_path[];

#endif
