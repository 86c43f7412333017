#include "flow/grants.h"

#include "base/cleanup.h"
#include "flow/ordinary.h"
#include "flow/trees.h"
#include "kernel/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define RANGE_IDS    65536u
#define RANGE_FIRST  100000u     /* where useradd begins too */
#define RANGE_LAST   0x6fff0000u /* above lie root's own halls */
#define STATE_FOLDER "/var/lib/hotcell"

const char *hc_grant_state_name(enum hc_grant_state state)
{
    static const char *const names[] = {"already", "done", "would", "failed"};
    return names[state];
}

void hc_grant_add(struct hc_grants *grants, const char *name, enum hc_grant_state state, bool until_reboot,
                  const char *format, ...)
{
    va_list args;
    if (grants->count == HC_GRANTS_MAX)
        return;
    struct hc_grant *grant = &grants->items[grants->count++];
    (void)snprintf(grant->name, sizeof grant->name, "%s", name);
    grant->state = state;
    grant->until_reboot = until_reboot;
    va_start(args, format);
    (void)vsnprintf(grant->detail, sizeof grant->detail, format, args);
    va_end(args);
}

bool hc_grants_begin(struct hc_grants *grants, const char *user, char message[256])
{
    const struct passwd *entry = getpwnam(user);
    char *end;
    unsigned long number = strtoul(user, &end, 10);
    if (entry == NULL && user[0] != '\0' && *end == '\0' && number < UINT32_MAX)
        entry = getpwuid((uid_t)number);
    if (entry == NULL || entry->pw_uid == 0) {
        (void)snprintf(message, 256,
                       entry == NULL ? "%.100s: there is no such user" : "%.100s: root needs no set-up",
                       user);
        return false;
    }
    grants->uid = entry->pw_uid;
    grants->gid = entry->pw_gid;
    (void)snprintf(grants->user, sizeof grants->user, "%.63s", entry->pw_name);
    return true;
}

