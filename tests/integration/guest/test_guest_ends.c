/* Promises of the shipped guest about its ends: each way out looks to QEMU like what it is, a host that vanishes and
 * comes back is served again, and a guest without its control port says so and powers off. */
#include "vm.h"

#include "common/cleanup.h"
#include "guest/protocol.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BOOT_MS = 120000, ANSWER_MS = 30000, END_MS = 30000 };

static struct vm vm;
static char scratch[64];

static void setup(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/holdfast-guest-ends.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
}

static void teardown(void)
{
    char path[128];
    vm_stop(&vm);
    snprintf(path, sizeof path, "%s/reset.log", scratch);
    unlink(path);
    snprintf(path, sizeof path, "%s/control", scratch);
    unlink(path);
    ck_assert_int_eq(rmdir(scratch), 0);
}

static struct vm_spec shipped_guest(void)
{
    return (struct vm_spec){.accelerator = "tcg",
                            .kernel = guest_file("vmlinuz"),
                            .initramfs = guest_file("initramfs.cpio"),
                            .append = HF_GUEST_COMMAND_LINE,
                            .with_control = true};
}

static const struct {
    const char *request, *console;
    int status, triple_faults;
} ends[] = {
    {"{\"id\":1,\"op\":\"poweroff\"}", "Power down", 0, 0},
    {"{\"id\":1,\"op\":\"reboot\"}", "Restarting system", 0, 0},
    {"{\"id\":1,\"op\":\"panic\"}", "Kernel panic - not syncing: sysrq triggered crash", 0, 0},
    {"{\"id\":1,\"op\":\"triple_fault\"}", "sysrq: Resetting", 0, 1},
    {"{\"id\":1,\"op\":\"exit\",\"value\":5}", HF_GUEST_READY_MARKER, 11, 0},
};

static int count_triple_faults(const char *path)
{
    int count = 0;
    char line[512];
    cleanup_file FILE *log = fopen(path, "re");
    while (log && fgets(line, sizeof line, log))
        count += strstr(line, "Triple fault") != NULL;
    return count;
}

START_TEST(each_end_is_the_real_thing)
{
    char log[128];
    struct vm_spec spec = shipped_guest();
    snprintf(log, sizeof log, "%s/reset.log", scratch);
    const char *const watched[] = {"-d", "cpu_reset", "-D", log};
    memcpy(spec.extra, watched, sizeof watched);
    vm_start(&vm, &spec);
    vm_wait_console(&vm, HF_GUEST_READY_MARKER, BOOT_MS);
    cleanup_json cJSON *answer = vm_ask(&vm, ends[_i].request, ANSWER_MS);
    ck_assert_str_eq(hf_json_get_string(answer, "status"), "ok");
    ck_assert_int_eq(vm_wait_end(&vm, END_MS), ends[_i].status);
    ck_assert_msg(strstr(vm.console, ends[_i].console) != NULL, "%s", vm.console);
    ck_assert_int_eq(count_triple_faults(log), ends[_i].triple_faults);
}
END_TEST

START_TEST(a_guest_without_its_control_port_says_so_and_powers_off)
{
    struct vm_spec spec = shipped_guest();
    spec.with_control = false;
    vm_start(&vm, &spec);
    ck_assert_int_eq(vm_wait_end(&vm, BOOT_MS), 0);
    ck_assert_msg(strstr(vm.console, "holdfast-guest failed: no virtio-serial port named " HF_GUEST_CONTROL_PORT), "%s",
                  vm.console);
    ck_assert_ptr_null(strstr(vm.console, HF_GUEST_READY_MARKER));
}
END_TEST

static int connect_control(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

START_TEST(a_host_that_vanishes_mid_line_is_served_again_when_it_returns)
{
    char path[128], option[256];
    struct vm_spec spec = shipped_guest();
    snprintf(path, sizeof path, "%s/control", scratch);
    snprintf(option, sizeof option, "socket,id=late,path=%s,server=on,wait=off", path);
    const char *const devices[] = {"-device",  "virtio-serial-pci,max_ports=2",
                                   "-chardev", option,
                                   "-device",  "virtserialport,chardev=late,name=" HF_GUEST_CONTROL_PORT};
    memcpy(spec.extra, devices, sizeof devices);
    spec.with_control = false;
    vm_start(&vm, &spec);
    vm_wait_console(&vm, HF_GUEST_READY_MARKER, BOOT_MS);
    vm.control_fd = connect_control(path);
    for (int round = 1; round <= 3; round++) {
        char line[64];
        snprintf(line, sizeof line, "\n{\"id\":%d,\"op\":\"ping\"}", round);
        cleanup_json cJSON *answer = vm_ask(&vm, line, ANSWER_MS);
        ck_assert_int_eq(hf_json_get_int_or(answer, "id", -1), round);
        ck_assert_str_eq(hf_json_get_string(answer, "status"), "ok");
        ck_assert_int_eq(send(vm.control_fd, "{\"id\":77,\"op\":\"pi", 16, MSG_NOSIGNAL), 16);
        close(vm.control_fd);
        usleep(200000); /* long enough for the guest to see nobody */
        vm.line_length = 0;
        vm.control_fd = connect_control(path);
    }
}
END_TEST

START_TEST(the_launch_guest_prints_its_line_and_exits_with_33)
{
    const struct vm_spec spec = {.accelerator = "tcg",
                                 .kernel = guest_file("vmlinuz"),
                                 .initramfs = guest_file("launch-initramfs.cpio"),
                                 .append = "console=ttyS0,115200 quiet loglevel=0 rdinit=/init panic=-1"};
    vm_start(&vm, &spec);
    ck_assert_int_eq(vm_wait_end(&vm, BOOT_MS), 33);
    ck_assert_msg(strstr(vm.console, "holdfast-launch ready\r\n") != NULL, "%s", vm.console);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guest ends");
    TCase *tests = tcase_create("ends");
    tcase_set_timeout(tests, 280);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, each_end_is_the_real_thing, 0, sizeof ends / sizeof ends[0]);
    tcase_add_test(tests, a_guest_without_its_control_port_says_so_and_powers_off);
    tcase_add_test(tests, a_host_that_vanishes_mid_line_is_served_again_when_it_returns);
    tcase_add_test(tests, the_launch_guest_prints_its_line_and_exits_with_33);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
