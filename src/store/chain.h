/* One link of the chain: what a stored record has to be by itself. Pure; no file, no database.
 *
 * A record is stored as the one canonical text of its document (base/canonical.h). Its `chain` names the link
 * before it, and `chain.sha256` is the digest over that text without this one member. */
#ifndef HC_STORE_CHAIN_H
#define HC_STORE_CHAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HC_RECORD_BYTES_MAX (512u * 1024 * 1024)

struct hc_link {
    int64_t seq;
    char previous_sha256[65]; /* "": the first of its chain */
    char sha256[65];
};

/* What is wrong with a link, and with what. Words of `rule`: form, content, order, link, row, head, end,
 * blob, header. */
struct hc_defect {
    const char *rule;
    char message[256];
    char expected[128], got[128]; /* "": nothing to tell */
};

enum { HC_LINK_BROKEN = 1 };

/* Reads one record of n bytes (a NUL behind them). HC_LINK_BROKEN with ret_defect: it is not JSON, not its
 * own canonical form to the byte, has no chain, or its digest is another. ret_record (may be NULL) is a new
 * reference. -ENOMEM, -EIO. */
int hc_link_read(const char *text, size_t n, struct hc_link *ret_link, json_t **ret_record,
                 struct hc_defect *ret_defect);

/* Whether `link` follows `previous` (seq 0: nothing is known of what was before). */
bool hc_link_follows(const struct hc_link *previous, const struct hc_link *link,
                     struct hc_defect *ret_defect);

/* Gives a record its place behind `previous` (seq 0: the first) and returns its canonical text with its own
 * digest in it; NULL without memory. Sets `chain` of the record. */
char *hc_link_make(json_t *record, const struct hc_link *previous, struct hc_link *ret_link);

/* "SEQ:SHA256" */
bool hc_head_parse(const char *text, struct hc_link *ret_head);

#endif
