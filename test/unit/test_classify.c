/* From kernel facts to status and cause: single facts, and which of several is the cause. */
#include "flow/classify.h"

#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define EXITED(code) ((code) << 8)
#define KILLED(sig)  (sig)

/* A run that started and whose main process ended by itself. */
#define ENDED(status, ...)                                                                                   \
    {                                                                                                        \
        .started = HC_STARTED, .exited = true, .wait_status = (status), .hits = { __VA_ARGS__ }              \
    }
/* A run that was ended with all its processes; its main process never reported. */
#define CUT(...)                                                                                             \
    {                                                                                                        \
        .started = HC_STARTED, .hits = { __VA_ARGS__ }                                                       \
    }

struct row {
    const char *name;
    struct hc_outcome outcome;
    enum hc_status status;
    enum hc_cause cause;
    int exit_code, signal;
};

static void check(const struct row *row)
{
    struct hc_verdict v;
    hc_classify(&row->outcome, &v);
    if (v.status != row->status || v.cause != row->cause || v.exit_code != row->exit_code ||
        v.signal != row->signal)
        hc_test_fail(__FILE__, __LINE__, "%s: status %s, cause %s, exit %d, signal %d; wanted %s, %s, %d, %d",
                     row->name, hc_statuses[v.status].name,
                     v.cause != HC_CAUSE_NONE ? hc_causes[v.cause].name : "none", v.exit_code, v.signal,
                     hc_statuses[row->status].name,
                     row->cause != HC_CAUSE_NONE ? hc_causes[row->cause].name : "none", row->exit_code,
                     row->signal);
    enum hc_state state = row->status == HC_STATUS_REFUSED ? HC_STATE_REFUSED
                          : row->status == HC_STATUS_FAULT ? HC_STATE_FAULT
                                                           : HC_STATE_FINISHED;
    HC_ASSERT_EQ_INT(v.state, state);
}

#define CHECK_ALL(rows)                                                                                      \
    for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++)                                               \
    check(&(rows)[i])

HC_TEST(endings_without_a_limit)
{
    static const struct row rows[] = {
        {"exit 0", ENDED(EXITED(0)), HC_STATUS_OK, HC_CAUSE_NONE, 0, 0},
        {"exit 1", ENDED(EXITED(1)), HC_STATUS_RUNTIME_ERROR, HC_CAUSE_EXIT_CODE, 1, 0},
        {"exit 255", ENDED(EXITED(255)), HC_STATUS_RUNTIME_ERROR, HC_CAUSE_EXIT_CODE, 255, 0},
        /* Codes that look like somebody else's verdict are only exit codes. */
        {"exit 124", ENDED(EXITED(124)), HC_STATUS_RUNTIME_ERROR, HC_CAUSE_EXIT_CODE, 124, 0},
        {"exit 137", ENDED(EXITED(137)), HC_STATUS_RUNTIME_ERROR, HC_CAUSE_EXIT_CODE, 137, 0},
        {"segfault", ENDED(KILLED(SIGSEGV)), HC_STATUS_RUNTIME_ERROR, HC_CAUSE_SIGNAL, -1, SIGSEGV},
        {"segfault with the core bit", ENDED(KILLED(SIGSEGV) | 0x80), HC_STATUS_RUNTIME_ERROR,
         HC_CAUSE_SIGNAL, -1, SIGSEGV},
        {"killed itself", ENDED(KILLED(SIGKILL)), HC_STATUS_RUNTIME_ERROR, HC_CAUSE_SIGNAL, -1, SIGKILL},
        {"filter", ENDED(KILLED(SIGSYS)), HC_STATUS_POLICY_VIOLATION, HC_CAUSE_SYSCALL, -1, SIGSYS},
        {"exit 31 is no SIGSYS", ENDED(EXITED(31)), HC_STATUS_RUNTIME_ERROR, HC_CAUSE_EXIT_CODE, 31, 0},
        {"its end was never seen", CUT(.wall = false), HC_STATUS_FAULT, HC_CAUSE_HOST, -1, 0},
    };
    CHECK_ALL(rows);
}

