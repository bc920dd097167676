/* Parsing of POST /v1/campaigns; see campaign_body.h. */
#include "server/http/campaign_body.h"

#include "common/cleanup.h"
#include "common/json.h"
#include "common/json_shape.h"

#include <stdio.h>
#include <string.h>

enum { BODY_MAX_BYTES = 65536, BODY_MAX_DEPTH = 4 };

/* command:PATH is for the command line and the administrator: a client never names a path. */
static const char *const strategists[] = {"greedy", "random", NULL};

static const struct hf_shape_field budget_fields[] = {
    {.name = "seconds", .type = HF_SHAPE_INT, .flags = HF_SHAPE_OPTIONAL, .min = 1, .max = 86400},
    {.name = "actions", .type = HF_SHAPE_INT, .flags = HF_SHAPE_OPTIONAL, .min = 1, .max = HF_MAX_ACTIONS},
    {.name = "ai_credits", .type = HF_SHAPE_INT, .flags = HF_SHAPE_OPTIONAL, .min = 0, .max = 1000000},
};
static const struct hf_shape budget_shape = {"budgets", budget_fields, sizeof budget_fields / sizeof budget_fields[0]};

static const struct hf_shape_field body_fields[] = {
    {.name = "campaign", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_IDENTIFIER},
    {.name = "profile",
     .type = HF_SHAPE_STRING,
     .flags = HF_SHAPE_OPTIONAL,
     .min = 1,
     .max = 64,
     .text = HF_TEXT_IDENTIFIER},
    {.name = "backend", .type = HF_SHAPE_STRING, .flags = HF_SHAPE_OPTIONAL, .one_of = hf_backend_names},
    {.name = "host_type", .type = HF_SHAPE_STRING, .flags = HF_SHAPE_OPTIONAL, .one_of = hf_host_type_names},
    {.name = "seed", .type = HF_SHAPE_INT, .flags = HF_SHAPE_OPTIONAL, .min = 0, .max = INT64_MAX},
    {.name = "budgets", .type = HF_SHAPE_OBJECT, .flags = HF_SHAPE_OPTIONAL, .object = &budget_shape},
    {.name = "memory_mib", .type = HF_SHAPE_INT, .flags = HF_SHAPE_OPTIONAL, .min = 128, .max = 4096},
    {.name = "phase_timeout_seconds", .type = HF_SHAPE_INT, .flags = HF_SHAPE_OPTIONAL, .min = 1, .max = 3600},
    {.name = "action_timeout_seconds", .type = HF_SHAPE_INT, .flags = HF_SHAPE_OPTIONAL, .min = 1, .max = 7200},
    {.name = "strategist", .type = HF_SHAPE_STRING, .flags = HF_SHAPE_OPTIONAL, .one_of = strategists},
    {.name = "executor",
     .type = HF_SHAPE_STRING,
     .flags = HF_SHAPE_OPTIONAL,
     .min = 1,
     .max = 64,
     .text = HF_TEXT_IDENTIFIER},
    {.name = "minimize", .type = HF_SHAPE_BOOL, .flags = HF_SHAPE_OPTIONAL},
    {.name = "minimize_attempts", .type = HF_SHAPE_INT, .flags = HF_SHAPE_OPTIONAL, .min = 1, .max = 100},
};
static const struct hf_shape body_shape = {"campaign request", body_fields, sizeof body_fields / sizeof body_fields[0]};

static void take_text(const cJSON *body, const char *key, char *out, size_t out_size)
{
    const char *text = hf_json_get_string(body, key);
    if (text)
        snprintf(out, out_size, "%s", text);
}

int hf_campaign_body_parse(const char *body, size_t length, struct hf_campaign_request *request, struct hf_error *err)
{
    const struct hf_json_limits limits = {.max_bytes = BODY_MAX_BYTES, .max_depth = BODY_MAX_DEPTH};
    cleanup_json cJSON *document = hf_json_parse(body, length, &limits, err);
    if (!document || hf_shape_check(&body_shape, NULL, document, err) < 0)
        return -1;
    hf_campaign_request_defaults(request);
    take_text(document, "campaign", request->campaign, sizeof request->campaign);
    take_text(document, "profile", request->profile, sizeof request->profile);
    take_text(document, "backend", request->backend, sizeof request->backend);
    take_text(document, "host_type", request->host_type, sizeof request->host_type);
    take_text(document, "executor", request->executor, sizeof request->executor);
    const char *strategist = hf_json_get_string(document, "strategist");
    if (strategist && strcmp(strategist, "random") == 0)
        request->strategist = HF_STRATEGIST_RANDOM;

    const cJSON *budgets = hf_json_get(document, "budgets");
    request->seed = hf_json_get_int_or(document, "seed", -1);
    request->budget_seconds = hf_json_get_int_or(budgets, "seconds", request->budget_seconds);
    request->budget_actions = hf_json_get_int_or(budgets, "actions", request->budget_actions);
    request->budget_ai_credits = hf_json_get_int_or(budgets, "ai_credits", request->budget_ai_credits);
    request->memory_mib = hf_json_get_int_or(document, "memory_mib", request->memory_mib);
    request->phase_timeout_seconds =
        hf_json_get_int_or(document, "phase_timeout_seconds", request->phase_timeout_seconds);
    request->action_timeout_seconds =
        hf_json_get_int_or(document, "action_timeout_seconds", request->action_timeout_seconds);
    request->minimize = hf_json_get_bool_or(document, "minimize", request->minimize);
    request->minimize_attempts = hf_json_get_int_or(document, "minimize_attempts", request->minimize_attempts);
    return 0;
}
