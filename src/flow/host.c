#include "flow/host.h"

#include "cell/wire.h"
#include "flow/apparmor.h"
#include "flow/trees.h"
#include "kernel/files.h"
#include "kernel/syscalls.h"
#include "kernel/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The first line of a small file; false when it can't be read. */
static bool first_line(const char *path, char *value, size_t size)
{
    if (hc_file_read(AT_FDCWD, path, value, size) < 0)
        return false;
    value[strcspn(value, "\n")] = '\0';
    return true;
}

static enum hc_host_state kernel_version(char *value, size_t size)
{
    struct utsname name;
    unsigned major = 0, minor = 0;
    if (uname(&name) != 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2)
        return HC_HOST_UNKNOWN;
    (void)snprintf(value, size, "%.60s", name.release);
    if (major < 5 || (major == 5 && minor < 14))
        return HC_HOST_BAD;
    return major < 6 || (major == 6 && minor < 1) ? HC_HOST_WEAK : HC_HOST_GOOD;
}

static enum hc_host_state user_namespaces(char *value, size_t size)
{
    uint64_t most = 0;
    if (hc_file_read_number(AT_FDCWD, "/proc/sys/user/max_user_namespaces", &most) < 0)
        return HC_HOST_BAD;
    char clone[16] = "1"; /* a switch of Debian's and others' kernels, for everybody but root */
    (void)first_line("/proc/sys/kernel/unprivileged_userns_clone", clone, sizeof clone);
    bool refused = clone[0] == '0' && geteuid() != 0;
    (void)snprintf(value, size, "user.max_user_namespaces = %llu%s", (unsigned long long)most,
                   refused ? ", kernel.unprivileged_userns_clone = 0" : "");
    return most == 0 || refused ? HC_HOST_BAD : HC_HOST_GOOD;
}

static enum hc_host_state apparmor(char *value, size_t size)
{
    if (!hc_apparmor_restricts()) {
        (void)snprintf(value, size, "no restriction of user namespaces");
        return HC_HOST_GOOD;
    }
    bool there = faccessat(AT_FDCWD, HC_APPARMOR_PROFILE, F_OK, 0) == 0;
    (void)snprintf(value, size, HC_APPARMOR_SWITCH " = 1, %s " HC_APPARMOR_PROFILE,
                   there ? "with" : "and there is no");
    return there ? HC_HOST_GOOD : geteuid() == 0 ? HC_HOST_WEAK : HC_HOST_BAD;
}

/* A cell may mount its own /proc only where its maker sees a full one. Containers cover parts of it; empty
 * folders that wait for another file system, as binfmt_misc, count as seen. */
static enum hc_host_state whole_proc(char *value, size_t size)
{
    FILE *table = fopen("/proc/self/mountinfo", "re");
    char line[4096], point[512];
    unsigned covers = 0;
    (void)snprintf(value, size, "nothing of /proc is covered");
    while (table != NULL && fgets(line, sizeof line, table) != NULL) {
        if (sscanf(line, "%*s %*s %*s %*s %511s", point) != 1 || strncmp(point, "/proc/", 6) != 0 ||
            strcmp(point, "/proc/sys/fs/binfmt_misc") == 0)
            continue;
        if (covers++ == 0)
            (void)snprintf(value, size, "%.200s is covered by a mount", point);
    }
    if (table == NULL)
        return HC_HOST_UNKNOWN;
    (void)fclose(table);
    return covers > 0 ? HC_HOST_BAD : HC_HOST_GOOD;
}

