/* Implementation of invariants.h: each check is one sentence about a table. */
#include "invariants.h"

#include "statemachines/campaign.h"
#include "statemachines/executor_session.h"
#include "statemachines/minimization.h"
#include "statemachines/strategist_call.h"
#include "statemachines/vm_launch.h"

#include <stdio.h>

#define CAMPAIGN_EFFECT(name)   EFFECT_BIT(HF_CAMPAIGN_EFFECT_##name)
#define CAMPAIGN_EVENT(name)    HF_SM_EVENT(HF_CAMPAIGN_EVENT_##name)
#define SESSION_EFFECT(name)    EFFECT_BIT(HF_EXECUTOR_SESSION_EFFECT_##name)
#define SESSION_EVENT(name)     HF_SM_EVENT(HF_EXECUTOR_SESSION_EVENT_##name)
#define SESSION_STATE(name)     HF_SM_STATE(HF_EXECUTOR_SESSION_STATE_##name)
#define SESSION_GUARD(name)     (UINT64_C(1) << HF_EXECUTOR_SESSION_GUARD_##name)
#define STRATEGIST_EFFECT(name) EFFECT_BIT(HF_STRATEGIST_CALL_EFFECT_##name)
#define STRATEGIST_STATE(name)  HF_SM_STATE(HF_STRATEGIST_CALL_STATE_##name)
#define STRATEGIST_GUARD(name)  (UINT64_C(1) << HF_STRATEGIST_CALL_GUARD_##name)

static bool complain(struct walker_finding *finding, const char *text)
{
    snprintf(finding->text, sizeof finding->text, "%s", text);
    return false;
}

/* The states that rows with one of `events` lead to. */
static uint32_t entered_on(const struct hf_sm_definition *machine, uint64_t events)
{
    uint32_t states = 0;
    for (size_t i = 0; i < machine->row_count; i++) {
        if (events & HF_SM_EVENT(machine->rows[i].event))
            states |= HF_SM_STATE(machine->rows[i].next);
    }
    return states;
}

static bool dispatch_follows_durable_action(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    return walker_effects_only_on(machine, CAMPAIGN_EFFECT(SEND_EXECUTE), CAMPAIGN_EVENT(ACTION_DURABLE), finding);
}

static bool attempt_follows_durable_sequence(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    return walker_effects_only_on(machine, EFFECT_BIT(HF_MINIMIZATION_EFFECT_START_SESSION),
                                  HF_SM_EVENT(HF_MINIMIZATION_EVENT_ATTEMPT_DURABLE), finding);
}

static bool session_sends_only_what_it_is_told(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    return walker_effects_only_on(machine, SESSION_EFFECT(SEND_EXECUTE), SESSION_EVENT(EXECUTE), finding) &&
           walker_effects_only_on(machine, SESSION_EFFECT(SEND_FINALIZE), SESSION_EVENT(FINALIZE), finding);
}

/* What leads to something running on a campaign's target. */
static const uint64_t campaign_dispatch = CAMPAIGN_EFFECT(START_SESSION) | CAMPAIGN_EFFECT(ASK_STRATEGIST) |
                                          CAMPAIGN_EFFECT(TAKE_REPLAY_ACTION) | CAMPAIGN_EFFECT(APPEND_ACTION) |
                                          CAMPAIGN_EFFECT(SEND_EXECUTE);

static bool nothing_runs_after_a_violation(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    uint32_t states = entered_on(machine, CAMPAIGN_EVENT(VIOLATION_ANSWERED));
    for (size_t i = 0; i < machine->row_count; i++) {
        if (machine->rows[i].guard == HF_CAMPAIGN_GUARD_VIOLATION)
            states |= HF_SM_STATE(machine->rows[i].next);
    }
    return walker_effects_unreachable(
        machine, states, campaign_dispatch | CAMPAIGN_EFFECT(FINALIZE_SESSION) | CAMPAIGN_EFFECT(SHUTDOWN_SESSION),
        finding);
}

static bool session_runs_nothing_under_evidence(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    return walker_effects_only_under(machine, SESSION_EFFECT(SEND_EXECUTE) | SESSION_EFFECT(SEND_FINALIZE),
                                     SESSION_GUARD(NO_EVIDENCE), finding);
}

