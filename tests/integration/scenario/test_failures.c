/*
 * The scenarios must be able to fail: here each one is run against a peer, a device or a guest that really misbehaves,
 * and has to report the right check as broken. The plans are the shipped ones; only `prepare` or a device is replaced.
 */
#include "tests/integration/scenario/harness.h"

#include "common/cleanup.h"
#include "executor/scenario/report.h"
#include "executor/scenario/scenarios.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct sandbox sandbox;
static struct hf_pid_journal pids;
static struct hf_run run;
static int output_fd;

static void set_up(void)
{
    struct hf_run_options options = {.backend = HF_VM_TCG,
                                     .scenario = "test",
                                     .memory_mib = 256,
                                     .timeout_ms = PHASE_TIMEOUT_SECONDS * 1000,
                                     .seed = 7};
    snprintf(options.kernel, sizeof options.kernel, "%s/vmlinuz", guest_dir());
    snprintf(options.initramfs, sizeof options.initramfs, "%s/initramfs.cpio", guest_dir());
    sandbox_create(&sandbox);
    ck_assert_int_eq(mkdir(sandbox.output, 0700), 0);
    output_fd = open(sandbox.output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(hf_pid_journal_open(&pids, NULL, NULL), 0);
    const struct hf_vm_host host = {
        .qemu_path = "/usr/bin/qemu-system-x86_64", .output_dirfd = output_fd, .interrupt_fd = -1, .pids = &pids};
    hf_run_init(&run, &options, &host);
}

static void tear_down(void)
{
    hf_run_clear(&run);
    hf_pid_journal_close(&pids);
    close(output_fd);
    sandbox_remove(&sandbox);
}

/* Runs one phase and asserts that it failed, yet left nothing behind. */
static void run_failing(const struct hf_phase_plan *plan)
{
    ck_assert_int_eq(hf_run_phases(&run, plan, 1), -1);
    ck_assert(!hf_report_passed(&run));
    ck_assert(hf_vm_teardown_complete(&run.teardown));
}

static void assert_broken(const char *phase, const char *name)
{
    const cJSON *check = find_check(run.checks, phase, name);
    ck_assert_msg(check != NULL, "no check %s in phase %s", name, phase);
    ck_assert_msg(!hf_json_get_bool_or(check, "held", true), "check %s held: %s", name,
                  hf_json_get_string(check, "seen"));
}

static void assert_held(const char *phase, const char *name)
{
    const cJSON *check = find_check(run.checks, phase, name);
    ck_assert_msg(check != NULL, "no check %s in phase %s", name, phase);
    ck_assert_msg(hf_json_get_bool_or(check, "held", false), "check %s: %s", name, hf_json_get_string(check, "seen"));
}

/* --- virtio-net: a wire that loses, doubles or damages --- */

static struct hf_vm_network_peer honest;
static unsigned frames_passed;

static int lose_one_frame(void *context, const uint8_t *frame, size_t count, struct hf_error *err)
{
    return ++frames_passed == 200 ? 0 : honest.receive(context, frame, count, err);
}

static int double_one_frame(void *context, const uint8_t *frame, size_t count, struct hf_error *err)
{
    if (++frames_passed == 200 && honest.receive(context, frame, count, err))
        return -1;
    return honest.receive(context, frame, count, err);
}

static size_t damage_one_frame(void *context, uint8_t *frame, size_t capacity)
{
    size_t length = honest.transmit(context, frame, capacity);
    if (length > 100 && ++frames_passed == 50)
        frame[length - 1] ^= 0x01;
    return length;
}

static int prepare_losing(struct hf_phase *phase, struct hf_error *err)
{
    int result = hf_virtio_net_plan.prepare(phase, err);
    honest = phase->peer;
    phase->peer.receive = lose_one_frame;
    return result;
}

static int prepare_doubling(struct hf_phase *phase, struct hf_error *err)
{
    int result = hf_virtio_net_plan.prepare(phase, err);
    honest = phase->peer;
    phase->peer.receive = double_one_frame;
    return result;
}

static int prepare_damaging(struct hf_phase *phase, struct hf_error *err)
{
    int result = hf_virtio_net_plan.prepare(phase, err);
    honest = phase->peer;
    phase->peer.transmit = damage_one_frame;
    return result;
}

START_TEST(a_frame_lost_on_the_way_to_the_host_is_reported)
{
    struct hf_phase_plan plan = hf_virtio_net_plan;
    plan.prepare = prepare_losing;
    frames_passed = 0;
    run_failing(&plan);
    assert_broken("frames", "from-guest");
    assert_held("frames", "guest-every-class-sent");
}
END_TEST

START_TEST(a_doubled_frame_is_reported)
{
    struct hf_phase_plan plan = hf_virtio_net_plan;
    plan.prepare = prepare_doubling;
    frames_passed = 0;
    run_failing(&plan);
    assert_broken("frames", "from-guest");
}
END_TEST

START_TEST(a_frame_damaged_on_the_way_to_the_guest_is_reported)
{
    struct hf_phase_plan plan = hf_virtio_net_plan;
    plan.prepare = prepare_damaging;
    frames_passed = 0;
    run_failing(&plan);
    assert_held("frames", "from-guest");
    assert_broken("frames", "probe-virtio-net");
    assert_broken("frames", "guest-every-class-received");
}
END_TEST

/* --- console-exit: a console that loses a byte, a VMM killed in the middle --- */

static hf_vm_sink honest_sink;
static uint64_t console_bytes;

static int lose_one_byte(void *context, const uint8_t *bytes, size_t count, struct hf_error *err)
{
    enum { LOST_AT = 100000 }; /* within the flood */
    uint64_t before = console_bytes;
    console_bytes += count;
    if (before > LOST_AT || console_bytes <= LOST_AT)
        return honest_sink(context, bytes, count, err);
    size_t at = (size_t)(LOST_AT - before);
    return honest_sink(context, bytes, at, err) ? -1 : honest_sink(context, bytes + at + 1, count - at - 1, err);
}

static int prepare_lossy_console(struct hf_phase *phase, struct hf_error *err)
{
    int result = hf_console_exit_plan.prepare(phase, err);
    honest_sink = phase->spec.console_sink;
    phase->spec.console_sink = lose_one_byte;
    /* with a byte too few the flood never is complete: the phase timeout must end the waiting */
    phase->spec.timeout_ms = 30000;
    return result;
}

START_TEST(one_byte_lost_on_the_console_is_reported)
{
    struct hf_phase_plan plan = hf_console_exit_plan;
    plan.prepare = prepare_lossy_console;
    console_bytes = 0;
    run_failing(&plan);
    assert_broken("flood-and-exit", "completed");
}
END_TEST

static int kill_in_the_middle(struct hf_phase *phase, struct hf_error *err)
{
    return hf_phase_boot(phase, err) || hf_vm_kill(&phase->vm, err) ? -1 : hf_console_exit_plan.script(phase, err);
}

START_TEST(a_vmm_killed_early_is_reported_as_killed)
{
    struct hf_phase_plan plan = hf_console_exit_plan;
    plan.script = kill_in_the_middle;
    run_failing(&plan);
    assert_broken("flood-and-exit", "completed");
    assert_broken("flood-and-exit", "exit-classification");
    const char *seen = hf_json_get_string(find_check(run.checks, "flood-and-exit", "exit-classification"), "seen");
    ck_assert_str_eq(seen, "vmm-killed");
}
END_TEST

START_TEST(a_wrong_exit_status_is_reported)
{
    struct hf_phase_plan plan = hf_lifecycle_plans[0];
    plan.expected_end = HF_VM_END_DEBUG_EXIT;
    plan.exit_code = 33;
    run_failing(&plan);
    assert_broken("clean-poweroff", "exit-classification");
    assert_broken("clean-poweroff", "exit-status");
}
END_TEST

/* --- missing devices: a probe that cannot run never counts as held --- */

START_TEST(without_a_network_device_the_probe_cannot_run)
{
    struct hf_phase_plan plan = hf_virtio_net_plan;
    plan.devices.network = false;
    run_failing(&plan);
    assert_broken("frames", "completed");
    ck_assert_str_eq(run.error.code, "guest-refused");
    ck_assert_str_eq(run.error.field, "probe-cannot-run");
}
END_TEST

START_TEST(without_a_panic_device_a_panic_is_no_panic_event)
{
    struct hf_phase_plan plan = hf_lifecycle_plans[1];
    plan.devices.panic_device = false;
    run_failing(&plan);
    assert_broken("panic", "exit-classification");
}
END_TEST

static int prepare_one_processor(struct hf_phase *phase, struct hf_error *err)
{
    (void)err;
    phase->spec.machine.processors = 1;
    return 0;
}

START_TEST(a_missing_processor_is_reported)
{
    struct hf_phase_plan plan = hf_smp_lapic_plans[0];
    plan.prepare = prepare_one_processor;
    run_failing(&plan);
    assert_broken("two-processors", "completed");
    ck_assert_str_eq(run.error.field, "probe-cannot-run");
}
END_TEST

static int prepare_more_processors(struct hf_phase *phase, struct hf_error *err)
{
    (void)err;
    phase->spec.machine.processors = 3;
    return 0;
}

START_TEST(a_processor_too_many_is_reported_by_both_views)
{
    struct hf_phase_plan plan = hf_smp_lapic_plans[0];
    plan.prepare = prepare_more_processors;
    run_failing(&plan);
    assert_broken("two-processors", "guest-topology");
    assert_broken("two-processors", "vmm-processors");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scenario_failures");
    TCase *tcase = tcase_create("failures");
    tcase_set_timeout(tcase, 900);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_frame_lost_on_the_way_to_the_host_is_reported);
    tcase_add_test(tcase, a_doubled_frame_is_reported);
    tcase_add_test(tcase, a_frame_damaged_on_the_way_to_the_guest_is_reported);
    tcase_add_test(tcase, one_byte_lost_on_the_console_is_reported);
    tcase_add_test(tcase, a_vmm_killed_early_is_reported_as_killed);
    tcase_add_test(tcase, a_wrong_exit_status_is_reported);
    tcase_add_test(tcase, without_a_network_device_the_probe_cannot_run);
    tcase_add_test(tcase, without_a_panic_device_a_panic_is_no_panic_event);
    tcase_add_test(tcase, a_missing_processor_is_reported);
    tcase_add_test(tcase, a_processor_too_many_is_reported_by_both_views);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
