/*
 * Proves the walker and the invariants: copies a table, breaks one row, and expects a finding. What stays unseen here
 * is seen by the simulator (tests/sim), which plays the tables.
 */
#include "invariants.h"
#include "statemachines/campaign.h"
#include "statemachines/executor_session.h"
#include "statemachines/strategist_call.h"
#include "tests/run_suite.h"
#include "walker.h"

#include <check.h>
#include <string.h>

enum { MAX_ROWS = 400 };

/* A copy of a machine whose rows can be broken. */
struct mutant {
    const struct hf_sm_definition *original;
    struct hf_sm_definition machine;
    struct hf_sm_row rows[MAX_ROWS];
};

static const struct hf_sm_definition *machine_at(int index)
{
    size_t count;
    return hf_sm_all(&count)[index];
}

static void mutant_init(struct mutant *mutant, const struct hf_sm_definition *original)
{
    ck_assert_uint_lt(original->row_count, MAX_ROWS);
    mutant->original = original;
    mutant->machine = *original;
    memcpy(mutant->rows, original->rows, original->row_count * sizeof original->rows[0]);
    mutant->machine.rows = mutant->rows;
}

static struct hf_sm_row *mutant_row(struct mutant *mutant, uint8_t state, uint8_t event)
{
    size_t row = 0;
    while (mutant->rows[row].state != state || mutant->rows[row].event != event) {
        row++;
        ck_assert_uint_lt(row, mutant->machine.row_count);
    }
    return &mutant->rows[row];
}

static void mutant_drop(struct mutant *mutant, size_t row)
{
    mutant->rows[row] = mutant->rows[--mutant->machine.row_count];
}

static void mutant_add(struct mutant *mutant, struct hf_sm_row row)
{
    mutant->rows[mutant->machine.row_count++] = row;
}

/* True when a walker check, or an invariant of the original machine, fails on the mutant. */
static bool is_caught(const struct mutant *mutant)
{
    size_t count;
    struct walker_finding finding;
    const walker_check *checks = walker_all(&count);
    for (size_t i = 0; i < count; i++) {
        if (!checks[i](&mutant->machine, &finding))
            return true;
    }
    const struct invariant *invariants = invariants_all(&count);
    for (size_t i = 0; i < count; i++) {
        if (invariants[i].machine == mutant->original && !invariants[i].holds(&mutant->machine, &finding))
            return true;
    }
    return false;
}

START_TEST(walker_catches_any_guarded_row_that_is_dropped)
{
    struct mutant mutant;
    const struct hf_sm_definition *machine = machine_at(_i);
    for (size_t row = 0; row < machine->row_count; row++) {
        if (machine->rows[row].guard == HF_SM_GUARD_ALWAYS)
            continue;
        mutant_init(&mutant, machine);
        mutant_drop(&mutant, row);
        ck_assert_msg(is_caught(&mutant), "%s: row %zu can be dropped unseen", machine->name, row);
    }
}
END_TEST

START_TEST(walker_catches_any_timeout_or_cancel_row_that_is_dropped)
{
    struct mutant mutant;
    const struct hf_sm_definition *machine = machine_at(_i);
    for (size_t row = 0; row < machine->row_count; row++) {
        if (!((machine->timeout_events | machine->cancel_events) & HF_SM_EVENT(machine->rows[row].event)))
            continue;
        mutant_init(&mutant, machine);
        mutant_drop(&mutant, row);
        ck_assert_msg(is_caught(&mutant), "%s: row %zu can be dropped unseen", machine->name, row);
    }
}
END_TEST

START_TEST(walker_catches_any_row_that_is_doubled)
{
    struct mutant mutant;
    const struct hf_sm_definition *machine = machine_at(_i);
    for (size_t row = 0; row < machine->row_count; row++) {
        mutant_init(&mutant, machine);
        mutant_add(&mutant, machine->rows[row]);
        ck_assert_msg(is_caught(&mutant), "%s: row %zu can be doubled unseen", machine->name, row);
    }
}
END_TEST

