#include "base/clock.h"

#include <stddef.h>

void hc_rfc3339_now(char out[40])
{
    struct timespec now = {0};
    struct tm parts = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    size_t n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S.", &parts);
    long us = now.tv_nsec / 1000;
    for (size_t i = 6; i-- > 0; us /= 10)
        out[n + i] = (char)('0' + us % 10);
    out[n + 6] = 'Z';
    out[n + 7] = '\0';
}
