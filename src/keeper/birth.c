#include "keeper/keeper.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static _Noreturn void die(int socket, enum hc_stage stage, int error)
{
    struct hc_init_report report = {
        .version = HC_WIRE_VERSION, .kind = HC_INIT_FAILED, .stage = (uint32_t)stage, .error = error};
    (void)hc_message_send(socket, &report, sizeof report, NULL, 0, 0);
    _exit(1);
}

static void join_leaves(int socket, const int joins[HC_CONTROLLER_COUNT])
{
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++) {
        if (joins[c] < 0)
            continue;
        long n = HC_SYS(write(joins[c], "0", 1));
        if (n != 1)
            die(socket, HC_STAGE_CGROUP_JOIN, n < 0 ? (int)n : -EIO);
    }
}

static _Noreturn void exec_init(int socket)
{
    char *const argv[] = {(char *)"init", NULL};
    char *const envp[] = {NULL};
    int program = fcntl(HC_FD_KEEPER_INIT, F_DUPFD_CLOEXEC, 64);
    int kept = fcntl(socket, F_DUPFD_CLOEXEC, 64);
    if (program < 0 || kept < 0 || dup2(kept, HC_FD_INIT_SOCKET) < 0)
        die(socket, HC_STAGE_EXEC_INIT, -EMFILE);
    int error = (int)HC_SYS(syscall(SYS_execveat, program, "", argv, envp, AT_EMPTY_PATH));
    die(kept, HC_STAGE_EXEC_INIT, error);
}

/* In the child, until init's exec. v1 groups may be joined only while the child still has the keeper's id,
 * and the cgroup namespace must be rooted where the cell ends up: hence join, unshare, then the id. */
static _Noreturn void child(int socket, const int joins[HC_CONTROLLER_COUNT])
{
    char byte;
    join_leaves(socket, joins);
    int error = (int)HC_SYS(unshare(CLONE_NEWCGROUP));
    if (error < 0)
        die(socket, HC_STAGE_CGROUP_NAMESPACE, error);
    /* Wait for the id maps; the message itself is for init. */
    if (recv(socket, &byte, 1, MSG_PEEK) <= 0)
        _exit(1);
    if ((error = (int)HC_SYS(setresgid(0, 0, 0))) < 0 || (error = (int)HC_SYS(setresuid(0, 0, 0))) < 0)
        die(socket, HC_STAGE_IDS, error);
    /* An id change clears the parent-death signal: arm it after. The keeper is process 1 of the hall, so its
     * end takes us along in any case. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    exec_init(socket);
}

static int write_child(pid_t pid, const char *file, const char *content)
{
    char buffer[64];
    struct hc_text path = HC_TEXT(buffer);
    hc_text_string(&path, "/proc/");
    hc_text_number(&path, (uint64_t)pid);
    hc_text_string(&path, file);
    return hc_file_write(AT_FDCWD, buffer, content);
}

static int write_maps(pid_t pid, uint32_t slot)
{
    char map[96];
    struct hc_text text = HC_TEXT(map);
    hc_text_number(&text, HC_INSIDE_INIT_ID);
    hc_text_string(&text, " ");
    hc_text_number(&text, HC_CELL_INIT_ID(slot));
    hc_text_string(&text, " 1\n");
    hc_text_number(&text, HC_INSIDE_PAYLOAD_ID);
    hc_text_string(&text, " ");
    hc_text_number(&text, HC_CELL_PAYLOAD_ID(slot));
    hc_text_string(&text, " 1\n");
    /* setgroups first: dropping a group could otherwise gain access on negative ACLs (CVE-2014-8989). */
    int error = write_child(pid, "/setgroups", "deny");
    if (error == 0)
        error = write_child(pid, "/uid_map", map);
    if (error == 0)
        error = write_child(pid, "/gid_map", map);
    return error;
}

static int open_joins(const struct hc_cell *cell, int joins[HC_CONTROLLER_COUNT])
{
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++) {
        if (c == HC_CONTROLLER_V2 || cell->leaves[c] < 0)
            continue;
        joins[c] = (int)HC_SYS(openat(cell->leaves[c], "cgroup.procs", O_WRONLY | O_CLOEXEC));
        if (joins[c] < 0)
            return joins[c];
    }
    return 0;
}

