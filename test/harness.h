/* The test harness: one process per test, results as TAP on standard output.
 *
 *   HC_TEST(parses_sizes) { HC_ASSERT_EQ_INT(f(2), 4); }
 *   HC_TEST(aborts_on_misuse, .expect_signal = SIGABRT) { ... }
 *   HC_TEST(boots_slowly, .timeout_s = 60) { ... }
 *
 * A test registers itself; linking test files with harness.c gives a program:
 *   program [--list] [part of a name]...     exit 0 all passed or skipped, 1 a test failed, 2 wrong use
 *
 * A test passes when it returns. It fails by an assertion (in a child process of its own as well), by ending
 * itself in any other way, by a signal, by its timeout (20 s unless `.timeout_s` or the variable
 * HC_TEST_TIMEOUT_S, which replaces the default only, say otherwise), or by returning with other descriptors
 * open than it began with (numbers below 1024 are compared). With `.expect_signal` it passes exactly when
 * that signal ends it. Its standard output and error are shown only when it fails; standard input is
 * /dev/null. It leads its own process group, which is killed whenever the test ends.
 */
#ifndef HC_TEST_HARNESS_H
#define HC_TEST_HARNESS_H

#include <stdint.h>

__extension__ typedef __int128 hc_test_int;

struct hc_test {
    const char *name;
    const char *file;
    int line;
    void (*run)(void);
    unsigned timeout_s;
    int expect_signal;
    struct hc_test *next;
};

void hc_test_register(struct hc_test *test);

/* These end the calling process. */
_Noreturn void hc_test_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void hc_test_skip(const char *reason);

void hc_test_equal_int(const char *file, int line, const char *text, hc_test_int a, hc_test_int b);
void hc_test_equal_string(const char *file, int line, const char *text, const char *a, const char *b);

/* Reproducible random numbers; the state is the seed. */
static inline uint64_t hc_test_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

#define HC_TEST(test_name, ...)                                                                              \
    static void hc_test_run_##test_name(void);                                                               \
    static struct hc_test hc_test_row_##test_name = {.name = #test_name,                                     \
                                                     .file = __FILE__,                                       \
                                                     .line = __LINE__,                                       \
                                                     .run = hc_test_run_##test_name,                         \
                                                     __VA_ARGS__};                                           \
    __attribute__((constructor)) static void hc_test_add_##test_name(void)                                   \
    {                                                                                                        \
        hc_test_register(&hc_test_row_##test_name);                                                          \
    }                                                                                                        \
    static void hc_test_run_##test_name(void)

#define HC_ASSERT(cond)                                                                                      \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            hc_test_fail(__FILE__, __LINE__, "not true: %s", #cond);                                         \
    } while (0)

/* Any two integers, compared by value whatever their types are. */
#define HC_ASSERT_EQ_INT(a, b)                                                                               \
    hc_test_equal_int(__FILE__, __LINE__, #a " == " #b, (hc_test_int)(a), (hc_test_int)(b))

/* NULL equals NULL only. */
#define HC_ASSERT_STREQ(a, b) hc_test_equal_string(__FILE__, __LINE__, #a " equals " #b, (a), (b))

#define HC_SKIP(reason) hc_test_skip(reason)

#endif
