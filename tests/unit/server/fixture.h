/* A small campaign with known numbers, for the tests of broker, prompts and strategists. */
#ifndef HF_TESTS_UNIT_SERVER_FIXTURE_H
#define HF_TESTS_UNIT_SERVER_FIXTURE_H

#include "server/core/choice.h"

#include <check.h>

enum { FIXTURE_CASES = 4 };

struct fixture {
    struct hf_case cases[FIXTURE_CASES]; /* alpha, beta, gamma, delta */
    struct hf_campaign campaign;
    bool completed[FIXTURE_CASES];
    struct hf_observation observations[32];
    struct hf_choice choice;
};

void fixture_init(struct fixture *fixture);
/* Adds a passed observation of a case and marks it completed. */
void fixture_observe(struct fixture *fixture, size_t case_index, int64_t duration_ms);

/* Runs one test case in this process; returns the exit status of a test program. */
int run_tests(const char *name, void (*add)(TCase *tests));

#endif
