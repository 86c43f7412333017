/* From kernel facts to status and cause. Pure. */
#ifndef HC_FLOW_CLASSIFY_H
#define HC_FLOW_CLASSIFY_H

#include "flow/execute.h"

struct hc_verdict {
    enum hc_state state;
    enum hc_status status;
    enum hc_cause cause;
    int exit_code; /* -1: null */
    int signal;    /* 0: null */
};

void hc_classify(const struct hc_outcome *outcome, struct hc_verdict *ret_verdict);

#endif
