/*
 * The controller killed with -9 at random moments, and run directories as crashes leave them. After the next start
 * every campaign that had started has both summaries (I6), every observation has its action (I1), the target of every
 * session is in the register (I3), and no process is left.
 */
#include "common/cleanup.h"
#include "tests/integration/server/bench.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static struct bench bench;

static void pause_ms(long ms)
{
    struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&span, NULL);
}

static void tear_down(void)
{
    bench_close(&bench);
}

static void set_up(void)
{
    bench_open(&bench, "");
}

static void start(void)
{
    ck_assert_msg(bench_start_controller(&bench), "%s", bench.error.message);
}

/* Runs a campaign in a process of its own and kills that process after delay_ms. */
static void run_and_kill(long delay_ms)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (bench_start_controller(&bench))
            bench_run(&bench);
        _exit(0);
    }
    pause_ms(delay_ms);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static bool process_left(void)
{
    bool left = false;
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    while ((entry = readdir(processes))) {
        char path[300], line[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t length = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
        if (fd >= 0)
            close(fd);
        left = left || (length > 0 && memmem(line, (size_t)length, bench.root, strlen(bench.root)) != NULL);
    }
    closedir(processes);
    return left;
}

static void expect_actions_for_observations(void)
{
    cleanup_free char *actions =
        bench_lines(&bench, "actions.jsonl") ? bench_read(&bench, "actions.jsonl") : strdup("");
    cleanup_free char *observations =
        bench_lines(&bench, "observations.jsonl") ? bench_read(&bench, "observations.jsonl") : strdup("");
    char *rest = observations, *line;
    while ((line = strsep(&rest, "\n")) && line[0]) {
        struct hf_json_limits limits = {1 << 20, 16};
        cleanup_json cJSON *observation = hf_json_parse(line, strlen(line), &limits, NULL);
        char needle[128];
        snprintf(needle, sizeof needle, "\"case_id\":\"%s\"", hf_json_get_string(observation, "case_id"));
        ck_assert_msg(strstr(actions, needle) != NULL, "%s was observed but never accepted", needle);
    }
}

static void expect_recovered(const char *run_id)
{
    static const char *const known[] = {"controller-restarted", "coverage-converged"};
    snprintf(bench.run_id, sizeof bench.run_id, "%.96s", run_id);
    cleanup_json cJSON *summary = bench_json(&bench, "public-summary.json");
    const char *category = hf_json_get_string(summary, "category");
    ck_assert_msg(strcmp(category, known[0]) == 0 || strcmp(category, known[1]) == 0, "%s", category);
    bench_expect(&bench, strcmp(category, known[0]) == 0 ? "failed" : "passed", category);
    expect_actions_for_observations();
    ck_assert(!bench_has(&bench, "summary.json.tmp~"));
    cleanup_free char *manifest = bench_read(&bench, "replay-manifest.json");
    ck_assert_ptr_nonnull(strstr(manifest, "actions_sha256"));
    bool started = bench_has(&bench, "transitions.jsonl");
    cleanup_free char *transitions = started ? bench_read(&bench, "transitions.jsonl") : strdup("");
    if (strcmp(category, known[0]) == 0 && strstr(transitions, "\"to\":\"initializing\"") &&
        !strstr(transitions, "\"to\":\"closed\""))
        ck_assert(bench_has(&bench, "target-quarantine.json"));
}

static int expect_all_recovered(void)
{
    int count = 0;
    DIR *runs = opendir(bench.runs);
    struct dirent *entry;
    while ((entry = readdir(runs))) {
        if (strncmp(entry->d_name, "run-", 4) != 0)
            continue;
        expect_recovered(entry->d_name);
        count++;
    }
    closedir(runs);
    return count;
}

START_TEST(a_controller_killed_at_any_moment_loses_no_campaign)
{
    srand48(20261201 + _i);
    bench_set_behaviours(&bench, "late:execute:20,late:initialize:20,late:finalize:20");
    for (int i = 0; i < 5; i++)
        run_and_kill(20 + (long)(drand48() * 480));
    start();
    ck_assert_int_ge(expect_all_recovered(), 1);
    for (int i = 0; i < 100 && process_left(); i++)
        pause_ms(100);
    ck_assert(!process_left());
    bench_stop_controller(&bench);
    start(); /* recovering what is recovered changes nothing */
    expect_all_recovered();
    bench_run(&bench);
    bench_expect(&bench, "passed", "coverage-converged");
}
END_TEST

/* ---- what crashes leave behind, made by hand from a run that went well ---- */

static void path_of(const char *name, char path[700])
{
    snprintf(path, 700, "%s/%s/%s", bench.runs, bench.run_id, name);
}

static void remove_file(const char *name)
{
    char path[700];
    path_of(name, path);
    ck_assert_int_eq(unlink(path), 0);
}

static void append_text(const char *name, const char *text)
{
    char path[700];
    path_of(name, path);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* Cuts a journal after its first `lines` lines. */
static void keep_lines(const char *name, int lines)
{
    char path[700];
    path_of(name, path);
    cleanup_free char *text = bench_read(&bench, name);
    const char *end = text;
    while (lines-- > 0)
        end = strchr(end, '\n') + 1;
    ck_assert_int_eq(truncate(path, end - text), 0);
}

static int line_of(const char *name, const char *needle)
{
    cleanup_free char *text = bench_read(&bench, name);
    char *found = strstr(text, needle);
    ck_assert_ptr_nonnull(found);
    *found = '\0';
    return bench_count(text, "\n") + 1;
}

static void forget_index(void)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", bench.state);
    ck_assert_int_eq(system(command), 0);
}

static void run_well(void)
{
    start();
    bench_run(&bench);
    bench_expect(&bench, "passed", "coverage-converged");
    bench_stop_controller(&bench);
}

START_TEST(a_verdict_that_was_sealed_stays)
{
    run_well();
    forget_index();
    keep_lines("transitions.jsonl", line_of("transitions.jsonl", "\"to\":\"summarizing\""));
    remove_file("public-summary.json");
    start();
    bench_expect(&bench, "passed", "coverage-converged");
    cleanup_free char *transitions = bench_read(&bench, "transitions.jsonl");
    ck_assert_ptr_nonnull(strstr(transitions, "\"to\":\"passed\""));
}
END_TEST

START_TEST(torn_last_lines_are_cut)
{
    run_well();
    forget_index();
    keep_lines("transitions.jsonl", line_of("transitions.jsonl", "\"to\":\"finalizing\""));
    remove_file("public-summary.json");
    remove_file("summary.json");
    append_text("transitions.jsonl", "{\"at\":\"20");
    append_text("actions.jsonl", "{\"case_id\":\"half");
    append_text("observations.jsonl", "{");
    start();
    bench_expect(&bench, "failed", "controller-restarted");
    ck_assert_int_eq(bench_lines(&bench, "actions.jsonl"), 6);
    cleanup_json cJSON *summary = bench_json(&bench, "summary.json");
    ck_assert_ptr_nonnull(strstr(hf_json_get_string(summary, "error"), "state finalizing"));
    ck_assert_int_eq(cJSON_GetArraySize(hf_json_get(summary, "completed_cases")), 6);
    ck_assert(bench_has(&bench, "target-quarantine.json"));
}
END_TEST

START_TEST(damage_inside_a_journal_is_told_and_not_repaired)
{
    run_well();
    forget_index();
    keep_lines("transitions.jsonl", 5);
    append_text("transitions.jsonl",
                "{\"machine\":\"campaign\",\"event\":\"no_such_event\",\"guard\":\"always\",\"to\":\"passed\"}\n");
    remove_file("public-summary.json");
    remove_file("summary.json");
    int lines = bench_lines(&bench, "transitions.jsonl");
    start();
    bench_expect(&bench, "failed", "controller-restarted");
    ck_assert_int_eq(bench_lines(&bench, "transitions.jsonl"), lines);
    cleanup_json cJSON *summary = bench_json(&bench, "summary.json");
    ck_assert_ptr_nonnull(strstr(hf_json_get_string(summary, "error"), "transitions.jsonl is damaged"));
}
END_TEST

/* What is left tells of a session whose end nobody knows: its target may not be used again (I3). */
START_TEST(a_lost_journal_costs_the_target)
{
    run_well();
    forget_index();
    remove_file("transitions.jsonl");
    remove_file("public-summary.json");
    remove_file("summary.json");
    start();
    bench_expect(&bench, "failed", "controller-restarted");
    ck_assert(bench_has(&bench, "target-quarantine.json"));
    cleanup_json cJSON *summary = bench_json(&bench, "summary.json");
    ck_assert_ptr_nonnull(strstr(hf_json_get_string(summary, "error"), "transitions.jsonl is damaged"));
}
END_TEST

static void expect_refused(const char *code, const char *name)
{
    ck_assert(!bench_start_controller(&bench));
    ck_assert_str_eq(bench.error.code, code);
    ck_assert_msg(strstr(bench.error.message, name), "%s", bench.error.message);
}

/* Another user could have planted the register or a run there. */
START_TEST(directories_that_others_can_write_to_are_refused)
{
    char path[700];
    run_well();
    path_of("", path);
    const char *const directories[] = {bench.runs, bench.state, path};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(chmod(directories[i], _i ? 0770 : 0707), 0);
        expect_refused("storage-unsafe", i < 2 ? directories[i] : bench.run_id);
        ck_assert_int_eq(chmod(directories[i], 0700), 0);
    }
    for (int i = 0; i < 3 && geteuid() == 0; i++) {
        ck_assert_int_eq(chown(directories[i], 65534, 65534), 0);
        expect_refused("storage-unsafe", "user 65534");
        ck_assert_int_eq(chown(directories[i], 0, 0), 0);
    }
    start();
}
END_TEST

