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
    HC_CELL_WARMING, /* process 1 is there, the warm host's payload is not yet */
    HC_CELL_EMPTY,   /* takes a start; of a warm cell: its payload waits */
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
    /* Of a warm cell, whose payload is a child of ours: */
    bool warm;
    uint32_t host;
    bool asked;              /* the host was told to make the payload */
    bool waits;              /* the payload has said that it waits */
    int32_t listener_number; /* in its descriptor table */
    int32_t payload_pid;
    int payload_socket; /* init's end of the way to the payload, until the start */
    int report;         /* the run's report socket */
    int working_folder;
};

enum hc_host_state { HC_HOST_NONE, HC_HOST_STARTING, HC_HOST_IDLE, HC_HOST_BUSY, HC_HOST_ENDED };

/* A warm host: a process with an id of its own, in groups of its own. */
struct hc_host {
    enum hc_host_state state;
    uint32_t place;
    uint32_t slot;  /* of the cell it is busy with */
    uint32_t stage; /* why it is being ended */
    int32_t error;
    struct hc_cell as_cell; /* its groups, process and socket; never a cell that a request can name */
};

struct hc_keeper {
    struct hc_keeper_config config;
    int epoll;
    int cells_folder; /* "cells" in the cgroup2 tree */
    uint32_t mounts_at_start;
    bool host_without_swap; /* when the keeper started */
    struct hc_cell cells[HC_CELL_MAX];
    struct hc_host hosts[HC_HOST_MAX];
    int children; /* signalfd; -1: no warm host was ever asked for */
};

/* What an epoll event is about: the low half says which cell or host. */
enum hc_source {
    HC_SOURCE_LIBRARY,
    HC_SOURCE_INIT,
    HC_SOURCE_INIT_DEATH,
    HC_SOURCE_LISTENER,
    HC_SOURCE_HOST,
    HC_SOURCE_CHILDREN,
};

/* leaf.c: the cgroups of one cell. */
int hc_leaf_make(const struct hc_keeper *keeper, struct hc_cell *cell);
int hc_leaf_limit(const struct hc_keeper *keeper, struct hc_cell *cell, const struct hc_request *request);
unsigned hc_leaf_meters(const struct hc_keeper *keeper, const struct hc_cell *cell,
                        int ret_fds[HC_METER_COUNT], uint32_t *ret_meters);
void hc_leaf_kill(const struct hc_cell *cell);
/* Removes the groups; counts what is left of processes and groups. */
void hc_leaf_remove(const struct hc_keeper *keeper, struct hc_cell *cell, struct hc_residue *residue);

/* Lends the lists of the v1 leaves to an id of the hall, so that a process with it can join. */
int hc_leaf_lend(const struct hc_cell *cell, uint32_t id);
/* The v1 leaves' folders. */
unsigned hc_leaf_folders(const struct hc_cell *cell, int ret_fds[HC_CONTROLLER_COUNT]);

/* birth.c: from nothing to process 1 of a cell. On failure `ret_stage` names the step. */
int hc_birth(const struct hc_keeper *keeper, struct hc_cell *cell, enum hc_stage *ret_stage);
/* The process of a warm host, in the hall's user and pid namespaces. */
int hc_birth_of_host(const struct hc_keeper *keeper, struct hc_host *host, enum hc_stage *ret_stage);

/* warm.c: warm hosts and what they make. */
void hc_host_start(struct hc_keeper *keeper, struct hc_host *host, const struct hc_request *request,
                   const int *fds);
void hc_host_end(struct hc_keeper *keeper, struct hc_host *host);
void hc_host_serve(struct hc_keeper *keeper, struct hc_host *host);
/* Process 1 of the cell stands: its host is asked for the payload, now or when it has time. */
void hc_warm_ask(struct hc_keeper *keeper, struct hc_cell *cell);
/* The cell is going: its host may be waiting for it. */
void hc_warm_forget(struct hc_keeper *keeper, struct hc_cell *cell);
/* Some child of ours has ended: hosts, payloads of warm hosts, and what lost its parent. */
void hc_children_serve(struct hc_keeper *keeper);

/* attest.c: what the hall's /proc says of the payload. */
int hc_attest(const struct hc_keeper *keeper, const struct hc_cell *cell,
              struct hc_attestation *ret_attestation);
uint32_t hc_count_lines(const char *path);

/* calls.c: one pending notified call. */
void hc_call_serve(struct hc_cell *cell);

/* main.c */
void hc_keeper_send(struct hc_event *event, const int *fds, unsigned fd_count);
int hc_keeper_watch(int fd, enum hc_source source, uint32_t slot);
void hc_cell_fail(struct hc_cell *cell, enum hc_stage stage, int error);
/* The cell takes a start from now on. */
void hc_cell_empty(struct hc_cell *cell);
void hc_cell_clear(struct hc_cell *cell, uint32_t slot);
/* Reaps process 1 of a cell if it has ended. */
void hc_init_died(struct hc_cell *cell);

#endif
