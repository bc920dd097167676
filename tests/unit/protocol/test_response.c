/* Responses: every mutant refused with its field, every bound, every contradiction, and build/parse agreement. */
#include "common/cleanup.h"
#include "tests/run_suite.h"
#include "tests/unit/catalog/mutate.h"
#include "tests/unit/protocol/messages.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const enum hf_operation operations[] = {HF_OP_INITIALIZE, HF_OP_EXECUTE, HF_OP_FINALIZE, HF_OP_SHUTDOWN,
                                               HF_OP_ERROR};

static int parse_for(const struct hf_request *request, const char *text, struct hf_error *err)
{
    struct hf_response response;
    int result = hf_response_parse(text, strlen(text), request, &test_dialect, &response, err);
    hf_response_clear(&response);
    return result;
}

/* context: the operation of the request that the text answers. */
static int parse(const char *text, size_t length, const void *context, struct hf_error *err)
{
    const enum hf_operation *operation = context;
    struct hf_request request = sample_request(*operation == HF_OP_ERROR ? HF_OP_EXECUTE : *operation);
    struct hf_response response;
    int result = hf_response_parse(text, length, &request, &test_dialect, &response, err);
    hf_response_clear(&response);
    return result;
}

START_TEST(every_key_is_required_once_with_its_type_and_no_other_key_is_accepted)
{
    static const size_t at_least[] = {380, 130, 150, 20, 35};
    cleanup_free char *line = sample_response(operations[_i]);
    /* returncode and error texts may be null or not; what they say then beside "passed" is a contradiction, tested
     * below, so they are tried here in an answer that claims nothing. */
    static const char *const failed[] = {"failed", "test-failure", "failed", "stopped", "-"};
    static const char *const status_key[] = {"status", "category", "status", "status", "-"};
    static const struct mutation_exception nullable[] = {
        {"returncode", "null"},
        {"error", "\"x\""},
        {"oracles.watchdog_error", "\"x\""},
        {"oracles.network_canary_error", "\"x\""},
        {"baseline.returncode", "null"},
        {"post_campaign.returncode", "null"},
        {"post_campaign", "null"},
    };
    char value[32];
    snprintf(value, sizeof(value), "\"%s\"", failed[_i]);
    cleanup_free char *claimless =
        operations[_i] == HF_OP_ERROR ? strdup(line) : mutate_set(line, status_key[_i], value);
    const char *boot = operations[_i] == HF_OP_INITIALIZE ? "baseline.category" : "post_campaign.category";
    bool has_boot = operations[_i] == HF_OP_INITIALIZE || operations[_i] == HF_OP_FINALIZE;
    cleanup_free char *text = has_boot ? mutate_set(claimless, boot, "\"test-failure\"") : strdup(claimless);
    const struct mutation_subject subject = {.valid = text,
                                             .parse = parse,
                                             .context = &operations[_i],
                                             .exceptions = nullable,
                                             .exception_count = sizeof(nullable) / sizeof(nullable[0]),
                                             .code = "shape-invalid"};
    ck_assert_uint_ge(mutate_all(&subject), at_least[_i]);
}
END_TEST

struct change {
    enum hf_operation operation;
    const char *path, *json;
    const char *code;  /* NULL: accepted */
    const char *field; /* NULL: path */
};

