#include "policy/policy.h"

#include "policy/artifact_words.h"

#include "base/canonical.h"
#include "base/cleanup.h"
#include "base/quantity.h"
#include "base/redact.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "cell/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 2000

const char *const hc_risk_names[3] = {"low", "medium", "high"};
const char *const hc_origin_names[3] = {"built-in", "ceiling", "profile"};

struct reader {
    const struct hc_yaml *yaml;
    struct hc_problem *problem;
    struct hc_policy *policy;
    bool ceiling; /* the host's file: it may be tighter than what is built in, and so becomes the bound */
};

typedef int read_word(struct reader *r, json_t *value, const char *path);

/* ---- simple values ---- */

static int wanted(struct reader *r, const char *path, const char *what)
{
    return hc_yaml_problem(r->yaml, path, r->problem, "expected %s", what);
}

static int read_count(struct reader *r, json_t *value, const char *path, uint64_t most, uint64_t *ret)
{
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 1 || (uint64_t)number > most)
        return wanted(r, path, "a positive whole number");
    *ret = (uint64_t)number;
    return 0;
}

static int read_flag(struct reader *r, json_t *value, const char *path, bool *ret)
{
    if (!json_is_boolean(value))
        return wanted(r, path, "true or false");
    *ret = json_is_true(value);
    return 0;
}

static void names_done(struct hc_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct hc_names){0};
}

static int read_names(struct reader *r, json_t *value, const char *path, struct hc_names *ret)
{
    size_t i;
    json_t *item;
    if (!json_is_array(value) || json_array_size(value) > NAMES_MAX)
        return wanted(r, path, "a list of names");
    names_done(ret);
    ret->given = true;
    ret->items = calloc(json_array_size(value) + 1, sizeof *ret->items);
    if (ret->items == NULL)
        return -ENOMEM;
    json_array_foreach(value, i, item)
    {
        hc_autofree char *place = hc_printf("%s/%zu", path, i);
        if (place == NULL)
            return -ENOMEM;
        if (!json_is_string(item) || json_string_length(item) == 0 || json_string_length(item) > 120)
            return wanted(r, place, "a name of at most 120 characters");
        if ((ret->items[ret->count++] = strdup(json_string_value(item))) == NULL)
            return -ENOMEM;
    }
    return 0;
}

/* ---- limits ---- */

static int read_value(struct reader *r, enum hc_limit limit, json_t *value, const char *path, uint64_t *ret)
{
    const struct hc_limit_row *row = &hc_limits[limit];
    char digits[32];
    const char *text = json_string_value(value);
    if (json_is_integer(value) && json_integer_value(value) > 0) {
        (void)snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value));
        text = digits;
    }
    if (text != NULL && strcmp(text, "auto") == 0 && row->default_value == HC_LIMIT_AUTO) {
        *ret = HC_LIMIT_AUTO;
        return 0;
    }
    int outcome = text != NULL ? hc_limit_parse(limit, text, ret) : -1;
    if (outcome != HC_QUANTITY_OK)
        return hc_yaml_problem(r->yaml, path, r->problem, "%s: %s", row->name,
                               text != NULL ? hc_quantity_reason(outcome) : "expected a quantity");
    if (*ret < row->min_value)
        return hc_yaml_problem(r->yaml, path, r->problem, "%s: below it nothing can start", row->name);
    return 0;
}

static int take_bound(struct reader *r, enum hc_limit limit, const char *word, uint64_t value,
                      const char *path)
{
    struct hc_policy *policy = r->policy;
    uint64_t *max = &policy->limits[limit].max_value;
    enum hc_origin origin = r->ceiling ? HC_ORIGIN_CEILING : HC_ORIGIN_PROFILE;
    char asked[32], bound[32];
    if (strcmp(word, "default") == 0) {
        policy->limits[limit].default_value = value;
        policy->limits[limit].default_origin = origin;
        return 0;
    }
    if (value > *max) {
        hc_limit_show(limit, value, asked);
        hc_limit_show(limit, *max, bound);
        return hc_yaml_problem(r->yaml, path, r->problem, "%s: %s is looser than the ceiling, %s",
                               hc_limits[limit].name, asked, bound);
    }
    *max = value;
    policy->limits[limit].max_origin = origin;
    return 0;
}

