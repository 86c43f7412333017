#include "flow/task_budget.h"

#define LEAST_US 100000u /* less is worth no attempt */

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

static uint64_t sum(uint64_t attempts, const struct hc_task_budget *budget)
{
    uint64_t walls, all;
    if (__builtin_mul_overflow(attempts, budget->wall_us, &walls) ||
        __builtin_add_overflow(walls, budget->overhead_us, &all))
        return UINT64_MAX;
    return all;
}

uint64_t hc_task_worst_case_us(const struct hc_task_budget *budget)
{
    return at_most(sum(budget->attempts, budget), budget->total_us);
}

static uint64_t time_left_us(const struct hc_task_budget *budget, const struct hc_task_spent *spent)
{
    uint64_t all = hc_task_worst_case_us(budget);
    return all > spent->time_us ? all - spent->time_us : 0;
}

uint64_t hc_task_next_wall_us(const struct hc_task_budget *budget, const struct hc_task_spent *spent)
{
    uint64_t wall_us = at_most(budget->wall_us, time_left_us(budget, spent));
    uint64_t least_us = at_most(budget->wall_us, LEAST_US);
    return spent->attempts < budget->attempts && wall_us >= least_us ? wall_us : 0;
}

uint64_t hc_task_attempts_left(const struct hc_task_budget *budget, const struct hc_task_spent *spent)
{
    return hc_task_next_wall_us(budget, spent) > 0 ? budget->attempts - spent->attempts : 0;
}

uint64_t hc_task_worst_left_us(const struct hc_task_budget *budget, const struct hc_task_spent *spent)
{
    uint64_t attempts = hc_task_attempts_left(budget, spent);
    return attempts == 0 ? 0 : at_most(sum(attempts, budget), time_left_us(budget, spent));
}
