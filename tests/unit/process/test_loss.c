/* The caller dies, the supervisor dies or is stopped: nothing keeps running, and nobody claims what he does not know.
 */
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_MS (HF_CHILD_REAP_DEADLINE_MS + 1000)

/* A middle process starts the tree and is killed; the tree must go. */
static void tree_dies_with_its_caller(const char *behaviour, long number)
{
    struct harness harness;
    int started[2];
    char byte = 0;

    harness_init(&harness, behaviour, number);
    ck_assert_int_eq(pipe(started), 0);
    pid_t middle = fork();
    if (middle == 0) {
        if (hf_child_start(&harness.spec, &harness.child, &harness.err) < 0 || write(started[1], "s", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(started[1]);
    close(harness.spec.extra_fds[0]);
    ck_assert_int_eq(read(started[0], &byte, 1), 1);
    close(started[0]);
    usleep(100000);
    ck_assert(!harness_tree_is_gone(&harness, 0));
    kill(middle, SIGKILL);
    waitpid(middle, NULL, 0);
    ck_assert(harness_tree_is_gone(&harness, DEADLINE_MS));
    harness_clear(&harness);
}

START_TEST(a_killed_caller_takes_the_tree_along)
{
    tree_dies_with_its_caller("linger", 0);
    tree_dies_with_its_caller("thread", 1);
    tree_dies_with_its_caller("bomb", 100);
}
END_TEST

START_TEST(a_killed_caller_takes_the_tree_along_although_the_supervisor_was_stopped)
{
    tree_dies_with_its_caller("signal-supervisor", SIGSTOP);
}
END_TEST

START_TEST(clearing_a_running_child_ends_its_tree)
{
    struct harness harness;
    int before = harness_count_fds();

    harness_init(&harness, "bomb", 50);
    harness_start(&harness);
    usleep(50000);
    hf_child_clear(&harness.child);
    ck_assert(harness_tree_is_gone(&harness, DEADLINE_MS));
    harness_clear(&harness);
    /* A later call reaps the supervisor that nobody waited for. */
    for (int i = 0; i < 100 && waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0; i++) {
        usleep(20000);
        hf_child_clear(&harness.child);
    }
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    ck_assert_int_eq(harness_count_fds(), before);
}
END_TEST

static struct hf_child_report run_to_loss(struct harness *harness)
{
    uint64_t start_ms = harness_now_ms();
    harness_run(harness);
    ck_assert_uint_lt(harness_now_ms() - start_ms, 5000);
    ck_assert(harness->output.report.supervisor_lost);
    ck_assert(!harness->output.report.teardown_complete);
    ck_assert(!harness->output.report.exited);
    ck_assert_int_eq(harness->output.report.term_signal, 0);
    return harness->output.report;
}

START_TEST(a_killed_supervisor_is_lost_and_takes_the_main_child_along)
{
    struct harness harness;
    harness_init(&harness, "signal-supervisor", SIGKILL);
    run_to_loss(&harness);
    ck_assert(harness_tree_is_gone(&harness, 2000));
    harness_clear(&harness);
}
END_TEST

START_TEST(the_cgroup_of_a_lost_supervisor_is_killed)
{
    struct harness harness;
    bool with_cgroup;

    harness_init(&harness, "exit", 0);
    harness_run(&harness);
    with_cgroup = harness.output.report.cgroup_used;
    harness_clear(&harness);
    if (!with_cgroup)
        return; /* then only the main child is in reach, see above */
    harness_init(&harness, "kill-supervisor-and-fork", 0);
    run_to_loss(&harness);
    ck_assert(harness_tree_is_gone(&harness, 2000));
    harness_clear(&harness);
}
END_TEST

START_TEST(the_cgroup_directory_of_a_lost_supervisor_is_swept_by_a_later_one)
{
    struct harness harness;
    harness_init(&harness, "signal-supervisor", SIGKILL);
    harness_start(&harness);
    pid_t lost_pid = harness.child.supervisor_pid;
    ck_assert(harness_report(&harness, 5000).supervisor_lost);
    ck_assert(harness_tree_is_gone(&harness, 2000));
    harness_clear(&harness);
    harness_init(&harness, "exit", 0);
    harness_run(&harness);
    ck_assert_int_eq(harness_count_cgroups_of(lost_pid), 0);
    harness_clear(&harness);
}
END_TEST

START_TEST(a_stopped_supervisor_is_woken_by_the_timeout)
{
    struct harness harness;
    harness_init(&harness, "signal-supervisor", SIGSTOP);
    harness.options.timeout_ms = 200;
    harness_run(&harness);
    ck_assert(harness.output.timed_out);
    ck_assert(!harness.output.report.supervisor_lost);
    ck_assert_int_eq(harness.output.report.term_signal, SIGTERM);
    ck_assert(harness.output.report.teardown_complete);
    harness_clear(&harness);
}
END_TEST

START_TEST(signals_for_the_caller_do_not_reach_supervisor_or_child)
{
    struct harness harness;
    int status;

    /* A middle process leads a process group of its own and sends what a terminal sends to all of it. */
    harness_init(&harness, "linger", 0);
    pid_t middle = fork();
    if (middle == 0) {
        setpgid(0, 0);
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        if (hf_child_start(&harness.spec, &harness.child, &harness.err) < 0)
            _exit(1);
        close(harness.spec.extra_fds[0]);
        for (int number = SIGHUP; number <= SIGTERM; number++) {
            if (number == SIGHUP || number == SIGINT || number == SIGTERM) {
                kill(0, number);
                kill(harness.child.supervisor_pid, number);
            }
        }
        bool alive = !harness_tree_is_gone(&harness, 200);
        hf_child_stop(&harness.child, 0);
        struct hf_child_report report = harness_report(&harness, DEADLINE_MS);
        _exit(alive && report.teardown_complete && report.term_signal == SIGKILL ? 0 : 2);
    }
    close(harness.spec.extra_fds[0]);
    ck_assert_int_eq(waitpid(middle, &status, 0), middle);
    ck_assert_int_eq(status, 0);
    harness_clear(&harness);
}
END_TEST

TCase *case_loss(void)
{
    TCase *tcase = tcase_create("loss");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_killed_caller_takes_the_tree_along);
    tcase_add_test(tcase, a_killed_caller_takes_the_tree_along_although_the_supervisor_was_stopped);
    tcase_add_test(tcase, clearing_a_running_child_ends_its_tree);
    tcase_add_test(tcase, a_killed_supervisor_is_lost_and_takes_the_main_child_along);
    tcase_add_test(tcase, the_cgroup_of_a_lost_supervisor_is_killed);
    tcase_add_test(tcase, the_cgroup_directory_of_a_lost_supervisor_is_swept_by_a_later_one);
    tcase_add_test(tcase, a_stopped_supervisor_is_woken_by_the_timeout);
    tcase_add_test(tcase, signals_for_the_caller_do_not_reach_supervisor_or_child);
    return tcase;
}
