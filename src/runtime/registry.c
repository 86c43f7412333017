/* All manifests of some folders, and finding one among them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/cleanup.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "runtime/interpreters.h"
#include "runtime/manifest.h"
#include "runtime/manifest_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *find_equal(const struct hc_strings *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return list->items[i];
    return NULL;
}

static bool has_name(const struct hc_runtime *runtime, const char *name)
{
    if (runtime->name && strcasecmp(runtime->name, name) == 0) /* a file that extends another has none */
        return true;
    for (size_t i = 0; i < runtime->aliases.count; i++)
        if (strcasecmp(runtime->aliases.items[i], name) == 0)
            return true;
    return false;
}

/* What both claim; NULL when they can live together. */
static const char *find_clash(const struct hc_runtime *a, const struct hc_runtime *b)
{
    if (has_name(b, a->name))
        return a->name;
    for (size_t i = 0; i < a->aliases.count; i++)
        if (has_name(b, a->aliases.items[i]))
            return a->aliases.items[i];
    for (size_t i = 0; i < a->extensions.count; i++)
        if (find_equal(&b->extensions, a->extensions.items[i]))
            return a->extensions.items[i];
    return NULL;
}

static int check_clash(const struct hc_runtimes *all, const struct hc_runtime *added,
                       struct hc_problem *problem)
{
    for (size_t i = 0; i < all->count; i++) {
        const char *both = find_clash(added, &all->items[i]);
        if (both)
            return hc_problem_set(problem, 0, 0, "\"%s\" belongs to %s and to %s", both,
                                  all->items[i].manifest_path, added->manifest_path);
    }
    return 0;
}

/* A place may be taken once: by a runtime, or by a file that extends one and waits until all are read. */
static int add_runtime(struct hc_runtimes *all, struct hc_runtime *added, struct hc_problem *problem)
{
    int r = added->extends ? 0 : check_clash(all, added, problem);
    if (r)
        return r;
    struct hc_runtime *items = reallocarray(all->items, all->count + 1, sizeof *items);
    if (!items)
        return -ENOMEM;
    all->items = items;
    items[all->count++] = *added;
    *added = (struct hc_runtime){0};
    return 0;
}

static const char *find_variant(const struct hc_runtime *base, const char *variant)
{
    for (size_t i = 0; variant && i < base->addition_count; i++)
        if (hc_string_equal(base->additions[i].variant, variant))
            return base->additions[i].manifest_path;
    return NULL;
}

static struct hc_runtime *find_base(struct hc_runtimes *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (!all->items[i].extends && has_name(&all->items[i], name))
            return &all->items[i];
    return NULL;
}

static int extend(struct hc_runtimes *all, struct hc_runtime *extension, bool partial,
                  struct hc_problem *problem)
{
    struct hc_runtime *base = find_base(all, extension->extends);
    const char *other = base ? find_variant(base, extension->variant) : NULL;
    int r = 0;

    if (!base && !partial)
        r = hc_problem_set(problem, 0, 0, "extends \"%s\", which no manifest describes", extension->extends);
    if (other)
        r = hc_problem_set(problem, 0, 0, "the variant \"%s\" is in %s too", extension->variant, other);
    if (r)
        hc_problem_file(problem, extension->manifest_path);
    return r || !base ? r : hc_interpreters_extend(base, extension);
}

/* Takes the files that extend a runtime out of the list. With `partial` one whose runtime was not read is
 * nobody's business. */
static int apply_extensions(struct hc_runtimes *all, bool partial, struct hc_problem *problem)
{
    struct hc_runtimes whole = {.items = calloc(all->count + 1, sizeof *whole.items)};
    size_t count = all->count;
    int r = whole.items ? 0 : -ENOMEM;

    if (r)
        return r;
    for (size_t i = 0; i < count; i++) /* first the runtimes, so that they lie still */
        if (!all->items[i].extends)
            whole.items[whole.count++] = all->items[i];
    for (size_t i = 0; i < count; i++) {
        if (!all->items[i].extends)
            continue;
        r = r ? r : extend(&whole, &all->items[i], partial, problem);
        hc_runtime_done(&all->items[i]);
    }
    free(all->items);
    *all = whole;
    return r;
}

static int load_bytes(const char *path, void **ret_data, size_t *ret_n, struct hc_problem *problem)
{
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int r = fd < 0 ? -errno : hc_read_all_fd(fd, HC_YAML_BYTES_MAX, ret_data, ret_n);

    if (r == -EFBIG)
        return hc_problem_set(problem, 1, 1, "larger than %d bytes", HC_YAML_BYTES_MAX);
    if (r < 0)
        (void)hc_problem_set(problem, 0, 0, "not readable: %s", hc_errno_name(r));
    return r;
}

