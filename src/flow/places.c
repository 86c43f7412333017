#include "flow/engine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The folder of the running program: the programs of a build folder lie together, those of an installation in
 * libexec. */
static const char *own_folder(void)
{
    static char folder[200];
    if (folder[0] != '\0')
        return folder;
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n <= 0)
        return ".";
    folder[n] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash != NULL && slash > folder)
        *slash = '\0';
    return folder;
}

static const char *first_there(const char *const *candidates, const char *probe, char *out, size_t size)
{
    char path[300];
    for (size_t i = 0; candidates[i] != NULL; i++) {
        (void)snprintf(out, size, "%s/%s", own_folder(), candidates[i]);
        (void)snprintf(path, sizeof path, "%s/%s", out, probe);
        if (access(path, F_OK) == 0)
            return out;
    }
    return out;
}

const char *hc_default_programs(void)
{
    static char folder[256];
    static const char *const candidates[] = {".", "../libexec/hotcell", "..", "../..", NULL};
    return first_there(candidates, "hotcell-hall", folder, sizeof folder);
}

const char *hc_default_share(void)
{
    static char folder[256];
    static const char *const candidates[] = {"share", "../share/hotcell", "../share", "../../share", NULL};
    return first_there(candidates, "runtimes", folder, sizeof folder);
}
