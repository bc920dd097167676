/* The engine on a small machine of its own, and its look-ups on the real ones. */
#include "statemachines/campaign.h"
#include "statemachines/engine.h"
#include "tests/run_suite.h"

#include <check.h>

enum { STATE_OPEN, STATE_SHUT, STATE_GONE, STATE_COUNT };
enum { EVENT_PUSH, EVENT_BREAK, EVENT_UNUSED, EVENT_COUNT };
enum { EFFECT_NONE, EFFECT_CREAK, EFFECT_BANG, EFFECT_COUNT_PUSH, EFFECT_COUNT };
enum { GUARD_ALWAYS, GUARD_OILED, GUARD_RUSTY, GUARD_COUNT };

struct door_facts {
    bool oiled;
    unsigned pushes;
};

static bool door_guard(uint8_t guard, const void *facts)
{
    return ((const struct door_facts *)facts)->oiled == (guard == GUARD_OILED);
}

static void door_apply(uint8_t effect, void *facts)
{
    if (effect == EFFECT_COUNT_PUSH)
        ((struct door_facts *)facts)->pushes++;
}

static const struct hf_sm_row door_rows[] = {
    {STATE_OPEN, EVENT_PUSH, GUARD_OILED, STATE_SHUT, {EFFECT_COUNT_PUSH}},
    {STATE_OPEN, EVENT_PUSH, GUARD_RUSTY, STATE_OPEN, {EFFECT_COUNT_PUSH, EFFECT_CREAK}},
    {STATE_SHUT, EVENT_PUSH, GUARD_ALWAYS, STATE_OPEN, {EFFECT_COUNT_PUSH, EFFECT_CREAK, EFFECT_BANG}},
    {STATE_OPEN, EVENT_BREAK, GUARD_ALWAYS, STATE_GONE, {EFFECT_NONE}},
};
static const char *const door_states[] = {"open", "shut", "gone"};
static const char *const door_events[] = {"push", "break", "unused"};
static const char *const door_effects[] = {"none", "creak", "bang", "count_push"};
static const char *const door_guards[] = {"always", "oiled", "rusty"};
static const uint8_t door_groups[] = {0, 1, 1};

static const struct hf_sm_definition door = {
    .name = "door",
    .state_names = door_states,
    .event_names = door_events,
    .effect_names = door_effects,
    .guard_names = door_guards,
    .state_count = STATE_COUNT,
    .event_count = EVENT_COUNT,
    .effect_count = EFFECT_COUNT,
    .guard_count = GUARD_COUNT,
    .guard_groups = door_groups,
    .rows = door_rows,
    .row_count = sizeof door_rows / sizeof door_rows[0],
    .initial = STATE_OPEN,
    .terminal_states = HF_SM_STATE(STATE_GONE),
    .facts_size = sizeof(struct door_facts),
    .guard = door_guard,
    .apply = door_apply,
};

static struct hf_sm_instance instance;
static struct door_facts facts;

static void set_up(void)
{
    hf_sm_init(&instance, &door);
    facts = (struct door_facts){.oiled = true};
}

START_TEST(step_moves_and_returns_effects_in_order)
{
    hf_sm_step(&instance, EVENT_PUSH, &facts);
    struct hf_sm_result result = hf_sm_step(&instance, EVENT_PUSH, &facts);
    ck_assert(result.accepted);
    ck_assert_uint_eq(result.from, STATE_SHUT);
    ck_assert_uint_eq(result.to, STATE_OPEN);
    ck_assert_uint_eq(result.effect_count, 3);
    ck_assert_uint_eq(result.effects[0], EFFECT_COUNT_PUSH);
    ck_assert_uint_eq(result.effects[1], EFFECT_CREAK);
    ck_assert_uint_eq(result.effects[2], EFFECT_BANG);
    ck_assert_str_eq(hf_sm_state_name(&instance), "open");
}
END_TEST

START_TEST(step_takes_the_row_whose_guard_holds)
{
    facts.oiled = false;
    struct hf_sm_result result = hf_sm_step(&instance, EVENT_PUSH, &facts);
    ck_assert_uint_eq(result.to, STATE_OPEN);
    ck_assert_uint_eq(result.guard, GUARD_RUSTY);
}
END_TEST

START_TEST(step_applies_fact_only_effects_once)
{
    hf_sm_step(&instance, EVENT_PUSH, &facts);
    hf_sm_step(&instance, EVENT_PUSH, &facts);
    ck_assert_uint_eq(facts.pushes, 2);
}
END_TEST

START_TEST(rejected_event_is_counted_and_changes_nothing)
{
    hf_sm_step(&instance, EVENT_PUSH, &facts);
    struct hf_sm_result result = hf_sm_step(&instance, EVENT_BREAK, &facts);
    ck_assert(!result.accepted);
    ck_assert_uint_eq(result.from, STATE_SHUT);
    ck_assert_uint_eq(result.to, STATE_SHUT);
    ck_assert_uint_eq(result.effect_count, 0);
    ck_assert_uint_eq(instance.accepted, 1);
    ck_assert_uint_eq(instance.rejected, 1);
    ck_assert_uint_eq(instance.last_rejected_event, EVENT_BREAK);
    ck_assert_uint_eq(instance.last_rejected_state, STATE_SHUT);
    ck_assert_uint_eq(facts.pushes, 1);
}
END_TEST

