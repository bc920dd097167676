/*
 * The shell of the campaign: its queue, the journal before the effects, and what each effect is. The journal is written
 * asynchronously, as in server/, so that anything may happen while a line is on its way.
 */
#include "sim.h"

#include <string.h>

static void refresh_facts(struct sim *sim)
{
    uint64_t end_ms = sim->started_ms + sim->budget_ms;
    sim->facts.remaining_ms = end_ms > sim->now_ms ? end_ms - sim->now_ms : 0;
    sim->facts.actions_done = sim->disk.actions;
    sim->facts.candidates_left = sim->cases_left;
    sim->facts.credits_charged = sim->strategist_facts.credits_charged;
    sim->facts.minimize_attempts_left = 3;
    sim->facts.violation_evidence = sim->facts.violation_evidence || sim->session_facts.violation_evidence;
    sim->facts.failed_case_known = sim->failed_case_known;
    sim->facts.answer_category = sim->answer_category;
    sim->facts.finalization_category = sim->finalization_category;
}

static void write_next_line(struct sim *sim)
{
    if (sim->queue_count > 0)
        sim_write(sim, SIM_LINE_WRITTEN, false);
}

void sim_journal(struct sim *sim, enum sim_machine machine, const struct hf_sm_result *result, bool campaign_waits)
{
    if (sim->journal_failed || sim->crashed)
        return;
    if (sim->queue_count == SIM_MAX_PENDING) {
        sim_broken(sim, "the journal's queue is full");
        return;
    }
    sim->queue_is_campaigns[sim->queue_count] = campaign_waits;
    sim->queue[sim->queue_count++] = (struct sim_line){machine, result->event, result->guard, result->to, 0};
    if (sim->queue_count == 1)
        write_next_line(sim);
}

struct hf_sm_result sim_step(struct sim *sim, struct hf_sm_instance *instance, uint64_t *strokes, uint8_t event,
                             void *facts)
{
    const struct hf_sm_row *row = hf_sm_find(instance, event, facts);
    if (row && strokes)
        strokes[row - instance->definition->rows]++;
    /* An operator's cancel that comes in the very middle of something. */
    if (row && sim_fails(sim, SIM_FAULT_CANCEL, 15))
        sim_schedule(sim, SIM_CANCEL, sim_below(sim, 50), 0);
    return hf_sm_step(instance, event, facts);
}

static void perform(struct sim *sim, enum hf_campaign_effect effect);

static void take(struct sim *sim)
{
    uint8_t event = sim->pending[0];
    memmove(sim->pending, sim->pending + 1, --sim->pending_count);
    struct hf_sm_result result =
        sim_step(sim, &sim->campaign, sim->coverage ? sim->coverage->campaign : NULL, event, &sim->facts);
    sim_tell(sim, "campaign: %s -> %s on %s [%s] (%s)%s", hf_campaign_machine.state_names[result.from],
             hf_campaign_machine.state_names[result.to], hf_campaign_machine.event_names[event],
             hf_campaign_machine.guard_names[result.guard], hf_campaign_category_name(sim->facts.category),
             result.accepted ? "" : " REJECTED");
    if (!result.accepted) {
        sim_check_rejected(sim, SIM_CAMPAIGN, result.from, event);
        return;
    }
    if (event == HF_CAMPAIGN_EVENT_CANCEL && result.from < HF_CAMPAIGN_STATE_RECOVERING)
        sim->truth.cancelled = true;
    sim->stepping = true;
    for (uint8_t i = 0; i < result.effect_count && !sim_instant(sim); i++)
        perform(sim, (enum hf_campaign_effect)result.effects[i]);
    sim->stepping = false;
    if (!sim->crashed)
        sim_check_timers(sim);
}

/* The line carries the category after the step, found by taking the step on a copy. */
static void journal_first(struct sim *sim)
{
    struct hf_sm_instance copy = sim->campaign;
    struct hf_campaign_facts facts = sim->facts;
    struct hf_sm_result result = hf_sm_step(&copy, sim->pending[0], &facts);
    sim->journaling = true;
    sim_journal(sim, SIM_CAMPAIGN, &result, true);
    if (sim->queue_count > 0)
        sim->queue[sim->queue_count - 1].category = facts.category;
}

