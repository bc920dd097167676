/* Requests: every mutant refused with its field, every bound, and build/parse agreement over random messages. */
#include "common/cleanup.h"
#include "tests/run_suite.h"
#include "tests/unit/catalog/mutate.h"
#include "tests/unit/protocol/messages.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const enum hf_operation operations[] = {HF_OP_INITIALIZE, HF_OP_EXECUTE, HF_OP_FINALIZE, HF_OP_SHUTDOWN};

static int parse(const char *text, size_t length, const void *context, struct hf_error *err)
{
    (void)context;
    struct hf_request request;
    return hf_request_parse(text, length, &test_dialect, &request, err);
}

static char *build(enum hf_operation operation)
{
    struct hf_request request = sample_request(operation);
    return hf_request_build(&request, &test_dialect, NULL);
}

START_TEST(a_request_is_canonical_on_the_wire)
{
    struct hf_request request = sample_request(HF_OP_EXECUTE);
    size_t length;
    cleanup_free char *line = hf_request_build(&request, &test_dialect, &length);
    ck_assert_str_eq(line, "{\"case_id\":\"some-case\",\"operation\":\"execute\",\"run_id\":\"run-1\","
                           "\"schema_version\":1,\"sequence\":3,\"timeout_seconds\":600}");
    ck_assert_uint_eq(length, strlen(line));
    cleanup_free char *initialize = build(HF_OP_INITIALIZE);
    ck_assert_ptr_nonnull(strstr(initialize, "\"expected_qemu_commit\":\"1:7.2+dfsg-7\""));
    ck_assert_ptr_nonnull(strstr(initialize, "\"seed\":9223372036854775806}"));
}
END_TEST

START_TEST(every_key_is_required_once_with_its_type_and_no_other_key_is_accepted)
{
    /* Seconds may have a fraction; see the next test but one. */
    static const struct mutation_exception exceptions[] = {
        {"phase_timeout_seconds", "1.5"}, {"baseline_timeout_seconds", "1.5"}, {"timeout_seconds", "1.5"}};
    static const size_t at_least[] = {100, 40, 35, 15};
    cleanup_free char *line = build(operations[_i]);
    const struct mutation_subject subject = {
        .valid = line, .parse = parse, .exceptions = exceptions, .exception_count = 3, .code = "shape-invalid"};
    ck_assert_uint_ge(mutate_all(&subject), at_least[_i]);
}
END_TEST

struct bound {
    enum hf_operation operation;
    const char *path, *json;
};

#define TEXT_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define TEXT_96 TEXT_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct bound refused[] = {
    {HF_OP_INITIALIZE, "run_id", "\"\""},
    {HF_OP_INITIALIZE, "run_id", "\"-a\""},
    {HF_OP_INITIALIZE, "run_id", "\"A\""},
    {HF_OP_INITIALIZE, "run_id", "\"a/b\""},
    {HF_OP_INITIALIZE, "run_id", "\"..\""},
    {HF_OP_INITIALIZE, "run_id", "\"" TEXT_96 "a\""},
    {HF_OP_INITIALIZE, "expected_commit", "\"\""},
    {HF_OP_INITIALIZE, "expected_commit", "\"" TEXT_64 "a\""},
    {HF_OP_INITIALIZE, "expected_commit", "\"a\\nb\""},
    {HF_OP_INITIALIZE, "expected_qemu_commit", "\"" TEXT_64 "a\""},
    {HF_OP_INITIALIZE, "expected_catalog_sha256", "\"" TEXT_64 "a\""},
    {HF_OP_INITIALIZE, "backend", "\"KVM\""},
    {HF_OP_INITIALIZE, "backend", "\"xen\""},
    {HF_OP_INITIALIZE, "campaign", "\"../x\""},
    {HF_OP_INITIALIZE, "campaign", "\"" TEXT_64 "a\""},
    {HF_OP_INITIALIZE, "host_type", "\"container\""},
    {HF_OP_INITIALIZE, "seed", "-1"},
    {HF_OP_INITIALIZE, "seed", "1.0"},
    {HF_OP_INITIALIZE, "memory_mib", "127"},
    {HF_OP_INITIALIZE, "memory_mib", "4097"},
    {HF_OP_INITIALIZE, "phase_timeout_seconds", "0"},
    {HF_OP_INITIALIZE, "phase_timeout_seconds", "0.99"},
    {HF_OP_INITIALIZE, "phase_timeout_seconds", "3601"},
    {HF_OP_INITIALIZE, "phase_timeout_seconds", "3600.5"},
    {HF_OP_INITIALIZE, "phase_timeout_seconds", "-60"},
    {HF_OP_INITIALIZE, "baseline_timeout_seconds", "0"},
    {HF_OP_INITIALIZE, "baseline_timeout_seconds", "7201"},
    {HF_OP_EXECUTE, "sequence", "0"},
    {HF_OP_EXECUTE, "sequence", "101"},
    {HF_OP_EXECUTE, "case_id", "\"\""},
    {HF_OP_EXECUTE, "case_id", "\"a/b\""},
    {HF_OP_EXECUTE, "case_id", "\"" TEXT_64 "a\""},
    {HF_OP_EXECUTE, "timeout_seconds", "0"},
    {HF_OP_EXECUTE, "timeout_seconds", "1e300"},
    {HF_OP_EXECUTE, "timeout_seconds", "7201"},
    {HF_OP_FINALIZE, "timeout_seconds", "7200.001"},
    {HF_OP_FINALIZE, "run_id", "\"a b\""},
};

