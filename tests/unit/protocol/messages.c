/* Implementation of messages.h. */
#include "tests/unit/protocol/messages.h"

#include "common/cleanup.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BOOT                                                                                                           \
    "{\"artifact_path\":\"/a/boot\",\"category\":\"passed\",\"duration_ms\":4200,\"live_qemu_pids\":[],\"qemu_pids\":" \
    "[41,42],\"returncode\":0,\"teardown_complete\":true,\"timed_out\":false}"

const struct hf_dialect test_dialect = {.source = "holdfast",
                                        .vmm = "qemu",
                                        .runtime = "libc",
                                        .artifact_names = {"kernel", "kernel_provenance"},
                                        .artifact_count = 2};

struct hf_request sample_request(enum hf_operation operation)
{
    struct hf_request request = {.operation = operation};
    if (operation != HF_OP_SHUTDOWN)
        strcpy(request.run_id, "run-1");
    if (operation == HF_OP_EXECUTE || operation == HF_OP_FINALIZE)
        request.timeout_seconds = 600;
    if (operation == HF_OP_EXECUTE) {
        request.sequence = 3;
        strcpy(request.case_id, "some-case");
    }
    if (operation != HF_OP_INITIALIZE)
        return request;
    strcpy(request.expected_commit, "abc");
    strcpy(request.expected_vmm_commit, "1:7.2+dfsg-7");
    strcpy(request.expected_catalog_sha256, DIGEST);
    request.require_clean = true;
    strcpy(request.backend, "tcg");
    strcpy(request.campaign, "guest-isolation");
    strcpy(request.host_type, "virtual-machine");
    request.seed = INT64_MAX - 1;
    request.memory_mib = 256;
    request.phase_timeout_seconds = 60;
    request.baseline_timeout_seconds = 600;
    return request;
}

static const char *const responses[] = {
    [HF_OP_INITIALIZE] =
        "{\"artifact_root\":\"/a\",\"artifacts\":{\"kernel\":{\"path\":\"/k\",\"sha256\":\"" DIGEST
        "\",\"size\":10},\"kernel_provenance\":{\"path\":\"/p\",\"sha256\":\"" DIGEST
        "\",\"size\":20}},\"backend\":\"tcg\",\"baseline\":" BOOT
        ",\"host_type\":\"virtual-machine\",\"metadata\":{\"holdfast_commit\":\"abc\",\"holdfast_dirty\":false,"
        "\"holdfast_status\":[],\"libc\":\"glibc 2.36\",\"machine\":\"x86_64\",\"os\":\"Linux\",\"os_release\":\"6.1\","
        "\"qemu_commit\":\"1:7.2+dfsg-7\",\"qemu_dirty\":false,\"qemu_status\":[]},\"operation\":\"initialize\","
        "\"oracles\":{\"host_canary_intact\":true,\"host_canary_sha256\":\"" DIGEST
        "\",\"network_canary_connections\":0,\"network_canary_port\":40000},\"run_id\":\"run-1\",\"schema_version\":1,"
        "\"status\":\"passed\",\"verify\":{\"duration_ms\":12,\"returncode\":0,\"timed_out\":false}}",
    [HF_OP_EXECUTE] =
        "{\"artifact_path\":\"/a/3\",\"case_id\":\"some-case\",\"category\":\"passed\",\"duration_ms\":9000,\"error\":"
        "null,\"host_canary_intact\":true,\"network_canary_connections\":0,\"operation\":\"execute\",\"returncode\":0,"
        "\"schema_version\":1,\"sequence\":3,\"stderr_b64\":\"\",\"stderr_truncated\":false,\"stdout_b64\":\"aGVsbG8="
        "\","
        "\"stdout_truncated\":true,\"teardown_complete\":true,\"timed_out\":false}",
    [HF_OP_FINALIZE] = "{\"artifact_root\":\"/a\",\"operation\":\"finalize\",\"oracles\":{\"host_canary_intact\":true,"
                       "\"network_canary_connections\":0,\"network_canary_error\":null,\"watchdog_error\":null},\"post_"
                       "campaign\":" BOOT ",\"run_id\":\"run-1\",\"schema_version\":1,\"status\":\"passed\"}",
    [HF_OP_SHUTDOWN] = "{\"operation\":\"shutdown\",\"schema_version\":1,\"status\":\"stopped\"}",
    [HF_OP_ERROR] = ("{\"error\":\"no such case\",\"error_type\":\"unknown-case\",\"operation\":\"error\","
                     "\"request_operation\":\"execute\",\"schema_version\":1}"),
};

char *sample_response(enum hf_operation operation)
{
    char *copy = strdup(responses[operation]);
    if (!copy)
        abort();
    return copy;
}

