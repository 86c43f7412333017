#include "cli/request.h"

#include "base/cleanup.h"
#include "base/quantity.h"
#include "base/yaml.h"
#include "cell/limits.h"
#include "cli/cli.h"
#include "flow/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PREDICATE_BYTES_MAX (1024 * 1024)
#define EXPECT_BYTES_MAX    (64ull * 1024 * 1024)

enum option_index {
    OPTION_LANGUAGE,
    OPTION_CODE,
    OPTION_FLAG,
    OPTION_RUNTIMES,
    OPTION_FILE,
    OPTION_STDIN,
    OPTION_ENV,
    OPTION_WALL,
    OPTION_CPU,
    OPTION_MEMORY,
    OPTION_PROCESSES,
    OPTION_CPUS,
    OPTION_DISK,
    OPTION_INODES,
    OPTION_OPEN_FILES,
    OPTION_FILE_SIZE,
    OPTION_STACK,
    OPTION_OUTPUT,
    OPTION_OUTPUT_TOTAL,
    OPTION_ARTIFACTS,
    OPTION_ARTIFACT_SIZE,
    OPTION_ARTIFACT_COUNT,
    OPTION_PROFILE,
    OPTION_NETWORK,
    OPTION_OUT,
    OPTION_COLLECT,
    OPTION_EXPECT_STDOUT,
    OPTION_EXPECT_NUMBER,
    OPTION_ACCEPT,
    OPTION_DETERMINISTIC,
    OPTION_COLD,
    OPTION_WARM,
    OPTION_MIN_GRADE,
    OPTION_ALLOW,
    OPTION_REDACT,
    OPTION_JSON,
    OPTION_STORE,
    OPTION_HELP,
    OPTION_COUNT
};

