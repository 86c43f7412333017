#include "hall/hall.h"

#include "base/fault.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const struct {
    const char *path;
    unsigned major, minor;
} nodes[6] = {{"/dev/null", 1, 3},   {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
              {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0}};

static const char *const top_links[6] = {"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"};

static int clone_tree(const char *path)
{
    return (int)HC_SYS(hc_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
}

/* A node that is not the expected character device would become a hole in the cell (CVE-2025-31133). */
static int open_node(const char *path, unsigned major_wanted, unsigned minor_wanted)
{
    int tree = clone_tree(path);
    if (tree < 0)
        return tree;
    struct stat info;
    if (fstat(tree, &info) != 0 || !S_ISCHR(info.st_mode) || major(info.st_rdev) != major_wanted ||
        minor(info.st_rdev) != minor_wanted) {
        close(tree);
        return -ENODEV;
    }
    return tree;
}

static int read_link(const char *path, char ret_target[HC_PATH_SIZE])
{
    long n = HC_SYS(readlink(path, ret_target, HC_PATH_SIZE - 1));
    if (n == -EINVAL || n == -ENOENT) { /* a real folder, or nothing: binds take care of folders */
        ret_target[0] = '\0';
        return 0;
    }
    if (n < 0)
        return (int)n;
    ret_target[n] = '\0';
    /* A link to anywhere but the distribution's /usr would show a path of this host. */
    if (strncmp(ret_target, "usr/", 4) != 0 && strncmp(ret_target, "/usr/", 5) != 0)
        return -ELOOP;
    return 0;
}

int hc_environment_open(const struct hc_hall_config *config, struct hc_environment *ret_environment,
                        struct hc_hall_failure *failure)
{
    struct hc_environment *environment = ret_environment;
    for (uint32_t i = 0; i < config->bind_count; i++) {
        const struct hc_bind *bind = &config->binds[i];
        hc_hall_detail(failure, HC_STAGE_HALL_ENVIRONMENT, bind->source);
        environment->binds[i] = (bind->flags & HC_BIND_COPY) != 0
                                    ? (int)HC_SYS(open(bind->source, O_RDONLY | O_CLOEXEC | O_NOFOLLOW))
                                    : clone_tree(bind->source);
        if (environment->binds[i] < 0 &&
            !((bind->flags & HC_BIND_OPTIONAL) != 0 && environment->binds[i] == -ENOENT))
            return environment->binds[i];
    }
    for (int i = 0; i < 6; i++) {
        hc_hall_detail(failure, HC_STAGE_HALL_ENVIRONMENT, nodes[i].path);
        environment->devices[i] = open_node(nodes[i].path, nodes[i].major, nodes[i].minor);
        if (environment->devices[i] < 0)
            return environment->devices[i];
        hc_hall_detail(failure, HC_STAGE_HALL_ENVIRONMENT, top_links[i]);
        int error = read_link(top_links[i], environment->links[i]);
        if (error < 0)
            return error;
    }
    hc_hall_detail(failure, HC_STAGE_HALL_ENVIRONMENT, config->keeper_path);
    environment->keeper = clone_tree(config->keeper_path);
    if (environment->keeper < 0)
        return environment->keeper;
    hc_hall_detail(failure, HC_STAGE_HALL_ENVIRONMENT, config->init_path);
    environment->init = clone_tree(config->init_path);
    return environment->init < 0 ? environment->init : 0;
}
