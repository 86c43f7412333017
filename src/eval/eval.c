#include "eval/eval.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "eval/ids.h"
#include "eval/item.h"
#include "eval/lines.h"
#include "eval/output.h"
#include "eval/page.h"
#include "eval/pool.h"
#include "eval/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#define SHOWN_BAD_LINES 20
#define TICK_MS         200

struct eval {
    const struct hc_eval_options *options;
    struct hc_tally *tally;
    struct hc_lines lines;
    struct hc_pool pool;
    struct hc_progress progress;
    struct hc_page page;
    struct hc_ids seen, done; /* ids of this file, and of the results that were there before */
    int file, folder, results, signals;
    uint64_t skipped, only_found;
    unsigned interrupts;
    bool at_end;
};

static int refuse_file(const char *path, const char *what, struct hc_refusal *refusal)
{
    return hc_refuse(refusal, HC_CAUSE_FIELD, "file", "%.200s: %.200s", path, what);
}

static int open_file(struct eval *eval, struct hc_refusal *refusal)
{
    const char *path = eval->options->file;
    bool from_stdin = strcmp(path, "-") == 0;
    struct stat info;
    const char *slash = strrchr(path, '/');
    hc_autofree char *folder = from_stdin || slash == NULL ? strdup(".")
                               : slash == path             ? strdup("/")
                                                           : strndup(path, (size_t)(slash - path));
    if (folder == NULL)
        return -ENOMEM;
    eval->file = from_stdin ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (eval->file < 0 || fstat(eval->file, &info) != 0)
        return refuse_file(path, strerror(errno), refusal);
    if (S_ISDIR(info.st_mode))
        return refuse_file(path, "is a folder", refusal);
    eval->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (eval->folder < 0)
        return refuse_file(folder, strerror(errno), refusal);
    (void)posix_fadvise(eval->file, 0, 0, POSIX_FADV_SEQUENTIAL);
    hc_lines_init(&eval->lines, eval->file);
    hc_progress_init(
        &eval->progress, eval->options->progress, S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0,
        eval->options->only != NULL ? json_object_size(eval->options->only) : eval->options->limit);
    return 0;
}

static int open_signals(void)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0)
        return -errno;
    int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd >= 0 ? fd : -errno;
}

/* ---- items ---- */

static int bad_line(struct eval *eval, const char *message)
{
    char shown[8 * 512];
    size_t n = hc_escape_visible((const uint8_t *)message, strlen(message), shown, sizeof shown - 1);
    shown[n] = '\0';
    if (eval->tally->bad_lines < SHOWN_BAD_LINES) {
        hc_progress_clear(&eval->progress);
        (void)fprintf(stderr, "hotcell: %s:%llu: %s\n", eval->options->file,
                      (unsigned long long)eval->lines.number, shown);
    } else if (eval->tally->bad_lines == SHOWN_BAD_LINES) {
        (void)fprintf(stderr, "hotcell: more bad lines follow; they are counted\n");
    }
    return hc_tally_bad_line(eval->tally, eval->lines.number, message);
}

static bool blank(const char *line, size_t bytes)
{
    return bytes == 0 || (bytes == 1 && line[0] == '\r');
}

/* Whether the item is to be run: not when it is there twice, not wanted, or done before. Positive: it is. */
static int wanted(struct eval *eval, const struct hc_eval_item *item)
{
    size_t n = strlen(item->id);
    int there = hc_ids_add(&eval->seen, item->id, n);
    if (there == HC_IDS_THERE)
        return bad_line(eval, "the id was there before");
    if (there < 0)
        return there;
    if (eval->options->only != NULL) {
        if (json_object_get(eval->options->only, item->id) == NULL)
            return 0;
        eval->only_found++;
    }
    eval->tally->items++;
    there = hc_ids_has(&eval->done, item->id, n);
    eval->skipped += there == HC_IDS_THERE ? 1 : 0;
    return there < 0 ? there : there == HC_IDS_THERE ? 0 : 1;
}

static int take_item(struct eval *eval, const char *line, size_t bytes)
{
    struct hc_eval_item item;
    struct hc_refusal refusal;
    int error = hc_eval_item_read(line, bytes, &item, &refusal);
    if (error == HC_REFUSED)
        return bad_line(eval, refusal.message);
    if (error < 0)
        return error;
    error = wanted(eval, &item);
    if (error == 0 && eval->page.cards != NULL && json_object_size(eval->page.waiting) > 0)
        error = hc_page_item(&eval->page, item.id, line, bytes);
    if (error > 0)
        error = hc_pool_give(&eval->pool, line, bytes, item.id, item.language, item.suite);
    hc_eval_item_done(&item);
    return error;
}

/* Reads on until a worker has got something to do or the file ends. */
static int feed(struct eval *eval)
{
    unsigned before = eval->pool.busy;
    while (!eval->at_end && eval->pool.busy == before) {
        const char *line;
        size_t bytes;
        bool cut;
        if (eval->options->limit > 0 && eval->tally->items >= eval->options->limit) {
            eval->at_end = true;
            break;
        }
        int outcome = hc_lines_next(&eval->lines, &line, &bytes, &cut);
        if (outcome == HC_LINE && eval->lines.number == 1 && bytes >= 3 &&
            memcmp(line, "\xef\xbb\xbf", 3) == 0) {
            line += 3;
            bytes -= 3;
        }
        eval->at_end = outcome == HC_LINE_END;
        int error = outcome == HC_LINE_TOO_LONG                 ? bad_line(eval, "is longer than 16 MB")
                    : outcome == HC_LINE && !blank(line, bytes) ? take_item(eval, line, bytes)
                    : outcome < 0                               ? outcome
                                                                : 0;
        if (error < 0)
            return error;
    }
    return 0;
}

