/* hotcell-keeper: makes and ends cells. "Root" of the hall's user namespace, process 1 of the hall, no heap.
 *
 * It reads fixed-size requests of the library and reports of its own init programs. Bytes of a run pass
 * through it in one place only (calls.c): copied, bounded, never interpreted.
 */
#ifndef HC_KEEPER_KEEPER_H
#define HC_KEEPER_KEEPER_H

#include "cell/wire.h"
#include "cell/words.h"

#include <stdbool.h>
#include <sys/types.h>

enum hc_cell_state {
    HC_CELL_FREE,
    HC_CELL_MAKING,
    HC_CELL_EMPTY,
    HC_CELL_STARTING,
    HC_CELL_RUNNING,
    HC_CELL_DYING
};

struct hc_cell {
    enum hc_cell_state state;
    uint32_t slot;
    pid_t init_pid;
    int init_pidfd;
    int init_socket;
    int payload_pidfd;
    int listener;
    int leaves[HC_CONTROLLER_COUNT];
    uint32_t calls_max;
    uint32_t calls_forwarded;
    uint64_t calls_omitted;
    bool reaped;
    struct hc_cell_facts facts;
};

struct hc_keeper {
    struct hc_keeper_config config;
    int epoll;
    int cells_folder; /* "cells" in the cgroup2 tree */
    uint32_t mounts_at_start;
    bool host_without_swap; /* when the keeper started */
    struct hc_cell cells[HC_CELL_MAX];
};

/* leaf.c: the cgroups of one cell. */
int hc_leaf_make(const struct hc_keeper *keeper, struct hc_cell *cell);
int hc_leaf_limit(const struct hc_keeper *keeper, struct hc_cell *cell, const struct hc_request *request);
unsigned hc_leaf_meters(const struct hc_keeper *keeper, const struct hc_cell *cell,
                        int ret_fds[HC_METER_COUNT], uint32_t *ret_meters);
void hc_leaf_kill(const struct hc_cell *cell);
/* Removes the groups; counts what is left of processes and groups. */
void hc_leaf_remove(const struct hc_keeper *keeper, struct hc_cell *cell, struct hc_residue *residue);

/* birth.c: from nothing to process 1 of a cell. On failure `ret_stage` names the step. */
int hc_birth(const struct hc_keeper *keeper, struct hc_cell *cell, enum hc_stage *ret_stage);

/* attest.c: what the hall's /proc says of the payload. */
int hc_attest(const struct hc_keeper *keeper, const struct hc_cell *cell,
              struct hc_attestation *ret_attestation);
uint32_t hc_count_lines(const char *path);

/* calls.c: one pending notified call. */
void hc_call_serve(struct hc_cell *cell);

/* main.c */
void hc_keeper_send(struct hc_event *event, const int *fds, unsigned fd_count);

#endif
