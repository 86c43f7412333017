/* Prints the JSON Schema of a record (share/schema/hotcell.run.1.json), with --release or --replay that of a
 * record of another kind, or with --markdown the tables of docs/record.md.
 *
 * The fields are rows here; the words in them are the rows of src/cell/words.c. What follows from a state, a
 * status or a cause is part of the schema too, so that whoever reads records checks the same promises.
 */
#include "base/quantity.h"
#include "cell/words.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTEGER_MAX    9007199254740991 /* 2^53 - 1: what every JSON reader keeps exactly */
#define LIST_MAX       100000
#define FILES_MAX      1000
#define ARGUMENTS      6
#define DATE_PATTERN   "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?Z$"
#define SHA256_PATTERN "^[0-9a-f]{64}$"
#define BASE64_PATTERN "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

/* ---- words ---- */

/* Filled from the tables by collect_words(); a NULL ends each. */
static const char *state_words[HC_STATE_COUNT + 1];
static const char *status_words[HC_STATUS_COUNT + 1];
static const char *cause_words[HC_CAUSE_COUNT + 1];
static const char *layer_words[HC_LAYER_COUNT + 1];
static const char *layer_state_words[4];
static const char *const grade_words[] = {
    [HC_GRADE_A] = "A", [HC_GRADE_B] = "B", [HC_GRADE_C] = "C", [HC_GRADE_D] = "D", NULL};

/* Lists that have no other reader yet. */
static const char *const schema_words[] = {"hotcell.run/1", NULL};
static const char *const encoding_words[] = {"utf-8", "base64", NULL};
static const char *const confidence_words[] = {"exact", "sampled", "lower_bound", NULL};
static const char *const network_words[] = {"none", NULL};
static const char *const protocol_words[] = {"tcp", "udp", "unix", "raw", "netlink", "vsock", "other", NULL};
static const char *const decision_words[] = {"allowed", "refused", NULL};
static const char *const tier_words[] = {"native", "gvisor", "microvm", "wasm", NULL};
static const char *const attested_words[] = {"before_exec", "after_exec", NULL};
static const char *const risk_words[] = {"low", "medium", "high", NULL};
static const char *const severity_words[] = {"note", "warning", "error", NULL};
static const char *const acceptance_words[] = {"accepted", "rejected", "not_requested", "error", NULL};
static const char *const release_words[] = {"not_authorised", "authorised", NULL};

static void collect_words(void)
{
    for (int i = 0; i < HC_STATE_COUNT; i++)
        state_words[i] = hc_state_names[i];
    for (int i = 0; i < HC_STATUS_COUNT; i++)
        status_words[i] = hc_statuses[i].name;
    for (int i = HC_CAUSE_NONE + 1; i < HC_CAUSE_COUNT; i++)
        cause_words[i - 1] = hc_causes[i].name;
    for (int i = 0; i < HC_LAYER_COUNT; i++)
        layer_words[i] = hc_layers[i].name;
    for (int i = HC_LAYER_APPLIED; i <= HC_LAYER_ACCEPTED_ABSENT; i++)
        layer_state_words[i - 1] = hc_layer_state_names[i];
}

/* ---- what a status allows ---- */

#define STATE(name)   (1u << HC_STATE_##name)
#define CAUSE(name)   (1u << HC_CAUSE_##name)
#define ENDINGS       (CAUSE(EXIT_CODE) | CAUSE(EXCEPTION) | CAUSE(SIGNAL))
#define TIMES         (CAUSE(CPU_TIME) | CAUSE(WALL_TIME))
#define MEMORIES      (CAUSE(MEMORY) | CAUSE(HOST_MEMORY))
#define DISKS         (CAUSE(DISK_BYTES) | CAUSE(INODES))
#define STATIC_POLICY (CAUSE(MODULE) | CAUSE(CALL) | CAUSE(DEPENDENCY))
_Static_assert(HC_CAUSE_COUNT <= 32, "a set of causes is an unsigned");

static const struct {
    unsigned states;
    unsigned causes;
} allowed[HC_STATUS_COUNT] = {
    [HC_STATUS_OK] = {STATE(FINISHED), CAUSE(NONE)},
    [HC_STATUS_SYNTAX_ERROR] = {STATE(FINISHED), ENDINGS},
    /* The compile step has limits of its own: any of them may have ended it. */
    [HC_STATUS_COMPILE_ERROR] = {STATE(FINISHED),
                                 ENDINGS | TIMES | MEMORIES | DISKS | CAUSE(PROCESSES) | CAUSE(OUTPUT_BYTES)},
    [HC_STATUS_RUNTIME_ERROR] = {STATE(FINISHED), ENDINGS},
    [HC_STATUS_TIMEOUT] = {STATE(FINISHED), TIMES},
    [HC_STATUS_MEMORY_LIMIT] = {STATE(FINISHED), MEMORIES},
    [HC_STATUS_PROCESS_LIMIT] = {STATE(FINISHED), CAUSE(PROCESSES)},
    [HC_STATUS_OUTPUT_LIMIT] = {STATE(FINISHED), CAUSE(OUTPUT_BYTES)},
    [HC_STATUS_DISK_LIMIT] = {STATE(FINISHED), DISKS},
    [HC_STATUS_POLICY_VIOLATION] = {STATE(FINISHED), CAUSE(SYSCALL) | STATIC_POLICY},
    [HC_STATUS_REFUSED] = {STATE(REFUSED), STATIC_POLICY | CAUSE(FIELD) | CAUSE(GRADE) | CAUSE(RUNTIME) |
                                               CAUSE(QUEUE_FULL) | CAUSE(HOST)},
    /* A run can be cancelled while it waits. */
    [HC_STATUS_CANCELLED] = {STATE(FINISHED) | STATE(REFUSED), CAUSE(CLIENT)},
    [HC_STATUS_FAULT] = {STATE(FAULT) | STATE(REFUSED), CAUSE(HOST)},
};

