/* The executor's parts that need no process: verdict, pid journal, inventory, status lines, environment. */
#include "common/cleanup.h"
#include "common/json.h"
#include "common/process/proc_stat.h"
#include "executor/environment.h"
#include "executor/inventory.h"
#include "executor/pid_journal.h"
#include "executor/source.h"
#include "executor/verdict.h"
#include "tests/run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char directory[64];
static int dirfd_of_test = -1;

static void make_directory(void)
{
    snprintf(directory, sizeof directory, "/tmp/hf-executor-unit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    dirfd_of_test = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(dirfd_of_test, 0);
}

static void remove_directory(void)
{
    char command[96];
    close(dirfd_of_test);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *name, const char *bytes, size_t length)
{
    cleanup_close int fd = openat(dirfd_of_test, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

/* Verdict: facts as a word of flags, so that a table can be read. */

static const struct verdict_facts GOOD = {
    .started = true, .teardown_complete = true, .returned_zero = true, .reports_acceptable = true};

START_TEST(nothing_wrong_is_passed)
{
    ck_assert_int_eq(verdict_category(&GOOD), HF_CATEGORY_PASSED);
    ck_assert_int_eq(verdict_boot_category(&GOOD), HF_CATEGORY_PASSED);
}
END_TEST

/* In order of precedence; each row is one fact gone wrong. */
static void spoil(struct verdict_facts *facts, int row)
{
    bool *const bad_when_true[] = {&facts->violated, &facts->oracle_lost, &facts->storage_failed,
                                   &facts->artifact_changed};
    if (row < 4)
        *bad_when_true[row] = true;
    if (row == 4)
        facts->started = false;
    if (row == 5)
        facts->timed_out = true;
    if (row == 6)
        facts->teardown_complete = false;
    if (row == 7)
        facts->returned_zero = false;
    if (row == 8)
        facts->reports_acceptable = false;
}

static const enum hf_category BY_ROW[] = {
    HF_CATEGORY_POLICY_VIOLATION, HF_CATEGORY_EXECUTOR_ERROR, HF_CATEGORY_EXECUTOR_ERROR,
    HF_CATEGORY_EXECUTOR_ERROR,   HF_CATEGORY_EXECUTOR_ERROR, HF_CATEGORY_TIMEOUT,
    HF_CATEGORY_TEST_FAILURE,     HF_CATEGORY_TEST_FAILURE,   HF_CATEGORY_TEST_FAILURE,
};
enum { FACTS = sizeof BY_ROW / sizeof BY_ROW[0] };

START_TEST(the_gravest_fact_decides_whatever_else_is_wrong)
{
    for (unsigned wrong = 1; wrong < 1u << FACTS; wrong++) {
        struct verdict_facts facts = GOOD;
        int gravest = -1;
        for (int row = FACTS - 1; row >= 0; row--)
            if (wrong & 1u << row) {
                spoil(&facts, row);
                gravest = row;
            }
        ck_assert_int_eq(verdict_category(&facts), BY_ROW[gravest]);
    }
}
END_TEST

START_TEST(a_boot_record_never_has_a_category_that_the_protocol_does_not_know)
{
    for (unsigned wrong = 1; wrong < 1u << FACTS; wrong++) {
        struct verdict_facts facts = GOOD;
        for (int row = 0; row < FACTS; row++)
            if (wrong & 1u << row)
                spoil(&facts, row);
        enum hf_category category = verdict_boot_category(&facts);
        ck_assert(category == HF_CATEGORY_TIMEOUT || category == HF_CATEGORY_AVAILABILITY_FAILURE ||
                  category == HF_CATEGORY_TEST_FAILURE);
    }
}
END_TEST

/* Pid journal. */

static uint64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

START_TEST(a_missing_pid_journal_is_empty)
{
    struct pid_journal journal;
    ck_assert_int_eq(pid_journal_read(dirfd_of_test, &journal, NULL), 0);
    ck_assert_uint_eq(journal.count, 0);
}
END_TEST

START_TEST(recorded_pids_are_read_once_each)
{
    struct pid_journal journal;
    put_text(PID_JOURNAL_NAME, "{\"pid\":7,\"recorded_at_ns\":1}\n{\"pid\":8,\"recorded_at_ns\":2}\n"
                               "{\"pid\":7,\"recorded_at_ns\":3}\n");
    ck_assert_int_eq(pid_journal_read(dirfd_of_test, &journal, NULL), 0);
    ck_assert_uint_eq(journal.count, 2);
    ck_assert_int_eq(journal.pids[0], 7);
    ck_assert_int_eq(journal.pids[1], 8);
    ck_assert_uint_eq(journal.recorded_at_ns[0], 3);
}
END_TEST

static const char *const BAD_LINES[] = {
    "\n",
    "{}\n",
    "{\"pid\":7}\n",
    "{\"recorded_at_ns\":7}\n",
    "{\"pid\":7,\"recorded_at_ns\":1,\"x\":1}\n",
    "{\"pid\":7,\"pid\":7,\"recorded_at_ns\":1}\n",
    "{\"pid\":0,\"recorded_at_ns\":1}\n",
    "{\"pid\":-7,\"recorded_at_ns\":1}\n",
    "{\"pid\":4194305,\"recorded_at_ns\":1}\n",
    "{\"pid\":true,\"recorded_at_ns\":1}\n",
    "{\"pid\":7.0,\"recorded_at_ns\":1}\n",
    "{\"pid\":\"7\",\"recorded_at_ns\":1}\n",
    "{\"pid\":7,\"recorded_at_ns\":-1}\n",
    "{\"pid\":7,\"recorded_at_ns\":1}",
    "{\"pid\":7,\"recorded_at_ns\":1}\n{\"pid\":8,\"recor",
    "[7]\n",
};

START_TEST(a_malformed_pid_journal_is_refused)
{
    struct pid_journal journal;
    struct hf_error err = {0};
    put_text(PID_JOURNAL_NAME, BAD_LINES[_i]);
    ck_assert_int_eq(pid_journal_read(dirfd_of_test, &journal, &err), -1);
    ck_assert_str_eq(err.code, "pid-journal-invalid");
}
END_TEST

START_TEST(an_oversized_pid_journal_is_refused)
{
    struct pid_journal journal;
    cleanup_free char *text = malloc(PID_JOURNAL_MAX_BYTES + 1);
    memset(text, '\n', PID_JOURNAL_MAX_BYTES + 1);
    put(PID_JOURNAL_NAME, text, PID_JOURNAL_MAX_BYTES + 1);
    ck_assert_int_eq(pid_journal_read(dirfd_of_test, &journal, NULL), -1);
}
END_TEST

START_TEST(more_pids_than_the_protocol_can_carry_are_refused)
{
    struct pid_journal journal;
    char text[16384] = "";
    for (int i = 1; i <= HF_PROTOCOL_MAX_PIDS + 1; i++)
        sprintf(text + strlen(text), "{\"pid\":%d,\"recorded_at_ns\":1}\n", i);
    put_text(PID_JOURNAL_NAME, text);
    ck_assert_int_eq(pid_journal_read(dirfd_of_test, &journal, NULL), -1);
    ck_assert_uint_eq(journal.count, HF_PROTOCOL_MAX_PIDS);
}
END_TEST

START_TEST(a_pid_journal_that_is_a_link_is_refused)
{
    struct pid_journal journal;
    put_text("elsewhere", "{\"pid\":7,\"recorded_at_ns\":1}\n");
    ck_assert_int_eq(symlinkat("elsewhere", dirfd_of_test, PID_JOURNAL_NAME), 0);
    ck_assert_int_eq(pid_journal_read(dirfd_of_test, &journal, NULL), -1);
}
END_TEST

START_TEST(a_running_process_is_alive_and_a_zombie_is_not)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    ck_assert(pid_journal_is_alive(pid, wall_ns()));
    kill(pid, SIGKILL);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert(!pid_journal_is_alive(pid, wall_ns()));
    waitpid(pid, NULL, 0);
    ck_assert(!pid_journal_is_alive(pid, wall_ns()));
}
END_TEST

static void *wait_for_ever(void *argument)
{
    for (;;)
        pause();
    return argument;
}

START_TEST(a_process_whose_leader_has_exited_is_alive_while_a_thread_of_it_runs)
{
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
            _exit(1);
        syscall(SYS_exit, 0); /* of the leader alone */
    }
    struct proc_stat stat = {0};
    while (stat.state != 'Z')
        ck_assert_int_eq(proc_stat_read(pid, 0, &stat), 0);
    ck_assert(pid_journal_is_alive(pid, wall_ns()));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ck_assert(!pid_journal_is_alive(pid, wall_ns()));
}
END_TEST

static struct pid_journal journal_of_self(uint64_t recorded_at_ns)
{
    struct pid_journal journal = {.count = 1};
    journal.pids[0] = getpid();
    journal.recorded_at_ns[0] = recorded_at_ns;
    return journal;
}

START_TEST(a_process_that_started_after_the_record_is_another_one)
{
    /* This process began long after a record of a minute before its start. */
    struct pid_journal journal = journal_of_self(wall_ns() - 3600u * UINT64_C(1000000000));
    pid_journal_find_live(&journal, wall_ns() - 7200u * UINT64_C(1000000000));
    ck_assert_uint_eq(journal.live_count, 0);
}
END_TEST

START_TEST(a_time_of_recording_outside_the_run_excuses_nothing)
{
    const uint64_t outside[] = {0, wall_ns() - 3600u * UINT64_C(1000000000), wall_ns() + 3600u * UINT64_C(1000000000)};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        struct pid_journal journal = journal_of_self(outside[i]);
        pid_journal_find_live(&journal, wall_ns());
        ck_assert_uint_eq(journal.live_count, 1);
    }
}
END_TEST