void sim_pump(struct sim *sim)
{
    while (!sim->stepping && !sim->journaling && !sim->crashed && sim->pending_count > 0) {
        refresh_facts(sim);
        if (!sim->journal_failed && hf_sm_find(&sim->campaign, sim->pending[0], &sim->facts))
            journal_first(sim);
        else
            take(sim);
    }
}

static void insert(struct sim *sim, unsigned at, enum hf_campaign_event event)
{
    if (sim->pending_count == SIM_MAX_PENDING) {
        sim_broken(sim, "the campaign's queue is full");
        return;
    }
    memmove(sim->pending + at + 1, sim->pending + at, sim->pending_count - at);
    sim->pending[at] = (uint8_t)event;
    sim->pending_count++;
}

void sim_post(struct sim *sim, enum hf_campaign_event event)
{
    if (hf_sm_is_terminal(&sim->campaign))
        return;
    insert(sim, sim->pending_count, event);
    sim_pump(sim);
}

void sim_post_front(struct sim *sim, enum hf_campaign_event event)
{
    insert(sim, 0, event);
}

static void drop_pending(struct sim *sim, uint64_t events)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < sim->pending_count; i++) {
        if (!(events & HF_SM_EVENT(sim->pending[i])))
            sim->pending[kept++] = sim->pending[i];
    }
    sim->pending_count = kept;
}

/* A timer that is armed again does not deliver an expiry that is still in the queue. */
static void arm_timer(struct sim *sim)
{
    drop_pending(sim, HF_SM_EVENT(HF_CAMPAIGN_EVENT_TIMED_OUT));
    sim_schedule_timer(sim, SIM_CAMPAIGN_TIMER, hf_campaign_state_timeout_ms(sim->campaign.state, &sim->times),
                       ++sim->campaign_timer);
    sim->campaign_timer_state = sim->campaign.state;
}

/* What it has said already and was not taken yet is dropped with it. */
static void stop_strategist(struct sim *sim)
{
    static const uint64_t its_events =
        HF_SM_EVENT(HF_CAMPAIGN_EVENT_PREFLIGHT_PASSED) | HF_SM_EVENT(HF_CAMPAIGN_EVENT_PREFLIGHT_FAILED) |
        HF_SM_EVENT(HF_CAMPAIGN_EVENT_CASE_CHOSEN) | HF_SM_EVENT(HF_CAMPAIGN_EVENT_STRATEGIST_REFUSED) |
        HF_SM_EVENT(HF_CAMPAIGN_EVENT_STRATEGIST_EXHAUSTED);
    drop_pending(sim, its_events);
    sim->preflight_running = false;
    if (sim->strategist_exists && !hf_sm_is_terminal(&sim->strategist))
        sim_strategist_event(sim, HF_STRATEGIST_CALL_EVENT_CANCEL);
}

static void run_preflight(struct sim *sim)
{
    sim->preflight_running = true;
    if (sim->facts.replay)
        sim_post(sim, HF_CAMPAIGN_EVENT_PREFLIGHT_PASSED);
    else
        sim_strategist_start(sim);
}

static void ask_strategist(struct sim *sim)
{
    if (hf_sm_is_terminal(&sim->strategist))
        sim_post(sim, HF_CAMPAIGN_EVENT_STRATEGIST_REFUSED);
    else
        sim_strategist_event(sim, HF_STRATEGIST_CALL_EVENT_ASK);
}

static void append_observation(struct sim *sim)
{
    sim->observation_writing = true;
    sim->cases_left -= sim->cases_left > 0;
    sim->failed_case_known = sim->failed_case_known || sim->answer_category != HF_CAMPAIGN_CATEGORY_NONE ||
                             sim->session_facts.violation_evidence;
    sim_write(sim, SIM_OBSERVATION_WRITTEN, false);
}