int hc_grant_program(char *const argv[])
{
    pid_t pid;
    int status = 0, error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (error != 0)
        return -error;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

/* ---- subordinate ids ---- */

static void state_path(const struct hc_grants *grants, char *path, size_t size)
{
    (void)snprintf(path, size, STATE_FOLDER "/user-%u", (unsigned)grants->uid);
}

/* So that only what was added is ever taken back. */
static int remember(const struct hc_grants *grants, const char *kind, uint32_t first)
{
    char path[64];
    (void)mkdir(STATE_FOLDER, 0755);
    state_path(grants, path, sizeof path);
    FILE *file = fopen(path, "ae");
    if (file == NULL)
        return -errno;
    (void)fprintf(file, "%s %u %u\n", kind, first, RANGE_IDS);
    return fclose(file) == 0 ? 0 : -errno;
}

/* Free in both files and of every user's own number. */
static bool find_free_range(uint32_t *ret_first)
{
    for (uint32_t first = RANGE_FIRST; first + RANGE_IDS <= RANGE_LAST; first += RANGE_IDS) {
        struct hc_id_range range = {first, RANGE_IDS};
        bool taken = hc_subids_meet("/etc/subuid", "", (uid_t)-1, range) ||
                     hc_subids_meet("/etc/subgid", "", (uid_t)-1, range);
        setpwent();
        for (const struct passwd *entry; !taken && (entry = getpwent()) != NULL;)
            taken = entry->pw_uid >= first && entry->pw_uid < first + RANGE_IDS;
        endpwent();
        if (!taken) {
            *ret_first = first;
            return true;
        }
    }
    return false;
}

static void grant_range(struct hc_grants *grants, const char *name, const char *path, const char *kind,
                        const char *option)
{
    struct hc_id_range range;
    unsigned line = 0;
    uint32_t first = 0;
    char span[32];
    int found = hc_subids_find(path, grants->user, grants->uid, &range, &line);
    if (found < 0) {
        hc_grant_add(grants, name, HC_GRANT_FAILED, false, "line %u of %s can't be read: %s", line, path,
                     strerror(-found));
    } else if (found == 1 && range.count >= HC_HALL_IDS) {
        bool roots = hc_range_meets_root(range);
        bool shared = roots || hc_subids_meet(path, grants->user, grants->uid, range);
        hc_grant_add(grants, name, shared ? HC_GRANT_FAILED : HC_GRANT_ALREADY, false,
                     "%u ids from %u in %s%s", range.count, range.first, path,
                     roots    ? " overlap with those of root's halls: give the user a range below them"
                     : shared ? " overlap with those of somebody else: give them a range each"
                              : "");
    } else if (!find_free_range(&first)) {
        hc_grant_add(grants, name, HC_GRANT_FAILED, false, "no free range of %u ids", RANGE_IDS);
    } else {
        (void)snprintf(span, sizeof span, "%u-%u", first, first + RANGE_IDS - 1);
        char *const argv[] = {(char *)"usermod", (char *)(uintptr_t)option, span, grants->user, NULL};
        int error = grants->dry_run ? 0 : hc_grant_program(argv);
        if (error == 0 && !grants->dry_run)
            error = remember(grants, kind, first);
        hc_grant_add(grants, name,
                     error < 0         ? HC_GRANT_FAILED
                     : grants->dry_run ? HC_GRANT_WOULD
                                       : HC_GRANT_DONE,
                     false, "usermod %s %s %s%s%s", option, span, grants->user, error < 0 ? ": " : "",
                     error < 0 ? strerror(-error) : "");
    }
}

static void undo_ranges(struct hc_grants *grants)
{
    char path[64], kind[16];
    unsigned first, count;
    bool all = true;
    state_path(grants, path, sizeof path);
    FILE *file = fopen(path, "re");
    while (file != NULL && fscanf(file, "%15s %u %u", kind, &first, &count) == 3) {
        char span[32];
        (void)snprintf(span, sizeof span, "%u-%u", first, first + count - 1);
        const char *option = strcmp(kind, "subuid") == 0 ? "--del-subuids" : "--del-subgids";
        char *const argv[] = {(char *)"usermod", (char *)(uintptr_t)option, span, grants->user, NULL};
        int error = grants->dry_run ? 0 : hc_grant_program(argv);
        all = all && error == 0;
        hc_grant_add(grants, strcmp(kind, "subuid") == 0 ? "subordinate_uids" : "subordinate_gids",
                     error < 0         ? HC_GRANT_FAILED
                     : grants->dry_run ? HC_GRANT_WOULD
                                       : HC_GRANT_DONE,
                     false, "usermod %s %s %s", option, span, grants->user);
    }
    if (file != NULL)
        (void)fclose(file);
    if (!grants->dry_run && all) /* else a second try has to know what to take */
        (void)unlink(path);
}

static void check_mappers(struct hc_grants *grants, const struct hc_ordinary *ordinary)
{
    bool there = ordinary->there[HC_NEED_MAPPERS];
    hc_grant_add(grants, hc_need_names[HC_NEED_MAPPERS], there ? HC_GRANT_ALREADY : HC_GRANT_FAILED, false,
                 "%s%s", ordinary->evidence[HC_NEED_MAPPERS],
                 there ? ""
                       : "; to mend it: apt-get install uidmap (elsewhere: shadow-utils, shadow-uidmap)");
}

/* ---- folders ---- */

static int own_folder(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
    if (mkdir(path, mode) != 0 && errno != EEXIST)
        return -errno;
    hc_autoclose int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 || fchown(folder, uid, gid) != 0 || fchmod(folder, mode) != 0)
        return -errno;
    return 0;
}

static bool owned_by(const char *path, uid_t uid)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == uid;
}

static void grant_run_folder(struct hc_grants *grants)
{
    char path[64];
    (void)snprintf(path, sizeof path, HC_RUN_FOLDER "/" HC_USER_FOLDER "%u", (unsigned)grants->uid);
    enum hc_grant_state state = owned_by(path, grants->uid) ? HC_GRANT_ALREADY
                                : grants->dry_run           ? HC_GRANT_WOULD
                                                            : HC_GRANT_DONE;
    int error = 0;
    if (state == HC_GRANT_DONE && (error = own_folder(HC_RUN_FOLDER, 0755, 0, 0)) == 0)
        error = own_folder(path, 0700, grants->uid, grants->gid);
    hc_grant_add(grants, "locks", error < 0 ? HC_GRANT_FAILED : state, true, "%s%s%s", path,
                 error < 0 ? ": " : "", error < 0 ? strerror(-error) : "");
}

