/* hotcell as a library: programs run in cells, the answer is the record of the run.
 *
 * Errors: negative errno is a fault of the host or wrong use, 0 is done, positive is one of hotcell_outcome.
 * What a program does, and a request that is refused, is no error: the record says it.
 *
 * Threads: every function but hotcell_close may be called from any thread at any time. hotcell_close must be
 * the last call on its handle. A handle does not survive fork().
 */
#ifndef HOTCELL_H
#define HOTCELL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hotcell;

enum hotcell_outcome {
    HOTCELL_BAD_INPUT = 1, /* hotcell_open: an option or a manifest is wrong; the message says which */
    HOTCELL_PENDING = 2,   /* the run has not ended yet */
    HOTCELL_FULL = 3       /* waiting_max runs are submitted and not yet fetched */
};

/* Zero means the default everywhere. Strings are copied. */
struct hotcell_options {
    size_t size;          /* sizeof(struct hotcell_options), so that later versions can add fields */
    const char *programs; /* folder of hotcell-hall and its like; NULL: as installed */
    const char *share;    /* folder of runtimes and profiles; NULL: as installed */
    const char *store;    /* folder where records are kept; NULL: they are only handed back */
    unsigned workers;     /* runs at the same time, 1 to 256; 0: 1 */
    unsigned waiting_max; /* 0: 1024 */
};

/* `message` may be NULL; it is set when the answer is not 0. */
int hotcell_open(const struct hotcell_options *options, struct hotcell **ret_handle, char message[256]);

/* Ends what runs, forgets what waits, and waits until no process of the handle is left. NULL is allowed. */
void hotcell_close(struct hotcell *handle);

/* Runs a request (JSON text, see hotcell(3)) and waits for its record: JSON text, for hotcell_free. */
int hotcell_run(struct hotcell *handle, const char *request, char **ret_record);

/* Queues a request. HOTCELL_FULL. The ticket is good for one record. */
int hotcell_submit(struct hotcell *handle, const char *request, uint64_t *ret_ticket);

/* The record of a ticket, waiting at most timeout_ms (negative: as long as it takes). HOTCELL_PENDING;
 * -ENOENT: no such ticket, or its record was handed out; -EBUSY: another thread waits for it. */
int hotcell_wait(struct hotcell *handle, uint64_t ticket, int timeout_ms, char **ret_record);
/* The same without waiting. */
int hotcell_poll(struct hotcell *handle, uint64_t ticket, char **ret_record);

void hotcell_free(void *memory);
const char *hotcell_version(void);

#ifdef __cplusplus
}
#endif
#endif