static void write_summary(struct sim *sim)
{
    sim->summary_writing = true;
    sim->writing = (struct sim_document){true, hf_campaign_verdict_passed(&sim->facts), sim->facts.category};
    sim_write(sim, SIM_SUMMARY_WRITTEN, false);
}

/* Effects that begin a write or something in the world. True when `effect` was one of them. */
static bool perform_in_world(struct sim *sim, enum hf_campaign_effect effect)
{
    switch (effect) {
    case HF_CAMPAIGN_EFFECT_ARM_TIMER:
        arm_timer(sim);
        return true;
    case HF_CAMPAIGN_EFFECT_RUN_PREFLIGHT:
        run_preflight(sim);
        return true;
    case HF_CAMPAIGN_EFFECT_STOP_PREFLIGHT:
    case HF_CAMPAIGN_EFFECT_STOP_STRATEGIST:
        stop_strategist(sim);
        return true;
    case HF_CAMPAIGN_EFFECT_APPEND_ACTION:
        sim->action_writing = true;
        sim_write(sim, SIM_ACTION_WRITTEN, false);
        return true;
    case HF_CAMPAIGN_EFFECT_APPEND_OBSERVATION:
        append_observation(sim);
        return true;
    case HF_CAMPAIGN_EFFECT_PERSIST_FINALIZATION:
        sim->disk.finalization = true;
        sim_write(sim, SIM_DOCUMENT_WRITTEN, false);
        return true;
    case HF_CAMPAIGN_EFFECT_RECORD_MINIMIZATION_SKIPPED:
        sim->disk.minimization_skipped = true;
        sim_write(sim, SIM_DOCUMENT_WRITTEN, false);
        return true;
    case HF_CAMPAIGN_EFFECT_REGISTER_QUARANTINE:
        sim_write(sim, SIM_RECOVERY_REGISTER_WRITTEN, true);
        return true;
    case HF_CAMPAIGN_EFFECT_START_MINIMIZATION:
        sim->minimizing = sim->truth.minimized = true;
        sim_schedule(sim, SIM_MINIMIZATION_ENDS, sim_below(sim, 900000), 0);
        return true;
    case HF_CAMPAIGN_EFFECT_STOP_MINIMIZATION:
        sim_schedule(sim, SIM_MINIMIZATION_ENDS, sim_below(sim, 10000), 0);
        return true;
    case HF_CAMPAIGN_EFFECT_WRITE_SUMMARY:
        write_summary(sim);
        return true;
    default:
        return false;
    }
}

static void perform(struct sim *sim, enum hf_campaign_effect effect)
{
    sim_tell(sim, "  campaign effect: %s", hf_campaign_machine.effect_names[effect]);
    sim_check_campaign_effect(sim, effect);
    if (perform_in_world(sim, effect))
        return;
    switch (effect) {
    case HF_CAMPAIGN_EFFECT_START_SESSION:
        sim_session_start(sim);
        break;
    case HF_CAMPAIGN_EFFECT_CHECK_BUDGETS:
        sim_post_front(sim, HF_CAMPAIGN_EVENT_BUDGETS_CHECKED);
        break;
    case HF_CAMPAIGN_EFFECT_CHECK_MINIMIZATION:
        sim_post_front(sim, HF_CAMPAIGN_EVENT_MINIMIZATION_CHECKED);
        break;
    case HF_CAMPAIGN_EFFECT_ASK_STRATEGIST:
        ask_strategist(sim);
        break;
    case HF_CAMPAIGN_EFFECT_TAKE_REPLAY_ACTION:
        sim_post(sim, HF_CAMPAIGN_EVENT_CASE_CHOSEN);
        break;
    case HF_CAMPAIGN_EFFECT_SEND_EXECUTE:
        sim->answer_category = HF_CAMPAIGN_CATEGORY_NONE;
        sim_session_unless_ended(sim, HF_EXECUTOR_SESSION_EVENT_EXECUTE);
        break;
    case HF_CAMPAIGN_EFFECT_FINALIZE_SESSION:
        sim_session_unless_ended(sim, HF_EXECUTOR_SESSION_EVENT_FINALIZE);
        break;
    case HF_CAMPAIGN_EFFECT_SHUTDOWN_SESSION:
        sim_session_unless_ended(sim, HF_EXECUTOR_SESSION_EVENT_SHUTDOWN);
        break;
    case HF_CAMPAIGN_EFFECT_QUARANTINE_SESSION:
        sim_session_unless_ended(sim, HF_EXECUTOR_SESSION_EVENT_QUARANTINE);
        break;
    case HF_CAMPAIGN_EFFECT_TERMINATE_SESSION:
        sim_session_unless_ended(sim, HF_EXECUTOR_SESSION_EVENT_TERMINATE);
        break;
    case HF_CAMPAIGN_EFFECT_REPORT_TERMINAL:
        sim->pending_count = 0;
        break;
    default:
        break; /* fact-only */
    }
}

