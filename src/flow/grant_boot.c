/* At every start of the host: a unit of systemd repeats the set-up, as root. */
#include "flow/grants.h"

#include "kernel/files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "at_boot"

/* Others may write to a folder of root's without harm where it is sticky: they can't replace root's entries.
 */
static bool is_roots(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0 || info.st_uid != 0)
        return false;
    bool group = (info.st_mode & S_IWGRP) != 0 && info.st_gid != 0, all = (info.st_mode & S_IWOTH) != 0;
    return (!group && !all) || (S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0);
}

bool hc_path_is_roots(const char *path, char *offender, size_t size)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (path[0] != '/' || n >= sizeof part)
        return false;
    for (size_t i = 0; i <= n; i++) {
        if (i != 0 && path[i] != '/' && path[i] != '\0')
            continue;
        size_t length = i == 0 ? 1 : i;
        memcpy(part, path, length);
        part[length] = '\0';
        if (!is_roots(part)) {
            (void)snprintf(offender, size, "%s", part);
            return false;
        }
    }
    return true;
}

/* Units give a meaning to blanks, quotes, percent and dollar signs, and more at the beginning of a word. */
static bool is_plain(const char *word)
{
    for (const char *at = word; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("/._-+", *at) == NULL)
            return false;
    return word[0] != '\0' && word[0] != '-' && word[0] != '+';
}

bool hc_grant_unit(const struct hc_grants *grants, const char *program, char *ret_text, size_t size)
{
    if (program[0] != '/' || !is_plain(program) || !is_plain(grants->user))
        return false;
    int n = snprintf(
        ret_text, size,
        "[Unit]\nDescription=Cells for %s: cgroups and the door of hotcell\nAfter=local-fs.target\n\n"
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=%s doctor --setup %s\n\n"
        "[Install]\nWantedBy=multi-user.target\n",
        grants->user, program, grants->user);
    return n > 0 && (size_t)n < size;
}

static void unit_path(const struct hc_grants *grants, char *path, size_t size)
{
    (void)snprintf(path, size, "/etc/systemd/system/hotcell-user-%u.service", (unsigned)grants->uid);
}

static bool systemd_runs(void)
{
    return access("/run/systemd/system", F_OK) == 0;
}

static int write_unit(const char *path, const char *text, const char *name)
{
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return -errno;
    bool written = fputs(text, file) >= 0;
    if (fclose(file) != 0 || !written)
        return -EIO;
    char *const argv[] = {(char *)"systemctl", (char *)"--quiet", (char *)"enable", (char *)(uintptr_t)name,
                          NULL};
    return hc_grant_program(argv);
}

/* Root will run this program at each start: whoever can change it would be root then. */
static bool may_be_a_unit(struct hc_grants *grants, char *ret_text, size_t size)
{
    char program[256] = "", offender[256] = "";
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    if (!hc_path_is_roots(program, offender, sizeof offender))
        hc_grant_add(grants, NAME, HC_GRANT_FAILED, false,
                     "root would run %.120s, and others than root can change %.120s: install hotcell first",
                     program, offender);
    else if (!hc_grant_unit(grants, program, ret_text, size))
        hc_grant_add(grants, NAME, HC_GRANT_FAILED, false,
                     "%.150s or the name %.60s has characters that mean something in a unit", program,
                     grants->user);
    else if (!systemd_runs())
        hc_grant_add(grants, NAME, HC_GRANT_FAILED, false,
                     "systemd does not run here; let the host's start do it: hotcell doctor --setup %s",
                     grants->user);
    else
        return true;
    return false;
}

void hc_grant_at_boot(struct hc_grants *grants)
{
    char text[1024], path[128], present[1024] = "";
    if (!may_be_a_unit(grants, text, sizeof text))
        return;
    unit_path(grants, path, sizeof path);
    bool same = hc_file_read(AT_FDCWD, path, present, sizeof present) > 0 && strcmp(present, text) == 0;
    int error = same || grants->dry_run ? 0 : write_unit(path, text, strrchr(path, '/') + 1);
    hc_grant_add(grants, NAME,
                 error < 0         ? HC_GRANT_FAILED
                 : same            ? HC_GRANT_ALREADY
                 : grants->dry_run ? HC_GRANT_WOULD
                                   : HC_GRANT_DONE,
                 false, "%s%s%s", path, error < 0 ? ": " : "", error < 0 ? strerror(-error) : "");
}

void hc_grant_at_boot_undo(struct hc_grants *grants)
{
    char path[128];
    unit_path(grants, path, sizeof path);
    if (access(path, F_OK) != 0)
        return;
    char *const argv[] = {(char *)"systemctl", (char *)"--quiet", (char *)"disable", strrchr(path, '/') + 1,
                          NULL};
    if (!grants->dry_run && systemd_runs())
        (void)hc_grant_program(argv);
    int error = grants->dry_run || unlink(path) == 0 ? 0 : -errno;
    hc_grant_add(grants, NAME,
                 error < 0         ? HC_GRANT_FAILED
                 : grants->dry_run ? HC_GRANT_WOULD
                                   : HC_GRANT_DONE,
                 false, "%s", path);
}
