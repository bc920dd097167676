/*
 * The target and its wrapper, as hostile as a seed wants them: late, silent, chatty, contradictory, quarantined by
 * itself, vanishing, ignoring signals. It hears requests one after the other, as a real executor does.
 */
#include "sim.h"

enum { EXECUTOR_NEVER_MS = 100000000 };

void sim_executor_start(struct sim *sim)
{
    sim->executor = (struct sim_executor){
        .exists = true,
        .hangs = sim_fails(sim, SIM_FAULT_EXECUTOR, 20),
        .ignores_term = sim_fails(sim, SIM_FAULT_EXECUTOR, 200),
        .ignores_kill = sim_fails(sim, SIM_FAULT_EXECUTOR, 20),
    };
    sim->session_facts.transport_open = true;
    uint64_t slow_ms = sim_fails(sim, SIM_FAULT_EXECUTOR, 20) ? sim->session_times.spawn_ms : 0;
    sim_schedule(sim, SIM_SPAWN, slow_ms + sim_below(sim, 5000), !sim_fails(sim, SIM_FAULT_EXECUTOR, 40));
}

static void die(struct sim *sim, uint64_t delay_ms, enum hf_executor_session_exit exit)
{
    if (sim_fails(sim, SIM_FAULT_EXECUTOR, 50))
        exit = HF_EXECUTOR_SESSION_EXIT_UNREAPED;
    uint64_t between_ms = sim_below(sim, 5);
    /* A shell that reads to the end first hears them in this order; one that gives up reading does not. */
    bool transport_first = !sim_fails(sim, SIM_FAULT_EXECUTOR, 300);
    sim_schedule(sim, SIM_TRANSPORT_CLOSES, delay_ms + (transport_first ? 0 : between_ms), 0);
    sim_schedule(sim, SIM_PROCESS_ENDS, delay_ms + (transport_first ? between_ms : 0), (int)exit);
}

static enum sim_speech choose_speech(struct sim *sim, enum sim_request request)
{
    if (sim_fails(sim, SIM_FAULT_EXECUTOR, 30))
        return SIM_SPEECH_GARBAGE;
    if (sim_fails(sim, SIM_FAULT_EXECUTOR, 20))
        return SIM_SPEECH_GARBAGE_WITH_EVIDENCE;
    if (request != SIM_REQUEST_SHUTDOWN && sim_fails(sim, SIM_FAULT_EXECUTOR, 40))
        return SIM_SPEECH_VIOLATION;
    if (sim_fails(sim, SIM_FAULT_EXECUTOR, 30))
        return SIM_SPEECH_ERROR;
    if (request == SIM_REQUEST_FINALIZE && sim_fails(sim, SIM_FAULT_EXECUTOR, 30))
        return SIM_SPEECH_SELF_QUARANTINED;
    bool may_fail = request != SIM_REQUEST_QUARANTINE && request != SIM_REQUEST_SHUTDOWN;
    if (may_fail && sim_fails(sim, SIM_FAULT_EXECUTOR, 60))
        return SIM_SPEECH_FAILED;
    return SIM_SPEECH_OK;
}

static uint64_t work_ms(struct sim *sim, enum sim_request request)
{
    uint32_t longest = request == SIM_REQUEST_SHUTDOWN || request == SIM_REQUEST_QUARANTINE ? 1000 : 60000;
    uint64_t late_ms = sim_fails(sim, SIM_FAULT_EXECUTOR, 40) ? sim->session_times.initialize_ms : 0;
    return 10 + sim_below(sim, longest) + late_ms;
}

