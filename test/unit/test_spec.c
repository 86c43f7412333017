/* A request as it is put together: names of inputs, parents, sums, environment. */
#include "cell/spec.h"

#include "base/cleanup.h"

#include "harness.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct hc_spec fresh(void)
{
    struct hc_spec spec;
    HC_ASSERT_EQ_INT(hc_spec_init(&spec), 0);
    return spec;
}
#define autospec __attribute__((cleanup(hc_spec_done))) struct hc_spec

static int add(struct hc_spec *spec, const char *name, const char *text, struct hc_refusal *refusal)
{
    return hc_spec_add_input(spec, name, false, (uint8_t *)strdup(text), strlen(text), refusal);
}

static void refused(int outcome, const struct hc_refusal *refusal, const char *field, const char *message)
{
    HC_ASSERT_EQ_INT(outcome, HC_REFUSED);
    HC_ASSERT_STREQ(refusal->field, field);
    HC_ASSERT_EQ_INT(refusal->cause, HC_CAUSE_FIELD);
    if (strstr(refusal->message, message) == NULL)
        hc_test_fail(__FILE__, __LINE__, "'%s' lacks '%s'", refusal->message, message);
}

HC_TEST(begins_with_defaults)
{
    autospec spec = fresh();
    HC_ASSERT_STREQ(spec.profile, "standard");
    HC_ASSERT_EQ_INT(spec.stdin_fd, -1);
    HC_ASSERT_EQ_INT(spec.min_grade, HC_GRADE_B);
    for (int i = 0; i < HC_LIMIT_COUNT; i++)
        HC_ASSERT(!spec.limit_asked[i]);
}

