/*
 * Campaigns over HTTP against a real holdfastd with a scripted executor: started, watched, listed, cancelled, and
 * carried over kill -9 and SIGTERM of the controller.
 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "tests/integration/http/client.h"
#include "tests/run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { CAMPAIGN_TIMEOUT_MS = 60000 };

static const char request_body[] = "{\"campaign\":\"guest-isolation\",\"executor\":\"fake\",\"seed\":7}";

static cJSON *json_of(const struct reply *reply)
{
    const struct hf_json_limits limits = {.max_bytes = 1 << 20, .max_depth = 16};
    struct hf_error err = {0};
    cJSON *document = hf_json_parse(reply->body, reply->body_length, &limits, &err);
    ck_assert_msg(document != NULL, "%s: %s", err.message, reply->body);
    return document;
}

static void start_campaign(const struct server_under_test *server, char run_id[128])
{
    struct reply reply = client_post(server, "/v1/campaigns", request_body);
    ck_assert_msg(reply.status == 202, "%d %s", reply.status, reply.body);
    cleanup_json cJSON *view = json_of(&reply);
    snprintf(run_id, 128, "%s", hf_json_get_string(view, "run_id"));
    char location[160];
    snprintf(location, sizeof location, "Location: /v1/campaigns/%s\r\n", run_id);
    ck_assert_msg(strcasestr(reply.headers, location) != NULL, "no %s in %s", location, reply.headers);
    ck_assert_str_eq(hf_json_get_string(view, "status"), "running");
    reply_clear(&reply);
}

static cJSON *show(const struct server_under_test *server, const char *run_id)
{
    char path[192];
    snprintf(path, sizeof path, "/v1/campaigns/%s", run_id);
    struct reply reply = client_get(server, path);
    ck_assert_int_eq(reply.status, 200);
    cJSON *view = json_of(&reply);
    reply_clear(&reply);
    return view;
}

static cJSON *wait_until(const struct server_under_test *server, const char *run_id, const char *key, const char *value,
                         bool equal)
{
    uint64_t deadline = hf_clock_mono_ms() + CAMPAIGN_TIMEOUT_MS;
    for (;;) {
        cJSON *view = show(server, run_id);
        if ((strcmp(hf_json_get_string(view, key), value) == 0) == equal)
            return view;
        cJSON_Delete(view);
        ck_assert_msg(hf_clock_mono_ms() < deadline, "%s is still not as expected", key);
        usleep(20000);
    }
}

static cJSON *public_summary(const struct server_under_test *server, const char *run_id)
{
    char path[192];
    snprintf(path, sizeof path, "/v1/campaigns/%s/public-summary", run_id);
    struct reply reply = client_get(server, path);
    ck_assert_msg(reply.status == 200, "%d %s", reply.status, reply.body);
    cJSON *summary = json_of(&reply);
    reply_clear(&reply);
    return summary;
}

static void expect_summary(const struct server_under_test *server, const char *run_id, const char *status,
                           const char *category)
{
    static const char *const keys[] = {"schema_version", "run_id",    "status",  "category",    "campaign",
                                       "backend",        "host_type", "actions", "failed_case", "minimized_actions"};
    cleanup_json cJSON *summary = public_summary(server, run_id);
    ck_assert_int_eq(cJSON_GetArraySize(summary), 10);
    for (size_t i = 0; i < 10; i++)
        ck_assert_msg(hf_json_get(summary, keys[i]) != NULL, "no %s", keys[i]);
    ck_assert_str_eq(hf_json_get_string(summary, "run_id"), run_id);
    ck_assert_str_eq(hf_json_get_string(summary, "status"), status);
    ck_assert_str_eq(hf_json_get_string(summary, "category"), category);
}

static void end(struct server_under_test *server)
{
    int status = server_end(server, SIGTERM);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "holdfastd ended with wait status %#x", status);
    server_remove(server);
}

START_TEST(a_campaign_ends_with_exactly_the_ten_public_keys)
{
    struct server_under_test server;
    char run_id[128], cancel[192];
    server_prepare(&server);
    server_add_fake_executor(&server, "");
    server_start(&server);
    start_campaign(&server, run_id);
    cleanup_json cJSON *view = wait_until(&server, run_id, "status", "running", false);
    ck_assert_str_eq(hf_json_get_string(view, "state"), "passed");
    ck_assert_int_eq(hf_json_get_int_or(view, "actions", -1), 6);
    expect_summary(&server, run_id, "passed", "coverage-converged");

    snprintf(cancel, sizeof cancel, "/v1/campaigns/%s/cancel", run_id);
    struct reply reply = client_post(&server, cancel, NULL);
    ck_assert_int_eq(reply.status, 409);
    ck_assert_ptr_nonnull(strstr(reply.body, "campaign-finished"));
    reply_clear(&reply);
    end(&server);
}
END_TEST

START_TEST(a_running_campaign_has_no_summary_yet_and_can_be_cancelled)
{
    struct server_under_test server;
    char run_id[128], path[192];
    server_prepare(&server);
    server_add_fake_executor(&server, "late:execute:1500");
    server_start(&server);
    start_campaign(&server, run_id);
    cJSON_Delete(wait_until(&server, run_id, "state", "executing", true));
    snprintf(path, sizeof path, "/v1/campaigns/%s/public-summary", run_id);
    struct reply reply = client_get(&server, path);
    ck_assert_int_eq(reply.status, 404);
    ck_assert_ptr_nonnull(strstr(reply.body, "summary-pending"));
    reply_clear(&reply);
    snprintf(path, sizeof path, "/v1/campaigns/%s/cancel", run_id);
    reply = client_post(&server, path, NULL);
    ck_assert_int_eq(reply.status, 202);
    reply_clear(&reply);
    cJSON_Delete(wait_until(&server, run_id, "status", "running", false));
    expect_summary(&server, run_id, "failed", "cancelled");
    end(&server);
}
END_TEST

START_TEST(an_executor_that_nobody_configured_is_refused)
{
    struct server_under_test server;
    server_prepare(&server);
    server_start(&server);
    struct reply reply = client_post(&server, "/v1/campaigns", request_body);
    ck_assert_msg(reply.status == 422, "%d %s", reply.status, reply.body);
    ck_assert_ptr_nonnull(strstr(reply.body, "\"field\":\"executor\""));
    reply_clear(&reply);
    end(&server);
}
END_TEST

START_TEST(the_list_pages_from_the_newest)
{
    enum { COUNT = 7 };
    struct server_under_test server;
    char ids[COUNT][128], path[256] = "/v1/campaigns?limit=3";
    server_prepare(&server);
    server_add_fake_executor(&server, "");
    server_start(&server);
    for (int i = 0; i < COUNT; i++)
        start_campaign(&server, ids[i]);
    for (int i = 0; i < COUNT; i++)
        cJSON_Delete(wait_until(&server, ids[i], "status", "running", false));
    int seen = 0, pages = 0;
    for (bool more = true; more; pages++) {
        struct reply reply = client_get(&server, path);
        ck_assert_int_eq(reply.status, 200);
        cleanup_json cJSON *page = json_of(&reply);
        const cJSON *item;
        cJSON_ArrayForEach(item, hf_json_get(page, "campaigns"))
        {
            bool known = false;
            for (int i = 0; i < COUNT; i++)
                known |= strcmp(ids[i], hf_json_get_string(item, "run_id")) == 0;
            ck_assert(known);
            seen++;
        }
        const char *cursor = hf_json_get_string(page, "next_cursor");
        more = cursor != NULL;
        if (more)
            snprintf(path, sizeof path, "/v1/campaigns?limit=3&cursor=%s", cursor);
        reply_clear(&reply);
    }
    ck_assert_int_eq(seen, COUNT);
    ck_assert_int_eq(pages, 3);
    end(&server);
}
END_TEST

START_TEST(health_tells_how_long_the_loop_was_busy)
{
    struct server_under_test server;
    char run_id[128];
    server_prepare(&server);
    server_add_fake_executor(&server, "");
    server_start(&server);
    start_campaign(&server, run_id);
    cJSON_Delete(wait_until(&server, run_id, "status", "running", false));
    struct reply reply = client_get(&server, "/healthz");
    ck_assert_int_eq(reply.status, 200);
    cleanup_json cJSON *health = json_of(&reply);
    reply_clear(&reply);
    const cJSON *loop = hf_json_get(health, "loop");
    int64_t callbacks = hf_json_get_int_or(loop, "callbacks", 0), p50_us = hf_json_get_int_or(loop, "p50_us", -1),
            p99_us = hf_json_get_int_or(loop, "p99_us", -1), max_us = hf_json_get_int_or(loop, "max_us", -1);
    ck_assert_int_gt(callbacks, 50); /* a campaign of six actions is more than that */
    ck_assert_int_le(0, p50_us);
    ck_assert_int_le(p50_us, p99_us);
    ck_assert_int_le(p99_us, max_us);
    ck_assert_int_gt(hf_json_get_int_or(hf_json_get(loop, "iterations"), "count", 0), 50);
    ck_assert_int_gt(max_us, 10);                                  /* something was measured */
    ck_assert_int_lt(max_us, CAMPAIGN_TIMEOUT_MS * INT64_C(1000)); /* and waiting was not */
    end(&server);
}
END_TEST

