/*
 * The campaign's facts: categories and their precedence, the named guards, the fact-only effects, the timer lengths.
 * Pure functions over struct hf_campaign_facts; the order of things is in campaign.c.
 */
#include "statemachines/campaign_facts.h"

#include <string.h>

static const char *const category_names[HF_CAMPAIGN_CATEGORY_COUNT] = {
    [HF_CAMPAIGN_CATEGORY_NONE] = "none",
    [HF_CAMPAIGN_CATEGORY_COVERAGE_CONVERGED] = "coverage-converged",
    [HF_CAMPAIGN_CATEGORY_ACTION_BUDGET_EXHAUSTED] = "action-budget-exhausted",
    [HF_CAMPAIGN_CATEGORY_TIME_BUDGET_EXHAUSTED] = "time-budget-exhausted",
    [HF_CAMPAIGN_CATEGORY_AI_CREDIT_BUDGET_EXHAUSTED] = "ai-credit-budget-exhausted",
    [HF_CAMPAIGN_CATEGORY_REPLAY_COMPLETE] = "replay-complete",
    [HF_CAMPAIGN_CATEGORY_REPLAY_INCOMPLETE] = "replay-incomplete",
    [HF_CAMPAIGN_CATEGORY_CANCELLED] = "cancelled",
    [HF_CAMPAIGN_CATEGORY_TEST_FAILURE] = "test-failure",
    [HF_CAMPAIGN_CATEGORY_TIMEOUT] = "timeout",
    [HF_CAMPAIGN_CATEGORY_EXECUTOR_ERROR] = "executor-error",
    [HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE] = "availability-failure",
    [HF_CAMPAIGN_CATEGORY_ORACLE_UNAVAILABLE] = "oracle-unavailable",
    [HF_CAMPAIGN_CATEGORY_PREFLIGHT_OR_EXECUTOR_FAILURE] = "preflight-or-executor-failure",
    [HF_CAMPAIGN_CATEGORY_CONTROLLER_STORAGE_FAILURE] = "controller-storage-failure",
    [HF_CAMPAIGN_CATEGORY_CONTROLLER_RESTARTED] = "controller-restarted",
    [HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION] = "policy-violation",
};

const char *hf_campaign_category_name(enum hf_campaign_category category)
{
    return (unsigned)category < HF_CAMPAIGN_CATEGORY_COUNT ? category_names[category] : NULL;
}

int hf_campaign_category_by_name(const char *name)
{
    for (int i = 0; name && i < HF_CAMPAIGN_CATEGORY_COUNT; i++) {
        if (strcmp(category_names[i], name) == 0)
            return i;
    }
    return -1;
}

bool hf_campaign_category_passes(enum hf_campaign_category category)
{
    return category > HF_CAMPAIGN_CATEGORY_NONE && category <= HF_CAMPAIGN_CATEGORY_REPLAY_COMPLETE;
}

enum rank { RANK_NONE, RANK_PASS, RANK_FAILURE, RANK_STORAGE, RANK_RESTARTED, RANK_VIOLATION };

static enum rank rank_of(enum hf_campaign_category category)
{
    switch (category) {
    case HF_CAMPAIGN_CATEGORY_NONE:
        return RANK_NONE;
    case HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION:
        return RANK_VIOLATION;
    case HF_CAMPAIGN_CATEGORY_CONTROLLER_RESTARTED:
        return RANK_RESTARTED;
    case HF_CAMPAIGN_CATEGORY_CONTROLLER_STORAGE_FAILURE:
        return RANK_STORAGE;
    default:
        return hf_campaign_category_passes(category) ? RANK_PASS : RANK_FAILURE;
    }
}

void hf_campaign_facts_init(struct hf_campaign_facts *facts)
{
    *facts = (struct hf_campaign_facts){
        .summary_attempts_left = HF_CAMPAIGN_STORAGE_ATTEMPTS,
        .register_attempts_left = HF_CAMPAIGN_STORAGE_ATTEMPTS,
    };
}

void hf_campaign_conclude(struct hf_campaign_facts *facts, enum hf_campaign_category category)
{
    if (rank_of(category) > rank_of(facts->category))
        facts->category = category;
}

bool hf_campaign_verdict_passed(const struct hf_campaign_facts *facts)
{
    return hf_campaign_category_passes(facts->category) && facts->finalized_clean && !facts->violation_evidence;
}

static bool violation_known(const struct hf_campaign_facts *facts)
{
    return facts->violation_evidence || facts->category == HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION ||
           facts->answer_category == HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION ||
           facts->finalization_category == HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION;
}

