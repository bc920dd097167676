/* The control channel against a hostile guest: a socket pair whose other end this test holds. */
#include "executor/scenario/vm/control.h"
#include "guest/protocol.h"
#include "tests/unit/scenario/suite.h"

#include "common/cleanup.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static struct hf_control control;
static int guest_end;

static void set_up(void)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    hf_control_init(&control, pair[0]);
    guest_end = pair[1];
}

static void tear_down(void)
{
    close(control.fd);
    close(guest_end);
    hf_control_clear(&control);
}

static int receive(const char *text, struct hf_error *err)
{
    return hf_control_receive(&control, text, strlen(text), err);
}

static void ask(const char *operation, cJSON *more)
{
    ck_assert_int_eq(hf_control_send(&control, operation, more, NULL), 0);
}

START_TEST(the_first_request_begins_with_an_empty_line)
{
    char sent[256] = "";
    cJSON *more = hf_json_new_object();
    hf_json_add_int(more, "value", 16);
    ask("exit", more);
    ck_assert_int_gt(read(guest_end, sent, sizeof sent - 1), 0);
    ck_assert_str_eq(sent, "\n{\"id\":1,\"op\":\"exit\",\"value\":16}\n");
}
END_TEST

START_TEST(an_answer_is_taken_and_ids_are_never_reused)
{
    ask("ping", NULL);
    ck_assert_int_eq(receive("\n{\"id\":1,\"op\":\"ping\",\"status\":\"ok\",\"uptime_ms\":3}\n", NULL), 0);
    ck_assert_int_eq(control.pending_id, 0);
    ck_assert_int_eq(hf_json_get_int_or(control.response, "uptime_ms", 0), 3);
    ask("ping", NULL);
    ck_assert_int_eq(control.pending_id, 2);
}
END_TEST

START_TEST(events_of_a_run_are_queued_and_taken_by_name)
{
    ask("run", NULL);
    ck_assert_int_eq(receive("{\"id\":1,\"event\":\"a\",\"data\":{\"n\":1}}\n{\"id\":1,\"event\":\"b\",\"data\":{}}\n"
                             "{\"id\":1,\"event\":\"a\",\"data\":{\"n\":2}}\n",
                             NULL),
                     0);
    cleanup_json cJSON *first = hf_control_take_event(&control, "a");
    cleanup_json cJSON *second = hf_control_take_event(&control, "a");
    ck_assert_int_eq(hf_json_get_int_or(hf_json_get(first, "data"), "n", 0), 1);
    ck_assert_int_eq(hf_json_get_int_or(hf_json_get(second, "data"), "n", 0), 2);
    ck_assert_ptr_null(hf_control_take_event(&control, "a"));
}
END_TEST

START_TEST(continue_carries_the_id_of_the_run)
{
    char sent[512] = "";
    ask("run", NULL);
    ck_assert_int_gt(read(guest_end, sent, sizeof sent), 0);
    cJSON *args = hf_json_new_object();
    hf_json_add_int(args, "stage", 2);
    ck_assert_int_eq(hf_control_nudge(&control, "continue", args, NULL), 0);
    memset(sent, 0, sizeof sent);
    ck_assert_int_gt(read(guest_end, sent, sizeof sent - 1), 0);
    ck_assert_str_eq(sent, "{\"args\":{\"stage\":2},\"id\":1,\"op\":\"continue\"}\n");
}
END_TEST

