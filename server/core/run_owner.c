/*
 * What a session and a strategist need from their run: their reports become events of the campaign machine (README.md
 * of statemachines/), their lines and documents go into the run directory.
 */
#include "common/cleanup.h"
#include "server/core/run.h"

#include <stdarg.h>
#include <string.h>

/* ---- documents and lines ---- */

static void on_stored(void *context, const struct hf_error *err)
{
    struct hf_run *run = context;
    if (err && !run->closing)
        hf_run_storage_failed(run, err);
}

static void keep_session_document(void *context, const char *name, char *text, size_t length)
{
    struct hf_run *run = context;
    if (strstr(name, "quarantine") || strcmp(name, "target-finalize.json") == 0) {
        free(run->finalization);
        run->finalization = strdup(text);
    }
    if (!run->closing)
        hf_durable_queue_document(run->queue, name, text, length, on_stored, run);
}

static void session_stepped(void *context, const struct hf_sm_result *result)
{
    hf_run_journal_step(context, "campaign", &hf_executor_session_machine, result);
}

/* ---- quarantine register ---- */

static void on_quarantine_stored(void *context, const struct hf_error *err)
{
    struct hf_run *run = context;
    run->registrations--;
    if (run->closing)
        hf_run_part_closed(run);
    else
        hf_session_quarantine_stored(run->session, err);
}

static void register_quarantine(void *context)
{
    struct hf_run *run = context;
    const char *reason = "target-lost";
    if (hf_session_violation_evidence(run->session))
        reason = "policy-violation";
    else if (hf_session_machine(run->session)->state == HF_EXECUTOR_SESSION_STATE_REGISTERING_FAULT)
        reason = "protocol-failure";
    run->registrations++;
    hf_quarantine_register(run, reason, on_quarantine_stored, run);
}

static bool admit_target(void *context, const struct hf_initialize_response *response, struct hf_error *err)
{
    struct hf_run *run = context;
    char identity[HF_QUARANTINE_IDENTITY_SIZE];
    hf_quarantine_identity(run->record.target, response->artifact_root, run->record.run_id, identity);
    return !hf_quarantine_refuses(run->controller, identity, err);
}

/* ---- reports of the session ---- */

static enum hf_campaign_category category_of(enum hf_category category)
{
    static const uint8_t categories[] = {
        [HF_CATEGORY_PASSED] = HF_CAMPAIGN_CATEGORY_NONE,
        [HF_CATEGORY_TEST_FAILURE] = HF_CAMPAIGN_CATEGORY_TEST_FAILURE,
        [HF_CATEGORY_TIMEOUT] = HF_CAMPAIGN_CATEGORY_TIMEOUT,
        [HF_CATEGORY_EXECUTOR_ERROR] = HF_CAMPAIGN_CATEGORY_EXECUTOR_ERROR,
        [HF_CATEGORY_POLICY_VIOLATION] = HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION,
        [HF_CATEGORY_AVAILABILITY_FAILURE] = HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE,
    };
    return (enum hf_campaign_category)categories[category];
}

static void fail_with(struct hf_run *run, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void fail_with(struct hf_run *run, const char *code, const char *format, ...)
{
    struct hf_error err = {.code = code};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err.message, sizeof err.message, format, arguments);
    va_end(arguments);
    hf_run_fail(run, &err);
}

static const char *present_case(const struct hf_run *run)
{
    return run->facts.action_in_flight ? run->campaign.cases[run->action.case_index].id : NULL;
}

static void take_execute_answer(struct hf_run *run)
{
    char text[512];
    const struct hf_response *response = hf_session_response(run->session);
    const char *case_id = run->campaign.cases[run->action.case_index].id;
    const char *detail = NULL;
    enum hf_category category = HF_CATEGORY_EXECUTOR_ERROR;
    if (response->operation == HF_OP_EXECUTE) {
        category = response->execute.category;
        detail = response->execute.error;
    } else {
        detail = response->error.error;
    }
    run->answer_category = category_of(category);
    if (category == HF_CATEGORY_PASSED)
        return;
    run->failed_case = case_id;
    fail_with(run, "case-failed", "case %s ended as %s%s%s", case_id, hf_category_name(category), detail ? ": " : "",
              hf_session_target_words(run->session, detail, text, sizeof text));
}

