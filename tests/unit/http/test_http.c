/* What the HTTP front end promises without a socket: request bodies, problem documents, listening addresses. */
#include "server/http/campaign_body.h"
#include "server/http/campaigns.h"
#include "server/http/listen.h"
#include "server/http/problem.h"

#include "common/cleanup.h"
#include "tests/run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static int parse(const char *body, struct hf_campaign_request *request, struct hf_error *err)
{
    return hf_campaign_body_parse(body, strlen(body), request, err);
}

START_TEST(fills_defaults_around_the_given_fields)
{
    struct hf_campaign_request request;
    struct hf_error err = {0};
    ck_assert_int_eq(parse("{\"campaign\":\"guest-isolation\",\"seed\":9223372036854775807,"
                           "\"budgets\":{\"actions\":3},\"strategist\":\"random\",\"minimize\":false}",
                           &request, &err),
                     0);
    ck_assert_str_eq(request.campaign, "guest-isolation");
    ck_assert_str_eq(request.profile, "qemu");
    ck_assert_str_eq(request.backend, "tcg");
    ck_assert_str_eq(request.executor, "local");
    ck_assert(request.seed == INT64_MAX);
    ck_assert_int_eq(request.budget_actions, 3);
    ck_assert_int_eq(request.budget_seconds, 900);
    ck_assert_int_eq(request.strategist, HF_STRATEGIST_RANDOM);
    ck_assert(!request.minimize);
    ck_assert_str_eq(request.executor_command, "");
}
END_TEST

START_TEST(leaves_an_absent_seed_to_the_caller)
{
    struct hf_campaign_request request;
    struct hf_error err = {0};
    ck_assert_int_eq(parse("{\"campaign\":\"guest-isolation\"}", &request, &err), 0);
    ck_assert_int_eq(request.seed, -1);
}
END_TEST

struct refusal {
    const char *body, *code, *field;
};

static const struct refusal refusals[] = {
    {"", "json-invalid", ""},
    {"[]", "shape-invalid", ""},
    {"{}", "shape-invalid", "campaign"},
    {"{\"campaign\":\"a\",\"campaign\":\"b\"}", "json-invalid", ""},
    {"{\"campaign\":\"a\"} x", "json-invalid", ""},
    {"{\"campaign\":1}", "shape-invalid", "campaign"},
    {"{\"campaign\":\"../etc/passwd\"}", "shape-invalid", "campaign"},
    {"{\"campaign\":\"a\",\"command\":\"/bin/sh\"}", "shape-invalid", ""},
    {"{\"campaign\":\"a\",\"executor_command\":\"/bin/sh\"}", "shape-invalid", ""},
    {"{\"campaign\":\"a\",\"strategist\":\"command:/bin/sh\"}", "shape-invalid", "strategist"},
    {"{\"campaign\":\"a\",\"executor\":\"/bin/sh\"}", "shape-invalid", "executor"},
    {"{\"campaign\":\"a\",\"profile\":\"Qemu\"}", "shape-invalid", "profile"},
    {"{\"campaign\":\"a\",\"backend\":\"xen\"}", "shape-invalid", "backend"},
    {"{\"campaign\":\"a\",\"host_type\":\"cloud\"}", "shape-invalid", "host_type"},
    {"{\"campaign\":\"a\",\"seed\":-1}", "shape-invalid", "seed"},
    {"{\"campaign\":\"a\",\"seed\":1.0}", "shape-invalid", "seed"},
    {"{\"campaign\":\"a\",\"seed\":true}", "shape-invalid", "seed"},
    {"{\"campaign\":\"a\",\"seed\":9223372036854775808}", "json-invalid", ""},
    {"{\"campaign\":\"a\",\"seed\":NaN}", "json-invalid", ""},
    {"{\"campaign\":\"a\",\"budgets\":[]}", "shape-invalid", "budgets"},
    {"{\"campaign\":\"a\",\"budgets\":{\"seconds\":0}}", "shape-invalid", "budgets.seconds"},
    {"{\"campaign\":\"a\",\"budgets\":{\"seconds\":86401}}", "shape-invalid", "budgets.seconds"},
    {"{\"campaign\":\"a\",\"budgets\":{\"actions\":101}}", "shape-invalid", "budgets.actions"},
    {"{\"campaign\":\"a\",\"budgets\":{\"credits\":1}}", "shape-invalid", "budgets"},
    {"{\"campaign\":\"a\",\"memory_mib\":127}", "shape-invalid", "memory_mib"},
    {"{\"campaign\":\"a\",\"memory_mib\":4097}", "shape-invalid", "memory_mib"},
    {"{\"campaign\":\"a\",\"phase_timeout_seconds\":3601}", "shape-invalid", "phase_timeout_seconds"},
    {"{\"campaign\":\"a\",\"action_timeout_seconds\":7201}", "shape-invalid", "action_timeout_seconds"},
    {"{\"campaign\":\"a\",\"minimize\":1}", "shape-invalid", "minimize"},
    {"{\"campaign\":\"a\",\"minimize_attempts\":0}", "shape-invalid", "minimize_attempts"},
    {"{\"campaign\":\"a\",\"budgets\":{\"x\":{\"y\":{\"z\":{}}}}}", "json-invalid", ""},
};

