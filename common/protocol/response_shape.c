/*
 * Shapes of the responses as tables (docs/protocol.md, "Responses"). Called by response.c before it reads a field.
 * What a table cannot say, contradictions between fields, is in response_check.c.
 */
#include "common/protocol/response_shape.h"

#include "common/digest.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CONNECTIONS  1000000
#define MAX_DURATION_MS  86400000
#define MAX_PID          4294967295 /* Windows hosts have 32-bit process ids */
#define MAX_STATUS_LINES 4096
#define MAX_OUTPUT_B64   ((HF_PROTOCOL_MAX_OUTPUT + 2) / 3 * 4) /* I7 */
#define MAX_PATH         (HF_PROTOCOL_MAX_PATH - 1)

static const char *const initialize_only[] = {"initialize", NULL};
static const char *const execute_only[] = {"execute", NULL};
static const char *const finalize_only[] = {"finalize", NULL};
static const char *const shutdown_only[] = {"shutdown", NULL};
static const char *const error_only[] = {"error", NULL};
static const char *const initialize_status[] = {"passed", "failed", NULL};
static const char *const stopped_only[] = {"stopped", NULL};
static const char *const boot_categories[] = {"passed", "timeout", "availability-failure", "test-failure", NULL};

/* One line of a table each: key, then bounds. */
#define INT(key, low, high)                                                                                            \
    {                                                                                                                  \
        .name = (key), .type = HF_SHAPE_INT, .min = (low), .max = (high)                                               \
    }
#define BOOL(key)                                                                                                      \
    {                                                                                                                  \
        .name = (key), .type = HF_SHAPE_BOOL                                                                           \
    }
#define NAMED(key, list)                                                                                               \
    {                                                                                                                  \
        .name = (key), .type = HF_SHAPE_STRING, .min = 1, .max = 64, .one_of = (list)                                  \
    }
#define TEXT(key, high, rule)                                                                                          \
    {                                                                                                                  \
        .name = (key), .type = HF_SHAPE_STRING, .min = 1, .max = (high), .text = (rule)                                \
    }
#define RECORD(key, record)                                                                                            \
    {                                                                                                                  \
        .name = (key), .type = HF_SHAPE_OBJECT, .object = (record)                                                     \
    }
#define LIST(key, high, what)                                                                                          \
    {                                                                                                                  \
        .name = (key), .type = HF_SHAPE_ARRAY, .min = 0, .max = (high), .element = (what)                              \
    }
#define SAMPLE(key)                                                                                                    \
    {                                                                                                                  \
        .name = (key), .type = HF_SHAPE_STRING, .min = 0, .max = MAX_OUTPUT_B64, .text = HF_TEXT_BASE64                \
    }
#define RETURNCODE(key)                                                                                                \
    {                                                                                                                  \
        .name = (key), .type = HF_SHAPE_INT, .flags = HF_SHAPE_NULLABLE, .min = INT32_MIN, .max = INT32_MAX            \
    }
#define ERROR_TEXT(key)                                                                                                \
    {                                                                                                                  \
        .name = (key), .type = HF_SHAPE_STRING, .flags = HF_SHAPE_NULLABLE, .min = 0, .max = HF_PROTOCOL_MAX_ERROR     \
    }
#define HEADER(only) INT("schema_version", HF_PROTOCOL_VERSION, HF_PROTOCOL_VERSION), NAMED("operation", only)
#define SHAPE(title, fields)                                                                                           \
    {                                                                                                                  \
        (title), (fields), HF_COUNT(fields)                                                                            \
    }

static const struct hf_shape_field pid_element = {.type = HF_SHAPE_INT, .min = 1, .max = MAX_PID};
static const struct hf_shape_field status_element = {.type = HF_SHAPE_STRING, .min = 0, .max = 4096};

