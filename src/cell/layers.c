#include "cell/layers.h"

#include "kernel/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct judge {
    const struct hc_cell_facts *facts;
    const struct hc_attestation *seen;
    struct hc_layer_results *results;
};

__attribute__((format(printf, 4, 5))) static void rule(struct judge *judge, enum hc_layer layer, bool holds,
                                                       const char *evidence, ...)
{
    struct hc_layer_result *result = &judge->results->layers[layer];
    va_list args;
    va_start(args, evidence);
    (void)vsnprintf(result->evidence, sizeof result->evidence, evidence, args);
    va_end(args);
    result->state = holds ? HC_LAYER_APPLIED : HC_LAYER_UNAVAILABLE;
}

static bool by_call(const struct judge *judge, enum hc_layer layer)
{
    return (judge->facts->layers_applied >> layer & 1) != 0;
}

/* The rest of the line of /proc/PID/status that begins with `key`, without its tab; empty when there is none.
 */
static void status_line(const struct judge *judge, const char *key, char *value, size_t size)
{
    value[0] = '\0';
    size_t n = strlen(key);
    for (const char *line = judge->seen->status; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, key, n) == 0 && line[n] == ':') {
            const char *from = line + n + 1 + strspn(line + n + 1, "\t ");
            size_t length = end != NULL ? (size_t)(end - from) : strlen(from);
            length = length < size ? length : size - 1;
            memcpy(value, from, length);
            value[length] = '\0';
            for (char *tab = value; (tab = strchr(tab, '\t')) != NULL;)
                *tab = ' ';
            return;
        }
        line = end != NULL ? end + 1 : NULL;
    }
}