/* ---- cgroups ---- */

/* Everything that cells use and this folder can pass on. */
static int pass_on(int folder)
{
    static const char *const names[] = {"memory", "pids", "cpu"};
    char offered[256], enabled[256], buffer[16];
    if (hc_file_read(folder, "cgroup.controllers", offered, sizeof offered) < 0 ||
        hc_file_read(folder, "cgroup.subtree_control", enabled, sizeof enabled) < 0)
        return -errno;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(buffer, sizeof buffer, "+%s", names[i]);
        bool missing = strstr(offered, names[i]) != NULL && strstr(enabled, names[i]) == NULL;
        int error = missing ? hc_file_write(folder, "cgroup.subtree_control", buffer) : 0;
        if (error < 0)
            return error;
    }
    return 0;
}

static void raise_weight(int folder, bool v2)
{
    const char *file = v2 ? "cpu.weight" : "cpu.shares";
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t wanted = (v2 ? 100u : 1024u) * (uint64_t)(cpus > 0 && cpus <= 100 ? cpus : 1), present = 0;
    if (hc_file_read_number(folder, file, &present) == 0 && present < wanted)
        (void)hc_file_write_number(folder, file, wanted);
}

static int own_group_files(int folder, bool v2, uid_t uid, gid_t gid)
{
    static const char *const files[] = {"cgroup.procs", "cgroup.subtree_control", "cgroup.threads"};
    for (size_t i = 0; v2 && i < sizeof files / sizeof *files; i++)
        if (fchownat(folder, files[i], uid, gid, AT_SYMLINK_NOFOLLOW) != 0)
            return -errno;
    return 0;
}

