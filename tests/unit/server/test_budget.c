/* The arithmetic of time budgets. */
#include "server/core/budget.h"
#include "tests/unit/server/fixture.h"

static const struct hf_budget defaults = {900, 60, 600};

START_TEST(the_defaults_give_the_documented_numbers)
{
    ck_assert_int_eq(hf_budget_boot_seconds(&defaults), 120);
    ck_assert_int_eq(hf_budget_reserve_seconds(&defaults), 145);
    ck_assert_int_eq(hf_budget_needed_seconds(&defaults), 120 + 165 + 145);
}
END_TEST

START_TEST(a_short_action_timeout_bounds_the_boot)
{
    struct hf_budget budget = {900, 60, 30};
    ck_assert_int_eq(hf_budget_boot_seconds(&budget), 30);
    ck_assert_int_eq(hf_budget_reserve_seconds(&budget), 55);
}
END_TEST

START_TEST(a_boot_is_never_longer_than_the_protocol_allows)
{
    struct hf_budget budget = {86400, 3600, 7200};
    ck_assert_int_eq(hf_budget_boot_seconds(&budget), 7200);
}
END_TEST

START_TEST(an_action_gets_what_the_reserve_leaves)
{
    ck_assert_int_eq(hf_budget_execute_seconds(&defaults, 0), 600);
    ck_assert_int_eq(hf_budget_execute_seconds(&defaults, 500 * 1000), 900 - 500 - 145);
    ck_assert_int_eq(hf_budget_execute_seconds(&defaults, 500 * 1000 + 1), 900 - 500 - 145 - 1); /* whole seconds */
    ck_assert_int_eq(hf_budget_execute_seconds(&defaults, 899 * 1000), 1);
    ck_assert_int_eq(hf_budget_execute_seconds(&defaults, 2000 * 1000), 1);
}
END_TEST

START_TEST(no_action_is_started_with_less_than_one_phase_above_the_reserve)
{
    struct hf_budget budget = {900, 60, 20};
    ck_assert_int_eq(hf_budget_stop_seconds(&defaults), 145 + 60);
    ck_assert_int_eq(hf_budget_stop_seconds(&budget), 45 + 20);
}
END_TEST

START_TEST(remaining_time_is_never_negative)
{
    ck_assert_int_eq(hf_budget_remaining_seconds(&defaults, 0), 900);
    ck_assert_int_eq(hf_budget_remaining_seconds(&defaults, 899999), 0);
    ck_assert_int_eq(hf_budget_remaining_seconds(&defaults, UINT64_C(1) << 40), 0);
}
END_TEST

START_TEST(a_strategist_may_not_think_an_action_away)
{
    ck_assert_uint_eq(hf_budget_strategist_ms(&defaults, 0, 120000), 120000);
    ck_assert_uint_eq(hf_budget_strategist_ms(&defaults, 690 * 1000, 120000), 5000);
    ck_assert_uint_eq(hf_budget_strategist_ms(&defaults, 695 * 1000, 120000), 0);
    ck_assert_uint_eq(hf_budget_strategist_ms(&defaults, 5000 * 1000, 120000), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_defaults_give_the_documented_numbers);
    tcase_add_test(tests, a_short_action_timeout_bounds_the_boot);
    tcase_add_test(tests, a_boot_is_never_longer_than_the_protocol_allows);
    tcase_add_test(tests, an_action_gets_what_the_reserve_leaves);
    tcase_add_test(tests, no_action_is_started_with_less_than_one_phase_above_the_reserve);
    tcase_add_test(tests, remaining_time_is_never_negative);
    tcase_add_test(tests, a_strategist_may_not_think_an_action_away);
}

int main(void)
{
    return run_tests("budget", add);
}
