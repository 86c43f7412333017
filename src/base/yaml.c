#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/yaml.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#define NO_NODE UINT32_MAX

/* Paths are not stored: a long key with many children would multiply. */
struct hc_yaml_node {
    char *key; /* NULL for elements of a list and for the root */
    uint32_t first_child, last_child, next;
    uint32_t line, column;
    uint32_t key_line, key_column;
};

struct frame {
    json_t *container; /* borrowed from the tree */
    uint32_t node;
    char *key; /* of a mapping: read, and its value not yet */
    yaml_mark_t key_mark;
};

struct build {
    yaml_parser_t parser;
    struct hc_yaml tree;
    struct hc_problem *problem;
    struct frame frames[HC_YAML_DEPTH_MAX];
    unsigned depth;
};

/* ---- places ---- */

static int refuse_at(struct build *b, yaml_mark_t mark, const char *what)
{
    return hc_problem_set(b->problem, (unsigned)mark.line + 1, (unsigned)mark.column + 1, "%s", what);
}

static int refuse_offset(const char *data, size_t offset, struct hc_problem *problem, const char *what)
{
    unsigned line = 1, column = 1;

    for (size_t i = 0; i < offset; i++) {
        if (data[i] == '\n') {
            line++;
            column = 1;
        } else if (((uint8_t)data[i] & 0xc0) != 0x80) {
            column++;
        }
    }
    return hc_problem_set(problem, line, column, "%s", what);
}

static size_t first_invalid(const char *data, size_t n)
{
    size_t i = 0;

    while (i < n) {
        uint8_t lead = (uint8_t)data[i];
        size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        if (length > n - i || !hc_utf8_valid(data + i, length))
            return i;
        i += length;
    }
    return n;
}

/* ---- the tree ---- */

static int add_node(struct hc_yaml *tree, yaml_mark_t mark, uint32_t *ret_node)
{
    if (tree->node_count == tree->node_room) {
        size_t room = tree->node_room ? 2 * tree->node_room : 64;
        struct hc_yaml_node *nodes = reallocarray(tree->nodes, room, sizeof *nodes);
        if (!nodes)
            return -ENOMEM;
        tree->nodes = nodes;
        tree->node_room = room;
    }
    tree->nodes[tree->node_count] = (struct hc_yaml_node){
        .first_child = NO_NODE,
        .last_child = NO_NODE,
        .next = NO_NODE,
        .line = (uint32_t)mark.line + 1,
        .column = (uint32_t)mark.column + 1,
    };
    *ret_node = (uint32_t)tree->node_count++;
    return 0;
}

static void link_child(struct hc_yaml *tree, uint32_t parent, uint32_t child)
{
    struct hc_yaml_node *above = &tree->nodes[parent];

    if (above->last_child == NO_NODE)
        above->first_child = child;
    else
        tree->nodes[above->last_child].next = child;
    above->last_child = child;
}

static int put_member(struct build *b, struct frame *frame, json_t *value, uint32_t node)
{
    struct hc_yaml_node *made = &b->tree.nodes[node];

    if (json_is_array(frame->container))
        return json_array_append_new(frame->container, value) < 0 ? -ENOMEM : 0;
    made->key_line = (uint32_t)frame->key_mark.line + 1;
    made->key_column = (uint32_t)frame->key_mark.column + 1;
    made->key = hc_take_pointer(&frame->key);
    return json_object_set_new_nocheck(frame->container, made->key, value) < 0 ? -ENOMEM : 0;
}

/* Takes the value over, on failure as well. */
static int attach(struct build *b, json_t *value, yaml_mark_t mark, uint32_t *ret_node)
{
    if (!value)
        return -ENOMEM;
    int r = add_node(&b->tree, mark, ret_node);
    if (r < 0) {
        json_decref(value);
        return r;
    }
    if (b->depth == 0) {
        b->tree.root = value;
        return 0;
    }
    struct frame *frame = &b->frames[b->depth - 1];
    link_child(&b->tree, frame->node, *ret_node);
    return put_member(b, frame, value, *ret_node);
}

/* ---- scalars ---- */