HC_TEST(never_started)
{
    static const struct row rows[] = {
        {"host", {.started = HC_NEVER_STARTED}, HC_STATUS_REFUSED, HC_CAUSE_HOST, -1, 0},
        {"grade",
         {.started = HC_NEVER_STARTED, .grade_too_low = true},
         HC_STATUS_REFUSED,
         HC_CAUSE_GRADE,
         -1,
         0},
        {"facts of a run that was not",
         {.started = HC_NEVER_STARTED, .exited = true, .hits = {.memory = true, .wall = true}},
         HC_STATUS_REFUSED,
         HC_CAUSE_HOST,
         -1,
         0},
    };
    CHECK_ALL(rows);
}

HC_TEST(single_limits)
{
    static const struct row rows[] = {
        {"memory", CUT(.memory = true, .killed_for_memory = true), HC_STATUS_MEMORY_LIMIT, HC_CAUSE_MEMORY,
         -1, SIGKILL},
        {"host memory",
         {.started = HC_STARTED, .oom_kills = 1, .hits = {.host_memory = true}},
         HC_STATUS_MEMORY_LIMIT,
         HC_CAUSE_HOST_MEMORY,
         -1,
         SIGKILL},
        {"wall", CUT(.wall = true, .killed_for_wall = true), HC_STATUS_TIMEOUT, HC_CAUSE_WALL_TIME, -1,
         SIGKILL},
        {"cpu", CUT(.cpu = true, .killed_for_cpu = true), HC_STATUS_TIMEOUT, HC_CAUSE_CPU_TIME, -1, SIGKILL},
        {"cpu by the back-up limit", ENDED(KILLED(SIGXCPU), .cpu = true), HC_STATUS_TIMEOUT,
         HC_CAUSE_CPU_TIME, -1, SIGXCPU},
        {"SIGXCPU that it sent itself", ENDED(KILLED(SIGXCPU)), HC_STATUS_RUNTIME_ERROR, HC_CAUSE_SIGNAL, -1,
         SIGXCPU},
        {"output", CUT(.output = true, .output_total = true, .killed_for_output = true),
         HC_STATUS_OUTPUT_LIMIT, HC_CAUSE_OUTPUT_BYTES, -1, SIGKILL},
        {"cancelled", CUT(.cancelled = true, .killed_for_cancel = true), HC_STATUS_CANCELLED, HC_CAUSE_CLIENT,
         -1, SIGKILL},
        {"processes", ENDED(EXITED(1), .processes = true), HC_STATUS_PROCESS_LIMIT, HC_CAUSE_PROCESSES, 1, 0},
        {"disk", ENDED(EXITED(1), .disk = true), HC_STATUS_DISK_LIMIT, HC_CAUSE_DISK_BYTES, 1, 0},
        {"inodes", ENDED(EXITED(1), .inodes = true), HC_STATUS_DISK_LIMIT, HC_CAUSE_INODES, 1, 0},
        {"a boundary was lost", ENDED(EXITED(0), .killed_for_fault = true), HC_STATUS_FAULT, HC_CAUSE_HOST, 0,
         0},
    };
    CHECK_ALL(rows);
}

/* Limits that a program can live with: hit, told in the record, but not the ending. */
HC_TEST(limits_that_were_survived)
{
    static const struct row rows[] = {
        {"processes", ENDED(EXITED(0), .processes = true), HC_STATUS_OK, HC_CAUSE_NONE, 0, 0},
        {"disk", ENDED(EXITED(0), .disk = true), HC_STATUS_OK, HC_CAUSE_NONE, 0, 0},
        {"inodes", ENDED(EXITED(0), .inodes = true), HC_STATUS_OK, HC_CAUSE_NONE, 0, 0},
        {"kept output", ENDED(EXITED(0), .output = true), HC_STATUS_OK, HC_CAUSE_NONE, 0, 0},
        {"kept output, failed", ENDED(EXITED(3), .output = true), HC_STATUS_RUNTIME_ERROR, HC_CAUSE_EXIT_CODE,
         3, 0},
        {"ended while the wall clock struck", ENDED(EXITED(0), .wall = true, .killed_for_wall = true),
         HC_STATUS_OK, HC_CAUSE_NONE, 0, 0},
        {"ended while being cancelled", ENDED(EXITED(0), .cancelled = true, .killed_for_cancel = true),
         HC_STATUS_OK, HC_CAUSE_NONE, 0, 0},
        /* A process of the run was killed for want of memory: no exit code makes that good. */
        {"memory, exit 0", ENDED(EXITED(0), .memory = true), HC_STATUS_MEMORY_LIMIT, HC_CAUSE_MEMORY, 0, 0},
    };
    CHECK_ALL(rows);
}

