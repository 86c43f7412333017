#include "kernel/files.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "kernel/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int hc_file_write(int folder, const char *name, const char *text)
{
    hc_autoclose int fd = (int)HC_SYS(openat(folder, name, O_WRONLY | O_CLOEXEC));
    if (fd < 0)
        return fd;
    size_t n = strlen(text);
    long written = HC_SYS(write(fd, text, n));
    if (written < 0)
        return (int)written;
    return (size_t)written == n ? 0 : -EIO;
}

int hc_file_write_number(int folder, const char *name, uint64_t number)
{
    char buffer[32];
    struct hc_text text = HC_TEXT(buffer);
    hc_text_number(&text, number);
    return hc_file_write(folder, name, buffer);
}

long hc_file_read(int folder, const char *name, char *buffer, size_t size)
{
    hc_autoclose int fd = (int)HC_SYS(openat(folder, name, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return fd;
    size_t length = 0;
    while (length + 1 < size) {
        long n = HC_SYS(read(fd, buffer + length, size - 1 - length));
        if (n < 0)
            return n;
        if (n == 0)
            break;
        length += (size_t)n;
    }
    buffer[length] = '\0';
    return (long)length;
}

int hc_file_read_number(int folder, const char *name, uint64_t *ret_number)
{
    char buffer[64];
    long n = hc_file_read(folder, name, buffer, sizeof buffer);
    if (n < 0)
        return (int)n;
    return hc_text_value(buffer, ret_number) ? 0 : -EBADMSG;
}

int hc_message_send(int socket, const void *data, size_t bytes, const int *fds, unsigned fd_count, int flags)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * HC_MESSAGE_FDS)];
    } control;
    struct iovec part = {(void *)data, bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count > HC_MESSAGE_FDS)
        return -E2BIG;
    if (fd_count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * fd_count);
    }
    long sent;
    do
        sent = HC_SYS(sendmsg(socket, &message, flags | MSG_NOSIGNAL));
    while (sent == -EINTR);
    return sent < 0 ? (int)sent : 0;
}

static void close_all(int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        hc_close_fd(&fds[i]);
}

long hc_message_receive(int socket, void *data, size_t bytes, int *ret_fds, unsigned fd_max,
                        unsigned *ret_fd_count, int flags)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * HC_MESSAGE_FDS)];
    } control;
    int fds[HC_MESSAGE_FDS];
    unsigned count = 0;
    struct iovec part = {data, bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    long n;
    do
        n = HC_SYS(recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC));
    while (n == -EINTR);
    if (n < 0)
        return n;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        unsigned here = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (unsigned i = 0; i < here && count < HC_MESSAGE_FDS; i++)
            memcpy(&fds[count++], CMSG_DATA(header) + i * sizeof(int), sizeof(int));
    }
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || count > fd_max) {
        close_all(fds, count);
        return -EMSGSIZE;
    }
    for (unsigned i = 0; i < count; i++)
        ret_fds[i] = fds[i];
    if (ret_fd_count != NULL)
        *ret_fd_count = count;
    else
        close_all(fds, count);
    return n;
}