static int clone_into(const struct hc_cell *cell, uint64_t flags, pid_t *ret_pid, int *ret_pidfd)
{
    int pidfd = -1;
    struct clone_args args = {
        .flags = flags | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP,
        .pidfd = (uint64_t)(uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)cell->leaves[HC_CONTROLLER_V2],
    };
    pid_t pid = (pid_t)HC_SYS(hc_clone3(&args));
    if (pid <= 0)
        return pid;
    *ret_pid = pid;
    *ret_pidfd = pidfd;
    return pid;
}

#define OWN_NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

/* A user namespace belongs to the effective id of its maker, and its owner has every power in it: that is how
 * a warm host may put a payload into this cell, and into no other host's. With SECBIT_NO_SETUID_FIXUP the
 * keeper keeps its capabilities meanwhile. */
static int clone_owned(const struct hc_cell *cell, pid_t *ret_pid, int *ret_pidfd)
{
    uid_t owner = HC_HOST_ID(cell->host);
    int error = (int)HC_SYS(setresuid((uid_t)-1, owner, (uid_t)-1));
    if (error < 0)
        return error;
    int pid = clone_into(cell, CLONE_NEWUSER | OWN_NAMESPACES, ret_pid, ret_pidfd);
    if (pid == 0)
        return 0;
    /* Never goes on with another id; dumpable again, or setns by pidfd and the id maps fail. */
    if (setresuid((uid_t)-1, 0, (uid_t)-1) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0)
        _exit(1);
    return pid;
}

static int clone_init(const struct hc_cell *cell, int socket, const int joins[HC_CONTROLLER_COUNT],
                      pid_t *ret_pid, int *ret_pidfd)
{
    int pid = cell->warm ? clone_owned(cell, ret_pid, ret_pidfd)
                         : clone_into(cell, CLONE_NEWUSER | OWN_NAMESPACES, ret_pid, ret_pidfd);
    if (pid == 0)
        child(socket, joins);
    return pid < 0 ? pid : 0;
}

/* Makes the groups, the socket and the process; `birth` clones and does not return in the child. */
static int bear(const struct hc_keeper *keeper, struct hc_cell *cell,
                int (*birth)(const struct hc_cell *, int, const int *, pid_t *, int *),
                enum hc_stage *ret_stage)
{
    int joins[HC_CONTROLLER_COUNT], pair[2];
    *ret_stage = HC_STAGE_CGROUP_LEAF;
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++)
        joins[c] = -1;
    int error = hc_leaf_make(keeper, cell);
    if (error == 0)
        error = open_joins(cell, joins);
    if (error == 0)
        *ret_stage = HC_STAGE_CLONE;
    if (error == 0 &&
        (error = (int)HC_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))) == 0) {
        cell->init_socket = pair[0];
        error = birth(cell, pair[1], joins, &cell->init_pid, &cell->init_pidfd);
        close(pair[1]);
    }
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++)
        hc_close_fd(&joins[c]);
    return error;
}

static int configure(const struct hc_keeper *keeper, const struct hc_cell *cell, uint32_t slot,
                     enum hc_init_mode mode)
{
    struct hc_init_config config = {
        .version = HC_WIRE_VERSION,
        .slot = slot,
        .allow_layers = keeper->config.allow_layers,
        .fault_nth = keeper->config.fault_program == HC_FAULT_INIT ? keeper->config.fault_nth : 0,
        .mode = mode,
    };
    return hc_message_send(cell->init_socket, &config, sizeof config, NULL, 0, MSG_DONTWAIT);
}

int hc_birth(const struct hc_keeper *keeper, struct hc_cell *cell, enum hc_stage *ret_stage)
{
    int error = bear(keeper, cell, clone_init, ret_stage);
    if (error < 0)
        return error;
    *ret_stage = HC_STAGE_IDS;
    if ((error = write_maps(cell->init_pid, cell->slot)) < 0)
        return error;
    return configure(keeper, cell, cell->slot, HC_INIT_OF_CELL);
}

static int clone_host(const struct hc_cell *cell, int socket, const int joins[HC_CONTROLLER_COUNT],
                      pid_t *ret_pid, int *ret_pidfd)
{
    int pid = clone_into(cell, CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS, ret_pid, ret_pidfd);
    if (pid == 0) {
        join_leaves(socket, joins);
        exec_init(socket);
    }
    return pid < 0 ? pid : 0;
}

int hc_birth_of_host(const struct hc_keeper *keeper, struct hc_host *host, enum hc_stage *ret_stage)
{
    int error = bear(keeper, &host->as_cell, clone_host, ret_stage);
    return error < 0 ? error : configure(keeper, &host->as_cell, host->place, HC_INIT_OF_HOST);
}
