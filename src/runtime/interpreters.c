#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/interpreters.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "runtime/manifest_read.h"
#include "runtime/version.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOUND_MAX 64 /* versions of one language */

static bool below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* ---- what a program would see of the host ---- */

/* Whether a file system begins at this folder: then the kernel shows "/" as what was bound. */
static bool is_filesystem(const char *path)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t room = 0;
    bool found = false;

    while (mounts && getline(&line, &room, mounts) > 0) {
        char root[256], point[PATH_MAX];
        if (sscanf(line, "%*s %*s %*s %255s %4095s", root, point) == 2 && strcmp(point, path) == 0)
            found = strcmp(root, "/") == 0; /* the last one covers those before */
    }
    free(line);
    if (mounts)
        (void)fclose(mounts);
    return found;
}

int hc_tree_shown_path(const char *host, char **ret_path)
{
    glob_t found = {0};
    int code = glob(host, 0, NULL, &found);
    int r = code == GLOB_NOSPACE ? -ENOMEM : 0;

    *ret_path = NULL;
    for (size_t i = 0; r == 0 && code == 0 && i < found.gl_pathc && !*ret_path; i++) {
        hc_autofree char *real = realpath(found.gl_pathv[i], NULL);
        if (real && !below(real, "/usr") && !is_filesystem(real))
            *ret_path = hc_take_pointer(&real);
    }
    globfree(&found);
    return r;
}

/* ---- finding ---- */

static int add_absent(struct hc_runtime *runtime, char *text)
{
    if (!text)
        return -ENOMEM;
    char **items = reallocarray(runtime->absent.items, runtime->absent.count + 2, sizeof *items);
    if (!items) {
        free(text);
        return -ENOMEM;
    }
    runtime->absent.items = items;
    items[runtime->absent.count++] = text;
    items[runtime->absent.count] = NULL;
    return 0;
}