/* Inventory. */

static const char *const REQUIRED[] = {"outcome.json"};

static void expect_fault(const char *code)
{
    struct inventory inventory;
    inventory_take(dirfd_of_test, REQUIRED, 1, &inventory);
    ck_assert(!inventory.acceptable || !inventory.teardown_complete);
    ck_assert_str_eq(inventory.first_fault.code, code);
    inventory_clear(&inventory);
}

START_TEST(reports_are_found_at_any_depth_and_hashed)
{
    struct inventory inventory;
    mkdirat(dirfd_of_test, "a", 0700);
    mkdirat(dirfd_of_test, "a/b", 0700);
    put_text("outcome.json", "{\"teardown\":true}");
    put_text("a/b/final-report-1.json", "[]");
    put_text("a/b/notes.json", "not a report");
    inventory_take(dirfd_of_test, REQUIRED, 1, &inventory);
    ck_assert(inventory.acceptable && inventory.teardown_complete);
    ck_assert_int_eq(cJSON_GetArraySize(inventory.reports), 2);
    const cJSON *report;
    cJSON_ArrayForEach(
        report, inventory.reports) if (strcmp(hf_json_get_string(report, "path"), "a/b/final-report-1.json") == 0)
        ck_assert_str_eq(hf_json_get_string(report, "sha256"),
                         "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945");
    inventory_clear(&inventory);
}
END_TEST

