/* What programs say of their failures, as CPython, gcc, clang and bash print it; and text that only looks so.
 */
#include "flow/diagnose.h"

#include "base/utf8.h"

#include "harness.h"

#include <stdlib.h>
#include <string.h>

typedef void diagnose(const char *, size_t, const char *, struct hc_diagnosis *);

static void says(diagnose *read, const char *text, const char *program, const char *type, const char *message,
                 long line)
{
    struct hc_diagnosis d;
    read(text, strlen(text), program, &d);
    HC_ASSERT(d.found);
    HC_ASSERT_STREQ(d.type, type);
    HC_ASSERT_STREQ(d.message, message);
    HC_ASSERT_EQ_INT(d.line, line);
    HC_ASSERT_STREQ(d.file, line > 0 ? program : "");
}

static void says_nothing(diagnose *read, const char *text)
{
    struct hc_diagnosis d;
    read(text, strlen(text), "main.py", &d);
    HC_ASSERT(!d.found);
    HC_ASSERT_EQ_INT(d.line, 0);
}

HC_TEST(python_traceback)
{
    says(hc_diagnose_python,
         "Traceback (most recent call last):\n"
         "  File \"/work/main.py\", line 7, in <module>\n    f()\n"
         "  File \"/work/main.py\", line 3, in f\n    return 1/0\n           ~^~\n"
         "ZeroDivisionError: division by zero\n",
         "main.py", "ZeroDivisionError", "division by zero", 3);
}

HC_TEST(python_line_is_the_programs_own)
{
    says(hc_diagnose_python,
         "Traceback (most recent call last):\n"
         "  File \"main.py\", line 2, in <module>\n    json.loads('{')\n"
         "  File \"/usr/lib/python3.11/json/__init__.py\", line 346, in loads\n    return "
         "_default_decoder.decode(s)\n"
         "json.decoder.JSONDecodeError: Expecting property name: line 1 column 2 (char 1)\n",
         "main.py", "json.decoder.JSONDecodeError", "Expecting property name: line 1 column 2 (char 1)", 2);
}

HC_TEST(python_syntax_error)
{
    says(hc_diagnose_python,
         "  File \"/work/answer.py\", line 1\n    print(\n         ^\nSyntaxError: '(' was never closed\n",
         "answer.py", "SyntaxError", "'(' was never closed", 1);
}

HC_TEST(python_exception_without_message)
{
    says(hc_diagnose_python,
         "noise\nTraceback (most recent call last):\n  File \"/work/main.py\", line 1, in <module>\n    "
         "assert 0\nAssertionError",
         "main.py", "AssertionError", "", 1);
}

HC_TEST(python_chained_exceptions_end_with_the_last)
{
    says(hc_diagnose_python,
         "Traceback (most recent call last):\n  File \"/work/main.py\", line 2, in <module>\n    "
         "a\nNameError: name 'a'\n\n"
         "During handling of the above exception, another exception occurred:\n\n"
         "Traceback (most recent call last):\n  File \"/work/main.py\", line 9, in <module>\n    raise B(1) "
         "from None\n"
         "__main__.B: 1\n",
         "main.py", "__main__.B", "1", 9);
}

HC_TEST(python_exception_groups)
{
    says(hc_diagnose_python,
         "Traceback (most recent call last):\n"
         "  File \"/work/main.py\", line 2, in <module>\n    1/0\n"
         "ZeroDivisionError: division by zero\n\n"
         "During handling of the above exception, another exception occurred:\n\n"
         "  + Exception Group Traceback (most recent call last):\n"
         "  |   File \"/work/main.py\", line 4, in <module>\n"
         "  |     raise ExceptionGroup('many', [ValueError(1)])\n"
         "  | ExceptionGroup: many (1 sub-exception)\n"
         "  +-+---------------- 1 ----------------\n"
         "    | Traceback (most recent call last):\n"
         "    |   File \"/work/main.py\", line 9, in f\n"
         "    | ValueError: 1\n"
         "    +------------------------------------\n",
         "main.py", "ExceptionGroup", "many (1 sub-exception)", 4);
    says_nothing(hc_diagnose_python, "  + Exception Group Traceback (most recent call last):\n  |");
}

