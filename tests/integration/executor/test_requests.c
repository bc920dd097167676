/*
 * Bad requests to a real executor: every field of every operation left out, doubled, mistyped or renamed, messages that
 * are no message, and requests in the wrong order. An execute that is wrong leaves the session usable; everything else
 * is answered with an error and ends the executor with status 1.
 */
#include "common/cleanup.h"
#include "tests/integration/executor/target.h"
#include "tests/run_suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct target target;
static struct hf_response response;

static void setup(void)
{
    memset(&response, 0, sizeof response);
    target_create(&target);
}

static void teardown(void)
{
    hf_response_clear(&response);
    target_destroy(&target);
}

enum spoil { LEFT_OUT, DOUBLED, MISTYPED, EXTENDED, SPOIL_COUNT };

static cJSON *document_of(const struct hf_request *request)
{
    cleanup_free char *line = hf_request_build(request, &target.profile.dialect, NULL);
    const struct hf_json_limits limits = {.max_bytes = HF_PROTOCOL_MAX_LINE, .max_depth = 4};
    return hf_json_parse(line, strlen(line), &limits, NULL);
}

static int member_count(const struct hf_request *request)
{
    cleanup_json cJSON *document = document_of(request);
    return cJSON_GetArraySize(document);
}

/* Text of a well-formed request with one member spoiled. Owned. */
static char *spoil(const struct hf_request *request, int index, enum spoil how)
{
    cleanup_json cJSON *document = document_of(request);
    const cJSON *member = cJSON_GetArrayItem(document, index);
    cleanup_free char *value = hf_json_canonical(member, NULL);
    cleanup_free char *name = strdup(member->string);
    if (how == LEFT_OUT || how == MISTYPED)
        cJSON_DeleteItemFromObjectCaseSensitive(document, name);
    cleanup_free char *rest = hf_json_canonical(document, NULL);
    const char *wrong = value[0] == '"' || value[0] == 't' || value[0] == 'f' ? "1" : "true";
    char *text = NULL;
    int length = 0;
    if (how == LEFT_OUT)
        text = strdup(rest);
    else
        length = asprintf(&text, "{\"%s%s\":%s,%s", name, how == EXTENDED ? "_" : "", how == MISTYPED ? wrong : value,
                          rest + 1);
    ck_assert(length >= 0 && text);
    return text;
}

static void expect_shape_refusal(const char *line)
{
    target_send_line(&target, line);
    cleanup_free char *answer = target_read_line(&target, 30000);
    ck_assert_msg(answer != NULL, "no answer to %s", line);
    const struct hf_json_limits limits = {.max_bytes = HF_PROTOCOL_MAX_LINE, .max_depth = 4};
    cleanup_json cJSON *document = hf_json_parse(answer, strlen(answer), &limits, NULL);
    ck_assert_msg(document && strcmp(hf_json_get_string(document, "operation"), "error") == 0, "%s was answered by %s",
                  line, answer);
    const char *type = hf_json_get_string(document, "error_type");
    ck_assert_msg(strcmp(type, "json-invalid") == 0 || strcmp(type, "shape-invalid") == 0 ||
                      strcmp(type, "protocol-version") == 0,
                  "%s: %s", line, type);
}

START_TEST(every_spoiled_initialize_is_refused_and_ends_the_executor)
{
    target_start(&target);
    int count = member_count(&target.initialize);
    for (int index = 0; index < count; index++)
        for (enum spoil how = LEFT_OUT; how < SPOIL_COUNT; how++) {
            if (target.pid == 0)
                target_start(&target);
            cleanup_free char *line = spoil(&target.initialize, index, how);
            expect_shape_refusal(line);
            ck_assert_int_eq(target_wait(&target, 10000), 1);
            ck_assert(!target_has_file(&target, "."));
        }
}
END_TEST