static bool is_integer(const char *text, json_int_t *ret_value)
{
    const char *digits = text + (*text == '-');
    char *end = NULL;

    if (*digits < '0' || *digits > '9' || (*digits == '0' && (digits[1] || digits != text)))
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end || errno)
        return false;
    *ret_value = value;
    return true;
}

/* What a plain scalar means other than its own text; NULL with *ret_string set when it means its text. */
static json_t *plain_value(const char *text, bool *ret_string)
{
    json_int_t number = 0;

    *ret_string = false;
    if (!*text || strcmp(text, "null") == 0)
        return json_null();
    if (strcmp(text, "true") == 0)
        return json_true();
    if (strcmp(text, "false") == 0)
        return json_false();
    if (is_integer(text, &number))
        return json_integer(number);
    *ret_string = true;
    return NULL;
}

static int check_scalar(struct build *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t n = event->data.scalar.length;

    if (memchr(text, 0, n))
        return refuse_at(b, event->start_mark, "a text with a NUL character is not allowed");
    if (!hc_utf8_valid(text, n))
        return refuse_at(b, event->start_mark, "an escape in this text is not a character");
    return 0;
}

static int take_key(struct build *b, struct frame *frame, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    unsigned line = (unsigned)event->start_mark.line + 1, column = (unsigned)event->start_mark.column + 1;

    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        bool string = false;
        json_decref(plain_value(text, &string));
        if (strcmp(text, "<<") == 0)
            return refuse_at(b, event->start_mark, "merge keys (<<) are not allowed");
        if (!string)
            return hc_problem_set(b->problem, line, column, "a key must be a string: write \"%s\" in quotes",
                                  text);
    }
    if (json_object_get(frame->container, text))
        return hc_problem_set(b->problem, line, column, "the key \"%s\" is there twice", text);
    frame->key = strdup(text);
    frame->key_mark = event->start_mark;
    return frame->key ? 0 : -ENOMEM;
}

static bool key_is_next(const struct build *b)
{
    return b->depth > 0 && json_is_object(b->frames[b->depth - 1].container) && !b->frames[b->depth - 1].key;
}

static int on_scalar(struct build *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    bool string = true;
    json_t *value = NULL;
    uint32_t node = 0;

    int r = check_scalar(b, event);
    if (r)
        return r;
    if (key_is_next(b))
        return take_key(b, &b->frames[b->depth - 1], event);
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        value = plain_value(text, &string);
    return attach(b, string ? json_string_nocheck(text) : value, event->start_mark, &node);
}

/* ---- collections and the document ---- */

static int on_collection(struct build *b, json_t *container, yaml_mark_t mark)
{
    uint32_t node = 0;
    int r = 0;

    if (key_is_next(b))
        r = refuse_at(b, mark, "a key must be a string, not a list or a mapping");
    else if (b->depth == HC_YAML_DEPTH_MAX)
        r = hc_problem_set(b->problem, (unsigned)mark.line + 1, (unsigned)mark.column + 1,
                           "more than %d collections inside each other", HC_YAML_DEPTH_MAX);
    if (r) {
        json_decref(container);
        return r;
    }
    r = attach(b, container, mark, &node);
    if (r == 0)
        b->frames[b->depth++] = (struct frame){.container = container, .node = node};
    return r;
}

static int refuse_decoration(struct build *b, const yaml_event_t *event, const yaml_char_t *anchor,
                             const yaml_char_t *tag)
{
    if (anchor)
        return refuse_at(b, event->start_mark, "anchors (&name) are not allowed");
    if (tag)
        return refuse_at(b, event->start_mark, "tags (!name) are not allowed");
    return 0;
}