/* storage_failed goes before the event that waited, except at a restart, where nothing of the replayed state is real.
 */
static void journal_failed(struct sim *sim)
{
    bool restarts = sim->pending_count > 0 && sim->pending[0] == HF_CAMPAIGN_EVENT_CONTROLLER_RESTARTED;
    if (sim->journaling && !restarts)
        sim_post_front(sim, HF_CAMPAIGN_EVENT_STORAGE_FAILED);
    else
        sim_post(sim, HF_CAMPAIGN_EVENT_STORAGE_FAILED);
    sim->journaling = false;
    sim_pump(sim);
}

/* The queue of lines fails as a whole: nothing is ever appended behind a line that is missing. */
static void line_written(struct sim *sim, bool good)
{
    bool campaign_waits = sim->queue_is_campaigns[0];
    if (!good) {
        sim->journal_failed = true;
        sim->truth.journal_failed = sim->truth.journal_failed || sim->campaign.state < HF_CAMPAIGN_STATE_RECOVERING;
        sim->queue_count = 0;
        journal_failed(sim);
        return;
    }
    if (sim->disk.line_count == SIM_MAX_LINES) {
        sim_broken(sim, "the journal is longer than any run may be");
        return;
    }
    sim->disk.lines[sim->disk.line_count++] = sim->queue[0];
    memmove(sim->queue, sim->queue + 1, --sim->queue_count * sizeof sim->queue[0]);
    memmove(sim->queue_is_campaigns, sim->queue_is_campaigns + 1, sim->queue_count * sizeof(bool));
    write_next_line(sim);
    if (!campaign_waits || sim_instant(sim))
        return;
    sim->journaling = false;
    take(sim);
    sim_pump(sim);
}

/* summary.json, then public-summary.json, with an instant between them. */
static void summary_written(struct sim *sim, bool good)
{
    if (good) {
        sim->disk.summary = sim->writing;
        if (sim_instant(sim))
            return;
        good = !sim_fails(sim, SIM_FAULT_DISK, 20);
    }
    if (good)
        sim->disk.public_summary = sim->writing;
    sim->summary_writing = false;
    if (!sim_instant(sim))
        sim_post(sim, good ? HF_CAMPAIGN_EVENT_SUMMARY_DURABLE : HF_CAMPAIGN_EVENT_SUMMARY_NOT_DURABLE);
}

