/*
 * Strategist programs: good ones, ones that give each refusal kind, and ones that hang, flood, fork or die. Whatever
 * they do, only a case that was offered is ever dispatched (I9), and the executor is finalized.
 */
#include "common/cleanup.h"
#include "tests/integration/server/bench.h"

#include <check.h>
#include <string.h>

static struct bench bench;

static void set_up(void)
{
    bench_open(&bench, "");
    ck_assert_msg(bench_start_controller(&bench), "%s", bench.error.message);
}

static void tear_down(void)
{
    bench_close(&bench);
}

/* Takes the first id of the prompt (keys are sorted, so candidates and their ids come first) or of the allowed ids. */
#define FIRST_ID    "id=$(grep -o '\"[a-z-]*-\\(boundary\\|churn\\)\"' | head -n 1 | tr -d '\"')\n"
#define GOOD_ANSWER "printf '{\"schema_version\":1,\"case_id\":\"%s\"}\\n' \"$id\"\n"

START_TEST(a_program_may_choose_all_cases)
{
    bench_set_strategist(&bench, FIRST_ID GOOD_ANSWER);
    bench_run(&bench);
    bench_expect(&bench, "passed", "coverage-converged");
    ck_assert_int_eq(bench_lines(&bench, "copilot/rejections.jsonl"), 0);
    ck_assert(bench_has(&bench, "copilot/001-choice/answer.txt"));
    ck_assert(bench_has(&bench, "copilot/006-choice/accounting.json"));
}
END_TEST

struct refusal {
    const char *kind;
    const char *body;
};

static const struct refusal refusals[] = {
    {"answer-too-long", "head -c 5000 /dev/zero | tr '\\0' x"},
    {"invalid-utf8", "printf '{\"schema_version\":1,\"case_id\":\"\\377\"}'"},
    {"empty", "true"},
    {"nested-too-deep", "printf '{\"a\":[[[[[[[[[[[[]]]]]]]]]]]]}'"},
    {"not-an-object", "printf '[1]'"},
    {"surrounding-text", "printf 'I choose {\"schema_version\":1,\"case_id\":\"vmm-lifecycle-boundary\"}'"},
    {"several-objects", "printf '{\"schema_version\":1}{\"case_id\":\"a\"}'"},
    {"malformed-json", "printf '{\"schema_version\":1,}'"},
    {"duplicate-key", "printf '{\"schema_version\":1,\"case_id\":\"a\",\"case\\\\u005fid\":\"b\"}'"},
    {"extra-key", "printf '{\"schema_version\":1,\"case_id\":\"a\",\"command\":\"rm\"}'"},
    {"missing-key", "printf '{\"schema_version\":1}'"},
    {"schema-version", "printf '{\"schema_version\":true,\"case_id\":\"vmm-lifecycle-boundary\"}'"},
    {"case-id-type", "printf '{\"schema_version\":1,\"case_id\":7}'"},
    {"case-unknown", "printf '{\"schema_version\":1,\"case_id\":\"../../etc/passwd\"}'"},
};

START_TEST(an_answer_that_is_refused_three_times_ends_the_campaign)
{
    const struct refusal *row = &refusals[_i];
    bench_set_strategist(&bench, row->body);
    bench_run(&bench);
    bench_expect(&bench, "failed", "preflight-or-executor-failure");
    cleanup_free char *rejections = bench_read(&bench, "copilot/rejections.jsonl");
    char needle[64];
    snprintf(needle, sizeof needle, "\"kind\":\"%s\"", row->kind);
    ck_assert_msg(bench_count(rejections, needle) == 3, "%s: %s", row->kind, rejections);
    ck_assert(bench_has(&bench, "copilot/003-repair/accounting.json"));
    ck_assert(!bench_has(&bench, "copilot/004-repair/accounting.json"));
    ck_assert_int_eq(bench_seen(&bench, "execute"), 0);
    ck_assert_int_eq(bench_seen(&bench, "finalize"), 1); /* the executor is finalized all the same */
    ck_assert_int_eq(bench_seen(&bench, "shutdown"), 1);
}
END_TEST

START_TEST(a_repair_prompt_lets_a_program_recover)
{
    bench_set_strategist(&bench, "prompt=$(cat)\n"
                                 "case \"$prompt\" in *rejection*) ;; *) echo nonsense; exit 0;; esac\n"
                                 "echo \"$prompt\" | (" FIRST_ID GOOD_ANSWER ")");
    bench.request.budget_actions = 2;
    bench_run(&bench);
    bench_expect(&bench, "passed", "action-budget-exhausted");
    ck_assert_int_eq(bench_lines(&bench, "copilot/rejections.jsonl"), 2);
    ck_assert_int_eq(bench_seen(&bench, "execute"), 2);
}
END_TEST

