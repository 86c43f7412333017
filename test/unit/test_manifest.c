#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "runtime/manifest.h"
#include "runtime/manifest_read.h"
#include "runtime/version.h"

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#ifndef HC_TEST_SHARE
#define HC_TEST_SHARE "share"
#endif

#define HEAD "name: x\nfile: main.x\ninterpreter: /bin/sh\ninstall: none\n"
#define RUN  "run: [\"${interpreter}\", \"${file}\"]\n"
#define VERS "version: {command: [\"${interpreter}\", -c, \"echo v1.2\"], pattern: \"v([0-9.]+)\"}\n"

/* ---- a folder of its own for each test ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_folder(char **folder)
{
    (void)nftw(*folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(*folder);
}
#define in_folder __attribute__((cleanup(remove_folder)))

static char *make_folder(void)
{
    char *folder = strdup("/tmp/hc-manifest-XXXXXX");

    HC_ASSERT(folder && mkdtemp(folder));
    return folder;
}

static void put_file(const char *folder, const char *name, mode_t mode, const char *text)
{
    hc_autofree char *path = hc_printf("%s/%s", folder, name);
    hc_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    HC_ASSERT(fd >= 0);
    HC_ASSERT_EQ_INT(hc_write_all(fd, text, strlen(text)), 0);
    HC_ASSERT_EQ_INT(fchmod(fd, mode), 0);
}

static void use_cache(const char *folder)
{
    HC_ASSERT_EQ_INT(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

/* ---- reading ---- */

static void refuses(const char *text, const char *where, const char *message)
{
    struct hc_runtime runtime = {0};
    struct hc_problem problem = {0};

    int r = hc_runtime_read("x.yaml", text, strlen(text), &runtime, &problem);
    hc_autofree char *place = hc_printf("%u:%u", problem.line, problem.column);
    if (r != HC_BAD_INPUT || !strstr(problem.message, message))
        hc_test_fail(__FILE__, __LINE__, "%s\n%d \"%s\" lacks \"%s\"", text, r, problem.message, message);
    HC_ASSERT_STREQ(place, where);
}

HC_TEST(manifest_reads)
{
    static const char text[] =
        HEAD RUN VERS "title: Ex\naliases: [y]\nextensions: [.x]\n"
                      "check: [/bin/true]\n"
                      "compile: {command: [/bin/cc, \"${output}\"], output: main}\n"
                      "env: {A: \"${threads}\", B: ''}\n"
                      "etc: [/etc/none-such, {path: /etc/passwd, required: true}, /etc/pass*d]\n"
                      "error: {style: python, exit_code: 1}\ndigest: [/etc/passwd]\nnotes: n\n";
    struct hc_runtime x = {0};
    struct hc_problem problem = {0};

    HC_ASSERT_EQ_INT(hc_runtime_read("x.yaml", text, sizeof text - 1, &x, &problem), 0);
    HC_ASSERT_STREQ(x.name, "x");
    HC_ASSERT_STREQ(x.title, "Ex");
    HC_ASSERT_STREQ(x.interpreter_path, "/bin/sh");
    HC_ASSERT_STREQ(x.missing, NULL);
    HC_ASSERT_EQ_INT(x.run.count, 2);
    HC_ASSERT_STREQ(x.run.items[1], "${file}");
    HC_ASSERT_STREQ(x.run.items[2], NULL);
    HC_ASSERT_STREQ(x.compile_output, "main");
    HC_ASSERT(!x.compile_folder);
    HC_ASSERT_EQ_INT(x.error_exit_code, 1);
    HC_ASSERT_EQ_INT(x.compile.count, 2);
    HC_ASSERT_EQ_INT(x.env_count, 2);
    HC_ASSERT_STREQ(x.env[0].name, "A");
    HC_ASSERT_EQ_INT(x.etc_count, 3);
    HC_ASSERT(!x.etc[0].required && x.etc[1].required);
    HC_ASSERT_STREQ(x.etc[2].path, "/etc/passwd");
    HC_ASSERT_EQ_INT(x.error_style, HC_ERROR_STYLE_PYTHON);
    hc_runtime_done(&x);
    hc_runtime_done(&x);
}

