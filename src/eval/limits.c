#include "eval/limits.h"

#include "base/quantity.h"
#include "cell/limits.h"

#include <math.h>
#include <string.h>

/* Names with a unit in them. */
static const struct {
    const char *name;
    enum hc_limit limit;
    double factor; /* to the record's unit */
} aliases[] = {
    {"wall_s", HC_LIMIT_WALL, 1e6},
    {"cpu_s", HC_LIMIT_CPU, 1e6},
    {"memory_mib", HC_LIMIT_MEMORY, 1048576},
    {"output_kib", HC_LIMIT_OUTPUT, 1024},
    {"file_mib", HC_LIMIT_FILE_SIZE, 1048576},
    {"disk_mib", HC_LIMIT_DISK, 1048576},
};

int hc_eval_limit_of_option(const char *option)
{
    for (int i = 0; i < HC_LIMIT_COUNT; i++)
        if (hc_limits[i].flag != NULL && strcmp(hc_limits[i].flag, option) == 0)
            return i;
    return -1;
}

static void set(struct hc_spec *spec, enum hc_limit limit, uint64_t value)
{
    if (spec == NULL)
        return;
    spec->limits[limit] = value;
    spec->limit_asked[limit] = true;
}

int hc_eval_limit_text(struct hc_spec *spec, enum hc_limit limit, const char *text,
                       struct hc_refusal *refusal)
{
    const struct hc_limit_row *row = &hc_limits[limit];
    uint64_t value = 0;
    int outcome = hc_limit_parse(limit, text, &value);
    if (outcome != HC_QUANTITY_OK)
        return hc_refuse(refusal, HC_CAUSE_FIELD, row->name, "%s '%.60s': %s", row->name, text,
                         hc_quantity_reason(outcome));
    set(spec, limit, value);
    return 0;
}

static int set_number(struct hc_spec *spec, enum hc_limit limit, const char *name, double value,
                      struct hc_refusal *refusal)
{
    value = nearbyint(value);
    if (!(value >= 1) || value > 9007199254740991.0)
        return hc_refuse(refusal, HC_CAUSE_FIELD, hc_limits[limit].name,
                         "limits: %.60s must be positive and not huge", name);
    set(spec, limit, (uint64_t)value);
    return 0;
}

static int set_one(struct hc_spec *spec, const char *name, const json_t *value, struct hc_refusal *refusal)
{
    if (!json_is_number(value) && !json_is_string(value))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "limits", "limits: %.60s must be a number", name);
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(aliases[i].name, name) == 0)
            return json_is_number(value)
                       ? set_number(spec, aliases[i].limit, name,
                                    json_number_value(value) * aliases[i].factor, refusal)
                       : hc_refuse(refusal, HC_CAUSE_FIELD, "limits", "limits: %.60s must be a number", name);
    int limit = hc_limit_by_name(name);
    if (limit < 0 || hc_limits[limit].flag == NULL)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "limits", "limits: unknown limit '%.60s'", name);
    return json_is_number(value)
               ? set_number(spec, (enum hc_limit)limit, name, json_number_value(value), refusal)
               : hc_eval_limit_text(spec, (enum hc_limit)limit, json_string_value(value), refusal);
}

int hc_eval_limits(struct hc_spec *spec, const json_t *limits, struct hc_refusal *refusal)
{
    const char *name;
    json_t *value;
    int error = 0;
    json_object_foreach((json_t *)limits, name, value)
    {
        if (error == 0 && !json_is_null(value))
            error = set_one(spec, name, value, refusal);
    }
    return error;
}
