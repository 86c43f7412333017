/* Release of descriptors and memory at the end of a scope, and visible moves of ownership.
 *
 *   hc_autoclose int fd = open(...);          closed when fd leaves its scope
 *   hc_autofree char *text = malloc(...);     freed likewise
 *   return hc_take_fd(&fd);                   ownership leaves the function
 */
#ifndef HC_BASE_CLEANUP_H
#define HC_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

static inline void hc_close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static inline void hc_free_pointer(void *pointer)
{
    free(*(void **)pointer);
}

static inline int hc_take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

static inline void *hc_take_any(void *pointer)
{
    void **slot = pointer;
    void *taken = *slot;
    *slot = NULL;
    return taken;
}

#define hc_autoclose       __attribute__((cleanup(hc_close_fd)))
#define hc_autofree        __attribute__((cleanup(hc_free_pointer)))
#define hc_take_pointer(p) ((__typeof__(*(p)))hc_take_any(p))

#endif
