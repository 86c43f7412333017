#include "policy/policy.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool ends_in(const char *text, const char *ending)
{
    size_t n = strlen(text), m = strlen(ending);
    return n > m && strcmp(text + n - m, ending) == 0;
}

static char *find(const char *name, const char *const *folders, size_t folder_count)
{
    if (strchr(name, '/') != NULL || ends_in(name, ".yaml") || ends_in(name, ".json"))
        return strdup(name);
    for (size_t i = 0; i < folder_count; i++) {
        hc_autofree char *path = hc_printf("%s/%s.yaml", folders[i], name);
        if (path != NULL && access(path, F_OK) == 0)
            return hc_take_pointer(&path);
    }
    return NULL;
}

/* "dir/strict.yaml" is the profile strict. */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    return strndup(base, dot != NULL && dot > base ? (size_t)(dot - base) : strlen(base));
}

int hc_policy_load(const char *name, const char *const *folders, size_t folder_count,
                   const char *ceiling_path, struct hc_policy **ret_policy, struct hc_problem *problem)
{
    size_t n = 0, ceiling_n = 0;
    hc_autofree char *path = find(name, folders, folder_count);
    hc_autofree char *short_name = path != NULL ? name_of(path) : NULL;
    hc_autofree char *ceiling = NULL;
    if (path == NULL)
        return -ENOENT;
    errno = 0;
    hc_autofree char *data = hc_read_whole(path, &n);
    if (data == NULL)
        return errno != 0 ? -errno : -EINVAL;
    if (ceiling_path != NULL && access(ceiling_path, F_OK) == 0) {
        ceiling = hc_read_whole(ceiling_path, &ceiling_n);
        if (ceiling == NULL) /* a ceiling that can't be read is no missing ceiling */
            return -EACCES;
    }
    if (problem != NULL)
        memset(problem, 0, sizeof *problem);
    int error = short_name != NULL
                    ? hc_policy_read(short_name, data, n, ceiling, ceiling_n, ret_policy, problem)
                    : -ENOMEM;
    if (error == HC_BAD_INPUT && problem != NULL && problem->file[0] == '\0')
        hc_problem_file(problem, path);
    if (error == 0)
        (*ret_policy)->path = hc_take_pointer(&path);
    return error;
}
