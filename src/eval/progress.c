#include "eval/progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TERMINAL_PERIOD_US 200000u
#define PLAIN_PERIOD_US    10000000u

void hc_progress_init(struct hc_progress *progress, bool plain, uint64_t total_bytes, uint64_t total_items)
{
    bool terminal = isatty(2) == 1;
    *progress = (struct hc_progress){.terminal = terminal,
                                     .plain = plain && !terminal,
                                     .began_us = hc_now_us(),
                                     .total_bytes = total_bytes,
                                     .total_items = total_items};
    progress->shown_us = progress->began_us;
}

static void show_time(double seconds, char out[32])
{
    uint64_t s = seconds < 1 ? 1 : seconds < 1e8 ? (uint64_t)seconds : 100000000;
    if (s >= 3600)
        (void)snprintf(out, 32, "%lluh%02llum", (unsigned long long)s / 3600,
                       (unsigned long long)s / 60 % 60);
    else if (s >= 60)
        (void)snprintf(out, 32, "%llum%02llus", (unsigned long long)s / 60, (unsigned long long)s % 60);
    else
        (void)snprintf(out, 32, "%llus", (unsigned long long)s);
}

void hc_progress_text(const struct hc_progress *p, uint64_t now_us, uint64_t done, uint64_t skipped,
                      uint64_t bytes, char out[160])
{
    double seconds = (double)(now_us - p->began_us) / 1e6;
    double rate = seconds > 0 ? (double)done / seconds : 0, share = -1;
    char left[32];
    int at = snprintf(out, 160, "hotcell: %" PRIu64 " items, %.1f/s", done + skipped, rate);
    if (p->total_items > 0)
        share = (double)(done + skipped) / (double)p->total_items;
    if (p->total_bytes > 0 && (double)bytes / (double)p->total_bytes > share)
        share = (double)bytes / (double)p->total_bytes;
    if (share < 0)
        return;
    share = share > 1 ? 1 : share;
    at += snprintf(out + at, 160 - (size_t)at, ", %d %%", (int)(100 * share));
    if (done == 0 || rate <= 0 || share <= 0)
        return;
    show_time(((double)(done + skipped) / share - (double)(done + skipped)) / rate, left);
    (void)snprintf(out + at, 160 - (size_t)at, ", %s left", left);
}

void hc_progress_show(struct hc_progress *progress, uint64_t done, uint64_t skipped, uint64_t bytes)
{
    uint64_t now_us = hc_now_us();
    char text[160];
    if ((!progress->terminal && !progress->plain) ||
        now_us - progress->shown_us < (progress->terminal ? TERMINAL_PERIOD_US : PLAIN_PERIOD_US))
        return;
    progress->shown_us = now_us;
    hc_progress_text(progress, now_us, done, skipped, bytes, text);
    (void)fprintf(stderr, progress->terminal ? "\r%s\x1b[K" : "%s\n", text);
    (void)fflush(stderr);
    progress->line_open = progress->terminal;
}

void hc_progress_clear(struct hc_progress *progress)
{
    if (progress->line_open)
        (void)fputs("\r\x1b[K", stderr);
    progress->line_open = false;
}
