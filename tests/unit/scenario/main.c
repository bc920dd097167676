/* Unit tests of the scenario runner: everything that needs no VM. */
#include "tests/unit/scenario/suite.h"

int main(void)
{
    Suite *suite = suite_create("scenario");
    suite_add_tcase(suite, lines_case());
    suite_add_tcase(suite, qmp_case());
    suite_add_tcase(suite, control_case());
    suite_add_tcase(suite, classify_case());
    suite_add_tcase(suite, args_case());
    suite_add_tcase(suite, report_case());
    suite_add_tcase(suite, frames_case());
    suite_add_tcase(suite, process_case());
    suite_add_tcase(suite, capture_case());
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