HC_TEST(manifest_refuses)
{
    refuses("[]", "1:1", "expected a mapping, found a list");
    refuses(HEAD VERS, "1:1", "\"run\" is missing");
    refuses(HEAD RUN, "1:1", "\"version\" is missing");
    refuses(HEAD RUN VERS "colour: red\n", "7:1", "\"colour\" is not known");
    refuses(HEAD RUN VERS "compile: {command: [/bin/cc], output: a, x: 1}\n", "7:42", "\"x\" is not known");
    refuses(HEAD RUN VERS "title: 3\n", "7:8", "title: expected a text, found a number");
    refuses(HEAD RUN VERS "aliases: a\n", "7:10", "aliases: expected a list of texts, found a text");
    refuses(HEAD RUN VERS "aliases: [a, B]\n", "7:14", "\"B\" is not a name");
    refuses(HEAD RUN VERS "extensions: [py]\n", "7:14", "not a file ending");
    refuses(HEAD RUN VERS "env: [a]\n", "7:6", "env: expected a mapping");
    refuses(HEAD RUN VERS "env: {A: 1}\n", "7:10", "A: expected a text, found a number");
    refuses(HEAD RUN VERS "env: {a-b: x}\n", "7:12", "no name of a variable");
    refuses(HEAD RUN VERS "env: {A: \"${HOME}\"}\n", "7:10", "\"${HOME}\" is not known");
    refuses(HEAD RUN VERS "etc: [/home/x]\n", "7:7", "not a path below");
    refuses(HEAD RUN VERS "etc: [/etc/../root]\n", "7:7", "not a path below");
    refuses(HEAD RUN VERS "etc: [{path: \"/etc/*\", required: true}]\n", "7:7", "wildcards");
    refuses(HEAD RUN VERS "error: {style: cobol}\n", "7:16", "\"cobol\"");
    refuses(HEAD RUN VERS "error: {style: python, rules: [{pattern: x}]}\n", "7:8",
            "either a style or rules");
    refuses(HEAD RUN VERS "error: {rules: [{pattern: '('}]}\n", "7:17", "pattern: ");
    refuses(HEAD RUN VERS "error: {rules: [{pattern: '(x)', line: 2}]}\n", "7:17", "only 1 groups");
    refuses(HEAD RUN VERS "error: {rules: [{pattern: '${home}'}]}\n", "7:27", "\"${home}\" is not known");
    refuses(HEAD RUN VERS "error: {exit_code: 0}\n", "7:20", "expected 1 to 255");
    refuses(HEAD RUN VERS "compile: {command: [/bin/cc], output: a/b}\n", "7:39",
            "is not the name of a file");
    refuses(HEAD VERS "run: [\"${interpreter}\", \"${fil\"]\n", "6:25", "\"${fil\" is not known");
    refuses(HEAD VERS "run: [\"${output}\"]\n", "6:7", "without \"compile\"");
    refuses(HEAD VERS "run: []\n", "6:6", "the list is empty");
    refuses(HEAD VERS "run: [sh]\n", "6:7", "neither an absolute path");
    refuses(HEAD RUN "version: {command: [\"${file}\"], pattern: (x)}\n", "6:21", "\"${file}\" is not known");
    refuses(HEAD RUN "version: {command: [/bin/x], pattern: x}\n", "6:39", "exactly one group");
    refuses(HEAD RUN "version: {command: [/bin/x], pattern: \"(\"}\n", "6:39", "pattern: ");
    refuses(HEAD RUN "version: {command: [/bin/x], pattern: \"(a)(b)\"}\n", "6:39", "exactly one group");
    refuses("name: a@b\nfile: x\ninterpreter: /a\ninstall: i\n" RUN VERS, "1:7", "not a name");
    refuses("name: a\nfile: ../x\ninterpreter: /a\ninstall: i\n" RUN VERS, "2:7", "not a file name");
    refuses("name: a\nfile: x\ninterpreter: [a]\ninstall: i\n" RUN VERS, "3:15", "not an absolute path");
}

