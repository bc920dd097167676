/* Promises of the agent inside a real VM (guest/protocol.h): every operation answers, every bad request is refused, and
 * no probe, whatever it does, takes the agent with it. One machine serves all tests: that it still answers is part of
 * each. */
#include "vm.h"

#include "common/cleanup.h"
#include "guest/protocol.h"

#include <stdio.h>
#include <string.h>

enum { BOOT_MS = 120000, ANSWER_MS = 60000 };

static struct vm vm;
static int64_t next_id;

static void boot(void)
{
    const struct vm_spec spec = {.accelerator = "tcg",
                                 .kernel = guest_file("vmlinuz"),
                                 .initramfs = HF_HOSTILE_IMAGE,
                                 .append = HF_GUEST_COMMAND_LINE,
                                 .with_control = true};
    vm_start(&vm, &spec);
    vm_wait_console(&vm, HF_GUEST_READY_MARKER, BOOT_MS);
}

static void end(void)
{
    vm_stop(&vm);
}

static cJSON *ask(const char *members)
{
    char line[8192];
    snprintf(line, sizeof line, "{\"id\":%lld,%s}", (long long)++next_id, members);
    cJSON *answer = vm_ask(&vm, line, ANSWER_MS);
    ck_assert_int_eq(hf_json_get_int_or(answer, "id", -1), next_id);
    return answer;
}

static cJSON *run(const char *probe, unsigned timeout_ms, const char *args)
{
    char members[4096];
    snprintf(members, sizeof members, "\"op\":\"run\",\"probe\":\"%s\",\"timeout_ms\":%u,\"args\":{%s}", probe,
             timeout_ms, args);
    return ask(members);
}

static void check_text(const cJSON *answer, const char *key, const char *expected)
{
    const char *seen = hf_json_get_string(answer, key);
    ck_assert_msg(seen && strcmp(seen, expected) == 0, "%s: expected %s, seen %s (%s)", key, expected,
                  seen ? seen : "nothing", hf_json_get_string(answer, "message"));
}

static void check_alive(void)
{
    cleanup_json cJSON *answer = ask("\"op\":\"ping\"");
    check_text(answer, "status", "ok");
}

START_TEST(ping_answers_with_uptime_and_boot_id)
{
    cleanup_json cJSON *answer = ask("\"op\":\"ping\"");
    check_text(answer, "status", "ok");
    ck_assert_int_gt(hf_json_get_int_or(answer, "uptime_ms", 0), 0);
    ck_assert_uint_eq(strlen(hf_json_get_string(answer, "boot_id")), 36);
}
END_TEST

START_TEST(info_tells_what_the_machine_is)
{
    cleanup_json cJSON *answer = ask("\"op\":\"info\"");
    check_text(answer, "version", HF_VERSION);
    check_text(answer, "cmdline", HF_GUEST_COMMAND_LINE);
    ck_assert_int_eq(hf_json_get_int_or(answer, "cpus_online", 0), 1);
    ck_assert_int_gt(hf_json_get_int_or(answer, "memory_total_kib", 0), 64 << 10);
    bool has_console = false, has_echo = false;
    const cJSON *item;
    cJSON_ArrayForEach(item, hf_json_get(answer, "modules")) has_console |=
        strcmp(item->valuestring, "virtio_console") == 0;
    cJSON_ArrayForEach(item, hf_json_get(answer, "probes")) has_echo |= strcmp(item->valuestring, "echo") == 0;
    ck_assert(has_console && has_echo);
}
END_TEST

