#include "eval/shapes.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a model's answer may be called; the first that is there. */
static const char *const completions[] = {"completion", "program",  "generated",
                                          "generation", "response", "prediction"};

/* Of an item of ours that these shapes may have as well. */
static const char *const kept[] = {"language", "stdin", "files", "limits", "flags", "suite"};

static const char *text(const json_t *root, const char *name)
{
    return json_string_value(json_object_get(root, name));
}

static const char *completion_of(const json_t *root)
{
    for (size_t i = 0; i < sizeof completions / sizeof *completions; i++)
        if (text(root, completions[i]) != NULL)
            return text(root, completions[i]);
    return NULL;
}

/* ---- texts of models and of mathematics ---- */

char *hc_eval_unfence(const char *text)
{
    const char *fence = strstr(text, "```"), *begin = fence != NULL ? strchr(fence, '\n') : NULL;
    if (begin == NULL || (fence != text && fence[-1] != '\n'))
        return strdup(text);
    const char *end = strstr(begin, "\n```");
    return end != NULL ? strndup(begin + 1, (size_t)(end - begin)) : strdup(begin + 1);
}

char *hc_eval_boxed(const char *text)
{
    static const char word[] = "\\boxed{";
    const char *last = NULL;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += sizeof word - 1)
        last = at + sizeof word - 1;
    unsigned depth = 1;
    for (const char *at = last; at != NULL && *at != '\0'; at++) {
        depth += *at == '{' ? 1u : 0u;
        depth -= *at == '}' ? 1u : 0u;
        if (depth == 0)
            return strndup(last, (size_t)(at - last));
    }
    return NULL;
}

/* Digits with commas between threes, a point, a sign. */
static bool plain_number(const char *text, size_t n, double *ret_number)
{
    char digits[64], *end;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == ',' && i > 0 && n - i > 3 && isdigit((unsigned char)text[i + 1]))
            continue;
        if ((!isdigit((unsigned char)text[i]) && strchr("+-.", text[i]) == NULL) || used + 1 >= sizeof digits)
            return false;
        digits[used++] = text[i];
    }
    digits[used] = '\0';
    *ret_number = strtod(digits, &end);
    return used > 0 && *end == '\0' && isfinite(*ret_number);
}

/* "3/4", and "\frac{3}{4}" or "\frac34" after its name. */
static bool quotient(const char *above, size_t a, const char *below, size_t b, double *ret_number)
{
    double x, y;
    if (!plain_number(above, a, &x) || !plain_number(below, b, &y) || y == 0)
        return false;
    *ret_number = x / y;
    return true;
}

static bool fraction(const char *text, double *ret_number)
{
    size_t n = strlen(text);
    if (n == 2)
        return quotient(text, 1, text + 1, 1, ret_number);
    const char *middle = strstr(text, "}{");
    return text[0] == '{' && middle != NULL && text[n - 1] == '}' &&
           quotient(text + 1, (size_t)(middle - text - 1), middle + 2, n - (size_t)(middle - text) - 3,
                    ret_number);
}

bool hc_eval_math_number(const char *text, double *ret_number)
{
    char clean[128] = "";
    size_t used = 0;
    /* blanks, dollars and percent signs are how it is written, not how much it is */
    for (const char *at = text; *at != '\0'; at++) {
        if (isspace((unsigned char)*at) || *at == '$' || *at == '%' || strncmp(at, "\\!", 2) == 0 ||
            strncmp(at, "\\$", 2) == 0 || strncmp(at, "\\%", 2) == 0 || strncmp(at, "\\,", 2) == 0) {
            at += *at == '\\' ? 1 : 0;
            continue;
        }
        if (used + 1 >= sizeof clean)
            return false;
        clean[used++] = *at;
    }
    clean[used] = '\0';
    bool negative = clean[0] == '-';
    const char *number = clean + (negative ? 1 : 0), *slash = strchr(number, '/');
    bool is_fraction = strncmp(number, "\\frac", 5) == 0 || strncmp(number, "\\dfrac", 6) == 0 ||
                       strncmp(number, "\\tfrac", 6) == 0;
    bool good = is_fraction ? fraction(strchr(number, 'c') + 1, ret_number)
                : slash != NULL
                    ? quotient(number, (size_t)(slash - number), slash + 1, strlen(slash + 1), ret_number)
                    : plain_number(number, strlen(number), ret_number);
    if (good && negative)
        *ret_number = -*ret_number;
    return good;
}

/* ---- programs ---- */

