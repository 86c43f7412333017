/* What the subcommands that look at records share. */
#ifndef HC_CLI_RECORDS_H
#define HC_CLI_RECORDS_H

#include "cli/cli.h"
#include "store/store.h"

#include <jansson.h>
#include <stdio.h>

/* One invocation on its way: options by the command's table. */
struct hc_records_call {
    const char *command;
    bool json, help;
    const char *store; /* NULL: the default */
    const char *operands[2];
    int operand_count, operands_max;
    int (*take)(struct hc_records_call *call, const char *option, const char *value); /* 0, or a failure */
    void *context;
};

/* Reads the arguments; --json, --store and --help are taken care of. 0, or the exit code of a failure that
 * was told. */
int hc_records_arguments(int argc, char **argv, struct hc_records_call *call);

/* Tells why it fails, as one line or with --json as {"error": {...}}. Returns `code`. */
__attribute__((format(printf, 4, 5))) int hc_records_fail(const struct hc_records_call *call, int code,
                                                          const char *field, const char *message, ...);

/* Opens the store of the call, which has to be there, or is made. 0, or the exit code of a failure that was
 * told. */
int hc_records_open(const struct hc_records_call *call, bool make, struct hc_store **ret_store);

/* Text of a record on its way to a terminal. */
void hc_print_visible(FILE *out, const char *text, size_t n);
/* 0, or 125 when it can't be written. */
int hc_print_document(const json_t *document);
/* A whole document for people, complete, in the order of the contract. */
void hc_print_record(const json_t *record);

#endif