uint64_t random_next(struct random_source *source)
{
    uint64_t z = source->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t random_below(struct random_source *source, uint64_t bound)
{
    return random_next(source) % bound;
}

static int64_t random_range(struct random_source *source, int64_t low, int64_t high)
{
    switch (random_below(source, 4)) {
    case 0:
        return low;
    case 1:
        return high;
    default:
        return low + (int64_t)random_below(source, (uint64_t)(high - low));
    }
}

static bool random_bool(struct random_source *source)
{
    return random_below(source, 2) == 1;
}

/* Text of 1..max bytes: the first character from `first`, the others from `rest`. */
static void random_word(struct random_source *source, char *out, size_t max, const char *first, const char *rest)
{
    size_t length = (size_t)random_range(source, 1, (int64_t)max);
    for (size_t i = 0; i < length; i++) {
        const char *set = i == 0 ? first : rest;
        out[i] = set[random_below(source, strlen(set))];
    }
    out[length] = '\0';
}

#define LOWER     "abcdefghijklmnopqrstuvwxyz"
#define PRINTABLE " !\"#$%&'()*+,-./0123456789:;<=>?@ABCXYZ[\\]^_`" LOWER "{|}~"

static void random_identifier(struct random_source *source, char *out, size_t max)
{
    random_word(source, out, max, LOWER, LOWER "0123456789-");
}

static void random_text(struct random_source *source, char *out, size_t max)
{
    random_word(source, out, max, PRINTABLE, PRINTABLE);
}

static void random_digest(struct random_source *source, char out[65])
{
    for (size_t i = 0; i < 64; i++)
        out[i] = "0123456789abcdef"[random_below(source, 16)];
    out[64] = '\0';
}

struct hf_request random_request(struct random_source *source, enum hf_operation operation)
{
    static const char *const backends[] = {"kvm", "mshv", "whp", "tcg"};
    static const char *const host_types[] = {"baremetal", "virtual-machine", "unspecified"};
    struct hf_request request = {.operation = operation};
    if (operation == HF_OP_SHUTDOWN)
        return request;
    random_word(source, request.run_id, 96, LOWER "0123456789", LOWER "0123456789-");
    if (operation == HF_OP_INITIALIZE) {
        random_text(source, request.expected_commit, 64);
        random_text(source, request.expected_vmm_commit, 64);
        random_digest(source, request.expected_catalog_sha256);
        request.require_clean = random_bool(source);
        strcpy(request.backend, backends[random_below(source, 4)]);
        random_identifier(source, request.campaign, 64);
        strcpy(request.host_type, host_types[random_below(source, 3)]);
        request.seed = random_range(source, 0, INT64_MAX);
        request.memory_mib = (int)random_range(source, 128, 4096);
        request.phase_timeout_seconds = (int)random_range(source, 1, 3600);
        request.baseline_timeout_seconds = (int)random_range(source, 1, 7200);
        return request;
    }
    request.timeout_seconds = (int)random_range(source, 1, 7200);
    if (operation == HF_OP_EXECUTE) {
        request.sequence = (int)random_range(source, 1, 100);
        random_identifier(source, request.case_id, 64);
    } else {
        request.quarantine = random_bool(source);
    }
    return request;
}

static char *random_copy(struct random_source *source, size_t max)
{
    char *text = calloc(1, max + 1);
    ck_assert(text != NULL);
    random_text(source, text, max);
    return text;
}

static char *random_base64(struct random_source *source)
{
    uint8_t bytes[HF_PROTOCOL_MAX_OUTPUT];
    size_t length = (size_t)random_range(source, 0, sizeof(bytes));
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)random_next(source);
    return hf_base64_encode(bytes, length);
}

static void random_boot(struct random_source *source, bool clean, struct hf_boot_record *boot)
{
    static const enum hf_category others[] = {HF_CATEGORY_TIMEOUT, HF_CATEGORY_AVAILABILITY_FAILURE,
                                              HF_CATEGORY_TEST_FAILURE};
    boot->category = clean ? HF_CATEGORY_PASSED : others[random_below(source, 3)];
    boot->has_returncode = clean || random_bool(source);
    boot->returncode = clean || !boot->has_returncode ? 0 : (int32_t)random_range(source, INT32_MIN, INT32_MAX);
    boot->timed_out = !clean && random_bool(source);
    boot->duration_ms = random_range(source, 0, 86400000);
    boot->teardown_complete = clean || random_bool(source);
    boot->pid_count = (size_t)random_range(source, 1, HF_PROTOCOL_MAX_PIDS);
    for (size_t i = 0; i < boot->pid_count; i++)
        boot->pids[i] = random_range(source, 1, 4294967295);
    boot->live_pid_count = clean ? 0 : (size_t)random_below(source, boot->pid_count);
    memcpy(boot->live_pids, boot->pids, boot->live_pid_count * sizeof(boot->pids[0]));
    random_text(source, boot->artifact_path, HF_PROTOCOL_MAX_PATH - 1);
}

static void random_oracles(struct random_source *source, bool clean, struct hf_oracle_state *oracles)
{
    oracles->host_canary_intact = clean || random_bool(source);
    oracles->network_canary_connections = clean ? 0 : random_range(source, 0, 1000000);
}

static cJSON *random_status(struct random_source *source, bool dirty)
{
    cJSON *lines = hf_json_new_array();
    for (size_t i = dirty ? 1 + random_below(source, 20) : 0; i > 0; i--) {
        cleanup_free char *line = random_copy(source, 200);
        hf_json_append(lines, hf_json_new_string(line));
    }
    return lines;
}

