/*
 * Executor protocol, schema version 1 (docs/protocol.md): the messages as structs, one strict parser and one
 * builder for each, used by both sides so that there is no second definition. Canonical JSON, one message a line, at
 * most HF_PROTOCOL_MAX_LINE bytes without the newline.
 */
#ifndef HF_COMMON_PROTOCOL_PROTOCOL_H
#define HF_COMMON_PROTOCOL_PROTOCOL_H

#include "common/catalog/catalog.h"
#include "common/catalog/profile.h"
#include "common/error.h"
#include "common/json.h"

#include <stdbool.h>
#include <stdint.h>

#define HF_PROTOCOL_VERSION    1
#define HF_PROTOCOL_MAX_LINE   1048576
#define HF_PROTOCOL_MAX_OUTPUT 8192 /* decoded guest bytes per stream (I7) */
#define HF_PROTOCOL_MAX_PIDS   256  /* per boot record */
#define HF_PROTOCOL_MAX_ERROR  4096 /* bytes of an error string */
#define HF_PROTOCOL_MAX_PATH   4096
#define HF_RUN_ID_SIZE         97

/* Times of the protocol, seconds. */
#define HF_TIME_TERMINATION_WAIT    5
#define HF_TIME_READER_JOIN         5
#define HF_TIME_CLEANUP_GRACE       20
#define HF_TIME_PROTOCOL_GRACE      25
#define HF_TIME_INITIALIZE_OVERHEAD 165

enum hf_operation { HF_OP_INITIALIZE, HF_OP_EXECUTE, HF_OP_FINALIZE, HF_OP_SHUTDOWN, HF_OP_ERROR };
const char *hf_operation_name(enum hf_operation operation);

enum hf_category {
    HF_CATEGORY_PASSED,
    HF_CATEGORY_TEST_FAILURE,
    HF_CATEGORY_TIMEOUT,
    HF_CATEGORY_EXECUTOR_ERROR,
    HF_CATEGORY_POLICY_VIOLATION,
    HF_CATEGORY_AVAILABILITY_FAILURE,
};
const char *hf_category_name(enum hf_category category); /* "passed", "test-failure", ... */

extern const char *const hf_backend_names[];   /* NULL-terminated, like the next */
extern const char *const hf_host_type_names[]; /* what a request may say about the target's host */

struct hf_request {
    enum hf_operation operation;
    char run_id[HF_RUN_ID_SIZE]; /* all but shutdown */
    int timeout_seconds;         /* execute, finalize: 1..7200 */
    /* initialize */
    char expected_commit[65];
    char expected_vmm_commit[65];
    char expected_catalog_sha256[65];
    bool require_clean;
    char backend[8]; /* kvm, mshv, whp, tcg */
    char campaign[65];
    char host_type[16];           /* baremetal, virtual-machine, unspecified */
    int64_t seed;                 /* 0..INT64_MAX */
    int memory_mib;               /* 128..4096 */
    int phase_timeout_seconds;    /* 1..3600 */
    int baseline_timeout_seconds; /* 1..7200 */
    /* execute */
    int sequence; /* 1..100 */
    char case_id[65];
    /* finalize */
    bool quarantine;
};

/* One line, canonical, without newline; owned. Nothing is cut or checked here: the other side refuses what is out
 * of bounds. */
char *hf_request_build(const struct hf_request *request, const struct hf_dialect *dialect, size_t *length);
/* Strict parse of one line. Seconds may have a fraction on the wire (the public NVX controller sends them so); it is
 * dropped. Codes: "json-invalid", "shape-invalid", "protocol-version". `operation` is set as soon as
 * it is known, so that an error answer can name it (HF_OP_ERROR when unknown). */
int hf_request_parse(const char *line, size_t length, const struct hf_dialect *dialect, struct hf_request *request,
                     struct hf_error *err);

struct hf_boot_record {
    enum hf_category category; /* passed, timeout, availability-failure, test-failure */
    bool has_returncode;
    int32_t returncode;
    bool timed_out;
    int64_t duration_ms;
    bool teardown_complete;
    int64_t pids[HF_PROTOCOL_MAX_PIDS];
    size_t pid_count;
    int64_t live_pids[HF_PROTOCOL_MAX_PIDS]; /* subset of pids */
    size_t live_pid_count;
    char artifact_path[HF_PROTOCOL_MAX_PATH];
};
/* Passed, returncode 0, not timed out, torn down, at least one pid, none alive. */
bool hf_boot_record_clean(const struct hf_boot_record *record);

