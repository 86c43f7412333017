/* Data sets as they come, and classes of errors. */
#include "eval/compare.h"
#include "eval/item.h"
#include "eval/shapes.h"
#include "eval/taxonomy.h"

#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *shape(const char *text)
{
    json_error_t wrong;
    json_t *root = json_loads(text, 0, &wrong), *item = NULL;
    struct hc_refusal refusal = {0};
    if (root == NULL)
        hc_test_fail(__FILE__, __LINE__, "%s: %s", text, wrong.text);
    int error = hc_eval_shape(root, &item, &refusal);
    json_decref(root);
    if (error != 0)
        hc_test_fail(__FILE__, __LINE__, "%s: %s", text, refusal.message);
    return item;
}

static void refuses(const char *text, const char *message)
{
    json_t *root = json_loads(text, 0, NULL), *item = NULL;
    struct hc_refusal refusal = {0};
    HC_ASSERT_EQ_INT(hc_eval_shape(root, &item, &refusal), HC_REFUSED);
    HC_ASSERT(item == NULL);
    if (strstr(refusal.message, message) == NULL)
        hc_test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", refusal.message, message);
    json_decref(root);
}

static const char *text(const json_t *item, const char *name)
{
    return json_string_value(json_object_get(item, name));
}

static const char *expect(const json_t *item, const char *name)
{
    return json_string_value(json_object_get(json_object_get(item, "expect"), name));
}

static double value(const json_t *item)
{
    return json_number_value(json_object_get(json_object_get(item, "expect"), "value"));
}

HC_TEST(own_items_are_left_alone)
{
    HC_ASSERT(shape("{\"id\":\"a\",\"language\":\"python\",\"program\":\"x\",\"question\":\"q\"}") == NULL);
    HC_ASSERT(shape("{\"id\":\"a\",\"language\":\"python\",\"code\":\"x\"}") == NULL);
    HC_ASSERT(shape("{\"question\":\"q\",\"answer\":\"no mark\"}") == NULL);
    HC_ASSERT(shape("{}") == NULL);
}

HC_TEST(gsm8k_items)
{
    json_t *item = shape("{\"question\":\"q\",\"answer\":\"so <<1+1=2>>\\n#### 1,234\",\"completion\":"
                         "\"def solution():\\n    return 1234\",\"limits\":{\"wall_s\":3},\"extra\":1}");
    HC_ASSERT_STREQ(text(item, "language"), "python");
    HC_ASSERT_STREQ(text(item, "suite"), "gsm8k");
    HC_ASSERT_STREQ(text(item, "program"), "def solution():\n    return 1234\nprint(solution())\n");
    HC_ASSERT_STREQ(expect(item, "kind"), "stdout_number");
    HC_ASSERT(fabs(value(item) - 1234) < 1e-9);
    HC_ASSERT(strncmp(text(item, "id"), "gsm8k/", 6) == 0 && strlen(text(item, "id")) == 18);
    HC_ASSERT(json_object_get(item, "limits") != NULL && json_object_get(item, "extra") == NULL);
    json_t *same = shape("{\"answer\":\"#### 1,234\",\"question\":\"q\",\"generated\":"
                         "\"def solution():\\n    return 1234\"}");
    HC_ASSERT_STREQ(text(same, "id"), text(item, "id")); /* wherever it lies, whatever else it has */
    json_t *other = shape("{\"answer\":\"#### -5\",\"question\":\"q\",\"id\":7,\"response\":"
                          "\"Sure:\\n```python\\nprint(5)\\n```\\nDone.\"}");
    HC_ASSERT_STREQ(text(other, "id"), "gsm8k/7");
    HC_ASSERT_STREQ(text(other, "program"), "print(5)\n");
    HC_ASSERT(fabs(value(other) + 5) < 1e-9);
    refuses("{\"question\":\"q\",\"answer\":\"#### 3\"}", "completion is missing");
    refuses("{\"question\":\"q\",\"answer\":\"#### three\",\"completion\":\"x\"}", "no number after ####");
    json_decref(item);
    json_decref(same);
    json_decref(other);
}

