/* The table of predicates: parser, judge, help, manual page and documentation come from it or are checked
 * against it. */
#include "flow/accept_kinds.h"

#include "flow/accept_cells.h"

#define FIELDS(...)          ((const struct hc_predicate_field[]){__VA_ARGS__{0}})
#define NEEDS(name, meaning) {name, true, meaning},
#define TAKES(name, meaning) {name, false, meaning},
#define PATH                 NEEDS("path", "the file, relative to the working folder")
#define SCHEMA_MEANING       "a schema of the bounded part of JSON Schema"

const struct hc_predicate_kind hc_predicate_kinds[] = {
    {"exit_zero", FIELDS(), NULL, hc_judge_exit_zero, NULL, false, "The run ended with status ok.",
     "Whether anything was done: a program that ends at once ends well."},
    {"stdout_equals",
     FIELDS(NEEDS("value", "the wanted text")
                TAKES("trim", "none; lines: blanks at ends of lines and empty lines at the end do not count; "
                              "all: blanks at both ends")),
     hc_check_equals, hc_judge_stdout_equals, NULL, false, "Standard output is this text.",
     "How the text came about: one that was written down in the program is as good as one that was "
     "computed."},
    {"stdout_number",
     FIELDS(NEEDS("value", "the wanted number") TAKES("abs", "absolute tolerance (0)")
                TAKES("rel", "relative tolerance (0)")),
     hc_check_number, hc_judge_stdout_number, NULL, false,
     "The last number on the last line that is not empty is this one. 1,234,567 is one number unless it "
     "stands in brackets; the minus in 2020-01-03 is no sign.",
     "What the number is about: a unit behind it, or a sentence that says the opposite, is not read."},
    {"stdout_trim", FIELDS(NEEDS("value", "the wanted words")), hc_check_text, hc_judge_stdout_trim, NULL,
     false, "Standard output has these words in this order; blanks do not count.", "As stdout_equals."},
    {"stdout_matches",
     FIELDS(NEEDS("pattern", "extended regular expression, at most 256 bytes, no references back")),
     hc_check_pattern, hc_judge_stdout_matches, NULL, false,
     "The pattern is found somewhere in standard output; ^ and $ are ends of lines. Looking may take a "
     "second of CPU time and 64K of output, else the predicate is an error.",
     "What stands around the match, unless the pattern says it."},
    {"stdout_json", FIELDS(NEEDS("schema", SCHEMA_MEANING)), hc_check_schema, hc_judge_stdout_json, NULL,
     false, "Standard output is one JSON document that fits the schema.",
     "Whether values are right that the schema only gives a type."},
    {"file_exists", FIELDS(PATH), hc_check_path, hc_judge_file_exists, NULL, false,
     "The run made or changed this plain file. An input that it left alone does not count.",
     "What is in the file: it may be empty."},
    {"file_sha256", FIELDS(PATH NEEDS("value", "SHA-256 of the content, 64 hexadecimal digits")),
     hc_check_file_sha256, hc_judge_file_sha256, NULL, false,
     "The run made this file with exactly this content.",
     "Nothing about the content; formats that hold a time differ each time."},
    {"file_json", FIELDS(PATH TAKES("schema", SCHEMA_MEANING)), hc_check_file_json, hc_judge_file_json, NULL,
     false, "The run made this file, it is one JSON document, and it fits the schema.",
     "Whether values are right that the schema only gives a type."},
    {"file_csv",
     FIELDS(PATH TAKES("columns", "names in the first row, all of them in this order")
                TAKES("rows", "number of rows below the first, or {min, max}")
                    TAKES("delimiter", "one character (comma; tab in a file that ends in .tsv)")),
     hc_check_file_csv, hc_judge_file_csv, NULL, false,
     "The run made this file, and it is a table: all rows as wide as the first.",
     "Whether the values are right: use a checker."},
    {"asserts",
     FIELDS(NEEDS("code", "test code, a text or a list of texts") TAKES(
         "entry_point", "function of the program that is given to the check() of the test code")),
     hc_check_asserts, NULL, hc_judge_asserts, false,
     "Test code runs to its end, without an exception, in the name space of the program, which has run again "
     "in a second cell with its input at end of file. The code is sent only when the program's own text has "
     "run to its end: a program that leaves early, also by sys.exit() at its end, is rejected.",
     "An object that says it equals everything; a name of the program that hides a builtin of the tests; any "
     "tampering inside the interpreter by a program that seeks the descriptors of the test code: use a "
     "checker against those."},
    {"checker",
     FIELDS(NEEDS("code", "the checker, a program") TAKES("language", "its language (python)")
                TAKES("wall", "its wall time (30s)")),
     hc_check_checker, NULL, hc_judge_checker, false,
     "A program in a cell of its own ends with exit code 0. Its standard input is the run's standard output, "
     "the files that the run left are below outputs/, read-only; what it prints is the reason. A checker "
     "that a limit or a signal ends is an error.",
     "What the checker does not look at. It sees results only, never the program at work."},
    {"answers", FIELDS(NEEDS("value", "a list of pairs of name and value")), hc_check_answers,
     hc_judge_answers, NULL, false,
     "Standard output has @name[value] for each pair, numbers within 0.01; the last of a name counts.",
     "As stdout_equals."},
    {"cells", FIELDS(NEEDS("value", "outputs of the cells of a notebook") TAKES("answer_text", "not judged")),
     hc_check_cells, hc_judge_cells, NULL, false,
     "Standard output is these texts joined; blanks count nowhere.", "As stdout_equals."},
    {"fails", FIELDS(TAKES("value", "not judged") TAKES("answer_text", "not judged")), NULL, hc_judge_fails,
     NULL, true, "The run ended with any other status than ok.", "Why it failed."},
    {"exception", FIELDS(NEEDS("value", "name of the exception")), hc_check_text, hc_judge_exception, NULL,
     false, "The run failed, and the last line of standard error begins with this exception.",
     "Whether the exception was raised: a program can print the line."},
    {"choice", FIELDS(TAKES("value", "not judged") TAKES("options", "not judged")), NULL, NULL, NULL, false,
     "Of data sets; never judged.", ""},
    {"answer_text", FIELDS(TAKES("value", "not judged") TAKES("options", "not judged")), NULL, NULL, NULL,
     false, "Of data sets; never judged.", ""},
};
const size_t hc_predicate_kind_count = sizeof hc_predicate_kinds / sizeof *hc_predicate_kinds;
