/* From an item to a request. */
#include "eval/item.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "eval/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int set_text(char **slot, const char *value)
{
    char *copy = value != NULL ? strdup(value) : NULL;
    if (value != NULL && copy == NULL)
        return -ENOMEM;
    free(*slot);
    *slot = copy;
    return 0;
}

static int take_defaults(struct hc_spec *spec, const struct hc_spec *defaults)
{
    memcpy(spec->limits, defaults->limits, sizeof spec->limits);
    memcpy(spec->limit_asked, defaults->limit_asked, sizeof spec->limit_asked);
    spec->allow_layers = defaults->allow_layers;
    spec->min_grade = defaults->min_grade;
    spec->deterministic = defaults->deterministic;
    spec->warmth = defaults->warmth;
    int error = set_text(&spec->profile, defaults->profile);
    return error == 0 ? set_text(&spec->seed, defaults->seed) : error;
}

static int take_code(const struct hc_eval_item *item, struct hc_spec *spec)
{
    const json_t *program = json_object_get(item->root, "program");
    if (program == NULL)
        program = json_object_get(item->root, "code");
    spec->code_bytes = json_string_length(program);
    spec->code = malloc(spec->code_bytes + 1);
    if (spec->code == NULL)
        return -ENOMEM;
    memcpy(spec->code, json_string_value(program), spec->code_bytes);
    spec->code[spec->code_bytes] = '\0';
    spec->code_given = true;
    return set_text(&spec->language, item->language);
}

/* A file in memory that nobody can change any more, the program included. */
static int take_stdin(const json_t *input, struct hc_spec *spec)
{
    const json_t *text = json_is_object(input) ? json_object_get(input, "repeat") : input;
    uint64_t times = json_is_object(input) ? (uint64_t)json_number_value(json_object_get(input, "times")) : 1;
    if (!json_is_string(text))
        return 0;
    hc_autoclose int fd = memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = fd < 0 ? -errno : 0;
    for (uint64_t i = 0; i < times && error == 0; i++)
        error = hc_write_all(fd, json_string_value(text), json_string_length(text));
    if (error == 0 && (lseek(fd, 0, SEEK_SET) != 0 ||
                       fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0))
        error = -errno;
    if (error == 0)
        spec->stdin_fd = hc_take_fd(&fd);
    return error;
}

static int read_path(int folder, const char *path, uint64_t max_bytes, uint8_t **ret_data, size_t *ret_bytes,
                     struct hc_refusal *refusal)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    struct stat info;
    void *data = NULL;
    hc_autoclose int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd < 0 || fstat(fd, &info) != 0)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "files", "files: %.200s: %s", path,
                         errno == EXDEV ? "leaves the data set's folder" : strerror(errno));
    if (!S_ISREG(info.st_mode))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "files", "files: %.200s: is no plain file", path);
    int error = hc_read_all_fd(fd, max_bytes, &data, ret_bytes);
    if (error == -EFBIG)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "files", "files: %.200s: more than 256M in all", path);
    *ret_data = data;
    return error;
}

static int decode(const json_t *text, uint8_t **ret_data, size_t *ret_bytes, struct hc_refusal *refusal)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = json_string_length(text);
    const char *from = json_string_value(text);
    hc_autofree uint8_t *data = malloc(n / 4 * 3 + 1);
    if (data == NULL)
        return -ENOMEM;
    size_t padding = n >= 4 ? (from[n - 1] == '=' ? 1u : 0u) + (from[n - 2] == '=' ? 1u : 0u) : 0;
    bool clean =
        n % 4 == 0 && n < INT32_MAX && strspn(from, alphabet) == n - padding; /* libcrypto overlooks blanks */
    int got = clean ? EVP_DecodeBlock(data, (const unsigned char *)from, (int)n) : -1;
    if (got < 0 || (size_t)got < padding)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "files", "files: base64 is malformed");
    *ret_bytes = (size_t)got - padding;
    *ret_data = hc_take_pointer(&data);
    return 0;
}

static int copy_text(const json_t *text, uint8_t **ret_data, size_t *ret_bytes)
{
    *ret_bytes = json_string_length(text);
    *ret_data = malloc(*ret_bytes + 1);
    if (*ret_data == NULL)
        return -ENOMEM;
    memcpy(*ret_data, json_string_value(text), *ret_bytes);
    return 0;
}

static int take_file(const json_t *file, int folder, struct hc_spec *spec, struct hc_refusal *refusal)
{
    const json_t *path = json_object_get(file, "path"), *text = json_object_get(file, "text");
    uint8_t *data = NULL;
    size_t bytes = 0;
    int error = path != NULL   ? read_path(folder, json_string_value(path),
                                           HC_SPEC_INPUT_BYTES_MAX - spec->input_bytes, &data, &bytes, refusal)
                : text != NULL ? copy_text(text, &data, &bytes)
                               : decode(json_object_get(file, "base64"), &data, &bytes, refusal);
    return error != 0 ? error
                      : hc_spec_add_input(spec, json_string_value(json_object_get(file, "name")), false, data,
                                          bytes, refusal);
}

int hc_eval_item_spec(const struct hc_eval_item *item, const struct hc_spec *defaults, int folder,
                      struct hc_spec *ret_spec, struct hc_refusal *refusal)
{
    size_t i;
    json_t *file;
    int error = hc_spec_init(ret_spec);
    if (error == 0)
        error = take_defaults(ret_spec, defaults);
    if (error == 0)
        error = take_code(item, ret_spec);
    if (error == 0)
        error = hc_eval_limits(ret_spec, json_object_get(item->root, "limits"), refusal);
    if (error == 0)
        error = take_stdin(json_object_get(item->root, "stdin"), ret_spec);
    json_array_foreach(json_object_get(item->root, "files"), i, file)
    {
        if (error == 0)
            error = take_file(file, folder, ret_spec, refusal);
    }
    json_array_foreach(json_object_get(item->root, "flags"), i, file)
    {
        if (error == 0)
            error = hc_spec_add_flag(ret_spec, json_string_value(file), refusal);
    }
    return error;
}
