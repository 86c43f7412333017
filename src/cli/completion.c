/* `hotcell completion`: scripts for shells, and the lists that they ask for while somebody types. */
#include "cli/completion.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "cell/words.h"
#include "flow/engine.h"
#include "runtime/version.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

const struct hc_option hc_completion_options[] = {
    {"list", 0, "languages|profiles|layers|commands", "print the names of one kind instead, one a line"},
    {"help", 'h', NULL, "show this help"},
};
const size_t hc_completion_option_count = sizeof hc_completion_options / sizeof *hc_completion_options;

static const struct {
    const char *name;
    void (*print)(FILE *out);
} shells[] = {{"bash", hc_completion_bash}, {"zsh", hc_completion_zsh}, {"fish", hc_completion_fish}};

/* ---- lists ---- */

/* Its name, and where there is a choice the versions too. */
static void print_language(const struct hc_runtime *runtime, FILE *out)
{
    if (hc_runtime_default(runtime)->interpreter == NULL)
        return;
    (void)fprintf(out, "%s\n", runtime->name);
    for (size_t i = 0; runtime->variant_count > 0 && i <= runtime->variant_count; i++) {
        const struct hc_runtime *one = i == 0 ? runtime : &runtime->variants[i - 1];
        char version[64];
        if (one->variant != NULL)
            (void)fprintf(out, "%s@%s\n", runtime->name, one->variant);
        else if (one->interpreter != NULL && hc_runtime_version(one, version) == 0)
            (void)fprintf(out, "%s@%s\n", runtime->name, version);
    }
}

static int print_languages(FILE *out)
{
    struct hc_engine *engine = NULL;
    struct hc_engine_options options = {0};
    struct hc_problem problem = {0};
    if (hc_engine_open(&options, &engine, &problem) != 0)
        return 125; /* in the middle of a line nobody wants to read why */
    const struct hc_runtimes *runtimes = hc_engine_runtimes(engine);
    for (size_t i = 0; i < runtimes->count; i++)
        print_language(&runtimes->items[i], out);
    hc_engine_close(engine);
    return 0;
}

static int is_profile(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0;
}

static int print_profiles(FILE *out)
{
    hc_autofree char *shared = hc_printf("%s/profiles", hc_default_share());
    const char *folders[] = {shared, "/etc/hotcell/profiles"};
    size_t found = 0;
    for (size_t i = 0; i < 2 && shared != NULL; i++) {
        struct dirent **entries = NULL;
        int count = scandir(folders[i], &entries, is_profile, alphasort);
        for (int e = 0; e < count; e++) {
            (void)fprintf(out, "%.*s\n", (int)strlen(entries[e]->d_name) - 5, entries[e]->d_name);
            free(entries[e]);
            found++;
        }
        free(entries);
    }
    if (found == 0)
        (void)fprintf(out, "standard\n");
    return 0;
}

int hc_completion_print_list(enum hc_completion_list list, FILE *out)
{
    if (list == HC_COMPLETION_LANGUAGES)
        return print_languages(out);
    if (list == HC_COMPLETION_PROFILES)
        return print_profiles(out);
    for (size_t i = 0; list == HC_COMPLETION_LAYERS && i < HC_LAYER_COUNT; i++)
        if (hc_layers[i].removable)
            (void)fprintf(out, "%s\n", hc_layers[i].name);
    for (size_t i = 0; list == HC_COMPLETION_COMMANDS && i < hc_command_count; i++)
        (void)fprintf(out, "%s\n", hc_commands[i].name);
    return 0;
}

static int list_named(const char *name)
{
    for (int i = HC_COMPLETION_NO_LIST + 1; i < HC_COMPLETION_LIST_COUNT; i++)
        if (strcmp(hc_completion_list_names[i], name) == 0)
            return i;
    return -1;
}

/* ---- the command ---- */

static int finish(int code)
{
    if (fflush(stdout) == 0)
        return code;
    hc_say("standard output can't be written");
    return 125;
}

static int print_script(const char *shell)
{
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].name, shell) != 0)
            continue;
        shells[i].print(stdout);
        return finish(0);
    }
    hc_say("completion %.60s: there is bash, zsh and fish", shell);
    return 125;
}

int hc_cli_completion(int argc, char **argv)
{
    const struct hc_command *command = hc_command_named("completion");
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value, *shell = NULL;
    char message[256];
    int list = -1;
    for (int option; (option = hc_option_next(command, &arguments, &value, message)) != HC_OPTION_END;) {
        if (option == HC_OPTION_OPERAND && shell == NULL) {
            shell = argv[arguments.at++];
            continue;
        }
        if (option < 0) {
            hc_say("%s", option == HC_OPTION_BAD ? message : "completion: one shell at a time");
            return 125;
        }
        if (strcmp(command->options[option].name, "help") == 0) {
            hc_print_help(command);
            return 0;
        }
        list = list_named(value);
        if (list < 0) {
            hc_say("--list %.60s: there is %s", value, command->options[option].argument);
            return 125;
        }
    }
    if ((shell == NULL) == (list < 0)) {
        hc_say("completion: give one of bash, zsh and fish; `hotcell completion --help` tells more");
        return 125;
    }
    return list >= 0 ? finish(hc_completion_print_list((enum hc_completion_list)list, stdout))
                     : print_script(shell);
}
