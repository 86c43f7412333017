/* hotcell-hall: builds the place where cells live and execs the keeper in it.
 *
 * Its first process stays behind as the guard: it holds no socket, reads nothing more, waits for the keeper's
 * end and removes the hall's cgroups, which the keeper has no right to do.
 *
 * The same for root and for an ordinary user. What root does by its rights, an ordinary user does with what
 * `hotcell doctor --setup` granted: maps through newuidmap, cgroups below a folder of its own, and whatever
 * belongs to the hall's own ids in a child that is root of a user namespace over them.
 */
#ifndef HC_HALL_HALL_H
#define HC_HALL_HALL_H

#include "cell/wire.h"
#include "cell/words.h"

#include <stdbool.h>
#include <sys/types.h>

/* Where a function failed and on what; becomes HC_EVENT_FAILED. */
struct hc_hall_failure {
    enum hc_stage stage;
    char detail[HC_PATH_SIZE];
};

/* Whose hall this is, and the host ids of its slice. */
struct hc_ids {
    bool ordinary; /* not the host's root */
    uint32_t own_uid, own_gid;
    uint32_t uid_base, gid_base; /* host ids of the hall's id 0 */
};

/* Writes the maps of `child`, which has a new user namespace. `with_own`: the user's own ids follow those of
 * the slice, so that files can be handed from one to the other; never in the namespace of a hall. */
int hc_ids_map(pid_t child, const struct hc_ids *ids, bool with_own, struct hc_hall_failure *failure);
/* Takes id 0 of the user namespace that the process is in, with no further group. */
int hc_ids_become_root(void);
/* Does `work` in a child process that is root over the slice's ids: in `namespace`, or in a new one
 * (`namespace` is -1) that has the user's own ids too. Returns what it returned. */
int hc_ids_run(const struct hc_ids *ids, int namespace, int (*work)(void *), void *context,
               struct hc_hall_failure *failure);

struct hc_groups {
    int folders[HC_CONTROLLER_COUNT]; /* the hall's own cgroup in each tree; -1: none */
    int roots[HC_CONTROLLER_COUNT];   /* the tree's mount point */
    int keeper_leaf;                  /* cgroup2: where the keeper is born */
    int cells_folder;                 /* cgroup2: parent of the cells' leaves */
    uint32_t controllers;
    uint32_t v2_controllers;
    bool own_home; /* the folder that halls are made in was granted, and stays */
    char home[HC_CONTROLLER_COUNT][HC_PATH_SIZE]; /* it, relative to the mount point */
};

/* The folder of the locks: root's, or the ordinary user's own. */
int hc_slice_folder(bool ordinary, char ret_path[HC_PATH_SIZE]);

/* Takes the first free slice of host ids. The lock is held as long as `ret_lock` is open anywhere. -EUSERS:
 * all taken. */
int hc_slice_take(const struct hc_hall_config *config, bool ordinary, uint32_t *ret_slice, int *ret_lock,
                  struct hc_hall_failure *failure);

/* Whether nobody holds that slice; then `ret_lock` holds it. */
bool hc_slice_is_free(bool ordinary, uint32_t slice, int *ret_lock);

/* Finds the cgroup trees, sweeps what dead halls left in them, makes the hall's groups and hands them to
 * the slice's first id. */
int hc_groups_make(const struct hc_hall_config *config, uint32_t slice, const struct hc_ids *ids,
                   struct hc_groups *ret_groups, struct hc_hall_failure *failure);

/* Kills what is left in the hall's groups and removes them. `namespace`: the hall's user namespace; -1: not
 * at hand. */
void hc_groups_sweep(const struct hc_groups *groups, uint32_t slice, const struct hc_ids *ids, int namespace);

/* Host ids of a slice. */
struct hc_ids hc_ids_of_slice(const struct hc_hall_config *from, uint32_t slice);

/* In the hall's namespaces: opens what needs the host's rights. To be called before the process takes its
 * hall ids. */
struct hc_environment {
    int binds[HC_BIND_MAX]; /* detached mounts; -1: left out */
    int devices[6];
    int keeper;
    int init;
    char links[6]
              [HC_PATH_SIZE]; /* /bin, /sbin, /lib, /lib64, /lib32, /libx32 as symbolic links; empty: none */
};

int hc_environment_open(const struct hc_hall_config *config, struct hc_environment *ret_environment,
                        struct hc_hall_failure *failure);

/* Builds the hall's root and the template of all cells under /cell, pivots into it. */
int hc_root_build(const struct hc_hall_config *config, struct hc_environment *environment,
                  struct hc_hall_failure *failure);

void hc_hall_detail(struct hc_hall_failure *failure, enum hc_stage stage, const char *detail);

#endif