HC_TEST(inputs_get_their_parents_first)
{
    autospec spec = fresh();
    struct hc_refusal refusal = {0};
    HC_ASSERT_EQ_INT(add(&spec, "a/b/c.txt", "abc", &refusal), 0);
    HC_ASSERT_EQ_INT(add(&spec, "a/b/d.txt", "", &refusal), 0);
    static const char *const names[] = {"a", "a/b", "a/b/c.txt", "a/b/d.txt"};
    HC_ASSERT_EQ_INT(spec.input_count, 4);
    for (size_t i = 0; i < 4; i++) {
        HC_ASSERT_STREQ(spec.inputs[i].name, names[i]);
        HC_ASSERT_EQ_INT(spec.inputs[i].folder, i < 2);
        HC_ASSERT_EQ_INT(spec.inputs[i].mode, i < 2 ? 0755 : 0444);
    }
    HC_ASSERT_EQ_INT(spec.input_bytes, 3);
    HC_ASSERT_STREQ(spec.inputs[2].sha256,
                    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

HC_TEST(bad_names_are_refused)
{
    static const char *const names[] = {"",     "/etc/passwd", "..",  "../x", "a/../b",
                                        "a/..", ".",           "./a", "a//b", "a/",
                                        "a\nb", "\x7f",        "a/.", "\x01", "a/./b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        autospec spec = fresh();
        struct hc_refusal refusal = {0};
        refused(add(&spec, names[i], "x", &refusal), &refusal, "file", "the name in the cell");
        HC_ASSERT_EQ_INT(spec.input_count, 0);
    }
    static const char *const good[] = {"a",   "...",  ".hidden", "a b", "..a/b..", "\xc3\xa4.txt",
                                       "-rf", "$(x)", "a\\b"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        autospec spec = fresh();
        struct hc_refusal refusal = {0};
        HC_ASSERT_EQ_INT(add(&spec, good[i], "x", &refusal), 0);
    }
}

HC_TEST(names_are_given_once)
{
    autospec spec = fresh();
    struct hc_refusal refusal = {0};
    HC_ASSERT_EQ_INT(add(&spec, "a/x", "1", &refusal), 0);
    refused(add(&spec, "a/x", "2", &refusal), &refusal, "file", "given twice");
    refused(add(&spec, "a", "2", &refusal), &refusal, "file", "given twice");
    refused(add(&spec, "a/x/y", "2", &refusal), &refusal, "file", "is a file already");
    HC_ASSERT_EQ_INT(hc_spec_add_input(&spec, "a", true, NULL, 0, &refusal),
                     0); /* a folder twice is one folder */
    HC_ASSERT_EQ_INT(spec.input_count, 2);
}

HC_TEST(inputs_are_bounded)
{
    autospec spec = fresh();
    struct hc_refusal refusal = {0};
    spec.input_bytes = HC_SPEC_INPUT_BYTES_MAX - 3;
    HC_ASSERT_EQ_INT(add(&spec, "a", "123", &refusal), 0);
    refused(add(&spec, "b", "1", &refusal), &refusal, "file", "256M in all");
    spec.input_bytes = 0;
    for (int i = 0; spec.input_count < 20000; i++) {
        /* not through the front door: that looks every name up */
        char name[24];
        (void)snprintf(name, sizeof name, "f%d", i);
        if (spec.input_count % 64 == 0)
            spec.inputs = realloc(spec.inputs, (spec.input_count + 64) * sizeof *spec.inputs);
        spec.inputs[spec.input_count++] = (struct hc_input){.name = strdup(name)};
    }
    refused(add(&spec, "one-more", "", &refusal), &refusal, "file", "20000");
}

HC_TEST(environment)
{
    autospec spec = fresh();
    struct hc_refusal refusal = {0};
    HC_ASSERT_EQ_INT(hc_spec_add_env(&spec, "A=1", &refusal), 0);
    HC_ASSERT_EQ_INT(hc_spec_add_env(&spec, "AB=", &refusal), 0);
    HC_ASSERT_EQ_INT(hc_spec_add_env(&spec, "_x9=a=b c", &refusal), 0);
    HC_ASSERT_STREQ(spec.env[2], "_x9=a=b c");
    refused(hc_spec_add_env(&spec, "A=2", &refusal), &refusal, "env", "given twice");
    refused(hc_spec_add_env(&spec, "A", &refusal), &refusal, "env", "NAME=VALUE");
    refused(hc_spec_add_env(&spec, "=x", &refusal), &refusal, "env", "begins with");
    refused(hc_spec_add_env(&spec, "9A=x", &refusal), &refusal, "env", "begins with");
    refused(hc_spec_add_env(&spec, "A-B=x", &refusal), &refusal, "env", "letters, digits");
    refused(hc_spec_add_env(&spec, "\xc3\xa4=x", &refusal), &refusal, "env", "letters, digits");
    HC_ASSERT_EQ_INT(spec.env_count, 3);
}

HC_TEST(environment_is_bounded)
{
    autospec spec = fresh();
    struct hc_refusal refusal = {0};
    hc_autofree char *large = malloc(70000);
    HC_ASSERT(large != NULL);
    memset(large, 'x', 70000);
    memcpy(large, "L=", 2);
    large[65535] = '\0';
    refused(hc_spec_add_env(&spec, "S=1", &refusal) == 0 ? hc_spec_add_env(&spec, large, &refusal) : 0,
            &refusal, "env", "in all");
    for (int i = 1; i < 256; i++) {
        char variable[32];
        (void)snprintf(variable, sizeof variable, "V%d=1", i);
        HC_ASSERT_EQ_INT(hc_spec_add_env(&spec, variable, &refusal), 0);
    }
    refused(hc_spec_add_env(&spec, "ONE_MORE=1", &refusal), &refusal, "env", "more than 256");
}

HC_TEST(done_closes_and_may_be_repeated)
{
    struct hc_spec spec = fresh();
    struct hc_refusal refusal = {0};
    spec.stdin_fd = dup(0);
    HC_ASSERT_EQ_INT(add(&spec, "x/y", "1", &refusal), 0);
    HC_ASSERT_EQ_INT(hc_spec_add_arg(&spec, "argument"), 0);
    hc_spec_done(&spec);
    HC_ASSERT_EQ_INT(spec.stdin_fd, -1);
    hc_spec_done(&spec);
}
