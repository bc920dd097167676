/*
 * Scenario "smp-lapic". It has to show: "2 and 4 processors; timer and IPI progress on each; offline/online; no
 * processor starves."
 *
 * The guest's probe (guest/probes/smp_lapic.c) counts interrupts and work on each processor. What a guest says about
 * itself is only half of it: the host looks at QEMU's own list of processors and at the time that each of their threads
 * was given.
 */
#include "executor/scenario/scenarios.h"

#include "common/cleanup.h"
#include "common/process/proc_stat.h"
#include "guest/protocol.h"

#include <stdio.h>
#include <string.h>

#define CHURN_ROUNDS 2

/* Processor time of one thread of the VMM so far, in clock ticks; -1 when it cannot be read. */
static long thread_ticks(pid_t pid, int64_t thread)
{
    struct proc_stat stat;
    return proc_stat_read(pid, (pid_t)thread, &stat) == 0 ? (long)stat.cpu_ticks : -1;
}

/* Every processor has a thread of its own in the VMM, and that thread has been given time. */
static int check_host_view(struct hf_phase *phase, struct hf_error *err)
{
    cleanup_json cJSON *processors = NULL;
    if (hf_vm_command(&phase->vm, "query-cpus-fast", NULL, &processors, err))
        return -1;
    unsigned count = 0;
    long least = -1;
    int64_t previous = 0;
    bool distinct = true;
    const cJSON *processor = NULL;
    cJSON_ArrayForEach(processor, processors)
    {
        int64_t thread = hf_json_get_int_or(processor, "thread-id", 0);
        long ticks = thread_ticks(phase->vm.process.pid, thread);
        distinct &= thread > 0 && thread != previous;
        previous = thread;
        least = count == 0 || ticks < least ? ticks : least;
        count++;
    }
    char expected[64];
    snprintf(expected, sizeof expected, "%u processors, each a thread of its own", phase->plan->processors);
    hf_phase_check(phase, "vmm-processors", count == phase->plan->processors && distinct, expected, "%u, %s", count,
                   distinct ? "distinct" : "not distinct");
    hf_phase_check(phase, "vmm-processor-time", least > 0, "processor time used by each of these threads",
                   "at least %ld clock ticks", least);
    return 0;
}

/* "timer and IPI progress on each; offline/online; no processor starves": the checks of the probe */
static int exercise(struct hf_phase *phase, struct hf_error *err)
{
    cleanup_json cJSON *response = NULL;
    cJSON *args = hf_json_new_object();
    hf_json_add_int(args, "processors", phase->plan->processors);
    hf_json_add_int(args, "churn", CHURN_ROUNDS);
    /* a slow host must not look like a starved processor: only the phase timeout bounds the progress */
    hf_json_add_int(args, "deadline_ms", (int64_t)phase->run->options.timeout_ms);
    if (hf_phase_boot(phase, err) ||
        hf_phase_probe(phase, "smp-lapic", HF_GUEST_RUN_TIMEOUT_MAX_MS, args, &response, err))
        return -1;
    hf_json_add_int(phase->measurements, "probe_ms", hf_json_get_int_or(response, "duration_ms", -1));
    return check_host_view(phase, err) ? -1 : hf_phase_request_end(phase, HF_GUEST_OP_POWEROFF, err);
}

/* "2 and 4 processors" */
const struct hf_phase_plan hf_smp_lapic_plans[] = {
    {.name = "two-processors",
     .expected_end = HF_VM_END_POWEROFF,
     .processors = 2,
     .devices = {.control = true},
     .script = exercise},
    {.name = "four-processors",
     .expected_end = HF_VM_END_POWEROFF,
     .processors = 4,
     .devices = {.control = true},
     .script = exercise},
};

int hf_scenario_smp_lapic(struct hf_run *run)
{
    return hf_run_phases(run, hf_smp_lapic_plans, sizeof hf_smp_lapic_plans / sizeof hf_smp_lapic_plans[0]);
}