/* Reports whose teardown is not wholly true, and those where it is. */
static const char *const FALSE_TEARDOWNS[] = {
    "{\"teardown\":false}",
    "{\"teardown\":null}",
    "{\"teardown\":1}",
    "{\"teardown\":\"true\"}",
    "{\"teardown\":{}}",
    "{\"teardown\":[true]}",
    "{\"teardown\":{\"a\":true,\"b\":false}}",
    "{\"teardown\":{\"a\":true,\"b\":{\"c\":true}}}",
    "{\"vms\":[{\"teardown\":{\"a\":true}},{\"deep\":{\"teardown\":{\"a\":false}}}]}",
};
static const char *const TRUE_TEARDOWNS[] = {
    "{}",
    "{\"teardown\":true}",
    "{\"teardown\":{\"a\":true,\"b\":true}}",
    "[{\"teardown\":{\"a\":true}},{\"x\":{\"teardown\":true}}]",
};

START_TEST(a_teardown_field_that_is_not_true_is_found_at_any_depth)
{
    put_text("outcome.json", FALSE_TEARDOWNS[_i]);
    expect_fault("report-teardown");
}
END_TEST

START_TEST(true_teardown_fields_are_accepted)
{
    struct inventory inventory;
    put_text("outcome.json", TRUE_TEARDOWNS[_i]);
    inventory_take(dirfd_of_test, REQUIRED, 1, &inventory);
    ck_assert(inventory.acceptable && inventory.teardown_complete);
    inventory_clear(&inventory);
}
END_TEST