static bool is_concluded(const struct hf_campaign_facts *facts)
{
    return violation_known(facts) || facts->category != HF_CAMPAIGN_CATEGORY_NONE;
}

static bool actions_spent(const struct hf_campaign_facts *facts)
{
    return facts->actions_done >= facts->actions_budget;
}

/* An action is started only if its shortest form and the finalization both fit. Written without additions, so that no
 * reserve, however large, wraps around. */
static bool time_spent(const struct hf_campaign_facts *facts)
{
    return facts->remaining_ms <= facts->finalization_reserve_ms ||
           facts->remaining_ms - facts->finalization_reserve_ms < HF_CAMPAIGN_MIN_ACTION_MS;
}

static bool credits_spent(const struct hf_campaign_facts *facts)
{
    return facts->strategist_charges_credits &&
           (facts->credits_charged > facts->credits_budget ||
            facts->credits_budget - facts->credits_charged < HF_CAMPAIGN_AI_CALL_CREDITS);
}

/* The one answer to "what next?", as the guard that is true. */
static enum hf_campaign_guard budgets(const struct hf_campaign_facts *facts)
{
    if (is_concluded(facts))
        return HF_CAMPAIGN_GUARD_LOOP_ENDED;
    if (facts->replay) {
        if (facts->candidates_left == 0)
            return HF_CAMPAIGN_GUARD_REPLAY_FINISHED;
        return actions_spent(facts) || time_spent(facts) ? HF_CAMPAIGN_GUARD_REPLAY_CUT_SHORT
                                                         : HF_CAMPAIGN_GUARD_MAY_REPLAY;
    }
    if (facts->candidates_left == 0)
        return HF_CAMPAIGN_GUARD_COVERAGE_CONVERGED;
    if (actions_spent(facts))
        return HF_CAMPAIGN_GUARD_ACTIONS_SPENT;
    if (time_spent(facts))
        return HF_CAMPAIGN_GUARD_TIME_SPENT;
    return credits_spent(facts) ? HF_CAMPAIGN_GUARD_CREDITS_SPENT : HF_CAMPAIGN_GUARD_MAY_CHOOSE;
}

static bool is_target_anomaly(enum hf_campaign_category category)
{
    return category == HF_CAMPAIGN_CATEGORY_TEST_FAILURE || category == HF_CAMPAIGN_CATEGORY_TIMEOUT ||
           category == HF_CAMPAIGN_CATEGORY_EXECUTOR_ERROR || category == HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE ||
           category == HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION;
}

static enum hf_campaign_guard minimization(const struct hf_campaign_facts *facts)
{
    if (!facts->minimize_wanted || !facts->failed_case_known || !is_target_anomaly(facts->category))
        return HF_CAMPAIGN_GUARD_NOTHING_TO_MINIMIZE;
    bool forbidden = facts->local_executor && violation_known(facts); /* I8 */
    bool affordable = facts->minimize_attempts_left > 0 && facts->remaining_ms >= facts->minimization_reserve_ms;
    return !forbidden && affordable ? HF_CAMPAIGN_GUARD_MAY_MINIMIZE : HF_CAMPAIGN_GUARD_MUST_SKIP_MINIMIZE;
}

