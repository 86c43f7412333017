#include "cli/cli.h"

#include "flow/engine.h"
#include "runtime/version.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct hc_option hc_runtimes_options[] = {
    {"json", 0, NULL, "print one JSON document"},
    {"help", 'h', NULL, "show this help"},
};
const size_t hc_runtimes_option_count = sizeof hc_runtimes_options / sizeof *hc_runtimes_options;

static json_t *describe(const struct hc_runtime *runtime)
{
    char version[64] = "";
    bool usable = runtime->interpreter_path != NULL;
    if (usable && hc_runtime_version(runtime, version) != 0)
        version[0] = '\0';
    json_t *aliases = json_array(), *extensions = json_array();
    for (size_t i = 0; i < runtime->aliases.count; i++)
        (void)json_array_append_new(aliases, json_string(runtime->aliases.items[i]));
    for (size_t i = 0; i < runtime->extensions.count; i++)
        (void)json_array_append_new(extensions, json_string(runtime->extensions.items[i]));
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:s}", "name", runtime->name, "usable", usable,
                     "version", version[0] != '\0' ? json_string(version) : json_null(), "interpreter",
                     usable ? json_string(runtime->interpreter_path) : json_null(), "missing",
                     usable ? json_null() : json_string(runtime->missing), "aliases", aliases, "extensions",
                     extensions, "install", runtime->install);
}

static void print_table(const json_t *rows)
{
    size_t i;
    json_t *row;
    bool colours = hc_colours(1);
    printf("%-12s %-12s %s\n", "LANGUAGE", "VERSION", "INTERPRETER");
    json_array_foreach(rows, i, row)
    {
        bool usable = json_is_true(json_object_get(row, "usable"));
        const char *version = json_string_value(json_object_get(row, "version"));
        printf("%s%-12s%s %-12s %s\n", colours ? usable ? "\033[32m" : "\033[31m" : "",
               json_string_value(json_object_get(row, "name")), colours ? "\033[0m" : "",
               usable ? version != NULL ? version : "?" : "-",
               json_string_value(json_object_get(row, usable ? "interpreter" : "missing")));
    }
}

int hc_cli_runtimes(int argc, char **argv)
{
    const struct hc_command *command = hc_command_named("runtimes");
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    struct hc_engine *engine = NULL;
    struct hc_engine_options options = {0};
    struct hc_problem problem = {0};
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
        json = true;
    }
    int error = hc_engine_open(&options, &engine, &problem);
    if (error != 0) {
        hc_say("%s:%u:%u: %s", problem.file, problem.line, problem.column,
               error == HC_BAD_INPUT ? problem.message : strerror(-error));
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
    return 0;
}
