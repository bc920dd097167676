/* What the facts decide: precedence of categories, budgets and their borders, credits, answers, timers. */
#include "statemachines/campaign.h"
#include "statemachines/executor_session.h"
#include "statemachines/minimization.h"
#include "statemachines/strategist_call.h"
#include "tests/run_suite.h"

#include <check.h>

static struct hf_campaign_facts campaign;

static void set_up(void)
{
    hf_campaign_facts_init(&campaign);
    campaign.actions_budget = 8;
    campaign.finalization_reserve_ms = 145000;
    campaign.remaining_ms = 900000;
    campaign.candidates_left = 6;
}

static bool campaign_guard(enum hf_campaign_guard guard)
{
    return hf_campaign_machine.guard((uint8_t)guard, &campaign);
}

static void campaign_apply(enum hf_campaign_effect effect)
{
    hf_campaign_machine.apply((uint8_t)effect, &campaign);
}

START_TEST(categories_have_names_that_lead_back)
{
    for (int i = 0; i < HF_CAMPAIGN_CATEGORY_COUNT; i++)
        ck_assert_int_eq(hf_campaign_category_by_name(hf_campaign_category_name((enum hf_campaign_category)i)), i);
    ck_assert_ptr_null(hf_campaign_category_name(HF_CAMPAIGN_CATEGORY_COUNT));
    ck_assert_int_eq(hf_campaign_category_by_name("passed"), -1);
    ck_assert_int_eq(hf_campaign_category_by_name(NULL), -1);
}
END_TEST

START_TEST(only_the_five_orderly_ends_pass)
{
    int passing = 0;
    for (int i = 0; i < HF_CAMPAIGN_CATEGORY_COUNT; i++)
        passing += hf_campaign_category_passes((enum hf_campaign_category)i);
    ck_assert_int_eq(passing, 5);
    ck_assert(hf_campaign_category_passes(HF_CAMPAIGN_CATEGORY_REPLAY_COMPLETE));
    ck_assert(!hf_campaign_category_passes(HF_CAMPAIGN_CATEGORY_REPLAY_INCOMPLETE));
    ck_assert(!hf_campaign_category_passes(HF_CAMPAIGN_CATEGORY_NONE));
}
END_TEST

/* From the weakest to the strongest; within one pair of brackets the first one told stays. */
START_TEST(stronger_category_replaces_and_equal_one_does_not)
{
    static const enum hf_campaign_category order[] = {
        HF_CAMPAIGN_CATEGORY_COVERAGE_CONVERGED, HF_CAMPAIGN_CATEGORY_TEST_FAILURE,
        HF_CAMPAIGN_CATEGORY_CONTROLLER_STORAGE_FAILURE, HF_CAMPAIGN_CATEGORY_CONTROLLER_RESTARTED,
        HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        hf_campaign_conclude(&campaign, order[i]);
        for (size_t weaker = 0; weaker < i; weaker++)
            hf_campaign_conclude(&campaign, order[weaker]);
        ck_assert_int_eq(campaign.category, order[i]);
    }
}
END_TEST

START_TEST(first_failure_is_the_one_that_is_told)
{
    hf_campaign_conclude(&campaign, HF_CAMPAIGN_CATEGORY_CANCELLED);
    hf_campaign_conclude(&campaign, HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE);
    ck_assert_int_eq(campaign.category, HF_CAMPAIGN_CATEGORY_CANCELLED);
}
END_TEST

START_TEST(verdict_passes_only_after_a_clean_finalization_without_evidence)
{
    hf_campaign_conclude(&campaign, HF_CAMPAIGN_CATEGORY_COVERAGE_CONVERGED);
    ck_assert(!hf_campaign_verdict_passed(&campaign));
    campaign_apply(HF_CAMPAIGN_EFFECT_CONCLUDE_FINALIZATION);
    ck_assert(hf_campaign_verdict_passed(&campaign));
    campaign.violation_evidence = true;
    ck_assert(!hf_campaign_verdict_passed(&campaign));
}
END_TEST

