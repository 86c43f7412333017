/* What a dead cell left in its working folder: listed, hashed, typed; never followed anywhere. */
#ifndef HC_FLOW_COLLECT_H
#define HC_FLOW_COLLECT_H

#include "cell/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HC_COLLECT_ENTRIES_MAX 10000
#define HC_COLLECT_LIST_MAX    1000 /* of each list in the record */
#define HC_COLLECT_DEPTH_MAX   64

enum hc_change { HC_CREATED, HC_CHANGED, HC_DELETED };

struct hc_artifact {
    char *path; /* bytes as they are, relative to the working folder */
    size_t path_bytes;
    enum hc_change change;
    const char *type; /* "symlink", "fifo", … for what is no plain file: listed, never exported */
    bool plain;
    bool collected; /* matches --collect: counts for the export */
    bool exported;
    uint64_t bytes;
    char sha256[65];          /* empty: not read */
    const char *findings[16]; /* names of hc_findings */
    unsigned finding_count;
    const char *blocked_by; /* the finding that keeps it from being exported; NULL: none */
};

struct hc_collection {
    struct hc_artifact *artifacts;
    size_t count;
    uint64_t omitted; /* entries beyond the bounds of the walk */
    uint64_t collected_bytes;
    uint64_t collected_count;
    bool over_total, over_size, over_count; /* export limits that were passed: then nothing is exported */
    bool truncated;                         /* the walk stopped early: then nothing is exported either */
};

struct hc_collect_rules {
    const char *glob; /* NULL: all */
    uint64_t total_bytes, file_bytes, file_count;
    const char *program_name;
    const char *compile_output; /* file or folder that a compile step made; NULL: none */
    const struct hc_spec *spec;
    uint32_t program_uid; /* host id of files that the run made itself */
};

/* Walks the working folder of a cell in which nothing lives any more. 0 or negative errno. */
int hc_collect(int working_folder, const struct hc_collect_rules *rules,
               struct hc_collection *ret_collection);

/* Writes all collected files under `folder` or none: HC_EXPORT_REFUSED with a message when a limit was
 * passed, a name is odd or something of that name is there already. */
enum { HC_EXPORT_REFUSED = 1 };
int hc_export(int working_folder, struct hc_collection *collection, const char *folder,
              char ret_message[256]);

/* Reads one plain file of the working folder, at most `max_bytes` of it (-EFBIG above). */
int hc_collect_read(int working_folder, const char *path, uint64_t max_bytes, uint8_t **ret_data,
                    size_t *ret_bytes);

void hc_collection_done(struct hc_collection *collection);

/* A short type by signature and, for text, by ending. */
const char *hc_file_type(const uint8_t *head, size_t n, const char *name);

#endif