/* Evidence outranks whatever went wrong before it, also as the reason that is told. */
static void take_violation(struct hf_run *run)
{
    const char *case_id = present_case(run);
    run->error = (struct hf_error){0};
    run->failed_case = case_id ? case_id : run->failed_case;
    fail_with(
        run, "policy-violation",
        "violation evidence (host canary or network canary) in the executor's answer%s%s; the target is quarantined",
        case_id ? " to case " : "", case_id ? case_id : "");
}

static void take_finalize_answer(struct hf_run *run)
{
    char text[512];
    const struct hf_finalize_response *answer = &hf_session_response(run->session)->finalize;
    const char *oracle = answer->watchdog_error ? answer->watchdog_error : answer->network_canary_error;
    const struct hf_boot_record *boot = answer->has_post_campaign ? &answer->post_campaign : NULL;
    run->finalization_category = HF_CAMPAIGN_CATEGORY_NONE;
    if (oracle) {
        run->finalization_category = HF_CAMPAIGN_CATEGORY_ORACLE_UNAVAILABLE;
        fail_with(run, "oracle-unavailable", "an oracle had failed by the end of the campaign: %s",
                  hf_session_target_words(run->session, oracle, text, sizeof text));
    } else if (boot && !hf_boot_record_clean(boot)) {
        enum hf_campaign_category category = category_of(boot->category);
        run->finalization_category = category ? category : HF_CAMPAIGN_CATEGORY_EXECUTOR_ERROR;
        fail_with(run, "finalization-failed", "the VM after the campaign did not boot and stop cleanly: %s%s",
                  hf_category_name(boot->category), boot->teardown_complete ? "" : ", teardown incomplete");
    } else if (answer->status != HF_FINALIZE_PASSED || !boot) {
        run->finalization_category = HF_CAMPAIGN_CATEGORY_EXECUTOR_ERROR;
        fail_with(run, "finalization-failed", "the executor's finalization failed");
    }
}

/* metadata.json again, now with what the target says about itself. */
static void complete_metadata(struct hf_run *run)
{
    size_t length;
    const struct hf_initialize_response *initialize = &hf_session_response(run->session)->initialize;
    cleanup_free char *metadata = hf_run_metadata_build(&run->record, initialize, &length);
    hf_durable_queue_document(run->queue, "metadata.json", metadata, length, on_stored, run);
}

