/* What profiles call types of files, and groups of findings: rows from which the reader's check, the rules of
 * a run and the manual page come. */
#ifndef HC_POLICY_ARTIFACT_WORDS_H
#define HC_POLICY_ARTIFACT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* A word of `types`. Containers that look alike are told by the ending of the name as well. */
struct hc_type_word {
    const char *word;
    const char *type;   /* as found by signature */
    const char *ending; /* with its dot; NULL: any */
};
extern const struct hc_type_word hc_type_words[];
extern const size_t hc_type_word_count;

/* A word of `scan`: the findings that then keep files from being exported. */
struct hc_scan_word {
    const char *word;
    const char *findings[10]; /* ends with NULL */
};
extern const struct hc_scan_word hc_scan_words[];
extern const size_t hc_scan_word_count;

/* Whether a file of that type and name is what the word means. */
bool hc_type_word_fits(const char *word, const char *type, const char *path);
/* NULL: there is no such word. */
const struct hc_scan_word *hc_scan_word_named(const char *word);
bool hc_type_word_known(const char *word);

#endif