START_TEST(unclean_post_campaign_boot_fails_the_campaign)
{
    hf_campaign_conclude(&campaign, HF_CAMPAIGN_CATEGORY_COVERAGE_CONVERGED);
    campaign.finalization_category = HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE;
    campaign_apply(HF_CAMPAIGN_EFFECT_CONCLUDE_FINALIZATION);
    ck_assert_int_eq(campaign.category, HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE);
    ck_assert(!hf_campaign_verdict_passed(&campaign));
}
END_TEST

START_TEST(loss_is_told_by_what_had_been_sent)
{
    campaign_apply(HF_CAMPAIGN_EFFECT_CONCLUDE_LOSS);
    ck_assert_int_eq(campaign.category, HF_CAMPAIGN_CATEGORY_PREFLIGHT_OR_EXECUTOR_FAILURE);
    set_up();
    campaign_apply(HF_CAMPAIGN_EFFECT_SEND_EXECUTE);
    campaign_apply(HF_CAMPAIGN_EFFECT_CONCLUDE_LOSS);
    ck_assert_int_eq(campaign.category, HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE);
    set_up();
    campaign_apply(HF_CAMPAIGN_EFFECT_FINALIZE_SESSION);
    campaign_apply(HF_CAMPAIGN_EFFECT_CONCLUDE_LOSS);
    ck_assert_int_eq(campaign.category, HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE);
}
END_TEST

START_TEST(evidence_in_the_last_answer_of_a_lost_session_is_a_violation)
{
    campaign.violation_evidence = true;
    hf_campaign_conclude(&campaign, HF_CAMPAIGN_CATEGORY_CANCELLED);
    campaign_apply(HF_CAMPAIGN_EFFECT_CONCLUDE_LOSS);
    ck_assert_int_eq(campaign.category, HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION);
}
END_TEST

START_TEST(action_fits_down_to_the_reserve_and_one_second)
{
    campaign.remaining_ms = campaign.finalization_reserve_ms + HF_CAMPAIGN_MIN_ACTION_MS;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_MAY_CHOOSE));
    campaign.remaining_ms--;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_TIME_SPENT));
    campaign.remaining_ms = 0;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_TIME_SPENT));
}
END_TEST

START_TEST(reserve_larger_than_any_time_does_not_wrap_around)
{
    campaign.finalization_reserve_ms = UINT64_MAX;
    campaign.remaining_ms = UINT64_MAX;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_TIME_SPENT));
}
END_TEST

START_TEST(budgets_end_the_loop_in_their_order)
{
    campaign.actions_done = 8;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_ACTIONS_SPENT));
    campaign.candidates_left = 0;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_COVERAGE_CONVERGED));
    campaign.violation_evidence = true;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_LOOP_ENDED));
}
END_TEST

START_TEST(credits_end_the_loop_below_one_reservation)
{
    campaign.strategist_charges_credits = true;
    campaign.credits_budget = 300;
    campaign.credits_charged = 270;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_MAY_CHOOSE));
    campaign.credits_charged = 271;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_CREDITS_SPENT));
    campaign.credits_charged = UINT32_MAX;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_CREDITS_SPENT));
}
END_TEST

START_TEST(replay_is_complete_only_when_every_action_ran)
{
    campaign.replay = true;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_MAY_REPLAY));
    campaign.actions_done = 8;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_REPLAY_CUT_SHORT));
    campaign.candidates_left = 0;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_REPLAY_FINISHED));
}
END_TEST

START_TEST(violation_is_never_minimized_in_local_mode)
{
    campaign.minimize_wanted = campaign.failed_case_known = true;
    campaign.minimize_attempts_left = 3;
    hf_campaign_conclude(&campaign, HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION);
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_MAY_MINIMIZE));
    campaign.local_executor = true;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_MUST_SKIP_MINIMIZE));
}
END_TEST

