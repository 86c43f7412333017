/* The collector and the export on a real folder, as a run could leave it. */
#include "flow/collect.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

struct place {
    char path[64]; /* holds "work" and whatever a test puts beside it */
    int work;
    struct hc_spec spec;
    struct hc_collect_rules rules;
    struct hc_collection found;
};

static struct place make_place(void)
{
    struct place place = {.path = "/tmp/hc-collect-XXXXXX", .work = -1};
    HC_ASSERT(mkdtemp(place.path) != NULL);
    hc_autofree char *work = hc_printf("%s/work", place.path);
    HC_ASSERT(mkdir(work, 0755) == 0);
    place.work = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    HC_ASSERT(place.work >= 0 && hc_spec_init(&place.spec) == 0);
    place.rules = (struct hc_collect_rules){.total_bytes = 1 << 20,
                                            .file_bytes = 1 << 19,
                                            .file_count = 20,
                                            .program_name = "main.py",
                                            .program_uid = (uint32_t)getuid()};
    return place;
}

static void end_place(struct place *place)
{
    hc_collection_done(&place->found);
    hc_spec_done(&place->spec);
    hc_close_fd(&place->work);
    (void)nftw(place->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
#define autoplace __attribute__((cleanup(end_place))) struct place

static void put(const struct place *place, const char *name, const char *text)
{
    hc_autoclose int fd = openat(place->work, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    HC_ASSERT(fd >= 0 && hc_write_all(fd, text, strlen(text)) == 0);
}

static void collect(struct place *place)
{
    hc_collection_done(&place->found);
    place->rules.spec = &place->spec;
    HC_ASSERT_EQ_INT(hc_collect(place->work, &place->rules, &place->found), 0);
}

static struct hc_artifact *named(struct place *place, const char *path)
{
    for (size_t i = 0; i < place->found.count; i++)
        if (strcmp(place->found.artifacts[i].path, path) == 0)
            return &place->found.artifacts[i];
    return NULL;
}

static bool has_finding(const struct hc_artifact *artifact, const char *finding)
{
    for (unsigned i = 0; i < artifact->finding_count; i++)
        if (strcmp(artifact->findings[i], finding) == 0)
            return true;
    return false;
}

HC_TEST(plain_files)
{
    autoplace place = make_place();
    put(&place, "b.csv", "x,y\n");
    HC_ASSERT(mkdirat(place.work, "sub", 0755) == 0);
    put(&place, "sub/a.txt", "abc");
    collect(&place);
    /* in the order of paths; the program was asked for and is gone */
    HC_ASSERT_EQ_INT(place.found.count, 4);
    static const char *const paths[] = {"b.csv", "main.py", "sub", "sub/a.txt"};
    for (size_t i = 0; i < 4; i++)
        HC_ASSERT_STREQ(place.found.artifacts[i].path, paths[i]);
    HC_ASSERT_EQ_INT(named(&place, "main.py")->change, HC_DELETED);
    HC_ASSERT(!named(&place, "sub")->collected);
    struct hc_artifact *a = named(&place, "sub/a.txt");
    HC_ASSERT(a->plain && a->collected && a->change == HC_CREATED);
    HC_ASSERT_EQ_INT(a->bytes, 3);
    HC_ASSERT_STREQ(a->sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    HC_ASSERT_STREQ(a->type, "text/plain");
    HC_ASSERT_STREQ(named(&place, "b.csv")->type, "text/csv");
    HC_ASSERT_EQ_INT(place.found.collected_count, 2);
    HC_ASSERT_EQ_INT(place.found.collected_bytes, 7);
}

HC_TEST(inputs_and_program)
{
    autoplace place = make_place();
    struct hc_refusal refusal;
    HC_ASSERT_EQ_INT(hc_spec_add_input(&place.spec, "in/a", false, (uint8_t *)strdup("1"), 1, &refusal), 0);
    HC_ASSERT_EQ_INT(hc_spec_add_input(&place.spec, "gone", false, (uint8_t *)strdup("1"), 1, &refusal), 0);
    HC_ASSERT(mkdirat(place.work, "in", 0755) == 0);
    put(&place, "in/a", "1");
    put(&place, "main.py", "pass");
    /* Owned by another than the run: they are as process 1 of the cell wrote them. */
    place.rules.program_uid = (uint32_t)getuid() + 1;
    collect(&place);
    HC_ASSERT_EQ_INT(place.found.count, 1);
    HC_ASSERT_EQ_INT(named(&place, "gone")->change, HC_DELETED);
    /* Owned by the run: it has put its own in their place. */
    place.rules.program_uid = (uint32_t)getuid();
    collect(&place);
    HC_ASSERT_EQ_INT(named(&place, "in/a")->change, HC_CHANGED);
    HC_ASSERT_EQ_INT(named(&place, "main.py")->change, HC_CHANGED);
}

HC_TEST(what_is_no_plain_file_is_listed_and_never_opened)
{
    autoplace place = make_place();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    hc_autofree char *secret = hc_printf("%s/secret", place.path);
    hc_autoclose int fd = open(secret, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    HC_ASSERT(fd >= 0 && hc_write_all(fd, "secret", 6) == 0);
    HC_ASSERT(symlinkat("../secret", place.work, "link") == 0 &&
              symlinkat("/etc/passwd", place.work, "passwd") == 0);
    HC_ASSERT(symlinkat("..", place.work, "up") == 0);
    HC_ASSERT(mkfifoat(place.work, "fifo", 0644) == 0); /* opening it to read would wait for ever */
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.60s/work/socket", place.path);
    hc_autoclose int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HC_ASSERT(listener >= 0 && bind(listener, (void *)&address, sizeof address) == 0);
    bool device = mknodat(place.work, "device", S_IFCHR | 0644, makedev(1, 3)) == 0;
    collect(&place);
    static const char *const kinds[][2] = {{"link", "symlink"}, {"passwd", "symlink"}, {"up", "symlink"},
                                           {"fifo", "fifo"},    {"socket", "socket"},  {"device", "device"}};
    for (size_t i = 0; i < (device ? 6 : 5); i++) {
        struct hc_artifact *a = named(&place, kinds[i][0]);
        HC_ASSERT(a != NULL && !a->plain && !a->collected && a->sha256[0] == '\0');
        HC_ASSERT_STREQ(a->type, kinds[i][1]);
        HC_ASSERT(has_finding(a, kinds[i][1]));
    }
    HC_ASSERT_EQ_INT(place.found.collected_count, 0);
    /* Nor by name. */
    uint8_t *data = NULL;
    size_t n;
    HC_ASSERT(hc_collect_read(place.work, "link", 100, &data, &n) < 0);
    HC_ASSERT(hc_collect_read(place.work, "../secret", 100, &data, &n) < 0);
    HC_ASSERT(hc_collect_read(place.work, "up/secret", 100, &data, &n) < 0);
    HC_ASSERT(hc_collect_read(place.work, "/etc/passwd", 100, &data, &n) < 0);
    HC_ASSERT(hc_collect_read(place.work, "fifo", 100, &data, &n) < 0);
    HC_ASSERT(data == NULL);
}

HC_TEST(findings)
{
    autoplace place = make_place();
    put(&place, "twice", "x");
    HC_ASSERT(linkat(place.work, "twice", place.work, "again", 0) == 0);
    put(&place, "set-id", "x");
    HC_ASSERT(fchmodat(place.work, "set-id", 04755, 0) == 0);
    put(&place, "new\nline", "x");
    put(&place, "bad-\xff", "x");
    put(&place, "sparse", "");
    hc_autofree char *sparse = hc_printf("%s/work/sparse", place.path);
    HC_ASSERT(truncate(sparse, 1 << 18) == 0);
    collect(&place);
    HC_ASSERT(has_finding(named(&place, "twice"), "several_names") &&
              has_finding(named(&place, "again"), "several_names"));
    HC_ASSERT(has_finding(named(&place, "set-id"), "set_id_bits"));
    HC_ASSERT(has_finding(named(&place, "new\nline"), "odd_name") &&
              has_finding(named(&place, "bad-\xff"), "odd_name"));
    HC_ASSERT(has_finding(named(&place, "sparse"), "sparse"));
}

HC_TEST(export_limits)
{
    autoplace place = make_place();
    put(&place, "a", "1234");
    put(&place, "b", "1234");
    place.rules.file_bytes = 4;
    place.rules.total_bytes = 8;
    place.rules.file_count = 2;
    collect(&place);
    HC_ASSERT(!place.found.over_size && !place.found.over_total && !place.found.over_count);
    place.rules.file_bytes = 3;
    collect(&place);
    HC_ASSERT(place.found.over_size);
    place.rules.file_bytes = 4;
    place.rules.total_bytes = 7;
    collect(&place);
    HC_ASSERT(place.found.over_total);
    place.rules.total_bytes = 8;
    place.rules.file_count = 1;
    collect(&place);
    HC_ASSERT(place.found.over_count);
    place.rules.glob = "a*"; /* what does not match does not count */
    collect(&place);
    HC_ASSERT(!place.found.over_count && named(&place, "a")->collected && !named(&place, "b")->collected);
}

HC_TEST(many_entries_are_cut, .timeout_s = 60)
{
    autoplace place = make_place();
    for (int i = 0; i < HC_COLLECT_ENTRIES_MAX + 10; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "f%d", i);
        HC_ASSERT(symlinkat("x", place.work, name) == 0);
    }
    collect(&place);
    HC_ASSERT(place.found.truncated);
    HC_ASSERT_EQ_INT(place.found.omitted, 10);
    char message[256];
    hc_autofree char *out = hc_printf("%s/out", place.path);
    HC_ASSERT_EQ_INT(hc_export(place.work, &place.found, out, message), HC_EXPORT_REFUSED);
}

HC_TEST(deep_folders_are_cut)
{
    autoplace place = make_place();
    hc_autoclose int at = dup(place.work);
    for (int i = 0; i < HC_COLLECT_DEPTH_MAX + 20; i++) {
        HC_ASSERT(mkdirat(at, "d", 0755) == 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        HC_ASSERT(next >= 0);
        close(at);
        at = next;
    }
    collect(&place);
    HC_ASSERT(place.found.truncated);
    HC_ASSERT(place.found.count <= HC_COLLECT_DEPTH_MAX + 2);
}

/* ---- export ---- */

HC_TEST(export_copies_plain_files_with_plain_modes)
{
    autoplace place = make_place();
    char message[256] = "", content[16] = "";
    put(&place, "a.txt", "abc");
    HC_ASSERT(fchmodat(place.work, "a.txt", 06777, 0) == 0);
    HC_ASSERT(mkdirat(place.work, "sub", 0700) == 0 && symlinkat("/etc/passwd", place.work, "sub/link") == 0);
    put(&place, "sub/b.txt", "xyz");
    collect(&place);
    hc_autofree char *out = hc_printf("%s/out/", place.path);
    HC_ASSERT_EQ_INT(hc_export(place.work, &place.found, out, message), 0);
    HC_ASSERT(named(&place, "a.txt")->exported && named(&place, "sub/b.txt")->exported);
    HC_ASSERT(!named(&place, "sub/link")->exported);
    hc_autofree char *a = hc_printf("%s/a.txt", out), *b = hc_printf("%s/sub/b.txt", out),
                     *c = hc_printf("%s/sub/link", out);
    struct stat info;
    HC_ASSERT(stat(a, &info) == 0);
    HC_ASSERT_EQ_INT(info.st_mode, S_IFREG | 0644);
    hc_autoclose int fd = open(b, O_RDONLY | O_CLOEXEC);
    HC_ASSERT(fd >= 0 && read(fd, content, sizeof content) == 3 && memcmp(content, "xyz", 3) == 0);
    HC_ASSERT(lstat(c, &info) != 0 && errno == ENOENT);
    /* Once more to the same place: it is not empty any more. */
    HC_ASSERT_EQ_INT(hc_export(place.work, &place.found, out, message), HC_EXPORT_REFUSED);
    HC_ASSERT(strstr(message, "not empty") != NULL);
}

HC_TEST(export_is_all_or_nothing)
{
    autoplace place = make_place();
    char message[256] = "";
    struct stat info;
    put(&place, "a", "1");
    put(&place, "b", "2");
    place.rules.file_count = 1;
    collect(&place);
    hc_autofree char *out = hc_printf("%s/out", place.path), *deep = hc_printf("%s/no/such/out", place.path);
    HC_ASSERT_EQ_INT(hc_export(place.work, &place.found, out, message), HC_EXPORT_REFUSED);
    HC_ASSERT(strstr(message, "--artifact-count") != NULL && lstat(out, &info) != 0);
    place.rules.file_count = 2;
    collect(&place);
    HC_ASSERT_EQ_INT(hc_export(place.work, &place.found, deep, message), HC_EXPORT_REFUSED);
    /* A file that vanished between the look and the copy, as none can in a dead cell: nothing is left half
     * there. */
    HC_ASSERT(unlinkat(place.work, "b", 0) == 0);
    HC_ASSERT_EQ_INT(hc_export(place.work, &place.found, out, message), HC_EXPORT_REFUSED);
    HC_ASSERT(lstat(out, &info) != 0 && !named(&place, "a")->exported);
    int beside = 0;
    hc_autofree char *pattern = hc_printf("%s/out.partial-", place.path);
    HC_ASSERT(pattern != NULL);
    hc_autofree char *list = hc_printf("ls -d %s* >/dev/null 2>&1", pattern);
    beside = system(list);
    HC_ASSERT(beside != 0);
}

HC_TEST(export_follows_no_link_of_the_run)
{
    autoplace place = make_place();
    char message[256] = "";
    put(&place, "a", "1");
    collect(&place);
    HC_ASSERT(unlinkat(place.work, "a", 0) == 0 && symlinkat("/etc/passwd", place.work, "a") == 0);
    hc_autofree char *out = hc_printf("%s/out", place.path);
    HC_ASSERT_EQ_INT(hc_export(place.work, &place.found, out, message), HC_EXPORT_REFUSED);
    uint8_t *data = NULL;
    size_t n;
    put(&place, "plain", "12345");
    HC_ASSERT_EQ_INT(hc_collect_read(place.work, "plain", 4, &data, &n), -EFBIG);
    HC_ASSERT_EQ_INT(hc_collect_read(place.work, "plain", 5, &data, &n), 0);
    HC_ASSERT_EQ_INT(n, 5);
    free(data);
}

HC_TEST(file_types)
{
    static const struct {
        const char *head;
        size_t n;
        const char *name, *type;
    } rows[] = {
        {"\x89PNG\r\n\x1a\n....", 12, "x.txt", "image/png"}, /* content before name */
        {"\xff\xd8\xff\xe0", 4, "x", "image/jpeg"},
        {"RIFF....WEBP", 12, "x", "image/webp"},
        {"PK\x03\x04", 4, "x.xlsx", "application/zip"},
        {"\x7f"
         "ELF",
         4, "x.csv", "application/x-executable"},
        {"a,b\n", 4, "x.csv", "text/csv"},
        {"a,b\n", 4, "X.CSV", "text/csv"},
        {"{}", 2, "x.json", "application/json"},
        {"abc", 3, "x", "text/plain"},
        {"abc", 3, ".csv", "text/plain"},
        {"a\0c", 3, "x.txt", "application/octet-stream"},
        {"\xff\xfe", 2, "x.txt", "application/octet-stream"},
        {"", 0, "x.csv", "application/x-empty"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        HC_ASSERT_STREQ(hc_file_type((const uint8_t *)rows[i].head, rows[i].n, rows[i].name), rows[i].type);
}
