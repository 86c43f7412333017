/* What a run costs beside the bare command and beside other sandboxes: side by side, in one interleaved
 * session.
 *
 *   bench [--rounds N] [--seconds S] [--only NAME]... [--json] [--programs DIR] [--list]
 *
 * Every round takes all cases in a new random order, so that whatever else the machine does meets all of them
 * alike; a figure is worth something only against another one of the same session, hence the column "x bare".
 * Runs as root, as the library does. Exit code: 0 all runs were right and left nothing behind, 1 one was not,
 * 2 wrong use, 77 nothing can be run here.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "flow/engine.h"
#include "flow/execute.h"
#include "flow/gate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SAMPLES_MAX   65536
#define CELLS_AHEAD   4
#define BURST_SETTLE  4 /* runs of a burst that use up what lay ready and are not counted */
#define BURST_COUNTED 4
#define PAUSE_US      5000
#define SLICES        3
#define WORKERS_MAX   2
#define ARGV_MAX      80

static const char python_code[] = "print(2**100)";
static const char python_answer[] = "1267650600228229401496703205376\n";

enum kind { KIND_TRUE, KIND_PYTHON, KIND_COUNT };

static const char *const argv_true[] = {"/bin/true", NULL};
static const char *const argv_python[] = {"/usr/bin/python3", "-c", python_code, NULL};
static const char *const *const argv_of[KIND_COUNT] = {argv_true, argv_python};
static const char *const answer_of[KIND_COUNT] = {"", python_answer};
static const char *const environment[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "TZ=UTC",
    "PYTHONDONTWRITEBYTECODE=1",         NULL};

struct samples {
    uint64_t us[SAMPLES_MAX];
    size_t count;
};

/* Where a run's time goes, as the library tells it, and what is left. */
enum span {
    SPAN_PROVISION,
    SPAN_RUN,
    SPAN_WALL,
    SPAN_AROUND,
    SPAN_READING,
    SPAN_TEARDOWN,
    SPAN_TOTAL,
    SPAN_COUNT
};
static const struct {
    const char *name, *meaning;
} spans[SPAN_COUNT] = {
    [SPAN_PROVISION] = {"provision", "cell taken, order sent, payload ready, attestation judged"},
    [SPAN_RUN] = {"run", "word to go .. everything in the cell dead, pipes drained"},
    [SPAN_WALL] = {"  wall", "  of it: exec .. exit of the program"},
    [SPAN_AROUND] = {"  around", "  of it: word to go .. exec, exit .. last process dead"},
    [SPAN_READING] = {"reading", "output kept, counters and scratch read"},
    [SPAN_TEARDOWN] = {"teardown", "cell destroyed, leftovers counted"},
    [SPAN_TOTAL] = {"total", "hc_execute .. hc_execute_end"},
};

struct bench_case;
typedef int (*case_run)(struct bench_case *item);

struct bench_case {
    const char *name;
    enum kind kind;
    case_run run; /* measures into `samples`; negative errno: a run went wrong */
    const char *skipped;
    const char *const *argv; /* of outside commands */
    struct hc_hall *hall;
    struct samples *samples, *spans[SPAN_COUNT];
    uint64_t not_ready; /* runs whose cell had to be made on the spot */
};

static struct {
    unsigned rounds;
    double seconds;
    const char *only[16];
    unsigned only_count;
    bool json, list;
    const char *programs;
    char folder[64]; /* temporary; bundles, a store */
    struct hc_effective effective;
    struct hc_bind binds[HC_BIND_MAX];
    uint32_t bind_count;
    uint64_t leftovers, wrong;
    uint64_t random;
    int peers; /* socket of the process without the cgroup2 tree */
} bench = {.rounds = 30, .seconds = 1.0, .peers = -1};

static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("bench: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

static uint64_t next_random(void)
{
    uint64_t z = (bench.random += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* ---- samples ---- */

static void add_sample(struct samples *samples, uint64_t us)
{
    if (samples->count < SAMPLES_MAX)
        samples->us[samples->count++] = us;
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void sort_samples(struct samples *samples)
{
    qsort(samples->us, samples->count, sizeof *samples->us, by_value);
}

static uint64_t percentile(const struct samples *sorted, unsigned percent)
{
    return sorted->count == 0 ? 0 : sorted->us[(sorted->count - 1) * percent / 100];
}

/* ---- outside commands ---- */

static int await_child(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

/* Start to reaped, streams to /dev/null. */
static int time_command(const char *const *argv, uint64_t *ret_us)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    pid_t pid = -1;
    if (error != 0)
        return -error;
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, 0, 1);
    if (getenv("HC_BENCH_STDERR") == NULL)
        (void)posix_spawn_file_actions_adddup2(&actions, 0, 2);
    uint64_t began_us = hc_now_us();
    error = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv,
                        (char *const *)(uintptr_t)environment);
    int outcome = error == 0 ? await_child(pid) : -error;
    *ret_us = hc_now_us() - began_us;
    (void)posix_spawn_file_actions_destroy(&actions);
    return outcome;
}

static int run_command(struct bench_case *item)
{
    uint64_t us = 0;
    int error = time_command(item->argv, &us);
    if (error == 0)
        add_sample(item->samples, us);
    return error;
}

/* The same after a pause, in which the caches cool and the other core halts: what a run in a ready cell is up
 * against. */
static int run_command_after_pause(struct bench_case *item)
{
    (void)usleep(PAUSE_US * 2);
    return run_command(item);
}

/* crun of Debian 12 refuses a hybrid hierarchy whose cgroup2 tree has a controller. It gets a process whose
 * mount namespace lacks that tree, which starts it and takes the time. */
static _Noreturn void serve_peers(int socket)
{
    char which;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        _exit(1);
    (void)umount2("/sys/fs/cgroup/unified", MNT_DETACH);
    while (recv(socket, &which, 1, 0) == 1) {
        char bundle[128], state[128];
        (void)snprintf(bundle, sizeof bundle, "%s/crun-%s", bench.folder,
                       which == KIND_TRUE ? "true" : "python");
        (void)snprintf(state, sizeof state, "%s/crun-state", bench.folder);
        const char *const argv[] = {"/usr/bin/crun", "--root", state,           "run",
                                    "--bundle",      bundle,   "hotcell-bench", NULL};
        uint64_t us = 0;
        int64_t answer = time_command(argv, &us);
        answer = answer < 0 ? answer : (int64_t)us;
        if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer)
            break;
    }
    _exit(0);
}

static int start_peers(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        serve_peers(pair[1]);
    }
    (void)close(pair[1]);
    bench.peers = pair[0];
    return pid < 0 ? -errno : 0;
}

