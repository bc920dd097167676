/*
 * The invariants, looked at from outside: against the world's own accounts (sim_truth, sim_disk, sim_executor), never
 * against the tables. Every check names its invariant.
 */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>

void sim_broken(struct sim *sim, const char *format, ...)
{
    if (sim->failure[0])
        return; /* the first one is the cause */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sim->failure, sizeof sim->failure, format, arguments);
    va_end(arguments);
    sim_tell(sim, "BROKEN: %s", sim->failure);
}

/* The wrapper's tree is gone, or not even KILL ended it. */
static void check_left_alive(struct sim *sim, const char *name)
{
    const struct sim_executor *executor = &sim->executor;
    if (executor->process_alive && !(executor->ignores_term && executor->ignores_kill) && !executor->signalled)
        sim_broken(sim, "%s, and the wrapper was left alone", name);
}

static bool uses_target(enum hf_executor_session_effect effect)
{
    return effect == HF_EXECUTOR_SESSION_EFFECT_SEND_INITIALIZE || effect == HF_EXECUTOR_SESSION_EFFECT_SEND_EXECUTE ||
           effect == HF_EXECUTOR_SESSION_EFFECT_SEND_FINALIZE || effect == HF_EXECUTOR_SESSION_EFFECT_SEND_SHUTDOWN;
}

void sim_check_session_effect(struct sim *sim, enum hf_executor_session_effect effect)
{
    const char *name = hf_executor_session_machine.effect_names[effect];
    bool sends = uses_target(effect) || effect == HF_EXECUTOR_SESSION_EFFECT_SEND_QUARANTINE;
    if (effect == HF_EXECUTOR_SESSION_EFFECT_SEND_EXECUTE && ++sim->truth.sent > sim->disk.actions)
        sim_broken(sim, "I1: action %u is sent and %u are durable", sim->truth.sent, sim->disk.actions);
    if (effect == HF_EXECUTOR_SESSION_EFFECT_SEND_EXECUTE && sim->truth.cancelled)
        sim_broken(sim, "an action is sent after a cancel");
    if (uses_target(effect) && sim->session_facts.violation_evidence)
        sim_broken(sim, "I2: %s after violation evidence", name);
    if (uses_target(effect) && sim->truth.target_used_up)
        sim_broken(sim, "I3: %s to a target that is in the register", name);
    if (sim->truth.register_pending && effect != HF_EXECUTOR_SESSION_EFFECT_REGISTER_QUARANTINE &&
        effect != HF_EXECUTOR_SESSION_EFFECT_ARM_DEADLINE)
        sim_broken(sim, "I3: %s while the register is being written", name);
    if (sends && sim->executor.unanswered)
        sim_broken(sim, "I5: %s while request %u is in flight", name, sim->executor.serial);
    bool bad_end =
        effect == HF_EXECUTOR_SESSION_EFFECT_REPORT_LOST || effect == HF_EXECUTOR_SESSION_EFFECT_REPORT_QUARANTINED;
    if (bad_end && !sim->truth.target_used_up)
        sim_broken(sim, "I3: %s, and the target is not in the register", name);
    if (bad_end)
        check_left_alive(sim, name);
}

void sim_check_request(struct sim *sim, const struct hf_sm_result *result, uint32_t serial)
{
    bool awaits = result->from != result->to && hf_executor_session_awaits_response(result->to);
    if (awaits && sim->executor.serial == serial)
        sim_broken(sim, "I5: %s waits for the answer to nothing", hf_executor_session_machine.state_names[result->to]);
}

static bool late_completion(const struct sim *sim, uint8_t event)
{
    return (sim->truth.write_failed || (sim->faults & SIM_FAULT_CLOCK)) &&
           (event == HF_CAMPAIGN_EVENT_ACTION_DURABLE || event == HF_CAMPAIGN_EVENT_ACTION_NOT_DURABLE ||
            event == HF_CAMPAIGN_EVENT_OBSERVATION_DURABLE || event == HF_CAMPAIGN_EVENT_OBSERVATION_NOT_DURABLE ||
            event == HF_CAMPAIGN_EVENT_QUARANTINE_DURABLE || event == HF_CAMPAIGN_EVENT_QUARANTINE_NOT_DURABLE ||
            event == HF_CAMPAIGN_EVENT_SUMMARY_DURABLE || event == HF_CAMPAIGN_EVENT_SUMMARY_NOT_DURABLE);
}

