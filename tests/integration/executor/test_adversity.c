/*
 * Scenarios that misbehave, each in one way, and the one category that each must get. A real executor, watchdog and
 * supervisor; the scenario is stub_scenario.c.
 */
#include "common/cleanup.h"
#include "tests/integration/executor/target.h"
#include "tests/run_suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct target target;
static struct hf_response response;

static void setup(void)
{
    memset(&response, 0, sizeof response);
    target_create(&target);
    target_start(&target);
    target_initialize(&target, &response);
    hf_response_clear(&response);
}

static void teardown(void)
{
    hf_response_clear(&response);
    target_destroy(&target);
}

struct expectation {
    const char *case_id;
    enum hf_category category;
    int returncode; /* NONE: not checked, because the executor itself ended the command */
    bool timed_out, teardown_complete;
    const char *error; /* part of the sentence, NULL: no error */
};
enum { NONE = 1000 };

static const struct expectation EXPECTED[] = {
    {"passes", HF_CATEGORY_PASSED, 0, false, true, NULL},
    {"exits-seven", HF_CATEGORY_TEST_FAILURE, 7, false, true, "exited with 7"},
    {"kills-itself", HF_CATEGORY_TEST_FAILURE, -9, false, true, "signal 9"},
    {"hangs", HF_CATEGORY_TIMEOUT, -15, true, true, "did not end within"},
    {"ignores-term", HF_CATEGORY_TIMEOUT, -9, true, true, "did not end within"},
    {"forks-daemon", HF_CATEGORY_TEST_FAILURE, 0, false, false, "processes behind"},
    {"lists-live-pid", HF_CATEGORY_TEST_FAILURE, 0, false, false, "still alive"},
    {"garbles-journal", HF_CATEGORY_TEST_FAILURE, 0, false, false, "pid journal"},
    {"false-teardown", HF_CATEGORY_TEST_FAILURE, 0, false, false, "teardown field"},
    {"omits-report", HF_CATEGORY_TEST_FAILURE, 0, false, true, "outcome.json: the scenario did not leave"},
    {"oversizes-report", HF_CATEGORY_TEST_FAILURE, 0, false, true, "extra-report.json: is larger than 1 MiB"},
    {"links-report", HF_CATEGORY_TEST_FAILURE, 0, false, true, "outcome.json: is a symbolic link"},
    {"garbles-report", HF_CATEGORY_TEST_FAILURE, 0, false, true, "outcome.json: is no well-formed JSON"},
    {"floods", HF_CATEGORY_PASSED, 0, false, true, NULL},
};