static const struct bound accepted[] = {
    {HF_OP_INITIALIZE, "run_id", "\"0\""},
    {HF_OP_INITIALIZE, "run_id", "\"" TEXT_96 "\""},
    {HF_OP_INITIALIZE, "expected_commit", "\"" TEXT_64 "\""},
    {HF_OP_INITIALIZE, "campaign", "\"" TEXT_64 "\""},
    {HF_OP_INITIALIZE, "backend", "\"whp\""},
    {HF_OP_INITIALIZE, "host_type", "\"unspecified\""},
    {HF_OP_INITIALIZE, "seed", "0"},
    {HF_OP_INITIALIZE, "seed", "9223372036854775807"},
    {HF_OP_INITIALIZE, "memory_mib", "128"},
    {HF_OP_INITIALIZE, "memory_mib", "4096"},
    {HF_OP_INITIALIZE, "phase_timeout_seconds", "1"},
    {HF_OP_INITIALIZE, "phase_timeout_seconds", "3600"},
    {HF_OP_INITIALIZE, "baseline_timeout_seconds", "7200"},
    {HF_OP_EXECUTE, "sequence", "1"},
    {HF_OP_EXECUTE, "sequence", "100"},
    {HF_OP_EXECUTE, "timeout_seconds", "7200"},
    {HF_OP_FINALIZE, "timeout_seconds", "1"},
};

START_TEST(values_out_of_bounds_are_refused_with_their_field)
{
    const struct bound *bound = &refused[_i];
    cleanup_free char *line = build(bound->operation);
    cleanup_free char *changed = mutate_set(line, bound->path, bound->json);
    struct hf_error err = {0};
    ck_assert_msg(parse(changed, strlen(changed), NULL, &err) == -1, "accepted: %s = %s", bound->path, bound->json);
    ck_assert_str_eq(err.code, "shape-invalid");
    ck_assert_str_eq(err.field, bound->path);
}
END_TEST

START_TEST(values_at_their_bounds_are_accepted)
{
    const struct bound *bound = &accepted[_i];
    cleanup_free char *line = build(bound->operation);
    cleanup_free char *changed = mutate_set(line, bound->path, bound->json);
    struct hf_error err = {0};
    ck_assert_msg(parse(changed, strlen(changed), NULL, &err) == 0, "%s = %s: %s", bound->path, bound->json,
                  err.message);
}
END_TEST

START_TEST(a_part_of_a_second_is_dropped)
{
    cleanup_free char *line = build(HF_OP_EXECUTE);
    cleanup_free char *changed = mutate_set(line, "timeout_seconds", "599.999");
    struct hf_request request;
    struct hf_error err = {0};
    ck_assert_int_eq(hf_request_parse(changed, strlen(changed), &test_dialect, &request, &err), 0);
    ck_assert_int_eq(request.timeout_seconds, 599);
    cleanup_free char *initialize = build(HF_OP_INITIALIZE);
    cleanup_free char *fraction = mutate_set(initialize, "phase_timeout_seconds", "60.0");
    ck_assert_int_eq(hf_request_parse(fraction, strlen(fraction), &test_dialect, &request, &err), 0);
    ck_assert_int_eq(request.phase_timeout_seconds, 60);
}
END_TEST

