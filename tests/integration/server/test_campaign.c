/* Campaigns that go well, and what they leave behind. */
#include "common/cleanup.h"
#include "tests/integration/server/bench.h"

#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

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

START_TEST(a_campaign_covers_all_cases_and_passes)
{
    bench_run(&bench);
    bench_expect(&bench, "passed", "coverage-converged");
    ck_assert_int_eq(bench_seen(&bench, "initialize"), 1);
    ck_assert_int_eq(bench_seen(&bench, "execute"), 6);
    ck_assert_int_eq(bench_seen(&bench, "finalize"), 1);
    ck_assert_int_eq(bench_seen(&bench, "shutdown"), 1);
    ck_assert_int_eq(bench.actions, 6);
    ck_assert_int_eq(bench.observations, 6);
    ck_assert_int_eq(bench_lines(&bench, "observations.jsonl"), 6);
}
END_TEST

static void read_cases(char cases[8][HF_IDENTIFIER_SIZE], int *count)
{
    cleanup_free char *actions = bench_read(&bench, "actions.jsonl");
    struct hf_json_limits limits = {1 << 16, 8};
    char *rest = actions, *line;
    for (*count = 0; (line = strsep(&rest, "\n")) && line[0]; ++*count) {
        cleanup_json cJSON *action = hf_json_parse(line, strlen(line), &limits, NULL);
        snprintf(cases[*count], HF_IDENTIFIER_SIZE, "%s", hf_json_get_string(action, "case_id"));
    }
}

START_TEST(the_seed_decides_the_order)
{
    char first[8][HF_IDENTIFIER_SIZE] = {0}, again[8][HF_IDENTIFIER_SIZE] = {0}, other[8][HF_IDENTIFIER_SIZE];
    int count;
    bench.request.strategist = _i ? HF_STRATEGIST_RANDOM : HF_STRATEGIST_GREEDY;
    bench_run(&bench);
    read_cases(first, &count);
    ck_assert_int_eq(count, 6);
    bench_run(&bench);
    read_cases(again, &count);
    ck_assert_mem_eq(first, again, 6 * sizeof first[0]);
    bool differs = false;
    for (bench.request.seed = 1; bench.request.seed < 9 && !differs; bench.request.seed++) {
        bench_run(&bench);
        read_cases(other, &count);
        for (int i = 0; i < count; i++)
            differs = differs || strcmp(first[i], other[i]) != 0;
    }
    ck_assert(differs);
}
END_TEST

START_TEST(an_action_budget_is_kept)
{
    bench.request.budget_actions = 3;
    bench_run(&bench);
    bench_expect(&bench, "passed", "action-budget-exhausted");
    ck_assert_int_eq(bench_seen(&bench, "execute"), 3);
    ck_assert_int_eq(bench_seen(&bench, "finalize"), 1);
}
END_TEST

static void spend_time(struct bench *at, const struct hf_progress *progress)
{
    if (progress->kind == HF_PROGRESS_OBSERVATION && progress->sequence == 2)
        at->controller->clock_offset_ms += (uint64_t)at->request.budget_seconds * 1000 - 27 * 1000;
}

START_TEST(a_time_budget_leaves_the_reserve_for_the_finalization)
{
    bench.on_progress = spend_time; /* 27 s are left: the reserve is 26, an action needs one more */
    bench_run(&bench);
    bench_expect(&bench, "passed", "time-budget-exhausted");
    ck_assert_int_eq(bench_seen(&bench, "execute"), 2);
    ck_assert_int_eq(bench_seen(&bench, "finalize"), 1);
    cleanup_free char *seen = bench_seen_log(&bench);
    ck_assert_ptr_nonnull(strstr(seen, "\"operation\":\"finalize\",\"quarantine\":false"));
}
END_TEST

