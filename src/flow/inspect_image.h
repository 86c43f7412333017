/* Sizes that the head of an image claims: a viewer would take memory for them. Pure. */
#ifndef HC_FLOW_INSPECT_IMAGE_H
#define HC_FLOW_INSPECT_IMAGE_H

#include "flow/findings.h"

void hc_inspect_image(struct hc_artifact *artifact, const uint8_t *data, size_t n);

#endif
