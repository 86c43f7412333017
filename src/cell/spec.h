/* What one run is asked to be: the request after parsing, before any decision. */
#ifndef HC_CELL_SPEC_H
#define HC_CELL_SPEC_H

#include "cell/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HC_SPEC_INPUT_BYTES_MAX (256ull * 1024 * 1024)
#define HC_SPEC_CODE_BYTES_MAX  (64ull * 1024 * 1024)

struct hc_input {
    char *name;
    bool folder;
    uint32_t mode;
    uint8_t *data;
    size_t bytes;
    char sha256[65];
};

enum hc_warmth { HC_WARMTH_DEFAULT, HC_WARMTH_COLD, HC_WARMTH_WARM };

struct hc_spec {
    char *language;     /* NULL: by the program's file name, else python */
    char *program_name; /* base name of the caller's file; NULL: the runtime's own (main.py) */
    uint8_t *code;
    size_t code_bytes;
    bool code_given;
    struct hc_input *inputs; /* folders before what lies in them */
    size_t input_count;
    uint64_t input_bytes;
    uint32_t *index; /* hash table over names: input number + 1, 0 where empty */
    size_t index_size;
    char **args;
    size_t arg_count;
    char **flags; /* of the compile step */
    size_t flag_count;
    char **env; /* NAME=VALUE */
    size_t env_count;
    int stdin_fd;                    /* -1: end of file at once */
    uint64_t limits[HC_LIMIT_COUNT]; /* where limit_asked */
    bool limit_asked[HC_LIMIT_COUNT];
    uint64_t allow_layers;
    enum hc_grade min_grade;
    char *profile;
    char *collect;
    bool deterministic;
    char *seed;
    enum hc_warmth warmth;
    char **redact; /* patterns of what is scrubbed from the output */
    size_t redact_count;
}; /* a new field: src/flow/request_document.c has to write and read it */

/* Why a request is refused before anything starts: names the field. */
struct hc_refusal {
    enum hc_cause cause;
    char field[64];
    unsigned line, column; /* in the program; 0: not about a place in it */
    char message[512];
};

/* Positive outcome of every step that may refuse a request. */
enum { HC_REFUSED = 1 };

__attribute__((format(printf, 4, 5))) int hc_refuse(struct hc_refusal *refusal, enum hc_cause cause,
                                                    const char *field, const char *message, ...);

int hc_spec_init(struct hc_spec *spec);
void hc_spec_done(struct hc_spec *spec);

/* Adds an input, taking over `data`. HC_REFUSED: bad name, name given twice, more than 256 MB in all. Missing
 * parent folders are added. */
int hc_spec_add_input(struct hc_spec *spec, const char *name, bool folder, uint8_t *data, size_t bytes,
                      struct hc_refusal *refusal);
/* NULL when there is no input of that name. */
const struct hc_input *hc_spec_find_input(const struct hc_spec *spec, const char *name);
int hc_spec_add_env(struct hc_spec *spec, const char *assignment, struct hc_refusal *refusal);
int hc_spec_add_arg(struct hc_spec *spec, const char *arg);
int hc_spec_add_redact(struct hc_spec *spec, const char *pattern, struct hc_refusal *refusal);
/* HC_REFUSED: no flag, or more than 64. Whether the language takes it is decided later. */
int hc_spec_add_flag(struct hc_spec *spec, const char *flag, struct hc_refusal *refusal);

#endif
