#include "flow/inspect_image.h"

#include <string.h>

#define SIDE_MAX   20000
#define PIXELS_MAX 100000000ull

static uint32_t big(const uint8_t *at, unsigned bytes)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

static uint32_t little(const uint8_t *at, unsigned bytes)
{
    uint32_t value = 0;
    for (unsigned i = bytes; i > 0; i--)
        value = value << 8 | at[i - 1];
    return value;
}

struct size {
    uint64_t width, height;
};

/* false: cut, or nonsense. */
static bool png(const uint8_t *d, size_t n, struct size *size)
{
    if (n < 24 || memcmp(d + 12, "IHDR", 4) != 0)
        return false;
    *size = (struct size){big(d + 16, 4), big(d + 20, 4)};
    return true;
}

static bool gif(const uint8_t *d, size_t n, struct size *size)
{
    if (n < 10)
        return false;
    *size = (struct size){little(d + 6, 2), little(d + 8, 2)};
    return true;
}

static bool bmp(const uint8_t *d, size_t n, struct size *size)
{
    if (n < 26)
        return false;
    if (little(d + 14, 4) == 12) { /* the oldest head */
        *size = (struct size){little(d + 18, 2), little(d + 20, 2)};
        return true;
    }
    int32_t width = (int32_t)little(d + 18, 4),
            height = (int32_t)little(d + 22, 4); /* negative: from the top */
    *size =
        (struct size){width < 0 ? 0 : (uint64_t)width, (uint64_t)(height < 0 ? -(int64_t)height : height)};
    return true;
}

static bool webp(const uint8_t *d, size_t n, struct size *size)
{
    if (n < 30)
        return false;
    if (memcmp(d + 12, "VP8X", 4) == 0)
        *size = (struct size){little(d + 24, 3) + 1ull, little(d + 27, 3) + 1ull};
    else if (memcmp(d + 12, "VP8L", 4) == 0)
        *size = (struct size){(little(d + 21, 4) & 0x3fff) + 1ull, (little(d + 21, 4) >> 14 & 0x3fff) + 1ull};
    else if (memcmp(d + 12, "VP8 ", 4) == 0)
        *size = (struct size){little(d + 26, 2) & 0x3fff, little(d + 28, 2) & 0x3fff};
    else
        return false;
    return true;
}

/* From segment to segment until the one that begins a frame. */
static bool jpeg(const uint8_t *d, size_t n, struct size *size)
{
    for (size_t at = 2; at + 9 < n;) {
        if (d[at] != 0xff)
            return false;
        uint8_t kind = d[at + 1];
        if (kind == 0xff) { /* filling */
            at++;
            continue;
        }
        bool frame = kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc;
        if (frame) {
            *size = (struct size){big(d + at + 7, 2), big(d + at + 5, 2)};
            return true;
        }
        bool alone = kind == 0x01 || (kind >= 0xd0 && kind <= 0xd8);
        uint32_t length = big(d + at + 2, 2);
        if (!alone && length < 2)
            return false;
        at += alone ? 2 : 2 + (size_t)length;
    }
    return false;
}

void hc_inspect_image(struct hc_artifact *artifact, const uint8_t *data, size_t n)
{
    static const struct {
        const char *type;
        bool (*size_of)(const uint8_t *data, size_t n, struct size *size);
    } formats[] = {{"image/png", png},
                   {"image/jpeg", jpeg},
                   {"image/gif", gif},
                   {"image/webp", webp},
                   {"image/bmp", bmp}};
    struct size size = {0};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(artifact->type, formats[i].type) != 0)
            continue;
        if (!formats[i].size_of(data, n, &size) || size.width == 0 || size.height == 0)
            hc_find(artifact, HC_FINDING_BROKEN_IMAGE);
        else if (size.width > SIDE_MAX || size.height > SIDE_MAX || size.width * size.height > PIXELS_MAX)
            hc_find(artifact, HC_FINDING_HUGE_IMAGE);
    }
}
