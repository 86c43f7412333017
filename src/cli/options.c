#include "cli/cli.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool takes_argument(const struct hc_option *option)
{
    return option->argument != NULL && option->argument[0] != '[';
}

static int find_long(const struct hc_command *command, const char *name, size_t n)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (strlen(command->options[i].name) == n && strncmp(command->options[i].name, name, n) == 0)
            return (int)i;
    return HC_OPTION_BAD;
}

static int long_option(const struct hc_command *command, struct hc_arguments *a, const char *word,
                       const char **ret_argument, char ret_message[256])
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t n = equals != NULL ? (size_t)(equals - name) : strlen(name);
    int index = find_long(command, name, n);
    if (index < 0) {
        (void)snprintf(ret_message, 256, "--%.*s: unknown option; `hotcell %s --help` lists them",
                       (int)(n < 100 ? n : 100), name, command->name);
        return HC_OPTION_BAD;
    }
    const struct hc_option *option = &command->options[index];
    *ret_argument = equals != NULL ? equals + 1 : NULL;
    if (equals != NULL && option->argument == NULL) {
        (void)snprintf(ret_message, 256, "--%s: takes no argument", option->name);
        return HC_OPTION_BAD;
    }
    if (equals == NULL && takes_argument(option)) {
        if (a->at >= a->argc) {
            (void)snprintf(ret_message, 256, "--%s: wants %s", option->name, option->argument);
            return HC_OPTION_BAD;
        }
        *ret_argument = a->argv[a->at++];
    }
    return index;
}

static int short_option(const struct hc_command *command, struct hc_arguments *a, const char **ret_argument,
                        char ret_message[256])
{
    char letter = *a->cluster++;
    for (size_t i = 0; i < command->option_count; i++) {
        const struct hc_option *option = &command->options[i];
        if (option->letter != letter)
            continue;
        *ret_argument = NULL;
        if (takes_argument(option)) {
            *ret_argument = *a->cluster != '\0' ? a->cluster : a->at < a->argc ? a->argv[a->at++] : NULL;
            a->cluster = NULL;
            if (*ret_argument == NULL) {
                (void)snprintf(ret_message, 256, "-%c: wants %s", letter, option->argument);
                return HC_OPTION_BAD;
            }
        }
        if (a->cluster != NULL && *a->cluster == '\0')
            a->cluster = NULL;
        return (int)i;
    }
    (void)snprintf(ret_message, 256, "-%c: unknown option; `hotcell %s --help` lists them", letter,
                   command->name);
    return HC_OPTION_BAD;
}

int hc_option_next(const struct hc_command *command, struct hc_arguments *arguments,
                   const char **ret_argument, char ret_message[256])
{
    struct hc_arguments *a = arguments;
    *ret_argument = NULL;
    if (a->cluster != NULL)
        return short_option(command, a, ret_argument, ret_message);
    if (a->at >= a->argc)
        return HC_OPTION_END;
    const char *word = a->argv[a->at];
    if (strcmp(word, "--") == 0)
        return HC_OPTION_END;
    if (word[0] != '-' || word[1] == '\0')
        return HC_OPTION_OPERAND;
    a->at++;
    if (word[1] == '-')
        return long_option(command, a, word, ret_argument, ret_message);
    a->cluster = word + 1;
    return short_option(command, a, ret_argument, ret_message);
}

int hc_option_text(char **slot, const char *value)
{
    char *copy = strdup(value);
    if (copy == NULL)
        return -ENOMEM;
    free(*slot);
    *slot = copy;
    return 0;
}

void hc_print_help(const struct hc_command *command)
{
    printf("Usage: hotcell %s %s\n\n%s\n", command->name, command->synopsis, command->summary);
    if (command->option_count > 0)
        printf("\nOptions:\n");
    for (size_t i = 0; i < command->option_count; i++) {
        const struct hc_option *option = &command->options[i];
        char left[64], letter[8] = "    ";
        if (option->letter != 0)
            (void)snprintf(letter, sizeof letter, "-%c, ", option->letter);
        (void)snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name,
                       option->argument == NULL || option->argument[0] == '[' ? "" : " ",
                       option->argument != NULL ? option->argument : "");
        printf("  %-30s %s\n", left, option->help);
    }
}

/* Whatever is quoted in it (names, errors of a program): one line, nothing that a terminal obeys. */
void hc_say(const char *format, ...)
{
    char raw[2048], text[8 * sizeof raw];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof raw ? (size_t)n : sizeof raw - 1;
    for (size_t i = 0; i < length; i++)
        if (raw[i] == '\n' || raw[i] == '\t')
            raw[i] = ' ';
    length = hc_escape_visible((const uint8_t *)raw, length, text, sizeof text);
    (void)fprintf(stderr, "hotcell: %.*s\n", (int)length, text);
}

bool hc_colours(int fd)
{
    const char *off = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && (off == NULL || off[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0;
}
