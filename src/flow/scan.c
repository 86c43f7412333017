#include "flow/scan.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "flow/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define LOOK_BYTES_MAX    (64ull * 1024 * 1024)
#define SCAN_BYTES_MAX    (256ull * 1024 * 1024) /* archives of one run: they are inputs of a cell */
#define PROGRAM_BYTES_MAX (16ull * 1024 * 1024)

static int take_archive(struct hc_scan *scan, struct hc_artifact *artifact, uint8_t **data, size_t bytes)
{
    struct hc_plan_file *files = realloc(scan->files, (scan->count + 2) * sizeof *files);
    if (files == NULL)
        return -ENOMEM;
    scan->files = files;
    struct hc_artifact **artifacts = realloc(scan->artifacts, (scan->count + 1) * sizeof *artifacts);
    if (artifacts == NULL)
        return -ENOMEM;
    scan->artifacts = artifacts;
    char *name = hc_printf("%zu", scan->count);
    if (name == NULL)
        return -ENOMEM;
    if (scan->count == 0)
        files[0] = (struct hc_plan_file){.name = HC_SCAN_PROGRAM, .mode = 0555};
    artifacts[scan->count++] = artifact;
    files[scan->count] =
        (struct hc_plan_file){.name = name, .mode = 0444, .data = hc_take_any(data), .bytes = bytes};
    scan->bytes += bytes;
    return 0;
}

static int look(int working_folder, struct hc_artifact *artifact, struct hc_scan *scan)
{
    hc_autofree uint8_t *data = NULL;
    size_t bytes = 0;
    bool archive = hc_is_archive(artifact->type);
    if (artifact->bytes > LOOK_BYTES_MAX || (archive && scan->bytes + artifact->bytes > SCAN_BYTES_MAX)) {
        hc_find(artifact, HC_FINDING_NOT_INSPECTED);
        return 0;
    }
    int error = hc_collect_read(working_folder, artifact->path, LOOK_BYTES_MAX, &data, &bytes);
    if (error == -ENOMEM)
        return error;
    if (error < 0) {
        hc_find(artifact, HC_FINDING_NOT_INSPECTED);
        return 0;
    }
    hc_inspect(artifact, data, bytes);
    return archive ? take_archive(scan, artifact, &data, bytes) : 0;
}

int hc_scan_begin(int working_folder, struct hc_collection *collection, struct hc_scan *ret_scan)
{
    int error = 0;
    memset(ret_scan, 0, sizeof *ret_scan);
    for (size_t i = 0; i < collection->count && error == 0; i++) {
        struct hc_artifact *artifact = &collection->artifacts[i];
        bool read = artifact->plain && artifact->collected && artifact->sha256[0] != '\0';
        if (artifact->change != HC_DELETED && read)
            error = look(working_folder, artifact, ret_scan);
    }
    return error;
}

int hc_scan_load_program(struct hc_scan *scan, const char *programs)
{
    hc_autofree char *path = hc_printf("%s/" HC_SCAN_PROGRAM, programs);
    void *data = NULL;
    size_t bytes = 0;
    if (path == NULL)
        return -ENOMEM;
    hc_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 ? -errno : hc_read_all_fd(fd, PROGRAM_BYTES_MAX, &data, &bytes);
    if (error == 0) {
        scan->files[0].data = data;
        scan->files[0].bytes = bytes;
    }
    return error;
}

/* One line: the number of a file, a blank, the name of a finding that a scanner may report. */
static bool take_line(struct hc_scan *scan, const char *line, size_t n)
{
    char *rest = NULL;
    char number[24];
    const char *blank = memchr(line, ' ', n);
    size_t digits = blank != NULL ? (size_t)(blank - line) : 0;
    if (digits == 0 || digits > 9 || strspn(line, "0123456789") != digits)
        return false;
    (void)snprintf(number, sizeof number, "%.*s", (int)digits, line);
    unsigned long file = strtoul(number, &rest, 10);
    enum hc_artifact_finding finding = hc_finding_named(blank + 1, n - digits - 1);
    if (file >= scan->count || finding < HC_FINDING_OFFICE_MACROS || finding >= HC_FINDING_NOT_INSPECTED)
        return false;
    hc_find(scan->artifacts[file], finding);
    return true;
}

void hc_scan_report(struct hc_scan *scan, const char *output, size_t n)
{
    const char *at = output, *end = output != NULL ? output + n : NULL, *line_end;
    bool whole = false;
    while (at < end && (line_end = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        size_t length = (size_t)(line_end - at);
        whole = length == 4 && memcmp(at, "done", 4) == 0 && line_end + 1 == end;
        if (!whole && !take_line(scan, at, length))
            break;
        at = line_end + 1;
    }
    for (size_t i = 0; !whole && i < scan->count; i++)
        hc_find(scan->artifacts[i], HC_FINDING_NOT_INSPECTED);
}

void hc_scan_done(struct hc_scan *scan)
{
    for (size_t i = 0; scan->files != NULL && i <= scan->count; i++) {
        free((void *)(uintptr_t)scan->files[i].data);
        if (i > 0)
            free((void *)(uintptr_t)scan->files[i].name);
    }
    free(scan->files);
    free(scan->artifacts);
    memset(scan, 0, sizeof *scan);
}
