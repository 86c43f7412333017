#include "cli/request.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDER_DEPTH_MAX 32
#define PIPE_TIMEOUT_MS  10000

int hc_run_read_file(const char *flag, const char *path, uint64_t max_bytes, uint8_t **ret_data,
                     size_t *ret_bytes, struct hc_refusal *refusal)
{
    struct stat info;
    void *data = NULL;
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) != 0)
        return hc_refuse(refusal, HC_CAUSE_FIELD, flag, "%.200s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return hc_refuse(refusal, HC_CAUSE_FIELD, flag, "%.200s: is a folder", path);
    if (S_ISREG(info.st_mode) && (uint64_t)info.st_size > max_bytes)
        return hc_refuse(refusal, HC_CAUSE_FIELD, flag, "%.200s: has %lld bytes; at most %llu are taken",
                         path, (long long)info.st_size, (unsigned long long)max_bytes);
    /* A pipe nobody has opened for writing reads as empty: wait for the first byte, or for its last writer to
     * go. */
    struct pollfd first = {.fd = fd, .events = POLLIN};
    if (S_ISFIFO(info.st_mode) && poll(&first, 1, PIPE_TIMEOUT_MS) == 0)
        return hc_refuse(refusal, HC_CAUSE_FIELD, flag, "%.200s: a pipe, and nothing came out of it in %d s",
                         path, PIPE_TIMEOUT_MS / 1000);
    if (!S_ISREG(info.st_mode) && fcntl(fd, F_SETFL, 0) != 0)
        return -errno;
    int error = hc_read_all_fd(fd, max_bytes, &data, ret_bytes);
    if (error == -EFBIG)
        return hc_refuse(refusal, HC_CAUSE_FIELD, flag, "%.200s: has more than %llu bytes", path,
                         (unsigned long long)max_bytes);
    if (error < 0 && error != -ENOMEM)
        return hc_refuse(refusal, HC_CAUSE_FIELD, flag, "%.200s: %s", path, strerror(-error));
    *ret_data = data;
    return error;
}

static int add_tree(struct hc_spec *spec, const char *host, const char *name, unsigned depth,
                    struct hc_refusal *refusal);

static int add_file(struct hc_spec *spec, const char *host, const char *name, struct hc_refusal *refusal)
{
    uint8_t *data = NULL;
    size_t bytes = 0;
    int error =
        hc_run_read_file("file", host, HC_SPEC_INPUT_BYTES_MAX - spec->input_bytes, &data, &bytes, refusal);
    return error != 0 ? error : hc_spec_add_input(spec, name, false, data, bytes, refusal);
}

static int add_folder(struct hc_spec *spec, const char *host, const char *name, unsigned depth,
                      struct hc_refusal *refusal)
{
    if (depth > FOLDER_DEPTH_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file %.200s: folders deeper than %d", host,
                         FOLDER_DEPTH_MAX);
    int error = hc_spec_add_input(spec, name, true, NULL, 0, refusal);
    if (error != 0)
        return error;
    DIR *listing = opendir(host);
    if (listing == NULL)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file %.200s: %s", host, strerror(errno));
    struct dirent *entry;
    while (error == 0 && (entry = readdir(listing)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        hc_autofree char *below = hc_printf("%s/%s", host, entry->d_name);
        hc_autofree char *inside = hc_printf("%s/%s", name, entry->d_name);
        error = below == NULL || inside == NULL ? -ENOMEM : add_tree(spec, below, inside, depth + 1, refusal);
    }
    (void)closedir(listing);
    return error;
}

/* Links are followed where the caller named them, never inside a folder: what a folder's link points to was
 * not named. */
static int add_tree(struct hc_spec *spec, const char *host, const char *name, unsigned depth,
                    struct hc_refusal *refusal)
{
    struct stat info;
    if ((depth == 0 ? stat(host, &info) : lstat(host, &info)) != 0)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file %.200s: %s", host, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return add_folder(spec, host, name, depth, refusal);
    if (S_ISREG(info.st_mode))
        return add_file(spec, host, name, refusal);
    return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file %.200s: is %s, not a file or folder", host,
                     S_ISLNK(info.st_mode) ? "a symbolic link inside a folder" : "a special file");
}

int hc_run_add_files(struct hc_spec *spec, const char *argument, struct hc_refusal *refusal)
{
    hc_autofree char *host = strdup(argument);
    struct stat info;
    const char *name = NULL;
    if (host == NULL)
        return -ENOMEM;
    /* The first colon behind a path that exists divides; a path may hold colons itself. */
    for (char *colon = strchr(host, ':'); colon != NULL && name == NULL; colon = strchr(colon + 1, ':')) {
        *colon = '\0';
        if (stat(host, &info) == 0)
            name = argument + (colon - host) + 1;
        else
            *colon = ':';
    }
    if (name == NULL) {
        size_t n = strlen(host);
        while (n > 1 && host[n - 1] == '/')
            host[--n] = '\0';
        const char *slash = strrchr(host, '/');
        name = slash != NULL ? slash + 1 : host;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || name[0] == '\0')
            return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "--file %.200s: give it a name: %.200s:NAME",
                             argument, argument);
    }
    return add_tree(spec, host, name, 0, refusal);
}