static const struct {
    const char *line, *code;
} refused[] = {
    {"ping", HF_GUEST_ERROR_REQUEST},
    {"{}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1}", HF_GUEST_ERROR_REQUEST},
    {"{\"op\":\"ping\"}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":0,\"op\":\"ping\"}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":9007199254740993,\"op\":\"ping\"}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":\"1\",\"op\":\"ping\"}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":7}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"id\":1,\"op\":\"ping\"}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"ping\",\"more\":1}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"ping\",\"args\":{}}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"shell\"}", HF_GUEST_ERROR_OPERATION},
    {"{\"id\":1,\"op\":\"exit\"}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"exit\",\"value\":256}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"exit\",\"value\":true}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"run\",\"probe\":\"echo\"}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"run\",\"probe\":\"echo\",\"timeout_ms\":0}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"run\",\"probe\":\"echo\",\"timeout_ms\":3600001}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"run\",\"probe\":\"none\",\"timeout_ms\":9}", HF_GUEST_ERROR_PROBE_UNKNOWN},
    {"{\"id\":1,\"op\":\"continue\",\"args\":{}}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"cancel\"}", HF_GUEST_ERROR_REQUEST},
    {"{\"id\":1,\"op\":\"load\",\"module\":\"../init\"}", HF_GUEST_ERROR_FAILED},
    {"{\"id\":1,\"op\":\"load\",\"module\":\"no_such_module\"}", HF_GUEST_ERROR_FAILED},
};

START_TEST(a_bad_request_is_refused_and_the_next_one_answered)
{
    cleanup_json cJSON *answer = vm_ask(&vm, refused[_i].line, ANSWER_MS);
    check_text(answer, "status", "error");
    check_text(answer, "code", refused[_i].code);
    check_alive();
}
END_TEST

