/* hotcell-hall: builds the place where cells live and execs the keeper in it.
 *
 * Its first process stays behind as the guard: it holds no socket, reads nothing more, waits for the keeper's
 * end and removes the hall's cgroups, which the keeper has no right to do.
 */
#ifndef HC_HALL_HALL_H
#define HC_HALL_HALL_H

#include "cell/wire.h"
#include "cell/words.h"

#include <stdbool.h>

/* Where a function failed and on what; becomes HC_EVENT_FAILED. */
struct hc_hall_failure {
    enum hc_stage stage;
    char detail[HC_PATH_SIZE];
};

struct hc_groups {
    int folders[HC_CONTROLLER_COUNT]; /* the hall's own cgroup in each tree; -1: none */
    int roots[HC_CONTROLLER_COUNT];   /* the tree's mount point */
    int keeper_leaf;                  /* cgroup2: where the keeper is born */
    uint32_t controllers;
    uint32_t v2_controllers;
};

/* Takes the first free slice of host ids. The lock is held as long as `ret_lock` is open anywhere. -EUSERS:
 * all taken. */
int hc_slice_take(const struct hc_hall_config *config, uint32_t *ret_slice, int *ret_lock,
                  struct hc_hall_failure *failure);

/* Whether nobody holds that slice; then `ret_lock` holds it. */
bool hc_slice_is_free(uint32_t slice, int *ret_lock);

/* Finds the cgroup trees, sweeps what dead halls left in them, makes the hall's groups and hands them to
 * `owner_id`. */
int hc_groups_make(const struct hc_hall_config *config, uint32_t slice, uint32_t owner_id,
                   struct hc_groups *ret_groups, struct hc_hall_failure *failure);

/* Kills what is left in the hall's groups and removes them. */
void hc_groups_sweep(const struct hc_groups *groups, uint32_t slice);

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