HC_TEST(manifest_refuses_trees_and_flags)
{
    refuses(HEAD RUN VERS "tree: {host: /srv/x, cell: /opt/x}\n", "3:14", "is not relative to the tree");
    refuses(HEAD RUN VERS "tree: {host: srv, cell: /opt/x}\n", "7:14", "not an absolute path");
    refuses(HEAD RUN VERS "tree: {host: /srv/x, cell: /usr/x}\n", "7:28", "not a place for a tree");
    refuses(HEAD RUN VERS "tree: {host: /srv/x, cell: /work}\n", "7:28", "not a place for a tree");
    refuses(HEAD RUN VERS "tree: {host: /tmp/x}\n", "7:7", "can't be its place in a cell too");
    refuses(HEAD RUN VERS "tree: {host: \"/srv/*/x\", cell: /opt/x}\n", "7:7", "the last part");
    refuses(HEAD RUN VERS "private_paths: yes\n", "7:16", "\"yes\" is not \"accept\"");
    refuses("extends: python\ninterpreter: bin/x\n", "2:14", "is not an absolute path");
    refuses("extends: python\ninterpreter: ../x\n", "2:14", "is not a path");
    refuses("extends: python\nvariant: 3x\ninterpreter: /usr/bin/x\n", "2:10", "does not begin with a digit");
    refuses("extends: python\nrun: [/bin/x]\ninterpreter: /usr/bin/x\n", "2:1", "\"run\" is not known");
    refuses("extends: python\ninterpreter: /usr/bin/x\nenv: {A: \"${tree}\"}\n", "1:1",
            "\"${tree}\" without \"tree\"");
    refuses(HEAD RUN VERS "compile_flags: {allow: [-O2]}\n", "7:16", "has no \"${flags}\"");
    refuses(HEAD RUN VERS "compile: {command: [/bin/cc, \"${flags}\"], output: a}\n", "7:20",
            "without \"compile_flags\"");
    refuses(HEAD RUN VERS "compile: {command: [/bin/cc, \"x${flags}\"], output: a}\n", "7:30", "whole word");
    refuses(HEAD RUN VERS "compile_flags: {allow: [O2]}\n", "7:25", "\"O2\" is not one flag");
    refuses(HEAD RUN VERS "compile_flags: {allow: [\"-f*x\"]}\n", "7:25", "a star can only end it");
    refuses(HEAD RUN VERS "compile_flags: {allow: [\"-*\"]}\n", "7:25", "not one flag");
    refuses(HEAD "run: [\"${interpreter}\", \"${flags}\"]\n" VERS, "5:25", "\"${flags}\" is not known");
    /* the folder is there, and no file system begins at it */
    in_folder char *folder = make_folder();
    hc_autofree char *text =
        hc_printf("extends: python\ntree: {host: %s, cell: /opt/x}\ninterpreter: x\n", folder);
    refuses(text, "2:7", "programs would see the path /tmp/hc-manifest-");
}

HC_TEST(flags_by_the_list)
{
    static const char text[] =
        HEAD RUN VERS "compile: {command: [/bin/cc, \"${file}\", \"${flags}\", -lm], output: a}\n"
                      "compile_flags: {allow: [-O2, \"-std=*\", \"-D*\"]}\n";
    const char *flags[] = {"-O2", "-std=c99"};
    struct hc_runtime x = {0};
    struct hc_strings argv = {0};
    struct hc_template_values values = {.file = "f", .flags = flags, .flag_count = 2};

    HC_ASSERT_EQ_INT(hc_runtime_read("x.yaml", text, sizeof text - 1, &x, NULL), 0);
    HC_ASSERT(hc_runtime_flag_allowed(&x, "-O2") && hc_runtime_flag_allowed(&x, "-std=gnu++17"));
    HC_ASSERT(hc_runtime_flag_allowed(&x, "-DX=1") && !hc_runtime_flag_allowed(&x, "-D"));
    HC_ASSERT(!hc_runtime_flag_allowed(&x, "-O3") && !hc_runtime_flag_allowed(&x, "-O2x"));
    HC_ASSERT(!hc_runtime_flag_allowed(&x, "-DX=/etc/passwd") && !hc_runtime_flag_allowed(&x, "-std=a b"));
    HC_ASSERT(!hc_runtime_flag_allowed(&x, "-std=@file") && !hc_runtime_flag_allowed(&x, "-*"));
    HC_ASSERT_EQ_INT(hc_template_expand_all(&x.compile, &values, &argv), 0);
    HC_ASSERT_EQ_INT(argv.count, 5);
    HC_ASSERT_STREQ(argv.items[2], "-O2");
    HC_ASSERT_STREQ(argv.items[3], "-std=c99");
    HC_ASSERT_STREQ(argv.items[4], "-lm");
    hc_strings_done(&argv);
    values.flag_count = 0;
    HC_ASSERT_EQ_INT(hc_template_expand_all(&x.compile, &values, &argv), 0);
    HC_ASSERT_EQ_INT(argv.count, 3);
    HC_ASSERT_STREQ(argv.items[3], NULL);
    hc_strings_done(&argv);
    hc_runtime_done(&x);
}

