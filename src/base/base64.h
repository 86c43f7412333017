/* Base64 with padding, as in RFC 4648, by libcrypto; strict when it reads. */
#ifndef HC_BASE_BASE64_H
#define HC_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* NUL-terminated text that the caller frees; NULL without memory or beyond 1 GiB. */
char *hc_base64_encode(const void *data, size_t n);

/* *ret_data: new memory with a NUL behind the bytes. -EINVAL: blanks, foreign letters, wrong padding, bits
 * that no encoder leaves; -ENOMEM. */
int hc_base64_decode(const char *text, size_t n, uint8_t **ret_data, size_t *ret_bytes);

#endif
