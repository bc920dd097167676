/*
 * Every way in which a session can be cut off, at every step: end of input, SIGTERM, kill -9, and a controller that
 * speaks out of turn. The executor ends within 10 s and leaves no process behind.
 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/integration/executor/target.h"
#include "tests/run_suite.h"

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct target target;
static struct hf_response response;

enum moment { AT_START, IN_LINE, IN_VERIFY, IN_BASELINE, WHEN_READY, IN_EXECUTE, IN_FINALIZE, WHEN_FINALIZED, MOMENTS };
enum ending { END_OF_INPUT, TERMINATED, KILLED, ENDINGS };

static void setup(void)
{
    memset(&response, 0, sizeof response);
    target_create(&target);
}

static void teardown(void)
{
    hf_response_clear(&response);
    target_destroy(&target);
}

static void send_request(const struct hf_request *request)
{
    cleanup_free char *line = hf_request_build(request, &target.profile.dialect, NULL);
    target_send_line(&target, line);
}

static void send_execute(const char *case_id)
{
    struct hf_request request = target_request(&target, HF_OP_EXECUTE);
    request.sequence = 1;
    strcpy(request.case_id, case_id);
    send_request(&request);
}

static void wait_for_file(const char *path_in_run)
{
    uint64_t deadline_ms = hf_clock_mono_ms() + 20000;
    while (!target_has_file(&target, path_in_run)) {
        ck_assert_msg(hf_clock_mono_ms() < deadline_ms, "%s did not appear", path_in_run);
        poll(NULL, 0, 5);
    }
}

/* Before its first instructions a program can only be killed by SIGTERM, like any other. */
static void wait_until_signals_are_handled(void)
{
    char path[64];
    uint64_t blocked = 0, deadline_ms = hf_clock_mono_ms() + 20000;
    snprintf(path, sizeof path, "/proc/%d/status", (int)target.pid);
    while (!(blocked & UINT64_C(1) << (SIGTERM - 1))) {
        char line[256];
        ck_assert_uint_lt(hf_clock_mono_ms(), deadline_ms);
        cleanup_file FILE *status = fopen(path, "re");
        while (status && fgets(line, sizeof line, status))
            if (strncmp(line, "SigBlk:", 7) == 0)
                blocked = strtoull(line + 7, NULL, 16);
    }
}

/* Brings a fresh session to a moment and returns while it is there. What runs there ignores SIGTERM. */
static void reach(enum moment moment)
{
    target_start(&target);
    wait_until_signals_are_handled();
    if (moment == IN_LINE)
        target_send(&target, "{\"operation\":\"initi", 19);
    if (moment == IN_VERIFY || moment == IN_BASELINE) {
        target_write(target.control_dir, moment == IN_VERIFY ? "verify" : "boot", "ignores-term");
        send_request(&target.initialize);
        wait_for_file(moment == IN_VERIFY ? "verify.stdout.log" : "baseline/pid-journal.jsonl");
        poll(NULL, 0, 200);
    }
    if (moment < WHEN_READY)
        return;
    target_initialize(&target, &response);
    hf_response_clear(&response);
    struct hf_request finalize = target_request(&target, HF_OP_FINALIZE);
    if (moment == IN_EXECUTE) {
        send_execute("ignores-term");
        wait_for_file("cases/001-ignores-term/rep-1/pid-journal.jsonl");
    }
    if (moment == IN_FINALIZE) {
        target_write(target.control_dir, "boot", "ignores-term");
        send_request(&finalize);
        wait_for_file("post-campaign/pid-journal.jsonl");
    }
    if (moment == WHEN_FINALIZED) {
        target_ask(&target, &finalize, &response);
        hf_response_clear(&response);
    }
}

START_TEST(a_session_cut_off_at_any_moment_leaves_nothing_behind)
{
    enum moment moment = (enum moment)(_i / ENDINGS);
    enum ending ending = (enum ending)(_i % ENDINGS);
    reach(moment);
    uint64_t began_ms = hf_clock_mono_ms();
    if (ending == END_OF_INPUT)
        target_close_input(&target);
    else
        kill(target.pid, ending == TERMINATED ? SIGTERM : SIGKILL);
    ck_assert_int_eq(target_wait(&target, 10000), ending == KILLED ? -SIGKILL : 1);
    target_expect_no_process(&target, 10000);
    ck_assert_uint_lt(hf_clock_mono_ms() - began_ms, 10000);
}
END_TEST

START_TEST(a_request_while_one_is_in_flight_ends_the_session)
{
    reach(IN_EXECUTE);
    send_execute("passes");
    target_expect_error(&target, "protocol-out-of-turn");
    ck_assert_int_eq(target_wait(&target, 10000), 1);
    target_expect_no_process(&target, 2000);
}
END_TEST

START_TEST(two_requests_at_once_are_refused)
{
    target_start(&target);
    static const char two[] = "{\"operation\":\"shutdown\",\"schema_version\":1}\n"
                              "{\"operation\":\"shutdown\",\"schema_version\":1}\n";
    target_send(&target, two, sizeof two - 1);
    target_expect_error(&target, "protocol-out-of-turn");
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

START_TEST(an_unfinished_line_at_the_end_of_input_is_no_request)
{
    target_start(&target);
    static const char line[] = "{\"operation\":\"shutdown\",\"schema_version\":1}";
    target_send(&target, line, sizeof line - 1);
    target_close_input(&target);
    ck_assert_ptr_null(target_read_line(&target, 10000));
    ck_assert_int_eq(target_wait(&target, 10000), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor endings");
    TCase *tcase = tcase_create("stub profile");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, a_session_cut_off_at_any_moment_leaves_nothing_behind, 0, MOMENTS * ENDINGS);
    tcase_add_test(tcase, a_request_while_one_is_in_flight_ends_the_session);
    tcase_add_test(tcase, two_requests_at_once_are_refused);
    tcase_add_test(tcase, an_unfinished_line_at_the_end_of_input_is_no_request);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