static int make_group(const struct hc_grants *grants, const struct hc_tree *tree, const char *path)
{
    char home[320], door[600];
    (void)snprintf(home, sizeof home, "%.255s/" HC_CGROUP_HOME, tree->mount);
    (void)snprintf(door, sizeof door, "%s/" HC_CGROUP_DOOR, path);
    hc_autoclose int root = open(tree->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    int error = tree->v2 ? pass_on(root) : 0;
    if (error == 0 && mkdir(home, 0755) != 0 && errno != EEXIST)
        error = -errno;
    hc_autoclose int top = error == 0 ? open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (top < 0)
        return error < 0 ? error : -errno;
    if (tree->v2)
        error = pass_on(top);
    if (tree->v2 || tree->cpu)
        raise_weight(top, tree->v2);
    if (error == 0)
        error = own_folder(path, 0755, grants->uid, grants->gid);
    hc_autoclose int own = error == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (own < 0)
        return error < 0 ? error : -errno;
    if (tree->v2 || tree->cpu)
        raise_weight(own, tree->v2);
    if (tree->v2 && mkdir(door, 0755) != 0 && errno != EEXIST)
        return -errno;
    return own_group_files(own, tree->v2, grants->uid, grants->gid);
}

static void grant_groups(struct hc_grants *grants)
{
    struct hc_tree trees[HC_TREES_MAX];
    size_t count = hc_trees_find(trees);
    bool v2 = false;
    for (size_t i = 0; i < count; i++) {
        char path[512];
        v2 = v2 || trees[i].v2;
        hc_tree_user_folder(&trees[i], grants->uid, path, sizeof path);
        enum hc_grant_state state = owned_by(path, grants->uid) ? HC_GRANT_ALREADY
                                    : grants->dry_run           ? HC_GRANT_WOULD
                                                                : HC_GRANT_DONE;
        /* Also where it is there already: controllers and weights may have changed since. */
        int error = grants->dry_run ? 0 : make_group(grants, &trees[i], path);
        hc_grant_add(grants, "cgroup", error < 0 ? HC_GRANT_FAILED : state, true, "%.300s%s%s", path,
                     error < 0 ? ": " : "", error < 0 ? strerror(-error) : "");
    }
    if (!v2)
        hc_grant_add(grants, "cgroup", HC_GRANT_FAILED, true,
                     "no cgroup2 tree is mounted; to mend it: mount -t cgroup2 none /sys/fs/cgroup/unified");
}

static int remove_group(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)walk;
    for (int round = 0; type == FTW_DP && round < 200 && rmdir(path) != 0 && errno == EBUSY; round++) {
        struct timespec pause = {.tv_nsec = 10000000};
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

static void undo_groups(struct hc_grants *grants)
{
    struct hc_tree trees[HC_TREES_MAX];
    size_t count = hc_trees_find(trees);
    for (int pass = 0; pass < 2; pass++) /* the cgroup2 tree first: it can kill what lives there */
        for (size_t i = 0; i < count; i++) {
            char path[512], home[320];
            if (trees[i].v2 != (pass == 0))
                continue;
            hc_tree_user_folder(&trees[i], grants->uid, path, sizeof path);
            bool there = access(path, F_OK) == 0;
            if (there && !grants->dry_run) {
                hc_autoclose int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (trees[i].v2 && folder >= 0)
                    (void)hc_file_write(folder, "cgroup.kill", "1");
                (void)nftw(path, remove_group, 16, FTW_DEPTH | FTW_PHYS);
                (void)snprintf(home, sizeof home, "%.255s/" HC_CGROUP_HOME, trees[i].mount);
                (void)rmdir(home); /* unless others have halls */
            }
            bool left = !grants->dry_run && access(path, F_OK) == 0;
            hc_grant_add(grants, "cgroup",
                         left              ? HC_GRANT_FAILED
                         : !there          ? HC_GRANT_ALREADY
                         : grants->dry_run ? HC_GRANT_WOULD
                                           : HC_GRANT_DONE,
                         true, "%.300s", path);
        }
}

/* ---- all of it ---- */

static bool none_failed(const struct hc_grants *grants)
{
    for (size_t i = 0; i < grants->count; i++)
        if (grants->items[i].state == HC_GRANT_FAILED)
            return false;
    return true;
}

bool hc_grants_make(struct hc_grants *grants)
{
    struct hc_ordinary ordinary;
    hc_ordinary_examine(grants->uid, &ordinary);
    grant_range(grants, hc_need_names[HC_NEED_SUBUID], "/etc/subuid", "subuid", "--add-subuids");
    grant_range(grants, hc_need_names[HC_NEED_SUBGID], "/etc/subgid", "subgid", "--add-subgids");
    check_mappers(grants, &ordinary);
    grant_run_folder(grants);
    grant_groups(grants);
    hc_grant_apparmor(grants);
    if (none_failed(grants))
        hc_grant_door(grants);
    if (grants->at_boot)
        hc_grant_at_boot(grants);
    return none_failed(grants);
}

/* The folder is the user's: what lies in it is removed by name from the folder itself, and no deeper, so that
 * no link of his leads us elsewhere. */
static int remove_flat(const char *path)
{
    hc_autoclose int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *listing = folder >= 0 ? fdopendir(dup(folder)) : NULL;
    if (listing == NULL)
        return -errno;
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;)
        (void)unlinkat(folder, entry->d_name, 0);
    (void)closedir(listing);
    return rmdir(path) == 0 ? 0 : -errno;
}

bool hc_grants_undo(struct hc_grants *grants)
{
    char path[64];
    hc_grant_at_boot_undo(grants);
    hc_grant_door_undo(grants);
    undo_groups(grants);
    (void)snprintf(path, sizeof path, HC_RUN_FOLDER "/" HC_USER_FOLDER "%u", (unsigned)grants->uid);
    bool there = access(path, F_OK) == 0;
    int error = there && !grants->dry_run ? remove_flat(path) : 0;
    hc_grant_add(grants, "locks",
                 error < 0         ? HC_GRANT_FAILED
                 : !there          ? HC_GRANT_ALREADY
                 : grants->dry_run ? HC_GRANT_WOULD
                                   : HC_GRANT_DONE,
                 true, "%s%s%s", path, error < 0 ? ": " : "", error < 0 ? strerror(-error) : "");
    hc_grant_apparmor_undo(grants);
    undo_ranges(grants);
    return none_failed(grants);
}
