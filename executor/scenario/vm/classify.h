/*
 * How a VM ended, decided by one pure table from what the host observed: QMP events, QEMU's own diagnostics, its exit
 * status, and what the runner did to it. What the guest printed plays no part: a guest could print anything.
 */
#ifndef HF_SCENARIO_VM_CLASSIFY_H
#define HF_SCENARIO_VM_CLASSIFY_H

#include <stdbool.h>

enum hf_vm_end {
    HF_VM_END_POWEROFF,       /* the guest powered itself off */
    HF_VM_END_PANIC,          /* the guest's kernel panicked and told the panic device */
    HF_VM_END_TRIPLE_FAULT,   /* the processor shut down: no handler for a double fault */
    HF_VM_END_RESET,          /* the guest asked for a reset */
    HF_VM_END_DEBUG_EXIT,     /* the guest ended QEMU through the debug-exit port: status (value << 1) | 1 */
    HF_VM_END_KILLED,         /* somebody killed QEMU with SIGKILL */
    HF_VM_END_SIGNALLED,      /* QEMU died from any other signal */
    HF_VM_END_TIMEOUT,        /* the phase timeout passed and the runner stopped it */
    HF_VM_END_STOPPED,        /* the runner stopped it on purpose */
    HF_VM_END_INTERRUPTED,    /* the runner itself was told to stop */
    HF_VM_END_NEVER_RAN,      /* QEMU refused its command line, accelerator or images: no guest code ran */
    HF_VM_END_INTERNAL_ERROR, /* the accelerator gave up on the guest (QEMU run state internal-error) */
    HF_VM_END_UNKNOWN,        /* the observations contradict each other */
    HF_VM_END_COUNT
};

/* Why the runner ended a VM that had not ended by itself. */
enum hf_vm_stop { HF_VM_STOP_NONE, HF_VM_STOP_WANTED, HF_VM_STOP_TIMEOUT, HF_VM_STOP_INTERRUPT };

/* Values of `data.reason` in QMP's SHUTDOWN event that matter here; anything else is OTHER. */
enum hf_vm_shutdown {
    HF_VM_SHUTDOWN_NONE,
    HF_VM_SHUTDOWN_GUEST_SHUTDOWN,
    HF_VM_SHUTDOWN_GUEST_RESET,
    HF_VM_SHUTDOWN_GUEST_PANIC,
    HF_VM_SHUTDOWN_OTHER,
};

struct hf_vm_evidence {
    bool resumed; /* `cont` was accepted: guest code may have run */
    enum hf_vm_stop stop;
    enum hf_vm_shutdown shutdown;
    bool guest_panicked; /* QMP event GUEST_PANICKED */
    bool triple_fault; /* QEMU said so: TCG's "Triple fault", or KVM_EXIT_SHUTDOWN as the last exit before the reset */
    bool internal_error; /* run state internal-error */
    bool exited;
    int exit_code;   /* when exited */
    int term_signal; /* otherwise */
};

enum hf_vm_end hf_vm_classify(const struct hf_vm_evidence *evidence);

const char *hf_vm_end_name(enum hf_vm_end end);       /* "clean-poweroff", ... */
const char *hf_vm_end_sentence(enum hf_vm_end end);   /* for messages: "the guest powered itself off" */
const char *hf_vm_shutdown_name(enum hf_vm_shutdown); /* as QMP spells it; "none", "other" */
enum hf_vm_shutdown hf_vm_shutdown_from_qmp(const char *reason);

#endif
