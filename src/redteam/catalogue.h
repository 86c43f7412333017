/* The catalogue: share/redteam/catalogue.yaml, checked. */
#ifndef HC_REDTEAM_CATALOGUE_H
#define HC_REDTEAM_CATALOGUE_H

#include "base/problem.h"

#include <jansson.h>

/* {"rows": [...], "business": [...]}; a new reference. HC_BAD_INPUT with the place of what is wrong. */
int hc_catalogue_read(const char *share, json_t **ret_catalogue, struct hc_problem *problem);

#endif