/* The limit that a cause says was reached. HOST_MEMORY has none: the cell was below its limit. */
static const struct {
    enum hc_cause cause;
    enum hc_limit limit;
} limit_of_cause[] = {
    {HC_CAUSE_CPU_TIME, HC_LIMIT_CPU},
    {HC_CAUSE_WALL_TIME, HC_LIMIT_WALL},
    {HC_CAUSE_MEMORY, HC_LIMIT_MEMORY},
    {HC_CAUSE_PROCESSES, HC_LIMIT_PROCESSES},
    {HC_CAUSE_OUTPUT_BYTES, HC_LIMIT_OUTPUT_TOTAL},
    {HC_CAUSE_DISK_BYTES, HC_LIMIT_DISK},
    {HC_CAUSE_INODES, HC_LIMIT_INODES},
};

/* ---- fields ---- */

enum kind { TEXT, FLAG, NUMBER, DATE, SHA256, BASE64, WORD, OBJECT, REFERENCE };
enum shape { ONE, LIST, MAP, BY_LIMIT, BY_METER };

struct field {
    const char *name; /* NULL ends a table */
    enum kind kind;
    const char *about;
    bool null;
    enum shape shape;            /* null speaks of the whole, never of its items */
    long long min, max;          /* NUMBER: max 0 is INTEGER_MAX. LIST: number of items, max 0 is LIST_MAX */
    const char *pattern;         /* TEXT; of the names in a MAP */
    const char *const *words;    /* WORD */
    const struct field *members; /* OBJECT */
    const char *definition;      /* REFERENCE */
};

#define FIELD(field_name, field_kind, field_about, ...)                                                      \
    {                                                                                                        \
        .name = (field_name), .kind = (field_kind), .about = (field_about), __VA_ARGS__                      \
    }

static const struct field redaction_fields[] = {
    FIELD("kind", TEXT, "what was scrubbed, for example host_path or secret"),
    FIELD("count", NUMBER, "how many places", .min = 1),
    {0},
};

static const struct field stream_fields[] = {
    FIELD("text", TEXT, "what was kept, when it is valid UTF-8: head and tail without a marker between them",
          .null = true),
    FIELD("base64", BASE64, "what was kept, when it is not valid UTF-8", .null = true),
    FIELD("encoding", WORD, "utf-8: see text; base64: see base64", .words = encoding_words),
    FIELD("bytes", NUMBER, "bytes written by the run in all"),
    FIELD("kept_bytes", NUMBER, "bytes of them that were kept, before anything was scrubbed"),
    FIELD("head_bytes", NUMBER,
          "bytes of the kept ones that come from the beginning; equals kept_bytes if not truncated"),
    FIELD("truncated", FLAG, "whether anything was left out"),
    FIELD("omitted_bytes", NUMBER, "bytes minus kept_bytes"),
    FIELD("sha256", SHA256, "digest of everything written, kept or not"),
    FIELD("redactions", OBJECT, "what was scrubbed from the kept part", .shape = LIST,
          .members = redaction_fields),
    {0},
};

static const struct field finding_fields[] = {
    FIELD("rule", TEXT, "id of the rule"),
    FIELD("line", NUMBER, "line in the program, from 1", .null = true, .min = 1),
    FIELD("column", NUMBER, "column in the line, from 1", .null = true, .min = 1),
    FIELD("name", TEXT, "the offending name", .null = true),
    FIELD("message", TEXT, "what is wrong and what would be allowed"),
    FIELD("severity", WORD, "note and warning inform, error refuses or ends the run",
          .words = severity_words),
    {0},
};

static const struct field limit_fields[] = {
    FIELD("requested", NUMBER, "what the request asked for; null: nothing, the profile's default was taken",
          .null = true, .min = 1),
    FIELD("applied", NUMBER, "what was enforced, read back where the kernel allows; null: not limited",
          .null = true, .min = 1),
    FIELD("enforced_by", TEXT, "the mechanism", .null = true),
    FIELD("hit", FLAG, "whether the run reached it; null: not known", .null = true),
    {0},
};

static const struct field error_fields[] = {
    FIELD("type", TEXT, "type of the exception or error (untrusted)", .null = true),
    FIELD("message", TEXT, "its message (untrusted)", .null = true),
    FIELD("file", TEXT, "file as the program names it (untrusted)", .null = true),
    FIELD("line", NUMBER, "line, from 1 (untrusted)", .null = true),
    FIELD("column", NUMBER, "column, from 1 (untrusted)", .null = true),
    FIELD("field", TEXT, "the field or flag of the request that was refused", .null = true),
    FIELD("detail", TEXT, "more for people; with the cause host it names the stage", .null = true),
    {0},
};

static const struct field result_fields[] = {
    FIELD("text", TEXT, "the value as text", .null = true),
    FIELD("json", TEXT,
          "the value as JSON text, exactly as the run gave it: a string, since a record holds no floats",
          .null = true),
    FIELD("mime", BASE64, "media type to base64 of the bytes", .shape = MAP,
          .pattern = "^[a-z]+/[A-Za-z0-9.+-]+$"),
    {0},
};

static const struct field compile_fields[] = {
    FIELD("exit_code", NUMBER, "exit code of the compiler, 0-255; null: ended by a signal", .null = true,
          .max = 255),
    FIELD("stdout", REFERENCE, "standard output of the compiler", .definition = "stream"),
    FIELD("stderr", REFERENCE, "standard error of the compiler", .definition = "stream"),
    FIELD("wall_us", NUMBER, "microseconds from the compiler's exec to its end", .null = true),
    FIELD("status", WORD, "ending of the compile step", .words = status_words),
    {0},
};

