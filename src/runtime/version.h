/* Which version a runtime has, and the identity of the environment it brings. */
#ifndef HC_RUNTIME_VERSION_H
#define HC_RUNTIME_VERSION_H

#include "runtime/manifest.h"

enum hc_version_outcome {
    HC_VERSION_OK = 0,
    HC_VERSION_ABSENT,  /* the interpreter is not installed */
    HC_VERSION_UNKNOWN, /* the command failed, took more than 5 s or printed nothing that the pattern matches
                         */
};

/* Runs version.command on the host, once per state of the interpreter's file: the answer is kept in
 * ${XDG_CACHE_HOME:-$HOME/.cache}/hotcell/versions.json. A cache that cannot be read or written is no error.
 * Errors: -ENOMEM, -EIO, or what starting a process reports. */
int hc_runtime_version(const struct hc_runtime *runtime, char ret_version[64]);

/* SHA-256 over the manifest, the interpreter's real path, size and time of change, and the same of the paths
 * under `digest` (of a folder: of its direct entries). Outcome: HC_VERSION_ABSENT. Errors: -ENOMEM, -EIO, or
 * what the file system reports; a path that is not there is part of the identity and no error. */
int hc_runtime_digest(const struct hc_runtime *runtime, char ret_hex[65]);

#endif
