/* What each effect of the campaign machine is; see run.h. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "server/core/environment.h"
#include "server/core/loop_meter.h"
#include "server/core/prompt.h"
#include "server/core/run.h"

#include <stdarg.h>
#include <string.h>

void hf_run_refresh_facts(struct hf_run *run)
{
    uint64_t budget_ms = (uint64_t)run->record.request.budget_seconds * 1000, elapsed_ms = hf_run_elapsed_ms(run);
    struct hf_campaign_facts *facts = &run->facts;
    facts->remaining_ms = budget_ms > elapsed_ms ? budget_ms - elapsed_ms : 0;
    facts->actions_done = (uint32_t)run->view.actions;
    facts->candidates_left = (uint32_t)(run->campaign.case_count - run->completed_count);
    facts->credits_charged = run->strategist ? hf_strategist_credits_charged(run->strategist) : 0;
    facts->minimize_attempts_left = 0; /* this version records every anomaly as not minimized */
    facts->violation_evidence =
        facts->violation_evidence || (run->session && hf_session_violation_evidence(run->session));
    facts->failed_case_known = run->failed_case != NULL;
    facts->answer_category = run->answer_category;
    facts->finalization_category = run->finalization_category;
}

static void on_timer(uv_timer_t *timer)
{
    HF_LOOP_CALLBACK(timer->loop);
    struct hf_run *run = timer->data;
    hf_run_post(run, HF_CAMPAIGN_EVENT_TIMED_OUT);
}

/* A timer that is armed again must not deliver what its last expiry had queued. */
static void arm_timer(struct hf_run *run)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < run->pending_count; i++)
        if (run->pending[i] != HF_CAMPAIGN_EVENT_TIMED_OUT)
            run->pending[kept++] = run->pending[i];
    run->pending_count = kept;
    uint64_t timeout_ms = hf_campaign_state_timeout_ms(run->machine.state, &run->times);
    uv_timer_start(&run->timer, on_timer, timeout_ms, 0);
}

static void run_preflight(struct hf_run *run)
{
    if (run->identity_error.code) {
        hf_run_fail(run, &run->identity_error);
        hf_run_post(run, HF_CAMPAIGN_EVENT_PREFLIGHT_FAILED);
        return;
    }
    const struct hf_controller_times *times = &run->controller->times;
    struct hf_strategist_options options = {
        .loop = run->controller->loop,
        .scratch = &run->controller->scratch,
        .strategist = run->record.request.strategist,
        .command = run->strategist_program,
        .credits_budget = (uint32_t)run->record.request.budget_ai_credits,
        .times = {.version_ms = times->preflight_ms,
                  .proof_ms = times->preflight_ms,
                  .smoke_ms = times->preflight_ms,
                  .idle_ms = (uint64_t)run->record.request.budget_seconds * 1000 + HF_CAMPAIGN_BACKSTOP_MS,
                  .parse_ms = times->storage_ms,
                  .stop_ms = times->strategist_stop_ms},
        .owner = &hf_run_strategist_owner,
        .context = run,
    };
    run->preflight_running = true;
    run->strategist = hf_strategist_new(&options);
    hf_strategist_start(run->strategist);
}

static void stop_strategist(struct hf_run *run)
{
    run->preflight_running = false;
    if (run->strategist)
        hf_strategist_cancel(run->strategist);
}

static struct hf_request initialize_request(const struct hf_run *run)
{
    const struct hf_campaign_request *wanted = &run->record.request;
    struct hf_request request = {
        .operation = HF_OP_INITIALIZE,
        .require_clean = !run->record.local,
        .seed = wanted->seed,
        .memory_mib = (int)wanted->memory_mib,
        .phase_timeout_seconds = (int)wanted->phase_timeout_seconds,
        .baseline_timeout_seconds = (int)hf_budget_boot_seconds(&run->budget),
    };
    memcpy(request.run_id, run->record.run_id, sizeof request.run_id);
    memcpy(request.expected_commit, run->record.identity.commit, sizeof request.expected_commit);
    memcpy(request.expected_vmm_commit, run->record.identity.vmm_commit, sizeof request.expected_vmm_commit);
    memcpy(request.expected_catalog_sha256, run->record.catalog_sha256, sizeof request.expected_catalog_sha256);
    memcpy(request.backend, wanted->backend, sizeof request.backend);
    memcpy(request.campaign, wanted->campaign, sizeof request.campaign);
    memcpy(request.host_type, wanted->host_type, sizeof request.host_type);
    return request;
}

