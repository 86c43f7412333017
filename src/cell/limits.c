#include "cell/limits.h"

#include "base/quantity.h"

#include <inttypes.h>
#include <stdio.h>

int hc_limit_parse(enum hc_limit limit, const char *text, uint64_t *ret_value)
{
    switch (hc_limits[limit].unit) {
    case HC_UNIT_BYTES:
        return hc_parse_bytes(text, ret_value);
    case HC_UNIT_US:
        return hc_parse_duration_us(text, ret_value);
    case HC_UNIT_MILLI_CPUS:
        return hc_parse_milli(text, ret_value);
    case HC_UNIT_COUNT_OF:
        break;
    }
    return hc_parse_count(text, ret_value);
}

void hc_limit_show(enum hc_limit limit, uint64_t value, char out[32])
{
    enum hc_unit unit = hc_limits[limit].unit;
    if (value == HC_LIMIT_AUTO)
        (void)snprintf(out, 32, "auto");
    else if (unit == HC_UNIT_BYTES)
        hc_format_bytes(value, out);
    else if (unit == HC_UNIT_US)
        hc_format_duration(value, out);
    else if (unit == HC_UNIT_MILLI_CPUS && value % 1000 == 0)
        (void)snprintf(out, 32, "%" PRIu64, value / 1000);
    else if (unit == HC_UNIT_MILLI_CPUS)
        (void)snprintf(out, 32, "%" PRIu64 ".%03" PRIu64, value / 1000, value % 1000);
    else
        (void)snprintf(out, 32, "%" PRIu64, value);
}
