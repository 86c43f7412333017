/* Blobs: what records speak of, by digest. Small ones are rows, large ones files of their own: a database is
 * a bad place for a quarter of a gigabyte. */
#include "store/inside.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROW_BYTES_MAX  (256u * 1024)
#define BLOB_BYTES_MAX (1024ull * 1024 * 1024)

static int open_folder(struct hc_store *store, bool make)
{
    hc_autofree char *path = hc_printf("%s/blobs", store->folder);
    if (store->blobs >= 0)
        return 0;
    if (path == NULL)
        return -ENOMEM;
    if (make && mkdir(path, 0700) != 0 && errno != EEXIST)
        return -errno;
    store->blobs = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return store->blobs < 0 ? -errno : 0;
}

/* Written beside its place and then moved there: a file of that name is whole, whoever was killed when. */
static int keep_file(struct hc_store *store, const struct hc_blob *blob)
{
    char name[96];
    struct stat info;
    int error = open_folder(store, true);
    if (error < 0)
        return error;
    if (fstatat(store->blobs, blob->sha256, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        (uint64_t)info.st_size == blob->bytes)
        return 0;
    (void)snprintf(name, sizeof name, ".%s.%d", blob->sha256, (int)getpid());
    hc_autoclose int fd =
        openat(store->blobs, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    error = hc_write_all(fd, blob->data, blob->bytes);
    if (error == 0 && renameat(store->blobs, name, store->blobs, blob->sha256) != 0)
        error = -errno;
    if (error < 0)
        (void)unlinkat(store->blobs, name, 0);
    return error;
}

static int keep_row(struct hc_store *store, const struct hc_blob *blob, char ret_message[256])
{
    (void)sqlite3_bind_text(store->keep_blob, 1, blob->sha256, -1, SQLITE_STATIC);
    (void)sqlite3_bind_blob64(store->keep_blob, 2, blob->bytes > 0 ? blob->data : "", blob->bytes,
                              SQLITE_STATIC);
    int error = sqlite3_step(store->keep_blob) == SQLITE_DONE ? 0 : hc_store_failed(store, ret_message);
    (void)sqlite3_reset(store->keep_blob);
    (void)sqlite3_clear_bindings(store->keep_blob);
    return error;
}

int hc_store_keep_blob(struct hc_store *store, const struct hc_blob *blob, char ret_message[256])
{
    if (blob->bytes <= ROW_BYTES_MAX)
        return keep_row(store, blob, ret_message);
    int error = keep_file(store, blob);
    if (error < 0)
        (void)snprintf(ret_message, 256, "a blob of %zu bytes: %s", blob->bytes, strerror(-error));
    return error;
}

static int read_row(struct hc_store *store, const char *sha256, void **ret_data, size_t *ret_bytes)
{
    int outcome = HC_STORE_ABSENT;
    (void)sqlite3_bind_text(store->find_blob, 1, sha256, -1, SQLITE_STATIC);
    int done = sqlite3_step(store->find_blob);
    if (done == SQLITE_ROW) {
        const void *data = sqlite3_column_blob(store->find_blob, 0);
        size_t n = (size_t)sqlite3_column_bytes(store->find_blob, 0);
        char *copy = malloc(n + 1);
        outcome = copy == NULL ? -ENOMEM : 0;
        if (copy != NULL) {
            memcpy(copy, n > 0 ? data : "", n);
            copy[n] = '\0';
            *ret_data = copy;
            *ret_bytes = n;
        }
    } else if (done != SQLITE_DONE) {
        outcome = hc_store_errno(store->database);
    }
    (void)sqlite3_reset(store->find_blob);
    (void)sqlite3_clear_bindings(store->find_blob);
    return outcome;
}

int hc_store_blob(struct hc_store *store, const char *sha256, void **ret_data, size_t *ret_bytes)
{
    if (strlen(sha256) != 64 || strspn(sha256, "0123456789abcdef") != 64)
        return HC_STORE_ABSENT;
    int outcome = read_row(store, sha256, ret_data, ret_bytes);
    if (outcome != HC_STORE_ABSENT)
        return outcome;
    int error = open_folder(store, false);
    if (error < 0)
        return error == -ENOENT ? HC_STORE_ABSENT : error;
    hc_autoclose int fd = openat(store->blobs, sha256, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? HC_STORE_ABSENT : -errno;
    return hc_read_all_fd(fd, BLOB_BYTES_MAX, ret_data, ret_bytes);
}

static int each_row(struct hc_store *store, int (*visit)(const char *sha256, void *context), void *context,
                    char ret_message[256])
{
    sqlite3_stmt *rows = NULL;
    int outcome = 0, done = SQLITE_ROW;
    if (sqlite3_prepare_v2(store->database, "SELECT sha256 FROM blobs ORDER BY sha256", -1, &rows, NULL) !=
        SQLITE_OK)
        return hc_store_failed(store, ret_message);
    while (outcome == 0 && (done = sqlite3_step(rows)) == SQLITE_ROW)
        outcome = visit((const char *)sqlite3_column_text(rows, 0), context);
    if (outcome == 0 && done != SQLITE_DONE)
        outcome = hc_store_failed(store, ret_message);
    (void)sqlite3_finalize(rows);
    return outcome;
}

int hc_store_each_blob(struct hc_store *store, int (*visit)(const char *sha256, void *context), void *context,
                       char ret_message[256])
{
    struct dirent **entries = NULL;
    int outcome = each_row(store, visit, context, ret_message);
    if (outcome != 0)
        return outcome;
    int error = open_folder(store, false);
    if (error < 0)
        return error == -ENOENT ? 0 : error;
    int count = scandirat(store->blobs, ".", &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (outcome == 0 && entries[i]->d_name[0] != '.')
            outcome = visit(entries[i]->d_name, context);
        free(entries[i]);
    }
    free(entries);
    return outcome;
}
