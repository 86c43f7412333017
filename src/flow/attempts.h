/* Notified calls as two lists of the record: attempts on the network, and refused calls by name. */
#ifndef HC_FLOW_ATTEMPTS_H
#define HC_FLOW_ATTEMPTS_H

#include "flow/execute.h"

#include <jansson.h>

void hc_attempts_split(const struct hc_outcome *outcome, json_t **ret_attempts, json_t **ret_denied);

#endif
