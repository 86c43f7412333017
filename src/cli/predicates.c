/* `hotcell predicates`: what acceptance can ask for, from the table that judges it. */
#include "cli/cli.h"

#include "flow/accept_kinds.h"
#include "flow/json_schema.h"

#include <stdio.h>
#include <string.h>

enum { OPTION_JSON, OPTION_HELP, OPTION_COUNT };
const struct hc_option hc_predicates_options[OPTION_COUNT] = {
    [OPTION_JSON] = {"json", 0, NULL, "print one JSON document"},
    [OPTION_HELP] = {"help", 'h', NULL, "show this help"},
};
const size_t hc_predicates_option_count = OPTION_COUNT;

static bool is_judged(const struct hc_predicate_kind *kind)
{
    return kind->judge != NULL || kind->judge_in_cell != NULL;
}

/* Words of a text in lines of at most 100 characters. */
static void print_filled(const char *text, const char *indent)
{
    size_t column = 0;
    for (const char *word = text; *word != '\0';) {
        size_t n = strcspn(word, " ");
        if (column == 0 || column + n + 1 > 100) {
            printf("%s%s", column == 0 ? "" : "\n", indent);
            column = strlen(indent);
        } else {
            (void)putchar(' ');
            column++;
        }
        printf("%.*s", (int)n, word);
        column += n;
        word += n + (word[n] == ' ' ? 1 : 0);
    }
    (void)putchar('\n');
}

static void print_kind(const struct hc_predicate_kind *kind)
{
    printf("%s\n", kind->name);
    print_filled(kind->meaning, "    ");
    for (const struct hc_predicate_field *field = kind->fields; field->name != NULL; field++)
        printf("    %-12s %s%s\n", field->name, field->meaning, field->required ? "" : "; may be left out");
    printf("    Can't tell:\n");
    print_filled(kind->cannot_tell, "      ");
    (void)putchar('\n');
}

static json_t *json_of(const struct hc_predicate_kind *kind)
{
    json_t *fields = json_array();
    for (const struct hc_predicate_field *field = kind->fields; field->name != NULL; field++)
        (void)json_array_append_new(fields, json_pack("{s:s, s:b, s:s}", "name", field->name, "required",
                                                      field->required, "meaning", field->meaning));
    return json_pack("{s:s, s:s, s:s, s:o, s:b}", "kind", kind->name, "meaning", kind->meaning, "cannot_tell",
                     kind->cannot_tell, "fields", fields, "second_cell", kind->judge_in_cell != NULL);
}

static int print_json(const char *name)
{
    json_t *list = json_array(), *keywords = json_array();
    for (size_t i = 0; i < hc_predicate_kind_count; i++)
        if (is_judged(&hc_predicate_kinds[i]) &&
            (name == NULL || strcmp(hc_predicate_kinds[i].name, name) == 0))
            (void)json_array_append_new(list, json_of(&hc_predicate_kinds[i]));
    for (size_t i = 0; hc_schema_keyword(i) != NULL; i++)
        (void)json_array_append_new(keywords, json_string(hc_schema_keyword(i)));
    json_t *document = json_pack("{s:o, s:o}", "predicates", list, "schema_keywords", keywords);
    bool printed = document != NULL && json_dumpf(document, stdout, JSON_INDENT(2)) == 0 &&
                   putchar('\n') != EOF && fflush(stdout) == 0;
    json_decref(document);
    return printed ? 0 : 125;
}

int hc_cli_predicates(int argc, char **argv)
{
    const struct hc_command *command = hc_command_named("predicates");
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value, *name = NULL;
    char message[256];
    bool json = false, found = false;
    for (int option; (option = hc_option_next(command, &arguments, &value, message)) != HC_OPTION_END;) {
        if (option == OPTION_HELP) {
            hc_print_help(command);
            return 0;
        }
        if (option == HC_OPTION_OPERAND && name == NULL) {
            name = arguments.argv[arguments.at++];
            continue;
        }
        if (option < 0) {
            hc_say("%s", option == HC_OPTION_BAD ? message : "predicates: one KIND at most");
            return 125;
        }
        json = true;
    }
    for (size_t i = 0; i < hc_predicate_kind_count; i++)
        found = found || (is_judged(&hc_predicate_kinds[i]) &&
                          (name == NULL || strcmp(hc_predicate_kinds[i].name, name) == 0));
    if (!found) {
        hc_say("%.100s: no such kind of predicate; `hotcell predicates` lists them", name);
        return 125;
    }
    if (json)
        return print_json(name);
    for (size_t i = 0; i < hc_predicate_kind_count; i++)
        if (is_judged(&hc_predicate_kinds[i]) &&
            (name == NULL || strcmp(hc_predicate_kinds[i].name, name) == 0))
            print_kind(&hc_predicate_kinds[i]);
    return fflush(stdout) == 0 ? 0 : 125;
}
