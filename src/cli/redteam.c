#include "cli/cli.h"

#include "base/cleanup.h"
#include "redteam/redteam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct hc_option hc_redteam_options_table[] = {
    {"only", 0, "ID,...", "only these rows; repeatable"},
    {"list", 0, NULL, "list the rows and run none"},
    {"profile", 0, "NAME|FILE", "the profile the rows run under (standard)"},
    {"cold", 0, NULL, "every interpreter starts fresh; this is the default"},
    {"warm", 0, NULL, "Python rows run in warm cells"},
    {"json", 0, NULL, "print one JSON document, the card"},
    {"help", 'h', NULL, "show this help"},
};
const size_t hc_redteam_option_count = sizeof hc_redteam_options_table / sizeof *hc_redteam_options_table;

struct request {
    struct hc_redteam_options options;
    bool json, help, list;
};

static int fail(const struct request *request, const char *message)
{
    if (request->json) {
        json_t *document = json_pack("{s:s, s:s, s:s, s:s}", "state", "refused", "status", "refused", "cause",
                                     "field", "message", message);
        (void)json_dumpf(document, stdout, JSON_INDENT(1));
        (void)putchar('\n');
        json_decref(document);
    } else {
        hc_say("%s", message);
    }
    return 125;
}

static bool add_ids(json_t **only, const char *list)
{
    if (*only == NULL)
        *only = json_object();
    for (const char *at = list; *only != NULL;) {
        size_t n = strcspn(at, ",");
        hc_autofree char *id = strndup(at, n);
        if (id == NULL || n == 0 || json_object_set_new(*only, id, json_true()) != 0)
            return false;
        if (at[n] == '\0')
            return true;
        at += n + 1;
    }
    return false;
}

static bool take(struct request *request, const char *name, const char *value)
{
    if (strcmp(name, "only") == 0)
        return add_ids(&request->options.only, value);
    if (strcmp(name, "profile") == 0)
        request->options.profile = value;
    else if (strcmp(name, "warm") == 0)
        request->options.warmth = HC_WARMTH_WARM;
    else if (strcmp(name, "cold") == 0)
        request->options.warmth = HC_WARMTH_COLD;
    else if (strcmp(name, "list") == 0)
        request->list = true;
    else if (strcmp(name, "json") == 0)
        request->json = true;
    else
        request->help = true;
    return true;
}

static int parse(int argc, char **argv, struct request *request, char message[256])
{
    const struct hc_command *command = hc_command_named("redteam");
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value;
    for (int i = 1; i < argc; i++)
        request->json = request->json || strcmp(argv[i], "--json") == 0;
    for (;;) {
        int option = hc_option_next(command, &arguments, &value, message);
        if (option == HC_OPTION_END && arguments.at >= argc)
            return 0;
        if (option == HC_OPTION_BAD)
            return -1;
        if (option < 0) {
            (void)snprintf(message, 256, "'%.100s': no operands are taken", argv[arguments.at]);
            return -1;
        }
        if (!take(request, command->options[option].name, value)) {
            (void)snprintf(message, 256, "--only: wanted ids with commas between them");
            return -1;
        }
    }
}

static void show_progress(void *context, const char *id, unsigned done, unsigned of)
{
    (void)context;
    (void)fprintf(stderr, "\r\033[K%s: %u of %u", id, done, of);
}

static const char *text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text != NULL ? text : "";
}

static void print_counts(const json_t *card)
{
    const char *name, *result;
    json_t *boundary, *count;
    json_object_foreach(json_object_get(card, "boundaries"), name, boundary)
    {
        printf("%-12s", name);
        json_object_foreach(boundary, result, count)
        {
            printf("  %lld %s", (long long)json_integer_value(count), result);
        }

        printf("\n");
    }
}

static void print_card(const json_t *card)
{
    size_t i;
    json_t *row;
    const json_t *host = json_object_get(card, "host");
    printf("The boundary: kernel %s, %s, profile %s, %s\n\n", text_of(host, "kernel"),
           json_is_true(json_object_get(host, "root")) ? "root" : "ordinary user", text_of(card, "profile"),
           text_of(card, "warmth"));
    json_array_foreach(json_object_get(card, "rows"), i, row)
    {
        printf("%-4s %-10s %-14s %s\n", text_of(row, "id"), text_of(row, "boundary"), text_of(row, "result"),
               text_of(row, "title"));
        if (text_of(row, "evidence")[0] != '\0')
            printf("     %s\n", text_of(row, "evidence"));
    }
    printf("\n");
    print_counts(card);
    if (json_array_size(json_object_get(card, "business")) > 0)
        printf("\nThe result: right boundary, wrong answer; acceptance has to say no\n\n");
    json_array_foreach(json_object_get(card, "business"), i, row)
    {
        printf("%-4s %-14s %s (%s)\n", text_of(row, "id"), text_of(row, "result"), text_of(row, "title"),
               text_of(row, "evidence"));
    }

    printf("\n%lld did not hold, %lld wrong results were accepted\n",
           (long long)json_integer_value(json_object_get(card, "not_held")),
           (long long)json_integer_value(json_object_get(card, "not_caught")));
}

static int list_rows(const struct request *request)
{
    json_t *rows = NULL, *row;
    struct hc_problem problem = {0};
    size_t i;
    int error = hc_redteam_list(hc_default_share(), &rows, &problem);
    if (error != 0)
        return fail(request, error > 0 ? problem.message : strerror(-error));
    if (request->json) {
        (void)json_dumpf(rows, stdout, JSON_INDENT(1));
        (void)putchar('\n');
    }
    json_array_foreach(rows, i, row)
    {
        if (!request->json)
            printf("%-4s %-10s %s\n", text_of(row, "id"), text_of(row, "boundary"), text_of(row, "title"));
    }

    json_decref(rows);
    return 0;
}

static int finish(const struct request *request, json_t *card)
{
    if (request->json) {
        (void)json_dumpf(card, stdout, JSON_INDENT(1));
        (void)putchar('\n');
    } else {
        print_card(card);
    }
    bool good = json_integer_value(json_object_get(card, "not_held")) == 0 &&
                json_integer_value(json_object_get(card, "not_caught")) == 0;
    json_decref(card);
    return good ? 0 : 1;
}

int hc_cli_redteam(int argc, char **argv)
{
    struct request request = {.options = {.profile = "standard", .warmth = HC_WARMTH_COLD}};
    struct hc_refusal refusal = {0};
    struct hc_problem problem = {0};
    char message[1100] = "";
    json_t *card = NULL;
    if (parse(argc, argv, &request, message) != 0)
        return fail(&request, message);
    if (request.help) {
        hc_print_help(hc_command_named("redteam"));
        return 0;
    }
    if (request.list)
        return list_rows(&request);
    if (isatty(2) && !request.json)
        request.options.progress = show_progress;
    int error = hc_redteam(hc_default_share(), &request.options, &card, &refusal, &problem);
    if (request.options.progress != NULL)
        (void)fputs("\r\033[K", stderr);
    json_decref(request.options.only);
    if (error > 0)
        (void)snprintf(message, sizeof message, "%s%s", refusal.message, problem.message);
    if (error != 0)
        return fail(&request, error > 0 ? message : strerror(-error));
    return finish(&request, card);
}
