#include "eval/frame.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define FRAME_MAX (64u * 1024 * 1024)

static int send_all(int socket, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(socket, data, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EPIPE ? -ECONNRESET : -errno;
        data += sent;
        bytes -= (size_t)sent;
    }
    return 0;
}

static int receive_all(int socket, char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = recv(socket, data, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 ? -ECONNRESET : -errno;
        data += got;
        bytes -= (size_t)got;
    }
    return 0;
}

int hc_frame_send(int socket, const void *data, size_t bytes)
{
    if (bytes > FRAME_MAX)
        return -EMSGSIZE;
    uint32_t length = (uint32_t)bytes;
    int error = send_all(socket, (const char *)&length, sizeof length);
    return error < 0 ? error : send_all(socket, data, bytes);
}

int hc_frame_receive(int socket, char **ret_data, size_t *ret_bytes)
{
    uint32_t length = 0;
    int error = receive_all(socket, (char *)&length, sizeof length);
    if (error < 0)
        return error;
    if (length > FRAME_MAX)
        return -EMSGSIZE;
    hc_autofree char *data = malloc((size_t)length + 1);
    if (data == NULL)
        return -ENOMEM;
    error = receive_all(socket, data, length);
    if (error < 0)
        return error;
    data[length] = '\0';
    *ret_data = hc_take_pointer(&data);
    *ret_bytes = length;
    return 0;
}