#define SHAPE         "shape-invalid"
#define MISMATCH      "protocol-mismatch"
#define CONTRADICTION "protocol-contradiction"
#define DIGEST        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct change changes[] = {
    /* bounds */
    {HF_OP_INITIALIZE, "schema_version", "2", SHAPE, NULL},
    {HF_OP_INITIALIZE, "status", "\"ok\"", SHAPE, NULL},
    {HF_OP_INITIALIZE, "status", "\"quarantined\"", SHAPE, NULL},
    {HF_OP_INITIALIZE, "artifacts.kernel.path", "\"\"", SHAPE, NULL},
    {HF_OP_INITIALIZE, "artifacts.kernel.size", "0", SHAPE, NULL},
    {HF_OP_INITIALIZE, "artifacts.kernel.size", "9223372036854775807", NULL, NULL},
    {HF_OP_INITIALIZE, "artifacts.kernel.sha256", "\"" DIGEST "0\"", SHAPE, NULL},
    {HF_OP_INITIALIZE, "artifacts.kernel.sha256",
     "\"0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef\"", SHAPE, NULL},
    {HF_OP_INITIALIZE, "artifacts.kernel", NULL, SHAPE, NULL},
    {HF_OP_INITIALIZE, "artifacts.initramfs", "{\"path\":\"/k\",\"sha256\":\"" DIGEST "\",\"size\":1}", SHAPE,
     "artifacts"},
    {HF_OP_INITIALIZE, "metadata.os", "\"\"", SHAPE, NULL},
    {HF_OP_INITIALIZE, "metadata.libc", "\"\"", SHAPE, NULL},
    {HF_OP_INITIALIZE, "metadata.holdfast_status", "[1]", SHAPE, "metadata.holdfast_status[0]"},
    {HF_OP_INITIALIZE, "oracles.network_canary_port", "0", SHAPE, NULL},
    {HF_OP_INITIALIZE, "oracles.network_canary_port", "65536", SHAPE, NULL},
    {HF_OP_INITIALIZE, "oracles.network_canary_connections", "-1", SHAPE, NULL},
    {HF_OP_INITIALIZE, "verify.duration_ms", "-1", SHAPE, NULL},
    {HF_OP_INITIALIZE, "baseline.qemu_pids", "[0]", SHAPE, "baseline.qemu_pids[0]"},
    {HF_OP_INITIALIZE, "baseline.qemu_pids", "[4294967296]", SHAPE, "baseline.qemu_pids[0]"},
    {HF_OP_INITIALIZE, "baseline.category", "\"policy-violation\"", SHAPE, NULL},
    {HF_OP_INITIALIZE, "artifact_root", "\"\"", SHAPE, NULL},
    {HF_OP_EXECUTE, "duration_ms", "86400000", NULL, NULL},
    {HF_OP_EXECUTE, "duration_ms", "86400001", SHAPE, NULL},
    {HF_OP_EXECUTE, "returncode", "2147483648", SHAPE, NULL},
    {HF_OP_EXECUTE, "network_canary_connections", "1000001", SHAPE, NULL},
    {HF_OP_EXECUTE, "category", "\"flaky\"", SHAPE, NULL},
    {HF_OP_EXECUTE, "stdout_b64", "\"aGVsbG8\"", SHAPE, NULL},
    {HF_OP_EXECUTE, "stdout_b64", "\"aGVsbG9=\"", SHAPE, NULL},
    {HF_OP_EXECUTE, "stdout_b64", "\"aGV sbG8=\"", SHAPE, NULL},
    {HF_OP_EXECUTE, "sequence", "0", SHAPE, NULL},
    {HF_OP_FINALIZE, "status", "\"stopped\"", SHAPE, NULL},
    {HF_OP_SHUTDOWN, "status", "\"passed\"", SHAPE, NULL},
    {HF_OP_ERROR, "request_operation", "\"\"", SHAPE, NULL},
    {HF_OP_ERROR, "error", "\"\"", NULL, NULL},
    /* not the answer to this request */
    {HF_OP_INITIALIZE, "run_id", "\"run-2\"", MISMATCH, NULL},
    {HF_OP_INITIALIZE, "backend", "\"kvm\"", MISMATCH, NULL},
    {HF_OP_INITIALIZE, "host_type", "\"baremetal\"", MISMATCH, NULL},
    {HF_OP_INITIALIZE, "metadata.holdfast_commit", "\"abd\"", MISMATCH, NULL},
    {HF_OP_INITIALIZE, "metadata.qemu_commit", "\"1\"", MISMATCH, NULL},
    {HF_OP_EXECUTE, "sequence", "4", MISMATCH, NULL},
    {HF_OP_EXECUTE, "case_id", "\"other-case\"", MISMATCH, NULL},
    {HF_OP_FINALIZE, "run_id", "\"run-2\"", MISMATCH, NULL},
    {HF_OP_ERROR, "request_operation", "\"initialize\"", MISMATCH, NULL},
    {HF_OP_ERROR, "request_operation", "\"unknown\"", NULL, NULL},
    {HF_OP_EXECUTE, "operation", "\"finalize\"", MISMATCH, NULL},
    {HF_OP_EXECUTE, "operation", "\"shutdown\"", MISMATCH, NULL},
    {HF_OP_EXECUTE, "operation", "\"none\"", SHAPE, NULL},
    /* passed, and yet */
    {HF_OP_INITIALIZE, "verify.returncode", "1", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "verify.timed_out", "true", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "baseline.category", "\"timeout\"", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "baseline.returncode", "1", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "baseline.returncode", "null", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "baseline.timed_out", "true", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "baseline.teardown_complete", "false", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "baseline.qemu_pids", "[]", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "baseline.live_qemu_pids", "[42]", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "baseline.live_qemu_pids", "[43]", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "oracles.host_canary_intact", "false", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "oracles.network_canary_connections", "1", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "metadata.holdfast_dirty", "true", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "metadata.qemu_dirty", "true", CONTRADICTION, NULL},
    {HF_OP_INITIALIZE, "metadata.holdfast_status", "[\"?? x\"]", CONTRADICTION, "metadata.holdfast_dirty"},
    {HF_OP_INITIALIZE, "metadata.qemu_status", "[\"?? x\"]", CONTRADICTION, "metadata.qemu_dirty"},
    {HF_OP_EXECUTE, "returncode", "1", CONTRADICTION, NULL},
    {HF_OP_EXECUTE, "returncode", "null", CONTRADICTION, NULL},
    {HF_OP_EXECUTE, "timed_out", "true", CONTRADICTION, NULL},
    {HF_OP_EXECUTE, "teardown_complete", "false", CONTRADICTION, NULL},
    {HF_OP_EXECUTE, "error", "\"x\"", CONTRADICTION, NULL},
    {HF_OP_EXECUTE, "error", "\"\"", CONTRADICTION, NULL},
    {HF_OP_EXECUTE, "host_canary_intact", "false", CONTRADICTION, NULL},
    {HF_OP_EXECUTE, "network_canary_connections", "1", CONTRADICTION, NULL},
    {HF_OP_EXECUTE, "stderr_truncated", "true", NULL, NULL},
    {HF_OP_FINALIZE, "post_campaign", "null", CONTRADICTION, NULL},
    {HF_OP_FINALIZE, "post_campaign.category", "\"test-failure\"", CONTRADICTION, NULL},
    {HF_OP_FINALIZE, "post_campaign.live_qemu_pids", "[41]", CONTRADICTION, NULL},
    {HF_OP_FINALIZE, "oracles.watchdog_error", "\"x\"", CONTRADICTION, NULL},
    {HF_OP_FINALIZE, "oracles.network_canary_error", "\"x\"", CONTRADICTION, NULL},
    {HF_OP_FINALIZE, "oracles.host_canary_intact", "false", CONTRADICTION, NULL},
    {HF_OP_FINALIZE, "oracles.network_canary_connections", "3", CONTRADICTION, NULL},
    {HF_OP_FINALIZE, "status", "\"quarantined\"", CONTRADICTION, "oracles"},
    /* failed beside clean evidence stands */
    {HF_OP_INITIALIZE, "status", "\"failed\"", NULL, NULL},
    {HF_OP_EXECUTE, "category", "\"test-failure\"", NULL, NULL},
    {HF_OP_EXECUTE, "category", "\"policy-violation\"", NULL, NULL},
    {HF_OP_FINALIZE, "status", "\"failed\"", NULL, NULL},
};

