/* Table of VM ends; see classify.h. */
#include "executor/scenario/vm/classify.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    const char *sentence;
} ends[HF_VM_END_COUNT] = {
    [HF_VM_END_POWEROFF] = {"clean-poweroff", "the guest powered itself off"},
    [HF_VM_END_PANIC] = {"guest-panic", "the guest's kernel panicked"},
    [HF_VM_END_TRIPLE_FAULT] = {"triple-fault", "the guest's processor triple-faulted"},
    [HF_VM_END_RESET] = {"guest-reset", "the guest reset itself"},
    [HF_VM_END_DEBUG_EXIT] = {"guest-exit", "the guest ended the VMM through the debug-exit port"},
    [HF_VM_END_KILLED] = {"vmm-killed", "the VMM was killed"},
    [HF_VM_END_SIGNALLED] = {"vmm-signalled", "the VMM died from a signal"},
    [HF_VM_END_TIMEOUT] = {"timeout", "the guest did not end within the phase timeout"},
    [HF_VM_END_STOPPED] = {"stopped", "the runner stopped the VM"},
    [HF_VM_END_INTERRUPTED] = {"interrupted", "the runner was told to stop"},
    [HF_VM_END_NEVER_RAN] = {"never-ran", "the VMM ended before any guest code ran"},
    [HF_VM_END_INTERNAL_ERROR] = {"vmm-internal-error", "the accelerator could not run the guest"},
    [HF_VM_END_UNKNOWN] = {"unknown", "the observations contradict each other"},
};

enum exit_rule { EXIT_ANY, EXIT_ZERO, EXIT_ODD_ABOVE_ONE, EXIT_BY_SIGKILL, EXIT_BY_SIGNAL };

#define ANY (-1)

/* The first row whose every condition holds decides. `stop`, `shutdown`, `panicked`, `triple` may be ANY. */
static const struct {
    int resumed, stop, internal_error, shutdown, panicked, triple;
    enum exit_rule exit;
    enum hf_vm_end end;
} rules[] = {
    /* what the runner did comes first: it explains whatever exit status follows */
    {ANY, HF_VM_STOP_INTERRUPT, ANY, ANY, ANY, ANY, EXIT_ANY, HF_VM_END_INTERRUPTED},
    {ANY, ANY, true, ANY, ANY, ANY, EXIT_ANY, HF_VM_END_INTERNAL_ERROR},
    {ANY, HF_VM_STOP_TIMEOUT, ANY, ANY, ANY, ANY, EXIT_ANY, HF_VM_END_TIMEOUT},
    {ANY, HF_VM_STOP_WANTED, ANY, ANY, ANY, ANY, EXIT_ANY, HF_VM_END_STOPPED},
    {ANY, HF_VM_STOP_NONE, ANY, HF_VM_SHUTDOWN_NONE, false, ANY, EXIT_BY_SIGKILL, HF_VM_END_KILLED},
    {ANY, HF_VM_STOP_NONE, ANY, ANY, ANY, ANY, EXIT_BY_SIGNAL, HF_VM_END_SIGNALLED},
    {false, HF_VM_STOP_NONE, ANY, HF_VM_SHUTDOWN_NONE, false, ANY, EXIT_ANY, HF_VM_END_NEVER_RAN},
    {true, HF_VM_STOP_NONE, ANY, HF_VM_SHUTDOWN_GUEST_PANIC, true, false, EXIT_ZERO, HF_VM_END_PANIC},
    {true, HF_VM_STOP_NONE, ANY, HF_VM_SHUTDOWN_GUEST_RESET, false, true, EXIT_ZERO, HF_VM_END_TRIPLE_FAULT},
    {true, HF_VM_STOP_NONE, ANY, HF_VM_SHUTDOWN_GUEST_RESET, false, false, EXIT_ZERO, HF_VM_END_RESET},
    {true, HF_VM_STOP_NONE, ANY, HF_VM_SHUTDOWN_GUEST_SHUTDOWN, false, false, EXIT_ZERO, HF_VM_END_POWEROFF},
    {true, HF_VM_STOP_NONE, ANY, HF_VM_SHUTDOWN_NONE, false, ANY, EXIT_ODD_ABOVE_ONE, HF_VM_END_DEBUG_EXIT},
};

static bool exit_matches(enum exit_rule rule, const struct hf_vm_evidence *evidence)
{
    switch (rule) {
    case EXIT_ANY:
        return true;
    case EXIT_ZERO:
        return evidence->exited && evidence->exit_code == 0;
    case EXIT_ODD_ABOVE_ONE: /* 1 is QEMU's own failure, so a guest that writes 0 to the port cannot be told apart */
        return evidence->exited && evidence->exit_code > 1 && (evidence->exit_code & 1);
    case EXIT_BY_SIGKILL:
        return !evidence->exited && evidence->term_signal == SIGKILL;
    case EXIT_BY_SIGNAL:
        return !evidence->exited && evidence->term_signal != 0;
    }
    return false;
}

static bool matches(int wanted, int seen)
{
    return wanted == ANY || wanted == seen;
}

enum hf_vm_end hf_vm_classify(const struct hf_vm_evidence *evidence)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (matches(rules[i].resumed, evidence->resumed) && matches(rules[i].stop, (int)evidence->stop) &&
            matches(rules[i].internal_error, evidence->internal_error) &&
            matches(rules[i].shutdown, (int)evidence->shutdown) &&
            matches(rules[i].panicked, evidence->guest_panicked) && matches(rules[i].triple, evidence->triple_fault) &&
            exit_matches(rules[i].exit, evidence))
            return rules[i].end;
    return HF_VM_END_UNKNOWN;
}

const char *hf_vm_end_name(enum hf_vm_end end)
{
    return (unsigned)end < HF_VM_END_COUNT ? ends[end].name : "unknown";
}

const char *hf_vm_end_sentence(enum hf_vm_end end)
{
    return (unsigned)end < HF_VM_END_COUNT ? ends[end].sentence : "unknown";
}

static const char *const shutdown_names[] = {
    [HF_VM_SHUTDOWN_NONE] = "none",
    [HF_VM_SHUTDOWN_GUEST_SHUTDOWN] = "guest-shutdown",
    [HF_VM_SHUTDOWN_GUEST_RESET] = "guest-reset",
    [HF_VM_SHUTDOWN_GUEST_PANIC] = "guest-panic",
    [HF_VM_SHUTDOWN_OTHER] = "other",
};

const char *hf_vm_shutdown_name(enum hf_vm_shutdown shutdown)
{
    return shutdown_names[shutdown];
}

enum hf_vm_shutdown hf_vm_shutdown_from_qmp(const char *reason)
{
    for (int i = HF_VM_SHUTDOWN_GUEST_SHUTDOWN; reason && i < HF_VM_SHUTDOWN_OTHER; i++)
        if (strcmp(reason, shutdown_names[i]) == 0)
            return (enum hf_vm_shutdown)i;
    return HF_VM_SHUTDOWN_OTHER;
}
