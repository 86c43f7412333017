/* What root is made to run later: only what root alone can change, and a unit that says what was meant. */
#include "flow/apparmor.h"
#include "flow/grants.h"

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

HC_TEST(paths_of_root)
{
    char offender[256] = "", folder[64] = "/tmp/hotcell-grants-XXXXXX", path[128];
    HC_ASSERT(hc_path_is_roots("/usr/bin/env", offender, sizeof offender));
    HC_ASSERT(!hc_path_is_roots("usr/bin/env", offender, sizeof offender));
    HC_ASSERT(!hc_path_is_roots("/usr/bin/no such program", offender, sizeof offender));
    HC_ASSERT_STREQ(offender, "/usr/bin/no such program");
    if (geteuid() != 0)
        return; /* nothing to give away */
    HC_ASSERT(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/program", folder);
    FILE *file = fopen(path, "we");
    HC_ASSERT(file != NULL);
    (void)fclose(file);
    HC_ASSERT_EQ_INT(chmod(path, 0755), 0);
    /* /tmp is everybody's, but sticky. */
    HC_ASSERT(hc_path_is_roots(path, offender, sizeof offender));
    HC_ASSERT_EQ_INT(chmod(path, 0757), 0);
    HC_ASSERT(!hc_path_is_roots(path, offender, sizeof offender));
    HC_ASSERT_STREQ(offender, path);
    HC_ASSERT_EQ_INT(chmod(path, 0755), 0);
    HC_ASSERT_EQ_INT(chown(folder, 1000, 1000), 0);
    HC_ASSERT(!hc_path_is_roots(path, offender, sizeof offender));
    HC_ASSERT_STREQ(offender, folder);
    HC_ASSERT_EQ_INT(chown(folder, 0, 1000), 0);
    HC_ASSERT_EQ_INT(chmod(folder, 0775), 0);
    HC_ASSERT(!hc_path_is_roots(path, offender, sizeof offender));
    HC_ASSERT_EQ_INT(chown(folder, 0, 0), 0);
    HC_ASSERT(hc_path_is_roots(path, offender, sizeof offender));
    (void)unlink(path);
    (void)rmdir(folder);
}

HC_TEST(units)
{
    char text[1024], small[64];
    struct hc_grants grants = {.uid = 1000, .user = "ada"};
    HC_ASSERT(hc_grant_unit(&grants, "/usr/bin/hotcell", text, sizeof text));
    HC_ASSERT(strstr(text, "\nExecStart=/usr/bin/hotcell doctor --setup ada\n") != NULL);
    HC_ASSERT(!hc_grant_unit(&grants, "/usr/bin/hotcell", small, sizeof small));
    static const char *const odd[] = {
        "hotcell",      "",     "/a b/hotcell",    "/a%n/hotcell", "/a$HOME/hotcell",
        "/a\"/hotcell", "/a;b", "/a\nExecStart=/b"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        HC_ASSERT(!hc_grant_unit(&grants, odd[i], text, sizeof text));
    static const char *const users[] = {"", "a b", "-h", "a\nb", "a%u", "a$b"};
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        (void)snprintf(grants.user, sizeof grants.user, "%s", users[i]);
        HC_ASSERT(!hc_grant_unit(&grants, "/usr/bin/hotcell", text, sizeof text));
    }
}

HC_TEST(profile_of_apparmor)
{
    char text[1024], small[32];
    HC_ASSERT(hc_apparmor_profile("/usr/libexec/my hotcell", text, sizeof text));
    HC_ASSERT(strstr(text, "\"/usr/libexec/my hotcell/hotcell-hall\" flags=(unconfined) {\n  userns,\n}") !=
              NULL);
    HC_ASSERT(!hc_apparmor_profile("/usr/libexec/hotcell", small, sizeof small));
    static const char *const odd[] = {"relative", "/a*",   "/a?",   "/a[b]", "/{a,b}",
                                      "/@{HOME}", "/a\"b", "/a\\b", "/a\nb"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        HC_ASSERT(!hc_apparmor_profile(odd[i], text, sizeof text));
}
