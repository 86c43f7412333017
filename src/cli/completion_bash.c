#include "cli/completion.h"

/* The part that is the same whatever the tables hold. Words are taken from the line itself: readline would
 * cut them at '=' and '@'. */
static const char engine[] =
    "# One a line: what may stand where KIND... says, each as a whole word.\n"
    "_hotcell_candidates() { # WORD PREFIX KIND...\n"
    "    local word=$1 prefix=$2 kind\n"
    "    shift 2\n"
    "    for kind; do\n"
    "        case $kind in\n"
    "        files) compgen -P \"$prefix\" -f -- \"$word\" ;;\n"
    "        folders) compgen -P \"$prefix\" -d -- \"$word\" ;;\n"
    "        list:*) compgen -P \"$prefix\" -W \"$(\"$_hotcell_program\" completion --list \"${kind#list:}\" "
    "2>/dev/null)\" -- \"$word\" ;;\n"
    "        *) compgen -P \"$prefix\" -W \"$kind\" -- \"$word\" ;;\n"
    "        esac\n"
    "    done\n"
    "}\n\n"
    "_hotcell() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} word before command prefix=\"\" at strip=\"\" candidate\n"
    "    local -a words kinds\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=(\"\")\n"
    "    COMPREPLY=()\n"
    "    ((${#words[@]} >= 2)) || return 0\n"
    "    local _hotcell_program=${words[0]/#\\~\\//$HOME/}\n"
    "    word=${words[-1]} before=${words[-2]} command=${words[1]}\n"
    "    if ((${#words[@]} == 2)); then\n"
    "        kinds=(\"$_hotcell_commands\")\n"
    "    elif [[ \" ${words[*]:2:${#words[@]}-3} \" == *' -- '* ]]; then\n"
    "        kinds=(files)\n"
    "    elif [[ $word == --*=* ]]; then\n"
    "        prefix=${word%%=*}=\n"
    "        readarray -t kinds < <(_hotcell_value \"$command\" \"${word%%=*}\")\n"
    "        word=${word#*=}\n"
    "    elif [[ $before == -* ]] && _hotcell_value \"$command\" \"$before\" >/dev/null; then\n"
    "        readarray -t kinds < <(_hotcell_value \"$command\" \"$before\")\n"
    "    elif [[ $word == -* ]]; then\n"
    "        kinds=(\"$(_hotcell_options \"$command\")\")\n"
    "    else\n"
    "        readarray -t kinds < <(_hotcell_operands \"$command\")\n"
    "    fi\n"
    "    [[ \" ${kinds[*]} \" == *' files '* || \" ${kinds[*]} \" == *' folders '* ]] && compopt -o "
    "filenames 2>/dev/null\n"
    "    # readline replaces what follows the last of its word breaks\n"
    "    for at in '=' '@' ':'; do\n"
    "        [[ $COMP_WORDBREAKS == *\"$at\"* && $prefix$word == *\"$at\"* ]] || continue\n"
    "        candidate=${prefix}${word}\n"
    "        candidate=${candidate%\"${candidate##*\"$at\"}\"}\n"
    "        ((${#candidate} > ${#strip})) && strip=$candidate\n"
    "    done\n"
    "    while IFS= read -r candidate; do\n"
    "        COMPREPLY+=(\"${candidate#\"$strip\"}\")\n"
    "    done < <(_hotcell_candidates \"$word\" \"$prefix\" \"${kinds[@]}\")\n"
    "}\n\n"
    "complete -F _hotcell hotcell\n";

/* One kind a line, as _hotcell_candidates takes them. */
static void print_kinds(FILE *out, const struct hc_completion_value *value)
{
    const char *separator = "";
    (void)fputs("printf '%s\\n'", out);
    if (value->files)
        (void)fputs(" files", out), separator = " ";
    if (value->folders)
        (void)fputs(" folders", out), separator = " ";
    if (value->list != HC_COMPLETION_NO_LIST)
        (void)fprintf(out, " list:%s", hc_completion_list_names[value->list]), separator = " ";
    if (value->words[0] != '\0')
        (void)fprintf(out, " \"%s\"", value->words), separator = " ";
    if (separator[0] == '\0')
        (void)fputs(" \"\"", out);
}

static void print_option_names(FILE *out, const struct hc_command *command)
{
    for (size_t i = 0; i < command->option_count; i++) {
        if (command->options[i].letter != 0)
            (void)fprintf(out, " -%c", command->options[i].letter);
        (void)fprintf(out, " --%s", command->options[i].name);
    }
}

static void print_values(FILE *out, const struct hc_command *command)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct hc_option *option = &command->options[i];
        struct hc_completion_value value;
        hc_completion_of_option(option, &value);
        if (!value.takes || value.optional)
            continue;
        (void)fprintf(out, "    \"%s --%s\"", command->name, option->name);
        if (option->letter != 0)
            (void)fprintf(out, " | \"%s -%c\"", command->name, option->letter);
        (void)fputs(") ", out);
        print_kinds(out, &value);
        (void)fputs(" ;;\n", out);
    }
}

void hc_completion_bash(FILE *out)
{
    (void)fputs(
        "# Completion of hotcell for bash, made by `hotcell completion bash`.\n\n_hotcell_commands=\"", out);
    for (size_t i = 0; i < hc_command_count; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", hc_commands[i].name);
    (void)fputs("\"\n\n_hotcell_options() { # COMMAND\n    case $1 in\n", out);
    for (size_t i = 0; i < hc_command_count; i++) {
        (void)fprintf(out, "    %s) echo \"", hc_commands[i].name);
        print_option_names(out, hc_command_named(hc_commands[i].name));
        (void)fputs("\" ;;\n", out);
    }
    (void)fputs("    esac\n}\n\n# What the argument of an option is; fails for a switch.\n"
                "_hotcell_value() { # COMMAND OPTION\n    case \"$1 $2\" in\n",
                out);
    for (size_t i = 0; i < hc_command_count; i++)
        print_values(out, hc_command_named(hc_commands[i].name));
    (void)fputs("    *) return 1 ;;\n    esac\n}\n\n_hotcell_operands() { # COMMAND\n    case $1 in\n", out);
    for (size_t i = 0; i < hc_command_count; i++) {
        struct hc_completion_value value;
        hc_completion_of_operands(&hc_commands[i], &value);
        (void)fprintf(out, "    %s) ", hc_commands[i].name);
        print_kinds(out, &value);
        (void)fputs(" ;;\n", out);
    }
    (void)fputs("    esac\n}\n\n", out);
    (void)fputs(engine, out);
}
