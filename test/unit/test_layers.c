/* The judge of layers: an attestation as the kernel gives it holds all; each layer taken away once must be
 * noticed. */
#include "cell/layers.h"

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char good_status[] =
    "Name:\tpayload\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t9\nPid:\t9\nPPid:\t8\n"
    "Uid:\t33\t33\t33\t33\nGid:\t33\t33\t33\t33\nFDSize:\t64\nGroups:\t \n"
    "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
    "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
    "Seccomp_filters:\t1\n";

static const char good_mounts[] =
    "92 43 0:41 / / ro,nosuid,nodev,relatime - tmpfs tmpfs rw,size=4096k,mode=755,uid=1,gid=1\n"
    "93 92 0:6 /null /dev/null rw,nosuid,noexec,relatime - devtmpfs devtmpfs rw,size=12k,mode=755\n"
    "94 92 0:6 /zero /dev/zero rw,nosuid,noexec,relatime - devtmpfs devtmpfs rw,size=12k,mode=755\n"
    "95 92 0:6 /full /dev/full rw,nosuid,noexec,relatime - devtmpfs devtmpfs rw,size=12k,mode=755\n"
    "96 92 0:6 /random /dev/random rw,nosuid,noexec,relatime - devtmpfs devtmpfs rw,size=12k,mode=755\n"
    "97 92 0:6 /urandom /dev/urandom rw,nosuid,noexec,relatime - devtmpfs devtmpfs rw,size=12k,mode=755\n"
    "98 92 0:6 /tty /dev/tty rw,nosuid,noexec,relatime - devtmpfs devtmpfs rw,size=12k,mode=755\n"
    "99 92 254:0 /usr /usr ro,nosuid,nodev,relatime - ext4 /dev/vda rw\n"
    "110 92 0:44 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw,hidepid=invisible,subset=pid\n"
    "111 92 0:45 /work /work rw,nosuid,nodev,relatime - tmpfs tmpfs rw,size=1k\n"
    "112 92 0:45 /tmp /tmp rw,nosuid,nodev,relatime - tmpfs tmpfs rw,size=1k\n"
    "113 92 0:45 /shm /dev/shm rw,nosuid,nodev,relatime - tmpfs tmpfs rw,size=1k\n";

static const char good_limits[] =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max cpu time              31                   32                   seconds   \n"
    "Max core file size        1                    1                    bytes     \n"
    "Max open files            256                  256                  files     \n";

struct scene {
    struct hc_cell_facts facts;
    struct hc_attestation seen;
    bool host_pressure;
};

static struct scene *good(void)
{
    static struct scene scene;
    memset(&scene, 0, sizeof scene);
    scene.facts.layers_applied = (1ull << HC_LAYER_COUNT) - 1;
    scene.facts.landlock_abi = 6;
    for (int i = 0; i < HC_NS_COUNT; i++) {
        scene.seen.ns_keeper[i] = 4026531800u + (unsigned)i;
        scene.seen.ns_payload[i] = 4026532900u + (unsigned)i;
    }
    scene.seen.host_uid = scene.seen.host_gid = 33;
    scene.seen.listener = 1;
    memcpy(scene.seen.status, good_status, sizeof good_status);
    memcpy(scene.seen.mounts, good_mounts, sizeof good_mounts);
    memcpy(scene.seen.limits, good_limits, sizeof good_limits);
    scene.seen.status_len = sizeof good_status - 1;
    scene.seen.mounts_len = sizeof good_mounts - 1;
    scene.seen.limits_len = sizeof good_limits - 1;
    scene.host_pressure = true;
    return &scene;
}

/* Puts `to` in the place of `from`, which must be there. */
static void edit(char *text, size_t size, const char *from, const char *to)
{
    char *at = strstr(text, from);
    HC_ASSERT(at != NULL && strlen(text) + strlen(to) - strlen(from) < size);
    memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    memcpy(at, to, strlen(to));
}
#define STATUS(from, to) edit(scene->seen.status, sizeof scene->seen.status, from, to)
#define MOUNTS(from, to)                                                                                     \
    do {                                                                                                     \
        edit(scene->seen.mounts, sizeof scene->seen.mounts, from, to);                                       \
        scene->seen.mounts_len = (uint32_t)strlen(scene->seen.mounts);                                       \
    } while (0)

