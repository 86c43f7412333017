/* Where AppArmor restricts user namespaces: a profile for hotcell-hall, one for all users. */
#include "flow/grants.h"

#include "flow/apparmor.h"
#include "flow/ordinary.h"
#include "kernel/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "apparmor"

/* A name of its own first: the parser of a starting host must not find half a profile. */
static int write_profile(const char *text)
{
    FILE *file = fopen(HC_APPARMOR_PROFILE ".new", "we");
    if (file == NULL)
        return -errno;
    bool written = fputs(text, file) >= 0 && fchmod(fileno(file), 0644) == 0;
    if (fclose(file) != 0 || !written) {
        (void)unlink(HC_APPARMOR_PROFILE ".new");
        return -EIO;
    }
    return rename(HC_APPARMOR_PROFILE ".new", HC_APPARMOR_PROFILE) == 0 ? 0 : -errno;
}

static int load(const char *option)
{
    char *const argv[] = {(char *)"apparmor_parser", (char *)(uintptr_t)option, (char *)HC_APPARMOR_PROFILE,
                          NULL};
    return hc_grant_program(argv);
}

void hc_grant_apparmor(struct hc_grants *grants)
{
    char text[1024], present[1024] = "";
    if (!hc_apparmor_restricts())
        return;
    if (!hc_apparmor_profile(grants->programs, text, sizeof text)) {
        hc_grant_add(grants, NAME, HC_GRANT_FAILED, false, "%.200s can't be named in a profile: move hotcell",
                     grants->programs);
        return;
    }
    bool same = hc_file_read(AT_FDCWD, HC_APPARMOR_PROFILE, present, sizeof present) > 0 &&
                strcmp(present, text) == 0;
    int error = same || grants->dry_run ? 0 : write_profile(text);
    /* Also the same one: whether it is loaded can't be seen from the file. */
    if (error == 0 && !grants->dry_run)
        error = load("-r");
    hc_grant_add(grants, NAME,
                 error < 0         ? HC_GRANT_FAILED
                 : same            ? HC_GRANT_ALREADY
                 : grants->dry_run ? HC_GRANT_WOULD
                                   : HC_GRANT_DONE,
                 false, "profile " HC_APPARMOR_PROFILE " for hotcell-hall%s%s", error < 0 ? ": " : "",
                 error == -ECHILD ? "apparmor_parser refused it"
                 : error < 0      ? strerror(-error)
                                  : "");
}

static bool others_are_set_up(const struct hc_grants *grants)
{
    char own[32];
    bool found = false;
    DIR *folder = opendir(HC_RUN_FOLDER);
    (void)snprintf(own, sizeof own, HC_USER_FOLDER "%u", (unsigned)grants->uid);
    for (const struct dirent *entry; !found && folder != NULL && (entry = readdir(folder)) != NULL;)
        found = strncmp(entry->d_name, HC_USER_FOLDER, sizeof HC_USER_FOLDER - 1) == 0 &&
                strcmp(entry->d_name, own) != 0;
    if (folder != NULL)
        (void)closedir(folder);
    return found;
}

void hc_grant_apparmor_undo(struct hc_grants *grants)
{
    if (access(HC_APPARMOR_PROFILE, F_OK) != 0 || others_are_set_up(grants))
        return;
    int error = grants->dry_run ? 0 : load("-R");
    if (!grants->dry_run && unlink(HC_APPARMOR_PROFILE) != 0)
        error = -errno;
    else if (error == -ECHILD)
        error = 0; /* it was not loaded */
    hc_grant_add(grants, NAME,
                 error < 0         ? HC_GRANT_FAILED
                 : grants->dry_run ? HC_GRANT_WOULD
                                   : HC_GRANT_DONE,
                 false, "profile " HC_APPARMOR_PROFILE "%s%s", error < 0 ? ": " : "",
                 error < 0 ? strerror(-error) : "");
}
