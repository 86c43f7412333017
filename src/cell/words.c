#include "cell/words.h"

#include <string.h>

#define MIB (1024ull * 1024)
#define GIB (1024ull * MIB)
#define SECOND 1000000ull

const char *const hc_state_names[HC_STATE_COUNT] = {"finished", "refused", "fault"};

const struct hc_status_row hc_statuses[HC_STATUS_COUNT] = {
    [HC_STATUS_OK] = {"ok", HC_EXIT_OF_PROGRAM, 0, "the main process exited with 0 and no limit ended it"},
    [HC_STATUS_SYNTAX_ERROR] = {"syntax_error", HC_EXIT_OF_PROGRAM, 1,
                                "the run failed and the runtime's own check says that the program does not parse"},
    [HC_STATUS_COMPILE_ERROR] = {"compile_error", HC_EXIT_OF_PROGRAM, 1, "the compile stage failed; nothing ran"},
    [HC_STATUS_RUNTIME_ERROR] = {"runtime_error", HC_EXIT_OF_PROGRAM, 1,
                                 "the main process ended with a non-zero code or by a signal of its own"},
    [HC_STATUS_TIMEOUT] = {"timeout", HC_EXIT_FIXED, 124, "wall time or CPU time of the whole cell was used up"},
    [HC_STATUS_MEMORY_LIMIT] = {"memory_limit", HC_EXIT_FIXED, 137,
                                "the kernel killed a process of the cell for want of memory"},
    [HC_STATUS_PROCESS_LIMIT] = {"process_limit", HC_EXIT_FIXED, 1,
                                 "the run failed and the kernel had refused it a task"},
    [HC_STATUS_OUTPUT_LIMIT] = {"output_limit", HC_EXIT_FIXED, 1, "more output than output_total; killed"},
    [HC_STATUS_DISK_LIMIT] = {"disk_limit", HC_EXIT_FIXED, 1, "the run failed and its scratch space was full"},
    [HC_STATUS_POLICY_VIOLATION] = {"policy_violation", HC_EXIT_FIXED, 126, "started, then ended by a rule"},
    [HC_STATUS_REFUSED] = {"refused", HC_EXIT_BY_CAUSE, 125, "did not start"},
    [HC_STATUS_CANCELLED] = {"cancelled", HC_EXIT_FIXED, 130, "ended at the caller's wish"},
    [HC_STATUS_FAULT] = {"fault", HC_EXIT_FIXED, 125, "hotcell or its host failed; says nothing about the program"},
};

const struct hc_cause_row hc_causes[HC_CAUSE_COUNT] = {
    [HC_CAUSE_NONE] = {NULL, 0, "nothing to explain"},
    [HC_CAUSE_EXIT_CODE] = {"exit_code", 0, "non-zero exit code of the main process"},
    [HC_CAUSE_EXCEPTION] = {"exception", 0, "an exception that the runtime reported and nobody caught"},
    [HC_CAUSE_SIGNAL] = {"signal", 0, "the main process died by a signal that hotcell did not send"},
    [HC_CAUSE_CPU_TIME] = {"cpu_time", 0, "CPU time of all processes of the cell"},
    [HC_CAUSE_WALL_TIME] = {"wall_time", 0, "time since the program's exec"},
    [HC_CAUSE_MEMORY] = {"memory", 0, "memory of the cell reached its limit"},
    [HC_CAUSE_HOST_MEMORY] = {"host_memory", 0, "the host ran out of memory before the cell reached its limit"},
    [HC_CAUSE_PROCESSES] = {"processes", 0, "number of tasks in the cell"},
    [HC_CAUSE_OUTPUT_BYTES] = {"output_bytes", 0, "bytes on stdout and stderr"},
    [HC_CAUSE_DISK_BYTES] = {"disk_bytes", 0, "bytes in the scratch space"},
    [HC_CAUSE_INODES] = {"inodes", 0, "files in the scratch space"},
    [HC_CAUSE_SYSCALL] = {"syscall", 126, "a system call that the filter forbids"},
    [HC_CAUSE_MODULE] = {"module", 126, "a module that the profile does not allow"},
    [HC_CAUSE_CALL] = {"call", 126, "a call that the profile denies"},
    [HC_CAUSE_DEPENDENCY] = {"dependency", 126, "a dependency that the profile does not allow"},
    [HC_CAUSE_FIELD] = {"field", 125, "a field of the request; `error.field` names it"},
    [HC_CAUSE_GRADE] = {"grade", 125, "the layers that this host can apply do not reach the wanted grade"},
    [HC_CAUSE_RUNTIME] = {"runtime", 127, "the language is unknown or not installed"},
    [HC_CAUSE_QUEUE_FULL] = {"queue_full", 125, "too many runs at once"},
    [HC_CAUSE_CLIENT] = {"client", 130, "the caller cancelled"},
    [HC_CAUSE_HOST] = {"host", 125, "the host could not do what was asked; `error.detail` names the stage"},
};

