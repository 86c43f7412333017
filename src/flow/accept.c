#include "flow/accept.h"

#include "flow/accept_cells.h"
#include "flow/accept_kinds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PREDICATES_MAX 100
#define ITEM_TOLERANCE 1e-3 /* of a number that a data set expects */

static const struct hc_predicate_kind *kind_of(const json_t *predicate)
{
    const char *name = json_string_value(json_object_get(predicate, "kind"));
    for (size_t i = 0; name != NULL && i < hc_predicate_kind_count; i++)
        if (strcmp(hc_predicate_kinds[i].name, name) == 0)
            return &hc_predicate_kinds[i];
    return NULL;
}

static bool has_field(const struct hc_predicate_kind *kind, const char *name)
{
    for (const struct hc_predicate_field *field = kind->fields; field->name != NULL; field++)
        if (strcmp(field->name, name) == 0)
            return true;
    return false;
}

/* Some kinds of data sets are kept for other work. */
static bool judged(const struct hc_predicate_kind *kind)
{
    return kind->judge != NULL || kind->judge_in_cell != NULL;
}

static int refuse_kind(size_t index, struct hc_refusal *refusal)
{
    char names[400] = "";
    size_t at = 0;
    for (size_t i = 0; i < hc_predicate_kind_count; i++)
        if (judged(&hc_predicate_kinds[i]) && at < sizeof names)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at > 0 ? ", " : "",
                                   hc_predicate_kinds[i].name);
    return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu: unknown kind; there are %s", index,
                     names);
}

static int check_one(const json_t *p, size_t index, bool unjudged_too, struct hc_refusal *refusal)
{
    const struct hc_predicate_kind *kind = kind_of(p);
    const char *name;
    char room[256];
    json_t *value;
    if (!json_is_object(p))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu: must be an object", index);
    if (kind == NULL || (!judged(kind) && !unjudged_too))
        return refuse_kind(index, refusal);
    for (const struct hc_predicate_field *field = kind->fields; field->name != NULL; field++)
        if (field->required && json_object_get(p, field->name) == NULL)
            return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu (%s): lacks %s", index,
                             kind->name, field->name);
    json_object_foreach((json_t *)p, name, value)
    {
        if (strcmp(name, "kind") != 0 && !has_field(kind, name))
            return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu (%s): unknown field '%.60s'",
                             index, kind->name, name);
    }
    const char *wrong = kind->check != NULL ? kind->check(p, room) : NULL;
    return wrong != NULL ? hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "predicate %zu (%s): %s", index,
                                     kind->name, wrong)
                         : 0;
}

static int check_list(const json_t *predicates, bool unjudged_too, struct hc_refusal *refusal)
{
    size_t i;
    json_t *predicate;
    if (!json_is_array(predicates) || json_array_size(predicates) == 0)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "wanted a list of at least one predicate");
    if (json_array_size(predicates) > PREDICATES_MAX)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "more than %d predicates", PREDICATES_MAX);
    json_array_foreach(predicates, i, predicate)
    {
        int outcome = check_one(predicate, i, unjudged_too, refusal);
        if (outcome != 0)
            return outcome;
    }
    return 0;
}

int hc_predicates_check(const json_t *predicates, struct hc_refusal *refusal)
{
    return check_list(predicates, false, refusal);
}

/* What an item leaves to the data set's custom is written out, so that the record tells what was judged. */
static int complete(json_t *predicate)
{
    if (kind_of(predicate)->judge != hc_judge_stdout_number || json_object_get(predicate, "abs") != NULL ||
        json_object_get(predicate, "rel") != NULL)
        return 0;
    return json_object_set_new(predicate, "rel", json_real(ITEM_TOLERANCE));
}

