#include "base/canonical.h"

/* jansson writes \u001B, RFC 8785 and most other writers \u001b: the hash needs one of them. */
char *hc_json_canonical(const json_t *document)
{
    char *text = json_dumps(document, JSON_SORT_KEYS | JSON_COMPACT);
    for (char *at = text; at != NULL && *at != '\0'; at++) {
        if (*at != '\\')
            continue;
        at++;
        if (*at == 'u')
            for (int i = 0; i < 4; i++) {
                at++;
                if (*at >= 'A' && *at <= 'F')
                    *at = (char)(*at - 'A' + 'a');
            }
    }
    return text;
}
