/* The monitor client against a hostile VMM: a socket pair whose other end this test holds. */
#include "executor/scenario/vm/qmp.h"
#include "tests/unit/scenario/suite.h"

#include "common/cleanup.h"

#include <string.h>
#include <sys/socket.h>

#define GREETING "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n"

static struct hf_qmp qmp;
static int vmm_end;

static void set_up(void)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    hf_qmp_init(&qmp, pair[0]);
    vmm_end = pair[1];
}

static void tear_down(void)
{
    close(qmp.fd);
    close(vmm_end);
    hf_qmp_clear(&qmp);
}

static int receive(const char *text, struct hf_error *err)
{
    return hf_qmp_receive(&qmp, text, strlen(text), err);
}

static void greet(void)
{
    ck_assert_int_eq(receive(GREETING, NULL), 0);
    ck_assert(qmp.greeted);
}

START_TEST(commands_carry_ids_and_get_their_answers)
{
    char sent[256] = "";
    greet();
    ck_assert_int_eq(hf_qmp_send(&qmp, "cont", NULL, NULL), 0);
    ck_assert_int_gt(read(vmm_end, sent, sizeof sent - 1), 0);
    ck_assert_str_eq(sent, "{\"execute\":\"cont\",\"id\":1}\n");
    ck_assert_int_eq(qmp.pending_id, 1);
    ck_assert_int_eq(receive("{\"return\": {\"a\": 5}, \"id\": 1}\r\n", NULL), 0);
    ck_assert_int_eq(qmp.pending_id, 0);
    ck_assert_int_eq(hf_json_get_int_or(hf_json_get(qmp.reply, "return"), "a", 0), 5);
}
END_TEST

START_TEST(shutdown_events_are_remembered)
{
    greet();
    receive("{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": \"guest-reset\"}}\n", NULL);
    ck_assert_int_eq(qmp.shutdown, HF_VM_SHUTDOWN_GUEST_RESET);
    ck_assert(qmp.shutdown_by_guest);
}
END_TEST

START_TEST(contradicting_shutdown_events_are_neither)
{
    greet();
    receive("{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": \"guest-reset\"}}\n", NULL);
    receive("{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": \"guest-shutdown\"}}\n", NULL);
    ck_assert_int_eq(qmp.shutdown, HF_VM_SHUTDOWN_OTHER);
}
END_TEST

START_TEST(panic_and_control_port_are_noticed)
{
    greet();
    receive("{\"event\": \"GUEST_PANICKED\", \"data\": {\"action\": \"poweroff\"}}\n", NULL);
    ck_assert(qmp.guest_panicked);
    receive("{\"event\": \"VSERPORT_CHANGE\", \"data\": {\"open\": true, \"id\": \"another\"}}\n", NULL);
    ck_assert(!qmp.control_port_open);
    receive("{\"event\": \"VSERPORT_CHANGE\", \"data\": {\"open\": true, \"id\": \"control-port\"}}\n", NULL);
    ck_assert(qmp.control_port_open);
}
END_TEST

START_TEST(a_stop_is_asked_about_and_internal_error_is_told)
{
    char sent[256] = "";
    greet();
    receive("{\"event\": \"STOP\"}\n", NULL);
    ck_assert_int_gt(read(vmm_end, sent, sizeof sent - 1), 0);
    ck_assert_str_eq(sent, "{\"execute\":\"query-status\",\"id\":1000000}\n");
    receive("{\"return\": {\"status\": \"internal-error\", \"running\": false}, \"id\": 1000000}\n", NULL);
    ck_assert(qmp.internal_error);
}
END_TEST

static const struct {
    const char *text, *code;
} hostile[] = {
    {"hello\n", "json-invalid"},
    {"{\"QMP\": {}, \"QMP\": {}}\n", "json-invalid"},
    {"[]\n", "qmp-invalid"},
    {"{\"return\": {}}\n", "qmp-invalid"},
    {GREETING "{\"return\": {}, \"id\": 1}\n", "qmp-invalid"},     /* nothing was asked */
    {GREETING "{\"return\": {}, \"id\": \"1\"}\n", "qmp-invalid"}, /* id of another type */
    {GREETING "7\n", "qmp-invalid"},
    {GREETING "{\"event\": \"STOP\"} trailing\n", "json-invalid"},
};

START_TEST(what_is_no_monitor_ends_the_vm)
{
    struct hf_error err = {0};
    ck_assert_int_eq(receive(hostile[_i].text, &err), -1);
    ck_assert_str_eq(err.code, hostile[_i].code);
}
END_TEST

START_TEST(events_are_bounded)
{
    struct hf_error err = {0};
    int result = 0;
    unsigned sent = 0;
    greet();
    while (result == 0 && sent < HF_QMP_EVENTS_MAX + 10) {
        result = receive("{\"event\": \"RESUME\"}\n", &err);
        sent++;
    }
    ck_assert_int_eq(result, -1);
    ck_assert_uint_eq(sent, HF_QMP_EVENTS_MAX + 1);
}
END_TEST

START_TEST(a_vmm_that_is_gone_gives_an_error_and_no_signal)
{
    struct hf_error err = {0};
    greet();
    close(vmm_end);
    vmm_end = -1;
    ck_assert_int_eq(hf_qmp_send(&qmp, "cont", NULL, &err), -1);
    ck_assert_str_eq(err.code, "qmp-closed");
}
END_TEST

TCase *qmp_case(void)
{
    TCase *tcase = tcase_create("qmp");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, commands_carry_ids_and_get_their_answers);
    tcase_add_test(tcase, shutdown_events_are_remembered);
    tcase_add_test(tcase, contradicting_shutdown_events_are_neither);
    tcase_add_test(tcase, panic_and_control_port_are_noticed);
    tcase_add_test(tcase, a_stop_is_asked_about_and_internal_error_is_told);
    tcase_add_loop_test(tcase, what_is_no_monitor_ends_the_vm, 0, sizeof hostile / sizeof hostile[0]);
    tcase_add_test(tcase, events_are_bounded);
    tcase_add_test(tcase, a_vmm_that_is_gone_gives_an_error_and_no_signal);
    return tcase;
}