static bool line_begins(const char *program, const char *word)
{
    for (const char *at = program; (at = strstr(at, word)) != NULL; at++)
        if (at == program || at[-1] == '\n')
            return true;
    return false;
}

/* PAL programs define solution() and leave calling it to who runs them. */
static char *called(char *program)
{
    if (program == NULL || !line_begins(program, "def solution(") || line_begins(program, "print(") ||
        line_begins(program, "solution(") || strstr(program, "= solution(") != NULL ||
        strstr(program, "__main__") != NULL)
        return program;
    char *whole = hc_printf("%s\nprint(solution())\n", program);
    free(program);
    return whole;
}

/* ---- shapes: each makes program, expectation, name ---- */

struct made {
    char *program, *id;
    json_t *expect;
};

static int refuse(struct hc_refusal *refusal, const char *field, const char *why)
{
    return hc_refuse(refusal, HC_CAUSE_FIELD, field, "%s %s", field, why);
}

static int need_completion(const json_t *root, const char **ret_text, struct hc_refusal *refusal)
{
    *ret_text = completion_of(root);
    return *ret_text != NULL ? 0
                             : refuse(refusal, "completion",
                                      "is missing: what the model wrote (or program, generated, generation, "
                                      "response, prediction)");
}

/* {question, answer}: the number after "####". */
static int gsm8k(const json_t *root, struct made *made, struct hc_refusal *refusal)
{
    const char *said, *mark = strstr(text(root, "answer"), "####");
    double value;
    int error = need_completion(root, &said, refusal);
    if (error != 0)
        return error;
    if (!hc_eval_math_number(mark + 4, &value))
        return refuse(refusal, "answer", "has no number after ####");
    made->program = called(hc_eval_unfence(said));
    made->expect = json_pack("{s:s, s:f, s:f}", "kind", "stdout_number", "value", value, "abs", 1e-3);
    return 0;
}

/* {problem, solution}: what is in \boxed{}. A number is compared as one; words as text; the rest of LaTeX
 * nobody can compare with what a program prints, and is not judged. */
static int math(const json_t *root, struct made *made, struct hc_refusal *refusal)
{
    hc_autofree char *boxed = hc_eval_boxed(text(root, "solution"));
    const char *said;
    double value;
    int error = need_completion(root, &said, refusal);
    if (error != 0)
        return error;
    if (boxed == NULL)
        return refuse(refusal, "solution", "has no \\boxed{}");
    made->program = called(hc_eval_unfence(said));
    if (hc_eval_math_number(boxed, &value)) {
        made->expect = json_pack("{s:s, s:f, s:f}", "kind", "stdout_number", "value", value, "rel", 1e-3);
        return 0;
    }
    size_t n = strlen(boxed);
    bool words = strncmp(boxed, "\\text{", 6) == 0 && strchr(boxed + 6, '\\') == NULL && boxed[n - 1] == '}';
    bool plain = strpbrk(boxed, "\\{}$^_") == NULL;
    made->expect = words   ? json_pack("{s:s, s:s%}", "kind", "stdout_trim", "value", boxed + 6, n - 7)
                   : plain ? json_pack("{s:s, s:s}", "kind", "stdout_trim", "value", boxed)
                           : json_pack("{s:s, s:s}", "kind", "answer_text", "value", boxed);
    return 0;
}

/* {task_id, prompt, test, entry_point}: the prompt, and what goes on in its place; without a completion the
 * data set's own solution. The prompt stays in front of a whole function too: it has the imports. */
static int humaneval(const json_t *root, struct made *made, struct hc_refusal *refusal)
{
    const char *said = completion_of(root), *entry = text(root, "entry_point");
    if (said == NULL)
        said = text(root, "canonical_solution");
    if (said == NULL)
        return refuse(refusal, "completion", "is missing, and canonical_solution too");
    hc_autofree char *body = hc_eval_unfence(said);
    hc_autofree char *code = hc_printf("%s\ncheck(%s)\n", text(root, "test"), entry);
    made->program = body != NULL ? hc_printf("%s%s\n", text(root, "prompt"), body) : NULL;
    made->expect = code != NULL ? json_pack("{s:s, s:s}", "kind", "asserts", "code", code) : NULL;
    return 0;
}

static int join(const json_t *list, char **code)
{
    size_t i;
    json_t *line;
    json_array_foreach((json_t *)list, i, line)
    {
        if (!json_is_string(line))
            return 1;
        char *longer = hc_printf("%s%s\n", *code, json_string_value(line));
        if (longer == NULL)
            return -ENOMEM;
        free(*code);
        *code = longer;
    }
    return 0;
}

