/*
 * The program around the scenarios: wrong command lines, missing prerequisites, signals, a killed runner, a backend
 * that cannot run the guest, and a guest directory that is not what its provenance documents say.
 */
#include "tests/integration/scenario/harness.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "executor/scenario/vm/pid_journal.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { HELD = 0, NOT_HELD = 1, USAGE = 2, CANNOT_RUN = 3 };

static struct sandbox sandbox;
static struct hf_child_output output;

static void set_up(void)
{
    sandbox_create(&sandbox);
    output = (struct hf_child_output){0};
}

static void tear_down(void)
{
    hf_child_output_clear(&output);
    sandbox_remove(&sandbox);
}

static void assert_status(int status, const char *message_part)
{
    ck_assert_msg(output.report.exited && output.report.exit_code == status, "expected status %d, got %d: %s", status,
                  output.report.exit_code, output.stderr_bytes);
    ck_assert_msg(strstr(output.stderr_bytes, message_part) != NULL, "expected '%s' in: %s", message_part,
                  output.stderr_bytes);
}

static const struct {
    const char *arguments[12];
    const char *message_part;
} usage[] = {
    {{NULL}, "--guest-dir"},
    {{"--verify", NULL}, "--guest-dir"},
    {{"--guest-dir", "/tmp", NULL}, "--backend"},
    {{"--guest-dir", "/tmp", "--backend", "tcg", NULL}, "--scenario"},
    {{"--guest-dir", "/tmp", "--backend", "tcg", "--scenario", "boot", NULL}, "--output-dir"},
    {{"--guest-dir", "/tmp", "--backend", "xen", NULL}, "--backend"},
    {{"--guest-dir", "/tmp", "--backend", "tcg", "--scenario", "none", "--output-dir", "/tmp/x", NULL}, "--scenario"},
    {{"--timeout", "0", NULL}, "--timeout"},
    {{"--timeout", "1.5", NULL}, "--timeout"},
    {{"--memory-mib", "127", NULL}, "--memory-mib"},
    {{"--seed", "-1", NULL}, "--seed"},
    {{"--seed", "9223372036854775808", NULL}, "--seed"},
    {{"--unknown", NULL}, "--unknown"},
    {{"--verify", "--guest-dir", "/tmp", "operand", NULL}, "options only"},
};

START_TEST(a_wrong_command_line_is_status_2_and_names_the_option)
{
    run_program(&sandbox, usage[_i].arguments, &output);
    assert_status(USAGE, usage[_i].message_part);
    ck_assert_int_ne(access(sandbox.output, F_OK), 0);
}
END_TEST

START_TEST(help_is_status_0)
{
    const char *const arguments[] = {"--help", NULL};
    run_program(&sandbox, arguments, &output);
    assert_status(HELD, "");
    ck_assert_ptr_nonnull(strstr(output.stdout_bytes, "structured-outcome"));
}
END_TEST

START_TEST(a_missing_guest_is_status_3)
{
    const char *const arguments[] = {"--guest-dir", sandbox.path,   "--backend",    "tcg", "--scenario",
                                     "boot",        "--output-dir", sandbox.output, NULL};
    run_program(&sandbox, arguments, &output);
    assert_status(CANNOT_RUN, "kernel");
}
END_TEST

