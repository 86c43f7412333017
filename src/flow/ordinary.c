#include "flow/ordinary.h"

#include "base/cleanup.h"
#include "flow/trees.h"
#include "kernel/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

const char *const hc_need_names[HC_NEED_COUNT] = {
    [HC_NEED_SUBUID] = "subordinate_uids",
    [HC_NEED_SUBGID] = "subordinate_gids",
    [HC_NEED_MAPPERS] = "id_map_programs",
    [HC_NEED_GROUPS] = "own_cgroups",
    [HC_NEED_DOOR] = "door",
};

__attribute__((format(printf, 4, 5))) static void tell(struct hc_ordinary *ordinary, enum hc_need need,
                                                       bool there, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(ordinary->evidence[need], sizeof ordinary->evidence[need], format, args);
    va_end(args);
    ordinary->there[need] = there;
}

static void examine_ids(struct hc_ordinary *ordinary, enum hc_need need, const char *path,
                        struct hc_id_range *range)
{
    unsigned line = 0;
    int found = hc_subids_find(path, ordinary->user, ordinary->uid, range, &line);
    if (found == -EBADMSG)
        tell(ordinary, need, false, "line %u of %s can't be read: wanted is NAME:FIRST:COUNT", line, path);
    else if (found < 0)
        tell(ordinary, need, false, "%s: %s", path, strerror(-found));
    else if (found == 0)
        tell(ordinary, need, false, "no range for %s in %s", ordinary->user, path);
    else if (range->count < HC_HALL_IDS)
        tell(ordinary, need, false, "the range of %s in %s has %u ids; a hall needs %d", ordinary->user, path,
             range->count, HC_HALL_IDS);
    else if (hc_subids_meet(path, ordinary->user, ordinary->uid, *range))
        tell(ordinary, need, false, "the range of %s in %s overlaps with that of somebody else",
             ordinary->user, path);
    else if (hc_range_meets_root(*range))
        tell(ordinary, need, false, "the range of %s in %s has ids of root's halls: those from %u",
             ordinary->user, path, HC_ROOT_ID_BASE);
    else
        tell(ordinary, need, true, "%u ids from %u in %s", range->count, range->first, path);
}

static bool may_map(const char *name)
{
    static const char *const folders[] = {"/usr/bin/", "/bin/", "/usr/sbin/", "/run/wrappers/bin/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[64];
        struct stat info;
        (void)snprintf(path, sizeof path, "%s%s", folders[i], name);
        if (stat(path, &info) == 0)
            return ((info.st_mode & S_ISUID) != 0 && info.st_uid == 0) ||
                   getxattr(path, "security.capability", NULL, 0) > 0;
    }
    return false;
}

static void examine_mappers(struct hc_ordinary *ordinary)
{
    bool uid = may_map("newuidmap"), gid = may_map("newgidmap");
    tell(ordinary, HC_NEED_MAPPERS, uid && gid, "%s",
         uid && gid ? "newuidmap and newgidmap may map"
                    : "newuidmap and newgidmap are not there, or not set-uid root");
}

static void examine_groups(struct hc_ordinary *ordinary)
{
    struct hc_tree trees[HC_TREES_MAX];
    size_t count = hc_trees_find(trees);
    bool v2 = false;
    for (size_t i = 0; i < count; i++) {
        char path[512];
        struct stat info;
        v2 = v2 || trees[i].v2;
        hc_tree_user_folder(&trees[i], ordinary->uid, path, sizeof path);
        if (stat(path, &info) == 0 && info.st_uid == ordinary->uid)
            continue;
        tell(ordinary, HC_NEED_GROUPS, false, "no cgroup of %s at %.110s", ordinary->user, path);
        return;
    }
    if (v2)
        tell(ordinary, HC_NEED_GROUPS, true, "a folder of the user's in %zu cgroup trees", count);
    else
        tell(ordinary, HC_NEED_GROUPS, false, "no cgroup2 tree is mounted");
}