/* memory, processes, cpu, wall, output, disk: of two limits that were hit the earlier one is the cause. */
HC_TEST(order_of_causes)
{
    static const struct {
        enum hc_status status;
        enum hc_cause cause;
    } order[] = {
        {HC_STATUS_MEMORY_LIMIT, HC_CAUSE_MEMORY},       {HC_STATUS_MEMORY_LIMIT, HC_CAUSE_HOST_MEMORY},
        {HC_STATUS_PROCESS_LIMIT, HC_CAUSE_PROCESSES},   {HC_STATUS_TIMEOUT, HC_CAUSE_CPU_TIME},
        {HC_STATUS_OUTPUT_LIMIT, HC_CAUSE_OUTPUT_BYTES}, {HC_STATUS_DISK_LIMIT, HC_CAUSE_DISK_BYTES},
        {HC_STATUS_DISK_LIMIT, HC_CAUSE_INODES},
    };
    enum { KINDS = sizeof order / sizeof *order };
    /* Every non-empty set of limits on a main process that died by SIGXCPU. */
    for (unsigned set = 1; set < 1u << KINDS; set++) {
        struct hc_outcome o = ENDED(KILLED(SIGXCPU));
        o.hits.memory = set & 1;
        o.hits.host_memory = set >> 1 & 1;
        o.hits.processes = set >> 2 & 1;
        o.hits.cpu = set >> 3 & 1;
        o.hits.output_total = set >> 4 & 1;
        o.hits.disk = set >> 5 & 1;
        o.hits.inodes = set >> 6 & 1;
        struct hc_verdict v;
        hc_classify(&o, &v);
        unsigned first = 0;
        while ((set >> first & 1) == 0)
            first++;
        if (v.status != order[first].status || v.cause != order[first].cause)
            hc_test_fail(__FILE__, __LINE__, "set 0x%x: %s", set, hc_causes[v.cause].name);
    }
    static const struct row rows[] = {
        {"cpu before wall", CUT(.cpu = true, .killed_for_cpu = true, .wall = true, .killed_for_wall = true),
         HC_STATUS_TIMEOUT, HC_CAUSE_CPU_TIME, -1, SIGKILL},
        {"wall before output", CUT(.wall = true, .killed_for_wall = true, .output_total = true),
         HC_STATUS_TIMEOUT, HC_CAUSE_WALL_TIME, -1, SIGKILL},
        {"a limit before the caller's wish",
         CUT(.wall = true, .killed_for_wall = true, .cancelled = true, .killed_for_cancel = true),
         HC_STATUS_TIMEOUT, HC_CAUSE_WALL_TIME, -1, SIGKILL},
        {"a lost boundary before everything",
         CUT(.killed_for_fault = true, .memory = true, .wall = true, .killed_for_wall = true),
         HC_STATUS_FAULT, HC_CAUSE_HOST, -1, SIGKILL},
        {"a limit before the filter", ENDED(KILLED(SIGSYS), .disk = true), HC_STATUS_DISK_LIMIT,
         HC_CAUSE_DISK_BYTES, -1, SIGSYS},
    };
    CHECK_ALL(rows);
}

/* Whatever the facts: a verdict has an ending of one kind at most, and `ok` means exit code 0. */
HC_TEST(any_facts_give_a_coherent_verdict)
{
    uint64_t seed = 20260101;
    for (int round = 0; round < 200000; round++) {
        uint64_t bits = hc_test_random(&seed);
        struct hc_outcome o = {.started = (bits & 1) ? HC_STARTED : HC_NEVER_STARTED,
                               .exited = bits >> 1 & 1,
                               .wait_status =
                                   (bits >> 2 & 1) ? EXITED((int)(bits >> 8 & 255)) : (int)(bits >> 8 & 31)};
        bool *hits = (bool *)&o.hits;
        for (size_t i = 0; i < sizeof o.hits; i++)
            hits[i] = bits >> (16 + i) & 1;
        struct hc_verdict v;
        hc_classify(&o, &v);
        HC_ASSERT(v.exit_code < 0 || v.signal == 0);
        HC_ASSERT((v.status == HC_STATUS_OK) == (v.cause == HC_CAUSE_NONE));
        HC_ASSERT(v.status != HC_STATUS_OK || v.exit_code == 0);
        HC_ASSERT((v.state == HC_STATE_REFUSED) == (o.started == HC_NEVER_STARTED));
    }
}