START_TEST(a_line_is_bounded_and_what_follows_it_is_read)
{
    static char line[2 * HF_GUEST_LINE_MAX];
    memset(line, ' ', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    cleanup_json cJSON *answer = vm_ask(&vm, line, ANSWER_MS);
    check_text(answer, "code", HF_GUEST_ERROR_REQUEST);
    check_alive();
}
END_TEST

START_TEST(a_module_is_loaded_with_what_it_needs)
{
    cleanup_json cJSON *answer = ask("\"op\":\"load\",\"module\":\"virtio_net\"");
    check_text(answer, "status", "ok");
    cleanup_json cJSON *again = ask("\"op\":\"load\",\"module\":\"virtio_net\"");
    check_text(again, "status", "ok");
    cleanup_json cJSON *info = ask("\"op\":\"info\"");
    cleanup_free char *text = hf_json_canonical(hf_json_get(info, "modules"), NULL);
    ck_assert_msg(strstr(text, "\"virtio_net\"") && strstr(text, "\"net_failover\""), "%s", text);
}
END_TEST

START_TEST(a_probe_gets_its_arguments_and_its_verdict)
{
    cleanup_json cJSON *held = run("echo", 10000, "\"number\":7,\"text\":\"\\u00e9\"");
    check_text(held, "status", "ok");
    check_text(held, "verdict", "held");
    check_text(hf_json_get(held, "result"), "text", "\xc3\xa9");
    ck_assert_int_eq(hf_json_get_int_or(hf_json_get(held, "result"), "number", 0), 7);
    ck_assert_int_eq(hf_json_get_int_or(held, "processes_killed", -1), 0);
    const cJSON *check = hf_json_get(held, "checks")->child;
    check_text(check, "name", "told");
    check_text(check, "detail", "the host said held");
    cleanup_json cJSON *broken = run("echo", 10000, "\"number\":7,\"text\":\"\",\"held\":false");
    check_text(broken, "verdict", "broken");
}
END_TEST

START_TEST(a_probe_without_a_check_never_counts_as_held)
{
    cleanup_json cJSON *answer = run("no-check", 10000, "");
    check_text(answer, "verdict", "broken");
}
END_TEST

/* What each probe has to be answered with; "" for the message means any. */
static const struct {
    const char *probe, *args, *code, *says;
    unsigned timeout_ms;
} endings[] = {
    {"echo", "", HF_GUEST_ERROR_CANNOT_RUN, "argument number has to be an integer, it is absent", 10000},
    {"echo", "\"number\":true", HF_GUEST_ERROR_CANNOT_RUN, "it is a boolean", 10000},
    {"echo", "\"number\":101", HF_GUEST_ERROR_CANNOT_RUN, "within 1 and 100", 10000},
    {"cannot-run", "", HF_GUEST_ERROR_CANNOT_RUN, "no_such_module is not in the initramfs", 10000},
    {"hang", "", HF_GUEST_ERROR_PROBE_TIMEOUT, "", 300},
    {"close-agent", "", HF_GUEST_ERROR_PROBE_TIMEOUT, "", 300},
    {"crash", "", HF_GUEST_ERROR_PROBE_CRASHED, "signal 11", 10000},
    {"leave-at-once", "", HF_GUEST_ERROR_PROBE_CRASHED, "exited with 7", 10000},
    {"fork-bomb", "", HF_GUEST_ERROR_PROBE_TIMEOUT, "", 300},
    {"memory-hog", "", HF_GUEST_ERROR_PROBE_CRASHED, "signal 9", 50000},
    {"long-result", "\"length\":100000", HF_GUEST_ERROR_PROBE_OUTPUT, "", 10000},
    {"forge", "\"which\":0", HF_GUEST_ERROR_PROBE_OUTPUT, "", 10000},
    {"forge", "\"which\":1", HF_GUEST_ERROR_PROBE_OUTPUT, "", 10000},
    {"forge", "\"which\":2", HF_GUEST_ERROR_PROBE_OUTPUT, "", 10000},
    {"forge", "\"which\":3", HF_GUEST_ERROR_PROBE_OUTPUT, "", 10000},
    {"forge", "\"which\":4", HF_GUEST_ERROR_PROBE_OUTPUT, "", 10000},
};

START_TEST(a_probe_that_fails_is_told_apart_and_the_agent_lives)
{
    cleanup_json cJSON *answer = run(endings[_i].probe, endings[_i].timeout_ms, endings[_i].args);
    check_text(answer, "status", "error");
    check_text(answer, "code", endings[_i].code);
    const char *message = hf_json_get_string(answer, "message");
    ck_assert_msg(message && strstr(message, endings[_i].says), "%s: %s", endings[_i].probe, message);
    check_alive();
}
END_TEST

START_TEST(what_a_probe_leaves_behind_is_killed_and_counted)
{
    cleanup_json cJSON *answer = run("daemons", 20000, "");
    check_text(answer, "verdict", "held");
    ck_assert_int_eq(hf_json_get_int_or(answer, "processes_killed", -1), 10);
    cleanup_json cJSON *after = run("echo", 10000, "\"number\":1,\"text\":\"\"");
    ck_assert_int_eq(hf_json_get_int_or(after, "processes_killed", -1), 0);
}
END_TEST

START_TEST(a_probe_can_neither_kill_the_agent_nor_open_its_port)
{
    cleanup_json cJSON *killed = run("kill-agent", 10000, "");
    check_text(killed, "verdict", "held");
    cleanup_json cJSON *stolen = run("steal-port", 10000, "");
    check_text(stolen, "verdict", "held");
    check_alive();
}
END_TEST

START_TEST(the_longest_result_arrives_whole)
{
    cleanup_json cJSON *answer = run("long-result", 20000, "\"length\":36000");
    check_text(answer, "status", "ok");
    ck_assert_uint_eq(strlen(hf_json_get_string(hf_json_get(answer, "result"), "text")), 36000);
}
END_TEST

/* Reads the flood's events, in order, up to the answer. */
static cJSON *read_flood(int64_t *events)
{
    *events = 0;
    for (;;) {
        cJSON *line = vm_receive(&vm, ANSWER_MS);
        if (!hf_json_get_string(line, "event"))
            return line;
        ck_assert_int_eq(hf_json_get_int_or(hf_json_get(line, "data"), "number", -1), (*events)++);
        cJSON_Delete(line);
    }
}

static void send_flood(int events)
{
    char line[256];
    snprintf(line, sizeof line,
             "{\"id\":%lld,\"op\":\"run\",\"probe\":\"event-flood\",\"timeout_ms\":60000,\"args\":{\"events\":%d}}",
             (long long)++next_id, events);
    vm_send(&vm, line);
}

START_TEST(events_arrive_in_order_up_to_their_bound)
{
    int64_t events;
    send_flood(HF_GUEST_EVENTS_MAX);
    cleanup_json cJSON *answer = read_flood(&events);
    ck_assert_int_eq(events, HF_GUEST_EVENTS_MAX);
    check_text(answer, "verdict", "held");
}
END_TEST

START_TEST(more_events_than_allowed_end_the_probe)
{
    int64_t events;
    send_flood(1 << 20);
    cleanup_json cJSON *answer = read_flood(&events);
    ck_assert_int_eq(events, HF_GUEST_EVENTS_MAX);
    check_text(answer, "code", HF_GUEST_ERROR_PROBE_OUTPUT);
    check_alive();
}
END_TEST

static void start_waiting(void)
{
    cleanup_json cJSON *event = run("stay", 30000, "");
    check_text(event, "event", "waiting");
}

static cJSON *say(int64_t id, const char *rest)
{
    char line[256];
    snprintf(line, sizeof line, "{\"id\":%lld,%s}", (long long)id, rest);
    return vm_ask(&vm, line, ANSWER_MS);
}

START_TEST(a_waiting_probe_is_continued_with_new_arguments)
{
    start_waiting();
    cleanup_json cJSON *busy = say(next_id + 1000, "\"op\":\"ping\"");
    check_text(busy, "code", HF_GUEST_ERROR_BUSY);
    cleanup_json cJSON *stranger = say(next_id + 1000, "\"op\":\"continue\",\"args\":{\"value\":3}");
    check_text(stranger, "code", HF_GUEST_ERROR_REQUEST);
    cleanup_json cJSON *answer = say(next_id, "\"op\":\"continue\",\"args\":{\"value\":5}");
    check_text(answer, "verdict", "held");
    ck_assert_int_eq(hf_json_get_int_or(hf_json_get(answer, "result"), "value", 0), 5);
}
END_TEST

START_TEST(a_waiting_probe_is_cancelled)
{
    start_waiting();
    cleanup_json cJSON *answer = say(next_id, "\"op\":\"cancel\"");
    check_text(answer, "code", HF_GUEST_ERROR_PROBE_CANCELED);
    check_alive();
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, ping_answers_with_uptime_and_boot_id);
    tcase_add_test(tests, info_tells_what_the_machine_is);
    tcase_add_loop_test(tests, a_bad_request_is_refused_and_the_next_one_answered, 0,
                        sizeof refused / sizeof refused[0]);
    tcase_add_test(tests, a_line_is_bounded_and_what_follows_it_is_read);
    tcase_add_test(tests, a_module_is_loaded_with_what_it_needs);
    tcase_add_test(tests, a_probe_gets_its_arguments_and_its_verdict);
    tcase_add_test(tests, a_probe_without_a_check_never_counts_as_held);
    tcase_add_loop_test(tests, a_probe_that_fails_is_told_apart_and_the_agent_lives, 0,
                        sizeof endings / sizeof endings[0]);
    tcase_add_test(tests, what_a_probe_leaves_behind_is_killed_and_counted);
    tcase_add_test(tests, a_probe_can_neither_kill_the_agent_nor_open_its_port);
    tcase_add_test(tests, the_longest_result_arrives_whole);
    tcase_add_test(tests, events_arrive_in_order_up_to_their_bound);
    tcase_add_test(tests, more_events_than_allowed_end_the_probe);
    tcase_add_test(tests, a_waiting_probe_is_continued_with_new_arguments);
    tcase_add_test(tests, a_waiting_probe_is_cancelled);
}

int main(void)
{
    Suite *suite = suite_create("guest agent");
    TCase *tests = tcase_create("agent");
    tcase_set_timeout(tests, 280);
    tcase_add_unchecked_fixture(tests, boot, end);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
