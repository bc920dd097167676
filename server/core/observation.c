/* Implementation of observation.h: pure conversions. */
#include "server/core/observation.h"

#include "common/cleanup.h"
#include "common/clock.h"

void hf_observation_take(struct hf_observation *observation, struct hf_execute_response *response, size_t case_index)
{
    *observation = (struct hf_observation){
        .sequence = response->sequence,
        .case_index = case_index,
        .category = response->category,
        .has_returncode = response->has_returncode,
        .returncode = response->returncode,
        .timed_out = response->timed_out,
        .duration_ms = response->duration_ms,
        .host_canary_intact = response->oracles.host_canary_intact,
        .network_canary_connections = response->oracles.network_canary_connections,
        .teardown_complete = response->teardown_complete,
        .stdout_truncated = response->stdout_truncated,
        .stderr_truncated = response->stderr_truncated,
        .stdout_b64 = STEAL_PTR(response->stdout_b64),
        .stderr_b64 = STEAL_PTR(response->stderr_b64),
    };
}

void hf_observation_clear(struct hf_observation *observation)
{
    free(STEAL_PTR(observation->stdout_b64));
    free(STEAL_PTR(observation->stderr_b64));
}

/* Fields that a journal line and a prompt have in common. */
static cJSON *common_fields(const struct hf_observation *observation, const struct hf_case *of_case)
{
    cJSON *object = hf_json_new_object();
    hf_json_add_int(object, "sequence", observation->sequence);
    hf_json_add_string(object, "case_id", of_case->id);
    hf_json_add_string(object, "category", hf_category_name(observation->category));
    if (observation->has_returncode)
        hf_json_add_int(object, "returncode", observation->returncode);
    else
        hf_json_add_null(object, "returncode");
    hf_json_add_bool(object, "timed_out", observation->timed_out);
    hf_json_add_int(object, "duration_ms", observation->duration_ms);
    cJSON *coverage = hf_json_add(object, "coverage", hf_json_new_array());
    for (size_t i = 0; i < of_case->coverage_count; i++)
        hf_json_append(coverage, hf_json_new_string(of_case->coverage[i]));
    hf_json_add_bool(object, "host_canary_intact", observation->host_canary_intact);
    hf_json_add_int(object, "network_canary_connections", observation->network_canary_connections);
    hf_json_add_bool(object, "teardown_complete", observation->teardown_complete);
    hf_json_add_string(object, "stdout_b64", observation->stdout_b64 ? observation->stdout_b64 : "");
    hf_json_add_string(object, "stderr_b64", observation->stderr_b64 ? observation->stderr_b64 : "");
    hf_json_add_bool(object, "stdout_truncated", observation->stdout_truncated);
    hf_json_add_bool(object, "stderr_truncated", observation->stderr_truncated);
    return object;
}

char *hf_observation_line(const struct hf_observation *observation, const struct hf_case *of_case,
                          const struct hf_execute_response *response, uint64_t received_wall_ms, size_t *length)
{
    cleanup_json cJSON *object = common_fields(observation, of_case);
    char received_at[25];
    hf_clock_format_utc(received_wall_ms, received_at);
    hf_json_add_int(object, "schema_version", 1);
    hf_json_add_string(object, "artifact_path", response->artifact_path);
    hf_json_add_string(object, "error", response->error);
    hf_json_add_string(object, "received_at", received_at);
    return hf_json_canonical(object, length);
}

cJSON *hf_observation_for_prompt(const struct hf_observation *observation, const struct hf_case *of_case)
{
    return common_fields(observation, of_case);
}