START_TEST(local_mode_minimizes_a_failure_but_not_one_with_evidence)
{
    campaign.minimize_wanted = campaign.failed_case_known = campaign.local_executor = true;
    campaign.minimize_attempts_left = 1;
    hf_campaign_conclude(&campaign, HF_CAMPAIGN_CATEGORY_TEST_FAILURE);
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_MAY_MINIMIZE));
    campaign.violation_evidence = true;
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_MUST_SKIP_MINIMIZE));
}
END_TEST

START_TEST(violation_at_finalization_has_no_case_to_minimize)
{
    campaign.minimize_wanted = true;
    campaign.minimize_attempts_left = 3;
    hf_campaign_conclude(&campaign, HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION);
    ck_assert(campaign_guard(HF_CAMPAIGN_GUARD_NOTHING_TO_MINIMIZE));
}
END_TEST

START_TEST(restart_gives_the_disk_new_chances)
{
    campaign.summary_attempts_left = campaign.register_attempts_left = 0;
    campaign_apply(HF_CAMPAIGN_EFFECT_REGISTER_QUARANTINE);
    campaign_apply(HF_CAMPAIGN_EFFECT_CONCLUDE_CONTROLLER_RESTARTED);
    ck_assert_uint_eq(campaign.summary_attempts_left, HF_CAMPAIGN_STORAGE_ATTEMPTS);
    ck_assert_uint_eq(campaign.register_attempts_left, HF_CAMPAIGN_STORAGE_ATTEMPTS - 1);
}
END_TEST

/* A backstop that fires before the session has used its own deadlines would cut off the quarantine requests. */
START_TEST(campaign_timer_outlasts_the_deadlines_of_its_session)
{
    const struct hf_executor_session_times session = {.spawn_ms = 10000,
                                                      .initialize_ms = 250000,
                                                      .idle_ms = 900000,
                                                      .execute_ms = 625000,
                                                      .finalize_ms = 145000,
                                                      .quarantine_ms = 145000,
                                                      .shutdown_ms = 25000,
                                                      .exit_ms = 20000,
                                                      .register_ms = 10000,
                                                      .term_ms = 5000,
                                                      .kill_ms = 5000};
    const struct hf_campaign_times times = {
        .initialize_ms = session.initialize_ms, .action_ms = session.execute_ms, .finalize_ms = session.finalize_ms};
    uint64_t clean_up =
        session.register_ms + 2 * session.quarantine_ms + session.exit_ms + session.term_ms + session.kill_ms;
    ck_assert_uint_ge(hf_campaign_state_timeout_ms(HF_CAMPAIGN_STATE_INITIALIZING, &times),
                      session.spawn_ms + session.initialize_ms + clean_up);
    ck_assert_uint_ge(hf_campaign_state_timeout_ms(HF_CAMPAIGN_STATE_EXECUTING, &times), session.execute_ms + clean_up);
    ck_assert_uint_ge(hf_campaign_state_timeout_ms(HF_CAMPAIGN_STATE_FINALIZING, &times),
                      session.finalize_ms + clean_up);
    ck_assert_uint_ge(hf_campaign_state_timeout_ms(HF_CAMPAIGN_STATE_QUARANTINING, &times), clean_up);
    ck_assert_uint_ge(hf_campaign_state_timeout_ms(HF_CAMPAIGN_STATE_CLOSING, &times), session.shutdown_ms + clean_up);
}
END_TEST

START_TEST(timers_saturate_instead_of_wrapping_around)
{
    const struct hf_campaign_times times = {.action_ms = UINT64_MAX, .finalize_ms = UINT64_MAX};
    ck_assert_uint_eq(hf_campaign_state_timeout_ms(HF_CAMPAIGN_STATE_EXECUTING, &times), UINT64_MAX);
    ck_assert_uint_eq(hf_campaign_state_timeout_ms(HF_CAMPAIGN_STATE_PASSED, &times), 0);
    ck_assert_uint_eq(hf_campaign_state_timeout_ms(200, &times), 0);
}
END_TEST

