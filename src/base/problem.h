/* What is wrong with an input that somebody wrote by hand, and where.
 *
 * Bad input is a named outcome, not a fault: functions that read such input return HC_BAD_INPUT and describe
 * it in a struct hc_problem.
 */
#ifndef HC_BASE_PROBLEM_H
#define HC_BASE_PROBLEM_H

#include <stdarg.h>

enum { HC_BAD_INPUT = 1 };

/* line and column count from 1 (columns in characters); 0: no place is known. file is "" where the reader was
 * given bytes and not a file. message is one line that a terminal may show. */
struct hc_problem {
    char file[256];
    unsigned line, column;
    char message[512];
};

/* Fills everything but file, cutting a long message at a character. Always returns HC_BAD_INPUT, so that a
 * reader ends with `return hc_problem_set(...)`. problem may be NULL. */
int hc_problem_set(struct hc_problem *problem, unsigned line, unsigned column, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int hc_problem_setv(struct hc_problem *problem, unsigned line, unsigned column, const char *fmt, va_list args)
    __attribute__((format(printf, 4, 0)));

/* Names the file; a longer path keeps its end. problem may be NULL. */
void hc_problem_file(struct hc_problem *problem, const char *path);

/* "python.yaml:3:7: unknown key ..." in new memory, NULL without memory. What is unknown is left out. */
char *hc_problem_text(const struct hc_problem *problem);

#endif
