#include "eval/taxonomy.h"

#include "base/strings.h"
#include "cell/words.h"

#include <stdio.h>
#include <string.h>

const struct hc_class_row hc_error_classes[HC_CLASS_COUNT] = {
    [HC_CLASS_NONE] = {"none", "no error"},
    [HC_CLASS_SYNTAX] = {"syntax", "does not parse or compile"},
    [HC_CLASS_RUNTIME] = {"runtime", "ended badly by itself, by exception, signal or exit code"},
    [HC_CLASS_RESOURCE] = {"resource", "met a limit, by axis"},
    [HC_CLASS_POLICY] = {"policy", "refused, or ended by a rule"},
    [HC_CLASS_LOGICAL] = {"logical", "ran, and the result is wrong"},
    [HC_CLASS_HOST] = {"host", "says nothing about the program: a fault, or cancelled"},
};

static const char *text(const json_t *result, const char *name)
{
    return json_string_value(json_object_get(result, name));
}

static const struct {
    enum hc_status status;
    enum hc_error_class class;
} rows[] = {
    {HC_STATUS_SYNTAX_ERROR, HC_CLASS_SYNTAX},     {HC_STATUS_COMPILE_ERROR, HC_CLASS_SYNTAX},
    {HC_STATUS_RUNTIME_ERROR, HC_CLASS_RUNTIME},   {HC_STATUS_TIMEOUT, HC_CLASS_RESOURCE},
    {HC_STATUS_MEMORY_LIMIT, HC_CLASS_RESOURCE},   {HC_STATUS_PROCESS_LIMIT, HC_CLASS_RESOURCE},
    {HC_STATUS_OUTPUT_LIMIT, HC_CLASS_RESOURCE},   {HC_STATUS_DISK_LIMIT, HC_CLASS_RESOURCE},
    {HC_STATUS_POLICY_VIOLATION, HC_CLASS_POLICY}, {HC_STATUS_REFUSED, HC_CLASS_POLICY},
    {HC_STATUS_CANCELLED, HC_CLASS_HOST},          {HC_STATUS_FAULT, HC_CLASS_HOST},
};

static void runtime_kind(const json_t *result, char ret_kind[128])
{
    const char *type = text(result, "error_type");
    if (type != NULL)
        (void)snprintf(ret_kind, 128, "%.120s", type);
    else if (json_is_integer(json_object_get(result, "signal")))
        (void)snprintf(ret_kind, 128, "signal %lld",
                       (long long)json_integer_value(json_object_get(result, "signal")));
    else
        (void)snprintf(ret_kind, 128, "exit code %lld",
                       (long long)json_integer_value(json_object_get(result, "exit_code")));
}

enum hc_error_class hc_eval_class(const json_t *result, char ret_kind[128])
{
    const char *status = text(result, "status"), *cause = text(result, "cause");
    enum hc_error_class class = HC_CLASS_NONE;
    ret_kind[0] = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (hc_string_equal(status, hc_statuses[rows[i].status].name))
            class = rows[i].class;
    if (class == HC_CLASS_NONE && json_is_false(json_object_get(result, "accepted"))) {
        const char *kind = text(json_object_get(result, "wrong"), "kind");
        (void)snprintf(ret_kind, 128, "%.120s", kind != NULL ? kind : "wrong");
        return HC_CLASS_LOGICAL;
    }
    if (class == HC_CLASS_RUNTIME)
        runtime_kind(result, ret_kind);
    else if (class == HC_CLASS_SYNTAX || class == HC_CLASS_HOST)
        (void)snprintf(ret_kind, 128, "%s", status);
    else if (class != HC_CLASS_NONE)
        (void)snprintf(ret_kind, 128, "%.120s", cause != NULL ? cause : status);
    return class;
}
