/*
 * Responses from hostile bytes, read as the answer to each kind of request: whatever is accepted is rebuilt to a line
 * that is accepted and rebuilt to itself, and evidence in an accepted answer is found in its bytes.
 */
#include "common/protocol/protocol.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hf_dialect dialect = {.source = "holdfast",
                                          .vmm = "qemu",
                                          .runtime = "libc",
                                          .artifact_names = {"kernel", "kernel_provenance"},
                                          .artifact_count = 2};

/* What the seeds in tests/data/protocol/responses answer. */
static const struct hf_request requests[] = {
    {.operation = HF_OP_INITIALIZE,
     .run_id = "run-1",
     .expected_commit = "abc",
     .expected_vmm_commit = "1:7.2+dfsg-7",
     .require_clean = true,
     .backend = "tcg",
     .host_type = "virtual-machine"},
    {.operation = HF_OP_EXECUTE, .run_id = "run-1", .sequence = 3, .case_id = "some-case"},
    {.operation = HF_OP_FINALIZE, .run_id = "run-1"},
    {.operation = HF_OP_FINALIZE, .run_id = "run-1", .quarantine = true},
    {.operation = HF_OP_SHUTDOWN},
};

static bool has_evidence(const struct hf_response *response)
{
    const struct hf_oracle_state *oracles = NULL;
    if (response->operation == HF_OP_INITIALIZE)
        oracles = &response->initialize.oracles;
    if (response->operation == HF_OP_EXECUTE)
        oracles = &response->execute.oracles;
    if (response->operation == HF_OP_FINALIZE)
        oracles = &response->finalize.oracles;
    return oracles && (!oracles->host_canary_intact || oracles->network_canary_connections > 0);
}

static void check_accepted(const struct hf_response *response, const struct hf_request *request)
{
    struct hf_response again;
    size_t length, second_length;
    char *line = hf_response_build(response, &dialect, &length);
    if (hf_response_parse(line, length, request, &dialect, &again, NULL) != 0)
        abort();
    char *second = hf_response_build(&again, &dialect, &second_length);
    if (length != second_length || memcmp(line, second, length) != 0)
        abort();
    free(line);
    free(second);
    hf_response_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool found = hf_response_has_violation_evidence((const char *)data, size);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct hf_response response;
        struct hf_error err = {0};
        int result = hf_response_parse((const char *)data, size, &requests[i], &dialect, &response, &err);
        if (result != 0 && (!err.code || !err.message[0]))
            abort();
        if (result == 0) {
            check_accepted(&response, &requests[i]);
            if (has_evidence(&response) && !found)
                abort();
        }
        hf_response_clear(&response);
    }
    return 0;
}
