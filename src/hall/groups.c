#include "hall/hall.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *const v1_names[HC_CONTROLLER_COUNT] = {
    [HC_CONTROLLER_MEMORY] = "memory",
    [HC_CONTROLLER_PIDS] = "pids",
    [HC_CONTROLLER_CPU] = "cpu",
    [HC_CONTROLLER_CPUACCT] = "cpuacct",
};

static char mountinfo[128 * 1024];
static char v2_mount_root[HC_PATH_SIZE]; /* what of the cgroup2 tree is mounted: "/" but in containers */

/* Whether the comma-separated `options` hold `name` as a whole word. */
static bool has_option(const char *options, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = options; at != NULL; at = strchr(at, ',')) {
        if (*at == ',')
            at++;
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

/* One line of mountinfo: 36 35 98:0 /root /mount/point opts ... - type source superopts */
static void take_mount_line(char *line, struct hc_groups *groups)
{
    char *tail = strstr(line, " - ");
    if (tail == NULL)
        return;
    *tail = '\0';
    char *save = NULL;
    char *type = strtok_r(tail + 3, " ", &save);
    (void)strtok_r(NULL, " ", &save);
    char *options = strtok_r(NULL, " ", &save);
    char *point = NULL, *root = NULL;
    save = NULL;
    for (int field = 0; field < 5; field++) {
        root = point;
        point = strtok_r(field == 0 ? line : NULL, " ", &save);
    }
    if (type == NULL || options == NULL || point == NULL || strchr(point, '\\') != NULL)
        return;
    if (strcmp(type, "cgroup2") == 0 && groups->roots[HC_CONTROLLER_V2] < 0) {
        groups->roots[HC_CONTROLLER_V2] = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)strncpy(v2_mount_root, root != NULL ? root : "/", sizeof v2_mount_root - 1);
    }
    if (strcmp(type, "cgroup") != 0)
        return;
    for (int c = HC_CONTROLLER_MEMORY; c < HC_CONTROLLER_COUNT; c++)
        if (groups->roots[c] < 0 && has_option(options, v1_names[c]))
            groups->roots[c] = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int find_trees(struct hc_groups *groups)
{
    long n = hc_file_read(AT_FDCWD, "/proc/self/mountinfo", mountinfo, sizeof mountinfo);
    if (n < 0)
        return (int)n;
    char *save = NULL;
    for (char *line = strtok_r(mountinfo, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
        take_mount_line(line, groups);
    return 0;
}

static void number_name(char buffer[24], uint32_t number)
{
    struct hc_text text = {.data = buffer, .size = 24};
    hc_text_number(&text, number);
}

static int open_folder(int at, const char *name)
{
    return (int)HC_SYS(openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

/* An ordinary user's part of the cgroup2 tree is where his door put us: everything below it is his, and a
 * process can be born only below a group that its maker may write. */
static int find_v2_home(struct hc_groups *groups)
{
    static char own[2048];
    long n = hc_file_read(AT_FDCWD, "/proc/self/cgroup", own, sizeof own);
    if (n < 0)
        return (int)n;
    const char *path = strncmp(own, "0::", 3) == 0 ? own : strstr(own, "\n0::");
    if (path == NULL)
        return -ENOENT;
    path = strchr(path, '/');
    size_t length = path != NULL ? strcspn(path, "\n") : 0, skipped = strlen(v2_mount_root);
    const size_t door = strlen("/" HC_CGROUP_DOOR);
    if (skipped > 1 && length > skipped && strncmp(path, v2_mount_root, skipped) == 0) {
        path += skipped;
        length -= skipped;
    }
    if (length <= door + 1 || strncmp(path + length - door, "/" HC_CGROUP_DOOR, door) != 0)
        return -EACCES; /* not started by the door: no group of ours is here */
    if (length - door > HC_PATH_SIZE)
        return -ENAMETOOLONG;
    memcpy(groups->home[HC_CONTROLLER_V2], path + 1, length - door - 1);
    return 0;
}

static int find_homes(struct hc_groups *groups, bool ordinary)
{
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++) {
        struct hc_text home = {.data = groups->home[c], .size = HC_PATH_SIZE};
        hc_text_string(&home, HC_CGROUP_HOME);
        if (!ordinary)
            continue;
        hc_text_string(&home, "/" HC_USER_FOLDER);
        hc_text_number(&home, getuid());
    }
    groups->own_home = ordinary;
    if (!ordinary)
        return 0;
    memset(groups->home[HC_CONTROLLER_V2], 0, HC_PATH_SIZE);
    return find_v2_home(groups);
}

static int open_home(const struct hc_groups *groups, int c)
{
    return open_folder(groups->roots[c], groups->home[c]);
}

/* All cells together would weigh as much as one ordinary process tree, and starve beside it. */
static void raise_weight(int folder, bool v2)
{
    const char *file = v2 ? "cpu.weight" : "cpu.shares";
    uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), present = 0, most = v2 ? 10000 : 262144,
             wanted = (v2 ? 100 : 1024) * (cpus > 0 && cpus < 256 ? cpus : 1);
    wanted = wanted < most ? wanted : most;
    if (hc_file_read_number(folder, file, &present) == 0 && present < wanted &&
        hc_file_write_number(folder, file, wanted) == 0)
        (void)hc_file_read_number(folder, file, &present); /* hotcell doctor shows what it is */
}

/* Another hall may remove the empty home between our two steps, hence the rounds. */
static int make_hall_folder(const struct hc_groups *groups, int c, uint32_t slice)
{
    char name[24];
    number_name(name, slice);
    for (int round = 0; round < 16; round++) {
        int made = groups->own_home ? 0 : (int)HC_SYS(mkdirat(groups->roots[c], groups->home[c], 0755));
        if (made < 0 && made != -EEXIST)
            return made;
        hc_autoclose int home = open_home(groups, c);
        if (home == -ENOENT && !groups->own_home)
            continue;
        if (home < 0)
            return home;
        if (c == HC_CONTROLLER_CPU && !groups->own_home)
            raise_weight(home, false);
        made = (int)HC_SYS(mkdirat(home, name, 0755));
        if (made == -ENOENT || made == -ENODEV)
            continue;
        if (made < 0 && made != -EEXIST)
            return made;
        return open_folder(home, name);
    }
    return -EAGAIN;
}

/* Which of memory, pids, cpu the cgroup2 folder offers, as bits of enum hc_v2_controller. */
static uint32_t offered(int folder, const char *file)
{
    char list[256];
    if (hc_file_read(folder, file, list, sizeof list) < 0)
        return 0;
    uint32_t bits = 0;
    char *save = NULL;
    for (char *word = strtok_r(list, " \n", &save); word != NULL; word = strtok_r(NULL, " \n", &save)) {
        bits |= strcmp(word, "memory") == 0 ? HC_V2_MEMORY : 0;
        bits |= strcmp(word, "pids") == 0 ? HC_V2_PIDS : 0;
        bits |= strcmp(word, "cpu") == 0 ? HC_V2_CPU : 0;
    }
    return bits;
}

static int enable(int folder, uint32_t wanted)
{
    uint32_t missing = wanted & ~offered(folder, "cgroup.subtree_control");
    if (missing == 0)
        return 0;
    char buffer[64];
    struct hc_text text = HC_TEXT(buffer);
    hc_text_string(&text, (missing & HC_V2_MEMORY) != 0 ? "+memory " : "");
    hc_text_string(&text, (missing & HC_V2_PIDS) != 0 ? "+pids " : "");
    hc_text_string(&text, (missing & HC_V2_CPU) != 0 ? "+cpu" : "");
    return hc_file_write(folder, "cgroup.subtree_control", buffer);
}

/* What belongs to the hall's root from now on. */
struct hand_over {
    struct hc_groups *groups;
    uint32_t uid, gid; /* as seen by who does it */
    bool keeper_too;
};

static int give(int folder, const struct hand_over *to, bool v2)
{
    static const char *const v2_files[] = {"cgroup.procs", "cgroup.subtree_control", "cgroup.threads"};
    int error = (int)HC_SYS(fchown(folder, to->uid, to->gid));
    for (size_t i = 0; error == 0 && i < sizeof v2_files / sizeof *v2_files; i++)
        if (v2 || i == 0)
            error = (int)HC_SYS(fchownat(folder, v2_files[i], to->uid, to->gid, AT_SYMLINK_NOFOLLOW));
    return error;
}

static int give_all(void *context)
{
    const struct hand_over *to = context;
    const struct hc_groups *groups = to->groups;
    int error = 0;
    for (int c = 0; error == 0 && c < HC_CONTROLLER_COUNT; c++)
        if ((groups->controllers >> c & 1) != 0)
            error = give(groups->folders[c], to, c == HC_CONTROLLER_V2);
    if (error == 0)
        error = give(groups->cells_folder, to, true);
    if (error == 0 && to->keeper_too)
        error = give(groups->keeper_leaf, to, true);
    return error;
}

/* An ordinary user may give nothing away. Root of a namespace that has both his ids and the slice's may; and
 * the leaf that the keeper is born in stays the user's, since who makes a process in a group has to be
 * allowed to write there. */
static int hand_over(struct hc_groups *groups, const struct hc_ids *ids, struct hc_hall_failure *failure)
{
    struct hand_over to = {.groups = groups};
    hc_hall_detail(failure, HC_STAGE_HALL_CGROUP, "handing the groups to the hall's ids");
    if (ids->ordinary)
        return hc_ids_run(ids, -1, give_all, &to, failure);
    to.uid = ids->uid_base;
    to.gid = ids->gid_base;
    to.keeper_too = true;
    return give_all(&to);
}

static int make_child(int folder, const char *name, uint32_t controllers, int *ret_child)
{
    int error = (int)HC_SYS(mkdirat(folder, name, 0755));
    if (error < 0 && error != -EEXIST)
        return error;
    hc_autoclose int child = open_folder(folder, name);
    if (child < 0)
        return child;
    if (controllers != 0 && (error = enable(child, controllers)) < 0)
        return error;
    *ret_child = hc_take_fd(&child);
    return 0;
}

static int make_v2(struct hc_groups *groups, uint32_t slice)
{
    int root = groups->roots[HC_CONTROLLER_V2], error = 0;
    uint32_t wanted = offered(root, "cgroup.controllers");
    if (groups->own_home) { /* the set-up enabled them down to there */
        hc_autoclose int own = open_home(groups, HC_CONTROLLER_V2);
        if (own < 0)
            return own;
        wanted = offered(own, "cgroup.controllers");
    } else if (wanted != 0 && (error = enable(root, wanted)) < 0) {
        return error;
    }
    int hall = make_hall_folder(groups, HC_CONTROLLER_V2, slice);
    if (hall < 0)
        return hall;
    groups->folders[HC_CONTROLLER_V2] = hall;
    hc_autoclose int home = open_home(groups, HC_CONTROLLER_V2);
    if (home < 0)
        return home;
    if (wanted != 0 && ((error = enable(home, wanted)) < 0 || (error = enable(hall, wanted)) < 0))
        return error;
    if ((wanted & HC_V2_CPU) != 0 && !groups->own_home)
        raise_weight(home, true);
    if ((error = make_child(hall, "keeper", 0, &groups->keeper_leaf)) < 0 ||
        (error = make_child(hall, "cells", wanted, &groups->cells_folder)) < 0)
        return error;
    groups->v2_controllers = wanted;
    groups->controllers |= 1u << HC_CONTROLLER_V2;
    return 0;
}

static int make_v1(struct hc_groups *groups, enum hc_controller c, uint32_t slice)
{
    int hall = make_hall_folder(groups, (int)c, slice);
    if (hall < 0)
        return hall;
    groups->folders[c] = hall;
    groups->controllers |= 1u << c;
    return 0;
}

static bool accepted(const struct hc_hall_config *config, enum hc_layer layer)
{
    return (config->allow_layers >> layer & 1) != 0;
}

/* Which layer a v1 controller carries, and the bit that says the cgroup2 tree has it already. */
static const struct {
    enum hc_layer layer;
    uint32_t v2_bit;
} carried[HC_CONTROLLER_COUNT] = {
    [HC_CONTROLLER_MEMORY] = {HC_LAYER_MEMORY_LIMIT, HC_V2_MEMORY},
    [HC_CONTROLLER_PIDS] = {HC_LAYER_PROCESS_LIMIT, HC_V2_PIDS},
    [HC_CONTROLLER_CPU] = {HC_LAYER_CPU_RATE, HC_V2_CPU},
    [HC_CONTROLLER_CPUACCT] = {HC_LAYER_CPU_METER, 0},
};

static void sweep_dead(const struct hc_hall_config *config, const struct hc_groups *groups, uint32_t own);

static int make_all(const struct hc_hall_config *config, uint32_t slice, struct hc_groups *groups,
                    struct hc_hall_failure *failure)
{
    int error = make_v2(groups, slice);
    if (error < 0)
        return error;
    for (int c = HC_CONTROLLER_MEMORY; c < HC_CONTROLLER_COUNT; c++) {
        if ((groups->v2_controllers & carried[c].v2_bit) != 0)
            continue;
        hc_hall_detail(failure, HC_STAGE_HALL_CGROUP, v1_names[c]);
        error = groups->roots[c] < 0 ? -ENOENT : make_v1(groups, (enum hc_controller)c, slice);
        /* The cgroup2 tree counts CPU time even without controllers. */
        if (error < 0 && c != HC_CONTROLLER_CPUACCT && !accepted(config, carried[c].layer))
            return error;
    }
    return 0;
}

int hc_groups_make(const struct hc_hall_config *config, uint32_t slice, const struct hc_ids *ids,
                   struct hc_groups *ret_groups, struct hc_hall_failure *failure)
{
    struct hc_groups *groups = ret_groups;
    memset(groups, 0, sizeof *groups);
    groups->keeper_leaf = groups->cells_folder = -1;
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++)
        groups->folders[c] = groups->roots[c] = -1;
    hc_hall_detail(failure, HC_STAGE_HALL_CGROUP, "/proc/self/mountinfo");
    int error = find_trees(groups);
    if (error < 0)
        return error;
    hc_hall_detail(failure, HC_STAGE_HALL_CGROUP, "cgroup2 tree");
    if (groups->roots[HC_CONTROLLER_V2] < 0)
        return -ENOENT;
    if ((error = find_homes(groups, ids->ordinary)) < 0)
        return error;
    hc_groups_sweep(groups, slice, ids, -1);
    sweep_dead(config, groups, slice);
    if ((error = make_all(config, slice, groups, failure)) < 0)
        return error;
    return hand_over(groups, ids, failure);
}

/* ---- sweeping ---- */

struct folder_entry { /* linux_dirent64 */
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static void pause_ms(long ms)
{
    struct timespec pause = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&pause, NULL);
}

/* A group whose last task is just dying answers EBUSY for a moment. */
static void remove_group(int folder, const char *name)
{
    for (int round = 0; round < 200; round++) {
        if (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
            return;
        pause_ms(5);
    }
}

static void remove_children(int folder)
{
    static char buffer[8192];
    for (;;) {
        if (lseek(folder, 0, SEEK_SET) < 0)
            return;
        long n = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
        bool removed = false;
        for (long at = 0; at < n;) {
            struct folder_entry *entry = (struct folder_entry *)(void *)(buffer + at);
            at += entry->length;
            if (entry->type != 4 /* DT_DIR */ || entry->name[0] == '.')
                continue;
            remove_group(folder, entry->name);
            removed = faccessat(folder, entry->name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 || removed;
        }
        if (!removed)
            return;
    }
}

static void kill_group(int hall)
{
    (void)hc_file_write(hall, "cgroup.kill", "1");
    for (int round = 0; round < 400; round++) {
        char events[256];
        uint64_t populated = 0;
        if (hc_file_read(hall, "cgroup.events", events, sizeof events) < 0 ||
            !hc_text_field(events, "populated", &populated) || populated == 0)
            return;
        pause_ms(5);
    }
}

struct sweep {
    const struct hc_groups *groups;
    char name[24]; /* of the hall's folder */
};

static int open_hall(const struct hc_groups *groups, int c, const char *name, int *ret_home)
{
    *ret_home = groups->roots[c] >= 0 ? openat(groups->roots[c], groups->home[c],
                                               O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
                                      : -1;
    return *ret_home >= 0 ? openat(*ret_home, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
}

/* What lies in the hall's folders belongs to the hall's ids. */
static int empty_halls(void *context)
{
    const struct sweep *sweep = context;
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++) {
        hc_autoclose int home = -1;
        hc_autoclose int hall = open_hall(sweep->groups, c, sweep->name, &home);
        if (hall < 0)
            continue;
        hc_autoclose int cells = openat(hall, "cells", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (cells >= 0)
            remove_children(cells);
        remove_children(hall);
    }
    return 0;
}

void hc_groups_sweep(const struct hc_groups *groups, uint32_t slice, const struct hc_ids *ids, int namespace)
{
    struct sweep sweep = {.groups = groups};
    struct hc_hall_failure unread;
    bool found = false;
    number_name(sweep.name, slice);
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++) {
        hc_autoclose int home = -1;
        hc_autoclose int hall = open_hall(groups, c, sweep.name, &home);
        found = found || hall >= 0;
        if (hall >= 0 && c == HC_CONTROLLER_V2)
            kill_group(hall);
    }
    if (found && ids->ordinary)
        (void)hc_ids_run(ids, namespace, empty_halls, &sweep, &unread);
    else if (found)
        (void)empty_halls(&sweep);
    for (int c = 0; c < HC_CONTROLLER_COUNT; c++) {
        hc_autoclose int home = -1;
        hc_autoclose int hall = open_hall(groups, c, sweep.name, &home);
        if (hall >= 0)
            remove_group(home, sweep.name);
        if (!groups->own_home && groups->roots[c] >= 0)
            (void)unlinkat(groups->roots[c], groups->home[c], AT_REMOVEDIR);
    }
}

/* The janitor: groups of halls whose guard was killed stay behind. A slice that can be locked has no living
 * hall. */
static void sweep_dead(const struct hc_hall_config *config, const struct hc_groups *groups, uint32_t own)
{
    static char buffer[8192];
    hc_autoclose int home = open_home(groups, HC_CONTROLLER_V2);
    long n = home >= 0 ? syscall(SYS_getdents64, home, buffer, sizeof buffer) : 0;
    for (long at = 0; at < n;) {
        struct folder_entry *entry = (struct folder_entry *)(void *)(buffer + at);
        uint64_t slice = 0;
        hc_autoclose int lock = -1;
        at += entry->length;
        if (entry->type == 4 /* DT_DIR */ && hc_text_value(entry->name, &slice) && slice != own &&
            slice < 65536 && hc_slice_is_free(geteuid() != 0, (uint32_t)slice, &lock)) {
            const struct hc_ids ids = hc_ids_of_slice(config, (uint32_t)slice);
            hc_groups_sweep(groups, (uint32_t)slice, &ids, -1);
        }
    }
}
