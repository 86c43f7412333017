#include "cli/completion.h"

#include <string.h>

/* Within single quotes; in a specification of _arguments some characters have a meaning. */
static void print_quoted(FILE *out, const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", out);
        else if (strchr(special, *text) != NULL)
            (void)fprintf(out, "\\%c", *text);
        else
            (void)fputc(*text, out);
    }
}

static void print_action(FILE *out, const struct hc_completion_value *value)
{
    if (!value->files && !value->folders && value->list == HC_COMPLETION_NO_LIST && value->words[0] == '\0') {
        (void)fputc(' ', out);
        return;
    }
    /* the blank: called with these arguments and no others */
    (void)fprintf(out, " _hotcell_value %s \"%s\" \"%s\"",
                  value->files     ? "files"
                  : value->folders ? "folders"
                                   : "\"\"",
                  hc_completion_list_names[value->list], value->words);
}

static void print_option(FILE *out, const struct hc_option *option)
{
    struct hc_completion_value value;
    hc_completion_of_option(option, &value);
    bool repeats = hc_completion_repeats(option);
    const char *mark = value.optional ? "=-" : value.takes ? "=" : "";
    (void)fputs("            ", out);
    if (option->letter != 0 && !repeats)
        (void)fprintf(out, "'(-%c --%s)'", option->letter, option->name);
    else if (repeats)
        (void)fputs("\\*", out);
    if (option->letter != 0)
        (void)fprintf(out, "{-%c%s,--%s%s}'[", option->letter, value.takes ? "+" : "", option->name, mark);
    else
        (void)fprintf(out, "'--%s%s[", option->name, mark);
    print_quoted(out, option->help, "[]\\");
    (void)fputc(']', out);
    if (value.takes) {
        (void)fputs(value.optional ? "::" : ":", out);
        print_quoted(out, option->argument, ":[]\\");
        (void)fputc(':', out);
        print_action(out, &value);
    }
    (void)fputs("' \\\n", out);
}

static void print_command(FILE *out, const struct hc_command *command)
{
    struct hc_completion_value value;
    hc_completion_of_operands(command, &value);
    (void)fprintf(out, "    %s)\n        _arguments -s -S \\\n", command->name);
    for (size_t i = 0; i < command->option_count; i++)
        print_option(out, &command->options[i]);
    (void)fputs("            '*: :", out);
    print_action(out, &value);
    (void)fputs("'\n        ;;\n", out);
}

void hc_completion_zsh(FILE *out)
{
    (void)fputs("#compdef hotcell\n# Completion of hotcell for zsh, made by `hotcell completion zsh`.\n\n"
                "_hotcell_value() { # files|folders|\"\" LIST WORDS\n"
                "    local -a found\n"
                "    local done=1\n"
                "    [[ -n $2 ]] && found=(${(f)\"$($_hotcell_program completion --list $2 2>/dev/null)\"})\n"
                "    found+=(${=3})\n"
                "    (($#found)) && compadd -a found && done=0\n"
                "    [[ $1 == files ]] && _files && done=0\n"
                "    [[ $1 == folders ]] && _files -/ && done=0\n"
                "    return $done\n"
                "}\n\n"
                "_hotcell() {\n"
                "    local _hotcell_program=${~words[1]}\n"
                "    local -a commands\n"
                "    commands=(\n",
                out);
    for (size_t i = 0; i < hc_command_count; i++) {
        (void)fprintf(out, "        '%s:", hc_commands[i].name);
        print_quoted(out, hc_commands[i].summary, ":\\");
        (void)fputs("'\n", out);
    }
    (void)fputs("    )\n"
                "    if ((CURRENT == 2)); then\n"
                "        _describe command commands\n"
                "        return\n"
                "    fi\n"
                "    shift words\n"
                "    ((CURRENT--))\n"
                "    case $words[1] in\n",
                out);
    for (size_t i = 0; i < hc_command_count; i++)
        print_command(out, hc_command_named(hc_commands[i].name));
    (void)fputs(
        "    esac\n}\n\n"
        "# read by `source` as well as from a folder of fpath\n"
        "if [[ ${funcstack[1]-} == _hotcell ]]; then\n    _hotcell \"$@\"\nelse\n    compdef _hotcell "
        "hotcell\nfi\n",
        out);
}
