/* Predicates that need a second cell: test code in the program's name space, and a checker of its own.
 *
 * The dialogue of asserts. The command of the manifest (`asserts`) runs the program with its standard input
 * at end of file and its output thrown away. When the program's own text has run to its end, and only then,
 * it writes "returned\n" to the descriptor that was its standard output; nothing is sent before. What comes
 * then on the descriptor that was its standard input: the size of the tests in ten digits and "\n", the
 * tests, and 32 characters that nobody could know. The verdict is those characters and " held\n", or "
 * failed\n" and a reason. Any other output, and every other end, is a rejection.
 */
#ifndef HC_FLOW_ACCEPT_CELLS_H
#define HC_FLOW_ACCEPT_CELLS_H

#include "flow/accept_kinds.h"

#define HC_ASSERTS_NONCE_BYTES 32

/* What the judge of such a predicate needs of the engine. */
struct hc_accept_cells {
    void *context;
    /* Runs the `asserts` command in a fresh cell; what lies in `dialogue` is passed once something was
     * printed. HC_NOT_OFFERED: the language has no such command. */
    int (*run_asserts)(void *context, int dialogue, struct hc_outcome *ret_outcome,
                       struct hc_verdict *ret_verdict);
    /* Runs a job of its own, whose spec is filled, to its verdict. */
    int (*run_checker)(void *context, struct hc_job *checker);
};
enum { HC_NOT_OFFERED = 1 };

const char *hc_check_asserts(const json_t *predicate, char room[256]);
const char *hc_check_checker(const json_t *predicate, char room[256]);
/* Negative errno: a fault of ours, which the caller turns into "can't tell". */
int hc_judge_asserts(const struct hc_job *job, const json_t *predicate, const struct hc_accept_cells *cells,
                     struct hc_answer *answer);
int hc_judge_checker(const struct hc_job *job, const json_t *predicate, const struct hc_accept_cells *cells,
                     struct hc_answer *answer);

/* What an output of the dialogue says. Pure. */
void hc_asserts_verdict(const uint8_t *output, size_t n, const char nonce[HC_ASSERTS_NONCE_BYTES],
                        struct hc_answer *answer);

#endif
