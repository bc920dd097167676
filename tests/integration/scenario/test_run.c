/* Each scenario end to end on TCG: it holds, its documents say what was checked, and nothing is left of its VMs. */
#include "tests/integration/scenario/harness.h"

#include "common/cleanup.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct sandbox sandbox;
static struct hf_child_output output;
static cJSON *outcome;

static void set_up(void)
{
    sandbox_create(&sandbox);
    output = (struct hf_child_output){0};
    outcome = NULL;
}

static void tear_down(void)
{
    cJSON_Delete(outcome);
    hf_child_output_clear(&output);
    sandbox_remove(&sandbox);
}

static void assert_all_true(const cJSON *teardown)
{
    const cJSON *field = NULL;
    ck_assert_int_ge(cJSON_GetArraySize(teardown), 7);
    cJSON_ArrayForEach(field, teardown) ck_assert_msg(cJSON_IsTrue(field), "teardown.%s is not true", field->string);
}

/* For the message of a failed test: which checks were broken. */
static void print_broken_checks(void)
{
    cleanup_json cJSON *failed = read_document(sandbox.output, "outcome.json");
    const cJSON *check = NULL;
    cJSON_ArrayForEach(check, hf_json_get(hf_json_get(failed, "policy_report"), "checks"))
    {
        if (!hf_json_get_bool_or(check, "held", false))
            fprintf(stderr, "broken: %s: expected %s, seen %s\n", hf_json_get_string(check, "name"),
                    hf_json_get_string(check, "expected"), hf_json_get_string(check, "seen"));
    }
}

/* What every outcome.json of a scenario that held has in common. */
static void assert_passed(const char *scenario, int vm_count)
{
    unsigned alive = 0;
    const cJSON *item = NULL;
    if (output.report.exited && output.report.exit_code == 1)
        print_broken_checks();
    ck_assert_msg(output.report.exited && output.report.exit_code == 0, "exit status %d: %s", output.report.exit_code,
                  output.stderr_bytes);
    ck_assert(output.report.teardown_complete);
    ck_assert_uint_eq(output.report.descendants_killed, 0);
    outcome = read_document(sandbox.output, "outcome.json");
    ck_assert_int_eq(hf_json_get_int_or(outcome, "schema_version", 0), 1);
    ck_assert_str_eq(hf_json_get_string(outcome, "scenario"), scenario);
    ck_assert_str_eq(hf_json_get_string(outcome, "backend"), "tcg");
    ck_assert_str_eq(hf_json_get_string(outcome, "status"), "passed");
    ck_assert(cJSON_IsNull(hf_json_get(outcome, "error")));
    const cJSON *policy = hf_json_get(outcome, "policy_report");
    ck_assert_int_eq(hf_json_get_int_or(policy, "broken", -1), 0);
    cJSON_ArrayForEach(item, hf_json_get(policy, "checks")) ck_assert(hf_json_get_bool_or(item, "held", false));
    assert_all_true(hf_json_get(outcome, "teardown"));
    ck_assert_int_eq(cJSON_GetArraySize(hf_json_get(outcome, "vms")), vm_count);
    cJSON_ArrayForEach(item, hf_json_get(outcome, "vms")) assert_all_true(hf_json_get(item, "teardown"));
    ck_assert_uint_eq(journaled_vms(&sandbox, &alive), (unsigned)vm_count);
    ck_assert_uint_eq(alive, 0);
}

static const cJSON *checks(void)
{
    return hf_json_get(hf_json_get(outcome, "policy_report"), "checks");
}

static void assert_checked(const char *phase, const char *name)
{
    ck_assert_msg(find_check(checks(), phase, name) != NULL, "no check %s in phase %s", name, phase);
}

static const char *classification(int vm)
{
    return hf_json_get_string(cJSON_GetArrayItem(hf_json_get(outcome, "vms"), vm), "classification");
}

static void run(const char *scenario)
{
    run_scenario(&sandbox, scenario, "tcg", "120", &output);
}

START_TEST(boot_boots_pings_and_powers_off)
{
    run("boot");
    assert_passed("boot", 1);
    assert_checked("boot", "ready-marker");
    assert_checked("boot", "control-ping");
    ck_assert_str_eq(classification(0), "clean-poweroff");
    ck_assert_ptr_nonnull(strstr(output.stdout_bytes, "holdfast-guest ready"));
}
END_TEST