static const struct {
    const char *operation, *text, *code;
} hostile[] = {
    {NULL, "{\"id\":1,\"op\":\"ping\",\"status\":\"ok\"}\n", "control-invalid"}, /* nothing was asked */
    {"ping", "{\"id\":2,\"op\":\"ping\",\"status\":\"ok\"}\n", "control-invalid"},
    {"ping", "{\"id\":0,\"op\":\"\",\"status\":\"error\",\"code\":\"x\",\"message\":\"y\"}\n", "control-invalid"},
    {"ping", "{\"id\":1,\"op\":\"pong\",\"status\":\"ok\"}\n", "control-invalid"},
    {"ping", "{\"id\":1,\"op\":\"ping\"}\n", "control-invalid"},
    {"ping", "{\"id\":1,\"op\":\"ping\",\"status\":\"error\"}\n", "control-invalid"},
    {"ping", "{\"id\":1.0,\"op\":\"ping\",\"status\":\"ok\"}\n", "control-invalid"},
    {"ping", "{\"id\":true,\"op\":\"ping\",\"status\":\"ok\"}\n", "control-invalid"},
    {"ping", "{\"id\":1,\"event\":\"a\",\"data\":{}}\n", "control-invalid"}, /* no probe runs */
    {"run", "{\"id\":1,\"event\":\"a\",\"data\":[]}\n", "control-invalid"},
    {"run", "{\"id\":1,\"event\":\"a\",\"data\":{},\"more\":1}\n", "control-invalid"},
    {"ping", "[1]\n", "control-invalid"},
    {"ping", "{\"id\":1,\"id\":1,\"op\":\"ping\",\"status\":\"ok\"}\n", "json-invalid"},
    {"ping", "\xff\xfe\n", "json-invalid"},
    {"ping", "holdfast-guest ready\n", "json-invalid"},
};

START_TEST(what_breaks_the_protocol_ends_the_vm)
{
    struct hf_error err = {0};
    if (hostile[_i].operation)
        ask(hostile[_i].operation, NULL);
    ck_assert_int_eq(receive(hostile[_i].text, &err), -1);
    ck_assert_str_eq(err.code, hostile[_i].code);
}
END_TEST

START_TEST(an_error_message_never_repeats_guest_bytes)
{
    struct hf_error err = {0};
    ask("ping", NULL);
    ck_assert_int_eq(receive("{\"SECRETBYTES\": SECRETBYTES}\n", &err), -1);
    ck_assert_ptr_null(strstr(err.message, "SECRETBYTES"));
    ck_assert_ptr_null(strstr(err.field, "SECRETBYTES"));
}
END_TEST

START_TEST(an_endless_line_is_an_error)
{
    static char flood[HF_GUEST_LINE_MAX + 1];
    struct hf_error err = {0};
    memset(flood, 'x', sizeof flood);
    ask("ping", NULL);
    ck_assert_int_eq(hf_control_receive(&control, flood, sizeof flood, &err), -1);
    ck_assert_str_eq(err.code, "line-too-long");
}
END_TEST

START_TEST(events_that_nobody_reads_are_bounded)
{
    struct hf_error err = {0};
    int result = 0;
    ask("run", NULL);
    for (int i = 0; result == 0 && i <= HF_CONTROL_QUEUED_EVENTS_MAX; i++)
        result = receive("{\"id\":1,\"event\":\"a\",\"data\":{}}\n", &err);
    ck_assert_int_eq(result, -1);
    ck_assert_str_eq(err.code, "control-invalid");
}
END_TEST

START_TEST(a_guest_that_does_not_read_is_an_error_not_a_wait)
{
    struct hf_error err = {0};
    int result = 0;
    char long_text[4000];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    for (int i = 0; result == 0 && i < 10000; i++) {
        cJSON *more = hf_json_new_object();
        hf_json_add_string(more, "text", long_text);
        result = hf_control_send(&control, "run", more, &err);
    }
    ck_assert_int_eq(result, -1);
    ck_assert_str_eq(err.code, "control-closed");
}
END_TEST

TCase *control_case(void)
{
    TCase *tcase = tcase_create("control");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_first_request_begins_with_an_empty_line);
    tcase_add_test(tcase, an_answer_is_taken_and_ids_are_never_reused);
    tcase_add_test(tcase, events_of_a_run_are_queued_and_taken_by_name);
    tcase_add_test(tcase, continue_carries_the_id_of_the_run);
    tcase_add_loop_test(tcase, what_breaks_the_protocol_ends_the_vm, 0, sizeof hostile / sizeof hostile[0]);
    tcase_add_test(tcase, an_error_message_never_repeats_guest_bytes);
    tcase_add_test(tcase, an_endless_line_is_an_error);
    tcase_add_test(tcase, events_that_nobody_reads_are_bounded);
    tcase_add_test(tcase, a_guest_that_does_not_read_is_an_error_not_a_wait);
    return tcase;
}
