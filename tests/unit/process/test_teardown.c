/* What is left when the main child ends, or is made to end, dies: all of it, nothing else, within the deadline. */
#include "harness.h"

#include "common/process/cgroup.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_MS (HF_CHILD_REAP_DEADLINE_MS + 1000) /* and what a loaded machine needs to say so */

/* The main child ends by itself; `killed_at_least` others are alive then. */
static void tree_dies_after_its_main_child(const char *behaviour, long number, uint32_t killed_at_least)
{
    struct harness harness;
    harness_init(&harness, behaviour, number);
    uint64_t start_ms = harness_now_ms();
    harness_run(&harness);
    ck_assert(harness_tree_is_gone(&harness, 0));
    ck_assert(harness.output.report.exited);
    ck_assert_int_eq(harness.output.report.exit_code, 0);
    ck_assert(harness.output.report.teardown_complete);
    ck_assert_uint_eq(harness.output.report.survivors, 0);
    ck_assert_uint_ge(harness.output.report.descendants_killed, killed_at_least);
    ck_assert(!harness.output.report.stop_requested);
    ck_assert(!harness.output.timed_out);
    ck_assert_uint_lt(harness_now_ms() - start_ms, DEADLINE_MS);
    harness_clear(&harness);
}

/* The main child lives on until it is stopped at once. */
static void tree_dies_when_stopped(const char *behaviour, long number, uint32_t killed_at_least, unsigned after_ms)
{
    struct harness harness;
    harness_init(&harness, behaviour, number);
    harness_start(&harness);
    usleep(after_ms * 1000);
    uint64_t start_ms = harness_now_ms();
    hf_child_stop(&harness.child, 0);
    struct hf_child_report report = harness_report(&harness, DEADLINE_MS);
    ck_assert_uint_lt(harness_now_ms() - start_ms, DEADLINE_MS);
    ck_assert(harness_tree_is_gone(&harness, 0));
    ck_assert(report.stop_requested);
    ck_assert(!report.exited);
    ck_assert_int_eq(report.term_signal, SIGKILL);
    ck_assert(report.teardown_complete);
    ck_assert_uint_ge(report.descendants_killed, killed_at_least);
    harness_clear(&harness);
}

START_TEST(daemons_die_after_a_normal_exit_of_their_parent)
{
    tree_dies_after_its_main_child("daemon", 1, 1);
    tree_dies_after_its_main_child("daemon", 50, 50);
}
END_TEST

START_TEST(killed_descendants_are_counted_exactly)
{
    struct harness harness;
    harness_init(&harness, "daemon", 5);
    harness_run(&harness);
    ck_assert_uint_eq(harness.output.report.descendants_killed, 5);
    harness_clear(&harness);
}
END_TEST

START_TEST(descendants_that_hop_from_pid_to_pid_die)
{
    tree_dies_after_its_main_child("hop", 1, 1);
    tree_dies_after_its_main_child("hop", 8, 1);
    tree_dies_after_its_main_child("hop", 40, 1);
}
END_TEST

START_TEST(a_fork_bomb_dies_within_the_deadline)
{
    tree_dies_when_stopped("bomb", 200, 20, 300);
    tree_dies_when_stopped("bomb", 400, 20, 500);
}
END_TEST

START_TEST(children_of_every_thread_die)
{
    tree_dies_when_stopped("thread", 0, 1, 100);
    tree_dies_when_stopped("thread", 1, 1, 100); /* the main thread is a zombie, the process is not */
}
END_TEST

START_TEST(orphans_of_another_subreaper_die)
{
    tree_dies_after_its_main_child("subreaper", 0, 2);
}
END_TEST

START_TEST(a_thread_that_waits_in_vfork_cannot_delay_the_end_beyond_the_deadline)
{
    tree_dies_after_its_main_child("vfork", 0, 2);
}
END_TEST

START_TEST(a_sibling_that_keeps_waking_others_dies_too)
{
    tree_dies_after_its_main_child("waker", 0, 2);
}
END_TEST

START_TEST(term_comes_first_and_the_group_hears_it)
{
    static const char *const argv[] = {"/bin/sh", "-c", "trap 'echo heard; exit 4' TERM; echo ready; sleep 30 & wait",
                                       NULL};
    struct harness harness;
    harness_init(&harness, "x", 0);
    harness.spec.argv = argv;
    harness_start(&harness);
    harness_wait_ready(&harness);
    hf_child_stop(&harness.child, 20000);
    struct hf_child_report report = harness_report(&harness, DEADLINE_MS);
    ck_assert(report.exited);
    ck_assert_int_eq(report.exit_code, 4);
    ck_assert(report.stop_requested);
    ck_assert(report.teardown_complete);
    ck_assert(harness_tree_is_gone(&harness, 0));
    harness_clear(&harness);
}
END_TEST