START_TEST(walker_catches_any_terminal_state_that_goes_on)
{
    struct mutant mutant;
    const struct hf_sm_definition *machine = machine_at(_i);
    for (uint8_t state = 0; state < machine->state_count; state++) {
        if (!(machine->terminal_states & HF_SM_STATE(state)))
            continue;
        mutant_init(&mutant, machine);
        mutant_add(&mutant, (struct hf_sm_row){.state = state, .event = 0, .next = machine->initial});
        ck_assert_msg(is_caught(&mutant), "%s: %s can go on unseen", machine->name, machine->state_names[state]);
    }
}
END_TEST

/* One broken row each, and the invariant that it breaks. */
static const struct {
    const char *what;
    const struct hf_sm_definition *machine;
    uint8_t state, event; /* the first row of these two is replaced by `row` */
    struct hf_sm_row row;
} broken_rows[] = {
    {"execute is sent while the action is being journaled",
     &hf_campaign_machine,
     HF_CAMPAIGN_STATE_SELECTING,
     HF_CAMPAIGN_EVENT_CASE_CHOSEN,
     {.next = HF_CAMPAIGN_STATE_JOURNALING,
      .effects = {HF_CAMPAIGN_EFFECT_APPEND_ACTION, HF_CAMPAIGN_EFFECT_SEND_EXECUTE}}},
    {"a post-campaign VM after a violation",
     &hf_campaign_machine,
     HF_CAMPAIGN_STATE_PRESERVING,
     HF_CAMPAIGN_EVENT_OBSERVATION_DURABLE,
     {.next = HF_CAMPAIGN_STATE_QUARANTINING, .effects = {HF_CAMPAIGN_EFFECT_FINALIZE_SESSION}}},
    {"a violation is observed like any answer",
     &hf_campaign_machine,
     HF_CAMPAIGN_STATE_EXECUTING,
     HF_CAMPAIGN_EVENT_VIOLATION_ANSWERED,
     {.next = HF_CAMPAIGN_STATE_OBSERVING, .effects = {HF_CAMPAIGN_EFFECT_APPEND_OBSERVATION}}},
    {"a cancelled action leads to the next one",
     &hf_campaign_machine,
     HF_CAMPAIGN_STATE_EXECUTING,
     HF_CAMPAIGN_EVENT_CANCEL,
     {.next = HF_CAMPAIGN_STATE_OBSERVING, .effects = {HF_CAMPAIGN_EFFECT_CONCLUDE_CANCELLED}}},
    {"a restart sums up before it registers",
     &hf_campaign_machine,
     HF_CAMPAIGN_STATE_EXECUTING,
     HF_CAMPAIGN_EVENT_CONTROLLER_RESTARTED,
     {.next = HF_CAMPAIGN_STATE_SUMMARIZING, .effects = {HF_CAMPAIGN_EFFECT_WRITE_SUMMARY}}},
    {"a summary being written is overtaken by a cancel",
     &hf_campaign_machine,
     HF_CAMPAIGN_STATE_SUMMARIZING,
     HF_CAMPAIGN_EVENT_CANCEL,
     {.next = HF_CAMPAIGN_STATE_SUMMARIZING, .effects = {HF_CAMPAIGN_EFFECT_CONCLUDE_CANCELLED}}},
    {"a lost process skips the register",
     &hf_executor_session_machine,
     HF_EXECUTOR_SESSION_STATE_READY,
     HF_EXECUTOR_SESSION_EVENT_PROCESS_ENDED,
     {.next = HF_EXECUTOR_SESSION_STATE_LOST, .effects = {HF_EXECUTOR_SESSION_EFFECT_REPORT_LOST}}},
    {"the wrapper is terminated before the register is written",
     &hf_executor_session_machine,
     HF_EXECUTOR_SESSION_STATE_EXECUTING,
     HF_EXECUTOR_SESSION_EVENT_DEADLINE,
     {.next = HF_EXECUTOR_SESSION_STATE_REGISTERING_FAULT,
      .effects = {HF_EXECUTOR_SESSION_EFFECT_TERMINATE_WRAPPER, HF_EXECUTOR_SESSION_EFFECT_REGISTER_QUARANTINE}}},
    {"evidence is ignored when an action is sent",
     &hf_executor_session_machine,
     HF_EXECUTOR_SESSION_STATE_READY,
     HF_EXECUTOR_SESSION_EVENT_EXECUTE,
     {.next = HF_EXECUTOR_SESSION_STATE_EXECUTING, .effects = {HF_EXECUTOR_SESSION_EFFECT_SEND_EXECUTE}}},
    {"a bad response is forgiven",
     &hf_executor_session_machine,
     HF_EXECUTOR_SESSION_STATE_EXECUTING,
     HF_EXECUTOR_SESSION_EVENT_BAD_RESPONSE,
     {.next = HF_EXECUTOR_SESSION_STATE_READY, .effects = {HF_EXECUTOR_SESSION_EFFECT_REPORT_EXECUTE_ANSWERED}}},
    {"a call without reservation",
     &hf_strategist_call_machine,
     HF_STRATEGIST_CALL_STATE_CHECKING_VERSION,
     HF_STRATEGIST_CALL_EVENT_VERSION_PASSED,
     {.next = HF_STRATEGIST_CALL_STATE_SMOKE, .effects = {HF_STRATEGIST_CALL_EFFECT_RUN_SMOKE}}},
    {"a failed call is not charged",
     &hf_strategist_call_machine,
     HF_STRATEGIST_CALL_STATE_INVOKING,
     HF_STRATEGIST_CALL_EVENT_PROCESS_FAILED,
     {.next = HF_STRATEGIST_CALL_STATE_REFUSED, .effects = {HF_STRATEGIST_CALL_EFFECT_REPORT_REFUSED}}},
};

