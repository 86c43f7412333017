#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/quantity.h"
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct hc_option hc_bench_options_table[] = {
    {"rounds", 0, "N", "samples of each row (40); dear rows are sampled less often"},
    {"seconds", 0, "S", "length of each throughput row (5; 0: none)"},
    {"jobs", 'j', "N", "workers of a throughput row (one per CPU)"},
    {"only", 0, "NAME,...", "only these rows; repeatable"},
    {"burst", 0, NULL, "also a sweep of arrival rates of warm runs"},
    {"quick", 0, NULL, "10 rounds, 1 s"},
    {"json", 0, NULL, "print one JSON document"},
    {"help", 'h', NULL, "show this help"},
};
const size_t hc_bench_option_count = sizeof hc_bench_options_table / sizeof *hc_bench_options_table;

struct request {
    struct hc_bench_options options;
    bool json, help;
};

static int usage(const char *message, bool json)
{
    if (json)
        printf(
            "{\"state\": \"refused\", \"status\": \"refused\", \"cause\": \"field\", \"message\": \"%s\"}\n",
            message);
    else
        hc_say("%s; `hotcell bench --help`", message);
    return 125;
}

static bool add_names(json_t **only, const char *list)
{
    if (*only == NULL)
        *only = json_object();
    for (const char *at = list; *only != NULL;) {
        size_t n = strcspn(at, ",");
        hc_autofree char *name = strndup(at, n);
        if (name == NULL || n == 0 || json_object_set_new(*only, name, json_true()) != 0)
            return false;
        if (at[n] == '\0')
            return true;
        at += n + 1;
    }
    return false;
}

static bool number(const char *text, double least, double most, double *ret_value)
{
    char *end;
    *ret_value = strtod(text, &end);
    return *text != '\0' && *end == '\0' && *ret_value >= least && *ret_value <= most;
}

static bool take(struct request *request, const char *name, const char *value)
{
    double got = 0;
    bool good = true;
    if (strcmp(name, "rounds") == 0) {
        good = number(value, 1, HC_BENCH_SAMPLES_MAX, &got);
        request->options.rounds = (unsigned)got;
    } else if (strcmp(name, "seconds") == 0) {
        good = number(value, 0, 600, &got);
        request->options.seconds = got;
    } else if (strcmp(name, "jobs") == 0) {
        good = number(value, 1, 256, &got);
        request->options.jobs = (unsigned)got;
    } else if (strcmp(name, "only") == 0) {
        good = add_names(&request->options.only, value);
    } else if (strcmp(name, "burst") == 0) {
        request->options.burst = true;
    } else if (strcmp(name, "quick") == 0) {
        request->options.rounds = 10;
        request->options.seconds = 1;
    } else if (strcmp(name, "json") == 0) {
        request->json = true;
    } else {
        request->help = true;
    }
    return good;
}

static int parse(int argc, char **argv, struct request *request, char message[256])
{
    const struct hc_command *command = hc_command_named("bench");
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value;
    for (int i = 1; i < argc; i++)
        request->json = request->json || strcmp(argv[i], "--json") == 0;
    for (;;) {
        int option = hc_option_next(command, &arguments, &value, message);
        if (option == HC_OPTION_END && arguments.at >= argc)
            return 0;
        if (option == HC_OPTION_BAD)
            return -1;
        if (option < 0) {
            (void)snprintf(message, 256, "'%.100s': no operands are taken", argv[arguments.at]);
            return -1;
        }
        if (!take(request, command->options[option].name, value)) {
            (void)snprintf(message, 256, "--%s %.60s: not a value it takes", command->options[option].name,
                           value);
            return -1;
        }
    }
}

static void show_progress(void *context, const char *what, unsigned done, unsigned of)
{
    (void)context;
    (void)fprintf(stderr, "\r\033[K%s: %u of %u", what, done, of);
}

static json_int_t whole(const json_t *row, const char *name)
{
    return json_integer_value(json_object_get(row, name));
}