static enum hc_host_state cpu_weight(char *value, size_t size)
{
    struct hc_tree trees[HC_TREES_MAX];
    size_t count = hc_trees_find(trees);
    uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), weight = 0;
    (void)snprintf(value, size, "set when a hall is made");
    for (size_t i = 0; i < count; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%.255s/" HC_CGROUP_HOME "/%s", trees[i].mount,
                       trees[i].v2 ? "cpu.weight" : "cpu.shares");
        if (hc_file_read_number(AT_FDCWD, path, &weight) < 0)
            continue;
        (void)snprintf(value, size, "%.200s is %llu for %llu CPUs", path, (unsigned long long)weight,
                       (unsigned long long)cpus);
        return weight >= (trees[i].v2 ? 100 : 1024) * (cpus < 100 ? cpus : 100) ? HC_HOST_GOOD : HC_HOST_WEAK;
    }
    return HC_HOST_GOOD;
}

static enum hc_host_state cgroup_layout(char *value, size_t size)
{
    char controllers[256] = "", v1[256] = "";
    bool v2 = first_line("/sys/fs/cgroup/cgroup.controllers", controllers, sizeof controllers);
    bool hybrid = !v2 && (first_line("/sys/fs/cgroup/unified/cgroup.controllers", v1, sizeof v1));
    (void)snprintf(value, size, "%s",
                   v2       ? "cgroup2"
                   : hybrid ? "hybrid: v1 controllers beside a cgroup2 tree"
                            : "no cgroup2 tree at the usual places");
    if (v2 && (strstr(controllers, "memory") == NULL || strstr(controllers, "pids") == NULL))
        return HC_HOST_BAD;
    return v2 ? HC_HOST_GOOD : hybrid ? HC_HOST_WEAK : HC_HOST_BAD;
}

static enum hc_host_state core_pattern(char *value, size_t size)
{
    if (!first_line("/proc/sys/kernel/core_pattern", value, size))
        return HC_HOST_UNKNOWN;
    return value[0] == '|' || value[0] == '@' ? HC_HOST_WEAK : HC_HOST_GOOD;
}

static enum hc_host_state tiocsti(char *value, size_t size)
{
    char text[32];
    if (!first_line("/proc/sys/dev/tty/legacy_tiocsti", text, sizeof text)) {
        (void)snprintf(value, size, "dev.tty.legacy_tiocsti is not there");
        return HC_HOST_WEAK;
    }
    (void)snprintf(value, size, "dev.tty.legacy_tiocsti = %s", text);
    return text[0] == '0' ? HC_HOST_GOOD : HC_HOST_WEAK;
}

static enum hc_host_state swap(char *value, size_t size)
{
    char table[1024];
    long n = hc_file_read(AT_FDCWD, "/proc/swaps", table, sizeof table);
    if (n < 0)
        return HC_HOST_UNKNOWN;
    const char *second = strchr(table, '\n');
    bool none = second == NULL || second[1] == '\0';
    /* cgroup2 counts swap by itself; v1 where it was asked to. */
    bool counted = faccessat(AT_FDCWD, "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", F_OK, 0) == 0 ||
                   faccessat(AT_FDCWD, "/sys/fs/cgroup/memory", F_OK, 0) != 0;
    (void)snprintf(value, size, "%s",
                   none      ? "none"
                   : counted ? "in use, and cells get none of it"
                             : "in use, and not counted for a cgroup");
    return none || counted ? HC_HOST_GOOD : HC_HOST_WEAK;
}

static enum hc_host_state pressure(char *value, size_t size)
{
    bool there = faccessat(AT_FDCWD, "/proc/pressure/cpu", F_OK, 0) == 0;
    (void)snprintf(value, size, "/proc/pressure %s", there ? "is there" : "is missing");
    return there ? HC_HOST_GOOD : HC_HOST_WEAK;
}

static enum hc_host_state landlock(char *value, size_t size)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
    (void)snprintf(value, size, abi > 0 ? "ABI %ld" : "not available", abi);
    return abi > 0 ? HC_HOST_GOOD : HC_HOST_WEAK;
}