/* ---- answers ---- */

/* What an interruption cut short is not written: --resume runs it again. A run that had not begun yet is
 * refused by the host. */
static bool cut_short(const struct eval *eval, const json_t *result)
{
    const char *status = json_string_value(json_object_get(result, "status"));
    const char *cause = json_string_value(json_object_get(result, "cause"));
    return eval->interrupts > 0 && (hc_string_equal(status, hc_statuses[HC_STATUS_CANCELLED].name) ||
                                    hc_string_equal(cause, hc_causes[HC_CAUSE_HOST].name));
}

static int take_answer(struct eval *eval, unsigned index)
{
    json_t *result = NULL;
    hc_autofree char *line = NULL;
    size_t bytes = 0;
    int error = hc_pool_take(&eval->pool, index, &result, &line, &bytes);
    if (error < 0 || result == NULL)
        return error;
    bool dropped = cut_short(eval, result);
    eval->tally->interrupted += dropped ? 1 : 0;
    if (!dropped && eval->results >= 0)
        error = hc_output_write(eval->results, result);
    if (!dropped && error == 0)
        error = hc_tally_add(eval->tally, result) < 0 ? -ENOMEM : 0;
    if (!dropped && error == 0 && eval->page.cards != NULL)
        error = hc_page_add(&eval->page, result, line, bytes);
    json_decref(result);
    return error;
}

static void take_signal(struct eval *eval)
{
    struct signalfd_siginfo info;
    if (read(eval->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    eval->interrupts++;
    eval->at_end = true;
    hc_pool_cancel(&eval->pool, eval->interrupts > 1);
}

static int await(struct eval *eval, struct pollfd *polls)
{
    unsigned count = eval->pool.count;
    for (unsigned i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = eval->pool.workers[i].busy ? eval->pool.workers[i].socket : -1,
                                   .events = POLLIN};
    polls[count] = (struct pollfd){.fd = eval->signals, .events = POLLIN};
    if (poll(polls, count + 1, TICK_MS) < 0 && errno != EINTR)
        return -errno;
    if (polls[count].revents != 0)
        take_signal(eval);
    int error = 0;
    for (unsigned i = 0; i < count && error == 0; i++)
        if (polls[i].fd >= 0 && polls[i].revents != 0)
            error = take_answer(eval, i);
    return error;
}

static int process(struct eval *eval)
{
    struct pollfd *polls = calloc(eval->pool.count + 1, sizeof *polls);
    int error = polls == NULL ? -ENOMEM : 0;
    while (error == 0 && (!eval->at_end || eval->pool.busy > 0)) {
        while (error == 0 && !eval->at_end && eval->pool.busy < eval->pool.count)
            error = feed(eval);
        if (error == 0 && eval->pool.busy > 0)
            error = await(eval, polls);
        hc_progress_show(&eval->progress, eval->tally->results - eval->tally->resumed, eval->skipped,
                         eval->lines.consumed_bytes);
    }
    free(polls);
    hc_progress_clear(&eval->progress);
    return error;
}

static int begin(struct eval *eval, struct hc_refusal *refusal)
{
    const struct hc_eval_options *options = eval->options;
    int error = open_file(eval, refusal);
    if (error == 0 && options->report != NULL)
        error = hc_page_open(&eval->page, options->report, refusal);
    if (error == 0 && options->results != NULL)
        error = hc_output_open(options->results, options->resume, &eval->done, eval->tally,
                               options->report != NULL ? &eval->page : NULL, &eval->results, refusal);
    if (error == 0) {
        eval->signals = open_signals();
        error = eval->signals < 0 ? eval->signals : 0;
    }
    struct hc_worker_setup setup = {.defaults = &options->defaults,
                                    .store = options->store,
                                    .runtimes = options->runtimes,
                                    .folder = eval->folder};
    return error == 0 ? hc_pool_init(&eval->pool, options->jobs, &setup) : error;
}

static int write_page(struct eval *eval)
{
    const char *slash = strrchr(eval->options->file, '/');
    const char *name = strcmp(eval->options->file, "-") == 0 ? "standard input"
                       : slash != NULL                       ? slash + 1
                                                             : eval->options->file;
    hc_autofree char *title = hc_printf("Evaluation of %s", name);
    return title != NULL ? hc_page_write(&eval->page, title, eval->tally) : -ENOMEM;
}

int hc_eval(const struct hc_eval_options *options, struct hc_tally *tally, struct hc_refusal *refusal)
{
    struct eval eval = {
        .options = options, .tally = tally, .file = -1, .folder = -1, .results = -1, .signals = -1};
    uint64_t began_us = hc_now_us();
    int error = begin(&eval, refusal);
    if (error == 0)
        error = process(&eval);
    tally->elapsed_us = hc_now_us() - began_us;
    tally->interrupted += eval.interrupts > 0 && tally->interrupted == 0 ? 1 : 0;
    if (options->only != NULL && error == 0)
        tally->missing_ids = json_object_size(options->only) - eval.only_found;
    if (eval.page.cards != NULL && error == 0)
        error = write_page(&eval);
    hc_page_done(&eval.page);
    hc_pool_done(&eval.pool);
    hc_lines_done(&eval.lines);
    hc_ids_done(&eval.seen);
    hc_ids_done(&eval.done);
    hc_close_fd(&eval.file);
    hc_close_fd(&eval.folder);
    hc_close_fd(&eval.results);
    hc_close_fd(&eval.signals);
    return error;
}
