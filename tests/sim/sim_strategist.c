/*
 * The strategist, built in or a program as unreliable as a seed wants it, and the shell of its machine. The broker is a
 * coin: the machine has to cope with either word.
 */
#include "sim.h"

void sim_strategist_start(struct sim *sim)
{
    enum hf_strategist_kind kind = sim->facts.strategist_charges_credits ? HF_STRATEGIST_KIND_COPILOT
                                   : sim_below(sim, 2)                   ? HF_STRATEGIST_KIND_COMMAND
                                                                         : HF_STRATEGIST_KIND_BUILT_IN;
    hf_sm_init(&sim->strategist, sim->tables.strategist);
    hf_strategist_call_facts_init(&sim->strategist_facts, kind, sim->facts.credits_budget);
    sim->strategist_exists = true;
    sim_strategist_event(sim, HF_STRATEGIST_CALL_EVENT_START);
}

static void run_process(struct sim *sim, bool call)
{
    bool built_in = sim->strategist_facts.kind == HF_STRATEGIST_KIND_BUILT_IN;
    sim->strategist_process = true;
    sim->strategist_stopped = false;
    sim->strategist_facts.usage_known = call && !sim_fails(sim, SIM_FAULT_STRATEGIST, 200);
    sim->strategist_facts.usage_credits = sim_below(sim, 45); /* the limit of one call is a soft one */
    if (sim_fails(sim, SIM_FAULT_STRATEGIST, 60) && !built_in)
        return; /* hangs */
    bool fails = sim_fails(sim, SIM_FAULT_STRATEGIST, 60) && !built_in;
    sim_schedule(sim, SIM_STRATEGIST_RETURNS, built_in ? 0 : sim_below(sim, 20000), !fails);
}

static void stop_process(struct sim *sim)
{
    sim->strategist_stopped = true;
    sim->strategist_facts.usage_known = false;
    if (!sim_fails(sim, SIM_FAULT_STRATEGIST, 100))
        sim_schedule(sim, SIM_STRATEGIST_ENDS, sim_below(sim, 6000), 0);
}

static void report(struct sim *sim, enum hf_strategist_call_effect effect)
{
    bool preflight = sim->preflight_running;
    if (effect == HF_STRATEGIST_CALL_EFFECT_REPORT_READY)
        sim_post(sim, HF_CAMPAIGN_EVENT_PREFLIGHT_PASSED);
    else if (effect == HF_STRATEGIST_CALL_EFFECT_REPORT_CHOICE)
        sim_post(sim, HF_CAMPAIGN_EVENT_CASE_CHOSEN);
    else if (effect == HF_STRATEGIST_CALL_EFFECT_REPORT_REFUSED)
        sim_post(sim, preflight ? HF_CAMPAIGN_EVENT_PREFLIGHT_FAILED : HF_CAMPAIGN_EVENT_STRATEGIST_REFUSED);
    else if (effect == HF_STRATEGIST_CALL_EFFECT_REPORT_EXHAUSTED)
        sim_post(sim, preflight ? HF_CAMPAIGN_EVENT_PREFLIGHT_FAILED : HF_CAMPAIGN_EVENT_STRATEGIST_EXHAUSTED);
    sim->preflight_running = false;
}

