/* Which layers really held, judged from what the kernel says of the payload. Pure. */
#ifndef HC_CELL_LAYERS_H
#define HC_CELL_LAYERS_H

#include "cell/wire.h"
#include "cell/words.h"

struct hc_layer_result {
    enum hc_layer_state state;
    char evidence[128];
};

struct hc_layer_results {
    struct hc_layer_result layers[HC_LAYER_COUNT];
    enum hc_grade grade;
    int missing; /* first primary layer that is neither there nor accepted as absent; -1: none */
};

/* `host_pressure`: /proc/pressure is there on the host. */
void hc_layers_judge(const struct hc_cell_facts *facts, const struct hc_attestation *attestation,
                     bool host_pressure, uint64_t allow_layers, struct hc_layer_results *ret_results);

/* A later look may only find something missing: takes over every layer that `again` no longer finds. */
void hc_layers_tighten(struct hc_layer_results *results, const struct hc_layer_results *again);

const char *hc_grade_name(enum hc_grade grade);

#endif