START_TEST(an_output_directory_in_use_is_never_overwritten)
{
    char log[128];
    struct stat status;
    ck_assert_int_eq(mkdir(sandbox.output, 0700), 0);
    snprintf(log, sizeof log, "%s/serial-1.log", sandbox.output);
    int fd = open(log, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    run_scenario(&sandbox, "boot", "tcg", "120", &output);
    assert_status(NOT_HELD, "serial-1.log");
    ck_assert_int_eq(stat(log, &status), 0);
    ck_assert_int_eq(status.st_size, 0);
}
END_TEST

START_TEST(a_pid_journal_that_cannot_be_written_is_status_3)
{
    strcat(sandbox.journal, "/none/pids");
    run_scenario(&sandbox, "boot", "tcg", "120", &output);
    assert_status(CANNOT_RUN, "pid journal");
}
END_TEST

START_TEST(too_short_a_phase_timeout_fails_in_time_and_leaves_nothing)
{
    unsigned alive = 0;
    run_scenario(&sandbox, "boot", "tcg", "1", &output);
    assert_status(NOT_HELD, "--timeout");
    ck_assert_uint_lt(output.report.duration_ms, 10000);
    cleanup_json cJSON *outcome = read_document(sandbox.output, "outcome.json");
    const cJSON *vm = cJSON_GetArrayItem(hf_json_get(outcome, "vms"), 0);
    ck_assert_str_eq(hf_json_get_string(vm, "classification"), "timeout");
    ck_assert_str_eq(hf_json_get_string(outcome, "status"), "failed");
    ck_assert_uint_eq(journaled_vms(&sandbox, &alive), 1);
    ck_assert_uint_eq(alive, 0);
}
END_TEST

/* A machine whose KVM runs a stock kernel passes; one whose KVM does not must say so within the phase timeout; without
 * /dev/kvm nothing may run at all. Never is it TCG that answers. */
START_TEST(kvm_holds_or_fails_clearly_but_never_falls_back)
{
    run_scenario(&sandbox, "boot", "kvm", "15", &output);
    if (access("/dev/kvm", R_OK | W_OK) != 0) {
        assert_status(CANNOT_RUN, "/dev/kvm");
        ck_assert_int_ne(access(sandbox.output, F_OK), 0);
        return;
    }
    cleanup_json cJSON *outcome = read_document(sandbox.output, "outcome.json");
    ck_assert_str_eq(hf_json_get_string(outcome, "backend"), "kvm");
    ck_assert_uint_lt(output.report.duration_ms, 15000 + 8000);
    if (output.report.exit_code != HELD)
        assert_status(NOT_HELD, "backend kvm");
}
END_TEST

/* --- ends of the runner itself --- */

/* Starts the runner as a plain child, so that the test can do to it what it likes. */
static pid_t spawn_runner(const char *scenario)
{
    char program[4096], journal[160];
    pid_t pid = 0;
    const char *const argv[] = {program,      "--guest-dir", guest_dir(),    "--backend",    "tcg",
                                "--scenario", scenario,      "--output-dir", sandbox.output, NULL};
    const char *const envp[] = {"PATH=/usr/bin:/bin", journal, NULL};
    snprintf(program, sizeof program, "%s/holdfast-scenario", getenv("HF_BIN_DIR"));
    snprintf(journal, sizeof journal, HF_PID_JOURNAL_VARIABLE "=%s", sandbox.journal);
    ck_assert_int_eq(
        posix_spawn(&pid, program, NULL, NULL, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp), 0);
    return pid;
}

/* Waits until so many VMs are in the journal and still run. */
static void wait_for_vms(unsigned count)
{
    unsigned alive = 0;
    uint64_t give_up = hf_clock_mono_ms() + 60000;
    while (journaled_vms(&sandbox, &alive) < count || alive < count) {
        ck_assert_uint_lt(hf_clock_mono_ms(), give_up);
        usleep(20000);
    }
}

static void wait_for_no_vm(uint64_t within_ms)
{
    unsigned alive = 1;
    uint64_t give_up = hf_clock_mono_ms() + within_ms;
    for (journaled_vms(&sandbox, &alive); alive > 0; journaled_vms(&sandbox, &alive)) {
        ck_assert_msg(hf_clock_mono_ms() < give_up, "%u VMs are still there", alive);
        usleep(20000);
    }
}

START_TEST(a_signal_stops_the_vms_and_is_the_exit_status)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    int status = 0;
    pid_t pid = spawn_runner("lifecycle");
    wait_for_vms(2);
    uint64_t begin = hf_clock_mono_ms();
    kill(pid, signals[_i]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_uint_lt(hf_clock_mono_ms() - begin, 5000);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 128 + signals[_i]);
    wait_for_no_vm(0);
    cleanup_json cJSON *outcome = read_document(sandbox.output, "outcome.json");
    ck_assert_str_eq(hf_json_get_string(outcome, "status"), "failed");
    ck_assert_str_eq(hf_json_get_string(hf_json_get(outcome, "error"), "code"), "interrupted");
}
END_TEST

START_TEST(a_killed_runner_takes_its_vms_along)
{
    int status = 0;
    pid_t pid = spawn_runner("lifecycle");
    wait_for_vms(2);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    wait_for_no_vm(10000);
}
END_TEST

