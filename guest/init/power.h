/*
 * How the guest ends itself: each way looks different to the VMM, and each is the real thing. Called by the agent.
 */
#ifndef HF_GUEST_INIT_POWER_H
#define HF_GUEST_INIT_POWER_H

#include <stddef.h>
#include <stdint.h>

enum hf_power_end { HF_POWER_OFF, HF_POWER_REBOOT, HF_POWER_PANIC, HF_POWER_TRIPLE_FAULT, HF_POWER_EXIT };

/* Checks beforehand that the end can be had, so that the agent can still refuse. -1 with a sentence in `why`. */
int hf_power_prepare(enum hf_power_end end, char *why, size_t why_size);
/* Does it. Returns only when nothing happened. `value` is for HF_POWER_EXIT. */
void hf_power_perform(enum hf_power_end end, uint8_t value);

#endif
