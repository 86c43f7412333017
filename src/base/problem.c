#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/problem.h"

#include "base/strings.h"
#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

int hc_problem_setv(struct hc_problem *problem, unsigned line, unsigned column, const char *fmt, va_list args)
{
    char raw[sizeof problem->message];

    if (!problem)
        return HC_BAD_INPUT;
    int printed = vsnprintf(raw, sizeof raw, fmt, args);
    size_t n = printed < 0 ? 0 : (size_t)printed;
    if (n >= sizeof raw)
        n = hc_utf8_floor((const uint8_t *)raw, sizeof raw - 1);
    for (size_t i = 0; i < n; i++)
        if (raw[i] == '\n' || raw[i] == '\t')
            raw[i] = ' ';
    n = hc_escape_visible((const uint8_t *)raw, n, problem->message, sizeof problem->message - 1);
    problem->message[n] = '\0';
    problem->line = line;
    problem->column = column;
    return HC_BAD_INPUT;
}

int hc_problem_set(struct hc_problem *problem, unsigned line, unsigned column, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int r = hc_problem_setv(problem, line, column, fmt, args);
    va_end(args);
    return r;
}

void hc_problem_file(struct hc_problem *problem, const char *path)
{
    if (!problem)
        return;
    size_t n = strlen(path);
    size_t skip = n < sizeof problem->file ? 0 : n - sizeof problem->file + 1;
    size_t border = hc_utf8_ceil((const uint8_t *)path + skip, n - skip);
    memcpy(problem->file, path + skip + (skip ? border : 0), n - skip - (skip ? border : 0) + 1);
}

char *hc_problem_text(const struct hc_problem *problem)
{
    if (!problem->line)
        return hc_printf("%s%s%s", problem->file, *problem->file ? ": " : "", problem->message);
    return hc_printf("%s%s%u:%u: %s", problem->file, *problem->file ? ":" : "", problem->line,
                     problem->column, problem->message);
}
