#include "flow/redact_host.h"

#include "base/cleanup.h"
#include "flow/engine.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_BYTES_MIN 8
#define PEOPLE_FROM_ID   1000u
#define PEOPLE_MAX       64u

static bool says_secret(const char *name, size_t n)
{
    static const char *const words[] = {"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"};
    char upper[128];
    if (n >= sizeof upper)
        return false;
    for (size_t i = 0; i < n; i++)
        upper[i] = (char)toupper((unsigned char)name[i]);
    upper[n] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(upper, words[i]) != NULL)
            return true;
    return false;
}

int hc_redact_add_environment(struct hc_redact_rules *rules, const char *const *environ_)
{
    for (; environ_ != NULL && *environ_ != NULL; environ_++) {
        const char *equals = strchr(*environ_, '=');
        if (equals == NULL || !says_secret(*environ_, (size_t)(equals - *environ_)) ||
            strlen(equals + 1) < SECRET_BYTES_MIN)
            continue;
        int error = hc_redact_add_text(rules, "secret", equals + 1, HC_REDACT_ANYWHERE);
        if (error < 0)
            return error;
    }
    return 0;
}

/* Folders that a cell has too say nothing of the host. */
static bool is_in_cells(const char *path)
{
    static const char *const trees[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc"};
    static const char *const folders[] = {"/work", "/tmp", "/tmp/home", "/dev/shm", "/var", "/home", "/opt"};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        size_t n = strlen(trees[i]);
        if (strncmp(path, trees[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
            return true;
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strcmp(path, folders[i]) == 0)
            return true;
    return false;
}

int hc_redact_add_path(struct hc_redact_rules *rules, const char *path)
{
    hc_autofree char *folder = path != NULL && path[0] == '/' ? strdup(path) : NULL;
    if (path == NULL || path[0] != '/')
        return 0;
    if (folder == NULL)
        return -ENOMEM;
    for (size_t n = strlen(folder); n > 1 && folder[n - 1] == '/'; n--)
        folder[n - 1] = '\0';
    if (strlen(folder) < 4 || is_in_cells(folder))
        return 0;
    return hc_redact_add_text(rules, "host_path", folder, HC_REDACT_PATH);
}

int hc_redact_add_name(struct hc_redact_rules *rules, const char *name)
{
    if (strcmp(name, "localhost") == 0 || strcmp(name, "cell") == 0 || strcmp(name, "(none)") == 0)
        return 0;
    return hc_redact_add_text(rules, "host_name", name, HC_REDACT_WORD);
}

/* The file itself, not the name service: no directory of a whole company is asked for every run. */
static int add_homes(struct hc_redact_rules *rules)
{
    FILE *file = fopen("/etc/passwd", "re");
    unsigned people = 0;
    int error = 0;
    for (struct passwd *row;
         file != NULL && error == 0 && people < PEOPLE_MAX && (row = fgetpwent(file)) != NULL;)
        if ((row->pw_uid >= PEOPLE_FROM_ID && strncmp(row->pw_dir, "/home/", 6) == 0) || row->pw_uid == 0) {
            people++;
            error = hc_redact_add_path(rules, row->pw_dir);
        }
    if (file != NULL)
        (void)fclose(file);
    return error;
}

int hc_redact_add_host(struct hc_redact_rules *rules, const char *store)
{
    char name[256] = "";
    const char *const paths[] = {store, hc_default_programs(), hc_default_share(), getenv("HOME")};
    int error = gethostname(name, sizeof name - 1) == 0 ? hc_redact_add_name(rules, name) : 0;
    for (size_t i = 0; error == 0 && i < sizeof paths / sizeof *paths; i++)
        error = hc_redact_add_path(rules, paths[i]);
    if (error == 0)
        error = add_homes(rules);
    return error == 0 ? hc_redact_add_environment(rules, (const char *const *)environ) : error;
}
