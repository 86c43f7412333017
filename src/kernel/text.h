/* Text in fixed buffers for programs without stdio: paths, numbers, small files. Truncation is reported,
 * never silent. */
#ifndef HC_KERNEL_TEXT_H
#define HC_KERNEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hc_text {
    char *data;
    size_t size;
    size_t length;
    bool overflow;
};

/* A text over the array `buffer`. */
#define HC_TEXT(buffer) ((struct hc_text){.data = (buffer), .size = sizeof(buffer)})

void hc_text_string(struct hc_text *text, const char *string);
void hc_text_number(struct hc_text *text, uint64_t number);

/* Appends to buffer, NUL-terminated; 0 or -ENAMETOOLONG. */
int hc_text_done(const struct hc_text *text);

/* First decimal number after the first occurrence of `key` in NUL-terminated `text` that begins a line; false
 * without one. */
bool hc_text_field(const char *text, const char *key, uint64_t *ret_value);

/* Leading decimal number of `text`; false if there is none. "max" is UINT64_MAX. */
bool hc_text_value(const char *text, uint64_t *ret_value);

#endif