void sim_executor_hear(struct sim *sim, enum sim_request request)
{
    struct sim_executor *executor = &sim->executor;
    executor->request = request;
    executor->unanswered = true;
    uint32_t serial = ++executor->serial;
    if (!executor->process_alive || !sim->session_facts.transport_open)
        return;
    if (executor->hangs || sim_fails(sim, SIM_FAULT_EXECUTOR, 20))
        executor->busy_until_ms = sim->now_ms + EXECUTOR_NEVER_MS;
    uint64_t wait_ms = executor->busy_until_ms > sim->now_ms ? executor->busy_until_ms - sim->now_ms : 0;
    if (wait_ms >= EXECUTOR_NEVER_MS / 2)
        return;
    uint64_t done_ms = wait_ms + work_ms(sim, request);
    executor->busy_until_ms = sim->now_ms + done_ms;
    if (sim_fails(sim, SIM_FAULT_EXECUTOR, 30)) {
        die(sim, sim_below(sim, (uint32_t)done_ms), HF_EXECUTOR_SESSION_EXIT_NONZERO);
        return;
    }
    enum sim_speech speech = choose_speech(sim, request);
    sim_schedule_speech(sim, done_ms, speech, serial);
    if (sim_fails(sim, SIM_FAULT_EXECUTOR, 30)) /* said twice, or something more */
        sim_schedule_speech(sim, done_ms + sim_below(sim, 2000), choose_speech(sim, request), serial);
    if (sim_fails(sim, SIM_FAULT_EXECUTOR, 30)) /* says or does something between two requests */
        sim_schedule_speech(sim, done_ms + sim_below(sim, 8000),
                            sim_below(sim, 2) ? SIM_SPEECH_GARBAGE : SIM_SPEECH_GARBAGE_WITH_EVIDENCE, 0);
    else if (sim_fails(sim, SIM_FAULT_EXECUTOR, 30))
        die(sim, done_ms + sim_below(sim, 8000), HF_EXECUTOR_SESSION_EXIT_NONZERO);
    bool goes =
        request == SIM_REQUEST_SHUTDOWN || request == SIM_REQUEST_QUARANTINE || speech == SIM_SPEECH_SELF_QUARANTINED;
    executor->leaving = goes;
    bool refused = (request == SIM_REQUEST_INITIALIZE && speech == SIM_SPEECH_FAILED) ||
                   (request != SIM_REQUEST_EXECUTE && speech == SIM_SPEECH_ERROR);
    if ((goes || refused) && !sim_fails(sim, SIM_FAULT_EXECUTOR, 50))
        die(sim, done_ms + 1 + sim_below(sim, 500),
            refused ? HF_EXECUTOR_SESSION_EXIT_NONZERO : HF_EXECUTOR_SESSION_EXIT_ZERO);
}

void sim_executor_stdin_closed(struct sim *sim)
{
    if (sim->executor.process_alive && !sim->executor.hangs)
        die(sim, 500 + sim_below(sim, 4000),
            sim->executor.leaving ? HF_EXECUTOR_SESSION_EXIT_ZERO : HF_EXECUTOR_SESSION_EXIT_NONZERO);
}

void sim_executor_signal(struct sim *sim, bool kill)
{
    sim->executor.signalled = true;
    if (!sim->executor.process_alive) {
        sim_schedule(sim, SIM_PROCESS_ENDS, 0, (int)sim->executor.exit);
        return;
    }
    bool ignored = kill ? sim->executor.ignores_kill : sim->executor.ignores_term;
    if (!ignored)
        die(sim, sim_below(sim, 2000), HF_EXECUTOR_SESSION_EXIT_NONZERO);
}

static bool shows_evidence(enum sim_speech speech)
{
    return speech == SIM_SPEECH_VIOLATION || speech == SIM_SPEECH_GARBAGE_WITH_EVIDENCE ||
           speech == SIM_SPEECH_SELF_QUARANTINED;
}

