/*
 * Contradictions: a response whose fields cannot all be true, or that answers another request. Called by response.c on
 * every response before anybody else sees it. Pure.
 *
 * Only claims that are too good are refused. "failed" beside clean evidence stands, because a target that accuses
 * itself is believed.
 */
#include "common/protocol/response_check.h"

#include <stdio.h>
#include <string.h>

/* One thing that must hold, as data: the field that would be wrong, and what was expected of it. */
struct demand {
    bool holds;
    const char *field;
    const char *expected;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int check_demands(const struct demand *demands, size_t count, const char *claim, const char *prefix,
                         struct hf_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (demands[i].holds)
            continue;
        char field[160];
        snprintf(field, sizeof(field), "%s%s%s", prefix, prefix[0] ? "." : "", demands[i].field);
        return hf_error_set(err, "protocol-contradiction", 0, field,
                            "%s: expected %s beside %s, seen the contrary; do not trust this target again", field,
                            demands[i].expected, claim);
    }
    return 0;
}

static int check_equal(const char *field, const char *expected, const char *seen, struct hf_error *err)
{
    if (strcmp(expected, seen) == 0)
        return 0;
    return hf_error_set(err, "protocol-mismatch", 0, field,
                        "%s: expected the value of the request, \"%s\", seen another; the target is out of step and "
                        "must not be used again",
                        field, expected);
}

bool hf_boot_record_clean(const struct hf_boot_record *record)
{
    return record->category == HF_CATEGORY_PASSED && record->has_returncode && record->returncode == 0 &&
           !record->timed_out && record->teardown_complete && record->pid_count > 0 && record->live_pid_count == 0;
}

static bool has_pid(const struct hf_boot_record *boot, int64_t pid)
{
    for (size_t i = 0; i < boot->pid_count; i++)
        if (boot->pids[i] == pid)
            return true;
    return false;
}

static int check_boot(const struct hf_boot_record *boot, const struct hf_dialect *dialect, const char *prefix,
                      struct hf_error *err)
{
    char pids[48], live_pids[56];
    snprintf(pids, sizeof(pids), "%s_pids", dialect->vmm);
    snprintf(live_pids, sizeof(live_pids), "live_%s_pids", dialect->vmm);
    for (size_t i = 0; i < boot->live_pid_count; i++) {
        const struct demand subset = {has_pid(boot, boot->live_pids[i]), live_pids, "only pids of the same record"};
        if (check_demands(&subset, 1, "its pids", prefix, err) != 0)
            return -1;
    }
    if (boot->category != HF_CATEGORY_PASSED)
        return 0;
    const struct demand demands[] = {
        {boot->has_returncode && boot->returncode == 0, "returncode", "0"},
        {!boot->timed_out, "timed_out", "false"},
        {boot->teardown_complete, "teardown_complete", "true"},
        {boot->pid_count > 0, pids, "at least one pid"},
        {boot->live_pid_count == 0, live_pids, "no pid"},
    };
    return check_demands(demands, COUNT(demands), "category passed", prefix, err);
}

static int check_initialize_identity(const struct hf_initialize_response *response, const struct hf_request *request,
                                     const struct hf_dialect *dialect, struct hf_error *err)
{
    char commit[64], vmm_commit[64];
    snprintf(commit, sizeof(commit), "metadata.%s_commit", dialect->source);
    snprintf(vmm_commit, sizeof(vmm_commit), "metadata.%s_commit", dialect->vmm);
    if (check_equal("run_id", request->run_id, response->run_id, err) != 0 ||
        check_equal("backend", request->backend, response->backend, err) != 0 ||
        check_equal("host_type", request->host_type, response->host_type, err) != 0)
        return -1;
    if (!response->passed)
        return 0;
    if (check_equal(commit, request->expected_commit, response->commit, err) != 0)
        return -1;
    return check_equal(vmm_commit, request->expected_vmm_commit, response->vmm_commit, err);
}

static int check_metadata(const struct hf_initialize_response *response, const struct hf_request *request,
                          const struct hf_dialect *dialect, struct hf_error *err)
{
    char dirty[48], vmm_dirty[48];
    snprintf(dirty, sizeof(dirty), "%s_dirty", dialect->source);
    snprintf(vmm_dirty, sizeof(vmm_dirty), "%s_dirty", dialect->vmm);
    const struct demand status[] = {
        {response->dirty || cJSON_GetArraySize(response->status_lines) == 0, dirty, "true"},
        {response->vmm_dirty || cJSON_GetArraySize(response->vmm_status_lines) == 0, vmm_dirty, "true"},
    };
    if (check_demands(status, COUNT(status), "a list of changes", "metadata", err) != 0)
        return -1;
    if (!response->passed || !request->require_clean)
        return 0;
    const struct demand clean[] = {
        {!response->dirty, dirty, "false"},
        {!response->vmm_dirty, vmm_dirty, "false"},
    };
    return check_demands(clean, COUNT(clean), "status passed where require_clean was asked", "metadata", err);
}

static int check_oracles_clean(const struct hf_oracle_state *oracles, const char *claim, const char *prefix,
                               struct hf_error *err)
{
    const struct demand demands[] = {
        {oracles->host_canary_intact, "host_canary_intact", "true"},
        {oracles->network_canary_connections == 0, "network_canary_connections", "0"},
    };
    return check_demands(demands, COUNT(demands), claim, prefix, err);
}