START_TEST(each_fault_of_a_scenario_gets_its_one_category)
{
    const struct expectation *expected = &EXPECTED[_i];
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    target_write(target.control_dir, "pid", pid);
    struct hf_request request = target_request(&target, HF_OP_EXECUTE);
    request.sequence = 1;
    request.timeout_seconds = expected->timed_out ? 1 : 60;
    strcpy(request.case_id, expected->case_id);
    target_ask(&target, &request, &response);
    ck_assert_int_eq(response.operation, HF_OP_EXECUTE);
    const struct hf_execute_response *result = &response.execute;
    ck_assert_msg(result->category == expected->category, "%s: %s (%s)", expected->case_id,
                  hf_category_name(result->category), result->error ? result->error : "no error");
    ck_assert(result->has_returncode);
    ck_assert_int_eq(result->returncode, expected->returncode);
    ck_assert_int_eq(result->timed_out, expected->timed_out);
    ck_assert_int_eq(result->teardown_complete, expected->teardown_complete);
    ck_assert(result->oracles.host_canary_intact && result->oracles.network_canary_connections == 0);
    if (expected->error)
        ck_assert_msg(result->error && strstr(result->error, expected->error), "%s: %s", expected->case_id,
                      result->error ? result->error : "no error");
    hf_response_clear(&response);
    /* Whatever it did, nothing of it is left, and the session goes on. */
    target_execute(&target, 2, "passes", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_PASSED);
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(a_flood_is_kept_to_16_mib_and_counted)
{
    target_execute(&target, 1, "floods", &response);
    ck_assert(response.execute.stdout_truncated);
    ck_assert_uint_eq(strlen(response.execute.stdout_b64), (8192 + 2) / 3 * 4);
    cleanup_free char *log = target_read_file(&target, "cases/001-floods/rep-1/stdout.log");
    ck_assert_uint_eq(strlen(log), 16 << 20);
    cleanup_free char *record = target_read_file(&target, "cases/001-floods/rep-1/dispatch.json");
    ck_assert_ptr_nonnull(strstr(record, "\"logs_truncated\":true"));
    ck_assert_ptr_nonnull(strstr(record, "\"stdout_bytes\":20971533"));
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

static const char *const VIOLATIONS[] = {"writes-canary",   "restores-canary", "replaces-canary",
                                         "writes-tripwire", "connects",        "connects-late"};

START_TEST(violation_evidence_is_sticky_blocks_every_dispatch_and_quarantines)
{
    const char *case_id = VIOLATIONS[_i];
    target_execute(&target, 1, case_id, &response);
    ck_assert_msg(response.execute.category == HF_CATEGORY_POLICY_VIOLATION, "%s: %s (%s)", case_id,
                  hf_category_name(response.execute.category), response.execute.error);
    bool network = strncmp(case_id, "connects", 8) == 0;
    ck_assert_int_eq(response.execute.oracles.host_canary_intact, network);
    ck_assert_int_eq(response.execute.oracles.network_canary_connections, network ? 1 : 0);
    hf_response_clear(&response);
    cleanup_free char *access = target_read_file(&target, "canary-access.jsonl");
    ck_assert_ptr_nonnull(strstr(access, network ? "\"peer\":\"[127.0.0.1]:" : "\"canary\":\"host\""));

    target_execute(&target, 2, "passes", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_POLICY_VIOLATION);
    ck_assert(!response.execute.has_returncode);
    ck_assert(target_has_file(&target, "cases/002-passes/rep-1/dispatch-blocked.json"));
    ck_assert(!target_has_file(&target, "cases/002-passes/rep-1/dispatch.json"));
    hf_response_clear(&response);

    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    target_ask(&target, &finalize, &response);
    ck_assert_int_eq(response.finalize.status, HF_FINALIZE_QUARANTINED);
    ck_assert(!response.finalize.has_post_campaign);
    ck_assert(!target_has_file(&target, "post-campaign"));
    ck_assert_int_eq(target_wait(&target, 10000), 0);
}
END_TEST

static const char *const SILENCERS[] = {"kills-watchdog", "stops-watchdog"};

START_TEST(without_its_watchdog_no_case_passes_and_nothing_more_is_dispatched)
{
    target_execute(&target, 1, SILENCERS[_i], &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_EXECUTOR_ERROR);
    ck_assert_ptr_nonnull(strstr(response.execute.error, "oracle-unavailable"));
    hf_response_clear(&response);
    target_execute(&target, 2, "passes", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_EXECUTOR_ERROR);
    ck_assert(target_has_file(&target, "cases/002-passes/rep-1/dispatch-blocked.json"));
    hf_response_clear(&response);
    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    target_ask(&target, &finalize, &response);
    ck_assert_int_eq(response.finalize.status, HF_FINALIZE_FAILED);
    ck_assert_ptr_nonnull(strstr(response.finalize.watchdog_error, "oracle-unavailable"));
    ck_assert(!response.finalize.has_post_campaign);
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(an_artifact_swapped_after_hashing_is_noticed_and_not_run_again)
{
    char kernel[400];
    snprintf(kernel, sizeof kernel, "%s/kernel", target.guest_dir);
    target_write(target.control_dir, "swap", kernel);
    target_execute(&target, 1, "swaps-artifact", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_EXECUTOR_ERROR);
    ck_assert_ptr_nonnull(strstr(response.execute.error, "artifact kernel"));
    hf_response_clear(&response);
    target_execute(&target, 2, "passes", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_EXECUTOR_ERROR);
    ck_assert(!response.execute.has_returncode);
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(an_artifact_that_was_only_touched_is_still_the_same)
{
    target_command(&target, "touch guest/kernel");
    target_execute(&target, 1, "passes", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_PASSED);
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(a_post_campaign_vm_that_does_not_boot_fails_finalization)
{
    target_write(target.control_dir, "boot", "exits-seven");
    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    target_ask(&target, &finalize, &response);
    ck_assert_int_eq(response.finalize.status, HF_FINALIZE_FAILED);
    ck_assert_int_eq(response.finalize.post_campaign.returncode, 7);
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(a_violation_that_first_shows_at_finalization_quarantines)
{
    target_write(target.control_dir, "boot", "connects-late");
    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    target_ask(&target, &finalize, &response);
    ck_assert_int_eq(response.finalize.status, HF_FINALIZE_QUARANTINED);
    ck_assert_int_eq(response.finalize.oracles.network_canary_connections, 1);
    ck_assert_int_eq(target_wait(&target, 10000), 0);
}
END_TEST

static void set_up_small_disk(void)
{
    memset(&response, 0, sizeof response);
    target_create(&target);
    target.small_disk = "4m";
    target_start(&target);
    target_initialize(&target, &response);
    hf_response_clear(&response);
}

START_TEST(on_a_full_disk_nothing_passes_and_the_session_ends_in_order)
{
    target_execute(&target, 1, "floods", &response);
    ck_assert_msg(response.execute.category == HF_CATEGORY_EXECUTOR_ERROR, "%s (%s)",
                  hf_category_name(response.execute.category), response.execute.error);
    hf_response_clear(&response);
    target_execute(&target, 2, "passes", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_EXECUTOR_ERROR);
    ck_assert(!response.execute.has_returncode);
    hf_response_clear(&response);
    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    target_ask(&target, &finalize, &response);
    ck_assert_int_eq(response.finalize.status, HF_FINALIZE_FAILED);
    ck_assert_ptr_nonnull(response.finalize.watchdog_error);
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor adversity");
    TCase *tcase = tcase_create("stub profile");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, each_fault_of_a_scenario_gets_its_one_category, 0, sizeof EXPECTED / sizeof EXPECTED[0]);
    tcase_add_test(tcase, a_flood_is_kept_to_16_mib_and_counted);
    tcase_add_loop_test(tcase, violation_evidence_is_sticky_blocks_every_dispatch_and_quarantines, 0,
                        sizeof VIOLATIONS / sizeof VIOLATIONS[0]);
    tcase_add_loop_test(tcase, without_its_watchdog_no_case_passes_and_nothing_more_is_dispatched, 0, 2);
    tcase_add_test(tcase, an_artifact_swapped_after_hashing_is_noticed_and_not_run_again);
    tcase_add_test(tcase, an_artifact_that_was_only_touched_is_still_the_same);
    tcase_add_test(tcase, a_post_campaign_vm_that_does_not_boot_fails_finalization);
    tcase_add_test(tcase, a_violation_that_first_shows_at_finalization_quarantines);
    suite_add_tcase(suite, tcase);
    TCase *disk = tcase_create("full disk");
    tcase_add_checked_fixture(disk, set_up_small_disk, teardown);
    tcase_set_timeout(disk, 120);
    tcase_add_test(disk, on_a_full_disk_nothing_passes_and_the_session_ends_in_order);
    suite_add_tcase(suite, disk);
    return run_suite(suite);
}