HC_TEST(python_frames_of_other_tracebacks_do_not_count)
{
    says(hc_diagnose_python,
         "  File \"/work/main.py\", line 99, in old\n"
         "Traceback (most recent call last):\n  File \"/usr/lib/python3.11/runpy.py\", line 5, in "
         "x\nOSError: [Errno 28] full\n",
         "main.py", "OSError", "[Errno 28] full", 0);
}

HC_TEST(python_nothing_to_read)
{
    says_nothing(hc_diagnose_python, "");
    says_nothing(hc_diagnose_python, "\n\n\n");
    says_nothing(hc_diagnose_python, "two words\n");
    says_nothing(hc_diagnose_python, "12: no name\n");
}

HC_TEST(compilers)
{
    says(hc_diagnose_compiler,
         "main.c: In function 'main':\nmain.c:3:9: warning: unused variable 'x' [-Wunused-variable]\n"
         "main.c:4:12: error: 'y' undeclared (first use in this function)\nmain.c:5:1: error: second\n",
         "main.c", "error", "'y' undeclared (first use in this function)", 4);
    says(hc_diagnose_compiler,
         "main.c:1:10: fatal error: nothere.h: No such file or directory\ncompilation terminated.\n",
         "main.c", "error", "nothere.h: No such file or directory", 1);
    says_nothing(hc_diagnose_compiler,
                 "/usr/bin/ld: cannot find -lnothere\ncollect2: error: ld returned 1 exit status\n");
    says_nothing(hc_diagnose_compiler, "other.c:1:1: error: not ours\n");
    says_nothing(hc_diagnose_compiler, "main.py:x:1: error: no number\nmain.py:-1:2: error: nor this\n");
    says(hc_diagnose_compiler,
         "/usr/bin/ld: /tmp/x.o: in function `main':\nmain.c:(.text+0x1): undefined reference to `f'\n"
         "collect2: error: ld returned 1 exit status\n",
         "main.c", "error", "undefined reference to `f'", 0);
}

/* As a manifest would have them for a shell: the last complaint is the one that ended the script. */
static struct hc_error_rule shell_rule = {
    .pattern = (char *)"^${file}: line ([0-9]+): (.*)$", .line = 1, .message = 2, .last = true};
static const struct hc_error_rules shell_rules = {&shell_rule, 1};

static void by_rules(const char *text, size_t n, const char *program, struct hc_diagnosis *ret)
{
    hc_diagnose_rules(&shell_rules, text, n, false, program, ret);
}

HC_TEST(rules_of_a_manifest)
{
    says(by_rules,
         "main.sh: line 2: nothere: command not found\nmain.sh: line 7: cd: /x: No such file or directory\n",
         "main.sh", "", "cd: /x: No such file or directory", 7);
    /* the dot of the name is a dot, not any character */
    struct hc_diagnosis d;
    by_rules("mainxsh: line 2: no\n", 20, "main.sh", &d);
    HC_ASSERT(!d.found);
    says_nothing(by_rules, "main.py: line x: no\n");
    says_nothing(by_rules, "line 2: no name\n");
    says_nothing(by_rules, "");
}

HC_TEST(rules_meet_a_name_that_looks_like_a_pattern)
{
    says(by_rules, "a[0].*+(x)$^|.sh: line 3: oops\n", "a[0].*+(x)$^|.sh", "", "oops", 3);
}

static void by_list(const struct hc_error_rule *items, size_t count, const char *text, bool at_head,
                    struct hc_diagnosis *ret)
{
    const struct hc_error_rules rules = {(struct hc_error_rule *)(uintptr_t)items, count};
    hc_diagnose_rules(&rules, text, strlen(text), at_head, "main.x", ret);
}