static int run_crun(struct bench_case *item)
{
    char which = (char)item->kind;
    int64_t answer = -ECONNRESET;
    if (send(bench.peers, &which, 1, MSG_NOSIGNAL) != 1 || recv(bench.peers, &answer, sizeof answer, 0) <= 0)
        return -ECONNRESET;
    if (answer >= 0)
        add_sample(item->samples, (uint64_t)answer);
    return answer < 0 ? (int)answer : 0;
}

/* ---- crun's bundles ---- */

/* The calls that hotcell's own filter allows without a condition, so that both load a filter of like size. */
static json_t *allowed_calls(void)
{
    json_t *names = json_array();
    hc_autofree char *path = hc_printf("%s/share/filters/payload.x86_64.table", HC_BENCH_SOURCE);
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char line[512], name[64], rule[64];
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%*d %63s %63s", name, rule) == 2 && strcmp(rule, "allow") == 0)
            (void)json_array_append_new(names, json_string(name));
    if (file != NULL)
        (void)fclose(file);
    return names;
}

static const char bundle_mounts[] =
    "[{\"destination\":\"/"
    "proc\",\"type\":\"proc\",\"source\":\"proc\",\"options\":[\"nosuid\",\"noexec\",\"nodev\"]},"
    "{\"destination\":\"/"
    "dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\",\"strictatime\",\"mode=755\","
    "\"size=65536k\"]},"
    "{\"destination\":\"/dev/"
    "shm\",\"type\":\"tmpfs\",\"source\":\"shm\",\"options\":[\"nosuid\",\"noexec\",\"nodev\","
    "\"mode=1777\",\"size=65536k\"]},"
    "{\"destination\":\"/"
    "tmp\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\",\"nodev\",\"mode=1777\","
    "\"size=65536k\"]},"
    "{\"destination\":\"/usr\",\"type\":\"bind\",\"source\":\"/"
    "usr\",\"options\":[\"rbind\",\"ro\",\"nosuid\",\"nodev\"]},"
    "{\"destination\":\"/etc/alternatives\",\"type\":\"bind\",\"source\":\"/etc/"
    "alternatives\",\"options\":[\"rbind\",\"ro\","
    "\"nosuid\",\"nodev\"]}]";

static const char bundle_linux[] =
    "{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":\"mount\"},{"
    "\"type\":\"network\"},"
    "{\"type\":\"cgroup\"},{\"type\":\"user\"}],"
    "\"uidMappings\":[{\"containerID\":0,\"hostID\":100000,\"size\":65536}],"
    "\"gidMappings\":[{\"containerID\":0,\"hostID\":100000,\"size\":65536}],"
    "\"maskedPaths\":[\"/proc/kcore\",\"/proc/keys\",\"/proc/timer_list\",\"/proc/sched_debug\",\"/proc/"
    "scsi\"],"
    "\"readonlyPaths\":[\"/proc/bus\",\"/proc/fs\",\"/proc/irq\",\"/proc/sys\",\"/proc/sysrq-trigger\"],"
    "\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"}],\"memory\":{\"limit\":268435456},"
    "\"pids\":{\"limit\":64},\"cpu\":{\"quota\":100000,\"period\":100000}},"
    "\"cgroupsPath\":\"/hotcell-bench/crun\"}";

static json_t *bundle_process(enum kind kind)
{
    static const char *const sets[] = {"bounding", "effective", "inheritable", "permitted", "ambient"};
    json_t *argv = json_array(), *env = json_array(), *capabilities = json_object();
    for (size_t i = 0; argv_of[kind][i] != NULL; i++)
        (void)json_array_append_new(argv, json_string(argv_of[kind][i]));
    for (size_t i = 0; environment[i] != NULL; i++)
        (void)json_array_append_new(env, json_string(environment[i]));
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        (void)json_object_set_new(capabilities, sets[i], json_array());
    return json_pack("{s:b, s:{s:i, s:i}, s:o, s:o, s:s, s:o, s:[{s:s, s:i, s:i}], s:b}", "terminal", 0,
                     "user", "uid", 65534, "gid", 65534, "args", argv, "env", env, "cwd", "/tmp",
                     "capabilities", capabilities, "rlimits", "type", "RLIMIT_NOFILE", "hard", 256, "soft",
                     256, "noNewPrivileges", 1);
}

static int make_bundle(enum kind kind)
{
    hc_autofree char *folder = hc_printf("%s/crun-%s", bench.folder, kind == KIND_TRUE ? "true" : "python");
    hc_autofree char *path = hc_printf("%s/config.json", folder);
    hc_autofree char *root = hc_printf("%s/rootfs", bench.folder);
    if (folder == NULL || path == NULL || root == NULL)
        return -ENOMEM;
    json_t *system = json_loads(bundle_linux, 0, NULL);
    json_t *calls = allowed_calls();
    if (json_array_size(calls) > 0)
        (void)json_object_set_new(system, "seccomp",
                                  json_pack("{s:s, s:i, s:[s], s:[{s:O, s:s}]}", "defaultAction",
                                            "SCMP_ACT_ERRNO", "defaultErrnoRet", 38, "architectures",
                                            "SCMP_ARCH_X86_64", "syscalls", "names", calls, "action",
                                            "SCMP_ACT_ALLOW"));
    json_decref(calls);
    json_t *config = json_pack("{s:s, s:o, s:{s:s, s:b}, s:s, s:o, s:o}", "ociVersion", "1.0.2", "process",
                               bundle_process(kind), "root", "path", root, "readonly", 1, "hostname", "box",
                               "mounts", json_loads(bundle_mounts, 0, NULL), "linux", system);
    int failed =
        mkdir(folder, 0755) != 0 || config == NULL || json_dump_file(config, path, JSON_INDENT(1)) != 0;
    json_decref(config);
    return failed ? -EIO : 0;
}

