/* Facts about a program into findings: pure. The facts come out of a cell, so their form is checked like any
 * input. */
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FACTS_MAX 20000

static const char *const process_modules[] = {"subprocess", "multiprocessing", "pty"};
static const char *const process_calls[] = {"os.system",      "os.popen",        "os.fork",   "os.forkpty",
                                            "os.posix_spawn", "os.posix_spawnp", "os.execv",  "os.execve",
                                            "os.execvp",      "os.execvpe",      "os.spawnv", "os.spawnl"};
/* Names whose misspelling is worth a word even if no list has them. */
static const char *const known[] = {"requests", "numpy", "pandas",  "matplotlib", "scipy",
                                    "sklearn",  "sympy", "urllib3", "setuptools"};

static bool in_list(const struct hc_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

/* The list says a package, the program names a module in it. */
static bool covers(const struct hc_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        size_t n = strlen(names->items[i]);
        if (strncmp(names->items[i], name, n) == 0 && (name[n] == '\0' || name[n] == '.'))
            return true;
    }
    return false;
}

/* One letter added, left out, changed, or two neighbours exchanged. */
static bool one_edit(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), i = 0;
    if (n > m + 1 || m > n + 1 || (n == m && strcmp(a, b) == 0))
        return false;
    while (i < n && i < m && a[i] == b[i])
        i++;
    if (n == m)
        return strcmp(a + i + 1, b + i + 1) == 0 ||
               (i + 1 < n && a[i] == b[i + 1] && a[i + 1] == b[i] && strcmp(a + i + 2, b + i + 2) == 0);
    return n > m ? strcmp(a + i + 1, b + i) == 0 : strcmp(a + i, b + i + 1) == 0;
}

static const char *near_name(const struct hc_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (one_edit(name, names->items[i]))
            return names->items[i];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (one_edit(name, known[i]))
            return known[i];
    return NULL;
}

static struct hc_finding *add(struct hc_findings *findings, const char *rule, enum hc_cause cause,
                              enum hc_severity severity, const char *name, unsigned line, unsigned column)
{
    static _Thread_local struct hc_finding spill; /* nobody reads it */
    if (findings->count == HC_FINDINGS_MAX) {
        findings->omitted++;
        return &spill;
    }
    struct hc_finding *finding = &findings->items[findings->count++];
    *finding = (struct hc_finding){
        .rule = rule, .cause = cause, .severity = severity, .line = line, .column = column};
    (void)snprintf(finding->name, sizeof finding->name, "%s", name);
    return finding;
}

/* As many allowed names as fit into a line. */
static void list_allowed(const struct hc_names *names, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < names->count && at + 40 < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i > 0 ? ", " : "", names->items[i]);
    if (names->count == 0)
        (void)snprintf(out, size, "none");
    else if (at + 40 >= size)
        (void)snprintf(out + at, size - at, ", ...");
}

static void judge_import(const struct hc_policy *policy, const char *name, unsigned line, unsigned column,
                         struct hc_findings *findings)
{
    char allowed[180];
    size_t top = strcspn(name, ".");
    char first[128];
    (void)snprintf(first, sizeof first, "%.*s", (int)(top < 127 ? top : 127), name);
    for (size_t i = 0; !policy->subprocesses && i < sizeof process_modules / sizeof *process_modules; i++)
        if (strcmp(first, process_modules[i]) == 0) {
            struct hc_finding *f =
                add(findings, "subprocess", HC_CAUSE_MODULE, HC_SEVERITY_REFUSAL, name, line, column);
            (void)snprintf(f->message, sizeof f->message,
                           "line %u: '%.60s' starts processes, which profile %.40s does not allow", line,
                           name, policy->name);
            return;
        }
    if (covers(&policy->modules_deny, name)) {
        struct hc_finding *f =
            add(findings, "module-denied", HC_CAUSE_MODULE, HC_SEVERITY_REFUSAL, name, line, column);
        (void)snprintf(f->message, sizeof f->message, "line %u: module '%.60s' is denied by profile %.40s",
                       line, name, policy->name);
        return;
    }
    if (!policy->modules_allow.given || covers(&policy->modules_allow, name))
        return;
    struct hc_finding *f =
        add(findings, "module-not-allowed", HC_CAUSE_MODULE, HC_SEVERITY_REFUSAL, name, line, column);
    const char *meant = near_name(&policy->modules_allow, first);
    list_allowed(&policy->modules_allow, allowed, sizeof allowed);
    if (meant != NULL)
        (void)snprintf(f->message, sizeof f->message,
                       "line %u: module '%.60s' is not allowed by profile %.40s; did you mean '%.60s'?", line,
                       name, policy->name, meant);
    else
        (void)snprintf(f->message, sizeof f->message,
                       "line %u: module '%.60s' is not allowed by profile %.40s; allowed are %s", line, name,
                       policy->name, allowed);
}

static bool call_denied(const struct hc_policy *policy, const char *name)
{
    for (size_t i = 0; !policy->subprocesses && i < sizeof process_calls / sizeof *process_calls; i++)
        if (strcmp(process_calls[i], name) == 0)
            return true;
    if (in_list(&policy->calls_deny, name))
        return true;
    for (size_t i = 0; i < policy->calls_deny.count; i++) {
        const char *item = policy->calls_deny.items[i];
        size_t n = strlen(item);
        if (n > 2 && strcmp(item + n - 2, ".*") == 0 && strncmp(item, name, n - 1) == 0)
            return true;
    }
    return false;
}

