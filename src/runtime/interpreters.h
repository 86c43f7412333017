/* Which interpreters of a manifest are there, in how many versions, and what a cell needs to see of them. */
#ifndef HC_RUNTIME_INTERPRETERS_H
#define HC_RUNTIME_INTERPRETERS_H

#include "runtime/manifest.h"

/* Fills found, interpreter, missing, absent, and the views of the other versions. Errors: -ENOMEM. */
int hc_interpreters_find(struct hc_runtime *runtime);

/* Adds what the extension found to its base, which takes it over; *extension is {0} then. Errors: -ENOMEM. */
int hc_interpreters_extend(struct hc_runtime *base, struct hc_runtime *extension);

void hc_interpreters_done(struct hc_runtime *runtime);

/* The path on the host that a bind of this folder (wildcards in its last part) would show to programs; NULL:
 * none, since it lies below /usr, is the root of a file system, or is not there. Errors: -ENOMEM. */
int hc_tree_shown_path(const char *host, char **ret_path);

#endif
