#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/strings.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_READ_BYTES = 4096 };

bool hc_string_equal(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

char *hc_printf(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    int n = vasprintf(&text, fmt, args);
    va_end(args);
    return n < 0 ? NULL : text;
}

/* Reads until end of file or until the room is used up. */
static int read_into(int fd, char *data, size_t room, size_t *used, bool *ret_ended)
{
    while (*used < room) {
        ssize_t n = read(fd, data + *used, room - *used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0) {
            *ret_ended = true;
            return 0;
        }
        *used += (size_t)n;
    }
    *ret_ended = false;
    return 0;
}

int hc_read_all_fd(int fd, size_t max_bytes, void **ret_data, size_t *ret_n)
{
    hc_autofree char *data = NULL;
    size_t used = 0;
    bool ended = false;

    /* Room for one byte above the maximum tells "exactly full" from "too much" without a second probe. */
    size_t most = max_bytes < PTRDIFF_MAX - 2 ? max_bytes + 1 : PTRDIFF_MAX - 1;
    for (size_t room = FIRST_READ_BYTES; !ended; room *= 2) {
        if (room > most)
            room = most;
        char *grown = realloc(data, room + 1);
        if (!grown)
            return -ENOMEM;
        data = grown;
        int r = read_into(fd, data, room, &used, &ended);
        if (r < 0)
            return r;
        if (used > max_bytes || (!ended && used >= most))
            return -EFBIG;
    }
    data[used] = '\0';
    *ret_data = hc_take_pointer(&data);
    *ret_n = used;
    return 0;
}

int hc_write_all(int fd, const void *data, size_t n)
{
    const char *at = data;

    while (n > 0) {
        ssize_t written = write(fd, at, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        if (written == 0)
            return -EIO;
        at += written;
        n -= (size_t)written;
    }
    return 0;
}

const char *hc_errno_name(int errnum)
{
    if (errnum == INT_MIN)
        return "EUNKNOWN";
    const char *name = strerrorname_np(errnum < 0 ? -errnum : errnum);
    return name ? name : "EUNKNOWN";
}

char *hc_read_whole(const char *path, size_t *ret_bytes)
{
    struct stat info;
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > (off_t)(64u << 20))
        return NULL;
    size_t bytes = (size_t)info.st_size, at = 0;
    hc_autofree char *data = malloc(bytes + 1);
    while (data != NULL && at < bytes) {
        ssize_t n = read(fd, data + at, bytes - at);
        if (n <= 0)
            return NULL;
        at += (size_t)n;
    }
    if (data == NULL)
        return NULL;
    data[bytes] = '\0';
    *ret_bytes = bytes;
    return hc_take_pointer(&data);
}
