/* Bounds of a campaign request: each field, just inside and just outside. */
#include "server/controller.h"
#include "tests/unit/server/fixture.h"

#include <string.h>

static struct hf_campaign_request request;
static struct hf_error err;

static void set_up(void)
{
    hf_campaign_request_defaults(&request);
    strcpy(request.campaign, "guest-isolation");
    err = (struct hf_error){0};
}

static void expect_refused(const char *field)
{
    ck_assert_int_eq(hf_campaign_request_check(&request, &err), -1);
    ck_assert_str_eq(err.code, "request-invalid");
    ck_assert_str_eq(err.field, field);
    ck_assert_ptr_nonnull(strstr(err.message, field));
}

START_TEST(the_defaults_are_a_good_request)
{
    ck_assert_msg(hf_campaign_request_check(&request, &err) == 0, "%s", err.message);
}
END_TEST

struct bound {
    const char *field;
    int64_t *value;
    int64_t min, max;
};

static const struct bound bounds[] = {
    {"seed", &request.seed, 0, INT64_MAX},
    {"budgets.actions", &request.budget_actions, 1, 100},
    {"budgets.ai_credits", &request.budget_ai_credits, 0, 1000000},
    {"memory_mib", &request.memory_mib, 128, 4096},
    {"action_timeout_seconds", &request.action_timeout_seconds, 1, 7200},
    {"minimize_attempts", &request.minimize_attempts, 1, 100},
};

START_TEST(a_number_is_taken_at_its_bounds_and_refused_beyond)
{
    const struct bound *bound = &bounds[_i];
    *bound->value = bound->min;
    ck_assert_msg(hf_campaign_request_check(&request, &err) == 0, "%s", err.message);
    *bound->value = bound->max;
    ck_assert_msg(hf_campaign_request_check(&request, &err) == 0, "%s", err.message);
    *bound->value = bound->min - 1;
    expect_refused(bound->field);
    *bound->value = -1000;
    expect_refused(bound->field);
    if (bound->max == INT64_MAX)
        return;
    *bound->value = bound->max + 1;
    expect_refused(bound->field);
}
END_TEST

START_TEST(a_budget_must_hold_initialize_and_finalize_and_says_how_much_that_is)
{
    request.budget_seconds = 430;
    ck_assert_int_eq(hf_campaign_request_check(&request, &err), 0);
    request.budget_seconds = 429;
    expect_refused("budgets.seconds");
    ck_assert_ptr_nonnull(strstr(err.message, "430"));
    request.budget_seconds = 0;
    expect_refused("budgets.seconds");
    request.budget_seconds = -5;
    expect_refused("budgets.seconds");
    request.budget_seconds = 86401;
    expect_refused("budgets.seconds");
}
END_TEST

START_TEST(a_long_phase_needs_a_long_budget)
{
    request.phase_timeout_seconds = 3600;
    expect_refused("budgets.seconds");
    request.budget_seconds = 86400;
    ck_assert_int_eq(hf_campaign_request_check(&request, &err), 0);
    request.phase_timeout_seconds = 3601;
    expect_refused("phase_timeout_seconds");
}
END_TEST

START_TEST(names_are_names)
{
    static const char *const wrong[] = {"",         "Guest",           "1guest", "guest isolation",
                                        "../guest", "guest/isolation", "g\x1b"};
    char *const fields[] = {request.campaign, request.profile, request.executor};
    static const char *const names[] = {"campaign", "profile", "executor"};
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < sizeof wrong / sizeof wrong[0]; j++) {
            set_up();
            strcpy(fields[i], wrong[j]);
            expect_refused(names[i]);
            ck_assert_ptr_null(strchr(err.message, 0x1b));
        }
    }
}
END_TEST

START_TEST(choices_are_closed)
{
    strcpy(request.backend, "xen");
    expect_refused("backend");
    strcpy(request.backend, "kvm");
    strcpy(request.host_type, "cloud");
    expect_refused("host_type");
}
END_TEST

START_TEST(only_a_command_strategist_has_a_program)
{
    request.strategist = HF_STRATEGIST_COMMAND;
    expect_refused("strategist");
    strcpy(request.strategist_command, "/bin/true");
    ck_assert_int_eq(hf_campaign_request_check(&request, &err), 0);
    request.strategist = HF_STRATEGIST_RANDOM;
    expect_refused("strategist");
    request.strategist = (enum hf_strategist_type)9;
    expect_refused("strategist");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, the_defaults_are_a_good_request);
    tcase_add_loop_test(tests, a_number_is_taken_at_its_bounds_and_refused_beyond, 0, sizeof bounds / sizeof bounds[0]);
    tcase_add_test(tests, a_budget_must_hold_initialize_and_finalize_and_says_how_much_that_is);
    tcase_add_test(tests, a_long_phase_needs_a_long_budget);
    tcase_add_test(tests, names_are_names);
    tcase_add_test(tests, choices_are_closed);
    tcase_add_test(tests, only_a_command_strategist_has_a_program);
}

int main(void)
{
    return run_tests("request", add);
}
