/* Builds the plan of a cell: the sealed memfd that hotcell-init reads. */
#ifndef HC_CELL_PLAN_H
#define HC_CELL_PLAN_H

#include "cell/wire.h"

#include <stdbool.h>
#include <stddef.h>

struct hc_plan_file {
    const char *name; /* relative to the working folder; folders before what lies in them */
    bool folder;
    bool payload_owned;
    bool hook; /* a plain name in HC_HOOK_FOLDER, not in the working folder */
    uint32_t mode;
    const void *data;
    size_t bytes;
};

struct hc_plan_source {
    const char *const *argv; /* argv[0]: absolute path; NULL-terminated, as is env */
    const char *const *env;
    const struct hc_plan_file *files;
    size_t file_count;
    const struct hc_plan_rlimit *rlimits;
    size_t rlimit_count;
    uint64_t scratch_bytes;
    uint64_t scratch_inodes;
    uint64_t allow_layers;
};

/* Returns the memfd (>= 0), or negative errno: -E2BIG when something does not fit the plan's bounds. */
int hc_plan_build(const struct hc_plan_source *source);

/* Whether `name` may be the name of a file in the working folder: relative, no "." or "..", no control bytes.
 * On false `ret_reason` says why in a plain clause. */
bool hc_plan_name_ok(const char *name, const char **ret_reason);

#endif