static void set_answer(struct sim *sim, enum sim_speech speech)
{
    static const enum hf_campaign_category failures[] = {
        HF_CAMPAIGN_CATEGORY_TEST_FAILURE, HF_CAMPAIGN_CATEGORY_TIMEOUT, HF_CAMPAIGN_CATEGORY_EXECUTOR_ERROR,
        HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE};
    enum sim_request request = sim->executor.request;
    bool failed = speech == SIM_SPEECH_FAILED || speech == SIM_SPEECH_ERROR;
    enum hf_campaign_category failure = failures[sim_below(sim, 4)];
    bool ends_it = speech == SIM_SPEECH_ERROR || (speech == SIM_SPEECH_FAILED && request == SIM_REQUEST_INITIALIZE);
    sim->session_facts.answer = ends_it ? HF_EXECUTOR_SESSION_ANSWER_ERROR : HF_EXECUTOR_SESSION_ANSWER_OK;
    if (request == SIM_REQUEST_EXECUTE)
        sim->answer_category = failed ? failure : HF_CAMPAIGN_CATEGORY_NONE;
    if (request == SIM_REQUEST_FINALIZE)
        sim->finalization_category = failed ? failure : HF_CAMPAIGN_CATEGORY_NONE;
    sim->truth.bad_answer = sim->truth.bad_answer || failed;
}

static void speak(struct sim *sim, const struct sim_occurrence *occurrence)
{
    struct sim_executor *executor = &sim->executor;
    enum sim_speech speech = (enum sim_speech)occurrence->value;
    if (!sim->session_facts.transport_open || hf_sm_is_terminal(&sim->session))
        return;
    sim_tell(sim, "executor: %d for request %u of kind %d", (int)speech, occurrence->serial, (int)executor->request);
    bool quarantine = executor->request == SIM_REQUEST_QUARANTINE;
    bool garbage = speech == SIM_SPEECH_GARBAGE || speech == SIM_SPEECH_GARBAGE_WITH_EVIDENCE;
    bool fits = occurrence->serial == executor->serial && executor->unanswered && !garbage &&
                hf_executor_session_awaits_response(sim->session.state);
    if (shows_evidence(speech)) {
        sim->session_facts.violation_evidence = true;
        bool verdict_open = sim->campaign.state < HF_CAMPAIGN_STATE_RECOVERING;
        sim->truth.evidence_seen = sim->truth.evidence_seen || verdict_open;
    }
    if (speech == SIM_SPEECH_SELF_QUARANTINED && !quarantine)
        sim->session_facts.self_quarantined = true;
    /* Whatever it was, the request that was awaited is not awaited any more. */
    if (hf_executor_session_awaits_response(sim->session.state))
        executor->unanswered = false;
    if (fits)
        set_answer(sim, speech);
    if (fits && quarantine && speech != SIM_SPEECH_ERROR)
        sim->truth.quarantine_answered = true;
    sim_session_event(sim, fits ? HF_EXECUTOR_SESSION_EVENT_RESPONSE : HF_EXECUTOR_SESSION_EVENT_BAD_RESPONSE);
}

void sim_executor_occurs(struct sim *sim, const struct sim_occurrence *occurrence)
{
    struct sim_executor *executor = &sim->executor;
    switch (occurrence->kind) {
    case SIM_SPAWN:
        executor->process_alive = occurrence->value && !executor->signalled;
        sim->session_facts.transport_open = executor->process_alive;
        executor->exit = HF_EXECUTOR_SESSION_EXIT_NONZERO;
        sim_session_unless_ended(sim, occurrence->value ? HF_EXECUTOR_SESSION_EVENT_SPAWNED
                                                        : HF_EXECUTOR_SESSION_EVENT_SPAWN_FAILED);
        break;
    case SIM_SPEECH:
        speak(sim, occurrence);
        break;
    case SIM_TRANSPORT_CLOSES:
        if (sim->session_facts.transport_open) {
            sim->session_facts.transport_open = false;
            sim_session_unless_ended(sim, HF_EXECUTOR_SESSION_EVENT_TRANSPORT_CLOSED);
        }
        break;
    case SIM_PROCESS_ENDS:
        if (executor->process_alive) {
            executor->process_alive = false;
            executor->exit = (enum hf_executor_session_exit)occurrence->value;
            sim->session_facts.exit = executor->exit;
        }
        sim_session_unless_ended(sim, HF_EXECUTOR_SESSION_EVENT_PROCESS_ENDED);
        break;
    default:
        break;
    }
}
