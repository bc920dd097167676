/* Defaults and bounds of a campaign request (controller.h): everything that can be checked without starting anything.
 */
#include "common/json_shape.h"
#include "server/controller.h"
#include "server/core/budget.h"

#include <inttypes.h>
#include <string.h>

void hf_campaign_request_defaults(struct hf_campaign_request *request)
{
    *request = (struct hf_campaign_request){
        .profile = "qemu",
        .backend = "tcg",
        .host_type = "unspecified",
        .budget_seconds = 900,
        .budget_actions = 8,
        .budget_ai_credits = 300,
        .memory_mib = 256,
        .phase_timeout_seconds = 60,
        .action_timeout_seconds = 600,
        .strategist = HF_STRATEGIST_GREEDY,
        .executor = "local",
        .minimize = true,
        .minimize_attempts = 3,
    };
}

static int check_identifier(const char *field, const char *value, struct hf_error *err)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    if (hf_text_is(HF_TEXT_IDENTIFIER, value))
        return 0;
    return hf_error_set(err, "request-invalid", 0, field,
                        "%s must be a name of the form [a-z][a-z0-9-]{0,63}; it is \"%s\"", field,
                        hf_error_quote(value, strlen(value), quoted));
}

static int check_choice(const char *field, const char *value, const char *const *choices, const char *listed,
                        struct hf_error *err)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    for (; *choices; choices++)
        if (strcmp(*choices, value) == 0)
            return 0;
    return hf_error_set(err, "request-invalid", 0, field, "%s must be one of %s; it is \"%s\"", field, listed,
                        hf_error_quote(value, strlen(value), quoted));
}

static int check_numbers(const struct hf_campaign_request *request, struct hf_error *err)
{
    const struct {
        const char *field;
        int64_t value, min, max;
    } bounds[] = {
        {"seed", request->seed, 0, INT64_MAX},
        {"budgets.seconds", request->budget_seconds, 1, 86400},
        {"budgets.actions", request->budget_actions, 1, HF_MAX_ACTIONS},
        {"budgets.ai_credits", request->budget_ai_credits, 0, 1000000},
        {"memory_mib", request->memory_mib, 128, 4096},
        {"phase_timeout_seconds", request->phase_timeout_seconds, 1, 3600},
        {"action_timeout_seconds", request->action_timeout_seconds, 1, 7200},
        {"minimize_attempts", request->minimize_attempts, 1, 100},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (bounds[i].value < bounds[i].min || bounds[i].value > bounds[i].max)
            return hf_error_set(err, "request-invalid", 0, bounds[i].field,
                                "%s must be within %" PRId64 "..%" PRId64 "; it is %" PRId64, bounds[i].field,
                                bounds[i].min, bounds[i].max, bounds[i].value);
    return 0;
}

static int check_budget(const struct hf_campaign_request *request, struct hf_error *err)
{
    struct hf_budget budget = {request->budget_seconds, request->phase_timeout_seconds,
                               request->action_timeout_seconds};
    int64_t needed = hf_budget_needed_seconds(&budget);
    if (request->budget_seconds >= needed)
        return 0;
    return hf_error_set(err, "request-invalid", 0, "budgets.seconds",
                        "budgets.seconds is %" PRId64 ", which is too small: initialize may take %" PRId64
                        " s and the finalization reserve is %" PRId64 " s, so at least %" PRId64
                        " s are needed (or a shorter phase timeout)",
                        request->budget_seconds, needed - hf_budget_reserve_seconds(&budget),
                        hf_budget_reserve_seconds(&budget), needed);
}

static int check_strategist(const struct hf_campaign_request *request, struct hf_error *err)
{
    if ((unsigned)request->strategist > HF_STRATEGIST_COMMAND)
        return hf_error_set(err, "request-invalid", 0, "strategist",
                            "strategist must be greedy, random or command:PATH");
    bool command = request->strategist == HF_STRATEGIST_COMMAND;
    if (command != (request->strategist_command[0] != '\0'))
        return hf_error_set(err, "request-invalid", 0, "strategist",
                            "the strategist command needs the path of a program, and only that strategist takes one");
    return 0;
}

int hf_campaign_request_check(const struct hf_campaign_request *request, struct hf_error *err)
{
    static const char *const backends[] = {"tcg", "kvm", "mshv", "whp", NULL};
    static const char *const host_types[] = {"baremetal", "virtual-machine", "unspecified", NULL};
    if (check_identifier("campaign", request->campaign, err) != 0 ||
        check_identifier("profile", request->profile, err) != 0 ||
        check_identifier("executor", request->executor, err) != 0 ||
        check_choice("backend", request->backend, backends, "tcg, kvm, mshv, whp", err) != 0 ||
        check_choice("host_type", request->host_type, host_types, "baremetal, virtual-machine, unspecified", err) !=
            0 ||
        check_numbers(request, err) != 0 || check_strategist(request, err) != 0)
        return -1;
    return check_budget(request, err);
}
