/* Shell completions, made from the tables of commands and options: what may follow what. */
#ifndef HC_CLI_COMPLETION_H
#define HC_CLI_COMPLETION_H

#include "cli/cli.h"

#include <stdio.h>

/* Names that are only known when somebody asks: `hotcell completion --list NAME`. */
enum hc_completion_list {
    HC_COMPLETION_NO_LIST,
    HC_COMPLETION_LANGUAGES,
    HC_COMPLETION_PROFILES,
    HC_COMPLETION_LAYERS,
    HC_COMPLETION_COMMANDS,
    HC_COMPLETION_LIST_COUNT
};
extern const char *const hc_completion_list_names[HC_COMPLETION_LIST_COUNT];

/* What may stand in one place of a command line; all of it at once. */
struct hc_completion_value {
    bool takes;    /* the option has an argument */
    bool optional; /* ... which is given with '=' or not at all */
    bool files, folders;
    enum hc_completion_list list;
    char words[256]; /* with blanks between them */
};

/* Of an option's argument, and of the operands of a command as far as its synopsis tells. */
void hc_completion_of_option(const struct hc_option *option, struct hc_completion_value *ret_value);
void hc_completion_of_operands(const struct hc_command *command, struct hc_completion_value *ret_value);

/* Whether an option may be given several times: its help says so. */
bool hc_completion_repeats(const struct hc_option *option);

/* One script each; write errors stay in the stream. */
void hc_completion_bash(FILE *out);
void hc_completion_zsh(FILE *out);
void hc_completion_fish(FILE *out);

/* Prints the names of a list, one a line; 0 or 125. */
int hc_completion_print_list(enum hc_completion_list list, FILE *out);

#endif
