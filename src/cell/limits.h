/* Values of limits as people write and read them: by the unit of their row. */
#ifndef HC_CELL_LIMITS_H
#define HC_CELL_LIMITS_H

#include "cell/words.h"

/* "512M", "30s", "64", "1.5": an outcome of base/quantity.h, HC_QUANTITY_OK among them. */
int hc_limit_parse(enum hc_limit limit, const char *text, uint64_t *ret_value);

void hc_limit_show(enum hc_limit limit, uint64_t value, char out[32]);

#endif
