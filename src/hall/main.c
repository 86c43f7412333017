/* hotcell-hall: started with a configuration and one end of the keeper's socket, by the library as root or by
 * an ordinary user's door. */
#include "hall/hall.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

HC_FAULT_STORAGE

#define SLICE_MAX 256u

static struct hc_hall_config config;
static struct hc_environment environment;

void hc_hall_detail(struct hc_hall_failure *failure, enum hc_stage stage, const char *detail)
{
    failure->stage = stage;
    size_t n = strnlen(detail, sizeof failure->detail - 1);
    memcpy(failure->detail, detail, n);
    failure->detail[n] = '\0';
}

static void report(const struct hc_hall_failure *failure, int error)
{
    static struct hc_event event;
    event = (struct hc_event){.version = HC_WIRE_VERSION,
                              .kind = HC_EVENT_FAILED,
                              .stage = (uint32_t)failure->stage,
                              .error = error};
    memcpy(event.u.detail, failure->detail, sizeof event.u.detail);
    (void)hc_message_send(HC_FD_HALL_SOCKET, &event, hc_event_size(event.kind), NULL, 0, MSG_DONTWAIT);
}

static bool terminated(const char *text)
{
    return memchr(text, '\0', HC_PATH_SIZE) != NULL;
}

static int read_config(struct hc_hall_failure *failure)
{
    hc_hall_detail(failure, HC_STAGE_HALL_CONFIG, "configuration");
    long n = HC_SYS(pread(HC_FD_HALL_CONFIG, &config, sizeof config, 0));
    if (n < 0)
        return (int)n;
    if (n != (long)sizeof config || config.version != HC_WIRE_VERSION || config.size != sizeof config ||
        config.bind_count > HC_BIND_MAX || config.slice_count == 0 || config.slice_count > SLICE_MAX ||
        !terminated(config.keeper_path) || !terminated(config.init_path))
        return -EPROTO;
    for (uint32_t i = 0; i < config.bind_count; i++)
        if (!terminated(config.binds[i].source) || !terminated(config.binds[i].target))
            return -EPROTO;
    /* An ordinary user's ranges are newuidmap's to judge. */
    if (config.id_base == 0 && geteuid() == 0)
        config.id_base = HC_ROOT_ID_BASE;
    if (config.gid_base == 0)
        config.gid_base = (uint32_t)config.id_base;
    if (config.id_base < 65536 || config.id_base > 0xfff00000u || config.gid_base < 65536 ||
        config.gid_base > 0xfff00000u)
        return -ERANGE;
    if (config.fault_program == HC_FAULT_HALL)
        hc_fault_arm(config.fault_nth);
    return 0;
}

/* Moves `fd` to `place`, which must not be open for anything still needed. Inherited by exec. */
static int place_fd(int fd, int place)
{
    return (int)HC_SYS(dup2(fd, place)) == place ? 0 : -EBADF;
}

