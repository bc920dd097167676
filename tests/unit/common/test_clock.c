/* Promises of common/clock.h. */
#include "common/clock.h"
#include "scratch.h"

#include <time.h>

START_TEST(utc_is_written_with_milliseconds)
{
    char out[25];
    hf_clock_format_utc(0, out);
    ck_assert_str_eq(out, "1970-01-01T00:00:00.000Z");
    hf_clock_format_utc(UINT64_C(1769903999123), out);
    ck_assert_str_eq(out, "2026-01-31T23:59:59.123Z");
    hf_clock_format_utc(UINT64_C(1709164800007), out); /* a leap day */
    ck_assert_str_eq(out, "2024-02-29T00:00:00.007Z");
}
END_TEST

START_TEST(times_beyond_four_digits_of_year_stay_in_their_buffer)
{
    char out[25];
    hf_clock_format_utc(UINT64_MAX, out);
    ck_assert_str_eq(out, "9999-12-31T23:59:59.999Z");
}
END_TEST

START_TEST(the_monotonic_clock_never_goes_back)
{
    uint64_t before = hf_clock_mono_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = hf_clock_mono_ns();
        ck_assert_uint_ge(now, before);
        before = now;
    }
    ck_assert_uint_ge(hf_clock_mono_ms(), before / 1000000);
}
END_TEST

START_TEST(the_wall_clock_is_the_system_time)
{
    uint64_t before = (uint64_t)time(NULL);
    uint64_t now = hf_clock_wall_ms() / 1000;
    ck_assert_uint_ge(now + 1, before);
    ck_assert_uint_le(now, before + 60);
}
END_TEST

SCRATCH_MAIN("clock", utc_is_written_with_milliseconds, times_beyond_four_digits_of_year_stay_in_their_buffer,
             the_monotonic_clock_never_goes_back, the_wall_clock_is_the_system_time)
