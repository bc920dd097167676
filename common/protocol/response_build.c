/*
 * Responses, executor side: struct to one canonical line. Pure. Error texts and status lines are cut to the bounds of
 * the protocol here, because an answer that is refused for the length of a diagnosis would lose what it has to say.
 */
#include "common/cleanup.h"
#include "common/protocol/message.h"

#include <string.h>

static const char *named_key(const struct hf_dialect *dialect, const char *pattern, char key[96])
{
    const struct hf_shape_names names = hf_dialect_names(dialect);
    return hf_shape_name(&names, pattern, key, 96);
}

/* Adds text of at most max bytes, cut between characters; NULL becomes null. */
static void add_bounded(cJSON *object, const char *key, const char *text, size_t max)
{
    cJSON *item = hf_json_add_string(object, key, text);
    if (!text || strlen(item->valuestring) <= max)
        return;
    size_t end = max;
    while (end > 0 && ((unsigned char)item->valuestring[end] & 0xc0) == 0x80)
        end--;
    item->valuestring[end] = '\0';
}

static void add_returncode(cJSON *object, bool present, int32_t returncode)
{
    if (present)
        hf_json_add_int(object, "returncode", returncode);
    else
        hf_json_add_null(object, "returncode");
}

static void add_pids(cJSON *object, const char *key, const int64_t *pids, size_t count)
{
    cJSON *array = hf_json_add(object, key, hf_json_new_array());
    for (size_t i = 0; i < count; i++)
        hf_json_append(array, hf_json_new_int(pids[i]));
}

static cJSON *boot_object(const struct hf_boot_record *boot, const struct hf_dialect *dialect)
{
    char key[96];
    cJSON *object = hf_json_new_object();
    hf_json_add_string(object, "category", hf_category_name(boot->category));
    add_returncode(object, boot->has_returncode, boot->returncode);
    hf_json_add_bool(object, "timed_out", boot->timed_out);
    hf_json_add_int(object, "duration_ms", boot->duration_ms);
    hf_json_add_bool(object, "teardown_complete", boot->teardown_complete);
    add_pids(object, named_key(dialect, "{vmm}_pids", key), boot->pids, boot->pid_count);
    add_pids(object, named_key(dialect, "live_{vmm}_pids", key), boot->live_pids, boot->live_pid_count);
    hf_json_add_string(object, "artifact_path", boot->artifact_path);
    return object;
}

static void add_oracles(cJSON *object, const struct hf_oracle_state *oracles)
{
    hf_json_add_bool(object, "host_canary_intact", oracles->host_canary_intact);
    hf_json_add_int(object, "network_canary_connections", oracles->network_canary_connections);
}

static void add_status_lines(cJSON *object, const char *key, const cJSON *lines)
{
    cJSON *array = hf_json_add(object, key, hf_json_new_array());
    for (const cJSON *line = lines ? lines->child : NULL; line; line = line->next)
        hf_json_append(array, hf_json_new_string(line->valuestring));
}

static void add_metadata(cJSON *document, const struct hf_initialize_response *response,
                         const struct hf_dialect *dialect)
{
    char key[96];
    cJSON *metadata = hf_json_add(document, "metadata", hf_json_new_object());
    hf_json_add_string(metadata, named_key(dialect, "{source}_commit", key), response->commit);
    hf_json_add_bool(metadata, named_key(dialect, "{source}_dirty", key), response->dirty);
    add_status_lines(metadata, named_key(dialect, "{source}_status", key), response->status_lines);
    hf_json_add_string(metadata, named_key(dialect, "{vmm}_commit", key), response->vmm_commit);
    hf_json_add_bool(metadata, named_key(dialect, "{vmm}_dirty", key), response->vmm_dirty);
    add_status_lines(metadata, named_key(dialect, "{vmm}_status", key), response->vmm_status_lines);
    hf_json_add_string(metadata, "os", response->os);
    hf_json_add_string(metadata, "os_release", response->os_release);
    hf_json_add_string(metadata, "machine", response->machine);
    hf_json_add_string(metadata, named_key(dialect, "{runtime}", key), response->runtime);
}

