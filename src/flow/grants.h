/* What root grants an ordinary user once so that he can make cells, and takes back. Every step looks first
 * and changes only what is not so yet. */
#ifndef HC_FLOW_GRANTS_H
#define HC_FLOW_GRANTS_H

#include "cell/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum hc_grant_state {
    HC_GRANT_ALREADY,
    HC_GRANT_DONE,
    HC_GRANT_WOULD, /* a dry run: this would be done */
    HC_GRANT_FAILED,
};

struct hc_grant {
    char name[32];
    enum hc_grant_state state;
    bool until_reboot;
    char detail[400];
};

#define HC_GRANTS_MAX 24

struct hc_grants {
    uid_t uid;
    gid_t gid;
    char user[64];
    const char *programs; /* folder of hotcell-door */
    bool dry_run, at_boot;
    struct hc_grant items[HC_GRANTS_MAX];
    size_t count;
};

const char *hc_grant_state_name(enum hc_grant_state state);

/* Finds the user by name or number. False: there is none, or it is root. */
bool hc_grants_begin(struct hc_grants *grants, const char *user, char message[256]);
/* Both: true when nothing failed. */
bool hc_grants_make(struct hc_grants *grants);
bool hc_grants_undo(struct hc_grants *grants);

__attribute__((format(printf, 5, 6))) void hc_grant_add(struct hc_grants *grants, const char *name,
                                                        enum hc_grant_state state, bool until_reboot,
                                                        const char *format, ...);

/* Runs a program of PATH to its end. 0; -ECHILD: it failed; or why it can't be started. */
int hc_grant_program(char *const argv[]);

/* grant_boot.c: systemd repeats the set-up when the host starts */
void hc_grant_at_boot(struct hc_grants *grants);
void hc_grant_at_boot_undo(struct hc_grants *grants);
/* The unit for `program`. False: its path or the user's name would mean something else in a unit. */
bool hc_grant_unit(const struct hc_grants *grants, const char *program, char *ret_text, size_t size);
/* Whether nobody but root can put another program at this absolute path. Else `offender` is the part of the
 * path that somebody can change. */
bool hc_path_is_roots(const char *path, char *offender, size_t size);

/* grant_apparmor.c: no row where nothing is restricted */
void hc_grant_apparmor(struct hc_grants *grants);
void hc_grant_apparmor_undo(struct hc_grants *grants);

/* grant_door.c */
void hc_grant_door(struct hc_grants *grants);
void hc_grant_door_undo(struct hc_grants *grants);

#endif