START_TEST(a_missing_report_is_a_fault)
{
    put_text("other-outcome.json", "{}");
    expect_fault("report-missing");
}
END_TEST

START_TEST(a_report_of_exactly_1_mib_is_read_and_one_byte_more_is_refused)
{
    struct inventory inventory;
    cleanup_free char *text = malloc(INVENTORY_MAX_REPORT_BYTES + 1);
    memset(text, ' ', INVENTORY_MAX_REPORT_BYTES + 1);
    text[0] = '{';
    text[1] = '}';
    put("outcome.json", text, INVENTORY_MAX_REPORT_BYTES);
    inventory_take(dirfd_of_test, REQUIRED, 1, &inventory);
    ck_assert(inventory.acceptable);
    inventory_clear(&inventory);
    put("outcome.json", text, INVENTORY_MAX_REPORT_BYTES + 1);
    expect_fault("report-too-large");
}
END_TEST

START_TEST(links_devices_and_directories_in_the_place_of_a_report_are_refused)
{
    put_text("real", "{}");
    ck_assert_int_eq(symlinkat("real", dirfd_of_test, "outcome.json"), 0);
    expect_fault("report-link");
    ck_assert_int_eq(unlinkat(dirfd_of_test, "outcome.json", 0), 0);
    ck_assert_int_eq(mkfifoat(dirfd_of_test, "outcome.json", 0600), 0);
    expect_fault("report-unreadable");
    ck_assert_int_eq(unlinkat(dirfd_of_test, "outcome.json", 0), 0);
    ck_assert_int_eq(mkdirat(dirfd_of_test, "outcome.json", 0700), 0);
    expect_fault("report-missing");
}
END_TEST

START_TEST(a_linked_directory_is_not_followed)
{
    struct inventory inventory;
    put_text("outcome.json", "{}");
    ck_assert_int_eq(symlinkat("/etc", dirfd_of_test, "etc"), 0);
    inventory_take(dirfd_of_test, REQUIRED, 1, &inventory);
    ck_assert(inventory.acceptable);
    ck_assert_int_eq(cJSON_GetArraySize(inventory.reports), 1);
    inventory_clear(&inventory);
}
END_TEST

START_TEST(nesting_and_number_of_files_are_bounded)
{
    char path[128] = "", name[32];
    put_text("outcome.json", "{}");
    for (int i = 0; i <= INVENTORY_MAX_DEPTH; i++) {
        strcat(path, i ? "/d" : "d");
        ck_assert_int_eq(mkdirat(dirfd_of_test, path, 0700), 0);
    }
    expect_fault("report-too-many");
    ck_assert_int_eq(unlinkat(dirfd_of_test, path, AT_REMOVEDIR), 0);
    for (int i = 0; i < INVENTORY_MAX_REPORTS; i++) {
        snprintf(name, sizeof name, "report-%d.json", i);
        put_text(name, "{}");
    }
    expect_fault("report-too-many");
}
END_TEST

/* Status lines and environment. */

