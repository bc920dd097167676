/*
 * kill -9 of a real controller at random moments: of holdfastd with a dozen campaigns at a time, also while it recovers
 * from the kill before, and of `holdfast run`. After each restart evidence.h and left_overs.h hold.
 *
 * test_restart [ROUNDS]: default 10 kills. HF_RESTART_SEED repeats a series: the moments are drawn from it, but what
 * the controller is doing then is the machine's affair, so a failure may need several attempts.
 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "tests/integration/http/client.h"
#include "tests/integration/restart/evidence.h"
#include "tests/integration/restart/left_overs.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    CAMPAIGNS = 12,         /* started in each round */
    KILL_WITHIN_MS = 1500,  /* of the first request; a campaign takes about a second */
    ANSWER_TIMEOUT_MS = 20, /* for what the dead controller had sent already */
    CAMPAIGN_TIMEOUT_MS = 60000,
    MAX_ROUNDS = 1000,
};

static struct {
    int rounds;
    uint64_t seed, state;
    struct server_under_test server;
    struct evidence evidence;
    char accepted[MAX_ROUNDS * CAMPAIGNS][128]; /* run ids of all answers 202 */
    size_t accepted_count;
    uint64_t start_took_us; /* the last time, until it listened: mostly recovery */
    int kills_in_recovery;
} test;

/* splitmix64: the series of moments depends on the seed only. */
static uint64_t draw(uint64_t below)
{
    uint64_t x = test.state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (x ^ (x >> 31)) % below;
}

static void set_up(void)
{
    test.state = test.seed;
    test.accepted_count = 0;
    server_prepare(&test.server);
    const char *directory = test.server.directory;
    snprintf(test.evidence.runs, sizeof test.evidence.runs, "%s/runs", directory);
    snprintf(test.evidence.index, sizeof test.evidence.index, "%s/state/index.sqlite", directory);
    snprintf(test.evidence.seen_log, sizeof test.evidence.seen_log, "%s/seen.log", directory);
}

static void tear_down(void)
{
    if (test.server.pid > 0)
        server_end(&test.server, SIGKILL);
    server_remove(&test.server);
}

/* ---- holdfastd ---- */

static void take_answer(int fd, int timeout_ms)
{
    const struct hf_json_limits limits = {.max_bytes = 1 << 20, .max_depth = 16};
    struct reply reply;
    if (client_read(fd, timeout_ms, &reply) && reply.status == 202) {
        cleanup_json cJSON *view = hf_json_parse(reply.body, reply.body_length, &limits, NULL);
        ck_assert_ptr_nonnull(view);
        snprintf(test.accepted[test.accepted_count++], sizeof test.accepted[0], "%s",
                 hf_json_get_string(view, "run_id"));
    }
    reply_clear(&reply);
    close(fd);
}

/* Starts a dozen campaigns and kills the controller delay_ms later, whatever it is doing. */
static void start_and_kill(uint64_t delay_ms)
{
    static const char body[] = "{\"campaign\":\"guest-isolation\",\"executor\":\"fake\",\"seed\":7}";
    int fds[CAMPAIGNS];
    uint64_t moment_ms = hf_clock_mono_ms() + delay_ms;
    for (int i = 0; i < CAMPAIGNS; i++)
        fds[i] = client_post_begin(&test.server, "/v1/campaigns", body);
    left_overs_note_supervisors(test.server.pid);
    uint64_t now_ms = hf_clock_mono_ms();
    usleep(now_ms < moment_ms ? (useconds_t)(moment_ms - now_ms) * 1000 : 0);
    kill(test.server.pid, SIGSTOP); /* so that nobody is missed; a stopped process is killed like any other */
    left_overs_note_supervisors(test.server.pid);
    int status = server_end(&test.server, SIGKILL);
    ck_assert(WIFSIGNALED(status));
    for (int i = 0; i < CAMPAIGNS; i++)
        take_answer(fds[i], ANSWER_TIMEOUT_MS);
}

static void start_server(void)
{
    uint64_t start_ns = hf_clock_mono_ns();
    server_start(&test.server);
    test.start_took_us = (hf_clock_mono_ns() - start_ns) / 1000;
}

