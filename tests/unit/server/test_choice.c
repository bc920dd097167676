/* Greedy and random strategists, and the generator under them. */
#include "server/core/choice.h"
#include "server/core/prng.h"
#include "tests/unit/server/fixture.h"

#include <string.h>

static struct fixture fixture;

static void set_up(void)
{
    fixture_init(&fixture);
}

START_TEST(splitmix64_gives_the_published_numbers)
{
    struct hf_prng prng;
    hf_prng_init(&prng, 1234567);
    static const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                        4593380528125082431u, 16408922859458223821u};
    for (size_t i = 0; i < 5; i++)
        ck_assert_uint_eq(hf_prng_next(&prng), expected[i]);
}
END_TEST

START_TEST(a_shuffle_is_a_permutation_and_reaches_every_one)
{
    bool seen[6] = {false};
    for (uint64_t seed = 0; seed < 200; seed++) {
        size_t indices[3] = {0, 1, 2};
        struct hf_prng prng;
        hf_prng_init(&prng, seed);
        hf_prng_shuffle(&prng, indices, 3);
        ck_assert_uint_eq(1u << indices[0] | 1u << indices[1] | 1u << indices[2], 7);
        seen[indices[0] * 2 + (indices[1] > indices[2])] = true;
    }
    for (int i = 0; i < 6; i++)
        ck_assert(seen[i]);
}
END_TEST

START_TEST(only_cases_that_were_not_run_are_candidates)
{
    size_t indices[HF_CATALOG_MAX_CASES];
    ck_assert_uint_eq(hf_choice_candidates(&fixture.choice, indices), 4);
    fixture_observe(&fixture, 2, 100);
    ck_assert_uint_eq(hf_choice_candidates(&fixture.choice, indices), 3);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_ne(indices[i], 2);
}
END_TEST

START_TEST(an_estimate_uses_what_is_known_best)
{
    ck_assert_uint_eq(hf_choice_expected_ms(&fixture.choice, 0), 2 * 60000);
    fixture_observe(&fixture, 1, 500); /* beta: 1 unit took 500 ms */
    ck_assert_uint_eq(hf_choice_expected_ms(&fixture.choice, 0), 1000);
    ck_assert_uint_eq(hf_choice_expected_ms(&fixture.choice, 2), 4000);
    fixture_observe(&fixture, 0, 3000); /* alpha: one repetition of scenario one took 3 s */
    ck_assert_uint_eq(hf_choice_expected_ms(&fixture.choice, 2), 12000);
    ck_assert_uint_eq(hf_choice_expected_ms(&fixture.choice, 3), 3500 * 8 / 3);
}
END_TEST

START_TEST(an_estimate_is_never_zero)
{
    fixture_observe(&fixture, 1, 0);
    ck_assert_uint_eq(hf_choice_expected_ms(&fixture.choice, 0), 1);
}
END_TEST

START_TEST(greedy_takes_the_most_uncovered_coverage_per_second)
{
    /* per unit: alpha 2/2, beta 1/1, gamma 3/8, delta 1/8 */
    size_t first = hf_choice_greedy(&fixture.choice);
    ck_assert(first == 0 || first == 1);
    fixture_observe(&fixture, 0, 2000);
    ck_assert_uint_eq(hf_choice_uncovered(&fixture.choice, 3), 0); /* a1 is covered */
    ck_assert_uint_eq(hf_choice_greedy(&fixture.choice), 1);
    fixture_observe(&fixture, 1, 1000);
    ck_assert_uint_eq(hf_choice_uncovered(&fixture.choice, 2), 2);
    ck_assert_uint_eq(hf_choice_greedy(&fixture.choice), 2);
    fixture_observe(&fixture, 2, 8000);
    ck_assert_uint_eq(hf_choice_greedy(&fixture.choice), 3); /* nothing new, but still to be run */
}
END_TEST

START_TEST(ties_are_decided_by_the_seed)
{
    bool seen[2] = {false};
    for (fixture.choice.seed = 0; fixture.choice.seed < 64; fixture.choice.seed++) {
        size_t first = hf_choice_greedy(&fixture.choice);
        ck_assert_uint_le(first, 1);
        ck_assert_uint_eq(hf_choice_greedy(&fixture.choice), first);
        seen[first] = true;
    }
    ck_assert(seen[0] && seen[1]);
}
END_TEST

START_TEST(random_takes_every_candidate_equally_often)
{
    int taken[FIXTURE_CASES] = {0};
    fixture.completed[1] = true;
    for (fixture.choice.seed = 0; fixture.choice.seed < 3000; fixture.choice.seed++) {
        size_t one = hf_choice_random(&fixture.choice);
        ck_assert_uint_eq(hf_choice_random(&fixture.choice), one);
        taken[one]++;
    }
    ck_assert_int_eq(taken[1], 0);
    for (int i = 0; i < FIXTURE_CASES; i++)
        ck_assert(i == 1 || (taken[i] > 900 && taken[i] < 1100));
}
END_TEST

START_TEST(the_largest_seed_is_a_seed)
{
    fixture.choice.seed = INT64_MAX;
    fixture_observe(&fixture, 0, 1);
    ck_assert_uint_ne(hf_choice_random(&fixture.choice), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, splitmix64_gives_the_published_numbers);
    tcase_add_test(tests, a_shuffle_is_a_permutation_and_reaches_every_one);
    tcase_add_test(tests, only_cases_that_were_not_run_are_candidates);
    tcase_add_test(tests, an_estimate_uses_what_is_known_best);
    tcase_add_test(tests, an_estimate_is_never_zero);
    tcase_add_test(tests, greedy_takes_the_most_uncovered_coverage_per_second);
    tcase_add_test(tests, ties_are_decided_by_the_seed);
    tcase_add_test(tests, random_takes_every_candidate_equally_often);
    tcase_add_test(tests, the_largest_seed_is_a_seed);
}

int main(void)
{
    return run_tests("choice", add);
}
