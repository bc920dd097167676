/*
 * What initialize refuses: each of its checks, alone, in a target where everything else is right. No VM may have been
 * started, and the oracles are closed.
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

static void expect_refusal(const char *error_type, const char *part_of_error)
{
    target_ask(&target, &target.initialize, &response);
    ck_assert_int_eq(response.operation, HF_OP_ERROR);
    ck_assert_msg(strcmp(response.error.error_type, error_type) == 0, "%s: %s", response.error.error_type,
                  response.error.error);
    ck_assert_msg(strstr(response.error.error, part_of_error) != NULL, "%s", response.error.error);
    ck_assert_int_eq(target_wait(&target, 10000), 1);
    target_expect_no_process(&target, 2000);
    ck_assert(!target_has_file(&target, "baseline"));
}

START_TEST(another_source_commit_is_refused)
{
    target_start(&target);
    target.initialize.expected_commit[0] = target.initialize.expected_commit[0] == '0' ? '1' : '0';
    expect_refusal("commit-mismatch", target.commit);
    ck_assert(!target_has_file(&target, "."));
}
END_TEST

START_TEST(a_tree_that_is_no_work_tree_of_its_own_is_refused)
{
    target_command(&target, "mv source/.git source/moved && git init -q . && git add source/src && "
                            "git -c user.name=t -c user.email=t@localhost commit -q -m t");
    target_start(&target);
    expect_refusal("source-unreadable", "git failed");
}
END_TEST

START_TEST(another_vmm_is_refused)
{
    target_start(&target);
    strcpy(target.initialize.expected_vmm_commit, "1:7.2");
    expect_refusal("vmm-mismatch", target.vmm_commit);
}
END_TEST

/* Each row makes the target dirty in one way. */
static const char *const DIRT[][2] = {
    {"echo >> source/src/runner.c", "src/runner.c"},
    {"rm source/src/runner.c", "src/runner.c"},
    {"touch source/src/new.c", "src/new.c"},
    {"echo >> source/src/runner.c && git -C source add src/runner.c", "src/runner.c"},
    {"echo >> source/vmm/vmm.c", "stub is modified"},
    {"git -C source config status.showUntrackedFiles no && touch source/src/new.c", "src/new.c"},
};

START_TEST(a_modified_target_is_refused_where_a_clean_one_is_required)
{
    target_command(&target, "%s", DIRT[_i][0]);
    target_start(&target);
    expect_refusal("not-clean", DIRT[_i][1]);
}
END_TEST

START_TEST(configuration_of_the_user_cannot_hide_a_modification)
{
    char path[400];
    target_command(&target,
                   "echo '*' > ignore && printf '[core]\\nexcludesFile=%s/ignore\\n' > gitconfig && "
                   "touch source/src/new.c",
                   target.root);
    snprintf(path, sizeof path, "%s/gitconfig", target.root);
    setenv("GIT_CONFIG_GLOBAL", path, 1);
    target_start(&target);
    unsetenv("GIT_CONFIG_GLOBAL");
    expect_refusal("not-clean", "src/new.c");
}
END_TEST

