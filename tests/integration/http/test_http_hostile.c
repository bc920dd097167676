/* holdfastd under hostile clients: every request is answered or closed, nobody else waits, memory stays bounded. */
#include "common/clock.h"
#include "tests/integration/http/client.h"
#include "tests/run_suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct server_under_test server;

static void setup(void)
{
    server_prepare(&server);
    server_start(&server);
}

static void teardown(void)
{
    int status = server_end(&server, SIGTERM);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "holdfastd ended with wait status %#x", status);
    server_remove(&server);
}

static void still_serves(void)
{
    struct reply reply = client_get(&server, "/healthz");
    ck_assert_int_eq(reply.status, 200);
    ck_assert_ptr_nonnull(strstr(reply.body, "\"status\":\"ok\""));
    reply_clear(&reply);
}

/* Sends raw bytes, expects `status` (0: closed without an answer) within ten seconds. */
static void expect_raw(const char *request, int status, const char *in_body)
{
    struct reply reply;
    int fd = client_connect(&server);
    client_send(fd, request, strlen(request));
    client_read(fd, 10000, &reply);
    ck_assert_msg(reply.status == status, "status %d, expected %d, for: %.200s", reply.status, status, request);
    if (in_body)
        ck_assert_msg(strstr(reply.body, in_body), "no %s in %s", in_body, reply.body);
    reply_clear(&reply);
    close(fd);
}

#define HOST "Host: localhost:%PORT%\r\n"

/* Replaces %PORT%. */
static void expect(const char *pattern, int status, const char *in_body)
{
    char request[4096];
    const char *hole = strstr(pattern, "%PORT%");
    if (hole)
        snprintf(request, sizeof request, "%.*s%u%s", (int)(hole - pattern), pattern, server.port, hole + 6);
    else
        snprintf(request, sizeof request, "%s", pattern);
    expect_raw(request, status, in_body);
}

struct exchange {
    const char *request;
    int status;
    const char *in_body;
};