START_TEST(one_wrong_field_is_refused_for_what_it_is)
{
    const struct change *change = &changes[_i];
    cleanup_free char *line = sample_response(change->operation);
    cleanup_free char *changed = mutate_set(line, change->path, change->json);
    struct hf_error err = {0};
    int result = parse(changed, strlen(changed), &change->operation, &err);
    const char *what = change->json ? change->json : "absent";
    if (!change->code) {
        ck_assert_msg(result == 0, "%s = %s: %s", change->path, what, err.message);
        return;
    }
    ck_assert_msg(result == -1, "accepted: %s = %s", change->path, what);
    ck_assert_msg(strcmp(err.code, change->code) == 0, "%s = %s: %s: %s", change->path, what, err.code, err.message);
    ck_assert_msg(strcmp(err.field, change->field ? change->field : change->path) == 0, "%s = %s: field %s: %s",
                  change->path, what, err.field, err.message);
}
END_TEST

START_TEST(a_failed_preflight_may_tell_of_another_commit_and_of_dirt)
{
    struct hf_request request = sample_request(HF_OP_INITIALIZE);
    struct hf_error err = {0};
    cleanup_free char *line = sample_response(HF_OP_INITIALIZE);
    cleanup_free char *failed = mutate_set(line, "status", "\"failed\"");
    cleanup_free char *other = mutate_set(failed, "metadata.holdfast_commit", "\"abd\"");
    cleanup_free char *dirty = mutate_set(other, "metadata.holdfast_dirty", "true");
    cleanup_free char *listed = mutate_set(dirty, "metadata.holdfast_status", "[\"?? x\"]");
    ck_assert_msg(parse_for(&request, listed, &err) == 0, "%s", err.message);
    cleanup_free char *passed_dirty = mutate_set(line, "metadata.holdfast_dirty", "true");
    request.require_clean = false;
    ck_assert_msg(parse_for(&request, passed_dirty, &err) == 0, "%s", err.message);
}
END_TEST

