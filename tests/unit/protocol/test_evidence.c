/* Violation evidence: found in bytes of any form, and never where a well-formed answer has none. */
#include "common/cleanup.h"
#include "tests/run_suite.h"
#include "tests/unit/catalog/mutate.h"
#include "tests/unit/protocol/messages.h"

#include <check.h>
#include <string.h>

static const char *const evidence[] = {
    "{\"host_canary_intact\":false}",
    "{\"host_canary_intact\" : false}",
    "{\"host_canary_intact\":\"false\"}",
    "{\"host_canary_intact\":False}",
    "{\"host_canary_intact\":0}",
    "{\"host_canary_intact\":fal",
    "\"host_canary_intact\":false",
    "{\"host_canary_intact\":true,\"host_canary_intact\":false}",
    "{\"host_canary_intact\":false,\"host_canary_intact\":true}",
    "{\"a\":[[[[{\"oracles\":{\"host_canary_intact\":false}}]]]]}",
    "{\"a\":\"unfinished,\"host_canary_intact\":false}",
    "{\"a\":\"\\\",\"host_canary_intact\":false}",
    "\"\"\"\"host_canary_intact\":false",
    "\xff\xfe{\"host_canary_intact\":false}",
    "{\"\\u0068ost_canary_intac\\u0074\":false}",
    "{\"\\u0068ost_canary_intac\\U0074\":true,\"category\":\"policy-violation\"",
    "{\"network_canary_connections\":1}",
    "{\"network_canary_connections\":1000001}",
    "{\"network_canary_connections\":99999999999999999999999}",
    "{\"network_canary_connections\":1e0}",
    "{\"network_canary_connections\":0.5}",
    "{\"network_canary_connections\":\"2\"}",
    "{\"network_canary_connections\":01}",
    "{\"network_canary_connections\":true}",
    "{\"network_canary_connections\":\t\r\n7",
    "{\"category\":\"policy-violation\"}",
    "{\"category\":\"policy\\u002dviolation\"}",
    "{\"category\":policy-violation}",
    "{\"status\":\"policy-violation\"}",
    "{\"operation\":\"error\",\"error_type\":\"policy-violation\"}",
};

static const char *const harmless[] = {
    "",
    "\"",
    "{",
    "{\"host_canary_intact\":true}",
    "{\"host_canary_intact\":",
    "{\"host_canary_intact\"",
    "{\"host_canary_intact\":null}",
    "{\"host_canary_intact\":falsehood}",
    "{\"network_canary_connections\":0}",
    "{\"network_canary_connections\":-0}",
    "{\"network_canary_connections\":0.0}",
    "{\"network_canary_connections\":0e5}",
    "{\"network_canary_connections\":-1}",
    "{\"network_canary_connections\":null}",
    "{\"network_canary_port\":40000}",
    "{\"category\":\"policy-violations\"}",
    "{\"case_id\":\"policy-violation\"}",
    "{\"x_host_canary_intact\":false}",
    "{\"error\":\"\\\"host_canary_intact\\\":false\"}",
    "{\"error\":\"{\\\"category\\\":\\\"policy-violation\\\"}\"}",
    "{\"error\":\"\\\\\\\"host_canary_intact\\\\\\\":false\"}",
    "{\"error\":\"host_canary_intact\",\"b\":false}",
    "{\"a\":[\"host_canary_intact\",false]}",
};

START_TEST(evidence_is_found)
{
    ck_assert_msg(hf_response_has_violation_evidence(evidence[_i], strlen(evidence[_i])), "%s", evidence[_i]);
}
END_TEST

START_TEST(evidence_is_not_invented)
{
    ck_assert_msg(!hf_response_has_violation_evidence(harmless[_i], strlen(harmless[_i])), "%s", harmless[_i]);
}
END_TEST

START_TEST(nothing_is_read_beyond_the_length)
{
    static const char text[] = "{\"network_canary_connections\":1";
    for (size_t length = 0; length < strlen(text); length++) {
        cleanup_free char *exact = malloc(length + 1);
        ck_assert(exact != NULL);
        memmove(exact, text, length);
        exact[length] = '9'; /* would be evidence */
        ck_assert(!hf_response_has_violation_evidence(exact, length));
        char *tight = length ? memcpy(malloc(length), text, length) : NULL;
        ck_assert(length == 0 || !hf_response_has_violation_evidence(tight, length));
        free(tight);
    }
}
END_TEST