static const struct field artifact_fields[] = {
    FIELD("path", TEXT,
          "path below the working folder; bytes that are not UTF-8, control characters and backslashes "
          "are written \\xNN"),
    FIELD("path_base64", BASE64, "the exact bytes of the path; null: path is exact", .null = true),
    FIELD("bytes", NUMBER, "size in bytes"),
    FIELD("sha256", SHA256, "digest of the content; null: not read, because a limit was passed",
          .null = true),
    FIELD("type", TEXT, "media type found in the content; null: not looked for", .null = true),
    FIELD("exported", FLAG, "whether it was handed out"),
    FIELD("findings", REFERENCE, "what inspection found in it", .shape = LIST, .definition = "finding"),
    {0},
};

static const struct field files_fields[] = {
    FIELD("created", TEXT, "paths (written as in artifacts) that are new", .shape = LIST, .max = FILES_MAX),
    FIELD("changed", TEXT, "paths of inputs with other content", .shape = LIST, .max = FILES_MAX),
    FIELD("deleted", TEXT, "paths of inputs that are gone", .shape = LIST, .max = FILES_MAX),
    FIELD("omitted", NUMBER, "paths left out of the three lists, which end at 1000 each"),
    {0},
};

static const struct field usage_fields[] = {
    FIELD("wall_us", NUMBER, "microseconds from the program's exec to its end", .null = true),
    FIELD("cpu_us", NUMBER, "microseconds of CPU time of all processes", .null = true),
    FIELD("cpu_user_us", NUMBER, "microseconds of it in user mode", .null = true),
    FIELD("cpu_system_us", NUMBER, "microseconds of it in the kernel", .null = true),
    FIELD("memory_peak_bytes", NUMBER, "largest memory of the whole cell in bytes", .null = true),
    FIELD("processes_peak", NUMBER, "largest number of tasks (processes and threads) at one time",
          .null = true),
    FIELD("scratch_bytes", NUMBER, "bytes used in the scratch space", .null = true),
    FIELD("scratch_inodes", NUMBER, "files in the scratch space", .null = true),
    FIELD("open_files", NUMBER, "open descriptors of one process", .null = true),
    FIELD("io_bytes", NUMBER, "bytes read from and written to disks", .null = true),
    FIELD("meters", TEXT, "for every meter that is not null: the mechanism", .shape = BY_METER),
    FIELD("confidence", WORD, "for every meter that is not null: how far to trust it", .shape = BY_METER,
          .words = confidence_words),
    {0},
};

static const struct field attempt_fields[] = {
    FIELD("at_us", NUMBER, "microseconds since the program's exec", .null = true),
    FIELD("call", TEXT, "name of the system call"),
    FIELD("protocol", WORD, "protocol", .null = true, .words = protocol_words),
    FIELD("address", TEXT, "address as text (untrusted)", .null = true),
    FIELD("port", NUMBER, "port", .null = true, .max = 65535),
    FIELD("name", TEXT, "host name that was asked for", .null = true),
    FIELD("decision", WORD, "what was answered", .words = decision_words),
    FIELD("rule", TEXT, "id of the rule that decided", .null = true),
    {0},
};

static const struct field network_fields[] = {
    FIELD("mode", WORD, "none: loopback and nothing else", .words = network_words),
    FIELD("attempts", OBJECT, "attempts to reach an address, the first ones", .shape = LIST,
          .members = attempt_fields),
    FIELD("omitted", NUMBER, "attempts that were counted only"),
    {0},
};

static const struct field first_call_fields[] = {
    FIELD("at_us", NUMBER, "microseconds since the program's exec"),
    FIELD("arguments", TEXT, "the six arguments, hexadecimal", .shape = LIST, .min = ARGUMENTS,
          .max = ARGUMENTS, .pattern = "^0x[0-9a-f]{1,16}$"),
    FIELD("path", TEXT, "the path in them, if there is one (untrusted; written as in artifacts)",
          .null = true),
    {0},
};

static const struct field denied_fields[] = {
    FIELD("name", TEXT, "name of the system call"),
    FIELD("count", NUMBER, "how often it was refused", .min = 1),
    FIELD("first", OBJECT, "the first time, if its arguments were seen", .null = true,
          .members = first_call_fields),
    {0},
};

static const struct field filter_fields[] = {
    FIELD("sha256", SHA256, "digest of the filter program that was loaded"),
    FIELD("allowed", NUMBER, "number of system calls that it lets pass", .null = true),
    {0},
};

static const struct field layer_fields[] = {
    FIELD("name", WORD, "layer", .words = layer_words),
    FIELD("state", WORD, "what became of it", .words = layer_state_words),
    FIELD("evidence", TEXT, "what was read back, and from where; null: nothing", .null = true),
    {0},
};

static const struct field isolation_fields[] = {
    FIELD("tier", WORD, "kind of boundary", .words = tier_words),
    FIELD("grade", WORD, "measured strength, A best; null: not reached", .null = true, .words = grade_words),
    FIELD("attested", WORD, "when the layers were read back last; null: never", .null = true,
          .words = attested_words),
    FIELD("layers", OBJECT, "each layer once", .shape = LIST, .members = layer_fields),
    FIELD("uid", NUMBER, "user id of the program on the host", .null = true),
    FIELD("gid", NUMBER, "group id of the program on the host", .null = true),
    FIELD("capabilities", TEXT,
          "effective, permitted, inheritable, bounding and ambient set together, hexadecimal", .null = true,
          .pattern = "^[0-9a-f]{16}$"),
    FIELD("mounts", TEXT, "mount points of the cell with their options, as read back", .shape = LIST),
    {0},
};

