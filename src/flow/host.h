/* Facts about the host that weaken or strengthen cells without being layers of one: read, never changed. */
#ifndef HC_FLOW_HOST_H
#define HC_FLOW_HOST_H

#include <stddef.h>

enum hc_host_state { HC_HOST_GOOD, HC_HOST_WEAK, HC_HOST_BAD, HC_HOST_UNKNOWN };

struct hc_host_check {
    const char *name;
    enum hc_host_state (*probe)(char *ret_value, size_t size);
    const char *costs;   /* what a cell has to do without where it is not good */
    const char *matters; /* what it has to do with cells */
    const char *mend;    /* the one command or setting; NULL when there is none */
};

extern const struct hc_host_check hc_host_checks[];
extern const size_t hc_host_check_count;

const char *hc_host_state_name(enum hc_host_state state);

#endif
