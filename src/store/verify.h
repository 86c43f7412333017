/* Whether a chain is whole: every record its own, each behind the one before, none missing at either end,
 * every blob what its name says. Works on a store and on an exported file alike, with nothing else at hand.
 */
#ifndef HC_STORE_VERIFY_H
#define HC_STORE_VERIFY_H

#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct hc_verification {
    int64_t records, first_seq;
    struct hc_link last;
    int64_t blobs;
    bool blobs_there; /* whether there were to be any */
    bool broken;
    struct hc_defect defect;
    int64_t bad_seq;   /* of the record at fault, or of the one that should be there; 0: none */
    uint64_t bad_line; /* in a file, from 1; 0: none */
};

struct hc_verifier;

/* `anchor`: a link that the chain must have, told by somebody who kept it; NULL: none. NULL without memory.
 */
struct hc_verifier *hc_verifier_new(const struct hc_link *anchor);
void hc_verifier_done(struct hc_verifier *verifier);

/* What was before the first record. */
void hc_verifier_start(struct hc_verifier *verifier, const struct hc_link *previous);
/* Each returns 0, or HC_LINK_BROKEN once something is wrong (then nothing more needs to be told), or negative
 * errno. All records come before all blobs. */
int hc_verifier_record(struct hc_verifier *verifier, const char *text, size_t n, uint64_t line);
int hc_verifier_blob(struct hc_verifier *verifier, const char *sha256, const void *data, size_t n,
                     uint64_t line);
int hc_verifier_head(struct hc_verifier *verifier, const struct hc_link *head, uint64_t line);
/* blobs_there: every blob that a record names has to have come. */
int hc_verifier_end(struct hc_verifier *verifier, bool blobs_there);
/* A defect that the caller found. Always HC_LINK_BROKEN. */
int hc_verifier_broken(struct hc_verifier *verifier, uint64_t line, const char *rule, const char *expected,
                       const char *got, const char *message, ...) __attribute__((format(printf, 6, 7)));
const struct hc_verification *hc_verifier_result(const struct hc_verifier *verifier);

/* The whole of a store or of a file. 0: *ret tells, also when broken. Negative errno with a message: it can't
 * be read. */
int hc_verify_store(struct hc_store *store, const struct hc_link *anchor, struct hc_verification *ret,
                    char ret_message[256]);
int hc_verify_file(const char *path, const struct hc_link *anchor, struct hc_verification *ret,
                   char ret_message[256]);

/* The digest of the document that says what the run of this record was given, and what was kept of it; NULL:
 * none. */
const char *hc_record_request_sha256(const json_t *record);

#endif
