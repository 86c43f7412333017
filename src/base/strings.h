/* Strings, whole-descriptor reading and writing, and names of errors.
 *
 * Include as "base/strings.h" with src/ on the include path, never with src/base/ on it: <strings.h> of the
 * system has the same name.
 */
#ifndef HC_BASE_STRINGS_H
#define HC_BASE_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

/* Equality of contents; NULL equals NULL and nothing else. */
bool hc_string_equal(const char *a, const char *b);

/* The formatted text in new memory that the caller frees, NULL without memory or on a format that fails. */
char *hc_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2), malloc, warn_unused_result));

/* Reads from the present offset until end of file. *ret_data is new memory that the caller frees; it holds
 * *ret_n bytes and a NUL behind them, also when there was nothing to read. Interruptions by signals are
 * retried. Errors: -EFBIG (more than max_bytes; a part has then been consumed), -ENOMEM, or what read(2)
 * reports, -EAGAIN on an idle non-blocking descriptor included. */
int hc_read_all_fd(int fd, size_t max_bytes, void **ret_data, size_t *ret_n);

/* Writes all n bytes, retrying interruptions by signals. Errors: what write(2) reports (a part may have been
 * written), -EIO when it reports no progress. */
int hc_write_all(int fd, const void *data, size_t n);

/* A plain file of at most 64 MB with a NUL after it that is not counted; NULL when it can't be read. free()
 * it. */
char *hc_read_whole(const char *path, size_t *ret_bytes);

/* The symbol of an error, "EPERM" for EPERM and for -EPERM, "0" for 0, "EUNKNOWN" for a number without a
 * name. Static text, never NULL. */
const char *hc_errno_name(int errnum);

#endif
