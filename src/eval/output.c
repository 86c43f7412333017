#include "eval/output.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "eval/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

static int refuse(struct hc_refusal *refusal, const char *path, const char *what)
{
    return hc_refuse(refusal, HC_CAUSE_FIELD, "results", "--results %.200s: %.200s", path, what);
}

/* A line that is no result, and is not the last one, was written by somebody else: nothing is added to such a
 * file. */
static int take_line(const char *line, size_t bytes, struct hc_ids *done, struct hc_tally *tally,
                     struct hc_page *page)
{
    json_t *result = json_loadb(line, bytes, 0, NULL);
    int error = result != NULL ? hc_tally_add(tally, result) : HC_TALLY_NO_RESULT;
    if (error == 0) {
        const json_t *id = json_object_get(result, "id");
        tally->resumed++;
        error = hc_ids_add(done, json_string_value(id), json_string_length(id));
        error = error == HC_IDS_THERE ? 0 : error;
        if (error == 0 && page != NULL)
            error = hc_page_wait(page, result);
    }
    json_decref(result);
    return error;
}

static int read_back(int fd, const char *path, struct hc_ids *done, struct hc_tally *tally,
                     struct hc_page *page, struct hc_refusal *refusal)
{
    struct hc_lines lines;
    const char *line;
    size_t bytes;
    bool cut = false, foreign = false;
    uint64_t good_bytes = 0;
    int error = 0;
    hc_lines_init(&lines, fd);
    while (error == 0 && (error = hc_lines_next(&lines, &line, &bytes, &cut)) == HC_LINE && !cut) {
        error = bytes > 0 ? take_line(line, bytes, done, tally, page) : 0;
        foreign = error == HC_TALLY_NO_RESULT;
        good_bytes = error == 0 ? lines.consumed_bytes : good_bytes;
    }
    uint64_t number = lines.number;
    foreign = foreign || error == HC_LINE_TOO_LONG;
    hc_lines_done(&lines);
    if (error < 0)
        return error == -EISDIR ? refuse(refusal, path, strerror(EISDIR)) : error;
    if (foreign)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "results",
                         "--results %.200s:%llu: is no result; nothing is added to it", path,
                         (unsigned long long)number);
    return ftruncate(fd, (off_t)good_bytes) != 0 ? -errno : 0;
}

int hc_output_open(const char *path, bool resume, struct hc_ids *done, struct hc_tally *tally,
                   struct hc_page *page, int *ret_fd, struct hc_refusal *refusal)
{
    struct stat info;
    hc_autoclose int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0 && errno == EACCES) /* a pipe to somebody who only reads, for example */
        fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) != 0)
        return refuse(refusal, path, strerror(errno));
    if (S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) != 0)
        return refuse(refusal, path, "another evaluation writes to it");
    if (S_ISREG(info.st_mode) && info.st_size > 0 && !resume)
        return refuse(refusal, path, "holds something already; --resume continues it");
    int error = S_ISREG(info.st_mode) && resume ? read_back(fd, path, done, tally, page, refusal) : 0;
    if (error == 0)
        *ret_fd = hc_take_fd(&fd);
    return error;
}

int hc_output_write(int fd, const json_t *result)
{
    hc_autofree char *text = json_dumps(result, JSON_COMPACT);
    if (text == NULL)
        return -ENOMEM;
    size_t n = strlen(text);
    text[n] = '\n'; /* instead of the NUL: one write, so that a line is there or not */
    return hc_write_all(fd, text, n + 1);
}