/* The shell's own events, when storage_failed, a cancel or a timer went before them. */
static bool overtaken(const struct sim *sim, uint8_t event)
{
    bool by_storage =
        sim->journal_failed && (event == HF_CAMPAIGN_EVENT_BUDGETS_CHECKED || event == HF_CAMPAIGN_EVENT_CASE_CHOSEN);
    return by_storage || event == HF_CAMPAIGN_EVENT_START;
}

/* An answer that came while the line of the cancel or timeout that terminates the session was being written. */
static bool overtaken_by_termination(uint8_t state, uint8_t event)
{
    return state == HF_CAMPAIGN_STATE_QUARANTINING &&
           (event == HF_CAMPAIGN_EVENT_SESSION_READY || event == HF_CAMPAIGN_EVENT_SESSION_REFUSED ||
            event == HF_CAMPAIGN_EVENT_EXECUTE_ANSWERED || event == HF_CAMPAIGN_EVENT_FINALIZE_ANSWERED);
}

void sim_check_rejected(struct sim *sim, enum sim_machine machine, uint8_t state, uint8_t event)
{
    static const struct hf_sm_definition *const machines[] = {&hf_campaign_machine, &hf_executor_session_machine,
                                                              &hf_strategist_call_machine};
    sim->rejected++;
    if (machine == SIM_CAMPAIGN && (sim->faults & SIM_FAULT_CLOCK) && event == HF_CAMPAIGN_EVENT_MINIMIZATION_DONE)
        return; /* it was given up early */
    if (machine == SIM_CAMPAIGN &&
        (late_completion(sim, event) || overtaken(sim, event) || overtaken_by_termination(state, event)))
        return;
    if (machine == SIM_SESSION && (sim->truth.write_failed || (sim->faults & SIM_FAULT_CLOCK)) &&
        (event == HF_EXECUTOR_SESSION_EVENT_QUARANTINE_DURABLE ||
         event == HF_EXECUTOR_SESSION_EVENT_QUARANTINE_NOT_DURABLE))
        return;
    sim_broken(sim, "%s rejects %s in %s", machines[machine]->name, machines[machine]->event_names[event],
               machines[machine]->state_names[state]);
}

void sim_check_strategist_effect(struct sim *sim, enum hf_strategist_call_effect effect)
{
    const struct hf_strategist_call_facts *facts = &sim->strategist_facts;
    bool charges = facts->kind == HF_STRATEGIST_KIND_COPILOT;
    bool calls = effect == HF_STRATEGIST_CALL_EFFECT_RUN_SMOKE || effect == HF_STRATEGIST_CALL_EFFECT_INVOKE ||
                 effect == HF_STRATEGIST_CALL_EFFECT_INVOKE_REPAIR;
    if (charges && calls && sim->truth.charged + 30 > facts->credits_budget)
        sim_broken(sim, "I4: a call starts with %u of %u credits charged", sim->truth.charged, facts->credits_budget);
    if (charges && effect == HF_STRATEGIST_CALL_EFFECT_CHARGE_USAGE)
        sim->truth.charged += facts->usage_known ? facts->usage_credits : 30;
}

