/* An exported log: one file that can be verified, and with its blobs replayed, where there is no store.
 *
 * JSON lines, each its own canonical form: a header (schema hotcell.log/1), the records as they are stored,
 * in order, the blobs, and the head (schema hotcell.head/1), which says where the chain ends and has the
 * digest of all bytes before it. docs/man/hotcell-record.5.scd describes it. */
#ifndef HC_STORE_LOG_FILE_H
#define HC_STORE_LOG_FILE_H

#include "store/store.h"

#include <stdio.h>

struct hc_log_export {
    int64_t from_seq, limit; /* a part of the chain without gaps; 0: from the first, all */
    bool blobs;
};

/* Writes to a stream. 0 or negative errno; ret_head: the last record that was written. */
int hc_log_write(struct hc_store *store, const struct hc_log_export *what, FILE *out,
                 struct hc_link *ret_head, char ret_message[256]);

/* Reads the record of that id (NULL: the one run in the file) and everything beside it. The file has to be
 * whole: verify it first. HC_STORE_ABSENT, HC_STORE_SEVERAL. */
struct hc_log_blobs; /* the blobs of a file, by digest */
int hc_log_read(const char *path, const char *id, json_t **ret_record, struct hc_log_blobs **ret_blobs,
                char ret_message[256]);
int hc_log_blob(const struct hc_log_blobs *blobs, const char *sha256, void **ret_data, size_t *ret_bytes);
void hc_log_blobs_done(struct hc_log_blobs *blobs);

#endif
