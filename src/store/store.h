/* Records on disk: one SQLite file, append-only, chained by SHA-256. Several processes may write at once. */
#ifndef HC_STORE_STORE_H
#define HC_STORE_STORE_H

#include <jansson.h>

struct hc_store;

/* Opens or makes the store in `folder`. 0 or negative errno; `ret_message` says what SQLite said. */
int hc_store_open(const char *folder, struct hc_store **ret_store, char ret_message[256]);
void hc_store_close(struct hc_store *store);

/* Gives the record its place in the chain (sets `chain`) and stores it: all of it or nothing. -ENOSPC, -EIO,
 * -EBUSY… */
int hc_store_append(struct hc_store *store, json_t *record, char ret_message[256]);

/* $XDG_STATE_HOME/hotcell or ~/.local/state/hotcell; NULL when neither is known. Caller frees. */
char *hc_store_default_folder(void);

#endif
