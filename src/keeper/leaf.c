#include "keeper/keeper.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool has_controller(const struct hc_keeper *keeper, enum hc_controller c)
{
    return (keeper->config.controllers >> c & 1) != 0;
}

static int parent_folder(const struct hc_keeper *keeper, enum hc_controller c)
{
    return c == HC_CONTROLLER_V2 ? keeper->cells_folder : HC_FD_KEEPER_CGROUPS + (int)c;
}

static void slot_name(char buffer[24], uint32_t slot)
{
    struct hc_text text = {.data = buffer, .size = 24};
    hc_text_number(&text, slot);
}

int hc_leaf_make(const struct hc_keeper *keeper, struct hc_cell *cell)
{
    char name[24];
    slot_name(name, cell->slot);
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++) {
        if (!has_controller(keeper, (enum hc_controller)c))
            continue;
        int parent = parent_folder(keeper, (enum hc_controller)c);
        int error = (int)HC_SYS(mkdirat(parent, name, 0755));
        if (error < 0)
            return error;
        cell->leaves[c] = (int)HC_SYS(openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (cell->leaves[c] < 0)
            return cell->leaves[c];
    }
    return 0;
}

unsigned hc_leaf_folders(const struct hc_cell *cell, int ret_fds[HC_CONTROLLER_COUNT])
{
    unsigned count = 0;
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++)
        if (c != HC_CONTROLLER_V2 && cell->leaves[c] >= 0)
            ret_fds[count++] = cell->leaves[c];
    return count;
}

int hc_leaf_lend(const struct hc_cell *cell, uint32_t id)
{
    int folders[HC_CONTROLLER_COUNT];
    unsigned count = hc_leaf_folders(cell, folders);
    for (unsigned i = 0; i < count; i++) {
        int error = (int)HC_SYS(fchownat(folders[i], "cgroup.procs", id, id, AT_SYMLINK_NOFOLLOW));
        if (error < 0)
            return error;
    }
    return 0;
}

/* Writes a limit and reads it back: a kernel may round, and a refused write must never pass for a limit. */
static int set_number(int folder, const char *name, uint64_t value, uint64_t *ret_applied)
{
    int error = hc_file_write_number(folder, name, value);
    if (error == 0)
        error = hc_file_read_number(folder, name, ret_applied);
    return error == 0 && *ret_applied > value ? -ERANGE : error;
}

static int limit_memory_v2(struct hc_cell *cell, int leaf, uint64_t bytes)
{
    int error = set_number(leaf, "memory.max", bytes, &cell->facts.memory_applied_bytes);
    if (error == 0)
        error = hc_file_write(leaf, "memory.oom.group", "1");
    if (error < 0)
        return error;
    uint64_t swap = UINT64_MAX;
    if (set_number(leaf, "memory.swap.max", 0, &swap) == 0 && swap == 0)
        cell->facts.layers_applied |= 1ull << HC_LAYER_NO_SWAP;
    return 0;
}

static int limit_memory_v1(struct hc_cell *cell, int leaf, uint64_t bytes)
{
    int error = set_number(leaf, "memory.limit_in_bytes", bytes, &cell->facts.memory_applied_bytes);
    if (error < 0)
        return error;
    uint64_t with_swap = 0;
    if (set_number(leaf, "memory.memsw.limit_in_bytes", bytes, &with_swap) == 0)
        cell->facts.layers_applied |= 1ull << HC_LAYER_NO_SWAP;
    return 0;
}

static int limit_memory(const struct hc_keeper *keeper, struct hc_cell *cell, uint64_t bytes)
{
    int error;
    if ((keeper->config.v2_controllers & HC_V2_MEMORY) != 0)
        error = limit_memory_v2(cell, cell->leaves[HC_CONTROLLER_V2], bytes);
    else if (has_controller(keeper, HC_CONTROLLER_MEMORY))
        error = limit_memory_v1(cell, cell->leaves[HC_CONTROLLER_MEMORY], bytes);
    else
        return 0; /* its absence was accepted by name, or the hall would not stand */
    if (error == 0)
        cell->facts.layers_applied |= 1ull << HC_LAYER_MEMORY_LIMIT;
    /* Without swap accounting a host without swap gives the same guarantee: only the head line of the table.
     */
    if (error == 0 && keeper->host_without_swap)
        cell->facts.layers_applied |= 1ull << HC_LAYER_NO_SWAP;
    return error;
}

