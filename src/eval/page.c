#include "eval/page.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "eval/html.h"
#include "eval/item.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CARDS_MAX = 1000,
    TEXT_MAX = 20000, /* bytes of one text of an item that are shown */
    BARS_MAX = 12,
};

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* ---- opening ---- */

int hc_page_open(struct hc_page *page, const char *path, struct hc_refusal *refusal)
{
    struct stat info;
    *page = (struct hc_page){.path = strdup(path),
                             .temporary = hc_printf("%s.%d.tmp", path, (int)getpid()),
                             .cards = tmpfile(),
                             .waiting = json_object()};
    if (page->path == NULL || page->temporary == NULL || page->waiting == NULL)
        return -ENOMEM;
    if (page->cards == NULL)
        return -errno;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return hc_refuse(refusal, HC_CAUSE_FIELD, "report", "--report %.200s: is no plain file", path);
    /* an evaluation of hours must not end in a folder that is not there */
    hc_autoclose int fd = open(page->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return fd >= 0 ? 0
                   : hc_refuse(refusal, HC_CAUSE_FIELD, "report", "--report %.200s: %.100s", path,
                               strerror(errno));
}

void hc_page_done(struct hc_page *page)
{
    if (page->temporary != NULL)
        (void)unlink(page->temporary);
    if (page->cards != NULL)
        (void)fclose(page->cards);
    free(page->path);
    free(page->temporary);
    json_decref(page->waiting);
    *page = (struct hc_page){0};
}

/* ---- one item ---- */

static const char *tone_of(enum hc_error_class class)
{
    return class == HC_CLASS_LOGICAL                                ? "note"
           : class == HC_CLASS_RESOURCE || class == HC_CLASS_POLICY ? "warn"
                                                                    : "bad";
}

static void put_block(FILE *out, const char *title, const char *text, size_t bytes, bool wrap)
{
    size_t shown = bytes < TEXT_MAX ? bytes : TEXT_MAX;
    (void)fprintf(out, "<div><h3>%s</h3><pre tabindex=\"0\"%s>", title, wrap ? " class=\"wrap\"" : "");
    if (bytes == 0)
        (void)fputs("(nothing)", out);
    hc_html_text(out, text, shown);
    if (shown < bytes)
        (void)fprintf(out, "\n\xe2\x80\xa6 and %zu more bytes", bytes - shown);
    (void)fputs("</pre></div>\n", out);
}

static void put_string(FILE *out, const char *title, const json_t *text, bool wrap)
{
    if (json_is_string(text))
        put_block(out, title, json_string_value(text), json_string_length(text), wrap);
}

static void put_json(FILE *out, const char *title, const json_t *value)
{
    if (value == NULL || json_is_null(value))
        return;
    hc_autofree char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    if (text != NULL)
        put_block(out, title, text, strlen(text), true);
}

/* The question and the program, as far as the item is known. */
static void put_item(FILE *out, const json_t *item)
{
    const json_t *program = json_object_get(item, "program");
    put_string(out, "Question", json_object_get(item, "question"), true);
    put_string(out, "Program", program != NULL ? program : json_object_get(item, "code"), false);
    if (json_is_string(json_object_get(item, "stdin")))
        put_string(out, "Standard input", json_object_get(item, "stdin"), false);
}

static void put_got(FILE *out, const json_t *result, const json_t *item)
{
    const json_t *wrong = json_object_get(result, "wrong");
    (void)fputs("<div class=\"pair\">\n", out);
    put_json(out, "Expectation", json_object_get(item, "expect"));
    if (json_is_object(wrong) && json_is_string(json_object_get(wrong, "got")))
        put_string(out, "Found instead", json_object_get(wrong, "got"), true);
    put_string(out, "End of standard output", json_object_get(result, "stdout_tail"), true);
    put_string(out, "End of standard error", json_object_get(result, "stderr_tail"), true);
    (void)fputs("</div>\n", out);
}

static void put_fact(FILE *out, const char *name, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    (void)fprintf(out, "<dt>%s</dt><dd>", name);
    hc_html_string(out, text);
    (void)fputs("</dd>", out);
}

static void put_number(FILE *out, const char *name, const json_t *value, const char *unit)
{
    char text[64];
    if (!json_is_integer(value))
        return;
    if (strcmp(unit, "us") == 0)
        (void)hc_html_duration((uint64_t)json_integer_value(value), text);
    else if (strcmp(unit, "bytes") == 0)
        (void)snprintf(text, sizeof text, "%.1f MiB", (double)json_integer_value(value) / 1048576);
    else
        (void)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT "%s", json_integer_value(value), unit);
    put_fact(out, name, text);
}