HC_TEST(manifest_missing_interpreter)
{
    static const char text[] =
        "name: x\nfile: x\ninterpreter: [/none, /etc/passwd, /tmp]\ninstall: get x\n" RUN VERS;
    struct hc_runtime x = {0};
    struct hc_problem problem = {0};
    char version[64], digest[65];

    HC_ASSERT_EQ_INT(hc_runtime_read("x.yaml", text, sizeof text - 1, &x, &problem), 0);
    HC_ASSERT_STREQ(x.interpreter_path, NULL);
    HC_ASSERT_STREQ(x.missing, "x is not installed: there is no /none or another of its places (get x)");
    HC_ASSERT_EQ_INT(hc_runtime_version(&x, version), HC_VERSION_ABSENT);
    HC_ASSERT_EQ_INT(hc_runtime_digest(&x, digest), HC_VERSION_ABSENT);
    hc_runtime_done(&x);
}

HC_TEST(templates)
{
    const struct hc_template_values values = {
        .interpreter = "/i", .file = "f", .home = "/h", .threads = 2, .memory_mib = 512};
    static const struct {
        const char *template, *expected;
        int outcome;
    } rows[] = {
        {"", "", 0},
        {"${interpreter}${file}", "/if", 0},
        {"a${home}/b-${threads}-${memory_mib}", "a/h/b-2-512", 0},
        {"$$${file}$x$", "$f$x$", 0},
        {"$${file}", "${file}", 0},
        {"${output}", NULL, -EINVAL},
        {"${x}", NULL, HC_BAD_INPUT},
        {"${file", NULL, HC_BAD_INPUT},
        {"${}", NULL, HC_BAD_INPUT},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hc_autofree char *text = NULL;
        HC_ASSERT_EQ_INT(hc_template_expand(rows[i].template, &values, &text), rows[i].outcome);
        HC_ASSERT_STREQ(text, rows[i].expected);
    }
}

/* ---- folders ---- */

static int load(const char *a, const char *b, struct hc_runtimes **ret, struct hc_problem *problem)
{
    const char *const folders[] = {a, b};

    return hc_runtimes_load(folders, b ? 2 : 1, ret, problem);
}