bool hf_campaign_guard(uint8_t guard, const void *opaque)
{
    const struct hf_campaign_facts *facts = opaque;
    switch ((enum hf_campaign_guard)guard) {
    case HF_CAMPAIGN_GUARD_ALWAYS:
        return true;
    case HF_CAMPAIGN_GUARD_VIOLATION:
        return violation_known(facts);
    case HF_CAMPAIGN_GUARD_NO_VIOLATION:
        return !violation_known(facts);
    case HF_CAMPAIGN_GUARD_CONCLUDED:
        return is_concluded(facts);
    case HF_CAMPAIGN_GUARD_OPEN:
        return !is_concluded(facts);
    case HF_CAMPAIGN_GUARD_ACTION_IN_FLIGHT:
        return facts->action_in_flight;
    case HF_CAMPAIGN_GUARD_NO_ACTION_IN_FLIGHT:
        return !facts->action_in_flight;
    case HF_CAMPAIGN_GUARD_LOOP_ENDED:
    case HF_CAMPAIGN_GUARD_REPLAY_FINISHED:
    case HF_CAMPAIGN_GUARD_REPLAY_CUT_SHORT:
    case HF_CAMPAIGN_GUARD_MAY_REPLAY:
    case HF_CAMPAIGN_GUARD_COVERAGE_CONVERGED:
    case HF_CAMPAIGN_GUARD_ACTIONS_SPENT:
    case HF_CAMPAIGN_GUARD_TIME_SPENT:
    case HF_CAMPAIGN_GUARD_CREDITS_SPENT:
    case HF_CAMPAIGN_GUARD_MAY_CHOOSE:
        return budgets(facts) == guard;
    case HF_CAMPAIGN_GUARD_MAY_MINIMIZE:
    case HF_CAMPAIGN_GUARD_MUST_SKIP_MINIMIZE:
    case HF_CAMPAIGN_GUARD_NOTHING_TO_MINIMIZE:
        return minimization(facts) == guard;
    case HF_CAMPAIGN_GUARD_SUMMARY_RETRY_LEFT:
        return facts->summary_attempts_left > 0;
    case HF_CAMPAIGN_GUARD_SUMMARY_RETRY_SPENT:
        return facts->summary_attempts_left == 0;
    case HF_CAMPAIGN_GUARD_REGISTER_RETRY_LEFT:
        return facts->register_attempts_left > 0;
    case HF_CAMPAIGN_GUARD_REGISTER_RETRY_SPENT:
        return facts->register_attempts_left == 0;
    case HF_CAMPAIGN_GUARD_VERDICT_PASSED:
        return hf_campaign_verdict_passed(facts);
    case HF_CAMPAIGN_GUARD_VERDICT_FAILED:
        return !hf_campaign_verdict_passed(facts);
    case HF_CAMPAIGN_GUARD_COUNT:
        break;
    }
    return false;
}

static void conclude_loss(struct hf_campaign_facts *facts)
{
    if (violation_known(facts))
        hf_campaign_conclude(facts, HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION);
    else if (facts->action_sent || facts->finalization_begun)
        hf_campaign_conclude(facts, HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE);
    else
        hf_campaign_conclude(facts, HF_CAMPAIGN_CATEGORY_PREFLIGHT_OR_EXECUTOR_FAILURE);
}

static void take_attempt(uint8_t *attempts_left)
{
    if (*attempts_left > 0)
        (*attempts_left)--;
}

/* The verdict effects whose category is fixed. */
static enum hf_campaign_category category_of_effect(uint8_t effect)
{
    static const uint8_t categories[HF_CAMPAIGN_EFFECT_COUNT] = {
        [HF_CAMPAIGN_EFFECT_CONCLUDE_COVERAGE_CONVERGED] = HF_CAMPAIGN_CATEGORY_COVERAGE_CONVERGED,
        [HF_CAMPAIGN_EFFECT_CONCLUDE_ACTION_BUDGET] = HF_CAMPAIGN_CATEGORY_ACTION_BUDGET_EXHAUSTED,
        [HF_CAMPAIGN_EFFECT_CONCLUDE_TIME_BUDGET] = HF_CAMPAIGN_CATEGORY_TIME_BUDGET_EXHAUSTED,
        [HF_CAMPAIGN_EFFECT_CONCLUDE_AI_CREDIT_BUDGET] = HF_CAMPAIGN_CATEGORY_AI_CREDIT_BUDGET_EXHAUSTED,
        [HF_CAMPAIGN_EFFECT_CONCLUDE_REPLAY_COMPLETE] = HF_CAMPAIGN_CATEGORY_REPLAY_COMPLETE,
        [HF_CAMPAIGN_EFFECT_CONCLUDE_REPLAY_INCOMPLETE] = HF_CAMPAIGN_CATEGORY_REPLAY_INCOMPLETE,
        [HF_CAMPAIGN_EFFECT_CONCLUDE_CANCELLED] = HF_CAMPAIGN_CATEGORY_CANCELLED,
        [HF_CAMPAIGN_EFFECT_CONCLUDE_PREFLIGHT_OR_EXECUTOR] = HF_CAMPAIGN_CATEGORY_PREFLIGHT_OR_EXECUTOR_FAILURE,
        [HF_CAMPAIGN_EFFECT_CONCLUDE_STORAGE_FAILURE] = HF_CAMPAIGN_CATEGORY_CONTROLLER_STORAGE_FAILURE,
        [HF_CAMPAIGN_EFFECT_CONCLUDE_CONTROLLER_RESTARTED] = HF_CAMPAIGN_CATEGORY_CONTROLLER_RESTARTED,
        [HF_CAMPAIGN_EFFECT_CONCLUDE_POLICY_VIOLATION] = HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION,
    };
    return effect < HF_CAMPAIGN_EFFECT_COUNT ? (enum hf_campaign_category)categories[effect]
                                             : HF_CAMPAIGN_CATEGORY_NONE;
}

