/* The closed lists of hotcell: statuses, causes, limits, layers, set-up stages.
 *
 * Every parser, help text, schema and document is made from these rows; nothing repeats them.
 */
#ifndef HC_CELL_WORDS_H
#define HC_CELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hc_state { HC_STATE_FINISHED, HC_STATE_REFUSED, HC_STATE_FAULT, HC_STATE_COUNT };

enum hc_status {
    HC_STATUS_OK,
    HC_STATUS_SYNTAX_ERROR,
    HC_STATUS_COMPILE_ERROR,
    HC_STATUS_RUNTIME_ERROR,
    HC_STATUS_TIMEOUT,
    HC_STATUS_MEMORY_LIMIT,
    HC_STATUS_PROCESS_LIMIT,
    HC_STATUS_OUTPUT_LIMIT,
    HC_STATUS_DISK_LIMIT,
    HC_STATUS_POLICY_VIOLATION,
    HC_STATUS_REFUSED,
    HC_STATUS_CANCELLED,
    HC_STATUS_FAULT,
    HC_STATUS_COUNT
};

/* Where the exit code of the command line comes from for a status. */
enum hc_exit_rule { HC_EXIT_OF_PROGRAM, HC_EXIT_FIXED, HC_EXIT_BY_CAUSE };

struct hc_status_row {
    const char *name;
    enum hc_exit_rule exit_rule;
    int exit_code; /* for HC_EXIT_FIXED; the default for HC_EXIT_BY_CAUSE */
    const char *meaning;
};

enum hc_cause {
    HC_CAUSE_NONE, /* null in the record */
    HC_CAUSE_EXIT_CODE,
    HC_CAUSE_EXCEPTION,
    HC_CAUSE_SIGNAL,
    HC_CAUSE_CPU_TIME,
    HC_CAUSE_WALL_TIME,
    HC_CAUSE_MEMORY,
    HC_CAUSE_HOST_MEMORY,
    HC_CAUSE_PROCESSES,
    HC_CAUSE_OUTPUT_BYTES,
    HC_CAUSE_DISK_BYTES,
    HC_CAUSE_INODES,
    HC_CAUSE_SYSCALL,
    HC_CAUSE_MODULE,
    HC_CAUSE_CALL,
    HC_CAUSE_DEPENDENCY,
    HC_CAUSE_FIELD,
    HC_CAUSE_GRADE,
    HC_CAUSE_RUNTIME,
    HC_CAUSE_QUEUE_FULL,
    HC_CAUSE_CLIENT,
    HC_CAUSE_HOST,
    HC_CAUSE_COUNT
};

struct hc_cause_row {
    const char *name;
    int exit_code; /* of `hotcell run` when the status is refused, cancelled or fault; 0: the status decides
                    */
    const char *meaning;
};

enum hc_unit { HC_UNIT_US, HC_UNIT_BYTES, HC_UNIT_COUNT_OF, HC_UNIT_MILLI_CPUS };

enum hc_limit {
    HC_LIMIT_WALL,
    HC_LIMIT_CPU,
    HC_LIMIT_MEMORY,
    HC_LIMIT_PROCESSES,
    HC_LIMIT_CPUS,
    HC_LIMIT_DISK,
    HC_LIMIT_INODES,
    HC_LIMIT_OPEN_FILES,
    HC_LIMIT_FILE_SIZE,
    HC_LIMIT_STACK,
    HC_LIMIT_OUTPUT,
    HC_LIMIT_OUTPUT_TOTAL,
    HC_LIMIT_ARTIFACTS,
    HC_LIMIT_ARTIFACT_SIZE,
    HC_LIMIT_ARTIFACT_COUNT,
    HC_LIMIT_IO,
    HC_LIMIT_COUNT
};

#define HC_LIMIT_AUTO                                                                                        \
    UINT64_MAX          /* the default follows from other limits (disk, inodes, output_total, file_size) */
#define HC_LIMIT_NONE 0 /* never a value somebody can ask for: zero is refused */

struct hc_limit_row {
    const char *name; /* in the record */
    const char *flag; /* on the command line; NULL: not offered */
    enum hc_unit unit;
    uint64_t default_value; /* of the profile `standard` */
    uint64_t max_value;     /* of the profile `standard` */
    uint64_t min_value;     /* below it nothing can start */
    const char *enforced_by;
    const char *meaning;
};

enum hc_grade { HC_GRADE_A, HC_GRADE_B, HC_GRADE_C, HC_GRADE_D };