static const struct exchange exchanges[] = {
    {"GET /healthz HTTP/1.1\r\n" HOST "\r\n", 200, "\"live_campaigns\":0"},
    {"GET /v1/campaigns HTTP/1.1\r\n" HOST "\r\n", 200, "{\"campaigns\":[],\"next_cursor\":null}"},
    {"GET /v1/campaigns?limit=0 HTTP/1.1\r\n" HOST "\r\n", 400, "urn:holdfast:problem:parameter-invalid"},
    {"GET /v1/campaigns?limit=1e9 HTTP/1.1\r\n" HOST "\r\n", 400, "\"field\":\"limit\""},
    {"GET /v1/campaigns?cursor=../../etc HTTP/1.1\r\n" HOST "\r\n", 400, "\"field\":\"cursor\""},
    {"GET /v1/campaigns/no-such-run HTTP/1.1\r\n" HOST "\r\n", 404, "campaign-unknown"},
    {"GET /v1/campaigns/no-such-run/public-summary HTTP/1.1\r\n" HOST "\r\n", 404, "campaign-unknown"},
    {"GET /v1/campaigns/../../etc/passwd HTTP/1.1\r\n" HOST "\r\n", 404, "not-found"},
    {"GET /v1/campaigns/%2e%2e%2fstate/public-summary HTTP/1.1\r\n" HOST "\r\n", 404, "not-found"},
    {"GET /v1/campaigns/RUN/public-summary HTTP/1.1\r\n" HOST "\r\n", 404, "not-found"},
    {"GET /v1/campaigns/a/summary HTTP/1.1\r\n" HOST "\r\n", 404, "not-found"},
    {"GET / HTTP/1.1\r\n" HOST "\r\n", 404, "not-found"},
    {"DELETE /v1/campaigns/a HTTP/1.1\r\n" HOST "\r\n", 405, "method-not-allowed"},
    {"PUT /v1/campaigns HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 405, "GET, HEAD"},
    {"TRACE /healthz HTTP/1.1\r\n" HOST "\r\n", 405, NULL},
    {"OPTIONS /v1/campaigns HTTP/1.1\r\n" HOST "\r\n", 405, NULL},
    {"POST /v1/campaigns/no-such-run/cancel HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 404, "campaign-unknown"},
    {"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, "host-refused"},
    {"GET /healthz HTTP/1.1\r\n" HOST "Origin: http://evil.example\r\n\r\n", 403, "origin-refused"},
    {"POST /v1/campaigns HTTP/1.1\r\n" HOST "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415, NULL},
    {"POST /v1/campaigns HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nContent-Length: 65537\r\n\r\n", 413,
     NULL},
    {"POST /v1/campaigns HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 400,
     "\"field\":\"campaign\""},
    {"POST /v1/campaigns HTTP/1.1\r\n" HOST
     "Content-Type: application/json\r\nIdempotency-Key: a\r\nContent-Length: 2\r\n\r\n{}",
     400, "idempotency-unsupported"},
    {"POST /v1/campaigns HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nContent-Length: 42\r\n\r\n"
     "{\"campaign\":\"workload-isolation\",\"seed\":1}",
     422, "catalog-scenario-unknown"},
    {"POST /v1/campaigns HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nContent-Length: 25\r\n\r\n"
     "{\"campaign\":\"no-such-one\"}",
     400, NULL}, /* one byte short: the JSON is cut */
    {"POST /v1/campaigns HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nContent-Length: 26\r\n\r\n"
     "{\"campaign\":\"no-such-one\"}",
     422, NULL},
    {"POST /v1/campaigns HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
     "2\r\n{}\r\n0\r\n\r\n",
     400, "\"field\":\"campaign\""},
    {"GET /healthz HTTP/1.1\r\n\r\n", 400, NULL},
    {"GET /healthz%00x HTTP/1.1\r\n" HOST "\r\n", 404, "not-found"},
    {"GET /v1%2fcampaigns HTTP/1.1\r\n" HOST "\r\n", 404, "not-found"},
    {"GET /v1/campaigns?limit=1%00x HTTP/1.1\r\n" HOST "\r\n", 400, "\"field\":\"limit\""},
    {"GET /v1/campaigns?limit=1&limit=2 HTTP/1.1\r\n" HOST "\r\n", 400, "found one repeated"},
    {"GET /v1/campaigns?limit HTTP/1.1\r\n" HOST "\r\n", 400, "without a value"},
    {"GET /healthz HTTP/1.1\r\n" HOST "Host: evil.example\r\n\r\n", 400, "\"field\":\"Host\""},
    {"GET /healthz HTTP/1.1\r\n" HOST "host: evil.example\r\n\r\n", 400, "framing-refused"},
    {"NONSENSE\r\n\r\n", 0, NULL} /* not HTTP: closed */,
};

START_TEST(answers_each_kind_of_wrong_request)
{
    const struct exchange *exchange = &exchanges[_i];
    expect(exchange->request, exchange->status, exchange->in_body);
    still_serves();
}
END_TEST

static const char *const doubtful[] = {
    "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}",
    "Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}",
    "Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n{}",
    "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
};

/* What follows such a request might be a part of it: it must not be answered as the next one. */
START_TEST(hears_nothing_more_after_a_request_of_doubtful_extent)
{
    char request[1024], rest[4096];
    struct reply reply;
    snprintf(request, sizeof request,
             "POST /v1/campaigns HTTP/1.1\r\nHost: localhost:%u\r\nContent-Type: application/json\r\n%s"
             "GET /healthz HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
             server.port, doubtful[_i], server.port);
    int fd = client_connect(&server);
    client_send(fd, request, strlen(request));
    client_read(fd, 10000, &reply);
    ck_assert_int_eq(reply.status, 400);
    ck_assert_msg(strstr(reply.body, "framing-refused"), "%s", reply.body);
    ck_assert_int_le(recv(fd, rest, sizeof rest, 0), 0);
    reply_clear(&reply);
    close(fd);
    still_serves();
}
END_TEST

/* An answer that a handler gives later must not wait for the listener's next look at its timers, once a second. */
START_TEST(late_answers_are_sent_at_once)
{
    uint64_t begin = hf_clock_mono_ms();
    for (int i = 0; i < 8; i++) {
        struct reply reply = client_post(&server, "/v1/campaigns", "{\"campaign\":\"no-such-one\"}");
        ck_assert_int_eq(reply.status, 422);
        reply_clear(&reply);
    }
    uint64_t spent_ms = hf_clock_mono_ms() - begin;
    ck_assert_msg(spent_ms < 4000, "eight answers took %llu ms", (unsigned long long)spent_ms);
}
END_TEST

START_TEST(head_has_headers_and_no_body)
{
    char request[128], byte;
    struct reply reply;
    snprintf(request, sizeof request, "HEAD /healthz HTTP/1.1\r\nHost: localhost:%u\r\nConnection: close\r\n\r\n",
             server.port);
    int fd = client_connect(&server);
    client_send(fd, request, strlen(request));
    client_read(fd, 2000, &reply);
    ck_assert_int_eq(reply.status, 200);
    ck_assert_uint_eq(reply.body_length, 0);
    ck_assert_int_eq(read(fd, &byte, 1), 0);
    reply_clear(&reply);
    close(fd);
}
END_TEST

START_TEST(bounds_headers)
{
    char *request = malloc(70000);
    int used = sprintf(request, "GET /healthz HTTP/1.1\r\nHost: localhost:%u\r\nX-Padding: ", server.port);
    memset(request + used, 'a', 65000);
    strcpy(request + used + 65000, "\r\n\r\n");
    struct reply reply;
    int fd = client_connect(&server);
    client_send(fd, request, strlen(request));
    client_read(fd, 10000, &reply);
    ck_assert_msg(reply.status == 431 || reply.status == 0, "status %d", reply.status);
    reply_clear(&reply);
    close(fd);
    free(request);
    still_serves();
}
END_TEST

START_TEST(bounds_chunked_bodies_that_declare_no_length)
{
    char head[256], chunk[4096 + 16];
    struct reply reply;
    int fd = client_connect(&server);
    snprintf(head, sizeof head,
             "POST /v1/campaigns HTTP/1.1\r\nHost: localhost:%u\r\nContent-Type: application/json\r\n"
             "Transfer-Encoding: chunked\r\n\r\n",
             server.port);
    client_send(fd, head, strlen(head));
    memcpy(chunk, "1000\r\n", 6);
    memset(chunk + 6, ' ', 4096);
    memcpy(chunk + 6 + 4096, "\r\n", 2);
    for (int i = 0; i < 64; i++)
        client_send(fd, chunk, 6 + 4096 + 2);
    client_send(fd, "0\r\n\r\n", 5);
    client_read(fd, 10000, &reply);
    ck_assert_int_eq(reply.status, 413);
    reply_clear(&reply);
    close(fd);
    still_serves();
}
END_TEST

START_TEST(answers_pipelined_requests_in_order)
{
    char request[512], one[128];
    snprintf(one, sizeof one, "Host: localhost:%u\r\n\r\n", server.port);
    snprintf(request, sizeof request,
             "GET /healthz HTTP/1.1\r\n%sGET /v1/nothing HTTP/1.1\r\n%sGET /v1/campaigns HTTP/1.1\r\n%s", one, one,
             one);
    int fd = client_connect(&server);
    client_send(fd, request, strlen(request));
    char answer[8192] = "";
    size_t used = 0;
    uint64_t deadline = hf_clock_mono_ms() + 5000;
    while (!strstr(answer, "next_cursor") && hf_clock_mono_ms() < deadline) {
        ssize_t count = read(fd, answer + used, sizeof answer - 1 - used);
        ck_assert_int_gt(count, 0);
        used += (size_t)count;
        answer[used] = '\0';
    }
    const char *health = strstr(answer, "live_campaigns"), *missing = strstr(answer, "not-found");
    const char *list = strstr(answer, "next_cursor");
    ck_assert(health && missing && list && health < missing && missing < list);
    close(fd);
}
END_TEST

START_TEST(closes_requests_that_drip)
{
    uint64_t begin = hf_clock_mono_ms();
    int fd = client_connect(&server);
    client_send(fd, "GET /healthz HTTP/1.1\r\n", 23);
    bool closed = false;
    while (!closed && hf_clock_mono_ms() - begin < 25000) {
        client_send(fd, "X-A: b\r\n", 8);
        struct reply reply;
        closed = !client_read(fd, 500, &reply) && recv(fd, &(char){0}, 1, MSG_DONTWAIT) == 0;
        reply_clear(&reply);
    }
    ck_assert_msg(closed, "a dripping request was still open after %llu ms",
                  (unsigned long long)(hf_clock_mono_ms() - begin));
    close(fd);
    still_serves();
}
END_TEST

START_TEST(serves_others_while_a_thousand_connections_idle)
{
    enum { IDLE = 1000 };
    static int fds[IDLE];
    struct rlimit limit = {4096, 4096};
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < IDLE; i++)
        fds[i] = client_connect(&server);
    still_serves();
    for (int i = 0; i < IDLE; i++)
        close(fds[i]);
    still_serves();
}
END_TEST

static const char *const wrong_command_lines[] = {
    "--executor 'A B=/bin/true'",
    "--executor =/bin/true",
    "--executor a=bin/true",
    "--executor a=/bin/true --executor a=/bin/false",
    "--listen 0.0.0.0:8421",
    "--listen localhost:8421",
    "--listen 127.0.0.1:65536",
    "--listen unix:relative",
    "--listen ''",
};

START_TEST(refuses_a_wrong_command_line_as_usage)
{
    char command[5000];
    snprintf(command, sizeof command,
             "exec timeout 20 %s/holdfastd --runs-dir %s/other-runs --state-dir %s/other-state %s 2>/dev/null",
             getenv("HF_BIN_DIR"), server.directory, server.directory, wrong_command_lines[_i]);
    int status = system(command);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 2);
}
END_TEST

START_TEST(survives_clients_that_leave_in_the_middle)
{
    for (int i = 0; i < 200; i++) {
        char request[256];
        snprintf(request, sizeof request,
                 "POST /v1/campaigns HTTP/1.1\r\nHost: localhost:%u\r\nContent-Type: application/json\r\n"
                 "Content-Length: 100\r\n\r\n{\"campaign\":",
                 server.port);
        int fd = client_connect(&server);
        client_send(fd, request, strlen(request) - (size_t)(i % 40));
        close(fd);
    }
    still_serves();
}
END_TEST

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    Suite *suite = suite_create("http_hostile");
    TCase *tcase = tcase_create("http_hostile");
    tcase_set_timeout(tcase, 60);
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, answers_each_kind_of_wrong_request, 0, (int)(sizeof exchanges / sizeof exchanges[0]));
    tcase_add_loop_test(tcase, hears_nothing_more_after_a_request_of_doubtful_extent, 0,
                        (int)(sizeof doubtful / sizeof doubtful[0]));
    tcase_add_test(tcase, late_answers_are_sent_at_once);
    tcase_add_test(tcase, head_has_headers_and_no_body);
    tcase_add_test(tcase, bounds_headers);
    tcase_add_test(tcase, bounds_chunked_bodies_that_declare_no_length);
    tcase_add_test(tcase, answers_pipelined_requests_in_order);
    tcase_add_test(tcase, closes_requests_that_drip);
    tcase_add_test(tcase, serves_others_while_a_thousand_connections_idle);
    tcase_add_loop_test(tcase, refuses_a_wrong_command_line_as_usage, 0,
                        (int)(sizeof wrong_command_lines / sizeof wrong_command_lines[0]));
    tcase_add_test(tcase, survives_clients_that_leave_in_the_middle);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
