/* SHA-256, computed by libcrypto.
 *
 *   struct hc_sha256 sha = {0};
 *   r = hc_sha256_init(&sha);  hc_sha256_update(...) any number of times;  hc_sha256_final_hex(&sha, out);
 *
 * Errors: -ENOMEM without memory, -EIO when libcrypto refuses (for example a policy that forbids the
 * algorithm), -EINVAL when the object is not between init and final_hex. Digests are 64 lower-case
 * hexadecimal digits and a NUL.
 */
#ifndef HC_BASE_SHA256_H
#define HC_BASE_SHA256_H

#include <stddef.h>

struct hc_sha256 {
    void *context;
};

/* Whatever the object held before is overwritten, not released. On failure there is nothing to release. */
int hc_sha256_init(struct hc_sha256 *sha);

/* Adds n bytes; data may be NULL when n is 0. */
int hc_sha256_update(struct hc_sha256 *sha, const void *data, size_t n);

/* Writes the digest and releases the object, on failure as well. `out` is written only on success. */
int hc_sha256_final_hex(struct hc_sha256 *sha, char out[65]);

/* Releases the object; harmless when repeated, after final_hex, or on {0}. */
void hc_sha256_done(struct hc_sha256 *sha);

/* The digest of one piece of memory. */
int hc_sha256_hex(const void *data, size_t n, char out[65]);

#endif