static struct hf_executor_session_times session_times(const struct hf_run *run)
{
    const struct hf_controller_times *times = &run->controller->times;
    return (struct hf_executor_session_times){
        .spawn_ms = times->spawn_ms,
        .initialize_ms = run->times.initialize_ms,
        .idle_ms = run->times.strategist_ms + times->storage_ms + HF_CAMPAIGN_BACKSTOP_MS,
        .quarantine_ms = times->quarantine_timeout_ms + times->grace_ms,
        .shutdown_ms = times->shutdown_ms,
        .exit_ms = times->exit_ms,
        .register_ms = times->storage_ms,
        .term_ms = times->term_ms,
        .kill_ms = times->kill_ms,
    };
}

static void start_session(struct hf_run *run)
{
    const struct hf_controller_times *times = &run->controller->times;
    hf_run_refresh_facts(run);
    struct hf_session_options options = {
        .loop = run->controller->loop,
        .scratch = &run->controller->scratch,
        .argv = STEAL_PTR(run->executor.argv),
        .envp = hf_environment_new(&run->profile),
        .dialect = &run->profile.dialect,
        .initialize = initialize_request(run),
        .times = session_times(run),
        .grace_ms = times->grace_ms,
        .quarantine_timeout_seconds = (int)(times->quarantine_timeout_ms / 1000),
        .last_moment_mono_ms = hf_clock_mono_ms() + run->facts.remaining_ms + times->grace_ms,
        .external = !run->record.local,
        .run_dirfd = run->dirfd,
        .label = "campaign",
        .owner = &hf_run_session_owner,
        .context = run,
    };
    run->session = hf_session_new(&options);
}

static void on_action_stored(void *context, const struct hf_error *err)
{
    HF_LOOP_CALLBACK(((struct hf_run *)context)->controller->loop);
    struct hf_run *run = context;
    const char *case_id = run->campaign.cases[run->action.case_index].id;
    if (err) {
        hf_run_fail(run, err);
        hf_run_post(run, HF_CAMPAIGN_EVENT_ACTION_NOT_DURABLE);
        return;
    }
    run->view.actions = run->action.sequence;
    run->times.action_ms = (uint64_t)run->action.timeout_seconds * 1000 + run->controller->times.grace_ms;
    hf_run_progress(run, HF_PROGRESS_ACTION, case_id, run->action.sequence, NULL, 0);
    hf_run_post(run, HF_CAMPAIGN_EVENT_ACTION_DURABLE);
}

static void append_action(struct hf_run *run)
{
    size_t length;
    cleanup_free char *line =
        hf_run_action_line(&run->record, run->action.sequence, run->campaign.cases[run->action.case_index].id,
                           run->action.timeout_seconds, hf_clock_wall_ms(), &length);
    hf_sha256_update(&run->actions_hash, line, length);
    hf_sha256_update(&run->actions_hash, "\n", 1);
    run->actions_size_bytes += length + 1;
    hf_durable_queue_append(run->queue, "actions.jsonl", line, length, on_action_stored, run);
}

static void send_execute(struct hf_run *run)
{
    run->answer_category = HF_CAMPAIGN_CATEGORY_NONE;
    hf_session_execute(run->session, run->action.sequence, run->campaign.cases[run->action.case_index].id,
                       run->action.timeout_seconds);
}