/* {text or prompt, code, test_list}: asserts, one a line, after what they need. */
static int mbpp(const json_t *root, struct made *made, struct hc_refusal *refusal)
{
    const char *said = completion_of(root), *setup = text(root, "test_setup_code");
    hc_autofree char *code =
        hc_printf("%s%s", setup != NULL ? setup : "", setup != NULL && setup[0] != '\0' ? "\n" : "");
    if (code == NULL)
        return -ENOMEM;
    if (said == NULL)
        said = text(root, "code");
    if (said == NULL)
        return refuse(refusal, "completion", "is missing, and code too");
    int error = join(json_object_get(root, "test_imports"), &code);
    if (error == 0)
        error = join(json_object_get(root, "test_list"), &code);
    if (error != 0)
        return error < 0 ? error : refuse(refusal, "test_list", "must be a list of texts");
    made->program = hc_eval_unfence(said);
    made->expect = json_pack("{s:s, s:s}", "kind", "asserts", "code", code);
    return 0;
}

static bool is_gsm8k(const json_t *root)
{
    return text(root, "question") != NULL && text(root, "answer") != NULL &&
           strstr(text(root, "answer"), "####") != NULL && json_object_get(root, "expect") == NULL;
}

static bool is_math(const json_t *root)
{
    return text(root, "problem") != NULL && text(root, "solution") != NULL &&
           json_object_get(root, "expect") == NULL;
}

static bool is_humaneval(const json_t *root)
{
    return text(root, "task_id") != NULL && text(root, "prompt") != NULL && text(root, "test") != NULL &&
           text(root, "entry_point") != NULL;
}

static bool is_mbpp(const json_t *root)
{
    return json_is_array(json_object_get(root, "test_list")) && json_object_get(root, "task_id") != NULL;
}

static const struct shape {
    const char *name;
    bool (*fits)(const json_t *root);
    int (*make)(const json_t *root, struct made *made, struct hc_refusal *refusal);
} shapes[] = {
    {"gsm8k", is_gsm8k, gsm8k},
    {"math", is_math, math},
    {"humaneval", is_humaneval, humaneval},
    {"mbpp", is_mbpp, mbpp},
};

/* Its own name; without one, a name that stays the same wherever the item lies in the file. */
static char *name_of(const json_t *root, const char *shape, const char *program)
{
    const json_t *id = json_object_get(root, "id"), *task = json_object_get(root, "task_id");
    const char *question = text(root, "question") != NULL ? text(root, "question") : text(root, "problem");
    char sha256[65];
    if (json_is_string(id))
        return strdup(json_string_value(id));
    if (json_is_integer(id) || json_is_integer(task))
        return hc_printf("%s/%lld", shape, (long long)json_integer_value(json_is_integer(id) ? id : task));
    if (json_is_string(task))
        return strdup(json_string_value(task));
    hc_autofree char *both = hc_printf("%s\n%s", question != NULL ? question : "", program);
    if (both == NULL || hc_sha256_hex(both, strlen(both), sha256) != 0)
        return NULL;
    return hc_printf("%s/%.12s", shape, sha256);
}

static int assemble(const json_t *root, const struct shape *shape, struct made *made, json_t **ret_item)
{
    made->id = made->program != NULL ? name_of(root, shape->name, made->program) : NULL;
    if (made->id == NULL || made->expect == NULL)
        return -ENOMEM;
    json_t *item = json_pack("{s:s, s:s, s:s, s:s, s:O}", "id", made->id, "language", "python", "suite",
                             shape->name, "program", made->program, "expect", made->expect);
    for (size_t i = 0; item != NULL && i < sizeof kept / sizeof *kept; i++)
        if (json_object_get(root, kept[i]) != NULL)
            (void)json_object_set(item, kept[i], json_object_get(root, kept[i]));
    *ret_item = item;
    return item != NULL ? 0 : -ENOMEM;
}

int hc_eval_shape(const json_t *root, json_t **ret_item, struct hc_refusal *refusal)
{
    const struct shape *shape = NULL;
    struct made made = {0};
    *ret_item = NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && shape == NULL; i++)
        shape = shapes[i].fits(root) ? &shapes[i] : NULL;
    if (shape == NULL)
        return 0;
    int error = shape->make(root, &made, refusal);
    if (error == 0)
        error = assemble(root, shape, &made, ret_item);
    free(made.program);
    free(made.id);
    json_decref(made.expect);
    return error;
}
