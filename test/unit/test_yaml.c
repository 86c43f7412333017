#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/cleanup.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "base/yaml.h"

#include "harness.h"

#include <stdlib.h>
#include <string.h>

static void reads_as(const char *text, const char *json)
{
    struct hc_yaml yaml = {0};
    struct hc_problem problem = {0};

    int r = hc_yaml_read(text, strlen(text), &yaml, &problem);
    if (r)
        hc_test_fail(__FILE__, __LINE__, "%s: refused (%d): %s", text, r, problem.message);
    hc_autofree char *found = json_dumps(yaml.root, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    HC_ASSERT_STREQ(found, json);
    hc_yaml_done(&yaml);
    hc_yaml_done(&yaml);
}

static void refuses_bytes(const char *text, size_t n, const char *where, const char *message)
{
    struct hc_yaml yaml = {0};
    struct hc_problem problem = {0};

    int r = hc_yaml_read(text, n, &yaml, &problem);
    if (r != HC_BAD_INPUT)
        hc_test_fail(__FILE__, __LINE__, "not refused (%d): %.200s", r, text);
    hc_autofree char *place = hc_printf("%u:%u", problem.line, problem.column);
    if (!strstr(problem.message, message))
        hc_test_fail(__FILE__, __LINE__, "%.200s: \"%s\" lacks \"%s\"", text, problem.message, message);
    HC_ASSERT_STREQ(place, where);
    HC_ASSERT(!yaml.root && !yaml.nodes);
    HC_ASSERT_EQ_INT(hc_yaml_read(text, n, &yaml, NULL), HC_BAD_INPUT);
}

static void refuses(const char *text, const char *where, const char *message)
{
    refuses_bytes(text, strlen(text), where, message);
}

HC_TEST(yaml_scalars)
{
    reads_as("[true, false, null, 0, -1, 42]", "[true,false,null,0,-1,42]");
    reads_as("[True, FALSE, yes, off, ~, 'true', \"null\", '1']",
             "[\"True\",\"FALSE\",\"yes\",\"off\",\"~\",\"true\",\"null\",\"1\"]");
    reads_as("[3.11, 1e3, 007, 0x1f, +1, 1_000, -0, 0o7, .5]",
             "[\"3.11\",\"1e3\",\"007\",\"0x1f\",\"+1\",\"1_000\",\"-0\",\"0o7\",\".5\"]");
    reads_as("[9223372036854775807, -9223372036854775808, 9223372036854775808]",
             "[9223372036854775807,-9223372036854775808,\"9223372036854775808\"]");
    reads_as("a:\nb: ''\nc: |\n  x\n  y\n", "{\"a\":null,\"b\":\"\",\"c\":\"x\\ny\\n\"}");
    reads_as("---\n- a\n...\n", "[\"a\"]");
    reads_as("\xef\xbb\xbf"
             "a: \xc3\xa9\n",
             "{\"a\":\"\xc3\xa9\"}");
    reads_as("run:\n  - ${interpreter}\n  - -c\n", "{\"run\":[\"${interpreter}\",\"-c\"]}");
}

HC_TEST(yaml_takes_json)
{
    reads_as("{\"a\":[1,2,{\"b\":null}],\"c\":\"x\\/y\\n\\u00e9\"}",
             "{\"a\":[1,2,{\"b\":null}],\"c\":\"x/y\\n\xc3\xa9\"}");
    reads_as("{\n\t\"a\": 1,\n\t\"1\": [\n\t]\n}\n", "{\"1\":[],\"a\":1}");
    reads_as("{\"a\":\"\\ud83d\\ude00\\\\ud83d\",\"b\":\"\\uD83D\\uDE00\"}",
             "{\"a\":\"\xf0\x9f\x98\x80\\\\ud83d\",\"b\":\"\xf0\x9f\x98\x80\"}");
    reads_as("'\\ud83d\\ude00'", "\"\\\\ud83d\\\\ude00\"");
    reads_as("\"one\"", "\"one\"");
}

HC_TEST(yaml_refuses)
{
    refuses("", "1:1", "nothing in it");
    refuses("# only a comment\n", "2:1", "nothing in it");
    refuses("a: &x 1\n", "1:4", "anchors");
    refuses("a: &x [1]\n", "1:4", "anchors");
    refuses("a: b\nc: *x\n", "2:4", "aliases");
    refuses("a: !!str 1\n", "1:4", "tags");
    refuses("a: ! 1\n", "1:4", "tags");
    refuses("!x {a: 1}\n", "1:1", "tags");
    refuses("a:\n  <<: {b: 1}\n", "2:3", "merge");
    refuses("a: 1\nb: 2\na: 3\n", "3:1", "\"a\" is there twice");
    refuses("{\"a\":1,\"\\u0061\":2}", "1:8", "twice");
    refuses("a: 1\n1: 2\n", "2:1", "must be a string");
    refuses("true: 2\n", "1:1", "must be a string");
    refuses("? \n: 2\n", "1:2", "must be a string");
    refuses("? [a]\n: b\n", "1:3", "not a list");
    refuses("{a: {b: 1}: 2}", "1:11", "");
    refuses("a: 1\n---\nb: 2\n", "2:1", "second document");
    refuses("%YAML 1.1\n---\na: 1\n", "1:1", "directives");
    refuses("%TAG ! x:\n---\na: 1\n", "1:1", "directives");
    refuses("a: \"x\\0y\"\n", "1:4", "NUL");
    refuses("a: \"\\ud800\"\n", "1:7", "");
    refuses("a: [1, 2\nb: 3\n", "2:2", "");
    refuses("a: \"open\n", "2:1", "");
    refuses("\tb: 3\n", "1:1", "");
    refuses("\xc3\xa9: 1\n\xc3\xa9\xc3: 2\n", "2:2", "UTF-8");
    refuses("a: \xed\xa0\x80", "1:4", "UTF-8");
    refuses("a: b\n\xc3\xa9: \x01\n", "2:4", "control");
    refuses_bytes("a: 1\0\n", 6, "1:5", "control");
    refuses_bytes("\xff\xfe"
                  "a\0",
                  4, "1:1", "UTF-8");
}

HC_TEST(yaml_bounds)
{
    char deep[2 * 33 + 1];
    struct hc_yaml yaml = {0};
    struct hc_problem problem = {0};
    size_t big = HC_YAML_BYTES_MAX;
    hc_autofree char *text = malloc(big + 1);

    memset(deep, '[', 33);
    memset(deep + 33, ']', 33);
    deep[66] = '\0';
    refuses(deep, "1:33", "32 collections");
    HC_ASSERT_EQ_INT(hc_yaml_read(deep + 1, 64, &yaml, &problem), 0);
    hc_yaml_done(&yaml);

    HC_ASSERT(text != NULL);
    for (size_t i = 0; i < big + 1; i++)
        text[i] = i % 2 ? '1' : ',';
    text[0] = '[';
    text[big - 1] = ']';
    HC_ASSERT_EQ_INT(hc_yaml_read(text, big, &yaml, &problem), 0);
    HC_ASSERT_EQ_INT(json_array_size(yaml.root), big / 2 - 1);
    hc_yaml_done(&yaml);
    refuses_bytes(text, big + 1, "1:1", "larger than");
    memset(text, '[', big);
    refuses_bytes(text, big, "1:33", "32 collections");
    for (size_t i = 0; i < big; i++)
        text[i] = i % 2 ? ' ' : '?';
    refuses_bytes(text, big, "1:3", "not a list or a mapping");
}

static void stands_at(const struct hc_yaml *yaml, const char *path, const char *place, const char *key_place)
{
    unsigned line = 0, column = 0;
    hc_autofree char *found =
        hc_yaml_position(yaml, path, &line, &column) ? hc_printf("%u:%u", line, column) : NULL;
    hc_autofree char *key =
        hc_yaml_key_position(yaml, path, &line, &column) ? hc_printf("%u:%u", line, column) : NULL;

    HC_ASSERT_STREQ(found, place);
    HC_ASSERT_STREQ(key, key_place);
}

HC_TEST(yaml_positions)
{
    static const char text[] = "# first\nrun: [true, true]\nenv:\n  a/b~c: x\n  \xc3\xa9: {k: null}\n";
    struct hc_yaml yaml = {0};
    struct hc_problem problem = {0};
    hc_autofree char *path = hc_yaml_path("/env", "a/b~c");

    HC_ASSERT_EQ_INT(hc_yaml_read(text, sizeof text - 1, &yaml, &problem), 0);
    HC_ASSERT_STREQ(path, "/env/a~1b~0c");
    stands_at(&yaml, "", "2:1", NULL);
    stands_at(&yaml, "/run", "2:6", "2:1");
    stands_at(&yaml, "/run/0", "2:7", NULL);
    stands_at(&yaml, "/run/1", "2:13", NULL);
    stands_at(&yaml, "/run/2", NULL, NULL);
    stands_at(&yaml, "/run/", NULL, NULL);
    stands_at(&yaml, path, "4:10", "4:3");
    stands_at(&yaml, "/env/\xc3\xa9/k", "5:10", "5:7");
    HC_ASSERT_EQ_INT(hc_yaml_problem(&yaml, "/env/none/x", &problem, "no %s\n\x1b", "x"), HC_BAD_INPUT);
    hc_problem_file(&problem, "f.yaml");
    hc_autofree char *shown = hc_problem_text(&problem);
    HC_ASSERT_STREQ(shown, "f.yaml:4:3: no x \\x1B");
    hc_yaml_done(&yaml);
}

HC_TEST(problem_cuts_at_characters)
{
    struct hc_problem problem = {0};
    char text[1001];

    for (size_t i = 0; i < 1000; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    text[1000] = '\0';
    (void)hc_problem_set(&problem, 1, 1, "x%s", text);
    HC_ASSERT_EQ_INT(strlen(problem.message), 511);
    (void)hc_problem_set(&problem, 1, 1, "%s", text);
    HC_ASSERT_EQ_INT(strlen(problem.message), 510);
    hc_problem_file(&problem, text);
    HC_ASSERT_EQ_INT(strlen(problem.file), 254);
    HC_ASSERT(hc_utf8_valid(problem.file, strlen(problem.file)));
    HC_ASSERT_EQ_INT(hc_problem_set(NULL, 1, 1, "x"), HC_BAD_INPUT);
}

/* ---- random input ---- */

static const char *const seeds[] = {
    "name: python\naliases: [py, python3]\nrun:\n  - ${interpreter}\n  - ${file}\nenv: {A: '1'}\n",
    "{\"kind\":\"stdout_number\",\"value\":3.5,\"list\":[1,-2,true,null,\"\\ud83d\\ude00\"]}\n",
    "a: |\n  text\n  more\nb: >-\n  folded\n   x\n? c\n: - d\n  - - e\n    - f: g\n",
    "%YAML 1.2\n---\n&a [*a, !!int 3, !t {<<: *a}]\n...\n---\n",
    "\xef\xbb\xbf# \xe2\x82\xac\n\"k\\x41\": 'it''s'\n\xf0\x9f\x98\x80: \xc2\x85\n",
};
enum { SEEDS = sizeof seeds / sizeof *seeds };

static size_t mutate(uint64_t *state, char *text, size_t n, size_t room)
{
    static const char bits[] = "[]{},:?-&*!|>'\"%@`# \n\t\\<0u\r\xc3\x80\xff";
    size_t at = n ? hc_test_random(state) % n : 0;

    switch (hc_test_random(state) % 5) {
    case 0:
        if (n)
            text[at] = (char)hc_test_random(state);
        return n;
    case 1:
        if (n)
            text[at] = bits[hc_test_random(state) % sizeof bits];
        return n;
    case 2:
        if (n == room)
            return n;
        memmove(text + at + 1, text + at, n - at);
        text[at] = bits[hc_test_random(state) % sizeof bits];
        return n + 1;
    case 3: {
        size_t cut = n ? hc_test_random(state) % (n - at) : 0;
        memmove(text + at, text + at + cut, n - at - cut);
        return n - cut;
    }
    default: {
        const char *other = seeds[hc_test_random(state) % SEEDS];
        size_t from = hc_test_random(state) % strlen(other),
               m = hc_test_random(state) % (strlen(other) - from);
        m = m < room - at ? m : room - at;
        memcpy(text + at, other + from, m);
        return at + m > n ? at + m : n;
    }
    }
}

static unsigned count_values(const struct hc_yaml *yaml, const json_t *value, const char *path)
{
    unsigned line = 0, column = 0, count = 1;
    const char *key = NULL;
    json_t *member = NULL;
    size_t i = 0;

    HC_ASSERT(hc_yaml_position(yaml, path, &line, &column));
    HC_ASSERT(line > 0 && column > 0);
    json_object_foreach((json_t *)value, key, member)
    {
        hc_autofree char *below = hc_yaml_path(path, key);
        count += count_values(yaml, member, below);
    }
    json_array_foreach(value, i, member)
    {
        hc_autofree char *below = hc_printf("%s/%zu", path, i);
        count += count_values(yaml, member, below);
    }
    return count;
}

static bool try_bytes(const char *text, size_t n)
{
    struct hc_yaml yaml = {0};
    struct hc_problem problem = {0};
    hc_autofree char *exact = malloc(n ? n : 1); /* so that the sanitizer sees a read beyond the end */

    memcpy(exact, text, n);
    int r = hc_yaml_read(exact, n, &yaml, &problem);
    if (r) {
        HC_ASSERT_EQ_INT(r, HC_BAD_INPUT);
        HC_ASSERT(problem.line > 0 && problem.column > 0 && *problem.message);
        HC_ASSERT(hc_utf8_valid(problem.message, strlen(problem.message)));
        return false;
    }
    HC_ASSERT_EQ_INT(count_values(&yaml, yaml.root, ""), yaml.node_count);
    hc_autofree char *json = json_dumps(yaml.root, JSON_ENCODE_ANY);
    struct hc_yaml again = {0};
    HC_ASSERT(json != NULL);
    r = hc_yaml_read(json, strlen(json), &again, &problem);
    /* Control characters that YAML has escapes for are not always taken raw, and json_dumps leaves DEL and C1
     * raw. */
    HC_ASSERT(r == HC_BAD_INPUT || json_equal(yaml.root, again.root));
    hc_yaml_done(&again);
    hc_yaml_done(&yaml);
    return true;
}

HC_TEST(yaml_mutations, .timeout_s = 60)
{
    uint64_t state = 20240611;
    unsigned good = 0, bad = 0;

    for (unsigned i = 0; i < 30000; i++) {
        char text[600];
        const char *seed = seeds[hc_test_random(&state) % SEEDS];
        size_t n = strlen(seed);
        memcpy(text, seed, n);
        for (uint64_t left = 1 + hc_test_random(&state) % 6; left > 0; left--)
            n = mutate(&state, text, n, sizeof text);
        if (try_bytes(text, n))
            good++;
        else
            bad++;
    }
    HC_ASSERT(good > 1000 && bad > 1000);
}

HC_TEST(yaml_noise)
{
    uint64_t state = 7;

    for (unsigned i = 0; i < 5000; i++) {
        char text[64];
        size_t n = hc_test_random(&state) % sizeof text;
        for (size_t j = 0; j < n; j++)
            text[j] = (char)(hc_test_random(&state) % (i % 2 ? 256 : 128));
        (void)try_bytes(text, n);
    }
}
