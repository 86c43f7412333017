/* What may follow an option or a command, told from its row in the tables: no list is written a second time.
 */
#include "cli/completion.h"

#include <ctype.h>
#include <string.h>

const char *const hc_completion_list_names[HC_COMPLETION_LIST_COUNT] = {
    [HC_COMPLETION_NO_LIST] = "",          [HC_COMPLETION_LANGUAGES] = "languages",
    [HC_COMPLETION_PROFILES] = "profiles", [HC_COMPLETION_LAYERS] = "layers",
    [HC_COMPLETION_COMMANDS] = "commands",
};

/* Placeholders of help texts, by what they are called there; the first that fits counts. */
static const struct {
    const char *word; /* at the begin of the placeholder, or, with a dot, at its end */
    bool files, folders;
    enum hc_completion_list list;
} placeholders[] = {
    {"NAME[@VERSION]", false, false, HC_COMPLETION_LANGUAGES},
    {"LANGUAGE", false, false, HC_COMPLETION_LANGUAGES},
    {"PROFILE", false, false, HC_COMPLETION_PROFILES},
    {"LAYER", false, false, HC_COMPLETION_LAYERS},
    {"COMMAND", false, false, HC_COMPLETION_COMMANDS},
    {"FILE", true, false, HC_COMPLETION_NO_LIST},
    {"HOST", true, false, HC_COMPLETION_NO_LIST},
    {"PATH", true, false, HC_COMPLETION_NO_LIST},
    {"DIR", false, true, HC_COMPLETION_NO_LIST},
    {".jsonl", true, false, HC_COMPLETION_NO_LIST},
    {".html", true, false, HC_COMPLETION_NO_LIST},
    {".json", true, false, HC_COMPLETION_NO_LIST},
    {".yaml", true, false, HC_COMPLETION_NO_LIST},
};

static bool ends_with(const char *text, size_t n, const char *end)
{
    size_t m = strlen(end);
    return n >= m && strncmp(text + n - m, end, m) == 0;
}

/* A word that is meant literally: in lower case, or one letter ("A|B|C|D"). */
static bool literal(const char *word, size_t n)
{
    if (n == 1)
        return isalpha((unsigned char)word[0]) && word[0] != 'N';
    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)word[i]) && !isdigit((unsigned char)word[i]) && word[i] != '-' &&
            word[i] != '_')
            return false;
    return n > 0 && islower((unsigned char)word[0]);
}

static void add_word(struct hc_completion_value *value, const char *word, size_t n)
{
    size_t used = strlen(value->words);
    if (used + n + 2 > sizeof value->words)
        return;
    if (used > 0)
        value->words[used++] = ' ';
    memcpy(value->words + used, word, n);
    value->words[used + n] = '\0';
}

static void add_part(struct hc_completion_value *value, const char *part, size_t n)
{
    if (literal(part, n)) {
        add_word(value, part, n);
        return;
    }
    for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++) {
        const char *word = placeholders[i].word;
        bool fits = word[0] == '.' ? ends_with(part, n, word)
                                   : n >= strlen(word) && strncmp(part, word, strlen(word)) == 0;
        if (!fits)
            continue;
        value->files = value->files || placeholders[i].files;
        value->folders = value->folders || placeholders[i].folders;
        if (placeholders[i].list != HC_COMPLETION_NO_LIST)
            value->list = placeholders[i].list;
        return;
    }
}

/* "DIR|none" and the like. */
static void add_parts(struct hc_completion_value *value, const char *text, size_t n)
{
    for (size_t at = 0; at <= n;) {
        const char *bar = memchr(text + at, '|', n - at);
        size_t length = bar != NULL ? (size_t)(bar - (text + at)) : n - at;
        add_part(value, text + at, length);
        at += length + 1;
    }
}

void hc_completion_of_option(const struct hc_option *option, struct hc_completion_value *ret_value)
{
    *ret_value = (struct hc_completion_value){.takes = option->argument != NULL};
    if (option->argument == NULL)
        return;
    ret_value->optional = option->argument[0] == '[';
    if (ret_value->optional)
        return;
    /* an argument that is only called NAME is told by the option's own name */
    if (strcmp(option->name, "profile") == 0)
        ret_value->list = HC_COMPLETION_PROFILES;
    else
        add_parts(ret_value, option->argument, strlen(option->argument));
}

void hc_completion_of_operands(const struct hc_command *command, struct hc_completion_value *ret_value)
{
    *ret_value = (struct hc_completion_value){.takes = true};
    for (const char *at = command->synopsis; *at != '\0';) {
        at += strspn(at, " ");
        size_t n = strcspn(at, " ");
        const char *word = at;
        at += n;
        while (n > 0 && strchr("[(", *word) != NULL)
            word++, n--;
        while (n > 0 && strchr("]).", word[n - 1]) != NULL)
            n--;
        if (n >= 2 && strncmp(word, "--", n) == 0) /* what follows is the program's own */
            return;
        if (n > 0 && word[0] != '-' && !(n == 7 && strncmp(word, "options", n) == 0))
            add_parts(ret_value, word, n);
    }
}

bool hc_completion_repeats(const struct hc_option *option)
{
    return strstr(option->help, "repeatable") != NULL;
}