static void random_initialize(struct random_source *source, const struct hf_request *request,
                              struct hf_initialize_response *out)
{
    out->passed = random_bool(source);
    strcpy(out->run_id, request->run_id);
    strcpy(out->backend, request->backend);
    strcpy(out->host_type, request->host_type);
    strcpy(out->commit, request->expected_commit);
    strcpy(out->vmm_commit, request->expected_vmm_commit);
    bool may_be_dirty = !out->passed || !request->require_clean;
    out->dirty = may_be_dirty && random_bool(source);
    out->vmm_dirty = may_be_dirty && random_bool(source);
    out->status_lines = random_status(source, out->dirty);
    out->vmm_status_lines = random_status(source, out->vmm_dirty);
    random_text(source, out->os, 64);
    random_text(source, out->os_release, 128);
    random_text(source, out->machine, 64);
    random_text(source, out->runtime, 128);
    for (size_t i = 0; i < test_dialect.artifact_count; i++) {
        random_text(source, out->artifacts[i].path, HF_PROTOCOL_MAX_PATH - 1);
        random_digest(source, out->artifacts[i].sha256);
        out->artifacts[i].size = random_range(source, 1, INT64_MAX);
    }
    out->verify_returncode = out->passed ? 0 : random_range(source, INT32_MIN, INT32_MAX);
    out->verify_timed_out = !out->passed && random_bool(source);
    out->verify_duration_ms = random_range(source, 0, 86400000);
    random_boot(source, out->passed, &out->baseline);
    random_digest(source, out->host_canary_sha256);
    out->network_canary_port = (int)random_range(source, 1, 65535);
    random_oracles(source, out->passed, &out->oracles);
    random_text(source, out->artifact_root, HF_PROTOCOL_MAX_PATH - 1);
}

static void random_execute(struct random_source *source, const struct hf_request *request,
                           struct hf_execute_response *out)
{
    out->sequence = request->sequence;
    strcpy(out->case_id, request->case_id);
    out->category = (enum hf_category)random_below(source, HF_CATEGORY_AVAILABILITY_FAILURE + 1);
    bool passed = out->category == HF_CATEGORY_PASSED;
    out->has_returncode = passed || random_bool(source);
    out->returncode = passed || !out->has_returncode ? 0 : (int32_t)random_range(source, INT32_MIN, INT32_MAX);
    out->timed_out = !passed && random_bool(source);
    out->duration_ms = random_range(source, 0, 86400000);
    out->stdout_b64 = random_base64(source);
    out->stderr_b64 = random_base64(source);
    out->stdout_truncated = random_bool(source);
    out->stderr_truncated = random_bool(source);
    random_oracles(source, passed, &out->oracles);
    out->teardown_complete = passed || random_bool(source);
    random_text(source, out->artifact_path, HF_PROTOCOL_MAX_PATH - 1);
    out->error = passed || random_bool(source) ? NULL : random_copy(source, HF_PROTOCOL_MAX_ERROR);
}

static void random_finalize(struct random_source *source, const struct hf_request *request,
                            struct hf_finalize_response *out)
{
    out->status = request->quarantine ? HF_FINALIZE_QUARANTINED : (enum hf_finalize_status)random_below(source, 3);
    bool passed = out->status == HF_FINALIZE_PASSED;
    strcpy(out->run_id, request->run_id);
    out->has_post_campaign = !request->quarantine && (passed || random_bool(source));
    if (out->has_post_campaign)
        random_boot(source, passed, &out->post_campaign);
    random_oracles(source, passed, &out->oracles);
    if (out->status == HF_FINALIZE_QUARANTINED && !request->quarantine)
        out->oracles.network_canary_connections = 1;
    out->watchdog_error = passed || random_bool(source) ? NULL : random_copy(source, HF_PROTOCOL_MAX_ERROR);
    out->network_canary_error = passed || random_bool(source) ? NULL : random_copy(source, HF_PROTOCOL_MAX_ERROR);
    random_text(source, out->artifact_root, HF_PROTOCOL_MAX_PATH - 1);
}

void random_response(struct random_source *source, const struct hf_request *request, struct hf_response *response)
{
    memset(response, 0, sizeof(*response));
    response->operation = random_below(source, 5) == 0 ? HF_OP_ERROR : request->operation;
    switch (response->operation) {
    case HF_OP_INITIALIZE:
        random_initialize(source, request, &response->initialize);
        break;
    case HF_OP_EXECUTE:
        random_execute(source, request, &response->execute);
        break;
    case HF_OP_FINALIZE:
        random_finalize(source, request, &response->finalize);
        break;
    case HF_OP_SHUTDOWN:
        break;
    case HF_OP_ERROR:
        snprintf(response->error.request_operation, sizeof(response->error.request_operation), "%s",
                 random_bool(source) ? "unknown" : hf_operation_name(request->operation));
        response->error.error_type = random_copy(source, 128);
        response->error.error = random_copy(source, HF_PROTOCOL_MAX_ERROR);
        break;
    }
}
