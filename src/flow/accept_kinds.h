/* The kinds of predicates: rows from which the check of their form and the judging come. */
#ifndef HC_FLOW_ACCEPT_KINDS_H
#define HC_FLOW_ACCEPT_KINDS_H

#include "flow/job.h"

/* What a predicate answers: held, and what was got, as text. */
struct hc_answer {
    enum { HC_CANNOT_TELL, HC_YES, HC_NO } ok;
    char got[512];
    char expected[512];
};

struct hc_accept_cells;

struct hc_predicate_field {
    const char *name; /* NULL: after the last */
    bool required;
    const char *meaning;
};

struct hc_predicate_kind {
    const char *name;
    const struct hc_predicate_field *fields; /* besides `kind` */
    /* What is wrong with the values of a predicate whose fields are right; NULL: nothing. */
    const char *(*check)(const json_t *predicate, char room[256]);
    /* One of these two; neither: kept for other work, not judged. */
    void (*judge)(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
    int (*judge_in_cell)(const struct hc_job *job, const json_t *predicate,
                         const struct hc_accept_cells *cells, struct hc_answer *answer);
    bool any_ending; /* judged however the run ended; else a run that a limit or a rule ended has given no
                        result */
    const char *meaning, *cannot_tell;
};

extern const struct hc_predicate_kind hc_predicate_kinds[];
extern const size_t hc_predicate_kind_count;

/* Numbers may come as JSON numbers or, from YAML, as text. */
bool hc_predicate_number(const json_t *value, double *ret_number);
/* The beginning of some bytes, printable. */
void hc_show_bytes(char out[512], const char *bytes, size_t n);
/* Patterns are extended regular expressions of bounded size. What is wrong with one; NULL: nothing. */
const char *hc_pattern_check(const json_t *value, char room[256]);
/* HC_YES, HC_NO, or HC_CANNOT_TELL: looking took more than a second of CPU time, or more than 64K to look at.
 */
int hc_pattern_search(const char *pattern, const char *data, size_t n);
/* Takes the blanks at both ends off. */
void hc_trim(const char **text, size_t *n);

const char *hc_check_equals(const json_t *predicate, char room[256]);
const char *hc_check_text(const json_t *predicate, char room[256]);
const char *hc_check_number(const json_t *predicate, char room[256]);
const char *hc_check_pattern(const json_t *predicate, char room[256]);
const char *hc_check_answers(const json_t *predicate, char room[256]);
const char *hc_check_path(const json_t *predicate, char room[256]);
const char *hc_check_schema(const json_t *predicate, char room[256]);
const char *hc_check_file_json(const json_t *predicate, char room[256]);
const char *hc_check_file_sha256(const json_t *predicate, char room[256]);
const char *hc_check_file_csv(const json_t *predicate, char room[256]);
const char *hc_check_cells(const json_t *predicate, char room[256]);

void hc_judge_exit_zero(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_stdout_equals(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_stdout_trim(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_stdout_number(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_stdout_matches(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_stdout_json(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_file_exists(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_file_sha256(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_file_json(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_file_csv(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_answers(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_cells(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_fails(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_exception(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);

#endif