START_TEST(every_spoiled_execute_is_refused_and_the_session_stays)
{
    target_start(&target);
    target_initialize(&target, &response);
    hf_response_clear(&response);
    struct hf_request request = target_request(&target, HF_OP_EXECUTE);
    request.sequence = 1;
    strcpy(request.case_id, "passes");
    int count = member_count(&request);
    for (int index = 0; index < count; index++)
        for (enum spoil how = LEFT_OUT; how < SPOIL_COUNT; how++) {
            cleanup_free char *line = spoil(&request, index, how);
            /* Without a readable operation, or with doubled keys, nothing says that this was an execute. */
            if (strstr(line, "\"operation\":\"execute\"") && how != DOUBLED)
                expect_shape_refusal(line);
        }
    target_execute(&target, 1, "passes", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_PASSED);
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(every_spoiled_finalize_is_refused_and_ends_the_executor)
{
    struct hf_request request = {.operation = HF_OP_FINALIZE, .run_id = "r", .timeout_seconds = 10};
    int count = member_count(&request);
    for (int index = 0; index < count; index++)
        for (enum spoil how = LEFT_OUT; how < SPOIL_COUNT; how++) {
            target_start(&target);
            target_initialize(&target, &response);
            hf_response_clear(&response);
            memcpy(request.run_id, target.initialize.run_id, sizeof request.run_id);
            cleanup_free char *line = spoil(&request, index, how);
            expect_shape_refusal(line);
            ck_assert_int_eq(target_wait(&target, 10000), 1);
            target_expect_no_process(&target, 2000);
            ck_assert(!target_has_file(&target, "post-campaign"));
        }
}
END_TEST

static const char *const NO_REQUESTS[] = {
    "",
    "null",
    "[]",
    "{}",
    "not json",
    "{\"operation\":\"shutdown\"}",
    "{\"operation\":\"reboot\",\"schema_version\":1}",
    "{\"operation\":\"error\",\"schema_version\":1}",
    "{\"operation\":\"shutdown\",\"schema_version\":2}",
    "{\"operation\":\"shutdown\",\"schema_version\":true}",
    "{\"operation\":\"shutdown\",\"schema_version\":1.0}",
    "{\"operation\":\"shutdown\",\"schema_version\":1} {}",
    "{\"operation\":\"shutdown\",\"schema_version\":1,\"extra\":NaN}",
    "{\"operation\":\"shut\\u0000down\",\"schema_version\":1}",
    "{\"operation\":\"shutdown\xff\",\"schema_version\":1}",
    "{\"operation\":{\"operation\":\"shutdown\"},\"schema_version\":1}",
};

START_TEST(what_is_no_request_is_refused_and_ends_the_executor)
{
    target_start(&target);
    expect_shape_refusal(NO_REQUESTS[_i]);
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

START_TEST(an_oversized_request_is_refused_without_being_read_to_its_end)
{
    target_start(&target);
    cleanup_free char *flood = malloc(HF_PROTOCOL_MAX_LINE + 1);
    memset(flood, ' ', HF_PROTOCOL_MAX_LINE + 1);
    target_send(&target, flood, HF_PROTOCOL_MAX_LINE + 1);
    target_expect_error(&target, "request-too-large");
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

START_TEST(a_request_of_the_greatest_size_is_heard)
{
    target_start(&target);
    static const char shutdown[] = "{\"operation\":\"shutdown\",\"schema_version\":1}";
    cleanup_free char *line = malloc(HF_PROTOCOL_MAX_LINE + 1);
    memset(line, ' ', HF_PROTOCOL_MAX_LINE);
    memcpy(line, shutdown, sizeof shutdown - 1);
    line[HF_PROTOCOL_MAX_LINE] = '\n';
    target_send(&target, line, HF_PROTOCOL_MAX_LINE + 1);
    cleanup_free char *answer = target_read_line(&target, 10000);
    ck_assert(answer && strstr(answer, "\"stopped\""));
    ck_assert_int_eq(target_wait(&target, 10000), 0);
}
END_TEST

START_TEST(requests_before_initialize_are_refused)
{
    target_start(&target);
    struct hf_request request = target_request(&target, HF_OP_EXECUTE);
    request.sequence = 1;
    strcpy(request.case_id, "passes");
    target_ask(&target, &request, &response);
    ck_assert_str_eq(response.error.error_type, "protocol-order");
    hf_response_clear(&response);
    request.operation = HF_OP_FINALIZE;
    target_ask(&target, &request, &response);
    ck_assert_str_eq(response.error.error_type, "protocol-order");
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

START_TEST(a_second_initialize_is_refused)
{
    target_start(&target);
    target_initialize(&target, &response);
    hf_response_clear(&response);
    target_ask(&target, &target.initialize, &response);
    ck_assert_str_eq(response.error.error_type, "protocol-order");
    ck_assert_int_eq(target_wait(&target, 10000), 1);
    target_expect_no_process(&target, 2000);
}
END_TEST

START_TEST(after_finalize_only_shutdown_is_heard)
{
    target_start(&target);
    target_initialize(&target, &response);
    hf_response_clear(&response);
    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    target_ask(&target, &finalize, &response);
    hf_response_clear(&response);
    target_ask(&target, &finalize, &response);
    ck_assert_str_eq(response.error.error_type, "protocol-order");
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

START_TEST(another_run_is_refused)
{
    target_start(&target);
    target_initialize(&target, &response);
    hf_response_clear(&response);
    struct hf_request request = target_request(&target, HF_OP_EXECUTE);
    request.sequence = 1;
    strcpy(request.case_id, "passes");
    strcpy(request.run_id, "another-run");
    target_ask(&target, &request, &response);
    ck_assert_str_eq(response.error.error_type, "run-mismatch");
    hf_response_clear(&response);
    request.operation = HF_OP_FINALIZE;
    target_ask(&target, &request, &response);
    ck_assert_str_eq(response.error.error_type, "run-mismatch");
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor requests");
    TCase *tcase = tcase_create("stub profile");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, every_spoiled_initialize_is_refused_and_ends_the_executor);
    tcase_add_test(tcase, every_spoiled_execute_is_refused_and_the_session_stays);
    tcase_add_test(tcase, every_spoiled_finalize_is_refused_and_ends_the_executor);
    tcase_add_loop_test(tcase, what_is_no_request_is_refused_and_ends_the_executor, 0,
                        sizeof NO_REQUESTS / sizeof NO_REQUESTS[0]);
    tcase_add_test(tcase, an_oversized_request_is_refused_without_being_read_to_its_end);
    tcase_add_test(tcase, a_request_of_the_greatest_size_is_heard);
    tcase_add_test(tcase, requests_before_initialize_are_refused);
    tcase_add_test(tcase, a_second_initialize_is_refused);
    tcase_add_test(tcase, after_finalize_only_shutdown_is_heard);
    tcase_add_test(tcase, another_run_is_refused);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
