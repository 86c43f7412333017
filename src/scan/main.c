/* hotcell-scan: looks into archives. Runs as the program of a cell, with the archives as read-only files
 * called 0, 1, … and nothing else; whoever takes it over has a cell that dies. Its report is one line per
 * finding, "NUMBER NAME", and "done" at the end; without that word nothing of it counts as looked into.
 *
 *   hotcell-scan COUNT
 */
#include <archive.h>
#include <archive_entry.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MEMBERS_MAX      10000
#define FREE_BYTES       (20ull << 20) /* unpacked, before the ratio counts */
#define RATIO_MAX        100
#define NESTED_BYTES_MAX (16u << 20)
#define DEPTH_MAX        3
#define HEAD_BYTES       512

static const char *const findings[] = {"office_macros",      "archive_escapes", "archive_links",
                                       "archive_bomb",       "archive_nested",  "archive_encrypted",
                                       "archive_executable", "archive_broken"};
enum finding { MACROS, ESCAPES, LINKS, BOMB, NESTED, ENCRYPTED, EXECUTABLE, BROKEN, FINDINGS };

struct scan {
    unsigned found; /* bit per finding */
    uint64_t members, unpacked, unpacked_max;
};

static void find(struct scan *scan, enum finding finding)
{
    scan->found |= 1u << finding;
}

static bool has(const struct scan *scan, enum finding finding)
{
    return (scan->found >> finding & 1) != 0;
}

/* Absolute, of a drive, or with a part "..": with slashes of either kind. */
static bool escapes(const char *path)
{
    if (path == NULL || path[0] == '/' || path[0] == '\\' ||
        (isalpha((unsigned char)path[0]) && path[1] == ':'))
        return true;
    for (const char *part = path; *part != '\0';) {
        size_t n = strcspn(part, "/\\");
        if (n == 2 && part[0] == '.' && part[1] == '.')
            return true;
        part += n + (part[n] != '\0' ? 1 : 0);
    }
    return false;
}

/* Where a link in folder a/b that points to ../../../x ends: whether above the top. */
static bool link_escapes(const char *path, const char *target)
{
    long depth = -1; /* the last part is the link itself */
    if (target == NULL || target[0] == '/' || target[0] == '\\')
        return true;
    for (const char *part = path; *part != '\0';) {
        size_t n = strcspn(part, "/");
        depth += n > 0 && !(n == 1 && part[0] == '.') ? 1 : 0;
        part += n + (part[n] != '\0' ? 1 : 0);
    }
    for (const char *part = target; *part != '\0';) {
        size_t n = strcspn(part, "/");
        bool up = n == 2 && part[0] == '.' && part[1] == '.';
        depth += up ? -1 : n > 0 && !(n == 1 && part[0] == '.') ? 1 : 0;
        if (depth < 0)
            return true;
        part += n + (part[n] != '\0' ? 1 : 0);
    }
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcasecmp(text + n - m, end) == 0;
}

static void look_at_member(struct scan *scan, struct archive_entry *entry)
{
    const char *path = archive_entry_pathname(entry);
    const char *hard = archive_entry_hardlink(entry), *soft = archive_entry_symlink(entry);
    mode_t type = archive_entry_filetype(entry);
    if (escapes(path))
        find(scan, ESCAPES);
    if (hard != NULL || (type != 0 && type != AE_IFREG && type != AE_IFDIR))
        find(scan, LINKS);
    if ((hard != NULL && escapes(hard)) || (type == AE_IFLNK && link_escapes(path != NULL ? path : "", soft)))
        find(scan, ESCAPES);
    if (archive_entry_is_encrypted(entry) != 0)
        find(scan, ENCRYPTED);
    if (path != NULL && (ends_with(path, "vbaProject.bin") || strstr(path, "macrosheets/") != NULL ||
                         strncmp(path, "Basic/", 6) == 0))
        find(scan, MACROS);
}

