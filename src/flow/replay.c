#include "flow/replay.h"

#include "base/base64.h"
#include "base/canonical.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "flow/release.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CONTEXT_BYTES 24 /* on each side of the first byte that differs */

const char *const hc_replay_verdicts[3] = {[HC_REPLAY_IDENTICAL] = "identical",
                                           [HC_REPLAY_DIFFERS] = "differs",
                                           [HC_REPLAY_ENVIRONMENT_CHANGED] = "environment_changed"};

/* "a.b.c" */
static const json_t *at_path(const json_t *value, const char *path)
{
    while (value != NULL && *path != '\0') {
        size_t n = strcspn(path, ".");
        value = json_object_getn(value, path, n);
        path += n + (path[n] == '.' ? 1 : 0);
    }
    return value;
}

/* Any value as one text, for people and for the record. */
static json_t *as_text(const json_t *value)
{
    if (value == NULL || json_is_null(value))
        return json_null();
    if (json_is_string(value))
        return json_incref((json_t *)(uintptr_t)value);
    hc_autofree char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    return text != NULL ? json_string(text) : NULL;
}

static bool same(const json_t *a, const json_t *b)
{
    bool no_a = a == NULL || json_is_null(a), no_b = b == NULL || json_is_null(b);
    return no_a || no_b ? no_a == no_b : json_equal(a, b) == 1;
}

/* ---- the environment ---- */

static void add_change(json_t *changes, const char *what, const json_t *before, const json_t *now)
{
    if (!same(before, now))
        (void)json_array_append_new(changes, json_pack("{s:s, s:o, s:o}", "what", what, "before",
                                                       as_text(before), "now", as_text(now)));
}

static json_t *environment_changes(const struct hc_replay_sides *sides)
{
    static const char *const fields[] = {"runtime.version",       "runtime.environment_sha256",
                                         "runtime.deterministic", "policy.profile",
                                         "policy.version",        "policy.sha256",
                                         "filter.sha256",         "isolation.tier",
                                         "isolation.grade"};
    static const char *const host_fields[] = {"kernel", "machine", "cpus", "program"};
    json_t *changes = json_array(), *host = hc_request_host();
    char what[64];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        add_change(changes, fields[i], at_path(sides->origin, fields[i]), at_path(sides->again, fields[i]));
    for (int i = 0; i < HC_LIMIT_COUNT; i++) {
        (void)snprintf(what, sizeof what, "limits.%s.applied", hc_limits[i].name);
        add_change(changes, what, at_path(sides->origin, what), at_path(sides->again, what));
    }
    for (size_t i = 0; i < sizeof host_fields / sizeof *host_fields; i++) {
        (void)snprintf(what, sizeof what, "host.%s", host_fields[i]);
        add_change(changes, what, json_object_get(sides->origin_host, host_fields[i]),
                   json_object_get(host, host_fields[i]));
    }
    json_decref(host);
    return changes;
}

/* ---- differences ---- */

size_t hc_first_difference(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
    size_t shorter = a_bytes < b_bytes ? a_bytes : b_bytes, i = 0;
    while (i < shorter && a[i] == b[i])
        i++;
    return i == shorter && a_bytes == b_bytes ? SIZE_MAX : i;
}

/* A few bytes around a place, so that a terminal shows them and obeys none. */
static json_t *context_of(const uint8_t *data, size_t n, size_t at)
{
    char text[8 * 2 * CONTEXT_BYTES + 8]; /* eight times the bytes: room for every escape */
    size_t from = at > CONTEXT_BYTES ? at - CONTEXT_BYTES : 0;
    size_t to = at + CONTEXT_BYTES < n ? at + CONTEXT_BYTES : n;
    if (from > n)
        from = n;
    from += hc_utf8_ceil(data + from, to - from);
    to = from + hc_utf8_floor(data + from, to - from);
    size_t length = hc_escape_visible(data + from, to - from, text, sizeof text);
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n' && length + 1 < sizeof text) { /* one line, as \n */
            memmove(text + i + 2, text + i + 1, length - i - 1);
            text[i] = '\\';
            text[++i] = 'n';
            length++;
        }
    return json_stringn(text, length);
}

struct side {
    const uint8_t *data;
    size_t bytes;
};

