/* Promises of common/process/tree.h and of the parsers of cgroup.h, inside this (sanitized) program. */
#include "common/process/cgroup.h"
#include "common/process/proc_stat.h"
#include "common/process/tree.h"
#include "tests/run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tree tree;

static void fresh_tree(bool use_children)
{
    memset(&tree, 0, sizeof tree);
    tree_init(&tree, getpid(), 0);
    ck_assert(tree.use_children); /* Linux has had these files for long; the other way is chosen below */
    tree.use_children = use_children;
}

START_TEST(a_stat_line_is_parsed_whatever_the_command_is_called)
{
    struct proc_stat stat;
    const char *rest = " T 42 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456789012 0 0";
    const char *names[] = {"(sh)", "(a) R 1 1)", "()", "(((", "( ) Z 7 \n (x)"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "7 %s%s%s", names[i], strchr(names[i], ')') ? "" : ")", rest);
        ck_assert_int_eq(proc_stat_parse(text, &stat), 0);
        ck_assert_int_eq(stat.state, 'T');
        ck_assert_int_eq(stat.parent_pid, 42);
        ck_assert_uint_eq(stat.start_ticks, 123456789012);
    }
}
END_TEST

START_TEST(a_cut_stat_line_is_refused)
{
    struct proc_stat stat;
    ck_assert_int_eq(proc_stat_parse("", &stat), -1);
    ck_assert_int_eq(proc_stat_parse("7 (sh", &stat), -1);
    ck_assert_int_eq(proc_stat_parse("7 (sh) R", &stat), -1);
    ck_assert_int_eq(proc_stat_parse("7 (sh) R 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0", &stat), -1);
}
END_TEST

/* `count` children of which each has one child, all sleeping. */
static void fork_family(int count, pid_t *children)
{
    for (int i = 0; i < count; i++) {
        int ready[2];
        char byte;
        ck_assert_int_eq(pipe(ready), 0);
        children[i] = fork();
        if (children[i] == 0) {
            if (fork() == 0 && write(ready[1], "r", 1) != 1)
                _exit(1);
            sleep(30);
            _exit(0);
        }
        close(ready[1]);
        ck_assert_int_eq(read(ready[0], &byte, 1), 1);
        close(ready[0]);
    }
}

