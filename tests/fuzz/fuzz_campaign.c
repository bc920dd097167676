/* Campaign files from hostile bytes: whatever is accepted is within every bound and has a digest. */
#include "common/catalog/catalog.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_case(const struct hf_campaign *campaign, const struct hf_case *entry)
{
    if (hf_campaign_find(campaign, entry->id) != entry || entry->coverage_count < 1 ||
        entry->coverage_count > HF_CATALOG_MAX_COVERAGE || entry->repetitions < 1 || entry->repetitions > 4 ||
        entry->timeout_multiplier < 1 || entry->timeout_multiplier > 8 || !entry->description[0] ||
        strchr(entry->id, '/') || strchr(entry->scenario, '/'))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_campaign campaign;
    struct hf_error err = {0};
    if (hf_campaign_parse((const char *)data, size, NULL, &campaign, &err) != 0) {
        if (!err.code || !err.message[0] || campaign.cases)
            abort();
        return 0;
    }
    if (campaign.case_count < 1 || campaign.case_count > HF_CATALOG_MAX_CASES || strlen(campaign.catalog_sha256) != 64)
        abort();
    for (size_t i = 0; i < campaign.case_count; i++)
        check_case(&campaign, &campaign.cases[i]);
    hf_campaign_clear(&campaign);
    return 0;
}