static void on_observation_stored(void *context, const struct hf_error *err)
{
    HF_LOOP_CALLBACK(((struct hf_run *)context)->controller->loop);
    struct hf_run *run = context;
    if (err) {
        hf_run_fail(run, err);
        hf_run_post(run, HF_CAMPAIGN_EVENT_OBSERVATION_NOT_DURABLE);
        return;
    }
    const struct hf_observation *last = &run->observations[run->observation_count - 1];
    hf_run_progress(run, HF_PROGRESS_OBSERVATION, run->campaign.cases[last->case_index].id, last->sequence,
                    hf_category_name(last->category), last->duration_ms);
    hf_run_post(run, HF_CAMPAIGN_EVENT_OBSERVATION_DURABLE);
}

/* The answer to the present action as an observation. An error answer, and evidence in bytes that were no valid answer,
 * become one too: what is not known is told in the way that cannot be taken for good news. */
static struct hf_execute_response observed_answer(struct hf_run *run)
{
    struct hf_response *response = hf_session_response(run->session);
    if (response && response->operation == HF_OP_EXECUTE && response->execute.sequence == run->action.sequence) {
        struct hf_execute_response answer = response->execute;
        response->execute.stdout_b64 = response->execute.stderr_b64 = response->execute.error = NULL;
        return answer;
    }
    bool violation = hf_session_violation_evidence(run->session);
    struct hf_execute_response answer = {
        .sequence = run->action.sequence,
        .category = violation ? HF_CATEGORY_POLICY_VIOLATION : HF_CATEGORY_EXECUTOR_ERROR,
        .oracles = {.host_canary_intact = !violation},
    };
    const char *reason = violation ? "violation evidence in an answer that was not valid"
                         : response && response->operation == HF_OP_ERROR ? response->error.error
                                                                          : "the executor gave no valid answer";
    answer.error = strdup(reason);
    return answer;
}

static void append_observation(struct hf_run *run)
{
    const struct hf_case *of_case = &run->campaign.cases[run->action.case_index];
    struct hf_execute_response answer = observed_answer(run);
    struct hf_observation *observation = &run->observations[run->observation_count];
    hf_observation_take(observation, &answer, run->action.case_index);
    size_t length;
    cleanup_free char *line =
        hf_observation_line(observation, of_case, &answer, hf_session_response_wall_ms(run->session), &length);
    free(answer.error);
    run->observation_count++;
    run->completed[run->action.case_index] = true;
    run->completed_order[run->completed_count++] = run->action.case_index;
    if (run->observation_count > HF_PROMPT_OBSERVATIONS)
        hf_observation_clear(&run->observations[run->observation_count - 1 - HF_PROMPT_OBSERVATIONS]);
    hf_durable_queue_append(run->queue, "observations.jsonl", line, length, on_observation_stored, run);
}

static void on_document_stored(void *context, const struct hf_error *err)
{
    struct hf_run *run = context;
    if (err && !run->closing)
        hf_run_storage_failed(run, err);
}

static void persist_finalization(struct hf_run *run)
{
    size_t length;
    struct hf_response *response = hf_session_response(run->session);
    if (!response || response->operation != HF_OP_FINALIZE)
        return; /* the violation came in bytes that were no valid answer */
    const char *text = hf_session_answer_text(run->session, &length);
    free(run->finalization);
    run->finalization = strdup(text);
    hf_durable_queue_document(run->queue, "target-finalize.json", text, length, on_document_stored, run);
}

static void record_minimization_skipped(struct hf_run *run)
{
    bool violation = run->facts.violation_evidence || run->facts.category == HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION;
    cleanup_json cJSON *document = hf_json_new_object();
    hf_json_add_int(document, "schema_version", 1);
    hf_json_add_string(document, "run_id", run->record.run_id);
    hf_json_add_string(document, "category", hf_campaign_category_name(run->facts.category));
    hf_json_add_string(document, "failed_case", run->failed_case);
    hf_json_add_string(
        document, "reason",
        violation && run->record.local
            ? "a policy violation is never minimized in local mode: another local executor would run on the "
              "quarantined host"
            : "this version of the controller does not minimize; actions.jsonl holds the sequence to reproduce");
    size_t length;
    cleanup_free char *text = hf_json_canonical(document, &length);
    hf_durable_queue_document(run->queue, "minimization-skipped.json", text, length, on_document_stored, run);
}

