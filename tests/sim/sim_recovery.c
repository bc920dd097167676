/* The controller's next start, as statemachines/README.md orders it: replay the journal, then end what is not ended. */
#include "sim.h"

#include <string.h>

static bool landed(struct sim *sim, bool under_way)
{
    return under_way && sim_below(sim, 2);
}

/* What was on its way to the disk when the controller died may have arrived, without anyone having been told. */
static void settle_disk(struct sim *sim)
{
    struct sim_disk *disk = &sim->disk;
    if (landed(sim, sim->queue_count > 0) && !sim->journal_failed && disk->line_count < SIM_MAX_LINES)
        disk->lines[disk->line_count++] = sim->queue[0];
    disk->actions += landed(sim, sim->action_writing);
    disk->observations += landed(sim, sim->observation_writing);
    if (landed(sim, sim->register_writing))
        disk->target_registered = true;
    if (landed(sim, sim->summary_writing)) {
        disk->summary = sim->writing;
        if (sim_below(sim, 2))
            disk->public_summary = sim->writing;
    }
}

/* Everything of the dead process goes; its children with it (their control sockets closed). */
static void forget(struct sim *sim)
{
    struct hf_campaign_facts fixed = sim->facts;
    hf_campaign_facts_init(&sim->facts);
    sim->facts.replay = fixed.replay;
    sim->facts.local_executor = fixed.local_executor;
    sim->facts.minimize_wanted = fixed.minimize_wanted;
    sim->facts.actions_budget = fixed.actions_budget;
    sim->facts.credits_budget = fixed.credits_budget;
    sim->facts.finalization_reserve_ms = fixed.finalization_reserve_ms;
    sim->facts.minimization_reserve_ms = fixed.minimization_reserve_ms;
    sim->occurrence_count = sim->pending_count = sim->queue_count = 0;
    sim->session_pending_count = sim->strategist_pending_count = 0;
    sim->crashed = sim->stepping = sim->journaling = sim->journal_failed = sim->preflight_running = false;
    sim->minimizing = sim->session_stepping = sim->strategist_stepping = sim->strategist_process = false;
    sim->action_writing = sim->observation_writing = sim->summary_writing = sim->register_writing = false;
    sim->answer_category = sim->finalization_category = HF_CAMPAIGN_CATEGORY_NONE;
    sim->executor = (struct sim_executor){0};
    sim->session_facts = (struct hf_executor_session_facts){0};
    sim->session_exists = sim->strategist_exists = sim->truth.register_pending = false;
    hf_sm_init(&sim->campaign, sim->tables.campaign);
    hf_sm_init(&sim->session, sim->tables.session);
    hf_sm_init(&sim->strategist, sim->tables.strategist);
}

static void replay_line(struct sim *sim, const struct sim_line *line)
{
    struct hf_executor_session_facts session_facts = {0};
    struct hf_strategist_call_facts strategist_facts = {0};
    struct hf_sm_instance *instance = line->machine == SIM_CAMPAIGN  ? &sim->campaign
                                      : line->machine == SIM_SESSION ? &sim->session
                                                                     : &sim->strategist;
    void *facts = line->machine == SIM_CAMPAIGN  ? (void *)&sim->facts
                  : line->machine == SIM_SESSION ? (void *)&session_facts
                                                 : (void *)&strategist_facts;
    struct hf_sm_result result = hf_sm_replay(instance, line->event, line->guard, facts);
    if (!result.accepted || result.to != line->to)
        sim_broken(sim, "the journal does not replay: %s, event %s", hf_sm_state_name(instance),
                   instance->definition->event_names[line->event]);
    if (line->machine == SIM_CAMPAIGN) {
        hf_campaign_conclude(&sim->facts, line->category);
        /* The effect of this row starts the session. */
        sim->session_exists = sim->session_exists || result.to == HF_CAMPAIGN_STATE_INITIALIZING;
    }
}

/* A target whose session ended badly has to be in the register, which may not have been writable then. So does one
 * whose session has no recorded end. */
static void reconcile_register(struct sim *sim)
{
    if (sim->session_exists && sim->session.state != HF_EXECUTOR_SESSION_STATE_CLOSED)
        sim->disk.target_registered = true;
}

static bool summaries_agree(const struct sim_disk *disk)
{
    return disk->summary.exists && disk->public_summary.exists && disk->summary.passed == disk->public_summary.passed &&
           disk->summary.category == disk->public_summary.category;
}

static void restore_terminal(struct sim *sim)
{
    bool passed = sim->campaign.state == HF_CAMPAIGN_STATE_PASSED;
    const struct sim_document told = {true, passed, sim->facts.category};
    reconcile_register(sim);
    if (summaries_agree(&sim->disk) && sim->disk.summary.passed == passed)
        return;
    sim->disk.summary = sim->disk.public_summary = told;
}

void sim_recover(struct sim *sim)
{
    sim_tell(sim, "---- the controller starts again");
    sim->truth.starts++;
    settle_disk(sim);
    forget(sim);
    for (unsigned i = 0; i < sim->disk.line_count; i++)
        replay_line(sim, &sim->disk.lines[i]);
    sim->campaign_timer_state = sim->campaign.state; /* it is left at once, by one of the events below */
    if (sim->facts.category == HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION)
        sim->facts.violation_evidence = true;
    if (hf_sm_is_terminal(&sim->campaign)) {
        restore_terminal(sim);
        return;
    }
    bool sealed = sim->campaign.state == HF_CAMPAIGN_STATE_SUMMARIZING && sim->disk.summary.exists;
    if (!sealed && !summaries_agree(&sim->disk)) {
        sim_post(sim, HF_CAMPAIGN_EVENT_CONTROLLER_RESTARTED);
        return;
    }
    /* The run is over as its summary tells it; only the ends are tied up. */
    sim->disk.public_summary = sim->disk.summary;
    sim->facts.finalized_clean = sim->disk.summary.passed;
    sim->facts.category = sim->disk.summary.category;
    sim->facts.violation_evidence = sim->facts.category == HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION;
    reconcile_register(sim);
    if (sim->campaign.state == HF_CAMPAIGN_STATE_SUMMARIZING)
        sim_post(sim, HF_CAMPAIGN_EVENT_SUMMARY_DURABLE);
    else
        sim->campaign.state = sim->disk.summary.passed ? HF_CAMPAIGN_STATE_PASSED : HF_CAMPAIGN_STATE_FAILED;
}