HC_TEST(runtimes_load_and_find)
{
    in_folder char *a = make_folder();
    in_folder char *b = make_folder();
    struct hc_runtimes *all = NULL;
    struct hc_problem problem = {0};

    put_file(a, "2.yaml", 0644, HEAD RUN VERS "aliases: [ex]\nextensions: [.x, .tar.x]\n");
    put_file(a, "1.yaml", 0644,
             "name: one\nfile: f\ninterpreter: /a\ninstall: i\nextensions: [.b.x]\n" RUN VERS);
    put_file(a, "other.yml", 0644, "nonsense: [");
    put_file(a, ".hidden.yaml", 0644, "nonsense: [");
    HC_ASSERT_EQ_INT(load(a, "/none/such", &all, &problem), 0);
    HC_ASSERT_EQ_INT(all->count, 2);
    HC_ASSERT_STREQ(all->items[0].name, "one");
    HC_ASSERT(hc_runtime_by_name(all, "EX") == &all->items[1]);
    HC_ASSERT(hc_runtime_by_name(all, "none") == NULL);
    HC_ASSERT(hc_runtime_by_extension(all, "/a.b/c.x") == &all->items[1]);
    HC_ASSERT(hc_runtime_by_extension(all, "a.b.x") == &all->items[0]);
    HC_ASSERT(hc_runtime_by_extension(all, "d/.x") == NULL);
    HC_ASSERT(hc_runtime_by_extension(all, "x") == NULL);
    HC_ASSERT(hc_runtime_by_extension(all, "") == NULL);
    hc_runtimes_done(all);

    all = NULL;
    put_file(b, "z.yaml", 0644, "name: z\naliases: [ex]\nfile: f\ninterpreter: /a\ninstall: i\n" RUN VERS);
    HC_ASSERT_EQ_INT(load(a, b, &all, &problem), HC_BAD_INPUT);
    HC_ASSERT(strstr(problem.message, "\"ex\"") && strstr(problem.message, "/2.yaml") &&
              strstr(problem.message, "/z.yaml"));
    put_file(b, "z.yaml", 0644,
             "name: z\nextensions: [.b.x]\nfile: f\ninterpreter: /a\ninstall: i\n" RUN VERS);
    HC_ASSERT_EQ_INT(load(a, b, &all, &problem), HC_BAD_INPUT);
    HC_ASSERT(strstr(problem.message, "\".b.x\""));
    put_file(b, "z.yaml", 0644, "name: z\nfile: [\n");
    HC_ASSERT_EQ_INT(load(b, NULL, &all, &problem), HC_BAD_INPUT);
    HC_ASSERT(strstr(problem.file, "/z.yaml"));
    HC_ASSERT_EQ_INT(problem.line, 3);
    hc_autofree char *file = hc_printf("%s/z.yaml", b);
    HC_ASSERT_EQ_INT(load(file, NULL, &all, &problem), -ENOTDIR);
    HC_ASSERT(all == NULL);
}

/* A tool that says this version of itself. */
static void put_tool(const char *folder, const char *name, const char *version)
{
    hc_autofree char *script = hc_printf("#!/bin/sh\necho v%s\n", version);

    put_file(folder, name, 0755, script);
}

HC_TEST(several_versions)
{
    in_folder char *manifests = make_folder();
    in_folder char *tools = make_folder();
    hc_autofree char *one = hc_printf("%s/one", tools), *two = hc_printf("%s/two", tools);
    hc_autofree char *extra =
        hc_printf("extends: x\nvariant: lab\ntree: {host: \"%s/t*\", cell: /opt/x}\n"
                  "interpreter: tool\nprivate_paths: accept\nenv: {B: two, C: \"${tree}\"}\n",
                  tools);
    hc_autofree char *base =
        hc_printf("name: x\nfile: x\ninstall: i\nenv: {A: one, B: one}\ninterpreter: [tool, \"tool-[0-9]\"]\n"
                  "tree: {host: %s, cell: /opt/y}\nprivate_paths: accept\n" RUN
                  "version: {command: [\"${interpreter}\"], pattern: \"^v([0-9.]+)$\"}\n",
                  one);
    struct hc_runtimes *all = NULL;
    struct hc_problem problem = {0};
    char version[64];

    use_cache(manifests);
    HC_ASSERT(mkdir(one, 0755) == 0 && mkdir(two, 0755) == 0);
    put_tool(one, "tool", "3.11.2");
    put_tool(one, "tool-1", "3.1.0");
    hc_autofree char *again = hc_printf("%s/tool-2", one);
    HC_ASSERT_EQ_INT(symlink("tool", again), 0); /* the same once more */
    put_tool(two, "tool", "3.12.0");
    put_file(manifests, "a.yaml", 0644, extra); /* before what it extends */
    put_file(manifests, "b.yaml", 0644, base);
    HC_ASSERT_EQ_INT(load(manifests, NULL, &all, &problem), 0);
    HC_ASSERT_EQ_INT(all->count, 1);
    const struct hc_runtime *x = hc_runtime_by_name(all, "x");
    HC_ASSERT_EQ_INT(x->variant_count, 2);
    HC_ASSERT_STREQ(x->interpreter->place, "/opt/y/tool");
    HC_ASSERT(hc_runtime_of_version(x, "3", version) == x);
    HC_ASSERT(hc_runtime_of_version(x, "3.11", version) == x);
    HC_ASSERT_STREQ(version, "3.11.2");
    HC_ASSERT_STREQ(hc_runtime_of_version(x, "3.1", version)->interpreter->place, "/opt/y/tool-1");
    const struct hc_runtime *lab = hc_runtime_of_version(x, "3.12.0", version);
    HC_ASSERT(lab != NULL && lab == hc_runtime_of_version(x, "lab", version));
    HC_ASSERT_STREQ(lab->interpreter->place, "/opt/x/two/tool");
    HC_ASSERT_STREQ(lab->interpreter->tree_host, two);
    HC_ASSERT_EQ_INT(lab->env_count, 3);
    HC_ASSERT_STREQ(lab->env[1].value, "two");
    HC_ASSERT(strcmp(lab->manifest_sha256, x->manifest_sha256) != 0);
    HC_ASSERT(hc_runtime_of_version(x, "3.13", version) == NULL &&
              hc_runtime_of_version(x, "", version) == NULL);
    hc_runtimes_done(all);

    all = NULL;
    put_file(manifests, "c.yaml", 0644, extra);
    HC_ASSERT_EQ_INT(load(manifests, NULL, &all, &problem), HC_BAD_INPUT);
    HC_ASSERT(strstr(problem.message, "the variant \"lab\" is in") && strstr(problem.file, "/c.yaml"));
    put_file(manifests, "c.yaml", 0644, "extends: nobody\ninterpreter: /usr/bin/x\n");
    HC_ASSERT_EQ_INT(load(manifests, NULL, &all, &problem), HC_BAD_INPUT);
    HC_ASSERT(strstr(problem.message, "extends \"nobody\""));
}