/* ---- summaries ---- */

static struct hf_run_documents *build_documents(struct hf_run *run)
{
    struct hf_run_documents *documents = calloc(1, sizeof *documents);
    if (!documents)
        abort();
    const char *completed[HF_CATALOG_MAX_CASES];
    for (size_t i = 0; i < run->completed_count; i++)
        completed[i] = run->campaign.cases[run->completed_order[i]].id;
    struct hf_run_actions_file file = {.actions = run->view.actions, .size_bytes = run->actions_size_bytes};
    struct hf_sha256 hash = run->actions_hash;
    uint8_t digest[32];
    hf_sha256_final(&hash, digest);
    hf_hex(digest, sizeof digest, file.sha256);
    bool passed = hf_campaign_verdict_passed(&run->facts);
    struct hf_run_outcome outcome = {
        .run_id = run->record.run_id,
        .campaign = run->record.request.campaign,
        .backend = run->record.request.backend,
        .host_type = run->record.request.host_type,
        .passed = passed,
        .category = hf_campaign_category_name(run->facts.category),
        .actions = run->view.actions,
        .failed_case = run->failed_case,
        .completed_cases = completed,
        .completed_count = run->completed_count,
        .credits_charged = run->strategist ? hf_strategist_credits_charged(run->strategist) : 0,
        .finalization = run->finalization,
        .error = passed ? NULL : run->error.message,
    };
    documents->dirfd = run->dirfd;
    documents->manifest = hf_run_manifest_build(&run->record, &file, &documents->manifest_length);
    documents->summary = hf_run_summary_build(&outcome, &documents->summary_length);
    documents->public_summary = hf_run_public_summary_build(&outcome, &documents->public_summary_length);
    return documents;
}

static void write_documents(uv_work_t *work)
{
    struct hf_run *run = work->data;
    run->work_error = (struct hf_error){0};
    hf_run_documents_write(run->documents, &run->work_error);
}

static void on_documents_written(uv_work_t *work, int status)
{
    HF_LOOP_CALLBACK(work->loop);
    struct hf_run *run = work->data;
    (void)status;
    run->work_busy = false;
    if (run->closing) {
        hf_run_part_closed(run);
        return;
    }
    if (run->work_error.code)
        hf_run_fail(run, &run->work_error);
    hf_run_post(run, run->work_error.code ? HF_CAMPAIGN_EVENT_SUMMARY_NOT_DURABLE : HF_CAMPAIGN_EVENT_SUMMARY_DURABLE);
}

static void write_summary(struct hf_run *run)
{
    if (run->work_busy)
        abort(); /* the table asks again only after the answer to the write before */
    hf_run_documents_free(run->documents);
    run->documents = build_documents(run);
    run->work_busy = true;
    uv_queue_work(run->controller->loop, &run->work, write_documents, on_documents_written);
}

static void on_terminal_indexed(void *context, const struct hf_error *err)
{
    struct hf_run *run = context;
    if (err)
        hf_run_fail(run, err); /* the run directory is the truth; recovery brings the index up to date */
    hf_run_progress(run, HF_PROGRESS_FINISHED, NULL, 0, run->view.category, 0);
    hf_run_close(run);
}

