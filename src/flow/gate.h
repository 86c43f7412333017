/* The gate: from what was asked to what applies, or a refusal with the field. Pure. */
#ifndef HC_FLOW_GATE_H
#define HC_FLOW_GATE_H

#include "cell/spec.h"
#include "policy/policy.h"

struct hc_effective {
    uint64_t limits[HC_LIMIT_COUNT]; /* 0: the limit does not exist here (io) */
};

/* `policy` NULL: the rows of hc_limits, which are the profile standard. */
int hc_gate(const struct hc_spec *spec, const struct hc_policy *policy, struct hc_effective *ret_effective,
            struct hc_refusal *refusal);

#endif