enum hc_layer {
    HC_LAYER_USER_NAMESPACE,
    HC_LAYER_PID_NAMESPACE,
    HC_LAYER_MOUNT_NAMESPACE,
    HC_LAYER_NETWORK_NAMESPACE,
    HC_LAYER_IPC_NAMESPACE,
    HC_LAYER_UTS_NAMESPACE,
    HC_LAYER_CGROUP_NAMESPACE,
    HC_LAYER_CELL_IDS,
    HC_LAYER_PRIVATE_ROOT,
    HC_LAYER_READ_ONLY_ROOT,
    HC_LAYER_SCRATCH_QUOTA,
    HC_LAYER_DEVICES,
    HC_LAYER_PRIVATE_PROC,
    HC_LAYER_NO_NESTED_NAMESPACES,
    HC_LAYER_CAPABILITIES,
    HC_LAYER_SECUREBITS,
    HC_LAYER_NO_NEW_PRIVS,
    HC_LAYER_SECCOMP,
    HC_LAYER_ATTEMPTS,
    HC_LAYER_LANDLOCK,
    HC_LAYER_SESSION,
    HC_LAYER_KEYRING,
    HC_LAYER_RLIMITS,
    HC_LAYER_CORE_DUMPS_OFF,
    HC_LAYER_MEMORY_LIMIT,
    HC_LAYER_NO_SWAP,
    HC_LAYER_PROCESS_LIMIT,
    HC_LAYER_CPU_RATE,
    HC_LAYER_CPU_METER,
    HC_LAYER_CGROUP_KILL,
    HC_LAYER_OOM_PREFERENCE,
    HC_LAYER_PRESSURE,
    HC_LAYER_COUNT
};

enum hc_layer_state { HC_LAYER_UNKNOWN, HC_LAYER_APPLIED, HC_LAYER_UNAVAILABLE, HC_LAYER_ACCEPTED_ABSENT };

struct hc_layer_row {
    const char *name;
    bool primary; /* primary: the run is refused without it unless its absence is accepted by name */
    enum hc_grade grade_if_absent;
    bool removable;          /* its absence can be accepted with --allow; else it is always required */
    const char *attested_by; /* what is read back, and from where */
    const char *mend;        /* what an administrator does to get it */
};

/* Stages of making a cell and starting a program in it, in order: the word a refusal names. */
enum hc_stage {
    HC_STAGE_NONE,
    HC_STAGE_HALL_CONFIG,
    HC_STAGE_HALL_SLICE,
    HC_STAGE_HALL_CGROUP,
    HC_STAGE_HALL_NAMESPACES,
    HC_STAGE_HALL_IDS,
    HC_STAGE_HALL_ENVIRONMENT,
    HC_STAGE_HALL_ROOT,
    HC_STAGE_HALL_PROC,
    HC_STAGE_HALL_KEEPER,
    HC_STAGE_KEEPER_SETUP,
    HC_STAGE_REQUEST,
    HC_STAGE_CGROUP_LEAF,
    HC_STAGE_CLONE,
    HC_STAGE_CGROUP_JOIN,
    HC_STAGE_CGROUP_NAMESPACE,
    HC_STAGE_IDS,
    HC_STAGE_EXEC_INIT,
    HC_STAGE_NESTED_NAMESPACES,
    HC_STAGE_HOSTNAME,
    HC_STAGE_LOOPBACK,
    HC_STAGE_KEYRING,
    HC_STAGE_OOM_PREFERENCE,
    HC_STAGE_PROC,
    HC_STAGE_SCRATCH,
    HC_STAGE_PIVOT_ROOT,
    HC_STAGE_LANDLOCK,
    HC_STAGE_LIMITS,
    HC_STAGE_PLAN,
    HC_STAGE_INPUTS,
    HC_STAGE_FORK,
    HC_STAGE_STDIO,
    HC_STAGE_SESSION,
    HC_STAGE_RLIMITS,
    HC_STAGE_IDENTITY,
    HC_STAGE_CAPABILITIES,
    HC_STAGE_SECCOMP,
    HC_STAGE_ATTEST,
    HC_STAGE_EXEC,
    HC_STAGE_CAPTURE,
    HC_STAGE_COLLECT,
    HC_STAGE_TEARDOWN,
    HC_STAGE_RECORD,
    HC_STAGE_COUNT
};

extern const char *const hc_state_names[HC_STATE_COUNT];
extern const struct hc_status_row hc_statuses[HC_STATUS_COUNT];
extern const struct hc_cause_row hc_causes[HC_CAUSE_COUNT];
extern const struct hc_limit_row hc_limits[HC_LIMIT_COUNT];
extern const struct hc_layer_row hc_layers[HC_LAYER_COUNT];
extern const char *const hc_layer_state_names[4];
extern const char *const hc_stage_names[HC_STAGE_COUNT];

/* Index of the row with that name, or -1. */
int hc_layer_by_name(const char *name);
int hc_limit_by_name(const char *name);

#endif
