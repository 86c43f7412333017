/* The cache of versions: one small JSON file, replaced as a whole. */
#ifndef HC_RUNTIME_VERSION_CACHE_H
#define HC_RUNTIME_VERSION_CACHE_H

#include <stdbool.h>
#include <sys/stat.h>

/* `key` names the interpreter and the question; an entry counts only while the file's identity is the same.
 */
bool hc_version_cache_get(const char *key, const struct stat *st, char ret_version[64]);
void hc_version_cache_put(const char *key, const struct stat *st, const char *version);

/* 1 to 63 printable ASCII characters. */
bool hc_version_valid(const char *version);

#endif
