/* A set of identifiers in little memory: 16 bytes of each one's SHA-256. */
#ifndef HC_EVAL_IDS_H
#define HC_EVAL_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hc_ids {
    uint64_t (*slots)[2]; /* {0, 0}: empty */
    size_t room, count;
};

/* HC_IDS_THERE: it was a member before. -ENOMEM, -EIO. */
enum { HC_IDS_ADDED = 0, HC_IDS_THERE = 1 };
int hc_ids_add(struct hc_ids *ids, const char *id, size_t bytes);
/* HC_IDS_THERE or 0. */
int hc_ids_has(const struct hc_ids *ids, const char *id, size_t bytes);
void hc_ids_done(struct hc_ids *ids);

#endif
