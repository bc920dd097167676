/* Implementation of run_documents.h: what the documents hold. Writing them is run_documents_write.c, reading back
 * metadata run_metadata.c. */
#include "server/core/run_documents.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <string.h>
#include <sys/utsname.h>

const char *hf_strategist_type_name(enum hf_strategist_type type)
{
    static const char *const names[] = {
        [HF_STRATEGIST_GREEDY] = "greedy", [HF_STRATEGIST_RANDOM] = "random", [HF_STRATEGIST_COMMAND] = "command"};
    return names[type];
}

static void add_setting(cJSON *object, const struct hf_run_record *record)
{
    const struct hf_campaign_request *request = &record->request;
    hf_json_add_int(object, "schema_version", 1);
    hf_json_add_string(object, "run_id", record->run_id);
    hf_json_add_string(object, "campaign", request->campaign);
    hf_json_add_string(object, "catalog_sha256", record->catalog_sha256);
    hf_json_add_string(object, "profile", request->profile);
    hf_json_add_string(object, "backend", request->backend);
    hf_json_add_string(object, "host_type", request->host_type);
    hf_json_add_int(object, "seed", request->seed);
    cJSON *budgets = hf_json_add(object, "budgets", hf_json_new_object());
    hf_json_add_int(budgets, "seconds", request->budget_seconds);
    hf_json_add_int(budgets, "actions", request->budget_actions);
    hf_json_add_int(budgets, "ai_credits", request->budget_ai_credits);
    hf_json_add_int(object, "memory_mib", request->memory_mib);
    hf_json_add_int(object, "phase_timeout_seconds", request->phase_timeout_seconds);
    hf_json_add_int(object, "action_timeout_seconds", request->action_timeout_seconds);
    hf_json_add_string(object, "executor_topology", record->local ? "local" : "external");
}

char *hf_run_manifest_build(const struct hf_run_record *record, const struct hf_run_actions_file *file, size_t *length)
{
    cleanup_json cJSON *manifest = hf_json_new_object();
    add_setting(manifest, record);
    hf_json_add_string(manifest, "actions_file", "actions.jsonl");
    hf_json_add_int(manifest, "actions", file->actions);
    hf_json_add_string(manifest, "actions_sha256", file->sha256);
    hf_json_add_int(manifest, "actions_size_bytes", (int64_t)file->size_bytes);
    return hf_json_canonical(manifest, length);
}

static cJSON *public_summary(const struct hf_run_outcome *outcome)
{
    cJSON *summary = hf_json_new_object();
    hf_json_add_int(summary, "schema_version", 1);
    hf_json_add_string(summary, "run_id", outcome->run_id);
    hf_json_add_string(summary, "status", outcome->passed ? "passed" : "failed");
    hf_json_add_string(summary, "category", outcome->category);
    hf_json_add_string(summary, "campaign", outcome->campaign);
    hf_json_add_string(summary, "backend", outcome->backend);
    hf_json_add_string(summary, "host_type", outcome->host_type);
    hf_json_add_int(summary, "actions", outcome->actions);
    hf_json_add_string(summary, "failed_case", outcome->failed_case);
    hf_json_add_null(summary, "minimized_actions");
    return summary;
}

char *hf_run_public_summary_build(const struct hf_run_outcome *outcome, size_t *length)
{
    cleanup_json cJSON *summary = public_summary(outcome);
    return hf_json_canonical(summary, length);
}

char *hf_run_summary_build(const struct hf_run_outcome *outcome, size_t *length)
{
    cleanup_json cJSON *summary = public_summary(outcome);
    cJSON *completed = hf_json_add(summary, "completed_cases", hf_json_new_array());
    for (size_t i = 0; i < outcome->completed_count; i++)
        hf_json_append(completed, hf_json_new_string(outcome->completed_cases[i]));
    hf_json_add_int(summary, "copilot_credits_charged", outcome->credits_charged);
    struct hf_json_limits limits = {HF_PROTOCOL_MAX_LINE, HF_JSON_MAX_DEPTH};
    cJSON *finalization = outcome->finalization
                              ? hf_json_parse(outcome->finalization, strlen(outcome->finalization), &limits, NULL)
                              : NULL;
    if (finalization)
        hf_json_add(summary, "target_finalization", finalization);
    else
        hf_json_add_null(summary, "target_finalization");
    hf_json_add_string(summary, "error", outcome->error);
    return hf_json_canonical(summary, length);
}

