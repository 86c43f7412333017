/* What `hotcell task` shares with `hotcell run`. */
#ifndef HC_CLI_RUN_H
#define HC_CLI_RUN_H

#include "cli/request.h"
#include "flow/job.h"

/* Runs the request, quietly, and appends its record to the store in `folder`. *ret_record is a new reference,
 * of a fault when the record can't be stored. Negative errno: without memory. */
int hc_run_for_task(struct hc_run_request *request, struct hc_job *job, const char *folder,
                    json_t **ret_record);

#endif
