/*
 * Executors that are late, silent, chatty, oversized, contradictory, out of sequence, repetitive, or vanish at each
 * step of the protocol; violations whatever fails afterwards. Each row is one campaign with its one right verdict.
 */
#include "common/cleanup.h"
#include "tests/integration/server/bench.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

struct adversity {
    const char *behaviours;
    const char *category;
    int executes;        /* dispatched */
    bool failed_case;    /* the summary names one */
    bool registered;     /* the target is in the quarantine register */
    bool plain_finalize; /* a finalize without quarantine was sent */
};

#define PREFLIGHT "preflight-or-executor-failure"
#define LOST      "availability-failure"
#define VIOLATION "policy-violation"

static const struct adversity adversities[] = {
    /* initialize: no action was in flight, so nothing can be said about a case */
    {"silent:initialize", PREFLIGHT, 0, false, true, false},
    {"vanish:initialize", PREFLIGHT, 0, false, true, false},
    {"killed:initialize", PREFLIGHT, 0, false, true, false},
    {"close:initialize", PREFLIGHT, 0, false, true, false},
    {"partial:initialize", PREFLIGHT, 0, false, true, false},
    {"garbage:initialize", PREFLIGHT, 0, false, true, false},
    {"oversized:initialize", PREFLIGHT, 0, false, true, false},
    {"duplicate:initialize", PREFLIGHT, 0, false, true, false},
    {"contradict:initialize", PREFLIGHT, 0, false, true, false},
    {"no-read", PREFLIGHT, 0, false, true, false},
    {"violation:initialize", VIOLATION, 0, false, true, false},
    /* a refusal is an answer: the target ends in order and nothing has to be isolated */
    {"refuse:initialize", PREFLIGHT, 0, false, false, false},
    {"error:initialize", PREFLIGHT, 0, false, false, false},
    /* execute */
    {"silent:execute", LOST, 1, true, true, false},
    {"late:execute:2500", LOST, 1, true, true, false},
    {"vanish:execute", LOST, 1, true, true, false},
    {"killed:execute", LOST, 1, true, true, false},
    {"close:execute", LOST, 1, true, true, false},
    {"partial:execute", LOST, 1, true, true, false},
    {"garbage:execute", LOST, 1, true, true, false},
    {"oversized:execute", LOST, 1, true, true, false},
    {"duplicate:execute", LOST, 1, true, true, false},
    {"contradict:execute", LOST, 1, true, true, false},
    {"sequence:execute", LOST, 1, true, true, false},
    {"vanish:execute2", LOST, 2, true, true, false},
    {"garbage:execute,error:quarantine", LOST, 1, true, true, false},
    {"garbage:execute,vanish:quarantine", LOST, 1, true, true, false},
    {"garbage:execute,silent:quarantine", LOST, 1, true, true, false},
    {"deaf,silent:execute,silent:quarantine", LOST, 1, true, true, false},
    {"category:execute:test-failure", "test-failure", 1, true, false, true},
    {"category:execute2:timeout", "timeout", 2, true, false, true},
    {"category:execute:executor-error", "executor-error", 1, true, false, true},
    {"category:execute:availability-failure", LOST, 1, true, false, true},
    {"error:execute", "executor-error", 1, true, false, true},
    /* violations: nothing is dispatched any more, not even the VM after the campaign (I2), whatever fails afterwards */
    {"violation:execute", VIOLATION, 1, true, true, false},
    {"violation:execute2", VIOLATION, 2, true, true, false},
    {"violation-vanish:execute", VIOLATION, 1, true, true, false},
    {"violation-malformed:execute", VIOLATION, 1, true, true, false},
    {"violation:execute,error:quarantine", VIOLATION, 1, true, true, false},
    {"violation:execute,silent:quarantine", VIOLATION, 1, true, true, false},
    {"violation:execute,vanish:quarantine", VIOLATION, 1, true, true, false},
    {"violation:execute,garbage:quarantine", VIOLATION, 1, true, true, false},
    /* finalize: no case is to blame */
    {"silent:finalize", LOST, 6, false, true, true},
    {"vanish:finalize", LOST, 6, false, true, true},
    {"garbage:finalize", LOST, 6, false, true, true},
    {"oversized:finalize", LOST, 6, false, true, true},
    {"error:finalize", LOST, 6, false, true, true},
    {"unclean:finalize", LOST, 6, false, false, true},
    {"oracle:finalize", "oracle-unavailable", 6, false, false, true},
    {"violation:finalize", VIOLATION, 6, false, true, true},
    {"selfquarantine:finalize", VIOLATION, 6, false, true, true},
    /* shutdown: a target whose end is not known is not given back */
    {"silent:shutdown", LOST, 6, false, true, true},
    {"vanish:shutdown", LOST, 6, false, true, true},
    {"garbage:shutdown", LOST, 6, false, true, true},
    {"linger:shutdown", LOST, 6, false, true, true},
    {"unwell:shutdown", LOST, 6, false, true, true},
};

