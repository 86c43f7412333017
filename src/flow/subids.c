#include "flow/ordinary.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define FILE_BYTES_MAX (4u * 1024 * 1024)

struct line {
    char *owner;
    struct hc_id_range range;
};

/* Digits only: no sign, no blank, no trailing text; below 2^32. */
static bool number(const char *text, uint32_t *ret_number)
{
    uint64_t value = 0;
    size_t n = strlen(text);
    if (n == 0 || n > 10 || strspn(text, "0123456789") != n)
        return false;
    for (size_t i = 0; i < n; i++)
        value = value * 10 + (uint64_t)(text[i] - '0');
    *ret_number = (uint32_t)value;
    return value <= UINT32_MAX;
}

/* OWNER:FIRST:COUNT. False: not such a line; the owner is told when there is one. */
static bool parse(char *text, struct line *ret_line)
{
    char *first = strchr(text, ':'), *count = first != NULL ? strchr(first + 1, ':') : NULL;
    ret_line->owner = text;
    if (first == NULL)
        return false;
    *first++ = '\0';
    if (count == NULL)
        return false;
    *count++ = '\0';
    struct hc_id_range *range = &ret_line->range;
    return number(first, &range->first) && number(count, &range->count) && range->count > 0 &&
           (uint64_t)range->first + range->count <= UINT32_MAX;
}

static bool owned(const char *owner, const char *user, uid_t uid)
{
    char digits[16];
    (void)snprintf(digits, sizeof digits, "%u", (unsigned)uid);
    return strcmp(owner, digits) == 0 || (user[0] != '\0' && strcmp(owner, user) == 0);
}

static int read_file(const char *path, char **ret_text)
{
    size_t bytes = 0;
    void *data = NULL;
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int error = hc_read_all_fd(fd, FILE_BYTES_MAX, &data, &bytes);
    *ret_text = data;
    return error;
}

int hc_subids_find(const char *path, const char *user, uid_t uid, struct hc_id_range *ret_range,
                   unsigned *ret_line)
{
    hc_autofree char *text = NULL;
    int found = 0;
    unsigned number_of_line = 0;
    int error = read_file(path, &text);
    if (error < 0)
        return error == -ENOENT ? 0 : error;
    for (char *at = text, *next; at != NULL; at = next) {
        next = strchr(at, '\n');
        if (next != NULL)
            *next++ = '\0';
        struct line line;
        bool good = parse(at, &line);
        number_of_line++;
        if (!owned(line.owner, user, uid))
            continue;
        if (!good) {
            *ret_line = number_of_line;
            return -EBADMSG;
        }
        if (found == 0 || line.range.count > ret_range->count)
            *ret_range = line.range;
        found = 1;
    }
    return found;
}

bool hc_subids_meet(const char *path, const char *user, uid_t uid, struct hc_id_range range)
{
    hc_autofree char *text = NULL;
    if (read_file(path, &text) < 0)
        return false;
    for (char *at = text, *next; at != NULL; at = next) {
        next = strchr(at, '\n');
        if (next != NULL)
            *next++ = '\0';
        struct line line;
        if (!parse(at, &line) || owned(line.owner, user, uid))
            continue;
        if ((uint64_t)line.range.first < (uint64_t)range.first + range.count &&
            (uint64_t)range.first < (uint64_t)line.range.first + line.range.count)
            return true;
    }
    return false;
}

bool hc_range_meets_root(struct hc_id_range range)
{
    return (uint64_t)range.first + range.count > HC_ROOT_ID_BASE &&
           range.first < HC_ROOT_ID_BASE + HC_SLICES_MAX * HC_HALL_IDS;
}

struct hc_id_range hc_slices_of(struct hc_id_range range)
{
    uint32_t slices = range.count / HC_HALL_IDS;
    slices = slices < HC_SLICES_MAX ? slices : HC_SLICES_MAX;
    return (struct hc_id_range){.first = range.first + range.count - slices * HC_HALL_IDS,
                                .count = slices * HC_HALL_IDS};
}