static const struct field cell_fields[] = {
    FIELD("id", TEXT, "id of the cell", .pattern = "^[A-Za-z0-9._-]{1,64}$"),
    FIELD("created_at", DATE, "when the cell was made"),
    FIELD("destroyed_at", DATE, "when it was gone; null: not yet when the record was written", .null = true),
    FIELD("warm", FLAG, "whether an interpreter was ready in it"),
    FIELD("made_ahead", FLAG, "whether it was made before the run was known"),
    {0},
};

static const struct field policy_fields[] = {
    FIELD("profile", TEXT, "name of the profile"),
    FIELD("version", NUMBER, "version of the profile", .null = true),
    FIELD("sha256", SHA256, "digest of the profile's text", .null = true),
    FIELD("risk", WORD, "risk that the profile states", .null = true, .words = risk_words),
    FIELD("findings", REFERENCE, "findings in the program", .shape = LIST, .definition = "finding"),
    {0},
};

static const struct field predicate_fields[] = {
    FIELD("kind", TEXT, "kind of the predicate", .pattern = "^[a-z][a-z0-9_]*$"),
    FIELD("ok", FLAG, "whether it holds; null: not evaluated", .null = true),
    FIELD("expected", TEXT, "what was expected, as text", .null = true),
    FIELD("got", TEXT, "what was found, as text", .null = true),
    {0},
};

static const struct field acceptance_fields[] = {
    FIELD("status", WORD, "whether the result is accepted", .words = acceptance_words),
    FIELD("predicates", OBJECT, "one row per predicate; null: not evaluated", .null = true, .shape = LIST,
          .members = predicate_fields),
    {0},
};

static const struct field release_fields[] = {
    FIELD("status", WORD, "leave to publish or act; never given by a run", .words = release_words),
    FIELD("by", TEXT, "who gave it", .null = true),
    FIELD("at", DATE, "when", .null = true),
    {0},
};

static const struct field runtime_fields[] = {
    FIELD("language", TEXT, "language"),
    FIELD("version", TEXT, "version of the interpreter or compiler", .null = true),
    FIELD("environment_sha256", SHA256, "digest over packages, interpreter and listing of the roots",
          .null = true),
    FIELD("deterministic", TEXT, "what was fixed", .shape = LIST),
    {0},
};

static const struct field timing_fields[] = {
    FIELD("queued_us", NUMBER, "microseconds in the queue", .null = true),
    FIELD("provision_us", NUMBER, "microseconds to get a cell", .null = true),
    FIELD("check_us", NUMBER, "microseconds of the static and syntax checks", .null = true),
    FIELD("compile_us", NUMBER, "microseconds of the compile step", .null = true),
    FIELD("run_us", NUMBER, "microseconds of the run", .null = true),
    FIELD("collect_us", NUMBER, "microseconds to collect artifacts", .null = true),
    FIELD("accept_us", NUMBER, "microseconds of acceptance", .null = true),
    FIELD("teardown_us", NUMBER, "microseconds to destroy the cell", .null = true),
    FIELD("total_us", NUMBER, "microseconds from the request to the record", .null = true),
    {0},
};

static const struct field residue_fields[] = {
    FIELD("processes", NUMBER, "processes left after teardown", .null = true),
    FIELD("mounts", NUMBER, "mounts left", .null = true),
    FIELD("cgroups", NUMBER, "cgroups left", .null = true),
    FIELD("files", NUMBER, "files left", .null = true),
    {0},
};

static const struct field input_fields[] = {
    FIELD("name", TEXT, "path below the working folder (written as in artifacts)"),
    FIELD("bytes", NUMBER, "size in bytes"),
    FIELD("sha256", SHA256, "digest of the content"),
    {0},
};

static const struct field stdin_fields[] = {
    FIELD("bytes", NUMBER, "size in bytes"),
    FIELD("sha256", SHA256, "digest of the content"),
    {0},
};

static const struct field request_fields[] = {
    FIELD("code_sha256", SHA256, "digest of the program", .null = true),
    FIELD("inputs", OBJECT, "input files", .shape = LIST, .members = input_fields),
    FIELD("limits", NUMBER, "limits that were asked for, in the units of limits", .shape = BY_LIMIT),
    FIELD("profile", TEXT, "profile that was asked for; null: none", .null = true),
    FIELD("arguments", TEXT, "arguments of the program", .shape = LIST),
    FIELD("stdin", OBJECT, "what was taken from standard input; null: there was none", .null = true,
          .members = stdin_fields),
    FIELD("environment", TEXT, "names of the variables that were given; their values are not in the record",
          .shape = LIST),
    FIELD("sha256", SHA256, "digest of the document by which the run can be replayed; null: not kept",
          .null = true),
    FIELD("flags", TEXT, "flags that were given to the compile step", .shape = LIST),
    {0},
};

static const struct field chain_fields[] = {
    FIELD("seq", NUMBER, "number of the record in its store"),
    FIELD("previous_sha256", SHA256, "chain.sha256 of the record before; null: this is the first",
          .null = true),
    FIELD("sha256", SHA256, "digest over the canonical form of this record without this field"),
    {0},
};