static int make_rootfs(void)
{
    static const char *const folders[] = {
        "rootfs",     "rootfs/usr", "rootfs/etc",  "rootfs/etc/alternatives",
        "rootfs/dev", "rootfs/tmp", "rootfs/proc", "rootfs/sys"};
    static const char *const links[][2] = {
        {"usr/bin", "rootfs/bin"}, {"usr/lib", "rootfs/lib"}, {"usr/lib64", "rootfs/lib64"}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        hc_autofree char *path = hc_printf("%s/%s", bench.folder, folders[i]);
        if (path == NULL || mkdir(path, 0755) != 0)
            return -errno;
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        hc_autofree char *path = hc_printf("%s/%s", bench.folder, links[i][1]);
        if (path == NULL || symlink(links[i][0], path) != 0)
            return -errno;
    }
    return 0;
}

/* ---- the library ---- */

static int open_hall(struct hc_hall **ret_hall)
{
    struct hc_setup_failure failure = {0};
    struct hc_hall_options options = {
        .programs = bench.programs,
        .binds = bench.binds,
        .bind_count = bench.bind_count,
        .ceiling_processes = 4096,
        .ceiling_memory_bytes = 64ull << 30,
    };
    int error = hc_hall_open(&options, ret_hall, &failure);
    if (error == 0)
        return 0;
    say("no hall: stage %s: %s %s", hc_stage_names[failure.stage],
        strerror(failure.error != 0 ? -failure.error : -error), failure.detail);
    return failure.error != 0 ? failure.error : error;
}

static void add_bind(const char *path, bool required)
{
    if (bench.bind_count == HC_BIND_MAX || strlen(path) >= HC_PATH_SIZE)
        return;
    struct hc_bind *bind = &bench.binds[bench.bind_count++];
    (void)strcpy(bind->source, path);
    (void)strcpy(bind->target, path);
    bind->flags = required ? 0 : HC_BIND_OPTIONAL;
}

/* What the engine binds for Python. */
static int collect_binds(void)
{
    static const char *const top[] = {"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"};
    struct hc_runtimes *runtimes = NULL;
    struct hc_problem problem = {0};
    struct stat info;
    hc_autofree char *folder = hc_printf("%s/share/runtimes", HC_BENCH_SOURCE);
    const char *folders[] = {folder};
    add_bind("/usr", true);
    for (size_t i = 0; i < sizeof top / sizeof *top; i++)
        if (lstat(top[i], &info) == 0 && S_ISDIR(info.st_mode))
            add_bind(top[i], false);
    int error = folder != NULL ? hc_runtimes_load(folders, 1, &runtimes, &problem) : -ENOMEM;
    const struct hc_runtime *python = error == 0 ? hc_runtime_by_name(runtimes, "python") : NULL;
    for (size_t i = 0; python != NULL && i < python->etc_count; i++)
        add_bind(python->etc[i].path, python->etc[i].required);
    hc_runtimes_done(runtimes);
    return error;
}

static int settle_limits(void)
{
    struct hc_spec spec;
    struct hc_refusal refusal = {0};
    int error = hc_spec_init(&spec);
    if (error == 0)
        error = hc_gate(&spec, NULL, &bench.effective, &refusal);
    hc_spec_done(&spec);
    return error;
}

static bool right(const struct hc_outcome *outcome, enum kind kind)
{
    size_t n = strlen(answer_of[kind]);
    return outcome->started == HC_STARTED && outcome->exited && outcome->wait_status == 0 &&
           outcome->failure.error == 0 && outcome->has_residue && outcome->out.kept_bytes == n &&
           (n == 0 || memcmp(outcome->out.data, answer_of[kind], n) == 0);
}

static void tell_wrong(const struct hc_outcome *outcome)
{
    say("a run of the library went wrong: started %d, exited %d, status %#x, stage %s: %s",
        outcome->started == HC_STARTED, outcome->exited, (unsigned)outcome->wait_status,
        hc_stage_names[outcome->failure.stage], strerror(-outcome->failure.error));
}

static void add_spans(struct bench_case *item, const struct hc_outcome *outcome, uint64_t total_us)
{
    const struct hc_times *times = &outcome->times;
    uint64_t wall_us = outcome->usage.wall_us,
             known_us = times->provision_us + times->run_us + times->teardown_us;
    add_sample(item->spans[SPAN_PROVISION], times->provision_us);
    add_sample(item->spans[SPAN_RUN], times->run_us);
    add_sample(item->spans[SPAN_WALL], wall_us);
    add_sample(item->spans[SPAN_AROUND], times->run_us > wall_us ? times->run_us - wall_us : 0);
    add_sample(item->spans[SPAN_READING], total_us > known_us ? total_us - known_us : 0);
    add_sample(item->spans[SPAN_TEARDOWN], times->teardown_us);
    add_sample(item->spans[SPAN_TOTAL], total_us);
}

/* One run with the limits of the profile `standard`, taken from start to the cell's end. `item` may be NULL.
 */
static int run_library(struct hc_hall *hall, enum kind kind, struct bench_case *item)
{
    static __thread struct hc_outcome outcome;
    struct hc_execution execution = {
        .argv = argv_of[kind],
        .env = environment,
        .min_grade = HC_GRADE_D,
        .stdin_fd = -1,
        .live_out = -1,
        .live_err = -1,
        .cancel_fd = -1,
    };
    memcpy(execution.limits, bench.effective.limits, sizeof execution.limits);
    uint64_t began_us = hc_now_us();
    int error = hc_execute(hall, &execution, &outcome);
    int ended = hc_execute_end(hall, &outcome);
    uint64_t total_us = hc_now_us() - began_us;
    error = error < 0 ? error : ended;
    if (error == 0 && !right(&outcome, kind)) {
        tell_wrong(&outcome);
        error = -EBADMSG;
    }
    if (error == 0 && item != NULL) {
        add_sample(item->samples, total_us);
        add_spans(item, &outcome, total_us);
        item->not_ready += outcome.made_ahead ? 0 : 1;
    }
    bench.leftovers +=
        outcome.residue.processes + outcome.residue.mounts + outcome.residue.cgroups + outcome.residue.files;
    hc_outcome_done(&outcome);
    return error;
}