START_TEST(every_document_of_a_run_is_there)
{
    static const char *const names[] = {"metadata.json",        "actions.jsonl",          "observations.jsonl",
                                        "transitions.jsonl",    "summary.json",           "public-summary.json",
                                        "replay-manifest.json", "target-initialize.json", "target-finalize.json"};
    bench_run(&bench);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_msg(bench_has(&bench, names[i]), "%s", names[i]);
    cleanup_json cJSON *metadata = bench_json(&bench, "metadata.json");
    const cJSON *target = hf_json_get(metadata, "target"), *controller = hf_json_get(metadata, "controller");
    ck_assert_ptr_nonnull(strstr(hf_json_get_string(target, "artifact_root"), bench.run_id));
    ck_assert_str_eq(hf_json_get_string(metadata, "executor_topology"), "external");
    ck_assert_int_eq((int)strlen(hf_json_get_string(controller, "commit")), 40);
    ck_assert(!bench_has(&bench, "target-quarantine.json"));
    ck_assert(!bench_has(&bench, "minimization-skipped.json"));
}
END_TEST

START_TEST(an_external_executor_has_to_be_clean)
{
    bench_run(&bench);
    cleanup_free char *seen = bench_seen_log(&bench);
    ck_assert_ptr_nonnull(strstr(seen, "\"require_clean\":true"));
}
END_TEST

START_TEST(the_manifest_names_the_actions_as_they_are)
{
    char digest[HF_SHA256_HEX_SIZE];
    bench_run(&bench);
    cleanup_free char *actions = bench_read(&bench, "actions.jsonl");
    cleanup_json cJSON *manifest = bench_json(&bench, "replay-manifest.json");
    hf_sha256_hex(actions, strlen(actions), digest);
    ck_assert_str_eq(hf_json_get_string(manifest, "actions_sha256"), digest);
    ck_assert_int_eq(hf_json_get_int_or(manifest, "actions_size_bytes", 0), (int64_t)strlen(actions));
}
END_TEST

START_TEST(an_anomaly_says_why_it_was_not_minimized)
{
    bench_set_behaviours(&bench, "category:execute:test-failure");
    bench_run(&bench);
    bench_expect(&bench, "failed", "test-failure");
    cleanup_json cJSON *skipped = bench_json(&bench, "minimization-skipped.json");
    ck_assert_ptr_nonnull(hf_json_get_string(skipped, "reason"));
    bench.request.minimize = false;
    bench_run(&bench);
    ck_assert(!bench_has(&bench, "minimization-skipped.json"));
}
END_TEST

static void cancel_at(struct bench *at, const struct hf_progress *progress)
{
    struct hf_error err;
    if (progress->kind == HF_PROGRESS_ACTION && progress->sequence == 2)
        ck_assert_int_eq(hf_controller_cancel(at->controller, progress->view->run_id, &err), 0);
}

START_TEST(a_cancelled_campaign_finalizes_its_executor)
{
    bench_set_behaviours(&bench, "late:execute:100");
    bench.on_progress = cancel_at;
    bench_run(&bench);
    bench_expect(&bench, "failed", "cancelled");
    ck_assert_int_le(bench_seen(&bench, "execute"), 2);
    ck_assert_int_eq(bench_seen(&bench, "finalize"), 1);
    ck_assert_int_eq(bench_seen(&bench, "shutdown"), 1);
    ck_assert(!bench_has(&bench, "target-quarantine.json"));
    struct hf_error err;
    ck_assert_int_eq(hf_controller_cancel(bench.controller, bench.run_id, &err), -1);
    ck_assert_str_eq(err.code, "campaign-finished");
    ck_assert_int_eq(hf_controller_cancel(bench.controller, "run-x", &err), -1);
    ck_assert_str_eq(err.code, "campaign-unknown");
}
END_TEST

static void cancel_state(struct bench *at, const struct hf_progress *progress)
{
    static const char *const states[] = {"preflight", "initializing", "selecting", "journaling",
                                         "observing", "finalizing",   "closing",   "summarizing"};
    struct hf_error err;
    if (progress->kind == HF_PROGRESS_STATE && strcmp(progress->view->state, states[at->cancel_state]) == 0)
        hf_controller_cancel(at->controller, progress->view->run_id, &err);
}

START_TEST(a_cancel_in_any_state_ends_in_order)
{
    bench.cancel_state = _i;
    bench.on_progress = cancel_state;
    bench_run(&bench);
    if (_i < 7)
        bench_expect(&bench, "failed", "cancelled");
    else
        bench_expect(&bench, "passed", "coverage-converged"); /* the verdict was sealed */
    ck_assert_int_eq(bench_seen(&bench, "finalize"), bench_seen(&bench, "initialize"));
}
END_TEST