START_TEST(unknown_usage_is_charged_a_full_reservation)
{
    struct hf_strategist_call_facts facts;
    hf_strategist_call_facts_init(&facts, HF_STRATEGIST_KIND_COPILOT, 300);
    facts.usage_credits = 4;
    hf_strategist_call_machine.apply(HF_STRATEGIST_CALL_EFFECT_CHARGE_USAGE, &facts);
    ck_assert_uint_eq(facts.credits_charged, HF_STRATEGIST_CALL_CREDITS);
    facts.usage_known = true;
    hf_strategist_call_machine.apply(HF_STRATEGIST_CALL_EFFECT_CHARGE_USAGE, &facts);
    ck_assert_uint_eq(facts.credits_charged, HF_STRATEGIST_CALL_CREDITS + 4);
}
END_TEST

START_TEST(charges_saturate_and_then_end_the_calls)
{
    struct hf_strategist_call_facts facts;
    hf_strategist_call_facts_init(&facts, HF_STRATEGIST_KIND_COPILOT, UINT32_MAX);
    facts.usage_known = true;
    facts.usage_credits = UINT32_MAX;
    hf_strategist_call_machine.apply(HF_STRATEGIST_CALL_EFFECT_CHARGE_USAGE, &facts);
    hf_strategist_call_machine.apply(HF_STRATEGIST_CALL_EFFECT_CHARGE_USAGE, &facts);
    ck_assert_uint_eq(facts.credits_charged, UINT32_MAX);
    ck_assert(hf_strategist_call_machine.guard(HF_STRATEGIST_CALL_GUARD_CREDITS_SPENT, &facts));
}
END_TEST

START_TEST(strategists_without_credits_are_never_charged)
{
    struct hf_strategist_call_facts facts;
    hf_strategist_call_facts_init(&facts, HF_STRATEGIST_KIND_COMMAND, 0);
    hf_strategist_call_machine.apply(HF_STRATEGIST_CALL_EFFECT_CHARGE_USAGE, &facts);
    ck_assert_uint_eq(facts.credits_charged, 0);
    ck_assert(hf_strategist_call_machine.guard(HF_STRATEGIST_CALL_GUARD_CREDITS_LEFT, &facts));
}
END_TEST

START_TEST(at_most_two_repairs_follow_a_prompt)
{
    struct hf_sm_instance call;
    struct hf_strategist_call_facts facts;
    hf_strategist_call_facts_init(&facts, HF_STRATEGIST_KIND_COMMAND, 0);
    facts.time_left = true;
    hf_sm_init(&call, &hf_strategist_call_machine);
    hf_sm_step(&call, HF_STRATEGIST_CALL_EVENT_START, &facts);
    hf_sm_step(&call, HF_STRATEGIST_CALL_EVENT_ASK, &facts);
    for (int repair = 0; repair < 2; repair++) {
        hf_sm_step(&call, HF_STRATEGIST_CALL_EVENT_PROCESS_ANSWERED, &facts);
        hf_sm_step(&call, HF_STRATEGIST_CALL_EVENT_ANSWER_REJECTED, &facts);
        ck_assert_str_eq(hf_sm_state_name(&call), "repairing");
    }
    hf_sm_step(&call, HF_STRATEGIST_CALL_EVENT_PROCESS_ANSWERED, &facts);
    hf_sm_step(&call, HF_STRATEGIST_CALL_EVENT_ANSWER_REJECTED, &facts);
    ck_assert_str_eq(hf_sm_state_name(&call), "refused");
}
END_TEST

START_TEST(evidence_makes_any_answer_a_violation)
{
    struct hf_executor_session_facts facts = {.answer = HF_EXECUTOR_SESSION_ANSWER_OK, .violation_evidence = true};
    ck_assert(hf_executor_session_machine.guard(HF_EXECUTOR_SESSION_GUARD_ANSWER_VIOLATION, &facts));
    ck_assert(!hf_executor_session_machine.guard(HF_EXECUTOR_SESSION_GUARD_ANSWER_OK, &facts));
}
END_TEST

