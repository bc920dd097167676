/*
 * What a strategist chooses from, and the two built-in strategists as pure functions of it. The broker offers exactly
 * the candidates listed here; every strategist, built in or not, returns one of them (I9).
 *
 * Called by the run's strategist call. No I/O, no clock.
 */
#ifndef HF_SERVER_CORE_CHOICE_H
#define HF_SERVER_CORE_CHOICE_H

#include "server/core/observation.h"

struct hf_choice {
    const struct hf_campaign *campaign;
    const bool *completed; /* by case index: observed, never offered again */
    const struct hf_observation *observations;
    size_t observation_count;
    int64_t seed;
    int64_t phase_timeout_seconds;
    int64_t remaining_seconds; /* of the wall-clock budget, >= 0 */
    int64_t remaining_actions;
    int64_t remaining_ai_credits;
};

/* Indices of the cases that may be chosen, shuffled by seed + results so far. Returns the count; `indices` holds
 * HF_CATALOG_MAX_CASES. */
size_t hf_choice_candidates(const struct hf_choice *choice, size_t *indices);

/* Expected duration of a case in milliseconds: what the same scenario took per repetition when it was observed; else
 * the mean of what a unit (repetition x timeout multiplier) took; else the phase timeout per unit. Never 0. */
uint64_t hf_choice_expected_ms(const struct hf_choice *choice, size_t case_index);

/* Coverage tags of a case that no completed case has. */
size_t hf_choice_uncovered(const struct hf_choice *choice, size_t case_index);

/* Greedy: most uncovered coverage per expected second, ties by the seeded order. At least one candidate must be left.
 */
size_t hf_choice_greedy(const struct hf_choice *choice);
/* Random: uniform by seed and number of results. */
size_t hf_choice_random(const struct hf_choice *choice);

#endif