static void put_facts(FILE *out, const json_t *result)
{
    (void)fputs("<dl class=\"facts\">", out);
    put_fact(out, "cause", text_of(result, "cause"));
    put_fact(out, "error", text_of(result, "error_type"));
    put_fact(out, "message", text_of(result, "error_message"));
    put_number(out, "line", json_object_get(result, "error_line"), "");
    put_number(out, "exit code", json_object_get(result, "exit_code"), "");
    put_number(out, "signal", json_object_get(result, "signal"), "");
    put_number(out, "wall time", json_object_get(result, "wall_us"), "us");
    put_number(out, "memory, highest", json_object_get(result, "memory_peak_bytes"), "bytes");
    if (json_integer_value(json_object_get(result, "network_attempts")) > 0)
        put_number(out, "attempts at the network", json_object_get(result, "network_attempts"), "");
    if (json_integer_value(json_object_get(result, "calls_denied")) > 0)
        put_number(out, "calls denied", json_object_get(result, "calls_denied"), "");
    put_fact(out, "record", text_of(result, "run"));
    (void)fputs("</dl>\n", out);
}

static void put_card(FILE *out, const json_t *result, const json_t *item)
{
    char kind[128];
    enum hc_error_class class = hc_eval_class(result, kind);
    const char *suite = text_of(result, "suite"), *status = text_of(result, "status");
    (void)fprintf(out, "<details class=\"item\" data-class=\"%s\" data-status=\"%s\" data-suite=\"",
                  hc_error_classes[class].name, status);
    hc_html_string(out, suite != NULL ? suite : "(none)");
    (void)fprintf(out, "\">\n<summary><b>");
    hc_html_string(out, text_of(result, "id"));
    (void)fprintf(out, "</b> <span class=\"tag %s\">%s</span> <span class=\"soft\">", tone_of(class),
                  hc_error_classes[class].name);
    hc_html_string(out, kind);
    (void)fputs("</span></summary>\n<div class=\"body\">\n", out);
    put_facts(out, result);
    put_got(out, result, item);
    put_item(out, item);
    (void)fputs("</div>\n</details>\n", out);
}

int hc_page_add(struct hc_page *page, const json_t *result, const char *line, size_t bytes)
{
    char kind[128];
    struct hc_eval_item item = {0};
    struct hc_refusal refusal;
    if (hc_eval_class(result, kind) == HC_CLASS_NONE)
        return 0;
    if (page->card_count >= CARDS_MAX) {
        page->omitted++;
        return 0;
    }
    if (line != NULL && hc_eval_item_read(line, bytes, &item, &refusal) == -ENOMEM)
        return -ENOMEM;
    put_card(page->cards, result, item.root);
    hc_eval_item_done(&item);
    page->card_count++;
    return ferror(page->cards) ? -EIO : 0;
}

int hc_page_wait(struct hc_page *page, const json_t *result)
{
    char kind[128];
    if (hc_eval_class(result, kind) == HC_CLASS_NONE)
        return 0;
    if (page->card_count + json_object_size(page->waiting) >= CARDS_MAX)
        return hc_page_add(page, result, NULL, 0);
    return json_object_set(page->waiting, text_of(result, "id"), (json_t *)result) != 0 ? -ENOMEM : 0;
}

int hc_page_item(struct hc_page *page, const char *id, const char *line, size_t bytes)
{
    json_t *result = json_object_get(page->waiting, id);
    if (result == NULL)
        return 0;
    int error = hc_page_add(page, result, line, bytes);
    (void)json_object_del(page->waiting, id);
    return error;
}

/* ---- the cards above ---- */

static void put_count(FILE *out, const char *name, uint64_t count)
{
    (void)fprintf(out, "<dt>%s</dt><dd>%" PRIu64 "</dd>\n", name, count);
}