START_TEST(invariants_catch_the_broken_row)
{
    struct mutant mutant;
    mutant_init(&mutant, broken_rows[_i].machine);
    struct hf_sm_row *row = mutant_row(&mutant, broken_rows[_i].state, broken_rows[_i].event);
    struct hf_sm_row broken = broken_rows[_i].row;
    broken.state = row->state;
    broken.event = row->event;
    *row = broken;
    ck_assert_msg(is_caught(&mutant), "unseen: %s", broken_rows[_i].what);
}
END_TEST

START_TEST(invariants_catch_a_second_request_in_flight)
{
    struct mutant mutant;
    mutant_init(&mutant, &hf_executor_session_machine);
    mutant_add(&mutant, (struct hf_sm_row){.state = HF_EXECUTOR_SESSION_STATE_EXECUTING,
                                           .event = HF_EXECUTOR_SESSION_EVENT_QUARANTINE,
                                           .next = HF_EXECUTOR_SESSION_STATE_QUARANTINING,
                                           .effects = {HF_EXECUTOR_SESSION_EFFECT_SEND_QUARANTINE}});
    ck_assert(is_caught(&mutant));
}
END_TEST

START_TEST(partition_check_catches_guards_that_overlap)
{
    struct hf_campaign_facts facts;
    struct walker_finding finding;
    struct hf_sm_definition machine = hf_campaign_machine;
    uint8_t groups[HF_CAMPAIGN_GUARD_COUNT];
    memcpy(groups, machine.guard_groups, sizeof groups);
    groups[HF_CAMPAIGN_GUARD_OPEN] = groups[HF_CAMPAIGN_GUARD_NO_VIOLATION]; /* both hold for fresh facts */
    machine.guard_groups = groups;
    hf_campaign_facts_init(&facts);
    ck_assert(!walker_guards_partition(&machine, &facts, &finding));
}
END_TEST

static Suite *mutants_suite(void)
{
    Suite *suite = suite_create("statemachines/mutants");
    TCase *mutants = tcase_create("mutants");
    tcase_add_loop_test(mutants, walker_catches_any_guarded_row_that_is_dropped, 0, HF_SM_MACHINE_COUNT);
    tcase_add_loop_test(mutants, walker_catches_any_timeout_or_cancel_row_that_is_dropped, 0, HF_SM_MACHINE_COUNT);
    tcase_add_loop_test(mutants, walker_catches_any_row_that_is_doubled, 0, HF_SM_MACHINE_COUNT);
    tcase_add_loop_test(mutants, walker_catches_any_terminal_state_that_goes_on, 0, HF_SM_MACHINE_COUNT);
    tcase_add_loop_test(mutants, invariants_catch_the_broken_row, 0, sizeof broken_rows / sizeof broken_rows[0]);
    tcase_add_test(mutants, invariants_catch_a_second_request_in_flight);
    tcase_add_test(mutants, partition_check_catches_guards_that_overlap);
    suite_add_tcase(suite, mutants);
    return suite;
}

int main(void)
{
    return run_suite(mutants_suite());
}
