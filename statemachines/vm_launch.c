/* The vm_launch table, its guards and its fact-only effects. */
#include "statemachines/vm_launch.h"

#include "statemachines/table.h"

/* clang-format off */
#define HF_ROW_STATE(name)  HF_VM_LAUNCH_STATE_##name
#define HF_ROW_EVENT(name)  HF_VM_LAUNCH_EVENT_##name
#define HF_ROW_GUARD(name)  HF_VM_LAUNCH_GUARD_##name
#define HF_ROW_EFFECT(name) HF_VM_LAUNCH_EFFECT_##name

/* Before a snapshot exists an issue goes straight to the receipt. */
#define BLOCK_ROW(state, event) ROW(state, event, ALWAYS, SEALING, NOTE_ISSUE, WRITE_RECEIPT, ARM_TIMER)
/* From then on everything leaves through cleaning. */
#define CLEAN_ROW(state, event) ROW(state, event, ALWAYS, CLEANING, NOTE_ISSUE, REMOVE_SNAPSHOT, ARM_TIMER)
/* Something is running (a VM, the canary, a job of the thread pool) and has to end first. */
#define STOP_ROWS(state) \
    ROW(state, CANCEL, ALWAYS, STOPPING, NOTE_ISSUE, STOP_WORKER, ARM_TIMER), \
    ROW(state, TIMED_OUT, ALWAYS, STOPPING, NOTE_ISSUE, STOP_WORKER, ARM_TIMER)

static const struct hf_sm_row rows[] = {
    ROW(CREATED, START, ALWAYS, INSPECTING, INSPECT_PLAN, ARM_TIMER),
    BLOCK_ROW(CREATED, CANCEL),
    BLOCK_ROW(CREATED, TIMED_OUT),

    ROW(INSPECTING, PLAN_ACCEPTED, ALWAYS, MEASURING, MEASURE_SOURCES, ARM_TIMER),
    BLOCK_ROW(INSPECTING, ISSUE_FOUND),
    STOP_ROWS(INSPECTING),

    ROW(MEASURING, MEASUREMENT_MATCHED, ALWAYS, SNAPSHOTTING, MAKE_SNAPSHOT, ARM_TIMER),
    BLOCK_ROW(MEASURING, ISSUE_FOUND),
    STOP_ROWS(MEASURING),

    ROW(SNAPSHOTTING, SNAPSHOT_MADE, ALWAYS, VERIFYING, MEASURE_SNAPSHOT, ARM_TIMER),
    CLEAN_ROW(SNAPSHOTTING, ISSUE_FOUND),
    STOP_ROWS(SNAPSHOTTING),

    ROW(VERIFYING, MEASUREMENT_MATCHED, ALWAYS, REMEASURING_BEFORE, MEASURE_SNAPSHOT, ARM_TIMER),
    CLEAN_ROW(VERIFYING, ISSUE_FOUND),
    STOP_ROWS(VERIFYING),

    /* twice: remeasure, launch, remeasure */
    ROW(REMEASURING_BEFORE, MEASUREMENT_MATCHED, SANDBOXED, PROVING_CONTROLS, PROVE_CONTROLS, ARM_TIMER),
    ROW(REMEASURING_BEFORE, MEASUREMENT_MATCHED, AMBIENT, LAUNCHING, LAUNCH_VM, ARM_TIMER),
    CLEAN_ROW(REMEASURING_BEFORE, ISSUE_FOUND),
    STOP_ROWS(REMEASURING_BEFORE),

    ROW(PROVING_CONTROLS, CONTROLS_PROVEN, ALWAYS, LAUNCHING, LAUNCH_VM, ARM_TIMER),
    CLEAN_ROW(PROVING_CONTROLS, ISSUE_FOUND),
    STOP_ROWS(PROVING_CONTROLS),

    ROW(LAUNCHING, VM_EXITED, ALWAYS, REMEASURING_AFTER, COUNT_LAUNCH, MEASURE_SNAPSHOT, ARM_TIMER),
    CLEAN_ROW(LAUNCHING, ISSUE_FOUND),
    STOP_ROWS(LAUNCHING),

    ROW(REMEASURING_AFTER, MEASUREMENT_MATCHED, MORE_LAUNCHES, REMEASURING_BEFORE, MEASURE_SNAPSHOT, ARM_TIMER),
    ROW(REMEASURING_AFTER, MEASUREMENT_MATCHED, ALL_LAUNCHED, COMPARING, COMPARE_LAUNCHES, ARM_TIMER),
    CLEAN_ROW(REMEASURING_AFTER, ISSUE_FOUND),
    STOP_ROWS(REMEASURING_AFTER),

    ROW(COMPARING, LAUNCHES_AGREE, ALWAYS, CLEANING, NOTE_AGREEMENT, REMOVE_SNAPSHOT, ARM_TIMER),
    CLEAN_ROW(COMPARING, ISSUE_FOUND),
    STOP_ROWS(COMPARING),

    ROW(STOPPING, WORKER_STOPPED, ALWAYS, CLEANING, REMOVE_SNAPSHOT, ARM_TIMER),
    ROW(STOPPING, TIMED_OUT, ALWAYS, CLEANING, REMOVE_SNAPSHOT, ARM_TIMER),
    ROW(STOPPING, CANCEL, ALWAYS, STOPPING, NONE),

    ROW(CLEANING, SNAPSHOT_REMOVED, ALWAYS, SEALING, WRITE_RECEIPT, ARM_TIMER),
    BLOCK_ROW(CLEANING, STORAGE_FAILED),
    BLOCK_ROW(CLEANING, TIMED_OUT),
    ROW(CLEANING, CANCEL, ALWAYS, CLEANING, NOTE_ISSUE),

    /* sealing: what the receipt says is settled */
    ROW(SEALING, RECEIPT_DURABLE, VERDICT_VERIFIED, VERIFIED, REPORT_TERMINAL),
    ROW(SEALING, RECEIPT_DURABLE, VERDICT_BLOCKED, BLOCKED, REPORT_TERMINAL),
    ROW(SEALING, STORAGE_FAILED, ALWAYS, BLOCKED, NOTE_ISSUE, REPORT_TERMINAL),
    ROW(SEALING, TIMED_OUT, ALWAYS, BLOCKED, NOTE_ISSUE, REPORT_TERMINAL),
    ROW(SEALING, CANCEL, ALWAYS, SEALING, NONE),
};