const struct hc_limit_row hc_limits[HC_LIMIT_COUNT] = {
    [HC_LIMIT_WALL] = {"wall", "wall", HC_UNIT_US, 30 * SECOND, 600 * SECOND, 1000, "deadline",
                       "time from the program's exec to its end"},
    [HC_LIMIT_CPU] = {"cpu", "cpu", HC_UNIT_US, 30 * SECOND, 600 * SECOND, 1000, "deadline over cgroup usage",
                      "CPU time of all processes of the cell"},
    [HC_LIMIT_MEMORY] = {"memory", "memory", HC_UNIT_BYTES, 512 * MIB, 4 * GIB, 4 * MIB, "cgroup memory",
                         "memory of the whole cell, scratch space and page cache included, no swap"},
    [HC_LIMIT_PROCESSES] = {"processes", "processes", HC_UNIT_COUNT_OF, 64, 512, 1, "cgroup pids",
                            "tasks (processes and threads) at one time"},
    [HC_LIMIT_CPUS] = {"cpus", "cpus", HC_UNIT_MILLI_CPUS, 2000, 64000, 10, "cgroup cpu quota, period 20 ms",
                       "CPUs' worth of time per period"},
    [HC_LIMIT_DISK] = {"disk", "disk", HC_UNIT_BYTES, HC_LIMIT_AUTO, 2 * GIB, 4096, "tmpfs size",
                       "scratch space: working folder, /tmp and /dev/shm together (default: half of memory)"},
    [HC_LIMIT_INODES] = {"inodes", "inodes", HC_UNIT_COUNT_OF, HC_LIMIT_AUTO, 1000000, 16, "tmpfs nr_inodes",
                         "files in the scratch space (default: one per 16K of disk, at least 1024)"},
    [HC_LIMIT_OPEN_FILES] = {"open_files", "open-files", HC_UNIT_COUNT_OF, 256, 4096, 8, "RLIMIT_NOFILE",
                             "open descriptors of one process"},
    [HC_LIMIT_FILE_SIZE] = {"file_size", "file-size", HC_UNIT_BYTES, HC_LIMIT_AUTO, 4 * GIB, 1, "RLIMIT_FSIZE",
                            "size of one file (default: the disk limit)"},
    [HC_LIMIT_STACK] = {"stack", "stack", HC_UNIT_BYTES, 8 * MIB, 1 * GIB, 64 * 1024, "RLIMIT_STACK",
                        "stack of the main thread"},
    [HC_LIMIT_OUTPUT] = {"output", "output", HC_UNIT_BYTES, 2 * MIB, 64 * MIB, 1, "capture",
                         "bytes of stdout and stderr that are kept; above it head and tail"},
    [HC_LIMIT_OUTPUT_TOTAL] = {"output_total", "output-total", HC_UNIT_BYTES, HC_LIMIT_AUTO, 64 * GIB, 1, "capture",
                               "bytes of stdout and stderr after which the run is killed "
                               "(default: 64 times output, at least 64M)"},
    [HC_LIMIT_ARTIFACTS] = {"artifacts", "artifacts", HC_UNIT_BYTES, 40 * MIB, 1 * GIB, 1, "collector",
                            "bytes of all exported files together"},
    [HC_LIMIT_ARTIFACT_SIZE] = {"artifact_size", "artifact-size", HC_UNIT_BYTES, 5 * MIB, 1 * GIB, 1, "collector",
                                "bytes of one exported file"},
    [HC_LIMIT_ARTIFACT_COUNT] = {"artifact_count", "artifact-count", HC_UNIT_COUNT_OF, 20, 10000, 1, "collector",
                                 "number of exported files"},
    [HC_LIMIT_IO] = {"io", NULL, HC_UNIT_BYTES, HC_LIMIT_NONE, HC_LIMIT_NONE, 0, NULL,
                     "scratch lies in memory: there is no disk traffic to limit"},
};

const char *const hc_layer_state_names[4] = {"unavailable", "applied", "unavailable", "accepted_absent"};