static int read_limit(struct reader *r, enum hc_limit limit, json_t *value, const char *path)
{
    const char *word;
    json_t *bound;
    if (!json_is_object(value))
        return wanted(r, path, "{default, max}");
    json_object_foreach(value, word, bound)
    {
        hc_autofree char *place = hc_yaml_path(path, word);
        uint64_t number = 0;
        if (place == NULL)
            return -ENOMEM;
        if (strcmp(word, "default") != 0 && strcmp(word, "max") != 0)
            return hc_yaml_problem(r->yaml, place, r->problem,
                                   "unknown word \"%.60s\"; there are default and max", word);
        int error = read_value(r, limit, bound, place, &number);
        if (error == 0)
            error = take_bound(r, limit, word, number, place);
        if (error != 0)
            return error;
    }
    return 0;
}

static int read_limits(struct reader *r, json_t *value, const char *path)
{
    const char *name;
    json_t *limit;
    if (!json_is_object(value))
        return wanted(r, path, "limits by name");
    json_object_foreach(value, name, limit)
    {
        hc_autofree char *place = hc_yaml_path(path, name);
        int which = hc_limit_by_name(name);
        if (place == NULL)
            return -ENOMEM;
        if (which < 0 || hc_limits[which].flag == NULL)
            return hc_yaml_problem(r->yaml, place, r->problem, "unknown limit \"%.60s\"", name);
        int error = read_limit(r, (enum hc_limit)which, limit, place);
        if (error != 0)
            return error;
    }
    return 0;
}

/* ---- words with words in them ---- */

struct member {
    const char *word;
    size_t names; /* offset of a struct hc_names; SIZE_MAX: a flag */
    size_t flag;
};

static int read_members(struct reader *r, json_t *value, const char *path, const struct member *members,
                        size_t count)
{
    const char *word;
    json_t *item;
    if (!json_is_object(value))
        return wanted(r, path, "a mapping");
    json_object_foreach(value, word, item)
    {
        hc_autofree char *place = hc_yaml_path(path, word);
        size_t i = 0;
        if (place == NULL)
            return -ENOMEM;
        while (i < count && strcmp(members[i].word, word) != 0)
            i++;
        if (i == count)
            return hc_yaml_problem(r->yaml, place, r->problem, "unknown word \"%.60s\"", word);
        char *policy = (char *)r->policy;
        int error = members[i].names != SIZE_MAX
                        ? read_names(r, item, place, (struct hc_names *)(void *)(policy + members[i].names))
                        : read_flag(r, item, place, (bool *)(void *)(policy + members[i].flag));
        if (error != 0)
            return error;
    }
    return 0;
}

#define NAMES(field) offsetof(struct hc_policy, field), 0
#define FLAG(field)  SIZE_MAX, offsetof(struct hc_policy, field)

static int read_modules(struct reader *r, json_t *value, const char *path)
{
    static const struct member members[] = {{"allow", NAMES(modules_allow)}, {"deny", NAMES(modules_deny)}};
    return read_members(r, value, path, members, 2);
}

static int read_calls(struct reader *r, json_t *value, const char *path)
{
    static const struct member members[] = {{"deny", NAMES(calls_deny)}};
    return read_members(r, value, path, members, 1);
}

static int read_dependencies(struct reader *r, json_t *value, const char *path)
{
    static const struct member members[] = {{"allow", NAMES(dependencies_allow)}};
    int error = read_members(r, value, path, members, 1);
    for (size_t i = 0; error == 0 && i < r->policy->dependencies_allow.count; i++)
        if (strstr(r->policy->dependencies_allow.items[i], "==") == NULL) {
            hc_autofree char *place = hc_printf("%s/allow/%zu", path, i);
            error = place == NULL ? -ENOMEM : wanted(r, place, "name==version");
        }
    return error;
}

/* The words there are stand in the message: nobody guesses them. */
static int refuse_word(struct reader *r, const char *path, const char *list, size_t at, const char *word)
{
    bool types = strcmp(list, "types") == 0;
    size_t count = types ? hc_type_word_count : hc_scan_word_count, n = 0;
    char words[400] = "";
    hc_autofree char *place = hc_printf("%s/%s/%zu", path, list, at);
    if (place == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count && n < sizeof words; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, "%s%s", i > 0 ? ", " : "",
                              types ? hc_type_words[i].word : hc_scan_words[i].word);
    return hc_yaml_problem(r->yaml, place, r->problem, "unknown word \"%.60s\"; there are %s", word, words);
}

