#include "eval/html.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report_assets.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static void put_byte(FILE *out, char byte)
{
    switch (byte) {
    case '<':
        (void)fputs("&lt;", out);
        break;
    case '>':
        (void)fputs("&gt;", out);
        break;
    case '&':
        (void)fputs("&amp;", out);
        break;
    case '"':
        (void)fputs("&quot;", out);
        break;
    case '\'':
        (void)fputs("&#39;", out);
        break;
    default:
        (void)fputc(byte, out);
    }
}

void hc_html_text(FILE *out, const char *text, size_t bytes)
{
    enum { PIECE = 512 };
    struct hc_visible visible = {0};
    char shown[8 * (PIECE + 4)];
    for (size_t at = 0; at <= bytes; at += PIECE) {
        bool last = bytes - at < PIECE || bytes == at;
        size_t n = last ? bytes - at : PIECE;
        size_t made = hc_visible_feed(&visible, (const uint8_t *)text + at, n, shown, sizeof shown);
        for (size_t i = 0; i < made; i++)
            put_byte(out, shown[i]);
        if (last)
            break;
    }
    size_t made = hc_visible_finish(&visible, shown, sizeof shown);
    for (size_t i = 0; i < made; i++)
        put_byte(out, shown[i]);
}

void hc_html_string(FILE *out, const char *text)
{
    if (text != NULL)
        hc_html_text(out, text, strlen(text));
}

const char *hc_html_duration(uint64_t us, char out[32])
{
    if (us < 1000000)
        (void)snprintf(out, 32, "%.1f ms", (double)us / 1e3);
    else
        (void)snprintf(out, 32, "%.2f s", (double)us / 1e6);
    return out;
}

/* ---- the frame of a page ---- */

static int put_hash(FILE *out, const char *text, size_t bytes)
{
    unsigned char digest[EVP_MAX_MD_SIZE], base64[EVP_MAX_MD_SIZE * 2];
    unsigned n = 0;
    if (EVP_Digest(text, bytes, digest, &n, EVP_sha256(), NULL) != 1)
        return -EIO;
    (void)EVP_EncodeBlock(base64, digest, (int)n);
    (void)fprintf(out, "'sha256-%s'", (const char *)base64);
    return 0;
}

int hc_html_begin(FILE *out, const char *title)
{
    (void)fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src ",
                out);
    int error = put_hash(out, report_css, sizeof report_css - 1);
    (void)fputs("; script-src ", out);
    if (error == 0)
        error = put_hash(out, report_js, sizeof report_js - 1);
    (void)fputs("; base-uri 'none'; form-action 'none'\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"referrer\" content=\"no-referrer\">\n<title>",
                out);
    hc_html_string(out, title);
    (void)fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n", report_css);
    return error;
}

