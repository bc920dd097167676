/*
 * The VM library on the kernel-shaped stub (guest/stub): real QEMU, real sockets, a tenth of a second per boot. Each
 * way a guest can end is classified, on TCG and, where /dev/kvm exists, on KVM; nothing is left behind by any of them.
 */
#include "executor/scenario/vm/vm.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define STUB_MARKER     "holdfast-stub ready"
#define LONG_TIMEOUT_MS 60000 /* far beyond what a boot takes on a busy machine */

static char directory[64], stub_path[4096];
static int output_fd, interrupt_fd;
static struct hf_pid_journal pids;
static struct hf_vm_host host;
static struct hf_vm vm;

static void set_up(void)
{
    const char *guest_dir = getenv("HF_GUEST_DIR");
    ck_assert_msg(guest_dir != NULL, "HF_GUEST_DIR must name the directory with stub.bzImage");
    snprintf(stub_path, sizeof stub_path, "%s/stub.bzImage", guest_dir);
    ck_assert_msg(access(stub_path, R_OK) == 0, "%s is missing: build the target 'guest'", stub_path);
    strcpy(directory, "/tmp/hf-stub-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    output_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    char journal[96];
    snprintf(journal, sizeof journal, "%s/pids", directory);
    ck_assert_int_eq(hf_pid_journal_open(&pids, journal, NULL), 0);
    host = (struct hf_vm_host){.qemu_path = "/usr/bin/qemu-system-x86_64",
                               .output_dirfd = output_fd,
                               .interrupt_fd = interrupt_fd,
                               .pids = &pids};
    hf_vm_init(&vm);
}

static void tear_down(void)
{
    static const char *const files[] = {"serial-1.log", "qmp-1.log", "control-1.log", "qemu-1.stderr.log", "pids"};
    hf_vm_clear(&vm);
    hf_pid_journal_close(&pids);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlinkat(output_fd, files[i], 0);
    close(output_fd);
    close(interrupt_fd);
    ck_assert_msg(rmdir(directory) == 0, "the VM left something in its output directory");
}

static struct hf_vm_spec spec_for(enum hf_vm_backend backend, const char *behaviour, uint64_t timeout_ms)
{
    return (struct hf_vm_spec){.machine = {.backend = backend,
                                           .memory_mib = 128,
                                           .processors = 1,
                                           .kernel = stub_path,
                                           .append = behaviour,
                                           .devices = {.debug_exit = true}},
                               .index = 1,
                               .timeout_ms = timeout_ms,
                               .ready_marker = STUB_MARKER};
}

static void start(const struct hf_vm_spec *spec)
{
    struct hf_error err = {0};
    ck_assert_msg(hf_vm_start(&vm, &host, spec, &err) == 0 && hf_vm_trace_exits(&vm, &err) == 0 &&
                      hf_vm_resume(&vm, &err) == 0,
                  "%s", err.message);
}

static void await_end(void)
{
    struct hf_error err = {0};
    ck_assert_msg(hf_vm_await_end(&vm, &err) == 0, "%s", err.message);
}

static void assert_ended(enum hf_vm_end expected)
{
    struct hf_vm_teardown teardown = hf_vm_check_teardown(&vm);
    ck_assert_msg(hf_vm_end(&vm) == expected, "expected %s, got %s", hf_vm_end_name(expected),
                  hf_vm_end_name(hf_vm_end(&vm)));
    ck_assert(hf_vm_teardown_complete(&teardown));
}

/* A backend that exists must work. Without /dev/kvm there is nothing to test, which is said aloud. */
static bool usable(enum hf_vm_backend backend)
{
    if (backend == HF_VM_TCG || access("/dev/kvm", F_OK) == 0)
        return true;
    fprintf(stderr, "no /dev/kvm on this machine: nothing tested on KVM\n");
    return false;
}

static const struct {
    enum hf_vm_backend backend;
    const char *behaviour;
    enum hf_vm_end end;
    int exit_code;
    uint64_t timeout_ms;
} ends[] = {
    {HF_VM_TCG, "stub=exit", HF_VM_END_DEBUG_EXIT, 33, LONG_TIMEOUT_MS},
    {HF_VM_TCG, "stub=exit:53", HF_VM_END_DEBUG_EXIT, 107, LONG_TIMEOUT_MS},
    {HF_VM_TCG, "stub=flood:5000", HF_VM_END_DEBUG_EXIT, 33, LONG_TIMEOUT_MS},
    {HF_VM_TCG, "stub=triple", HF_VM_END_TRIPLE_FAULT, 0, LONG_TIMEOUT_MS},
    {HF_VM_TCG, "stub=reset", HF_VM_END_RESET, 0, LONG_TIMEOUT_MS},
    {HF_VM_TCG, "stub=poweroff", HF_VM_END_POWEROFF, 0, LONG_TIMEOUT_MS},
    {HF_VM_TCG, "stub=hang", HF_VM_END_TIMEOUT, 0, 2000},
    {HF_VM_TCG, "stub=silent", HF_VM_END_TIMEOUT, 0, 2000},
    {HF_VM_KVM, "stub=exit", HF_VM_END_DEBUG_EXIT, 33, LONG_TIMEOUT_MS},
    {HF_VM_KVM, "stub=exit:53", HF_VM_END_DEBUG_EXIT, 107, LONG_TIMEOUT_MS},
    {HF_VM_KVM, "stub=flood:5000", HF_VM_END_DEBUG_EXIT, 33, LONG_TIMEOUT_MS},
    {HF_VM_KVM, "stub=reset", HF_VM_END_RESET, 0, LONG_TIMEOUT_MS},
    {HF_VM_KVM, "stub=poweroff", HF_VM_END_POWEROFF, 0, LONG_TIMEOUT_MS},
    {HF_VM_KVM, "stub=hang", HF_VM_END_TIMEOUT, 0, 2000},
};

START_TEST(each_end_is_told_apart)
{
    if (!usable(ends[_i].backend))
        return;
    struct hf_vm_spec spec = spec_for(ends[_i].backend, ends[_i].behaviour, ends[_i].timeout_ms);
    start(&spec);
    await_end();
    assert_ended(ends[_i].end);
    if (ends[_i].end == HF_VM_END_DEBUG_EXIT)
        ck_assert_int_eq(vm.report.exit_code, ends[_i].exit_code);
}
END_TEST

START_TEST(a_killed_vmm_is_told_from_a_stopped_one)
{
    struct hf_error err = {0};
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=hang", LONG_TIMEOUT_MS);
    start(&spec);
    ck_assert_msg(hf_vm_wait_ready(&vm, &err) == 0, "%s", err.message);
    if (_i == 0) {
        ck_assert_int_eq(hf_vm_kill(&vm, &err), 0);
        await_end();
        assert_ended(HF_VM_END_KILLED);
    } else {
        hf_vm_stop(&vm, HF_VM_STOP_WANTED);
        assert_ended(HF_VM_END_STOPPED);
    }
}
END_TEST

START_TEST(the_pid_is_recorded_before_the_guest_runs)
{
    char line[128] = "", expected[64];
    struct hf_error err = {0};
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=exit", LONG_TIMEOUT_MS);
    ck_assert_msg(hf_vm_start(&vm, &host, &spec, &err) == 0, "%s", err.message);
    cleanup_close int fd = openat(output_fd, "pids", O_RDONLY | O_CLOEXEC);
    ck_assert_int_gt(read(fd, line, sizeof line - 1), 0);
    snprintf(expected, sizeof expected, "{\"pid\":%d,", (int)vm.process.pid);
    ck_assert_int_eq(strncmp(line, expected, strlen(expected)), 0);
    ck_assert(hf_process_alive(&vm.process));
    ck_assert(!vm.resumed);
    ck_assert_uint_eq(vm.serial_log.total_bytes, 0);
}
END_TEST

START_TEST(a_pid_that_cannot_be_recorded_starts_no_guest)
{
    struct hf_error err = {0};
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=exit", LONG_TIMEOUT_MS);
    pids.journal.failed = true; /* as after a full disk */
    ck_assert_int_eq(hf_vm_start(&vm, &host, &spec, &err), -1);
    ck_assert_str_eq(err.code, "storage-failed");
    hf_vm_stop(&vm, HF_VM_STOP_WANTED);
    ck_assert(!vm.resumed);
    ck_assert_uint_eq(vm.serial_log.total_bytes, 0);
}
END_TEST

START_TEST(a_guest_that_says_nothing_ends_the_waiting_in_time)
{
    struct hf_error err = {0};
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=silent", 2000);
    uint64_t begin = hf_clock_mono_ms();
    start(&spec);
    ck_assert_int_eq(hf_vm_wait_ready(&vm, &err), -1);
    ck_assert_str_eq(err.code, "vm-timeout");
    ck_assert_uint_ge(hf_clock_mono_ms() - begin, 2000);
    ck_assert_uint_lt(hf_clock_mono_ms() - begin, 2000 + 3000);
}
END_TEST

START_TEST(an_end_before_the_marker_is_told_at_once)
{
    struct hf_error err = {0};
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=exit", LONG_TIMEOUT_MS);
    spec.ready_marker = "never printed";
    start(&spec);
    ck_assert_int_eq(hf_vm_wait_ready(&vm, &err), -1);
    ck_assert_str_eq(err.code, "vm-ended");
}
END_TEST

START_TEST(a_kernel_that_is_none_never_runs)
{
    struct hf_error err = {0};
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=exit", LONG_TIMEOUT_MS);
    spec.machine.kernel = "/proc/self/status";
    ck_assert_int_eq(hf_vm_start(&vm, &host, &spec, &err), -1);
    ck_assert_str_eq(err.code, "vm-never-ran");
    hf_vm_stop(&vm, HF_VM_STOP_WANTED);
    assert_ended(HF_VM_END_NEVER_RAN);
}
END_TEST

START_TEST(a_qemu_that_is_missing_is_named)
{
    struct hf_error err = {0};
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=exit", LONG_TIMEOUT_MS);
    host.qemu_path = "/nonexistent/qemu";
    ck_assert_int_eq(hf_vm_start(&vm, &host, &spec, &err), -1);
    ck_assert_str_eq(err.code, "vm-never-ran");
    ck_assert_ptr_nonnull(strstr(err.message, "/nonexistent/qemu"));
}
END_TEST

START_TEST(an_interruption_ends_a_hanging_guest_quickly)
{
    struct hf_error err = {0};
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=hang", LONG_TIMEOUT_MS);
    start(&spec);
    ck_assert_int_eq(hf_vm_wait_ready(&vm, &err), 0);
    ck_assert_int_eq(eventfd_write(interrupt_fd, 1), 0);
    uint64_t begin = hf_clock_mono_ms();
    ck_assert_int_eq(hf_vm_await_end(&vm, &err), -1);
    ck_assert_str_eq(err.code, "interrupted");
    hf_vm_stop(&vm, HF_VM_STOP_INTERRUPT);
    ck_assert_uint_lt(hf_clock_mono_ms() - begin, 3000);
    assert_ended(HF_VM_END_INTERRUPTED);
}
END_TEST

START_TEST(a_console_is_kept_to_its_bound_and_counted_beyond)
{
    char kept[256];
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=flood:5000", LONG_TIMEOUT_MS);
    spec.console_bound_bytes = 100;
    start(&spec);
    await_end();
    ck_assert_uint_eq(vm.serial_log.stored_bytes, 100);
    ck_assert_uint_eq(vm.serial_log.total_bytes, strlen(STUB_MARKER) + 1 + 5000);
    cleanup_close int fd = openat(output_fd, "serial-1.log", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(read(fd, kept, sizeof kept), 100);
    ck_assert_int_eq(memcmp(kept, STUB_MARKER "\n", strlen(STUB_MARKER) + 1), 0);
    for (size_t i = strlen(STUB_MARKER) + 1, n = 0; i < 100; i++, n++)
        ck_assert_int_eq(kept[i], (n & 63) == 63 ? '\n' : (char)('A' + (n & 15)));
}
END_TEST

START_TEST(what_is_written_while_nobody_reads_is_still_there_after_the_end)
{
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=flood:100", LONG_TIMEOUT_MS);
    ck_assert_int_eq(hf_vm_start(&vm, &host, &spec, NULL), 0);
    vm.hold_console = true;
    ck_assert_int_eq(hf_vm_resume(&vm, NULL), 0);
    await_end();
    uint64_t read_before = vm.serial_log.total_bytes;
    vm.hold_console = false;
    await_end();
    ck_assert_uint_eq(read_before, 0);
    ck_assert_uint_eq(vm.serial_log.total_bytes, strlen(STUB_MARKER) + 1 + 100);
    assert_ended(HF_VM_END_DEBUG_EXIT);
}
END_TEST

static int refuse_console(void *context, const uint8_t *bytes, size_t count, struct hf_error *err)
{
    (void)context, (void)bytes, (void)count;
    return hf_error_set(err, "test-refused", 0, "", "refused");
}

START_TEST(a_vm_is_drained_even_when_its_consumer_fails)
{
    struct hf_error err = {0};
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=flood:100000", LONG_TIMEOUT_MS);
    spec.console_sink = refuse_console;
    start(&spec);
    ck_assert_int_eq(hf_vm_await_end(&vm, &err), -1);
    ck_assert_str_eq(err.code, "test-refused");
    hf_vm_stop(&vm, HF_VM_STOP_WANTED);
    assert_ended(HF_VM_END_STOPPED);
}
END_TEST

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    cleanup_dir DIR *fds = opendir("/proc/self/fd");
    while (readdir(fds))
        count++;
    return count;
}

START_TEST(no_descriptor_leaks)
{
    unsigned before = open_descriptors();
    struct hf_vm_spec spec = spec_for(HF_VM_TCG, "stub=exit", LONG_TIMEOUT_MS);
    spec.machine.devices = (struct hf_vm_devices){true, true, true, true};
    start(&spec);
    await_end();
    hf_vm_clear(&vm);
    ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scenario_vm_stub");
    TCase *tcase = tcase_create("stub");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, each_end_is_told_apart, 0, sizeof ends / sizeof ends[0]);
    tcase_add_loop_test(tcase, a_killed_vmm_is_told_from_a_stopped_one, 0, 2);
    tcase_add_test(tcase, the_pid_is_recorded_before_the_guest_runs);
    tcase_add_test(tcase, a_pid_that_cannot_be_recorded_starts_no_guest);
    tcase_add_test(tcase, a_guest_that_says_nothing_ends_the_waiting_in_time);
    tcase_add_test(tcase, an_end_before_the_marker_is_told_at_once);
    tcase_add_test(tcase, a_kernel_that_is_none_never_runs);
    tcase_add_test(tcase, a_qemu_that_is_missing_is_named);
    tcase_add_test(tcase, an_interruption_ends_a_hanging_guest_quickly);
    tcase_add_test(tcase, a_console_is_kept_to_its_bound_and_counted_beyond);
    tcase_add_test(tcase, what_is_written_while_nobody_reads_is_still_there_after_the_end);
    tcase_add_test(tcase, a_vm_is_drained_even_when_its_consumer_fails);
    tcase_add_test(tcase, no_descriptor_leaks);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