#define STATE(name) [HF_VM_LAUNCH_STATE_##name]
static const char *const state_names[HF_VM_LAUNCH_STATE_COUNT] = {
    STATE(CREATED) = "created", STATE(INSPECTING) = "inspecting", STATE(MEASURING) = "measuring",
    STATE(SNAPSHOTTING) = "snapshotting", STATE(VERIFYING) = "verifying",
    STATE(REMEASURING_BEFORE) = "remeasuring_before", STATE(PROVING_CONTROLS) = "proving_controls",
    STATE(LAUNCHING) = "launching", STATE(REMEASURING_AFTER) = "remeasuring_after", STATE(COMPARING) = "comparing",
    STATE(STOPPING) = "stopping", STATE(CLEANING) = "cleaning", STATE(SEALING) = "sealing",
    STATE(VERIFIED) = "verified", STATE(BLOCKED) = "blocked",
};

#define EVENT(name) [HF_VM_LAUNCH_EVENT_##name]
static const char *const event_names[HF_VM_LAUNCH_EVENT_COUNT] = {
    EVENT(START) = "start", EVENT(PLAN_ACCEPTED) = "plan_accepted",
    EVENT(MEASUREMENT_MATCHED) = "measurement_matched", EVENT(SNAPSHOT_MADE) = "snapshot_made",
    EVENT(CONTROLS_PROVEN) = "controls_proven", EVENT(VM_EXITED) = "vm_exited",
    EVENT(LAUNCHES_AGREE) = "launches_agree", EVENT(ISSUE_FOUND) = "issue_found",
    EVENT(WORKER_STOPPED) = "worker_stopped", EVENT(SNAPSHOT_REMOVED) = "snapshot_removed",
    EVENT(RECEIPT_DURABLE) = "receipt_durable", EVENT(STORAGE_FAILED) = "storage_failed", EVENT(CANCEL) = "cancel",
    EVENT(TIMED_OUT) = "timed_out",
};

#define EFFECT(name) [HF_VM_LAUNCH_EFFECT_##name]
static const char *const effect_names[HF_VM_LAUNCH_EFFECT_COUNT] = {
    EFFECT(NONE) = "none", EFFECT(ARM_TIMER) = "arm_timer", EFFECT(INSPECT_PLAN) = "inspect_plan",
    EFFECT(MEASURE_SOURCES) = "measure_sources", EFFECT(MAKE_SNAPSHOT) = "make_snapshot",
    EFFECT(MEASURE_SNAPSHOT) = "measure_snapshot", EFFECT(PROVE_CONTROLS) = "prove_controls",
    EFFECT(LAUNCH_VM) = "launch_vm", EFFECT(COMPARE_LAUNCHES) = "compare_launches",
    EFFECT(STOP_WORKER) = "stop_worker", EFFECT(REMOVE_SNAPSHOT) = "remove_snapshot",
    EFFECT(WRITE_RECEIPT) = "write_receipt", EFFECT(REPORT_TERMINAL) = "report_terminal",
    EFFECT(COUNT_LAUNCH) = "count_launch", EFFECT(NOTE_ISSUE) = "note_issue",
    EFFECT(NOTE_AGREEMENT) = "note_agreement",
};

