/*
 * Walks every machine's table and checks the invariants on the tables. What a check means is in walker.h and
 * invariants.h; test_mutants.c proves that they can fail.
 */
#include "facts_sample.h"
#include "invariants.h"
#include "statemachines/campaign.h"
#include "statemachines/executor_session.h"
#include "tests/run_suite.h"
#include "walker.h"

#include <check.h>
#include <string.h>

enum { FACTS_SAMPLES = 20000, TIMER_STEPS_LIMIT = 16 };

static const struct hf_sm_definition *machine_at(int index)
{
    size_t count;
    return hf_sm_all(&count)[index];
}

START_TEST(table_keeps_the_promises_of_every_machine)
{
    size_t count;
    struct walker_finding finding;
    const walker_check *checks = walker_all(&count);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(checks[i](machine_at(_i), &finding), "%s", finding.text);
}
END_TEST

START_TEST(table_carries_its_invariant)
{
    size_t count;
    struct walker_finding finding = {""};
    const struct invariant *invariant = &invariants_all(&count)[_i];
    ck_assert_msg(invariant->holds(invariant->machine, &finding), "%s: %s", invariant->name, finding.text);
}
END_TEST

START_TEST(guards_of_a_group_partition_all_facts)
{
    uint64_t seed = 1;
    max_align_t facts[32];
    struct walker_finding finding;
    const struct hf_sm_definition *machine = machine_at(_i);
    for (int i = 0; i < FACTS_SAMPLES; i++) {
        facts_sample(machine, &seed, facts);
        ck_assert_msg(walker_guards_partition(machine, facts, &finding), "sample %d: %s", i, finding.text);
    }
}
END_TEST

START_TEST(timers_alone_end_every_machine_from_every_state)
{
    uint64_t seed = 2;
    max_align_t facts[32];
    struct walker_finding finding;
    const struct hf_sm_definition *machine = machine_at(_i);
    for (int i = 0; i < FACTS_SAMPLES / 10; i++) {
        facts_sample(machine, &seed, facts);
        ck_assert_msg(walker_timers_alone_end_it(machine, facts, TIMER_STEPS_LIMIT, &finding), "sample %d: %s", i,
                      finding.text);
    }
}
END_TEST

START_TEST(every_state_is_entered_with_its_timer)
{
    struct walker_finding finding;
    const struct hf_sm_definition *machine = machine_at(_i);
    bool session = machine == &hf_executor_session_machine;
    /* The registering states share the one write that is under way, and its deadline. */
    uint32_t sharing = session ? HF_SM_STATE(HF_EXECUTOR_SESSION_STATE_REGISTERING_VIOLATION) |
                                     HF_SM_STATE(HF_EXECUTOR_SESSION_STATE_REGISTERING_FAULT) |
                                     HF_SM_STATE(HF_EXECUTOR_SESSION_STATE_REGISTERING_LOSS)
                               : 0;
    uint8_t timer = 1;
    while (strcmp(machine->effect_names[timer], session ? "arm_deadline" : "arm_timer") != 0)
        timer++;
    ck_assert_msg(walker_arms_timer(machine, timer, sharing, &finding), "%s", finding.text);
}
END_TEST

/* The shell's rule 4: a journal that cannot be written feeds storage_failed and then the original event. Events of
 * something that was told to stop are the exception: there is nothing left that waits for them. */
START_TEST(event_that_met_a_full_disk_is_still_taken_after_storage_failed)
{
    static const uint64_t of_stopped =
        HF_SM_EVENT(HF_CAMPAIGN_EVENT_START) | HF_SM_EVENT(HF_CAMPAIGN_EVENT_PREFLIGHT_PASSED) |
        HF_SM_EVENT(HF_CAMPAIGN_EVENT_PREFLIGHT_FAILED) | HF_SM_EVENT(HF_CAMPAIGN_EVENT_BUDGETS_CHECKED) |
        HF_SM_EVENT(HF_CAMPAIGN_EVENT_CASE_CHOSEN) | HF_SM_EVENT(HF_CAMPAIGN_EVENT_STRATEGIST_REFUSED) |
        HF_SM_EVENT(HF_CAMPAIGN_EVENT_STRATEGIST_EXHAUSTED);
    uint64_t seed = 3;
    for (size_t i = 0; i < hf_campaign_machine.row_count * 100; i++) {
        const struct hf_sm_row *row = &hf_campaign_machine.rows[i / 100];
        if (of_stopped & HF_SM_EVENT(row->event))
            continue;
        struct hf_campaign_facts facts;
        facts_sample(&hf_campaign_machine, &seed, &facts);
        struct hf_sm_instance instance;
        hf_sm_init(&instance, &hf_campaign_machine);
        instance.state = row->state;
        ck_assert(hf_sm_step(&instance, HF_CAMPAIGN_EVENT_STORAGE_FAILED, &facts).accepted);
        ck_assert_msg(hf_sm_step(&instance, row->event, &facts).accepted, "%s is stranded in %s after a full disk",
                      hf_campaign_machine.event_names[row->event], hf_sm_state_name(&instance));
    }
}
END_TEST

static Suite *tables_suite(void)
{
    size_t invariant_count;
    invariants_all(&invariant_count);
    Suite *suite = suite_create("statemachines/tables");
    TCase *tables = tcase_create("tables");
    tcase_add_loop_test(tables, table_keeps_the_promises_of_every_machine, 0, HF_SM_MACHINE_COUNT);
    tcase_add_loop_test(tables, table_carries_its_invariant, 0, (int)invariant_count);
    tcase_add_loop_test(tables, guards_of_a_group_partition_all_facts, 0, HF_SM_MACHINE_COUNT);
    tcase_add_loop_test(tables, timers_alone_end_every_machine_from_every_state, 0, HF_SM_MACHINE_COUNT);
    tcase_add_loop_test(tables, every_state_is_entered_with_its_timer, 0, HF_SM_MACHINE_COUNT);
    tcase_add_test(tables, event_that_met_a_full_disk_is_still_taken_after_storage_failed);
    suite_add_tcase(suite, tables);
    return suite;
}

int main(void)
{
    return run_suite(tables_suite());
}