START_TEST(a_requested_quarantine_is_acknowledged_and_boots_nothing)
{
    struct hf_request request = sample_request(HF_OP_FINALIZE);
    request.quarantine = true;
    struct hf_error err = {0};
    cleanup_free char *line = sample_response(HF_OP_FINALIZE);
    ck_assert_int_eq(parse_for(&request, line, &err), -1);
    ck_assert_str_eq(err.code, CONTRADICTION);
    ck_assert_str_eq(err.field, "status");
    cleanup_free char *booted = mutate_set(line, "status", "\"quarantined\"");
    ck_assert_int_eq(parse_for(&request, booted, &err), -1);
    ck_assert_str_eq(err.field, "post_campaign");
    cleanup_free char *right = mutate_set(booted, "post_campaign", "null");
    ck_assert_msg(parse_for(&request, right, &err) == 0, "%s", err.message);
    cleanup_free char *failed = mutate_set(right, "status", "\"failed\"");
    ck_assert_int_eq(parse_for(&request, failed, &err), -1);
    ck_assert_str_eq(err.field, "status");
}
END_TEST

START_TEST(an_unrequested_quarantine_needs_evidence)
{
    struct hf_request request = sample_request(HF_OP_FINALIZE);
    struct hf_error err = {0};
    cleanup_free char *line = sample_response(HF_OP_FINALIZE);
    cleanup_free char *claimed = mutate_set(line, "status", "\"quarantined\"");
    ck_assert_int_eq(parse_for(&request, claimed, &err), -1);
    cleanup_free char *touched = mutate_set(claimed, "oracles.host_canary_intact", "false");
    ck_assert_msg(parse_for(&request, touched, &err) == 0, "%s", err.message);
    cleanup_free char *connected = mutate_set(claimed, "oracles.network_canary_connections", "1");
    ck_assert_msg(parse_for(&request, connected, &err) == 0, "%s", err.message);
    cleanup_free char *unbooted = mutate_set(connected, "post_campaign", "null");
    ck_assert_msg(parse_for(&request, unbooted, &err) == 0, "%s", err.message);
}
END_TEST

START_TEST(samples_are_bounded_by_their_decoded_length)
{
    for (size_t length = HF_PROTOCOL_MAX_OUTPUT - 1; length <= HF_PROTOCOL_MAX_OUTPUT + 2; length++) {
        cleanup_free uint8_t *bytes = calloc(1, length);
        cleanup_free char *encoded = hf_base64_encode(bytes, length);
        size_t size = strlen(encoded) + 3;
        cleanup_free char *json = malloc(size);
        ck_assert(json != NULL);
        snprintf(json, size, "\"%s\"", encoded);
        static const char *const keys[] = {"stdout_b64", "stderr_b64"};
        for (size_t i = 0; i < 2; i++) {
            cleanup_free char *line = sample_response(HF_OP_EXECUTE);
            cleanup_free char *changed = mutate_set(line, keys[i], json);
            struct hf_error err = {0};
            struct hf_request request = sample_request(HF_OP_EXECUTE);
            ck_assert_int_eq(parse_for(&request, changed, &err), length <= HF_PROTOCOL_MAX_OUTPUT ? 0 : -1);
            ck_assert(length <= HF_PROTOCOL_MAX_OUTPUT || strcmp(err.field, keys[i]) == 0);
        }
    }
}
END_TEST

