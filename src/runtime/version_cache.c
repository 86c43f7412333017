#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/version_cache.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { CACHE_BYTES_MAX = 256 * 1024, CACHE_ENTRIES_MAX = 256, CACHE_VERSION = 1 };

static char *cache_folder(void)
{
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");

    /* The XDG rule: a relative path counts as none. */
    if (base && base[0] == '/')
        return hc_printf("%s/hotcell", base);
    if (home && home[0] == '/')
        return hc_printf("%s/.cache/hotcell", home);
    return NULL;
}

static int make_folders(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* The entries of a cache that is ours and whole, else an empty object; NULL without memory. */
static json_t *load_entries(const char *folder)
{
    hc_autofree char *path = hc_printf("%s/versions.json", folder);
    hc_autofree void *data = NULL;
    struct stat st;
    size_t n = 0;

    hc_autoclose int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        hc_read_all_fd(fd, CACHE_BYTES_MAX, &data, &n) < 0)
        return json_object();
    json_t *root = json_loadb(data, n, JSON_REJECT_DUPLICATES, NULL);
    json_t *entries = json_object_get(root, "entries");
    bool usable = json_is_object(entries) && json_object_size(entries) < CACHE_ENTRIES_MAX &&
                  json_integer_value(json_object_get(root, "version")) == CACHE_VERSION;
    entries = usable ? json_incref(entries) : json_object();
    json_decref(root);
    return entries;
}

static json_int_t mtime_ns(const struct stat *st)
{
    return (json_int_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static bool same_file(const json_t *entry, const struct stat *st)
{
    return json_integer_value(json_object_get(entry, "dev")) == (json_int_t)st->st_dev &&
           json_integer_value(json_object_get(entry, "ino")) == (json_int_t)st->st_ino &&
           json_integer_value(json_object_get(entry, "size")) == (json_int_t)st->st_size &&
           json_integer_value(json_object_get(entry, "mtime_ns")) == mtime_ns(st);
}

bool hc_version_valid(const char *version)
{
    size_t n = 0;

    for (; version[n]; n++)
        if (version[n] < 0x20 || version[n] > 0x7e)
            return false;
    return n > 0 && n < 64;
}

bool hc_version_cache_get(const char *key, const struct stat *st, char ret_version[64])
{
    hc_autofree char *folder = cache_folder();
    json_t *entries = folder ? load_entries(folder) : NULL;
    const json_t *entry = json_object_get(entries, key);
    const char *version = json_string_value(json_object_get(entry, "version"));
    bool found = version && same_file(entry, st) && hc_version_valid(version);

    if (found)
        (void)memcpy(ret_version, version, strlen(version) + 1); /* hc_version_valid has bounded it */
    json_decref(entries);
    return found;
}

static int replace_file(const char *folder, const char *text)
{
    hc_autofree char *draft = hc_printf("%s/.versions.XXXXXX", folder);
    hc_autofree char *path = hc_printf("%s/versions.json", folder);

    if (!draft || !path)
        return -ENOMEM;
    hc_autoclose int fd = mkostemp(draft, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = hc_write_all(fd, text, strlen(text));
    if (r == 0 && rename(draft, path) < 0)
        r = -errno;
    if (r < 0)
        (void)unlink(draft);
    return r;
}

/* What others wrote since we looked is kept but for the moment between this reading and the rename; losing an
 * entry costs one more run of a version command. */
void hc_version_cache_put(const char *key, const struct stat *st, const char *version)
{
    hc_autofree char *folder = cache_folder();

    if (!folder || make_folders(folder) < 0)
        return;
    json_t *entries = load_entries(folder);
    json_t *entry =
        json_pack("{s:I, s:I, s:I, s:I, s:s}", "dev", (json_int_t)st->st_dev, "ino", (json_int_t)st->st_ino,
                  "size", (json_int_t)st->st_size, "mtime_ns", mtime_ns(st), "version", version);
    if (json_object_set_new(entries, key, entry) == 0) {
        json_t *root = json_pack("{s:i, s:O}", "version", CACHE_VERSION, "entries", entries);
        hc_autofree char *text = json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS);
        if (text)
            (void)replace_file(folder, text);
        json_decref(root);
    }
    json_decref(entries);
}