static void kill_during_recovery(void)
{
    server_spawn(&test.server);
    usleep((useconds_t)draw(test.start_took_us));
    server_end(&test.server, SIGKILL);
    test.kills_in_recovery++;
}

static void check_everything(void)
{
    left_overs_expect_no_process(test.server.directory, test.server.pid);
    left_overs_expect_no_file(test.server.directory);
    evidence_check(&test.evidence);
    for (size_t i = 0; i < test.accepted_count; i++)
        ck_assert_msg(evidence_has_run(&test.evidence, test.accepted[i]), "%s was answered with 202 and is gone (I6)",
                      test.accepted[i]);
}

/* What the service says about a run that ended before it started. */
static void expect_told(const char *run_id)
{
    char path[256];
    snprintf(path, sizeof path, "/v1/campaigns/%s/public-summary", run_id);
    struct reply reply = client_get(&test.server, path);
    ck_assert_msg(reply.status == 200, "%s: %d %s", run_id, reply.status, reply.body);
    ck_assert_ptr_nonnull(strstr(reply.body, evidence_category(&test.evidence, run_id)));
    reply_clear(&reply);
}

static void run_one_to_its_end(void)
{
    struct reply reply = client_post(&test.server, "/v1/campaigns",
                                     "{\"campaign\":\"guest-isolation\",\"executor\":\"fake\",\"seed\":7}");
    ck_assert_msg(reply.status == 202, "%d %s", reply.status, reply.body);
    reply_clear(&reply);
    uint64_t deadline_ms = hf_clock_mono_ms() + CAMPAIGN_TIMEOUT_MS;
    bool running = true;
    while (running) {
        reply = client_get(&test.server, "/healthz");
        running = strstr(reply.body, "\"live_campaigns\":0") == NULL;
        reply_clear(&reply);
        ck_assert_msg(hf_clock_mono_ms() < deadline_ms, "a campaign after the restarts does not end");
        usleep(20000);
    }
}

START_TEST(holdfastd_killed_at_random_moments_loses_nothing)
{
    server_add_fake_executor(&test.server, "jitter:initialize:80,jitter:execute:80,jitter:execute2:80,jitter:finalize:"
                                           "80,jitter:shutdown:40");
    for (int round = 0; round < test.rounds; round++) {
        start_server();
        if (round > 0)
            check_everything();
        start_and_kill(draw(KILL_WITHIN_MS));
        for (uint64_t kills = draw(3); kills > 0; kills--)
            kill_during_recovery();
    }
    start_server();
    check_everything();
    for (size_t i = 0; i < test.accepted_count; i++)
        expect_told(test.accepted[i]);
    int interrupted = test.evidence.interrupted, passed = test.evidence.passed;
    run_one_to_its_end();
    int status = server_end(&test.server, SIGTERM);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "holdfastd ended with wait status %#x", status);
    check_everything();
    ck_assert_int_eq(test.evidence.passed, passed + 1);
    ck_assert_int_eq(test.evidence.interrupted, interrupted);
    ck_assert_int_gt(interrupted, 0); /* the moments were within the campaigns */
    printf("%d kills, %d of them during recovery: %d campaigns, %d interrupted, %d in the register, seed %llu\n",
           test.rounds + test.kills_in_recovery, test.kills_in_recovery, test.evidence.ended, interrupted,
           test.evidence.quarantined, (unsigned long long)test.seed);
}
END_TEST

/* ---- holdfast run ---- */

static void prepare_command_line(const char *behaviours)
{
    server_add_fake_executor(&test.server, behaviours);
    snprintf(test.evidence.index, sizeof test.evidence.index, "%s/runs/.state/index.sqlite", test.server.directory);
}

static pid_t spawn_holdfast_run(void)
{
    char program[4096], wrapper[128];
    snprintf(program, sizeof program, "%s/holdfast", getenv("HF_BIN_DIR"));
    snprintf(wrapper, sizeof wrapper, "%s/wrapper", test.server.directory);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    int null_fd = open("/dev/null", O_WRONLY);
    dup2(null_fd, STDOUT_FILENO);
    execl(program, program, "run", "--campaign", "guest-isolation", "--executor-command", wrapper, "--output-dir",
          test.evidence.runs, "--seed", "7", (char *)NULL);
    _exit(127);
}