static const struct hf_shape_field metadata_fields[] = {
    TEXT("{source}_commit", 64, HF_TEXT_PRINTABLE),
    BOOL("{source}_dirty"),
    LIST("{source}_status", MAX_STATUS_LINES, &status_element),
    TEXT("{vmm}_commit", 64, HF_TEXT_PRINTABLE),
    BOOL("{vmm}_dirty"),
    LIST("{vmm}_status", MAX_STATUS_LINES, &status_element),
    TEXT("os", 64, HF_TEXT_PRINTABLE),
    TEXT("os_release", 128, HF_TEXT_PRINTABLE),
    TEXT("machine", 64, HF_TEXT_PRINTABLE),
    TEXT("{runtime}", 128, HF_TEXT_PRINTABLE),
};
static const struct hf_shape metadata_shape = SHAPE("metadata", metadata_fields);

static const struct hf_shape_field artifact_fields[] = {
    TEXT("path", MAX_PATH, HF_TEXT_PRINTABLE),
    TEXT("sha256", 64, HF_TEXT_SHA256),
    INT("size", 1, INT64_MAX),
};
static const struct hf_shape artifact_shape = SHAPE("artifact", artifact_fields);

static const struct hf_shape_field verify_fields[] = {
    INT("returncode", INT32_MIN, INT32_MAX),
    BOOL("timed_out"),
    INT("duration_ms", 0, MAX_DURATION_MS),
};
static const struct hf_shape verify_shape = SHAPE("verify", verify_fields);

static const struct hf_shape_field boot_fields[] = {
    NAMED("category", boot_categories),
    RETURNCODE("returncode"),
    BOOL("timed_out"),
    INT("duration_ms", 0, MAX_DURATION_MS),
    BOOL("teardown_complete"),
    LIST("{vmm}_pids", HF_PROTOCOL_MAX_PIDS, &pid_element),
    LIST("live_{vmm}_pids", HF_PROTOCOL_MAX_PIDS, &pid_element),
    TEXT("artifact_path", MAX_PATH, HF_TEXT_PRINTABLE),
};
static const struct hf_shape boot_shape = SHAPE("boot record", boot_fields);

static const struct hf_shape_field initial_oracle_fields[] = {
    TEXT("host_canary_sha256", 64, HF_TEXT_SHA256),
    INT("network_canary_port", 1, 65535),
    BOOL("host_canary_intact"),
    INT("network_canary_connections", 0, MAX_CONNECTIONS),
};
static const struct hf_shape initial_oracle_shape = SHAPE("oracles", initial_oracle_fields);

static const struct hf_shape_field final_oracle_fields[] = {
    BOOL("host_canary_intact"),
    INT("network_canary_connections", 0, MAX_CONNECTIONS),
    ERROR_TEXT("watchdog_error"),
    ERROR_TEXT("network_canary_error"),
};
static const struct hf_shape final_oracle_shape = SHAPE("oracles", final_oracle_fields);

/* The keys of `artifacts` come from the dialect; hf_response_shape_check() puts their shape in. */
enum { FIELD_ARTIFACTS = 7 };

static const struct hf_shape_field initialize_fields[] = {
    HEADER(initialize_only),
    NAMED("status", initialize_status),
    TEXT("run_id", HF_RUN_ID_SIZE - 1, HF_TEXT_RUN_ID),
    NAMED("backend", hf_backend_names),
    NAMED("host_type", hf_host_type_names),
    RECORD("metadata", &metadata_shape),
    [FIELD_ARTIFACTS] = RECORD("artifacts", NULL),
    RECORD("verify", &verify_shape),
    RECORD("baseline", &boot_shape),
    RECORD("oracles", &initial_oracle_shape),
    TEXT("artifact_root", MAX_PATH, HF_TEXT_PRINTABLE),
};

static const struct hf_shape_field execute_fields[] = {
    HEADER(execute_only),
    INT("sequence", 1, 100),
    TEXT("case_id", 64, HF_TEXT_IDENTIFIER),
    NAMED("category", hf_category_names),
    RETURNCODE("returncode"),
    BOOL("timed_out"),
    INT("duration_ms", 0, MAX_DURATION_MS),
    SAMPLE("stdout_b64"),
    SAMPLE("stderr_b64"),
    BOOL("stdout_truncated"),
    BOOL("stderr_truncated"),
    BOOL("host_canary_intact"),
    INT("network_canary_connections", 0, MAX_CONNECTIONS),
    BOOL("teardown_complete"),
    TEXT("artifact_path", MAX_PATH, HF_TEXT_PRINTABLE),
    ERROR_TEXT("error"),
};

