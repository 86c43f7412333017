/* A task: attempts at one goal, within a budget of attempts, time and feedback.
 *
 * State lies in one file per task beside the records. An attempt is reserved there before it runs, so that a
 * killed process has used it and two tries at once can't overspend. What a model gets back is the diagnosis
 * it needs and never an expected answer. */
#ifndef HC_TASK_TASK_H
#define HC_TASK_TASK_H

#include "cell/spec.h"

#include <jansson.h>

struct hc_task_budget {
    uint64_t attempts;   /* 1 + retries */
    uint64_t wall_us;    /* of each attempt */
    uint64_t total_us;   /* of all of them, waiting and start-up included; 0: the worst case below */
    uint64_t startup_us; /* allowed for queue and start-up, once */
    uint64_t feedback_bytes;
};

/* attempts × wall + startup */
uint64_t hc_task_worst_us(const struct hc_task_budget *budget);

struct hc_task {
    char id[40];
    int lock; /* of the state file, while the task is open */
    char *path;
    json_t *state; /* {"schema": "hotcell.task/1", "id", "created_at", "goal", "language", "profile",
                      "predicates", "budget", "attempts": [...], "state": open | accepted | exhausted} */
};

/* Makes a task below `folder`. `predicates` has been checked. 0 or negative errno. */
int hc_task_new(const char *folder, const char *goal, const char *language, const char *profile,
                const json_t *predicates, const struct hc_task_budget *budget, struct hc_task **ret_task);
/* Opens one and keeps others out until hc_task_close. -ENOENT; -EBADMSG: the file is damaged. */
int hc_task_open(const char *folder, const char *id, struct hc_task **ret_task);
void hc_task_close(struct hc_task *task);
/* All tasks of the folder, newest last: {"id", "goal", "state", "used", "attempts"}. A new reference; NULL
 * without memory. */
json_t *hc_task_list(const char *folder);

struct hc_task_slot {
    unsigned attempt;
    uint64_t wall_us; /* for the attempt: its run, and the judging of it */
    uint64_t left_us; /* of the time in all: start-up included, the attempt is over then */
};
/* Reserves the next attempt. HC_REFUSED: the budget is used up or the goal is reached; hand over. */
int hc_task_reserve(struct hc_task *task, struct hc_task_slot *ret_slot, struct hc_refusal *refusal);
/* Notes how a reserved attempt ended, and gives the answer for the one who tries: {"task", "attempt",
 * "accepted", "status", "run", "feedback", "attempts_left", "wall_left_us", "worst_case_left_us", "state"}. A
 * new reference. */
int hc_task_settle(struct hc_task *task, unsigned attempt, const json_t *record, uint64_t spent_us,
                   json_t **ret_answer);

/* What of a record helps to mend a program, in at most `bytes`: {"type", "message", "line", "last_lines",
 * "failed": [kinds], "not_judged": [kinds]}. A new reference. */
json_t *hc_task_feedback(const json_t *record, size_t bytes);

#endif