const struct hc_layer_row hc_layers[HC_LAYER_COUNT] = {
    [HC_LAYER_USER_NAMESPACE] = {"user_namespace", true, HC_GRADE_D, false, "ns/user differs from the keeper's",
                                 "allow user namespaces (sysctl user.max_user_namespaces)"},
    [HC_LAYER_PID_NAMESPACE] = {"pid_namespace", true, HC_GRADE_D, false, "ns/pid, NSpid",
                                "a kernel with CONFIG_PID_NS"},
    [HC_LAYER_MOUNT_NAMESPACE] = {"mount_namespace", true, HC_GRADE_D, false, "ns/mnt", "a kernel with CONFIG_NAMESPACES"},
    [HC_LAYER_NETWORK_NAMESPACE] = {"network_namespace", true, HC_GRADE_D, false, "ns/net",
                                    "a kernel with CONFIG_NET_NS"},
    [HC_LAYER_IPC_NAMESPACE] = {"ipc_namespace", true, HC_GRADE_D, false, "ns/ipc", "a kernel with CONFIG_IPC_NS"},
    [HC_LAYER_UTS_NAMESPACE] = {"uts_namespace", true, HC_GRADE_D, false, "ns/uts", "a kernel with CONFIG_UTS_NS"},
    [HC_LAYER_CGROUP_NAMESPACE] = {"cgroup_namespace", true, HC_GRADE_B, true, "ns/cgroup, /proc/PID/cgroup",
                                   "a kernel with CONFIG_CGROUPS"},
    [HC_LAYER_CELL_IDS] = {"cell_ids", true, HC_GRADE_C, false, "Uid and Gid in /proc/PID/status",
                           "a range of subordinate ids (/etc/subuid, /etc/subgid)"},
    [HC_LAYER_PRIVATE_ROOT] = {"private_root", true, HC_GRADE_D, false, "mountinfo: root is the template",
                               "a kernel that lets a user namespace mount tmpfs (AppArmor: a profile with userns)"},
    [HC_LAYER_READ_ONLY_ROOT] = {"read_only_root", true, HC_GRADE_D, false,
                                 "mountinfo: nothing but scratch, proc and devices is writable", "Linux 5.12 or newer"},
    [HC_LAYER_SCRATCH_QUOTA] = {"scratch_quota", true, HC_GRADE_C, false, "fstatfs of the scratch tmpfs",
                                "a kernel with tmpfs in user namespaces"},
    [HC_LAYER_DEVICES] = {"devices", true, HC_GRADE_D, false, "mountinfo: six device nodes, nothing else in /dev",
                          "device nodes null, zero, full, random, urandom, tty on the host"},
    [HC_LAYER_PRIVATE_PROC] = {"private_proc", true, HC_GRADE_C, false, "mountinfo: proc with subset=pid, hidepid",
                               "an uncovered /proc on the host (systempaths=unconfined in a container)"},
    [HC_LAYER_NO_NESTED_NAMESPACES] = {"no_nested_namespaces", true, HC_GRADE_C, false,
                                       "user.max_user_namespaces reads 0 in the cell", "Linux 4.9 or newer"},
    [HC_LAYER_CAPABILITIES] = {"capabilities", true, HC_GRADE_D, false, "Cap* lines in /proc/PID/status are all zero",
                               "none needed"},
    [HC_LAYER_SECUREBITS] = {"securebits", true, HC_GRADE_B, false, "prctl PR_GET_SECUREBITS", "none needed"},
    [HC_LAYER_NO_NEW_PRIVS] = {"no_new_privs", true, HC_GRADE_D, false, "NoNewPrivs in /proc/PID/status",
                               "none needed"},
    [HC_LAYER_SECCOMP] = {"seccomp", true, HC_GRADE_D, false, "Seccomp in /proc/PID/status is 2",
                          "a kernel with CONFIG_SECCOMP_FILTER"},
    [HC_LAYER_ATTEMPTS] = {"attempts", false, HC_GRADE_B, false, "the filter's notification descriptor",
                           "Linux 5.5 or newer"},
    [HC_LAYER_LANDLOCK] = {"landlock", false, HC_GRADE_B, true, "landlock_restrict_self; ABI number",
                           "a kernel with Landlock in CONFIG_LSM"},
    [HC_LAYER_SESSION] = {"session", true, HC_GRADE_B, false, "own session, no terminal", "none needed"},
    [HC_LAYER_KEYRING] = {"keyring", false, HC_GRADE_B, true, "a new session keyring",
                          "a kernel with CONFIG_KEYS, and key quota"},
    [HC_LAYER_RLIMITS] = {"rlimits", true, HC_GRADE_B, false, "/proc/PID/limits", "raise the hard limits of the service"},
    [HC_LAYER_CORE_DUMPS_OFF] = {"core_dumps_off", true, HC_GRADE_B, false, "/proc/PID/limits: core file size 1",
                                 "none needed"},
    [HC_LAYER_MEMORY_LIMIT] = {"memory_limit", true, HC_GRADE_D, true, "the cgroup's limit, read back",
                               "the cgroup memory controller, writable for hotcell"},
    [HC_LAYER_NO_SWAP] = {"no_swap", false, HC_GRADE_B, true, "the cgroup's swap limit, or no swap on the host",
                          "swapoff -a, or swap accounting (swapaccount=1)"},
    [HC_LAYER_PROCESS_LIMIT] = {"process_limit", true, HC_GRADE_D, true, "pids.max, read back",
                                "the cgroup pids controller, writable for hotcell"},
    [HC_LAYER_CPU_RATE] = {"cpu_rate", false, HC_GRADE_B, true, "the cgroup's CPU quota, read back",
                           "the cgroup cpu controller, writable for hotcell"},
    [HC_LAYER_CPU_METER] = {"cpu_meter", true, HC_GRADE_C, true, "the cgroup's CPU usage counter",
                            "the cgroup v2 tree or the cpuacct controller"},
    [HC_LAYER_CGROUP_KILL] = {"cgroup_kill", true, HC_GRADE_C, false, "cgroup.kill of the cell's leaf",
                              "a mounted cgroup2 tree and Linux 5.14 or newer"},
    [HC_LAYER_OOM_PREFERENCE] = {"oom_preference", false, HC_GRADE_B, true, "oom_score_adj", "none needed"},
    [HC_LAYER_PRESSURE] = {"pressure", false, HC_GRADE_B, true, "/proc/pressure on the host",
                           "a kernel with CONFIG_PSI (psi=1 on the kernel command line)"},
};