static void judge(const struct scene *scene, uint64_t allow, struct hc_layer_results *ret)
{
    hc_layers_judge(&scene->facts, &scene->seen, scene->host_pressure, allow, ret);
}

/* Exactly one layer is gone, and the verdict says which. */
static void notices(const struct scene *scene, enum hc_layer layer)
{
    struct hc_layer_results results;
    judge(scene, 0, &results);
    for (int i = 0; i < HC_LAYER_COUNT; i++)
        if ((results.layers[i].state == HC_LAYER_APPLIED) == (i == (int)layer))
            hc_test_fail(__FILE__, __LINE__, "without %s: %s is %s (%s)", hc_layers[layer].name,
                         hc_layers[i].name, hc_layer_state_names[results.layers[i].state],
                         results.layers[i].evidence);
    HC_ASSERT_EQ_INT(results.grade, hc_layers[layer].grade_if_absent);
    HC_ASSERT_EQ_INT(results.missing, hc_layers[layer].primary ? (int)layer : -1);
}

HC_TEST(all_layers_hold)
{
    struct hc_layer_results results;
    judge(good(), 0, &results);
    for (int i = 0; i < HC_LAYER_COUNT; i++) {
        if (results.layers[i].state != HC_LAYER_APPLIED)
            hc_test_fail(__FILE__, __LINE__, "%s: %s", hc_layers[i].name, results.layers[i].evidence);
        HC_ASSERT(results.layers[i].evidence[0] != '\0');
    }
    HC_ASSERT_EQ_INT(results.grade, HC_GRADE_A);
    HC_ASSERT_EQ_INT(results.missing, -1);
}

/* Layers whose proof is a call that was seen to succeed. */
static bool by_call(enum hc_layer layer)
{
    switch (layer) {
    case HC_LAYER_USER_NAMESPACE:
    case HC_LAYER_PID_NAMESPACE:
    case HC_LAYER_MOUNT_NAMESPACE:
    case HC_LAYER_NETWORK_NAMESPACE:
    case HC_LAYER_IPC_NAMESPACE:
    case HC_LAYER_UTS_NAMESPACE:
    case HC_LAYER_CGROUP_NAMESPACE:
    case HC_LAYER_CELL_IDS:
    case HC_LAYER_READ_ONLY_ROOT:
    case HC_LAYER_DEVICES:
    case HC_LAYER_CAPABILITIES:
    case HC_LAYER_NO_NEW_PRIVS:
    case HC_LAYER_SECCOMP:
    case HC_LAYER_CORE_DUMPS_OFF:
    case HC_LAYER_PRESSURE:
        return false;
    default:
        return true;
    }
}

HC_TEST(a_call_that_did_not_succeed_is_noticed)
{
    for (int i = 0; i < HC_LAYER_COUNT; i++) {
        struct scene *scene = good();
        if (!by_call((enum hc_layer)i))
            continue;
        scene->facts.layers_applied &= ~(1ull << i);
        notices(scene, (enum hc_layer)i);
    }
}

HC_TEST(namespaces)
{
    static const enum hc_layer layers[HC_NS_COUNT] = {
        HC_LAYER_USER_NAMESPACE,    HC_LAYER_PID_NAMESPACE, HC_LAYER_MOUNT_NAMESPACE,
        HC_LAYER_NETWORK_NAMESPACE, HC_LAYER_IPC_NAMESPACE, HC_LAYER_UTS_NAMESPACE,
        HC_LAYER_CGROUP_NAMESPACE,
    };
    for (int i = 0; i < HC_NS_COUNT; i++) {
        struct scene *scene = good();
        scene->seen.ns_payload[i] = scene->seen.ns_keeper[i]; /* shared with the hall */
        notices(scene, layers[i]);
        scene = good();
        scene->seen.ns_payload[i] = 0; /* unreadable is not there */
        notices(scene, layers[i]);
        scene = good();
        scene->seen.ns_keeper[i] = 0; /* nothing to compare with is no proof */
        notices(scene, layers[i]);
    }
}

#define WITHOUT(layer, change)                                                                               \
    do {                                                                                                     \
        struct scene *scene = good();                                                                        \
        change;                                                                                              \
        notices(scene, layer);                                                                               \
    } while (0)

