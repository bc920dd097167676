/*
 * Checks on a machine's table, each a promise of docs/architecture. A check returns true, or false with a sentence in
 * finding->text that names machine, state and event, so that a broken row is found from the message alone. The tests
 * run the checks on the real tables and, to prove that they can fail, on tables with one row broken.
 */
#ifndef HF_TESTS_STATEMACHINES_WALKER_H
#define HF_TESTS_STATEMACHINES_WALKER_H

#include "statemachines/engine.h"

struct walker_finding {
    char text[256];
};

typedef bool (*walker_check)(const struct hf_sm_definition *machine, struct walker_finding *finding);

/* Every name is a unique lower-case identifier, every number is in range, effect lists have no holes. */
bool walker_shape(const struct hf_sm_definition *machine, struct walker_finding *finding);
/* Every state can be reached from the initial one. */
bool walker_all_states_reachable(const struct hf_sm_definition *machine, struct walker_finding *finding);
/* Terminal states have no rows, the others have, and from each of them a terminal state can be reached. */
bool walker_everything_ends(const struct hf_sm_definition *machine, struct walker_finding *finding);
/* Every non-terminal state leaves on a timeout. */
bool walker_leaves_on_timeout(const struct hf_sm_definition *machine, struct walker_finding *finding);
/* Every non-terminal state that has a peer leaves when the peer is lost. */
bool walker_leaves_on_loss(const struct hf_sm_definition *machine, struct walker_finding *finding);
/* Every non-terminal state leaves on cancel, or is a closing state and accepts it. */
bool walker_leaves_on_cancel(const struct hf_sm_definition *machine, struct walker_finding *finding);
/* Rows of one (state, event) are exclusive and complete: one unconditional row, or all guards of one group, once each.
 */
bool walker_rows_partition(const struct hf_sm_definition *machine, struct walker_finding *finding);
/* Every event, effect and guard is used by some row. */
bool walker_nothing_unused(const struct hf_sm_definition *machine, struct walker_finding *finding);

/* The checks above, all of them. */
const walker_check *walker_all(size_t *count);

/* Effects by bit; events and states as in engine.h. */
#define EFFECT_BIT(effect) (UINT64_C(1) << (effect))

/* The states that can be reached from any of `from`, those included. */
uint32_t walker_reachable_from(const struct hf_sm_definition *machine, uint32_t from);
/* No row of a state reachable from `from` has one of `effects`. */
bool walker_effects_unreachable(const struct hf_sm_definition *machine, uint32_t from, uint64_t effects,
                                struct walker_finding *finding);
/* Every row with one of `effects` is a row of one of `events`. */
bool walker_effects_only_on(const struct hf_sm_definition *machine, uint64_t effects, uint64_t events,
                            struct walker_finding *finding);
/* Every row with one of `effects` carries one of the guards (a bit per guard). */
bool walker_effects_only_under(const struct hf_sm_definition *machine, uint64_t effects, uint64_t guards,
                               struct walker_finding *finding);
/* A row that enters another, non-terminal state has `timer` among its effects, unless both states are in `sharing`,
 * whose states are entered with the timer running. */
bool walker_arms_timer(const struct hf_sm_definition *machine, uint8_t timer, uint32_t sharing,
                       struct walker_finding *finding);

/* Exactly one guard of each group holds for these facts. */
bool walker_guards_partition(const struct hf_sm_definition *machine, const void *facts, struct walker_finding *finding);
/* From any state, left alone with nothing but its timers, the machine ends within `limit` steps. Works on a copy of the
 * facts. */
bool walker_timers_alone_end_it(const struct hf_sm_definition *machine, const void *facts, unsigned limit,
                                struct walker_finding *finding);

bool walker_row_has(const struct hf_sm_row *row, uint64_t effects);

#endif
