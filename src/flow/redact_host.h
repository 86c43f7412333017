/* What of this host must not appear in output that a model gets to see: the built-in rows of
 * src/base/redact.h. */
#ifndef HC_FLOW_REDACT_HOST_H
#define HC_FLOW_REDACT_HOST_H

#include "base/redact.h"

/* Kinds: host_name; host_path (folders of hotcell, of its store, of people); secret (values of our own
 * environment whose names say so). `store` may be NULL. 0 or -ENOMEM. */
int hc_redact_add_host(struct hc_redact_rules *rules, const char *store);

/* The parts, pure but for what they are given; for tests too. `environ`: NAME=VALUE, ends with NULL. */
int hc_redact_add_environment(struct hc_redact_rules *rules, const char *const *environ);
int hc_redact_add_path(struct hc_redact_rules *rules, const char *path);
int hc_redact_add_name(struct hc_redact_rules *rules, const char *name);

#endif
