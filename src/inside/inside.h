/* hotcell-init: process 1 of a cell. Static, no heap, no stdio; reads a plan and nothing else.
 *
 *   prepare.c   before anything is known of the run: namespaces' settings, mounts, pivot_root, Landlock rules
 *   landlock.c  the ruleset
 *   plan.c      the plan, mapped and checked
 *   files.c     the plan's files, written into the scratch space
 *   payload.c   what the child does between its birth and its exec
 *   shed.c      the steps of that; a warm host's payload takes the same
 *   host.c      the other duty: the place of a warm host
 *   main.c      the order of things, the wait for the end
 */
#ifndef HC_INSIDE_INSIDE_H
#define HC_INSIDE_INSIDE_H

#include "cell/wire.h"
#include "cell/words.h"

#include <stdbool.h>

struct hc_inside {
    struct hc_init_config config;
    struct hc_cell_facts facts;
    int landlock; /* ruleset; -1: none */
    int working_folder;
    enum hc_stage stage; /* of the step under way: what a failure is called */
};

/* The plan as mapped memory, every offset checked. */
struct hc_plan_view {
    const uint8_t *bytes;
    const struct hc_plan *plan;
    const struct hc_plan_entry *entries;
    char *argv[HC_PLAN_ARGS_MAX + 1];
    char *envp[HC_PLAN_ENV_MAX + 1];
};

int hc_prepare(struct hc_inside *inside);

/* As process of a warm host: its own view of the cells' template, its id, no capability, then the
 * interpreter's exec. Returns on failure only, with the stage in `inside`. */
int hc_become_host(struct hc_inside *inside, const struct hc_plan_view *view, const int fds[HC_START_FDS]);

/* Maps and checks the plan. The memfd must be sealed: nobody can change it between check and use. */
int hc_plan_open(int fd, struct hc_plan_view *ret_view);

/* Sets the scratch space's size and writes the plan's folders and files into the working folder. */
int hc_scratch_fill(struct hc_inside *inside, const struct hc_plan_view *view);

/* The child. Never returns: ends in the program's exec or in _exit after a report on `ready`. */
_Noreturn void hc_payload(struct hc_inside *inside, const struct hc_plan_view *view,
                          const int fds[HC_START_FDS], int ready);

static inline void hc_layer_applied(struct hc_inside *inside, enum hc_layer layer)
{
    inside->facts.layers_applied |= 1ull << layer;
}

static inline bool hc_layer_accepted_absent(const struct hc_inside *inside, enum hc_layer layer)
{
    return (inside->config.allow_layers >> layer & 1) != 0;
}

#endif
