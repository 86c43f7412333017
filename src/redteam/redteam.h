/* hotcell redteam: the boundary of this host, attacked by small programs, and told row by row.
 *
 * Two cards. The boundary's: every row runs in a cell, is judged from the record and from what the host sees
 * (a decoy file, listeners), then an innocent program runs, and nothing may be left over. The business card:
 * right boundary, wrong result; acceptance has to say no. */
#ifndef HC_REDTEAM_REDTEAM_H
#define HC_REDTEAM_REDTEAM_H

#include "flow/engine.h"

#include <jansson.h>

enum hc_held { HC_HELD, HC_NOT_APPLICABLE, HC_NOT_PROMISED, HC_NOT_HELD };
extern const char *const hc_held_names[4];

struct hc_redteam_options {
    json_t *only; /* ids as keys; NULL: all rows */
    const char *profile;
    enum hc_warmth warmth;
    unsigned crowd; /* short runs of the crowd row, half of them killed; 0: none */
    void (*progress)(void *context, const char *id, unsigned done, unsigned of);
    void *progress_context;
};

/* The rows, as {"id", "boundary", "title"} in a list; a new reference. HC_BAD_INPUT names file and place. */
int hc_redteam_list(const char *share, json_t **ret_rows, struct hc_problem *problem);

/* {"host": {...}, "profile", "rows": [{"id", "boundary", "title", "result", "evidence", "status"}],
 * "boundaries": {NAME: {held, ...}}, "business": [{"id", "title", "result", "evidence"}], "crowd":
 * {...}|null, "not_held": N}. A new reference. 0, HC_REFUSED (no cell can be had), HC_BAD_INPUT, or negative
 * errno. */
int hc_redteam(const char *share, const struct hc_redteam_options *options, json_t **ret_card,
               struct hc_refusal *refusal, struct hc_problem *problem);

/* What the host holds out as bait: a file with a secret, a listener on the loopback, one on an abstract
 * socket. */
struct hc_bait {
    char folder[64], decoy[96], secret[40], abstract[48];
    int listener, abstract_listener;
    unsigned port;
};

int hc_bait_lay(struct hc_bait *bait);
/* Who has bitten: connections that arrived. */
unsigned hc_bait_bites(const struct hc_bait *bait);
void hc_bait_remove(struct hc_bait *bait);
/* {DECOY}, {SECRET}, {PORT}, {ABSTRACT} replaced; new memory. */
char *hc_bait_fill(const struct hc_bait *bait, const char *text);

#endif