static const struct hf_shape_field finalize_fields[] = {
    HEADER(finalize_only),
    NAMED("status", hf_finalize_status_names),
    TEXT("run_id", HF_RUN_ID_SIZE - 1, HF_TEXT_RUN_ID),
    {.name = "post_campaign", .type = HF_SHAPE_OBJECT, .flags = HF_SHAPE_NULLABLE, .object = &boot_shape},
    RECORD("oracles", &final_oracle_shape),
    TEXT("artifact_root", MAX_PATH, HF_TEXT_PRINTABLE),
};

static const struct hf_shape_field shutdown_fields[] = {
    HEADER(shutdown_only),
    NAMED("status", stopped_only),
};

static const struct hf_shape_field error_fields[] = {
    HEADER(error_only),
    TEXT("request_operation", 32, HF_TEXT_PRINTABLE),
    TEXT("error_type", 128, HF_TEXT_PRINTABLE),
    {.name = "error", .type = HF_SHAPE_STRING, .min = 0, .max = HF_PROTOCOL_MAX_ERROR},
};

static const struct hf_shape shapes[] = {
    [HF_OP_INITIALIZE] = SHAPE("initialize response", initialize_fields),
    [HF_OP_EXECUTE] = SHAPE("execute response", execute_fields),
    [HF_OP_FINALIZE] = SHAPE("finalize response", finalize_fields),
    [HF_OP_SHUTDOWN] = SHAPE("shutdown response", shutdown_fields),
    [HF_OP_ERROR] = SHAPE("error response", error_fields),
};

static int check_initialize(const struct hf_dialect *dialect, const cJSON *document, struct hf_error *err)
{
    const struct hf_shape_names names = hf_dialect_names(dialect);
    struct hf_shape_field artifacts[HF_PROFILE_MAX_ARTIFACTS];
    if (dialect->artifact_count > HF_COUNT(artifacts))
        abort(); /* no profile that was loaded has that many */
    for (size_t i = 0; i < dialect->artifact_count; i++)
        artifacts[i] = (struct hf_shape_field)RECORD(dialect->artifact_names[i], &artifact_shape);
    const struct hf_shape artifacts_shape = {"artifacts", artifacts, dialect->artifact_count};
    struct hf_shape_field fields[HF_COUNT(initialize_fields)];
    memcpy(fields, initialize_fields, sizeof(fields));
    fields[FIELD_ARTIFACTS].object = &artifacts_shape;
    const struct hf_shape shape = {shapes[HF_OP_INITIALIZE].title, fields, HF_COUNT(fields)};
    return hf_shape_check(&shape, &names, document, err);
}

/* The encoded bound of the table admits one byte too many when the text has no padding. */
static int check_sample(const cJSON *document, const char *key, struct hf_error *err)
{
    size_t decoded;
    if (hf_base64_is_canonical(hf_json_get_string(document, key), &decoded) && decoded <= HF_PROTOCOL_MAX_OUTPUT)
        return 0;
    return hf_error_set(err, "shape-invalid", 0, key,
                        "%s: expected at most %d decoded bytes, seen more; the executor must cut its samples", key,
                        HF_PROTOCOL_MAX_OUTPUT);
}

int hf_response_shape_check(enum hf_operation operation, const struct hf_dialect *dialect, const cJSON *document,
                            struct hf_error *err)
{
    if (operation == HF_OP_INITIALIZE)
        return check_initialize(dialect, document, err);
    const struct hf_shape_names names = hf_dialect_names(dialect);
    if (hf_shape_check(&shapes[operation], &names, document, err) != 0)
        return -1;
    if (operation != HF_OP_EXECUTE)
        return 0;
    if (check_sample(document, "stdout_b64", err) != 0)
        return -1;
    return check_sample(document, "stderr_b64", err);
}