/* What a cell has of the host without a tree. */
static bool is_seen(const struct hc_runtime *runtime, const char *real)
{
    static const char *const always[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"};

    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (below(real, always[i]))
            return true;
    for (size_t i = 0; i < runtime->etc_count; i++) {
        hc_autofree char *path = realpath(runtime->etc[i].path, NULL);
        if (path && below(real, path))
            return true;
    }
    return false;
}

static bool same_file(const struct hc_interpreter *a, const char *path, const char *tree)
{
    struct stat x, y;

    return hc_string_equal(a->tree_host, tree) && stat(a->path, &x) == 0 && stat(path, &y) == 0 &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_executable(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static void interpreter_done(struct hc_interpreter *interpreter)
{
    free(interpreter->path);
    free(interpreter->place);
    free(interpreter->tree_host);
    free(interpreter->tree_cell);
    *interpreter = (struct hc_interpreter){0};
}

static int append(struct hc_runtime *runtime, struct hc_interpreter *interpreter)
{
    struct hc_interpreter *items =
        reallocarray(runtime->found, runtime->found_count + 1, sizeof *runtime->found);

    if (!items)
        return -ENOMEM;
    runtime->found = items;
    items[runtime->found_count++] = *interpreter;
    *interpreter = (struct hc_interpreter){0};
    return 0;
}

/* An executable file: one more version, unless it is one under another name or no cell can see it. */
static int add_found(struct hc_runtime *runtime, const char *path, const char *tree_host,
                     const char *tree_cell)
{
    hc_autofree char *real = realpath(path, NULL);
    hc_autofree char *tree_real = tree_host ? realpath(tree_host, NULL) : NULL;

    for (size_t i = 0; i < runtime->found_count; i++)
        if (same_file(&runtime->found[i], path, tree_host))
            return 0;
    if (!real || runtime->found_count >= FOUND_MAX)
        return 0;
    if (!is_seen(runtime, real) && !(tree_real && below(real, tree_real)))
        return add_absent(runtime,
                          hc_printf("%s%s%s lies outside of what a cell sees; give its folder as \"tree\"",
                                    path, strcmp(path, real) == 0 ? "" : " is a link, and ",
                                    strcmp(path, real) == 0 ? "" : real));
    struct hc_interpreter made = {
        .path = strdup(path),
        .place = tree_host ? hc_printf("%s%s", tree_cell, path + strlen(tree_host)) : strdup(path),
        .tree_host = tree_host ? strdup(tree_host) : NULL,
        .tree_cell = tree_cell ? strdup(tree_cell) : NULL,
    };
    int r = made.path && made.place && (!tree_host || (made.tree_host && made.tree_cell))
                ? append(runtime, &made)
                : -ENOMEM;
    interpreter_done(&made);
    return r;
}

static int add_pattern(struct hc_runtime *runtime, const char *pattern, const char *tree_host,
                       const char *tree_cell)
{
    glob_t found = {0};
    int code = glob(pattern, 0, NULL, &found);
    int r = code == GLOB_NOSPACE ? -ENOMEM : 0;

    for (size_t i = 0; r == 0 && code == 0 && i < found.gl_pathc; i++)
        if (is_executable(found.gl_pathv[i]))
            r = add_found(runtime, found.gl_pathv[i], tree_host, tree_cell);
    globfree(&found);
    return r;
}

/* One folder of the host that holds an interpreter. */
static int add_tree(struct hc_runtime *runtime, const char *host, const char *cell)
{
    size_t before = runtime->found_count, absent = runtime->absent.count;
    int r = 0;

    for (size_t i = 0; r == 0 && i < runtime->interpreters.count; i++) {
        hc_autofree char *pattern = hc_printf("%s/%s", host, runtime->interpreters.items[i]);
        r = pattern ? add_pattern(runtime, pattern, host, cell) : -ENOMEM;
    }
    if (r == 0 && runtime->found_count == before && runtime->absent.count == absent)
        r = add_absent(runtime, hc_printf("there is no %s/%s", host, runtime->interpreters.items[0]));
    return r;
}

static int find_in_trees(struct hc_runtime *runtime)
{
    glob_t found = {0};
    bool wild = strpbrk(runtime->tree_host, "*?[") != NULL;
    int code = glob(runtime->tree_host, 0, NULL, &found);
    int r = code == GLOB_NOSPACE ? -ENOMEM : 0;

    for (size_t i = 0; r == 0 && code == 0 && i < found.gl_pathc; i++) {
        const char *host = found.gl_pathv[i], *name = strrchr(host, '/') + 1;
        hc_autofree char *cell = !runtime->tree_cell ? strdup(host)
                                 : wild              ? hc_printf("%s/%s", runtime->tree_cell, name)
                                                     : strdup(runtime->tree_cell);
        r = cell ? add_tree(runtime, host, cell) : -ENOMEM;
    }
    if (r == 0 && code == GLOB_NOMATCH)
        r = add_absent(runtime, hc_printf("there is no %s", runtime->tree_host));
    globfree(&found);
    return r;
}

/* ---- views of the other versions ---- */

/* What the extension's environment sets goes before what the runtime's does. The array is new, its texts are
 * borrowed. */
static int merge_env(struct hc_runtime *view, const struct hc_runtime *extension)
{
    size_t own = view->env_count;
    struct hc_runtime_variable *merged = calloc(own + extension->env_count + 1, sizeof *merged);
    size_t count = 0;

    if (!merged)
        return -ENOMEM;
    for (size_t i = 0; i < own; i++) {
        bool replaced = false;
        for (size_t e = 0; e < extension->env_count; e++)
            replaced = replaced || strcmp(view->env[i].name, extension->env[e].name) == 0;
        if (!replaced)
            merged[count++] = view->env[i];
    }
    for (size_t e = 0; e < extension->env_count; e++)
        merged[count++] = extension->env[e];
    view->env = merged;
    view->env_count = count;
    return 0;
}

static int merge_digest(struct hc_runtime *view, const struct hc_runtime *extension)
{
    struct hc_strings all = {.items =
                                 calloc(view->digest.count + extension->digest.count + 1, sizeof(char *))};

    if (!all.items)
        return -ENOMEM;
    for (size_t i = 0; i < view->digest.count; i++)
        all.items[all.count++] = view->digest.items[i];
    for (size_t i = 0; i < extension->digest.count; i++)
        all.items[all.count++] = extension->digest.items[i];
    view->digest = all;
    return 0;
}

/* Both manifests belong to the identity of what runs. */
static int merge_identity(struct hc_runtime *view, const struct hc_runtime *extension)
{
    char both[130];

    (void)snprintf(both, sizeof both, "%s %s", view->manifest_sha256, extension->manifest_sha256);
    return hc_sha256_hex(both, strlen(both), view->manifest_sha256);
}

static int add_view(struct hc_runtime *base, const struct hc_runtime *extension,
                    const struct hc_interpreter *interpreter)
{
    struct hc_runtime *items = reallocarray(base->variants, base->variant_count + 1, sizeof *items);

    if (!items)
        return -ENOMEM;
    base->variants = items;
    struct hc_runtime *view = &items[base->variant_count++];
    *view = *base;
    view->variants = NULL;
    view->variant_count = 0;
    view->interpreter = interpreter;
    view->interpreter_path = interpreter->path;
    view->warm_native = NULL; /* only the default is kept ready */
    if (!extension)
        return 0;
    view->manifest_path = extension->manifest_path;
    view->variant = extension->variant;
    int r = merge_env(view, extension);
    if (r == 0)
        r = merge_digest(view, extension);
    return r == 0 ? merge_identity(view, extension) : r;
}

static int say_missing(struct hc_runtime *runtime)
{
    const char *first = runtime->absent.count > 0 ? runtime->absent.items[0] : runtime->interpreters.items[0];
    const char *more = runtime->interpreters.count > 1 ? " or another of its places" : "";

    runtime->missing = runtime->absent.count > 0
                           ? hc_printf("%s is not usable: %s (%s)", runtime->title, first, runtime->install)
                           : hc_printf("%s is not installed: there is no %s%s (%s)", runtime->title, first,
                                       more, runtime->install);
    return runtime->missing ? 0 : -ENOMEM;
}

/* The first that was found is the default; views of those after it are made when nothing moves any more. */
static int settle(struct hc_runtime *runtime, const struct hc_runtime *extension, size_t from)
{
    const struct hc_interpreter *found = extension ? extension->found : runtime->found;
    size_t count = extension ? extension->found_count : runtime->found_count;
    int r = 0;

    for (size_t i = from; r == 0 && i < count; i++)
        r = add_view(runtime, extension, &found[i]);
    return r;
}

int hc_interpreters_find(struct hc_runtime *runtime)
{
    int r = 0;

    if (runtime->tree_host)
        r = find_in_trees(runtime);
    for (size_t i = 0; r == 0 && !runtime->tree_host && i < runtime->interpreters.count; i++)
        r = add_pattern(runtime, runtime->interpreters.items[i], NULL, NULL);
    if (r || runtime->extends)
        return r;
    if (runtime->found_count == 0)
        return say_missing(runtime);
    runtime->interpreter = &runtime->found[0];
    runtime->interpreter_path = runtime->found[0].path;
    return settle(runtime, NULL, 1);
}

/* Paths of an extension's own are seen in every cell, as those of all runtimes are. */
static int take_paths(struct hc_runtime *base, struct hc_runtime *extension)
{
    struct hc_runtime_path *paths =
        reallocarray(base->etc, base->etc_count + extension->etc_count + 1, sizeof *paths);

    if (!paths)
        return -ENOMEM;
    base->etc = paths;
    for (size_t i = 0; i < extension->etc_count; i++)
        paths[base->etc_count++] = extension->etc[i];
    extension->etc_count = 0;
    for (size_t i = 0; i < base->variant_count; i++) {
        base->variants[i].etc = base->etc;
        base->variants[i].etc_count = base->etc_count;
    }
    return 0;
}

static int take_absent(struct hc_runtime *base, const struct hc_runtime *extension)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < extension->absent.count; i++)
        r = add_absent(base, hc_printf("%s: %s", extension->manifest_path, extension->absent.items[i]));
    return r;
}

int hc_interpreters_extend(struct hc_runtime *base, struct hc_runtime *extension)
{
    struct hc_runtime *items = reallocarray(base->additions, base->addition_count + 1, sizeof *items);

    if (!items)
        return -ENOMEM;
    base->additions = items;
    struct hc_runtime *kept = &items[base->addition_count++];
    *kept = *extension; /* its found interpreters lie in memory of their own, which stays where it is */
    *extension = (struct hc_runtime){0};
    int r = take_paths(base, kept);
    if (r == 0)
        r = take_absent(base, kept);
    return r == 0 ? settle(base, kept, 0) : r;
}

void hc_interpreters_done(struct hc_runtime *runtime)
{
    for (size_t i = 0; i < runtime->variant_count; i++) {
        struct hc_runtime *view = &runtime->variants[i];
        if (view->env != runtime->env)
            free(view->env);
        if (view->digest.items != runtime->digest.items)
            free(view->digest.items);
    }
    free(runtime->variants);
    for (size_t i = 0; i < runtime->found_count; i++)
        interpreter_done(&runtime->found[i]);
    free(runtime->found);
    for (size_t i = 0; i < runtime->addition_count; i++)
        hc_runtime_done(&runtime->additions[i]);
    free(runtime->additions);
}

/* ---- choosing ---- */

/* A wanted version is a prefix in whole parts. */
static bool version_fits(const char *wanted, const char *version)
{
    size_t n = strlen(wanted);

    return n > 0 && strncmp(wanted, version, n) == 0 && (version[n] == '\0' || version[n] == '.');
}

const struct hc_runtime *hc_runtime_default(const struct hc_runtime *runtime)
{
    return !runtime->interpreter && runtime->variant_count > 0 ? &runtime->variants[0] : runtime;
}

const struct hc_runtime *hc_runtime_of_version(const struct hc_runtime *runtime, const char *wanted,
                                               char ret_version[64])
{
    for (size_t i = 0; i < runtime->variant_count; i++)
        if (hc_string_equal(runtime->variants[i].variant, wanted)) {
            if (hc_runtime_version(&runtime->variants[i], ret_version) != 0)
                ret_version[0] = '\0';
            return &runtime->variants[i];
        }
    for (size_t i = 0; i <= runtime->variant_count; i++) {
        const struct hc_runtime *one = i == 0 ? runtime : &runtime->variants[i - 1];
        char version[64];
        if (!one->interpreter || hc_runtime_version(one, version) != 0 || !version_fits(wanted, version))
            continue;
        memcpy(ret_version, version, sizeof version);
        return one;
    }
    return NULL;
}

bool hc_runtime_flag_allowed(const struct hc_runtime *runtime, const char *flag)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-_=.:,";

    for (size_t i = 0; i < runtime->compile_flags.count; i++) {
        const char *allowed = runtime->compile_flags.items[i];
        size_t n = strlen(allowed);
        if (strcmp(allowed, flag) == 0)
            return true;
        /* what stands for the star names no path */
        if (allowed[n - 1] == '*' && strncmp(allowed, flag, n - 1) == 0 && flag[n - 1] != '\0' &&
            flag[strspn(flag, plain)] == '\0')
            return true;
    }
    return false;
}
