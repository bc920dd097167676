/* The end of a test program's main(): runs one suite in this very process, so that the sanitizers see everything. */
#ifndef HF_TESTS_RUN_SUITE_H
#define HF_TESTS_RUN_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Frees the suite; returns the exit status. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
