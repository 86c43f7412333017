/* The budget of a task: how often and how long a loop of attempts may go on. Pure; times are microseconds. */
#ifndef HC_FLOW_TASK_BUDGET_H
#define HC_FLOW_TASK_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct hc_task_budget {
    uint64_t attempts;    /* 1 + retries */
    uint64_t wall_us;     /* of one attempt: all its cells together */
    uint64_t overhead_us; /* queue and start-up of all attempts */
    uint64_t total_us;    /* never more than attempts x wall + overhead */
    uint64_t feedback_bytes;
};

/* What was used, attempts that are under way counted with their whole wall. */
struct hc_task_spent {
    uint64_t attempts;
    uint64_t time_us;
};

/* (1 + retries) x wall + queue and start-up, or `total_us` where that is less; UINT64_MAX: beyond all bounds.
 */
uint64_t hc_task_worst_case_us(const struct hc_task_budget *budget);
/* The same for what is left. */
uint64_t hc_task_worst_left_us(const struct hc_task_budget *budget, const struct hc_task_spent *spent);
uint64_t hc_task_attempts_left(const struct hc_task_budget *budget, const struct hc_task_spent *spent);
/* The wall time that one more attempt may have; 0: none may begin. */
uint64_t hc_task_next_wall_us(const struct hc_task_budget *budget, const struct hc_task_spent *spent);

#endif