void hc_ordinary_examine(uid_t uid, struct hc_ordinary *ret_ordinary)
{
    struct hc_ordinary *ordinary = ret_ordinary;
    memset(ordinary, 0, sizeof *ordinary);
    const struct passwd *entry = getpwuid(uid);
    ordinary->uid = uid;
    if (entry != NULL)
        (void)snprintf(ordinary->user, sizeof ordinary->user, "%s", entry->pw_name);
    else
        (void)snprintf(ordinary->user, sizeof ordinary->user, "%u", (unsigned)uid);
    examine_ids(ordinary, HC_NEED_SUBUID, "/etc/subuid", &ordinary->uids);
    examine_ids(ordinary, HC_NEED_SUBGID, "/etc/subgid", &ordinary->gids);
    examine_mappers(ordinary);
    examine_groups(ordinary);
    int door = hc_door_probe(uid, NULL);
    tell(ordinary, HC_NEED_DOOR, door == 0, HC_RUN_FOLDER "/" HC_USER_FOLDER "%u/" HC_DOOR_SOCKET "%s%s",
         (unsigned)uid, door == 0 ? " is open" : ": ", door == 0 ? "" : strerror(-door));
}

int hc_ordinary_ids(struct hc_hall_config *config)
{
    struct hc_ordinary ordinary = {.uid = geteuid()};
    const struct passwd *entry = getpwuid(ordinary.uid);
    if (entry != NULL)
        (void)snprintf(ordinary.user, sizeof ordinary.user, "%s", entry->pw_name);
    examine_ids(&ordinary, HC_NEED_SUBUID, "/etc/subuid", &ordinary.uids);
    examine_ids(&ordinary, HC_NEED_SUBGID, "/etc/subgid", &ordinary.gids);
    if (!ordinary.there[HC_NEED_SUBUID] || !ordinary.there[HC_NEED_SUBGID])
        return -EACCES;
    struct hc_id_range uids = hc_slices_of(ordinary.uids), gids = hc_slices_of(ordinary.gids);
    uint32_t count = (uids.count < gids.count ? uids.count : gids.count) / HC_HALL_IDS;
    config->id_base = uids.first;
    config->gid_base = gids.first;
    config->slice_count = count;
    return 0;
}

bool hc_ordinary_missing(char *message, size_t size)
{
    struct hc_ordinary ordinary;
    hc_ordinary_examine(geteuid(), &ordinary);
    size_t used = (size_t)snprintf(message, size, "an ordinary user needs a set-up that is not there: ");
    bool any = false;
    for (int i = 0; i < HC_NEED_COUNT && used < size; i++) {
        if (ordinary.there[i])
            continue;
        used += (size_t)snprintf(message + used, size - used, "%s%s", any ? ", " : "", ordinary.evidence[i]);
        any = true;
    }
    if (used < size)
        (void)snprintf(message + used, size - used, "; to mend it: sudo hotcell doctor --setup %s",
                       ordinary.user);
    return any;
}

/* ---- the door ---- */

static int connect_door(uid_t uid)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path,
                   HC_RUN_FOLDER "/" HC_USER_FOLDER "%u/" HC_DOOR_SOCKET, (unsigned)uid);
    hc_autoclose int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
        return -errno;
    /* Nobody but the user himself may be behind it: who is handed our socket may speak as our keeper. */
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return -errno;
    return peer.uid == uid ? hc_take_fd(&connection) : -EPERM;
}

int hc_door_probe(uid_t uid, pid_t *ret_pid)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    hc_autoclose int connection = connect_door(uid);
    if (connection < 0)
        return connection;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return -errno;
    if (ret_pid != NULL)
        *ret_pid = peer.pid;
    return 0;
}

int hc_door_start(const char *program, int config, int socket, pid_t *ret_pid)
{
    struct hc_door_request request = {.version = HC_WIRE_VERSION, .size = sizeof(struct hc_hall_config)};
    struct hc_door_answer answer = {0};
    hc_autoclose int connection = connect_door(geteuid());
    if (connection < 0)
        return connection;
    hc_autoclose int opened = open(program, O_PATH | O_CLOEXEC);
    if (opened < 0)
        return -errno;
    const int fds[HC_DOOR_FDS] = {opened, config, socket};
    int pidfd = -1;
    unsigned count = 0;
    int error = hc_message_send(connection, &request, sizeof request, fds, HC_DOOR_FDS, 0);
    if (error < 0)
        return error;
    long n = hc_message_receive(connection, &answer, sizeof answer, &pidfd, 1, &count, 0);
    if (n != (long)sizeof answer || answer.version != HC_WIRE_VERSION ||
        (answer.error == 0) != (count == 1)) {
        hc_close_fd(&pidfd);
        return n < 0 ? (int)n : n == 0 ? -ECONNRESET : -EPROTO;
    }
    *ret_pid = answer.pid;
    return answer.error < 0 ? answer.error : pidfd;
}