HC_TEST(shipped_manifests)
{
    static const char *const names[] = {"python", "bash", "c"};
    struct hc_runtimes *all = NULL;
    struct hc_problem problem = {0};

    int r = load(HC_TEST_SHARE "/runtimes", NULL, &all, &problem);
    hc_autofree char *text = hc_problem_text(&problem);
    if (r)
        hc_test_fail(__FILE__, __LINE__, "%d %s", r, text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct hc_runtime *found = hc_runtime_by_name(all, names[i]);
        HC_ASSERT(found != NULL);
        HC_ASSERT(hc_runtime_by_extension(all, found->file) == found);
    }
    hc_runtimes_done(all);
}

/* ---- versions and digests ---- */

static struct hc_runtime make_runtime(const char *folder, const char *script)
{
    struct hc_runtime x = {0};
    struct hc_problem problem = {0};
    hc_autofree char *text =
        hc_printf("name: x\nfile: x\ninstall: i\ninterpreter: tool\ntree: {host: %s, cell: /opt/x}\n"
                  "private_paths: accept\n" RUN
                  "version: {command: [\"${interpreter}\", a], pattern: \"^v([0-9.]+)$\"}\n"
                  "digest: [%s/lib, %s/none]\n",
                  folder, folder, folder);

    put_file(folder, "tool", 0755, script);
    HC_ASSERT_EQ_INT(hc_runtime_read("x.yaml", text, strlen(text), &x, &problem), 0);
    HC_ASSERT(x.interpreter_path != NULL);
    return x;
}

HC_TEST(version_is_cached)
{
    in_folder char *folder = make_folder();
    hc_autofree char *cache = hc_printf("%s/a/cache", folder);
    hc_autofree char *json = hc_printf("%s/hotcell/versions.json", cache);
    hc_autofree char *mark = hc_printf("%s/mark", folder);
    hc_autofree char *script = hc_printf("#!/bin/sh\necho x >>%s\necho hello; echo v1.$# >&2\n", mark);
    struct hc_runtime x = make_runtime(folder, script);
    struct stat st;
    char version[64];

    use_cache(cache);
    for (int i = 0; i < 2; i++) {
        HC_ASSERT_EQ_INT(hc_runtime_version(&x, version), 0);
        HC_ASSERT_STREQ(version, "1.1");
        HC_ASSERT(stat(mark, &st) == 0 && st.st_size == 2);
    }
    for (int i = 0; i < 3; i++) { /* broken in three ways, each time rewritten */
        static const char *const broken[] = {"{", "[]", "{\"version\": 1, \"entries\": {\"a\": 1}}"};
        put_file(cache, "hotcell/versions.json", 0600, broken[i]);
        HC_ASSERT_EQ_INT(hc_runtime_version(&x, version), 0);
        HC_ASSERT_EQ_INT(hc_runtime_version(&x, version), 0);
        HC_ASSERT(stat(mark, &st) == 0 && st.st_size == 4 + 2 * i);
    }
    hc_autofree char *other = hc_printf("%s# changed\n", script);
    put_file(folder, "tool", 0755, other);
    HC_ASSERT_EQ_INT(hc_runtime_version(&x, version), 0);
    HC_ASSERT(stat(mark, &st) == 0 && st.st_size == 10);
    use_cache("/proc/none");
    HC_ASSERT_EQ_INT(hc_runtime_version(&x, version), 0);
    HC_ASSERT(stat(json, &st) == 0 && S_ISREG(st.st_mode));
    hc_runtime_done(&x);
}

