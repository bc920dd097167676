/*
 * Disks that are full, read-only or failing, at each file of a run. The rule is the same everywhere: nothing is
 * dispatched without its durable line (I1), the executor is finalized, the category is controller-storage-failure, and
 * the summaries are on the disk whenever the disk can be made to take them.
 */
#include "common/cleanup.h"
#include "common/durable.h"
#include "tests/integration/server/bench.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static struct bench bench;

/* Which call of which file fails: the calls numbered first..last. */
static const char *fault_operation, *fault_name;
static int fault_first, fault_last;
static atomic_int fault_count;

static int fail_on_demand(const char *operation, const char *name)
{
    if (strcmp(operation, fault_operation) != 0 || !strstr(name, fault_name))
        return 0;
    int number = atomic_fetch_add(&fault_count, 1) + 1;
    return number >= fault_first && number <= fault_last ? ENOSPC : 0;
}

static void inject(const char *operation, const char *name, int first, int last)
{
    fault_operation = operation;
    fault_name = name;
    fault_first = first;
    fault_last = last;
    atomic_store(&fault_count, 0);
    hf_durable_fault_hook = fail_on_demand;
}

static void set_up(void)
{
    bench_open(&bench, "");
    ck_assert_msg(bench_start_controller(&bench), "%s", bench.error.message);
}

static void tear_down(void)
{
    hf_durable_fault_hook = NULL;
    bench_close(&bench);
}

struct fault {
    const char *operation, *name;
    int first;
    int most_executes;
};

static const struct fault faults[] = {
    {"write", "actions.jsonl", 1, 0},      {"write", "actions.jsonl", 3, 2},
    {"fdatasync", "actions.jsonl", 2, 1},  {"open", "actions.jsonl", 1, 0},
    {"write", "observations.jsonl", 1, 1}, {"fdatasync", "observations.jsonl", 2, 2},
    {"write", "transitions.jsonl", 1, 0},  {"write", "transitions.jsonl", 9, 2},
    {"write", "transitions.jsonl", 20, 4}, {"write", "target-initialize", 1, 1},
    {"rename", "target-finalize", 1, 6},   {"write", "metadata.json", 2, 1},
};

START_TEST(a_failing_write_stops_the_dispatch_and_keeps_the_summaries)
{
    const struct fault *row = &faults[_i];
    inject(row->operation, row->name, row->first, INT_MAX);
    bench_run(&bench);
    ck_assert_int_gt(atomic_load(&fault_count), 0);
    bench_expect(&bench, "failed", "controller-storage-failure");
    ck_assert_int_le(bench_seen(&bench, "execute"), row->most_executes);
    ck_assert_int_ge(bench_lines(&bench, "actions.jsonl"), bench_seen(&bench, "execute")); /* I1 */
    bool session = bench_seen(&bench, "initialize") == 1;
    ck_assert_int_eq(bench_seen(&bench, "finalize"), session);
}
END_TEST

static int count_runs(void)
{
    int count = 0;
    DIR *runs = opendir(bench.runs);
    struct dirent *entry;
    while ((entry = readdir(runs)))
        count += strncmp(entry->d_name, "run-", 4) == 0;
    closedir(runs);
    return count;
}

START_TEST(a_run_whose_metadata_cannot_be_written_is_not_started)
{
    inject("write", "metadata.json", 1, INT_MAX);
    bench_run(&bench);
    ck_assert(bench.refused);
    ck_assert_str_eq(bench.error.code, "storage-failed");
    ck_assert_int_eq(count_runs(), 0);
    ck_assert_int_eq(bench_seen(&bench, "initialize"), 0);
}
END_TEST

START_TEST(a_summary_that_fails_once_is_written_at_the_second_try)
{
    inject("write", "summary.json", 1, 1);
    bench_run(&bench);
    bench_expect(&bench, "passed", "coverage-converged");
}
END_TEST

START_TEST(summaries_that_failed_for_a_while_are_written_and_say_so)
{
    inject("rename", "summary.json", 1, 6);
    bench_run(&bench);
    bench_expect(&bench, "failed", "controller-storage-failure");
}
END_TEST

START_TEST(a_run_without_summaries_is_completed_at_the_next_start)
{
    inject("rename", "summary.json", 1, INT_MAX);
    bench_run(&bench);
    ck_assert(bench.finished);
    ck_assert_str_eq(bench.view.category, "controller-storage-failure");
    ck_assert(!bench_has(&bench, "summary.json"));
    bench_stop_controller(&bench);
    hf_durable_fault_hook = NULL;
    ck_assert_msg(bench_start_controller(&bench), "%s", bench.error.message);
    bench_expect(&bench, "failed", "controller-storage-failure");
}
END_TEST

START_TEST(a_controller_that_cannot_recover_does_not_start)
{
    inject("rename", "summary.json", 1, INT_MAX);
    bench_run(&bench);
    bench_stop_controller(&bench);
    ck_assert(!bench_start_controller(&bench));
    ck_assert_str_eq(bench.error.code, "storage-failed");
    ck_assert_ptr_nonnull(strstr(bench.error.message, bench.run_id));
}
END_TEST

/* ---- real disks ---- */

static void mount_small(const char *directory)
{
    ck_assert_msg(mount("tmpfs", directory, "tmpfs", 0, "size=512k,mode=700") == 0, "cannot mount a tmpfs: %s",
                  strerror(errno));
}