static int become_keeper(const struct hc_groups *groups, uint32_t slice, const struct hc_ids *ids, int lock)
{
    struct hc_keeper_config keeper = {
        .version = HC_WIRE_VERSION,
        .controllers = groups->controllers,
        .v2_controllers = groups->v2_controllers,
        .slice = slice,
        .id_base = ids->uid_base,
        .gid_base = ids->gid_base,
        .ceiling_processes = config.ceiling_processes,
        .ceiling_memory_bytes = config.ceiling_memory_bytes,
        .allow_layers = config.allow_layers,
        .page_size = (uint64_t)sysconf(_SC_PAGESIZE),
        .fault_program = config.fault_program,
        .fault_nth = config.fault_nth,
    };
    int high[HC_CONTROLLER_COUNT + 3];
    int null = (int)HC_SYS(open("/cell/dev/null", O_RDONLY | O_CLOEXEC));
    int init = (int)HC_SYS(open("/bin/init", O_PATH | O_CLOEXEC));
    int settings = (int)HC_SYS(hc_memfd("keeper", 0));
    if (null < 0 || init < 0 || settings < 0)
        return -ENOENT;
    long n = HC_SYS(pwrite(settings, &keeper, sizeof keeper, 0));
    if (n != (long)sizeof keeper)
        return n < 0 ? (int)n : -EIO;
    /* First out of the way of the fixed places, then to them. */
    for (int i = 0; i < HC_CONTROLLER_COUNT; i++)
        high[i] = fcntl(groups->folders[i] >= 0 ? groups->folders[i] : null, F_DUPFD_CLOEXEC, 64);
    high[HC_CONTROLLER_COUNT] = fcntl(init, F_DUPFD_CLOEXEC, 64);
    high[HC_CONTROLLER_COUNT + 1] = fcntl(settings, F_DUPFD_CLOEXEC, 64);
    high[HC_CONTROLLER_COUNT + 2] = fcntl(lock, F_DUPFD_CLOEXEC, 64);
    int socket_high = fcntl(HC_FD_HALL_SOCKET, F_DUPFD_CLOEXEC, 64);
    int error = place_fd(socket_high, HC_FD_KEEPER_SOCKET);
    for (int i = 0; error == 0 && i < HC_CONTROLLER_COUNT + 3; i++)
        error = place_fd(high[i], HC_FD_KEEPER_CGROUPS + i);
    if (error == 0)
        error = (int)HC_SYS(hc_close_range(HC_FD_KEEPER_END, ~0u, 0));
    if (error < 0)
        return error;
    char *const argv[] = {(char *)"hotcell-keeper", NULL};
    char *const envp[] = {NULL};
    return (int)HC_SYS(execve("/bin/keeper", argv, envp));
}

static int take_ids(struct hc_hall_failure *failure)
{
    hc_hall_detail(failure, HC_STAGE_HALL_IDS, "setresuid");
    int error = hc_ids_become_root();
    /* The id change made us undumpable, and then our own /proc entries belong to the host's root. */
    if (error == 0)
        error = (int)HC_SYS(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
    return error;
}

static void inside(const struct hc_groups *groups, uint32_t slice, const struct hc_ids *ids, int lock,
                   int gate)
{
    struct hc_hall_failure failure = {0};
    char byte;
    if (read(gate, &byte, 1) != 1)
        _exit(1);
    int error = hc_environment_open(&config, &environment, &failure);
    if (error == 0)
        error = take_ids(&failure);
    if (error == 0)
        error = hc_root_build(&config, &environment, &failure);
    if (error == 0) {
        hc_hall_detail(&failure, HC_STAGE_HALL_KEEPER, "/bin/keeper");
        error = become_keeper(groups, slice, ids, lock);
    }
    report(&failure, error);
    _exit(1);
}

/* With it the guard can sweep as the hall's root when the hall is gone. */
static int open_namespace(pid_t child)
{
    char buffer[64];
    struct hc_text path = HC_TEXT(buffer);
    hc_text_string(&path, "/proc/");
    hc_text_number(&path, (uint64_t)child);
    hc_text_string(&path, "/ns/user");
    return open(buffer, O_RDONLY | O_CLOEXEC);
}

static int start_keeper(const struct hc_groups *groups, uint32_t slice, const struct hc_ids *ids, int lock,
                        pid_t *ret_child, int *ret_namespace, struct hc_hall_failure *failure)
{
    int gate[2];
    hc_hall_detail(failure, HC_STAGE_HALL_NAMESPACES, "pipe");
    int error = (int)HC_SYS(pipe2(gate, O_CLOEXEC));
    if (error < 0)
        return error;
    hc_autoclose int gate_read = gate[0], gate_write = gate[1];
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)groups->keeper_leaf,
    };
    hc_hall_detail(failure, HC_STAGE_HALL_NAMESPACES, "clone3");
    pid_t child = (pid_t)HC_SYS(hc_clone3(&args));
    if (child == 0) {
        hc_close_fd(&gate_write);
        inside(groups, slice, ids, lock, gate_read);
    }
    if (child < 0)
        return child;
    *ret_child = child;
    if ((error = hc_ids_map(child, ids, false, failure)) < 0)
        return error;
    *ret_namespace = ids->ordinary ? open_namespace(child) : -1;
    return (int)HC_SYS(write(gate_write, "g", 1)) == 1 ? 0 : -EPIPE;
}