/* A cell that has been made lies as an unread event on the hall's socket. */
static int run_in_ready_cell(struct bench_case *item)
{
    hc_hall_make_ahead(item->hall, 1);
    struct pollfd wait = {.fd = hc_hall_socket(item->hall), .events = POLLIN};
    if (poll(&wait, 1, 10000) != 1)
        return -ETIMEDOUT;
    (void)usleep(PAUSE_US);
    return run_library(item->hall, item->kind, item);
}

/* As a busy service does it: cells are made ahead while others run, and no run waits for anything but a cell.
 */
static int run_back_to_back(struct bench_case *item)
{
    int error = 0;
    for (int i = 0; error == 0 && i < BURST_SETTLE + BURST_COUNTED; i++) {
        hc_hall_make_ahead(item->hall, CELLS_AHEAD);
        error = run_library(item->hall, item->kind, i < BURST_SETTLE ? NULL : item);
    }
    return error;
}

/* The hall is there, but nothing lies ready: the cell is made within the measured time. */
static int run_without_ready_cell(struct bench_case *item)
{
    return run_library(item->hall, item->kind, item);
}

/* ---- the cases ---- */

#define BWRAP(...)                                                                                           \
    {                                                                                                        \
        "/usr/bin/bwrap", "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534",             \
            "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc/alternatives", "/etc/alternatives", "--symlink", \
            "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", \
            "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp", "--die-with-parent",             \
            "--new-session", "--cap-drop", "ALL", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin",         \
            "--setenv", "HOME", "/tmp", "--setenv", "PYTHONDONTWRITEBYTECODE", "1", __VA_ARGS__, NULL        \
    }

static const char *const bwrap_true[] = BWRAP("/bin/true");
static const char *const bwrap_python[] = BWRAP("/usr/bin/python3", "-c", python_code);
static char one_shot_program[512], one_shot_store[128];
static const char *const one_shot[] = {one_shot_program, "run", "--store", "none", "-c", python_code, NULL};
static const char *const one_shot_stored[] = {one_shot_program, "run", "--store", one_shot_store, "-c",
                                              python_code,      NULL};

static struct bench_case cases[] = {
    {.name = "bare true", .kind = KIND_TRUE, .run = run_command, .argv = argv_true},
    {.name = "bare true, after a pause",
     .kind = KIND_TRUE,
     .run = run_command_after_pause,
     .argv = argv_true},
    {.name = "library true, ready cell", .kind = KIND_TRUE, .run = run_in_ready_cell},
    {.name = "library true, back to back", .kind = KIND_TRUE, .run = run_back_to_back},
    {.name = "library true, no cell ready", .kind = KIND_TRUE, .run = run_without_ready_cell},
    {.name = "bubblewrap true", .kind = KIND_TRUE, .run = run_command, .argv = bwrap_true},
    {.name = "crun true", .kind = KIND_TRUE, .run = run_crun},
    {.name = "bare python", .kind = KIND_PYTHON, .run = run_command, .argv = argv_python},
    {.name = "bare python, after a pause",
     .kind = KIND_PYTHON,
     .run = run_command_after_pause,
     .argv = argv_python},
    {.name = "library python, ready cell", .kind = KIND_PYTHON, .run = run_in_ready_cell},
    {.name = "library python, back to back", .kind = KIND_PYTHON, .run = run_back_to_back},
    {.name = "library python, no cell ready", .kind = KIND_PYTHON, .run = run_without_ready_cell},
    {.name = "hotcell run python", .kind = KIND_PYTHON, .run = run_command, .argv = one_shot},
    {.name = "hotcell run python, stored", .kind = KIND_PYTHON, .run = run_command, .argv = one_shot_stored},
    {.name = "bubblewrap python", .kind = KIND_PYTHON, .run = run_command, .argv = bwrap_python},
    {.name = "crun python", .kind = KIND_PYTHON, .run = run_crun},
};
#define CASE_COUNT (sizeof cases / sizeof *cases)

static bool of_library(const struct bench_case *item)
{
    return item->run == run_in_ready_cell || item->run == run_back_to_back ||
           item->run == run_without_ready_cell;
}

static bool bare(const struct bench_case *item)
{
    return item->run == run_command && item->argv == argv_of[item->kind];
}

static bool chosen(const char *name)
{
    for (unsigned i = 0; i < bench.only_count; i++)
        if (strstr(name, bench.only[i]) != NULL)
            return true;
    return bench.only_count == 0;
}

static int prepare_case(struct bench_case *item)
{
    if (!chosen(item->name) && !bare(item)) {
        item->skipped = "not asked for";
        return 0;
    }
    if (item->argv != NULL && access(item->argv[0], X_OK) != 0)
        item->skipped = "not installed";
    if (item->run == run_crun && access("/usr/bin/crun", X_OK) != 0)
        item->skipped = "not installed";
    if (item->kind == KIND_PYTHON && access(argv_python[0], X_OK) != 0)
        item->skipped = "no python";
    item->samples = calloc(1, sizeof *item->samples);
    for (int s = 0; s < SPAN_COUNT; s++)
        item->spans[s] = of_library(item) ? calloc(1, sizeof **item->spans) : NULL;
    if (item->samples == NULL)
        return -ENOMEM;
    if (item->skipped == NULL && of_library(item))
        return open_hall(&item->hall);
    return 0;
}

static int run_case(struct bench_case *item)
{
    if (item->skipped != NULL)
        return 0;
    int error = item->run(item);
    if (error < 0) {
        item->skipped = "a run failed";
        bench.wrong++;
        say("%s: %s", item->name, strerror(-error));
    }
    return error;
}

/* The first run of everything only warms caches; a case that cannot run here is left out, which is no failure
 * of peers. */
static void warm_up(void)
{
    for (size_t i = 0; i < CASE_COUNT; i++) {
        uint64_t wrong = bench.wrong;
        (void)run_case(&cases[i]);
        if (!of_library(&cases[i]) && bench.wrong > wrong && strncmp(cases[i].name, "hotcell", 7) != 0) {
            cases[i].skipped = "does not run here";
            bench.wrong = wrong;
        }
        if (cases[i].samples != NULL)
            cases[i].samples->count = 0;
        for (int s = 0; s < SPAN_COUNT; s++)
            if (cases[i].spans[s] != NULL)
                cases[i].spans[s]->count = 0;
        cases[i].not_ready = 0;
    }
}

static void run_rounds(void)
{
    size_t order[CASE_COUNT];
    for (size_t i = 0; i < CASE_COUNT; i++)
        order[i] = i;
    for (unsigned round = 0; round < bench.rounds; round++) {
        for (size_t i = CASE_COUNT - 1; i > 0; i--) {
            size_t other = next_random() % (i + 1), kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        for (size_t i = 0; i < CASE_COUNT; i++)
            (void)run_case(&cases[order[i]]);
    }
}

/* ---- throughput ---- */

enum work { WORK_BARE, WORK_LIBRARY, WORK_BWRAP, WORK_COUNT };
static const char *const work_names[WORK_COUNT] = {"bare python", "library python", "bubblewrap python"};
static const char *const *const work_argv[WORK_COUNT] = {argv_python, NULL, bwrap_python};

struct rate {
    double per_second[SLICES]; /* sorted */
    bool there;
};

static int work_once(enum work work, struct hc_hall *hall)
{
    uint64_t us;
    if (work != WORK_LIBRARY)
        return time_command(work_argv[work], &us);
    hc_hall_make_ahead(hall, CELLS_AHEAD);
    return run_library(hall, KIND_PYTHON, NULL);
}

struct tally {
    uint64_t runs, us, leftovers;
    int error;
};

/* A worker sets up, says so, waits for the common start, works for the slice and hands in its count. */
static _Noreturn void worker(enum work work, int socket)
{
    struct tally tally = {0};
    struct hc_hall *hall = NULL;
    char byte = 'r';
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench.leftovers = 0;
    if (work == WORK_LIBRARY)
        tally.error = open_hall(&hall);
    for (int i = 0; tally.error == 0 && i < 2; i++)
        tally.error = work_once(work, hall);
    if (send(socket, &byte, 1, MSG_NOSIGNAL) != 1 || recv(socket, &byte, 1, 0) != 1)
        _exit(1);
    uint64_t began_us = hc_now_us(), end_us = began_us + (uint64_t)(bench.seconds * 1e6);
    while (tally.error == 0 && hc_now_us() < end_us) {
        tally.error = work_once(work, hall);
        tally.runs++;
    }
    tally.us = hc_now_us() - began_us;
    tally.leftovers = bench.leftovers;
    (void)send(socket, &tally, sizeof tally, MSG_NOSIGNAL);
    hc_hall_close(hall);
    _exit(0);
}

static double measure_slice(enum work work, unsigned workers)
{
    int sockets[WORKERS_MAX], pair[2];
    pid_t pids[WORKERS_MAX];
    double rate = 0;
    char byte = 'g';
    for (unsigned i = 0; i < workers; i++) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 || (pids[i] = fork()) < 0)
            return -1;
        if (pids[i] == 0) {
            (void)close(pair[0]);
            worker(work, pair[1]);
        }
        (void)close(pair[1]);
        sockets[i] = pair[0];
    }
    for (unsigned i = 0; i < workers; i++)
        (void)!recv(sockets[i], &byte, 1, 0);
    for (unsigned i = 0; i < workers; i++)
        (void)!send(sockets[i], &byte, 1, MSG_NOSIGNAL);
    for (unsigned i = 0; i < workers; i++) {
        struct tally tally = {.error = -ECONNRESET};
        if (recv(sockets[i], &tally, sizeof tally, 0) != sizeof tally || tally.error != 0)
            rate = -1;
        else if (rate >= 0)
            rate += (double)tally.runs * 1e6 / (double)tally.us;
        bench.leftovers += tally.leftovers;
        (void)waitpid(pids[i], NULL, 0);
        (void)close(sockets[i]);
    }
    return rate;
}

