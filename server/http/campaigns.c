/* Handlers of the /v1 resources; see campaigns.h. They run on the loop and return at once. */
#include "server/http/campaigns.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/options/options.h"
#include "server/http/campaign_body.h"
#include "statemachines/print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { LIST_DEFAULT = 50, LIST_MAX = 200 };

static void add_text_or_null(cJSON *object, const char *key, const char *text)
{
    hf_json_add_string(object, key, text[0] ? text : NULL);
}

static void add_time_or_null(cJSON *object, const char *key, uint64_t wall_ms)
{
    char text[25];
    if (wall_ms)
        hf_clock_format_utc(wall_ms, text);
    hf_json_add_string(object, key, wall_ms ? text : NULL);
}

static cJSON *view_json(const struct hf_campaign_view *view)
{
    cJSON *object = hf_json_new_object();
    hf_json_add_string(object, "run_id", view->run_id);
    hf_json_add_string(object, "campaign", view->campaign);
    hf_json_add_string(object, "profile", view->profile);
    hf_json_add_string(object, "backend", view->backend);
    hf_json_add_string(object, "host_type", view->host_type);
    hf_json_add_string(object, "state", view->state);
    hf_json_add_string(object, "status", view->status);
    add_text_or_null(object, "category", view->category);
    add_text_or_null(object, "failed_case", view->failed_case);
    hf_json_add_int(object, "seed", view->seed);
    hf_json_add_int(object, "actions", view->actions);
    hf_json_add_int(object, "budget_actions", view->budget_actions);
    hf_json_add_int(object, "budget_seconds", view->budget_seconds);
    add_time_or_null(object, "created_at", view->created_wall_ms);
    add_time_or_null(object, "finished_at", view->finished_wall_ms);
    return object;
}

static void reply_view(struct hf_http_request *request, unsigned status, const char *run_id)
{
    char location[sizeof "/v1/campaigns/" + HF_RUN_ID_SIZE];
    struct hf_campaign_view view;
    struct hf_error err;
    if (!hf_controller_view(hf_http_context(request), run_id, &view)) {
        hf_error_set(&err, "campaign-unknown", 0, "", "no campaign has this run id; GET /v1/campaigns lists them");
        hf_http_reply_problem(request, &err);
        return;
    }
    snprintf(location, sizeof location, "/v1/campaigns/%s", run_id);
    cleanup_json cJSON *object = view_json(&view);
    hf_http_reply_json(request, status, object, status == 202 ? location : NULL);
}

/* ------------------------------------------------------------------ POST /v1/campaigns */

static void on_started(void *context, const char *run_id, const struct hf_error *err)
{
    if (err)
        hf_http_reply_problem(context, err);
    else
        reply_view(context, 202, run_id);
}

static int draw_seed(int64_t *seed, struct hf_error *err)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        return hf_error_set(err, "seed-unavailable", errno, "seed", "no randomness yet: %s; give a seed",
                            strerror(errno));
    *seed = (int64_t)(random >> 32); /* 32 bits: exact in every JSON reader */
    return 0;
}

static void start_campaign(struct hf_http_request *request)
{
    struct hf_campaign_request wanted;
    struct hf_error err = {0};
    size_t length;
    const char *body = hf_http_body(request, &length);
    if (hf_campaign_body_parse(body, length, &wanted, &err) < 0 ||
        (wanted.seed < 0 && draw_seed(&wanted.seed, &err) < 0) || hf_campaign_request_check(&wanted, &err) < 0 ||
        hf_controller_start(hf_http_context(request), &wanted, on_started, request, &err) < 0)
        hf_http_reply_problem(request, &err);
}

/* ------------------------------------------------------------------ reading */

static int list_limit(const struct hf_http_request *request, size_t *limit, struct hf_error *err)
{
    const char *text = hf_http_query(request, "limit");
    int64_t value = LIST_DEFAULT;
    if (text && !hf_parse_int64(text, 1, LIST_MAX, &value))
        return hf_error_set(err, "parameter-invalid", 0, "limit", "limit expects a whole number from 1 to %d",
                            LIST_MAX);
    *limit = (size_t)value;
    return 0;
}

