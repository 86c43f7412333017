/* Messages between the dispatcher of an evaluation and its workers: four bytes of length, then the bytes. */
#ifndef HC_EVAL_FRAME_H
#define HC_EVAL_FRAME_H

#include <stddef.h>

/* Blocks until all is written or read. -ECONNRESET: the other side is gone, -EMSGSIZE, -ENOMEM, or what the
 * socket reports. */
int hc_frame_send(int socket, const void *data, size_t bytes);
/* `ret_data` ends with a NUL that is not counted; the caller frees it. */
int hc_frame_receive(int socket, char **ret_data, size_t *ret_bytes);

#endif
