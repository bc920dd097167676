/* Implementation of fixture.h. */
#include "tests/unit/server/fixture.h"
#include "tests/run_suite.h"

#include <stdio.h>
#include <string.h>

static void set_case(struct hf_case *of_case, const char *id, const char *scenario, int repetitions, int multiplier,
                     const char *const *coverage)
{
    *of_case = (struct hf_case){.repetitions = repetitions, .timeout_multiplier = multiplier};
    snprintf(of_case->id, sizeof of_case->id, "%s", id);
    snprintf(of_case->scenario, sizeof of_case->scenario, "%s", scenario);
    snprintf(of_case->description, sizeof of_case->description, "What %s attacks.", id);
    for (; coverage[of_case->coverage_count]; of_case->coverage_count++)
        snprintf(of_case->coverage[of_case->coverage_count], HF_IDENTIFIER_SIZE, "%s",
                 coverage[of_case->coverage_count]);
}

void fixture_init(struct fixture *fixture)
{
    static const char *const alpha[] = {"a1", "a2", NULL}, *const beta[] = {"b1", NULL},
                             *const gamma[] = {"b1", "g1", "g2", NULL}, *const delta[] = {"a1", NULL};
    memset(fixture, 0, sizeof *fixture);
    set_case(&fixture->cases[0], "alpha", "one", 1, 2, alpha);
    set_case(&fixture->cases[1], "beta", "two", 1, 1, beta);
    set_case(&fixture->cases[2], "gamma", "one", 4, 2, gamma);
    set_case(&fixture->cases[3], "delta", "three", 2, 4, delta);
    fixture->campaign = (struct hf_campaign){.name = "fixture", .cases = fixture->cases, .case_count = FIXTURE_CASES};
    fixture->choice = (struct hf_choice){
        .campaign = &fixture->campaign,
        .completed = fixture->completed,
        .observations = fixture->observations,
        .seed = 7,
        .phase_timeout_seconds = 60,
        .remaining_seconds = 500,
        .remaining_actions = 8,
        .remaining_ai_credits = 300,
    };
}

void fixture_observe(struct fixture *fixture, size_t case_index, int64_t duration_ms)
{
    fixture->completed[case_index] = true;
    fixture->observations[fixture->choice.observation_count] = (struct hf_observation){
        .sequence = (int)fixture->choice.observation_count + 1,
        .case_index = case_index,
        .has_returncode = true,
        .duration_ms = duration_ms,
        .host_canary_intact = true,
        .teardown_complete = true,
    };
    fixture->choice.observation_count++;
}

int run_tests(const char *name, void (*add)(TCase *tests))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create(name);
    add(tests);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