static void build_initialize(cJSON *document, const struct hf_initialize_response *response,
                             const struct hf_dialect *dialect)
{
    hf_json_add_string(document, "status", response->passed ? "passed" : "failed");
    hf_json_add_string(document, "run_id", response->run_id);
    hf_json_add_string(document, "backend", response->backend);
    hf_json_add_string(document, "host_type", response->host_type);
    add_metadata(document, response, dialect);
    cJSON *artifacts = hf_json_add(document, "artifacts", hf_json_new_object());
    for (size_t i = 0; i < dialect->artifact_count; i++) {
        cJSON *artifact = hf_json_add(artifacts, dialect->artifact_names[i], hf_json_new_object());
        hf_json_add_string(artifact, "path", response->artifacts[i].path);
        hf_json_add_string(artifact, "sha256", response->artifacts[i].sha256);
        hf_json_add_int(artifact, "size", response->artifacts[i].size);
    }
    cJSON *verify = hf_json_add(document, "verify", hf_json_new_object());
    hf_json_add_int(verify, "returncode", response->verify_returncode);
    hf_json_add_bool(verify, "timed_out", response->verify_timed_out);
    hf_json_add_int(verify, "duration_ms", response->verify_duration_ms);
    hf_json_add(document, "baseline", boot_object(&response->baseline, dialect));
    cJSON *oracles = hf_json_add(document, "oracles", hf_json_new_object());
    hf_json_add_string(oracles, "host_canary_sha256", response->host_canary_sha256);
    hf_json_add_int(oracles, "network_canary_port", response->network_canary_port);
    add_oracles(oracles, &response->oracles);
    hf_json_add_string(document, "artifact_root", response->artifact_root);
}

static void build_execute(cJSON *document, const struct hf_execute_response *response)
{
    hf_json_add_int(document, "sequence", response->sequence);
    hf_json_add_string(document, "case_id", response->case_id);
    hf_json_add_string(document, "category", hf_category_name(response->category));
    add_returncode(document, response->has_returncode, response->returncode);
    hf_json_add_bool(document, "timed_out", response->timed_out);
    hf_json_add_int(document, "duration_ms", response->duration_ms);
    hf_json_add_string(document, "stdout_b64", response->stdout_b64 ? response->stdout_b64 : "");
    hf_json_add_string(document, "stderr_b64", response->stderr_b64 ? response->stderr_b64 : "");
    hf_json_add_bool(document, "stdout_truncated", response->stdout_truncated);
    hf_json_add_bool(document, "stderr_truncated", response->stderr_truncated);
    add_oracles(document, &response->oracles);
    hf_json_add_bool(document, "teardown_complete", response->teardown_complete);
    hf_json_add_string(document, "artifact_path", response->artifact_path);
    add_bounded(document, "error", response->error, HF_PROTOCOL_MAX_ERROR);
}

static void build_finalize(cJSON *document, const struct hf_finalize_response *response,
                           const struct hf_dialect *dialect)
{
    hf_json_add_string(document, "status", hf_finalize_status_names[response->status]);
    hf_json_add_string(document, "run_id", response->run_id);
    if (response->has_post_campaign)
        hf_json_add(document, "post_campaign", boot_object(&response->post_campaign, dialect));
    else
        hf_json_add_null(document, "post_campaign");
    cJSON *oracles = hf_json_add(document, "oracles", hf_json_new_object());
    add_oracles(oracles, &response->oracles);
    add_bounded(oracles, "watchdog_error", response->watchdog_error, HF_PROTOCOL_MAX_ERROR);
    add_bounded(oracles, "network_canary_error", response->network_canary_error, HF_PROTOCOL_MAX_ERROR);
    hf_json_add_string(document, "artifact_root", response->artifact_root);
}

static void build_error(cJSON *document, const struct hf_error_response *response)
{
    hf_json_add_string(document, "request_operation", response->request_operation);
    add_bounded(document, "error_type", response->error_type, 128);
    add_bounded(document, "error", response->error ? response->error : "", HF_PROTOCOL_MAX_ERROR);
}

char *hf_response_build(const struct hf_response *response, const struct hf_dialect *dialect, size_t *length)
{
    cleanup_json cJSON *document = hf_json_new_object();
    hf_json_add_int(document, "schema_version", HF_PROTOCOL_VERSION);
    hf_json_add_string(document, "operation", hf_operation_name(response->operation));
    switch (response->operation) {
    case HF_OP_INITIALIZE:
        build_initialize(document, &response->initialize, dialect);
        break;
    case HF_OP_EXECUTE:
        build_execute(document, &response->execute);
        break;
    case HF_OP_FINALIZE:
        build_finalize(document, &response->finalize, dialect);
        break;
    case HF_OP_SHUTDOWN:
        hf_json_add_string(document, "status", "stopped");
        break;
    case HF_OP_ERROR:
        build_error(document, &response->error);
        break;
    }
    return hf_json_canonical(document, length);
}