static bool violation_is_heard_wherever_a_session_lives(const struct hf_sm_definition *machine,
                                                        struct walker_finding *finding)
{
    uint32_t with_session = 0, hears = 0;
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if (row->event == HF_CAMPAIGN_EVENT_SESSION_LOST)
            with_session |= HF_SM_STATE(row->state);
        if (row->event == HF_CAMPAIGN_EVENT_VIOLATION_ANSWERED)
            hears |= HF_SM_STATE(row->state);
    }
    return with_session == hears ? true : complain(finding, "a state with a session is deaf to a violation");
}

static const uint32_t registering =
    SESSION_STATE(REGISTERING_VIOLATION) | SESSION_STATE(REGISTERING_FAULT) | SESSION_STATE(REGISTERING_LOSS);

static bool registered_target_is_never_used(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    return walker_effects_unreachable(machine, registering,
                                      SESSION_EFFECT(SEND_INITIALIZE) | SESSION_EFFECT(SEND_EXECUTE) |
                                          SESSION_EFFECT(SEND_FINALIZE) | SESSION_EFFECT(SEND_SHUTDOWN) |
                                          SESSION_EFFECT(REPORT_CLOSED),
                                      finding);
}

static bool starts_with_register_alone(const struct hf_sm_row *row)
{
    return row->effects[0] == HF_EXECUTOR_SESSION_EFFECT_REGISTER_QUARANTINE &&
           row->effects[1] == HF_EXECUTOR_SESSION_EFFECT_ARM_DEADLINE &&
           row->effects[2] == HF_EXECUTOR_SESSION_EFFECT_NONE;
}

/* Registering begins with register_quarantine and nothing else but its deadline, and nothing happens until it is back.
 */
static bool register_comes_first(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    const uint64_t completions =
        SESSION_EVENT(QUARANTINE_DURABLE) | SESSION_EVENT(QUARANTINE_NOT_DURABLE) | SESSION_EVENT(DEADLINE);
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        bool from = (registering & HF_SM_STATE(row->state)) != 0;
        bool to = (registering & HF_SM_STATE(row->next)) != 0;
        if (!from && to && !starts_with_register_alone(row))
            return complain(finding, "a row enters registering with something other than register_quarantine first");
        if (from && to && row->effects[0] != HF_EXECUTOR_SESSION_EFFECT_NONE)
            return complain(finding, "something happens while the register is being written");
        if (from && !to && !(completions & HF_SM_EVENT(row->event)))
            return complain(finding, "registering is left before the register answered");
        if (!to && walker_row_has(row, SESSION_EFFECT(REGISTER_QUARANTINE)))
            return complain(finding, "register_quarantine outside of registering");
    }
    return true;
}

/* What can be reached without ever entering a registering state holds no bad end and no kill. */
static bool bad_ends_pass_the_register(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    uint32_t seen = HF_SM_STATE(machine->initial), before;
    do {
        before = seen;
        for (size_t i = 0; i < machine->row_count; i++) {
            const struct hf_sm_row *row = &machine->rows[i];
            if ((seen & HF_SM_STATE(row->state)) && !(registering & HF_SM_STATE(row->next)))
                seen |= HF_SM_STATE(row->next);
        }
    } while (seen != before);
    if (seen & (SESSION_STATE(QUARANTINED) | SESSION_STATE(LOST) | SESSION_STATE(TERMINATING)))
        return complain(finding, "quarantined, lost or terminating can be reached around the register");
    return true;
}

static bool recovery_registers_first(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        bool restart = row->event == HF_CAMPAIGN_EVENT_CONTROLLER_RESTARTED;
        if (restart &&
            (row->effects[0] != HF_CAMPAIGN_EFFECT_REGISTER_QUARANTINE || row->next != HF_CAMPAIGN_STATE_RECOVERING))
            return complain(finding, "a restart does not register first");
        if (row->state == HF_CAMPAIGN_STATE_RECOVERING && walker_row_has(row, CAMPAIGN_EFFECT(WRITE_SUMMARY)) &&
            row->event != HF_CAMPAIGN_EVENT_QUARANTINE_DURABLE)
            return complain(finding, "a recovered run is summed up before its targets are registered");
    }
    return true;
}

static bool calls_are_reserved(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    return walker_effects_only_under(machine, STRATEGIST_EFFECT(INVOKE) | STRATEGIST_EFFECT(RUN_SMOKE),
                                     STRATEGIST_GUARD(CREDITS_LEFT), finding) &&
           walker_effects_only_under(machine, STRATEGIST_EFFECT(INVOKE_REPAIR), STRATEGIST_GUARD(MAY_REPAIR), finding);
}

