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

struct hc_predicate_kind {
    const char *name;
    const char *const *fields; /* allowed besides `kind` */
    const char *const *required;
    /* What is wrong with the values of a predicate whose fields are right; NULL: nothing. */
    const char *(*check)(const json_t *predicate, char room[256]);
    void (*judge)(const struct hc_job *job, const json_t *predicate,
                  struct hc_answer *answer); /* NULL: not judged */
    bool any_ending; /* judged however the run ended; else a run that a limit or a rule ended has given no
                        result */
};

extern const struct hc_predicate_kind hc_predicate_kinds[];
extern const size_t hc_predicate_kind_count;

/* Numbers may come as JSON numbers or, from YAML, as text. */
bool hc_predicate_number(const json_t *value, double *ret_number);
/* The beginning of some bytes, printable. */
void hc_show_bytes(char out[512], const char *bytes, size_t n);
/* Takes the blanks at both ends off. */
void hc_trim(const char **text, size_t *n);

const char *hc_check_equals(const json_t *predicate, char room[256]);
const char *hc_check_text(const json_t *predicate, char room[256]);
const char *hc_check_number(const json_t *predicate, char room[256]);
const char *hc_check_pattern(const json_t *predicate, char room[256]);
const char *hc_check_answers(const json_t *predicate, char room[256]);
const char *hc_check_cells(const json_t *predicate, char room[256]);

const char *hc_check_asserts(const json_t *predicate, char room[256]);
const char *hc_check_checker(const json_t *predicate, char room[256]);

void hc_judge_asserts(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_checker(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_exit_zero(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_stdout_equals(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_stdout_trim(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_stdout_number(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_stdout_matches(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_answers(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_cells(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_fails(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);
void hc_judge_exception(const struct hc_job *job, const json_t *predicate, struct hc_answer *answer);

#endif