char *hf_run_action_line(const struct hf_run_record *record, int sequence, const char *case_id, int timeout_seconds,
                         uint64_t accepted_wall_ms, size_t *length)
{
    char accepted_at[25];
    hf_clock_format_utc(accepted_wall_ms, accepted_at);
    cleanup_json cJSON *line = hf_json_new_object();
    hf_json_add_int(line, "schema_version", 1);
    hf_json_add_string(line, "run_id", record->run_id);
    hf_json_add_int(line, "sequence", sequence);
    hf_json_add_string(line, "case_id", case_id);
    hf_json_add_int(line, "timeout_seconds", timeout_seconds);
    hf_json_add_string(line, "strategist", hf_strategist_type_name(record->request.strategist));
    hf_json_add_string(line, "accepted_at", accepted_at);
    return hf_json_canonical(line, length);
}

static void add_controller(cJSON *metadata, const struct hf_run_record *record)
{
    cJSON *controller = hf_json_add(metadata, "controller", hf_json_new_object());
    struct utsname system;
    uname(&system);
    hf_json_add_string(controller, "version", HF_VERSION);
    hf_json_add_string(controller, "commit", record->identity_known ? record->identity.commit : NULL);
    if (record->identity_known)
        hf_json_add_bool(controller, "dirty", record->identity.dirty);
    else
        hf_json_add_null(controller, "dirty");
    hf_json_add_string(controller, "expected_vmm_commit", record->identity_known ? record->identity.vmm_commit : NULL);
    hf_json_add_string(controller, "host", system.nodename);
    hf_json_add_string(controller, "os", system.sysname);
    hf_json_add_string(controller, "os_release", system.release);
    hf_json_add_string(controller, "machine", system.machine);
}

static void add_target(cJSON *metadata, const struct hf_run_record *record,
                       const struct hf_initialize_response *initialize)
{
    cJSON *target = hf_json_add(metadata, "target", hf_json_new_object());
    hf_json_add_string(target, "identity", record->target);
    hf_json_add_string(target, "artifact_root", initialize ? initialize->artifact_root : NULL);
    if (!initialize)
        return;
    hf_json_add_string(target, "commit", initialize->commit);
    hf_json_add_bool(target, "dirty", initialize->dirty);
    hf_json_add_string(target, "vmm_commit", initialize->vmm_commit);
    hf_json_add_bool(target, "vmm_dirty", initialize->vmm_dirty);
    hf_json_add_string(target, "os", initialize->os);
    hf_json_add_string(target, "os_release", initialize->os_release);
    hf_json_add_string(target, "machine", initialize->machine);
    hf_json_add_string(target, "runtime", initialize->runtime);
}

char *hf_run_metadata_build(const struct hf_run_record *record, const struct hf_initialize_response *initialize,
                            size_t *length)
{
    char created_at[25];
    const struct hf_campaign_request *request = &record->request;
    hf_clock_format_utc(record->created_wall_ms, created_at);
    cleanup_json cJSON *metadata = hf_json_new_object();
    add_setting(metadata, record);
    hf_json_add_string(metadata, "created_at", created_at);
    hf_json_add_int(metadata, "created_wall_ms", (int64_t)record->created_wall_ms);
    hf_json_add_string(metadata, "executor", request->executor_command[0] ? NULL : request->executor);
    hf_json_add_bool(metadata, "minimize", request->minimize);
    hf_json_add_int(metadata, "minimize_attempts", request->minimize_attempts);
    cJSON *strategist = hf_json_add(metadata, "strategist", hf_json_new_object());
    hf_json_add_string(strategist, "kind", hf_strategist_type_name(request->strategist));
    hf_json_add_string(strategist, "command", request->strategist_command[0] ? request->strategist_command : NULL);
    hf_json_add_string(strategist, "version", request->strategist == HF_STRATEGIST_COMMAND ? NULL : HF_VERSION);
    hf_json_add_null(strategist, "model");
    hf_json_add_null(metadata, "tool_surface_proof");
    add_controller(metadata, record);
    add_target(metadata, record, initialize);
    return hf_json_canonical(metadata, length);
}