static int read_artifacts(struct reader *r, json_t *value, const char *path)
{
    static const struct member members[] = {{"types", NAMES(artifact_types)}, {"scan", NAMES(artifact_scan)}};
    const struct hc_policy *policy = r->policy;
    int error = read_members(r, value, path, members, 2);
    for (size_t i = 0; error == 0 && i < policy->artifact_types.count; i++)
        if (!hc_type_word_known(policy->artifact_types.items[i]))
            error = refuse_word(r, path, "types", i, policy->artifact_types.items[i]);
    for (size_t i = 0; error == 0 && i < policy->artifact_scan.count; i++)
        if (hc_scan_word_named(policy->artifact_scan.items[i]) == NULL)
            error = refuse_word(r, path, "scan", i, policy->artifact_scan.items[i]);
    return error;
}

static int read_output(struct reader *r, json_t *value, const char *path)
{
    static const struct member members[] = {{"redact", NAMES(redact)}};
    struct hc_redact_rules *trial = hc_redact_rules_new(NULL);
    char reason[128];
    int error = trial == NULL ? -ENOMEM : read_members(r, value, path, members, 1);
    for (size_t i = 0; error == 0 && i < r->policy->redact.count; i++) {
        hc_autofree char *place = hc_printf("%s/redact/%zu", path, i);
        error = place == NULL ? -ENOMEM
                              : hc_redact_add_pattern(trial, "profile", r->policy->redact.items[i], reason);
        if (error == HC_REDACT_BAD)
            error = hc_yaml_problem(r->yaml, place, r->problem, "a pattern that can't be used: %s", reason);
    }
    hc_redact_rules_done(trial);
    return error;
}

static int read_source(struct reader *r, json_t *value, const char *path)
{
    const char *word;
    json_t *item;
    if (!json_is_object(value))
        return wanted(r, path, "a mapping");
    json_object_foreach(value, word, item)
    {
        hc_autofree char *place = hc_yaml_path(path, word);
        int error = -ENOMEM;
        if (place != NULL && strcmp(word, "bytes") == 0)
            error = read_count(r, item, place, HC_SPEC_CODE_BYTES_MAX, &r->policy->source_bytes_max);
        else if (place != NULL && strcmp(word, "nesting") == 0)
            error = read_count(r, item, place, 10000, &r->policy->nesting_max);
        else if (place != NULL && strcmp(word, "injection") == 0) {
            const char *text = json_string_value(item);
            bool refuse = text != NULL && strcmp(text, "refuse") == 0;
            r->policy->injection_refuses = refuse;
            error = refuse || (text != NULL && strcmp(text, "advise") == 0)
                        ? 0
                        : wanted(r, place, "advise or refuse");
        } else if (place != NULL)
            error = hc_yaml_problem(r->yaml, place, r->problem,
                                    "unknown word \"%.60s\"; there are bytes, nesting, injection", word);
        if (error != 0)
            return error;
    }
    return 0;
}

/* ---- the words of a profile ---- */

static int read_version(struct reader *r, json_t *value, const char *path)
{
    return read_count(r, value, path, 1000000000, &r->policy->version);
}

static int read_title(struct reader *r, json_t *value, const char *path)
{
    if (!json_is_string(value) || json_string_length(value) > 200)
        return wanted(r, path, "a line of text");
    free(r->policy->title);
    r->policy->title = strdup(json_string_value(value));
    return r->policy->title != NULL ? 0 : -ENOMEM;
}

static int read_risk(struct reader *r, json_t *value, const char *path)
{
    for (int i = 0; json_is_string(value) && i < 3; i++)
        if (strcmp(json_string_value(value), hc_risk_names[i]) == 0) {
            r->policy->risk = (enum hc_risk)i;
            return 0;
        }
    return wanted(r, path, "low, medium or high");
}

/* What can't be enforced is refused here, not at the first run. */
static int read_network(struct reader *r, json_t *value, const char *path)
{
    if (json_is_string(value) && strcmp(json_string_value(value), "none") == 0)
        return 0;
    return hc_yaml_problem(r->yaml, path, r->problem,
                           "only \"none\" can be enforced: no other network is offered");
}

static int read_tier(struct reader *r, json_t *value, const char *path)
{
    if (json_is_string(value) && strcmp(json_string_value(value), "native") == 0)
        return 0;
    return hc_yaml_problem(r->yaml, path, r->problem,
                           "only \"native\" can be enforced: no other tier is offered");
}

static int read_grade(struct reader *r, json_t *value, const char *path)
{
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != 1 || text[0] < 'A' || text[0] > 'D')
        return wanted(r, path, "A, B, C or D");
    r->policy->min_grade = (enum hc_grade)(text[0] - 'A');
    return 0;
}

static int read_files(struct reader *r, json_t *value, const char *path)
{
    const char *text = json_string_value(value);
    if (text == NULL || (strcmp(text, "none") != 0 && strcmp(text, "inputs") != 0))
        return wanted(r, path, "none or inputs");
    r->policy->no_files = strcmp(text, "none") == 0;
    return 0;
}

