/* How a child starts and ends, and that its own end reaches the caller unchanged. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void ends_with(const char *behaviour, long number, int exit_code, int term_signal)
{
    struct harness harness;
    harness_init(&harness, behaviour, number);
    harness_run(&harness);
    const struct hf_child_report *report = &harness.output.report;
    ck_assert(report->started);
    ck_assert_int_eq(report->exited, term_signal == 0);
    ck_assert_int_eq(report->exit_code, exit_code);
    ck_assert_int_eq(report->term_signal, term_signal);
    ck_assert(report->teardown_complete);
    ck_assert(!report->stop_requested);
    ck_assert(!report->supervisor_lost);
    ck_assert_uint_eq(report->descendants_killed, 0);
    ck_assert_uint_eq(report->survivors, 0);
    harness_clear(&harness);
}

START_TEST(exit_codes_are_the_childs_own)
{
    ends_with("exit", 0, 0, 0);
    ends_with("exit", 7, 7, 0);
    ends_with("exit", 125, 125, 0);
    ends_with("exit", 137, 137, 0);
    ends_with("exit", 255, 255, 0);
}
END_TEST

START_TEST(signals_are_the_childs_own)
{
    ends_with("signal", SIGTERM, 0, SIGTERM);
    ends_with("signal", SIGKILL, 0, SIGKILL);
    ends_with("signal", SIGSEGV, 0, SIGSEGV);
}
END_TEST

START_TEST(a_cgroup_is_used_exactly_where_it_can_be_had)
{
    struct harness harness;
    harness_init(&harness, "exit", 0);
    harness_run(&harness);
    if (harness_mode != HARNESS_PLAIN)
        ck_assert(!harness.output.report.cgroup_used);
    else if (geteuid() == 0 && access("/sys/fs/cgroup/unified/cgroup.procs", W_OK) == 0)
        ck_assert(harness.output.report.cgroup_used);
    harness_clear(&harness);
}
END_TEST

START_TEST(nothing_of_the_callers_leaks_into_the_child)
{
    struct harness harness;
    sigset_t blocked, before;
    int leaky[3];

    for (int i = 0; i < 3; i++) /* not close-on-exec, as a careless library leaves them: 5 or 6, and far above */
        leaky[i] = fcntl(STDERR_FILENO, F_DUPFD, 5 + 40 * i);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGUSR2, SIG_IGN);
    harness_init(&harness, "describe", 0);
    harness.spec.extra_fds[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    harness.spec.extra_fd_count = 2;
    harness_run(&harness);
    ck_assert_str_eq(harness.output.stdout_bytes, "fd0 fd1 fd2 fd3 fd4 blocked=0 ignored=0 leader=1\n");
    close(harness.spec.extra_fds[1]);
    harness_clear(&harness);
    signal(SIGUSR2, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (int i = 0; i < 3; i++)
        close(leaky[i]);
}
END_TEST

/* An executable script at a temporary path, which is written to `path` (at least 32 bytes). */
static void make_script(char *path, const char *text)
{
    strcpy(path, "/tmp/holdfast-test-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(fchmod(fd, 0700), 0);
    close(fd);
}

/* Runs argv[0] = program instead of the probe. */
static void run_program(struct harness *harness, const char *program)
{
    harness_init(harness, "exit", 0);
    harness->argv[0] = program;
    harness_run(harness);
}

static void does_not_start(const char *program, int expected_errno)
{
    struct harness harness;
    run_program(&harness, program);
    ck_assert(!harness.output.report.started);
    ck_assert_int_eq(harness.output.report.start_errno, expected_errno);
    ck_assert(harness.output.report.teardown_complete);
    ck_assert(harness_tree_is_gone(&harness, 0));
    harness_clear(&harness);
}

START_TEST(a_program_that_cannot_be_executed_did_not_start)
{
    does_not_start("/nonexistent/program", ENOENT);
    does_not_start("no-such-program-in-path", ENOENT);
    does_not_start("/etc/passwd", EACCES);
    does_not_start("/etc", EACCES);
}
END_TEST

START_TEST(a_script_without_interpreter_is_not_handed_to_a_shell)
{
    char script[32];
    make_script(script, "exit 0\n");
    does_not_start(script, ENOEXEC);
    unlink(script);
}
END_TEST

START_TEST(a_bare_name_is_looked_up_in_the_path_of_the_childs_environment)
{
    static const char *const elsewhere[] = {"PATH=/nonexistent:/usr/bin:/bin", NULL};
    static const char *const relative[] = {"PATH=.::bin", NULL};
    struct harness harness;

    harness_init(&harness, "x", 0);
    harness.argv[0] = "true";
    harness.spec.envp = elsewhere;
    harness_run(&harness);
    ck_assert(harness.output.report.exited && harness.output.report.exit_code == 0);
    harness_clear(&harness);

    harness_init(&harness, "x", 0);
    harness.argv[0] = "true";
    harness.spec.envp = relative;
    harness.spec.cwd = "/usr/bin";
    harness_run(&harness);
    ck_assert(!harness.output.report.started); /* the working directory is no place for programs */
    ck_assert_int_eq(harness.output.report.start_errno, ENOENT);
    harness_clear(&harness);
}
END_TEST

START_TEST(the_child_has_the_given_environment_and_nothing_else)
{
    static const char *const argv[] = {"/usr/bin/env", NULL};
    struct harness harness;
    harness_init(&harness, "x", 0);
    harness.spec.argv = argv;
    harness_run(&harness);
    ck_assert_str_eq(harness.output.stdout_bytes, "PATH=/usr/bin:/bin\nHARNESS=1\n");
    harness_clear(&harness);
}
END_TEST

START_TEST(the_child_runs_in_the_given_directory)
{
    static const char *const argv[] = {"/bin/pwd", NULL};
    struct harness harness;
    harness_init(&harness, "x", 0);
    harness.spec.argv = argv;
    harness.spec.cwd = "/usr/lib";
    harness_run(&harness);
    ck_assert_str_eq(harness.output.stdout_bytes, "/usr/lib\n");
    harness_clear(&harness);
}
END_TEST

static void is_refused(struct harness *harness, const char *code, const char *field)
{
    int before = harness_count_fds();
    ck_assert_int_eq(hf_child_start(&harness->spec, &harness->child, &harness->err), -1);
    ck_assert_str_eq(harness->err.code, code);
    ck_assert_str_eq(harness->err.field, field);
    ck_assert_int_eq(harness->child.control_fd, -1);
    ck_assert_int_eq(harness_count_fds(), before);
    close(harness->spec.extra_fds[0]);
    harness_clear(harness);
}

START_TEST(a_specification_that_cannot_be_met_is_an_error_and_leaves_nothing)
{
    struct harness harness;

    harness_init(&harness, "exit", 0);
    harness.argv[0] = "./relative";
    is_refused(&harness, "child-spawn-failed", "argv");
    harness_init(&harness, "exit", 0);
    harness.argv[0] = NULL;
    is_refused(&harness, "child-spawn-failed", "argv");
    harness_init(&harness, "exit", 0);
    harness.spec.cwd = "/nonexistent";
    is_refused(&harness, "child-spawn-failed", "cwd");
    harness_init(&harness, "exit", 0);
    harness.spec.stdin_fd = 1023;
    is_refused(&harness, "child-spawn-failed", "stdin_fd");
    harness_init(&harness, "exit", 0);
    harness.spec.extra_fd_count = 2; /* the second is -1 */
    is_refused(&harness, "child-spawn-failed", "extra_fds");
    harness_init(&harness, "exit", 0);
    harness.spec.extra_fd_count = HF_CHILD_MAX_EXTRA_FDS + 1;
    is_refused(&harness, "child-spawn-failed", "extra_fd_count");
}
END_TEST

START_TEST(a_missing_supervisor_is_an_error_of_its_own)
{
    struct harness harness;

    harness_init(&harness, "exit", 0);
    ck_assert_int_eq(hf_child_set_supervisor_path("relative", &harness.err), -1);
    ck_assert_int_eq(hf_child_set_supervisor_path("/nonexistent/holdfast-supervise", &harness.err), 0);
    is_refused(&harness, "child-supervisor-missing", "");
    ck_assert_int_eq(hf_child_set_supervisor_path(NULL, NULL), 0);
}
END_TEST

START_TEST(a_foreign_program_in_the_supervisors_place_is_taken_for_a_lost_supervisor)
{
    struct harness harness;

    harness_init(&harness, "exit", 0);
    ck_assert_int_eq(hf_child_set_supervisor_path("/bin/true", NULL), 0);
    harness_run(&harness);
    ck_assert_int_eq(hf_child_set_supervisor_path(NULL, NULL), 0);
    ck_assert(harness.output.report.supervisor_lost);
    ck_assert(!harness.output.report.teardown_complete);
    ck_assert(!harness.output.report.exited);
    harness_clear(&harness);
}
END_TEST

START_TEST(a_report_that_is_not_understood_is_an_error)
{
    struct harness harness;
    char script[32];

    make_script(script, "#!/bin/sh\nprintf garbage >&7\n");
    harness_init(&harness, "exit", 0);
    ck_assert_int_eq(hf_child_set_supervisor_path(script, NULL), 0);
    ck_assert_int_eq(hf_child_run(&harness.spec, &harness.options, &harness.output, &harness.err), -1);
    ck_assert_str_eq(harness.err.code, "child-report-failed");
    ck_assert_int_eq(hf_child_set_supervisor_path(NULL, NULL), 0);
    unlink(script);
    close(harness.spec.extra_fds[0]);
    harness_clear(&harness);
}
END_TEST

START_TEST(a_supervisor_that_never_reports_is_killed_and_lost)
{
    struct harness harness;
    char script[32];
    int ends[2];

    if (harness_mode != HARNESS_PLAIN)
        return; /* ten seconds that show the same */
    make_script(script, "#!/bin/sh\nexec sleep 60\n");
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    close(ends[1]);
    harness_init(&harness, "exit", 0);
    harness.options.interrupt_fd = ends[0];
    ck_assert_int_eq(hf_child_set_supervisor_path(script, NULL), 0);
    harness_run(&harness);
    ck_assert_int_eq(hf_child_set_supervisor_path(NULL, NULL), 0);
    ck_assert(harness.output.interrupted);
    ck_assert(harness.output.report.supervisor_lost);
    ck_assert(harness_tree_is_gone(&harness, 1000));
    unlink(script);
    close(ends[0]);
    harness_clear(&harness);
}
END_TEST

START_TEST(a_control_message_that_is_not_understood_kills_at_once)
{
    struct harness harness;

    harness_init(&harness, "ignore-term", 0);
    harness_start(&harness);
    ck_assert_int_eq(send(harness.child.control_fd, "nonsense!", 9, MSG_NOSIGNAL), 9);
    struct hf_child_report report = harness_report(&harness, 10000);
    ck_assert(report.stop_requested && report.teardown_complete);
    ck_assert_int_eq(report.term_signal, SIGKILL);
    harness_clear(&harness);
}
END_TEST

START_TEST(the_supervisor_refuses_a_command_line_that_is_not_its_callers)
{
    struct harness harness;
    static const char *const wrong[][7] = {
        {"", "0", "0", "once", "--", "/bin/true", NULL}, {"", "2", "0", "once", "--", "/bin/true", NULL},
        {"", "1", "5", "once", "--", "/bin/true", NULL}, {"", "1", "0", "twice", "--", "/bin/true", NULL},
        {"", "1", "0", "once", "--", NULL, NULL},        {"", NULL, NULL, NULL, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *argv[7];
        harness_init(&harness, "x", 0);
        strcpy(strrchr(harness.probe, '/') + 1, "holdfast-supervise");
        memcpy(argv, wrong[i], sizeof argv);
        argv[0] = harness.probe;
        harness.spec.argv = argv;
        harness_run(&harness);
        ck_assert_int_eq(harness.output.report.exit_code, 125);
        ck_assert_ptr_nonnull(strstr(harness.output.stderr_bytes, "holdfast-supervise: expected VERSION"));
        harness_clear(&harness);
    }
}
END_TEST

START_TEST(extra_descriptors_reach_the_child_in_order)
{
    static const char *const argv[] = {"/bin/sh", "-c", "read a <&4; read b <&5; read c <&6; echo $a $b $c", NULL};
    struct harness harness;
    int pipes[3][2];

    harness_init(&harness, "x", 0);
    harness.spec.argv = argv;
    harness.spec.extra_fd_count = 4;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pipe2(pipes[i], O_CLOEXEC), 0);
        ck_assert_int_eq(dprintf(pipes[i][1], "%d\n", i), 2);
        harness.spec.extra_fds[3 - i] = pipes[i][0]; /* given in reverse */
    }
    harness_run(&harness);
    ck_assert_str_eq(harness.output.stdout_bytes, "2 1 0\n");
    for (int i = 0; i < 3; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    harness_clear(&harness);
}
END_TEST

START_TEST(runs_leave_no_descriptor_no_zombie_and_no_cgroup)
{
    struct harness harness;
    int before = harness_count_fds();

    for (int i = 0; i < 20; i++) {
        harness_init(&harness, i % 2 ? "daemon" : "exit", 2);
        harness_start(&harness);
        pid_t supervisor_pid = harness.child.supervisor_pid;
        ck_assert(harness_report(&harness, 10000).teardown_complete);
        ck_assert_int_eq(harness_count_cgroups_of(supervisor_pid), 0);
        harness_clear(&harness);
    }
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    ck_assert_int_eq(harness_count_fds(), before);
}
END_TEST

START_TEST(a_report_is_read_once)
{
    struct harness harness;
    struct hf_child_report report;
    struct pollfd readable;

    harness_init(&harness, "linger", 0);
    harness_start(&harness);
    ck_assert_int_eq(hf_child_read_report(&harness.child, &report, &harness.err), 0); /* not there yet */
    hf_child_stop(&harness.child, 0);
    readable = (struct pollfd){.fd = harness.child.control_fd, .events = POLLIN};
    ck_assert_int_eq(poll(&readable, 1, 10000), 1);
    for (int i = 0; i < 100; i++) /* nobody reads these any more; they must not hide the report */
        hf_child_stop(&harness.child, 0);
    ck_assert_int_eq(hf_child_read_report(&harness.child, &report, &harness.err), 1);
    ck_assert(report.teardown_complete);
    ck_assert_int_eq(hf_child_read_report(&harness.child, &report, &harness.err), -1);
    ck_assert_str_eq(harness.err.code, "child-report-failed");
    harness_clear(&harness);
    ck_assert_int_eq(hf_child_read_report(&harness.child, &report, &harness.err), -1);
    hf_child_stop(&harness.child, 0); /* harmless on a cleared child */
}
END_TEST

TCase *case_end(void)
{
    TCase *tcase = tcase_create("end");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, exit_codes_are_the_childs_own);
    tcase_add_test(tcase, signals_are_the_childs_own);
    tcase_add_test(tcase, a_cgroup_is_used_exactly_where_it_can_be_had);
    tcase_add_test(tcase, nothing_of_the_callers_leaks_into_the_child);
    tcase_add_test(tcase, a_program_that_cannot_be_executed_did_not_start);
    tcase_add_test(tcase, a_script_without_interpreter_is_not_handed_to_a_shell);
    tcase_add_test(tcase, a_bare_name_is_looked_up_in_the_path_of_the_childs_environment);
    tcase_add_test(tcase, the_child_has_the_given_environment_and_nothing_else);
    tcase_add_test(tcase, the_child_runs_in_the_given_directory);
    tcase_add_test(tcase, a_specification_that_cannot_be_met_is_an_error_and_leaves_nothing);
    tcase_add_test(tcase, a_missing_supervisor_is_an_error_of_its_own);
    tcase_add_test(tcase, a_foreign_program_in_the_supervisors_place_is_taken_for_a_lost_supervisor);
    tcase_add_test(tcase, a_report_that_is_not_understood_is_an_error);
    tcase_add_test(tcase, a_supervisor_that_never_reports_is_killed_and_lost);
    tcase_add_test(tcase, a_control_message_that_is_not_understood_kills_at_once);
    tcase_add_test(tcase, the_supervisor_refuses_a_command_line_that_is_not_its_callers);
    tcase_add_test(tcase, extra_descriptors_reach_the_child_in_order);
    tcase_add_test(tcase, runs_leave_no_descriptor_no_zombie_and_no_cgroup);
    tcase_add_test(tcase, a_report_is_read_once);
    return tcase;
}