static const struct field record_fields[] = {
    FIELD("schema", WORD, "name and version of this format", .words = schema_words),
    FIELD("id", TEXT, "id of the run", .pattern = "^[A-Za-z0-9._-]{1,64}$"),
    FIELD("created_at", DATE, "when the request arrived: RFC 3339, UTC"),
    FIELD("submitter", TEXT, "who asked for the run", .null = true),
    FIELD("state", WORD, "finished; refused: did not start; fault: hotcell or its host failed",
          .words = state_words),
    FIELD("status", WORD, "how the run ended", .words = status_words),
    FIELD("cause", WORD, "what ended it; null: nothing to explain", .null = true, .words = cause_words),
    FIELD("exit_code", NUMBER, "exit code of the main process, 0-255; null: there was none", .null = true,
          .max = 255),
    FIELD("signal", NUMBER, "number of the signal that ended the main process; null: there was none",
          .null = true, .min = 1, .max = 64),
    FIELD("signal_name", TEXT, "its name, for example SIGSEGV", .null = true, .pattern = "^SIG[A-Z0-9+-]+$"),
    FIELD("error", OBJECT, "what the program reported (untrusted), or what was refused", .null = true,
          .members = error_fields),
    FIELD("stdout", REFERENCE, "standard output of the run; null: nothing ran", .definition = "stream"),
    FIELD("stderr", REFERENCE, "standard error of the run; null: nothing ran", .definition = "stream"),
    FIELD("result", OBJECT, "value of the program, where asked for", .null = true, .members = result_fields),
    FIELD("compile", OBJECT, "the compile step; null: there was none", .null = true,
          .members = compile_fields),
    FIELD("artifacts", OBJECT, "files that the run left", .null = true, .shape = LIST,
          .members = artifact_fields),
    FIELD("files", OBJECT, "changes in the working folder", .null = true, .members = files_fields),
    FIELD("usage", OBJECT, "what the run used; a meter that the host lacks is null", .null = true,
          .members = usage_fields),
    FIELD("limits", REFERENCE, "every limit of the run", .null = true, .shape = BY_LIMIT,
          .definition = "limit"),
    FIELD("network", OBJECT, "network of the run", .null = true, .members = network_fields),
    FIELD("syscalls_denied", OBJECT, "system calls that were refused", .null = true, .shape = LIST,
          .members = denied_fields),
    FIELD("filter", OBJECT, "the system call filter", .null = true, .members = filter_fields),
    FIELD("isolation", OBJECT, "the boundary that held", .null = true, .members = isolation_fields),
    FIELD("cell", OBJECT, "the cell; null: none was made", .null = true, .members = cell_fields),
    FIELD("policy", OBJECT, "the profile and what it found", .null = true, .members = policy_fields),
    FIELD("acceptance", OBJECT, "whether the result is what was asked for", .members = acceptance_fields),
    FIELD("release", OBJECT, "leave to publish or act", .members = release_fields),
    FIELD("runtime", OBJECT, "what ran the program", .null = true, .members = runtime_fields),
    FIELD("timing", OBJECT, "where the time went", .null = true, .members = timing_fields),
    FIELD("residue", OBJECT, "what teardown left behind: zero everywhere; null: not counted yet",
          .null = true, .members = residue_fields),
    FIELD("request", OBJECT, "what was asked for; null: it could not be read", .null = true,
          .members = request_fields),
    FIELD("chain", OBJECT, "place in the hash chain; null: not stored", .null = true,
          .members = chain_fields),
    {0},
};

/* ---- records of other kinds ---- */

#define ID_FIELD(about) FIELD("id", TEXT, about, .pattern = "^[A-Za-z0-9._-]{1,64}$")

static const struct field subject_fields[] = {
    ID_FIELD("id of the record"),
    FIELD("sha256", SHA256, "its chain.sha256; null: it was not stored", .null = true),
    {0},
};

static const char *const release_schema_words[] = {"hotcell.release/1", NULL};
static const struct field release_record_fields[] = {
    FIELD("schema", WORD, "name and version of this format", .words = release_schema_words),
    ID_FIELD("id of the release"),
    FIELD("created_at", DATE, "when: RFC 3339, UTC"),
    FIELD("run", OBJECT, "the record of the run that it speaks of", .members = subject_fields),
    FIELD("status", WORD, "authorised: leave was given; not_authorised: it was taken back",
          .words = release_words),
    FIELD("by", TEXT, "who, in his own words"),
    FIELD("note", TEXT, "why; null: nothing was said", .null = true),
    FIELD("chain", OBJECT, "place in the hash chain; null: not stored", .null = true,
          .members = chain_fields),
    {0},
};

static const char *const replay_schema_words[] = {"hotcell.replay/1", NULL};
static const char *const verdict_words[] = {"identical", "differs", "environment_changed", NULL};
static const struct field change_fields[] = {
    FIELD("what", TEXT, "the fact: runtime.version, host.kernel, ..."),
    FIELD("before", TEXT, "when the run was recorded; null: not known", .null = true),
    FIELD("now", TEXT, "at the replay; null: not known", .null = true),
    {0},
};
static const struct field difference_fields[] = {
    FIELD("what", TEXT, "the field, stream or artifact"),
    FIELD("before", TEXT, "what the record says; null: nothing", .null = true),
    FIELD("now", TEXT, "what came out now; null: nothing", .null = true),
    FIELD("offset", NUMBER, "the first byte that differs, from 0; null: not one of those that were kept",
          .null = true),
    FIELD("before_context", TEXT, "some bytes around it, control characters made visible", .null = true),
    FIELD("now_context", TEXT, "likewise", .null = true),
    {0},
};
static const struct field replay_record_fields[] = {
    FIELD("schema", WORD, "name and version of this format", .words = replay_schema_words),
    ID_FIELD("id of the replay"),
    FIELD("created_at", DATE, "when: RFC 3339, UTC"),
    FIELD("origin", OBJECT, "the record that was replayed", .members = subject_fields),
    FIELD("run", OBJECT, "the record of the run that was done for it", .members = subject_fields),
    FIELD("verdict", WORD, "what it says", .words = verdict_words),
    FIELD("environment", OBJECT, "what is not as it was", .shape = LIST, .members = change_fields),
    FIELD("differences", OBJECT, "what did not come out as it did", .shape = LIST,
          .members = difference_fields),
    FIELD("chain", OBJECT, "place in the hash chain; null: not stored", .null = true,
          .members = chain_fields),
    {0},
};