START_TEST(event_out_of_range_is_rejected)
{
    ck_assert(!hf_sm_step(&instance, 200, &facts).accepted);
    ck_assert(!hf_sm_step(&instance, HF_SM_NO_EVENT, &facts).accepted);
    ck_assert_uint_eq(instance.rejected, 2);
}
END_TEST

START_TEST(terminal_state_rejects_everything)
{
    hf_sm_step(&instance, EVENT_BREAK, &facts);
    ck_assert(hf_sm_is_terminal(&instance));
    for (unsigned event = 0; event <= UINT8_MAX; event++)
        ck_assert(!hf_sm_step(&instance, (uint8_t)event, &facts).accepted);
}
END_TEST

START_TEST(counters_saturate)
{
    instance.rejected = UINT32_MAX;
    instance.accepted = UINT32_MAX;
    hf_sm_step(&instance, EVENT_UNUSED, &facts);
    hf_sm_step(&instance, EVENT_PUSH, &facts);
    ck_assert_uint_eq(instance.rejected, UINT32_MAX);
    ck_assert_uint_eq(instance.accepted, UINT32_MAX);
}
END_TEST

START_TEST(find_shows_the_row_without_taking_it)
{
    ck_assert_ptr_eq(hf_sm_find(&instance, EVENT_PUSH, &facts), &door_rows[0]);
    ck_assert_ptr_null(hf_sm_find(&instance, EVENT_UNUSED, &facts));
    ck_assert_uint_eq(instance.state, STATE_OPEN);
    ck_assert_uint_eq(instance.accepted + instance.rejected + facts.pushes, 0);
}
END_TEST

START_TEST(replay_takes_the_recorded_guard_whatever_the_facts_say)
{
    struct hf_sm_result result = hf_sm_replay(&instance, EVENT_PUSH, GUARD_RUSTY, &facts); /* facts say oiled */
    ck_assert(result.accepted);
    ck_assert_uint_eq(instance.state, STATE_OPEN);
    ck_assert_uint_eq(facts.pushes, 1);
}
END_TEST

START_TEST(replay_rejects_a_row_that_the_table_does_not_have)
{
    ck_assert(!hf_sm_replay(&instance, EVENT_PUSH, GUARD_ALWAYS, &facts).accepted);
    ck_assert(!hf_sm_replay(&instance, 99, GUARD_OILED, &facts).accepted);
    ck_assert_uint_eq(instance.rejected, 2);
    ck_assert_uint_eq(instance.state, STATE_OPEN);
}
END_TEST

START_TEST(names_lead_back_to_numbers)
{
    for (uint8_t i = 0; i < hf_campaign_machine.event_count; i++)
        ck_assert_int_eq(hf_sm_event_by_name(&hf_campaign_machine, hf_campaign_machine.event_names[i]), i);
    for (uint8_t i = 0; i < hf_campaign_machine.guard_count; i++)
        ck_assert_int_eq(hf_sm_guard_by_name(&hf_campaign_machine, hf_campaign_machine.guard_names[i]), i);
}
END_TEST

START_TEST(unknown_names_lead_nowhere)
{
    ck_assert_int_eq(hf_sm_event_by_name(&door, ""), -1);
    ck_assert_int_eq(hf_sm_guard_by_name(&door, NULL), -1);
}
END_TEST

START_TEST(no_two_machines_have_one_name)
{
    size_t count;
    const struct hf_sm_definition *const *machines = hf_sm_all(&count);
    ck_assert_uint_eq(count, HF_SM_MACHINE_COUNT);
    for (size_t i = 0; i < count; i++)
        for (size_t other = 0; other < i; other++)
            ck_assert_str_ne(machines[i]->name, machines[other]->name);
}
END_TEST

static Suite *engine_suite(void)
{
    Suite *suite = suite_create("statemachines/engine");
    TCase *engine = tcase_create("engine");
    tcase_add_checked_fixture(engine, set_up, NULL);
    tcase_add_test(engine, step_moves_and_returns_effects_in_order);
    tcase_add_test(engine, step_takes_the_row_whose_guard_holds);
    tcase_add_test(engine, step_applies_fact_only_effects_once);
    tcase_add_test(engine, rejected_event_is_counted_and_changes_nothing);
    tcase_add_test(engine, event_out_of_range_is_rejected);
    tcase_add_test(engine, terminal_state_rejects_everything);
    tcase_add_test(engine, counters_saturate);
    tcase_add_test(engine, find_shows_the_row_without_taking_it);
    tcase_add_test(engine, replay_takes_the_recorded_guard_whatever_the_facts_say);
    tcase_add_test(engine, replay_rejects_a_row_that_the_table_does_not_have);
    tcase_add_test(engine, names_lead_back_to_numbers);
    tcase_add_test(engine, unknown_names_lead_nowhere);
    tcase_add_test(engine, no_two_machines_have_one_name);
    suite_add_tcase(suite, engine);
    return suite;
}

int main(void)
{
    return run_suite(engine_suite());
}
