/*
 * A real holdfastd whose disks fill up or become read-only in the middle of campaigns. Each time: the campaign ends as
 * controller-storage-failure with a sentence that says what to do, no executor was sent what is not durable (I1), the
 * summaries are there whenever the disk can take them, the service lives, and works again once the disk does.
 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "tests/integration/http/client.h"
#include "tests/integration/restart/evidence.h"
#include "tests/integration/storage/disks.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

enum { CAMPAIGN_TIMEOUT_MS = 60000 };

static struct {
    struct server_under_test server;
    struct evidence evidence;
    char runs[128], state[128], image[128];
} test;

static void set_up(void)
{
    server_prepare(&test.server);
    const char *directory = test.server.directory;
    snprintf(test.runs, sizeof test.runs, "%s/runs", directory);
    snprintf(test.state, sizeof test.state, "%s/state", directory);
    snprintf(test.image, sizeof test.image, "%s/image", directory);
    snprintf(test.evidence.runs, sizeof test.evidence.runs, "%s", test.runs);
    snprintf(test.evidence.index, sizeof test.evidence.index, "%s/index.sqlite", test.state);
    snprintf(test.evidence.seen_log, sizeof test.evidence.seen_log, "%s/seen.log", directory);
}

/* Of a test that failed. */
static void tear_down(void)
{
    if (test.server.pid > 0)
        server_end(&test.server, SIGKILL);
    umount2(test.runs, MNT_DETACH);
    umount2(test.state, MNT_DETACH);
    server_remove(&test.server);
}

static void stop_server(void)
{
    int status = server_end(&test.server, SIGTERM);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "holdfastd ended with wait status %#x", status);
}

/* ---- speaking to the service ---- */

static cJSON *json_of(const struct reply *reply)
{
    const struct hf_json_limits limits = {.max_bytes = 1 << 20, .max_depth = 16};
    cJSON *document = hf_json_parse(reply->body, reply->body_length, &limits, NULL);
    ck_assert_msg(document != NULL, "not JSON: %s", reply->body);
    return document;
}

static struct reply post_campaign(void)
{
    return client_post(&test.server, "/v1/campaigns",
                       "{\"campaign\":\"guest-isolation\",\"executor\":\"fake\",\"seed\":7}");
}

static void start_campaign(char run_id[128])
{
    struct reply reply = post_campaign();
    ck_assert_msg(reply.status == 202, "%d %s", reply.status, reply.body);
    cleanup_json cJSON *view = json_of(&reply);
    snprintf(run_id, 128, "%s", hf_json_get_string(view, "run_id"));
    reply_clear(&reply);
}

static cJSON *show(const char *run_id)
{
    char path[192];
    snprintf(path, sizeof path, "/v1/campaigns/%s", run_id);
    struct reply reply = client_get(&test.server, path);
    ck_assert_msg(reply.status == 200, "%d %s", reply.status, reply.body);
    cJSON *view = json_of(&reply);
    reply_clear(&reply);
    return view;
}

/* Waits until the campaign is in the state with so many accepted actions. */
static void wait_for(const char *run_id, const char *state, int actions)
{
    uint64_t deadline_ms = hf_clock_mono_ms() + CAMPAIGN_TIMEOUT_MS;
    for (;;) {
        cleanup_json cJSON *view = show(run_id);
        if (strcmp(hf_json_get_string(view, "state"), state) == 0 && hf_json_get_int_or(view, "actions", 0) == actions)
            return;
        ck_assert_msg(hf_clock_mono_ms() < deadline_ms,
                      "the campaign is in %s with %d actions, never was in %s with %d",
                      hf_json_get_string(view, "state"), (int)hf_json_get_int_or(view, "actions", -1), state, actions);
        usleep(5000);
    }
}

/* True when it passed. */
static bool wait_for_end(const char *run_id)
{
    uint64_t deadline_ms = hf_clock_mono_ms() + CAMPAIGN_TIMEOUT_MS;
    for (;;) {
        cleanup_json cJSON *view = show(run_id);
        const char *status = hf_json_get_string(view, "status");
        if (strcmp(status, "running") != 0)
            return strcmp(status, "passed") == 0;
        ck_assert_msg(hf_clock_mono_ms() < deadline_ms, "the campaign does not end");
        usleep(5000);
    }
}

static void expect_end(const char *run_id, const char *status, const char *category)
{
    wait_for_end(run_id);
    cleanup_json cJSON *view = show(run_id);
    ck_assert_str_eq(hf_json_get_string(view, "status"), status);
    ck_assert_str_eq(hf_json_get_string(view, "category"), category);
}