START_TEST(refuses_a_body_that_is_wrong_in_one_field)
{
    const struct refusal *refusal = &refusals[_i];
    struct hf_campaign_request request;
    struct hf_error err = {0};
    ck_assert_int_eq(parse(refusal->body, &request, &err), -1);
    ck_assert_msg(strcmp(err.code, refusal->code) == 0, "%s: code %s", refusal->body, err.code);
    ck_assert_msg(strcmp(err.field, refusal->field) == 0, "%s: field %s", refusal->body, err.field);
    ck_assert_uint_eq(hf_problem_status(err.code), 400);
}
END_TEST

START_TEST(problems_have_stable_types_and_hide_nothing_behind_500)
{
    struct hf_error err;
    hf_error_set(&err, "campaign-unknown", 0, "", "no such campaign");
    cleanup_free char *known = hf_problem_document(&err, NULL);
    ck_assert_str_eq(known, "{\"detail\":\"no such campaign\",\"status\":404,\"title\":\"There is no such campaign\","
                            "\"type\":\"urn:holdfast:problem:campaign-unknown\"}");
    hf_error_set(&err, "never-heard-of", 0, "f", "odd");
    ck_assert_uint_eq(hf_problem_status(err.code), 500);
    cleanup_free char *unknown = hf_problem_document(&err, NULL);
    ck_assert_ptr_nonnull(strstr(unknown, "urn:holdfast:problem:internal"));
    ck_assert_ptr_nonnull(strstr(unknown, "\"field\":\"f\""));
}
END_TEST

/* Paths of the contract are indented by two spaces, their methods by four. */
START_TEST(serves_exactly_the_operations_of_the_contract)
{
    char line[512], path[128] = "", method[16];
    size_t operations = 0;
    cleanup_file FILE *contract = fopen("api/openapi.yaml", "re");
    ck_assert_ptr_nonnull(contract);
    while (fgets(line, sizeof line, contract)) {
        if (strncmp(line, "  /", 3) == 0)
            snprintf(path, sizeof path, "%.*s", (int)strcspn(line + 2, ":"), line + 2);
        bool get = strcmp(line, "    get:\n") == 0;
        if (!get && strcmp(line, "    post:\n") != 0)
            continue;
        snprintf(method, sizeof method, "%s", get ? "GET" : "POST");
        bool served = false;
        for (size_t i = 0; i < hf_api_route_count; i++)
            served =
                served || (strcmp(hf_api_routes[i].path, path) == 0 && strcmp(hf_api_routes[i].method, method) == 0);
        ck_assert_msg(served, "%s %s is not served", method, path);
        operations++;
    }
    ck_assert_uint_eq(operations, hf_api_route_count);
}
END_TEST

/* What a start can be refused for beside the body itself; none of it is a fault of the controller. */
START_TEST(refusals_of_a_start_have_a_row_of_their_own)
{
    static const char *const codes[] = {
        "catalog-invalid", "catalog-scenario-unknown", "profile-invalid",  "profile-placeholder-missing",
        "storage-missing", "storage-failed",           "executor-unknown", "executor-command-invalid",
        "request-invalid", "controller-busy",          "seed-unavailable", "controller-stopping",
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        ck_assert_msg(hf_problem_status(codes[i]) != 500, "%s", codes[i]);
}
END_TEST

static const char *const bad_addresses[] = {
    "0.0.0.0:80",      "192.0.2.1:80", "[::]:80",       "localhost:80", "127.0.0.1", "127.0.0.1:",
    "127.0.0.1:65536", "127.0.0.1:-1", "unix:relative", "unix:",        ":80",       ""};

START_TEST(listens_on_this_host_only)
{
    struct hf_error err = {0};
    unsigned port;
    ck_assert_int_eq(hf_listen(bad_addresses[_i], &port, &err), -1);
    ck_assert_str_eq(err.code, "listen-address");
}
END_TEST

START_TEST(replaces_a_dead_socket_but_never_a_live_one_or_a_file)
{
    char directory[] = "/tmp/hf-listen-XXXXXX", address[96], path[64];
    struct hf_error err = {0};
    unsigned port;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/s", directory);
    snprintf(address, sizeof address, "unix:%s", path);

    int first = hf_listen(address, &port, &err);
    ck_assert_int_ge(first, 0);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0660);
    ck_assert_int_eq(hf_listen(address, &port, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "another server answers"));
    close(first);
    int second = hf_listen(address, &port, &err);
    ck_assert_int_ge(second, 0);
    close(second);

    ck_assert_int_eq(unlink(path), 0);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_int_eq(hf_listen(address, &port, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "is not a socket"));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

START_TEST(tells_the_port_it_took)
{
    struct hf_error err = {0};
    unsigned port = 0;
    int fd = hf_listen("127.0.0.1:0", &port, &err);
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_gt(port, 0);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("http");
    TCase *tcase = tcase_create("http");
    tcase_add_test(tcase, fills_defaults_around_the_given_fields);
    tcase_add_test(tcase, leaves_an_absent_seed_to_the_caller);
    tcase_add_loop_test(tcase, refuses_a_body_that_is_wrong_in_one_field, 0,
                        (int)(sizeof refusals / sizeof refusals[0]));
    tcase_add_test(tcase, problems_have_stable_types_and_hide_nothing_behind_500);
    tcase_add_test(tcase, serves_exactly_the_operations_of_the_contract);
    tcase_add_test(tcase, refusals_of_a_start_have_a_row_of_their_own);
    tcase_add_loop_test(tcase, listens_on_this_host_only, 0, (int)(sizeof bad_addresses / sizeof bad_addresses[0]));
    tcase_add_test(tcase, replaces_a_dead_socket_but_never_a_live_one_or_a_file);
    tcase_add_test(tcase, tells_the_port_it_took);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