HC_TEST(identity)
{
    WITHOUT(HC_LAYER_CELL_IDS, STATUS("Uid:\t33\t33\t33\t33", "Uid:\t33\t33\t0\t33"));
    WITHOUT(HC_LAYER_CELL_IDS, STATUS("Uid:\t33", "Uid:\t34"));
    WITHOUT(HC_LAYER_CELL_IDS, STATUS("Gid:\t33\t33\t33\t33", "Gid:\t33\t33\t33\t0"));
    WITHOUT(HC_LAYER_CELL_IDS, STATUS("Groups:\t ", "Groups:\t0 "));
    WITHOUT(HC_LAYER_CELL_IDS, STATUS("Uid:", "Oid:"));
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    for (int i = 0; i < 5; i++) {
        char from[32], to[32];
        (void)snprintf(from, sizeof from, "%s:\t0000000000000000", sets[i]);
        (void)snprintf(to, sizeof to, "%s:\t0000000000000100", sets[i]);
        WITHOUT(HC_LAYER_CAPABILITIES, STATUS(from, to));
        WITHOUT(HC_LAYER_CAPABILITIES, STATUS(sets[i], "CapXxx"));
    }
    WITHOUT(HC_LAYER_NO_NEW_PRIVS, STATUS("NoNewPrivs:\t1", "NoNewPrivs:\t0"));
    WITHOUT(HC_LAYER_NO_NEW_PRIVS, STATUS("NoNewPrivs:\t1\n", ""));
    WITHOUT(HC_LAYER_SECCOMP, STATUS("Seccomp:\t2", "Seccomp:\t0"));
    WITHOUT(HC_LAYER_SECCOMP, STATUS("Seccomp:\t2", "Seccomp:\t1"));
    WITHOUT(HC_LAYER_SECCOMP, STATUS("Seccomp:\t2\n", ""));
}

/* The process's name is its own choice and stands in the first line: it must not pass for another line. */
HC_TEST(a_name_is_no_proof)
{
    struct scene *scene = good();
    STATUS("NoNewPrivs:\t1", "NoNewPrivs:\t0");
    STATUS("Name:\tpayload", "Name:\tNoNewPrivs:\t1\\nSeccomp:\t2");
    notices(scene, HC_LAYER_NO_NEW_PRIVS);
}

HC_TEST(mounts)
{
    struct hc_layer_results results;
    WITHOUT(HC_LAYER_READ_ONLY_ROOT, MOUNTS("/usr ro,", "/usr rw,"));
    WITHOUT(HC_LAYER_READ_ONLY_ROOT,
            MOUNTS("99 92", "100 92 254:0 / /host rw,relatime - ext4 /dev/vda rw\n99 92"));
    WITHOUT(HC_LAYER_READ_ONLY_ROOT,
            MOUNTS("99 92", "100 92 8:1 / /etc rwx,nodev - ext4 /dev/vda rw\n99 92"));
    WITHOUT(HC_LAYER_READ_ONLY_ROOT,
            MOUNTS("99 92 254:0 /usr /usr ro,nosuid,nodev,relatime - ext4", "unreadable"));
    WITHOUT(
        HC_LAYER_DEVICES,
        MOUNTS("98 92 0:6 /tty /dev/tty rw,nosuid,noexec,relatime - devtmpfs devtmpfs rw,size=12k,mode=755\n",
               ""));
    WITHOUT(HC_LAYER_DEVICES,
            MOUNTS("99 92", "100 92 0:6 /kmsg /dev/kmsg ro,nosuid - devtmpfs devtmpfs rw\n99 92"));
    WITHOUT(HC_LAYER_PRIVATE_PROC, MOUNTS(",subset=pid", ""));
    WITHOUT(HC_LAYER_PRIVATE_PROC, MOUNTS("hidepid=invisible,", ""));
    WITHOUT(HC_LAYER_PRIVATE_PROC, MOUNTS("- proc proc", "- tmpfs proc"));
    /* A root that is not ours, or writable: neither private nor read-only. */
    struct scene *scene = good();
    MOUNTS("/ ro,nosuid,nodev,relatime - tmpfs", "/ rw,nosuid,nodev,relatime - ext4");
    judge(scene, 0, &results);
    HC_ASSERT_EQ_INT(results.layers[HC_LAYER_PRIVATE_ROOT].state, HC_LAYER_UNAVAILABLE);
    HC_ASSERT_EQ_INT(results.layers[HC_LAYER_READ_ONLY_ROOT].state, HC_LAYER_UNAVAILABLE);
    HC_ASSERT_EQ_INT(results.grade, HC_GRADE_D);
    HC_ASSERT_EQ_INT(results.missing, HC_LAYER_PRIVATE_ROOT);
    /* A list that did not fit may hide a writable mount. */
    scene = good();
    scene->seen.mounts_len = sizeof scene->seen.mounts - 1;
    notices(scene, HC_LAYER_READ_ONLY_ROOT);
}