/* Nothing of any campaign is open any more: a disk can be unmounted or remounted. */
static void wait_until_idle(void)
{
    uint64_t deadline_ms = hf_clock_mono_ms() + CAMPAIGN_TIMEOUT_MS;
    for (bool live = true; live;) {
        struct reply reply = client_get(&test.server, "/healthz");
        live = strstr(reply.body, "\"live_campaigns\":0") == NULL;
        reply_clear(&reply);
        ck_assert_msg(hf_clock_mono_ms() < deadline_ms, "an ended campaign still holds its files");
        usleep(5000);
    }
}

static void expect_campaign_passes(void)
{
    char run_id[128];
    start_campaign(run_id);
    expect_end(run_id, "passed", "coverage-converged");
    evidence_expect_summaries(&test.evidence, run_id, "passed", "coverage-converged");
}

/* A start that the disk cannot take is refused in the open and leaves nothing. */
static void expect_start_refused(const char *why, const char *advice)
{
    struct reply reply = post_campaign();
    ck_assert_msg(reply.status == 507, "%d %s", reply.status, reply.body);
    cleanup_json cJSON *problem = json_of(&reply);
    const char *detail = hf_json_get_string(problem, "detail");
    ck_assert_msg(strstr(detail, why) && strstr(detail, advice), "unclear: %s", detail);
    reply_clear(&reply);
}

static void expect_error_sentence(const char *run_id, const char *why, const char *advice)
{
    char path[512], text[16384] = "";
    snprintf(path, sizeof path, "%s/%s/summary.json", test.runs, run_id);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file && fgets(text, sizeof text, file), "%s has no summary", run_id);
    fclose(file);
    ck_assert_msg(strstr(text, why) && strstr(text, advice), "unclear: %s", text);
}

static int count_entries(const char *pattern)
{
    char command[512];
    int count = -1;
    snprintf(command, sizeof command, "ls -d %s/%s 2>/dev/null | wc -l", test.runs, pattern);
    FILE *output = popen(command, "r");
    ck_assert(output && fscanf(output, "%d", &count) == 1);
    pclose(output);
    return count;
}

static void forget_index(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", test.state);
    ck_assert_int_eq(system(command), 0);
}

/* ---- full ---- */

static const struct moment {
    const char *behaviours, *state;
    int actions;
} moments[] = {
    {"late:initialize:700", "initializing", 0},
    {"late:execute:700", "executing", 1},
    {"late:execute2:700", "executing", 2},
    {"late:finalize:700", "finalizing", 6},
};

START_TEST(a_disk_that_fills_up_at_any_step_still_takes_both_summaries)
{
    char run_id[128];
    const struct moment *moment = &moments[_i];
    disk_mount_memory(test.runs, 2048);
    server_add_fake_executor(&test.server, moment->behaviours);
    server_start(&test.server);
    start_campaign(run_id);
    wait_for(run_id, moment->state, moment->actions);
    disk_fill(test.runs);
    expect_end(run_id, "failed", "controller-storage-failure");
    evidence_expect_summaries(&test.evidence, run_id, "failed", "controller-storage-failure");
    expect_error_sentence(run_id, "No space left on device", "free space");
    evidence_expect_actions(&test.evidence);
    disk_fill(test.runs); /* what the run gave back at its end */
    expect_start_refused("No space left on device", "free space");
    ck_assert_int_eq(count_entries("run-*"), 1);
    disk_free(test.runs);
    server_add_fake_executor(&test.server, "");
    expect_campaign_passes();
    ck_assert_int_eq(count_entries("*/reserve.bin"), 0);
    stop_server();
    forget_index();
    server_start(&test.server); /* the journal stopped too early to tell; the summaries are believed */
    expect_end(run_id, "failed", "controller-storage-failure");
    evidence_expect_summaries(&test.evidence, run_id, "failed", "controller-storage-failure");
    stop_server();
    disk_unmount(test.runs);
}
END_TEST

START_TEST(eight_campaigns_on_a_disk_that_fills_up_all_have_their_summaries)
{
    enum { COUNT = 8 };
    char ids[COUNT][128];
    disk_mount_memory(test.runs, 4096);
    server_add_fake_executor(&test.server, "late:execute2:1500");
    server_start(&test.server);
    for (int i = 0; i < COUNT; i++)
        start_campaign(ids[i]);
    for (int i = 0; i < COUNT; i++)
        wait_for(ids[i], "executing", 2);
    disk_fill(test.runs);
    int failed = 0;
    for (int i = 0; i < COUNT; i++) { /* the reserve that one gives back at its end may be enough for another to pass */
        bool passed = wait_for_end(ids[i]);
        failed += !passed;
        evidence_expect_summaries(&test.evidence, ids[i], passed ? "passed" : "failed",
                                  passed ? "coverage-converged" : "controller-storage-failure");
    }
    ck_assert_int_ge(failed, 1);
    evidence_expect_actions(&test.evidence);
    disk_free(test.runs);
    server_add_fake_executor(&test.server, "");
    expect_campaign_passes();
    stop_server();
    disk_unmount(test.runs);
}
END_TEST