START_TEST(quarantine_is_asked_for_only_while_it_can_be_answered)
{
    struct hf_executor_session_facts facts = {.transport_open = true,
                                              .remaining_ms = HF_EXECUTOR_SESSION_QUARANTINE_MIN_MS};
    ck_assert(hf_executor_session_machine.guard(HF_EXECUTOR_SESSION_GUARD_REACHABLE, &facts));
    facts.remaining_ms--;
    ck_assert(hf_executor_session_machine.guard(HF_EXECUTOR_SESSION_GUARD_UNREACHABLE, &facts));
    facts.remaining_ms++;
    facts.transport_open = false;
    ck_assert(hf_executor_session_machine.guard(HF_EXECUTOR_SESSION_GUARD_UNREACHABLE, &facts));
}
END_TEST

START_TEST(minimization_asks_for_permission_itself)
{
    struct hf_sm_instance minimization;
    struct hf_minimization_facts facts = {.local_executor = true, .policy_violation = true};
    hf_sm_init(&minimization, &hf_minimization_machine);
    struct hf_sm_result result = hf_sm_step(&minimization, HF_MINIMIZATION_EVENT_START, &facts);
    ck_assert_uint_eq(result.to, HF_MINIMIZATION_STATE_DONE);
}
END_TEST

static Suite *facts_suite(void)
{
    Suite *suite = suite_create("statemachines/facts");
    TCase *tcase = tcase_create("facts");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, categories_have_names_that_lead_back);
    tcase_add_test(tcase, only_the_five_orderly_ends_pass);
    tcase_add_test(tcase, stronger_category_replaces_and_equal_one_does_not);
    tcase_add_test(tcase, first_failure_is_the_one_that_is_told);
    tcase_add_test(tcase, verdict_passes_only_after_a_clean_finalization_without_evidence);
    tcase_add_test(tcase, unclean_post_campaign_boot_fails_the_campaign);
    tcase_add_test(tcase, loss_is_told_by_what_had_been_sent);
    tcase_add_test(tcase, evidence_in_the_last_answer_of_a_lost_session_is_a_violation);
    tcase_add_test(tcase, action_fits_down_to_the_reserve_and_one_second);
    tcase_add_test(tcase, reserve_larger_than_any_time_does_not_wrap_around);
    tcase_add_test(tcase, budgets_end_the_loop_in_their_order);
    tcase_add_test(tcase, credits_end_the_loop_below_one_reservation);
    tcase_add_test(tcase, replay_is_complete_only_when_every_action_ran);
    tcase_add_test(tcase, violation_is_never_minimized_in_local_mode);
    tcase_add_test(tcase, local_mode_minimizes_a_failure_but_not_one_with_evidence);
    tcase_add_test(tcase, violation_at_finalization_has_no_case_to_minimize);
    tcase_add_test(tcase, restart_gives_the_disk_new_chances);
    tcase_add_test(tcase, campaign_timer_outlasts_the_deadlines_of_its_session);
    tcase_add_test(tcase, timers_saturate_instead_of_wrapping_around);
    tcase_add_test(tcase, unknown_usage_is_charged_a_full_reservation);
    tcase_add_test(tcase, charges_saturate_and_then_end_the_calls);
    tcase_add_test(tcase, strategists_without_credits_are_never_charged);
    tcase_add_test(tcase, at_most_two_repairs_follow_a_prompt);
    tcase_add_test(tcase, evidence_makes_any_answer_a_violation);
    tcase_add_test(tcase, quarantine_is_asked_for_only_while_it_can_be_answered);
    tcase_add_test(tcase, minimization_asks_for_permission_itself);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return run_suite(facts_suite());
}