const struct hc_option hc_run_options[OPTION_COUNT] = {
    [OPTION_LANGUAGE] = {"language", 'l', "NAME[@VERSION]",
                         "language (default: by file ending, else python)"},
    [OPTION_CODE] = {"code", 'c', "TEXT", "the program itself"},
    [OPTION_FLAG] = {"flag", 0, "FLAG", "flag for the compile step, if the language allows it; repeatable"},
    [OPTION_RUNTIMES] = {"runtimes", 0, "DIR", "one more folder with manifests of languages"},
    [OPTION_FILE] = {"file", 0, "HOST[:NAME]",
                     "input file or folder, copied in read-only; repeatable; 256M in all"},
    [OPTION_STDIN] = {"stdin", 0, "FILE",
                      "standard input, - for that of the caller (default: end of file at once)"},
    [OPTION_ENV] = {"env", 0, "NAME=VALUE", "environment variable; repeatable; nothing is inherited"},
    [OPTION_WALL] = {"wall", 0, "TIME", "time from the program's exec to its end (30s)"},
    [OPTION_CPU] = {"cpu", 0, "TIME", "CPU time of the whole cell (30s)"},
    [OPTION_MEMORY] = {"memory", 0, "SIZE",
                       "memory of the whole cell, scratch space included, no swap (512M)"},
    [OPTION_PROCESSES] = {"processes", 0, "N", "processes and threads at one time (64)"},
    [OPTION_CPUS] = {"cpus", 0, "N", "CPUs' worth of time, e.g. 0.5 (2)"},
    [OPTION_DISK] = {"disk", 0, "SIZE",
                     "scratch space: working folder, /tmp, /dev/shm together (half of memory)"},
    [OPTION_INODES] = {"inodes", 0, "N", "files in the scratch space (one per 16K of disk, at least 1024)"},
    [OPTION_OPEN_FILES] = {"open-files", 0, "N", "open descriptors of one process (256)"},
    [OPTION_FILE_SIZE] = {"file-size", 0, "SIZE", "size of one file (what the disk limit leaves)"},
    [OPTION_STACK] = {"stack", 0, "SIZE", "stack of the main thread (8M)"},
    [OPTION_OUTPUT] = {"output", 0, "SIZE", "output that is kept, both streams; above it head and tail (2M)"},
    [OPTION_OUTPUT_TOTAL] = {"output-total", 0, "SIZE",
                             "output after which the run is killed (64 x output, at least 64M)"},
    [OPTION_ARTIFACTS] = {"artifacts", 0, "SIZE", "bytes of all exported files (40M)"},
    [OPTION_ARTIFACT_SIZE] = {"artifact-size", 0, "SIZE", "bytes of one exported file (5M)"},
    [OPTION_ARTIFACT_COUNT] = {"artifact-count", 0, "N", "number of exported files (20)"},
    [OPTION_PROFILE] = {"profile", 0, "NAME|FILE",
                        "policy: standard, pal, data, judge, plugin, or a file (standard)"},
    [OPTION_NETWORK] = {"network", 0, "none", "own loopback and nothing else; the only choice so far"},
    [OPTION_OUT] = {"out", 0, "DIR", "export the files that the run made to DIR, all or none"},
    [OPTION_COLLECT] = {"collect", 0, "GLOB", "which new or changed files count as artifacts (all)"},
    [OPTION_EXPECT_STDOUT] = {"expect-stdout", 0, "FILE",
                              "accept only this output (blanks at line ends ignored)"},
    [OPTION_EXPECT_NUMBER] = {"expect-number", 0, "N[~TOL]",
                              "accept only this last number; ~0.01 absolute, ~0.1% relative"},
    [OPTION_ACCEPT] = {"accept", 0, "FILE", "accept only if all predicates of this YAML or JSON list hold"},
    [OPTION_DETERMINISTIC] = {"deterministic", 0, "[=SEED]", "fix hash seed, time zone, locale"},
    [OPTION_COLD] = {"cold", 0, NULL, "never take a warm cell"},
    [OPTION_WARM] = {"warm", 0, NULL, "refuse if no warm cell is there"},
    [OPTION_MIN_GRADE] = {"min-grade", 0, "A|B|C|D", "refuse when fewer layers hold (B)"},
    [OPTION_ALLOW] = {"allow", 0, "LAYER", "accept that this layer is absent; repeatable"},
    [OPTION_REDACT] = {"redact", 0, "PATTERN", "scrub what matches from the record's output; repeatable"},
    [OPTION_JSON] = {"json", 0, NULL, "print one JSON document, the record, and nothing else"},
    [OPTION_STORE] = {"store", 0, "DIR|none", "where records go ($XDG_STATE_HOME/hotcell)"},
    [OPTION_HELP] = {"help", 'h', NULL, "show this help"},
};
const size_t hc_run_option_count = OPTION_COUNT;

static int bad(struct hc_refusal *refusal, const char *flag, const char *value, const char *reason)
{
    return hc_refuse(refusal, HC_CAUSE_FIELD, flag, "--%s %.100s: %s", flag, value, reason);
}

/* ---- limits: the rows of hc_limits say which option and which unit ---- */

static int set_limit(struct hc_spec *spec, enum hc_limit limit, const char *value, struct hc_refusal *refusal)
{
    const struct hc_limit_row *row = &hc_limits[limit];
    uint64_t number = 0;
    int outcome = hc_limit_parse(limit, value, &number);
    if (outcome != HC_QUANTITY_OK) {
        (void)hc_refuse(refusal, HC_CAUSE_FIELD, row->name, "--%s '%.60s': %s", row->flag, value,
                        hc_quantity_reason(outcome));
        return HC_REFUSED;
    }
    spec->limits[limit] = number;
    spec->limit_asked[limit] = true;
    return 0;
}

static int limit_of_option(const char *option)
{
    for (int i = 0; i < HC_LIMIT_COUNT; i++)
        if (hc_limits[i].flag != NULL && strcmp(hc_limits[i].flag, option) == 0)
            return i;
    return -1;
}

/* ---- predicates ---- */

static int add_predicate(struct hc_run_request *request, json_t *predicate)
{
    if (request->predicates == NULL)
        request->predicates = json_array();
    return predicate == NULL || json_array_append_new(request->predicates, predicate) != 0 ? -ENOMEM : 0;
}

