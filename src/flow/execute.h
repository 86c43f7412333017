/* One command in one fresh cell: start, watch, capture, end. The stages run, check and compile all go through
 * here. */
#ifndef HC_FLOW_EXECUTE_H
#define HC_FLOW_EXECUTE_H

#include "base/capture.h"
#include "cell/layers.h"
#include "cell/plan.h"
#include "flow/hall.h"

struct hc_execution {
    const char *const *argv;
    const char *const *env;
    const struct hc_plan_file *files;
    size_t file_count;
    uint64_t limits[HC_LIMIT_COUNT]; /* effective, nothing automatic left */
    /* On top of the disk and inode limits: what the files above need, so that a run's own space does not
     * depend on them. */
    uint64_t input_bytes, input_inodes;
    uint64_t allow_layers;
    enum hc_grade min_grade;
    int stdin_fd;            /* -1: end of file at once */
    bool stdin_after_output; /* nothing of it is passed before the program has written to its output */
    int live_out;            /* descriptors that get the output as it comes; -1: none */
    int live_err;
    bool live_visible_out; /* escape sequences made visible */
    bool live_visible_err;
    int cancel_fd;    /* readable: the caller wants the run to end; -1: none */
    int warm_place;   /* of the warm host whose cells fit; -1: an empty cell */
    bool warm_only;   /* a ready cell or none */
    int warm_wait_ms; /* how long to wait for one; with none in time an empty cell is taken */
    /* Called once when the program has been let go: work of ours that can overlap with its run. */
    void (*meanwhile)(void *context);
    void *meanwhile_context;
};

/* Why the library ended a run, if it did. */
struct hc_hits {
    bool wall, cpu, memory, host_memory, processes, disk, inodes, output, output_total, cancelled;
    bool killed_for_wall, killed_for_cpu, killed_for_output, killed_for_memory, killed_for_cancel,
        killed_for_fault;
};

#define HC_CALLS_MAX 200

struct hc_usage {
    uint64_t wall_us;
    uint64_t cpu_us, cpu_user_us, cpu_system_us;
    uint64_t memory_peak_bytes;
    uint64_t processes_peak; /* without init; 0: unknown */
    uint64_t scratch_bytes, scratch_inodes;
    bool has_cpu, has_split, has_memory_peak;
    const char *cpu_meter, *memory_meter, *processes_meter;
};

struct hc_times {
    uint64_t provision_us, run_us, collect_us, teardown_us;
};

struct hc_outcome {
    enum { HC_NEVER_STARTED, HC_STARTED } started;
    struct hc_setup_failure
        failure; /* of HC_NEVER_STARTED, or when the host failed later (failure.error != 0) */
    bool grade_too_low;
    bool exited; /* wait_status is that of the main process */
    int wait_status;
    struct hc_hits hits;
    struct hc_usage usage;
    struct hc_captured out, err;
    struct hc_captured in; /* what was taken from the caller's standard input; data NULL: there was none */
    struct hc_call *calls;
    size_t call_count;
    uint64_t calls_omitted;
    uint64_t exec_at_ns;         /* CLOCK_MONOTONIC */
    uint64_t first_output_at_ns; /* when the first byte was read; 0: there was none */
    struct hc_cell_facts facts;
    struct hc_layer_results layers;
    bool attested_after_exec;
    char *mounts; /* mountinfo as attested */
    struct hc_residue residue;
    bool has_residue;
    struct hc_times times;
    bool made_ahead;
    bool warm;
    uint64_t cell_slot;
    uint32_t host_uid, host_gid;
    uint64_t oom_kills;
    struct hc_cell_handle *cell; /* until hc_execute_end */
};

/* How much of a wanted hard limit (RLIMIT_*) a process below this one can get: all of it, or what the caller
 * has. */
uint64_t hc_hard_limit_room(int resource, uint64_t wanted);

/* Runs to the end of every process of the cell. 0: `ret_outcome` tells; negative errno: a fault of ours. The
 * cell, and with it the working folder, lives on until hc_execute_end. */
int hc_execute(struct hc_hall *hall, const struct hc_execution *execution, struct hc_outcome *ret_outcome);

/* Destroys the cell and fills residue and teardown time. */
int hc_execute_end(struct hc_hall *hall, struct hc_outcome *outcome);

void hc_outcome_done(struct hc_outcome *outcome);

#endif
