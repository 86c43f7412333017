/* The identity of a runtime's environment: what is installed, told by names, sizes and times. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "runtime/version.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Every item ends with a NUL, which no path holds: items cannot run into each other. */
static int add_item(struct hc_sha256 *sha, const char *word, const char *text)
{
    int r = hc_sha256_update(sha, word, strlen(word) + 1);

    return r ? r : hc_sha256_update(sha, text, strlen(text) + 1);
}

static int add_stat(struct hc_sha256 *sha, const char *name, const struct stat *st)
{
    char text[96];

    (void)snprintf(text, sizeof text, "%o %lld %lld.%09ld", st->st_mode & S_IFMT, (long long)st->st_size,
                   (long long)st->st_mtim.tv_sec, (long)st->st_mtim.tv_nsec);
    return add_item(sha, name, text);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_entry(struct hc_sha256 *sha, int folder, const char *name)
{
    struct stat st;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno; /* gone meanwhile */
    /* The size of a folder depends on the file system and on its past; its time says whether it was changed.
     */
    if (S_ISDIR(st.st_mode))
        st.st_size = 0;
    return add_stat(sha, name, &st);
}

static int add_folder(struct hc_sha256 *sha, const char *path)
{
    struct dirent **entries = NULL;
    hc_autoclose int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int count = folder < 0 ? -1 : scandirat(folder, ".", &entries, NULL, by_bytes);
    int r = count < 0 ? -errno : 0;

    for (int i = 0; i < count; i++) {
        if (r == 0)
            r = add_entry(sha, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return r ? r : add_item(sha, "end", path);
}

static int add_path(struct hc_sha256 *sha, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? add_item(sha, path, "missing") : -errno;
    if (!S_ISDIR(st.st_mode))
        return add_stat(sha, path, &st);
    int r = add_item(sha, "folder", path);
    return r ? r : add_folder(sha, path);
}

static int add_pattern(struct hc_sha256 *sha, const char *pattern)
{
    glob_t found = {0};
    int r = add_item(sha, "digest", pattern);

    if (r || !strpbrk(pattern, "*?["))
        return r ? r : add_path(sha, pattern);
    int code = glob(pattern, 0, NULL, &found);
    r = code == GLOB_NOSPACE ? -ENOMEM : code == GLOB_ABORTED ? -EIO : 0;
    for (size_t i = 0; r == 0 && code == 0 && i < found.gl_pathc; i++)
        r = add_path(sha, found.gl_pathv[i]);
    globfree(&found);
    return r;
}

/* What --deterministic puts into a cell is told by its content: it is small, and its time says little. */
static int add_hook(struct hc_sha256 *sha, const struct hc_runtime *runtime, const char *hook)
{
    const char *slash = strrchr(runtime->manifest_path, '/');
    hc_autofree char *path = hc_printf("%.*s%s", slash ? (int)(slash + 1 - runtime->manifest_path) : 0,
                                       runtime->manifest_path, hook);
    hc_autofree void *data = NULL;
    char hex[65];
    size_t n = 0;
    if (!path)
        return -ENOMEM;
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return add_item(sha, hook, "missing");
    int r = hc_read_all_fd(fd, 1024 * 1024, &data, &n);
    if (r == 0)
        r = hc_sha256_hex(data, n, hex);
    return r ? r : add_item(sha, hook, hex);
}

static int add_all(struct hc_sha256 *sha, const struct hc_runtime *runtime, const char *real,
                   const struct stat *interpreter)
{
    int r = add_item(sha, "hotcell.environment/1", runtime->manifest_sha256);

    if (r == 0)
        r = add_item(sha, "interpreter", real);
    if (r == 0)
        r = add_stat(sha, real, interpreter);
    for (size_t i = 0; r == 0 && i < runtime->digest.count; i++)
        r = add_pattern(sha, runtime->digest.items[i]);
    for (size_t i = 0; r == 0 && i < runtime->fix_count; i++)
        if (runtime->fixes[i].hook)
            r = add_hook(sha, runtime, runtime->fixes[i].hook);
    return r;
}

int hc_runtime_digest(const struct hc_runtime *runtime, char ret_hex[65])
{
    struct hc_sha256 sha = {0};
    struct stat st;

    if (!runtime->interpreter_path)
        return HC_VERSION_ABSENT;
    hc_autofree char *real = realpath(runtime->interpreter_path, NULL);
    if (!real || stat(real, &st) < 0)
        return errno == ENOENT ? HC_VERSION_ABSENT : -errno;
    int r = hc_sha256_init(&sha);
    if (r == 0)
        r = add_all(&sha, runtime, real, &st);
    if (r == 0)
        r = hc_sha256_final_hex(&sha, ret_hex);
    hc_sha256_done(&sha);
    return r;
}
