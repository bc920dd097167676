/*
 * The `finalize` step: quarantine starts nothing; otherwise one fresh VM has to boot and stop before the oracles close.
 * Declared in executor.h.
 */
#include "common/log.h"
#include "executor/boot.h"

#include <stdio.h>
#include <string.h>

static void fill_oracles(const struct oracles *oracles, struct hf_finalize_response *response)
{
    response->oracles.host_canary_intact = oracles->state.host_canary_intact;
    response->oracles.network_canary_connections = (int64_t)oracles->state.network_canary_connections;
    if (oracles->lost[0] != '\0')
        response->watchdog_error = strdup(oracles->lost);
    if (oracles->state.network_canary_error[0] != '\0')
        response->network_canary_error = strdup(oracles->state.network_canary_error);
}

int executor_finalize(struct executor *executor, const struct hf_request *request, struct hf_response *whole,
                      struct hf_error *err)
{
    struct hf_finalize_response *response = &whole->finalize;
    struct oracles *oracles = &executor->oracles;
    char why[HF_PROTOCOL_MAX_ERROR] = "";
    if (strcmp(request->run_id, executor->settings.run_id) != 0)
        return hf_error_set(err, "run-mismatch", 0, "run_id", "run_id is not that of this session");
    snprintf(response->run_id, sizeof response->run_id, "%s", request->run_id);
    snprintf(response->artifact_root, sizeof response->artifact_root, "%s", executor->run_dir);
    oracles_listen(oracles);
    if (!request->quarantine && !oracles_violated(oracles) && oracles_sample(oracles, err) != 0)
        return -1;
    if (!request->quarantine && !oracles_violated(oracles) && oracles->lost[0] == '\0') {
        if (boot_run(executor, "post-campaign", request->timeout_seconds, &response->post_campaign, why, err) != 0)
            return -1;
        response->has_post_campaign = true;
    }
    oracles_close(oracles);
    fill_oracles(oracles, response);
    if (why[0] != '\0')
        hf_log(HF_LOG_WARNING, "post_campaign_failed", "reason", why, NULL);
    bool clean =
        response->has_post_campaign && hf_boot_record_clean(&response->post_campaign) && oracles->lost[0] == '\0';
    if (request->quarantine || oracles_violated(oracles))
        response->status = HF_FINALIZE_QUARANTINED;
    else
        response->status = clean ? HF_FINALIZE_PASSED : HF_FINALIZE_FAILED;
    return 0;
}
