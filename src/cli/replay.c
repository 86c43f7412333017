/* `hotcell replay`: the same program with the same inputs once more, and whether the same came out. */
#include "cli/records.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "flow/engine.h"
#include "flow/keep.h"
#include "flow/replay.h"
#include "store/log_file.h"
#include "store/verify.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

const struct hc_option hc_replay_options[HC_REPLAY_OPTION_COUNT] = {
    {"id", 0, "ID", "of several runs in FILE this one"},
    {"runtimes", 0, "DIR", "one more folder with manifests of languages, as the run had it"},
    {"store", 0, "DIR|none", "where records are, and where the replay is recorded ($XDG_STATE_HOME/hotcell)"},
    {"json", 0, NULL, "print one JSON document, the record of the replay"},
    {"help", 'h', NULL, "show this help"},
};

/* Where the origin comes from, and what is known of it. */
struct origin {
    struct hc_store *store;     /* of records; NULL with --store none */
    struct hc_log_blobs *blobs; /* of a file; NULL: of the store */
    json_t *record, *document;
};

struct replay_call {
    struct hc_records_call call;
    const char *id, *runtimes;
};

static int take(struct hc_records_call *call, const char *option, const char *value)
{
    struct replay_call *replay = call->context;
    struct stat info;
    if (strcmp(option, "id") == 0)
        replay->id = value;
    else if (stat(value, &info) != 0 || !S_ISDIR(info.st_mode))
        return hc_records_fail(call, 125, "runtimes", "--runtimes %.200s: is no folder", value);
    else
        replay->runtimes = value;
    return 0;
}

static int read_blob(void *context, const char *sha256, void **ret_data, size_t *ret_bytes)
{
    const struct origin *origin = context;
    return origin->blobs != NULL ? hc_log_blob(origin->blobs, sha256, ret_data, ret_bytes)
                                 : hc_store_blob(origin->store, sha256, ret_data, ret_bytes);
}

static void origin_done(struct origin *origin)
{
    json_decref(origin->record);
    json_decref(origin->document);
    hc_log_blobs_done(origin->blobs);
    hc_store_close(origin->store);
}

/* ---- the origin ---- */

static int not_found(const struct hc_records_call *call, int outcome, const char *what, const char *message)
{
    return hc_records_fail(call, 125, "id", "%.150s: %s", what,
                           outcome == HC_STORE_ABSENT    ? "there is no such run"
                           : outcome == HC_STORE_SEVERAL ? "several runs; name one (--id)"
                           : message[0] != '\0'          ? message
                                                         : strerror(-outcome));
}

static int origin_of_file(const struct replay_call *replay, const char *path, struct origin *origin)
{
    char message[256] = "";
    struct hc_verification found;
    int outcome = hc_verify_file(path, NULL, &found, message);
    if (outcome < 0)
        return hc_records_fail(&replay->call, 125, "file", "%s", message);
    if (found.broken)
        return hc_records_fail(&replay->call, 125, "file",
                               "%.150s: line %llu: %s: what was changed is not replayed", path,
                               (unsigned long long)found.bad_line, found.defect.message);
    outcome = hc_log_read(path, replay->id, &origin->record, &origin->blobs, message);
    return outcome != 0 ? not_found(&replay->call, outcome, path, message) : 0;
}

static int origin_of_store(const struct replay_call *replay, const char *id, struct origin *origin)
{
    char message[256] = "";
    hc_autofree char *text = NULL;
    struct hc_link link;
    struct hc_defect defect = {0};
    if (origin->store == NULL)
        return hc_records_fail(&replay->call, 125, "store",
                               "--store none: then give the FILE of an exported log");
    int outcome = hc_store_find(origin->store, id, &origin->record, &text, message);
    if (outcome != 0)
        return not_found(&replay->call, outcome, id, message);
    outcome = hc_link_read(text, strlen(text), &link, NULL, &defect);
    return outcome != 0
               ? hc_records_fail(&replay->call, 125, "id", "%.100s: %s: what was changed is not replayed", id,
                                 outcome < 0 ? strerror(-outcome) : defect.message)
               : 0;
}