START_TEST(lists_of_pids_are_bounded)
{
    for (size_t count = HF_PROTOCOL_MAX_PIDS; count <= HF_PROTOCOL_MAX_PIDS + 1; count++) {
        char json[HF_PROTOCOL_MAX_PIDS * 4] = "[1";
        for (size_t i = 1; i < count; i++)
            strcat(json, ",1");
        strcat(json, "]");
        cleanup_free char *line = sample_response(HF_OP_FINALIZE);
        cleanup_free char *changed = mutate_set(line, "post_campaign.qemu_pids", json);
        struct hf_request request = sample_request(HF_OP_FINALIZE);
        struct hf_error err = {0};
        ck_assert_int_eq(parse_for(&request, changed, &err), count <= HF_PROTOCOL_MAX_PIDS ? 0 : -1);
    }
}
END_TEST

START_TEST(long_error_texts_are_cut_between_characters)
{
    char text[HF_PROTOCOL_MAX_ERROR + 100];
    memset(text, 'a', sizeof(text));
    memcpy(text + HF_PROTOCOL_MAX_ERROR - 1, "\xc3\xa9", 2); /* would straddle the bound */
    text[sizeof(text) - 1] = '\0';
    struct hf_response response = {.operation = HF_OP_ERROR};
    strcpy(response.error.request_operation, "execute");
    response.error.error_type = strdup("internal");
    response.error.error = strdup(text);
    cleanup_free char *line = hf_response_build(&response, &test_dialect, NULL);
    hf_response_clear(&response);
    struct hf_request request = sample_request(HF_OP_EXECUTE);
    struct hf_error err = {0};
    ck_assert_msg(hf_response_parse(line, strlen(line), &request, &test_dialect, &response, &err) == 0, "%s",
                  err.message);
    ck_assert_uint_eq(strlen(response.error.error), HF_PROTOCOL_MAX_ERROR - 1);
    hf_response_clear(&response);
}
END_TEST

START_TEST(messages_never_repeat_what_the_target_said)
{
    static const char *const paths[] = {"run_id", "backend", "metadata.holdfast_commit", "artifacts.kernel.sha256"};
    struct hf_request request = sample_request(HF_OP_INITIALIZE);
    cleanup_free char *line = sample_response(HF_OP_INITIALIZE);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        cleanup_free char *changed = mutate_set(line, paths[i], "\"guest-secret\"");
        struct hf_error err = {0};
        ck_assert_int_eq(parse_for(&request, changed, &err), -1);
        ck_assert_ptr_null(strstr(err.message, "guest-secret"));
        ck_assert_ptr_null(strstr(err.field, "guest-secret"));
    }
}
END_TEST

START_TEST(what_is_built_is_parsed_to_the_same)
{
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct random_source source = {seed};
        struct hf_request request = random_request(&source, operations[seed % 4]);
        struct hf_response response, again;
        random_response(&source, &request, &response);
        size_t length;
        cleanup_free char *line = hf_response_build(&response, &test_dialect, &length);
        struct hf_error err = {0};
        ck_assert_msg(hf_response_parse(line, length, &request, &test_dialect, &again, &err) == 0, "seed %llu: %s",
                      (unsigned long long)seed, err.message);
        ck_assert_int_eq(again.operation, response.operation);
        cleanup_free char *second = hf_response_build(&again, &test_dialect, NULL);
        ck_assert_msg(strcmp(line, second) == 0, "seed %llu", (unsigned long long)seed);
        cleanup_free char *document = hf_json_canonical(again.document, NULL);
        ck_assert_str_eq(line, document);
        hf_response_clear(&response);
        hf_response_clear(&again);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("response");
    TCase *tests = tcase_create("response");
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, every_key_is_required_once_with_its_type_and_no_other_key_is_accepted, 0, 5);
    tcase_add_loop_test(tests, one_wrong_field_is_refused_for_what_it_is, 0, sizeof(changes) / sizeof(changes[0]));
    tcase_add_test(tests, a_failed_preflight_may_tell_of_another_commit_and_of_dirt);
    tcase_add_test(tests, a_requested_quarantine_is_acknowledged_and_boots_nothing);
    tcase_add_test(tests, an_unrequested_quarantine_needs_evidence);
    tcase_add_test(tests, samples_are_bounded_by_their_decoded_length);
    tcase_add_test(tests, lists_of_pids_are_bounded);
    tcase_add_test(tests, long_error_texts_are_cut_between_characters);
    tcase_add_test(tests, messages_never_repeat_what_the_target_said);
    tcase_add_test(tests, what_is_built_is_parsed_to_the_same);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