static int limit_processes(const struct hc_keeper *keeper, struct hc_cell *cell, uint64_t tasks)
{
    int leaf = (keeper->config.v2_controllers & HC_V2_PIDS) != 0 ? cell->leaves[HC_CONTROLLER_V2]
                                                                 : cell->leaves[HC_CONTROLLER_PIDS];
    if (leaf < 0)
        return 0;
    int error = set_number(leaf, "pids.max", tasks + 1, &cell->facts.processes_applied); /* and our init */
    if (error == 0)
        cell->facts.layers_applied |= 1ull << HC_LAYER_PROCESS_LIMIT;
    return error;
}

static int limit_cpu_v2(struct hc_cell *cell, const struct hc_request *request)
{
    char buffer[64];
    struct hc_text text = HC_TEXT(buffer);
    hc_text_number(&text, request->cpu_quota_us);
    hc_text_string(&text, " ");
    hc_text_number(&text, request->cpu_period_us);
    int leaf = cell->leaves[HC_CONTROLLER_V2];
    int error = hc_file_write(leaf, "cpu.max", buffer);
    long n = error == 0 ? hc_file_read(leaf, "cpu.max", buffer, sizeof buffer) : error;
    if (n < 0)
        return (int)n;
    char *second = strchr(buffer, ' ');
    if (second == NULL || !hc_text_value(buffer, &cell->facts.cpu_quota_applied_us) ||
        !hc_text_value(second + 1, &cell->facts.cpu_period_applied_us))
        return -EBADMSG;
    return 0;
}

static int limit_cpu_v1(struct hc_cell *cell, const struct hc_request *request)
{
    int leaf = cell->leaves[HC_CONTROLLER_CPU];
    int error =
        set_number(leaf, "cpu.cfs_period_us", request->cpu_period_us, &cell->facts.cpu_period_applied_us);
    if (error == 0)
        error =
            set_number(leaf, "cpu.cfs_quota_us", request->cpu_quota_us, &cell->facts.cpu_quota_applied_us);
    return error;
}

static int limit_cpu(const struct hc_keeper *keeper, struct hc_cell *cell, const struct hc_request *request)
{
    int error;
    if ((keeper->config.v2_controllers & HC_V2_CPU) != 0)
        error = limit_cpu_v2(cell, request);
    else if (cell->leaves[HC_CONTROLLER_CPU] >= 0)
        error = limit_cpu_v1(cell, request);
    else
        return 0;
    if (error == 0 && cell->facts.cpu_quota_applied_us != request->cpu_quota_us)
        error = -ERANGE;
    if (error == 0)
        cell->facts.layers_applied |= 1ull << HC_LAYER_CPU_RATE;
    return error;
}

int hc_leaf_limit(const struct hc_keeper *keeper, struct hc_cell *cell, const struct hc_request *request)
{
    int error = limit_memory(keeper, cell, request->memory_bytes);
    if (error == 0)
        error = limit_processes(keeper, cell, request->processes);
    if (error == 0)
        error = limit_cpu(keeper, cell, request);
    return error;
}