static enum hc_host_state io_uring(char *value, size_t size)
{
    char text[32];
    if (!first_line("/proc/sys/kernel/io_uring_disabled", text, sizeof text)) {
        (void)snprintf(value, size, "kernel.io_uring_disabled is not there");
        return HC_HOST_GOOD; /* cells can't reach it in any case */
    }
    (void)snprintf(value, size, "kernel.io_uring_disabled = %s", text);
    return HC_HOST_GOOD;
}

static enum hc_host_state threads_of_a_core(char *value, size_t size)
{
    if (!first_line("/sys/devices/system/cpu/smt/control", value, size)) {
        (void)snprintf(value, size, "unknown");
        return HC_HOST_UNKNOWN;
    }
    return strcmp(value, "on") == 0 ? HC_HOST_WEAK : HC_HOST_GOOD;
}

static enum hc_host_state same_page_merging(char *value, size_t size)
{
    char text[32];
    if (!first_line("/sys/kernel/mm/ksm/run", text, sizeof text)) {
        (void)snprintf(value, size, "not built in");
        return HC_HOST_GOOD;
    }
    (void)snprintf(value, size, "ksm/run = %s", text);
    return text[0] == '1' ? HC_HOST_WEAK : HC_HOST_GOOD;
}

const struct hc_host_check hc_host_checks[] = {
    {"kernel", kernel_version, "the run", "the calls that cells are built with need Linux 5.14",
     "a newer kernel"},
    {"user_namespaces", user_namespaces, "the run", "every cell is one",
     "sysctl -w user.max_user_namespaces=15000 (and kernel.unprivileged_userns_clone=1 where it is there)"},
    {"apparmor", apparmor, "the run of an ordinary user",
     "an ordinary user's namespaces would come without rights; root's do not",
     "sudo hotcell doctor --setup USER, which gives hotcell-hall a profile"},
    {"proc", whole_proc, "the run",
     "a cell mounts a /proc of its own, which the kernel allows only to who sees all of it",
     "in a container: --security-opt systempaths=unconfined (podman: --security-opt unmask=ALL)"},
    {"cgroups", cgroup_layout, "grade D without memory or pids, C without cgroup2",
     "limits, counters and the killing of a whole cell",
     "mount cgroup2 with the memory, pids and cpu controllers (systemd.unified_cgroup_hierarchy=1)"},
    {"cpu_weight", cpu_weight, NULL,
     "cells starve on a busy host when all of them weigh as little as one process tree",
     "end all halls, so that the next one sets it; for users: hotcell doctor --setup USER"},
    {"landlock", landlock, "grade B", "a second lock on files",
     "add landlock to lsm= on the kernel command line"},
    {"core_pattern", core_pattern, NULL,
     "a handler behind a pipe runs as root on the host; cells set the one limit that keeps it from being "
     "started",
     "sysctl -w kernel.core_pattern=core"},
    {"tiocsti", tiocsti, NULL,
     "typing into a terminal from a program; cells have no terminal and the filter refuses it",
     "sysctl -w dev.tty.legacy_tiocsti=0 (Linux 6.2 or newer)"},
    {"swap", swap, "grade B", "memory beyond the limit could be swapped; secrets could reach the disk",
     "swapoff -a, or swapaccount=1 on the kernel command line"},
    {"pressure", pressure, "grade B", "says whether timings were taken on a busy host",
     "psi=1 on the kernel command line"},
    {"io_uring", io_uring, NULL, "its operations pass by any filter; cells can't open one", NULL},
    {"smt", threads_of_a_core, NULL, "two cells on one core can watch each other's timing",
     "echo off > /sys/devices/system/cpu/smt/control"},
    {"ksm", same_page_merging, NULL, "merged pages tell one cell what another one holds",
     "echo 0 > /sys/kernel/mm/ksm/run"},
};
const size_t hc_host_check_count = sizeof hc_host_checks / sizeof *hc_host_checks;

const char *hc_host_state_name(enum hc_host_state state)
{
    static const char *const names[] = {"good", "weak", "bad", "unknown"};
    return names[state];
}
