#include "bench/bench.h"

#include <stdlib.h>

void hc_samples_add(struct hc_samples *samples, uint64_t us)
{
    if (samples->count < HC_BENCH_SAMPLES_MAX)
        samples->us[samples->count++] = us;
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

void hc_samples_sort(struct hc_samples *samples)
{
    qsort(samples->us, samples->count, sizeof *samples->us, by_value);
}

uint64_t hc_samples_percentile(const struct hc_samples *sorted, unsigned percent)
{
    if (sorted->count == 0)
        return 0;
    size_t at = (sorted->count * percent + 99) / 100;
    return sorted->us[at > 0 ? at - 1 : 0];
}