/* Whatever ends a call (smoke, invoking, repairing, or the stop of one of them) charges it, and nothing else does. */
static bool calls_are_charged(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    const uint32_t running = STRATEGIST_STATE(SMOKE) | STRATEGIST_STATE(INVOKING) | STRATEGIST_STATE(REPAIRING) |
                             STRATEGIST_STATE(STOPPING) | STRATEGIST_STATE(CANCELLING);
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        bool from = (running & HF_SM_STATE(row->state)) != 0;
        bool to = (running & HF_SM_STATE(row->next)) != 0;
        if ((from && !to) != walker_row_has(row, STRATEGIST_EFFECT(CHARGE_USAGE)))
            return complain(finding, "a call ends without charge_usage, or something else is charged");
    }
    return true;
}

static bool one_request_in_flight(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    const uint64_t requests = SESSION_EFFECT(SEND_INITIALIZE) | SESSION_EFFECT(SEND_EXECUTE) |
                              SESSION_EFFECT(SEND_FINALIZE) | SESSION_EFFECT(SEND_QUARANTINE) |
                              SESSION_EFFECT(SEND_SHUTDOWN);
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        bool sends = walker_row_has(row, requests);
        bool enters = row->next != row->state && hf_executor_session_awaits_response(row->next);
        if (sends != enters)
            return complain(finding, "a request without a state that awaits its answer, or the reverse");
        bool abandoned = row->state == HF_EXECUTOR_SESSION_STATE_QUARANTINING;
        if (sends && hf_executor_session_awaits_response(row->state) && !abandoned)
            return complain(finding, "a request while another one is in flight");
    }
    return true;
}

static bool mismatch_ends_the_session(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    const uint32_t in_use = SESSION_STATE(INITIALIZING) | SESSION_STATE(READY) | SESSION_STATE(EXECUTING) |
                            SESSION_STATE(FINALIZING) | SESSION_STATE(FINALIZED) | SESSION_STATE(SHUTTING_DOWN);
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if ((in_use & HF_SM_STATE(row->state)) && row->event == HF_EXECUTOR_SESSION_EVENT_BAD_RESPONSE &&
            !(registering & HF_SM_STATE(row->next)))
            return complain(finding, "a bad response does not end the session");
    }
    return true;
}

static bool passes_only_with_durable_summary(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if (row->next == HF_CAMPAIGN_STATE_PASSED &&
            (row->event != HF_CAMPAIGN_EVENT_SUMMARY_DURABLE || row->guard != HF_CAMPAIGN_GUARD_VERDICT_PASSED))
            return complain(finding, "passed without a durable summary that says so");
    }
    return true;
}

static bool summary_seals_the_verdict(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    /* The conclude_* effects are the last ones of the enum. */
    const uint64_t conclusions = ~(CAMPAIGN_EFFECT(CONCLUDE_COVERAGE_CONVERGED) - 1);
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        bool stays = row->state == HF_CAMPAIGN_STATE_SUMMARIZING && row->next == HF_CAMPAIGN_STATE_SUMMARIZING;
        bool enters = row->state != HF_CAMPAIGN_STATE_SUMMARIZING && row->next == HF_CAMPAIGN_STATE_SUMMARIZING;
        if (stays && walker_row_has(row, conclusions))
            return complain(finding, "the verdict changes while its summary is being written");
        if (enters != walker_row_has(row, CAMPAIGN_EFFECT(WRITE_SUMMARY)))
            return complain(finding, "summarizing is entered without write_summary, or the reverse");
    }
    return true;
}

static bool every_state_survives_restart_and_full_disk(const struct hf_sm_definition *machine,
                                                       struct walker_finding *finding)
{
    uint32_t restart = 0, storage = 0;
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if (row->event == HF_CAMPAIGN_EVENT_CONTROLLER_RESTARTED)
            restart |= HF_SM_STATE(row->state);
        if (row->event == HF_CAMPAIGN_EVENT_STORAGE_FAILED)
            storage |= HF_SM_STATE(row->state);
    }
    uint32_t live = (HF_SM_STATE(machine->state_count) - 1) & ~machine->terminal_states;
    return (restart & storage) == live ? true : complain(finding, "a state does not take a restart or a full disk");
}

static bool cancel_ends_dispatch(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    const uint64_t ends =
        CAMPAIGN_EVENT(CANCEL) | CAMPAIGN_EVENT(STORAGE_FAILED) | CAMPAIGN_EVENT(CONTROLLER_RESTARTED);
    return walker_effects_unreachable(machine, entered_on(machine, ends) | machine->closing_states, campaign_dispatch,
                                      finding);
}

