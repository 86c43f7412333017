/* Budgets of tasks: sums that can't be overrun, whatever the numbers; the store of tasks with two writers. */
#include "flow/task.h"
#include "store/tasks.h"

#include "base/strings.h"

#include "harness.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

HC_TEST(the_formula)
{
    struct hc_task_budget budget = {
        .attempts = 4, .wall_us = 30000000, .overhead_us = 12000000, .total_us = UINT64_MAX};
    struct hc_task_spent spent = {0};
    HC_ASSERT_EQ_INT(hc_task_worst_case_us(&budget), 132000000);
    HC_ASSERT_EQ_INT(hc_task_worst_left_us(&budget, &spent), 132000000);
    spent = (struct hc_task_spent){.attempts = 3, .time_us = 100000000};
    HC_ASSERT_EQ_INT(hc_task_next_wall_us(&budget, &spent), 30000000);
    HC_ASSERT_EQ_INT(hc_task_worst_left_us(&budget, &spent), 32000000);
    spent.time_us = 131950000; /* less than a tenth of a second is left */
    HC_ASSERT_EQ_INT(hc_task_next_wall_us(&budget, &spent), 0);
    HC_ASSERT_EQ_INT(hc_task_attempts_left(&budget, &spent), 0);
    HC_ASSERT_EQ_INT(hc_task_worst_left_us(&budget, &spent), 0);
    spent = (struct hc_task_spent){.attempts = 4, .time_us = 0};
    HC_ASSERT_EQ_INT(hc_task_next_wall_us(&budget, &spent), 0);
    budget.total_us = 50000000;
    HC_ASSERT_EQ_INT(hc_task_worst_case_us(&budget), 50000000);
}

/* Whatever attempts take within their wall, the walls granted never add up to more than the worst case. */
HC_TEST(no_sequence_overspends)
{
    uint64_t seed = 23;
    for (int round = 0; round < 20000; round++) {
        bool huge = hc_test_random(&seed) % 8 == 0;
        struct hc_task_budget budget = {.attempts = 1 + hc_test_random(&seed) % 9,
                                        .wall_us = 1 + hc_test_random(&seed) % 100000000,
                                        .overhead_us = hc_test_random(&seed) % 20000000,
                                        .total_us =
                                            huge ? UINT64_MAX : 1 + hc_test_random(&seed) % 300000000};
        struct hc_task_spent spent = {0};
        uint64_t worst = hc_task_worst_case_us(&budget), granted = 0, wall;
        HC_ASSERT(worst <= budget.total_us && worst <= budget.attempts * budget.wall_us + budget.overhead_us);
        while ((wall = hc_task_next_wall_us(&budget, &spent)) > 0) {
            HC_ASSERT(wall <= budget.wall_us && spent.time_us + wall <= worst);
            HC_ASSERT(hc_task_worst_left_us(&budget, &spent) <= worst - spent.time_us);
            spent.attempts++;
            granted += wall;
            spent.time_us +=
                hc_test_random(&seed) % (wall + 1) + hc_test_random(&seed) % 1000000; /* and start-up */
        }
        HC_ASSERT(spent.attempts <= budget.attempts && granted <= budget.attempts * budget.wall_us);
    }
    struct hc_task_budget all = {
        .attempts = UINT64_MAX, .wall_us = UINT64_MAX, .overhead_us = UINT64_MAX, .total_us = UINT64_MAX};
    HC_ASSERT(hc_task_worst_case_us(&all) == UINT64_MAX);
}

/* ---- feedback ---- */

static json_t *feedback(const char *record, uint64_t bytes)
{
    json_t *document = json_loads(record, 0, NULL);
    HC_ASSERT(document != NULL);
    json_t *result = hc_task_feedback(document, bytes);
    HC_ASSERT(result != NULL);
    json_decref(document);
    return result;
}