/* Whatever is in the pipe; owned. */
static char *drain(int fd)
{
    char *text = calloc(1, 65536 + 1);
    size_t used = 0;
    ssize_t count;
    while (used < 65536 && (count = read(fd, text + used, 65536 - used)) > 0)
        used += (size_t)count;
    return text;
}

START_TEST(a_log_that_nobody_reads_costs_lines_and_not_the_loop)
{
    struct server_under_test server;
    char run_id[128];
    int log[2];
    ck_assert_int_eq(pipe2(log, O_CLOEXEC), 0);
    ck_assert_int_ge(fcntl(log[1], F_SETPIPE_SZ, 8192), 8192); /* ten campaigns log more than that */
    ck_assert_int_eq(fcntl(log[0], F_SETFL, O_NONBLOCK), 0);
    server_prepare(&server);
    server_add_fake_executor(&server, "");
    server.log_fd = log[1];
    server_start(&server);
    for (int i = 0; i < 10; i++) {
        start_campaign(&server, run_id);
        cJSON_Delete(wait_until(&server, run_id, "status", "running", false));
    }
    expect_summary(&server, run_id, "passed", "coverage-converged");
    cleanup_free char *first = drain(log[0]);
    ck_assert_ptr_null(strstr(first, run_id)); /* its lines found no room */
    start_campaign(&server, run_id);
    cJSON_Delete(wait_until(&server, run_id, "status", "running", false));
    cleanup_free char *then = drain(log[0]);
    ck_assert_ptr_nonnull(strstr(then, "log_lines_lost lines="));
    ck_assert_ptr_nonnull(strstr(then, run_id));
    end(&server);
    close(log[0]);
    close(log[1]);
}
END_TEST