static void list_campaigns(struct hf_http_request *request)
{
    struct hf_controller *controller = hf_http_context(request);
    struct hf_error err = {0};
    size_t limit = LIST_DEFAULT;
    struct hf_campaign_view known;
    const char *cursor = hf_http_query(request, "cursor");
    if (list_limit(request, &limit, &err) < 0 ||
        (cursor && !hf_controller_view(controller, cursor, &known) &&
         hf_error_set(&err, "parameter-invalid", 0, "cursor", "cursor expects next_cursor of an earlier page") < 0)) {
        hf_http_reply_problem(request, &err);
        return;
    }
    cleanup_free struct hf_campaign_view *views = calloc(limit, sizeof *views);
    size_t count = views ? hf_controller_list(controller, cursor, limit, views) : 0;
    cleanup_json cJSON *object = hf_json_new_object();
    cJSON *campaigns = hf_json_add(object, "campaigns", hf_json_new_array());
    for (size_t i = 0; i < count; i++)
        hf_json_append(campaigns, view_json(&views[i]));
    hf_json_add_string(object, "next_cursor", count == limit ? views[count - 1].run_id : NULL);
    hf_http_reply_json(request, 200, object, NULL);
}

static void show_campaign(struct hf_http_request *request)
{
    reply_view(request, 200, hf_http_path_value(request));
}

static void show_public_summary(struct hf_http_request *request)
{
    struct hf_controller *controller = hf_http_context(request);
    const char *run_id = hf_http_path_value(request);
    struct hf_campaign_view view;
    struct hf_error err;
    size_t length;
    if (!hf_controller_view(controller, run_id, &view)) {
        hf_error_set(&err, "campaign-unknown", 0, "", "no campaign has this run id; GET /v1/campaigns lists them");
        hf_http_reply_problem(request, &err);
        return;
    }
    char *document = hf_controller_document(controller, run_id, "public-summary.json", &length);
    if (document) {
        hf_http_reply_bytes(request, 200, "application/json", document, length);
        return;
    }
    hf_error_set(&err, "summary-pending", 0, "", "the campaign is %s; its public summary exists once it has ended",
                 view.state);
    hf_http_reply_problem(request, &err);
}

static void cancel_campaign(struct hf_http_request *request)
{
    struct hf_error err = {0};
    const char *run_id = hf_http_path_value(request);
    if (hf_controller_cancel(hf_http_context(request), run_id, &err) < 0)
        hf_http_reply_problem(request, &err);
    else
        reply_view(request, 202, run_id);
}

static cJSON *spans_json(uint64_t p50_us, uint64_t p99_us, uint64_t max_us)
{
    cJSON *object = hf_json_new_object();
    hf_json_add_int(object, "p50_us", (int64_t)p50_us);
    hf_json_add_int(object, "p99_us", (int64_t)p99_us);
    hf_json_add_int(object, "max_us", (int64_t)max_us);
    return object;
}

static void show_health(struct hf_http_request *request)
{
    struct hf_controller *controller = hf_http_context(request);
    struct hf_loop_load load = hf_controller_loop_load(controller);
    cleanup_json cJSON *object = hf_json_new_object();
    hf_json_add_string(object, "status", "ok");
    hf_json_add_string(object, "version", HF_VERSION);
    hf_json_add_int(object, "live_campaigns", (int64_t)hf_controller_live_count(controller));
    cJSON *loop =
        hf_json_add(object, "loop", spans_json(load.callback_p50_us, load.callback_p99_us, load.callback_max_us));
    hf_json_add_int(loop, "callbacks", (int64_t)load.callbacks);
    cJSON *iterations = hf_json_add(loop, "iterations", spans_json(load.p50_us, load.p99_us, load.max_us));
    hf_json_add_int(iterations, "count", (int64_t)load.iterations);
    hf_http_reply_json(request, 200, object, NULL);
}

struct text {
    char *bytes;
    size_t length;
    size_t capacity;
};

static void append_text(void *context, const char *bytes, size_t length)
{
    struct text *text = context;
    if (text->length + length > text->capacity) {
        size_t capacity = 2 * (text->length + length);
        char *grown = realloc(text->bytes, capacity);
        if (!grown)
            abort(); /* as the JSON builders do: half a document must never be sent */
        text->bytes = grown;
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void show_statemachines(struct hf_http_request *request)
{
    struct text text = {0};
    hf_sm_print_json(append_text, &text);
    hf_http_reply_bytes(request, 200, "application/json", text.bytes, text.length);
}

const struct hf_http_route hf_api_routes[] = {
    {"POST", "/v1/campaigns", start_campaign, true},
    {"GET", "/v1/campaigns", list_campaigns, false},
    {"GET", "/v1/campaigns/{id}", show_campaign, false},
    {"GET", "/v1/campaigns/{id}/public-summary", show_public_summary, false},
    {"POST", "/v1/campaigns/{id}/cancel", cancel_campaign, false},
    {"GET", "/v1/statemachines", show_statemachines, false},
    {"GET", "/healthz", show_health, false},
};
const size_t hf_api_route_count = sizeof hf_api_routes / sizeof hf_api_routes[0];
