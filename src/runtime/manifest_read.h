/* One manifest from its bytes: what runtime/manifest.c gives to runtime/registry.c and to tests. */
#ifndef HC_RUNTIME_MANIFEST_READ_H
#define HC_RUNTIME_MANIFEST_READ_H

#include "runtime/manifest.h"

/* `path` is kept as manifest_path and not opened. Outcome: HC_BAD_INPUT. Errors: -ENOMEM, -EIO. */
int hc_runtime_read(const char *path, const char *data, size_t n, struct hc_runtime *ret,
                    struct hc_problem *problem);

/* Releases everything but the struct; harmless when repeated or on {0}. */
void hc_runtime_done(struct hc_runtime *runtime);

#endif
