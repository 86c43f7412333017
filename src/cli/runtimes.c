#include "cli/cli.h"

#include "base/cleanup.h"
#include "cli/request.h"
#include "flow/engine.h"
#include "runtime/version.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct hc_option hc_runtimes_options[] = {
    {"json", 0, NULL, "print one JSON document"},
    {"runtimes", 0, "DIR", "one more folder with manifests of languages"},
    {"help", 'h', NULL, "show this help"},
};
const size_t hc_runtimes_option_count = sizeof hc_runtimes_options / sizeof *hc_runtimes_options;

static json_t *texts(const struct hc_strings *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        (void)json_array_append_new(array, json_string(list->items[i]));
    return array;
}

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *version_row(const struct hc_runtime *one, bool is_default)
{
    char version[64] = "";
    if (hc_runtime_version(one, version) != 0)
        version[0] = '\0';
    return json_pack("{s:o, s:s, s:s, s:o, s:s, s:b}", "version", text_or_null(version), "interpreter",
                     one->interpreter->path, "place", one->interpreter->place, "variant",
                     text_or_null(one->variant), "manifest", one->manifest_path, "default", is_default);
}

static json_t *describe(const struct hc_runtime *runtime)
{
    const struct hc_runtime *first = hc_runtime_default(runtime);
    bool usable = first->interpreter != NULL;
    json_t *versions = json_array();
    for (size_t i = 0; i <= runtime->variant_count; i++) {
        const struct hc_runtime *one = i == 0 ? runtime : &runtime->variants[i - 1];
        if (one->interpreter != NULL)
            (void)json_array_append_new(versions, version_row(one, one == first));
    }
    const json_t *version = json_object_get(json_array_get(versions, 0), "version");
    return json_pack(
        "{s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "name", runtime->name, "title",
        runtime->title, "usable", usable, "version", text_or_null(json_string_value(version)), "interpreter",
        text_or_null(runtime->interpreter_path != NULL || !usable ? runtime->interpreter_path
                                                                  : first->interpreter_path),
        "missing", usable ? json_null() : json_string(runtime->missing), "aliases", texts(&runtime->aliases),
        "extensions", texts(&runtime->extensions), "install", runtime->install, "compile_flags",
        texts(&runtime->compile_flags), "versions", versions, "absent", texts(&runtime->absent));
}

static void print_row(const char *colour, const char *name, const char *version, bool mark, const char *text)
{
    bool colours = hc_colours(1);
    printf("%s%-12s%s %-12s %s %s", colours ? colour : "", name, colours ? "\033[0m" : "", version,
           mark ? "*" : " ", text);
}

static void print_version(const char *name, const json_t *row, bool several)
{
    const char *version = json_string_value(json_object_get(row, "version"));
    const char *path = json_string_value(json_object_get(row, "interpreter"));
    const char *place = json_string_value(json_object_get(row, "place"));
    const char *variant = json_string_value(json_object_get(row, "variant"));
    print_row("\033[32m", name, version != NULL ? version : "?",
              several && json_is_true(json_object_get(row, "default")), place);
    if (strcmp(path, place) != 0)
        printf(" (on the host: %s)", path);
    printf("%s%s%s%s\n", variant != NULL ? "  " : "", variant != NULL ? name : "", variant != NULL ? "@" : "",
           variant != NULL ? variant : "");
}

static void print_table(const json_t *rows)
{
    size_t i, v;
    json_t *row, *version, *why;
    printf("%-12s %-12s   %s\n", "LANGUAGE", "VERSION", "INTERPRETER");
    json_array_foreach(rows, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        const json_t *versions = json_object_get(row, "versions");
        json_array_foreach(versions, v, version)
        {
            print_version(name, version, json_array_size(versions) > 1);
        }

        if (!json_is_true(json_object_get(row, "usable"))) {
            print_row("\033[31m", name, "-", false, json_string_value(json_object_get(row, "missing")));
            (void)putchar('\n');
        }
        json_array_foreach(json_object_get(row, "absent"), v, why)
        {
            print_row("\033[33m", name, "-", false, json_string_value(why));
            (void)putchar('\n');
        }
    }
}

static int list(const struct hc_engine_options *options, bool json)
{
    struct hc_engine *engine = NULL;
    struct hc_problem problem = {0};
    int error = hc_engine_open(options, &engine, &problem);
    if (error != 0) {
        hc_autofree char *text = error == HC_BAD_INPUT ? hc_problem_text(&problem) : NULL;
        hc_say("%s", text != NULL ? text : strerror(-error));
        return 125;
    }
    const struct hc_runtimes *runtimes = hc_engine_runtimes(engine);
    json_t *rows = json_array();
    for (size_t i = 0; i < runtimes->count; i++)
        (void)json_array_append_new(rows, describe(&runtimes->items[i]));
    if (json) {
        (void)json_dumpf(rows, stdout, JSON_INDENT(2));
        (void)putchar('\n');
    } else {
        print_table(rows);
    }
    json_decref(rows);
    hc_engine_close(engine);
    return fflush(stdout) == 0 ? 0 : 125;
}

int hc_cli_runtimes(int argc, char **argv)
{
    const struct hc_command *command = hc_command_named("runtimes");
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    struct hc_refusal refusal = {0};
    hc_autofree char *folder = NULL;
    const char *value;
    char message[256];
    bool json = false;
    for (int option; (option = hc_option_next(command, &arguments, &value, message)) != HC_OPTION_END;) {
        if (option < 0) {
            hc_say("%s", option == HC_OPTION_BAD ? message : "runtimes takes no operands");
            return 125;
        }
        if (strcmp(command->options[option].name, "help") == 0) {
            hc_print_help(command);
            return 0;
        }
        if (strcmp(command->options[option].name, "json") == 0) {
            json = true;
        } else if (hc_cli_set_runtimes(&folder, value, &refusal) != 0) {
            hc_say("%s", refusal.message);
            return 125;
        }
    }
    struct hc_engine_options options = {.runtimes = folder};
    return list(&options, json);
}