START_TEST(after_kill_9_a_running_campaign_ends_as_controller_restarted)
{
    struct server_under_test server;
    char run_id[128];
    server_prepare(&server);
    server_add_fake_executor(&server, "late:execute2:30000");
    server_start(&server);
    start_campaign(&server, run_id);
    cleanup_json cJSON *first = NULL;
    do { /* the second action is in flight */
        cJSON_Delete(first);
        first = wait_until(&server, run_id, "state", "executing", true);
    } while (hf_json_get_int_or(first, "actions", 0) < 2);
    int status = server_end(&server, SIGKILL);
    ck_assert(WIFSIGNALED(status));

    server_start(&server);
    cleanup_json cJSON *view = show(&server, run_id);
    ck_assert_str_eq(hf_json_get_string(view, "status"), "failed");
    expect_summary(&server, run_id, "failed", "controller-restarted");
    end(&server);
}
END_TEST

START_TEST(sigterm_during_a_campaign_finalizes_it_first)
{
    struct server_under_test server;
    char run_id[128];
    server_prepare(&server);
    server_add_fake_executor(&server, "late:execute:1500");
    server_start(&server);
    start_campaign(&server, run_id);
    cJSON_Delete(wait_until(&server, run_id, "state", "executing", true));
    int status = server_end(&server, SIGTERM);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x", status);
    server_start(&server);
    expect_summary(&server, run_id, "failed", "cancelled");
    end(&server);
}
END_TEST

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    Suite *suite = suite_create("http_campaign");
    TCase *tcase = tcase_create("http_campaign");
    tcase_add_test(tcase, a_campaign_ends_with_exactly_the_ten_public_keys);
    tcase_add_test(tcase, a_running_campaign_has_no_summary_yet_and_can_be_cancelled);
    tcase_add_test(tcase, an_executor_that_nobody_configured_is_refused);
    tcase_add_test(tcase, the_list_pages_from_the_newest);
    tcase_add_test(tcase, health_tells_how_long_the_loop_was_busy);
    tcase_add_test(tcase, a_log_that_nobody_reads_costs_lines_and_not_the_loop);
    tcase_add_test(tcase, after_kill_9_a_running_campaign_ends_as_controller_restarted);
    tcase_add_test(tcase, sigterm_during_a_campaign_finalizes_it_first);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