/* A reader of the struct and the search in the bytes must agree on every answer that the strict parser accepts. */
START_TEST(well_formed_answers_are_read_alike)
{
    size_t with = 0, without = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct random_source source = {seed};
        struct hf_request request = random_request(&source, seed % 2 ? HF_OP_EXECUTE : HF_OP_FINALIZE);
        struct hf_response response;
        random_response(&source, &request, &response);
        bool expected = false;
        if (response.operation == HF_OP_EXECUTE)
            expected = response.execute.category == HF_CATEGORY_POLICY_VIOLATION ||
                       !response.execute.oracles.host_canary_intact ||
                       response.execute.oracles.network_canary_connections > 0;
        if (response.operation == HF_OP_FINALIZE)
            expected = !response.finalize.oracles.host_canary_intact ||
                       response.finalize.oracles.network_canary_connections > 0;
        size_t length;
        cleanup_free char *line = hf_response_build(&response, &test_dialect, &length);
        ck_assert_msg(hf_response_has_violation_evidence(line, length) == expected, "seed %llu",
                      (unsigned long long)seed);
        *(expected ? &with : &without) += 1;
        hf_response_clear(&response);
    }
    ck_assert_uint_gt(with, 100);
    ck_assert_uint_gt(without, 100);
}
END_TEST

/* The worse reading wins: whatever is cut off, put in front or flipped elsewhere, evidence that is still there counts.
 */
START_TEST(evidence_survives_damage_around_it)
{
    static const char field[] = "\"host_canary_intact\":false";
    cleanup_free char *line = sample_response(HF_OP_EXECUTE);
    cleanup_free char *touched = mutate_set(line, "host_canary_intact", "false");
    const char *at = strstr(touched, field);
    ck_assert_ptr_nonnull(at);
    size_t start = (size_t)(at - touched), end = start + strlen(field), length = strlen(touched);
    for (size_t i = 0; i < length; i++) {
        if (i >= start && i < end)
            continue;
        static const char damage[] = {'"', '\\', '{', '}', '\0', '\n', ' ', (char)0xff};
        for (size_t j = 0; j < sizeof(damage); j++) {
            cleanup_free char *damaged = memcpy(malloc(length), touched, length);
            damaged[i] = damage[j];
            ck_assert_msg(hf_response_has_violation_evidence(damaged, length), "byte %zu, damage %zu", i, j);
        }
    }
    for (size_t cut = end; cut <= length; cut++)
        ck_assert(hf_response_has_violation_evidence(touched, cut));
    for (size_t skip = 0; skip <= start; skip++)
        ck_assert(hf_response_has_violation_evidence(touched + skip, length - skip));
}
END_TEST

START_TEST(a_line_of_quotation_marks_takes_linear_time)
{
    cleanup_free char *line = malloc(HF_PROTOCOL_MAX_LINE);
    ck_assert(line != NULL);
    memset(line, '"', HF_PROTOCOL_MAX_LINE);
    ck_assert(!hf_response_has_violation_evidence(line, HF_PROTOCOL_MAX_LINE));
    for (size_t i = 1; i < HF_PROTOCOL_MAX_LINE; i += 2)
        line[i] = '\\';
    ck_assert(!hf_response_has_violation_evidence(line, HF_PROTOCOL_MAX_LINE));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("evidence");
    TCase *tests = tcase_create("evidence");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, evidence_is_found, 0, sizeof(evidence) / sizeof(evidence[0]));
    tcase_add_loop_test(tests, evidence_is_not_invented, 0, sizeof(harmless) / sizeof(harmless[0]));
    tcase_add_test(tests, nothing_is_read_beyond_the_length);
    tcase_add_test(tests, well_formed_answers_are_read_alike);
    tcase_add_test(tests, evidence_survives_damage_around_it);
    tcase_add_test(tests, a_line_of_quotation_marks_takes_linear_time);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