static void session_report(void *context, enum hf_executor_session_effect report)
{
    struct hf_run *run = context;
    const struct hf_error *error = hf_session_error(run->session);
    if (run->closing)
        return;
    switch (report) {
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_READY:
        complete_metadata(run);
        hf_run_post(run, HF_CAMPAIGN_EVENT_SESSION_READY);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_REFUSED:
        hf_run_fail(run, error);
        hf_run_post(run, HF_CAMPAIGN_EVENT_SESSION_REFUSED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_EXECUTE_ANSWERED:
        take_execute_answer(run);
        hf_run_post(run, HF_CAMPAIGN_EVENT_EXECUTE_ANSWERED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_VIOLATION:
        take_violation(run);
        hf_run_post(run, HF_CAMPAIGN_EVENT_VIOLATION_ANSWERED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_FINALIZE_ANSWERED:
        take_finalize_answer(run);
        hf_run_post(run, HF_CAMPAIGN_EVENT_FINALIZE_ANSWERED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_STORAGE_FAILED:
        hf_run_storage_failed(run, error);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_CLOSED:
        hf_run_post(run, HF_CAMPAIGN_EVENT_SESSION_CLOSED);
        break;
    default: /* quarantined or lost */
        hf_run_fail(run, error);
        run->failed_case = run->failed_case ? run->failed_case : present_case(run);
        hf_run_post(run, report == HF_EXECUTOR_SESSION_EFFECT_REPORT_QUARANTINED ? HF_CAMPAIGN_EVENT_SESSION_QUARANTINED
                                                                                 : HF_CAMPAIGN_EVENT_SESSION_LOST);
        break;
    }
}

const struct hf_session_owner hf_run_session_owner = {
    .report = session_report,
    .stepped = session_stepped,
    .register_quarantine = register_quarantine,
    .admit_target = admit_target,
    .keep_document = keep_session_document,
};

/* ---- strategist ---- */

static void take_choice(struct hf_run *run)
{
    run->action = (struct hf_action){
        .sequence = run->view.actions + 1,
        .case_index = hf_strategist_chosen(run->strategist),
        .timeout_seconds = (int)hf_budget_execute_seconds(&run->budget, hf_run_elapsed_ms(run)),
    };
}

static void strategist_report(void *context, enum hf_strategist_call_effect report)
{
    struct hf_run *run = context;
    if (run->closing)
        return;
    if (report == HF_STRATEGIST_CALL_EFFECT_REPORT_REFUSED)
        hf_run_fail(run, hf_strategist_error(run->strategist));
    bool preflight = run->preflight_running;
    run->preflight_running = false;
    if (report == HF_STRATEGIST_CALL_EFFECT_REPORT_CHOICE) {
        take_choice(run);
        hf_run_post(run, HF_CAMPAIGN_EVENT_CASE_CHOSEN);
    } else if (report == HF_STRATEGIST_CALL_EFFECT_REPORT_READY) {
        hf_run_post(run, HF_CAMPAIGN_EVENT_PREFLIGHT_PASSED);
    } else if (preflight) {
        hf_run_post(run, HF_CAMPAIGN_EVENT_PREFLIGHT_FAILED);
    } else {
        hf_run_post(run, report == HF_STRATEGIST_CALL_EFFECT_REPORT_REFUSED ? HF_CAMPAIGN_EVENT_STRATEGIST_REFUSED
                                                                            : HF_CAMPAIGN_EVENT_STRATEGIST_EXHAUSTED);
    }
}

static void strategist_stepped(void *context, const struct hf_sm_result *result)
{
    hf_run_journal_step(context, "campaign", &hf_strategist_call_machine, result);
}

static void strategist_choice(void *context, struct hf_choice *choice)
{
    const struct hf_run *run = context;
    const struct hf_campaign_request *request = &run->record.request;
    *choice = (struct hf_choice){
        .campaign = &run->campaign,
        .completed = run->completed,
        .observations = run->observations,
        .observation_count = run->observation_count,
        .seed = request->seed,
        .phase_timeout_seconds = request->phase_timeout_seconds,
        .remaining_seconds = hf_budget_remaining_seconds(&run->budget, hf_run_elapsed_ms(run)),
        .remaining_actions = request->budget_actions - run->view.actions,
        .remaining_ai_credits = request->budget_ai_credits - hf_strategist_credits_charged(run->strategist),
    };
}

static uint64_t strategist_call_ms(void *context)
{
    const struct hf_run *run = context;
    return hf_budget_strategist_ms(&run->budget, hf_run_elapsed_ms(run), run->controller->times.strategist_limit_ms);
}

static void keep_strategist_document(void *context, const char *name, const char *bytes, size_t length)
{
    struct hf_run *run = context;
    if (!run->closing)
        hf_durable_queue_document(run->copilot_queue, name, bytes, length, on_stored, run);
}

static void keep_rejection(void *context, const char *line, size_t length)
{
    struct hf_run *run = context;
    if (!run->closing && run->copilot_queue)
        hf_durable_queue_append(run->copilot_queue, "rejections.jsonl", line, length, on_stored, run);
}

static void on_strategist_freed(void *context)
{
    hf_run_part_closed(context);
}

static void strategist_ended(void *context)
{
    struct hf_run *run = context;
    if (run->closing && run->strategist)
        hf_strategist_free(STEAL_PTR(run->strategist), on_strategist_freed, run);
}

const struct hf_strategist_owner hf_run_strategist_owner = {
    .report = strategist_report,
    .stepped = strategist_stepped,
    .choice = strategist_choice,
    .call_ms = strategist_call_ms,
    .keep_document = keep_strategist_document,
    .keep_rejection = keep_rejection,
    .ended = strategist_ended,
};
