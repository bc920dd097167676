/* The world's random numbers, its clock, its disk and its crashes; see sim.h. */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static uint64_t next_random(struct sim *sim)
{
    uint64_t mixed = (sim->random += UINT64_C(0x9e3779b97f4a7c15));
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint32_t sim_below(struct sim *sim, uint32_t bound)
{
    return (uint32_t)(next_random(sim) % bound);
}

bool sim_fails(struct sim *sim, enum sim_fault fault, uint32_t per_mille)
{
    /* Drawn in any case, so that a seed plays the same story with and without a kind of fault. */
    bool drawn = sim_below(sim, 1000) < per_mille;
    return drawn && (sim->faults & fault);
}

void sim_tell(const struct sim *sim, const char *format, ...)
{
    if (!sim->trace)
        return;
    va_list arguments;
    va_start(arguments, format);
    printf("%9llu ms  ", (unsigned long long)sim->now_ms);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

static void schedule(struct sim *sim, struct sim_occurrence occurrence)
{
    if (sim->occurrence_count == SIM_MAX_OCCURRENCES) {
        sim_broken(sim, "too many things are going to happen: something is started again and again");
        return;
    }
    sim->occurrences[sim->occurrence_count++] = occurrence;
}

void sim_schedule(struct sim *sim, enum sim_occurrence_kind kind, uint64_t delay_ms, int value)
{
    schedule(sim, (struct sim_occurrence){.kind = kind, .at_ms = sim->now_ms + delay_ms, .value = value});
}

void sim_schedule_timer(struct sim *sim, enum sim_occurrence_kind kind, uint64_t delay_ms, uint32_t generation)
{
    for (unsigned i = 0; i < sim->occurrence_count; i++) {
        if (sim->occurrences[i].kind == kind)
            sim->occurrences[i--] = sim->occurrences[--sim->occurrence_count];
    }
    if (sim_fails(sim, SIM_FAULT_CLOCK, 20))
        delay_ms = sim_below(sim, (uint32_t)delay_ms + 1);
    schedule(sim, (struct sim_occurrence){.kind = kind, .at_ms = sim->now_ms + delay_ms, .generation = generation});
}

void sim_schedule_speech(struct sim *sim, uint64_t delay_ms, enum sim_speech speech, uint32_t serial)
{
    schedule(sim, (struct sim_occurrence){
                      .kind = SIM_SPEECH, .at_ms = sim->now_ms + delay_ms, .value = (int)speech, .serial = serial});
}

bool sim_next(struct sim *sim, struct sim_occurrence *occurrence)
{
    if (sim->occurrence_count == 0)
        return false;
    unsigned earliest = 0, equals = 1;
    for (unsigned i = 1; i < sim->occurrence_count; i++) {
        uint64_t at_ms = sim->occurrences[i].at_ms, best_ms = sim->occurrences[earliest].at_ms;
        if (at_ms < best_ms)
            equals = 1;
        if (at_ms < best_ms || (at_ms == best_ms && sim_below(sim, ++equals) == 0))
            earliest = i;
    }
    *occurrence = sim->occurrences[earliest];
    sim->occurrences[earliest] = sim->occurrences[--sim->occurrence_count];
    sim->now_ms = occurrence->at_ms;
    return true;
}

void sim_write(struct sim *sim, enum sim_occurrence_kind kind, bool of_register)
{
    const struct sim_disk *disk = &sim->disk;
    uint64_t from_ms = of_register ? disk->register_from_ms : disk->full_from_ms;
    uint64_t until_ms = of_register ? disk->register_until_ms : disk->full_until_ms;
    bool full = (sim->faults & SIM_FAULT_DISK) && sim->now_ms >= from_ms && sim->now_ms < until_ms;
    bool fails = sim_fails(sim, SIM_FAULT_DISK, 5) || full;
    if (sim_fails(sim, SIM_FAULT_DISK, 5) && kind != SIM_LINE_WRITTEN)
        return; /* never comes back */
    bool slow = sim_fails(sim, SIM_FAULT_DISK, 10);
    sim->truth.write_failed = sim->truth.write_failed || fails || slow;
    sim_schedule(sim, kind, sim_below(sim, sim->write_ms) + (slow ? 2 * sim->times.storage_ms : 0), !fails);
}

bool sim_instant(struct sim *sim)
{
    if (sim->crashed)
        return true;
    if (sim->instants_to_crash > 0 && --sim->instants_to_crash == 0) {
        sim_tell(sim, "kill -9");
        sim->crashed = true;
    }
    return sim->crashed;
}

static void draw_times(struct sim *sim)
{
    sim->times = (struct hf_campaign_times){
        .queue_ms = 60000,
        .preflight_ms = 120000,
        .initialize_ms = 250000,
        .strategist_ms = 300000,
        .action_ms = 100000,
        .finalize_ms = 145000,
        .minimization_ms = 600000,
        .storage_ms = 10000,
        .storage_retry_ms = 1000,
    };
    sim->session_times = (struct hf_executor_session_times){
        .spawn_ms = 10000,
        .initialize_ms = 250000,
        .idle_ms = 400000,
        .execute_ms = 100000,
        .finalize_ms = 145000,
        .quarantine_ms = 60000,
        .shutdown_ms = 25000,
        .exit_ms = 10000,
        .register_ms = 10000,
        .term_ms = 5000,
        .kill_ms = 5000,
    };
    sim->strategist_times = (struct hf_strategist_call_times){
        .version_ms = 30000,
        .proof_ms = 30000,
        .smoke_ms = 60000,
        .idle_ms = 2000000,
        .call_ms = 60000,
        .parse_ms = 1000,
        .stop_ms = 10000,
    };
}

void sim_world_init(struct sim *sim, uint64_t seed)
{
    /* The kinds of fault of a seed: none in one of eight, then one kind alone, then all of them. */
    static const unsigned profiles[8] = {0,
                                         SIM_FAULT_EXECUTOR,
                                         SIM_FAULT_STRATEGIST,
                                         SIM_FAULT_DISK,
                                         SIM_FAULT_CRASH,
                                         SIM_FAULT_CANCEL | SIM_FAULT_EXECUTOR,
                                         SIM_FAULT_CRASH | SIM_FAULT_DISK | SIM_FAULT_EXECUTOR,
                                         ~0U};
    memset(sim, 0, sizeof *sim);
    sim->seed = seed;
    sim->random = seed * UINT64_C(0xd1342543de82ef95) + 1;
    sim->faults = profiles[seed % 8];
    draw_times(sim);
    hf_campaign_facts_init(&sim->facts);
    sim->budget_ms = 200000 + sim_below(sim, 700000);
    sim->write_ms = sim_below(sim, 4) == 0 ? 5000 : 20;
    sim->facts.replay = sim_below(sim, 5) == 0;
    sim->facts.local_executor = sim_below(sim, 2);
    sim->facts.minimize_wanted = sim_below(sim, 2);
    sim->facts.strategist_charges_credits = !sim->facts.replay && sim_below(sim, 3) == 0;
    sim->facts.actions_budget = 1 + sim_below(sim, 10);
    sim->facts.credits_budget = sim_below(sim, 360);
    sim->facts.finalization_reserve_ms = 145000;
    sim->facts.minimization_reserve_ms = 100000;
    sim->candidates = sim->cases_left = 1 + sim_below(sim, 8);
    sim->disk.full_from_ms = sim_below(sim, 400000);
    sim->disk.full_until_ms = sim->disk.full_from_ms + sim_below(sim, 200000);
    sim->disk.register_from_ms = sim_below(sim, 400000);
    sim->disk.register_until_ms = sim->disk.register_from_ms + sim_below(sim, 200000);
}