void sim_check_campaign_effect(struct sim *sim, enum hf_campaign_effect effect)
{
    bool violation = sim->truth.evidence_seen || sim->facts.category == HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION;
    if (effect == HF_CAMPAIGN_EFFECT_START_MINIMIZATION && violation && sim->facts.local_executor)
        sim_broken(sim, "I8: a policy violation is minimized in local mode");
    if (effect == HF_CAMPAIGN_EFFECT_START_SESSION && sim->session_exists)
        sim_broken(sim, "I3: a second session of one campaign");
    bool resting = sim->strategist.state == HF_STRATEGIST_CALL_STATE_IDLE ||
                   sim->strategist.state == HF_STRATEGIST_CALL_STATE_ANSWERED;
    if (effect == HF_CAMPAIGN_EFFECT_REPORT_TERMINAL && sim->strategist_exists && resting)
        sim_broken(sim, "the strategist is left behind");
    if (effect == HF_CAMPAIGN_EFFECT_REPORT_TERMINAL) {
        bool passed = sim->campaign.state == HF_CAMPAIGN_STATE_PASSED;
        sim->truth.reported_passed = sim->truth.reported_passed || passed;
        /* A failure that could be written nowhere binds nobody: the next start decides by what is on the disk. */
        sim->truth.reported_failed = sim->truth.reported_failed || (!passed && !sim->journal_failed);
        const struct sim_disk *disk = &sim->disk;
        if (passed && !(disk->summary.exists && disk->public_summary.exists && disk->public_summary.passed))
            sim_broken(sim, "I6: passed is reported before both summaries say so");
    }
}

/* Every state waits with its own timer; the registering states share the deadline of their one write. */
void sim_check_timers(struct sim *sim)
{
    const uint32_t registering = HF_SM_STATE(HF_EXECUTOR_SESSION_STATE_REGISTERING_VIOLATION) |
                                 HF_SM_STATE(HF_EXECUTOR_SESSION_STATE_REGISTERING_FAULT) |
                                 HF_SM_STATE(HF_EXECUTOR_SESSION_STATE_REGISTERING_LOSS);
    uint8_t session = sim->session.state;
    bool shared = (registering & HF_SM_STATE(session)) && (registering & HF_SM_STATE(sim->session_timer_state));
    bool campaign_waits = !sim->stepping && !hf_sm_is_terminal(&sim->campaign) && sim->campaign.state != 0;
    bool session_waits = !sim->session_stepping && sim->executor.exists && !hf_sm_is_terminal(&sim->session);
    bool strategist_waits = !sim->strategist_stepping && sim->strategist_exists && !hf_sm_is_terminal(&sim->strategist);
    if (campaign_waits && sim->campaign.state != sim->campaign_timer_state)
        sim_broken(sim, "campaign: %s waits without a timer of its own", hf_sm_state_name(&sim->campaign));
    if (session_waits && session != sim->session_timer_state && !shared)
        sim_broken(sim, "session: %s waits without a deadline of its own", hf_sm_state_name(&sim->session));
    if (strategist_waits && sim->strategist.state != sim->strategist_timer_state)
        sim_broken(sim, "strategist: %s waits without a timer of its own", hf_sm_state_name(&sim->strategist));
}

void sim_check_backstop(struct sim *sim, const char *machine, const char *state)
{
    if (sim->write_ms < 100 && !(sim->faults & (SIM_FAULT_DISK | SIM_FAULT_CLOCK)))
        sim_broken(sim, "%s: nothing was slow, and %s ended by its backstop", machine, state);
}

void sim_check_instant(struct sim *sim)
{
    const struct sim_disk *disk = &sim->disk;
    if (disk->observations > disk->actions)
        sim_broken(sim, "I1: %u observations and %u actions are durable", disk->observations, disk->actions);
    if (sim->truth.reported_passed && sim->truth.reported_failed)
        sim_broken(sim, "I6: passed and failed were both reported");
    if (sim->strategist_exists && sim->strategist_facts.credits_charged != sim->truth.charged)
        sim_broken(sim, "I4: %u credits are charged, the usage says %u", sim->strategist_facts.credits_charged,
                   sim->truth.charged);
}

static void check_passed(struct sim *sim)
{
    const struct sim_truth *truth = &sim->truth;
    if (!sim->disk.finalization)
        sim_broken(sim, "passed, and target-finalize.json was not written");
    if (!hf_campaign_category_passes(sim->disk.summary.category))
        sim_broken(sim, "I6: passed with the category %s", hf_campaign_category_name(sim->disk.summary.category));
    if (truth->evidence_seen || truth->bad_answer || truth->session_ended_badly || truth->cancelled)
        sim_broken(sim, "passed, although %s",
                   truth->evidence_seen ? "there was violation evidence"
                   : truth->bad_answer  ? "an answer had failed"
                   : truth->cancelled   ? "it was cancelled"
                                        : "the session was lost");
}

