#include "flow/findings.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "flow/opener.h"
#include "kernel/syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define WALK_TIMEOUT_US 5000000u

struct walk {
    int root;
    const struct hc_collect_rules *rules;
    struct hc_collection *collection;
    uint64_t deadline_us;
    uint64_t seen;
};

static void find(struct hc_artifact *artifact, const char *finding)
{
    hc_find(artifact, hc_finding_named(finding, strlen(finding)));
}

static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFDIR:
        return "folder";
    case S_IFLNK:
        return "symlink";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    default:
        return "device";
    }
}

static bool odd_name(const char *path, size_t bytes)
{
    if (!hc_utf8_valid(path, bytes))
        return true;
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)path[i] < 32 || path[i] == 127)
            return true;
    return false;
}

static struct hc_artifact *append(struct hc_collection *collection, const char *path)
{
    if (collection->count % 64 == 0) {
        struct hc_artifact *grown =
            realloc(collection->artifacts, (collection->count + 64) * sizeof *collection->artifacts);
        if (grown == NULL)
            return NULL;
        collection->artifacts = grown;
    }
    struct hc_artifact *artifact = &collection->artifacts[collection->count];
    memset(artifact, 0, sizeof *artifact);
    artifact->path = strdup(path);
    if (artifact->path == NULL)
        return NULL;
    artifact->path_bytes = strlen(path);
    collection->count++;
    return artifact;
}

static const struct hc_input *input_named(const struct walk *walk, const char *path)
{
    return hc_spec_find_input(walk->rules->spec, path);
}

static bool compiled(const struct walk *walk, const char *path)
{
    const char *output = walk->rules->compile_output;
    size_t n = output != NULL ? strlen(output) : 0;
    return n > 0 && strncmp(path, output, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Inputs and the program belong to process 1 of the cell; what bears their names but belongs to the run was
 * put there by it. */
static bool untouched(const struct walk *walk, const char *path, const struct stat *info)
{
    bool ours = info->st_uid != walk->rules->program_uid;
    return ours && (strcmp(path, walk->rules->program_name) == 0 || input_named(walk, path) != NULL ||
                    compiled(walk, path));
}

static int digest(int fd, struct hc_artifact *artifact, uint64_t max_bytes)
{
    static __thread uint8_t chunk[65536];
    struct hc_sha256 sha = {0};
    int error = hc_sha256_init(&sha);
    uint64_t total = 0;
    while (error == 0) {
        long n = HC_SYS(read(fd, chunk, sizeof chunk));
        if (n < 0)
            error = (int)n;
        if (n <= 0)
            break;
        if (total == 0)
            artifact->type = hc_file_type(chunk, (size_t)n, artifact->path);
        total += (uint64_t)n;
        if (total >
            max_bytes) /* the size is that of the open file; more than that can't come from a dead cell */
            error = -EFBIG;
        if (error == 0)
            error = hc_sha256_update(&sha, chunk, (size_t)n);
    }
    if (error == 0)
        error = hc_sha256_final_hex(&sha, artifact->sha256);
    hc_sha256_done(&sha);
    if (artifact->type == NULL)
        artifact->type = "application/x-empty";
    return error;
}

/* What a dead program left can make a look-up fail, but is never a fault of ours; what the host lacks is. */
static bool host_lacks(int error)
{
    return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EIO;
}

static int take_plain(struct walk *walk, int folder, const char *name, struct hc_artifact *artifact,
                      const struct stat *listed)
{
    const struct hc_collect_rules *rules = walk->rules;
    struct hc_collection *collection = walk->collection;
    artifact->plain = true;
    artifact->bytes = (uint64_t)listed->st_size;
    artifact->type = "application/octet-stream";
    artifact->collected = rules->glob == NULL || fnmatch(rules->glob, artifact->path, 0) == 0;
    if (listed->st_nlink > 1)
        find(artifact, "several_names");
    if ((uint64_t)listed->st_blocks * 512 + 4096 < artifact->bytes)
        find(artifact, "sparse");
    if ((listed->st_mode & (S_ISUID | S_ISGID)) != 0)
        find(artifact, "set_id_bits");
    if (odd_name(artifact->path, artifact->path_bytes))
        find(artifact, "odd_name");
    if (!artifact->collected)
        return 0;
    collection->collected_count++;
    collection->collected_bytes += artifact->bytes;
    if (artifact->bytes > rules->file_bytes) {
        collection->over_size = true;
        find(artifact, "over_artifact_size");
        return 0;
    }
    if (collection->collected_bytes > rules->total_bytes) {
        collection->over_total = true;
        return 0;
    }
    hc_autoclose int fd = hc_open_beneath(folder, name, O_RDONLY);
    struct stat info;
    if (fd < 0) {
        find(artifact, "unreadable");
        return host_lacks(fd) ? fd : 0;
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return -EIO;
    artifact->type = NULL;
    return digest(fd, artifact, artifact->bytes);
}

static int take_entry(struct walk *walk, int folder, const char *name, const char *path,
                      const struct stat *info)
{
    if (untouched(walk, path, info))
        return 0;
    struct hc_artifact *artifact = append(walk->collection, path);
    if (artifact == NULL)
        return -ENOMEM;
    artifact->change = strcmp(path, walk->rules->program_name) == 0 || input_named(walk, path) != NULL
                           ? HC_CHANGED
                           : HC_CREATED;
    artifact->type = kind_of(info->st_mode);
    if (artifact->type == NULL)
        return take_plain(walk, folder, name, artifact, info);
    if (!S_ISDIR(info->st_mode))
        find(artifact, artifact->type);
    return 0;
}

static int walk_folder(struct walk *walk, int parent, const char *name, const char *path, unsigned depth);

/* A folder may be listed and yet not be searched. */
static int stat_entry(int folder, const char *name, struct stat *ret_info)
{
    int error = (int)HC_SYS(fstatat(folder, name, ret_info, AT_SYMLINK_NOFOLLOW));
    if (error != -EACCES)
        return error;
    hc_autoclose int fd = hc_open_beneath(folder, name, O_PATH);
    return fd < 0 ? fd : (int)HC_SYS(fstat(fd, ret_info));
}

static int visit(struct walk *walk, int folder, const char *name, const char *path, unsigned depth)
{
    struct stat info;
    if (++walk->seen > HC_COLLECT_ENTRIES_MAX || strlen(path) >= PATH_MAX ||
        hc_now_us() > walk->deadline_us) {
        walk->collection->truncated = true;
        walk->collection->omitted++;
        return 0;
    }
    int error = stat_entry(folder, name, &info);
    if (error < 0) {
        walk->collection->omitted++;
        return host_lacks(error) ? error : 0;
    }
    if ((error = take_entry(walk, folder, name, path, &info)) < 0 || !S_ISDIR(info.st_mode))
        return error;
    if (depth >= HC_COLLECT_DEPTH_MAX) {
        walk->collection->truncated = true;
        walk->collection->omitted++;
        return 0;
    }
    return walk_folder(walk, folder, name, path, depth + 1);
}

static int list_folder(struct walk *walk, DIR *listing, const char *path, unsigned depth)
{
    int error = 0;
    struct dirent *entry;
    while (error == 0 && (entry = readdir(listing)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (walk->collection->truncated) {
            walk->collection->omitted++;
            if (hc_now_us() > walk->deadline_us)
                break;
            continue;
        }
        hc_autofree char *below =
            path[0] == '\0' ? strdup(entry->d_name) : hc_printf("%s/%s", path, entry->d_name);
        error = below == NULL ? -ENOMEM : visit(walk, dirfd(listing), entry->d_name, below, depth);
    }
    return error;
}

/* Depth is bounded above, so is the recursion and with it the number of open descriptors. */
static int walk_folder(struct walk *walk, int parent, const char *name, const char *path, unsigned depth)
{
    /* From the folder above, not from the root: a whole path may be longer than the kernel takes. */
    int fd = hc_open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        walk->collection->omitted++;
        return host_lacks(fd) ? fd : 0;
    }
    DIR *listing = fdopendir(fd);
    if (listing == NULL) {
        close(fd);
        return -errno;
    }
    int error = list_folder(walk, listing, path, depth);
    (void)closedir(listing);
    return error;
}

static int find_deleted(struct walk *walk)
{
    const struct hc_spec *spec = walk->rules->spec;
    struct stat info;
    for (size_t i = 0; i < spec->input_count + 1; i++) {
        const char *name = i < spec->input_count ? spec->inputs[i].name : walk->rules->program_name;
        hc_autoclose int fd = hc_open_beneath(walk->root, name, O_PATH);
        if (fd >= 0 && fstat(fd, &info) == 0)
            continue;
        if (fd != -ENOENT && fd != -ENOTDIR)
            continue;
        struct hc_artifact *artifact = append(walk->collection, name);
        if (artifact == NULL)
            return -ENOMEM;
        artifact->change = HC_DELETED;
        artifact->type = "deleted";
    }
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct hc_artifact *)a)->path, ((const struct hc_artifact *)b)->path);
}

