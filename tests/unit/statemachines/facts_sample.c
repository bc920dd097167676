/* Implementation of facts_sample.h. */
#include "facts_sample.h"

#include "statemachines/campaign.h"
#include "statemachines/executor_session.h"
#include "statemachines/minimization.h"
#include "statemachines/strategist_call.h"
#include "statemachines/vm_launch.h"

uint64_t facts_sample_next(uint64_t *seed)
{
    uint64_t mixed = (*seed += UINT64_C(0x9e3779b97f4a7c15));
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

static bool sample_bool(uint64_t *seed)
{
    return facts_sample_next(seed) & 1;
}

static uint32_t sample_below(uint64_t *seed, uint32_t bound)
{
    return (uint32_t)(facts_sample_next(seed) % bound);
}

static uint32_t sample_count(uint64_t *seed)
{
    static const uint32_t counts[] = {0, 1, 2, 3, 8, 29, 30, 31, 60, 300, UINT32_MAX - 1, UINT32_MAX};
    return counts[sample_below(seed, sizeof counts / sizeof counts[0])];
}

static uint64_t sample_ms(uint64_t *seed)
{
    static const uint64_t times[] = {0, 1, 999, 1000, 1001, 145000, 145999, 146000, 146001, UINT64_MAX - 1, UINT64_MAX};
    return times[sample_below(seed, sizeof times / sizeof times[0])];
}

static enum hf_campaign_category sample_category(uint64_t *seed)
{
    return sample_bool(seed) ? HF_CAMPAIGN_CATEGORY_NONE
                             : (enum hf_campaign_category)sample_below(seed, HF_CAMPAIGN_CATEGORY_COUNT);
}

static void sample_campaign(uint64_t *seed, struct hf_campaign_facts *facts)
{
    *facts = (struct hf_campaign_facts){
        .replay = sample_bool(seed),
        .local_executor = sample_bool(seed),
        .minimize_wanted = sample_bool(seed),
        .strategist_charges_credits = sample_bool(seed),
        .actions_budget = sample_count(seed),
        .credits_budget = sample_count(seed),
        .finalization_reserve_ms = sample_ms(seed),
        .minimization_reserve_ms = sample_ms(seed),
        .remaining_ms = sample_ms(seed),
        .actions_done = sample_count(seed),
        .candidates_left = sample_below(seed, 3),
        .credits_charged = sample_count(seed),
        .minimize_attempts_left = sample_below(seed, 3),
        .violation_evidence = sample_below(seed, 4) == 0,
        .failed_case_known = sample_bool(seed),
        .answer_category = sample_category(seed),
        .finalization_category = sample_category(seed),
        .category = sample_category(seed),
        .action_sent = sample_bool(seed),
        .action_in_flight = sample_bool(seed),
        .finalization_begun = sample_bool(seed),
        .finalized_clean = sample_bool(seed),
        .summary_attempts_left = (uint8_t)sample_below(seed, HF_CAMPAIGN_STORAGE_ATTEMPTS + 1),
        .register_attempts_left = (uint8_t)sample_below(seed, HF_CAMPAIGN_STORAGE_ATTEMPTS + 1),
    };
}

static void sample_session(uint64_t *seed, struct hf_executor_session_facts *facts)
{
    *facts = (struct hf_executor_session_facts){
        .answer = (enum hf_executor_session_answer)sample_below(seed, 4),
        .exit = (enum hf_executor_session_exit)sample_below(seed, 4),
        .violation_evidence = sample_bool(seed),
        .self_quarantined = sample_bool(seed),
        .transport_open = sample_bool(seed),
        .remaining_ms = sample_ms(seed),
    };
}

static void sample_strategist(uint64_t *seed, struct hf_strategist_call_facts *facts)
{
    *facts = (struct hf_strategist_call_facts){
        .kind = (enum hf_strategist_kind)sample_below(seed, 4),
        .credits_budget = sample_count(seed),
        .time_left = sample_bool(seed),
        .usage_known = sample_bool(seed),
        .usage_credits = sample_count(seed),
        .credits_charged = sample_count(seed),
        .attempts = sample_below(seed, HF_STRATEGIST_CALL_ATTEMPTS + 2),
    };
}

static void sample_minimization(uint64_t *seed, struct hf_minimization_facts *facts)
{
    *facts = (struct hf_minimization_facts){
        .local_executor = sample_bool(seed),
        .policy_violation = sample_bool(seed),
        .candidate_available = sample_bool(seed),
        .time_left = sample_bool(seed),
        .actions_left = sample_below(seed, 3),
        .same_anomaly = sample_bool(seed),
        .attempts_left = sample_below(seed, 3),
        .outcome = (enum hf_minimization_outcome)sample_below(seed, 4),
    };
}

static void sample_vm_launch(uint64_t *seed, struct hf_vm_launch_facts *facts)
{
    *facts = (struct hf_vm_launch_facts){
        .sandboxed = sample_bool(seed),
        .launches_done = sample_below(seed, 4),
        .issue_found = sample_bool(seed),
        .launches_agree = sample_bool(seed),
    };
}

void facts_sample(const struct hf_sm_definition *machine, uint64_t *seed, void *facts)
{
    if (machine->guard == hf_campaign_machine.guard)
        sample_campaign(seed, facts);
    else if (machine->guard == hf_executor_session_machine.guard)
        sample_session(seed, facts);
    else if (machine->guard == hf_strategist_call_machine.guard)
        sample_strategist(seed, facts);
    else if (machine->guard == hf_minimization_machine.guard)
        sample_minimization(seed, facts);
    else
        sample_vm_launch(seed, facts);
}