const char *const hc_stage_names[HC_STAGE_COUNT] = {
    [HC_STAGE_NONE] = "none",
    [HC_STAGE_HALL_CONFIG] = "hall_config",
    [HC_STAGE_HALL_SLICE] = "hall_slice",
    [HC_STAGE_HALL_CGROUP] = "hall_cgroup",
    [HC_STAGE_HALL_NAMESPACES] = "hall_namespaces",
    [HC_STAGE_HALL_IDS] = "hall_ids",
    [HC_STAGE_HALL_ENVIRONMENT] = "hall_environment",
    [HC_STAGE_HALL_ROOT] = "hall_root",
    [HC_STAGE_HALL_PROC] = "hall_proc",
    [HC_STAGE_HALL_KEEPER] = "hall_keeper",
    [HC_STAGE_KEEPER_SETUP] = "keeper_setup",
    [HC_STAGE_REQUEST] = "request",
    [HC_STAGE_CGROUP_LEAF] = "cgroup_leaf",
    [HC_STAGE_CLONE] = "clone",
    [HC_STAGE_CGROUP_JOIN] = "cgroup_join",
    [HC_STAGE_CGROUP_NAMESPACE] = "cgroup_namespace",
    [HC_STAGE_IDS] = "ids",
    [HC_STAGE_EXEC_INIT] = "exec_init",
    [HC_STAGE_NESTED_NAMESPACES] = "nested_namespaces",
    [HC_STAGE_HOSTNAME] = "hostname",
    [HC_STAGE_LOOPBACK] = "loopback",
    [HC_STAGE_KEYRING] = "keyring",
    [HC_STAGE_OOM_PREFERENCE] = "oom_preference",
    [HC_STAGE_PROC] = "proc",
    [HC_STAGE_SCRATCH] = "scratch",
    [HC_STAGE_PIVOT_ROOT] = "pivot_root",
    [HC_STAGE_LANDLOCK] = "landlock",
    [HC_STAGE_LIMITS] = "limits",
    [HC_STAGE_PLAN] = "plan",
    [HC_STAGE_INPUTS] = "inputs",
    [HC_STAGE_FORK] = "fork",
    [HC_STAGE_STDIO] = "stdio",
    [HC_STAGE_SESSION] = "session",
    [HC_STAGE_RLIMITS] = "rlimits",
    [HC_STAGE_IDENTITY] = "identity",
    [HC_STAGE_CAPABILITIES] = "capabilities",
    [HC_STAGE_SECCOMP] = "seccomp",
    [HC_STAGE_ATTEST] = "attest",
    [HC_STAGE_EXEC] = "exec",
    [HC_STAGE_CAPTURE] = "capture",
    [HC_STAGE_COLLECT] = "collect",
    [HC_STAGE_TEARDOWN] = "teardown",
    [HC_STAGE_RECORD] = "record",
};

int hc_layer_by_name(const char *name)
{
    for (int i = 0; i < HC_LAYER_COUNT; i++)
        if (strcmp(hc_layers[i].name, name) == 0)
            return i;
    return -1;
}

int hc_limit_by_name(const char *name)
{
    for (int i = 0; i < HC_LIMIT_COUNT; i++)
        if (strcmp(hc_limits[i].name, name) == 0)
            return i;
    return -1;
}