/* Without a restart the category tells what happened. */
static void check_category(struct sim *sim)
{
    const struct sim_truth *truth = &sim->truth;
    enum hf_campaign_category category = sim->disk.summary.category;
    bool violation = category == HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION;
    bool storage = category == HF_CAMPAIGN_CATEGORY_CONTROLLER_STORAGE_FAILURE;
    if (truth->evidence_seen != violation)
        sim_broken(sim, "violation evidence: %d, and it ended as %s", truth->evidence_seen,
                   hf_campaign_category_name(category));
    if ((truth->register_failed || truth->journal_failed) && !violation && !storage)
        sim_broken(sim, "a write failed, and it ended as %s", hf_campaign_category_name(category));
    if (storage && !(sim->faults & (SIM_FAULT_DISK | SIM_FAULT_CLOCK)))
        sim_broken(sim, "no write failed, and it ended as controller-storage-failure");
    if (category == HF_CAMPAIGN_CATEGORY_CANCELLED && !truth->cancelled)
        sim_broken(sim, "it ended as cancelled, and nobody had cancelled it");
    if (category == HF_CAMPAIGN_CATEGORY_CONTROLLER_RESTARTED)
        sim_broken(sim, "it ended as controller-restarted, and there was no restart");
    bool anomaly = sim->failed_case_known && sim->facts.minimize_wanted &&
                   (violation || category == HF_CAMPAIGN_CATEGORY_TEST_FAILURE ||
                    category == HF_CAMPAIGN_CATEGORY_TIMEOUT || category == HF_CAMPAIGN_CATEGORY_EXECUTOR_ERROR);
    if (anomaly && !truth->minimized && !sim->disk.minimization_skipped && !truth->cancelled && !truth->write_failed)
        sim_broken(sim, "an anomaly was neither minimized nor recorded as skipped");
    if (truth->quarantine_answered && !sim->disk.quarantine_answer)
        sim_broken(sim, "the answer to the quarantine request was not recorded");
}

static void check_undisturbed(struct sim *sim)
{
    /* A replay may be longer than its budgets, and a budget too small for the smoke call. */
    bool poor = sim->facts.strategist_charges_credits && sim->facts.credits_budget < 30;
    if (!sim->disk.summary.passed && sim->disk.summary.category != HF_CAMPAIGN_CATEGORY_REPLAY_INCOMPLETE && !poor)
        sim_broken(sim, "nothing went wrong, and it failed as %s",
                   hf_campaign_category_name(sim->disk.summary.category));
    if (sim->rejected > 0)
        sim_broken(sim, "nothing went wrong, and %u events were rejected", sim->rejected);
    if (sim->disk.target_registered)
        sim_broken(sim, "nothing went wrong, and the target is in the register");
}

void sim_check_end(struct sim *sim)
{
    const struct sim_disk *disk = &sim->disk;
    const struct sim_truth *truth = &sim->truth;
    if (!disk->summary.exists || !disk->public_summary.exists) {
        sim_broken(sim, "I6: a summary is missing");
        return;
    }
    if (disk->summary.passed != disk->public_summary.passed || disk->summary.category != disk->public_summary.category)
        sim_broken(sim, "I6: the two summaries differ");
    if ((truth->reported_passed && !disk->summary.passed) || (truth->reported_failed && disk->summary.passed))
        sim_broken(sim, "I6: the summary says %s, the report said otherwise",
                   disk->summary.passed ? "passed" : "failed");
    if (disk->summary.passed)
        check_passed(sim);
    if (!disk->summary.passed &&
        (hf_campaign_category_passes(disk->summary.category) || disk->summary.category == HF_CAMPAIGN_CATEGORY_NONE))
        sim_broken(sim, "failed with the category %s", hf_campaign_category_name(disk->summary.category));
    if (truth->starts == 0)
        check_category(sim);
    if (truth->session_ended_badly && !disk->target_registered)
        sim_broken(sim, "I3: the session ended badly, and the target is not in the register");
    if (sim->faults == 0)
        check_undisturbed(sim);
}
