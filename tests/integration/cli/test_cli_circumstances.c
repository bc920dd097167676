/*
 * `holdfast` as a careless or hostile caller starts it: standard streams closed or full, file size limits, signals, a
 * umask that forbids everything. However it is started, a campaign that began has both summaries and nothing that is
 * printed lands in a file of evidence.
 */
#include "common/cleanup.h"
#include "common/durable.h"
#include "common/json.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];

static void set_up(void)
{
    snprintf(directory, sizeof directory, "/tmp/hf-cli-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void tear_down(void)
{
    char command[256];
    snprintf(command, sizeof command, "chmod -R u+rwX '%s'; rm -rf '%s'", directory, directory);
    ck_assert_int_eq(system(command), 0);
}

static void write_wrapper(const char *behaviours)
{
    char path[128];
    snprintf(path, sizeof path, "%s/wrapper", directory);
    FILE *script = fopen(path, "w");
    ck_assert_ptr_nonnull(script);
    fprintf(script, "#!/bin/sh\nexec %s/fake-executor '%s' %s\n", getenv("HF_BIN_DIR"), behaviours, directory);
    ck_assert_int_eq(fchmod(fileno(script), 0700), 0);
    ck_assert_int_eq(fclose(script), 0);
}

/* Runs `before; exec holdfast run ... after` in a shell: limits and redirections are the shell's trade. */
static pid_t start(const char *before, const char *after)
{
    char script[1024];
    snprintf(script, sizeof script,
             "%s; exec '%s/holdfast' run --campaign guest-isolation --seed 1 --executor-command %s/wrapper "
             "--output-dir %s/runs %s",
             before, getenv("HF_BIN_DIR"), directory, directory, after);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        execl("/bin/sh", "/bin/sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int ended(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* Descriptor of the only run directory, or -1 when there is none. */
static int open_run(void)
{
    char path[128];
    int runfd = -1;
    snprintf(path, sizeof path, "%s/runs", directory);
    cleanup_dir DIR *runs = opendir(path);
    for (const struct dirent *entry = runs ? readdir(runs) : NULL; entry; entry = readdir(runs)) {
        if (strncmp(entry->d_name, "run-", 4) != 0)
            continue;
        ck_assert_int_eq(runfd, -1);
        runfd = openat(dirfd(runs), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_ge(runfd, 0);
    }
    return runfd;
}

static void expect_category(int runfd, const char *category)
{
    static const char *const names[] = {"summary.json", "public-summary.json"};
    for (int i = 0; i < 2; i++) {
        struct hf_error err = {0};
        size_t length;
        cleanup_free char *text = hf_document_read(runfd, names[i], 65536, &length, &err);
        ck_assert_msg(text != NULL, "%s", err.message);
        cleanup_json cJSON *summary = hf_json_parse(text, length, &(struct hf_json_limits){65536, 8}, &err);
        ck_assert_msg(summary != NULL, "%s", err.message);
        ck_assert_str_eq(hf_json_get_string(summary, "category"), category);
    }
}

static int parse_line(void *context, const char *text, size_t length, uint64_t number, struct hf_error *err)
{
    (void)context;
    (void)number;
    cleanup_json cJSON *line = hf_json_parse(text, length, &(struct hf_json_limits){65536, 16}, err);
    return line ? 0 : -1;
}

static void expect_whole_journals(int runfd)
{
    static const char *const names[] = {"transitions.jsonl", "actions.jsonl", "observations.jsonl"};
    struct hf_error err = {0};
    for (int i = 0; i < 3; i++)
        ck_assert_msg(hf_journal_recover(runfd, names[i], 65536, parse_line, NULL, NULL, &err) == 0, "%s: %s", names[i],
                      err.message);
}

static const struct {
    const char *after;
    int status;
} streams[] = {
    {"<&- >&- 2>&-", 3}, {">&- 2>/dev/null", 3},   {"<&- >/dev/null 2>&-", 0},
    {">/dev/full", 3},   {"--json >/dev/full", 3}, {"--json >&-", 3},
};

/* Nothing is printed into a journal, and success that nobody could be told of is no success. */
START_TEST(standard_streams_may_be_closed_or_full)
{
    write_wrapper("");
    ck_assert_int_eq(ended(start(":", streams[_i].after)), streams[_i].status);
    cleanup_close int runfd = open_run();
    expect_category(runfd, "coverage-converged");
    expect_whole_journals(runfd);
}
END_TEST

START_TEST(a_reader_that_leaves_does_not_end_the_campaign)
{
    write_wrapper("");
    ck_assert_int_eq(ended(start(":", "| head -n 1 >/dev/null")), 0); /* the status is head's */
    cleanup_close int runfd = open_run();
    expect_category(runfd, "coverage-converged");
}
END_TEST

/* 512-byte blocks: below the index, below the reserve, and below a journal that grows. None may kill the controller. */
static const char *const limits[] = {"ulimit -f 1", "ulimit -f 96", "ulimit -f 200", "ulimit -f 257"};

START_TEST(a_file_size_limit_is_an_error_and_no_signal)
{
    write_wrapper("");
    int status = ended(start(limits[_i], ">/dev/null"));
    cleanup_close int runfd = open_run();
    ck_assert_int_eq(status, runfd < 0 ? 3 : 0);
    if (runfd >= 0)
        expect_category(runfd, "coverage-converged");
}
END_TEST

static void wait_for_request(const char *operation)
{
    char command[256];
    snprintf(command, sizeof command,
             "for i in $(seq 200); do grep -q %s %s/seen.log 2>/dev/null && exit 0; "
             "sleep 0.05; done; exit 1",
             operation, directory);
    ck_assert_int_eq(system(command), 0);
}

/* The end of the terminal or of the SSH session that started it: as SIGINT and SIGTERM. */
START_TEST(a_hang_up_finalizes_the_executor)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    write_wrapper("late:execute:300");
    pid_t pid = start(":", ">/dev/null");
    wait_for_request("execute");
    ck_assert_int_eq(kill(pid, signals[_i]), 0);
    ck_assert_int_eq(ended(pid), 130);
    wait_for_request("finalize");
    cleanup_close int runfd = open_run();
    expect_category(runfd, "cancelled");
}
END_TEST

START_TEST(a_hang_up_that_was_ignored_stays_ignored)
{
    write_wrapper("late:execute:100");
    pid_t pid = start("trap '' HUP", ">/dev/null");
    wait_for_request("execute");
    ck_assert_int_eq(kill(pid, SIGHUP), 0);
    ck_assert_int_eq(ended(pid), 0);
    cleanup_close int runfd = open_run();
    expect_category(runfd, "coverage-converged");
}
END_TEST

START_TEST(a_umask_changes_no_permission)
{
    struct stat status;
    write_wrapper("");
    ck_assert_int_eq(ended(start(_i ? "umask 0777" : "umask 0", ">/dev/null")), 0);
    cleanup_close int runfd = open_run();
    ck_assert_int_eq(fstat(runfd, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0700);
    ck_assert_int_eq(fstatat(runfd, "summary.json", &status, 0), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_circumstances");
    TCase *tcase = tcase_create("cli_circumstances");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, standard_streams_may_be_closed_or_full, 0, (int)(sizeof streams / sizeof streams[0]));
    tcase_add_test(tcase, a_reader_that_leaves_does_not_end_the_campaign);
    tcase_add_loop_test(tcase, a_file_size_limit_is_an_error_and_no_signal, 0, (int)(sizeof limits / sizeof limits[0]));
    tcase_add_loop_test(tcase, a_hang_up_finalizes_the_executor, 0, 3);
    tcase_add_test(tcase, a_hang_up_that_was_ignored_stays_ignored);
    tcase_add_loop_test(tcase, a_umask_changes_no_permission, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