START_TEST(status_lines_are_bounded_in_number_length_and_bytes)
{
    char text[40000] = "";
    for (int i = 0; i < SOURCE_MAX_STATUS_LINES + 5; i++)
        strcat(text, "?? file\n");
    cleanup_json cJSON *lines = source_status_lines(text, strlen(text), false);
    ck_assert_int_eq(cJSON_GetArraySize(lines), SOURCE_MAX_STATUS_LINES + 1);
    ck_assert_str_eq(cJSON_GetArrayItem(lines, SOURCE_MAX_STATUS_LINES)->valuestring, "5 more lines left out");
    char line[SOURCE_MAX_STATUS_LENGTH + 10];
    memset(line, 'a', sizeof line);
    line[0] = '\x1b';
    cleanup_json cJSON *one = source_status_lines(line, sizeof line, true);
    ck_assert_int_eq(cJSON_GetArraySize(one), 2);
    ck_assert_uint_eq(strlen(one->child->valuestring), SOURCE_MAX_STATUS_LENGTH);
    ck_assert_int_eq(one->child->valuestring[0], '?');
}
END_TEST

START_TEST(the_environment_is_an_allow_list_with_a_default_path)
{
    struct hf_profile *profile = calloc(1, sizeof *profile);
    strcpy(profile->environment[0], "LISTED");
    profile->environment_count = 1;
    const char *const extra[] = {"JOURNAL=/x", NULL};
    clearenv();
    setenv("LISTED", "yes", 1);
    setenv("UNLISTED", "no", 1);
    setenv("GITHUB_TOKEN", "no", 1);
    char **environment = environment_new(profile, extra);
    ck_assert_int_eq(strncmp(environment[0], "PATH=/", 6), 0);
    ck_assert_str_eq(environment[1], "LISTED=yes");
    ck_assert_str_eq(environment[2], "JOURNAL=/x");
    ck_assert_ptr_null(environment[3]);
    hf_argv_free(environment);
    free(profile);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor units");
    TCase *verdict = tcase_create("verdict");
    tcase_add_test(verdict, nothing_wrong_is_passed);
    tcase_add_test(verdict, the_gravest_fact_decides_whatever_else_is_wrong);
    tcase_add_test(verdict, a_boot_record_never_has_a_category_that_the_protocol_does_not_know);
    suite_add_tcase(suite, verdict);
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, make_directory, remove_directory);
    tcase_add_test(files, a_missing_pid_journal_is_empty);
    tcase_add_test(files, recorded_pids_are_read_once_each);
    tcase_add_loop_test(files, a_malformed_pid_journal_is_refused, 0, sizeof BAD_LINES / sizeof BAD_LINES[0]);
    tcase_add_test(files, an_oversized_pid_journal_is_refused);
    tcase_add_test(files, more_pids_than_the_protocol_can_carry_are_refused);
    tcase_add_test(files, a_pid_journal_that_is_a_link_is_refused);
    tcase_add_test(files, reports_are_found_at_any_depth_and_hashed);
    tcase_add_loop_test(files, a_teardown_field_that_is_not_true_is_found_at_any_depth, 0,
                        sizeof FALSE_TEARDOWNS / sizeof FALSE_TEARDOWNS[0]);
    tcase_add_loop_test(files, true_teardown_fields_are_accepted, 0, sizeof TRUE_TEARDOWNS / sizeof TRUE_TEARDOWNS[0]);
    tcase_add_test(files, a_missing_report_is_a_fault);
    tcase_add_test(files, a_report_of_exactly_1_mib_is_read_and_one_byte_more_is_refused);
    tcase_add_test(files, links_devices_and_directories_in_the_place_of_a_report_are_refused);
    tcase_add_test(files, a_linked_directory_is_not_followed);
    tcase_add_test(files, nesting_and_number_of_files_are_bounded);
    suite_add_tcase(suite, files);
    TCase *rest = tcase_create("processes, lines, environment");
    tcase_add_test(rest, a_running_process_is_alive_and_a_zombie_is_not);
    tcase_add_test(rest, a_process_whose_leader_has_exited_is_alive_while_a_thread_of_it_runs);
    tcase_add_test(rest, a_process_that_started_after_the_record_is_another_one);
    tcase_add_test(rest, a_time_of_recording_outside_the_run_excuses_nothing);
    tcase_add_test(rest, status_lines_are_bounded_in_number_length_and_bytes);
    tcase_add_test(rest, the_environment_is_an_allow_list_with_a_default_path);
    suite_add_tcase(suite, rest);
    return run_suite(suite);
}