int hc_html_end(FILE *out, bool script)
{
    if (script)
        (void)fprintf(out, "<script>%s</script>\n", report_js);
    (void)fputs("</body>\n</html>\n", out);
    return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

/* ---- drawings ---- */

enum { WIDTH = 380, ROW = 26, NAME_WIDTH = 152, COUNT_WIDTH = 50 };

/* Tenths of a pixel that a byte takes at 12 px, on the wide side: nobody knows the reader's font. */
static unsigned width_of(unsigned char byte)
{
    return byte >= 0xC0                                   ? 130 /* a character's first byte */
           : byte >= 0x80                                 ? 0
           : strchr("MW@%", byte) != NULL                 ? 120
           : byte >= 'A' && byte <= 'Z'                   ? 90
           : strchr("ijlI1.,:;'|!()[] tfr", byte) != NULL ? 55
                                                          : 77;
}

/* As much of a name as there is room for. */
static void put_name(FILE *out, const char *name)
{
    size_t n = 0, fits = 0, all = strlen(name);
    unsigned width = 0;
    const unsigned room = 10 * (NAME_WIDTH - 14);
    for (; n < all && width <= room; n++) {
        fits = width + 130 <= room ? n : fits;
        width += width_of((unsigned char)name[n]);
    }
    if (width <= room) {
        hc_html_text(out, name, all);
        return;
    }
    hc_html_text(out, name, hc_utf8_floor((const uint8_t *)name, fits));
    (void)fputs("\xe2\x80\xa6", out);
}

void hc_html_bars(FILE *out, const char *label, const struct hc_bar *bars, size_t count)
{
    uint64_t most = 1;
    const double room = WIDTH - NAME_WIDTH - COUNT_WIDTH;
    for (size_t i = 0; i < count; i++)
        most = bars[i].count > most ? bars[i].count : most;
    if (count == 0)
        return;
    (void)fprintf(out, "<svg viewBox=\"0 0 %d %zu\" role=\"img\" aria-label=\"", WIDTH, ROW * count);
    hc_html_string(out, label);
    for (size_t i = 0; i < count; i++) {
        (void)fputs(i == 0 ? ": " : ", ", out);
        hc_html_string(out, bars[i].name);
        (void)fprintf(out, " %" PRIu64, bars[i].count);
    }
    (void)fputs("\">\n", out);
    for (size_t i = 0; i < count; i++) {
        double width = room * (double)bars[i].count / (double)most;
        int y = (int)(ROW * i);
        (void)fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", NAME_WIDTH - 10, y + 17);
        put_name(out, bars[i].name);
        (void)fprintf(out,
                      "</text><rect class=\"track\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"16\" rx=\"3\"/>"
                      "<rect class=\"bar %s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"16\" rx=\"3\"/>"
                      "<text x=\"%d\" y=\"%d\">%" PRIu64 "</text>\n",
                      NAME_WIDTH, y + 5, room, bars[i].tone, NAME_WIDTH, y + 5,
                      bars[i].count > 0 && width < 2 ? 2 : width, WIDTH - COUNT_WIDTH + 8, y + 17,
                      bars[i].count);
    }
    (void)fputs("</svg>\n", out);
}

/* Half powers of two: a column each. */
enum { COLUMNS_MAX = 128 };

static unsigned column_of(unsigned slot)
{
    return slot / (HC_TALLY_STEPS / 2);
}

/* Where column `c` begins, in microseconds. */
static uint64_t begin_of(unsigned c)
{
    unsigned power = c / 2;
    uint64_t base = power == 0 ? 0 : (uint64_t)HC_TALLY_STEPS << (power - 1);
    uint64_t half = power == 0 ? HC_TALLY_STEPS / 2 : base / 2;
    return base + (c % 2) * half;
}

void hc_html_times(FILE *out, const char *label, const struct hc_eval_times *times)
{
    uint64_t columns[COLUMNS_MAX] = {0}, most = 1;
    unsigned first = COLUMNS_MAX, last = 0;
    enum { HEIGHT = 150, BASE = 120, LEFT = 8 };
    char text[32], other[32];
    for (unsigned slot = 0; slot < HC_TALLY_SLOTS; slot++)
        columns[column_of(slot)] += times->counts[slot];
    for (unsigned c = 0; c < COLUMNS_MAX; c++) {
        if (columns[c] == 0)
            continue;
        first = c < first ? c : first;
        last = c;
        most = columns[c] > most ? columns[c] : most;
    }
    if (first == COLUMNS_MAX)
        return;
    first = first > 0 ? first - 1 : 0;
    last += last + 1 < COLUMNS_MAX ? 1 : 0;
    double step = (double)(WIDTH - 2 * LEFT) / (last - first + 1);
    (void)fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    hc_html_string(out, label);
    (void)fprintf(out, ": median %s", hc_html_duration(hc_eval_times_at(times, 500), text));
    (void)fprintf(out, ", 95 %% within %s\">\n", hc_html_duration(hc_eval_times_at(times, 950), text));
    unsigned every = (last - first + 1 + 4) / 5;
    for (unsigned c = first; c <= last; c++) {
        double x = LEFT + step * (c - first), height = 104.0 * (double)columns[c] / (double)most;
        if (columns[c] > 0)
            (void)fprintf(out,
                          "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\">"
                          "<title>%s to %s: %" PRIu64 "</title></rect>\n",
                          x + 1, BASE - (height < 2 ? 2 : height), step > 4 ? step - 2 : step,
                          height < 2 ? 2 : height, hc_html_duration(begin_of(c), text),
                          hc_html_duration(begin_of(c + 1), other), columns[c]);
        if ((c - first) % every == 0 && WIDTH - x > 58)
            (void)fprintf(out, "<text class=\"axis\" x=\"%.1f\" y=\"%d\">%s</text>\n", x, HEIGHT - 12,
                          hc_html_duration(begin_of(c), text));
    }
    (void)fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/></svg>\n", LEFT, BASE, WIDTH - LEFT,
                  BASE);
}

static int by_count(const void *a, const void *b)
{
    const struct hc_bar *left = a, *right = b;
    return left->count < right->count ? 1 : left->count > right->count ? -1 : strcmp(left->name, right->name);
}

size_t hc_html_largest(const json_t *counts, struct hc_bar *bars, size_t room, const char *tone)
{
    size_t n = 0;
    const char *name;
    json_t *count;
    hc_autofree struct hc_bar *all = calloc(json_object_size(counts) + 1, sizeof *all);
    if (all == NULL)
        return 0;
    json_object_foreach((json_t *)counts, name, count)
    {
        all[n++] = (struct hc_bar){.name = name, .count = (uint64_t)json_integer_value(count), .tone = tone};
    }

    qsort(all, n, sizeof *all, by_count);
    n = n < room ? n : room;
    memcpy(bars, all, n * sizeof *bars);
    return n;
}