static void version_unknown(const char *script)
{
    in_folder char *folder = make_folder();
    struct hc_runtime x = make_runtime(folder, script);
    char version[64] = "kept";

    use_cache(folder);
    HC_ASSERT_EQ_INT(hc_runtime_version(&x, version), HC_VERSION_UNKNOWN);
    HC_ASSERT_STREQ(version, "kept");
    hc_runtime_done(&x);
}

HC_TEST(version_unknown)
{
    version_unknown("#!/bin/sh\necho v1.2; exit 1\n");
    version_unknown("#!/bin/sh\necho version 1.2\n");
    version_unknown("#!/bin/sh\nkill -9 $$\n");
    version_unknown("#!/none/such\n");
    version_unknown("#!/bin/sh\nread x && echo v1\n");
    version_unknown("#!/bin/sh\nexec yes\n");
    version_unknown("#!/bin/sh\nprintf 'v%0100d\\n' 1\n");
}

HC_TEST(version_environment)
{
    in_folder char *folder = make_folder();
    struct hc_runtime x = make_runtime(
        folder, "#!/bin/sh\n[ \"$PWD\" = / ] && [ $LANG = C.UTF-8 ] && [ -z \"$XDG_CACHE_HOME$HOME\" ] "
                "&& [ \"$(ls /proc/self/fd | wc -l)\" -le 4 ] && echo v7\n");
    char version[64];

    use_cache(folder);
    HC_ASSERT_EQ_INT(hc_runtime_version(&x, version), 0);
    HC_ASSERT_STREQ(version, "7");
    hc_runtime_done(&x);
}

HC_TEST(version_hangs)
{
    uint64_t begin = hc_now_us();

    version_unknown("#!/bin/sh\necho v1\nsleep 60 &\nsleep 60\n");
    HC_ASSERT(hc_now_us() - begin >= 4900000 && hc_now_us() - begin < 10000000);
}

HC_TEST(digest_follows_what_is_installed)
{
    in_folder char *folder = make_folder();
    hc_autofree char *lib = hc_printf("%s/lib", folder);
    struct hc_runtime x = make_runtime(folder, "#!/bin/sh\n");
    char first[65], second[65];

    HC_ASSERT_EQ_INT(hc_runtime_digest(&x, first), 0);
    HC_ASSERT_EQ_INT(hc_runtime_digest(&x, second), 0);
    HC_ASSERT_STREQ(first, second);
    HC_ASSERT_EQ_INT(mkdir(lib, 0755), 0);
    HC_ASSERT_EQ_INT(hc_runtime_digest(&x, second), 0);
    HC_ASSERT(strcmp(first, second) != 0);
    put_file(folder, "lib/a", 0644, "1");
    HC_ASSERT_EQ_INT(hc_runtime_digest(&x, first), 0);
    HC_ASSERT(strcmp(first, second) != 0);
    put_file(folder, "lib/a", 0644, "12");
    HC_ASSERT_EQ_INT(hc_runtime_digest(&x, second), 0);
    HC_ASSERT(strcmp(first, second) != 0);
    put_file(folder, "tool", 0755, "#!/bin/sh\n#\n");
    HC_ASSERT_EQ_INT(hc_runtime_digest(&x, first), 0);
    HC_ASSERT(strcmp(first, second) != 0);
    hc_runtime_done(&x);
}
