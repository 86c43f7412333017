/* --deterministic: the rows of the runtime's manifest that hold for a job. A row is left out, and not claimed
 * in the record, when the caller gave one of its variables himself. */
#ifndef HC_FLOW_DETERMINISTIC_H
#define HC_FLOW_DETERMINISTIC_H

#include "cell/plan.h"
#include "flow/job.h"
#include "runtime/manifest.h"

#define HC_FIXED_NAMES_MAX 64

/* Fills job->fixed, and the names of the variables that are set (each once, NULL behind them). */
void hc_deterministic_names(struct hc_job *job, const struct hc_runtime *runtime,
                            const char *ret_names[HC_FIXED_NAMES_MAX + 1]);
const struct hc_runtime_variable *hc_deterministic_variable(const struct hc_runtime *runtime,
                                                            const char *name);

/* Puts the options behind the first word of the command. 0 or negative errno. */
int hc_deterministic_options(const struct hc_job *job, const struct hc_runtime *runtime,
                             const struct hc_template_values *values, struct hc_strings *argv);

/* Adds the hooks to the files of a cell; `data` gets their contents, which the caller frees. 0 or negative
 * errno. */
int hc_deterministic_hooks(const struct hc_job *job, const struct hc_runtime *runtime,
                           struct hc_plan_file *files, size_t *file_count, void *data[HC_RUNTIME_FIXES_MAX]);

#endif