static void judge_call(const struct hc_policy *policy, const char *name, unsigned line, unsigned column,
                       struct hc_findings *findings)
{
    if (!call_denied(policy, name))
        return;
    struct hc_finding *f =
        add(findings, "call-denied", HC_CAUSE_CALL, HC_SEVERITY_REFUSAL, name, line, column);
    (void)snprintf(f->message, sizeof f->message, "line %u: '%.80s' is denied by profile %.40s", line, name,
                   policy->name);
}

static const char *const injections[] = {"ignore previous instructions",
                                         "ignore all previous instructions",
                                         "disregard the above",
                                         "disregard previous instructions",
                                         "you are now",
                                         "reveal your system prompt"};

static void judge_phrase(const struct hc_policy *policy, const char *text, unsigned line, unsigned column,
                         struct hc_findings *findings)
{
    for (size_t i = 0; i < sizeof injections / sizeof *injections; i++)
        if (strcasestr(text, injections[i]) != NULL) {
            struct hc_finding *f = add(findings, "injection-pattern", HC_CAUSE_CALL,
                                       policy->injection_refuses ? HC_SEVERITY_REFUSAL : HC_SEVERITY_ADVICE,
                                       injections[i], line, column);
            (void)snprintf(f->message, sizeof f->message, "line %u: text that speaks to a model: '%s'", line,
                           injections[i]);
            return;
        }
}

void hc_policy_judge_text(const struct hc_policy *policy, const uint8_t *code, size_t n,
                          struct hc_findings *findings)
{
    unsigned line = 1;
    for (size_t at = 0; at < n && line < 100000; line++) {
        const uint8_t *end = memchr(code + at, '\n', n - at);
        size_t length = end != NULL ? (size_t)(end - code) - at : n - at;
        char text[512];
        (void)snprintf(text, sizeof text, "%.*s", (int)(length < 500 ? length : 500),
                       (const char *)code + at);
        judge_phrase(policy, text, line, 1, findings);
        at += length + 1;
    }
}

static bool good_fact(const json_t *fact)
{
    return json_is_array(fact) && json_array_size(fact) == 4 && json_is_string(json_array_get(fact, 0)) &&
           json_is_string(json_array_get(fact, 1)) && json_is_integer(json_array_get(fact, 2)) &&
           json_is_integer(json_array_get(fact, 3));
}

int hc_policy_judge(const struct hc_policy *policy, const char *facts, size_t n,
                    struct hc_findings *ret_findings, bool *ret_syntax_error)
{
    json_t *document = json_loadb(facts, n, JSON_REJECT_DUPLICATES, NULL), *fact;
    size_t i;
    int error = 0;
    *ret_syntax_error = json_is_true(json_object_get(document, "syntax_error"));
    if (!*ret_syntax_error && (!json_is_array(document) || json_array_size(document) > FACTS_MAX))
        error = -EBADMSG;
    json_array_foreach(document, i, fact)
    {
        if (error != 0 || !good_fact(fact)) {
            error = -EBADMSG;
            break;
        }
        const char *kind = json_string_value(json_array_get(fact, 0)),
                   *name = json_string_value(json_array_get(fact, 1));
        unsigned line = (unsigned)json_integer_value(json_array_get(fact, 2));
        unsigned column = (unsigned)json_integer_value(json_array_get(fact, 3));
        if (strcmp(kind, "import") == 0)
            judge_import(policy, name, line, column, ret_findings);
        else if (strcmp(kind, "call") == 0)
            judge_call(policy, name, line, column, ret_findings);
        else if (strcmp(kind, "nesting") == 0 && line > policy->nesting_max) {
            struct hc_finding *f =
                add(ret_findings, "nesting", HC_CAUSE_FIELD, HC_SEVERITY_REFUSAL, "nesting", column, 1);
            (void)snprintf(f->message, sizeof f->message,
                           "the program nests %u deep; profile %.40s allows %llu", line, policy->name,
                           (unsigned long long)policy->nesting_max);
        }
    }
    json_decref(document);
    return error;
}

const struct hc_finding *hc_findings_refusal(const struct hc_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].severity == HC_SEVERITY_REFUSAL)
            return &findings->items[i];
    return NULL;
}

bool hc_policy_reads_programs(const struct hc_policy *policy)
{
    return policy->modules_allow.given || policy->modules_deny.count > 0 || policy->calls_deny.count > 0 ||
           !policy->subprocesses;
}

bool hc_policy_allows_dependency(const struct hc_policy *policy, const char *requirement,
                                 const char **ret_nearest)
{
    size_t n = strcspn(requirement, "=");
    *ret_nearest = NULL;
    if (in_list(&policy->dependencies_allow, requirement))
        return true;
    char name[128];
    (void)snprintf(name, sizeof name, "%.*s", (int)(n < 127 ? n : 127), requirement);
    for (size_t i = 0; i < policy->dependencies_allow.count; i++) {
        const char *item = policy->dependencies_allow.items[i];
        char listed[128];
        size_t m = strcspn(item, "=");
        (void)snprintf(listed, sizeof listed, "%.*s", (int)(m < 127 ? m : 127), item);
        if (strcmp(listed, name) == 0 || one_edit(name, listed)) {
            *ret_nearest = item;
            return false;
        }
    }
    return false;
}
