/* `hotcell release`: a person's leave to publish a result or act on it. */
#include "cli/records.h"

#include "flow/release.h"

#include <string.h>

const struct hc_option hc_release_options[HC_RELEASE_OPTION_COUNT] = {
    {"by", 0, "NAME", "who gives or takes the leave; needed"},
    {"note", 0, "TEXT", "why"},
    {"revoke", 0, NULL, "take a leave back"},
    {"store", 0, "DIR", "where records are ($XDG_STATE_HOME/hotcell)"},
    {"json", 0, NULL, "print one JSON document, the record of the release"},
    {"help", 'h', NULL, "show this help"},
};

static int take(struct hc_records_call *call, const char *option, const char *value)
{
    struct hc_release_wish *wish = call->context;
    if (strcmp(option, "by") == 0)
        wish->by = value;
    else if (strcmp(option, "note") == 0)
        wish->note = value;
    else if (strcmp(option, "revoke") == 0)
        wish->revoke = true;
    return 0;
}

static int print_release(const struct hc_records_call *call, const json_t *record)
{
    if (call->json)
        return hc_print_document(record);
    const char *run = json_string_value(json_object_get(json_object_get(record, "run"), "id"));
    const char *by = json_string_value(json_object_get(record, "by"));
    printf("%s: %s by ", run, json_string_value(json_object_get(record, "status")));
    hc_print_visible(stdout, by, strlen(by));
    printf(" (%s)\n", json_string_value(json_object_get(record, "id")));
    return 0;
}

int hc_cli_release(int argc, char **argv)
{
    struct hc_release_wish wish = {0};
    struct hc_records_call call = {.command = "release", .operands_max = 1, .take = take, .context = &wish};
    struct hc_store *store = NULL;
    json_t *record = NULL;
    char message[256] = "";
    int failed = hc_records_arguments(argc, argv, &call);
    if (failed != 0 || call.help)
        return failed;
    if (call.operand_count == 0)
        return hc_records_fail(&call, 125, "id", "wanted the id of a run; `hotcell log` lists them");
    if (wish.by == NULL)
        return hc_records_fail(&call, 125, "by", "--by NAME is needed: a release is somebody's");
    wish.run = call.operands[0];
    failed = hc_records_open(&call, false, &store);
    if (failed != 0)
        return failed;
    int outcome = hc_release(store, &wish, &record, message);
    hc_store_close(store);
    if (outcome == HC_RELEASE_REFUSED)
        return hc_records_fail(&call, 1, "release", "refused: %s", message);
    if (outcome < 0)
        return hc_records_fail(&call, 125, "store", "the release can't be recorded: %s",
                               message[0] != '\0' ? message : strerror(-outcome));
    failed = print_release(&call, record);
    json_decref(record);
    return failed;
}
