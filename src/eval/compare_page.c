#include "eval/compare.h"

#include "eval/html.h"

#include <inttypes.h>
#include <string.h>

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void put_side(FILE *out, const struct hc_compare *c, int side)
{
    char text[32];
    (void)fprintf(out, "<section><h2>%s</h2><p class=\"soft\">", side == 0 ? "First" : "Second");
    hc_html_string(out, c->path[side]);
    (void)fprintf(out,
                  "</p>\n<dl><dt>results</dt><dd>%" PRIu64 "</dd><dt>ok</dt><dd>%" PRIu64 " (%.2f %%)</dd>",
                  c->results[side], c->ok[side], share(c->ok[side], c->results[side]));
    (void)fprintf(out,
                  "<dt>right</dt><dd>%" PRIu64 " (%.2f %%)</dd><dt>only in this one</dt><dd>%" PRIu64 "</dd>",
                  c->right[side], share(c->right[side], c->judged[side]), c->only[side]);
    if (c->wall[side].total > 0)
        (void)fprintf(out, "<dt>wall time, median of what ended alike</dt><dd>%s</dd>",
                      hc_html_duration(hc_eval_times_at(&c->wall[side], 500), text));
    (void)fputs("</dl></section>\n", out);
}

static void put_sum(FILE *out, const struct hc_compare *c)
{
    const struct hc_bar bars[] = {{"same", c->same, ""},
                                  {"better", c->better, "good"},
                                  {"worse", c->worse, "bad"},
                                  {"changed", c->changed, "warn"}};
    (void)fprintf(out, "<section><h2>Together</h2><p class=\"soft\">%" PRIu64 " items are in both</p>\n",
                  c->common);
    hc_html_bars(out, "Items in both", bars, sizeof bars / sizeof *bars);
    if (c->permille.total > 0)
        (void)fprintf(
            out,
            "<h3>Wall time, second over first</h3><dl><dt>median</dt><dd>%.2f</dd><dt>5 %%</dt><dd>%.2f</dd>"
            "<dt>95 %%</dt><dd>%.2f</dd><dt>items that ended alike</dt><dd>%" PRIu64 "</dd></dl>",
            (double)hc_eval_times_at(&c->permille, 500) / 1e3,
            (double)hc_eval_times_at(&c->permille, 50) / 1e3,
            (double)hc_eval_times_at(&c->permille, 950) / 1e3, c->permille.total);
    (void)fputs("</section>\n", out);
}

static void put_moves(FILE *out, const struct hc_compare *c)
{
    struct hc_bar bars[30];
    size_t n = hc_html_largest(c->moves, bars, sizeof bars / sizeof *bars, "");
    (void)fputs("<section><h2>Moves</h2><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th "
                "scope=\"col\">from and to</th>"
                "<th scope=\"col\">items</th></tr></thead><tbody>\n",
                out);
    for (size_t i = 0; i < n; i++) {
        (void)fputs("<tr><td>", out);
        hc_html_string(out, bars[i].name);
        (void)fprintf(out, "</td><td>%" PRIu64 "</td></tr>\n", bars[i].count);
    }
    (void)fputs("</tbody></table></div></section>\n", out);
}

static void put_row(FILE *out, const json_t *row)
{
    (void)fputs("<tr><td>", out);
    hc_html_string(out, json_string_value(json_object_get(row, "id")));
    (void)fprintf(out, "</td><td class=\"left\">%s</td><td class=\"left\">%s</td></tr>\n",
                  json_string_value(json_object_get(row, "from")),
                  json_string_value(json_object_get(row, "to")));
}

static void put_list(FILE *out, const struct hc_compare *c, const char *direction, const char *tone,
                     uint64_t count)
{
    size_t i;
    json_t *row;
    (void)fprintf(out, "<section id=\"%s\"><h2 class=\"%s\">%s: %" PRIu64 "</h2>\n", direction, tone,
                  direction, count);
    if (count > 0)
        (void)fputs(
            "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">item</th><th "
            "scope=\"col\" "
            "class=\"left\">before</th><th scope=\"col\" class=\"left\">after</th></tr></thead><tbody>\n",
            out);
    json_array_foreach(c->list, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "direction")), direction) == 0)
            put_row(out, row);
    }
    (void)fprintf(out, "%s</section>\n", count > 0 ? "</tbody></table></div>" : "");
}

static void put_only(FILE *out, const struct hc_compare *c, int side)
{
    size_t i;
    json_t *id;
    if (c->only[side] == 0)
        return;
    (void)fprintf(out, "<section><h2>Only in the %s</h2><p>", side == 0 ? "first" : "second");
    json_array_foreach(c->only_ids[side], i, id)
    {
        (void)fputs(i > 0 ? ", " : "", out);
        hc_html_string(out, json_string_value(id));
    }
    (void)fprintf(out, "%s</p></section>\n",
                  c->only[side] > json_array_size(c->only_ids[side]) ? " and more" : "");
}

int hc_compare_page(const struct hc_compare *c, FILE *out)
{
    int error = hc_html_begin(out, "Comparison of two evaluations");
    (void)fputs("<header><h1>Comparison of two evaluations</h1></header>\n<main>\n<div class=\"grid\">\n",
                out);
    put_side(out, c, 0);
    put_side(out, c, 1);
    put_sum(out, c);
    (void)fputs("</div>\n", out);
    put_list(out, c, "worse", "bad", c->worse);
    put_list(out, c, "better", "good", c->better);
    put_list(out, c, "changed", "warn", c->changed);
    put_moves(out, c);
    put_only(out, c, 0);
    put_only(out, c, 1);
    (void)fputs("</main>\n<footer><p>Better: right before not judged, before wrong, before anything that did "
                "not end with ok. "
                "At most 1000 items that moved are listed.</p></footer>\n",
                out);
    return error == 0 ? hc_html_end(out, false) : error;
}
