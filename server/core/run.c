/* Implementation of run.h: life cycle, event queue, journal before effects. */
#include "server/core/run.h"
#include "server/core/loop_meter.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

uint64_t hf_run_elapsed_ms(const struct hf_run *run)
{
    return hf_controller_now_ms(run->controller) - run->started_mono_ms;
}

void hf_run_fail(struct hf_run *run, const struct hf_error *err)
{
    if (!run->error.code && err && err->code)
        run->error = *err;
}

void hf_run_progress(struct hf_run *run, enum hf_progress_kind kind, const char *case_id, int sequence,
                     const char *category, int64_t duration_ms)
{
    struct hf_controller *controller = run->controller;
    if (!controller->listener)
        return;
    int64_t left_ms = run->record.request.budget_seconds * 1000 - (int64_t)hf_run_elapsed_ms(run);
    struct hf_progress progress = {
        .kind = kind,
        .view = &run->view,
        .case_id = case_id,
        .sequence = sequence,
        .category = category,
        .duration_ms = duration_ms,
        .elapsed_ms = hf_run_elapsed_ms(run),
        .budget_left_ms = left_ms > 0 ? left_ms : 0,
        .budget_left_actions = run->view.budget_actions - run->view.actions,
        .error = kind == HF_PROGRESS_FINISHED && run->error.code ? &run->error : NULL,
    };
    controller->listener(controller->listener_context, &progress);
}

void hf_run_storage_failed(struct hf_run *run, const struct hf_error *err)
{
    hf_run_fail(run, err);
    hf_run_post(run, HF_CAMPAIGN_EVENT_STORAGE_FAILED);
}

/* The queue fails as a whole, so the first failure is told and the echoes are not. */
static void on_line_stored(void *context, const struct hf_error *err)
{
    struct hf_run *run = context;
    if (!err || run->journal_failed)
        return;
    run->journal_failed = true;
    hf_run_storage_failed(run, err);
}

static cJSON *journal_line(const struct hf_run *run, const char *machine, const struct hf_sm_definition *definition,
                           const struct hf_sm_result *result)
{
    char at[25];
    hf_clock_format_utc(hf_clock_wall_ms(), at);
    cJSON *line = hf_json_new_object();
    hf_json_add_int(line, "schema_version", 1);
    hf_json_add_string(line, "at", at);
    hf_json_add_int(line, "elapsed_ms", (int64_t)hf_run_elapsed_ms(run));
    hf_json_add_string(line, "machine", definition->name);
    hf_json_add_string(line, "instance", machine);
    hf_json_add_string(line, "from", definition->state_names[result->from]);
    hf_json_add_string(line, "event", definition->event_names[result->event]);
    if (!result->accepted) {
        hf_json_add_bool(line, "rejected", true);
        return line;
    }
    hf_json_add_string(line, "guard", definition->guard_names[result->guard]);
    hf_json_add_string(line, "to", definition->state_names[result->to]);
    return line;
}

void hf_run_journal_step(struct hf_run *run, const char *machine, const struct hf_sm_definition *definition,
                         const struct hf_sm_result *result)
{
    if (run->journal_failed || run->closing)
        return;
    cleanup_json cJSON *line = journal_line(run, machine, definition, result);
    size_t length;
    cleanup_free char *text = hf_json_canonical(line, &length);
    hf_durable_queue_append(run->queue, "transitions.jsonl", text, length, on_line_stored, run);
}

static void pump(struct hf_run *run);

/* Takes the first pending event with the facts as they are. */
static void take(struct hf_run *run)
{
    uint8_t event = run->pending[0];
    memmove(run->pending, run->pending + 1, --run->pending_count);
    struct hf_sm_result result = hf_sm_step(&run->machine, event, &run->facts);
    if (!result.accepted) {
        hf_run_journal_step(run, "campaign", &hf_campaign_machine, &result);
        return;
    }
    snprintf(run->view.state, sizeof run->view.state, "%s", hf_sm_state_name(&run->machine));
    run->stepping = true;
    for (uint8_t i = 0; i < result.effect_count; i++)
        hf_run_perform(run, (enum hf_campaign_effect)result.effects[i]);
    run->stepping = false;
    if (result.from != result.to && !hf_sm_is_terminal(&run->machine))
        hf_run_progress(run, HF_PROGRESS_STATE, NULL, 0, NULL, 0);
}

static void on_journaled(void *context, const struct hf_error *err)
{
    HF_LOOP_CALLBACK(((struct hf_run *)context)->controller->loop);
    struct hf_run *run = context;
    run->journaling = false;
    if (err) {
        run->journal_failed = true;
        hf_run_fail(run, err);
        hf_run_post_front(run, HF_CAMPAIGN_EVENT_STORAGE_FAILED);
    } else {
        take(run);
    }
    pump(run);
}