START_TEST(a_completed_case_is_not_run_twice)
{
    bench_set_strategist(&bench, "printf '{\"schema_version\":1,\"case_id\":\"vmm-lifecycle-boundary\"}'");
    bench_run(&bench);
    bench_expect(&bench, "failed", "preflight-or-executor-failure");
    cleanup_free char *rejections = bench_read(&bench, "copilot/rejections.jsonl");
    ck_assert_int_eq(bench_count(rejections, "\"kind\":\"case-completed\""), 3);
    ck_assert_int_eq(bench_seen(&bench, "execute"), 1);
}
END_TEST

struct failure {
    const char *body;
    const char *sentence; /* part of the error */
};

static const struct failure failures[] = {
    {"exit 3", "exited with status 3"},
    {"kill -KILL $$", "signal 9"},
    {"sleep 600", "did not finish in time"},
    {"trap '' TERM; while :; do sleep 1; done", "did not finish in time"},
    {"yes", "more than"},
    {"cat; exit 1", "exited with status 1"},
};

START_TEST(a_program_that_fails_ends_the_campaign_in_order)
{
    bench_set_strategist(&bench, failures[_i].body);
    bench_run(&bench);
    bench_expect(&bench, "failed", "preflight-or-executor-failure");
    ck_assert_msg(strstr(bench.error.message, failures[_i].sentence) != NULL, "%s", bench.error.message);
    ck_assert_int_eq(bench_seen(&bench, "execute"), 0);
    ck_assert_int_eq(bench_seen(&bench, "finalize"), 1);
    ck_assert_int_eq(bench_seen(&bench, "shutdown"), 1);
}
END_TEST

START_TEST(processes_that_a_program_leaves_behind_are_gone)
{
    bench_set_strategist(&bench, FIRST_ID "setsid sleep 654321 >/dev/null 2>&1 </dev/null &\n" GOOD_ANSWER);
    bench.request.budget_actions = 1;
    bench_run(&bench);
    bench_expect(&bench, "passed", "action-budget-exhausted");
    ck_assert_int_ne(system("pgrep -f 'sleep 65432[1]' >/dev/null"), 0);
}
END_TEST

START_TEST(a_program_sees_no_secret_and_no_guest_text)
{
    setenv("COPILOT_GITHUB_TOKEN", "hidden", 1);
    char body[2048];
    snprintf(body, sizeof body, "cd '%s'\nenv >>env.txt\ncat >prompt.txt\nexec <prompt.txt\n%s", bench.root,
             FIRST_ID GOOD_ANSWER);
    bench_set_strategist(&bench, body);
    bench.request.budget_actions = 2;
    bench_run(&bench);
    bench_expect(&bench, "passed", "action-budget-exhausted");
    char command[512];
    snprintf(command, sizeof command, "grep -q hidden %s/env.txt", bench.root);
    ck_assert_int_ne(system(command), 0);
    snprintf(command, sizeof command, "grep -q 'guest says' %s/prompt.txt", bench.root);
    ck_assert_int_ne(system(command), 0);
    snprintf(command, sizeof command, "grep -q Z3Vlc3Qgc2F5czoge30K %s/prompt.txt", bench.root);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(a_program_that_is_no_program_is_refused_before_anything_starts)
{
    bench_set_strategist(&bench, "true");
    snprintf(bench.request.strategist_command, sizeof bench.request.strategist_command, "%s/absent", bench.root);
    bench_run(&bench);
    ck_assert(bench.refused);
    ck_assert_ptr_nonnull(strstr(bench.error.message, "does not exist"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("strategist");
    TCase *tests = tcase_create("strategist");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_program_may_choose_all_cases);
    tcase_add_loop_test(tests, an_answer_that_is_refused_three_times_ends_the_campaign, 0,
                        sizeof refusals / sizeof refusals[0]);
    tcase_add_test(tests, a_repair_prompt_lets_a_program_recover);
    tcase_add_test(tests, a_completed_case_is_not_run_twice);
    tcase_add_loop_test(tests, a_program_that_fails_ends_the_campaign_in_order, 0,
                        sizeof failures / sizeof failures[0]);
    tcase_add_test(tests, processes_that_a_program_leaves_behind_are_gone);
    tcase_add_test(tests, a_program_sees_no_secret_and_no_guest_text);
    tcase_add_test(tests, a_program_that_is_no_program_is_refused_before_anything_starts);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK); /* a failed test leaves threads and a loop behind */
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
