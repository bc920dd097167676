/* Promises of the kernel-shaped stub (guest/stub/stub.S): each behaviour, under TCG, and under KVM where the machine
 * has it.
 *
 * A machine without /dev/kvm runs the TCG half and says so; a machine that has /dev/kvm has to run the KVM half too,
 * and one whose KVM cannot run sixteen-bit code fails here with what QEMU said. */
#include "vm.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BOOT_MS = 30000, QUIET_MS = 1500 };

static struct vm vm;
static const char *const accelerators[] = {"tcg", "kvm"};

static void teardown(void)
{
    vm_stop(&vm);
}

static void start(int accelerator, const char *append)
{
    const struct vm_spec spec = {
        .accelerator = accelerators[accelerator], .kernel = guest_file("stub.bzImage"), .append = append};
    vm_start(&vm, &spec);
}

static const struct {
    const char *append, *console;
    int status;
} behaviours[] = {
    {"", "holdfast-stub ready\n", 33},
    {"stub", "holdfast-stub ready\n", 33},
    {"quiet stub=exit more", "holdfast-stub ready\n", 33},
    {"stub=exit:0", "holdfast-stub ready\n", 1},
    {"stub=exit:127", "holdfast-stub ready\n", 255},
    {"stub=flood:0", "holdfast-stub ready\n", 33},
    {"stub=triple", "holdfast-stub ready\n", 0},
    {"stub=reset", "holdfast-stub ready\n", 0},
    {"stub=poweroff", "holdfast-stub ready\n", 0},
    {"stub=", "holdfast-stub unknown behaviour\n", 3},
    {"stub=exi", "holdfast-stub unknown behaviour\n", 3},
    {"stub=exits", "holdfast-stub unknown behaviour\n", 3},
};

static void check_behaviour(int accelerator, int row)
{
    start(accelerator, behaviours[row].append);
    ck_assert_int_eq(vm_wait_end(&vm, BOOT_MS), behaviours[row].status);
    ck_assert_str_eq(vm.console, behaviours[row].console);
}

START_TEST(it_does_what_the_command_line_says_under_tcg)
{
    check_behaviour(0, _i);
}
END_TEST

START_TEST(it_does_what_the_command_line_says_under_kvm)
{
    check_behaviour(1, _i);
}
END_TEST

START_TEST(a_flood_is_exact_and_whole)
{
    enum { FLOOD_BYTES = 100000 };
    static const char ready[] = "holdfast-stub ready\n";
    start(_i, "stub=flood:100000");
    ck_assert_int_eq(vm_wait_end(&vm, BOOT_MS), 33);
    ck_assert_uint_eq(vm.console_length, sizeof ready - 1 + FLOOD_BYTES);
    ck_assert_mem_eq(vm.console, ready, sizeof ready - 1);
    for (int i = 0; i < FLOOD_BYTES; i++)
        ck_assert_int_eq(vm.console[(int)sizeof ready - 1 + i], (i & 63) == 63 ? '\n' : 'A' + (i & 15));
}
END_TEST

static void check_runs_on(const char *console)
{
    usleep(QUIET_MS * 1000);
    ck_assert_int_eq(kill(vm.pid, SIGTERM), 0);
    ck_assert_int_eq(vm_wait_end(&vm, BOOT_MS), 0);
    ck_assert_str_eq(vm.console, console);
}

START_TEST(it_hangs_after_its_line)
{
    start(_i, "stub=hang");
    vm_wait_console(&vm, "holdfast-stub ready\n", BOOT_MS);
    check_runs_on("holdfast-stub ready\n");
}
END_TEST

START_TEST(it_is_silent)
{
    start(_i, "stub=silent");
    check_runs_on("");
}
END_TEST

int main(void)
{
    const bool has_kvm = access("/dev/kvm", F_OK) == 0;
    const int backends = has_kvm ? 2 : 1, rows = sizeof behaviours / sizeof behaviours[0];
    if (!has_kvm)
        printf("no /dev/kvm on this machine: the stub is tested under TCG only\n");
    Suite *suite = suite_create("guest stub");
    TCase *tests = tcase_create("stub");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_loop_test(tests, it_does_what_the_command_line_says_under_tcg, 0, rows);
    if (has_kvm)
        tcase_add_loop_test(tests, it_does_what_the_command_line_says_under_kvm, 0, rows);
    tcase_add_loop_test(tests, a_flood_is_exact_and_whole, 0, backends);
    tcase_add_loop_test(tests, it_hangs_after_its_line, 0, backends);
    tcase_add_loop_test(tests, it_is_silent, 0, backends);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