static void put_execution(FILE *out, const struct hc_tally *t)
{
    uint64_t attempted = hc_tally_attempted(t), ok = t->statuses[HC_STATUS_OK];
    (void)fprintf(out,
                  "<section id=\"execution\"><h2>Execution</h2><div class=\"big\">%.2f %%</div>"
                  "<p class=\"soft\">%" PRIu64 " of %" PRIu64 " attempted items ended with ok</p>\n<dl>\n",
                  share(ok, attempted), ok, attempted);
    for (int i = 0; i < HC_STATUS_COUNT; i++)
        if (t->statuses[i] > 0)
            put_count(out, hc_statuses[i].name, t->statuses[i]);
    (void)fputs("</dl></section>\n", out);
}

static void put_acceptance(FILE *out, const struct hc_tally *t)
{
    uint64_t judged = t->right + t->wrong;
    (void)fputs("<section id=\"acceptance\"><h2>Acceptance</h2>", out);
    if (judged > 0)
        (void)fprintf(out,
                      "<div class=\"big\">%.2f %%</div><p class=\"soft\">%" PRIu64 " of %" PRIu64
                      " judged items are right</p>\n",
                      share(t->right, judged), t->right, judged);
    else
        (void)fputs(
            "<div class=\"big soft\">\xe2\x80\x93</div><p class=\"soft\">no item says what is right</p>\n",
            out);
    (void)fputs("<dl>\n", out);
    put_count(out, "right", t->right);
    put_count(out, "wrong", t->wrong);
    put_count(out, "not judged", t->not_judged);
    (void)fputs("</dl></section>\n", out);
}

static void put_findings(FILE *out, const struct hc_tally *t)
{
    struct hc_bar rows[BARS_MAX];
    (void)fputs("<section id=\"security\"><h2>Security findings</h2>\n<dl>\n", out);
    put_count(out, "items that tried the network", t->tried_network);
    put_count(out, "items with denied calls", t->tried_calls);
    put_count(out, "refused, or ended by a rule", t->classes[HC_CLASS_POLICY]);
    size_t n = hc_html_largest(t->denied, rows, BARS_MAX, "");
    for (size_t i = 0; i < n; i++) {
        (void)fputs("<dt>denied: ", out);
        hc_html_string(out, rows[i].name);
        (void)fprintf(out, "</dt><dd>%" PRIu64 "</dd>\n", rows[i].count);
    }
    n = hc_html_largest(t->findings, rows, BARS_MAX, "");
    for (size_t i = 0; i < n; i++) {
        (void)fputs("<dt>rule: ", out);
        hc_html_string(out, rows[i].name);
        (void)fprintf(out, "</dt><dd>%" PRIu64 "</dd>\n", rows[i].count);
    }
    (void)fputs("</dl></section>\n", out);
}

/* ---- plots and tables ---- */

static void put_plots(FILE *out, const struct hc_tally *t)
{
    struct hc_bar bars[HC_STATUS_COUNT];
    size_t n = 0;
    for (int i = 0; i < HC_STATUS_COUNT; i++)
        if (t->statuses[i] > 0)
            bars[n++] =
                (struct hc_bar){hc_statuses[i].name, t->statuses[i], i == HC_STATUS_OK ? "good" : "bad"};
    (void)fputs("<div class=\"grid\">\n<section><h2>How they ended</h2>\n", out);
    hc_html_bars(out, "Items by status", bars, n);
    (void)fputs("</section>\n<section><h2>Wall time</h2>\n", out);
    hc_html_times(out, "Items by wall time", &t->wall);
    (void)fputs("</section>\n</div>\n", out);
}

static void put_errors(FILE *out, const struct hc_tally *t)
{
    struct hc_bar bars[BARS_MAX];
    (void)fputs("<section id=\"errors\"><h2>Errors by class and kind</h2>\n<div class=\"grid\">\n", out);
    for (int i = HC_CLASS_NONE + 1; i < HC_CLASS_COUNT; i++) {
        if (t->classes[i] == 0)
            continue;
        const char *tone = tone_of((enum hc_error_class)i);
        size_t n = hc_html_largest(t->kinds[i], bars, BARS_MAX, strcmp(tone, "note") == 0 ? "" : tone);
        (void)fprintf(out, "<div><h3>%s <span class=\"soft\">%" PRIu64 ": %s</span></h3>\n",
                      hc_error_classes[i].name, t->classes[i], hc_error_classes[i].meaning);
        hc_html_bars(out, hc_error_classes[i].name, bars, n);
        if (json_object_size(t->kinds[i]) > n)
            (void)fprintf(out, "<p class=\"soft\">and %zu more kinds</p>\n",
                          json_object_size(t->kinds[i]) - n);
        (void)fputs("</div>\n", out);
    }
    if (t->classes[HC_CLASS_NONE] == t->results)
        (void)fputs("<p class=\"soft\">none</p>\n", out);
    (void)fputs("</div></section>\n", out);
}