static int on_document(struct build *b, const yaml_event_t *event)
{
    if (b->tree.root)
        return refuse_at(b, event->start_mark, "a second document is not allowed");
    if (event->data.document_start.version_directive ||
        event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
        return refuse_at(b, event->start_mark, "directives (%YAML, %TAG) are not allowed");
    return 0;
}

static int on_event(struct build *b, const yaml_event_t *event)
{
    int r = 0;

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return on_document(b, event);
    case YAML_ALIAS_EVENT:
        return refuse_at(b, event->start_mark, "aliases (*name) are not allowed");
    case YAML_SCALAR_EVENT:
        r = refuse_decoration(b, event, event->data.scalar.anchor, event->data.scalar.tag);
        return r ? r : on_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        r = refuse_decoration(b, event, event->data.sequence_start.anchor, event->data.sequence_start.tag);
        return r ? r : on_collection(b, json_array(), event->start_mark);
    case YAML_MAPPING_START_EVENT:
        r = refuse_decoration(b, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        return r ? r : on_collection(b, json_object(), event->start_mark);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return 0;
    case YAML_STREAM_END_EVENT:
        return b->tree.root ? 0 : refuse_at(b, event->start_mark, "there is nothing in it");
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return 0;
    }
    return 0;
}

static int refuse_syntax(struct build *b, const char *data, size_t n)
{
    const yaml_parser_t *p = &b->parser;
    const char *what = p->problem ? p->problem : "not readable as YAML";

    if (p->error == YAML_MEMORY_ERROR)
        return -ENOMEM;
    if (p->error == YAML_READER_ERROR)
        return refuse_offset(data, p->problem_offset < n ? p->problem_offset : n, b->problem, what);
    return hc_problem_set(b->problem, (unsigned)p->problem_mark.line + 1,
                          (unsigned)p->problem_mark.column + 1, "%s%s%s", what, p->context ? " " : "",
                          p->context ? p->context : "");
}

static int read_events(struct build *b, const char *data, size_t n)
{
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&b->parser, &event))
            return refuse_syntax(b, data, n);
        more = event.type != YAML_STREAM_END_EVENT;
        int r = on_event(b, &event);
        yaml_event_delete(&event);
        if (r)
            return r;
    }
    return 0;
}

static int build_tree(struct build *b, const char *data, size_t n)
{
    if (!yaml_parser_initialize(&b->parser))
        return -ENOMEM;
    yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING); /* or a byte order mark would choose UTF-16 */
    yaml_parser_set_input_string(&b->parser, (const unsigned char *)data, n);
    int r = read_events(b, data, n);
    yaml_parser_delete(&b->parser);
    for (unsigned i = 0; i < HC_YAML_DEPTH_MAX; i++)
        free(b->frames[i].key);
    return r;
}

/* ---- JSON that libyaml does not take ---- */

static unsigned hex4(const char *digits)
{
    char text[5] = {digits[0], digits[1], digits[2], digits[3], 0};

    return (unsigned)strtoul(text, NULL, 16);
}

static bool has_pair(const char *data, size_t n)
{
    for (size_t i = 0; i + 12 <= n; i++)
        if (data[i] == '\\' && data[i + 1] == 'u' && (data[i + 2] | 0x20) == 'd' && data[i + 6] == '\\')
            return true;
    return false;
}

/* JSON writes characters beyond U+FFFF as two \u escapes, which libyaml refuses; YAML has \U for them. In
 * valid JSON a backslash is always inside a string and surrogates come in pairs, so no lexer is needed. The
 * text gets shorter; columns behind it on the same line are low by two. */