static int expect_stdout(struct hc_run_request *request, const char *path, struct hc_refusal *refusal)
{
    hc_autofree uint8_t *data = NULL;
    size_t bytes = 0;
    int error = hc_run_read_file("expect-stdout", path, EXPECT_BYTES_MAX, &data, &bytes, refusal);
    if (error != 0)
        return error;
    json_t *value = json_stringn((const char *)data, bytes);
    if (value == NULL)
        return bad(refusal, "expect-stdout", path, "is not UTF-8 text");
    return add_predicate(
        request, json_pack("{s:s, s:o, s:s}", "kind", "stdout_equals", "value", value, "trim", "lines"));
}

static int expect_number(struct hc_run_request *request, const char *text, struct hc_refusal *refusal)
{
    char *rest = NULL;
    double value = strtod(text, &rest), tolerance = 0;
    bool relative = false;
    if (rest == text || !isfinite(value) || (*rest != '\0' && *rest != '~'))
        return bad(refusal, "expect-number", text, "wanted N, N~0.01 or N~0.1%");
    if (*rest == '~') {
        const char *from = rest + 1;
        tolerance = strtod(from, &rest);
        relative = rest != from && strcmp(rest, "%") == 0;
        if (rest == from || (*rest != '\0' && !relative) || !isfinite(tolerance) || tolerance < 0)
            return bad(refusal, "expect-number", text, "the tolerance is a number such as 0.01, or 0.1%");
    }
    return add_predicate(request,
                         json_pack("{s:s, s:f, s:f}", "kind", "stdout_number", "value", value,
                                   relative ? "rel" : "abs", relative ? tolerance / 100 : tolerance));
}

int hc_run_accept_file(struct hc_run_request *request, const char *path, struct hc_refusal *refusal)
{
    hc_autofree uint8_t *data = NULL;
    size_t bytes = 0, i;
    json_t *predicate, *list = NULL;
    struct hc_yaml yaml = {0};
    struct hc_problem problem = {0};
    int error = hc_run_read_file("accept", path, PREDICATE_BYTES_MAX, &data, &bytes, refusal);
    if (error != 0)
        return error;
    /* A JSON number with a fraction is a number; the YAML reader would leave it a text. */
    list = json_loadb((const char *)data, bytes, JSON_REJECT_DUPLICATES, NULL);
    if (list == NULL) {
        error = hc_yaml_read((const char *)data, bytes, &yaml, &problem);
        if (error == HC_BAD_INPUT)
            error = hc_refuse(refusal, HC_CAUSE_FIELD, "accept", "--accept %.150s: line %u column %u: %.200s",
                              path, problem.line, problem.column, problem.message);
        list = error == 0 ? json_incref(yaml.root) : NULL;
        if (error == 0)
            hc_yaml_done(&yaml);
    }
    if (error == 0)
        error = hc_predicates_check(list, refusal);
    if (error == 0)
        json_array_foreach(list, i, predicate)
        {
            if (error == 0)
                error = add_predicate(request, json_incref(predicate));
        }
    json_decref(list);
    return error;
}

/* ---- the other options ---- */

static int set_stdin(struct hc_spec *spec, const char *path, struct hc_refusal *refusal)
{
    hc_close_fd(&spec->stdin_fd);
    spec->stdin_fd =
        strcmp(path, "-") == 0 ? fcntl(0, F_DUPFD_CLOEXEC, 16) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat info;
    if (spec->stdin_fd < 0 || fstat(spec->stdin_fd, &info) != 0)
        return bad(refusal, "stdin", path, strerror(errno));
    return S_ISDIR(info.st_mode) ? bad(refusal, "stdin", path, "is a folder") : 0;
}

static int set_grade(struct hc_spec *spec, const char *value, struct hc_refusal *refusal)
{
    if (strlen(value) != 1 || value[0] < 'A' || value[0] > 'D')
        return bad(refusal, "min-grade", value, "wanted A, B, C or D");
    spec->min_grade = (enum hc_grade)(value[0] - 'A');
    return 0;
}

static int allow_layer(struct hc_spec *spec, const char *value, struct hc_refusal *refusal)
{
    int layer = hc_layer_by_name(value);
    if (layer < 0)
        return bad(refusal, "allow", value, "no such layer; see the layers of any record");
    if (!hc_layers[layer].removable)
        return bad(refusal, "allow", value, "this layer can't be done without");
    spec->allow_layers |= 1ull << layer;
    return 0;
}

