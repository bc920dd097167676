/* Implementation of budget.h. */
#include "server/core/budget.h"

#include "common/protocol/protocol.h"

enum { MAX_TIMEOUT_SECONDS = 7200 };

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t hf_budget_boot_seconds(const struct hf_budget *budget)
{
    return min_of(min_of(budget->action_timeout_seconds, 2 * budget->phase_timeout_seconds), MAX_TIMEOUT_SECONDS);
}

int64_t hf_budget_reserve_seconds(const struct hf_budget *budget)
{
    return hf_budget_boot_seconds(budget) + HF_TIME_PROTOCOL_GRACE;
}

int64_t hf_budget_needed_seconds(const struct hf_budget *budget)
{
    return hf_budget_boot_seconds(budget) + HF_TIME_INITIALIZE_OVERHEAD + hf_budget_reserve_seconds(budget);
}

int64_t hf_budget_remaining_seconds(const struct hf_budget *budget, uint64_t elapsed_ms)
{
    int64_t remaining_ms = budget->budget_seconds * 1000 - (int64_t)elapsed_ms;
    return remaining_ms > 0 ? remaining_ms / 1000 : 0;
}

int64_t hf_budget_stop_seconds(const struct hf_budget *budget)
{
    return hf_budget_reserve_seconds(budget) + min_of(budget->phase_timeout_seconds, budget->action_timeout_seconds);
}

int64_t hf_budget_execute_seconds(const struct hf_budget *budget, uint64_t elapsed_ms)
{
    int64_t left = hf_budget_remaining_seconds(budget, elapsed_ms) - hf_budget_reserve_seconds(budget);
    int64_t timeout = min_of(min_of(budget->action_timeout_seconds, left), MAX_TIMEOUT_SECONDS);
    return timeout > 0 ? timeout : 1;
}

uint64_t hf_budget_strategist_ms(const struct hf_budget *budget, uint64_t elapsed_ms, uint64_t limit_ms)
{
    int64_t left_ms = (budget->budget_seconds - hf_budget_stop_seconds(budget)) * 1000 - (int64_t)elapsed_ms;
    if (left_ms <= 0)
        return 0;
    return (uint64_t)left_ms < limit_ms ? (uint64_t)left_ms : limit_ms;
}