struct place {
    size_t at;      /* in both contents */
    int64_t offset; /* in the whole stream or file; -1: not known */
};

static void add_difference(json_t *list, const char *what, json_t *before, json_t *now,
                           const struct place *place, const struct side *sides)
{
    bool known = place != NULL && place->offset >= 0;
    (void)json_array_append_new(
        list,
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "what", what, "before", before, "now", now, "offset",
                  known ? json_integer(place->offset) : json_null(), "before_context",
                  known ? context_of(sides[0].data, sides[0].bytes, place->at) : json_null(), "now_context",
                  known ? context_of(sides[1].data, sides[1].bytes, place->at) : json_null()));
}

static json_t *size_text(const json_t *bytes, const json_t *sha256)
{
    char text[128];
    if (bytes == NULL || sha256 == NULL || json_is_null(sha256))
        return json_null();
    (void)snprintf(text, sizeof text, "%lld bytes, sha256 %s", (long long)json_integer_value(bytes),
                   json_string_value(sha256));
    return json_string(text);
}

/* What a record keeps of a stream; *ret_owned is to be freed. */
static struct side kept_of(const json_t *stream, uint8_t **ret_owned)
{
    const json_t *text = json_object_get(stream, "text"), *base64 = json_object_get(stream, "base64");
    struct side side = {(const uint8_t *)json_string_value(text), json_string_length(text)};
    *ret_owned = NULL;
    if (json_is_string(base64) &&
        hc_base64_decode(json_string_value(base64), json_string_length(base64), ret_owned, &side.bytes) == 0)
        side.data = *ret_owned;
    return side;
}

/* Where in the stream a byte of the kept part was; -1 where scrubbing or the cut make that unknown. */
static int64_t offset_of(const json_t *stream, size_t at)
{
    size_t head = (size_t)json_integer_value(json_object_get(stream, "head_bytes"));
    int64_t omitted = json_integer_value(json_object_get(stream, "omitted_bytes"));
    bool scrubbed = json_array_size(json_object_get(stream, "redactions")) > 0;
    if (scrubbed && at > 0)
        return omitted == 0 ? (int64_t)at : -1;
    return (int64_t)at + (at >= head ? omitted : 0);
}

static void compare_stream(const struct hc_replay_sides *s, const char *path, json_t *list)
{
    const json_t *streams[2] = {at_path(s->origin, path), at_path(s->again, path)};
    const json_t *digests[2] = {json_object_get(streams[0], "sha256"), json_object_get(streams[1], "sha256")};
    hc_autofree uint8_t *owned[1] = {NULL};
    if (same(digests[0], digests[1]))
        return;
    uint8_t *more = NULL;
    struct side sides[2] = {kept_of(streams[0], &owned[0]), kept_of(streams[1], &more)};
    struct place place = {.at = SIZE_MAX, .offset = -1};
    if (sides[0].data != NULL && sides[1].data != NULL)
        place.at = hc_first_difference(sides[0].data, sides[0].bytes, sides[1].data, sides[1].bytes);
    if (place.at != SIZE_MAX)
        place.offset = offset_of(streams[0], place.at);
    add_difference(list, path, size_text(json_object_get(streams[0], "bytes"), digests[0]),
                   size_text(json_object_get(streams[1], "bytes"), digests[1]), &place, sides);
    free(more);
}

static const json_t *artifact_named(const json_t *record, const json_t *artifact, size_t *ret_index)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(record, "artifacts"), i, item)
    {
        if (same(json_object_get(item, "path"), json_object_get(artifact, "path")) &&
            same(json_object_get(item, "path_base64"), json_object_get(artifact, "path_base64"))) {
            *ret_index = i;
            return item;
        }
    }
    return NULL;
}

static const struct hc_kept_file *kept_with(const struct hc_job *job, const json_t *sha256)
{
    const char *wanted = json_string_value(sha256);
    for (size_t i = 0; job != NULL && i < job->kept_count; i++)
        if (hc_string_equal(job->collection.artifacts[job->kept[i].artifact].sha256, wanted))
            return &job->kept[i];
    return NULL;
}

