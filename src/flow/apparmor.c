#include "flow/apparmor.h"

#include "kernel/files.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool hc_apparmor_restricts(void)
{
    uint64_t restricted = 0;
    return hc_file_read_number(AT_FDCWD, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                               &restricted) == 0 &&
           restricted != 0;
}

bool hc_apparmor_profile(const char *programs, char *ret_text, size_t size)
{
    /* A quoted path may hold blanks, but globs keep their meaning in it. */
    if (programs[0] != '/' || strpbrk(programs, "\"\\*?[]{}^@\n") != NULL)
        return false;
    /* Unconfined but for the name: what confines a cell is made by the hall itself. The keeper, a copy of the
     * hall's process with another program, stays under this name. */
    int n = snprintf(
        ret_text, size,
        "# Written by `hotcell doctor --setup`: lets the halls of ordinary users have user namespaces.\n"
        "abi <abi/4.0>,\n"
        "include <tunables/global>\n\n"
        "profile hotcell-hall \"%s/hotcell-hall\" flags=(unconfined) {\n"
        "  userns,\n"
        "}\n",
        programs);
    return n > 0 && (size_t)n < size;
}
