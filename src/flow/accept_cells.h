/* How predicates get a second cell: the engine lends itself to them. */
#ifndef HC_FLOW_ACCEPT_CELLS_H
#define HC_FLOW_ACCEPT_CELLS_H

struct hc_job;

struct hc_second_cell {
    void *context;
    /* Runs a job whose spec is filled, to its verdict. 0 or negative errno. */
    int (*run)(void *context, struct hc_job *job);
    const char *asserts_path; /* what runs test code in the language of the run; NULL: nothing does */
};

#endif
