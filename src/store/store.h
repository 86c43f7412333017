/* Records on disk: one SQLite file, append-only, chained by SHA-256, and what they speak of as blobs by
 * digest. Several processes may write at once.
 *
 * Small blobs lie in the same file, large ones beside it in blobs/. The folder is its owner's alone (0700).
 * Errors are negative errno with a message in plain words: -ENOSPC, -EIO, -EBUSY, -EBADMSG (damaged, or its
 * end was cut off)… */
#ifndef HC_STORE_STORE_H
#define HC_STORE_STORE_H

#include "store/chain.h"

#include <jansson.h>

struct hc_store;

/* Opens or makes the store in `folder`. 0 or negative errno; `ret_message` says what SQLite said. */
int hc_store_open(const char *folder, struct hc_store **ret_store, char ret_message[256]);
/* Opens only what is there: -ENOENT otherwise. */
int hc_store_open_existing(const char *folder, struct hc_store **ret_store, char ret_message[256]);
void hc_store_close(struct hc_store *store);

struct hc_blob {
    char sha256[65];
    const void *data;
    size_t bytes;
};

/* Gives the record its place in the chain (sets `chain`) and stores it: all of it or nothing. -ENOSPC, -EIO,
 * -EBUSY… */
int hc_store_append(struct hc_store *store, json_t *record, char ret_message[256]);
/* The same with the blobs that it speaks of: they are there before the record is. */
int hc_store_append_with(struct hc_store *store, json_t *record, const struct hc_blob *blobs,
                         size_t blob_count, char ret_message[256]);

/* The same if `check`, under the writer's lock, returns 0; else nothing is stored, and that is the result. */
int hc_store_append_if(struct hc_store *store, json_t *record,
                       int (*check)(struct hc_store *store, void *context, char ret_message[256]),
                       void *context, char ret_message[256]);

enum { HC_STORE_ABSENT = 1, HC_STORE_SEVERAL = 2 };

/* A blob in new memory, as it lies there: whether it is what its name says is for the caller to check.
 * HC_STORE_ABSENT. */
int hc_store_blob(struct hc_store *store, const char *sha256, void **ret_data, size_t *ret_bytes);

/* Between the two calls everything read is of one moment, whoever writes meanwhile. */
int hc_store_read_begin(struct hc_store *store, char ret_message[256]);
void hc_store_read_end(struct hc_store *store);

/* One stored record. The texts are valid until the visitor returns. */
struct hc_stored {
    int64_t seq;
    const char *kind, *id, *subject, *created_at, *state, *status, *language, *sha256; /* NULL: null */
    const char *text; /* canonical, `bytes` long, a NUL behind it */
    size_t bytes;
};

struct hc_store_filter {
    const char *id, *kind, *subject, *status, *language, *since; /* NULL: any */
    int64_t from_seq;                                            /* 0: from the first */
    int64_t limit;                                               /* 0: none */
    bool newest_first;
};

/* Calls `visit` for each record until it returns something else than 0, which is then the result. */
int hc_store_each(struct hc_store *store, const struct hc_store_filter *filter,
                  int (*visit)(const struct hc_stored *stored, void *context), void *context,
                  char ret_message[256]);

/* The record of that id, or of an id that begins so (4 letters at least) and is the only one; or by "SEQ".
 * HC_STORE_ABSENT, HC_STORE_SEVERAL. ret_text (may be NULL): its stored text, which the caller frees. */
int hc_store_find(struct hc_store *store, const char *id, json_t **ret_record, char **ret_text,
                  char ret_message[256]);

/* The digest and size of every blob in the database or the folder, by digest. */
int hc_store_each_blob(struct hc_store *store, int (*visit)(const char *sha256, void *context), void *context,
                       char ret_message[256]);

/* The last link as the store remembers it beside the records; seq 0: an empty store. */
int hc_store_head(struct hc_store *store, struct hc_link *ret_head, char ret_message[256]);

/* $XDG_STATE_HOME/hotcell or ~/.local/state/hotcell; NULL when neither is known. Caller frees. */
char *hc_store_default_folder(void);

#endif
