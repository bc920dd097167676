/*
 * Requests, both ways: struct to line for the controller, line to struct for the executor. Pure. The executor trusts
 * its controller no more than the controller trusts it: every key, type and bound is checked before a field is read.
 */
#include "common/catalog/text.h"
#include "common/cleanup.h"
#include "common/protocol/message.h"

#include <stdio.h>
#include <string.h>

static const char *const initialize_only[] = {"initialize", NULL};
static const char *const execute_only[] = {"execute", NULL};
static const char *const finalize_only[] = {"finalize", NULL};
static const char *const shutdown_only[] = {"shutdown", NULL};

#define SCHEMA_VERSION                                                                                                 \
    {                                                                                                                  \
        .name = "schema_version", .type = HF_SHAPE_INT, .min = HF_PROTOCOL_VERSION, .max = HF_PROTOCOL_VERSION         \
    }
#define OPERATION(only)                                                                                                \
    {                                                                                                                  \
        .name = "operation", .type = HF_SHAPE_STRING, .min = 1, .max = 32, .one_of = (only)                            \
    }
#define RUN_ID                                                                                                         \
    {                                                                                                                  \
        .name = "run_id", .type = HF_SHAPE_STRING, .min = 1, .max = HF_RUN_ID_SIZE - 1, .text = HF_TEXT_RUN_ID         \
    }
/* Seconds may have a fraction on the wire, which no shape expresses; read_seconds() checks these. */
#define SECONDS(key)                                                                                                   \
    {                                                                                                                  \
        .name = (key), .type = HF_SHAPE_ANY                                                                            \
    }

static const struct hf_shape_field initialize_fields[] = {
    SCHEMA_VERSION,
    OPERATION(initialize_only),
    RUN_ID,
    {.name = "expected_commit", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_PRINTABLE},
    {.name = "expected_{vmm}_commit", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_PRINTABLE},
    {.name = "expected_catalog_sha256", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_PRINTABLE},
    {.name = "require_clean", .type = HF_SHAPE_BOOL},
    {.name = "backend", .type = HF_SHAPE_STRING, .min = 1, .max = 7, .one_of = hf_backend_names},
    {.name = "campaign", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_IDENTIFIER},
    {.name = "host_type", .type = HF_SHAPE_STRING, .min = 1, .max = 15, .one_of = hf_host_type_names},
    {.name = "seed", .type = HF_SHAPE_INT, .min = 0, .max = INT64_MAX},
    {.name = "memory_mib", .type = HF_SHAPE_INT, .min = 128, .max = 4096},
    SECONDS("phase_timeout_seconds"),
    SECONDS("baseline_timeout_seconds"),
};

static const struct hf_shape_field execute_fields[] = {
    SCHEMA_VERSION,
    OPERATION(execute_only),
    RUN_ID,
    {.name = "sequence", .type = HF_SHAPE_INT, .min = 1, .max = 100},
    {.name = "case_id", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_IDENTIFIER},
    SECONDS("timeout_seconds"),
};

static const struct hf_shape_field finalize_fields[] = {
    SCHEMA_VERSION,
    OPERATION(finalize_only),
    RUN_ID,
    SECONDS("timeout_seconds"),
    {.name = "quarantine", .type = HF_SHAPE_BOOL},
};

static const struct hf_shape_field shutdown_fields[] = {
    SCHEMA_VERSION,
    OPERATION(shutdown_only),
};

static const struct hf_shape shapes[] = {
    [HF_OP_INITIALIZE] = {"initialize request", initialize_fields, HF_COUNT(initialize_fields)},
    [HF_OP_EXECUTE] = {"execute request", execute_fields, HF_COUNT(execute_fields)},
    [HF_OP_FINALIZE] = {"finalize request", finalize_fields, HF_COUNT(finalize_fields)},
    [HF_OP_SHUTDOWN] = {"shutdown request", shutdown_fields, HF_COUNT(shutdown_fields)},
};

/* A controller that computes with fractions of a second (the public NVX one does) sends them; a part of a second is
 * dropped, so that no phase ever gets more time than it was given. */
static int read_seconds(const cJSON *document, const char *key, int max, int *seconds, struct hf_error *err)
{
    const cJSON *item = hf_json_get(document, key);
    if (cJSON_IsNumber(item) && item->valuedouble >= 1.0 && item->valuedouble <= (double)max) {
        *seconds = (int)item->valuedouble;
        return 0;
    }
    return hf_error_set(err, "shape-invalid", 0, key,
                        "%s: expected a number of seconds from 1 to %d, seen %s; correct the request", key, max,
                        cJSON_IsNumber(item) ? "a number out of bounds" : "another type");
}

#define COPY_FIELD(out, key) hf_text_copy((out), sizeof(out), hf_json_get_string(document, (key)))