int hc_collect(int working_folder, const struct hc_collect_rules *rules, struct hc_collection *ret_collection)
{
    memset(ret_collection, 0, sizeof *ret_collection);
    struct walk walk = {.root = working_folder,
                        .rules = rules,
                        .collection = ret_collection,
                        .deadline_us = hc_now_us() + WALK_TIMEOUT_US};
    int error = walk_folder(&walk, working_folder, ".", "", 0);
    if (error == 0)
        error = find_deleted(&walk);
    if (error < 0) {
        hc_collection_done(ret_collection);
        return error;
    }
    if (ret_collection->count > 0)
        qsort(ret_collection->artifacts, ret_collection->count, sizeof *ret_collection->artifacts, by_path);
    ret_collection->over_count = ret_collection->collected_count > rules->file_count;
    ret_collection->over_total = ret_collection->collected_bytes > rules->total_bytes;
    return 0;
}

int hc_collect_read(int working_folder, const char *path, uint64_t max_bytes, uint8_t **ret_data,
                    size_t *ret_bytes)
{
    hc_autoclose int fd = hc_open_beneath(working_folder, path, O_RDONLY);
    struct stat info;
    if (fd < 0)
        return fd;
    if (fstat(fd, &info) != 0)
        return -errno;
    if (!S_ISREG(info.st_mode))
        return -EINVAL;
    void *data = NULL;
    int error = hc_read_all_fd(fd, max_bytes, &data, ret_bytes);
    *ret_data = data;
    return error;
}

void hc_collection_done(struct hc_collection *collection)
{
    for (size_t i = 0; i < collection->count; i++)
        free(collection->artifacts[i].path);
    free(collection->artifacts);
    memset(collection, 0, sizeof *collection);
}
