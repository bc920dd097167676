/*
 * Responses, controller side: one hostile line to a struct that has been checked against its request. Pure. Called once
 * per line; any refusal ends the session, so nothing here is lenient.
 */
#include "common/catalog/text.h"
#include "common/protocol/response_check.h"
#include "common/protocol/response_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_FIELD(out, object, key) hf_text_copy((out), sizeof(out), hf_json_get_string((object), (key)))

/* The value of a key of the dialect; the shape guarantees that it is there. */
static const cJSON *get_named(const struct hf_dialect *dialect, const cJSON *object, const char *pattern)
{
    char key[96];
    const struct hf_shape_names names = hf_dialect_names(dialect);
    return hf_json_get(object, hf_shape_name(&names, pattern, key, sizeof(key)));
}

static char *copy_string(const cJSON *object, const char *key)
{
    const char *text = hf_json_get_string(object, key);
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        abort();
    return copy;
}

static cJSON *copy_array(const cJSON *array)
{
    cJSON *copy = cJSON_Duplicate(array, true);
    if (!copy)
        abort();
    return copy;
}

static bool read_returncode(const cJSON *object, int32_t *returncode)
{
    int64_t value;
    if (!hf_json_get_int64(hf_json_get(object, "returncode"), &value))
        return false;
    *returncode = (int32_t)value;
    return true;
}

static size_t read_pids(const cJSON *array, int64_t pids[HF_PROTOCOL_MAX_PIDS])
{
    size_t count = 0;
    for (const cJSON *item = array->child; item; item = item->next)
        hf_json_get_int64(item, &pids[count++]);
    return count;
}

static void read_boot(const struct hf_dialect *dialect, const cJSON *object, struct hf_boot_record *boot)
{
    boot->category = (enum hf_category)hf_name_index(hf_category_names, hf_json_get_string(object, "category"));
    boot->has_returncode = read_returncode(object, &boot->returncode);
    boot->timed_out = hf_json_get_bool_or(object, "timed_out", true);
    boot->duration_ms = hf_json_get_int_or(object, "duration_ms", 0);
    boot->teardown_complete = hf_json_get_bool_or(object, "teardown_complete", false);
    boot->pid_count = read_pids(get_named(dialect, object, "{vmm}_pids"), boot->pids);
    boot->live_pid_count = read_pids(get_named(dialect, object, "live_{vmm}_pids"), boot->live_pids);
    COPY_FIELD(boot->artifact_path, object, "artifact_path");
}

static void read_oracles(const cJSON *object, struct hf_oracle_state *oracles)
{
    oracles->host_canary_intact = hf_json_get_bool_or(object, "host_canary_intact", false);
    oracles->network_canary_connections = hf_json_get_int_or(object, "network_canary_connections", 1);
}

static void read_metadata(const struct hf_dialect *dialect, const cJSON *metadata, struct hf_initialize_response *out)
{
    hf_text_copy(out->commit, sizeof(out->commit), get_named(dialect, metadata, "{source}_commit")->valuestring);
    hf_text_copy(out->vmm_commit, sizeof(out->vmm_commit), get_named(dialect, metadata, "{vmm}_commit")->valuestring);
    hf_text_copy(out->runtime, sizeof(out->runtime), get_named(dialect, metadata, "{runtime}")->valuestring);
    out->dirty = cJSON_IsTrue(get_named(dialect, metadata, "{source}_dirty"));
    out->vmm_dirty = cJSON_IsTrue(get_named(dialect, metadata, "{vmm}_dirty"));
    out->status_lines = copy_array(get_named(dialect, metadata, "{source}_status"));
    out->vmm_status_lines = copy_array(get_named(dialect, metadata, "{vmm}_status"));
    COPY_FIELD(out->os, metadata, "os");
    COPY_FIELD(out->os_release, metadata, "os_release");
    COPY_FIELD(out->machine, metadata, "machine");
}

static void read_artifacts(const struct hf_dialect *dialect, const cJSON *artifacts, struct hf_initialize_response *out)
{
    for (size_t i = 0; i < dialect->artifact_count; i++) {
        const cJSON *item = hf_json_get(artifacts, dialect->artifact_names[i]);
        COPY_FIELD(out->artifacts[i].path, item, "path");
        COPY_FIELD(out->artifacts[i].sha256, item, "sha256");
        out->artifacts[i].size = hf_json_get_int_or(item, "size", 0);
    }
}

static void read_initialize(const struct hf_dialect *dialect, const cJSON *document, struct hf_initialize_response *out)
{
    out->passed = strcmp(hf_json_get_string(document, "status"), "passed") == 0;
    COPY_FIELD(out->run_id, document, "run_id");
    COPY_FIELD(out->backend, document, "backend");
    COPY_FIELD(out->host_type, document, "host_type");
    read_metadata(dialect, hf_json_get(document, "metadata"), out);
    read_artifacts(dialect, hf_json_get(document, "artifacts"), out);
    const cJSON *verify = hf_json_get(document, "verify");
    out->verify_returncode = hf_json_get_int_or(verify, "returncode", -1);
    out->verify_timed_out = hf_json_get_bool_or(verify, "timed_out", true);
    out->verify_duration_ms = hf_json_get_int_or(verify, "duration_ms", 0);
    read_boot(dialect, hf_json_get(document, "baseline"), &out->baseline);
    const cJSON *oracles = hf_json_get(document, "oracles");
    COPY_FIELD(out->host_canary_sha256, oracles, "host_canary_sha256");
    out->network_canary_port = (int)hf_json_get_int_or(oracles, "network_canary_port", 0);
    read_oracles(oracles, &out->oracles);
    COPY_FIELD(out->artifact_root, document, "artifact_root");
}

