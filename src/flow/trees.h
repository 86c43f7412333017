/* The cgroup trees that this host has mounted and cells use. */
#ifndef HC_FLOW_TREES_H
#define HC_FLOW_TREES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HC_TREES_MAX 8

struct hc_tree {
    char mount[256];
    bool v2;
    bool cpu; /* v1: has the controller that knows weights */
};

/* The first cgroup2 tree, and every v1 tree with memory, pids, cpu or cpuacct. Returns their number. */
size_t hc_trees_find(struct hc_tree trees[HC_TREES_MAX]);

/* The folder of one user's halls in a tree. */
void hc_tree_user_folder(const struct hc_tree *tree, uid_t uid, char *path, size_t size);

#endif
