/* What a program itself said of its failure. Untrusted: it explains, it decides nothing. */
#ifndef HC_FLOW_DIAGNOSE_H
#define HC_FLOW_DIAGNOSE_H

#include "runtime/manifest.h"

#include <stdbool.h>
#include <stddef.h>

struct hc_diagnosis {
    bool found;
    char type[128];
    char message[512];
    char file[256];
    long line; /* 0: unknown */
};

/* Reads the traceback that Python prints: last line `Type: message`, the innermost frame in the program's own
 * file. */
void hc_diagnose_python(const char *stderr_text, size_t n, const char *program_name,
                        struct hc_diagnosis *ret);

/* Reads the first `file:line:column: error: message` of a compiler. */
void hc_diagnose_compiler(const char *stderr_text, size_t n, const char *program_name,
                          struct hc_diagnosis *ret);

/* Reads by the rules of a runtime's manifest. Of a long text the end counts, or, at_head, the beginning: a
 * program's last words, a compiler's first. */
void hc_diagnose_rules(const struct hc_error_rules *rules, const char *stderr_text, size_t n, bool at_head,
                       const char *program_name, struct hc_diagnosis *ret);

#endif
