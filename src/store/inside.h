/* What the files of src/store share. */
#ifndef HC_STORE_INSIDE_H
#define HC_STORE_INSIDE_H

#include "store/store.h"

#include <sqlite3.h>

struct hc_store {
    sqlite3 *database;
    sqlite3_stmt *last, *insert, *head, *keep_blob, *find_blob;
    char *folder;
    int blobs; /* folder of large blobs; -1: not opened yet */
};

int hc_store_errno(sqlite3 *database);
int hc_store_failed(struct hc_store *store, char ret_message[256]);

/* Puts a blob where it belongs, once. Inside the writer's transaction. */
int hc_store_keep_blob(struct hc_store *store, const struct hc_blob *blob, char ret_message[256]);

#endif
