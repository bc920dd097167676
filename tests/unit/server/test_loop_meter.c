/* The histogram of the loop meter, and that it measures callbacks and iterations of a real loop. */
#include "server/core/loop_meter.h"
#include "tests/unit/server/fixture.h"

#include <string.h>
#include <time.h>

START_TEST(quantiles_are_at_most_an_eighth_too_high)
{
    static struct hf_histogram histogram;
    memset(&histogram, 0, sizeof histogram);
    for (uint64_t i = 1; i <= 1000; i++)
        hf_histogram_add(&histogram, i * 1000);
    struct hf_histogram_figures figures = hf_histogram_read(&histogram);
    ck_assert_uint_eq(figures.count, 1000);
    ck_assert_uint_eq(figures.max_ns, 1000000);
    ck_assert_uint_ge(figures.p50_ns, 500000);
    ck_assert_uint_le(figures.p50_ns, 500000 * 9 / 8);
    ck_assert_uint_ge(figures.p99_ns, 990000);
    ck_assert_uint_le(figures.p99_ns, 1000000);
}
END_TEST

START_TEST(the_extremes_have_a_bucket)
{
    static struct hf_histogram histogram;
    memset(&histogram, 0, sizeof histogram);
    hf_histogram_add(&histogram, 0);
    ck_assert_uint_eq(hf_histogram_read(&histogram).p99_ns, 0);
    hf_histogram_add(&histogram, UINT64_MAX);
    ck_assert_uint_eq(hf_histogram_read(&histogram).max_ns, UINT64_MAX);
    ck_assert_uint_eq(hf_histogram_read(&histogram).p99_ns, UINT64_MAX);
}
END_TEST

START_TEST(nothing_measured_is_zero)
{
    static struct hf_histogram histogram;
    memset(&histogram, 0, sizeof histogram);
    ck_assert_uint_eq(hf_histogram_read(&histogram).p50_ns, 0);
}
END_TEST

static void busy_callback(uv_timer_t *timer)
{
    HF_LOOP_CALLBACK(timer->loop);
    struct timespec span = {0, 20000000};
    nanosleep(&span, NULL);
}

START_TEST(a_busy_callback_shows_in_both_histograms_and_waiting_in_none)
{
    uv_loop_t loop;
    uv_timer_t timer;
    uv_loop_init(&loop);
    struct hf_loop_meter *meter = hf_loop_meter_new(&loop);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, busy_callback, 100, 0); /* waits 100 ms, then works for 20 */
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_timer_start(&timer, busy_callback, 0, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(hf_histogram_read(&meter->callbacks).count, 2);
    ck_assert_uint_ge(hf_histogram_read(&meter->callbacks).max_ns, 20000000);
    ck_assert_uint_ge(hf_histogram_read(&meter->iterations).max_ns, 20000000);
    ck_assert_uint_lt(hf_histogram_read(&meter->iterations).max_ns, 90000000);
    uv_close((uv_handle_t *)&timer, NULL);
    hf_loop_meter_free(meter);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, quantiles_are_at_most_an_eighth_too_high);
    tcase_add_test(tests, the_extremes_have_a_bucket);
    tcase_add_test(tests, nothing_measured_is_zero);
    tcase_add_test(tests, a_busy_callback_shows_in_both_histograms_and_waiting_in_none);
}

int main(void)
{
    return run_tests("loop_meter", add);
}
