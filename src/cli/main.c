#include "cli/cli.h"

#include "base/fault.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

HC_FAULT_STORAGE

const struct hc_command hc_commands[] = {
    {"run", "[options] [FILE | -c CODE | -] [-- ARG...]",
     "Runs one program in a fresh cell and says how it ended.", hc_run_options, 0, hc_cli_run},
    {"eval", "[options] FILE.jsonl | --compare A.jsonl B.jsonl",
     "Runs every item of a data set and prints what became of them.", hc_eval_options_table, 0, hc_cli_eval},
    {"log", "[options] [ID]", "Lists records, shows one, or exports the chain to a file.", hc_log_options,
     HC_LOG_OPTION_COUNT, hc_cli_log},
    {"verify", "[options] [FILE]",
     "Says whether records are as they were written, and which is the first that is not.", hc_verify_options,
     HC_VERIFY_OPTION_COUNT, hc_cli_verify},
    {"replay", "[options] ID|FILE", "Runs a recorded run again and says whether the same came out.",
     hc_replay_options, HC_REPLAY_OPTION_COUNT, hc_cli_replay},
    {"release", "--by NAME [options] ID", "Gives somebody's leave to publish a run's result or act on it.",
     hc_release_options, HC_RELEASE_OPTION_COUNT, hc_cli_release},
    {"runtimes", "[options]", "Lists the languages that can be run here, and why others can't.",
     hc_runtimes_options, 0, hc_cli_runtimes},
    {"doctor", "[--json] | --setup USER | --undo USER",
     "Tries a real cell on this host and says what holds, what does not, and what mends it.",
     hc_doctor_options, 0, hc_cli_doctor},
    {"policy", "show [PROFILE] | check FILE",
     "Shows what a profile allows and where each value comes from; checks one.", hc_policy_options, 0,
     hc_cli_policy},
    {"task", "new|try|show|list [options] [ID]",
     "Attempts at one goal, within a budget of attempts, time and feedback.", hc_task_options, 0,
     hc_cli_task},
    {"redteam", "[options]", "Attacks the boundary on this host, row by row, and says what held.",
     hc_redteam_options_table, 0, hc_cli_redteam},
    {"bench", "[options]", "Measures what a run costs here, beside the bare command and other sandboxes.",
     hc_bench_options_table, 0, hc_cli_bench},
    {"completion", "[options] bash|zsh|fish", "Prints a script that completes hotcell's words in a shell.",
     hc_completion_options, 0, hc_cli_completion},
    {"help", "[COMMAND]", "Shows help.", NULL, 0, hc_cli_help},
    {"version", "", "Prints the version.", NULL, 0, hc_cli_version},
};
const size_t hc_command_count = sizeof hc_commands / sizeof *hc_commands;

const struct hc_command *hc_command_named(const char *name)
{
    static struct hc_command found;
    for (size_t i = 0; i < hc_command_count; i++) {
        if (strcmp(hc_commands[i].name, name) != 0)
            continue;
        found = hc_commands[i];
        if (found.options == hc_run_options)
            found.option_count = hc_run_option_count;
        else if (found.options == hc_runtimes_options)
            found.option_count = hc_runtimes_option_count;
        else if (found.options == hc_eval_options_table)
            found.option_count = hc_eval_options_fill();
        else if (found.options == hc_policy_options)
            found.option_count = hc_policy_option_count;
        else if (found.options == hc_task_options)
            found.option_count = hc_task_option_count;
        else if (found.options == hc_redteam_options_table)
            found.option_count = hc_redteam_option_count;
        else if (found.options == hc_bench_options_table)
            found.option_count = hc_bench_option_count;
        else if (found.options == hc_doctor_options)
            found.option_count = hc_doctor_option_count;
        else if (found.options == hc_completion_options)
            found.option_count = hc_completion_option_count;
        return &found;
    }
    return NULL;
}

static void print_overview(void)
{
    printf("hotcell runs code that a language model wrote, in a fresh sandbox, and says how it ended.\n\n"
           "Usage: hotcell COMMAND [options]\n\nCommands:\n");
    for (size_t i = 0; i < hc_command_count; i++)
        printf("  %-10s %s\n", hc_commands[i].name, hc_commands[i].summary);
    printf("\nExamples:\n"
           "  hotcell run -c 'print(2**100)'\n"
           "  hotcell run --memory 256M --wall 5s --file data.csv analysis.py --out results/\n"
           "  hotcell run --json program.py\n\n"
           "`hotcell COMMAND --help` tells more.\n");
}

int hc_cli_help(int argc, char **argv)
{
    const struct hc_command *command = argc > 1 ? hc_command_named(argv[1]) : NULL;
    if (argc > 1 && command == NULL) {
        hc_say("%s: no such command", argv[1]);
        return 125;
    }
    if (command != NULL)
        hc_print_help(command);
    else
        print_overview();
    return 0;
}

int hc_cli_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("hotcell %s\n", HC_VERSION);
    return 0;
}

/* A caller may start us with closed streams: then the next file we open would become our output. What is put
 * there instead refuses writes, so that an answer nobody gets is noticed. */
static void fill_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
            _exit(125);
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    fill_streams();
    if (argc < 2) {
        print_overview();
        return 125;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return hc_cli_help(1, argv);
    if (strcmp(argv[1], "--version") == 0)
        return hc_cli_version(1, argv);
    const struct hc_command *command = hc_command_named(argv[1]);
    if (command == NULL) {
        hc_say("%s: no such command; `hotcell help` lists them", argv[1]);
        return 125;
    }
    return command->run(argc - 1, argv + 1);
}
