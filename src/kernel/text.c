#include "kernel/text.h"

#include <errno.h>
#include <string.h>

void hc_text_string(struct hc_text *text, const char *string)
{
    size_t n = strlen(string);
    if (text->overflow || text->length + n + 1 > text->size) {
        text->overflow = true;
        return;
    }
    memcpy(text->data + text->length, string, n + 1);
    text->length += n;
}

void hc_text_number(struct hc_text *text, uint64_t number)
{
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    hc_text_string(text, digits + at);
}

int hc_text_done(const struct hc_text *text)
{
    return text->overflow ? -ENAMETOOLONG : 0;
}

bool hc_text_value(const char *text, uint64_t *ret_value)
{
    if (strncmp(text, "max", 3) == 0) {
        *ret_value = UINT64_MAX;
        return true;
    }
    if (*text < '0' || *text > '9')
        return false;
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10)
            value = (UINT64_MAX - digit) / 10;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

bool hc_text_field(const char *text, const char *key, uint64_t *ret_value)
{
    size_t n = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, n) == 0) {
            const char *value = line + n;
            value += strspn(value, " \t:");
            if (value > line + n && hc_text_value(value, ret_value))
                return true;
        }
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return false;
}