static int by_double(const void *a, const void *b)
{
    double left = *(const double *)a, right_value = *(const double *)b;
    return left < right_value ? -1 : left > right_value;
}

static void measure_throughput(struct rate rates[WORK_COUNT][WORKERS_MAX])
{
    for (unsigned slice = 0; slice < SLICES; slice++)
        for (unsigned workers = 1; workers <= WORKERS_MAX; workers++)
            for (int work = 0; work < WORK_COUNT; work++) {
                struct rate *rate = &rates[work][workers - 1];
                if (slice == 0)
                    rate->there = work == WORK_LIBRARY || access(work_argv[work][0], X_OK) == 0;
                double got = rate->there ? measure_slice((enum work)work, workers) : 0;
                if (got < 0) {
                    rate->there = false;
                    bench.wrong += work == WORK_LIBRARY ? 1 : 0;
                    say("throughput of %s: a run failed", work_names[work]);
                }
                rate->per_second[slice] = got;
            }
    for (int work = 0; work < WORK_COUNT; work++)
        for (unsigned w = 0; w < WORKERS_MAX; w++)
            qsort(rates[work][w].per_second, SLICES, sizeof(double), by_double);
}

/* ---- memory ---- */

struct memory {
    uint64_t pss_kb, private_kb, rss_kb;
    unsigned processes;
};

enum holder { HOLDER_SELF, HOLDER_GUARD, HOLDER_KEEPER, HOLDER_CELLS, HOLDER_COUNT };
static const char *const holder_names[HOLDER_COUNT] = {"calling process (this bench)", "hall guard", "keeper",
                                                       "idle cells"};

struct memory_report {
    struct memory holders[HOLDER_COUNT];
    uint64_t group_bytes; /* what the cells' own memory groups are charged, kernel memory included */
    unsigned group_cells;
};

static uint64_t field_kb(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at != NULL ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void add_memory(pid_t pid, struct memory *memory)
{
    char path[64];
    hc_autofree void *data = NULL;
    size_t n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || hc_read_all_fd(fd, 65536, &data, &n) < 0)
        return;
    memory->rss_kb += field_kb(data, "\nRss:");
    memory->pss_kb += field_kb(data, "\nPss:");
    memory->private_kb += field_kb(data, "\nPrivate_Clean:") + field_kb(data, "\nPrivate_Dirty:");
    memory->processes++;
}

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *tail = strrchr(text, ')');
    int parent = -1;
    return tail != NULL && sscanf(tail, ") %*c %d", &parent) == 1 ? parent : -1;
}

