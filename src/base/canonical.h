/* The one form of a JSON document that is hashed: sorted keys, no blanks, \u escapes in small letters. A
 * document that goes into a hash holds no floats. */
#ifndef HC_BASE_CANONICAL_H
#define HC_BASE_CANONICAL_H

#include <jansson.h>

/* NUL-terminated text, freed by the caller; NULL without memory. */
char *hc_json_canonical(const json_t *document);

#endif
