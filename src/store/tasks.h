/* Tasks on disk, beside the records: what was asked for, and what each attempt has used. An attempt is
 * reserved with its whole wall time before it begins, so that neither two at once nor one whose process was
 * killed can spend more than there is. Several processes may work on one task. */
#ifndef HC_STORE_TASKS_H
#define HC_STORE_TASKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct hc_tasks;

int hc_tasks_open(const char *folder, struct hc_tasks **ret_tasks, char ret_message[256]);
void hc_tasks_close(struct hc_tasks *tasks);

/* `document` holds what never changes: goal, budget, predicates. */
int hc_tasks_add(struct hc_tasks *tasks, const char *id, const char *created_at, const json_t *document,
                 char ret_message[256]);

/* {id, created_at, document, tries: [{attempt, run, begun_at, reserved_us, time_us, counted, accepted,
 * status}]}, a new reference; -ENOENT: no such task. */
int hc_tasks_get(struct hc_tasks *tasks, const char *id, json_t **ret_task, char ret_message[256]);
/* All of them, the newest first, at most `limit`. */
int hc_tasks_list(struct hc_tasks *tasks, unsigned limit, json_t **ret_list, char ret_message[256]);

/* Decides under the writer's lock whether one more attempt may begin: `decide` gets the task and says how
 * long it may take, 0 for not at all. HC_TASK_REFUSED: it said so; *ret_task is the task as it was seen, in
 * any case. */
enum { HC_TASK_REFUSED = 1 };
int hc_tasks_reserve(struct hc_tasks *tasks, const char *id, const char *run, const char *begun_at,
                     uint64_t (*decide)(const json_t *task), uint64_t *ret_wall_us, unsigned *ret_attempt,
                     json_t **ret_task, char ret_message[256]);
/* What became of it. `counted`: it used one of the attempts; its time counts in any case. */
int hc_tasks_settle(struct hc_tasks *tasks, const char *id, const char *run, uint64_t time_us, bool counted,
                    const char *accepted, const char *status, char ret_message[256]);

#endif
