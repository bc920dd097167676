/* Private to the campaign machine: what campaign.c's definition takes from campaign_facts.c. */
#ifndef HF_STATEMACHINES_CAMPAIGN_FACTS_H
#define HF_STATEMACHINES_CAMPAIGN_FACTS_H

#include "statemachines/campaign.h"

bool hf_campaign_guard(uint8_t guard, const void *facts);
void hf_campaign_apply(uint8_t effect, void *facts);

#endif
