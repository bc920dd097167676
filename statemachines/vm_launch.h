/*
 * The vm_launch machine: a measured launch, from the plan to a sealed receipt.
 *
 * The shell owns one instance per launch. Every way out removes the snapshot (state cleaning) before the receipt is
 * sealed; the receipt says verified only when no issue was found and all launches were made and compared.
 */
#ifndef HF_STATEMACHINES_VM_LAUNCH_H
#define HF_STATEMACHINES_VM_LAUNCH_H

#include "statemachines/engine.h"

#define HF_VM_LAUNCH_LAUNCHES 2

enum hf_vm_launch_state {
    HF_VM_LAUNCH_STATE_CREATED,
    HF_VM_LAUNCH_STATE_INSPECTING, /* the plan: closed world, every field */
    HF_VM_LAUNCH_STATE_MEASURING,  /* runtime, kernel, initramfs, launcher against the plan */
    HF_VM_LAUNCH_STATE_SNAPSHOTTING,
    HF_VM_LAUNCH_STATE_VERIFYING,          /* the copy against the plan */
    HF_VM_LAUNCH_STATE_REMEASURING_BEFORE, /* a launch */
    HF_VM_LAUNCH_STATE_PROVING_CONTROLS,   /* sandboxed adapters: canary program under the same sandbox */
    HF_VM_LAUNCH_STATE_LAUNCHING,
    HF_VM_LAUNCH_STATE_REMEASURING_AFTER,
    HF_VM_LAUNCH_STATE_COMPARING,
    HF_VM_LAUNCH_STATE_STOPPING, /* a VM or a worker is being ended */
    HF_VM_LAUNCH_STATE_CLEANING, /* the snapshot is being removed */
    HF_VM_LAUNCH_STATE_SEALING,  /* the receipt is being written */
    HF_VM_LAUNCH_STATE_VERIFIED,
    HF_VM_LAUNCH_STATE_BLOCKED,
    HF_VM_LAUNCH_STATE_COUNT
};

enum hf_vm_launch_event {
    HF_VM_LAUNCH_EVENT_START,
    HF_VM_LAUNCH_EVENT_PLAN_ACCEPTED,
    HF_VM_LAUNCH_EVENT_MEASUREMENT_MATCHED, /* of the present state: sources, copy, before or after a launch */
    HF_VM_LAUNCH_EVENT_SNAPSHOT_MADE,
    HF_VM_LAUNCH_EVENT_CONTROLS_PROVEN,
    HF_VM_LAUNCH_EVENT_VM_EXITED, /* with the expected status; its console was hashed */
    HF_VM_LAUNCH_EVENT_LAUNCHES_AGREE,
    HF_VM_LAUNCH_EVENT_ISSUE_FOUND,    /* the present step failed; the issues are in the receipt's list */
    HF_VM_LAUNCH_EVENT_WORKER_STOPPED, /* answer to stop_worker */
    HF_VM_LAUNCH_EVENT_SNAPSHOT_REMOVED,
    HF_VM_LAUNCH_EVENT_RECEIPT_DURABLE,
    HF_VM_LAUNCH_EVENT_STORAGE_FAILED, /* removing the snapshot or writing the receipt failed */
    HF_VM_LAUNCH_EVENT_CANCEL,
    HF_VM_LAUNCH_EVENT_TIMED_OUT,
    HF_VM_LAUNCH_EVENT_COUNT
};

enum hf_vm_launch_effect {
    HF_VM_LAUNCH_EFFECT_NONE,
    HF_VM_LAUNCH_EFFECT_ARM_TIMER,
    HF_VM_LAUNCH_EFFECT_INSPECT_PLAN,
    HF_VM_LAUNCH_EFFECT_MEASURE_SOURCES,
    HF_VM_LAUNCH_EFFECT_MAKE_SNAPSHOT,
    HF_VM_LAUNCH_EFFECT_MEASURE_SNAPSHOT,
    HF_VM_LAUNCH_EFFECT_PROVE_CONTROLS,
    HF_VM_LAUNCH_EFFECT_LAUNCH_VM,
    HF_VM_LAUNCH_EFFECT_COMPARE_LAUNCHES,
    HF_VM_LAUNCH_EFFECT_STOP_WORKER, /* end the VM, the canary or the thread-pool job; feed worker_stopped */
    HF_VM_LAUNCH_EFFECT_REMOVE_SNAPSHOT,
    HF_VM_LAUNCH_EFFECT_WRITE_RECEIPT,
    HF_VM_LAUNCH_EFFECT_REPORT_TERMINAL,
    /* Fact-only. */
    HF_VM_LAUNCH_EFFECT_COUNT_LAUNCH,
    HF_VM_LAUNCH_EFFECT_NOTE_ISSUE, /* the receipt can no longer be verified */
    HF_VM_LAUNCH_EFFECT_NOTE_AGREEMENT,
    HF_VM_LAUNCH_EFFECT_COUNT
};

enum hf_vm_launch_guard {
    HF_VM_LAUNCH_GUARD_ALWAYS,
    /* group "sandbox" */
    HF_VM_LAUNCH_GUARD_SANDBOXED,
    HF_VM_LAUNCH_GUARD_AMBIENT,
    /* group "launches" */
    HF_VM_LAUNCH_GUARD_MORE_LAUNCHES,
    HF_VM_LAUNCH_GUARD_ALL_LAUNCHED,
    /* group "verdict" */
    HF_VM_LAUNCH_GUARD_VERDICT_VERIFIED,
    HF_VM_LAUNCH_GUARD_VERDICT_BLOCKED,
    HF_VM_LAUNCH_GUARD_COUNT
};

struct hf_vm_launch_facts {
    bool sandboxed; /* fixed by the adapter */
    /* Owned by the machine. */
    uint32_t launches_done;
    bool issue_found;
    bool launches_agree;
};

extern const struct hf_sm_definition hf_vm_launch_machine;

#endif
