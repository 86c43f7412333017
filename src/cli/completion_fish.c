#include "cli/completion.h"

static void print_quoted(FILE *out, const char *text)
{
    (void)fputc('\'', out);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            (void)fputc('\\', out);
        (void)fputc(*text, out);
    }
    (void)fputc('\'', out);
}

/* The arguments that tell `complete` what may follow. */
static void print_value(FILE *out, const struct hc_completion_value *value)
{
    if (value->files)
        (void)fputs(" -F", out);
    if (value->list == HC_COMPLETION_NO_LIST && value->words[0] == '\0' && !value->folders)
        return;
    (void)fputs(" -a '", out);
    if (value->words[0] != '\0')
        (void)fprintf(out, "%s ", value->words);
    if (value->list != HC_COMPLETION_NO_LIST)
        (void)fprintf(out, "(__hotcell_list %s)", hc_completion_list_names[value->list]);
    if (value->folders)
        (void)fputs("(__fish_complete_directories (commandline -ct))", out);
    (void)fputc('\'', out);
}

static void print_option(FILE *out, const char *command, const struct hc_option *option)
{
    struct hc_completion_value value;
    hc_completion_of_option(option, &value);
    (void)fprintf(out, "complete -c hotcell -n '__hotcell_is %s' -l %s", command, option->name);
    if (option->letter != 0)
        (void)fprintf(out, " -s %c", option->letter);
    if (value.takes && !value.optional)
        (void)fputs(value.files ? " -r" : " -x", out);
    (void)fputs(" -d ", out);
    print_quoted(out, option->help);
    print_value(out, &value);
    (void)fputc('\n', out);
}

static void print_command(FILE *out, const struct hc_command *command)
{
    struct hc_completion_value value;
    hc_completion_of_operands(command, &value);
    (void)fprintf(out, "\ncomplete -c hotcell -n __hotcell_is_first -a %s -d ", command->name);
    print_quoted(out, command->summary);
    (void)fputc('\n', out);
    for (size_t i = 0; i < command->option_count; i++)
        print_option(out, command->name, &command->options[i]);
    if (value.files || value.folders || value.list != HC_COMPLETION_NO_LIST || value.words[0] != '\0') {
        (void)fprintf(out, "complete -c hotcell -n '__hotcell_is %s'", command->name);
        print_value(out, &value);
        (void)fputc('\n', out);
    }
}

void hc_completion_fish(FILE *out)
{
    (void)fputs("# Completion of hotcell for fish, made by `hotcell completion fish`.\n\n"
                "function __hotcell_is_first\n"
                "    test (count (commandline -opc)) -eq 1\n"
                "end\n\n"
                "function __hotcell_is\n"
                "    set -l words (commandline -opc)\n"
                "    test (count $words) -ge 2; and test \"$words[2]\" = \"$argv[1]\"\n"
                "end\n\n"
                "function __hotcell_list\n"
                "    set -l words (commandline -opc)\n"
                "    $words[1] completion --list $argv[1] 2>/dev/null\n"
                "end\n\n"
                "complete -c hotcell -f\n",
                out);
    for (size_t i = 0; i < hc_command_count; i++)
        print_command(out, hc_command_named(hc_commands[i].name));
}