int hc_predicates_of_expect(const json_t *expect, json_t **ret_predicates, struct hc_refusal *refusal)
{
    size_t i;
    json_t *predicate;
    bool all_judged = true;
    *ret_predicates = NULL;
    if (expect == NULL || json_is_null(expect))
        return 0;
    json_t *list = json_is_array(expect) ? json_deep_copy(expect) : json_pack("[o]", json_deep_copy(expect));
    int error = list == NULL ? -ENOMEM : check_list(list, true, refusal);
    json_array_foreach(list, i, predicate)
    {
        if (error != 0)
            break;
        all_judged = all_judged && judged(kind_of(predicate));
        error = complete(predicate) != 0 ? -ENOMEM : 0;
    }
    if (error != 0 || !all_judged) {
        json_decref(list);
        return error;
    }
    *ret_predicates = list;
    return 0;
}

static void judge_one(const struct hc_job *job, const struct hc_predicate_kind *kind, const json_t *predicate,
                      const struct hc_accept_cells *cells, struct hc_answer *answer)
{
    if (kind->judge_in_cell == NULL) {
        kind->judge(job, predicate, answer);
        return;
    }
    int error = cells != NULL ? kind->judge_in_cell(job, predicate, cells, answer) : -ENOSYS;
    if (error < 0) {
        answer->ok = HC_CANNOT_TELL;
        (void)snprintf(answer->got, sizeof answer->got, "no second cell: %s", strerror(-error));
    }
}

static void judge(const struct hc_job *job, const json_t *predicate, const struct hc_accept_cells *cells,
                  struct hc_answer *answer)
{
    const struct hc_predicate_kind *kind = kind_of(predicate);
    const struct hc_verdict *verdict = &job->verdict;
    /* Whatever the output looks like: a run that a limit or a rule ended has not given a result. */
    bool ended_itself = verdict->status == HC_STATUS_OK || verdict->status == HC_STATUS_RUNTIME_ERROR ||
                        verdict->status == HC_STATUS_SYNTAX_ERROR;
    bool ran = job->outcome.started == HC_STARTED && job->outcome.out.data != NULL;
    if (kind->any_ending && verdict->state == HC_STATE_FINISHED && verdict->status != HC_STATUS_CANCELLED) {
        judge_one(job, kind, predicate, cells, answer);
    } else if (!kind->any_ending && ran && ended_itself) {
        judge_one(job, kind, predicate, cells, answer);
    } else if (verdict->state == HC_STATE_FINISHED) {
        answer->ok = HC_NO;
        (void)snprintf(answer->got, sizeof answer->got, "%s", hc_statuses[verdict->status].name);
    }
}

int hc_accept(struct hc_job *job, const json_t *predicates, const struct hc_accept_cells *cells)
{
    size_t i;
    json_t *predicate;
    bool all = true, unsure = false;
    if (predicates == NULL)
        return 0;
    job->acceptance.predicates = json_array();
    json_array_foreach(predicates, i, predicate)
    {
        struct hc_answer answer = {.ok = HC_CANNOT_TELL};
        judge(job, predicate, cells, &answer);
        all = all && answer.ok == HC_YES;
        unsure = unsure || answer.ok == HC_CANNOT_TELL;
        json_t *row =
            json_pack("{s:s, s:o, s:o, s:o}", "kind", kind_of(predicate)->name, "ok",
                      answer.ok == HC_CANNOT_TELL ? json_null() : json_boolean(answer.ok == HC_YES),
                      "expected", answer.expected[0] != '\0' ? json_string(answer.expected) : json_null(),
                      "got", answer.got[0] != '\0' ? json_string(answer.got) : json_null());
        if (row == NULL || json_array_append_new(job->acceptance.predicates, row) != 0)
            return -ENOMEM;
    }
    job->acceptance.status = unsure ? HC_ACCEPT_ERROR : all ? HC_ACCEPTED : HC_REJECTED;
    return 0;
}

bool hc_predicates_bring_programs(const json_t *predicates)
{
    size_t i;
    json_t *predicate;
    json_array_foreach(predicates, i, predicate)
    {
        if (kind_of(predicate)->judge_in_cell == hc_judge_checker)
            return true;
    }
    return false;
}