static void storage_occurs(struct sim *sim, const struct sim_occurrence *occurrence)
{
    bool good = occurrence->value;
    switch (occurrence->kind) {
    case SIM_ACTION_WRITTEN:
        sim->action_writing = false;
        sim->disk.actions += good;
        sim_post(sim, good ? HF_CAMPAIGN_EVENT_ACTION_DURABLE : HF_CAMPAIGN_EVENT_ACTION_NOT_DURABLE);
        break;
    case SIM_OBSERVATION_WRITTEN:
        sim->observation_writing = false;
        sim->disk.observations += good;
        sim_post(sim, good ? HF_CAMPAIGN_EVENT_OBSERVATION_DURABLE : HF_CAMPAIGN_EVENT_OBSERVATION_NOT_DURABLE);
        break;
    case SIM_DOCUMENT_WRITTEN:
        if (!good)
            sim_post(sim, HF_CAMPAIGN_EVENT_STORAGE_FAILED);
        break;
    case SIM_REGISTER_WRITTEN:
        sim->register_writing = sim->truth.register_pending = false;
        sim->truth.register_failed =
            sim->truth.register_failed || (!good && sim->campaign.state < HF_CAMPAIGN_STATE_RECOVERING);
        sim->disk.target_registered = sim->disk.target_registered || good;
        if (!hf_sm_is_terminal(&sim->session))
            sim_session_event(sim, good ? HF_EXECUTOR_SESSION_EVENT_QUARANTINE_DURABLE
                                        : HF_EXECUTOR_SESSION_EVENT_QUARANTINE_NOT_DURABLE);
        break;
    case SIM_RECOVERY_REGISTER_WRITTEN:
        if (good && sim->session_exists && sim->session.state != HF_EXECUTOR_SESSION_STATE_CLOSED)
            sim->disk.target_registered = true;
        sim_post(sim, good ? HF_CAMPAIGN_EVENT_QUARANTINE_DURABLE : HF_CAMPAIGN_EVENT_QUARANTINE_NOT_DURABLE);
        break;
    default:
        break;
    }
}

void sim_occurs(struct sim *sim, const struct sim_occurrence *occurrence)
{
    switch (occurrence->kind) {
    case SIM_CAMPAIGN_TIMER:
        if (occurrence->generation != sim->campaign_timer)
            break;
        if (sim->campaign.state > HF_CAMPAIGN_STATE_PREFLIGHT && sim->campaign.state != HF_CAMPAIGN_STATE_RETRYING &&
            sim->campaign.state != HF_CAMPAIGN_STATE_MINIMIZING)
            sim_check_backstop(sim, "campaign", hf_sm_state_name(&sim->campaign));
        sim_post(sim, HF_CAMPAIGN_EVENT_TIMED_OUT);
        break;
    case SIM_SESSION_DEADLINE:
        if (occurrence->generation != sim->session_timer || hf_sm_is_terminal(&sim->session))
            break;
        if (sim->session.state >= HF_EXECUTOR_SESSION_STATE_REGISTERING_VIOLATION &&
            sim->session.state <= HF_EXECUTOR_SESSION_STATE_CONDEMNED)
            sim_check_backstop(sim, "session", hf_sm_state_name(&sim->session));
        sim_session_event(sim, HF_EXECUTOR_SESSION_EVENT_DEADLINE);
        break;
    case SIM_STRATEGIST_TIMER:
        if (occurrence->generation == sim->strategist_timer && !hf_sm_is_terminal(&sim->strategist))
            sim_strategist_event(sim, HF_STRATEGIST_CALL_EVENT_TIMED_OUT);
        break;
    case SIM_LINE_WRITTEN:
        line_written(sim, occurrence->value);
        break;
    case SIM_SUMMARY_WRITTEN:
        summary_written(sim, occurrence->value);
        break;
    case SIM_STRATEGIST_RETURNS:
        sim_strategist_returns(sim, occurrence->value);
        break;
    case SIM_STRATEGIST_ENDS:
        if (!hf_sm_is_terminal(&sim->strategist))
            sim_strategist_event(sim, HF_STRATEGIST_CALL_EVENT_PROCESS_ENDED);
        break;
    case SIM_MINIMIZATION_ENDS:
        if (sim->minimizing) {
            sim->minimizing = false;
            sim_post(sim, HF_CAMPAIGN_EVENT_MINIMIZATION_DONE);
        }
        break;
    case SIM_START:
        sim_post(sim, HF_CAMPAIGN_EVENT_START);
        break;
    case SIM_CANCEL:
        sim_post(sim, HF_CAMPAIGN_EVENT_CANCEL);
        break;
    case SIM_SPAWN:
    case SIM_SPEECH:
    case SIM_TRANSPORT_CLOSES:
    case SIM_PROCESS_ENDS:
        sim_executor_occurs(sim, occurrence);
        break;
    default:
        storage_occurs(sim, occurrence);
        break;
    }
}
