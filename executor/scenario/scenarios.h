/* The closed list of scenarios. Each fills in tables of phase.h and adds what it concludes from all phases together. */
#ifndef HF_SCENARIO_SCENARIOS_H
#define HF_SCENARIO_SCENARIOS_H

#include "executor/scenario/phase.h"

struct hf_scenario {
    const char *name;
    const char *summary;            /* one line of --help */
    int (*run)(struct hf_run *run); /* results are in *run */
};

int hf_scenario_boot(struct hf_run *run);
int hf_scenario_lifecycle(struct hf_run *run);
int hf_scenario_console_exit(struct hf_run *run);
int hf_scenario_virtio_net(struct hf_run *run);
int hf_scenario_smp_lapic(struct hf_run *run);
int hf_scenario_structured_outcome(struct hf_run *run);

/* The phases of the above, so that tests can run one of them with a peer that misbehaves. */
extern const struct hf_phase_plan hf_lifecycle_plans[5]; /* clean poweroff, panic, triple fault, reset, killed VMM */
extern const struct hf_phase_plan hf_console_exit_plan;
extern const struct hf_phase_plan hf_smp_lapic_plans[2]; /* two and four processors */
extern const struct hf_phase_plan hf_virtio_net_plan;

extern const struct hf_scenario hf_scenarios[];
extern const size_t hf_scenario_count;

#endif