#define GUARD(name) [HF_VM_LAUNCH_GUARD_##name]
static const char *const guard_names[HF_VM_LAUNCH_GUARD_COUNT] = {
    GUARD(ALWAYS) = "always", GUARD(SANDBOXED) = "sandboxed", GUARD(AMBIENT) = "ambient",
    GUARD(MORE_LAUNCHES) = "more_launches", GUARD(ALL_LAUNCHED) = "all_launched",
    GUARD(VERDICT_VERIFIED) = "verdict_verified", GUARD(VERDICT_BLOCKED) = "verdict_blocked",
};

static const uint8_t guard_groups[HF_VM_LAUNCH_GUARD_COUNT] = {
    GUARD(SANDBOXED) = 1, GUARD(AMBIENT) = 1,
    GUARD(MORE_LAUNCHES) = 2, GUARD(ALL_LAUNCHED) = 2,
    GUARD(VERDICT_VERIFIED) = 3, GUARD(VERDICT_BLOCKED) = 3,
};
/* clang-format on */

static bool verified(const struct hf_vm_launch_facts *facts)
{
    return !facts->issue_found && facts->launches_agree && facts->launches_done == HF_VM_LAUNCH_LAUNCHES;
}

static bool guard_holds(uint8_t guard, const void *opaque)
{
    const struct hf_vm_launch_facts *facts = opaque;
    switch ((enum hf_vm_launch_guard)guard) {
    case HF_VM_LAUNCH_GUARD_ALWAYS:
        return true;
    case HF_VM_LAUNCH_GUARD_SANDBOXED:
        return facts->sandboxed;
    case HF_VM_LAUNCH_GUARD_AMBIENT:
        return !facts->sandboxed;
    case HF_VM_LAUNCH_GUARD_MORE_LAUNCHES:
        return facts->launches_done < HF_VM_LAUNCH_LAUNCHES;
    case HF_VM_LAUNCH_GUARD_ALL_LAUNCHED:
        return facts->launches_done >= HF_VM_LAUNCH_LAUNCHES;
    case HF_VM_LAUNCH_GUARD_VERDICT_VERIFIED:
        return verified(facts);
    case HF_VM_LAUNCH_GUARD_VERDICT_BLOCKED:
        return !verified(facts);
    case HF_VM_LAUNCH_GUARD_COUNT:
        break;
    }
    return false;
}

static void apply(uint8_t effect, void *opaque)
{
    struct hf_vm_launch_facts *facts = opaque;
    if (effect == HF_VM_LAUNCH_EFFECT_COUNT_LAUNCH)
        facts->launches_done++;
    else if (effect == HF_VM_LAUNCH_EFFECT_NOTE_ISSUE)
        facts->issue_found = true;
    else if (effect == HF_VM_LAUNCH_EFFECT_NOTE_AGREEMENT)
        facts->launches_agree = true;
}

#define SET(name) HF_SM_STATE(HF_VM_LAUNCH_STATE_##name)
#define ON(name)  HF_SM_EVENT(HF_VM_LAUNCH_EVENT_##name)
const struct hf_sm_definition hf_vm_launch_machine = {
    .name = "vm_launch",
    .state_names = state_names,
    .event_names = event_names,
    .effect_names = effect_names,
    .guard_names = guard_names,
    .state_count = HF_VM_LAUNCH_STATE_COUNT,
    .event_count = HF_VM_LAUNCH_EVENT_COUNT,
    .effect_count = HF_VM_LAUNCH_EFFECT_COUNT,
    .guard_count = HF_VM_LAUNCH_GUARD_COUNT,
    .guard_groups = guard_groups,
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .initial = HF_VM_LAUNCH_STATE_CREATED,
    .terminal_states = SET(VERIFIED) | SET(BLOCKED),
    .closing_states = SET(STOPPING) | SET(CLEANING) | SET(SEALING),
    .peerless_states = SET(CREATED),
    .timeout_events = ON(TIMED_OUT),
    .loss_events = ON(ISSUE_FOUND) | ON(WORKER_STOPPED) | ON(STORAGE_FAILED),
    .cancel_events = ON(CANCEL),
    .facts_size = sizeof(struct hf_vm_launch_facts),
    .guard = guard_holds,
    .apply = apply,
};
