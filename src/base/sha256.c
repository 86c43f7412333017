#include "base/sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>

enum { DIGEST_BYTES = 32 };

/* EVP_sha256() makes every initialisation look the algorithm up again, which costs more than hashing a small
 * file. Fetched once; when two threads do so at once, one of the two objects is let go. */
static const EVP_MD *algorithm(void)
{
    static EVP_MD *fetched;
    EVP_MD *md = __atomic_load_n(&fetched, __ATOMIC_ACQUIRE), *none = NULL;
    if (md == NULL && (md = EVP_MD_fetch(NULL, "SHA256", NULL)) != NULL &&
        !__atomic_compare_exchange_n(&fetched, &none, md, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        EVP_MD_free(md);
        md = none;
    }
    return md;
}

int hc_sha256_init(struct hc_sha256 *sha)
{
    sha->context = NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context)
        return -ENOMEM;
    if (algorithm() == NULL || EVP_DigestInit_ex(context, algorithm(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        return -EIO;
    }
    sha->context = context;
    return 0;
}

int hc_sha256_update(struct hc_sha256 *sha, const void *data, size_t n)
{
    if (!sha->context)
        return -EINVAL;
    if (n == 0)
        return 0;
    return EVP_DigestUpdate(sha->context, data, n) == 1 ? 0 : -EIO;
}

static void write_hex(const unsigned char *digest, char *out)
{
    static const char hex_digits[] = "0123456789abcdef";

    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        out[2 * i] = hex_digits[digest[i] >> 4];
        out[2 * i + 1] = hex_digits[digest[i] & 15];
    }
    out[2 * (size_t)DIGEST_BYTES] = '\0';
}

int hc_sha256_final_hex(struct hc_sha256 *sha, char out[65])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    if (!sha->context)
        return -EINVAL;
    int done = EVP_DigestFinal_ex(sha->context, digest, &length);
    hc_sha256_done(sha);
    if (done != 1 || length != DIGEST_BYTES)
        return -EIO;
    write_hex(digest, out);
    return 0;
}

void hc_sha256_done(struct hc_sha256 *sha)
{
    EVP_MD_CTX_free(sha->context);
    sha->context = NULL;
}

int hc_sha256_hex(const void *data, size_t n, char out[65])
{
    struct hc_sha256 sha;

    int r = hc_sha256_init(&sha);
    if (r < 0)
        return r;
    r = hc_sha256_update(&sha, data, n);
    if (r < 0) {
        hc_sha256_done(&sha);
        return r;
    }
    return hc_sha256_final_hex(&sha, out);
}
