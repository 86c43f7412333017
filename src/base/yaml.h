/* A strict subset of YAML, read into a jansson tree; JSON is valid input too.
 *
 * One document. Refused: anchors, aliases, tags, directives, merge keys, duplicate keys, keys that are not
 * strings, NUL characters, more than 32 nested collections, more than 1 MiB, bytes that are not UTF-8.
 *
 * Plain true, false, null, nothing at all (null) and integers in their shortest decimal form within 64 bits
 * become JSON values. Everything else is a string: 3.11, 007, 0x1f, yes, ~ and whatever is quoted. There are
 * no floats: a version number never loses a digit.
 *
 * Of JSON, only a key that is longer than 1024 bytes or stands on another line than its colon is refused.
 */
#ifndef HC_BASE_YAML_H
#define HC_BASE_YAML_H

#include "base/problem.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define HC_YAML_BYTES_MAX (1024 * 1024)
#define HC_YAML_DEPTH_MAX 32

/* Only root is for others. Places are kept by path and not by json_t, since true and null exist once only. */
struct hc_yaml {
    json_t *root;
    struct hc_yaml_node *nodes;
    size_t node_count;
    size_t node_room;
};

/* Errors: -ENOMEM. Outcome: HC_BAD_INPUT, with line and column
 * of the problem. ret is set only on 0; problem may be NULL. */
int hc_yaml_read(const char *data, size_t n, struct hc_yaml *ret, struct hc_problem *problem);

/* Releases everything; harmless when repeated or on {0}. A root that is wanted longer is json_incref'ed. */
void hc_yaml_done(struct hc_yaml *yaml);

/* Where the value at a path begins ("" is the document, "/run/0" the first element below the key run; in keys
 * "~1" means "/" and "~0" means "~", as in RFC 6901), or where its key does. False when there is none. */
bool hc_yaml_position(const struct hc_yaml *yaml, const char *path, unsigned *ret_line, unsigned *ret_column);
bool hc_yaml_key_position(const struct hc_yaml *yaml, const char *path, unsigned *ret_line,
                          unsigned *ret_column);

/* The path of a member, with the key escaped: new memory, NULL without. */
char *hc_yaml_path(const char *parent, const char *key);

/* A problem at the value of a path, or of the nearest collection around it. Always HC_BAD_INPUT. */
int hc_yaml_problem(const struct hc_yaml *yaml, const char *path, struct hc_problem *problem, const char *fmt,
                    ...) __attribute__((format(printf, 4, 5)));

#endif