/* A mount namespace of its own: as root directly, else through a user namespace. */
static void enter_mount_namespace(void)
{
    if (unshare(CLONE_NEWNS) != 0)
        ck_assert_msg(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "this test needs a mount namespace: %s",
                      strerror(errno));
    ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
}

static void set_up_disk(const char *which)
{
    enter_mount_namespace();
    bench_open(&bench, "");
    ck_assert_int_eq(mkdir(bench.runs, 0700), 0);
    ck_assert_int_eq(mkdir(bench.state, 0700), 0);
    mount_small(which);
    ck_assert_msg(bench_start_controller(&bench), "%s", bench.error.message);
}

static void fill_directory(const char *directory)
{
    char path[400], block[4096];
    memset(block, 'x', sizeof block);
    snprintf(path, sizeof path, "%s/filler", directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, block, sizeof block) > 0)
        ;
    close(fd);
}

static void fill_disk(struct bench *at, const struct hf_progress *progress)
{
    if (progress->kind == HF_PROGRESS_OBSERVATION && progress->sequence == 2)
        fill_directory(at->runs);
}

START_TEST(a_full_disk_still_takes_both_summaries)
{
    set_up_disk(bench.runs);
    bench.on_progress = fill_disk;
    bench_run(&bench);
    bench_expect(&bench, "failed", "controller-storage-failure");
    ck_assert_int_le(bench_seen(&bench, "execute"), 3);
    ck_assert_int_eq(bench_seen(&bench, "finalize"), 1);
    bench_stop_controller(&bench);
    umount(bench.runs);
    bench_close(&bench);
}
END_TEST

/* What a disk does that its file system has remounted read-only after an error: a mount with open writers cannot be
 * remounted from here. */
static int refuse_all_writes(const char *operation, const char *name)
{
    (void)name;
    return strcmp(operation, "read") == 0 ? 0 : EROFS;
}

static void make_read_only(struct bench *at, const struct hf_progress *progress)
{
    (void)at;
    if (progress->kind == HF_PROGRESS_OBSERVATION && progress->sequence == 2)
        hf_durable_fault_hook = refuse_all_writes;
}

START_TEST(a_read_only_disk_ends_the_campaign_and_is_made_good_at_the_next_start)
{
    bench.on_progress = make_read_only;
    bench_run(&bench);
    ck_assert(bench.finished);
    ck_assert_str_eq(bench.view.status, "failed");
    ck_assert_str_eq(bench.view.category, "controller-storage-failure");
    ck_assert_ptr_nonnull(strstr(bench.error.message, "Read-only"));
    bench_stop_controller(&bench);
    hf_durable_fault_hook = NULL;
    ck_assert_int_eq(bench_seen(&bench, "finalize"), 1);
    ck_assert_msg(bench_start_controller(&bench), "%s", bench.error.message);
    cleanup_json cJSON *summary = bench_json(&bench, "public-summary.json");
    ck_assert_str_eq(hf_json_get_string(summary, "status"), "failed");
}
END_TEST

static void fill_state(struct bench *at, const struct hf_progress *progress)
{
    if (progress->kind == HF_PROGRESS_ACTION)
        fill_directory(at->state);
}

START_TEST(a_register_that_cannot_be_written_still_refuses_its_target)
{
    set_up_disk(bench.state);
    bench_set_behaviours(&bench, "reused,violation:execute");
    bench.on_progress = fill_state;
    bench_run(&bench);
    ck_assert_str_eq(bench.view.category, "policy-violation");
    ck_assert(bench_has(&bench, "target-quarantine.json"));
    char filler[400];
    snprintf(filler, sizeof filler, "%s/filler", bench.state);
    ck_assert_int_eq(unlink(filler), 0);
    bench.on_progress = NULL;
    bench_set_behaviours(&bench, "reused");
    bench_run(&bench);
    bench_expect(&bench, "failed", "preflight-or-executor-failure");
    ck_assert_ptr_nonnull(strstr(bench.error.message, "quarantine register"));
    bench_stop_controller(&bench);
    umount(bench.state);
    bench_close(&bench);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("storage");
    TCase *tests = tcase_create("faults");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_failing_write_stops_the_dispatch_and_keeps_the_summaries, 0,
                        sizeof faults / sizeof faults[0]);
    tcase_add_test(tests, a_run_whose_metadata_cannot_be_written_is_not_started);
    tcase_add_test(tests, a_summary_that_fails_once_is_written_at_the_second_try);
    tcase_add_test(tests, summaries_that_failed_for_a_while_are_written_and_say_so);
    tcase_add_test(tests, a_run_without_summaries_is_completed_at_the_next_start);
    tcase_add_test(tests, a_controller_that_cannot_recover_does_not_start);
    tcase_add_test(tests, a_read_only_disk_ends_the_campaign_and_is_made_good_at_the_next_start);
    suite_add_tcase(suite, tests);
    TCase *disks = tcase_create("disks");
    tcase_set_timeout(disks, 60);
    tcase_add_test(disks, a_full_disk_still_takes_both_summaries);
    tcase_add_test(disks, a_register_that_cannot_be_written_still_refuses_its_target);
    suite_add_tcase(suite, disks);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK); /* a failed test leaves threads and a loop behind */
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