START_TEST(a_second_cancel_does_not_wait_for_the_answer)
{
    struct hf_error err;
    bench_set_behaviours(&bench, "silent:execute");
    bench.request.action_timeout_seconds = 30; /* would hold the first cancel for half a minute */
    bench.request.budget_seconds = 900;
    ck_assert_int_eq(hf_controller_start(bench.controller, &bench.request, NULL, NULL, &err), 0);
    while (bench.actions == 0)
        uv_run(&bench.loop, UV_RUN_ONCE);
    memcpy(bench.run_id, bench.view.run_id, sizeof bench.run_id);
    hf_controller_cancel(bench.controller, bench.run_id, &err);
    hf_controller_cancel(bench.controller, bench.run_id, &err);
    while (hf_controller_live_count(bench.controller) > 0)
        uv_run(&bench.loop, UV_RUN_ONCE);
    bench_expect(&bench, "failed", "cancelled");
    ck_assert(bench_has(&bench, "target-quarantine.json"));
}
END_TEST

START_TEST(a_stop_while_a_campaign_is_prepared_is_heard)
{
    struct hf_error err;
    ck_assert_int_eq(hf_controller_start(bench.controller, &bench.request, NULL, NULL, &err), 0);
    hf_controller_stop(bench.controller, NULL, NULL);
    ck_assert_int_eq(hf_controller_start(bench.controller, &bench.request, NULL, NULL, &err), -1);
    ck_assert_str_eq(err.code, "controller-stopping");
    while (hf_controller_live_count(bench.controller) > 0)
        uv_run(&bench.loop, UV_RUN_ONCE);
    memcpy(bench.run_id, bench.view.run_id, sizeof bench.run_id);
    bench_expect(&bench, "failed", "cancelled");
    ck_assert_int_eq(bench_seen(&bench, "execute"), 0);
}
END_TEST

struct refusal {
    const char *command; /* below the private directory, or as it is when absolute */
    const char *sentence;
};

START_TEST(a_wrapper_that_is_none_is_refused_before_anything_starts)
{
    static const struct refusal refusals[] = {
        {"absent", "does not exist"},        {"", "is a directory"},
        {"plain-file", "is not executable"}, {"wrapper --with arguments", "contains spaces and is not itself a file"},
        {"fifo", "is not a regular file"},
    };
    const struct refusal *row = &refusals[_i];
    char path[400];
    snprintf(path, sizeof path, "%s/plain-file", bench.root);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    snprintf(path, sizeof path, "%s/fifo", bench.root);
    ck_assert_int_eq(mkfifo(path, 0700), 0);
    snprintf(bench.request.executor_command, sizeof bench.request.executor_command, "%s/%s", bench.root, row->command);
    bench_run(&bench);
    ck_assert(bench.refused);
    ck_assert_str_eq(bench.error.code, "executor-command-invalid");
    ck_assert_msg(strstr(bench.error.message, row->sentence) != NULL, "%s", bench.error.message);
    struct hf_campaign_view view;
    ck_assert(!hf_controller_view(bench.controller, bench.run_id, &view));
    ck_assert(!bench_has(&bench, ""));
}
END_TEST

START_TEST(a_wrapper_whose_name_has_spaces_is_a_wrapper)
{
    char path[400], command[900];
    snprintf(path, sizeof path, "%s/a wrapper", bench.root);
    snprintf(command, sizeof command, "cp '%s' '%s'", bench.wrapper, path);
    ck_assert_int_eq(system(command), 0);
    snprintf(bench.request.executor_command, sizeof bench.request.executor_command, "%s", path);
    bench_run(&bench);
    bench_expect(&bench, "passed", "coverage-converged");
}
END_TEST

START_TEST(a_wrapper_that_cannot_be_executed_fails_preflight_and_registers_nothing)
{
    int fd = open(bench.wrapper, O_WRONLY | O_TRUNC | O_CLOEXEC);
    ck_assert_int_eq(write(fd, "#!/no/such/shell\n", 17), 17);
    close(fd);
    bench_run(&bench);
    bench_expect(&bench, "failed", "preflight-or-executor-failure");
    ck_assert_ptr_nonnull(strstr(bench.error.message, "cannot execute"));
    ck_assert(!bench_has(&bench, "target-quarantine.json"));
}
END_TEST

