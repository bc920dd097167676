/* Whole conversations with a real holdfast-executor over pipes: what a campaign looks like on the wire and on disk. */
#include "common/cleanup.h"
#include "common/digest.h"
#include "tests/integration/executor/target.h"
#include "tests/run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct target target;
static struct hf_response response;

static void setup(void)
{
    memset(&response, 0, sizeof response);
    setenv("GITHUB_TOKEN", "github-credential", 1);
    setenv("SSH_AUTH_SOCK", "/tmp/agent", 1);
    setenv("HOLDFAST_UNLISTED", "unlisted", 1);
    target_create(&target);
    target_start(&target);
}

static void teardown(void)
{
    hf_response_clear(&response);
    target_destroy(&target);
}

START_TEST(a_healthy_campaign_passes_from_initialize_to_shutdown)
{
    target_initialize(&target, &response);
    const struct hf_initialize_response *initialized = &response.initialize;
    ck_assert_str_eq(initialized->commit, target.commit);
    ck_assert_str_eq(initialized->vmm_commit, target.vmm_commit);
    ck_assert(!initialized->dirty && !initialized->vmm_dirty);
    ck_assert(hf_boot_record_clean(&initialized->baseline));
    ck_assert_int_eq(initialized->verify_returncode, 0);
    hf_response_clear(&response);

    target_execute(&target, 1, "passes", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_PASSED);
    ck_assert_str_eq(response.execute.stdout_b64, "c3R1YiBjb25zb2xlCg==");
    ck_assert(!response.execute.stdout_truncated);
    hf_response_clear(&response);

    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    target_ask(&target, &finalize, &response);
    ck_assert_int_eq(response.finalize.status, HF_FINALIZE_PASSED);
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(artifacts_are_reported_as_they_are_on_disk)
{
    char sha256[HF_SHA256_HEX_SIZE];
    uint64_t size;
    target_initialize(&target, &response);
    for (size_t i = 0; i < target.profile.artifact_count; i++) {
        const struct hf_artifact_record *artifact = &response.initialize.artifacts[i];
        ck_assert_int_eq(hf_sha256_file(artifact->path, UINT64_MAX, sha256, &size, NULL), 0);
        ck_assert_str_eq(artifact->sha256, sha256);
        ck_assert_int_eq(artifact->size, (int64_t)size);
    }
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(the_session_keeps_its_evidence_in_a_private_directory)
{
    static const char *const kept[] = {"canary/host-canary.bin",
                                       "watchdog-samples.jsonl",
                                       "canary-access.jsonl",
                                       "watchdog.stderr.log",
                                       "verify.stdout.log",
                                       "verify.stderr.log",
                                       "baseline/dispatch.json",
                                       "baseline/out/outcome.json",
                                       "cases/007-passes/rep-1/dispatch.json",
                                       "cases/007-passes/rep-1/stdout.log",
                                       "cases/007-passes/rep-1/pid-journal.jsonl",
                                       "cases/007-passes/rep-1/host-canary.bin",
                                       "cases/007-passes/rep-2/out/outcome.json"};
    struct stat status;
    target_initialize(&target, &response);
    ck_assert_int_eq(stat(response.initialize.artifact_root, &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0700);
    hf_response_clear(&response);
    target_execute(&target, 7, "passes", &response);
    hf_response_clear(&response);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        ck_assert_msg(target_has_file(&target, kept[i]), "%s is missing", kept[i]);
    target_shut_down(&target);
}
END_TEST

START_TEST(a_scenario_sees_only_allow_listed_variables)
{
    target_initialize(&target, &response);
    hf_response_clear(&response);
    target_execute(&target, 1, "shows-environment", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_PASSED);
    cleanup_free char *shown = target_read_file(&target, "cases/001-shows-environment/rep-1/stdout.log");
    static const char *const allowed[] = {"PATH=",
                                          "HOME=",
                                          "LANG=",
                                          "LC_ALL=",
                                          "TMPDIR=",
                                          "USER=",
                                          "HOLDFAST_STUB_CONTROL=",
                                          "HOLDFAST_STUB_PID_JOURNAL="};
    char *rest = shown;
    for (char *line; (line = strsep(&rest, "\n"));) {
        bool known = *line == '\0' || strcmp(line, "stub console") == 0;
        for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
            known = known || strncmp(line, allowed[i], strlen(allowed[i])) == 0;
        ck_assert_msg(known, "the scenario saw %s", line);
    }
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(repetitions_stop_at_the_first_failure)
{
    target_initialize(&target, &response);
    hf_response_clear(&response);
    target_execute(&target, 1, "fails-later", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_TEST_FAILURE);
    ck_assert_int_eq(response.execute.returncode, 3);
    ck_assert(target_has_file(&target, "cases/001-fails-later/rep-2/dispatch.json"));
    ck_assert(!target_has_file(&target, "cases/001-fails-later/rep-3"));
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(a_repetition_never_gets_more_than_what_is_left_of_the_request)
{
    target_initialize(&target, &response);
    hf_response_clear(&response);
    struct hf_request request = target_request(&target, HF_OP_EXECUTE);
    request.sequence = 1;
    request.timeout_seconds = 3;
    strcpy(request.case_id, "takes-two-seconds");
    target_ask(&target, &request, &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_TIMEOUT);
    ck_assert_int_ge(response.execute.duration_ms, 2900);
    ck_assert_int_lt(response.execute.duration_ms, 6000);
    ck_assert(target_has_file(&target, "cases/001-takes-two-seconds/rep-2"));
    ck_assert(!target_has_file(&target, "cases/001-takes-two-seconds/rep-3"));
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(samples_are_taken_four_times_a_second_and_around_each_repetition)
{
    target_initialize(&target, &response);
    hf_response_clear(&response);
    target_execute(&target, 1, "takes-two-seconds", &response);
    hf_response_clear(&response);
    cleanup_free char *samples = target_read_file(&target, "watchdog-samples.jsonl");
    const struct hf_json_limits limits = {.max_bytes = 4096, .max_depth = 4};
    int64_t count = 0, last_mono_ns = 0;
    char *rest = samples;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        cleanup_json cJSON *sample = hf_json_parse(line, strlen(line), &limits, NULL);
        ck_assert(sample && hf_json_get_bool_or(sample, "host_canary_intact", false));
        ck_assert_int_eq(hf_json_get_int_or(sample, "sample", 0), ++count);
        int64_t mono_ns = hf_json_get_int_or(sample, "mono_ns", 0);
        ck_assert(mono_ns > last_mono_ns);
        ck_assert(last_mono_ns == 0 || mono_ns - last_mono_ns < 2000000000);
        ck_assert_int_gt(hf_json_get_int_or(sample, "disk_free_bytes", 0), 0);
        last_mono_ns = mono_ns;
    }
    /* 8 s of four repetitions, two samples around each, two around the baseline. */
    ck_assert_int_ge(count, 8 * 4 / 2 + 10);
    target_shut_down(&target);
}
END_TEST

START_TEST(a_requested_quarantine_starts_nothing_and_ends_the_executor)
{
    target_initialize(&target, &response);
    hf_response_clear(&response);
    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    finalize.quarantine = true;
    target_ask(&target, &finalize, &response);
    ck_assert_int_eq(response.finalize.status, HF_FINALIZE_QUARANTINED);
    ck_assert(!response.finalize.has_post_campaign);
    ck_assert_int_eq(target_wait(&target, 10000), 0);
    ck_assert(!target_has_file(&target, "post-campaign"));
}
END_TEST

START_TEST(an_error_during_execute_leaves_the_session_usable)
{
    target_initialize(&target, &response);
    hf_response_clear(&response);
    struct hf_request request = target_request(&target, HF_OP_EXECUTE);
    request.sequence = 1;
    strcpy(request.case_id, "unknown-case");
    target_ask(&target, &request, &response);
    ck_assert_int_eq(response.operation, HF_OP_ERROR);
    ck_assert_str_eq(response.error.error_type, "case-unknown");
    hf_response_clear(&response);
    target_execute(&target, 1, "passes", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_PASSED);
    hf_response_clear(&response);
    target_execute(&target, 2, "passes", &response);
    hf_response_clear(&response);
    request.sequence = 2;
    strcpy(request.case_id, "passes");
    target_ask(&target, &request, &response);
    ck_assert_str_eq(response.error.error_type, "sequence-invalid");
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(a_run_id_is_never_used_twice)
{
    target_initialize(&target, &response);
    hf_response_clear(&response);
    target_shut_down(&target);
    target.run_number--;
    target_start(&target);
    target_ask(&target, &target.initialize, &response);
    ck_assert_int_eq(response.operation, HF_OP_ERROR);
    ck_assert_str_eq(response.error.error_type, "run-exists");
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor conversation");
    TCase *tcase = tcase_create("stub profile");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_healthy_campaign_passes_from_initialize_to_shutdown);
    tcase_add_test(tcase, artifacts_are_reported_as_they_are_on_disk);
    tcase_add_test(tcase, the_session_keeps_its_evidence_in_a_private_directory);
    tcase_add_test(tcase, a_scenario_sees_only_allow_listed_variables);
    tcase_add_test(tcase, repetitions_stop_at_the_first_failure);
    tcase_add_test(tcase, a_repetition_never_gets_more_than_what_is_left_of_the_request);
    tcase_add_test(tcase, samples_are_taken_four_times_a_second_and_around_each_repetition);
    tcase_add_test(tcase, a_requested_quarantine_starts_nothing_and_ends_the_executor);
    tcase_add_test(tcase, an_error_during_execute_leaves_the_session_usable);
    tcase_add_test(tcase, a_run_id_is_never_used_twice);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
