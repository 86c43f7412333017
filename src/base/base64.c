#include "base/base64.h"

#include "base/cleanup.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#define BYTES_MAX (1u << 30)

char *hc_base64_encode(const void *data, size_t n)
{
    char *out = n <= BYTES_MAX ? malloc(4 * ((n + 2) / 3) + 1) : NULL;
    if (out == NULL)
        return NULL;
    int length = EVP_EncodeBlock((unsigned char *)out, data, (int)n);
    out[length] = '\0';
    return out;
}

int hc_base64_decode(const char *text, size_t n, uint8_t **ret_data, size_t *ret_bytes)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t padding = n >= 4 ? (text[n - 1] == '=' ? 1u : 0u) + (text[n - 2] == '=' ? 1u : 0u) : 0;
    if (n % 4 != 0 || n / 4 > BYTES_MAX / 3 || strspn(text, alphabet) != n - padding)
        return -EINVAL; /* libcrypto overlooks blanks */
    hc_autofree uint8_t *data = malloc(n / 4 * 3 + 1);
    if (data == NULL)
        return -ENOMEM;
    int got = EVP_DecodeBlock(data, (const unsigned char *)text, (int)n);
    if (got < 0 || (size_t)got < padding)
        return -EINVAL;
    data[(size_t)got - padding] = '\0';
    hc_autofree char *again = hc_base64_encode(data, (size_t)got - padding);
    if (again == NULL)
        return -ENOMEM;
    if (memcmp(again, text, n) != 0)
        return -EINVAL;
    *ret_bytes = (size_t)got - padding;
    *ret_data = hc_take_pointer(&data);
    return 0;
}
