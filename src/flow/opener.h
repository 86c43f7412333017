/* Opens what a run left when the caller's own rights do not suffice.
 *
 * Files of a cell belong to an id of the hall. Root reads them as they are; to an ordinary user they are
 * somebody else's. But he owns the hall's user namespace: a child of ours joins it, becomes its root, keeps
 * no right but that of passing file modes, opens below the folder it is given and hands the descriptor back.
 */
#ifndef HC_FLOW_OPENER_H
#define HC_FLOW_OPENER_H

#include <stdint.h>

/* `namespace` becomes the opener's. NULL without memory. */
struct hc_opener *hc_opener_new(int namespace);
void hc_opener_done(struct hc_opener *opener);

/* Opens `path` below `folder`: no link is followed, no mount is crossed, nothing blocks. First as the caller;
 * where that is denied, through the openers of this process. A descriptor or negative errno. */
int hc_open_beneath(int folder, const char *path, uint64_t flags);

#endif
