/* Export of artifacts: everything is written beside the wanted folder first, then moved; nothing is ever half
 * there. */
#include "flow/collect.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "flow/opener.h"
#include "kernel/syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int copy_file(int from, int to)
{
    static __thread uint8_t chunk[65536];
    for (;;) {
        long n = HC_SYS(read(from, chunk, sizeof chunk));
        if (n <= 0)
            return (int)n;
        int error = hc_write_all(to, chunk, (size_t)n);
        if (error < 0)
            return error;
    }
}

static int make_parents(int root, const char *path)
{
    hc_autofree char *part = strdup(path);
    if (part == NULL)
        return -ENOMEM;
    for (char *slash = strchr(part, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int error = (int)HC_SYS(mkdirat(root, part, 0755));
        *slash = '/';
        if (error < 0 && error != -EEXIST)
            return error;
    }
    return 0;
}

static int stage_one(int working_folder, int staging, const struct hc_artifact *artifact)
{
    hc_autoclose int from = hc_open_beneath(working_folder, artifact->path, O_RDONLY);
    if (from < 0)
        return from;
    int error = make_parents(staging, artifact->path);
    if (error < 0)
        return error;
    /* New file, plain mode: set-id bits and owners of the cell stay behind. */
    hc_autoclose int to = (int)HC_SYS(
        openat(staging, artifact->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
    return to < 0 ? to : copy_file(from, to);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    (void)remove(path);
    return 0;
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int stage_all(int working_folder, struct hc_collection *collection, const char *staging)
{
    hc_autoclose int folder = (int)HC_SYS(open(staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder < 0)
        return folder;
    for (size_t i = 0; i < collection->count; i++) {
        if (!collection->artifacts[i].collected || collection->artifacts[i].change == HC_DELETED)
            continue;
        int error = stage_one(working_folder, folder, &collection->artifacts[i]);
        if (error < 0)
            return error;
    }
    return 0;
}

static const char *objection(const struct hc_collection *collection)
{
    if (collection->truncated)
        return "the working folder holds more than can be listed";
    if (collection->over_count)
        return "more files than --artifact-count";
    if (collection->over_size)
        return "a file is larger than --artifact-size";
    if (collection->over_total)
        return "more bytes than --artifacts";
    for (size_t i = 0; i < collection->count; i++) {
        const struct hc_artifact *artifact = &collection->artifacts[i];
        for (unsigned f = 0; artifact->collected && f < artifact->finding_count; f++)
            if (strcmp(artifact->findings[f], "unreadable") == 0)
                return "a file can't be read";
    }
    return NULL;
}

/* What the profile does not let out keeps everything in: a part of a result is none. */
static const struct hc_artifact *blocked(const struct hc_collection *collection)
{
    for (size_t i = 0; i < collection->count; i++)
        if (collection->artifacts[i].blocked_by != NULL)
            return &collection->artifacts[i];
    return NULL;
}

static bool empty_folder(const char *path)
{
    DIR *listing = opendir(path);
    if (listing == NULL)
        return false;
    int entries = 0;
    while (readdir(listing) != NULL)
        entries++;
    (void)closedir(listing);
    return entries <= 2;
}

int hc_export(int working_folder, struct hc_collection *collection, const char *folder, char ret_message[256])
{
    const char *against = objection(collection);
    struct stat info;
    if (against == NULL && lstat(folder, &info) == 0 && !empty_folder(folder))
        against = "the folder exists and is not empty";
    const struct hc_artifact *inside = against == NULL ? blocked(collection) : NULL;
    if (inside != NULL) {
        char name[8 * 100 + 1];
        size_t length =
            hc_escape_visible((const uint8_t *)inside->path,
                              inside->path_bytes < 100 ? inside->path_bytes : 100, name, sizeof name - 1);
        name[length] = '\0';
        (void)snprintf(ret_message, 256, "nothing exported: %.120s: %s", name, inside->blocked_by);
        return HC_EXPORT_REFUSED;
    }
    if (against != NULL) {
        (void)snprintf(ret_message, 256, "nothing exported: %s", against);
        return HC_EXPORT_REFUSED;
    }
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    hc_autofree char *wanted = strndup(folder, n);
    hc_autofree char *staging = wanted == NULL ? NULL : hc_printf("%s.partial-XXXXXX", wanted);
    if (staging == NULL)
        return -ENOMEM;
    if (mkdtemp(staging) == NULL) {
        (void)snprintf(ret_message, 256, "nothing exported: no folder can be made beside %.150s: %s", wanted,
                       strerror(errno));
        return HC_EXPORT_REFUSED;
    }
    int error = stage_all(working_folder, collection, staging);
    if (error == 0)
        error = (int)HC_SYS(chmod(staging, 0755));
    if (error == 0)
        error = (int)HC_SYS(rename(staging, wanted)); /* replaces an empty folder, fails on any other */
    if (error < 0) {
        remove_tree(staging);
        (void)snprintf(ret_message, 256, "nothing exported to %.150s: %s", wanted, strerror(-error));
        return HC_EXPORT_REFUSED;
    }
    for (size_t i = 0; i < collection->count; i++)
        if (collection->artifacts[i].change != HC_DELETED)
            collection->artifacts[i].exported = collection->artifacts[i].collected;
    return 0;
}