static void report_terminal(struct hf_run *run)
{
    uv_timer_stop(&run->timer);
    bool passed = run->machine.state == HF_CAMPAIGN_STATE_PASSED;
    snprintf(run->view.status, sizeof run->view.status, "%s", passed ? "passed" : "failed");
    snprintf(run->view.category, sizeof run->view.category, "%s", hf_campaign_category_name(run->facts.category));
    snprintf(run->view.failed_case, sizeof run->view.failed_case, "%s", run->failed_case ? run->failed_case : "");
    run->view.finished_wall_ms = hf_clock_wall_ms();
    hf_index_put_run(run->controller->index, &run->view, on_terminal_indexed, run);
}

/* Reasons that no other part of the run has a sentence for. */
static void explain(struct hf_run *run, enum hf_campaign_effect effect)
{
    struct hf_error err = {0};
    if (effect == HF_CAMPAIGN_EFFECT_CONCLUDE_CANCELLED)
        hf_error_set(&err, "cancelled", 0, NULL, "the campaign was cancelled");
    else if (effect == HF_CAMPAIGN_EFFECT_CONCLUDE_PREFLIGHT_OR_EXECUTOR || effect == HF_CAMPAIGN_EFFECT_CONCLUDE_LOSS)
        hf_error_set(&err, "campaign-timeout", 0, NULL,
                     "the campaign ended in state %s without a reason of its own: a time limit "
                     "of the controller passed",
                     run->view.state);
    hf_run_fail(run, &err);
}

void hf_run_perform(struct hf_run *run, enum hf_campaign_effect effect)
{
    switch (effect) {
    case HF_CAMPAIGN_EFFECT_ARM_TIMER:
        arm_timer(run);
        break;
    case HF_CAMPAIGN_EFFECT_RUN_PREFLIGHT:
        run_preflight(run);
        break;
    case HF_CAMPAIGN_EFFECT_STOP_PREFLIGHT:
    case HF_CAMPAIGN_EFFECT_STOP_STRATEGIST:
        stop_strategist(run);
        break;
    case HF_CAMPAIGN_EFFECT_START_SESSION:
        start_session(run);
        break;
    case HF_CAMPAIGN_EFFECT_CHECK_BUDGETS:
        hf_run_post_front(run, HF_CAMPAIGN_EVENT_BUDGETS_CHECKED);
        break;
    case HF_CAMPAIGN_EFFECT_ASK_STRATEGIST:
        hf_strategist_ask(run->strategist);
        break;
    case HF_CAMPAIGN_EFFECT_APPEND_ACTION:
        append_action(run);
        break;
    case HF_CAMPAIGN_EFFECT_SEND_EXECUTE:
        send_execute(run);
        break;
    case HF_CAMPAIGN_EFFECT_APPEND_OBSERVATION:
        append_observation(run);
        break;
    case HF_CAMPAIGN_EFFECT_FINALIZE_SESSION:
        hf_session_finalize(run->session, (int)hf_budget_boot_seconds(&run->budget));
        break;
    case HF_CAMPAIGN_EFFECT_SHUTDOWN_SESSION:
        hf_session_shutdown(run->session);
        break;
    case HF_CAMPAIGN_EFFECT_QUARANTINE_SESSION:
        hf_session_quarantine(run->session);
        break;
    case HF_CAMPAIGN_EFFECT_TERMINATE_SESSION:
        hf_session_terminate(run->session);
        break;
    case HF_CAMPAIGN_EFFECT_PERSIST_FINALIZATION:
        persist_finalization(run);
        break;
    case HF_CAMPAIGN_EFFECT_CHECK_MINIMIZATION:
        hf_run_post_front(run, HF_CAMPAIGN_EVENT_MINIMIZATION_CHECKED);
        break;
    case HF_CAMPAIGN_EFFECT_RECORD_MINIMIZATION_SKIPPED:
        record_minimization_skipped(run);
        break;
    case HF_CAMPAIGN_EFFECT_WRITE_SUMMARY:
        write_summary(run);
        break;
    case HF_CAMPAIGN_EFFECT_REPORT_TERMINAL:
        report_terminal(run);
        break;
    default: /* fact-only */
        explain(run, effect);
        break;
    }
}