static bool minimization_needs_permission(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    return walker_effects_only_under(machine, CAMPAIGN_EFFECT(START_MINIMIZATION),
                                     UINT64_C(1) << HF_CAMPAIGN_GUARD_MAY_MINIMIZE, finding);
}

/* The rows out of the initial state are the only entrance, and only the permitted one leads anywhere but to the end. */
static bool local_violation_is_never_minimized(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if (row->next == machine->initial ||
            (row->state == machine->initial && row->next != HF_MINIMIZATION_STATE_DONE &&
             row->guard != HF_MINIMIZATION_GUARD_MAY_MINIMIZE))
            return complain(finding, "minimization begins without permission");
    }
    return true;
}

static bool launches_are_between_measurements(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    const uint64_t launch = EFFECT_BIT(HF_VM_LAUNCH_EFFECT_LAUNCH_VM);
    return walker_effects_only_on(machine, launch,
                                  HF_SM_EVENT(HF_VM_LAUNCH_EVENT_MEASUREMENT_MATCHED) |
                                      HF_SM_EVENT(HF_VM_LAUNCH_EVENT_CONTROLS_PROVEN),
                                  finding) &&
           walker_effects_unreachable(machine, machine->closing_states, launch, finding);
}

/* Forward from where a snapshot may exist, not through its removal: no receipt, no end. */
static bool snapshot_is_removed_on_every_path(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    uint32_t with_snapshot = HF_SM_STATE(HF_VM_LAUNCH_STATE_SNAPSHOTTING), before;
    do {
        before = with_snapshot;
        for (size_t i = 0; i < machine->row_count; i++) {
            const struct hf_sm_row *row = &machine->rows[i];
            if ((with_snapshot & HF_SM_STATE(row->state)) && row->state != HF_VM_LAUNCH_STATE_CLEANING)
                with_snapshot |= HF_SM_STATE(row->next);
        }
    } while (with_snapshot != before);
    if (with_snapshot & (HF_SM_STATE(HF_VM_LAUNCH_STATE_SEALING) | machine->terminal_states))
        return complain(finding, "a receipt can be sealed while the snapshot still exists");
    return true;
}

static const struct invariant invariants[] = {
    {"I1: execute only after a durable action", &hf_campaign_machine, dispatch_follows_durable_action},
    {"I1: an attempt only after its durable sequence", &hf_minimization_machine, attempt_follows_durable_sequence},
    {"I1: the session sends only what it is told", &hf_executor_session_machine, session_sends_only_what_it_is_told},
    {"I2: nothing runs after a violation", &hf_campaign_machine, nothing_runs_after_a_violation},
    {"I2: the session runs nothing under evidence", &hf_executor_session_machine, session_runs_nothing_under_evidence},
    {"I2: violations are heard", &hf_campaign_machine, violation_is_heard_wherever_a_session_lives},
    {"I3: the register comes first", &hf_executor_session_machine, register_comes_first},
    {"I3: bad ends pass the register", &hf_executor_session_machine, bad_ends_pass_the_register},
    {"I3: a registered target is never used", &hf_executor_session_machine, registered_target_is_never_used},
    {"I3: recovery registers first", &hf_campaign_machine, recovery_registers_first},
    {"I4: calls are reserved", &hf_strategist_call_machine, calls_are_reserved},
    {"I4: calls are charged", &hf_strategist_call_machine, calls_are_charged},
    {"I5: one request in flight", &hf_executor_session_machine, one_request_in_flight},
    {"I5: a mismatch ends the session", &hf_executor_session_machine, mismatch_ends_the_session},
    {"I6: passed only with a durable summary", &hf_campaign_machine, passes_only_with_durable_summary},
    {"I6: a summary seals the verdict", &hf_campaign_machine, summary_seals_the_verdict},
    {"I6: every state survives", &hf_campaign_machine, every_state_survives_restart_and_full_disk},
    {"cancel, full disk and restart end dispatch", &hf_campaign_machine, cancel_ends_dispatch},
    {"I8: the campaign asks permission", &hf_campaign_machine, minimization_needs_permission},
    {"I8: minimization asks again", &hf_minimization_machine, local_violation_is_never_minimized},
    {"launches stand between measurements", &hf_vm_launch_machine, launches_are_between_measurements},
    {"the snapshot is removed on every path", &hf_vm_launch_machine, snapshot_is_removed_on_every_path},
};

const struct invariant *invariants_all(size_t *count)
{
    *count = sizeof invariants / sizeof invariants[0];
    return invariants;
}