static size_t children_of(pid_t parent, pid_t *ret_pids, size_t max)
{
    size_t count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder != NULL && count < max && (entry = readdir(folder)) != NULL;) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 0 && parent_of(pid) == parent)
            ret_pids[count++] = pid;
    }
    if (folder != NULL)
        (void)closedir(folder);
    return count;
}

static void add_group(const char *path, struct memory_report *report)
{
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[64];
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n <= 0)
        return;
    text[n] = '\0';
    report->group_bytes += strtoull(text, NULL, 10);
    report->group_cells++;
}

static void add_groups(uint32_t slice, unsigned cells, struct memory_report *report)
{
    char path[160];
    for (unsigned slot = 0; slot < cells; slot++) {
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup/memory/hotcell/%u/%u/memory.usage_in_bytes", slice,
                       slot);
        add_group(path, report);
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup/hotcell/%u/cells/%u/memory.current", slice, slot);
        add_group(path, report);
    }
}

/* The guard is our child, the keeper its, the cells' first processes the keeper's. */
static int measure_memory(struct memory_report *report)
{
    pid_t before[64], guards[64], keepers[4], inits[HC_CELL_MAX];
    struct hc_hall *hall = NULL;
    size_t old = children_of(getpid(), before, 64);
    int error = open_hall(&hall);
    if (error != 0)
        return error;
    hc_hall_make_ahead(hall, 8);
    (void)usleep(300000);
    size_t guard_count = children_of(getpid(), guards, 64);
    add_memory(getpid(), &report->holders[HOLDER_SELF]);
    for (size_t g = 0; g < guard_count; g++) {
        bool known = false;
        for (size_t i = 0; i < old; i++)
            known = known || before[i] == guards[g];
        if (known)
            continue;
        add_memory(guards[g], &report->holders[HOLDER_GUARD]);
        size_t keeper_count = children_of(guards[g], keepers, 4);
        for (size_t k = 0; k < keeper_count; k++) {
            add_memory(keepers[k], &report->holders[HOLDER_KEEPER]);
            size_t init_count = children_of(keepers[k], inits, HC_CELL_MAX);
            for (size_t i = 0; i < init_count; i++)
                add_memory(inits[i], &report->holders[HOLDER_CELLS]);
        }
    }
    add_groups(hc_hall_facts(hall)->slice, 8, report);
    hc_hall_close(hall);
    return 0;
}

/* ---- the host's counters ---- */

enum counter {
    COUNT_PROCESSES,
    COUNT_MOUNTS,
    COUNT_CGROUPS,
    COUNT_CGROUP2,
    COUNT_DYING,
    COUNT_KEYS,
    COUNT_OWN_FDS,
    COUNT_LOAD,
    COUNTERS
};
static const char *const counter_names[COUNTERS] = {
    "processes", "mounts seen here", "cgroups v1 (sum)",  "cgroup2 groups", "cgroup2 dying groups",
    "keys",      "own descriptors",  "load average x 100"};

static uint64_t count_lines(const char *path)
{
    FILE *file = fopen(path, "re");
    uint64_t lines = 0;
    for (int c; file != NULL && (c = getc(file)) != EOF;)
        lines += c == '\n' ? 1 : 0;
    if (file != NULL)
        (void)fclose(file);
    return lines;
}

static uint64_t count_entries(const char *path, bool numbers)
{
    DIR *folder = opendir(path);
    uint64_t count = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        count += !numbers || (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') ? 1 : 0;
    if (folder != NULL)
        (void)closedir(folder);
    return count;
}

static uint64_t count_cgroups(void)
{
    FILE *file = fopen("/proc/cgroups", "re");
    char line[256];
    uint64_t sum = 0;
    unsigned hierarchy, groups;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%*s %u %u", &hierarchy, &groups) == 2 && hierarchy > 0)
            sum += groups;
    if (file != NULL)
        (void)fclose(file);
    return sum;
}

static uint64_t cgroup2_stat(const char *field)
{
    static const char *const paths[] = {"/sys/fs/cgroup/cgroup.stat", "/sys/fs/cgroup/unified/cgroup.stat"};
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        FILE *file = fopen(paths[i], "re");
        char name[64];
        unsigned long long number;
        while (file != NULL && fscanf(file, "%63s %llu", name, &number) == 2)
            value = strcmp(name, field) == 0 ? number : value;
        if (file != NULL)
            (void)fclose(file);
    }
    return value;
}

static void read_counters(uint64_t counters[COUNTERS])
{
    counters[COUNT_PROCESSES] = count_entries("/proc", true);
    counters[COUNT_MOUNTS] = count_lines("/proc/self/mountinfo");
    counters[COUNT_CGROUPS] = count_cgroups();
    counters[COUNT_CGROUP2] = cgroup2_stat("nr_descendants");
    counters[COUNT_DYING] = cgroup2_stat("nr_dying_descendants");
    counters[COUNT_KEYS] = count_lines("/proc/keys");
    counters[COUNT_OWN_FDS] = count_entries("/proc/self/fd", true);
    double load = 0; /* no leftover, but it says how far to trust the rest */
    counters[COUNT_LOAD] = getloadavg(&load, 1) == 1 ? (uint64_t)(load * 100) : 0;
}

/* ---- the report ---- */

struct report {
    struct rate rates[WORK_COUNT][WORKERS_MAX];
    struct memory_report memory;
    uint64_t before[COUNTERS], after[COUNTERS];
    bool throughput, has_memory;
};

static const struct samples *bare_of(enum kind kind)
{
    for (size_t i = 0; i < CASE_COUNT; i++)
        if (cases[i].kind == kind && bare(&cases[i]))
            return cases[i].samples;
    return NULL;
}

static double times_bare(const struct bench_case *item)
{
    const struct samples *reference = bare_of(item->kind);
    uint64_t base = reference != NULL ? percentile(reference, 50) : 0;
    return base > 0 ? (double)percentile(item->samples, 50) / (double)base : 0;
}

