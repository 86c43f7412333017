/* The kernel's counters of one cell, read through the descriptors that came with it. */
#ifndef HC_FLOW_METERS_H
#define HC_FLOW_METERS_H

#include "flow/execute.h"

/* CPU time used by the cell in microseconds; false where no counter is. */
bool hc_meter_cpu_us(const struct hc_cell_handle *cell, uint64_t *ret_us, uint64_t *ret_user_us,
                     uint64_t *ret_system_us, const char **ret_name);
/* Kills by the kernel for want of memory in this cell. */
uint64_t hc_meter_oom_kills(const struct hc_cell_handle *cell);
/* Whether the cell's own limit was reached (and not just the host's). */
bool hc_meter_at_memory_limit(const struct hc_cell_handle *cell);
uint64_t hc_meter_refused_tasks(const struct hc_cell_handle *cell);
void hc_meter_peaks(const struct hc_cell_handle *cell, struct hc_usage *usage);
bool hc_meter_populated(const struct hc_cell_handle *cell);

/* Kills everything in the cell and waits until the kernel says that nothing is left. 0 or -ETIMEDOUT. */
int hc_meter_kill_all(const struct hc_cell_handle *cell);

#endif
