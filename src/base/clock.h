/* Time: a monotonic clock for measuring and deadlines, and wall time for records.
 *
 * hc_now_us and hc_now_ns count micro- and nanoseconds of CLOCK_MONOTONIC, from an arbitrary origin that all
 * processes of one boot share. They do not fail.
 */
#ifndef HC_BASE_CLOCK_H
#define HC_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t hc_now_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t hc_now_us(void)
{
    return hc_now_ns() / 1000;
}

/* The present in UTC with microseconds, "2031-05-17T08:30:00.000125Z": 27 characters and a NUL. Wall time may
 * jump; never measure with it. */
void hc_rfc3339_now(char out[40]);

#endif