HC_TEST(solutions_are_called_once)
{
    static const struct {
        const char *program;
        bool added;
    } rows[] = {
        {"def solution():\\n  return 1", true},
        {"import math\\ndef solution():\\n  print('x')\\n  return 1", true},
        {"def solution():\\n  return 1\\nprint(solution())", false},
        {"def solution():\\n  return 1\\nanswer = solution()\\nprint(answer)", false},
        {"def solution():\\n  return 1\\nsolution()", false},
        {"print(1)", false},
        {"x = 'def solution('", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[512];
        (void)snprintf(line, sizeof line, "{\"question\":\"q\",\"answer\":\"#### 1\",\"completion\":\"%s\"}",
                       rows[i].program);
        json_t *item = shape(line);
        const char *program = text(item, "program");
        const char *end = program + strlen(program) - strlen("\nprint(solution())\n");
        bool added = end > program && strcmp(end, "\nprint(solution())\n") == 0;
        if (added != rows[i].added)
            hc_test_fail(__FILE__, __LINE__, "%s: %s", rows[i].program, program);
        json_decref(item);
    }
}

HC_TEST(math_items)
{
    static const struct {
        const char *solution, *kind, *text;
        double number;
    } rows[] = {
        {"so $\\\\boxed{42}$.", "stdout_number", NULL, 42},
        {"\\\\boxed{1} then \\\\boxed{\\\\frac{3}{4}}", "stdout_number", NULL, 0.75},
        {"\\\\boxed{-\\\\frac12}", "stdout_number", NULL, -0.5},
        {"\\\\boxed{\\\\dfrac{-1}{8}}", "stdout_number", NULL, -0.125},
        {"\\\\boxed{1,\\\\!000}", "stdout_number", NULL, 1000},
        {"\\\\boxed{\\\\$12.50}", "stdout_number", NULL, 12.5},
        {"\\\\boxed{25\\\\%}", "stdout_number", NULL, 25},
        {"\\\\boxed{\\\\text{Evelyn}}", "stdout_trim", "Evelyn", 0},
        {"\\\\boxed{even}", "stdout_trim", "even", 0},
        {"\\\\boxed{\\\\sqrt{2}}", "answer_text", "\\sqrt{2}", 0},
        {"\\\\boxed{x^2+1}", "answer_text", "x^2+1", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[512];
        (void)snprintf(line, sizeof line,
                       "{\"problem\":\"p\",\"solution\":\"%s\",\"level\":\"Level 5\",\"completion\":\"1\"}",
                       rows[i].solution);
        json_t *item = shape(line);
        HC_ASSERT_STREQ(text(item, "suite"), "math");
        HC_ASSERT_STREQ(expect(item, "kind"), rows[i].kind);
        if (rows[i].text != NULL)
            HC_ASSERT_STREQ(expect(item, "value"), rows[i].text);
        else if (fabs(value(item) - rows[i].number) > 1e-9)
            hc_test_fail(__FILE__, __LINE__, "%s: %g", rows[i].solution, value(item));
        json_decref(item);
    }
    refuses("{\"problem\":\"p\",\"solution\":\"none\",\"completion\":\"1\"}", "no \\boxed{}");
    refuses("{\"problem\":\"p\",\"solution\":\"\\\\boxed{1\",\"completion\":\"1\"}", "no \\boxed{}");
}

HC_TEST(humaneval_items)
{
    static const char line[] =
        "{\"task_id\":\"HumanEval/0\",\"prompt\":\"from typing import List\\ndef f(x):\\n    "
        "\\\"\\\"\\\"doc\\\"\\\"\\\"\\n\",\"canonical_solution\":\"    return x\\n\",\"test\":\"def "
        "check(c):\\n    assert c(1) == 1\\n\",\"entry_point\":\"f\"%s}";
    char text_of_line[1024];
    (void)snprintf(text_of_line, sizeof text_of_line, line, "");
    json_t *item = shape(text_of_line);
    HC_ASSERT_STREQ(text(item, "id"), "HumanEval/0");
    HC_ASSERT_STREQ(text(item, "program"),
                    "from typing import List\ndef f(x):\n    \"\"\"doc\"\"\"\n    return x\n\n");
    HC_ASSERT_STREQ(expect(item, "kind"), "asserts");
    HC_ASSERT_STREQ(expect(item, "code"), "def check(c):\n    assert c(1) == 1\n\ncheck(f)\n");
    json_decref(item);
    (void)snprintf(text_of_line, sizeof text_of_line, line,
                   ",\"completion\":\"```python\\ndef f(x):\\n    return 2\\n```\"");
    item = shape(text_of_line);
    HC_ASSERT(strstr(text(item, "program"), "\"\"\"doc\"\"\"\ndef f(x):\n    return 2\n") != NULL);
    json_decref(item);
    refuses("{\"task_id\":\"a\",\"prompt\":\"p\",\"test\":\"t\",\"entry_point\":\"f\"}",
            "canonical_solution too");
}

HC_TEST(mbpp_items)
{
    json_t *item = shape(
        "{\"task_id\":11,\"text\":\"Write\",\"code\":\"def f(x): return x\",\"test_setup_code\":\"import "
        "math\",\"test_list\":[\"assert f(1) == 1\",\"assert f(2) == 2\"],\"challenge_test_list\":[]}");
    HC_ASSERT_STREQ(text(item, "id"), "mbpp/11");
    HC_ASSERT_STREQ(text(item, "program"), "def f(x): return x");
    HC_ASSERT_STREQ(expect(item, "code"), "import math\nassert f(1) == 1\nassert f(2) == 2\n");
    json_decref(item);
    item = shape("{\"task_id\":11,\"prompt\":\"Write\",\"code\":\"x\",\"completion\":\"y\",\"test_imports\":["
                 "\"import re\"],"
                 "\"test_list\":[\"assert 1\"],\"id\":\"mine\"}");
    HC_ASSERT_STREQ(text(item, "id"), "mine");
    HC_ASSERT_STREQ(text(item, "program"), "y");
    HC_ASSERT_STREQ(expect(item, "code"), "import re\nassert 1\n");
    json_decref(item);
    refuses("{\"task_id\":1,\"test_list\":[1],\"code\":\"x\"}", "must be a list of texts");
    refuses("{\"task_id\":1,\"test_list\":[]}", "completion is missing");
}

static void class_is(const char *result, enum hc_error_class class, const char *kind)
{
    char found[128];
    json_t *root = json_loads(result, 0, NULL);
    HC_ASSERT_EQ_INT(hc_eval_class(root, found), class);
    HC_ASSERT_STREQ(found, kind);
    json_decref(root);
}

HC_TEST(classes_of_errors)
{
    class_is("{\"status\":\"ok\",\"accepted\":true}", HC_CLASS_NONE, "");
    class_is("{\"status\":\"ok\",\"accepted\":null}", HC_CLASS_NONE, "");
    class_is("{\"status\":\"ok\",\"accepted\":false}", HC_CLASS_LOGICAL, "wrong");
    class_is("{\"status\":\"ok\",\"accepted\":false,\"wrong\":{\"kind\":\"stdout_number\"}}",
             HC_CLASS_LOGICAL, "stdout_number");
    class_is("{\"status\":\"syntax_error\",\"error_type\":\"IndentationError\"}", HC_CLASS_SYNTAX,
             "syntax_error");
    class_is("{\"status\":\"compile_error\"}", HC_CLASS_SYNTAX, "compile_error");
    class_is("{\"status\":\"runtime_error\",\"error_type\":\"KeyError\",\"exit_code\":1}", HC_CLASS_RUNTIME,
             "KeyError");
    class_is("{\"status\":\"runtime_error\",\"error_type\":null,\"exit_code\":3,\"signal\":null}",
             HC_CLASS_RUNTIME, "exit code 3");
    class_is("{\"status\":\"runtime_error\",\"signal\":11}", HC_CLASS_RUNTIME, "signal 11");
    class_is("{\"status\":\"timeout\",\"cause\":\"cpu_time\",\"accepted\":false}", HC_CLASS_RESOURCE,
             "cpu_time");
    class_is("{\"status\":\"memory_limit\",\"cause\":\"memory\"}", HC_CLASS_RESOURCE, "memory");
    class_is("{\"status\":\"refused\",\"cause\":\"module\"}", HC_CLASS_POLICY, "module");
    class_is("{\"status\":\"policy_violation\",\"cause\":\"syscall\"}", HC_CLASS_POLICY, "syscall");
    class_is("{\"status\":\"fault\",\"cause\":\"host\"}", HC_CLASS_HOST, "fault");
    /* every status but ok has a class */
    for (int i = 0; i < HC_STATUS_COUNT; i++) {
        char kind[128];
        json_t *root = json_pack("{s:s}", "status", hc_statuses[i].name);
        HC_ASSERT_EQ_INT(hc_eval_class(root, kind) == HC_CLASS_NONE, i == HC_STATUS_OK);
        json_decref(root);
    }
}

HC_TEST(directions)
{
    static const struct {
        enum hc_status a;
        int accepted_a;
        enum hc_status b;
        int accepted_b;
        enum hc_direction direction;
    } rows[] = {
        {HC_STATUS_OK, 1, HC_STATUS_OK, 1, HC_MOVE_NONE},
        {HC_STATUS_OK, 1, HC_STATUS_OK, 0, HC_MOVE_WORSE},
        {HC_STATUS_OK, 0, HC_STATUS_OK, 1, HC_MOVE_BETTER},
        {HC_STATUS_TIMEOUT, 0, HC_STATUS_OK, 0, HC_MOVE_BETTER},
        {HC_STATUS_OK, -1, HC_STATUS_TIMEOUT, -1, HC_MOVE_WORSE},
        {HC_STATUS_TIMEOUT, -1, HC_STATUS_MEMORY_LIMIT, -1, HC_MOVE_OTHER},
        {HC_STATUS_FAULT, -1, HC_STATUS_OK, 1, HC_MOVE_OTHER},
        {HC_STATUS_OK, 1, HC_STATUS_CANCELLED, -1, HC_MOVE_OTHER},
        {HC_STATUS_RUNTIME_ERROR, 1, HC_STATUS_OK, 0,
         HC_MOVE_WORSE}, /* wanted to fail, and does not any more */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        HC_ASSERT_EQ_INT(hc_compare_direction(rows[i].a, rows[i].accepted_a, rows[i].b, rows[i].accepted_b),
                         rows[i].direction);
}