void hf_campaign_apply(uint8_t effect, void *opaque)
{
    struct hf_campaign_facts *facts = opaque;
    hf_campaign_conclude(facts, category_of_effect(effect));
    switch (effect) {
    case HF_CAMPAIGN_EFFECT_SEND_EXECUTE:
        facts->action_sent = facts->action_in_flight = true;
        break;
    case HF_CAMPAIGN_EFFECT_APPEND_OBSERVATION:
        facts->action_in_flight = false;
        break;
    case HF_CAMPAIGN_EFFECT_FINALIZE_SESSION:
        facts->finalization_begun = true;
        break;
    case HF_CAMPAIGN_EFFECT_REGISTER_QUARANTINE:
        take_attempt(&facts->register_attempts_left);
        break;
    case HF_CAMPAIGN_EFFECT_WRITE_SUMMARY:
        take_attempt(&facts->summary_attempts_left);
        break;
    case HF_CAMPAIGN_EFFECT_CONCLUDE_CONTROLLER_RESTARTED:
        /* A new process has a new chance with the disk. The row's register_quarantine is the first of them. */
        facts->summary_attempts_left = HF_CAMPAIGN_STORAGE_ATTEMPTS;
        facts->register_attempts_left = HF_CAMPAIGN_STORAGE_ATTEMPTS - 1;
        break;
    case HF_CAMPAIGN_EFFECT_CONCLUDE_ANSWER:
        hf_campaign_conclude(facts, facts->answer_category);
        break;
    case HF_CAMPAIGN_EFFECT_CONCLUDE_FINALIZATION:
        hf_campaign_conclude(facts, facts->finalization_category);
        facts->finalized_clean = facts->finalization_category == HF_CAMPAIGN_CATEGORY_NONE;
        break;
    case HF_CAMPAIGN_EFFECT_CONCLUDE_LOSS:
        conclude_loss(facts);
        break;
    default:
        break;
    }
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What a session may take to end itself after its own deadline: two quarantine requests and the termination. */
static uint64_t session_cleanup_ms(const struct hf_campaign_times *times)
{
    return add_saturating(add_saturating(times->finalize_ms, times->finalize_ms), HF_CAMPAIGN_BACKSTOP_MS);
}

uint64_t hf_campaign_state_timeout_ms(uint8_t state, const struct hf_campaign_times *times)
{
    switch ((enum hf_campaign_state)state) {
    case HF_CAMPAIGN_STATE_CREATED:
        return times->queue_ms;
    case HF_CAMPAIGN_STATE_PREFLIGHT:
        return times->preflight_ms;
    case HF_CAMPAIGN_STATE_INITIALIZING:
        return add_saturating(times->initialize_ms, session_cleanup_ms(times));
    case HF_CAMPAIGN_STATE_SELECTING:
        return add_saturating(times->strategist_ms, HF_CAMPAIGN_BACKSTOP_MS);
    case HF_CAMPAIGN_STATE_EXECUTING:
        return add_saturating(times->action_ms, session_cleanup_ms(times));
    case HF_CAMPAIGN_STATE_DRAINING:
        return add_saturating(greater(times->initialize_ms, times->action_ms), session_cleanup_ms(times));
    case HF_CAMPAIGN_STATE_FINALIZING:
        return add_saturating(times->finalize_ms, session_cleanup_ms(times));
    case HF_CAMPAIGN_STATE_CLOSING:
    case HF_CAMPAIGN_STATE_QUARANTINING:
    case HF_CAMPAIGN_STATE_UNWINDING:
        return add_saturating(HF_CAMPAIGN_BACKSTOP_MS, session_cleanup_ms(times));
    case HF_CAMPAIGN_STATE_MINIMIZING:
        return times->minimization_ms;
    case HF_CAMPAIGN_STATE_JOURNALING:
    case HF_CAMPAIGN_STATE_OBSERVING:
    case HF_CAMPAIGN_STATE_FLUSHING:
    case HF_CAMPAIGN_STATE_PRESERVING:
    case HF_CAMPAIGN_STATE_DETACHED:
    case HF_CAMPAIGN_STATE_SETTLING:
    case HF_CAMPAIGN_STATE_RECOVERING:
    case HF_CAMPAIGN_STATE_SUMMARIZING:
    case HF_CAMPAIGN_STATE_OVERDUE:
        return times->storage_ms;
    case HF_CAMPAIGN_STATE_RETRYING:
        return times->storage_retry_ms;
    case HF_CAMPAIGN_STATE_PASSED:
    case HF_CAMPAIGN_STATE_FAILED:
    case HF_CAMPAIGN_STATE_COUNT:
        break;
    }
    return 0;
}
