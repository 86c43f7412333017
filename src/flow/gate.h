/* The gate: from what was asked to what applies, or a refusal with the field. Pure. */
#ifndef HC_FLOW_GATE_H
#define HC_FLOW_GATE_H

#include "cell/spec.h"

struct hc_effective {
    uint64_t limits[HC_LIMIT_COUNT]; /* 0: the limit does not exist here (io) */
};

int hc_gate(const struct hc_spec *spec, struct hc_effective *ret_effective, struct hc_refusal *refusal);

#endif
