/* Implementation of clock.h over clock_gettime(2); no state. */
#include "common/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now); /* cannot fail for the two clocks below */
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t hf_clock_mono_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t hf_clock_mono_ms(void)
{
    return hf_clock_mono_ns() / 1000000;
}

uint64_t hf_clock_wall_ms(void)
{
    return read_ns(CLOCK_REALTIME) / 1000000;
}

void hf_clock_format_utc(uint64_t wall_ms, char out[25])
{
    /* The format has room for four digits of year; the last instant that fits stands for all later ones. */
    const uint64_t last_ms = UINT64_C(253402300799999);
    if (wall_ms > last_ms)
        wall_ms = last_ms;
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t used = strftime(out, 25, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + used, 25 - used, ".%03uZ", (unsigned)(wall_ms % 1000));
}