static void judge_namespaces(struct judge *judge)
{
    static const enum hc_layer layers[HC_NS_COUNT] = {
        HC_LAYER_USER_NAMESPACE,    HC_LAYER_PID_NAMESPACE, HC_LAYER_MOUNT_NAMESPACE,
        HC_LAYER_NETWORK_NAMESPACE, HC_LAYER_IPC_NAMESPACE, HC_LAYER_UTS_NAMESPACE,
        HC_LAYER_CGROUP_NAMESPACE,
    };
    static const char *const names[HC_NS_COUNT] = {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"};
    for (int i = 0; i < HC_NS_COUNT; i++) {
        uint64_t own = judge->seen->ns_payload[i], outer = judge->seen->ns_keeper[i];
        rule(judge, layers[i], own != 0 && outer != 0 && own != outer, "%s:[%llu], outside %s:[%llu]",
             names[i], (unsigned long long)own, names[i], (unsigned long long)outer);
    }
}

static void judge_identity(struct judge *judge)
{
    char uid[64], gid[64], wanted[64], groups[64];
    status_line(judge, "Uid", uid, sizeof uid);
    status_line(judge, "Gid", gid, sizeof gid);
    status_line(judge, "Groups", groups, sizeof groups);
    unsigned id = judge->seen->host_uid;
    (void)snprintf(wanted, sizeof wanted, "%u %u %u %u", id, id, id, id);
    bool no_groups = strspn(groups, " ") == strlen(groups);
    rule(judge, HC_LAYER_CELL_IDS, strcmp(uid, wanted) == 0 && strcmp(gid, wanted) == 0 && no_groups,
         "hall ids Uid %s, Gid %s, Groups '%s'", uid, gid, groups);
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    bool none = true;
    char cap[5][32];
    for (int i = 0; i < 5; i++) {
        status_line(judge, sets[i], cap[i], sizeof cap[i]);
        none = none && strlen(cap[i]) > 0 && strspn(cap[i], "0") == strlen(cap[i]);
    }
    rule(judge, HC_LAYER_CAPABILITIES, none, "Inh %s Prm %s Eff %s Bnd %s Amb %s", cap[0], cap[1], cap[2],
         cap[3], cap[4]);
    char value[32], filters[32];
    status_line(judge, "NoNewPrivs", value, sizeof value);
    rule(judge, HC_LAYER_NO_NEW_PRIVS, strcmp(value, "1") == 0, "NoNewPrivs %s", value);
    status_line(judge, "Seccomp", value, sizeof value);
    status_line(judge, "Seccomp_filters", filters, sizeof filters);
    /* 3: the filter has just killed a thread of the process (SECCOMP_MODE_DEAD), which is stricter still */
    rule(judge, HC_LAYER_SECCOMP, strcmp(value, "2") == 0 || strcmp(value, "3") == 0,
         "Seccomp %s, filters %s", value, filters);
    rule(judge, HC_LAYER_SECUREBITS, by_call(judge, HC_LAYER_SECUREBITS), "securebits 0x%x",
         judge->facts->securebits);
}

/* One line of mountinfo in its parts; false at the end. */
struct mount_line {
    char point[128], options[128], type[32], super[256];
};

static const char *next_mount(const char *at, struct mount_line *ret_line)
{
    const char *end = at != NULL ? strchr(at, '\n') : NULL;
    if (end == NULL) /* a cut last line says nothing */
        return NULL;
    char line[1024];
    size_t n = (size_t)(end - at) < sizeof line ? (size_t)(end - at) : sizeof line - 1;
    memcpy(line, at, n);
    line[n] = '\0';
    memset(ret_line, 0, sizeof *ret_line);
    char *tail = strstr(line, " - ");
    if (tail == NULL ||
        sscanf(line, "%*s %*s %*s %*s %127s %127s", ret_line->point, ret_line->options) != 2 ||
        sscanf(tail + 3, "%31s %*s %255s", ret_line->type, ret_line->super) != 2)
        ret_line->point[0] = '?'; /* unreadable: counts as a mount that should not be there */
    return end + 1;
}

static bool may_be_writable(const char *point)
{
    static const char *const points[] = {"/work",     "/tmp",      "/dev/shm",    "/proc",        "/dev/null",
                                         "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        if (strcmp(points[i], point) == 0)
            return true;
    return false;
}

static void judge_mounts(struct judge *judge)
{
    struct mount_line line;
    bool root = false, proc = false, cut = judge->seen->mounts_len + 1 >= sizeof judge->seen->mounts;
    unsigned devices = 0, count = 0;
    char wrong[128] = "";
    for (const char *at = judge->seen->mounts; (at = next_mount(at, &line)) != NULL; count++) {
        bool read_only = strncmp(line.options, "ro,", 3) == 0 || strcmp(line.options, "ro") == 0;
        root = root || (strcmp(line.point, "/") == 0 && strcmp(line.type, "tmpfs") == 0 && read_only);
        proc = proc || (strcmp(line.point, "/proc") == 0 && strcmp(line.type, "proc") == 0 &&
                        strstr(line.super, "subset=pid") != NULL && strstr(line.super, "hidepid=") != NULL);
        devices += strncmp(line.point, "/dev/", 5) == 0 && strcmp(line.point, "/dev/shm") != 0;
        if (!read_only && !may_be_writable(line.point))
            memcpy(wrong, line.point, sizeof wrong);
    }
    rule(judge, HC_LAYER_PRIVATE_ROOT, root && by_call(judge, HC_LAYER_PRIVATE_ROOT), "%u mounts, / is %s",
         count, root ? "a read-only tmpfs" : "something else");
    rule(judge, HC_LAYER_READ_ONLY_ROOT, root && wrong[0] == '\0' && !cut, "%s%s",
         wrong[0] == '\0' ? "all but scratch, proc and nodes are ro" : "writable: ", wrong);
    rule(judge, HC_LAYER_DEVICES, devices == 6, "%u device nodes", devices);
    rule(judge, HC_LAYER_PRIVATE_PROC, proc && by_call(judge, HC_LAYER_PRIVATE_PROC), "proc %s",
         proc ? "subset=pid, hidepid" : "is not restricted");
}

/* "Max core file size        1                    1                    bytes" */
static void judge_limits(struct judge *judge)
{
    const char *line = strstr(judge->seen->limits, "Max core file size");
    unsigned long long soft = 0, hard = 0;
    /* 0 is as good as 1 where no handler waits behind a pipe: the kernel starts one at 0 too, never at 1. */
    bool read = line != NULL && sscanf(line + strlen("Max core file size"), "%llu %llu", &soft, &hard) == 2;
    bool one = read && soft == hard && (soft == 1 || (soft == 0 && judge->facts->core_handler == 0));
    rule(judge, HC_LAYER_CORE_DUMPS_OFF, one, "core file size soft %llu hard %llu", soft, hard);
    rule(judge, HC_LAYER_RLIMITS, by_call(judge, HC_LAYER_RLIMITS) && judge->seen->limits_len > 0,
         "set and read back");
    const struct hc_cell_facts *f = judge->facts;
    rule(judge, HC_LAYER_MEMORY_LIMIT, by_call(judge, HC_LAYER_MEMORY_LIMIT), "limit reads %llu bytes",
         (unsigned long long)f->memory_applied_bytes);
    rule(judge, HC_LAYER_NO_SWAP, by_call(judge, HC_LAYER_NO_SWAP), "no swap to use");
    rule(judge, HC_LAYER_PROCESS_LIMIT, by_call(judge, HC_LAYER_PROCESS_LIMIT),
         "pids.max reads %llu (1 for init)", (unsigned long long)f->processes_applied);
    rule(judge, HC_LAYER_CPU_RATE, by_call(judge, HC_LAYER_CPU_RATE), "quota %llu us of %llu us",
         (unsigned long long)f->cpu_quota_applied_us, (unsigned long long)f->cpu_period_applied_us);
    rule(judge, HC_LAYER_SCRATCH_QUOTA, by_call(judge, HC_LAYER_SCRATCH_QUOTA), "%llu bytes, %llu inodes",
         (unsigned long long)f->scratch_applied_bytes, (unsigned long long)f->scratch_applied_inodes);
}

static void judge_calls(struct judge *judge, bool host_pressure)
{
    const struct hc_cell_facts *f = judge->facts;
    rule(judge, HC_LAYER_NO_NESTED_NAMESPACES, by_call(judge, HC_LAYER_NO_NESTED_NAMESPACES),
         "user.max_user_namespaces reads %u", f->nested_max);
    rule(judge, HC_LAYER_ATTEMPTS, by_call(judge, HC_LAYER_ATTEMPTS) && judge->seen->listener != 0,
         "notification descriptor %s", judge->seen->listener != 0 ? "held by the keeper" : "missing");
    rule(judge, HC_LAYER_LANDLOCK, by_call(judge, HC_LAYER_LANDLOCK), "ABI %u", f->landlock_abi);
    rule(judge, HC_LAYER_SESSION, by_call(judge, HC_LAYER_SESSION), "setsid done");
    rule(judge, HC_LAYER_KEYRING, by_call(judge, HC_LAYER_KEYRING), "new session keyring");
    rule(judge, HC_LAYER_CPU_METER, by_call(judge, HC_LAYER_CPU_METER), "usage counter of the cell's group");
    rule(judge, HC_LAYER_CGROUP_KILL, by_call(judge, HC_LAYER_CGROUP_KILL), "cgroup.kill open");
    rule(judge, HC_LAYER_OOM_PREFERENCE, by_call(judge, HC_LAYER_OOM_PREFERENCE), "oom_score_adj %d",
         f->oom_score_adj);
    rule(judge, HC_LAYER_PRESSURE, host_pressure, "/proc/pressure %s",
         host_pressure ? "is there" : "is missing");
}

static void grade(struct hc_layer_results *results, uint64_t allow_layers)
{
    results->grade = HC_GRADE_A;
    results->missing = -1;
    for (int i = 0; i < HC_LAYER_COUNT; i++) {
        struct hc_layer_result *result = &results->layers[i];
        const struct hc_layer_row *row = &hc_layers[i];
        if (result->state == HC_LAYER_APPLIED)
            continue;
        if (row->removable && (allow_layers >> i & 1) != 0)
            result->state = HC_LAYER_ACCEPTED_ABSENT;
        else if (row->primary && results->missing < 0)
            results->missing = i;
        if (row->grade_if_absent > results->grade)
            results->grade = row->grade_if_absent;
    }
}

void hc_layers_judge(const struct hc_cell_facts *facts, const struct hc_attestation *attestation,
                     bool host_pressure, uint64_t allow_layers, struct hc_layer_results *ret_results)
{
    struct judge judge = {facts, attestation, ret_results};
    memset(ret_results, 0, sizeof *ret_results);
    judge_namespaces(&judge);
    judge_identity(&judge);
    judge_mounts(&judge);
    judge_limits(&judge);
    judge_calls(&judge, host_pressure);
    grade(ret_results, allow_layers);
}

void hc_layers_tighten(struct hc_layer_results *results, const struct hc_layer_results *again)
{
    for (int i = 0; i < HC_LAYER_COUNT; i++)
        if (again->layers[i].state != HC_LAYER_APPLIED && results->layers[i].state == HC_LAYER_APPLIED)
            results->layers[i] = again->layers[i];
    if (again->grade > results->grade)
        results->grade = again->grade;
    if (results->missing < 0)
        results->missing = again->missing;
}

const char *hc_grade_name(enum hc_grade grade)
{
    static const char *const names[] = {"A", "B", "C", "D"};
    return names[grade <= HC_GRADE_D ? grade : HC_GRADE_D];
}
