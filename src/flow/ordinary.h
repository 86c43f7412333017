/* What an ordinary user's halls live on: ranges of subordinate ids, the programs that map them, cgroups of
 * his own and the door. Granted once by `hotcell doctor --setup`. */
#ifndef HC_FLOW_ORDINARY_H
#define HC_FLOW_ORDINARY_H

#include "cell/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HC_SLICES_MAX 128u /* halls of one user at one time */

struct hc_id_range {
    uint32_t first, count;
};

/* The largest range of the user in a file like /etc/subuid, found by name or by number. 1: found; 0: none;
 * negative errno: -EBADMSG for a line of his that can't be read (its number in *ret_line), or what opening
 * the file says (-ENOENT counts as none). */
int hc_subids_find(const char *path, const char *user, uid_t uid, struct hc_id_range *ret_range,
                   unsigned *ret_line);

/* Whether [first, first + count) meets an entry of the file that is not `user`'s. */
bool hc_subids_meet(const char *path, const char *user, uid_t uid, struct hc_id_range range);

/* Whether the range has ids of root's halls: who may map those has power over root's cells. */
bool hc_range_meets_root(struct hc_id_range range);

/* The last part of a range that halls take their slices from: rootless containers begin at its front. */
struct hc_id_range hc_slices_of(struct hc_id_range range);

enum hc_need { HC_NEED_SUBUID, HC_NEED_SUBGID, HC_NEED_MAPPERS, HC_NEED_GROUPS, HC_NEED_DOOR, HC_NEED_COUNT };

struct hc_ordinary {
    uid_t uid;
    char user[64];
    struct hc_id_range uids, gids;
    bool there[HC_NEED_COUNT];
    char evidence[HC_NEED_COUNT][160]; /* what is there, or what is wrong */
};

extern const char *const hc_need_names[HC_NEED_COUNT];

/* Looks at everything; nothing is changed. `user` may be another than the caller (for root). */
void hc_ordinary_examine(uid_t uid, struct hc_ordinary *ret_ordinary);

/* The caller's ids for the configuration of a hall. 0, or -EACCES. */
int hc_ordinary_ids(struct hc_hall_config *config);

/* What is missing and the command that grants it, in one line; false when nothing is missing. */
bool hc_ordinary_missing(char *message, size_t size);

/* Has the user's door start hotcell-hall. Returns a pidfd of it, or negative errno: -ENOENT, -ECONNREFUSED
 * when there is no door. */
int hc_door_start(const char *program, int config, int socket, pid_t *ret_pid);
/* Whether the door of that user answers; its process id when `ret_pid` is not NULL. 0 or negative errno. */
int hc_door_probe(uid_t uid, pid_t *ret_pid);

#endif