static void reap_everything(void)
{
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

static void family_is_stopped_and_killed(bool use_children)
{
    enum { COUNT = 10 };
    pid_t children[COUNT];
    bool quiet = false;

    fork_family(COUNT, children);
    fresh_tree(use_children);
    uint64_t deadline_ms = tree_now_ms() + 5000;
    ck_assert(!tree_scan(&tree, 0, deadline_ms)); /* found, but nobody stands still */
    ck_assert_uint_eq(tree.process_count, 2 * COUNT);
    ck_assert_uint_eq(tree.descendants_seen, 2 * COUNT);
    for (int i = 0; i < 1000 && !quiet; i++)
        quiet = tree_scan(&tree, SIGSTOP, deadline_ms);
    ck_assert(quiet);
    ck_assert_uint_eq(tree.process_count, 2 * COUNT);
    for (uint32_t i = 0; i < tree.process_count; i++) {
        struct proc_stat stat;
        ck_assert_int_eq(proc_stat_read(tree.processes[i].pid, 0, &stat), 0);
        ck_assert_int_eq(stat.state, 'T');
    }
    ck_assert_uint_eq(tree_survivors(&tree), 2 * COUNT);
    tree_signal(&tree, SIGKILL);
    reap_everything();
    ck_assert_uint_eq(tree_survivors(&tree), 0);
}

START_TEST(descendants_are_found_through_children_files)
{
    family_is_stopped_and_killed(true);
}
END_TEST

START_TEST(descendants_are_found_through_parent_pids_where_children_files_are_missing)
{
    family_is_stopped_and_killed(false);
}
END_TEST

static void *fork_in_thread(void *ready)
{
    if (fork() == 0) {
        sleep(30);
        _exit(0);
    }
    if (write(*(int *)ready, "r", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

/* The child of a thread that is not the main one; the main thread lives on or has exited. */
static void child_of_thread_is_found(bool main_thread_exits)
{
    int ready[2];
    char byte;

    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, fork_in_thread, &ready[1]) != 0)
            _exit(1);
        if (main_thread_exits)
            syscall(SYS_exit, 0); /* of this thread alone */
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    usleep(20000);
    fresh_tree(true);
    tree_scan(&tree, 0, tree_now_ms() + 5000);
    ck_assert_uint_eq(tree.process_count, 2);
    ck_assert_uint_eq(tree.descendants_seen, 2);
    ck_assert_uint_eq(tree_survivors(&tree), 2);
    tree_signal(&tree, SIGKILL);
    reap_everything();
    ck_assert_uint_eq(tree_survivors(&tree), 0);
}

START_TEST(children_of_every_thread_are_found)
{
    child_of_thread_is_found(false);
}
END_TEST

START_TEST(a_process_whose_main_thread_has_exited_is_alive)
{
    child_of_thread_is_found(true);
}
END_TEST

START_TEST(a_zombie_has_exited_whoever_has_to_reap_it)
{
    int ready[2];
    char byte;

    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t zombie = fork();
        if (zombie == 0)
            _exit(0);
        waitid(P_PID, (id_t)zombie, &(siginfo_t){0}, WEXITED | WNOWAIT);
        if (write(ready[1], "r", 1) != 1)
            _exit(1);
        sleep(30);
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    fresh_tree(true);
    for (int i = 0; i < 1000 && !tree_scan(&tree, SIGSTOP, tree_now_ms() + 5000); i++)
        continue;
    ck_assert_uint_eq(tree.process_count, 2);
    ck_assert_uint_eq(tree.descendants_seen, 1);
    ck_assert_uint_eq(tree_survivors(&tree), 1);
    ck_assert(tree_scan(&tree, SIGSTOP, tree_now_ms() + 5000)); /* a known zombie is no reason to look again */
    kill(child, SIGKILL);
    waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT);
    ck_assert_uint_eq(tree_survivors(&tree), 0);
    ck_assert(!tree_scan(&tree, SIGSTOP, tree_now_ms() + 5000)); /* it died: its children may have come to us unseen */
    ck_assert_uint_eq(tree.own_zombies, 2);
    ck_assert(tree_scan(&tree, SIGSTOP, tree_now_ms() + 5000));
    reap_everything();
}
END_TEST

START_TEST(a_process_with_the_same_pid_but_another_start_is_never_signalled)
{
    pid_t pid = fork();
    if (pid == 0) {
        sleep(30);
        _exit(0);
    }
    fresh_tree(true);
    tree_scan(&tree, 0, tree_now_ms() + 5000);
    ck_assert_uint_eq(tree.process_count, 1);
    tree.processes[0].start_ticks--; /* as if ours had ended and its pid had passed on */
    tree_signal(&tree, SIGKILL);
    usleep(50000);
    ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
    ck_assert_uint_eq(tree_survivors(&tree), 0);
    tree.processes[0].start_ticks++;
    tree_signal(&tree, SIGKILL);
    reap_everything();
}
END_TEST

START_TEST(forgetting_counts_anew)
{
    pid_t children[3];
    fork_family(3, children);
    fresh_tree(true);
    tree_scan(&tree, 0, tree_now_ms() + 5000);
    tree_forget(&tree);
    ck_assert_uint_eq(tree.process_count, 0);
    tree_scan(&tree, 0, tree_now_ms() + 5000);
    ck_assert_uint_eq(tree.process_count, 6);
    ck_assert_uint_eq(tree.descendants_seen, 6);
    tree_signal(&tree, SIGKILL);
    reap_everything();
}
END_TEST

START_TEST(a_scan_beyond_its_deadline_is_never_quiet)
{
    pid_t pid = fork();
    if (pid == 0) {
        sleep(30);
        _exit(0);
    }
    fresh_tree(true);
    ck_assert(!tree_scan(&tree, SIGSTOP, 0));
    kill(pid, SIGKILL);
    reap_everything();
}
END_TEST

/* ---- cgroup directories ---- */

static char cgroup_file[] = "/tmp/holdfast-test-cgroup-XXXXXX";
static char mountinfo_file[] = "/tmp/holdfast-test-mounts-XXXXXX";

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void make_files(void)
{
    close(mkstemp(cgroup_file));
    close(mkstemp(mountinfo_file));
}

static void remove_files(void)
{
    unlink(cgroup_file);
    unlink(mountinfo_file);
}

/* The directory that is found, or "-". */
static const char *found(const char *cgroup_text, const char *mountinfo_text)
{
    static char out[2100];
    write_file(cgroup_file, cgroup_text);
    write_file(mountinfo_file, mountinfo_text);
    return cgroup_find_directory(cgroup_file, mountinfo_file, out, sizeof out) == 0 ? out : "-";
}

#define UNIFIED "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n"
#define HYBRID                                                                                                         \
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"                                             \
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"

START_TEST(the_own_cgroup_directory_is_found_on_unified_and_hybrid_hosts)
{
    ck_assert_str_eq(found("0::/\n", UNIFIED), "/sys/fs/cgroup/");
    ck_assert_str_eq(found("0::/system.slice/x.service\n", UNIFIED), "/sys/fs/cgroup/system.slice/x.service");
    ck_assert_str_eq(found("9:name=systemd:/a\n8:pids:/b\n0::/c d\n", HYBRID), "/sys/fs/cgroup/unified/c d");
    ck_assert_str_eq(found("0::/a\n", "1 2 0:3 / /mnt/with\\040space rw - cgroup2 none rw\n"), "/mnt/with space/a");
}
END_TEST

START_TEST(a_mount_of_a_part_of_the_hierarchy_counts_only_for_what_it_shows)
{
    const char *part = "1 2 0:3 /pod /cg rw - cgroup2 none rw\n";
    ck_assert_str_eq(found("0::/pod/x\n", part), "/cg/x");
    ck_assert_str_eq(found("0::/pod\n", part), "/cg");
    ck_assert_str_eq(found("0::/podium\n", part), "-");
    ck_assert_str_eq(found("0::/other\n", part), "-");
}
END_TEST

START_TEST(no_cgroup2_is_no_directory)
{
    ck_assert_str_eq(found("9:name=systemd:/a\n", UNIFIED), "-");
    ck_assert_str_eq(found("0::/a\n", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), "-");
    ck_assert_str_eq(found("", ""), "-");
    ck_assert_str_eq(found("0::/../other-namespace\n", UNIFIED), "-");
    ck_assert_str_eq(found("0::/a\n", "garbage - cgroup2 \n\n - cgroup2 x\n"), "-");
}
END_TEST

START_TEST(a_long_mount_table_is_read_to_its_end_and_a_monstrous_line_is_passed_by)
{
    size_t size = 400000;
    char *table = malloc(size + sizeof UNIFIED);
    size_t length = 0;
    for (int i = 0; length < size - 200; i++)
        length += (size_t)sprintf(table + length, "%d 1 0:1 / /mnt/%d rw - ext4 /dev/x rw\n", i, i);
    strcpy(table + length, UNIFIED);
    ck_assert_str_eq(found("0::/a\n", table), "/sys/fs/cgroup/a");
    memset(table, 'x', size);
    strcpy(table + size, UNIFIED);
    ck_assert_str_eq(found("0::/a\n", table), "-");
    free(table);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("process/tree");
    TCase *tcase = tcase_create("tree");
    TCase *cgroups = tcase_create("cgroup");

    prctl(PR_SET_CHILD_SUBREAPER, 1); /* as the supervisor does: orphans of the tests come to us */
    tcase_add_test(tcase, a_stat_line_is_parsed_whatever_the_command_is_called);
    tcase_add_test(tcase, a_cut_stat_line_is_refused);
    tcase_add_test(tcase, descendants_are_found_through_children_files);
    tcase_add_test(tcase, descendants_are_found_through_parent_pids_where_children_files_are_missing);
    tcase_add_test(tcase, children_of_every_thread_are_found);
    tcase_add_test(tcase, a_process_whose_main_thread_has_exited_is_alive);
    tcase_add_test(tcase, a_zombie_has_exited_whoever_has_to_reap_it);
    tcase_add_test(tcase, a_process_with_the_same_pid_but_another_start_is_never_signalled);
    tcase_add_test(tcase, forgetting_counts_anew);
    tcase_add_test(tcase, a_scan_beyond_its_deadline_is_never_quiet);
    tcase_add_unchecked_fixture(cgroups, make_files, remove_files);
    tcase_add_test(cgroups, the_own_cgroup_directory_is_found_on_unified_and_hybrid_hosts);
    tcase_add_test(cgroups, a_mount_of_a_part_of_the_hierarchy_counts_only_for_what_it_shows);
    tcase_add_test(cgroups, no_cgroup2_is_no_directory);
    tcase_add_test(cgroups, a_long_mount_table_is_read_to_its_end_and_a_monstrous_line_is_passed_by);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, cgroups);
    return run_suite(suite);
}
