/* `hotcell run`: from arguments to a request. */
#ifndef HC_CLI_REQUEST_H
#define HC_CLI_REQUEST_H

#include "cell/spec.h"

#include <jansson.h>

struct hc_run_request {
    struct hc_spec spec;
    bool json, help;
    char *out, *store;
    char *runtimes;     /* one more folder of manifests; NULL: none */
    json_t *predicates; /* NULL: none */
};

/* HC_REFUSED: `refusal` names the flag. Nothing is started or written. */
int hc_run_request_parse(int argc, char **argv, struct hc_run_request *ret_request,
                         struct hc_refusal *refusal);
void hc_run_request_done(struct hc_run_request *request);

/* Reads HOST[:NAME] and everything below it into the spec. */
int hc_run_add_files(struct hc_spec *spec, const char *argument, struct hc_refusal *refusal);

/* Reads the predicates of a file into the request and checks them. */
int hc_run_accept_file(struct hc_run_request *request, const char *path, struct hc_refusal *refusal);

/* Reads a whole file for option `--FLAG`, at most `max_bytes`. */
int hc_run_read_file(const char *flag, const char *path, uint64_t max_bytes, uint8_t **ret_data,
                     size_t *ret_bytes, struct hc_refusal *refusal);

/* Value of --runtimes: an existing folder. */
int hc_cli_set_runtimes(char **slot, const char *value, struct hc_refusal *refusal);

#endif
