/* Which ${name} a template may hold. Expansion itself is declared in runtime/manifest.h. */
#ifndef HC_RUNTIME_TEMPLATE_H
#define HC_RUNTIME_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

enum hc_template_name {
    HC_TEMPLATE_INTERPRETER,
    HC_TEMPLATE_FILE,
    HC_TEMPLATE_OUTPUT,
    HC_TEMPLATE_HOME,
    HC_TEMPLATE_THREADS,
    HC_TEMPLATE_MEMORY_MIB,
    HC_TEMPLATE_HEAP_MIB,
    HC_TEMPLATE_SEED, /* these two below `deterministic` only */
    HC_TEMPLATE_HOOK,
    HC_TEMPLATE_TREE,
    HC_TEMPLATE_FLAGS, /* a whole word of a list only */
    HC_TEMPLATE_COUNT
};

/* Whether every ${name} is known and in `allowed` (bit per enum hc_template_name); else where the first other
 * one is. */
bool hc_template_allowed(const char *template, unsigned allowed, const char **ret_at, size_t *ret_length);

#endif
