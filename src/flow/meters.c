#include "flow/meters.h"

#include "base/clock.h"
#include "kernel/text.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KILL_TIMEOUT_MS 5000

static bool read_meter(const struct hc_cell_handle *cell, enum hc_meter meter, char *buffer, size_t size)
{
    if (cell->meters[meter] < 0)
        return false;
    ssize_t n = pread(cell->meters[meter], buffer, size - 1, 0);
    if (n < 0)
        return false;
    buffer[n] = '\0';
    return true;
}

static bool read_number(const struct hc_cell_handle *cell, enum hc_meter meter, uint64_t *ret_number)
{
    char buffer[64];
    return read_meter(cell, meter, buffer, sizeof buffer) && hc_text_value(buffer, ret_number);
}

static uint64_t read_field(const struct hc_cell_handle *cell, enum hc_meter meter, const char *field)
{
    char buffer[2048];
    uint64_t value = 0;
    if (read_meter(cell, meter, buffer, sizeof buffer))
        (void)hc_text_field(buffer, field, &value);
    return value;
}

bool hc_meter_cpu_us(const struct hc_cell_handle *cell, uint64_t *ret_us, uint64_t *ret_user_us,
                     uint64_t *ret_system_us, const char **ret_name)
{
    char buffer[2048];
    if (read_meter(cell, HC_METER_CPU_STAT, buffer, sizeof buffer) &&
        hc_text_field(buffer, "usage_usec", ret_us)) {
        *ret_user_us = *ret_system_us = 0;
        (void)hc_text_field(buffer, "user_usec", ret_user_us);
        (void)hc_text_field(buffer, "system_usec", ret_system_us);
        *ret_name = "cgroup2 cpu.stat";
        return true;
    }
    uint64_t ns = 0;
    if (!read_number(cell, HC_METER_CPUACCT, &ns))
        return false;
    uint64_t ticks_us = 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    *ret_us = ns / 1000;
    *ret_user_us = read_field(cell, HC_METER_CPUACCT_STAT, "user") * ticks_us;
    *ret_system_us = read_field(cell, HC_METER_CPUACCT_STAT, "system") * ticks_us;
    *ret_name = "cgroup1 cpuacct.usage";
    return true;
}

uint64_t hc_meter_oom_kills(const struct hc_cell_handle *cell)
{
    return read_field(cell, HC_METER_OOM, "oom_kill") + read_field(cell, HC_METER_OOM, "oom_group_kill");
}

bool hc_meter_at_memory_limit(const struct hc_cell_handle *cell)
{
    uint64_t failcnt = 0;
    if (read_number(cell, HC_METER_FAILCNT, &failcnt))
        return failcnt > 0;
    return read_field(cell, HC_METER_OOM, "oom") > 0 || read_field(cell, HC_METER_OOM, "max") > 0;
}

uint64_t hc_meter_refused_tasks(const struct hc_cell_handle *cell)
{
    return read_field(cell, HC_METER_PIDS_EVENTS, "max");
}

void hc_meter_peaks(const struct hc_cell_handle *cell, struct hc_usage *usage)
{
    uint64_t value = 0;
    usage->has_memory_peak = read_number(cell, HC_METER_PEAK, &value);
    usage->memory_peak_bytes = value;
    usage->memory_meter =
        cell->meters[HC_METER_FAILCNT] >= 0 ? "cgroup1 memory.max_usage_in_bytes" : "cgroup2 memory.peak";
    value = 0;
    if (read_number(cell, HC_METER_PIDS_PEAK, &value) && value > 0)
        usage->processes_peak = value - 1; /* init */
    usage->processes_meter = "cgroup pids.peak";
}

bool hc_meter_populated(const struct hc_cell_handle *cell)
{
    return read_field(cell, HC_METER_EVENTS, "populated") != 0;
}

int hc_meter_kill_all(const struct hc_cell_handle *cell)
{
    uint64_t deadline_us = hc_now_us() + KILL_TIMEOUT_MS * 1000ull;
    if (cell->meters[HC_METER_KILL] < 0)
        return -ENODEV;
    if (write(cell->meters[HC_METER_KILL], "1", 1) != 1)
        return -errno;
    /* The death of process 1 is the last one in its pid namespace, and the kernel tells of it at once. */
    struct pollfd death = {.fd = cell->meters[HC_METER_INIT], .events = POLLIN};
    (void)poll(&death, 1, death.fd >= 0 ? KILL_TIMEOUT_MS : 0);
    for (uint64_t pause_us = 100; hc_meter_populated(cell);
         pause_us = pause_us < 4000 ? pause_us * 2 : 4000) {
        if (hc_now_us() > deadline_us)
            return -ETIMEDOUT;
        /* POLLPRI tells of a change, but the kernel holds such news back for 10 ms after the last one
         * (CGROUP_FILE_NOTIFY_MIN_INTV), and a short run's birth was just now: so look oneself, ever less
         * often. */
        struct pollfd wait = {.fd = cell->meters[HC_METER_EVENTS], .events = POLLPRI};
        struct timespec timeout = {.tv_nsec = (long)pause_us * 1000};
        (void)ppoll(&wait, 1, &timeout, NULL);
    }
    return 0;
}