static int read_initialize(const cJSON *document, const struct hf_dialect *dialect, struct hf_request *request,
                           struct hf_error *err)
{
    char vmm_key[96];
    const struct hf_shape_names names = hf_dialect_names(dialect);
    hf_shape_name(&names, "expected_{vmm}_commit", vmm_key, sizeof(vmm_key));
    COPY_FIELD(request->expected_commit, "expected_commit");
    COPY_FIELD(request->expected_vmm_commit, vmm_key);
    COPY_FIELD(request->expected_catalog_sha256, "expected_catalog_sha256");
    COPY_FIELD(request->backend, "backend");
    COPY_FIELD(request->campaign, "campaign");
    COPY_FIELD(request->host_type, "host_type");
    request->require_clean = hf_json_get_bool_or(document, "require_clean", true);
    request->seed = hf_json_get_int_or(document, "seed", 0);
    request->memory_mib = (int)hf_json_get_int_or(document, "memory_mib", 0);
    if (read_seconds(document, "phase_timeout_seconds", 3600, &request->phase_timeout_seconds, err) != 0)
        return -1;
    return read_seconds(document, "baseline_timeout_seconds", 7200, &request->baseline_timeout_seconds, err);
}

static int read_fields(const cJSON *document, const struct hf_dialect *dialect, struct hf_request *request,
                       struct hf_error *err)
{
    if (request->operation != HF_OP_SHUTDOWN)
        COPY_FIELD(request->run_id, "run_id");
    if (request->operation == HF_OP_INITIALIZE)
        return read_initialize(document, dialect, request, err);
    if (request->operation == HF_OP_SHUTDOWN)
        return 0;
    if (request->operation == HF_OP_EXECUTE) {
        request->sequence = (int)hf_json_get_int_or(document, "sequence", 0);
        COPY_FIELD(request->case_id, "case_id");
    } else {
        request->quarantine = hf_json_get_bool_or(document, "quarantine", true);
    }
    return read_seconds(document, "timeout_seconds", 7200, &request->timeout_seconds, err);
}

int hf_request_parse(const char *line, size_t length, const struct hf_dialect *dialect, struct hf_request *request,
                     struct hf_error *err)
{
    memset(request, 0, sizeof(*request));
    request->operation = HF_OP_ERROR;
    const struct hf_json_limits limits = {HF_PROTOCOL_MAX_LINE, HF_PROTOCOL_MAX_DEPTH};
    cleanup_json cJSON *document = hf_json_parse(line, length, &limits, err);
    if (!document)
        return -1;
    if (!cJSON_IsObject(document))
        return hf_error_set(err, "shape-invalid", 0, "",
                            "request: expected one JSON object a line, seen another value; send an object");
    request->operation = hf_operation_from_name(hf_json_get_string(document, "operation"));
    if (request->operation == HF_OP_ERROR)
        return hf_error_set(
            err, "shape-invalid", 0, "operation",
            "operation: expected initialize, execute, finalize or shutdown, seen none of them; send one");
    int64_t version;
    if (hf_json_get_int64(hf_json_get(document, "schema_version"), &version) && version != HF_PROTOCOL_VERSION)
        return hf_error_set(err, "protocol-version", 0, "schema_version",
                            "schema_version: expected %d, seen %lld; use a controller of this protocol version",
                            HF_PROTOCOL_VERSION, (long long)version);
    const struct hf_shape_names names = hf_dialect_names(dialect);
    if (hf_shape_check(&shapes[request->operation], &names, document, err) != 0)
        return -1;
    return read_fields(document, dialect, request, err);
}

static void build_initialize(const struct hf_request *request, const struct hf_dialect *dialect, cJSON *document)
{
    char vmm_key[96];
    const struct hf_shape_names names = hf_dialect_names(dialect);
    hf_shape_name(&names, "expected_{vmm}_commit", vmm_key, sizeof(vmm_key));
    hf_json_add_string(document, "expected_commit", request->expected_commit);
    hf_json_add_string(document, vmm_key, request->expected_vmm_commit);
    hf_json_add_string(document, "expected_catalog_sha256", request->expected_catalog_sha256);
    hf_json_add_bool(document, "require_clean", request->require_clean);
    hf_json_add_string(document, "backend", request->backend);
    hf_json_add_string(document, "campaign", request->campaign);
    hf_json_add_string(document, "host_type", request->host_type);
    hf_json_add_int(document, "seed", request->seed);
    hf_json_add_int(document, "memory_mib", request->memory_mib);
    hf_json_add_int(document, "phase_timeout_seconds", request->phase_timeout_seconds);
    hf_json_add_int(document, "baseline_timeout_seconds", request->baseline_timeout_seconds);
}

char *hf_request_build(const struct hf_request *request, const struct hf_dialect *dialect, size_t *length)
{
    cleanup_json cJSON *document = hf_json_new_object();
    hf_json_add_int(document, "schema_version", HF_PROTOCOL_VERSION);
    hf_json_add_string(document, "operation", hf_operation_name(request->operation));
    if (request->operation != HF_OP_SHUTDOWN)
        hf_json_add_string(document, "run_id", request->run_id);
    if (request->operation == HF_OP_INITIALIZE)
        build_initialize(request, dialect, document);
    if (request->operation == HF_OP_EXECUTE) {
        hf_json_add_int(document, "sequence", request->sequence);
        hf_json_add_string(document, "case_id", request->case_id);
    }
    if (request->operation == HF_OP_FINALIZE)
        hf_json_add_bool(document, "quarantine", request->quarantine);
    if (request->operation == HF_OP_EXECUTE || request->operation == HF_OP_FINALIZE)
        hf_json_add_int(document, "timeout_seconds", request->timeout_seconds);
    return hf_json_canonical(document, length);
}
