#include "hall/hall.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

/* Any folder that every host has; the new root covers it in the hall's own mount namespace only. */
#define MOUNT_POINT "/tmp"

static const char *const hall_folders[] = {"bin", "cell", "proc", "scratch"};
static const char *const cell_folders[] = {"dev", "dev/shm", "etc", "proc", "run",
                                           "tmp", "usr",     "var", "work"};
static const char *const cell_devices[6] = {"dev/null",   "dev/zero",    "dev/full",
                                            "dev/random", "dev/urandom", "dev/tty"};
static const char *const cell_top_links[6] = {"bin", "sbin", "lib", "lib64", "lib32", "libx32"};

static const struct {
    const char *path, *target;
} cell_links[] = {
    {"dev/fd", "/proc/self/fd"},
    {"dev/stdin", "/proc/self/fd/0"},
    {"dev/stdout", "/proc/self/fd/1"},
    {"dev/stderr", "/proc/self/fd/2"},
    {"var/tmp", "/tmp"},
    {"etc/localtime", "/usr/share/zoneinfo/Etc/UTC"},
    {"etc/mtab", "/proc/self/mounts"},
};

/* The cell's identity: the same on every host, so that none is betrayed. */
static const struct {
    const char *path, *text;
} cell_files[] = {
    {"etc/passwd", "root:x:0:0:root:/:/usr/sbin/nologin\ncell:x:1000:1000:cell:/tmp/home:/bin/sh\n"
                   "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
    {"etc/group", "root:x:0:\ncell:x:1000:\nnogroup:x:65534:\n"},
    {"etc/hostname", "cell\n"},
    {"etc/hosts", "127.0.0.1 localhost cell\n::1 localhost\n"},
    {"etc/resolv.conf", ""},
    {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"},
    {"etc/machine-id", "00000000000000000000000000000000\n"},
    {"etc/timezone", "Etc/UTC\n"},
};

static int make_folders(int at, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int error = (int)HC_SYS(mkdirat(at, names[i], 0755));
        if (error < 0 && error != -EEXIST)
            return error;
    }
    return 0;
}

static int make_file(int at, const char *path, const char *text)
{
    hc_autoclose int fd =
        (int)HC_SYS(openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0444));
    if (fd < 0)
        return fd;
    size_t n = strlen(text);
    long written = n > 0 ? HC_SYS(write(fd, text, n)) : 0;
    return written < 0 ? (int)written : (size_t)written == n ? 0 : -EIO;
}

/* Mount points for `target` (absolute): its folders, then itself as a folder or an empty file. */
static int make_target(int at, const char *target, bool is_folder)
{
    char path[HC_PATH_SIZE];
    size_t n = strlen(target);
    if (target[0] != '/' || n < 2)
        return -EINVAL;
    for (size_t i = 1; i <= n; i++) {
        if (target[i] != '/' && target[i] != '\0')
            continue;
        memcpy(path, target + 1, i - 1);
        path[i - 1] = '\0';
        int error;
        if (i < n || is_folder) {
            error = (int)HC_SYS(mkdirat(at, path, 0755));
        } else {
            int fd = (int)HC_SYS(openat(at, path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0444));
            error = fd < 0 ? fd : 0;
            if (fd >= 0)
                close(fd);
        }
        if (error < 0 && error != -EEXIST)
            return error;
    }
    return 0;
}

