/* Whole conversations with a real holdfast-executor over pipes: what a healthy campaign looks like on the wire and on
 * disk. */
#include "common/cleanup.h"
#include "tests/integration/executor/target.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct target target;
static struct hf_response response;

static void setup(void)
{
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
    ck_assert(!initialized->dirty && !initialized->vmm_dirty);
    ck_assert(hf_boot_record_clean(&initialized->baseline));
    ck_assert_int_eq(initialized->verify_returncode, 0);
    hf_response_clear(&response);

    target_execute(&target, 1, "passes", &response);
    ck_assert_int_eq(response.execute.category, HF_CATEGORY_PASSED);
    ck_assert_str_eq(response.execute.stdout_b64, "c3R1YiBjb25zb2xlCg==");
    ck_assert(!response.execute.stdout_truncated);
    hf_response_clear(&response);
    ck_assert(target_has_file(&target, "cases/001-passes/rep-2/dispatch.json"));

    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    target_ask(&target, &finalize, &response);
    ck_assert_int_eq(response.finalize.status, HF_FINALIZE_PASSED);
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor conversation");
    TCase *tcase = tcase_create("stub profile");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_healthy_campaign_passes_from_initialize_to_shutdown);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
