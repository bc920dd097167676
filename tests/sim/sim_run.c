/* One run from request to end, with every crash and restart between; see sim.h. */
#include "sim.h"

enum { STEPS_LIMIT = 5000, CRASHES_LIMIT = 3 };

/* At most a few crashes; a recovery is short, so that it is hit as well. */
static void plan_crash(struct sim *sim)
{
    bool again = sim->truth.crashes == 0 || sim_below(sim, 2);
    bool crashes = (sim->faults & SIM_FAULT_CRASH) && sim->truth.crashes < CRASHES_LIMIT && again;
    static const uint32_t spans[] = {20, 100, 400};
    uint32_t within = sim->truth.crashes == 0 ? spans[sim_below(sim, 3)] : 12;
    sim->instants_to_crash = crashes ? 1 + sim_below(sim, within) : 0;
}

/* Runs until the campaign is terminal and nothing of it is alive, or nothing can happen any more. */
static void run_life(struct sim *sim)
{
    struct sim_occurrence occurrence;
    while (!sim->failure[0]) {
        bool over = hf_sm_is_terminal(&sim->campaign) &&
                    (!sim->session_exists || hf_sm_is_terminal(&sim->session) || !sim->executor.exists) &&
                    (!sim->strategist_exists || hf_sm_is_terminal(&sim->strategist));
        if (over)
            return;
        if (++sim->steps > STEPS_LIMIT || !sim_next(sim, &occurrence)) {
            sim_broken(sim, "stuck: campaign %s, session %s, strategist %s", hf_sm_state_name(&sim->campaign),
                       hf_sm_state_name(&sim->session), hf_sm_state_name(&sim->strategist));
            return;
        }
        sim_occurs(sim, &occurrence);
        if (!sim->crashed) {
            sim_check_instant(sim);
        } else {
            sim->truth.crashes++;
            plan_crash(sim);
            sim_recover(sim);
        }
    }
}

static bool needs_another_start(const struct sim *sim)
{
    const struct sim_disk *disk = &sim->disk;
    bool agree = disk->summary.exists && disk->public_summary.exists &&
                 disk->summary.category == disk->public_summary.category &&
                 disk->summary.passed == disk->public_summary.passed &&
                 disk->summary.passed == (sim->campaign.state == HF_CAMPAIGN_STATE_PASSED);
    return !agree || (sim->truth.session_ended_badly && !disk->target_registered);
}

const struct sim_tables sim_real_tables = {&hf_campaign_machine, &hf_executor_session_machine,
                                           &hf_strategist_call_machine};

bool sim_run(struct sim *sim, const struct sim_tables *tables, uint64_t seed, bool trace, struct sim_coverage *coverage)
{
    sim_world_init(sim, seed);
    sim->coverage = coverage;
    sim->tables = *tables;
    sim->trace = trace;
    hf_sm_init(&sim->campaign, tables->campaign);
    hf_sm_init(&sim->session, tables->session);
    hf_sm_init(&sim->strategist, tables->strategist);
    plan_crash(sim);
    for (int cancels = (int)sim_below(sim, 4); cancels > 0; cancels--) {
        uint32_t delay_ms = sim_below(sim, 500000);
        if (sim->faults & SIM_FAULT_CANCEL)
            sim_schedule(sim, SIM_CANCEL, delay_ms, 0);
    }
    sim_schedule_timer(sim, SIM_CAMPAIGN_TIMER, hf_campaign_state_timeout_ms(sim->campaign.state, &sim->times),
                       ++sim->campaign_timer);
    sim_schedule(sim, SIM_START, sim_below(sim, 30000), 0);
    run_life(sim);
    /* A disk that was full or broken is repaired, and the controller started again. */
    if (!sim->failure[0] && needs_another_start(sim)) {
        sim->faults &= ~(unsigned)(SIM_FAULT_DISK | SIM_FAULT_CRASH);
        sim->instants_to_crash = 0;
        sim_recover(sim);
        run_life(sim);
        sim->faults |= SIM_FAULT_DISK;
    }
    if (!sim->failure[0])
        sim_check_end(sim);
    sim_tell(sim, "end: %s, %u rejected", hf_campaign_category_name(sim->disk.summary.category), sim->rejected);
    return !sim->failure[0];
}