static void read_execute(const cJSON *document, struct hf_execute_response *out)
{
    out->sequence = (int)hf_json_get_int_or(document, "sequence", 0);
    COPY_FIELD(out->case_id, document, "case_id");
    out->category = (enum hf_category)hf_name_index(hf_category_names, hf_json_get_string(document, "category"));
    out->has_returncode = read_returncode(document, &out->returncode);
    out->timed_out = hf_json_get_bool_or(document, "timed_out", true);
    out->duration_ms = hf_json_get_int_or(document, "duration_ms", 0);
    out->stdout_b64 = copy_string(document, "stdout_b64");
    out->stderr_b64 = copy_string(document, "stderr_b64");
    out->stdout_truncated = hf_json_get_bool_or(document, "stdout_truncated", true);
    out->stderr_truncated = hf_json_get_bool_or(document, "stderr_truncated", true);
    read_oracles(document, &out->oracles);
    out->teardown_complete = hf_json_get_bool_or(document, "teardown_complete", false);
    COPY_FIELD(out->artifact_path, document, "artifact_path");
    out->error = copy_string(document, "error");
}

static void read_finalize(const struct hf_dialect *dialect, const cJSON *document, struct hf_finalize_response *out)
{
    const char *status = hf_json_get_string(document, "status");
    out->status = (enum hf_finalize_status)hf_name_index(hf_finalize_status_names, status);
    COPY_FIELD(out->run_id, document, "run_id");
    const cJSON *post_campaign = hf_json_get(document, "post_campaign");
    out->has_post_campaign = cJSON_IsObject(post_campaign);
    if (out->has_post_campaign)
        read_boot(dialect, post_campaign, &out->post_campaign);
    const cJSON *oracles = hf_json_get(document, "oracles");
    read_oracles(oracles, &out->oracles);
    out->watchdog_error = copy_string(oracles, "watchdog_error");
    out->network_canary_error = copy_string(oracles, "network_canary_error");
    COPY_FIELD(out->artifact_root, document, "artifact_root");
}

static void read_error(const cJSON *document, struct hf_error_response *out)
{
    COPY_FIELD(out->request_operation, document, "request_operation");
    out->error_type = copy_string(document, "error_type");
    out->error = copy_string(document, "error");
}

static void read_response(const struct hf_dialect *dialect, struct hf_response *response)
{
    switch (response->operation) {
    case HF_OP_INITIALIZE:
        read_initialize(dialect, response->document, &response->initialize);
        break;
    case HF_OP_EXECUTE:
        read_execute(response->document, &response->execute);
        break;
    case HF_OP_FINALIZE:
        read_finalize(dialect, response->document, &response->finalize);
        break;
    case HF_OP_SHUTDOWN:
        break;
    case HF_OP_ERROR:
        read_error(response->document, &response->error);
        break;
    }
}

/* Which answer this claims to be: that of the request, or an error. Anything else is out of sequence. */
static int choose_operation(const cJSON *document, enum hf_operation asked, enum hf_operation *out,
                            struct hf_error *err)
{
    if (!cJSON_IsObject(document))
        return hf_error_set(
            err, "shape-invalid", 0, "",
            "response: expected one JSON object a line, seen another value; the executor speaks another "
            "protocol");
    const char *name = hf_json_get_string(document, "operation");
    *out = hf_operation_from_name(name);
    if (!name || (*out == HF_OP_ERROR && strcmp(name, hf_operation_name(HF_OP_ERROR)) != 0))
        return hf_error_set(err, "shape-invalid", 0, "operation",
                            "operation: expected \"%s\" or \"error\", seen no operation of the protocol; the executor "
                            "speaks another protocol",
                            hf_operation_name(asked));
    if (*out != asked && *out != HF_OP_ERROR)
        return hf_error_set(err, "protocol-mismatch", 0, "operation",
                            "operation: expected the answer to \"%s\", seen that to \"%s\"; the target is out of step "
                            "and must not be used again",
                            hf_operation_name(asked), hf_operation_name(*out));
    return 0;
}

int hf_response_parse(const char *line, size_t length, const struct hf_request *request,
                      const struct hf_dialect *dialect, struct hf_response *response, struct hf_error *err)
{
    memset(response, 0, sizeof(*response));
    response->operation = HF_OP_SHUTDOWN; /* owns nothing, until a shape has been checked */
    const struct hf_json_limits limits = {HF_PROTOCOL_MAX_LINE, HF_PROTOCOL_MAX_DEPTH};
    response->document = hf_json_parse(line, length, &limits, err);
    if (!response->document)
        return -1;
    enum hf_operation operation = HF_OP_ERROR;
    if (choose_operation(response->document, request->operation, &operation, err) != 0 ||
        hf_response_shape_check(operation, dialect, response->document, err) != 0)
        return -1;
    response->operation = operation;
    read_response(dialect, response);
    return hf_response_check(response, request, dialect, err);
}

void hf_response_clear(struct hf_response *response)
{
    switch (response->operation) {
    case HF_OP_INITIALIZE:
        cJSON_Delete(response->initialize.status_lines);
        cJSON_Delete(response->initialize.vmm_status_lines);
        break;
    case HF_OP_EXECUTE:
        free(response->execute.stdout_b64);
        free(response->execute.stderr_b64);
        free(response->execute.error);
        break;
    case HF_OP_FINALIZE:
        free(response->finalize.watchdog_error);
        free(response->finalize.network_canary_error);
        break;
    case HF_OP_SHUTDOWN:
        break;
    case HF_OP_ERROR:
        free(response->error.error_type);
        free(response->error.error);
        break;
    }
    cJSON_Delete(response->document);
    memset(response, 0, sizeof(*response));
    response->operation = HF_OP_SHUTDOWN;
}