static void perform(struct sim *sim, enum hf_strategist_call_effect effect)
{
    sim_tell(sim, "    strategist effect: %s", hf_strategist_call_machine.effect_names[effect]);
    sim_check_strategist_effect(sim, effect);
    switch (effect) {
    case HF_STRATEGIST_CALL_EFFECT_ARM_TIMER:
        sim_schedule_timer(sim, SIM_STRATEGIST_TIMER,
                           hf_strategist_call_timeout_ms(sim->strategist.state, &sim->strategist_times),
                           ++sim->strategist_timer);
        sim->strategist_timer_state = sim->strategist.state;
        break;
    case HF_STRATEGIST_CALL_EFFECT_RUN_VERSION_CHECK:
    case HF_STRATEGIST_CALL_EFFECT_RUN_TOOL_SURFACE_PROOF:
        run_process(sim, false);
        break;
    case HF_STRATEGIST_CALL_EFFECT_RUN_SMOKE:
    case HF_STRATEGIST_CALL_EFFECT_INVOKE:
    case HF_STRATEGIST_CALL_EFFECT_INVOKE_REPAIR:
        run_process(sim, true);
        break;
    case HF_STRATEGIST_CALL_EFFECT_PARSE_ANSWER:
        sim_strategist_event(sim, sim_fails(sim, SIM_FAULT_STRATEGIST, 400) ? HF_STRATEGIST_CALL_EVENT_ANSWER_REJECTED
                                                                            : HF_STRATEGIST_CALL_EVENT_ANSWER_ACCEPTED);
        break;
    case HF_STRATEGIST_CALL_EFFECT_STOP_PROCESS:
        stop_process(sim);
        break;
    case HF_STRATEGIST_CALL_EFFECT_REPORT_READY:
    case HF_STRATEGIST_CALL_EFFECT_REPORT_CHOICE:
    case HF_STRATEGIST_CALL_EFFECT_REPORT_REFUSED:
    case HF_STRATEGIST_CALL_EFFECT_REPORT_EXHAUSTED:
        report(sim, effect);
        break;
    default:
        break;
    }
}

static void step(struct sim *sim, uint8_t event)
{
    sim->strategist_facts.time_left = sim->facts.remaining_ms > sim->facts.finalization_reserve_ms;
    struct hf_sm_result result = sim_step(sim, &sim->strategist, sim->coverage ? sim->coverage->strategist : NULL,
                                          event, &sim->strategist_facts);
    sim_tell(sim, "  strategist: %s -> %s on %s%s", hf_strategist_call_machine.state_names[result.from],
             hf_strategist_call_machine.state_names[result.to], hf_strategist_call_machine.event_names[event],
             result.accepted ? "" : " REJECTED");
    if (!result.accepted) {
        sim_check_rejected(sim, SIM_STRATEGIST, result.from, event);
        return;
    }
    sim_journal(sim, SIM_STRATEGIST, &result, false);
    for (uint8_t i = 0; i < result.effect_count && !sim_instant(sim); i++)
        perform(sim, (enum hf_strategist_call_effect)result.effects[i]);
}

void sim_strategist_event(struct sim *sim, enum hf_strategist_call_event event)
{
    if (sim->strategist_pending_count == SIM_MAX_PENDING) {
        sim_broken(sim, "the strategist's queue is full");
        return;
    }
    sim->strategist_pending[sim->strategist_pending_count++] = (uint8_t)event;
    if (sim->strategist_stepping)
        return;
    sim->strategist_stepping = true;
    for (unsigned i = 0; i < sim->strategist_pending_count && !sim->crashed; i++)
        step(sim, sim->strategist_pending[i]);
    sim->strategist_pending_count = 0;
    sim->strategist_stepping = false;
    if (!sim->crashed)
        sim_check_timers(sim);
}

void sim_strategist_returns(struct sim *sim, bool good)
{
    if (!sim->strategist_process || sim->strategist_stopped)
        return;
    sim->strategist_process = false;
    if (!good) {
        sim_strategist_event(sim, HF_STRATEGIST_CALL_EVENT_PROCESS_FAILED);
        return;
    }
    uint8_t state = sim->strategist.state;
    sim_strategist_event(sim, state == HF_STRATEGIST_CALL_STATE_CHECKING_VERSION
                                  ? HF_STRATEGIST_CALL_EVENT_VERSION_PASSED
                              : state == HF_STRATEGIST_CALL_STATE_PROVING_TOOLS ? HF_STRATEGIST_CALL_EVENT_TOOLS_PROVEN
                              : state == HF_STRATEGIST_CALL_STATE_SMOKE         ? HF_STRATEGIST_CALL_EVENT_SMOKE_PASSED
                                                                        : HF_STRATEGIST_CALL_EVENT_PROCESS_ANSWERED);
}