START_TEST(the_operation_is_known_as_soon_as_it_can_be)
{
    struct hf_request request;
    struct hf_error err = {0};
    static const struct {
        const char *line;
        enum hf_operation operation;
        const char *code;
    } lines[] = {
        {"{\"operation\":\"execute\"}", HF_OP_EXECUTE, "shape-invalid"},
        {"{\"operation\":\"finalize\",\"schema_version\":2}", HF_OP_FINALIZE, "protocol-version"},
        {"{\"operation\":\"shutdown\",\"schema_version\":true}", HF_OP_SHUTDOWN, "shape-invalid"},
        {"{\"operation\":\"error\",\"schema_version\":1}", HF_OP_ERROR, "shape-invalid"},
        {"{\"operation\":\"Execute\",\"schema_version\":1}", HF_OP_ERROR, "shape-invalid"},
        {"{\"operation\":1}", HF_OP_ERROR, "shape-invalid"},
        {"{}", HF_OP_ERROR, "shape-invalid"},
        {"[]", HF_OP_ERROR, "shape-invalid"},
        {"\"execute\"", HF_OP_ERROR, "shape-invalid"},
        {"{\"operation\":\"execute\"", HF_OP_ERROR, "json-invalid"},
        {"{\"operation\":\"shutdown\",\"schema_version\":1} {}", HF_OP_ERROR, "json-invalid"},
        {"", HF_OP_ERROR, "json-invalid"},
        {"{\"operation\":\"shutdown\",\"schema_version\":NaN}", HF_OP_ERROR, "json-invalid"},
        {"{\"operation\":\"shutdown\",\"schema_version\":Infinity}", HF_OP_ERROR, "json-invalid"},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        ck_assert_int_eq(hf_request_parse(lines[i].line, strlen(lines[i].line), &test_dialect, &request, &err), -1);
        ck_assert_str_eq(err.code, lines[i].code);
        ck_assert_int_eq(request.operation, lines[i].operation);
    }
}
END_TEST

START_TEST(a_line_above_the_bound_is_refused)
{
    cleanup_free char *line = build(HF_OP_SHUTDOWN);
    cleanup_free char *padded = malloc(HF_PROTOCOL_MAX_LINE + 1);
    ck_assert(padded != NULL);
    memset(padded, ' ', HF_PROTOCOL_MAX_LINE + 1);
    memcpy(padded, line, strlen(line));
    struct hf_error err = {0};
    ck_assert_int_eq(parse(padded, HF_PROTOCOL_MAX_LINE, NULL, &err), 0);
    ck_assert_int_eq(parse(padded, HF_PROTOCOL_MAX_LINE + 1, NULL, &err), -1);
    ck_assert_str_eq(err.code, "json-invalid");
}
END_TEST

START_TEST(a_key_of_another_dialect_is_refused)
{
    struct hf_request request = sample_request(HF_OP_INITIALIZE);
    struct hf_dialect other = test_dialect;
    strcpy(other.vmm, "openvmm");
    cleanup_free char *line = hf_request_build(&request, &other, NULL);
    ck_assert_ptr_nonnull(strstr(line, "\"expected_openvmm_commit\""));
    struct hf_error err = {0};
    ck_assert_int_eq(parse(line, strlen(line), NULL, &err), -1);
    ck_assert_str_eq(err.code, "shape-invalid");
}
END_TEST

START_TEST(what_is_built_is_parsed_to_the_same)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct random_source source = {seed};
        struct hf_request request = random_request(&source, operations[seed % 4]), again;
        size_t length;
        cleanup_free char *line = hf_request_build(&request, &test_dialect, &length);
        struct hf_error err = {0};
        ck_assert_msg(hf_request_parse(line, length, &test_dialect, &again, &err) == 0, "seed %llu: %s",
                      (unsigned long long)seed, err.message);
        cleanup_free char *second = hf_request_build(&again, &test_dialect, NULL);
        ck_assert_msg(strcmp(line, second) == 0, "seed %llu: %s became %s", (unsigned long long)seed, line, second);
        ck_assert_int_eq(again.seed, request.seed);
        ck_assert_int_eq(again.sequence, request.sequence);
        ck_assert_int_eq(again.quarantine, request.quarantine);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("request");
    TCase *tests = tcase_create("request");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_request_is_canonical_on_the_wire);
    tcase_add_loop_test(tests, every_key_is_required_once_with_its_type_and_no_other_key_is_accepted, 0, 4);
    tcase_add_loop_test(tests, values_out_of_bounds_are_refused_with_their_field, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_loop_test(tests, values_at_their_bounds_are_accepted, 0, sizeof(accepted) / sizeof(accepted[0]));
    tcase_add_test(tests, a_part_of_a_second_is_dropped);
    tcase_add_test(tests, the_operation_is_known_as_soon_as_it_can_be);
    tcase_add_test(tests, a_line_above_the_bound_is_refused);
    tcase_add_test(tests, a_key_of_another_dialect_is_refused);
    tcase_add_test(tests, what_is_built_is_parsed_to_the_same);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