HC_TEST(feedback_of_odd_records)
{
    json_t *got = feedback("{\"status\":\"refused\",\"cause\":\"module\",\"error\":{\"type\":null,"
                           "\"message\":\"m\",\"line\":3},\"stdout\":null,"
                           "\"stderr\":null,\"acceptance\":{\"predicates\":null}}",
                           10);
    HC_ASSERT(json_is_null(json_object_get(got, "tail")));
    HC_ASSERT_EQ_INT(json_array_size(json_object_get(got, "failed")), 0);
    json_decref(got);
    got = feedback("{\"status\":\"ok\",\"cause\":null,\"error\":null,\"stdout\":{\"text\":"
                   "\"first\\nsecond\\nth\\u00e4rd\\n\"},\"stderr\":{\"text\":\"\"},"
                   "\"acceptance\":{\"predicates\":[{\"kind\":\"a\",\"ok\":true,\"expected\":\"E\",\"got\":"
                   "\"G\"},{\"kind\":\"b\",\"ok\":null,\"expected\":\"E\",\"got\":\"G\"}]}}",
                   9);
    HC_ASSERT_STREQ(json_string_value(json_object_get(got, "tail")), "th\u00e4rd");
    HC_ASSERT_STREQ(json_string_value(json_object_get(got, "tail_of")), "stdout");
    char *text = json_dumps(got, 0);
    HC_ASSERT(text != NULL && strstr(text, "\"E\"") == NULL && strstr(text, "\"G\"") == NULL);
    free(text);
    json_decref(got);
    for (uint64_t bytes = 0; bytes < 12; bytes++) { /* never half a character, never more */
        got = feedback("{\"status\":\"ok\",\"cause\":null,\"error\":null,\"stdout\":{\"text\":"
                       "\"\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\"},\"stderr\":{\"text\":\"\"}}",
                       bytes);
        HC_ASSERT(json_string_length(json_object_get(got, "tail")) <= bytes);
        json_decref(got);
    }
}

/* ---- the store ---- */

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static void reserve_some(const char *folder, int writer)
{
    char message[256], run[32];
    struct hc_tasks *tasks = NULL;
    HC_ASSERT_EQ_INT(hc_tasks_open(folder, &tasks, message), 0);
    for (int i = 0; i < 5; i++) {
        uint64_t wall = 0;
        unsigned attempt = 0;
        json_t *task = NULL;
        (void)snprintf(run, sizeof run, "run-%d-%d", writer, i);
        int outcome =
            hc_tasks_reserve(tasks, "t", run, "now", hc_task_decide, &wall, &attempt, &task, message);
        HC_ASSERT(outcome == 0 || outcome == HC_TASK_REFUSED);
        if (outcome == 0)
            HC_ASSERT_EQ_INT(hc_tasks_settle(tasks, "t", run, 1000, true, "rejected", "ok", message), 0);
        json_decref(task);
    }
    hc_tasks_close(tasks);
}

HC_TEST(writers_at_once, .timeout_s = 60)
{
    char folder[] = "/tmp/hc-tasks-XXXXXX", message[256];
    struct hc_tasks *tasks = NULL;
    struct hc_task_budget budget = {
        .attempts = 7, .wall_us = 1000000, .overhead_us = 0, .total_us = UINT64_MAX};
    json_t *predicates = json_pack("[{s:s}]", "kind", "exit_zero"), *task = NULL, *try;
    HC_ASSERT(mkdtemp(folder) != NULL);
    HC_ASSERT_EQ_INT(hc_tasks_open(folder, &tasks, message), 0);
    json_t *document = hc_task_document("goal", &budget, predicates);
    HC_ASSERT(document != NULL);
    HC_ASSERT_EQ_INT(hc_tasks_add(tasks, "t", "now", document, message), 0);
    HC_ASSERT(hc_tasks_add(tasks, "t", "now", document, message) < 0);
    HC_ASSERT_EQ_INT(hc_tasks_get(tasks, "other", &task, message), -ENOENT);
    for (int writer = 0; writer < 4; writer++)
        if (fork() == 0) {
            reserve_some(folder, writer);
            _exit(0);
        }
    for (int status; wait(&status) > 0;)
        HC_ASSERT_EQ_INT(status, 0);
    HC_ASSERT_EQ_INT(hc_tasks_get(tasks, "t", &task, message), 0);
    const json_t *tries = json_object_get(task, "tries");
    HC_ASSERT_EQ_INT(json_array_size(tries), 7);
    size_t i;
    json_array_foreach(tries, i, try)
        HC_ASSERT_EQ_INT(json_integer_value(json_object_get(try, "attempt")), i + 1);
    HC_ASSERT_STREQ(hc_task_state(task), "spent");
    json_decref(task);
    json_decref(document);
    json_decref(predicates);
    hc_tasks_close(tasks);
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