START_TEST(lifecycle_tells_five_ends_apart)
{
    static const char *const ends[] = {"clean-poweroff", "guest-panic", "triple-fault", "guest-reset", "vmm-killed"};
    run("lifecycle");
    assert_passed("lifecycle", 5);
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(classification(i), ends[i]);
    assert_checked(NULL, "ends-told-apart");
}
END_TEST

START_TEST(console_exit_keeps_exactly_what_it_must)
{
    static const char *const names[] = {"back-pressure", "flood-exact", "bound-exact",
                                        "last-words",    "exit-status", "last-words-read-late"};
    struct stat status;
    char path[160];
    run("console-exit");
    assert_passed("console-exit", 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_checked("flood-and-exit", names[i]);
    snprintf(path, sizeof path, "%s/serial-1.log", sandbox.output);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 64 << 10);
}
END_TEST

START_TEST(virtio_net_counts_on_both_sides)
{
    static const char *const names[] = {"from-guest",
                                        "from-guest-runt-header-only",
                                        "from-guest-jumbo-largest",
                                        "from-guest-bad-udp-checksum",
                                        "from-guest-flood-full",
                                        "duplex-from-guest",
                                        "guest-every-class-received",
                                        "guest-frames-without-header-dropped",
                                        "guest-bad-ip-checksums-rejected",
                                        "guest-duplex-flood-received"};
    run("virtio-net");
    assert_passed("virtio-net", 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_checked("frames", names[i]);
}
END_TEST

START_TEST(smp_lapic_looks_at_two_and_four_processors)
{
    static const char *const phases[] = {"two-processors", "four-processors"};
    static const char *const names[] = {"vmm-processors",         "vmm-processor-time",
                                        "guest-topology",         "guest-timer-progress",
                                        "guest-wake-up-progress", "guest-call-interrupts",
                                        "guest-offline-online",   "guest-no-starvation",
                                        "guest-timer-interrupts", "guest-no-starvation-after-churn"};
    run("smp-lapic");
    assert_passed("smp-lapic", 2);
    for (int phase = 0; phase < 2; phase++)
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            assert_checked(phases[phase], names[i]);
}
END_TEST

START_TEST(structured_outcome_accepts_each_class_and_refuses_the_rest)
{
    static const char *const ends[] = {"guest-exit", "guest-exit", "guest-panic",
                                       "timeout",    "vmm-killed", "clean-poweroff"};
    const cJSON *candidate = NULL;
    struct stat status;
    run("structured-outcome");
    assert_passed("structured-outcome", 6);
    for (int i = 0; i < 6; i++)
        ck_assert_str_eq(classification(i), ends[i]);
    cleanup_json cJSON *accepted = read_document(sandbox.output, "structured-outcome.json");
    assert_all_true(hf_json_get(accepted, "teardown"));
    ck_assert_str_eq(hf_json_get_string(accepted, "status"), "passed");
    ck_assert_int_eq(cJSON_GetArraySize(hf_json_get(accepted, "runs")), 6);
    cleanup_json cJSON *rejected = read_document(sandbox.output, "structured-outcome-rejected.json");
    assert_all_true(hf_json_get(rejected, "teardown"));
    ck_assert_str_eq(hf_json_get_string(rejected, "status"), "rejected");
    ck_assert_int_eq(cJSON_GetArraySize(hf_json_get(rejected, "candidates")), 15);
    cJSON_ArrayForEach(candidate, hf_json_get(rejected, "candidates"))
    {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", sandbox.output, hf_json_get_string(candidate, "file"));
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_int_eq(status.st_size, hf_json_get_int_or(candidate, "size_bytes", -1));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scenario_run");
    TCase *tcase = tcase_create("run");
    tcase_set_timeout(tcase, 900);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, boot_boots_pings_and_powers_off);
    tcase_add_test(tcase, lifecycle_tells_five_ends_apart);
    tcase_add_test(tcase, console_exit_keeps_exactly_what_it_must);
    tcase_add_test(tcase, virtio_net_counts_on_both_sides);
    tcase_add_test(tcase, smp_lapic_looks_at_two_and_four_processors);
    tcase_add_test(tcase, structured_outcome_accepts_each_class_and_refuses_the_rest);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
