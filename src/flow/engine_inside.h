/* What the files of the engine know of each other; nobody else includes it. */
#ifndef HC_FLOW_ENGINE_INSIDE_H
#define HC_FLOW_ENGINE_INSIDE_H

#include "cell/plan.h"
#include "flow/engine.h"
#include "flow/permit.h"
#include "flow/warm.h"

struct hc_identity {
    const struct hc_runtime *runtime;
    uint64_t read_at_us;
    char version[64], environment_sha256[65];
};

struct hc_engine {
    struct hc_identity identity;
    struct hc_engine_options options;
    char *programs;
    struct hc_runtimes *runtimes;
    struct hc_hall *hall;
    char *share;
    struct hc_warm warm;
    struct hc_policies policies;
    struct hc_redact_rules *redact; /* of this host, for every job */
};

/* Files that a compile step made, for the plan of the run's cell; their names are those of the listing. */
struct hc_compiled {
    struct hc_collection listing;
    struct hc_plan_file *files;
    size_t count;
};

enum hc_command_kind { HC_COMMAND_RUN, HC_COMMAND_CHECK, HC_COMMAND_COMPILE, HC_COMMAND_ASSERTS };

struct hc_command {
    const struct hc_runtime *runtime;
    bool whole_program; /* a run, and of the program as it came: a warm cell can take it */
    struct hc_strings argv;
    char **env;
    struct hc_plan_file *files;
    size_t file_count;
    void *hooks[HC_RUNTIME_FIXES_MAX]; /* contents of files of the runtime's */
    bool dialogue;                     /* with test code, over standard input and output */
    bool scanner;
};

/* The host failed at a stage: the verdict says so. Returns HC_REFUSED, by which callers end. */
int hc_job_fault(struct hc_job *job, enum hc_stage stage, int error);

/* The hall is built when the first job needs it. 0, HC_REFUSED (the job says why), or a negative errno. */
int hc_engine_need_hall(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime);
/* A fault of the host in words that say what to do; HC_REFUSED. */
int hc_refuse_by_failure(struct hc_job *job, const struct hc_setup_failure *failure, enum hc_cause cause);
/* The cell of an outcome is given back; a keeper that did not answer takes its hall along. */
void hc_engine_end_outcome(struct hc_engine *engine, struct hc_outcome *outcome);

/* Which of the installed runtimes runs the job, and whether its names fit. 0 or HC_REFUSED. */
int hc_settle_runtime(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime **ret_runtime);
/* The output of the compile step, or something in it. */
bool hc_is_compile_output(const struct hc_runtime *runtime, const char *name);

/* Arguments, environment and files of a command, for hc_command_run; hc_command_done in any case. */
int hc_command_build(struct hc_job *job, const struct hc_runtime *runtime, enum hc_command_kind kind,
                     const struct hc_compiled *compiled, struct hc_command *ret_command);
void hc_command_done(struct hc_command *command);
/* One command in a cell. 0 (the outcome says what happened), HC_REFUSED, or a negative errno. */
int hc_command_run(struct hc_engine *engine, struct hc_job *job, const struct hc_command *command,
                   const struct hc_live *live, int stdin_fd, struct hc_outcome *ret_outcome);
/* A stage that never started the program: refused, with the host's reason. */
int hc_refuse_not_started(struct hc_job *job, const struct hc_outcome *outcome);

/* The compile step, in a cell of its own. Its verdict stands in job->compile. */
int hc_compile(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime,
               const struct hc_live *live, struct hc_compiled *ret_compiled);
void hc_compiled_done(struct hc_compiled *compiled);
/* The verdict of a failed compile step is the run's. */
void hc_take_compile_verdict(struct hc_job *job, const struct hc_runtime *runtime);

/* Compile, run, collect, check, diagnose, accept, keep: in this order, all after the gate. */
int hc_run_stages(struct hc_engine *engine, struct hc_job *job, const struct hc_runtime *runtime,
                  const struct hc_live *live, const json_t *predicates, const char *out_folder);

#endif