static int check_initialize(const struct hf_initialize_response *response, const struct hf_request *request,
                            const struct hf_dialect *dialect, struct hf_error *err)
{
    if (check_initialize_identity(response, request, dialect, err) != 0 ||
        check_metadata(response, request, dialect, err) != 0 ||
        check_boot(&response->baseline, dialect, "baseline", err) != 0)
        return -1;
    if (!response->passed)
        return 0;
    const struct demand demands[] = {
        {response->verify_returncode == 0, "verify.returncode", "0"},
        {!response->verify_timed_out, "verify.timed_out", "false"},
        {hf_boot_record_clean(&response->baseline), "baseline.category", "passed"},
    };
    if (check_demands(demands, COUNT(demands), "status passed", "", err) != 0)
        return -1;
    return check_oracles_clean(&response->oracles, "status passed", "oracles", err);
}

static int check_execute(const struct hf_execute_response *response, const struct hf_request *request,
                         struct hf_error *err)
{
    if (response->sequence != request->sequence)
        return hf_error_set(err, "protocol-mismatch", 0, "sequence",
                            "sequence: expected that of the request, %d, seen %d; the target is out of step and must "
                            "not be used again",
                            request->sequence, response->sequence);
    if (check_equal("case_id", request->case_id, response->case_id, err) != 0)
        return -1;
    if (response->category != HF_CATEGORY_PASSED)
        return 0;
    const struct demand demands[] = {
        {response->has_returncode && response->returncode == 0, "returncode", "0"},
        {!response->timed_out, "timed_out", "false"},
        {response->teardown_complete, "teardown_complete", "true"},
        {response->error == NULL, "error", "null"},
    };
    if (check_demands(demands, COUNT(demands), "category passed", "", err) != 0)
        return -1;
    return check_oracles_clean(&response->oracles, "category passed", "", err);
}

static bool oracles_violated(const struct hf_oracle_state *oracles)
{
    return !oracles->host_canary_intact || oracles->network_canary_connections > 0;
}

/* What the answer to this finalize request may claim about quarantine. */
static int check_quarantine(const struct hf_finalize_response *response, const struct hf_request *request,
                            struct hf_error *err)
{
    bool quarantined = response->status == HF_FINALIZE_QUARANTINED;
    if (request->quarantine) {
        const struct demand demands[] = {
            {quarantined, "status", "quarantined"},
            {!response->has_post_campaign, "post_campaign", "null"},
        };
        return check_demands(demands, COUNT(demands), "a requested quarantine", "", err);
    }
    const struct demand evidence = {!quarantined || oracles_violated(&response->oracles), "oracles",
                                    "violation evidence"};
    return check_demands(&evidence, 1, "a quarantine that nobody requested", "", err);
}

static int check_finalize(const struct hf_finalize_response *response, const struct hf_request *request,
                          const struct hf_dialect *dialect, struct hf_error *err)
{
    if (check_equal("run_id", request->run_id, response->run_id, err) != 0 ||
        check_quarantine(response, request, err) != 0 ||
        (response->has_post_campaign && check_boot(&response->post_campaign, dialect, "post_campaign", err) != 0))
        return -1;
    if (response->status != HF_FINALIZE_PASSED)
        return 0;
    const struct demand demands[] = {
        {response->has_post_campaign, "post_campaign", "a boot record"},
        {hf_boot_record_clean(&response->post_campaign), "post_campaign.category", "passed"},
        {response->watchdog_error == NULL, "oracles.watchdog_error", "null"},
        {response->network_canary_error == NULL, "oracles.network_canary_error", "null"},
    };
    if (check_demands(demands, COUNT(demands), "status passed", "", err) != 0)
        return -1;
    return check_oracles_clean(&response->oracles, "status passed", "oracles", err);
}

/* An executor that could not read the request cannot name its operation; one that names another answers another. */
static int check_error(const struct hf_error_response *response, const struct hf_request *request, struct hf_error *err)
{
    static const enum hf_operation operations[] = {HF_OP_INITIALIZE, HF_OP_EXECUTE, HF_OP_FINALIZE, HF_OP_SHUTDOWN};
    for (size_t i = 0; i < COUNT(operations); i++)
        if (operations[i] != request->operation &&
            strcmp(response->request_operation, hf_operation_name(operations[i])) == 0)
            return check_equal("request_operation", hf_operation_name(request->operation), response->request_operation,
                               err);
    return 0;
}

int hf_response_check(const struct hf_response *response, const struct hf_request *request,
                      const struct hf_dialect *dialect, struct hf_error *err)
{
    switch (response->operation) {
    case HF_OP_INITIALIZE:
        return check_initialize(&response->initialize, request, dialect, err);
    case HF_OP_EXECUTE:
        return check_execute(&response->execute, request, err);
    case HF_OP_FINALIZE:
        return check_finalize(&response->finalize, request, dialect, err);
    case HF_OP_SHUTDOWN:
        return 0;
    case HF_OP_ERROR:
        return check_error(&response->error, request, err);
    }
    return hf_error_set(err, "protocol-mismatch", 0, "operation", "operation: expected one of the protocol");
}
