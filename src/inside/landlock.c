/* Landlock: a second lock on files, and the only one on abstract sockets and signals besides the namespaces.
 */
#include "inside/shed.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/syscalls.h"

#include <errno.h>
#include <fcntl.h>

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#define ACCESS_FS_IOCTL_DEV (1ULL << 15)
#define SCOPES              3ull /* abstract unix sockets, signals: ABI 6 */

struct landlock_ruleset {
    uint64_t handled_access_fs, handled_access_net, scoped;
};

static uint64_t file_rights(uint32_t abi)
{
    uint64_t rights = (1ull << 13) - 1;
    rights |= abi >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0;
    rights |= abi >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0;
    rights |= abi >= 5 ? ACCESS_FS_IOCTL_DEV : 0;
    return rights;
}

static int allow_beneath(int ruleset, const char *path, uint64_t rights)
{
    hc_autoclose int folder = (int)HC_SYS(open(path, O_PATH | O_CLOEXEC));
    if (folder < 0)
        return folder;
    struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = folder};
    return (int)HC_SYS(syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0));
}

static int make_ruleset(uint32_t *ret_abi)
{
    const uint64_t reading =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    long abi = HC_SYS(syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */));
    if (abi < 0)
        return (int)abi;
    uint64_t all = file_rights((uint32_t)abi);
    struct landlock_ruleset attr = {.handled_access_fs = all, .scoped = abi >= 6 ? SCOPES : 0};
    size_t size = abi >= 6 ? sizeof attr : abi >= 4 ? 16 : 8;
    hc_autoclose int ruleset = (int)HC_SYS(syscall(SYS_landlock_create_ruleset, &attr, size, 0));
    if (ruleset < 0)
        return ruleset;
    uint64_t device =
        all & (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE | ACCESS_FS_IOCTL_DEV);
    int error = allow_beneath(ruleset, "/", reading);
    if (error == 0)
        error = allow_beneath(ruleset, "/dev", reading | device);
    if (error == 0)
        error = allow_beneath(ruleset, "/proc", reading | (all & LANDLOCK_ACCESS_FS_WRITE_FILE));
    static const char *const writable[] = {"/work", "/tmp", "/dev/shm"};
    for (size_t i = 0; error == 0 && i < sizeof writable / sizeof *writable; i++)
        error = allow_beneath(ruleset, writable[i], all);
    if (error < 0)
        return error;
    *ret_abi = (uint32_t)abi;
    return hc_take_fd(&ruleset);
}

int hc_landlock_make(uint32_t *ret_abi)
{
    int ruleset = make_ruleset(ret_abi);
    return ruleset == -ENOSYS || ruleset == -EOPNOTSUPP ? -1 : ruleset == -1 ? -EPERM : ruleset;
}
