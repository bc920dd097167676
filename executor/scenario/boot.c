/*
 * Scenario "boot": the baseline before a campaign and the proof after it. One VM boots, answers and powers off. Nothing
 * is attacked: if this does not pass, no result of the target means anything.
 */
#include "executor/scenario/scenarios.h"

#include "guest/protocol.h"

static int boot_and_power_off(struct hf_phase *phase, struct hf_error *err)
{
    return hf_phase_boot(phase, err) ? -1 : hf_phase_request_end(phase, HF_GUEST_OP_POWEROFF, err);
}

int hf_scenario_boot(struct hf_run *run)
{
    static const struct hf_phase_plan plans[] = {
        {.name = "boot",
         .expected_end = HF_VM_END_POWEROFF,
         .processors = 1,
         .devices = {.control = true},
         .script = boot_and_power_off},
    };
    return hf_run_phases(run, plans, sizeof plans / sizeof plans[0]);
}