/* The bare command that a row stands beside. */
static const char *bare_of(const char *name)
{
    if (strncmp(name, "throughput", 10) == 0)
        return "throughput_bare_python";
    return strstr(name, "true") != NULL ? "bare_true" : "bare_python";
}

static void print_time(const char *name, const json_t *row, const json_t *rows)
{
    const json_t *bare = json_object_get(rows, bare_of(name));
    json_int_t base = whole(bare, "p50_us");
    const char *skipped = json_string_value(json_object_get(row, "skipped"));
    if (skipped != NULL) {
        printf("%-26s %s\n", name, skipped);
        return;
    }
    printf("%-26s %9.2f %9.2f %9.2f %6lld", name, (double)whole(row, "p50_us") / 1000,
           (double)whole(row, "p95_us") / 1000, (double)whole(row, "p99_us") / 1000,
           (long long)whole(row, "n"));
    if (base > 0)
        printf(" %7.2f x %s", (double)whole(row, "p50_us") / (double)base, bare_of(name));
    printf("\n");
}

static void print_report(const json_t *report)
{
    const json_t *rows = json_object_get(report, "rows"), *row, *stages = json_object_get(report, "stages");
    const char *name;
    size_t i;
    printf("%-26s %9s %9s %9s %6s\n", "ms", "p50", "p95", "p99", "n");
    json_object_foreach((json_t *)(uintptr_t)rows, name, row)
    {
        if (strncmp(name, "throughput", 10) != 0)
            print_time(name, row, rows);
    }

    printf("\n%-26s %9s %6s\n", "runs per second", "rate", "jobs");
    double base =
        json_number_value(json_object_get(json_object_get(rows, "throughput_bare_python"), "per_second"));
    json_object_foreach((json_t *)(uintptr_t)rows, name, row)
    {
        double rate = json_number_value(json_object_get(row, "per_second"));
        if (strncmp(name, "throughput", 10) == 0 && rate > 0)
            printf("%-26s %9.1f %6lld %7.2f x bare\n", name, rate, (long long)whole(row, "jobs"),
                   base > 0 ? rate / base : 0);
    }
    printf("\nstages of a warm run, ms    p50       p95       p99\n");
    json_object_foreach((json_t *)(uintptr_t)stages, name, row)
    {
        print_time(name, row, NULL);
    }

    json_array_foreach(json_object_get(report, "burst"), i, row)
    {
        printf("%s%6.0f warm runs/s: p50 %.2f ms, p99 %.2f ms, %lld of %lld missed a ready cell\n",
               i == 0 ? "\n" : "", json_number_value(json_object_get(row, "per_second")),
               (double)whole(row, "p50_us") / 1000, (double)whole(row, "p99_us") / 1000,
               (long long)whole(row, "missed"), (long long)whole(row, "n"));
    }

    printf("\n%lld wrong, %lld leftovers, %lld warm runs missed a ready cell\n",
           (long long)whole(report, "wrong"), (long long)whole(report, "leftovers"),
           (long long)whole(report, "missed"));
}

int hc_cli_bench(int argc, char **argv)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct request request = {.options = {.rounds = 40, .seconds = 5, .jobs = cpus > 0 ? (unsigned)cpus : 1}};
    struct hc_refusal refusal = {0};
    char message[256] = "";
    json_t *report = NULL;
    if (parse(argc, argv, &request, message) != 0)
        return usage(message, request.json);
    if (request.help) {
        hc_print_help(hc_command_named("bench"));
        return 0;
    }
    if (isatty(2) && !request.json)
        request.options.progress = show_progress;
    int error = hc_bench(&request.options, &report, &refusal);
    if (request.options.progress != NULL)
        (void)fputs("\r\033[K", stderr);
    json_decref(request.options.only);
    if (error != 0)
        return usage(error > 0 ? refusal.message : strerror(-error), request.json);
    if (request.json)
        (void)json_dumpf(report, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)), (void)putchar('\n');
    else
        print_report(report);
    bool good = whole(report, "wrong") == 0 && whole(report, "leftovers") == 0;
    json_decref(report);
    return good ? 0 : 1;
}