static void expect_exit(pid_t pid, int code)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == code, "holdfast run ended with wait status %#x", status);
}

/* Waits until the executors have received so many execute requests in all. */
static void wait_for_executes(int wanted)
{
    uint64_t deadline_ms = hf_clock_mono_ms() + CAMPAIGN_TIMEOUT_MS;
    int seen = 0;
    while (seen < wanted) {
        char line[4096];
        FILE *log = fopen(test.evidence.seen_log, "r");
        seen = 0;
        while (log && fgets(line, sizeof line, log))
            seen += strstr(line, "\"operation\":\"execute\"") != NULL;
        if (log)
            fclose(log);
        ck_assert_msg(hf_clock_mono_ms() < deadline_ms, "only %d requests of %d came", seen, wanted);
        usleep(10000);
    }
}

static void kill_and_wait(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
}

/* As a kill in the middle of writing a strategist's document leaves it. */
static void plant_temporary(void)
{
    char command[512];
    snprintf(command, sizeof command,
             "cd %s/run-* && mkdir -p copilot/001-select && : >copilot/001-select/prompt.json.0123456789abcdef.tmp~",
             test.evidence.runs);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(holdfast_run_killed_is_recovered_by_the_next_one)
{
    prepare_command_line("late:execute2:60000");
    pid_t pid = spawn_holdfast_run();
    wait_for_executes(2);
    left_overs_note_supervisors(pid);
    kill_and_wait(pid);
    left_overs_expect_no_process(test.server.directory, 0);
    plant_temporary();
    prepare_command_line("");
    expect_exit(spawn_holdfast_run(), 0);
    left_overs_expect_no_process(test.server.directory, 0);
    left_overs_expect_no_file(test.server.directory);
    evidence_check(&test.evidence);
    ck_assert_int_eq(test.evidence.passed, 1);
    ck_assert_int_eq(test.evidence.interrupted, 1);
    ck_assert_int_eq(test.evidence.quarantined, 1);
}
END_TEST

START_TEST(holdfast_run_leaves_a_live_run_beside_it_alone)
{
    prepare_command_line("late:execute2:1500");
    pid_t first = spawn_holdfast_run();
    wait_for_executes(2);
    prepare_command_line("");
    expect_exit(spawn_holdfast_run(), 0); /* begins and ends while the other is in its second action */
    int status;
    ck_assert_int_eq(waitpid(first, &status, WNOHANG), 0);
    expect_exit(first, 0);
    evidence_check(&test.evidence);
    ck_assert_int_eq(test.evidence.passed, 2);
}
END_TEST

START_TEST(many_holdfast_run_that_start_together_do_not_recover_each_other)
{
    enum { TOGETHER = 8 };
    pid_t pids[TOGETHER];
    prepare_command_line("");
    for (int i = 0; i < TOGETHER; i++)
        pids[i] = spawn_holdfast_run();
    for (int i = 0; i < TOGETHER; i++)
        expect_exit(pids[i], 0);
    evidence_check(&test.evidence);
    ck_assert_int_eq(test.evidence.passed, TOGETHER);
}
END_TEST

int main(int argc, char **argv)
{
    const char *seed = getenv("HF_RESTART_SEED");
    test.rounds = argc > 1 ? atoi(argv[1]) : 10;
    test.seed = seed ? strtoull(seed, NULL, 10) : hf_clock_wall_ms() & 0xffffffff;
    if (test.rounds < 1 || test.rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: test_restart [ROUNDS]   1..%d kills, default 10\n", MAX_ROUNDS);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    Suite *suite = suite_create("restart");
    TCase *tcase = tcase_create("restart");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, holdfastd_killed_at_random_moments_loses_nothing);
    tcase_add_test(tcase, holdfast_run_killed_is_recovered_by_the_next_one);
    tcase_add_test(tcase, holdfast_run_leaves_a_live_run_beside_it_alone);
    tcase_add_test(tcase, many_holdfast_run_that_start_together_do_not_recover_each_other);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (failed)
        fprintf(stderr, "repeat with HF_RESTART_SEED=%llu test_restart %d\n", (unsigned long long)test.seed,
                test.rounds);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