static void compare_artifact(const struct hc_replay_sides *s, const json_t *before, const json_t *now,
                             json_t *list)
{
    const json_t *digests[2] = {json_object_get(before, "sha256"), json_object_get(now, "sha256")};
    hc_autofree char *what =
        hc_printf("artifact %s", json_string_value(json_object_get(before != NULL ? before : now, "path")));
    hc_autofree void *data = NULL;
    size_t n = 0;
    struct place place = {.at = SIZE_MAX, .offset = -1};
    if (before != NULL && now != NULL && same(digests[0], digests[1]) &&
        same(json_object_get(before, "type"), json_object_get(now, "type")))
        return;
    const struct hc_kept_file *file = now != NULL ? kept_with(s->job, digests[1]) : NULL;
    struct side sides[2] = {{NULL, 0}, {NULL, 0}};
    if (before != NULL && file != NULL && json_is_string(digests[0]) &&
        s->read(s->context, json_string_value(digests[0]), &data, &n) == 0) {
        sides[0] = (struct side){data, n};
        sides[1] = (struct side){file->data, file->bytes};
        place.at = hc_first_difference(sides[0].data, n, sides[1].data, sides[1].bytes);
        place.offset = place.at != SIZE_MAX ? (int64_t)place.at : -1;
    }
    add_difference(list, what != NULL ? what : "artifact",
                   before != NULL ? size_text(json_object_get(before, "bytes"), digests[0]) : json_null(),
                   now != NULL ? size_text(json_object_get(now, "bytes"), digests[1]) : json_null(), &place,
                   sides);
}

static void compare_artifacts(const struct hc_replay_sides *s, json_t *list)
{
    size_t i, other;
    json_t *item;
    json_array_foreach(json_object_get(s->origin, "artifacts"), i, item)
    {
        compare_artifact(s, item, artifact_named(s->again, item, &other), list);
    }

    json_array_foreach(json_object_get(s->again, "artifacts"), i, item)
    {
        if (artifact_named(s->origin, item, &other) == NULL)
            compare_artifact(s, NULL, item, list);
    }
}

static json_t *differences(const struct hc_replay_sides *s)
{
    static const char *const fields[] = {
        "state",          "status",           "cause",         "exit_code",     "signal",
        "result",         "files.created",    "files.changed", "files.deleted", "compile.exit_code",
        "compile.status", "acceptance.status"};
    static const char *const streams[] = {"stdout", "stderr", "compile.stdout", "compile.stderr"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const json_t *before = at_path(s->origin, fields[i]), *now = at_path(s->again, fields[i]);
        if (!same(before, now))
            add_difference(list, fields[i], as_text(before), as_text(now), NULL, NULL);
    }
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        compare_stream(s, streams[i], list);
    compare_artifacts(s, list);
    return list;
}

int hc_replay_compare(const struct hc_replay_sides *sides, struct hc_replay *ret)
{
    ret->environment = environment_changes(sides);
    ret->differences = differences(sides);
    if (ret->environment == NULL || ret->differences == NULL) {
        hc_replay_done(ret);
        return -ENOMEM;
    }
    /* In another environment neither sameness nor difference says what it would say in the same one. */
    ret->verdict = json_array_size(ret->environment) > 0   ? HC_REPLAY_ENVIRONMENT_CHANGED
                   : json_array_size(ret->differences) > 0 ? HC_REPLAY_DIFFERS
                                                           : HC_REPLAY_IDENTICAL;
    return 0;
}

void hc_replay_done(struct hc_replay *replay)
{
    json_decref(replay->environment);
    json_decref(replay->differences);
    replay->environment = replay->differences = NULL;
}

json_t *hc_replay_record(const struct hc_replay *replay, const json_t *origin, const json_t *again)
{
    char id[40], now[40];
    hc_record_id("replay", id);
    hc_rfc3339_now(now);
    return json_pack("{s:s, s:s, s:s, s:{s:O, s:O}, s:{s:O, s:o}, s:s, s:O, s:O, s:n}", "schema",
                     "hotcell.replay/1", "id", id, "created_at", now, "origin", "id",
                     json_object_get(origin, "id"), "sha256", at_path(origin, "chain.sha256"), "run", "id",
                     json_object_get(again, "id"), "sha256", as_text(at_path(again, "chain.sha256")),
                     "verdict", hc_replay_verdicts[replay->verdict], "environment", replay->environment,
                     "differences", replay->differences, "chain");
}