/* Cells set their own limits, but can't go above what they inherit; a careless caller's `ulimit -H` must not
 * decide. Where the right to raise them is missing (CAP_SYS_RESOURCE) the library has taken the lower ones
 * into account. */
static void raise_hard_limits(void)
{
    static const int resources[] = {RLIMIT_CORE,    RLIMIT_CPU,      RLIMIT_FSIZE,      RLIMIT_STACK,
                                    RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING, RLIMIT_NOFILE};
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        struct rlimit limit;
        bool files = resources[i] == RLIMIT_NOFILE; /* has no infinity: fs.nr_open is the most */
        if (getrlimit((__rlimit_resource_t)resources[i], &limit) != 0)
            continue;
        limit.rlim_cur = files && limit.rlim_cur < 1024 ? 1024 : limit.rlim_cur;
        limit.rlim_max = !files ? RLIM_INFINITY : limit.rlim_max < 65536 ? 65536 : limit.rlim_max;
        if (setrlimit((__rlimit_resource_t)resources[i], &limit) == 0 || !files)
            continue;
        (void)getrlimit((__rlimit_resource_t)resources[i], &limit);
        limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
        (void)setrlimit((__rlimit_resource_t)resources[i], &limit);
    }
}

struct hc_ids hc_ids_of_slice(const struct hc_hall_config *from, uint32_t slice)
{
    return (struct hc_ids){.ordinary = geteuid() != 0,
                           .own_uid = geteuid(),
                           .own_gid = getegid(),
                           .uid_base = (uint32_t)from->id_base + slice * HC_HALL_IDS,
                           .gid_base = from->gid_base + slice * HC_HALL_IDS};
}

static volatile sig_atomic_t keeper_pid;

/* The library asks for this when the keeper does not go by itself. */
static void kill_keeper(int signal)
{
    (void)signal;
    if (keeper_pid > 0)
        (void)kill((pid_t)keeper_pid, SIGKILL);
}

int main(void)
{
    static struct hc_groups groups;
    struct hc_hall_failure failure = {0};
    uint32_t slice = 0;
    int lock = -1, namespace = -1;
    pid_t child = -1;
    (void)hc_close_range(HC_FD_HALL_SOCKET + 1, ~0u, 0);
    (void)fcntl(HC_FD_HALL_CONFIG, F_SETFD, FD_CLOEXEC);
    (void)fcntl(HC_FD_HALL_SOCKET, F_SETFD, FD_CLOEXEC);
    /* Ctrl-C on the caller's terminal must not keep the guard from sweeping. */
    (void)setsid();
    raise_hard_limits();
    int error = read_config(&failure);
    if (error == 0)
        error = hc_slice_take(&config, geteuid() != 0, &slice, &lock, &failure);
    const struct hc_ids ids = hc_ids_of_slice(&config, slice);
    if (error == 0)
        error = hc_groups_make(&config, slice, &ids, &groups, &failure);
    if (error == 0)
        error = start_keeper(&groups, slice, &ids, lock, &child, &namespace, &failure);
    if (error < 0) {
        report(&failure, error);
        if (child > 0)
            (void)kill(child, SIGKILL);
    }
    /* From here on the guard: nothing is read, nobody is answered. The lock stays, so that nobody takes the
     * slice while it is being swept. */
    (void)close(HC_FD_HALL_SOCKET);
    (void)close(HC_FD_HALL_CONFIG);
    keeper_pid = child;
    struct sigaction action = {.sa_handler = kill_keeper};
    (void)sigaction(SIGTERM, &action, NULL);
    if (child > 0)
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            continue;
    if (lock >= 0)
        hc_groups_sweep(&groups, slice, &ids, namespace);
    return error < 0 ? 1 : 0;
}