START_TEST(a_modified_tree_is_reported_where_a_clean_one_is_not_required)
{
    target_command(&target, "touch source/new-file");
    target_start(&target);
    target.initialize.require_clean = false;
    target_initialize(&target, &response);
    ck_assert(response.initialize.dirty);
    ck_assert_str_eq(response.initialize.status_lines->child->valuestring, "?? new-file");
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(the_list_of_modifications_is_bounded)
{
    target_command(&target, "for i in $(seq 1000); do : > source/src/$i-with-a-name-that-is-not-so-short; done");
    target_start(&target);
    target.initialize.require_clean = false;
    target_initialize(&target, &response);
    ck_assert_int_eq(cJSON_GetArraySize(response.initialize.status_lines), 201);
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

START_TEST(another_catalog_is_refused)
{
    target_start(&target);
    char *digit = &target.initialize.expected_catalog_sha256[10];
    *digit = *digit == '0' ? '1' : '0';
    expect_refusal("catalog-mismatch", target.campaign.catalog_sha256);
}
END_TEST

START_TEST(an_unknown_campaign_is_refused)
{
    target_start(&target);
    strcpy(target.initialize.campaign, "guest-isolation");
    target_ask(&target, &target.initialize, &response);
    ck_assert_int_eq(response.operation, HF_OP_ERROR);
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

START_TEST(a_backend_that_the_profile_has_not_is_refused)
{
    target_start(&target);
    strcpy(target.initialize.backend, "kvm");
    expect_refusal("backend-unknown", "no backend kvm");
}
END_TEST

START_TEST(a_state_directory_that_others_may_write_to_is_refused)
{
    target_command(&target, "mkdir state && chmod 0777 state");
    target_start(&target);
    expect_refusal("state-unsafe", "writable by nobody else");
}
END_TEST

/* Refused for the evidence, so that the controller quarantines the target, and not for a verify that failed. */
START_TEST(a_violation_during_verify_is_told_as_one)
{
    char *line;
    size_t length;
    target_write(target.control_dir, "state", target.state_dir);
    target_write(target.control_dir, "verify", "writes-canary");
    target_start(&target);
    expect_refusal("policy-violation", "oracles have evidence");
    line = hf_json_canonical(response.document, &length);
    ck_assert(hf_response_has_violation_evidence(line, length));
    free(line);
}
END_TEST

START_TEST(a_failed_verify_is_refused_with_what_it_said)
{
    target_write(target.control_dir, "verify", "fails");
    target_start(&target);
    expect_refusal("verify-failed", "kernel is not there");
}
END_TEST

/* Each row spoils an artifact or its provenance. */
struct spoiled_artifact {
    const char *command, *error_type, *part_of_error;
};

static const struct spoiled_artifact SPOILED[] = {
    {"rm guest/kernel", "artifact-unreadable", "kernel"},
    {": > guest/kernel", "artifact-empty", "kernel"},
    {"mv guest/kernel guest/k && ln -s k guest/kernel", "artifact-unreadable", "kernel"},
    {"rm guest/kernel && mkfifo guest/kernel", "digest-not-regular", "kernel"},
    {"echo more >> guest/kernel", "provenance-foreign", "kernel"},
    {"rm guest/kernel.provenance.json", "artifact-unreadable", "kernel_provenance"},
    {"echo '{}' > guest/kernel.provenance.json", "provenance-invalid", "kernel"},
    {"echo '{' > guest/kernel.provenance.json", "provenance-invalid", "kernel"},
    {"sed -i 's/\"schema_version\":1/\"schema_version\":2/' guest/kernel.provenance.json", "provenance-invalid",
     "kernel"},
    {"sed -i 's/\"size\":/\"size\":1/' guest/kernel.provenance.json", "provenance-foreign", "kernel"},
    {"sed -i 's/\"artifact\":\"kernel\"/\"artifact\":\"initramfs\"/' guest/kernel.provenance.json",
     "provenance-foreign", "kernel"},
    {"sed -i 's/debian-package/built/' guest/kernel.provenance.json", "provenance-invalid", "debian-package"},
    {"sed -i 's/\"kind\":\"built\"/\"kind\":\"debian-package\"/' guest/scenario_runner.provenance.json",
     "provenance-invalid", "built"},
    {"cp guest/kernel.provenance.json guest/scenario_runner.provenance.json", "provenance-foreign", "scenario_runner"},
    {"printf x >> source/bin/stub-scenario", "provenance-foreign", "scenario_runner"},
    {"sed -i 's,src/runner.c,../source/src/runner.c,' guest/scenario_runner.provenance.json", "provenance-invalid",
     "plain path"},
    {"sed -i 's,src/runner.c,/etc/passwd,' guest/scenario_runner.provenance.json", "provenance-invalid", "plain path"},
    {"sed -i 's,src/runner.c,src/other.c,' guest/scenario_runner.provenance.json", "provenance-stale", "src/other.c"},
};

START_TEST(an_artifact_or_provenance_that_is_not_right_is_refused_before_any_vm)
{
    target_command(&target, "%s", SPOILED[_i].command);
    target_start(&target);
    expect_refusal(SPOILED[_i].error_type, SPOILED[_i].part_of_error);
}
END_TEST

START_TEST(a_build_from_other_sources_is_stale)
{
    target_command(&target, "echo >> source/src/runner.c && git -C source -c user.name=t -c user.email=t@localhost "
                            "commit -qam change");
    target_read_commit(&target, "source", target.commit);
    target_start(&target);
    expect_refusal("provenance-stale", "src/runner.c");
}
END_TEST

START_TEST(a_baseline_that_does_not_boot_is_answered_with_its_record)
{
    target_write(target.control_dir, "boot", "exits-seven");
    target_start(&target);
    target_ask(&target, &target.initialize, &response);
    ck_assert_int_eq(response.operation, HF_OP_INITIALIZE);
    ck_assert(!response.initialize.passed);
    ck_assert_int_eq(response.initialize.baseline.category, HF_CATEGORY_TEST_FAILURE);
    ck_assert_int_eq(response.initialize.baseline.returncode, 7);
    ck_assert_int_eq(target_wait(&target, 10000), 1);
    target_expect_no_process(&target, 2000);
}
END_TEST

START_TEST(a_baseline_that_hangs_is_a_timeout)
{
    target_write(target.control_dir, "boot", "hangs");
    target_start(&target);
    target.initialize.baseline_timeout_seconds = 1;
    target_ask(&target, &target.initialize, &response);
    ck_assert(!response.initialize.passed);
    ck_assert_int_eq(response.initialize.baseline.category, HF_CATEGORY_TIMEOUT);
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

START_TEST(a_violation_during_the_baseline_fails_initialize)
{
    target_write(target.control_dir, "boot", "writes-canary");
    target_start(&target);
    target_ask(&target, &target.initialize, &response);
    ck_assert(!response.initialize.passed);
    ck_assert(!response.initialize.oracles.host_canary_intact);
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor initialize");
    TCase *tcase = tcase_create("stub profile");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, another_source_commit_is_refused);
    tcase_add_test(tcase, a_tree_that_is_no_work_tree_of_its_own_is_refused);
    tcase_add_test(tcase, another_vmm_is_refused);
    tcase_add_loop_test(tcase, a_modified_target_is_refused_where_a_clean_one_is_required, 0,
                        sizeof DIRT / sizeof DIRT[0]);
    tcase_add_test(tcase, configuration_of_the_user_cannot_hide_a_modification);
    tcase_add_test(tcase, a_modified_tree_is_reported_where_a_clean_one_is_not_required);
    tcase_add_test(tcase, the_list_of_modifications_is_bounded);
    tcase_add_test(tcase, another_catalog_is_refused);
    tcase_add_test(tcase, an_unknown_campaign_is_refused);
    tcase_add_test(tcase, a_backend_that_the_profile_has_not_is_refused);
    tcase_add_test(tcase, a_state_directory_that_others_may_write_to_is_refused);
    tcase_add_test(tcase, a_violation_during_verify_is_told_as_one);
    tcase_add_test(tcase, a_failed_verify_is_refused_with_what_it_said);
    tcase_add_loop_test(tcase, an_artifact_or_provenance_that_is_not_right_is_refused_before_any_vm, 0,
                        sizeof SPOILED / sizeof SPOILED[0]);
    tcase_add_test(tcase, a_build_from_other_sources_is_stale);
    tcase_add_test(tcase, a_baseline_that_does_not_boot_is_answered_with_its_record);
    tcase_add_test(tcase, a_baseline_that_hangs_is_a_timeout);
    tcase_add_test(tcase, a_violation_during_the_baseline_fails_initialize);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