static int load_file(struct hc_runtimes *all, const char *path, struct hc_problem *problem)
{
    hc_autofree void *data = NULL;
    struct hc_runtime runtime = {0};
    size_t n = 0;

    int r = load_bytes(path, &data, &n, problem);
    if (r == 0)
        r = hc_runtime_read(path, data, n, &runtime, problem);
    if (r == 0)
        r = add_runtime(all, &runtime, problem);
    if (r)
        hc_problem_file(problem, path);
    hc_runtime_done(&runtime);
    return r;
}

static int is_manifest(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);

    return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* `but`: a file of it that was read before; NULL: none. */
static int load_folder(struct hc_runtimes *all, const char *folder, const char *but,
                       struct hc_problem *problem)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_manifest, by_bytes);
    int r = 0;

    if (count < 0 && errno == ENOENT)
        return 0;
    if (count < 0) {
        r = -errno;
        (void)hc_problem_set(problem, 0, 0, "not readable: %s", hc_errno_name(r));
        hc_problem_file(problem, folder);
        return r;
    }
    for (int i = 0; i < count; i++) {
        hc_autofree char *path = r ? NULL : hc_printf("%s/%s", folder, entries[i]->d_name);
        if (r == 0)
            r = !path ? -ENOMEM : hc_string_equal(path, but) ? 0 : load_file(all, path, problem);
        free(entries[i]);
    }
    free(entries);
    return r;
}

/* A file is named after its runtime, so one of that name can be read alone; -ENOENT when there is none. */
static int load_named(struct hc_runtimes *all, const char *folder, const char *name,
                      struct hc_problem *problem)
{
    hc_autofree char *path = hc_printf("%s/%s.yaml", folder, name);
    if (!path)
        return -ENOMEM;
    if (strchr(name, '/') || access(path, R_OK) != 0)
        return -ENOENT;
    return load_file(all, path, problem);
}

static bool holds(const char *folder, const char *path)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
}

int hc_runtimes_load_one(const char *const *folders, size_t count, const char *name, struct hc_runtimes **ret,
                         struct hc_problem *problem)
{
    struct hc_runtimes *all = calloc(1, sizeof *all);
    int r = all ? -ENOENT : -ENOMEM;
    for (size_t i = 0; r == -ENOENT && i < count; i++)
        r = load_named(all, folders[i], name, problem);
    /* The folders after the first are the administrator's: what they say of this runtime counts. */
    size_t from = 0;
    while (r == 0 && from < count && !holds(folders[from], all->items[0].manifest_path))
        from++;
    for (size_t i = 1; r == 0 && i < count; i++)
        r = load_folder(all, folders[i], i == from ? all->items[0].manifest_path : NULL, problem);
    if (r == 0)
        r = apply_extensions(all, true, problem);
    if (r == 0 && (all->count == 0 || !has_name(&all->items[0], name)))
        r = -ENOENT;
    if (r == 0)
        *ret = all;
    else
        hc_runtimes_done(all);
    return r;
}

int hc_runtimes_load(const char *const *folders, size_t count, struct hc_runtimes **ret,
                     struct hc_problem *problem)
{
    struct hc_runtimes *all = calloc(1, sizeof *all);
    int r = all ? 0 : -ENOMEM;

    if (problem)
        *problem = (struct hc_problem){0};
    for (size_t i = 0; i < count && r == 0; i++)
        r = load_folder(all, folders[i], NULL, problem);
    if (r == 0)
        r = apply_extensions(all, false, problem);
    if (r) {
        hc_runtimes_done(all);
        return r;
    }
    *ret = all;
    return 0;
}

void hc_runtimes_done(struct hc_runtimes *runtimes)
{
    if (!runtimes)
        return;
    for (size_t i = 0; i < runtimes->count; i++)
        hc_runtime_done(&runtimes->items[i]);
    free(runtimes->items);
    free(runtimes);
}

const struct hc_runtime *hc_runtime_by_name(const struct hc_runtimes *runtimes, const char *name)
{
    for (size_t i = 0; i < runtimes->count; i++)
        if (has_name(&runtimes->items[i], name))
            return &runtimes->items[i];
    return NULL;
}

static size_t extension_bytes(const struct hc_runtime *runtime, const char *base)
{
    size_t n = strlen(base), best = 0;

    for (size_t i = 0; i < runtime->extensions.count; i++) {
        size_t length = strlen(runtime->extensions.items[i]);
        if (length < n && length > best && strcmp(base + n - length, runtime->extensions.items[i]) == 0)
            best = length;
    }
    return best;
}

const struct hc_runtime *hc_runtime_by_extension(const struct hc_runtimes *runtimes, const char *filename)
{
    const char *slash = strrchr(filename, '/');
    const struct hc_runtime *found = NULL;
    size_t best = 0;

    for (size_t i = 0; i < runtimes->count; i++) {
        size_t length = extension_bytes(&runtimes->items[i], slash ? slash + 1 : filename);
        if (length > best) {
            best = length;
            found = &runtimes->items[i];
        }
    }
    return found;
}
