/* Small kernel files (proc, cgroup) relative to a folder descriptor, and messages with descriptors. No heap.
 */
#ifndef HC_KERNEL_FILES_H
#define HC_KERNEL_FILES_H

#include <stddef.h>
#include <stdint.h>

/* Writes `text` in one write, as proc and cgroup files demand. A short write is -EIO. */
int hc_file_write(int folder, const char *name, const char *text);
int hc_file_write_number(int folder, const char *name, uint64_t number);

/* Reads at most size-1 bytes and adds a NUL; returns the length or negative errno. */
long hc_file_read(int folder, const char *name, char *buffer, size_t size);

/* Reads a file that holds one number ("max" is UINT64_MAX). */
int hc_file_read_number(int folder, const char *name, uint64_t *ret_number);

#define HC_MESSAGE_FDS 16

/* One seqpacket message with `fd_count` descriptors. `flags` as for sendmsg; MSG_NOSIGNAL is added. */
int hc_message_send(int socket, const void *data, size_t bytes, const int *fds, unsigned fd_count, int flags);

/* Receives one message into `data`. Returns its length (0: the peer is gone) or negative errno; -EMSGSIZE
 * when it or its descriptors did not fit. Descriptors are close-on-exec; on error none is left open. */
long hc_message_receive(int socket, void *data, size_t bytes, int *ret_fds, unsigned fd_max,
                        unsigned *ret_fd_count, int flags);

#endif