/* What a run that finished always has. Teardown may be later than the record: residue is not in the list. */
static const char *const known_when_finished[] = {
    "artifacts", "files", "usage",  "limits",  "network", "syscalls_denied", "filter",
    "isolation", "cell",  "policy", "runtime", "timing",  "request",         NULL};

/* ---- from fields to schema ---- */

static const char *const unit_texts[] = {
    [HC_UNIT_US] = "microseconds",
    [HC_UNIT_BYTES] = "bytes",
    [HC_UNIT_COUNT_OF] = "number",
    [HC_UNIT_MILLI_CPUS] = "thousandths of a CPU",
};

/* Only want of memory makes a constructor fail, and there is nothing to save then. */
static json_t *must(json_t *value)
{
    if (!value) {
        fputs("schema-gen: out of memory, or a word that is not UTF-8\n", stderr);
        exit(1);
    }
    return value;
}

static void put(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, must(value)) < 0)
        must(NULL);
}

static void add(json_t *array, json_t *value)
{
    if (json_array_append_new(array, must(value)) < 0)
        must(NULL);
}

static json_t *word_list(const char *const *words)
{
    json_t *list = must(json_array());
    for (; *words; words++)
        add(list, json_string(*words));
    return list;
}

static json_t *typed(const char *type)
{
    return must(json_pack("{s:s}", "type", type));
}

static json_t *text_like(const char *pattern, const char *format)
{
    json_t *schema = typed("string");
    if (format)
        put(schema, "format", json_string(format));
    if (pattern)
        put(schema, "pattern", json_string(pattern));
    return schema;
}

static json_t *number_between(long long min, long long max)
{
    return must(json_pack("{s:s,s:I,s:I}", "type", "integer", "minimum", (json_int_t)min, "maximum",
                          (json_int_t)(max ? max : INTEGER_MAX)));
}

static json_t *closed_object(json_t *properties, json_t *required)
{
    json_t *schema = typed("object");
    put(schema, "properties", properties);
    if (required)
        put(schema, "required", required);
    put(schema, "additionalProperties", json_false());
    return schema;
}

static json_t *schema_of(const struct field *field);

static json_t *object_of(const struct field *members)
{
    json_t *properties = must(json_object()), *required = must(json_array());
    for (; members->name; members++) {
        put(properties, members->name, schema_of(members));
        add(required, json_string(members->name));
    }
    return closed_object(properties, required);
}

static json_t *single_of(const struct field *field)
{
    bool list = field->shape == LIST;

    switch (field->kind) {
    case TEXT:
        return text_like(field->shape == MAP ? NULL : field->pattern, NULL);
    case FLAG:
        return typed("boolean");
    case NUMBER:
        return number_between(list ? 0 : field->min, list ? 0 : field->max);
    case DATE:
        return text_like(DATE_PATTERN, "date-time");
    case SHA256:
        return text_like(SHA256_PATTERN, NULL);
    case BASE64:
        return text_like(BASE64_PATTERN, NULL);
    case WORD:
        return must(json_pack("{s:s,s:o}", "type", "string", "enum", word_list(field->words)));
    case OBJECT:
        return object_of(field->members);
    case REFERENCE:
        return must(json_pack("{s:s+}", "$ref", "#/$defs/", field->definition));
    }
    return must(NULL);
}

static json_t *list_of(const struct field *field)
{
    json_t *schema = typed("array");
    if (field->min)
        put(schema, "minItems", json_integer(field->min));
    put(schema, "maxItems", json_integer(field->max ? field->max : LIST_MAX));
    put(schema, "items", single_of(field));
    return schema;
}

static json_t *map_of(const struct field *field)
{
    json_t *schema = typed("object"), *names = must(json_object());
    put(names, field->pattern, single_of(field));
    put(schema, "patternProperties", names);
    put(schema, "additionalProperties", json_false());
    return schema;
}

/* One property per limit. The record lists them all; the request those that it asked for. */
static json_t *by_limit_of(const struct field *field)
{
    json_t *properties = must(json_object()), *required = must(json_array());
    bool all = field->kind == REFERENCE;

    for (int i = 0; i < HC_LIMIT_COUNT; i++) {
        const struct hc_limit_row *row = &hc_limits[i];
        json_t *schema = all ? single_of(field) : number_between(1, 0);
        put(schema, "description", json_sprintf("%s; unit: %s", row->meaning, unit_texts[row->unit]));
        put(properties, row->name, schema);
        if (all)
            add(required, json_string(row->name));
    }
    if (all)
        return closed_object(properties, required);
    json_decref(required);
    return closed_object(properties, NULL);
}

static json_t *by_meter_of(const struct field *field)
{
    json_t *properties = must(json_object());
    for (const struct field *meter = usage_fields; meter->name; meter++)
        if (meter->shape == ONE)
            put(properties, meter->name, single_of(field));
    return closed_object(properties, NULL);
}

static void allow_null(json_t *schema)
{
    json_t *words = json_object_get(schema, "enum");
    const char *type = json_string_value(json_object_get(schema, "type"));

    put(schema, "type", json_pack("[s,s]", type, "null"));
    if (words)
        add(words, json_null());
}

