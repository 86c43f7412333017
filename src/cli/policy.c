#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "cell/limits.h"
#include "flow/engine.h"
#include "policy/policy.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

const struct hc_option hc_policy_options[] = {
    {"json", 0, NULL, "print one JSON document"},
    {"help", 'h', NULL, "show this help"},
};
const size_t hc_policy_option_count = sizeof hc_policy_options / sizeof *hc_policy_options;

struct request {
    bool json, help;
    const char *verb, *name;
};

static int fail(const struct request *request, const char *field, const char *message)
{
    if (request->json) {
        json_t *document = json_pack("{s:s, s:s, s:s, s:s, s:s}", "state", "refused", "status", "refused",
                                     "cause", "field", "field", field, "message", message);
        (void)json_dumpf(document, stdout, JSON_INDENT(1));
        (void)putchar('\n');
        json_decref(document);
    } else {
        hc_say("%s", message);
    }
    return 125;
}

static int parse(int argc, char **argv, struct request *request, char message[256])
{
    const struct hc_command *command = hc_command_named("policy");
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value;
    for (int i = 1; i < argc; i++)
        request->json = request->json || strcmp(argv[i], "--json") == 0;
    for (;;) {
        int option = hc_option_next(command, &arguments, &value, message);
        if (option == HC_OPTION_END && arguments.at >= argc)
            return 0;
        if (option == HC_OPTION_BAD)
            return -1;
        if (option >= 0) {
            request->help = request->help || strcmp(command->options[option].name, "help") == 0;
            continue;
        }
        if (request->name != NULL) {
            (void)snprintf(message, 256, "'%.100s': one profile at a time", argv[arguments.at]);
            return -1;
        }
        *(request->verb == NULL ? &request->verb : &request->name) = argv[arguments.at++];
    }
}

static json_t *report(const struct hc_policy *policy)
{
    json_t *document = json_deep_copy(policy->document), *origins = json_object();
    for (int i = 0; i < HC_LIMIT_COUNT; i++)
        if (hc_limits[i].flag != NULL)
            (void)json_object_set_new(origins, hc_limits[i].name,
                                      json_pack("{s:s, s:s}", "default",
                                                hc_origin_names[policy->limits[i].default_origin], "max",
                                                hc_origin_names[policy->limits[i].max_origin]));
    (void)json_object_set_new(document, "origins", origins);
    (void)json_object_set_new(document, "sha256", json_string(policy->sha256));
    (void)json_object_set_new(document, "file",
                              policy->path != NULL ? json_string(policy->path) : json_null());
    return document;
}

static void print_names(const char *word, const struct hc_names *names)
{
    size_t column = 16;
    if (!names->given)
        return;
    printf("%-16s", word);
    for (size_t i = 0; i < names->count; i++) {
        size_t n = strlen(names->items[i]) + 2;
        if (column + n > 100) {
            printf("\n%-16s", "");
            column = 16;
        }
        printf("%s%s", names->items[i], i + 1 < names->count ? ", " : "");
        column += n;
    }
    printf("%s\n", names->count == 0 ? "none" : "");
}

static void print_policy(const struct hc_policy *policy)
{
    printf("%s  version %llu, risk %s, sha256 %.16s\n", policy->name, (unsigned long long)policy->version,
           hc_risk_names[policy->risk], policy->sha256);
    if (policy->title != NULL)
        printf("%s\n", policy->title);
    printf("\n%-16s%-12s%-12s%s\n", "limit", "default", "max", "from");
    for (int i = 0; i < HC_LIMIT_COUNT; i++) {
        char value[32], max[32];
        if (hc_limits[i].flag == NULL)
            continue;
        hc_limit_show((enum hc_limit)i, policy->limits[i].default_value, value);
        hc_limit_show((enum hc_limit)i, policy->limits[i].max_value, max);
        printf("%-16s%-12s%-12s%s, %s\n", hc_limits[i].name, value, max,
               hc_origin_names[policy->limits[i].default_origin],
               hc_origin_names[policy->limits[i].max_origin]);
    }
    printf("\n");
    print_names("modules allow", &policy->modules_allow);
    print_names("modules deny", &policy->modules_deny);
    print_names("calls deny", &policy->calls_deny);
    print_names("dependencies", &policy->dependencies_allow);
    print_names("artifact types", &policy->artifact_types);
    print_names("artifact scan", &policy->artifact_scan);
    print_names("redact", &policy->redact);
    printf("%-16s%s\n%-16s%s\n%-16s%c\n%-16s%s%s\n", "network", "none", "tier", "native", "min_grade",
           'A' + (int)policy->min_grade, "programs",
           policy->subprocesses ? "may start processes" : "may not start processes",
           policy->cold ? ", always in a fresh interpreter" : "");
}

static int load(const struct request *request, struct hc_policy **ret_policy, char *message, size_t size)
{
    hc_autofree char *built_in = hc_printf("%s/profiles", hc_default_share());
    const char *folders[] = {HC_POLICY_FOLDER, built_in};
    struct hc_problem problem = {0};
    const char *name = request->name != NULL ? request->name : "standard";
    int error = built_in == NULL ? -ENOMEM
                                 : hc_policy_load(name, folders, 2, HC_POLICY_CEILING, ret_policy, &problem);
    if (error == HC_BAD_INPUT) {
        hc_autofree char *text = hc_problem_text(&problem);
        (void)snprintf(message, size, "%s", text != NULL ? text : "out of memory");
    } else if (error != 0) {
        (void)snprintf(message, size, "%.200s: %s", name,
                       error == -ENOENT ? "no such profile" : strerror(-error));
    }
    return error;
}

static int check(const struct request *request, const struct hc_policy *policy)
{
    if (request->json)
        printf("{\"profile\": \"%s\", \"ok\": true, \"sha256\": \"%s\"}\n", policy->name, policy->sha256);
    else
        printf("%s: can be enforced here; sha256 %s\n", request->name, policy->sha256);
    return 0;
}

int hc_cli_policy(int argc, char **argv)
{
    struct request request = {0};
    struct hc_policy *policy = NULL;
    char message[900] = "";
    if (parse(argc, argv, &request, message) != 0)
        return fail(&request, "arguments", message);
    if (request.help) {
        hc_print_help(hc_command_named("policy"));
        return 0;
    }
    bool show = request.verb != NULL && strcmp(request.verb, "show") == 0;
    if (!show && (request.verb == NULL || strcmp(request.verb, "check") != 0))
        return fail(&request, "arguments",
                    "wanted: hotcell policy show [PROFILE], or hotcell policy check FILE");
    if (!show && request.name == NULL)
        return fail(&request, "arguments", "check wants a file");
    int error = load(&request, &policy, message, sizeof message);
    if (error != 0)
        return fail(&request, "profile", message), error == HC_BAD_INPUT ? 1 : 125;
    int code = 0;
    if (!show) {
        code = check(&request, policy);
    } else if (request.json) {
        json_t *document = report(policy);
        (void)json_dumpf(document, stdout, JSON_INDENT(1));
        (void)putchar('\n');
        json_decref(document);
    } else {
        print_policy(policy);
    }
    hc_policy_done(policy);
    return code;
}
