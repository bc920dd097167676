/* The built-in `qemu` profile on TCG, with the kernel, initramfs and scenario runner of this build: a whole
 * conversation. */
#include "common/cleanup.h"
#include "common/json.h"
#include "tests/integration/executor/target.h"
#include "tests/run_suite.h"

#include <check.h>
#include <string.h>

static struct target target;
static struct hf_response response;

static void setup(void)
{
    memset(&response, 0, sizeof response);
    target_create_from_build(&target, "guest-isolation");
    target_start(&target);
}

static void teardown(void)
{
    hf_response_clear(&response);
    target_destroy(&target);
}

static int64_t recorded_duration_ms(const char *dispatch)
{
    char path[256];
    const struct hf_json_limits limits = {.max_bytes = 1 << 20, .max_depth = 8};
    snprintf(path, sizeof path, "%s/dispatch.json", dispatch);
    cleanup_free char *text = target_read_file(&target, path);
    cleanup_json cJSON *record = hf_json_parse(text, strlen(text), &limits, NULL);
    return hf_json_get_int_or(record, "duration_ms", -1);
}

START_TEST(a_case_runs_on_real_vms_from_initialize_to_shutdown)
{
    target.initialize.phase_timeout_seconds = 60;
    target.initialize.baseline_timeout_seconds = 120;
    target_initialize(&target, &response);
    ck_assert(hf_boot_record_clean(&response.initialize.baseline));
    hf_response_clear(&response);

    struct hf_request execute = target_request(&target, HF_OP_EXECUTE);
    execute.sequence = 1;
    execute.timeout_seconds = 240;
    strcpy(execute.case_id, "vmm-lifecycle-boundary");
    target_ask(&target, &execute, &response);
    ck_assert_int_eq(response.operation, HF_OP_EXECUTE);
    ck_assert_msg(response.execute.category == HF_CATEGORY_PASSED, "%s: %s",
                  hf_category_name(response.execute.category), response.execute.error);
    ck_assert_str_ne(response.execute.stdout_b64, "");
    /* What the executor adds to the VM's own time: sampling, reading, hashing, recording. */
    int64_t added_ms = response.execute.duration_ms - recorded_duration_ms("cases/001-vmm-lifecycle-boundary/rep-1") -
                       recorded_duration_ms("cases/001-vmm-lifecycle-boundary/rep-2");
    ck_assert_int_ge(added_ms, 0);
    ck_assert_int_lt(added_ms, 2000);
    hf_response_clear(&response);

    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    target_ask(&target, &finalize, &response);
    ck_assert_int_eq(response.finalize.status, HF_FINALIZE_PASSED);
    ck_assert(hf_boot_record_clean(&response.finalize.post_campaign));
    hf_response_clear(&response);
    target_shut_down(&target);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor on VMs");
    TCase *tcase = tcase_create("qemu profile, tcg");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 280);
    tcase_add_test(tcase, a_case_runs_on_real_vms_from_initialize_to_shutdown);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