START_TEST(a_child_that_ignores_term_is_killed_after_the_grace)
{
    struct harness harness;
    harness_init(&harness, "ignore-term", 0);
    harness_start(&harness);
    harness_wait_ready(&harness);
    uint64_t start_ms = harness_now_ms();
    hf_child_stop(&harness.child, 300);
    struct hf_child_report report = harness_report(&harness, DEADLINE_MS);
    ck_assert_uint_ge(harness_now_ms() - start_ms, 300);
    ck_assert_int_eq(report.term_signal, SIGKILL);
    ck_assert(report.teardown_complete);
    harness_clear(&harness);
}
END_TEST

START_TEST(a_second_stop_shortens_the_grace_and_never_lengthens_it)
{
    struct harness harness;
    harness_init(&harness, "ignore-term", 0);
    harness_start(&harness);
    harness_wait_ready(&harness);
    uint64_t start_ms = harness_now_ms();
    hf_child_stop(&harness.child, 60000);
    hf_child_stop(&harness.child, 200);
    hf_child_stop(&harness.child, 60000);
    ck_assert_int_eq(harness_report(&harness, DEADLINE_MS).term_signal, SIGKILL);
    ck_assert_uint_ge(harness_now_ms() - start_ms, 200);
    harness_clear(&harness);
}
END_TEST

START_TEST(a_stopped_child_still_hears_term)
{
    struct harness harness;
    harness_init(&harness, "stopped", 0);
    harness_start(&harness);
    harness_wait_ready(&harness);
    hf_child_stop(&harness.child, 10000);
    struct hf_child_report report = harness_report(&harness, DEADLINE_MS);
    ck_assert(report.exited);
    ck_assert_int_eq(report.exit_code, 3);
    harness_clear(&harness);
}
END_TEST

START_TEST(waiting_for_descendants_waits_for_all_of_them)
{
    static const char *const argv[] = {"/bin/sh", "-c", "(sleep 0.4; echo late) & exit 6", NULL};
    struct harness harness;
    harness_init(&harness, "x", 0);
    harness.spec.argv = argv;
    harness.spec.wait_for_descendants = true;
    harness_run(&harness);
    ck_assert_str_eq(harness.output.stdout_bytes, "late\n");
    ck_assert_int_eq(harness.output.report.exit_code, 6);
    ck_assert_uint_eq(harness.output.report.descendants_killed, 0);
    harness_clear(&harness);
}
END_TEST

START_TEST(waiting_for_descendants_ends_with_a_stop)
{
    struct harness harness;
    harness_init(&harness, "daemon", 3);
    harness.spec.wait_for_descendants = true;
    harness.options.timeout_ms = 300;
    harness_run(&harness); /* the main child has ended long before; its daemons, in other groups, still hear the TERM */
    ck_assert(harness.output.timed_out);
    ck_assert(harness.output.report.stop_requested);
    ck_assert(harness.output.report.exited);
    ck_assert(harness.output.report.teardown_complete);
    ck_assert_uint_lt(harness.output.report.duration_ms, 4000); /* well below the grace: nobody ignored it */
    ck_assert(harness_tree_is_gone(&harness, 0));
    harness_clear(&harness);
}
END_TEST

START_TEST(unrelated_processes_are_untouched)
{
    static const char *const argv[] = {"/bin/sleep", "60", NULL};
    pid_t unrelated;
    siginfo_t info = {0};

    ck_assert_int_eq(posix_spawn(&unrelated, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, NULL), 0);
    tree_dies_after_its_main_child("hop", 20, 1);
    tree_dies_when_stopped("bomb", 100, 10, 100);
    /* Neither dead nor stopped. */
    ck_assert_int_eq(waitid(P_PID, (id_t)unrelated, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT), 0);
    ck_assert_int_eq(info.si_pid, 0);
    kill(unrelated, SIGKILL);
    waitpid(unrelated, NULL, 0);
}
END_TEST