START_TEST(a_request_for_what_is_not_there_is_refused)
{
    struct hf_campaign_request good = bench.request;
    const struct {
        char *field;
        const char *value, *code;
    } rows[] = {
        {bench.request.campaign, "no-such-campaign", "storage-missing"},
        {bench.request.campaign, "workload-isolation", "catalog-scenario-unknown"},
        {bench.request.profile, "no-such-profile", "storage-missing"},
        {bench.request.backend, "mshv", "request-invalid"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bench.request = good;
        strcpy(rows[i].field, rows[i].value);
        bench_run(&bench);
        ck_assert_msg(bench.refused, "%s", rows[i].value);
        ck_assert_str_eq(bench.error.code, rows[i].code);
    }
    bench.request = good;
    bench.request.executor_command[0] = '\0';
    strcpy(bench.request.executor, "nobody");
    bench_run(&bench);
    ck_assert(bench.refused);
    ck_assert_str_eq(bench.error.code, "executor-unknown");
}
END_TEST

START_TEST(documents_are_read_by_name_and_nothing_else)
{
    size_t length;
    bench_run(&bench);
    cleanup_free char *summary = hf_controller_document(bench.controller, bench.run_id, "public-summary.json", &length);
    ck_assert_ptr_nonnull(summary);
    ck_assert_uint_eq(strlen(summary), length);
    ck_assert_ptr_null(hf_controller_document(bench.controller, "../state", "index.sqlite", &length));
    ck_assert_ptr_null(hf_controller_document(bench.controller, bench.run_id, "../../state/index.sqlite", &length));
    ck_assert_ptr_null(hf_controller_document(bench.controller, "run-none", "public-summary.json", &length));
}
END_TEST

START_TEST(a_missing_prerequisite_fails_the_campaign_and_does_not_skip_it)
{
    setenv("PATH", "/nowhere", 1); /* no git, no dpkg-query */
    bench_run(&bench);
    bench_expect(&bench, "failed", "preflight-or-executor-failure");
    ck_assert_ptr_nonnull(strstr(bench.error.message, "commit"));
    ck_assert_int_eq(bench_seen(&bench, "initialize"), 0);
    ck_assert(!bench_has(&bench, "target-quarantine.json"));
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, a_campaign_covers_all_cases_and_passes);
    tcase_add_loop_test(tests, the_seed_decides_the_order, 0, 2);
    tcase_add_test(tests, an_action_budget_is_kept);
    tcase_add_test(tests, a_time_budget_leaves_the_reserve_for_the_finalization);
    tcase_add_test(tests, every_document_of_a_run_is_there);
    tcase_add_test(tests, an_external_executor_has_to_be_clean);
    tcase_add_test(tests, the_manifest_names_the_actions_as_they_are);
    tcase_add_test(tests, an_anomaly_says_why_it_was_not_minimized);
    tcase_add_test(tests, a_cancelled_campaign_finalizes_its_executor);
    tcase_add_loop_test(tests, a_cancel_in_any_state_ends_in_order, 0, 8);
    tcase_add_test(tests, a_second_cancel_does_not_wait_for_the_answer);
    tcase_add_test(tests, a_stop_while_a_campaign_is_prepared_is_heard);
    tcase_add_loop_test(tests, a_wrapper_that_is_none_is_refused_before_anything_starts, 0, 5);
    tcase_add_test(tests, a_wrapper_whose_name_has_spaces_is_a_wrapper);
    tcase_add_test(tests, a_wrapper_that_cannot_be_executed_fails_preflight_and_registers_nothing);
    tcase_add_test(tests, a_request_for_what_is_not_there_is_refused);
    tcase_add_test(tests, documents_are_read_by_name_and_nothing_else);
    tcase_add_test(tests, a_missing_prerequisite_fails_the_campaign_and_does_not_skip_it);
}

int main(void)
{
    Suite *suite = suite_create("campaign");
    TCase *tests = tcase_create("campaign");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK); /* a failed test leaves threads and a loop behind */
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
