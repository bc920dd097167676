/* The shell of executor_session: performs its effects in the world, and its reports on the campaign. */
#include "sim.h"

enum { SIM_GRACE_MS = 25000 };

void sim_session_start(struct sim *sim)
{
    hf_sm_init(&sim->session, sim->tables.session);
    sim->session_exists = true;
    sim->session_facts = (struct hf_executor_session_facts){0};
    sim_executor_start(sim);
    sim_schedule_timer(sim, SIM_SESSION_DEADLINE,
                       hf_executor_session_deadline_ms(sim->session.state, &sim->session_times), ++sim->session_timer);
    sim->session_timer_state = sim->session.state;
}

static void register_target(struct sim *sim)
{
    sim->register_writing = true;
    sim->truth.register_pending = sim->truth.target_used_up = true;
    sim->executor.unanswered = false; /* given up */
    sim_write(sim, SIM_REGISTER_WRITTEN, true);
}

static void report(struct sim *sim, enum hf_executor_session_effect effect)
{
    switch (effect) {
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_READY:
        sim_post(sim, HF_CAMPAIGN_EVENT_SESSION_READY);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_REFUSED:
        sim_post(sim, HF_CAMPAIGN_EVENT_SESSION_REFUSED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_EXECUTE_ANSWERED:
        sim_post(sim, HF_CAMPAIGN_EVENT_EXECUTE_ANSWERED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_VIOLATION:
        sim_post(sim, HF_CAMPAIGN_EVENT_VIOLATION_ANSWERED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_FINALIZE_ANSWERED:
        sim_post(sim, HF_CAMPAIGN_EVENT_FINALIZE_ANSWERED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_STORAGE_FAILED:
        sim_post(sim, HF_CAMPAIGN_EVENT_STORAGE_FAILED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_CLOSED:
        sim_post(sim, HF_CAMPAIGN_EVENT_SESSION_CLOSED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_QUARANTINED:
        sim->truth.session_ended_badly = true;
        sim_post(sim, HF_CAMPAIGN_EVENT_SESSION_QUARANTINED);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_REPORT_LOST:
        sim->truth.session_ended_badly = true;
        sim_post(sim, HF_CAMPAIGN_EVENT_SESSION_LOST);
        break;
    default:
        break;
    }
}

static void perform(struct sim *sim, enum hf_executor_session_effect effect)
{
    sim_tell(sim, "    session effect: %s", hf_executor_session_machine.effect_names[effect]);
    sim_check_session_effect(sim, effect);
    switch (effect) {
    case HF_EXECUTOR_SESSION_EFFECT_REGISTER_QUARANTINE:
        register_target(sim);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_ARM_DEADLINE:
        sim_schedule_timer(sim, SIM_SESSION_DEADLINE,
                           hf_executor_session_deadline_ms(sim->session.state, &sim->session_times),
                           ++sim->session_timer);
        sim->session_timer_state = sim->session.state;
        break;
    case HF_EXECUTOR_SESSION_EFFECT_SEND_INITIALIZE:
        sim_executor_hear(sim, SIM_REQUEST_INITIALIZE);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_SEND_EXECUTE:
        sim_executor_hear(sim, SIM_REQUEST_EXECUTE);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_SEND_FINALIZE:
        sim_executor_hear(sim, SIM_REQUEST_FINALIZE);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_SEND_QUARANTINE:
        sim_executor_hear(sim, SIM_REQUEST_QUARANTINE);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_SEND_SHUTDOWN:
        sim_executor_hear(sim, SIM_REQUEST_SHUTDOWN);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_CLOSE_STDIN:
        sim_executor_stdin_closed(sim);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_AWAIT_EXIT:
        if (!sim->executor.process_alive)
            sim_schedule(sim, SIM_PROCESS_ENDS, 0, (int)sim->executor.exit);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_TERMINATE_WRAPPER:
        sim_executor_signal(sim, false);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_KILL_WRAPPER:
        sim_executor_signal(sim, true);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_RECORD_QUARANTINE_ANSWER:
        sim->disk.quarantine_answer = true;
        break;
    default:
        report(sim, effect);
        break;
    }
}

static void step(struct sim *sim, uint8_t event)
{
    uint64_t end_ms = sim->started_ms + sim->budget_ms + SIM_GRACE_MS;
    sim->session_facts.remaining_ms = end_ms > sim->now_ms ? end_ms - sim->now_ms : 0;
    struct hf_sm_result result =
        sim_step(sim, &sim->session, sim->coverage ? sim->coverage->session : NULL, event, &sim->session_facts);
    sim_tell(sim, "  session: %s -> %s on %s%s", hf_executor_session_machine.state_names[result.from],
             hf_executor_session_machine.state_names[result.to], hf_executor_session_machine.event_names[event],
             result.accepted ? "" : " REJECTED");
    if (!result.accepted) {
        sim_check_rejected(sim, SIM_SESSION, result.from, event);
        return;
    }
    uint32_t serial = sim->executor.serial;
    if (event == HF_EXECUTOR_SESSION_EVENT_DEADLINE)
        sim->executor.unanswered = sim->truth.register_pending = false;
    sim_journal(sim, SIM_SESSION, &result, false);
    for (uint8_t i = 0; i < result.effect_count && !sim_instant(sim); i++)
        perform(sim, (enum hf_executor_session_effect)result.effects[i]);
    if (sim->crashed)
        return;
    sim_check_request(sim, &result, serial);
}

void sim_session_event(struct sim *sim, enum hf_executor_session_event event)
{
    if (sim->session_pending_count == SIM_MAX_PENDING) {
        sim_broken(sim, "the session's queue is full");
        return;
    }
    sim->session_pending[sim->session_pending_count++] = (uint8_t)event;
    if (sim->session_stepping)
        return;
    sim->session_stepping = true;
    for (unsigned i = 0; i < sim->session_pending_count && !sim->crashed; i++)
        step(sim, sim->session_pending[i]);
    sim->session_pending_count = 0;
    sim->session_stepping = false;
    if (!sim->crashed)
        sim_check_timers(sim);
}

void sim_session_unless_ended(struct sim *sim, enum hf_executor_session_event event)
{
    if (sim->session_exists && !hf_sm_is_terminal(&sim->session))
        sim_session_event(sim, event);
}
