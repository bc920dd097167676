/* The closed list of scenarios; see scenarios.h. */
#include "executor/scenario/scenarios.h"

const struct hf_scenario hf_scenarios[] = {
    {"boot", "one VM boots, answers a ping and powers off", hf_scenario_boot},
    {"lifecycle", "poweroff, panic, triple fault, reset and a killed VMM are told apart", hf_scenario_lifecycle},
};
const size_t hf_scenario_count = sizeof hf_scenarios / sizeof hf_scenarios[0];