static int set_collect(struct hc_spec *spec, const char *value, struct hc_refusal *refusal)
{
    unsigned stars = 0;
    for (const char *at = value; *at != '\0'; at++)
        stars += *at == '*' ? 1 : 0;
    /* fnmatch tries every way to divide a name among the stars */
    if (value[0] == '\0' || strlen(value) > 256 || stars > 6)
        return bad(refusal, "collect", value, "a pattern has 1 to 256 characters and at most 6 stars");
    return hc_option_text(&spec->collect, value);
}

static int set_code(struct hc_spec *spec, const char *value, struct hc_refusal *refusal)
{
    if (spec->code_given)
        return bad(refusal, "code", "", "the program is given twice");
    spec->code_given = true;
    spec->code_bytes = strlen(value);
    spec->code = (uint8_t *)strdup(value);
    return spec->code != NULL ? 0 : -ENOMEM;
}

static int deterministic(struct hc_spec *spec, const char *seed, struct hc_refusal *refusal)
{
    spec->deterministic = true;
    if (seed == NULL)
        return 0;
    if (strlen(seed) == 0 || strlen(seed) > 9 || strspn(seed, "0123456789") != strlen(seed))
        return bad(refusal, "deterministic", seed, "a seed is a number of at most nine digits");
    return hc_option_text(&spec->seed, seed);
}

static int take_option(struct hc_run_request *request, int option, const char *value,
                       struct hc_refusal *refusal)
{
    struct hc_spec *spec = &request->spec;
    int limit = limit_of_option(hc_run_options[option].name);
    if (limit >= 0)
        return set_limit(spec, (enum hc_limit)limit, value, refusal);
    switch ((enum option_index)option) {
    case OPTION_LANGUAGE:
        return hc_option_text(&spec->language, value);
    case OPTION_CODE:
        return set_code(spec, value, refusal);
    case OPTION_FLAG:
        return hc_spec_add_flag(spec, value, refusal);
    case OPTION_RUNTIMES:
        return hc_cli_set_runtimes(&request->runtimes, value, refusal);
    case OPTION_FILE:
        return hc_run_add_files(spec, value, refusal);
    case OPTION_STDIN:
        return set_stdin(spec, value, refusal);
    case OPTION_ENV:
        return hc_spec_add_env(spec, value, refusal);
    case OPTION_PROFILE:
        return hc_option_text(&spec->profile, value);
    case OPTION_NETWORK:
        return strcmp(value, "none") == 0 ? 0 : bad(refusal, "network", value, "there is only: none");
    case OPTION_OUT:
        return value[0] != '\0' ? hc_option_text(&request->out, value)
                                : bad(refusal, "out", value, "wanted a folder");
    case OPTION_COLLECT:
        return set_collect(spec, value, refusal);
    case OPTION_EXPECT_STDOUT:
        return expect_stdout(request, value, refusal);
    case OPTION_EXPECT_NUMBER:
        return expect_number(request, value, refusal);
    case OPTION_ACCEPT:
        return hc_run_accept_file(request, value, refusal);
    case OPTION_DETERMINISTIC:
        return deterministic(spec, value, refusal);
    case OPTION_COLD:
    case OPTION_WARM:
        if (spec->warmth != HC_WARMTH_DEFAULT && (spec->warmth == HC_WARMTH_COLD) != (option == OPTION_COLD))
            return bad(refusal, "warm", "", "--cold and --warm exclude each other");
        spec->warmth = option == OPTION_COLD ? HC_WARMTH_COLD : HC_WARMTH_WARM;
        return 0;
    case OPTION_MIN_GRADE:
        return set_grade(spec, value, refusal);
    case OPTION_ALLOW:
        return allow_layer(spec, value, refusal);
    case OPTION_REDACT:
        return hc_spec_add_redact(spec, value, refusal);
    case OPTION_STORE:
        return value[0] != '\0' ? hc_option_text(&request->store, value)
                                : bad(refusal, "store", value, "wanted a folder or none");
    case OPTION_JSON:
        request->json = true;
        return 0;
    case OPTION_HELP:
        request->help = true;
        return 0;
    default:
        return 0;
    }
}