static struct bench bench;

/* Processes whose command line names this test's private directory. */
static int count_processes(void)
{
    int count = 0;
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    while ((entry = readdir(processes))) {
        char path[300], line[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t length = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
        if (fd >= 0)
            close(fd);
        count += length > 0 && memmem(line, (size_t)length, bench.root, strlen(bench.root)) != NULL;
    }
    closedir(processes);
    return count;
}

static int plain_finalizes(void)
{
    cleanup_free char *seen = bench_seen_log(&bench);
    return bench_count(seen, "\"operation\":\"finalize\",\"quarantine\":false");
}

START_TEST(adversity_has_one_right_verdict)
{
    const struct adversity *row = &adversities[_i];
    struct hf_quarantine_record record;
    bench_open(&bench, row->behaviours);
    ck_assert_msg(bench_start_controller(&bench), "%s", bench.error.message);
    bench_run(&bench);
    ck_assert_msg(bench.finished, "%s", row->behaviours);
    bench_expect(&bench, "failed", row->category);
    cleanup_json cJSON *summary = bench_json(&bench, "summary.json");
    ck_assert_msg((hf_json_get_string(summary, "failed_case") != NULL) == row->failed_case, "failed_case of %s",
                  row->behaviours);
    ck_assert_msg(bench_seen(&bench, "execute") == row->executes, "%s: %d executes", row->behaviours,
                  bench_seen(&bench, "execute"));
    ck_assert_msg((plain_finalizes() == 1) == row->plain_finalize, "%s: %d finalizes", row->behaviours,
                  plain_finalizes());
    ck_assert_msg((hf_controller_quarantine(bench.controller, 1, &record) == 1) == row->registered, "register of %s",
                  row->behaviours);
    ck_assert_int_eq(bench_has(&bench, "target-quarantine.json"), row->registered);
    ck_assert_int_eq(count_processes(), 0);
    bench_close(&bench);
}
END_TEST

static void pass_with(const char *behaviours)
{
    bench_open(&bench, behaviours);
    ck_assert_msg(bench_start_controller(&bench), "%s", bench.error.message);
    bench_run(&bench);
    bench_expect(&bench, "passed", "coverage-converged");
    ck_assert_int_eq(count_processes(), 0);
}

START_TEST(answers_in_small_pieces_are_answers)
{
    pass_with("split");
    bench_close(&bench);
}
END_TEST

START_TEST(a_flood_of_diagnosis_is_kept_bounded)
{
    pass_with("flood-stderr");
    cleanup_free char *log = bench_read(&bench, "executor-clients/campaign/stderr.log");
    ck_assert_uint_le(strlen(log), 1024 * 1024 + 100);
    ck_assert_ptr_nonnull(strstr(log, "more bytes were not kept"));
    bench_close(&bench);
}
END_TEST

START_TEST(a_daemon_of_the_wrapper_does_not_outlive_the_session)
{
    pass_with("daemon");
    bench_close(&bench);
}
END_TEST

START_TEST(a_line_that_nobody_asked_for_ends_the_session)
{
    bench_open(&bench, "chatty:execute");
    ck_assert(bench_start_controller(&bench));
    bench_run(&bench);
    bench_expect(&bench, "failed", LOST);
    ck_assert_int_le(bench_seen(&bench, "execute"), 2);
    bench_close(&bench);
}
END_TEST

START_TEST(a_lost_session_says_how_it_ended)
{
    static const struct {
        const char *behaviours, *sentence;
    } ends[] = {
        {"unwell:shutdown", "exited with status 5"},
        {"silent:execute", "did not answer execute in time"},
        {"close:execute", "closed its output instead of answering execute"},
        {"sequence:execute", "was refused"},
        {"refuse:initialize", "verify command ended with 3"},
        {"error:finalize", "refused finalize: RuntimeError: its words are kept in the run directory only"},
        {"unclean:finalize", "did not boot and stop cleanly: availability-failure"},
        {"oracle:finalize", "an oracle had failed by the end of the campaign: its words are kept"},
        {"category:execute:test-failure", "ended as test-failure: its words are kept"},
        {"violation:execute", "violation evidence"},
    };
    bench_open(&bench, ends[_i].behaviours);
    ck_assert(bench_start_controller(&bench));
    bench_run(&bench);
    ck_assert_msg(strstr(bench.error.message, ends[_i].sentence) != NULL, "%s", bench.error.message);
    bench_close(&bench);
}
END_TEST

START_TEST(a_target_of_the_register_is_refused_at_the_next_initialize)
{
    bench_open(&bench, "reused,vanish:execute");
    ck_assert(bench_start_controller(&bench));
    bench_run(&bench);
    bench_expect(&bench, "failed", LOST);
    bench_set_behaviours(&bench, "reused");
    bench_run(&bench);
    bench_expect(&bench, "failed", PREFLIGHT);
    ck_assert_ptr_nonnull(strstr(bench.error.message, "quarantine register"));
    ck_assert_int_eq(bench_seen(&bench, "execute"), 1);
    bench_stop_controller(&bench); /* and it is remembered */
    ck_assert(bench_start_controller(&bench));
    bench_run(&bench);
    bench_expect(&bench, "failed", PREFLIGHT);
    bench_close(&bench);
}
END_TEST

START_TEST(guest_bytes_reach_no_summary_and_no_error)
{
    bench_open(&bench, "category:execute:test-failure");
    ck_assert(bench_start_controller(&bench));
    bench_run(&bench);
    bench_expect(&bench, "failed", "test-failure");
    cleanup_free char *summary = bench_read(&bench, "summary.json");
    cleanup_free char *transitions = bench_read(&bench, "transitions.jsonl");
    ck_assert_ptr_null(strstr(summary, "Z3Vlc3Q"));
    ck_assert_ptr_null(strstr(summary, "u001b"));
    ck_assert_ptr_null(strstr(transitions, "Z3Vlc3Q"));
    ck_assert_ptr_null(strchr(bench.error.message, 0x1b));
    bench_close(&bench);
}
END_TEST

START_TEST(only_listed_variables_reach_the_executor)
{
    static const char *const listed[] = {
        "PATH=", "HOME=", "LANG=", "LC_ALL=", "TMPDIR=", "USER=", "PWD=", "OLDPWD=", "SHLVL=", "_="};
    setenv("GITHUB_TOKEN", "hidden", 1);
    pass_with("environment");
    cleanup_free char *seen = bench_seen_log(&bench);
    ck_assert_ptr_null(strstr(seen, "hidden"));
    char *rest = seen, *line;
    while ((line = strsep(&rest, "\n"))) {
        bool known = line[0] == '{' || line[0] == '\0';
        for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++)
            known = known || strncmp(line, listed[i], strlen(listed[i])) == 0;
        ck_assert_msg(known, "%s", line);
    }
    bench_close(&bench);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("adversity");
    TCase *tests = tcase_create("adversity");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, adversity_has_one_right_verdict, 0, sizeof adversities / sizeof adversities[0]);
    tcase_add_test(tests, answers_in_small_pieces_are_answers);
    tcase_add_test(tests, a_flood_of_diagnosis_is_kept_bounded);
    tcase_add_test(tests, a_daemon_of_the_wrapper_does_not_outlive_the_session);
    tcase_add_test(tests, a_line_that_nobody_asked_for_ends_the_session);
    tcase_add_loop_test(tests, a_lost_session_says_how_it_ended, 0, 10);
    tcase_add_test(tests, a_target_of_the_register_is_refused_at_the_next_initialize);
    tcase_add_test(tests, guest_bytes_reach_no_summary_and_no_error);
    tcase_add_test(tests, only_listed_variables_reach_the_executor);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK); /* a failed test leaves threads and a loop behind */
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
