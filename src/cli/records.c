#include "cli/records.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

static int take(struct hc_records_call *call, const char *option, const char *value)
{
    if (strcmp(option, "json") == 0)
        call->json = true;
    else if (strcmp(option, "help") == 0)
        call->help = true;
    else if (strcmp(option, "store") == 0)
        call->store = value;
    else
        return call->take(call, option, value);
    return call->store != NULL && call->store[0] == '\0'
               ? hc_records_fail(call, 125, "store", "--store: wanted a folder")
               : 0;
}

int hc_records_arguments(int argc, char **argv, struct hc_records_call *call)
{
    const struct hc_command *command = hc_command_named(call->command);
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value;
    char message[256];
    int failed = 0, option;
    call->json = wants_json(argc, argv);
    while (failed == 0 && (option = hc_option_next(command, &arguments, &value, message)) != HC_OPTION_END) {
        if (option == HC_OPTION_BAD)
            failed = hc_records_fail(call, 125, "arguments", "%s", message);
        else if (option != HC_OPTION_OPERAND)
            failed = take(call, command->options[option].name, value);
        else if (call->operand_count < call->operands_max)
            call->operands[call->operand_count++] = arguments.argv[arguments.at++];
        else
            failed = hc_records_fail(call, 125, "arguments", "'%.100s': one operand too many",
                                     arguments.argv[arguments.at]);
        if (call->help) {
            hc_print_help(command);
            return 0;
        }
    }
    return failed;
}

int hc_records_fail(const struct hc_records_call *call, int code, const char *field, const char *message, ...)
{
    char raw[600], text[8 * 600];
    va_list args;
    va_start(args, message);
    (void)vsnprintf(raw, sizeof raw, message, args);
    va_end(args);
    size_t n = hc_escape_visible((const uint8_t *)raw, strlen(raw), text, sizeof text - 1);
    text[n] = '\0';
    if (!call->json) {
        hc_say("%s", text);
        return code;
    }
    json_t *document =
        json_pack("{s:{s:s, s:s, s:i}}", "error", "field", field, "message", text, "exit_code", code);
    (void)hc_print_document(document);
    json_decref(document);
    return code;
}

int hc_records_open(const struct hc_records_call *call, bool make, struct hc_store **ret_store)
{
    char message[256] = "";
    hc_autofree char *folder = call->store != NULL ? strdup(call->store) : hc_store_default_folder();
    if (folder == NULL)
        return hc_records_fail(call, 125, "store",
                               "neither HOME nor XDG_STATE_HOME is set: give --store DIR");
    int error =
        make ? hc_store_open(folder, ret_store, message) : hc_store_open_existing(folder, ret_store, message);
    return error < 0 ? hc_records_fail(call, 125, "store", "%.200s: %s", folder,
                                       message[0] != '\0' ? message : strerror(-error))
                     : 0;
}

void hc_print_visible(FILE *out, const char *text, size_t n)
{
    char piece[8 * 256];
    struct hc_visible visible = {0};
    for (size_t at = 0; at < n; at += 200) {
        size_t length = hc_visible_feed(&visible, (const uint8_t *)text + at, n - at < 200 ? n - at : 200,
                                        piece, sizeof piece);
        (void)fwrite(piece, 1, length, out);
    }
    (void)fwrite(piece, 1, hc_visible_finish(&visible, piece, sizeof piece), out);
}

int hc_print_document(const json_t *document)
{
    if (document == NULL || json_dumpf(document, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY) != 0 ||
        putchar('\n') == EOF || fflush(stdout) != 0) {
        hc_say(document == NULL ? "out of memory" : "the answer can't be written to standard output");
        return 125;
    }
    return 0;
}