static void print_cases(void)
{
    (void)printf("%-31s %6s %9s %9s %9s %8s\n", "start to ended, microseconds", "n", "p10", "p50", "p90",
                 "x bare");
    for (size_t i = 0; i < CASE_COUNT; i++) {
        const struct bench_case *item = &cases[i];
        if (i > 0 && item->kind != cases[i - 1].kind)
            (void)putchar('\n');
        if (item->samples == NULL)
            continue;
        if (item->samples->count == 0) {
            (void)printf("%-31s      - %s\n", item->name, item->skipped != NULL ? item->skipped : "no runs");
            continue;
        }
        (void)printf("%-31s %6zu %9llu %9llu %9llu %8.2f", item->name, item->samples->count,
                     (unsigned long long)percentile(item->samples, 10),
                     (unsigned long long)percentile(item->samples, 50),
                     (unsigned long long)percentile(item->samples, 90), times_bare(item));
        if (of_library(item) && item->run != run_without_ready_cell && item->not_ready > 0)
            (void)printf("  (%llu waited for a cell)", (unsigned long long)item->not_ready);
        (void)printf("%s\n", item->skipped != NULL ? "  stopped: a run failed" : "");
    }
}

static void print_spans(void)
{
    for (size_t i = 0; i < CASE_COUNT; i++) {
        const struct bench_case *item = &cases[i];
        if (item->samples == NULL || item->samples->count == 0 || item->spans[0] == NULL)
            continue;
        (void)printf("\n%-31s %9s %9s %9s\n", item->name, "p10", "p50", "p90");
        for (int s = 0; s < SPAN_COUNT; s++)
            (void)printf("  %-29s %9llu %9llu %9llu  %s\n", spans[s].name,
                         (unsigned long long)percentile(item->spans[s], 10),
                         (unsigned long long)percentile(item->spans[s], 50),
                         (unsigned long long)percentile(item->spans[s], 90), spans[s].meaning);
    }
}

static void print_throughput(const struct report *report)
{
    if (!report->throughput)
        return;
    (void)printf("\n%-31s %12s %12s %12s %8s\n", "runs per second", "1 worker", "2 workers", "2 w. best",
                 "x bare");
    double base = report->rates[WORK_BARE][1].per_second[SLICES / 2];
    for (int work = 0; work < WORK_COUNT; work++) {
        const struct rate *one = &report->rates[work][0], *two = &report->rates[work][1];
        if (one->there && two->there)
            (void)printf("%-31s %12.1f %12.1f %12.1f %8.2f\n", work_names[work], one->per_second[SLICES / 2],
                         two->per_second[SLICES / 2], two->per_second[SLICES - 1],
                         base > 0 ? two->per_second[SLICES / 2] / base : 0);
    }
}

static void print_rest(const struct report *report)
{
    if (report->has_memory) {
        (void)printf("\n%-31s %10s %9s %9s %9s\n", "resident memory, KB", "processes", "PSS", "private",
                     "RSS");
        for (int h = 0; h < HOLDER_COUNT; h++) {
            const struct memory *memory = &report->memory.holders[h];
            (void)printf("%-31s %10u %9llu %9llu %9llu\n", holder_names[h], memory->processes,
                         (unsigned long long)memory->pss_kb, (unsigned long long)memory->private_kb,
                         (unsigned long long)memory->rss_kb);
        }
        if (report->memory.group_cells > 0)
            (void)printf("%-31s %10u %9.0f KB a cell, kernel memory included\n",
                         "charged to the cells' groups", report->memory.group_cells,
                         (double)report->memory.group_bytes / 1024 / report->memory.group_cells);
    }
    (void)printf("\n%-31s %9s %9s\n", "counters of the host", "before", "after");
    for (int c = 0; c < COUNTERS; c++)
        (void)printf("%-31s %9llu %9llu\n", counter_names[c], (unsigned long long)report->before[c],
                     (unsigned long long)report->after[c]);
    (void)printf("\nleftovers of the library's runs: %llu; runs that went wrong: %llu\n",
                 (unsigned long long)bench.leftovers, (unsigned long long)bench.wrong);
}

static json_t *json_of(const struct samples *samples)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "n", (json_int_t)samples->count, "p10_us",
                     (json_int_t)percentile(samples, 10), "p50_us", (json_int_t)percentile(samples, 50),
                     "p90_us", (json_int_t)percentile(samples, 90));
}

static json_t *json_cases(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < CASE_COUNT; i++) {
        const struct bench_case *item = &cases[i];
        if (item->samples == NULL)
            continue;
        json_t *one = json_of(item->samples), *parts = json_object();
        (void)json_object_set_new(one, "name", json_string(item->name));
        (void)json_object_set_new(one, "x_bare", json_real(times_bare(item)));
        (void)json_object_set_new(one, "skipped",
                                  item->skipped != NULL ? json_string(item->skipped) : json_null());
        for (int s = 0; s < SPAN_COUNT && item->spans[s] != NULL; s++)
            (void)json_object_set_new(parts, spans[s].name + strspn(spans[s].name, " "),
                                      json_of(item->spans[s]));
        if (item->spans[0] != NULL) {
            (void)json_object_set_new(one, "spans", json_incref(parts));
            (void)json_object_set_new(one, "waited_for_a_cell", json_integer((json_int_t)item->not_ready));
        }
        json_decref(parts);
        (void)json_array_append_new(list, one);
    }
    return list;
}

static json_t *json_rates(const struct report *report)
{
    json_t *list = json_array();
    for (int work = 0; report->throughput && work < WORK_COUNT; work++)
        for (unsigned w = 0; w < WORKERS_MAX; w++)
            if (report->rates[work][w].there)
                (void)json_array_append_new(
                    list, json_pack("{s:s, s:i, s:f, s:f, s:f}", "name", work_names[work], "workers",
                                    (int)w + 1, "runs_per_s", report->rates[work][w].per_second[SLICES / 2],
                                    "lowest", report->rates[work][w].per_second[0], "highest",
                                    report->rates[work][w].per_second[SLICES - 1]));
    return list;
}

