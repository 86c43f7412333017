/* A bounded part of JSON Schema (2020-12) for predicates: everything is known before anything is judged,
 * nothing is fetched, and no schema or document costs more than a fixed number of steps.
 *
 * A schema is true, false, or an object with keywords of the table in json_schema.c. Unknown keywords are
 * errors, since one that is passed over would accept what it should reject. $ref is "#", "#/$defs/NAME" or
 * "#/definitions/NAME". Numbers may be texts, as the YAML reader gives fractions.
 */
#ifndef HC_FLOW_JSON_SCHEMA_H
#define HC_FLOW_JSON_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* NULL, or what is wrong with the schema and where. */
const char *hc_schema_check(const json_t *schema, char room[256]);

/* Judges a document by a schema that was checked. HC_SCHEMA_UNSURE: a bound was met. `ret_reason` says where
 * the document differs. */
enum hc_schema_outcome { HC_SCHEMA_HOLDS, HC_SCHEMA_DIFFERS, HC_SCHEMA_UNSURE };
enum hc_schema_outcome hc_schema_judge(const json_t *schema, const json_t *document, char ret_reason[256]);

/* Names of the keywords, for help: NULL after the last. */
const char *hc_schema_keyword(size_t index);

#endif