/* cgroup v1 tells of an exhausted group only to an eventfd that was registered by name. */
static int oom_eventfd(int leaf, int oom_control)
{
    hc_autoclose int event = (int)HC_SYS(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (event < 0)
        return event;
    char buffer[64];
    struct hc_text text = HC_TEXT(buffer);
    hc_text_number(&text, (uint64_t)event);
    hc_text_string(&text, " ");
    hc_text_number(&text, (uint64_t)oom_control);
    int error = hc_file_write(leaf, "cgroup.event_control", buffer);
    return error < 0 ? error : hc_take_fd(&event);
}

struct meter_row {
    enum hc_meter meter;
    enum hc_controller controller;
    uint32_t v2_bit; /* 0: any cgroup2 leaf has it, or a v1 file */
    bool write;
    const char *file;
};

static const struct meter_row meter_rows[] = {
    {HC_METER_KILL, HC_CONTROLLER_V2, 0, true, "cgroup.kill"},
    {HC_METER_EVENTS, HC_CONTROLLER_V2, 0, false, "cgroup.events"},
    {HC_METER_CPU_STAT, HC_CONTROLLER_V2, 0, false, "cpu.stat"},
    {HC_METER_OOM, HC_CONTROLLER_V2, HC_V2_MEMORY, false, "memory.events"},
    {HC_METER_PEAK, HC_CONTROLLER_V2, HC_V2_MEMORY, false, "memory.peak"},
    {HC_METER_PIDS_EVENTS, HC_CONTROLLER_V2, HC_V2_PIDS, false, "pids.events"},
    {HC_METER_PIDS_PEAK, HC_CONTROLLER_V2, HC_V2_PIDS, false, "pids.peak"},
    {HC_METER_OOM, HC_CONTROLLER_MEMORY, 0, false, "memory.oom_control"},
    {HC_METER_PEAK, HC_CONTROLLER_MEMORY, 0, false, "memory.max_usage_in_bytes"},
    {HC_METER_FAILCNT, HC_CONTROLLER_MEMORY, 0, false, "memory.failcnt"},
    {HC_METER_PIDS_EVENTS, HC_CONTROLLER_PIDS, 0, false, "pids.events"},
    {HC_METER_PIDS_PEAK, HC_CONTROLLER_PIDS, 0, false, "pids.peak"},
    {HC_METER_CPUACCT, HC_CONTROLLER_CPUACCT, 0, false, "cpuacct.usage"},
    {HC_METER_CPUACCT_STAT, HC_CONTROLLER_CPUACCT, 0, false, "cpuacct.stat"},
};

unsigned hc_leaf_meters(const struct hc_keeper *keeper, const struct hc_cell *cell,
                        int ret_fds[HC_METER_COUNT], uint32_t *ret_meters)
{
    int by_meter[HC_METER_COUNT];
    unsigned count = 0;
    *ret_meters = 0;
    memset(by_meter, -1, sizeof by_meter);
    for (size_t i = 0; i < sizeof meter_rows / sizeof *meter_rows; i++) {
        const struct meter_row *row = &meter_rows[i];
        int leaf = cell->leaves[row->controller];
        if (leaf < 0 || by_meter[row->meter] >= 0 ||
            (row->v2_bit != 0 && (keeper->config.v2_controllers & row->v2_bit) == 0))
            continue;
        by_meter[row->meter] = openat(leaf, row->file, (row->write ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    }
    if (cell->leaves[HC_CONTROLLER_MEMORY] >= 0 && by_meter[HC_METER_OOM] >= 0)
        by_meter[HC_METER_OOM_EVENT] =
            oom_eventfd(cell->leaves[HC_CONTROLLER_MEMORY], by_meter[HC_METER_OOM]);
    by_meter[HC_METER_INIT] = fcntl(cell->init_pidfd, F_DUPFD_CLOEXEC, 0);
    for (int m = 0; m < HC_METER_COUNT; m++)
        if (by_meter[m] >= 0) {
            ret_fds[count++] = by_meter[m];
            *ret_meters |= 1u << m;
        }
    return count;
}

void hc_leaf_kill(const struct hc_cell *cell)
{
    if (cell->leaves[HC_CONTROLLER_V2] >= 0)
        (void)hc_file_write(cell->leaves[HC_CONTROLLER_V2], "cgroup.kill", "1");
}

static void remove_one(int parent, const char *name, struct hc_residue *residue)
{
    for (int round = 0; round < 100; round++) {
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return;
        if (errno != EBUSY)
            break;
        struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
    }
    residue->cgroups++;
}

void hc_leaf_remove(const struct hc_keeper *keeper, struct hc_cell *cell, struct hc_residue *residue)
{
    char name[24], procs[1024];
    slot_name(name, cell->slot);
    if (cell->leaves[HC_CONTROLLER_V2] >= 0 &&
        hc_file_read(cell->leaves[HC_CONTROLLER_V2], "cgroup.procs", procs, sizeof procs) > 0)
        for (const char *at = procs; *at != '\0'; at++)
            residue->processes += *at == '\n' ? 1 : 0;
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++) {
        if (cell->leaves[c] < 0)
            continue;
        hc_close_fd(&cell->leaves[c]);
        remove_one(parent_folder(keeper, (enum hc_controller)c), name, residue);
    }
}