static void put_suites(FILE *out, const struct hc_tally *t)
{
    static const char *const columns[] = {"attempted", "ok", "right", "wrong", "not_judged"};
    const char *name;
    json_t *row;
    (void)fputs("<section id=\"suites\"><h2>By suite</h2>\n<div class=\"scroll\" "
                "tabindex=\"0\"><table>\n<thead><tr><th "
                "scope=\"col\">suite</th><th scope=\"col\">attempted</th><th scope=\"col\">ok</th><th "
                "scope=\"col\">right</th><th scope=\"col\">wrong</th><th scope=\"col\">not judged</th><th "
                "scope=\"col\">right of judged</th></tr></thead>\n<tbody>\n",
                out);
    json_object_foreach(t->suites, name, row)
    {
        (void)fputs("<tr><td>", out);
        hc_html_string(out, name);
        (void)fputs("</td>", out);
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
            (void)fprintf(out, "<td>%" JSON_INTEGER_FORMAT "</td>",
                          json_integer_value(json_object_get(row, columns[i])));
        uint64_t right = (uint64_t)json_integer_value(json_object_get(row, "right"));
        uint64_t judged = right + (uint64_t)json_integer_value(json_object_get(row, "wrong"));
        if (judged > 0)
            (void)fprintf(out, "<td>%.1f %%</td></tr>\n", share(right, judged));
        else
            (void)fputs("<td>\xe2\x80\x93</td></tr>\n", out);
    }
    (void)fputs("</tbody></table></div></section>\n", out);
}

static void put_times_row(FILE *out, const char *name, size_t n, const struct hc_eval_times *times)
{
    static const unsigned permille[] = {500, 950, 990, 1000};
    char text[32];
    if (hc_eval_times_at(times, 1000) == 0)
        return;
    (void)fprintf(out, "<tr><td>%.*s</td>", (int)n, name);
    for (size_t i = 0; i < sizeof permille / sizeof *permille; i++)
        (void)fprintf(out, "<td>%s</td>", hc_html_duration(hc_eval_times_at(times, permille[i]), text));
    (void)fputs("</tr>\n", out);
}

static void put_latencies(FILE *out, const struct hc_tally *t)
{
    (void)fputs(
        "<section id=\"latencies\"><h2>Latencies by stage</h2>\n<div class=\"scroll\" "
        "tabindex=\"0\"><table>\n"
        "<thead><tr><th scope=\"col\">stage</th><th scope=\"col\">median</th><th scope=\"col\">95 %</th><th "
        "scope=\"col\">99 %</th><th scope=\"col\">longest</th></tr></thead>\n<tbody>\n",
        out);
    for (int i = 0; i < HC_TALLY_STAGES; i++)
        put_times_row(out, hc_tally_stages[i], strlen(hc_tally_stages[i]) - 3, &t->stages[i]);
    put_times_row(out, "wall time of programs", 21, &t->wall);
    put_times_row(out, "total of runs", 13, &t->total);
    (void)fputs("</tbody></table></div></section>\n", out);
}

static void put_bad_lines(FILE *out, const struct hc_tally *t)
{
    size_t i;
    json_t *row;
    if (t->bad_lines == 0)
        return;
    (void)fprintf(
        out,
        "<section id=\"bad-lines\"><h2>Lines that are no items</h2>\n<p class=\"soft\">%" PRIu64
        " in all</p>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">line</th>"
        "<th scope=\"col\" class=\"left\">what is wrong</th></tr></thead><tbody>\n",
        t->bad_lines);
    json_array_foreach(t->bad, i, row)
    {
        (void)fprintf(out, "<tr><td>%" JSON_INTEGER_FORMAT "</td><td class=\"left\">",
                      json_integer_value(json_object_get(row, "line")));
        hc_html_string(out, text_of(row, "message"));
        (void)fputs("</td></tr>\n", out);
    }
    (void)fputs("</tbody></table></div></section>\n", out);
}