static json_t *schema_of(const struct field *field)
{
    json_t *schema = field->shape == LIST       ? list_of(field)
                     : field->shape == MAP      ? map_of(field)
                     : field->shape == BY_LIMIT ? by_limit_of(field)
                     : field->shape == BY_METER ? by_meter_of(field)
                                                : single_of(field);
    if (field->null)
        allow_null(schema);
    put(schema, "description", json_string(field->about));
    return schema;
}

/* ---- what follows from what ---- */

static json_t *when(const char *field, const char *word, json_t *properties)
{
    return must(json_pack("{s:{s:{s:{s:s}},s:[s]},s:{s:o}}", "if", "properties", field, "const", word,
                          "required", field, "then", "properties", properties));
}

static json_t *states_of(unsigned states)
{
    json_t *list = must(json_array());
    for (int i = 0; i < HC_STATE_COUNT; i++)
        if (states & (1u << i))
            add(list, json_string(hc_state_names[i]));
    return list;
}

static json_t *causes_of(unsigned causes)
{
    json_t *list = must(json_array());
    for (int i = 0; i < HC_CAUSE_COUNT; i++)
        if (causes & (1u << i))
            add(list, hc_causes[i].name ? json_string(hc_causes[i].name) : json_null());
    return list;
}

static void add_status_rules(json_t *rules)
{
    for (int i = 0; i < HC_STATUS_COUNT; i++) {
        json_t *then = must(json_pack("{s:{s:o},s:{s:o}}", "state", "enum", states_of(allowed[i].states),
                                      "cause", "enum", causes_of(allowed[i].causes)));
        if (i == HC_STATUS_OK)
            put(then, "exit_code", json_pack("{s:i}", "const", 0));
        if ((allowed[i].states & STATE(FINISHED)) && i != HC_STATUS_COMPILE_ERROR &&
            i != HC_STATUS_CANCELLED) {
            put(then, "stdout", typed("object"));
            put(then, "stderr", typed("object"));
        }
        add(rules, when("status", hc_statuses[i].name, then));
    }
}

static void add_cause_rules(json_t *rules)
{
    for (size_t i = 0; i < sizeof(limit_of_cause) / sizeof(limit_of_cause[0]); i++)
        add(rules, when("cause", hc_causes[limit_of_cause[i].cause].name,
                        json_pack("{s:{s:{s:{s:{s:{s:b}}}}}}", "limits", "properties",
                                  hc_limits[limit_of_cause[i].limit].name, "properties", "hit", "const", 1)));
    add(rules, when("cause", hc_causes[HC_CAUSE_FIELD].name,
                    json_pack("{s:{s:s,s:{s:{s:s}}}}", "error", "type", "object", "properties", "field",
                              "type", "string")));
    add(rules, when("cause", hc_causes[HC_CAUSE_HOST].name,
                    json_pack("{s:{s:s,s:{s:{s:s}}}}", "error", "type", "object", "properties", "detail",
                              "type", "string")));
}

/* A primary layer is there or its absence was accepted by name, and only some absences can be accepted. */
static json_t *layer_rule(void)
{
    json_t *primary = must(json_array()), *kept = must(json_array()), *rules = must(json_array());
    for (int i = 0; i < HC_LAYER_COUNT; i++) {
        if (hc_layers[i].primary)
            add(primary, json_string(hc_layers[i].name));
        if (!hc_layers[i].removable)
            add(kept, json_string(hc_layers[i].name));
    }
    add(rules,
        json_pack("{s:{s:{s:{s:o}}},s:{s:{s:{s:{s:s}}}}}", "if", "properties", "name", "enum", primary,
                  "then", "properties", "state", "not", "const", hc_layer_state_names[HC_LAYER_UNAVAILABLE]));
    add(rules,
        json_pack("{s:{s:{s:{s:o}}},s:{s:{s:{s:{s:s}}}}}", "if", "properties", "name", "enum", kept, "then",
                  "properties", "state", "not", "const", hc_layer_state_names[HC_LAYER_ACCEPTED_ABSENT]));
    return must(json_pack("{s:{s:{s:{s:o}}}}", "properties", "layers", "items", "allOf", rules));
}

static void add_state_rules(json_t *rules)
{
    json_t *then = must(json_object()), *layers = layer_rule();
    for (const char *const *name = known_when_finished; *name; name++)
        put(then, *name, json_pack("{s:{s:s}}", "not", "type", "null"));
    json_object_update(json_object_get(then, "isolation"), layers);
    json_decref(layers);
    add(rules, when("state", hc_state_names[HC_STATE_FINISHED], then));
    add(rules, when("state", hc_state_names[HC_STATE_REFUSED],
                    json_pack("{s:{s:n},s:{s:n},s:{s:n}}", "exit_code", "const", "signal", "const",
                              "signal_name", "const")));
}

static json_t *record_schema(void)
{
    json_t *schema =
        must(json_pack("{s:s,s:s,s:s,s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "$id",
                       "urn:hotcell:run:1", "title", "Record of one hotcell run", "description",
                       "Made by tools/schema-gen. Absent facts are null, never zero. Numbers are "
                       "integers: times in microseconds, sizes in bytes."));
    json_t *body = object_of(record_fields), *definitions = must(json_object()), *rules = must(json_array());
    json_t *stream = object_of(stream_fields);

    json_object_update(schema, body);
    json_decref(body);
    allow_null(stream); /* every stream is absent when its program never ran */
    put(definitions, "stream", stream);
    put(definitions, "finding", object_of(finding_fields));
    put(definitions, "limit", object_of(limit_fields));
    put(schema, "$defs", definitions);
    add_state_rules(rules);
    add_status_rules(rules);
    add_cause_rules(rules);
    put(schema, "allOf", rules);
    return schema;
}

