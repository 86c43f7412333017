/* What kind of failure a result is: one class and one kind in it, told from the line of results alone. */
#ifndef HC_EVAL_TAXONOMY_H
#define HC_EVAL_TAXONOMY_H

#include <jansson.h>

enum hc_error_class {
    HC_CLASS_NONE,     /* ok, and right or not judged */
    HC_CLASS_SYNTAX,   /* it does not parse or compile; kind: which of the two */
    HC_CLASS_RUNTIME,  /* it ended badly by itself; kind: type of the exception, signal, or exit code */
    HC_CLASS_RESOURCE, /* a limit ended it; kind: the axis */
    HC_CLASS_POLICY,   /* refused, or ended by a rule; kind: the cause */
    HC_CLASS_LOGICAL,  /* ran, and the result is wrong; kind: the predicate that did not hold */
    HC_CLASS_HOST,     /* fault or cancelled: says nothing about the program */
    HC_CLASS_COUNT
};

struct hc_class_row {
    const char *name, *meaning;
};
extern const struct hc_class_row hc_error_classes[HC_CLASS_COUNT];

/* `ret_kind` is a text of the program's own where the class is runtime: untrusted. */
enum hc_error_class hc_eval_class(const json_t *result, char ret_kind[128]);

#endif
