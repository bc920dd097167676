/* Implementation of choice.h. */
#include "server/core/choice.h"

#include "server/core/prng.h"

#include <string.h>

size_t hf_choice_candidates(const struct hf_choice *choice, size_t *indices)
{
    size_t count = 0;
    for (size_t i = 0; i < choice->campaign->case_count; i++)
        if (!choice->completed[i])
            indices[count++] = i;
    struct hf_prng prng;
    hf_prng_init(&prng, (uint64_t)choice->seed + choice->observation_count);
    hf_prng_shuffle(&prng, indices, count);
    return count;
}

static uint64_t case_units(const struct hf_case *of_case)
{
    return (uint64_t)of_case->repetitions * (uint64_t)of_case->timeout_multiplier;
}

uint64_t hf_choice_expected_ms(const struct hf_choice *choice, size_t case_index)
{
    const struct hf_case *wanted = &choice->campaign->cases[case_index];
    uint64_t same_ms = 0, same_repetitions = 0, all_ms = 0, all_units = 0;
    for (size_t i = 0; i < choice->observation_count; i++) {
        const struct hf_observation *seen = &choice->observations[i];
        const struct hf_case *of_case = &choice->campaign->cases[seen->case_index];
        all_ms += (uint64_t)seen->duration_ms;
        all_units += case_units(of_case);
        if (strcmp(of_case->scenario, wanted->scenario) != 0)
            continue;
        same_ms += (uint64_t)seen->duration_ms;
        same_repetitions += (uint64_t)of_case->repetitions;
    }
    uint64_t expected_ms;
    if (same_repetitions)
        expected_ms = same_ms * (uint64_t)wanted->repetitions / same_repetitions;
    else if (all_units)
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): all_units was just found not to be 0. */
        expected_ms = all_ms * case_units(wanted) / all_units;
    else
        expected_ms = case_units(wanted) * (uint64_t)choice->phase_timeout_seconds * 1000;
    return expected_ms ? expected_ms : 1;
}

static bool tag_covered(const struct hf_choice *choice, const char *tag)
{
    for (size_t i = 0; i < choice->campaign->case_count; i++) {
        const struct hf_case *of_case = &choice->campaign->cases[i];
        for (size_t j = 0; choice->completed[i] && j < of_case->coverage_count; j++)
            if (strcmp(of_case->coverage[j], tag) == 0)
                return true;
    }
    return false;
}

size_t hf_choice_uncovered(const struct hf_choice *choice, size_t case_index)
{
    const struct hf_case *of_case = &choice->campaign->cases[case_index];
    size_t uncovered = 0;
    for (size_t i = 0; i < of_case->coverage_count; i++)
        uncovered += !tag_covered(choice, of_case->coverage[i]);
    return uncovered;
}

size_t hf_choice_greedy(const struct hf_choice *choice)
{
    size_t indices[HF_CATALOG_MAX_CASES];
    size_t count = hf_choice_candidates(choice, indices);
    size_t best = indices[0];
    uint64_t best_uncovered = hf_choice_uncovered(choice, best);
    uint64_t best_ms = hf_choice_expected_ms(choice, best);
    for (size_t i = 1; i < count; i++) {
        uint64_t uncovered = hf_choice_uncovered(choice, indices[i]);
        uint64_t expected_ms = hf_choice_expected_ms(choice, indices[i]);
        /* uncovered / expected_ms > best_uncovered / best_ms, without division: at most 16 tags times a day's ms. */
        if (uncovered * best_ms > best_uncovered * expected_ms) {
            best = indices[i];
            best_uncovered = uncovered;
            best_ms = expected_ms;
        }
    }
    return best;
}

size_t hf_choice_random(const struct hf_choice *choice)
{
    /* The shuffle is uniform, so its first is; drawing again from the same seed would favour some. */
    size_t indices[HF_CATALOG_MAX_CASES];
    hf_choice_candidates(choice, indices);
    return indices[0];
}
