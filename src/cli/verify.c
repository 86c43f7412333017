/* `hotcell verify`: whether records are as they were written. */
#include "cli/records.h"

#include "store/verify.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

const struct hc_option hc_verify_options[HC_VERIFY_OPTION_COUNT] = {
    {"head", 0, "SEQ:SHA256", "the chain must have this link, which somebody kept elsewhere"},
    {"store", 0, "DIR", "verify the records of this store ($XDG_STATE_HOME/hotcell)"},
    {"json", 0, NULL, "print one JSON document"},
    {"help", 'h', NULL, "show this help"},
};

struct verify_call {
    struct hc_records_call call;
    struct hc_link head;
    bool has_head;
};

static int take(struct hc_records_call *call, const char *option, const char *value)
{
    struct verify_call *verify = call->context;
    (void)option;
    verify->has_head = hc_head_parse(value, &verify->head);
    return verify->has_head ? 0
                            : hc_records_fail(call, 125, "head",
                                              "--head %.100s: wanted SEQ:SHA256, as verify prints it", value);
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *document_of(const struct hc_verification *v, const char *what)
{
    const struct hc_defect *d = &v->defect;
    json_t *defect = json_null();
    if (v->broken)
        defect = json_pack("{s:s, s:o, s:o, s:s, s:o, s:o}", "rule", d->rule, "seq",
                           v->bad_seq > 0 ? json_integer(v->bad_seq) : json_null(), "line",
                           v->bad_line > 0 ? json_integer((json_int_t)v->bad_line) : json_null(), "message",
                           d->message, "expected", text_or_null(d->expected), "got", text_or_null(d->got));
    return json_pack("{s:s, s:s, s:I, s:I, s:{s:I, s:o}, s:o, s:o}", "verified", what, "result",
                     v->broken ? "broken" : "good", "records", (json_int_t)v->records, "first_seq",
                     (json_int_t)v->first_seq, "head", "seq", (json_int_t)v->last.seq, "sha256",
                     text_or_null(v->last.sha256), "blobs",
                     v->broken || v->blobs_there ? json_integer((json_int_t)v->blobs) : json_null(), "defect",
                     defect);
}

static void print_result(const struct hc_verification *v, const char *what)
{
    const struct hc_defect *d = &v->defect;
    if (!v->broken) {
        printf("good: %" PRId64 " records, %" PRId64 " blobs%s\n", v->records, v->blobs,
               v->blobs_there ? "" : " (the file has none)");
        if (v->first_seq > 1)
            printf("begins with record %" PRId64 ": what was before is not in the file\n", v->first_seq);
        if (v->last.seq > 0)
            printf("head: %" PRId64 ":%s\n", v->last.seq, v->last.sha256);
        return;
    }
    printf("broken: ");
    hc_print_visible(stdout, what, strlen(what));
    if (v->bad_line > 0)
        printf(", line %" PRIu64, v->bad_line);
    if (v->bad_seq > 0)
        printf(", record %" PRId64, v->bad_seq);
    printf(": %s (%s)\n", d->message, d->rule);
    if (d->expected[0] != '\0')
        printf("  expected: %s\n", d->expected);
    if (d->got[0] != '\0')
        printf("  got:      %s\n", d->got);
    printf("  good before it: %" PRId64 " records\n", v->records);
}

static int verify_store(struct verify_call *verify, struct hc_verification *ret)
{
    char message[256] = "";
    struct hc_store *store = NULL;
    int failed = hc_records_open(&verify->call, false, &store);
    if (failed != 0)
        return failed;
    int error = hc_verify_store(store, verify->has_head ? &verify->head : NULL, ret, message);
    hc_store_close(store);
    return error < 0 ? hc_records_fail(&verify->call, 125, "store", "records can't be read: %s",
                                       message[0] != '\0' ? message : strerror(-error))
                     : 0;
}

static int verify_file(struct verify_call *verify, const char *path, struct hc_verification *ret)
{
    char message[256] = "";
    int error = hc_verify_file(path, verify->has_head ? &verify->head : NULL, ret, message);
    return error < 0 ? hc_records_fail(&verify->call, 125, "file", "%s",
                                       message[0] != '\0' ? message : strerror(-error))
                     : 0;
}

int hc_cli_verify(int argc, char **argv)
{
    struct verify_call verify = {
        .call = {.command = "verify", .operands_max = 1, .take = take, .context = &verify}};
    struct hc_verification found = {0};
    struct stat info;
    int failed = hc_records_arguments(argc, argv, &verify.call);
    if (failed != 0 || verify.call.help)
        return failed;
    const char *file = verify.call.operand_count > 0 ? verify.call.operands[0] : NULL;
    if (file != NULL && verify.call.store != NULL)
        return hc_records_fail(&verify.call, 125, "store", "either FILE or --store");
    if (file != NULL && strcmp(file, "-") != 0 && stat(file, &info) == 0 && S_ISDIR(info.st_mode)) {
        verify.call.store = file; /* a folder is a store */
        file = NULL;
    }
    failed = file != NULL ? verify_file(&verify, file, &found) : verify_store(&verify, &found);
    if (failed != 0)
        return failed;
    const char *what = file != NULL ? file : verify.call.store != NULL ? verify.call.store : "the store";
    if (verify.call.json) {
        json_t *document = document_of(&found, what);
        failed = hc_print_document(document);
        json_decref(document);
    } else {
        print_result(&found, what);
    }
    return failed != 0 ? failed : found.broken ? 1 : 0;
}
