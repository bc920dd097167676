/* The parts of test_scenario_units; each file adds its cases to one suite. */
#ifndef HF_TESTS_UNIT_SCENARIO_SUITE_H
#define HF_TESTS_UNIT_SCENARIO_SUITE_H

#include <check.h>

TCase *lines_case(void);
TCase *qmp_case(void);
TCase *control_case(void);
TCase *classify_case(void);
TCase *args_case(void);
TCase *report_case(void);
TCase *frames_case(void);
TCase *process_case(void);
TCase *capture_case(void);

#endif
