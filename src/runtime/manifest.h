/* Runtimes: interpreters and tool chains, each described by one YAML file (share/runtimes). Every key and
 * value is told in hotcell-runtime(5); the tables of manifest.c are what is read.
 *
 * A file with `name` is a runtime. Each interpreter that its patterns find is a version, the first the
 * default. A file with `extends` adds versions to a runtime of another file. */
#ifndef HC_RUNTIME_MANIFEST_H
#define HC_RUNTIME_MANIFEST_H

#include "base/problem.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* items ends with a NULL that is not counted; it is NULL when there was no list. */
struct hc_strings {
    char **items;
    size_t count;
};

void hc_strings_done(struct hc_strings *strings);

struct hc_runtime_variable {
    char *name;
    char *value; /* template */
};

#define HC_RUNTIME_FIXES_MAX 8

/* What --deterministic fixes, and by which means. Not fixed: when the caller gave one of the variables
 * himself. */
struct hc_runtime_fix {
    char *fixes; /* the word in the record */
    struct hc_runtime_variable *env;
    size_t env_count;
    struct hc_strings options; /* templates; behind the first word of `run` */
    char *hook; /* file beside the manifest that is put into the cell as ${hook}/NAME; NULL: none */
};

/* A host path to be bound read-only at the same path. Not required: left out when it is missing. */
struct hc_runtime_path {
    char *path;
    bool required;
};

/* In the cells' template. */
#define HC_WARM_FOLDER "/run/hotcell/warm"

enum hc_error_style {
    HC_ERROR_STYLE_NONE = 0, /* by rules, if there are any */
    HC_ERROR_STYLE_PYTHON,
};

/* type, message, line: numbers of groups, 0: not in this pattern. */
struct hc_error_rule {
    char *pattern; /* template with ${file} */
    unsigned type, message, line;
    bool last;
};

struct hc_error_rules {
    struct hc_error_rule *items;
    size_t count;
};

/* The pattern with the name as plain text, made into a regular expression for one line: regfree() it. On a
 * bad one the outcome is HC_BAD_INPUT and ret_reason says why. Errors: -ENOMEM. */
int hc_error_rule_compile(const struct hc_error_rule *rule, const char *file, regex_t *ret_regex,
                          char ret_reason[128]);

/* An interpreter that is there. */
struct hc_interpreter {
    char *path;                  /* on the host */
    char *place;                 /* in a cell; mostly the same */
    char *tree_host, *tree_cell; /* what has to be bound for it; NULL: nothing */
};

struct hc_runtime {
    char *manifest_path;
    char manifest_sha256[65];
    char *name, *title, *file;
    struct hc_strings aliases, extensions, interpreters;
    struct hc_strings run, check, compile; /* templates; without check or compile: count 0 */
    struct hc_strings asserts;             /* runs program and test code; count 0: not offered */
    char *compile_output;                  /* NULL without compile */
    bool compile_folder;                   /* the output is a folder */
    struct hc_error_rules compile_rules;
    struct hc_strings compile_flags; /* what a caller may add; with a star at the end a prefix */
    struct hc_runtime_variable *env;
    size_t env_count;
    struct hc_runtime_fix *fixes;
    size_t fix_count;
    struct hc_runtime_path *etc; /* wildcards already expanded */
    size_t etc_count;
    struct hc_strings version_command;
    char *version_pattern;
    regex_t version_regex;
    bool version_regex_made;
    enum hc_error_style error_style;
    struct hc_error_rules error_rules;
    unsigned error_exit_code; /* of a program that an error ended which nobody caught; 0: not known */
    struct hc_strings digest; /* wildcards not expanded */
    char *install, *notes;    /* notes may be NULL */
    char *facts;              /* what reads a program for a policy, below share/facts; NULL: nothing */
    /* How an interpreter is kept ready; warm_native NULL: not at all. */
    struct hc_strings warm_files;   /* below share/warm; the host sees them in HC_WARM_FOLDER */
    char *warm_native;              /* beside hotcell's programs; likewise */
    struct hc_strings warm_modules; /* imported before the first run; what is not there is left out */
    struct hc_strings
        warm_cold_for;           /* beginnings of environment variables that only a fresh interpreter heeds */
    char *missing;               /* NULL, or what is not there and how to get it */
    struct hc_strings absent;    /* what else was looked for in vain, and why, in words */
    char *extends;               /* NULL: a runtime of its own */
    char *variant;               /* a name to choose it by, after the '@'; NULL: by version only */
    char *tree_host, *tree_cell; /* as the manifest says them; wildcards in the last part of the host's */
    bool private_paths;
    struct hc_interpreter *found;
    size_t found_count;
    const struct hc_interpreter *interpreter; /* one of found, or of an extension's; NULL: none is there */
    const char *interpreter_path;             /* its path on the host; NULL likewise */
    /* The other versions: views of this runtime, each with another interpreter. What they share is owned
     * here. */
    struct hc_runtime *variants;
    size_t variant_count;
    struct hc_runtime *additions; /* the files that extend it */
    size_t addition_count;
};

