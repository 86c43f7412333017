#include "base/redact.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATES_MAX 512
#define NOWHERE    SIZE_MAX

struct rule {
    const char *kind;
    char *text; /* NULL: a pattern */
    size_t bytes;
    enum hc_redact_edge edge;
    struct hc_redact_pattern *pattern;
};

struct hc_redact_rules {
    const struct hc_redact_rules *more;
    struct rule *items;
    size_t count;
};

/* A pattern is a row of classes; state i means that the classes before i have matched. An optional class may
 * be passed without a byte; a repeated one is optional and keeps its state. */
struct hc_redact_pattern {
    size_t count;
    struct state {
        uint8_t set[32];
        bool optional, repeated;
    } states[];
};

/* Found pieces of the data. */
struct mark {
    size_t from, to;
    size_t rule; /* order of the rules: of two that touch, the first gives its kind */
    const char *kind;
};

struct marks {
    struct mark *items;
    size_t count, room;
};

struct hc_redact_rules *hc_redact_rules_new(const struct hc_redact_rules *more)
{
    struct hc_redact_rules *rules = calloc(1, sizeof *rules);
    if (rules != NULL)
        rules->more = more;
    return rules;
}

void hc_redact_rules_done(struct hc_redact_rules *rules)
{
    if (rules == NULL)
        return;
    for (size_t i = 0; i < rules->count; i++) {
        free(rules->items[i].text);
        free(rules->items[i].pattern);
    }
    free(rules->items);
    free(rules);
}