/* --- verify --- */

static void copy_file(const char *from, const char *to)
{
    struct stat status;
    cleanup_close int in = open(from, O_RDONLY | O_CLOEXEC);
    cleanup_close int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_eq(fstat(in, &status), 0);
    for (off_t offset = 0; offset < status.st_size;)
        ck_assert_int_gt(sendfile(out, in, &offset, (size_t)(status.st_size - offset)), 0);
}

/* Runs --verify on a copy of the real guest, in which `name` (NULL: nothing) is replaced by `text`. */
static void verify_with(const char *name, const char *text)
{
    static const char *const files[] = {"vmlinuz", "initramfs.cpio", "kernel.provenance.json", "qemu.provenance.json"};
    const char *const arguments[] = {"--verify", "--guest-dir", sandbox.output, NULL};
    char real_guest[4096], from[4200], to[160];
    ck_assert_int_eq(mkdir(sandbox.output, 0700), 0);
    ck_assert_ptr_nonnull(realpath(guest_dir(), real_guest));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(from, sizeof from, "%s/%s", real_guest, files[i]);
        snprintf(to, sizeof to, "%s/%s", sandbox.output, files[i]);
        bool replaced = name && strcmp(name, files[i]) == 0;
        if (!replaced)
            copy_file(from, to);
        cleanup_file FILE *file = replaced && text ? fopen(to, "w") : NULL;
        if (file)
            fputs(text, file);
    }
    run_program(&sandbox, arguments, &output);
}

START_TEST(the_real_guest_is_verified_with_one_line)
{
    const char *const arguments[] = {"--verify", "--guest-dir", guest_dir(), NULL};
    run_program(&sandbox, arguments, &output);
    assert_status(HELD, "");
    ck_assert_ptr_eq(strchr(output.stdout_bytes, '\n'), output.stdout_bytes + output.stdout_length - 1);
}
END_TEST

static const struct {
    const char *name, *text, *message_part;
} swaps[] = {
    {"vmlinuz", "not a kernel", "bzImage"},
    {"vmlinuz", NULL, "vmlinuz"},
    {"initramfs.cpio", "not an archive", "newc"},
    {"initramfs.cpio", NULL, "initramfs.cpio"},
    {"kernel.provenance.json", NULL, "kernel.provenance.json"},
    {"kernel.provenance.json", "{", "kernel.provenance.json"},
    {"kernel.provenance.json", "{\"source\":{\"kind\":\"debian-package\",\"version\":\"0.0-1\"}}", "0.0-1"},
    {"qemu.provenance.json", "{\"source\":{\"kind\":\"debian-package\",\"version\":\"0.0-1\"}}", "0.0-1"},
    {"qemu.provenance.json", "{\"source\":{\"kind\":\"built\"}}", "debian-package"},
};

START_TEST(a_guest_that_is_not_what_its_documents_say_fails)
{
    verify_with(swaps[_i].name, swaps[_i].text);
    assert_status(NOT_HELD, swaps[_i].message_part);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scenario_adversity");
    TCase *tcase = tcase_create("adversity");
    tcase_set_timeout(tcase, 900);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_wrong_command_line_is_status_2_and_names_the_option, 0,
                        sizeof usage / sizeof usage[0]);
    tcase_add_test(tcase, help_is_status_0);
    tcase_add_test(tcase, a_missing_guest_is_status_3);
    tcase_add_test(tcase, an_output_directory_in_use_is_never_overwritten);
    tcase_add_test(tcase, a_pid_journal_that_cannot_be_written_is_status_3);
    tcase_add_test(tcase, too_short_a_phase_timeout_fails_in_time_and_leaves_nothing);
    tcase_add_test(tcase, kvm_holds_or_fails_clearly_but_never_falls_back);
    tcase_add_loop_test(tcase, a_signal_stops_the_vms_and_is_the_exit_status, 0, 3);
    tcase_add_test(tcase, a_killed_runner_takes_its_vms_along);
    tcase_add_test(tcase, the_real_guest_is_verified_with_one_line);
    tcase_add_loop_test(tcase, a_guest_that_is_not_what_its_documents_say_fails, 0, sizeof swaps / sizeof swaps[0]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
