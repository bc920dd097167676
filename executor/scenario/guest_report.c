/* Judging a guest's report; see guest_report.h. */
#include "executor/scenario/guest_report.h"

#include "common/cleanup.h"
#include "common/json_shape.h"
#include "guest/probes/structured_outcome.h"

#include <stdio.h>
#include <string.h>

#define CHECKS_MAX 64

static const char *const outcomes[] = {"passed", "test-failure", NULL};

static const struct hf_shape_field check_fields[] = {
    {.name = "name", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_IDENTIFIER},
    {.name = "held", .type = HF_SHAPE_BOOL},
};
static const struct hf_shape check_shape = {"check of a guest report", check_fields,
                                            sizeof check_fields / sizeof check_fields[0]};
static const struct hf_shape_field check_element = {.type = HF_SHAPE_OBJECT, .object = &check_shape};

static const struct hf_shape_field teardown_fields[] = {
    {.name = "files_removed", .type = HF_SHAPE_BOOL},
    {.name = "processes_gone", .type = HF_SHAPE_BOOL},
};
static const struct hf_shape teardown_shape = {"teardown of a guest report", teardown_fields,
                                               sizeof teardown_fields / sizeof teardown_fields[0]};

static const struct hf_shape_field report_fields[] = {
    {.name = "schema_version", .type = HF_SHAPE_INT, .min = 1, .max = 1},
    {.name = "outcome", .type = HF_SHAPE_STRING, .min = 1, .max = 32, .one_of = outcomes},
    {.name = "checks", .type = HF_SHAPE_ARRAY, .min = 1, .max = CHECKS_MAX, .element = &check_element},
    {.name = "teardown", .type = HF_SHAPE_OBJECT, .object = &teardown_shape},
};
static const struct hf_shape report_shape = {"guest report", report_fields,
                                             sizeof report_fields / sizeof report_fields[0]};

static int judge_teardown(const cJSON *teardown, struct hf_error *err)
{
    for (size_t i = 0; i < teardown_shape.field_count; i++) {
        const char *name = teardown_fields[i].name;
        char field[64];
        snprintf(field, sizeof field, "teardown.%s", name);
        if (!hf_json_get_bool_or(teardown, name, false))
            return hf_error_set(err, "report-teardown-false", 0, field, "expected %s to be true, it is false", field);
    }
    return 0;
}

static int judge_outcome(const cJSON *report, struct hf_error *err)
{
    bool all_held = true;
    const cJSON *check = NULL;
    cJSON_ArrayForEach(check, hf_json_get(report, "checks")) all_held &= hf_json_get_bool_or(check, "held", false);
    bool passed = strcmp(hf_json_get_string(report, "outcome"), "passed") == 0;
    if (passed != all_held)
        return hf_error_set(err, "report-contradicts-itself", 0, "outcome",
                            "expected outcome passed exactly when every check held, got %s with %s",
                            passed ? "passed" : "test-failure", all_held ? "every check held" : "a check that did not");
    return 0;
}

cJSON *hf_guest_report_parse(const char *text, size_t length, struct hf_error *err)
{
    static const struct hf_json_limits limits = {.max_bytes = HF_OUTCOME_REPORT_MAX, .max_depth = 4};
    if (length > HF_OUTCOME_REPORT_MAX) {
        hf_error_set(err, "report-too-long", 0, "", "expected a report of at most %d bytes, got %zu",
                     HF_OUTCOME_REPORT_MAX, length);
        return NULL;
    }
    cleanup_json cJSON *report = hf_json_parse(text, length, &limits, err);
    if (!report || hf_shape_check(&report_shape, NULL, report, err) ||
        judge_teardown(hf_json_get(report, "teardown"), err) || judge_outcome(report, err))
        return NULL;
    return STEAL_PTR(report);
}
