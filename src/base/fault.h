/* Fault injection for test builds (-DHC_FAULTS): the nth guarded system call of a program fails with EIO
 * once.
 *
 * In ordinary builds HC_SYS is the call and nothing else; hc_fault_arm does not exist in them, so that no
 * shipped program can be told to fail.
 */
#ifndef HC_BASE_FAULT_H
#define HC_BASE_FAULT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef HC_FAULTS
extern uint32_t hc_fault_left; /* 0: not armed; n: the nth guarded call from now fails */

static inline void hc_fault_arm(uint32_t nth)
{
    hc_fault_left = nth;
}

static inline bool hc_fault_hit(void)
{
    return hc_fault_left > 0 && --hc_fault_left == 0;
}

#define HC_FAULT_STORAGE uint32_t hc_fault_left;
#else
#define hc_fault_arm(nth) ((void)(nth))
#define hc_fault_hit()    false
#define HC_FAULT_STORAGE
#endif

/* The value of a libc-style call, or its negative errno. */
#define HC_SYS(call)                                                                                         \
    ({                                                                                                       \
        long hc_result_ = hc_fault_hit() ? (errno = EIO, -1L) : (long)(call);                                \
        hc_result_ < 0 ? -(long)errno : hc_result_;                                                          \
    })

#endif