START_TEST(a_full_state_directory_ends_campaigns_and_forgets_none)
{
    char run_id[128];
    disk_mount_memory(test.state, 1024);
    server_add_fake_executor(&test.server, "late:initialize:300");
    server_start(&test.server);
    expect_campaign_passes();
    disk_fill(test.state);
    struct reply reply = post_campaign();
    if (reply.status == 202) {
        cleanup_json cJSON *view = json_of(&reply);
        snprintf(run_id, sizeof run_id, "%s", hf_json_get_string(view, "run_id"));
        expect_end(run_id, "failed", "controller-storage-failure");
        evidence_expect_summaries(&test.evidence, run_id, "failed", "controller-storage-failure");
        expect_error_sentence(run_id, "index.sqlite", "disk");
    }
    ck_assert_int_eq(reply.status, 202);
    reply_clear(&reply);
    disk_free(test.state);
    expect_campaign_passes();
    expect_end(run_id, "failed", "controller-storage-failure"); /* still told, also once the disk is well */
    stop_server();
    server_start(&test.server); /* and after a restart */
    expect_end(run_id, "failed", "controller-storage-failure");
    stop_server();
    disk_unmount(test.state);
}
END_TEST

/* ---- read-only ---- */

START_TEST(a_read_only_disk_refuses_starts_until_it_is_writable)
{
    disk_mount_memory(test.runs, 2048);
    server_add_fake_executor(&test.server, "");
    server_start(&test.server);
    expect_campaign_passes();
    wait_until_idle();
    disk_set_read_only(test.runs, 1);
    expect_start_refused("Read-only file system", "make the directory writable");
    disk_set_read_only(test.runs, 0);
    ck_assert_int_eq(count_entries("run-*"), 1);
    expect_campaign_passes();
    stop_server();
    disk_unmount(test.runs);
}
END_TEST

START_TEST(a_disk_that_breaks_in_the_middle_of_a_campaign_ends_it)
{
    char run_id[128], path[192];
    disk_mount_ext4(test.runs, test.image, 32);
    server_add_fake_executor(&test.server, "late:execute2:700");
    server_start(&test.server);
    start_campaign(run_id);
    wait_for(run_id, "executing", 2);
    disk_break(test.runs);
    expect_end(run_id, "failed", "controller-storage-failure");
    evidence_expect_actions(&test.evidence);
    expect_start_refused("file system", "");
    snprintf(path, sizeof path, "/v1/campaigns/%s/public-summary", run_id);
    struct reply reply = client_get(&test.server, path);
    ck_assert_int_eq(reply.status, 404);
    reply_clear(&reply);

    wait_until_idle();
    disk_repair(test.runs, test.image);
    server_add_fake_executor(&test.server, "");
    expect_campaign_passes();
    stop_server();
    server_start(&test.server); /* completes the run whose summaries the disk had refused */
    evidence_expect_summaries(&test.evidence, run_id, "failed", "controller-storage-failure");
    evidence_expect_actions(&test.evidence);
    expect_end(run_id, "failed", "controller-storage-failure");
    stop_server();
    disk_unmount(test.runs);
}
END_TEST

START_TEST(a_controller_does_not_start_on_a_disk_that_it_cannot_write)
{
    disk_mount_memory(test.state, 64);
    disk_fill(test.state);
    server_spawn(&test.server);
    int status;
    ck_assert_int_eq(waitpid(test.server.pid, &status, 0), test.server.pid);
    test.server.pid = -1;
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 3, "wait status %#x", status);
    disk_unmount(test.state);
}
END_TEST

int main(void)
{
    disks_enter_namespace();
    signal(SIGPIPE, SIG_IGN);
    Suite *suite = suite_create("storage");
    TCase *tcase = tcase_create("disks");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, a_disk_that_fills_up_at_any_step_still_takes_both_summaries, 0,
                        sizeof moments / sizeof moments[0]);
    tcase_add_test(tcase, eight_campaigns_on_a_disk_that_fills_up_all_have_their_summaries);
    tcase_add_test(tcase, a_full_state_directory_ends_campaigns_and_forgets_none);
    tcase_add_test(tcase, a_read_only_disk_refuses_starts_until_it_is_writable);
    tcase_add_test(tcase, a_disk_that_breaks_in_the_middle_of_a_campaign_ends_it);
    tcase_add_test(tcase, a_controller_does_not_start_on_a_disk_that_it_cannot_write);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
