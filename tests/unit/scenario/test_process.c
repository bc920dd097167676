/* Processes as /proc shows them, and the pid journal. Real processes, real files. */
#include "executor/scenario/vm/pid_journal.h"
#include "executor/scenario/vm/process_view.h"
#include "tests/unit/scenario/suite.h"

#include "common/cleanup.h"
#include "common/json.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOKEN "holdfast-test-token-7f3a"

static char directory[64], journal_path[96];

static void set_up(void)
{
    strcpy(directory, "/tmp/hf-scenario-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(journal_path, sizeof journal_path, "%s/pids", directory);
}

static void tear_down(void)
{
    unlink(journal_path);
    rmdir(directory);
}

/* A child that sleeps, with `token` as an argument. */
static pid_t start_sleeper(const char *token)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "sleep 60 & wait", token, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 2000 && hf_process_count_by_token(token) == 0; i++)
        usleep(1000);
    return pid;
}

static void end_group(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

START_TEST(a_child_is_found_by_parent_and_token)
{
    struct hf_process_identity identity;
    pid_t pid = start_sleeper(TOKEN);
    ck_assert_int_eq(hf_process_find(getpid(), TOKEN, &identity, NULL), 0);
    ck_assert_int_eq(identity.pid, pid);
    ck_assert(hf_process_alive(&identity));
    end_group(pid);
}
END_TEST

START_TEST(a_child_with_another_token_or_parent_is_not_taken)
{
    struct hf_process_identity identity;
    struct hf_error err = {0};
    pid_t pid = start_sleeper(TOKEN);
    ck_assert_int_eq(hf_process_find(getpid(), TOKEN "x", &identity, &err), -1);
    ck_assert_str_eq(err.code, "vm-process-missing");
    ck_assert_int_eq(hf_process_find(1, TOKEN, &identity, NULL), -1);
    end_group(pid);
}
END_TEST

START_TEST(a_zombie_is_not_alive_and_claims_no_name)
{
    struct hf_process_identity identity;
    pid_t pid = start_sleeper(TOKEN);
    siginfo_t info;
    ck_assert_int_eq(hf_process_find(getpid(), TOKEN, &identity, NULL), 0);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert(!hf_process_alive(&identity));
    ck_assert_int_eq(hf_process_count_by_token(TOKEN), 0);
    waitpid(pid, NULL, 0);
}
END_TEST

START_TEST(a_reused_pid_is_another_process)
{
    struct hf_process_identity identity;
    pid_t pid = start_sleeper(TOKEN);
    ck_assert_int_eq(hf_process_find(getpid(), TOKEN, &identity, NULL), 0);
    identity.start_ticks--; /* the process that had this pid before */
    ck_assert(!hf_process_alive(&identity));
    end_group(pid);
}
END_TEST

START_TEST(the_journal_has_one_exact_line_per_pid)
{
    static const struct hf_json_limits limits = {.max_bytes = 4096, .max_depth = 4};
    struct hf_pid_journal pids;
    char line[256];
    ck_assert_int_eq(hf_pid_journal_open(&pids, journal_path, NULL), 0);
    ck_assert_int_eq(hf_pid_journal_record(&pids, 4711, NULL), 0);
    ck_assert_int_eq(hf_pid_journal_record(&pids, 4712, NULL), 0);
    hf_pid_journal_close(&pids);
    cleanup_file FILE *file = fopen(journal_path, "r");
    for (int pid = 4711; pid <= 4712; pid++) {
        ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
        cleanup_json cJSON *entry = hf_json_parse(line, strcspn(line, "\n"), &limits, NULL);
        ck_assert_int_eq(cJSON_GetArraySize(entry), 2);
        ck_assert_int_eq(hf_json_get_int_or(entry, "pid", 0), pid);
        ck_assert_int_gt(hf_json_get_int_or(entry, "recorded_at_ns", 0), 1000000000000000000);
    }
    ck_assert_ptr_null(fgets(line, sizeof line, file));
}
END_TEST

START_TEST(the_journal_never_exceeds_its_bound)
{
    struct hf_pid_journal pids;
    struct hf_error err = {0};
    struct stat status;
    ck_assert_int_eq(hf_pid_journal_open(&pids, journal_path, NULL), 0);
    ck_assert_int_eq(ftruncate(pids.journal.fd, HF_PID_JOURNAL_MAX_BYTES - 20), 0);
    pids.journal.size_bytes = HF_PID_JOURNAL_MAX_BYTES - 20;
    ck_assert_int_eq(hf_pid_journal_record(&pids, 4711, &err), -1);
    ck_assert_str_eq(err.code, "pid-journal-full");
    ck_assert_int_eq(fstat(pids.journal.fd, &status), 0);
    ck_assert_int_eq(status.st_size, HF_PID_JOURNAL_MAX_BYTES - 20);
    hf_pid_journal_close(&pids);
}
END_TEST

START_TEST(a_journal_that_cannot_be_written_is_an_error)
{
    struct hf_pid_journal pids;
    struct hf_error err = {0};
    char missing[128];
    snprintf(missing, sizeof missing, "%s/none/pids", directory);
    ck_assert_int_eq(hf_pid_journal_open(&pids, missing, &err), -1);
    ck_assert_str_eq(err.code, "storage-failed");
    hf_pid_journal_close(&pids);
    ck_assert_int_eq(hf_pid_journal_open(&pids, "/tmp/", &err), -1);
    hf_pid_journal_close(&pids);
}
END_TEST

START_TEST(without_a_journal_nothing_is_recorded)
{
    struct hf_pid_journal pids;
    ck_assert_int_eq(hf_pid_journal_open(&pids, NULL, NULL), 0);
    ck_assert_int_eq(hf_pid_journal_record(&pids, 4711, NULL), 0);
    hf_pid_journal_close(&pids);
    ck_assert_int_ne(access(journal_path, F_OK), 0);
}
END_TEST

TCase *process_case(void)
{
    TCase *tcase = tcase_create("process");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_child_is_found_by_parent_and_token);
    tcase_add_test(tcase, a_child_with_another_token_or_parent_is_not_taken);
    tcase_add_test(tcase, a_zombie_is_not_alive_and_claims_no_name);
    tcase_add_test(tcase, a_reused_pid_is_another_process);
    tcase_add_test(tcase, the_journal_has_one_exact_line_per_pid);
    tcase_add_test(tcase, the_journal_never_exceeds_its_bound);
    tcase_add_test(tcase, a_journal_that_cannot_be_written_is_an_error);
    tcase_add_test(tcase, without_a_journal_nothing_is_recorded);
    return tcase;
}