/* Appends the line of a transition that will happen once it is on the disk. The category in it is the one after the
 * step, so it is found by taking the step on a copy. */
static void journal_first(struct hf_run *run)
{
    struct hf_sm_instance machine = run->machine;
    struct hf_campaign_facts facts = run->facts;
    struct hf_sm_result result = hf_sm_step(&machine, run->pending[0], &facts);
    cleanup_json cJSON *line = journal_line(run, "campaign", &hf_campaign_machine, &result);
    hf_json_add_string(line, "category", hf_campaign_category_name(facts.category));
    size_t length;
    cleanup_free char *text = hf_json_canonical(line, &length);
    run->journaling = true;
    hf_durable_queue_append(run->queue, "transitions.jsonl", text, length, on_journaled, run);
}

static void pump(struct hf_run *run)
{
    while (!run->stepping && !run->journaling && !run->closing && run->pending_count > 0) {
        hf_run_refresh_facts(run);
        if (!run->journal_failed && hf_sm_find(&run->machine, run->pending[0], &run->facts))
            journal_first(run);
        else
            take(run);
    }
}

static void insert_event(struct hf_run *run, unsigned at, enum hf_campaign_event event)
{
    if (run->pending_count == HF_RUN_PENDING_EVENTS)
        abort(); /* the sources of events are few and each waits for its answer; a full queue is a defect of run*.c */
    memmove(run->pending + at + 1, run->pending + at, run->pending_count - at);
    run->pending[at] = (uint8_t)event;
    run->pending_count++;
}

void hf_run_post(struct hf_run *run, enum hf_campaign_event event)
{
    if (run->closing)
        return;
    insert_event(run, run->pending_count, event);
    pump(run);
}

void hf_run_post_front(struct hf_run *run, enum hf_campaign_event event)
{
    insert_event(run, 0, event);
}

void hf_run_cancel(struct hf_run *run)
{
    if (run->queue)
        hf_run_post(run, HF_CAMPAIGN_EVENT_CANCEL);
    else
        run->cancel_wanted = true;
}

/* run-<UTC>-<seed>-<8 random hexadecimal digits>, all within [a-z0-9-]. */
static void name_run(struct hf_run *run)
{
    uint32_t random;
    struct tm utc;
    time_t seconds = (time_t)(run->view.created_wall_ms / 1000);
    gmtime_r(&seconds, &utc);
    while (getrandom(&random, sizeof random, 0) != sizeof random)
        ;
    snprintf(run->view.run_id, sizeof run->view.run_id, "run-%04d%02d%02dt%02d%02d%02dz-%lld-%08x", utc.tm_year + 1900,
             utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, (long long)run->record.request.seed,
             random);
    memcpy(run->record.run_id, run->view.run_id, sizeof run->record.run_id);
}

static void fill_view(struct hf_run *run)
{
    const struct hf_campaign_request *request = &run->record.request;
    struct hf_campaign_view *view = &run->view;
    memcpy(view->campaign, request->campaign, sizeof view->campaign);
    memcpy(view->profile, request->profile, sizeof view->profile);
    memcpy(view->backend, request->backend, sizeof view->backend);
    memcpy(view->host_type, request->host_type, sizeof view->host_type);
    snprintf(view->status, sizeof view->status, "running");
    view->seed = request->seed;
    view->budget_actions = (int)request->budget_actions;
    view->budget_seconds = request->budget_seconds;
}

static void init_machine(struct hf_run *run)
{
    const struct hf_controller_times *times = &run->controller->times;
    const struct hf_campaign_request *request = &run->record.request;
    uint64_t boot_ms = (uint64_t)hf_budget_boot_seconds(&run->budget) * 1000;
    hf_sm_init(&run->machine, &hf_campaign_machine);
    hf_campaign_facts_init(&run->facts);
    run->facts.local_executor = run->executor.local;
    run->facts.minimize_wanted = request->minimize;
    run->facts.actions_budget = (uint32_t)request->budget_actions;
    run->facts.credits_budget = (uint32_t)request->budget_ai_credits;
    run->facts.finalization_reserve_ms =
        (uint64_t)hf_budget_stop_seconds(&run->budget) * 1000 - HF_CAMPAIGN_MIN_ACTION_MS;
    run->facts.minimization_reserve_ms = (uint64_t)hf_budget_needed_seconds(&run->budget) * 1000;
    run->times = (struct hf_campaign_times){
        .queue_ms = times->queue_ms,
        .preflight_ms = times->preflight_ms,
        .initialize_ms = boot_ms + times->initialize_overhead_ms,
        .strategist_ms = HF_STRATEGIST_CALL_ATTEMPTS * times->strategist_limit_ms,
        .finalize_ms = boot_ms + times->grace_ms,
        .storage_ms = times->storage_ms,
        .storage_retry_ms = times->storage_retry_ms,
    };
    snprintf(run->view.state, sizeof run->view.state, "%s", hf_sm_state_name(&run->machine));
}

