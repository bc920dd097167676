/* Guest reports: the good one is taken apart, every damaged one is refused for the right reason. */
#include "executor/scenario/guest_report.h"
#include "tests/unit/scenario/suite.h"

#include "common/cleanup.h"
#include "guest/probes/structured_outcome.h"

#include <stdlib.h>
#include <string.h>

#define CHECKS   "\"checks\":[{\"name\":\"a\",\"held\":true}]"
#define TEARDOWN "\"teardown\":{\"files_removed\":true,\"processes_gone\":true}"
#define GOOD     "{\"schema_version\":1,\"outcome\":\"passed\"," CHECKS "," TEARDOWN "}"

static const struct {
    const char *text, *code, *field;
} rows[] = {
    {"{\"schema_version\":2,\"outcome\":\"passed\"," CHECKS "," TEARDOWN "}", "shape-invalid", "schema_version"},
    {"{\"schema_version\":true,\"outcome\":\"passed\"," CHECKS "," TEARDOWN "}", "shape-invalid", "schema_version"},
    {"{\"schema_version\":1,\"outcome\":\"superb\"," CHECKS "," TEARDOWN "}", "shape-invalid", "outcome"},
    {"{\"schema_version\":1,\"outcome\":\"passed\",\"checks\":[]," TEARDOWN "}", "shape-invalid", "checks"},
    {"{\"schema_version\":1,\"outcome\":\"passed\"," CHECKS "}", "shape-invalid", "teardown"},
    {"{\"schema_version\":1,\"outcome\":\"passed\"," CHECKS ",\"teardown\":{\"files_removed\":true}}", "shape-invalid",
     "teardown.processes_gone"},
    {"{\"schema_version\":1,\"outcome\":\"passed\"," CHECKS
     ",\"teardown\":{\"files_removed\":false,\"processes_gone\":true}}",
     "report-teardown-false", "teardown.files_removed"},
    {"{\"schema_version\":1,\"outcome\":\"passed\"," CHECKS
     ",\"teardown\":{\"files_removed\":true,\"processes_gone\":false}}",
     "report-teardown-false", "teardown.processes_gone"},
    {"{\"schema_version\":1,\"outcome\":\"passed\",\"checks\":[{\"name\":\"a\",\"held\":false}]," TEARDOWN "}",
     "report-contradicts-itself", "outcome"},
    {"{\"schema_version\":1,\"outcome\":\"test-failure\"," CHECKS "," TEARDOWN "}", "report-contradicts-itself",
     "outcome"},
    {"{\"schema_version\":1,\"outcome\":\"passed\",\"checks\":[{\"name\":\"NOT AN ID\",\"held\":true}]," TEARDOWN "}",
     "shape-invalid", "checks[0].name"},
    {GOOD GOOD, "json-invalid", NULL},
    {"", "json-invalid", NULL},
    {"{\"schema_version\":1,\"schema_version\":1,\"outcome\":\"passed\"," CHECKS "," TEARDOWN "}", "json-invalid",
     NULL},
};

START_TEST(a_good_report_is_accepted)
{
    cleanup_json cJSON *report = hf_guest_report_parse(GOOD, strlen(GOOD), NULL);
    ck_assert_ptr_nonnull(report);
    ck_assert_str_eq(hf_json_get_string(report, "outcome"), "passed");
}
END_TEST

START_TEST(a_damaged_report_is_refused_for_its_reason)
{
    struct hf_error err = {0};
    ck_assert_ptr_null(hf_guest_report_parse(rows[_i].text, strlen(rows[_i].text), &err));
    ck_assert_str_eq(err.code, rows[_i].code);
    if (rows[_i].field)
        ck_assert_str_eq(err.field, rows[_i].field);
}
END_TEST

START_TEST(a_report_cut_anywhere_is_refused)
{
    for (size_t length = 0; length < strlen(GOOD); length++)
        ck_assert_ptr_null(hf_guest_report_parse(GOOD, length, NULL));
}
END_TEST

START_TEST(the_longest_report_is_taken_and_one_byte_more_is_not)
{
    struct hf_error err = {0};
    cleanup_free char *text = malloc(HF_OUTCOME_REPORT_MAX + 1);
    memset(text, ' ', HF_OUTCOME_REPORT_MAX + 1);
    memcpy(text, GOOD, strlen(GOOD));
    cleanup_json cJSON *report = hf_guest_report_parse(text, HF_OUTCOME_REPORT_MAX, NULL);
    ck_assert_ptr_nonnull(report);
    ck_assert_ptr_null(hf_guest_report_parse(text, HF_OUTCOME_REPORT_MAX + 1, &err));
    ck_assert_str_eq(err.code, "report-too-long");
}
END_TEST

TCase *report_case(void)
{
    TCase *tcase = tcase_create("guest_report");
    tcase_add_test(tcase, a_good_report_is_accepted);
    tcase_add_loop_test(tcase, a_damaged_report_is_refused_for_its_reason, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(tcase, a_report_cut_anywhere_is_refused);
    tcase_add_test(tcase, the_longest_report_is_taken_and_one_byte_more_is_not);
    return tcase;
}
