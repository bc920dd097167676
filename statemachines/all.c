/* The list of machines behind hf_sm_all(): the only place that knows them all. */
#include "statemachines/campaign.h"
#include "statemachines/engine.h"
#include "statemachines/executor_session.h"
#include "statemachines/minimization.h"
#include "statemachines/strategist_call.h"
#include "statemachines/vm_launch.h"

static const struct hf_sm_definition *const machines[HF_SM_MACHINE_COUNT] = {
    &hf_campaign_machine,     &hf_executor_session_machine, &hf_strategist_call_machine,
    &hf_minimization_machine, &hf_vm_launch_machine,
};

const struct hf_sm_definition *const *hf_sm_all(size_t *count)
{
    *count = HF_SM_MACHINE_COUNT;
    return machines;
}
