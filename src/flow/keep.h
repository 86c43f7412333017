/* The last stage of a run: its record, what it was given and what it exported, in the store, together or not
 * at all. */
#ifndef HC_FLOW_KEEP_H
#define HC_FLOW_KEEP_H

#include "flow/job.h"
#include "store/store.h"

/* Always a record, but for want of memory (NULL). With a store it is in the chain, or it says that it could
 * not be put there: then the job's verdict is a fault of stage record. `store` and `predicates` may be NULL.
 */
json_t *hc_record_keep(struct hc_job *job, const json_t *predicates, struct hc_store *store);

/* Reads the artifacts that are to be kept out of the cell's working folder, before that is gone. 0 or
 * -ENOMEM: what can't be read is not kept. */
int hc_keep_artifacts(struct hc_job *job, int working_folder);
void hc_kept_done(struct hc_job *job);

#endif