/* The name is read-only to everybody with the template. */
static int copy(int source, int at, const char *target)
{
    struct stat info;
    int error = (int)HC_SYS(fstat(source, &info));
    if (error == 0 && (!S_ISREG(info.st_mode) || info.st_size > (off_t)HC_COPY_BYTES_MAX))
        error = -EFBIG;
    if (error == 0)
        error = make_target(at, target, false);
    if (error < 0)
        return error;
    hc_autoclose int fd = (int)HC_SYS(openat(at, target + 1, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (fd < 0)
        return fd;
    for (off_t done = 0; done < info.st_size;) {
        long n = HC_SYS(sendfile(fd, source, &done, (size_t)(info.st_size - done)));
        if (n <= 0)
            return n < 0 ? (int)n : -EIO;
    }
    return 0;
}

static int attach(int tree, int at, const char *target, uint64_t attributes)
{
    struct stat info;
    int error = (int)HC_SYS(fstat(tree, &info));
    if (error == 0)
        error = make_target(at, target, S_ISDIR(info.st_mode));
    struct hc_mount_attr attr = {.attr_set = attributes, .propagation = MS_PRIVATE};
    if (error == 0)
        error = (int)HC_SYS(hc_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr));
    if (error == 0)
        error = (int)HC_SYS(hc_move_mount(tree, "", at, target + 1, MOVE_MOUNT_F_EMPTY_PATH));
    return error;
}

static int fill_cell(int cell, const struct hc_environment *environment)
{
    int error = make_folders(cell, cell_folders, sizeof cell_folders / sizeof *cell_folders);
    for (size_t i = 0; error == 0 && i < sizeof cell_links / sizeof *cell_links; i++)
        error = (int)HC_SYS(symlinkat(cell_links[i].target, cell, cell_links[i].path));
    for (size_t i = 0; error == 0 && i < sizeof cell_files / sizeof *cell_files; i++)
        error = make_file(cell, cell_files[i].path, cell_files[i].text);
    for (size_t i = 0; error == 0 && i < 6; i++)
        if (environment->links[i][0] != '\0')
            error = (int)HC_SYS(symlinkat(environment->links[i], cell, cell_top_links[i]));
    return error;
}

static int bind_environment(const struct hc_hall_config *config, int cell, struct hc_environment *environment,
                            struct hc_hall_failure *failure)
{
    const uint64_t read_only = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    for (int i = 0; i < 6; i++) {
        char target[HC_PATH_SIZE];
        struct hc_text text = HC_TEXT(target);
        hc_text_string(&text, "/");
        hc_text_string(&text, cell_devices[i]);
        hc_hall_detail(failure, HC_STAGE_HALL_ROOT, target);
        int error = attach(environment->devices[i], cell, target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
        hc_close_fd(&environment->devices[i]);
        if (error < 0)
            return error;
    }
    for (uint32_t i = 0; i < config->bind_count; i++) {
        if (environment->binds[i] < 0)
            continue;
        hc_hall_detail(failure, HC_STAGE_HALL_ROOT, config->binds[i].target);
        int error = (config->binds[i].flags & HC_BIND_COPY) != 0
                        ? copy(environment->binds[i], cell, config->binds[i].target)
                        : attach(environment->binds[i], cell, config->binds[i].target, read_only);
        hc_close_fd(&environment->binds[i]);
        if (error < 0)
            return error;
    }
    return 0;
}

static int build_cell(const struct hc_hall_config *config, int root, struct hc_environment *environment,
                      struct hc_hall_failure *failure)
{
    hc_hall_detail(failure, HC_STAGE_HALL_ROOT, "/cell");
    int error = (int)HC_SYS(mount("tmpfs", MOUNT_POINT "/cell", "tmpfs", MS_NOSUID | MS_NODEV,
                                  "size=4m,nr_inodes=2048,mode=755"));
    if (error < 0)
        return error;
    hc_autoclose int cell = (int)HC_SYS(openat(root, "cell", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (cell < 0)
        return cell;
    if ((error = fill_cell(cell, environment)) < 0 ||
        (error = bind_environment(config, cell, environment, failure)) < 0)
        return error;
    struct hc_mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    hc_hall_detail(failure, HC_STAGE_HALL_ROOT, "/cell read-only");
    return (int)HC_SYS(hc_mount_setattr(cell, "", AT_EMPTY_PATH, &read_only));
}

static int enter_root(int root)
{
    int error = (int)HC_SYS(fchdir(root));
    if (error == 0)
        error = (int)HC_SYS(hc_pivot_root(".", "."));
    if (error == 0)
        error = (int)HC_SYS(umount2(".", MNT_DETACH));
    if (error == 0)
        error = (int)HC_SYS(chdir("/"));
    return error;
}

int hc_root_build(const struct hc_hall_config *config, struct hc_environment *environment,
                  struct hc_hall_failure *failure)
{
    hc_hall_detail(failure, HC_STAGE_HALL_ROOT, MOUNT_POINT);
    int error = (int)HC_SYS(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    if (error == 0)
        error = (int)HC_SYS(
            mount("tmpfs", MOUNT_POINT, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=256,mode=755"));
    if (error < 0)
        return error;
    hc_autoclose int root = (int)HC_SYS(open(MOUNT_POINT, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (root < 0)
        return root;
    const uint64_t fixed = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if ((error = make_folders(root, hall_folders, sizeof hall_folders / sizeof *hall_folders)) < 0 ||
        (error = attach(environment->keeper, root, "/bin/keeper", fixed)) < 0 ||
        (error = attach(environment->init, root, "/bin/init", fixed)) < 0 ||
        (error = build_cell(config, root, environment, failure)) < 0)
        return error;
    hc_hall_detail(failure, HC_STAGE_HALL_PROC, "/proc");
    error = (int)HC_SYS(mount("proc", MOUNT_POINT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
    if (error < 0)
        return error;
    hc_hall_detail(failure, HC_STAGE_HALL_ROOT, "pivot_root");
    return enter_root(root);
}