static json_t *json_memory(const struct memory_report *report)
{
    json_t *list = json_array();
    for (int h = 0; h < HOLDER_COUNT; h++)
        (void)json_array_append_new(list, json_pack("{s:s, s:i, s:I, s:I, s:I}", "name", holder_names[h],
                                                    "processes", (int)report->holders[h].processes, "pss_kb",
                                                    (json_int_t)report->holders[h].pss_kb, "private_kb",
                                                    (json_int_t)report->holders[h].private_kb, "rss_kb",
                                                    (json_int_t)report->holders[h].rss_kb));
    return json_pack("{s:o, s:I, s:i}", "holders", list, "group_bytes", (json_int_t)report->group_bytes,
                     "group_cells", (int)report->group_cells);
}

static int print_json(const struct report *report)
{
    json_t *counters = json_array();
    for (int c = 0; c < COUNTERS; c++)
        (void)json_array_append_new(counters, json_pack("{s:s, s:I, s:I}", "name", counter_names[c], "before",
                                                        (json_int_t)report->before[c], "after",
                                                        (json_int_t)report->after[c]));
    json_t *root =
        json_pack("{s:i, s:o, s:o, s:o, s:o, s:I, s:I}", "rounds", (int)bench.rounds, "cases", json_cases(),
                  "throughput", json_rates(report), "memory", json_memory(&report->memory), "counters",
                  counters, "leftovers", (json_int_t)bench.leftovers, "wrong", (json_int_t)bench.wrong);
    int failed = root == NULL || json_dumpf(root, stdout, JSON_INDENT(2)) != 0 || putchar('\n') == EOF;
    json_decref(root);
    return failed ? -EIO : 0;
}

/* ---- the whole ---- */

/* crun leaves the parent of its groups behind. */
static void remove_groups(void)
{
    static const char root[] = "/sys/fs/cgroup";
    DIR *folder = opendir(root);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        hc_autofree char *path = hc_printf("%s/%s/hotcell-bench", root, entry->d_name);
        if (path != NULL)
            (void)rmdir(path);
    }
    if (folder != NULL)
        (void)closedir(folder);
}

static void remove_folder(void)
{
    const char *const argv[] = {"/bin/rm", "-rf", bench.folder, NULL};
    uint64_t us;
    if (bench.folder[0] != '\0')
        (void)time_command(argv, &us);
    remove_groups();
}

static int set_up(void)
{
    (void)strcpy(bench.folder, "/tmp/hotcell-bench-XXXXXX");
    if (getrandom(&bench.random, sizeof bench.random, 0) != sizeof bench.random ||
        mkdtemp(bench.folder) == NULL)
        return -errno;
    (void)chmod(bench.folder, 0755);
    (void)snprintf(one_shot_program, sizeof one_shot_program, "%s/hotcell", bench.programs);
    (void)snprintf(one_shot_store, sizeof one_shot_store, "%s/store", bench.folder);
    int error = make_rootfs();
    for (int kind = 0; error == 0 && kind < KIND_COUNT; kind++)
        error = make_bundle((enum kind)kind);
    if (error == 0)
        error = collect_binds();
    if (error == 0)
        error = settle_limits();
    /* Before the halls are there: a fork would hold their sockets open. */
    if (error == 0)
        error = start_peers();
    for (size_t i = 0; error == 0 && i < CASE_COUNT; i++)
        error = prepare_case(&cases[i]);
    return error;
}

static void tear_down(void)
{
    for (size_t i = 0; i < CASE_COUNT; i++) {
        hc_hall_close(cases[i].hall);
        cases[i].hall = NULL;
        if (cases[i].samples != NULL)
            sort_samples(cases[i].samples);
        for (int s = 0; s < SPAN_COUNT; s++)
            if (cases[i].spans[s] != NULL)
                sort_samples(cases[i].spans[s]);
    }
    hc_close_fd(&bench.peers);
    (void)waitpid(-1, NULL, 0); /* the process that started crun */
}

static bool take_option(int argc, char **argv, int *at)
{
    const char *name = argv[*at], *value = *at + 1 < argc ? argv[*at + 1] : NULL;
    if (strcmp(name, "--json") == 0)
        return bench.json = true;
    if (strcmp(name, "--list") == 0)
        return bench.list = true;
    if (value == NULL)
        return false;
    ++*at;
    if (strcmp(name, "--rounds") == 0)
        return (bench.rounds = (unsigned)strtoul(value, NULL, 10)) > 0 && bench.rounds <= 10000;
    if (strcmp(name, "--seconds") == 0)
        return (bench.seconds = strtod(value, NULL)) >= 0 && bench.seconds <= 600;
    if (strcmp(name, "--programs") == 0)
        return (bench.programs = value)[0] == '/';
    if (strcmp(name, "--only") == 0 && bench.only_count < sizeof bench.only / sizeof *bench.only)
        return (bench.only[bench.only_count++] = value)[0] != '\0';
    return false;
}

int main(int argc, char **argv)
{
    static struct report report;
    bench.programs = hc_default_programs();
    for (int i = 1; i < argc; i++)
        if (!take_option(argc, argv, &i)) {
            (void)fputs("usage: bench [--rounds N] [--seconds S (0: no throughput)] [--only PART]... "
                        "[--json] [--list]\n"
                        "             [--programs DIR]   (--only throughput, --only memory: those parts)\n",
                        stderr);
            return 2;
        }
    for (size_t i = 0; bench.list && i < CASE_COUNT; i++)
        (void)puts(cases[i].name);
    if (bench.list)
        return 0;
    if (geteuid() != 0) {
        say("skipped: needs root");
        return 77;
    }
    read_counters(report.before);
    int error = set_up();
    if (error == 0) {
        warm_up();
        run_rounds();
    }
    tear_down();
    if (error == 0 && bench.seconds > 0 && chosen("throughput")) {
        measure_throughput(report.rates);
        report.throughput = true;
    }
    if (error == 0 && chosen("memory"))
        report.has_memory = measure_memory(&report.memory) == 0;
    remove_folder();
    (void)usleep(200000); /* the kernel takes network namespaces and groups down behind our back */
    read_counters(report.after);
    if (error != 0) {
        say("can't be set up: %s", strerror(error < 0 ? -error : EINVAL));
        return 1;
    }
    if (bench.json && print_json(&report) < 0)
        return 1;
    if (!bench.json) {
        print_cases();
        print_spans();
        print_throughput(&report);
        print_rest(&report);
    }
    return bench.wrong + bench.leftovers > 0 ? 1 : 0;
}
