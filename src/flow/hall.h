/* The library's end of a hall: starts hotcell-hall, talks to the keeper, owns the cells' descriptors.
 *
 * One thread at a time may use a hall.
 */
#ifndef HC_FLOW_HALL_H
#define HC_FLOW_HALL_H

#include "cell/wire.h"
#include "cell/words.h"

#include <stdbool.h>
#include <sys/types.h>

/* Why a hall or a cell could not be had: what a refusal says. */
struct hc_setup_failure {
    enum hc_stage stage;
    int error; /* negative errno */
    char detail[HC_PATH_SIZE];
};

struct hc_hall_options {
    const char *programs; /* folder with hotcell-hall, hotcell-keeper, hotcell-init */
    const struct hc_bind *binds;
    uint32_t bind_count;
    uint64_t allow_layers;
    uint32_t ceiling_processes;
    uint64_t ceiling_memory_bytes;
    uint32_t fault_program, fault_nth;
};

/* A cell as the library holds it. */
struct hc_cell_handle {
    uint32_t slot;
    bool in_use;
    bool made;
    bool warm; /* a payload of host `host` waits in it */
    uint32_t host;
    uint64_t asked_at_us, made_at_us;
    int meters[HC_METER_COUNT]; /* -1: not there */
    int working_folder;
    int report; /* our end of init's report socket */
};

struct hc_hall;

/* HC_SETUP_FAILED: `ret_failure` says which stage; negative errno: a fault of ours. */
enum { HC_SETUP_FAILED = 1 };

int hc_hall_open(const struct hc_hall_options *options, struct hc_hall **ret_hall,
                 struct hc_setup_failure *ret_failure);
/* Lets the keeper go, which takes every cell along; nothing is waited for. hc_hall_close is still to be
 * called. */
void hc_hall_leave(struct hc_hall *hall);
/* Ends the keeper with every cell and waits until the hall's cgroups are gone. */
void hc_hall_close(struct hc_hall *hall);

int hc_hall_socket(const struct hc_hall *hall);
const struct hc_keeper_config *hc_hall_facts(const struct hc_hall *hall);
uint64_t hc_hall_opened_in_us(const struct hc_hall *hall);

/* Takes a made-ahead cell or has one made. */
int hc_hall_take_cell(struct hc_hall *hall, struct hc_cell_handle **ret_cell, bool *ret_made_ahead,
                      struct hc_setup_failure *ret_failure);
/* Asks for empty cells to be made while other work goes on, up to `target` and in batches: nothing is done
 * while more than half of them are waiting. */
void hc_hall_make_ahead(struct hc_hall *hall, unsigned target);

/* ---- warm hosts and cells; see flow/warm.h ---- */

enum hc_warm_state { HC_WARM_NONE, HC_WARM_STARTING, HC_WARM_READY, HC_WARM_LOST };

/* Of the host in `place`, as far as events were read. `ret_failure` (may be NULL): why it was lost. */
enum hc_warm_state hc_hall_host(const struct hc_hall *hall, uint32_t place,
                                struct hc_setup_failure *ret_failure);
/* Asks the keeper for a host; the descriptors as for HC_OP_START. */
int hc_hall_ask_host(struct hc_hall *hall, uint32_t place, const struct hc_request *limits,
                     const int fds[HC_START_FDS]);
int hc_hall_end_host(struct hc_hall *hall, uint32_t place);
/* As hc_hall_make_ahead, of cells in which a payload of the host waits. */
void hc_hall_make_warm(struct hc_hall *hall, uint32_t place, unsigned target);
/* A warm cell that is ready now, or becomes so within wait_ms. -EAGAIN: none. Cells older than max_age_us are
 * ended instead. */
int hc_hall_take_warm(struct hc_hall *hall, uint32_t place, int wait_ms, uint64_t max_age_us,
                      struct hc_cell_handle **ret_cell);
/* Reads what the keeper has said meanwhile, waiting up to wait_ms for something. */
int hc_hall_read(struct hc_hall *hall, int wait_ms);
unsigned hc_hall_warm_ready(const struct hc_hall *hall, uint32_t place);

/* Sends a request about a cell. */
int hc_hall_request(struct hc_hall *hall, const struct hc_request *request, const int *fds,
                    unsigned fd_count);

/* Reads the next event about `cell` (events about others are put where they belong). Waits up to timeout_ms;
 * -1: without end. Returns 0, -ETIMEDOUT, or -ECONNRESET when the keeper is gone. Up to 4 descriptors are
 * handed over. */
int hc_hall_next(struct hc_hall *hall, struct hc_cell_handle *cell, struct hc_event *ret_event, int *ret_fds,
                 unsigned *ret_fd_count, int timeout_ms);

/* Destroys the cell and returns the count of leftovers; the handle is free afterwards. */
int hc_hall_end_cell(struct hc_hall *hall, struct hc_cell_handle *cell, struct hc_residue *ret_residue,
                     uint64_t *ret_calls_omitted);

#endif