HC_TEST(limits_and_the_rest)
{
    WITHOUT(HC_LAYER_CORE_DUMPS_OFF,
            edit(scene->seen.limits, sizeof scene->seen.limits, "size        1     ", "size        0     "));
    WITHOUT(HC_LAYER_CORE_DUMPS_OFF,
            edit(scene->seen.limits, sizeof scene->seen.limits, "Max core", "Min core"));
    WITHOUT(HC_LAYER_ATTEMPTS, scene->seen.listener = 0);
    WITHOUT(HC_LAYER_PRESSURE, scene->host_pressure = false);
    WITHOUT(HC_LAYER_RLIMITS, scene->seen.limits_len = 0);
}

HC_TEST(nothing_seen_is_nothing_proved)
{
    static struct hc_cell_facts facts;
    static struct hc_attestation seen;
    struct hc_layer_results results;
    hc_layers_judge(&facts, &seen, false, 0, &results);
    for (int i = 0; i < HC_LAYER_COUNT; i++)
        HC_ASSERT_EQ_INT(results.layers[i].state, HC_LAYER_UNAVAILABLE);
    HC_ASSERT_EQ_INT(results.grade, HC_GRADE_D);
    HC_ASSERT(results.missing >= 0);
}

HC_TEST(absence_accepted_by_name)
{
    for (int i = 0; i < HC_LAYER_COUNT; i++) {
        struct scene *scene = good();
        struct hc_layer_results results;
        scene->facts.layers_applied &= ~(1ull << i);
        if (i == HC_LAYER_CGROUP_NAMESPACE)
            scene->seen.ns_payload[6] = scene->seen.ns_keeper[6];
        if (i == HC_LAYER_PRESSURE)
            scene->host_pressure = false;
        judge(scene, 1ull << i, &results);
        if (results.layers[i].state == HC_LAYER_APPLIED) /* proved otherwise than by a call */
            continue;
        HC_ASSERT_EQ_INT(results.layers[i].state,
                         hc_layers[i].removable ? HC_LAYER_ACCEPTED_ABSENT : HC_LAYER_UNAVAILABLE);
        HC_ASSERT_EQ_INT(results.missing, hc_layers[i].primary && !hc_layers[i].removable ? i : -1);
        HC_ASSERT_EQ_INT(results.grade, hc_layers[i].grade_if_absent); /* accepted is not applied */
    }
}

HC_TEST(a_later_look_only_tightens)
{
    struct hc_layer_results first, later;
    judge(good(), 0, &first);
    struct scene *scene = good();
    STATUS("Seccomp:\t2", "Seccomp:\t0");
    judge(scene, 0, &later);
    hc_layers_tighten(&first, &later);
    HC_ASSERT_EQ_INT(first.layers[HC_LAYER_SECCOMP].state, HC_LAYER_UNAVAILABLE);
    HC_ASSERT_EQ_INT(first.missing, HC_LAYER_SECCOMP);
    HC_ASSERT_EQ_INT(first.grade, HC_GRADE_D);
    judge(good(), 0, &later);
    hc_layers_tighten(&first, &later);
    HC_ASSERT_EQ_INT(first.layers[HC_LAYER_SECCOMP].state, HC_LAYER_UNAVAILABLE);
    HC_ASSERT_EQ_INT(first.grade, HC_GRADE_D);
}

HC_TEST(table_is_sound)
{
    HC_ASSERT(HC_LAYER_COUNT <= 64);
    for (int i = 0; i < HC_LAYER_COUNT; i++) {
        HC_ASSERT_EQ_INT(hc_layer_by_name(hc_layers[i].name), i);
        HC_ASSERT(hc_layers[i].grade_if_absent > HC_GRADE_A);
        HC_ASSERT(hc_layers[i].primary || hc_layers[i].grade_if_absent == HC_GRADE_B);
    }
    HC_ASSERT_EQ_INT(hc_layer_by_name("nothing"), -1);
}