START_TEST(a_run_of_another_process_is_not_called_finished)
{
    struct hf_campaign_view view;
    struct hf_error err;
    bench_set_behaviours(&bench, "late:execute:10000");
    pid_t pid = fork();
    if (pid == 0) {
        if (bench_start_controller(&bench))
            bench_run(&bench);
        _exit(0);
    }
    for (int i = 0; i < 100 && bench_seen(&bench, "execute") == 0; i++)
        pause_ms(100);
    start();
    ck_assert_uint_eq(hf_controller_list(bench.controller, NULL, 1, &view), 1);
    ck_assert_int_eq(hf_controller_cancel(bench.controller, view.run_id, &err), -1);
    ck_assert_str_eq(err.code, "campaign-elsewhere");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
END_TEST

/* Not followed, not skipped, not deleted: somebody has to look. */
START_TEST(what_is_no_run_directory_but_has_such_a_name_is_refused)
{
    static const char name[] = "run-20260101t000000z-1-00000000";
    char path[400];
    snprintf(path, sizeof path, "%.300s/%s", bench.runs, name);
    start();
    bench_stop_controller(&bench);
    ck_assert_int_eq(_i ? mkfifo(path, 0600) : symlink("/etc", path), 0);
    expect_refused("storage-failed", name);
    ck_assert_ptr_nonnull(strstr(bench.error.message, "symbolic link"));
    ck_assert_int_eq(unlink(path), 0);
    start();
}
END_TEST

START_TEST(evidence_of_a_violation_outlives_the_crash)
{
    bench_set_behaviours(&bench, "violation:execute2");
    start();
    bench_run(&bench);
    bench_expect(&bench, "failed", "policy-violation");
    bench_stop_controller(&bench);
    forget_index();
    keep_lines("transitions.jsonl", line_of("transitions.jsonl", "\"to\":\"quarantining\""));
    remove_file("public-summary.json");
    remove_file("summary.json");
    start();
    bench_expect(&bench, "failed", "policy-violation");
    struct hf_quarantine_record record;
    ck_assert_uint_eq(hf_controller_quarantine(bench.controller, 1, &record), 1);
}
END_TEST

START_TEST(a_lost_index_is_rebuilt_from_the_run_directories)
{
    char ids[3][HF_RUN_ID_SIZE];
    start();
    for (int i = 0; i < 3; i++) {
        bench_set_behaviours(&bench, i == 1 ? "vanish:execute" : "");
        bench_run(&bench);
        memcpy(ids[i], bench.run_id, sizeof ids[i]);
        pause_ms(1100); /* the order comes from the second in the name */
    }
    bench_stop_controller(&bench);
    forget_index();
    start();
    struct hf_campaign_view views[4];
    struct hf_quarantine_record record;
    ck_assert_uint_eq(hf_controller_list(bench.controller, NULL, 4, views), 3);
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(views[i].run_id, ids[2 - i]);
    ck_assert_str_eq(views[1].category, "availability-failure");
    ck_assert_uint_eq(hf_controller_list(bench.controller, ids[1], 4, views), 1);
    ck_assert_uint_eq(hf_controller_quarantine(bench.controller, 1, &record), 1);
    ck_assert_str_eq(record.run_id, ids[1]);
}
END_TEST

START_TEST(a_directory_that_never_counted_as_started_is_swept)
{
    char path[700];
    start();
    bench_stop_controller(&bench);
    snprintf(bench.run_id, sizeof bench.run_id, "run-20261201t000000z-1-00000000");
    path_of("", path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    append_text("reserve.bin", "x");
    append_text("metadata.json.tmp~", "{");
    start();
    ck_assert(!bench_has(&bench, ""));
}
END_TEST

START_TEST(a_run_that_is_alive_in_another_process_is_left_alone)
{
    char path[700];
    run_well();
    forget_index();
    remove_file("public-summary.json");
    path_of("", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    start();
    ck_assert(!bench_has(&bench, "public-summary.json"));
    bench_stop_controller(&bench);
    close(fd);
    start();
    bench_expect(&bench, "passed", "coverage-converged");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recovery");
    TCase *tests = tcase_create("recovery");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_controller_killed_at_any_moment_loses_no_campaign, 0, 4);
    tcase_add_test(tests, a_verdict_that_was_sealed_stays);
    tcase_add_test(tests, torn_last_lines_are_cut);
    tcase_add_test(tests, damage_inside_a_journal_is_told_and_not_repaired);
    tcase_add_test(tests, a_run_of_another_process_is_not_called_finished);
    tcase_add_test(tests, a_lost_journal_costs_the_target);
    tcase_add_loop_test(tests, directories_that_others_can_write_to_are_refused, 0, 2);
    tcase_add_loop_test(tests, what_is_no_run_directory_but_has_such_a_name_is_refused, 0, 2);
    tcase_add_test(tests, evidence_of_a_violation_outlives_the_crash);
    tcase_add_test(tests, a_lost_index_is_rebuilt_from_the_run_directories);
    tcase_add_test(tests, a_directory_that_never_counted_as_started_is_swept);
    tcase_add_test(tests, a_run_that_is_alive_in_another_process_is_left_alone);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK); /* a failed test leaves threads and a loop behind */
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
