/* Campaigns that go well, and what they leave behind. */
#include "common/cleanup.h"
#include "tests/integration/server/bench.h"

#include <check.h>
#include <string.h>

static struct bench bench;

static void set_up(void)
{
    bench_open(&bench, "");
    ck_assert_msg(bench_start_controller(&bench), "%s", bench.error.message);
}

static void tear_down(void)
{
    bench_close(&bench);
}

START_TEST(a_campaign_covers_all_cases_and_passes)
{
    bench_run(&bench);
    bench_expect(&bench, "passed", "coverage-converged");
    ck_assert_int_eq(bench_seen(&bench, "initialize"), 1);
    ck_assert_int_eq(bench_seen(&bench, "execute"), 6);
    ck_assert_int_eq(bench_seen(&bench, "finalize"), 1);
    ck_assert_int_eq(bench_seen(&bench, "shutdown"), 1);
    ck_assert_int_eq(bench.actions, 6);
    ck_assert_int_eq(bench.observations, 6);
    ck_assert_int_eq(bench_lines(&bench, "observations.jsonl"), 6);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("campaign");
    TCase *tests = tcase_create("campaign");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_campaign_covers_all_cases_and_passes);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK); /* a failed test leaves threads and a loop behind */
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