static json_t *other_schema(const char *id, const char *title, const struct field *fields)
{
    json_t *schema =
        must(json_pack("{s:s,s:s,s:s,s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "$id",
                       id, "title", title, "description", "Made by tools/schema-gen."));
    json_t *body = object_of(fields);

    json_object_update(schema, body);
    json_decref(body);
    return schema;
}

static int print_schema(const char *kind)
{
    json_t *schema =
        strcmp(kind, "release") == 0
            ? other_schema("urn:hotcell:release:1", "Record of one release", release_record_fields)
        : strcmp(kind, "replay") == 0
            ? other_schema("urn:hotcell:replay:1", "Record of one replay", replay_record_fields)
            : record_schema();
    int rc = json_dumpf(schema, stdout, JSON_INDENT(2));

    json_decref(schema);
    if (rc == 0)
        putchar('\n');
    return rc;
}

/* ---- tables of the documentation ---- */

static void print_code_list(json_t *words)
{
    size_t i;
    json_t *word;

    json_array_foreach(words, i, word)
    {
        if (json_is_null(word))
            printf("%snull", i ? ", " : "");
        else
            printf("%s`%s`", i ? ", " : "", json_string_value(word));
    }
    json_decref(words);
}

static void print_statuses(void)
{
    puts("### Statuses\n");
    puts("| status | meaning | exit code of `hotcell run` | state | cause |\n|---|---|---|---|---|");
    for (int i = 0; i < HC_STATUS_COUNT; i++) {
        const struct hc_status_row *row = &hc_statuses[i];
        printf("| `%s` | %s | ", row->name, row->meaning);
        if (row->exit_rule == HC_EXIT_OF_PROGRAM)
            printf("that of the program or compiler, 128+n for signal n");
        else if (row->exit_rule == HC_EXIT_FIXED)
            printf("%d", row->exit_code);
        else
            printf("by cause, else %d", row->exit_code);
        printf(" | ");
        print_code_list(states_of(allowed[i].states));
        printf(" | ");
        print_code_list(causes_of(allowed[i].causes));
        puts(" |");
    }
}

static void print_causes(void)
{
    puts("\n### Causes\n\nThe exit code is that of `hotcell run` when the status leaves it to the cause.\n");
    puts("| cause | meaning | exit code |\n|---|---|---|");
    for (int i = HC_CAUSE_NONE + 1; i < HC_CAUSE_COUNT; i++) {
        printf("| `%s` | %s | ", hc_causes[i].name, hc_causes[i].meaning);
        if (hc_causes[i].exit_code)
            printf("%d |\n", hc_causes[i].exit_code);
        else
            puts("|");
    }
}

static void print_quantity(uint64_t value, enum hc_unit unit)
{
    char text[32];

    if (value == HC_LIMIT_AUTO)
        (void)snprintf(text, sizeof(text), "auto");
    else if (value == HC_LIMIT_NONE)
        (void)snprintf(text, sizeof(text), "none");
    else if (unit == HC_UNIT_US)
        hc_format_duration(value, text);
    else if (unit == HC_UNIT_BYTES)
        hc_format_bytes(value, text);
    else if (unit == HC_UNIT_MILLI_CPUS && value % 1000)
        (void)snprintf(text, sizeof(text), "%g", (double)value / 1000);
    else
        (void)snprintf(text, sizeof(text), "%llu",
                       (unsigned long long)(unit == HC_UNIT_MILLI_CPUS ? value / 1000 : value));
    printf("%s | ", text);
}

static void print_limits(void)
{
    puts("\n### Limits\n\nDefault and maximum are those of the profile `standard`.\n");
    puts("| limit | option | unit in the record | default | maximum | least | enforced by | meaning |");
    puts("|---|---|---|---|---|---|---|---|");
    for (int i = 0; i < HC_LIMIT_COUNT; i++) {
        const struct hc_limit_row *row = &hc_limits[i];
        printf("| `%s` | ", row->name);
        if (row->flag)
            printf("`--%s` | ", row->flag);
        else
            printf("none | ");
        printf("%s | ", unit_texts[row->unit]);
        print_quantity(row->default_value, row->unit);
        print_quantity(row->max_value, row->unit);
        print_quantity(row->min_value, row->unit);
        printf("%s | %s |\n", row->enforced_by ? row->enforced_by : "nothing", row->meaning);
    }
}

static void print_layers(void)
{
    puts("\n### Layers\n");
    puts("| layer | kind | `--allow` | grade without it | evidence | how to get it "
         "|\n|---|---|---|---|---|---|");
    for (int i = 0; i < HC_LAYER_COUNT; i++) {
        const struct hc_layer_row *row = &hc_layers[i];
        printf("| `%s` | %s | %s | %s | %s | %s |\n", row->name, row->primary ? "primary" : "secondary",
               row->removable ? "yes" : "no", grade_words[row->grade_if_absent], row->attested_by, row->mend);
    }
}

static int print_markdown(void)
{
    print_statuses();
    print_causes();
    print_limits();
    print_layers();
    return 0;
}

int main(int argc, char **argv)
{
    int rc;

    collect_words();
    if (argc == 1)
        rc = print_schema("run");
    else if (argc == 2 && (strcmp(argv[1], "--release") == 0 || strcmp(argv[1], "--replay") == 0))
        rc = print_schema(argv[1] + 2);
    else if (argc == 2 && strcmp(argv[1], "--markdown") == 0)
        rc = print_markdown();
    else {
        fputs("usage: schema-gen [--release | --replay | --markdown]\n", stderr);
        return 2;
    }
    if (rc < 0 || fflush(stdout) != 0) {
        fputs("schema-gen: cannot write\n", stderr);
        return 1;
    }
    return 0;
}