static int add_rule(struct hc_redact_rules *rules, const struct rule *rule)
{
    struct rule *grown = reallocarray(rules->items, rules->count + 1, sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    rules->items = grown;
    rules->items[rules->count++] = *rule;
    return 0;
}

int hc_redact_add_text(struct hc_redact_rules *rules, const char *kind, const char *text,
                       enum hc_redact_edge edge)
{
    struct rule rule = {.kind = kind, .bytes = strlen(text), .edge = edge};
    if (rule.bytes < HC_REDACT_TEXT_MIN)
        return 0;
    rule.text = strdup(text);
    int error = rule.text == NULL ? -ENOMEM : add_rule(rules, &rule);
    if (error < 0)
        free(rule.text);
    return error;
}

/* ---- patterns ---- */

static bool in_set(const uint8_t *set, uint8_t byte)
{
    return (set[byte / 8] >> (byte % 8) & 1) != 0;
}

static void add_byte(uint8_t *set, unsigned byte)
{
    set[byte / 8] = (uint8_t)(set[byte / 8] | 1u << (byte % 8));
}

static void add_class(uint8_t *set, char letter)
{
    for (unsigned byte = 0; byte < 128; byte++)
        if (letter == 'd'   ? isdigit((int)byte)
            : letter == 'w' ? isalnum((int)byte) || byte == '_'
                            : isspace((int)byte))
            add_byte(set, byte);
}

static const char *read_escape(const char **at, uint8_t *set)
{
    char letter = *++*at;
    if (letter == '\0')
        return "ends with \\";
    if (strchr("dws", letter) != NULL)
        add_class(set, letter);
    else if (isalnum((unsigned char)letter))
        return "holds an unknown \\ sequence: there are \\d, \\w and \\s";
    else
        add_byte(set, (uint8_t)letter);
    ++*at;
    return NULL;
}

static const char *read_set(const char **at, uint8_t *set)
{
    bool inverse = *++*at == '^';
    *at += inverse ? 1 : 0;
    bool first = true;
    for (; **at != ']' || first; first = false) {
        if (**at == '\0')
            return "holds a [ without its ]";
        if (**at == '\\') {
            const char *wrong = read_escape(at, set);
            if (wrong != NULL)
                return wrong;
            continue;
        }
        unsigned from = (uint8_t) * *at, to = from;
        ++*at;
        if ((*at)[0] == '-' && (*at)[1] != ']' && (*at)[1] != '\0') {
            to = (uint8_t)(*at)[1];
            *at += 2;
        }
        if (to < from)
            return "holds a range that ends before it begins";
        for (unsigned byte = from; byte <= to; byte++)
            add_byte(set, byte);
    }
    ++*at;
    for (int i = 0; inverse && i < 32; i++)
        set[i] = (uint8_t)~set[i];
    return NULL;
}

static const char *read_class(const char **at, uint8_t *set)
{
    char letter = **at;
    if (letter == '[')
        return read_set(at, set);
    if (letter == '\\')
        return read_escape(at, set);
    if (strchr("(|)^$", letter) != NULL)
        return "holds a group, an alternative or an anchor: give several patterns, or put \\ before the sign";
    if (strchr("*+?{", letter) != NULL)
        return "repeats nothing";
    if (letter == '.') {
        memset(set, 0xff, 32);
        set['\n' / 8] = (uint8_t)(set['\n' / 8] & ~(1u << ('\n' % 8)));
    } else {
        add_byte(set, (uint8_t)letter);
    }
    ++*at;
    return NULL;
}

#define ENDLESS UINT16_MAX

static const char *read_times(const char **at, unsigned *least, unsigned *most)
{
    static const char wrong[] = "holds a repetition that is none: {m}, {m,} and {m,n} up to 255 are known";
    char *end = NULL;
    *least = *most = 1;
    if (**at == '*' || **at == '+' || **at == '?') {
        *least = **at == '+' ? 1 : 0;
        *most = **at == '?' ? 1 : ENDLESS;
        ++*at;
        return NULL;
    }
    if (**at != '{')
        return NULL;
    if (!isdigit((unsigned char)*++*at))
        return wrong;
    *least = *most = (unsigned)strtoul(*at, &end, 10);
    if (end[0] == ',' && end[1] == '}')
        *most = ENDLESS;
    else if (end[0] == ',' && isdigit((unsigned char)end[1]))
        *most = (unsigned)strtoul(end + 1, &end, 10);
    if (*most == ENDLESS)
        end++;
    if (*end != '}' || *least > 255 || (*most > 255 && *most != ENDLESS) || *most < *least || *most == 0)
        return wrong;
    *at = end + 1;
    return NULL;
}

static const char *read_pattern(const char *at, struct state *states, size_t *ret_count, size_t *ret_shortest)
{
    size_t count = 0;
    while (*at != '\0') {
        struct state state = {0};
        unsigned least, most;
        const char *wrong = read_class(&at, state.set);
        if (wrong == NULL)
            wrong = read_times(&at, &least, &most);
        if (wrong != NULL)
            return wrong;
        unsigned copies = most == ENDLESS ? least + 1 : most;
        if (count + copies > STATES_MAX)
            return "is too long when its repetitions are written out";
        for (unsigned i = 0; i < copies; i++) {
            states[count] = state;
            states[count].optional = i >= least;
            states[count++].repeated = most == ENDLESS && i == least;
        }
        *ret_shortest += least;
    }
    *ret_count = count;
    return NULL;
}

int hc_redact_add_pattern(struct hc_redact_rules *rules, const char *kind, const char *pattern,
                          char ret_reason[128])
{
    hc_autofree struct state *states = calloc(STATES_MAX, sizeof *states);
    size_t count = 0, shortest = 0;
    if (states == NULL)
        return -ENOMEM;
    const char *wrong = strlen(pattern) > HC_REDACT_PATTERN_MAX
                            ? "is longer than 256 bytes"
                            : read_pattern(pattern, states, &count, &shortest);
    if (wrong == NULL && shortest < HC_REDACT_TEXT_MIN)
        wrong = "matches fewer than 3 bytes: it would tear everything apart";
    if (wrong != NULL) {
        (void)snprintf(ret_reason, 128, "%s", wrong);
        return HC_REDACT_BAD;
    }
    struct rule rule = {.kind = kind, .pattern = calloc(1, sizeof *rule.pattern + count * sizeof *states)};
    if (rule.pattern == NULL)
        return -ENOMEM;
    rule.pattern->count = count;
    memcpy(rule.pattern->states, states, count * sizeof *states);
    int error = add_rule(rules, &rule);
    if (error < 0)
        free(rule.pattern);
    return error;
}

/* ---- finding ---- */

/* One of the two sides of a cut, or all of it. */
struct part {
    const uint8_t *data;
    size_t from, to;
    bool cut_before, cut_behind;
    bool utf8;
};

static int add_mark(struct marks *marks, const struct part *part, size_t from, size_t to,
                    const struct rule *rule, size_t order)
{
    if (marks->count == marks->room) {
        size_t room = marks->room == 0 ? 32 : marks->room * 2;
        struct mark *grown = reallocarray(marks->items, room, sizeof *grown);
        if (grown == NULL)
            return -ENOMEM;
        marks->items = grown;
        marks->room = room;
    }
    /* No character is torn apart. */
    while (part->utf8 && from > part->from && (part->data[from] & 0xc0) == 0x80)
        from--;
    while (part->utf8 && to < part->to && (part->data[to] & 0xc0) == 0x80)
        to++;
    marks->items[marks->count++] = (struct mark){.from = from, .to = to, .rule = order, .kind = rule->kind};
    return 0;
}

static bool is_word(uint8_t byte)
{
    return isalnum(byte) || byte == '_' || byte == '-' || byte >= 128;
}

static bool is_path(uint8_t byte)
{
    return is_word(byte) || strchr("/.+@%~,=", byte) != NULL;
}

/* Whether a text of the rule may stand at [from, to): nothing glued to its ends, where that matters. */
static bool edges_fit(const struct part *part, const struct rule *rule, size_t from, size_t to)
{
    if (rule->edge == HC_REDACT_ANYWHERE)
        return true;
    if (from > part->from && is_word(part->data[from - 1]))
        return false;
    return to >= part->to || !is_word(part->data[to]);
}

static size_t end_of(const struct part *part, const struct rule *rule, size_t to)
{
    while (rule->edge == HC_REDACT_PATH && to < part->to && part->data[to] != '\0' && is_path(part->data[to]))
        to++;
    return to;
}

static int find_pieces_of_text(const struct part *part, const struct rule *rule, size_t order,
                               struct marks *marks)
{
    size_t n = part->to - part->from, longest = rule->bytes - 1 < n ? rule->bytes - 1 : n;
    int error = 0;
    for (size_t piece = longest; part->cut_behind && piece >= HC_REDACT_PIECE; piece--)
        if (memcmp(part->data + part->to - piece, rule->text, piece) == 0) {
            error = add_mark(marks, part, part->to - piece, part->to, rule, order);
            break;
        }
    for (size_t piece = longest; error == 0 && part->cut_before && piece >= HC_REDACT_PIECE; piece--)
        if (memcmp(part->data + part->from, rule->text + rule->bytes - piece, piece) == 0)
            return add_mark(marks, part, part->from, end_of(part, rule, part->from + piece), rule, order);
    return error;
}

static int find_text(const struct part *part, const struct rule *rule, size_t order, struct marks *marks)
{
    size_t at = part->from;
    int error = 0;
    while (error == 0 && at < part->to) {
        const uint8_t *found = memmem(part->data + at, part->to - at, rule->text, rule->bytes);
        if (found == NULL)
            break;
        size_t from = (size_t)(found - part->data), to = from + rule->bytes;
        at = from + 1; /* it may overlap itself */
        if (!edges_fit(part, rule, from, to))
            continue;
        to = end_of(part, rule, to);
        error = add_mark(marks, part, from, to, rule, order);
        at = rule->edge == HC_REDACT_PATH ? to : at;
    }
    return error == 0 ? find_pieces_of_text(part, rule, order, marks) : error;
}

/* begins[i]: the earliest beginning from which state i was reached; so the union of all matches is found in
 * one pass. */
struct walk {
    size_t begins[STATES_MAX + 1], next[STATES_MAX + 1];
    bool alive;
};

static size_t earlier(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void pass_optional(const struct hc_redact_pattern *pattern, size_t *begins)
{
    for (size_t i = 0; i < pattern->count; i++)
        if (pattern->states[i].optional)
            begins[i + 1] = earlier(begins[i + 1], begins[i]);
}

static void step(const struct hc_redact_pattern *pattern, struct walk *walk, uint8_t byte)
{
    walk->alive = false;
    for (size_t i = 0; i <= pattern->count; i++)
        walk->next[i] = NOWHERE;
    for (size_t i = 0; i < pattern->count; i++) {
        if (walk->begins[i] == NOWHERE || !in_set(pattern->states[i].set, byte))
            continue;
        size_t to = pattern->states[i].repeated ? i : i + 1;
        walk->next[to] = earlier(walk->next[to], walk->begins[i]);
        walk->alive = true;
    }
    memcpy(walk->begins, walk->next, (pattern->count + 1) * sizeof *walk->begins);
}

static size_t longest_unfinished(const struct hc_redact_pattern *pattern, const struct walk *walk)
{
    size_t from = NOWHERE;
    for (size_t i = 0; i < pattern->count; i++)
        from = earlier(from, walk->begins[i]);
    return from;
}

static int find_pattern(const struct part *part, const struct rule *rule, size_t order, struct marks *marks)
{
    const struct hc_redact_pattern *pattern = rule->pattern;
    hc_autofree struct walk *walk = malloc(sizeof *walk);
    struct mark open = {.from = NOWHERE};
    int error = walk == NULL ? -ENOMEM : 0;
    if (error < 0)
        return error;
    /* Behind a cut the beginning may be gone: every state is as good as reached. */
    for (size_t i = 0; i <= pattern->count; i++)
        walk->begins[i] = part->cut_before && i < pattern->count ? part->from : NOWHERE;
    walk->alive = part->cut_before;
    for (size_t at = part->from; error == 0 && at < part->to; at++) {
        const struct state *first = &pattern->states[0];
        if (!walk->alive && !first->optional && !in_set(first->set, part->data[at]))
            continue;
        walk->begins[0] = earlier(walk->begins[0], at);
        if (first->optional)
            pass_optional(pattern, walk->begins);
        step(pattern, walk, part->data[at]);
        pass_optional(pattern, walk->begins);
        size_t from = walk->begins[pattern->count];
        if (from == NOWHERE)
            continue;
        bool piece = part->cut_before && from == part->from;
        if (piece && at + 1 - from < HC_REDACT_PIECE)
            continue;
        /* Matches that touch the last one make it longer. */
        if (open.from != NOWHERE && from <= open.to) {
            open.from = earlier(open.from, from);
            open.to = at + 1;
            continue;
        }
        if (open.from != NOWHERE)
            error = add_mark(marks, part, open.from, open.to, rule, order);
        open = (struct mark){.from = from, .to = at + 1};
    }
    if (error == 0 && open.from != NOWHERE)
        error = add_mark(marks, part, open.from, open.to, rule, order);
    size_t from = longest_unfinished(pattern, walk);
    if (error == 0 && part->cut_behind && from != NOWHERE && part->to - from >= HC_REDACT_PIECE)
        error = add_mark(marks, part, from, part->to, rule, order);
    return error;
}

static int find_all(const struct hc_redact_rules *rules, const struct part *part, struct marks *marks)
{
    size_t order = 0;
    for (; rules != NULL; rules = rules->more)
        for (size_t i = 0; i < rules->count; i++, order++) {
            const struct rule *rule = &rules->items[i];
            int error = rule->text != NULL ? find_text(part, rule, order, marks)
                                           : find_pattern(part, rule, order, marks);
            if (error < 0)
                return error;
        }
    return 0;
}

/* ---- replacing ---- */

static int by_place(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->rule < y->rule ? -1 : x->rule > y->rule ? 1 : 0;
}

/* Overlapping pieces are one; never over the border of a cut, since each side was searched alone. */
static void merge(struct marks *marks, size_t border)
{
    size_t kept = 0;
    qsort(marks->items, marks->count, sizeof *marks->items, by_place);
    for (size_t i = 0; i < marks->count; i++) {
        struct mark *last = kept > 0 ? &marks->items[kept - 1] : NULL, *mark = &marks->items[i];
        bool across = last != NULL && last->to <= border && mark->from >= border;
        if (last == NULL || mark->from >= last->to || across) {
            marks->items[kept++] = *mark;
            continue;
        }
        last->to = last->to > mark->to ? last->to : mark->to;
        if (mark->rule < last->rule) {
            last->rule = mark->rule;
            last->kind = mark->kind;
        }
    }
    marks->count = kept;
}

static void count(struct hc_redacted *redacted, const char *kind)
{
    size_t i = 0;
    while (i < redacted->kinds && strcmp(redacted->counts[i].kind, kind) != 0)
        i++;
    if (i == HC_REDACT_KINDS_MAX)
        return;
    if (i == redacted->kinds)
        redacted->counts[redacted->kinds++] = (struct hc_redact_count){.kind = kind};
    redacted->counts[i].count++;
}

static int replace(const uint8_t *data, size_t n, const struct marks *marks, struct hc_redacted *ret)
{
    size_t at = 0, room = n + 1;
    for (size_t i = 0; i < marks->count; i++)
        room += strlen(marks->items[i].kind) + 2;
    uint8_t *out = malloc(room), *to = out;
    if (out == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < marks->count; i++) {
        const struct mark *mark = &marks->items[i];
        memcpy(to, data + at, mark->from - at);
        to += mark->from - at;
        to += sprintf((char *)to, "[%s]", mark->kind);
        at = mark->to;
        count(ret, mark->kind);
    }
    memcpy(to, data + at, n - at);
    to += n - at;
    *to = '\0';
    ret->data = out;
    ret->bytes = (size_t)(to - out);
    return 0;
}

int hc_redact(const struct hc_redact_rules *rules, const uint8_t *data, size_t n, size_t head_bytes,
              struct hc_redacted *ret)
{
    struct marks marks = {0};
    bool cut = head_bytes < n, utf8 = hc_utf8_valid(data, n);
    const struct part parts[] = {{data, 0, cut ? head_bytes : n, false, cut, utf8},
                                 {data, head_bytes, n, true, false, utf8}};
    *ret = (struct hc_redacted){0};
    int error = n > 0 ? find_all(rules, &parts[0], &marks) : 0;
    if (error == 0 && cut)
        error = find_all(rules, &parts[1], &marks);
    if (error == 0 && marks.count > 0) {
        merge(&marks, cut ? head_bytes : n);
        error = replace(data, n, &marks, ret);
    }
    free(marks.items);
    return error;
}

void hc_redacted_done(struct hc_redacted *redacted)
{
    free(redacted->data);
    *redacted = (struct hc_redacted){0};
}
