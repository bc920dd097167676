/*
 * Scenario "lifecycle". It has to show: "ready marker and control ping; clean poweroff, panic, triple fault, guest
 * reset and a killed VMM are each told apart; no process or socket is left."
 *
 * Five VMs with the same devices, so that nothing but the end differs; each must be classified as exactly its own end.
 */
#include "executor/scenario/scenarios.h"

#include "guest/protocol.h"

#include <string.h>

/* "ready marker and control ping" is hf_phase_boot() in each phase; "each told apart" is expected_end, which phase.c
 * checks as "exit-classification"; "no process or socket is left" is its check "teardown". */
static int end_by_operation(struct hf_phase *phase, struct hf_error *err)
{
    return hf_phase_boot(phase, err) || hf_vm_trace_exits(&phase->vm, err)
               ? -1
               : hf_phase_request_end(phase, phase->plan->argument, err);
}

static int end_by_kill(struct hf_phase *phase, struct hf_error *err)
{
    return hf_phase_boot(phase, err) ? -1 : hf_vm_kill(&phase->vm, err);
}

#define SAME_DEVICES .processors = 1, .devices = {.control = true, .panic_device = true}

const struct hf_phase_plan hf_lifecycle_plans[] = {
    {.name = "clean-poweroff",
     .expected_end = HF_VM_END_POWEROFF,
     SAME_DEVICES,
     .script = end_by_operation,
     .argument = HF_GUEST_OP_POWEROFF},
    {.name = "panic",
     .expected_end = HF_VM_END_PANIC,
     SAME_DEVICES,
     .script = end_by_operation,
     .argument = HF_GUEST_OP_PANIC},
    {.name = "triple-fault",
     .expected_end = HF_VM_END_TRIPLE_FAULT,
     SAME_DEVICES,
     .script = end_by_operation,
     .argument = HF_GUEST_OP_TRIPLE_FAULT},
    {.name = "guest-reset",
     .expected_end = HF_VM_END_RESET,
     SAME_DEVICES,
     .script = end_by_operation,
     .argument = HF_GUEST_OP_REBOOT},
    {.name = "killed-vmm", .expected_end = HF_VM_END_KILLED, SAME_DEVICES, .script = end_by_kill},
};
#define PLAN_COUNT (sizeof hf_lifecycle_plans / sizeof hf_lifecycle_plans[0])

int hf_scenario_lifecycle(struct hf_run *run)
{
    hf_run_phases(run, hf_lifecycle_plans, PLAN_COUNT);
    /* "are each told apart": also from one another, not only each from what was expected of it */
    size_t distinct = 0;
    for (int i = 0; i < cJSON_GetArraySize(run->vms); i++) {
        const char *end = hf_json_get_string(cJSON_GetArrayItem(run->vms, i), "classification");
        int earlier = 0;
        while (earlier < i &&
               strcmp(end, hf_json_get_string(cJSON_GetArrayItem(run->vms, earlier), "classification")) != 0)
            earlier++;
        distinct += earlier == i;
    }
    hf_run_check(run, "ends-told-apart", distinct == PLAN_COUNT, "5 different classifications", "%zu", distinct);
    return run->broken || run->error.code ? -1 : 0;
}
