/* Stages that ask something in a fresh cell of its own get one from the engine. */
#ifndef HC_FLOW_SECOND_CELL_H
#define HC_FLOW_SECOND_CELL_H

struct hc_job;

struct hc_second_cell {
    void *context;
    /* Runs a job whose spec is filled, to its verdict. 0 or negative errno. */
    int (*run)(void *context, struct hc_job *job);
};

#endif