static bool is_archive(const uint8_t *head, size_t n)
{
    static const struct {
        size_t offset, length;
        const char *bytes;
    } heads[] = {{0, 4, "PK\x03\x04"},
                 {0, 2, "\x1f\x8b"},
                 {0, 4, "\x28\xb5\x2f\xfd"},
                 {0, 6,
                  "\xfd"
                  "7zXZ\0"},
                 {0, 3, "BZh"},
                 {257, 5, "ustar"},
                 {0, 6, "7z\xbc\xaf\x27\x1c"},
                 {0, 4, "Rar!"}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (n >= heads[i].offset + heads[i].length &&
            memcmp(head + heads[i].offset, heads[i].bytes, heads[i].length) == 0)
            return true;
    return false;
}

static void scan_bytes(struct scan *scan, const void *data, size_t n, unsigned depth);

struct member {
    uint8_t *data;
    size_t bytes, room;
    bool keep; /* it is an archive itself */
    bool seen_head;
    uint8_t head[HEAD_BYTES];
    size_t head_bytes;
};

static void take_head(struct scan *scan, struct member *member, const uint8_t *block, size_t n)
{
    size_t more = HEAD_BYTES - member->head_bytes < n ? HEAD_BYTES - member->head_bytes : n;
    memcpy(member->head + member->head_bytes, block, more);
    member->head_bytes += more;
    bool program = member->head_bytes >= 4 && (memcmp(member->head,
                                                      "\x7f"
                                                      "ELF",
                                                      4) == 0 ||
                                               memcmp(member->head, "MZ", 2) == 0);
    if (program)
        find(scan, EXECUTABLE);
    if (!member->keep)
        member->keep = is_archive(member->head, member->head_bytes);
}

/* Kept from its first byte on, as what it is shows after some hundred bytes at the latest. */
static void keep(struct scan *scan, struct member *member, const uint8_t *block, size_t n)
{
    if (member->head_bytes == HEAD_BYTES && !member->keep)
        return;
    if (member->bytes + n > NESTED_BYTES_MAX) {
        member->keep = false;
        find(scan, NESTED);
        return;
    }
    if (member->bytes + n > member->room) {
        size_t room = 2 * (member->bytes + n);
        uint8_t *grown = realloc(member->data, room);
        if (grown == NULL)
            exit(1);
        member->data = grown;
        member->room = room;
    }
    memcpy(member->data + member->bytes, block, n);
    member->bytes += n;
}

static void read_member(struct scan *scan, struct archive *archive, unsigned depth)
{
    struct member member = {0};
    const void *block;
    size_t n;
    la_int64_t offset;
    uint64_t end = 0;
    int result;
    while ((result = archive_read_data_block(archive, &block, &n, &offset)) == ARCHIVE_OK ||
           result == ARCHIVE_WARN) {
        uint64_t now = (uint64_t)offset + n; /* holes of sparse files count as well */
        scan->unpacked += now > end ? now - end : 0;
        end = now > end ? now : end;
        if (scan->unpacked > scan->unpacked_max) {
            find(scan, BOMB);
            break;
        }
        bool early = member.head_bytes < HEAD_BYTES || member.keep;
        take_head(scan, &member, block, n);
        if (early)
            keep(scan, &member, block, n);
    }
    if (result < ARCHIVE_WARN)
        find(scan, BROKEN);
    if (member.keep && depth + 1 < DEPTH_MAX && !has(scan, BOMB))
        scan_bytes(scan, member.data, member.bytes, depth + 1);
    else if (member.keep)
        find(scan, NESTED);
    free(member.data);
}

static void scan_bytes(struct scan *scan, const void *data, size_t n, unsigned depth)
{
    struct archive *archive = archive_read_new();
    struct archive_entry *entry;
    int result = ARCHIVE_OK;
    if (archive == NULL)
        exit(1);
    (void)archive_read_support_filter_all(archive);
    (void)archive_read_support_format_all(archive);
    (void)archive_read_support_format_raw(archive); /* one compressed file */
    if (archive_read_open_memory(archive, data, n) != ARCHIVE_OK)
        find(scan, BROKEN);
    else
        while (!has(scan, BOMB) && (result = archive_read_next_header(archive, &entry)) != ARCHIVE_EOF) {
            if (result < ARCHIVE_WARN) {
                find(scan, BROKEN);
                break;
            }
            if (++scan->members > MEMBERS_MAX)
                find(scan, BOMB);
            bool raw = archive_format(archive) == ARCHIVE_FORMAT_RAW;
            if (!raw)
                look_at_member(scan, entry);
            /* Something without any compression that is no archive: its head lied. */
            if (raw && archive_filter_code(archive, 0) == ARCHIVE_FILTER_NONE) {
                find(scan, BROKEN);
                break;
            }
            read_member(scan, archive, depth);
        }
    if (archive_read_has_encrypted_entries(archive) > 0)
        find(scan, ENCRYPTED);
    (void)archive_read_free(archive);
}

/* Any compressed stream is unpacked once more as nothing but a stream: a tar that begins with zeros is at its
 * end at once, but whoever unpacks the stream writes all of it. */
static void count_stream(struct scan *scan, const void *data, size_t n)
{
    struct archive *archive = archive_read_new();
    struct archive_entry *entry;
    const void *block;
    la_int64_t offset;
    uint64_t total = 0;
    size_t bytes;
    if (archive == NULL)
        exit(1);
    (void)archive_read_support_filter_all(archive);
    (void)archive_read_support_format_raw(archive);
    if (archive_read_open_memory(archive, data, n) == ARCHIVE_OK &&
        archive_read_next_header(archive, &entry) == ARCHIVE_OK &&
        archive_filter_code(archive, 0) != ARCHIVE_FILTER_NONE)
        while (total <= scan->unpacked_max &&
               archive_read_data_block(archive, &block, &bytes, &offset) == ARCHIVE_OK)
            total += bytes;
    if (total > scan->unpacked_max)
        find(scan, BOMB);
    (void)archive_read_free(archive);
}

static void scan_file(unsigned long number)
{
    char name[32];
    struct stat info;
    (void)snprintf(name, sizeof name, "%lu", number);
    FILE *file = fopen(name, "rbe");
    if (file == NULL || fstat(fileno(file), &info) != 0)
        exit(1);
    size_t bytes = (size_t)info.st_size;
    uint8_t *data = malloc(bytes > 0 ? bytes : 1);
    if (data == NULL || fread(data, 1, bytes, file) != bytes)
        exit(1);
    (void)fclose(file);
    struct scan scan = {.unpacked_max = RATIO_MAX * (uint64_t)bytes > FREE_BYTES ? RATIO_MAX * (uint64_t)bytes
                                                                                 : FREE_BYTES};
    scan_bytes(&scan, data, bytes, 0);
    if (!has(&scan, BOMB))
        count_stream(&scan, data, bytes);
    free(data);
    for (int i = 0; i < FINDINGS; i++)
        if (has(&scan, (enum finding)i))
            printf("%lu %s\n", number, findings[i]);
}

int main(int argc, char **argv)
{
    unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    for (unsigned long i = 0; i < count; i++)
        scan_file(i);
    return puts("done") >= 0 && fflush(stdout) == 0 ? 0 : 1;
}