HC_TEST(rules_fill_what_is_missing)
{
    static char last[] = "^(.*Error): (.*)$", place[] = "^${file}:([0-9]+)$",
                frame[] = "^ at ${file}:([0-9]+)", any[] = "^(.*)$";
    static const struct hc_error_rule items[] = {
        {.pattern = last, .type = 1, .message = 2, .last = true},
        {.pattern = place, .line = 1},
        {.pattern = frame, .line = 1},
        {.pattern = any, .type = 1, .message = 1},
    };
    struct hc_diagnosis d;
    by_list(items, 4, "AError: one\nBError: two\n at main.x:7\n at main.x:9\nend\n", false, &d);
    HC_ASSERT(d.found);
    HC_ASSERT_STREQ(d.type, "BError");
    HC_ASSERT_STREQ(d.message, "two");
    HC_ASSERT_EQ_INT(d.line, 7);
    HC_ASSERT_STREQ(d.file, "main.x");
    by_list(items, 3, "AError: one\nmain.x:3\n at main.x:7", false, &d);
    HC_ASSERT_EQ_INT(d.line, 3);
    by_list(items + 1, 2, "main.x:3\n", false, &d); /* a line alone is no error */
    HC_ASSERT(!d.found && d.line == 0);
}

HC_TEST(rules_look_at_the_end_or_the_head)
{
    enum { SIZE = 200000 };
    static char pattern[] = "^E ([0-9]+) (.*)$";
    static const struct hc_error_rule item = {.pattern = pattern, .line = 1, .message = 2};
    struct hc_diagnosis d;
    char *text = malloc(SIZE + 1);
    HC_ASSERT(text != NULL);
    memset(text, 'x', SIZE);
    memcpy(text, "E 1 first\n", 10);
    memcpy(text + SIZE - 9, "\nE 2 last", 10);
    by_list(&item, 1, text, false, &d);
    HC_ASSERT(d.found && d.line == 2);
    by_list(&item, 1, text, true, &d);
    HC_ASSERT(d.found && d.line == 1);
    free(text);
}

/* The text comes from the program: any bytes, any length, and the answer is text that a record can hold. */
HC_TEST(any_bytes)
{
    static diagnose *const readers[] = {hc_diagnose_python, hc_diagnose_compiler, by_rules};
    static const char *const pieces[] = {
        "main.py", ":",         "\n",   "  File \"", "\", line ",        "Error: ", "error: ",
        ": line ", "Traceback", "\xff", "\xc3",      "\xf0\x9f\x90\x8d", "1",       "99999999999999999999",
        " ",       ""};
    uint64_t seed = 7;
    for (int round = 0; round < 30000; round++) {
        char text[2048] = "";
        size_t n = 0;
        for (uint64_t count = hc_test_random(&seed) % 40; count > 0; count--) {
            const char *piece = pieces[hc_test_random(&seed) % (sizeof pieces / sizeof *pieces)];
            memcpy(text + n, piece, strlen(piece));
            n += strlen(piece);
            if (hc_test_random(&seed) % 50 == 0)
                text[n++] = '\0';
        }
        /* exactly as large as it is: a read beyond the closing NUL is seen by the sanitizer */
        char *exact = malloc(n + 1);
        HC_ASSERT(exact != NULL);
        memcpy(exact, text, n);
        exact[n] = '\0';
        struct hc_diagnosis d;
        readers[round % 3](exact, n, "main.py", &d);
        HC_ASSERT(hc_utf8_valid(d.type, strlen(d.type)) && hc_utf8_valid(d.message, strlen(d.message)));
        free(exact);
    }
}

HC_TEST(long_lines_are_cut_on_a_border)
{
    char text[4096] = "Traceback (most recent call last):\n"
                      "  File \"/work/main.py\", line 1, in <module>\n    f()\nValueError: ";
    size_t head = strlen(text);
    for (size_t at = head; at + 3 < sizeof text; at += 2)
        memcpy(text + at, "\xc3\xa4", 3);
    struct hc_diagnosis d;
    hc_diagnose_python(text, strlen(text), "main.py", &d);
    HC_ASSERT(d.found && strlen(d.message) > 500 && strlen(d.message) < sizeof d.message);
    HC_ASSERT(hc_utf8_valid(d.message, strlen(d.message)));
}