struct hf_artifact_record {
    char path[HF_PROTOCOL_MAX_PATH];
    char sha256[65];
    int64_t size; /* > 0 */
};

struct hf_oracle_state {
    bool host_canary_intact;
    int64_t network_canary_connections; /* 0..1000000 */
};

struct hf_initialize_response {
    bool passed;
    char run_id[HF_RUN_ID_SIZE];
    char backend[8];
    char host_type[16];
    char commit[65];
    bool dirty;
    cJSON *status_lines; /* array of strings, owned */
    char vmm_commit[65];
    bool vmm_dirty;
    cJSON *vmm_status_lines; /* owned */
    char os[65], os_release[129], machine[65], runtime[129];
    struct hf_artifact_record artifacts[HF_PROFILE_MAX_ARTIFACTS]; /* in dialect order */
    int64_t verify_returncode;
    bool verify_timed_out;
    int64_t verify_duration_ms;
    struct hf_boot_record baseline;
    char host_canary_sha256[65];
    int network_canary_port; /* 1..65535 */
    struct hf_oracle_state oracles;
    char artifact_root[HF_PROTOCOL_MAX_PATH];
};

struct hf_execute_response {
    int sequence;
    char case_id[65];
    enum hf_category category;
    bool has_returncode;
    int32_t returncode;
    bool timed_out;
    int64_t duration_ms; /* 0..86400000 */
    char *stdout_b64;    /* owned; decodes to at most HF_PROTOCOL_MAX_OUTPUT bytes */
    char *stderr_b64;    /* owned */
    bool stdout_truncated, stderr_truncated;
    struct hf_oracle_state oracles;
    bool teardown_complete;
    char artifact_path[HF_PROTOCOL_MAX_PATH];
    char *error; /* owned, NULL when none */
};

enum hf_finalize_status { HF_FINALIZE_PASSED, HF_FINALIZE_FAILED, HF_FINALIZE_QUARANTINED };

struct hf_finalize_response {
    enum hf_finalize_status status;
    char run_id[HF_RUN_ID_SIZE];
    bool has_post_campaign;
    struct hf_boot_record post_campaign;
    struct hf_oracle_state oracles;
    char *watchdog_error;       /* owned, NULL when none */
    char *network_canary_error; /* owned, NULL when none */
    char artifact_root[HF_PROTOCOL_MAX_PATH];
};

struct hf_error_response {
    char request_operation[33];
    char *error_type; /* owned */
    char *error;      /* owned */
};

struct hf_response {
    enum hf_operation operation;
    cJSON *document; /* owned: the whole message as received */
    union {
        struct hf_initialize_response initialize;
        struct hf_execute_response execute;
        struct hf_finalize_response finalize;
        struct hf_error_response error;
    };
};

/* Builder (executor side); owned line without newline. Error texts and error_type are cut to their bounds, between
 * characters; everything else must be within bounds: paths non-empty, status lines at most 4,096 of 4,096 bytes. */
char *hf_response_build(const struct hf_response *response, const struct hf_dialect *dialect, size_t *length);

/* Strict parse of the answer to `request` (controller side): exact keys, bounds, and no contradiction: run id, backend,
 * host type, sequence and case id equal the request's; `passed` with any contradicting field, an unrequested quarantine
 * without evidence, a requested one that is not quarantined or that booted a VM, live pids outside pids, status passed
 * with an unclean boot are refused. An `error` response parses for any request,
 * unless it names another operation of the protocol than the request's. Codes: "json-invalid", "shape-invalid",
 * "protocol-contradiction", "protocol-mismatch". *response needs hf_response_clear() in every case. */
int hf_response_parse(const char *line, size_t length, const struct hf_request *request,
                      const struct hf_dialect *dialect, struct hf_response *response, struct hf_error *err);
void hf_response_clear(struct hf_response *response);

/* The worse reading wins: true when the bytes, however malformed otherwise, carry violation evidence (a canary reported
 * touched, a connection count above zero; category, status or error_type policy-violation; at any depth, in any
 * spelling). Also used on well-formed answers.
 */
bool hf_response_has_violation_evidence(const char *line, size_t length);

#endif
