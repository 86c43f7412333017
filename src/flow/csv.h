/* Fields of a table of text (RFC 4180), one after the other. Pure; memory is that of the longest field. */
#ifndef HC_FLOW_CSV_H
#define HC_FLOW_CSV_H

#include <stddef.h>
#include <stdint.h>

struct hc_csv_field {
    uint64_t row, column; /* from 0; lines that are empty are no rows */
    uint64_t columns;     /* of the row when this is its last field, else 0 */
    const char *text;     /* quotes taken off */
    size_t bytes;
};

/* Calls `take` for each field until it returns other than 0, which is then returned. HC_CSV_BROKEN: a quoted
 * field does not end, or something follows its end; *ret_line says where. -ENOMEM. */
enum { HC_CSV_BROKEN = 1 };
int hc_csv_walk(const char *data, size_t n, char delimiter,
                int (*take)(void *context, const struct hc_csv_field *field), void *context,
                uint64_t *ret_line);

#endif
