/* The command line: one file per subcommand, one table of them in main.c. */
#ifndef HC_CLI_CLI_H
#define HC_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

/* One option of a subcommand: the row from which parser, help and completions come. */
struct hc_option {
    const char *name;     /* long name without dashes */
    char letter;          /* 0: none */
    const char *argument; /* NULL: a switch; in brackets: an optional argument, given with '=' */
    const char *help;
};

struct hc_command {
    const char *name;
    const char *synopsis;
    const char *summary;
    const struct hc_option *options;
    size_t option_count;
    int (*run)(int argc, char **argv);
};

extern const struct hc_command hc_commands[];
extern const size_t hc_command_count;
const struct hc_command *hc_command_named(const char *name);

/* Walks the arguments of a subcommand. Returns the row's index (argument in *ret_argument), HC_OPTION_OPERAND
 * for the first operand (not consumed), HC_OPTION_END, or HC_OPTION_BAD with `ret_message`. */
enum { HC_OPTION_END = -1, HC_OPTION_OPERAND = -2, HC_OPTION_BAD = -3 };

struct hc_arguments {
    int argc, at;
    char **argv;
    const char *cluster; /* rest of a group of one-letter options */
};

int hc_option_next(const struct hc_command *command, struct hc_arguments *arguments,
                   const char **ret_argument, char ret_message[256]);

/* Replaces the text that an option has set before. 0 or -ENOMEM. */
int hc_option_text(char **slot, const char *value);

void hc_print_help(const struct hc_command *command);
/* Plain line on stderr: "hotcell: ..." */
__attribute__((format(printf, 1, 2))) void hc_say(const char *format, ...);
/* Whether colours may be used on this stream. */
bool hc_colours(int fd);

int hc_cli_run(int argc, char **argv);
int hc_cli_eval(int argc, char **argv);
int hc_cli_runtimes(int argc, char **argv);
int hc_cli_predicates(int argc, char **argv);
int hc_cli_doctor(int argc, char **argv);
int hc_cli_policy(int argc, char **argv);

/* hotcell doctor --setup and --undo. */
struct hc_setup_wish {
    const char *setup, *undo; /* the user; NULL: not asked for */
    bool json, at_boot, dry_run;
};
int hc_cli_doctor_setup(const struct hc_setup_wish *wish);

int hc_cli_task(int argc, char **argv);
int hc_cli_redteam(int argc, char **argv);
int hc_cli_bench(int argc, char **argv);
int hc_cli_log(int argc, char **argv);
int hc_cli_verify(int argc, char **argv);
int hc_cli_release(int argc, char **argv);
int hc_cli_replay(int argc, char **argv);
int hc_cli_completion(int argc, char **argv);
int hc_cli_help(int argc, char **argv);
int hc_cli_version(int argc, char **argv);

extern const struct hc_option hc_run_options[];
extern const size_t hc_run_option_count;
#define HC_EVAL_OPTION_MAX 40
extern struct hc_option hc_eval_options_table[HC_EVAL_OPTION_MAX]; /* filled by the function below */
size_t hc_eval_options_fill(void);
extern const struct hc_option hc_doctor_options[];
extern const size_t hc_doctor_option_count;
extern const struct hc_option hc_policy_options[];
extern const size_t hc_policy_option_count;
extern const struct hc_option hc_task_options[];
extern const size_t hc_task_option_count;
extern const struct hc_option hc_redteam_options_table[];
extern const size_t hc_redteam_option_count;
extern const struct hc_option hc_bench_options_table[];
extern const size_t hc_bench_option_count;
#define HC_LOG_OPTION_COUNT     11
#define HC_VERIFY_OPTION_COUNT  4
#define HC_RELEASE_OPTION_COUNT 6
#define HC_REPLAY_OPTION_COUNT  5
extern const struct hc_option hc_log_options[HC_LOG_OPTION_COUNT];
extern const struct hc_option hc_verify_options[HC_VERIFY_OPTION_COUNT];
extern const struct hc_option hc_release_options[HC_RELEASE_OPTION_COUNT];
extern const struct hc_option hc_replay_options[HC_REPLAY_OPTION_COUNT];
extern const struct hc_option hc_predicates_options[];
extern const size_t hc_predicates_option_count;
extern const struct hc_option hc_runtimes_options[];
extern const size_t hc_runtimes_option_count;
extern const struct hc_option hc_completion_options[];
extern const size_t hc_completion_option_count;

#endif
