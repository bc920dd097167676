/*
 * Reads metadata.json back at recovery. The file was written by this program, but a disk that crashed, or a hand, may
 * have changed it: every field is checked like any other input.
 */
#include "server/core/run_documents.h"

#include "common/cleanup.h"

#include <string.h>

#define METADATA_MAX_BYTES (256 * 1024)

static int missing(const char *field, struct hf_error *err)
{
    return hf_error_set(err, "metadata-invalid", 0, field, "metadata.json: %s is missing or malformed", field);
}

static int copy_string(const cJSON *object, const char *key, char *out, size_t size, struct hf_error *err)
{
    const char *text = hf_json_get_string(object, key);
    if (!text || strlen(text) >= size)
        return missing(key, err);
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

static int parse_strings(const cJSON *metadata, struct hf_run_record *record, struct hf_error *err)
{
    struct hf_campaign_request *request = &record->request;
    const struct {
        const char *key;
        char *out;
        size_t size;
    } fields[] = {
        {"run_id", record->run_id, sizeof record->run_id},
        {"campaign", request->campaign, sizeof request->campaign},
        {"catalog_sha256", record->catalog_sha256, sizeof record->catalog_sha256},
        {"profile", request->profile, sizeof request->profile},
        {"backend", request->backend, sizeof request->backend},
        {"host_type", request->host_type, sizeof request->host_type},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (copy_string(metadata, fields[i].key, fields[i].out, fields[i].size, err) != 0)
            return -1;
    return 0;
}

static int parse_numbers(const cJSON *metadata, struct hf_run_record *record, struct hf_error *err)
{
    struct hf_campaign_request *request = &record->request;
    const cJSON *budgets = hf_json_get(metadata, "budgets");
    int64_t created_ms;
    const struct {
        const cJSON *object;
        const char *key;
        int64_t *out;
    } fields[] = {
        {metadata, "seed", &request->seed},
        {budgets, "seconds", &request->budget_seconds},
        {budgets, "actions", &request->budget_actions},
        {budgets, "ai_credits", &request->budget_ai_credits},
        {metadata, "memory_mib", &request->memory_mib},
        {metadata, "phase_timeout_seconds", &request->phase_timeout_seconds},
        {metadata, "action_timeout_seconds", &request->action_timeout_seconds},
        {metadata, "created_wall_ms", &created_ms},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!hf_json_get_int64(hf_json_get(fields[i].object, fields[i].key), fields[i].out) || *fields[i].out < 0)
            return missing(fields[i].key, err);
    record->created_wall_ms = (uint64_t)created_ms;
    return 0;
}

int hf_run_metadata_parse(const char *text, size_t length, struct hf_run_record *record,
                          char artifact_root[HF_PROTOCOL_MAX_PATH], struct hf_error *err)
{
    struct hf_json_limits limits = {METADATA_MAX_BYTES, 16};
    hf_campaign_request_defaults(&record->request);
    cleanup_json cJSON *metadata = hf_json_parse(text, length, &limits, err);
    if (!metadata)
        return hf_error_prefix(err, "metadata.json");
    if (parse_strings(metadata, record, err) != 0 || parse_numbers(metadata, record, err) != 0)
        return -1;
    const char *topology = hf_json_get_string(metadata, "executor_topology");
    const cJSON *target = hf_json_get(metadata, "target");
    if (!topology || copy_string(target, "identity", record->target, sizeof record->target, err) != 0)
        return missing("target.identity", err);
    record->local = strcmp(topology, "local") == 0;
    const char *root = hf_json_get_string(target, "artifact_root");
    snprintf(artifact_root, HF_PROTOCOL_MAX_PATH, "%s", root ? root : "");
    return 0;
}