static const char *text_at(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static int read_document(const struct replay_call *replay, struct origin *origin, struct hc_spec *spec,
                         json_t **ret_predicates)
{
    const char *id = text_at(origin->record, "id"), *request = hc_record_request_sha256(origin->record);
    hc_autofree void *data = NULL;
    size_t n = 0;
    struct hc_refusal refusal = {0};
    if (!hc_string_equal(text_at(origin->record, "schema"), "hotcell.run/1"))
        return hc_records_fail(&replay->call, 125, "id", "%s: is not the record of a run", id);
    if (!hc_string_equal(text_at(origin->record, "state"), "finished"))
        return hc_records_fail(&replay->call, 125, "id",
                               "%s: did not finish (state %s): there is nothing to replay", id,
                               text_at(origin->record, "state"));
    if (request == NULL || read_blob(origin, request, &data, &n) != 0)
        return hc_records_fail(&replay->call, 125, "id", "%s: its request was not kept%s", id,
                               origin->blobs != NULL ? " (export with --blobs)" : "");
    origin->document = json_loadb(data, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    int outcome =
        hc_request_document_read(origin->document, read_blob, origin, spec, ret_predicates, &refusal);
    return outcome != 0 ? hc_records_fail(&replay->call, 125, refusal.field, "%s can't be replayed: %s", id,
                                          outcome < 0 ? strerror(-outcome) : refusal.message)
                        : 0;
}

/* ---- the run ---- */

static int cancel_descriptor(void)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run_again(const struct replay_call *replay, struct hc_job *job, const json_t *predicates,
                     struct hc_engine **ret_engine)
{
    struct hc_problem problem = {0};
    struct hc_engine_options options = {.allow_layers = job->spec.allow_layers,
                                        .only_language = job->spec.language,
                                        .runtimes = replay->runtimes,
                                        .store = replay->call.store};
    hc_autoclose int cancel = cancel_descriptor();
    struct hc_live live = {.out = -1, .err = -1, .cancel_fd = cancel};
    int error = hc_engine_open(&options, ret_engine, &problem);
    if (error == HC_BAD_INPUT)
        return hc_records_fail(&replay->call, 125, "runtimes", "%s:%u:%u: %s", problem.file, problem.line,
                               problem.column, problem.message);
    if (error == 0)
        error = hc_engine_run(*ret_engine, job, &live, predicates, NULL);
    hc_engine_leave(*ret_engine);
    return error < 0 ? hc_records_fail(&replay->call, 125, "replay", "%s", strerror(-error)) : 0;
}

/* ---- the answer ---- */

static void print_pair(const json_t *item, const char *before, const char *now)
{
    const char *texts[] = {text_at(item, before), text_at(item, now)};
    static const char *const names[] = {"before", "now"};
    for (int i = 0; i < 2; i++) {
        printf("    %-6s ", names[i]);
        hc_print_visible(stdout, texts[i] != NULL ? texts[i] : "-", texts[i] != NULL ? strlen(texts[i]) : 1);
        (void)putchar('\n');
    }
}

static void print_items(const json_t *items)
{
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item)
    {
        const char *what = text_at(item, "what");
        const json_t *offset = json_object_get(item, "offset");
        printf("  ");
        hc_print_visible(stdout, what, strlen(what));
        if (json_is_integer(offset))
            printf(": first differs at byte %" JSON_INTEGER_FORMAT, json_integer_value(offset));
        (void)putchar('\n');
        print_pair(item, "before", "now");
        if (json_is_integer(offset))
            print_pair(item, "before_context", "now_context");
    }
}

static void print_replay(const struct hc_replay *replay, const json_t *origin)
{
    static const char *const words[] = {[HC_REPLAY_IDENTICAL] = "identical",
                                        [HC_REPLAY_DIFFERS] = "differs",
                                        [HC_REPLAY_ENVIRONMENT_CHANGED] = "environment changed"};
    size_t differences = json_array_size(replay->differences);
    printf("%s: %s", words[replay->verdict], text_at(origin, "id"));
    if (replay->verdict == HC_REPLAY_ENVIRONMENT_CHANGED)
        printf(differences > 0 ? " (and what came out differs)"
                               : " (what came out is the same all the same)");
    (void)putchar('\n');
    print_items(replay->environment);
    print_items(replay->differences);
}

static int answer(const struct replay_call *call, struct origin *origin, struct hc_job *job,
                  const json_t *again)
{
    static const int codes[] = {
        [HC_REPLAY_IDENTICAL] = 0, [HC_REPLAY_DIFFERS] = 1, [HC_REPLAY_ENVIRONMENT_CHANGED] = 2};
    char message[256] = "";
    struct hc_replay replay = {0};
    const struct hc_replay_sides sides = {.origin = origin->record,
                                          .origin_host = json_object_get(origin->document, "host"),
                                          .again = again,
                                          .job = job,
                                          .read = read_blob,
                                          .context = origin};
    int error = hc_replay_compare(&sides, &replay);
    json_t *record = error == 0 ? hc_replay_record(&replay, origin->record, again) : NULL;
    if (error == 0 && record == NULL)
        error = -ENOMEM;
    if (error == 0 && origin->store != NULL)
        error = hc_store_append(origin->store, record, message);
    int code = codes[replay.verdict];
    if (error < 0)
        code = hc_records_fail(&call->call, 125, "store", "the replay can't be recorded: %s",
                               message[0] != '\0' ? message : strerror(-error));
    else if (call->call.json)
        code = hc_print_document(record) != 0 ? 125 : code;
    else
        print_replay(&replay, origin->record);
    json_decref(record);
    hc_replay_done(&replay);
    return code;
}

static int replay_job(const struct replay_call *call, struct origin *origin, struct hc_job *job)
{
    json_t *predicates = NULL, *again = NULL;
    struct hc_engine *engine = NULL;
    int code = read_document(call, origin, &job->spec, &predicates);
    job->keep_all = true;
    if (code == 0)
        code = run_again(call, job, predicates, &engine);
    if (code == 0 && (again = hc_record_keep(job, predicates, origin->store)) == NULL)
        code = hc_records_fail(&call->call, 125, "replay", "out of memory");
    if (code == 0 && job->verdict.state != HC_STATE_FINISHED)
        code = hc_records_fail(&call->call, 125, "replay", "the run could not be done again (%s): %s",
                               hc_statuses[job->verdict.status].name, job->refusal.message);
    if (code == 0 && job->verdict.status == HC_STATUS_CANCELLED)
        code = hc_records_fail(&call->call, 130, "replay", "cancelled");
    if (code == 0)
        code = answer(call, origin, job, again);
    json_decref(again);
    json_decref(predicates);
    hc_engine_close(engine);
    return code;
}

int hc_cli_replay(int argc, char **argv)
{
    struct replay_call call = {
        .call = {.command = "replay", .operands_max = 1, .take = take, .context = &call}};
    struct origin origin = {0};
    struct stat info;
    int code = hc_records_arguments(argc, argv, &call.call);
    if (code != 0 || call.call.help)
        return code;
    if (call.call.operand_count == 0)
        return hc_records_fail(&call.call, 125, "id",
                               "wanted the ID of a run or the FILE of an exported log");
    const char *what = call.call.operands[0];
    bool file = strcmp(what, "-") != 0 && stat(what, &info) == 0 && S_ISREG(info.st_mode);
    if (call.call.store == NULL || strcmp(call.call.store, "none") != 0)
        code = hc_records_open(&call.call, file, &origin.store);
    struct hc_job *job = code == 0 ? calloc(1, sizeof *job) : NULL;
    if (code == 0 && job == NULL)
        code = hc_records_fail(&call.call, 125, "replay", "out of memory");
    if (code == 0)
        code = file ? origin_of_file(&call, what, &origin) : origin_of_store(&call, what, &origin);
    if (job != NULL) {
        hc_job_begin(job);
        job->spec.stdin_fd = -1;
        if (code == 0)
            code = replay_job(&call, &origin, job);
        hc_job_done(job);
        free(job);
    }
    origin_done(&origin);
    return code;
}