/* A folder that is not there would be overlooked. */
int hc_cli_set_runtimes(char **slot, const char *value, struct hc_refusal *refusal)
{
    struct stat info;
    if (stat(value, &info) != 0)
        return bad(refusal, "runtimes", value, strerror(errno));
    return S_ISDIR(info.st_mode) ? hc_option_text(slot, value)
                                 : bad(refusal, "runtimes", value, "is no folder");
}

/* The program: FILE, "-" for standard input, or nothing when -c was given. */
static int take_program(struct hc_run_request *request, const char *operand, struct hc_refusal *refusal)
{
    struct hc_spec *spec = &request->spec;
    if (operand == NULL)
        return spec->code_given
                   ? 0
                   : hc_refuse(refusal, HC_CAUSE_FIELD, "code", "no program: give FILE, -c CODE or - ");
    if (spec->code_given)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "code",
                         "the program is given twice: -c and '%.100s' (arguments go after --)", operand);
    bool from_stdin = strcmp(operand, "-") == 0;
    if (from_stdin && spec->stdin_fd >= 0)
        return hc_refuse(refusal, HC_CAUSE_FIELD, "stdin",
                         "standard input can't be the program and its input at once");
    int error = hc_run_read_file("code", from_stdin ? "/dev/stdin" : operand, HC_SPEC_CODE_BYTES_MAX,
                                 &spec->code, &spec->code_bytes, refusal);
    if (error != 0)
        return error;
    spec->code_given = true;
    if (from_stdin)
        return 0;
    const char *slash = strrchr(operand, '/');
    return hc_option_text(&spec->program_name, slash != NULL ? slash + 1 : operand);
}

static int take_arguments(struct hc_spec *spec, struct hc_arguments *arguments, struct hc_refusal *refusal)
{
    size_t bytes = 0;
    for (; arguments->at < arguments->argc; arguments->at++) {
        bytes += strlen(arguments->argv[arguments->at]) + 1;
        if (spec->arg_count >= 512 || bytes > 131072)
            return hc_refuse(refusal, HC_CAUSE_FIELD, "arguments", "more than 512 arguments or 128K in all");
        int error = hc_spec_add_arg(spec, arguments->argv[arguments->at]);
        if (error != 0)
            return error;
    }
    return 0;
}

/* Usage errors are answered in JSON too, wherever --json stands. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

int hc_run_request_parse(int argc, char **argv, struct hc_run_request *ret_request,
                         struct hc_refusal *refusal)
{
    struct hc_run_request *request = ret_request;
    struct hc_arguments arguments = {.argc = argc, .at = 1, .argv = argv};
    const char *value, *operand = NULL;
    char message[256];
    memset(request, 0, sizeof *request);
    request->json = wants_json(argc, argv);
    int error = hc_spec_init(&request->spec);
    while (error == 0) {
        int option = hc_option_next(hc_command_named("run"), &arguments, &value, message);
        if (option == HC_OPTION_BAD)
            error = hc_refuse(refusal, HC_CAUSE_FIELD, "arguments", "%s", message);
        else if (option == HC_OPTION_OPERAND && operand == NULL)
            operand = arguments.argv[arguments.at++];
        else if (option == HC_OPTION_OPERAND)
            error = hc_refuse(refusal, HC_CAUSE_FIELD, "arguments",
                              "'%.100s': arguments of the program go after --", arguments.argv[arguments.at]);
        else if (option == HC_OPTION_END)
            break;
        else
            error = take_option(request, option, value, refusal);
        if (request->help)
            return error;
    }
    if (error == 0 && arguments.at < arguments.argc) /* the "--" itself */
        arguments.at++;
    if (error == 0)
        error = take_arguments(&request->spec, &arguments, refusal);
    if (error == 0)
        error = take_program(request, operand, refusal);
    return error;
}

void hc_run_request_done(struct hc_run_request *request)
{
    hc_spec_done(&request->spec);
    free(request->out);
    free(request->store);
    free(request->runtimes);
    json_decref(request->predicates);
    memset(request, 0, sizeof *request);
}