struct hc_runtimes {
    struct hc_runtime *items;
    size_t count;
};

/* Reads every *.yaml of the folders, folder by folder, each in byte order; a folder that does not exist is
 * empty. Outcome: HC_BAD_INPUT (also for a name, alias or extension that two manifests claim). Errors:
 * -ENOMEM or what reading says; problem then names the file if one was at fault. problem may be NULL. */
int hc_runtimes_load(const char *const *folders, size_t count, struct hc_runtimes **ret,
                     struct hc_problem *problem);

/* Reads only NAME.yaml, the first there is: for a caller that needs one runtime and knows its name. -ENOENT:
 * no such file (the name may be an alias); else as hc_runtimes_load. */
int hc_runtimes_load_one(const char *const *folders, size_t count, const char *name, struct hc_runtimes **ret,
                         struct hc_problem *problem);

/* Releases everything; NULL is allowed. */
void hc_runtimes_done(struct hc_runtimes *runtimes);

/* By name or alias, without regard to case; by the longest extension that the file name ends with and does
 * not consist of. NULL when there is none. */
const struct hc_runtime *hc_runtime_by_name(const struct hc_runtimes *runtimes, const char *name);
const struct hc_runtime *hc_runtime_by_extension(const struct hc_runtimes *runtimes, const char *filename);

/* What a run takes that wants no version: the runtime itself, or, where only others added an interpreter, the
 * first of those. Its `interpreter` is NULL when nothing is there. */
const struct hc_runtime *hc_runtime_default(const struct hc_runtime *runtime);

/* The version that is wanted: a variant's name, or a prefix in whole parts (3.11 fits 3.11.2, 3.1 does not);
 * the first that fits, the default before the others. `ret_version` is what it says of itself. NULL: none
 * fits. */
const struct hc_runtime *hc_runtime_of_version(const struct hc_runtime *runtime, const char *wanted,
                                               char ret_version[64]);

/* Whether a caller may give this flag to the compile step. */
bool hc_runtime_flag_allowed(const struct hc_runtime *runtime, const char *flag);

/* What templates stand for. A NULL text may not be asked for. Give `file` as a path that does not begin with
 * '-', and `output` with a slash in it. */
struct hc_template_values {
    const char *interpreter, *file, *output, *home;
    const char *tree; /* the interpreter's, in the cell */
    uint64_t threads, memory_mib, heap_mib;
    const char *seed, *hook;  /* of a deterministic run */
    const char *const *flags; /* of the caller, in the place of a whole word "${flags}" */
    size_t flag_count;
};

/* Expands one template, or each one of a list (*ret: free with hc_strings_done). Outcome: HC_BAD_INPUT for an
 * unknown or unfinished ${name}, which a loaded manifest does not have. Errors: -EINVAL (a value that was not
 * given), -ENOMEM. */
int hc_template_expand(const char *template, const struct hc_template_values *values, char **ret);
int hc_template_expand_all(const struct hc_strings *templates, const struct hc_template_values *values,
                           struct hc_strings *ret);

#endif