static const char filter[] =
    "<form id=\"filter\" hidden>\n"
    "<label class=\"wide\">search in all of an item<input type=\"search\" name=\"search\" "
    "autocomplete=\"off\"></label>\n"
    "<label>class<select name=\"class\"><option value=\"\">all</option></select></label>\n"
    "<label>status<select name=\"status\"><option value=\"\">all</option></select></label>\n"
    "<label>suite<select name=\"suite\"><option value=\"\">all</option></select></label>\n"
    "<button type=\"reset\">clear</button>\n<button type=\"button\" id=\"open\">open all</button>\n"
    "<button type=\"button\" id=\"close\">close all</button>\n</form>\n"
    "<p id=\"shown\" class=\"soft\" role=\"status\"></p>\n";

static int copy_cards(const struct hc_page *page, FILE *out)
{
    char buffer[65536];
    size_t n;
    if (fflush(page->cards) != 0 || fseek(page->cards, 0, SEEK_SET) != 0)
        return -errno;
    while ((n = fread(buffer, 1, sizeof buffer, page->cards)) > 0)
        (void)fwrite(buffer, 1, n, out);
    return ferror(page->cards) ? -EIO : 0;
}

static int put_items(const struct hc_page *page, const struct hc_tally *t, FILE *out)
{
    (void)fprintf(out,
                  "<section id=\"items\"><h2>Items that failed</h2>\n<p class=\"soft\">%" PRIu64
                  " in all: did not end with ok, or are wrong%s</p>\n",
                  t->results - t->classes[HC_CLASS_NONE],
                  page->omitted > 0 ? ". The first of them are shown; the file of results has all" : "");
    if (page->card_count > 0)
        (void)fputs(filter, out);
    int error = copy_cards(page, out);
    (void)fputs("</section>\n", out);
    return error;
}

static void put_header(const char *title, const struct hc_tally *t, FILE *out)
{
    char now[40];
    hc_rfc3339_now(now);
    (void)fputs("<header><h1>", out);
    hc_html_string(out, title);
    (void)fprintf(out, "</h1>\n<p class=\"soft\">%" PRIu64 " results in %.1f s", t->results,
                  (double)t->elapsed_us / 1e6);
    if (t->resumed > 0)
        (void)fprintf(out, ", %" PRIu64 " of them from an earlier run", t->resumed);
    (void)fprintf(out, " \xc2\xb7 hotcell %s \xc2\xb7 <time datetime=\"%s\">%.10s</time>%s</p></header>\n",
                  HC_VERSION, now, now,
                  t->interrupted > 0 ? " \xc2\xb7 <b class=\"bad\">interrupted</b>" : "");
}

static int write_page(struct hc_page *page, const char *title, const struct hc_tally *t, FILE *out)
{
    const char *id;
    json_t *result;
    json_object_foreach(page->waiting, id, result)
    {
        if (hc_page_add(page, result, NULL, 0) != 0) /* its item did not come */
            return -EIO;
    }
    int error = hc_html_begin(out, title);
    put_header(title, t, out);
    (void)fputs("<main>\n<div class=\"grid\">\n", out);
    put_execution(out, t);
    put_acceptance(out, t);
    put_findings(out, t);
    (void)fputs("</div>\n", out);
    put_plots(out, t);
    put_errors(out, t);
    put_suites(out, t);
    put_latencies(out, t);
    put_bad_lines(out, t);
    if (error == 0)
        error = put_items(page, t, out);
    (void)fputs("</main>\n<footer><p>Success rate: ok of all items that were attempted; refused ones and "
                "those that a rule "
                "ended are failures, faults and cancelled ones are left out.</p></footer>\n",
                out);
    return error == 0 ? hc_html_end(out, page->card_count > 0) : error;
}

int hc_page_write(struct hc_page *page, const char *title, const struct hc_tally *tally)
{
    FILE *out = fopen(page->temporary, "we");
    if (out == NULL)
        return -errno;
    int error = write_page(page, title, tally, out);
    if (fclose(out) != 0 && error == 0)
        error = -errno;
    if (error == 0 && rename(page->temporary, page->path) != 0)
        error = -errno;
    return error;
}
