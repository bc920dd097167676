/* The closed list of scenarios; see scenarios.h. */
#include "executor/scenario/scenarios.h"

const struct hf_scenario hf_scenarios[] = {
    {"boot", "one VM boots, answers a ping and powers off", hf_scenario_boot},
    {"lifecycle", "poweroff, panic, triple fault, reset and a killed VMM are told apart", hf_scenario_lifecycle},
    {"console-exit", "a console flood against a late reader, exact to the last byte", hf_scenario_console_exit},
    {"virtio-net", "frames of every size class and floods, counted on both sides", hf_scenario_virtio_net},
    {"smp-lapic", "timers, inter-processor interrupts and hotplug on 2 and 4 processors", hf_scenario_smp_lapic},
    {"structured-outcome", "one run per outcome class, and reports that must be refused",
     hf_scenario_structured_outcome},
};
const size_t hf_scenario_count = sizeof hf_scenarios / sizeof hf_scenarios[0];