static int read_attempts(struct reader *r, json_t *value, const char *path)
{
    return read_count(r, value, path, 1000, &r->policy->attempts);
}

static int read_subprocesses(struct reader *r, json_t *value, const char *path)
{
    return read_flag(r, value, path, &r->policy->subprocesses);
}

static int read_cold(struct reader *r, json_t *value, const char *path)
{
    return read_flag(r, value, path, &r->policy->cold);
}

static int read_deterministic(struct reader *r, json_t *value, const char *path)
{
    return read_flag(r, value, path, &r->policy->deterministic);
}

static const struct {
    const char *word;
    read_word *read;
    bool of_ceiling; /* may stand in the host's ceiling too */
} words[] = {
    {"version", read_version, true},
    {"title", read_title, true},
    {"risk", read_risk, false},
    {"limits", read_limits, true},
    {"modules", read_modules, false},
    {"calls", read_calls, false},
    {"dependencies", read_dependencies, false},
    {"files", read_files, false},
    {"network", read_network, true},
    {"tier", read_tier, true},
    {"min_grade", read_grade, true},
    {"artifacts", read_artifacts, false},
    {"output", read_output, false},
    {"attempts", read_attempts, false},
    {"source", read_source, false},
    {"subprocesses", read_subprocesses, false},
    {"cold", read_cold, false},
    {"deterministic", read_deterministic, false},
};

static int unknown_word(struct reader *r, const char *word, const char *path)
{
    char list[400] = "";
    size_t at = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words && at < sizeof list; i++)
        if (!r->ceiling || words[i].of_ceiling)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at > 0 ? ", " : "", words[i].word);
    return hc_yaml_problem(r->yaml, path, r->problem, "unknown word \"%.60s\"; there are %s", word, list);
}

static int read_document(struct reader *r)
{
    const char *word;
    json_t *value;
    if (!json_is_object(r->yaml->root))
        return hc_yaml_problem(r->yaml, "", r->problem, "expected a mapping");
    json_object_foreach(r->yaml->root, word, value)
    {
        hc_autofree char *path = hc_yaml_path("", word);
        size_t i = 0;
        if (path == NULL)
            return -ENOMEM;
        while (i < sizeof words / sizeof *words && strcmp(words[i].word, word) != 0)
            i++;
        if (i == sizeof words / sizeof *words || (r->ceiling && !words[i].of_ceiling))
            return unknown_word(r, word, path);
        int error = words[i].read(r, value, path);
        if (error != 0)
            return error;
    }
    return 0;
}

static int read_bytes(struct hc_policy *policy, const char *data, size_t n, bool ceiling,
                      struct hc_problem *problem)
{
    struct hc_yaml yaml = {0};
    int error = hc_yaml_read(data, n, &yaml, problem);
    if (error != 0)
        return error;
    struct reader reader = {.yaml = &yaml, .problem = problem, .policy = policy, .ceiling = ceiling};
    error = read_document(&reader);
    hc_yaml_done(&yaml);
    return error;
}

/* ---- what follows from the whole ---- */

static int settle_limits(struct hc_policy *policy, const struct hc_policy *ceiling,
                         struct hc_problem *problem)
{
    for (int i = 0; i < HC_LIMIT_COUNT; i++) {
        uint64_t *value = &policy->limits[i].default_value, max = policy->limits[i].max_value;
        char asked[32], bound[32];
        if (*value == HC_LIMIT_AUTO || *value <= max)
            continue;
        /* A default that the profile did not choose gives way; one that it chose contradicts its own maximum.
         */
        if (policy->limits[i].default_origin != HC_ORIGIN_PROFILE) {
            *value = max;
            policy->limits[i].default_origin = policy->limits[i].max_origin;
            continue;
        }
        hc_limit_show((enum hc_limit)i, *value, asked);
        hc_limit_show((enum hc_limit)i, max, bound);
        return hc_problem_set(problem, 0, 0, "limits: %s: the default %s is above the maximum %s",
                              hc_limits[i].name, asked, bound);
    }
    if (policy->min_grade > ceiling->min_grade)
        return hc_problem_set(problem, 0, 0, "min_grade: %c is looser than the ceiling, %c",
                              'A' + (int)policy->min_grade, 'A' + (int)ceiling->min_grade);
    return 0;
}

static json_t *list_of(const struct hc_names *names)
{
    if (!names->given)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < names->count; i++)
        (void)json_array_append_new(list, json_string(names->items[i]));
    return list;
}