static int join_pairs(const char *data, size_t n, char **ret_joined, size_t *ret_n)
{
    size_t used = 0;
    json_t *probe = has_pair(data, n) ? json_loadb(data, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;

    if (!probe)
        return 0;
    json_decref(probe);
    char *joined = malloc(n + 1);
    if (!joined)
        return -ENOMEM;
    for (size_t i = 0; i < n;) {
        unsigned high = data[i] == '\\' && data[i + 1] == 'u' ? hex4(data + i + 2) : 0;
        if (high >= 0xd800 && high < 0xdc00) {
            unsigned low = hex4(data + i + 8);
            used +=
                (size_t)sprintf(joined + used, "\\U%08x", 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            i += 12;
            continue;
        }
        bool escape = data[i] == '\\';
        joined[used++] = data[i++];
        if (escape)
            joined[used++] = data[i++];
    }
    *ret_joined = joined;
    *ret_n = used;
    return 0;
}

int hc_yaml_read(const char *data, size_t n, struct hc_yaml *ret, struct hc_problem *problem)
{
    hc_autofree char *joined = NULL;
    struct build b = {.problem = problem};

    if (n > HC_YAML_BYTES_MAX)
        return hc_problem_set(problem, 1, 1, "larger than %d bytes", HC_YAML_BYTES_MAX);
    size_t invalid = n ? first_invalid(data, n) : 0;
    if (invalid < n)
        return refuse_offset(data, invalid, problem, "not UTF-8");
    int r = n ? join_pairs(data, n, &joined, &n) : 0;
    if (r == 0)
        r = build_tree(&b, joined ? joined : n ? data : "", n);
    if (r) {
        hc_yaml_done(&b.tree);
        return r;
    }
    *ret = b.tree;
    return 0;
}

void hc_yaml_done(struct hc_yaml *yaml)
{
    for (size_t i = 0; i < yaml->node_count; i++)
        free(yaml->nodes[i].key);
    free(yaml->nodes);
    json_decref(yaml->root);
    *yaml = (struct hc_yaml){0};
}

/* ---- paths ---- */

static bool segment_is(const char *segment, size_t n, const char *key)
{
    size_t i = 0;

    for (; i < n && *key; i++, key++) {
        char c = segment[i];
        if (c == '~' && i + 1 < n)
            c = segment[++i] == '1' ? '/' : '~';
        if (c != *key)
            return false;
    }
    return i == n && !*key;
}

static uint32_t find_child(const struct hc_yaml *yaml, uint32_t parent, const char *segment, size_t n)
{
    char number[24];
    unsigned long index = 0;

    for (uint32_t at = yaml->nodes[parent].first_child; at != NO_NODE; at = yaml->nodes[at].next, index++) {
        const char *key = yaml->nodes[at].key;
        if (!key) {
            (void)snprintf(number, sizeof number, "%lu", index);
            key = number;
        }
        if (segment_is(segment, n, key))
            return at;
    }
    return NO_NODE;
}

/* The node of the longest part of the path that exists, NULL in an empty tree. */
static const struct hc_yaml_node *find_node(const struct hc_yaml *yaml, const char *path, bool *ret_exact)
{
    uint32_t at = 0;

    *ret_exact = false;
    if (!yaml->node_count)
        return NULL;
    while (*path == '/') {
        size_t n = strcspn(path + 1, "/");
        uint32_t child = find_child(yaml, at, path + 1, n);
        if (child == NO_NODE)
            return &yaml->nodes[at];
        at = child;
        path += 1 + n;
    }
    *ret_exact = !*path;
    return &yaml->nodes[at];
}

bool hc_yaml_position(const struct hc_yaml *yaml, const char *path, unsigned *ret_line, unsigned *ret_column)
{
    bool exact = false;
    const struct hc_yaml_node *node = find_node(yaml, path, &exact);

    if (!node || !exact)
        return false;
    *ret_line = node->line;
    *ret_column = node->column;
    return true;
}

bool hc_yaml_key_position(const struct hc_yaml *yaml, const char *path, unsigned *ret_line,
                          unsigned *ret_column)
{
    bool exact = false;
    const struct hc_yaml_node *node = find_node(yaml, path, &exact);

    if (!node || !exact || !node->key)
        return false;
    *ret_line = node->key_line;
    *ret_column = node->key_column;
    return true;
}

char *hc_yaml_path(const char *parent, const char *key)
{
    size_t used = strlen(parent);
    char *path = malloc(used + 2 * strlen(key) + 2);

    if (!path)
        return NULL;
    memcpy(path, parent, used);
    path[used++] = '/';
    for (; *key; key++) {
        if (*key == '~' || *key == '/')
            path[used++] = '~';
        path[used++] = *key;
        if (*key == '~' || *key == '/')
            path[used - 1] = *key == '/' ? '1' : '0';
    }
    path[used] = '\0';
    return path;
}

int hc_yaml_problem(const struct hc_yaml *yaml, const char *path, struct hc_problem *problem, const char *fmt,
                    ...)
{
    bool exact = false;
    const struct hc_yaml_node *node = find_node(yaml, path, &exact);
    va_list args;

    va_start(args, fmt);
    int r = hc_problem_setv(problem, node ? node->line : 0, node ? node->column : 0, fmt, args);
    va_end(args);
    return r;
}