void hf_run_part_closed(struct hf_run *run)
{
    if (--run->parts > 0)
        return;
    struct hf_controller *controller = run->controller;
    for (size_t i = 0; i < run->observation_count; i++)
        hf_observation_clear(&run->observations[i]);
    hf_campaign_clear(&run->campaign);
    hf_profile_clear(&run->profile);
    hf_executor_command_clear(&run->executor);
    hf_run_documents_free(run->documents);
    free(run->strategist_program);
    free(run->finalization);
    hf_cleanup_close(&run->copilot_dirfd);
    hf_cleanup_close(&run->dirfd); /* also lets go of the lock */
    hf_controller_remove(controller, run);
    free(run);
}

static void on_part_freed(void *context)
{
    hf_run_part_closed(context);
}

static void on_timer_closed(uv_handle_t *handle)
{
    hf_run_part_closed(handle->data);
}

void hf_run_close(struct hf_run *run)
{
    run->closing = true;
    run->parts = 2 + run->registrations + run->work_busy; /* the timer, and one that this function holds */
    uv_close((uv_handle_t *)&run->timer, on_timer_closed);
    if (run->session) {
        run->parts++;
        hf_session_free(STEAL_PTR(run->session), on_part_freed, run);
    }
    if (run->strategist) {
        run->parts++;
        if (hf_strategist_has_ended(run->strategist))
            hf_run_strategist_owner.ended(run);
        else
            hf_strategist_cancel(run->strategist);
    }
    struct hf_durable_queue *queues[] = {run->queue, run->copilot_queue};
    for (size_t i = 0; i < 2; i++) {
        if (!queues[i])
            continue;
        run->parts++;
        hf_durable_queue_free(queues[i], on_part_freed, run);
    }
    hf_run_part_closed(run);
}

static void tell_accepted(struct hf_run *run, const struct hf_error *err)
{
    hf_started accepted = run->accepted;
    run->accepted = NULL;
    if (accepted)
        accepted(run->accepted_context, run->view.run_id, err);
}

static void refuse_start(struct hf_run *run, const struct hf_error *err)
{
    struct hf_error kept = *err;
    tell_accepted(run, &kept);
    hf_run_close(run);
}

static void on_indexed(void *context, const struct hf_error *err)
{
    struct hf_run *run = context;
    if (err)
        hf_run_storage_failed(run, err); /* the run directory is durable: it counts as started and ends as failed */
    tell_accepted(run, NULL);
    hf_run_post(run, HF_CAMPAIGN_EVENT_START);
}

static void prepare(uv_work_t *work)
{
    struct hf_run *run = work->data;
    hf_run_prepare(run, &run->work_error);
}

static void on_prepared(uv_work_t *work, int status)
{
    HF_LOOP_CALLBACK(work->loop);
    struct hf_run *run = work->data;
    (void)status;
    run->work_busy = false;
    if (run->work_error.code) {
        refuse_start(run, &run->work_error);
        return;
    }
    run->queue = hf_durable_queue_new(run->controller->loop, run->dirfd);
    if (run->copilot_dirfd >= 0)
        run->copilot_queue = hf_durable_queue_new(run->controller->loop, run->copilot_dirfd);
    init_machine(run);
    hf_index_put_run(run->controller->index, &run->view, on_indexed, run);
    if (run->cancel_wanted)
        hf_run_cancel(run);
}

struct hf_run *hf_run_new(struct hf_controller *controller, const struct hf_campaign_request *request,
                          hf_started accepted, void *context)
{
    struct hf_run *run = calloc(1, sizeof *run);
    if (!run)
        abort();
    run->controller = controller;
    run->record.request = *request;
    run->budget =
        (struct hf_budget){request->budget_seconds, request->phase_timeout_seconds, request->action_timeout_seconds};
    run->accepted = accepted;
    run->accepted_context = context;
    run->dirfd = run->copilot_dirfd = -1;
    run->started_mono_ms = hf_controller_now_ms(controller);
    run->view.created_wall_ms = run->record.created_wall_ms = hf_clock_wall_ms();
    fill_view(run);
    name_run(run);
    hf_sha256_init(&run->actions_hash);
    uv_timer_init(controller->loop, &run->timer);
    run->timer.data = run->work.data = run;
    run->work_busy = true;
    uv_queue_work(controller->loop, &run->work, prepare, on_prepared);
    return run;
}