/* Runs a shell script with the directory of our cgroup as $1. Returns false where the tree gets no cgroup. */
static bool run_in_cgroup(struct harness *harness, const char *script)
{
    static char directory[4096];
    static const char *argv[6];

    harness_init(harness, "x", 0);
    if (cgroup_find_directory("/proc/self/cgroup", "/proc/self/mountinfo", directory, sizeof directory) < 0)
        directory[0] = '\0';
    memcpy(argv, ((const char *[]){"/bin/sh", "-c", script, "sh", directory, NULL}), sizeof argv);
    harness->spec.argv = argv;
    harness_run(harness);
    ck_assert(harness->output.report.teardown_complete);
    ck_assert(harness_tree_is_gone(harness, 0));
    return harness->output.report.cgroup_used;
}

START_TEST(a_process_that_leaves_the_cgroup_dies_with_its_tree)
{
    struct harness harness;
    bool with_cgroup =
        run_in_cgroup(&harness, "setsid sh -c 'echo 0 >$0/cgroup.procs && echo out && sleep 30' \"$1\" & "
                                "sleep 0.2");
    ck_assert_str_eq(harness.output.stdout_bytes, with_cgroup ? "out\n" : "");
    harness_clear(&harness);
}
END_TEST

START_TEST(cgroups_made_by_the_tree_are_removed_with_it)
{
    struct harness harness;
    bool with_cgroup =
        run_in_cgroup(&harness, "own=$1/$(sed -n 's/^0:://p' /proc/self/cgroup | sed 's,.*/,,') && "
                                "mkdir -p $own/a/b $own/c && echo 0 >$own/a/b/cgroup.procs && echo $own");
    if (with_cgroup) {
        harness.output.stdout_bytes[strcspn(harness.output.stdout_bytes, "\n")] = '\0';
        ck_assert_ptr_nonnull(strstr(harness.output.stdout_bytes, "/holdfast-tree-"));
        ck_assert_int_eq(access(harness.output.stdout_bytes, F_OK), -1);
    }
    harness_clear(&harness);
}
END_TEST

START_TEST(trees_side_by_side_do_not_confuse_each_other)
{
    enum { TREES = 40 };
    static struct harness harnesses[TREES];

    for (int i = 0; i < TREES; i++) {
        harness_init(&harnesses[i], i % 2 ? "ignore-term" : "daemon", 3);
        harness_start(&harnesses[i]);
    }
    for (int i = 0; i < TREES; i += 2) {
        struct hf_child_report report = harness_report(&harnesses[i], 20000);
        ck_assert(report.exited && report.teardown_complete);
        ck_assert_uint_eq(report.descendants_killed, 3);
    }
    for (int i = 1; i < TREES; i += 2)
        ck_assert(!harness_tree_is_gone(&harnesses[i], 0));
    for (int i = 1; i < TREES; i += 2)
        hf_child_stop(&harnesses[i].child, 0);
    for (int i = 1; i < TREES; i += 2) {
        ck_assert_int_eq(harness_report(&harnesses[i], 20000).term_signal, SIGKILL);
        ck_assert(harness_tree_is_gone(&harnesses[i], 0));
    }
    for (int i = 0; i < TREES; i++)
        harness_clear(&harnesses[i]);
}
END_TEST

TCase *case_teardown(void)
{
    TCase *tcase = tcase_create("teardown");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, daemons_die_after_a_normal_exit_of_their_parent);
    tcase_add_test(tcase, killed_descendants_are_counted_exactly);
    tcase_add_test(tcase, descendants_that_hop_from_pid_to_pid_die);
    tcase_add_test(tcase, a_fork_bomb_dies_within_the_deadline);
    tcase_add_test(tcase, children_of_every_thread_die);
    tcase_add_test(tcase, orphans_of_another_subreaper_die);
    tcase_add_test(tcase, a_thread_that_waits_in_vfork_cannot_delay_the_end_beyond_the_deadline);
    tcase_add_test(tcase, a_sibling_that_keeps_waking_others_dies_too);
    tcase_add_test(tcase, term_comes_first_and_the_group_hears_it);
    tcase_add_test(tcase, a_child_that_ignores_term_is_killed_after_the_grace);
    tcase_add_test(tcase, a_second_stop_shortens_the_grace_and_never_lengthens_it);
    tcase_add_test(tcase, a_stopped_child_still_hears_term);
    tcase_add_test(tcase, waiting_for_descendants_waits_for_all_of_them);
    tcase_add_test(tcase, waiting_for_descendants_ends_with_a_stop);
    tcase_add_test(tcase, unrelated_processes_are_untouched);
    tcase_add_test(tcase, a_process_that_leaves_the_cgroup_dies_with_its_tree);
    tcase_add_test(tcase, cgroups_made_by_the_tree_are_removed_with_it);
    tcase_add_test(tcase, trees_side_by_side_do_not_confuse_each_other);
    return tcase;
}