static json_t *number_or_auto(uint64_t value)
{
    return value == HC_LIMIT_AUTO ? json_string("auto") : json_integer((json_int_t)value);
}

static int document(struct hc_policy *policy)
{
    char grade[2] = {(char)('A' + (int)policy->min_grade), '\0'};
    json_t *limits = json_object();
    for (int i = 0; i < HC_LIMIT_COUNT; i++)
        if (hc_limits[i].flag != NULL)
            (void)json_object_set_new(limits, hc_limits[i].name,
                                      json_pack("{s:o, s:o}", "default",
                                                number_or_auto(policy->limits[i].default_value), "max",
                                                number_or_auto(policy->limits[i].max_value)));
    policy->document = json_pack(
        "{s:s, s:I, s:s, s:o, s:{s:o, s:o}, s:{s:o}, s:{s:o}, s:s, s:s, s:s, s:s, s:{s:o, s:o}, s:{s:o}, "
        "s:I, s:{s:I, s:I, s:s}, s:b, s:b, "
        "s:b}",
        "profile", policy->name, "version", (json_int_t)policy->version, "risk", hc_risk_names[policy->risk],
        "limits", limits, "modules", "allow", list_of(&policy->modules_allow), "deny",
        list_of(&policy->modules_deny), "calls", "deny", list_of(&policy->calls_deny), "dependencies",
        "allow", list_of(&policy->dependencies_allow), "files", policy->no_files ? "none" : "inputs",
        "network", "none", "tier", "native", "min_grade", grade, "artifacts", "types",
        list_of(&policy->artifact_types), "scan", list_of(&policy->artifact_scan), "output", "redact",
        list_of(&policy->redact), "attempts", (json_int_t)policy->attempts, "source", "bytes",
        (json_int_t)policy->source_bytes_max, "nesting", (json_int_t)policy->nesting_max, "injection",
        policy->injection_refuses ? "refuse" : "advise", "subprocesses", policy->subprocesses, "cold",
        policy->cold, "deterministic", policy->deterministic);
    hc_autofree char *text = policy->document != NULL ? hc_json_canonical(policy->document) : NULL;
    return text == NULL ? -ENOMEM : hc_sha256_hex(text, strlen(text), policy->sha256);
}

static void built_in(struct hc_policy *policy)
{
    for (int i = 0; i < HC_LIMIT_COUNT; i++) {
        policy->limits[i].default_value = hc_limits[i].default_value;
        policy->limits[i].max_value = hc_limits[i].max_value;
    }
    policy->version = 1;
    policy->risk = HC_RISK_MEDIUM;
    policy->min_grade = HC_GRADE_D; /* no bound of its own: a request that says nothing has B */
    policy->subprocesses = true;
    policy->source_bytes_max = HC_SPEC_CODE_BYTES_MAX;
    policy->nesting_max = 1000;
    policy->attempts = 4;
}

int hc_policy_read(const char *name, const char *data, size_t n, const char *ceiling, size_t ceiling_n,
                   struct hc_policy **ret_policy, struct hc_problem *problem)
{
    struct hc_policy *policy = calloc(1, sizeof *policy);
    hc_autofree struct hc_policy *bound = calloc(1, sizeof *bound);
    if (policy == NULL || bound == NULL || (policy->name = strdup(name)) == NULL) {
        hc_policy_done(policy);
        return -ENOMEM;
    }
    built_in(policy);
    int error = ceiling != NULL ? read_bytes(policy, ceiling, ceiling_n, true, problem) : 0;
    if (error == HC_BAD_INPUT)
        hc_problem_file(problem, HC_POLICY_CEILING);
    bound->min_grade = ceiling != NULL ? policy->min_grade : HC_GRADE_D;
    if (error == 0)
        error = read_bytes(policy, data, n, false, problem);
    if (error == 0)
        error = settle_limits(policy, bound, problem);
    if (error == 0)
        error = document(policy);
    if (error != 0) {
        hc_policy_done(policy);
        return error;
    }
    *ret_policy = policy;
    return 0;
}

void hc_policy_done(struct hc_policy *policy)
{
    if (policy == NULL)
        return;
    struct hc_names *lists[] = {
        &policy->modules_allow,  &policy->modules_deny,  &policy->calls_deny, &policy->dependencies_allow,
        &policy->artifact_types, &policy->artifact_scan, &policy->redact};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        names_done(lists[i]);
    json_decref(policy->document);
    free(policy->name);
    free(policy->path);
    free(policy->title);
    free(policy);
}
