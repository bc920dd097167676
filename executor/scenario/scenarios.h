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

extern const struct hf_scenario hf_scenarios[];
extern const size_t hf_scenario_count;

#endif
