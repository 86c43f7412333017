/* Leave to publish or act: given and taken back by a person, as a record of its own (schema
 * hotcell.release/1). A run's own record never changes; what holds now is the last release that speaks of it.
 */
#ifndef HC_FLOW_RELEASE_H
#define HC_FLOW_RELEASE_H

#include "store/store.h"

#define HC_RELEASE_BY_MAX   200  /* bytes */
#define HC_RELEASE_NOTE_MAX 2000 /* bytes */

struct hc_release_wish {
    const char *run;  /* id, or its beginning */
    const char *by;   /* who */
    const char *note; /* NULL: none */
    bool revoke;
};

/* Appends the release. HC_RELEASE_REFUSED with a message: no such run, one that did not finish, released (or
 * not released) already, a chain that is broken. Negative errno with a message. */
enum { HC_RELEASE_REFUSED = 1 };
int hc_release(struct hc_store *store, const struct hc_release_wish *wish, json_t **ret_record,
               char ret_message[256]);

/* What holds for a run now: {status, by, at, note, record}, a new reference. `sha256`: chain.sha256 of the
 * run's record, since a release speaks of exactly that. */
int hc_release_present(struct hc_store *store, const char *run, const char *sha256, json_t **ret_release,
                       char ret_message[256]);

/* "release-…", "replay-…": an id that nobody can guess. */
void hc_record_id(const char *prefix, char out[40]);

#endif
