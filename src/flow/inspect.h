/* Looks at the content of one file: signatures and heads only, nothing that needs a parser of a complicated
 * format (that is done by hotcell-scan, in a cell). Pure, bounded by the size of the data, never fails. */
#ifndef HC_FLOW_INSPECT_H
#define HC_FLOW_INSPECT_H

#include "flow/findings.h"

/* `data` is the content, or its beginning. Adds to the artifact's findings. */
void hc_inspect(struct hc_artifact *artifact, const uint8_t *data, size_t n);

/* Whether the type is one that hotcell-scan has to look into. */
bool hc_is_archive(const char *type);

#endif
