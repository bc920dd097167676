/*
 * Times of a campaign (common/protocol/protocol.h, HF_TIME_*): what a request needs at least, how long each protocol
 * step may take, and how much of the wall-clock budget is useful. Pure arithmetic; the caller reads the clock.
 *
 * The finalization reserve is never given to an action. A finalization always gets its whole time: the reserve holds
 * it, and an executor must be finalized even when an answer took its protocol grace out of the reserve.
 */
#ifndef HF_SERVER_CORE_BUDGET_H
#define HF_SERVER_CORE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct hf_budget {
    int64_t budget_seconds;
    int64_t phase_timeout_seconds;
    int64_t action_timeout_seconds;
};

/* min(action_timeout, 2 x phase_timeout): what one baseline or post-campaign boot may take, 1..7200. */
int64_t hf_budget_boot_seconds(const struct hf_budget *budget);
/* hf_budget_boot_seconds() + protocol grace: kept back for finalization. */
int64_t hf_budget_reserve_seconds(const struct hf_budget *budget);
/* The smallest budget that holds initialize and finalize. */
int64_t hf_budget_needed_seconds(const struct hf_budget *budget);

/* Whole seconds left, never negative. */
int64_t hf_budget_remaining_seconds(const struct hf_budget *budget, uint64_t elapsed_ms);

/* With less than this left no action is started: the reserve and one VM phase. An action that cannot get even one phase
 * would only report its own lack of time as a finding. */
int64_t hf_budget_stop_seconds(const struct hf_budget *budget);

/* Timeout of the next execute request: min(action_timeout, remaining - reserve), 1..7200. */
int64_t hf_budget_execute_seconds(const struct hf_budget *budget, uint64_t elapsed_ms);

/* How long a strategist may think: its own limit, or what would still leave a useful action; 0 when nothing is left. */
uint64_t hf_budget_strategist_ms(const struct hf_budget *budget, uint64_t elapsed_ms, uint64_t limit_ms);

#endif
