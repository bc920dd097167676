/*
 * Scenario "structured-outcome". It has to show: "one run per outcome class, plus one whose report must be rejected
 * (wrong schema, false teardown field)."
 *
 * Writes structured-outcome.json (the runs, each with its class, end and accepted report) and
 * structured-outcome-rejected.json (what was refused and why; the refused texts are in rejected-candidate-N.txt).
 */
#include "executor/scenario/scenarios.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/digest.h"
#include "common/durable.h"
#include "executor/scenario/guest_report.h"
#include "executor/scenario/report.h"
#include "guest/probes/structured_outcome.h"
#include "guest/protocol.h"

#include <stdio.h>
#include <string.h>

#define PROBE_TIMEOUT_MS  60000
#define HANG_PATIENCE_MS  1000 /* a guest that hangs is given this long after it announced so */
#define EXIT_VALUE_PASSED 0x10 /* status 33 */
#define EXIT_VALUE_FAILED 0x35 /* status 107 */

/* What one phase hands to the documents; its measurements carry it into the run. */
#define KEY_REPORT     "report"
#define KEY_CANDIDATES "candidates"

static int begin_probe(struct hf_phase *phase, const char *mode, struct hf_error *err)
{
    cJSON *args = hf_json_new_object();
    hf_json_add_string(args, "mode", mode);
    return hf_vm_run_begin(&phase->vm, PROBE_TIMEOUT_MS, HF_OUTCOME_PROBE, args, err);
}

/* The next report of the guest, with its texts "kind" and "text". Owned by the caller. */
static int next_report(struct hf_phase *phase, cJSON **data, struct hf_error *err)
{
    if (hf_vm_run_event(&phase->vm, PROBE_TIMEOUT_MS, HF_OUTCOME_EVENT_REPORT, data, err))
        return -1;
    if (!hf_json_get_string(*data, "text") || !hf_json_get_string(*data, "kind"))
        return hf_error_set(err, "control-invalid", 0, "", "expected a report with kind and text from the guest");
    return 0;
}

/* --- classes passed and test-failure --- */

struct reporting_class {
    const char *mode;    /* of the probe; also the outcome that its report must have */
    const char *verdict; /* of the probe */
    unsigned exit_value;
};
static const struct reporting_class class_passed = {"passed", "held", EXIT_VALUE_PASSED};
static const struct reporting_class class_failed = {"test-failure", "broken", EXIT_VALUE_FAILED};

static void check_report(struct hf_phase *phase, const struct reporting_class *class, const char *text)
{
    struct hf_error reason = {0};
    cJSON *report = hf_guest_report_parse(text, strlen(text), &reason);
    hf_phase_check(phase, "report-accepted", report != NULL, "a report that keeps the schema", "%s",
                   report ? "accepted" : reason.code);
    const char *outcome = hf_json_get_string(report, "outcome");
    hf_phase_check(phase, "report-outcome", outcome && strcmp(outcome, class->mode) == 0, class->mode, "%s",
                   outcome ? outcome : "none");
    if (report)
        hf_json_add(phase->measurements, KEY_REPORT, report);
}

static int report_and_exit(struct hf_phase *phase, struct hf_error *err)
{
    const struct reporting_class *class = phase->plan->argument;
    cleanup_json cJSON *data = NULL, *response = NULL;
    if (hf_phase_boot(phase, err) || begin_probe(phase, class->mode, err) || next_report(phase, &data, err) ||
        hf_vm_run_end(&phase->vm, PROBE_TIMEOUT_MS, &response, err))
        return -1;
    check_report(phase, class, hf_json_get_string(data, "text"));
    const char *verdict = hf_json_get_string(response, "verdict");
    bool right = verdict && strcmp(verdict, class->verdict) == 0;
    hf_phase_check(phase, "probe-verdict", right, class->verdict, "%s", right ? class->verdict : "another");
    return hf_phase_exit(phase, class->exit_value, err);
}

/* --- classes panic, timeout, killed --- */

static int panic(struct hf_phase *phase, struct hf_error *err)
{
    return hf_phase_boot(phase, err) ? -1 : hf_phase_request_end(phase, HF_GUEST_OP_PANIC, err);
}

static int hang(struct hf_phase *phase, struct hf_error *err)
{
    if (hf_phase_boot(phase, err) || begin_probe(phase, "hang", err) ||
        hf_vm_run_event(&phase->vm, PROBE_TIMEOUT_MS, HF_OUTCOME_EVENT_HANGING, NULL, err))
        return -1;
    uint64_t deadline = hf_clock_mono_ms() + HANG_PATIENCE_MS;
    if (deadline < phase->vm.deadline_mono_ms)
        phase->vm.deadline_mono_ms = deadline;
    return 0; /* waiting for the end now runs into the deadline */
}

static int kill_vmm(struct hf_phase *phase, struct hf_error *err)
{
    return hf_phase_boot(phase, err) ? -1 : hf_vm_kill(&phase->vm, err);
}

/* --- the run whose report must be rejected --- */

/* Why each kind must be refused: code, and field where the code has one ("": the report itself). */
static const struct refusal {
    const char *kind, *code, *field;
} refusals[] = {
    {"wrong-schema-version", "shape-invalid", "schema_version"},
    {"boolean-schema-version", "shape-invalid", "schema_version"},
    {"unknown-key", "shape-invalid", ""},
    {"unknown-outcome", "shape-invalid", "outcome"},
    {"missing-teardown", "shape-invalid", "teardown"},
    {"empty-checks", "shape-invalid", "checks"},
    {"false-teardown-field", "report-teardown-false", "teardown.processes_gone"},
    {"text-teardown-field", "shape-invalid", "teardown.processes_gone"},
    {"passed-with-broken-check", "report-contradicts-itself", "outcome"},
    {"duplicate-key", "json-invalid", NULL},
    {"not-a-number", "json-invalid", NULL},
    {"cut-short", "json-invalid", NULL},
    {"trailing-bytes", "json-invalid", NULL},
    {"no-report", "json-invalid", NULL},
    {"too-long", "report-too-long", NULL},
};
#define REFUSAL_COUNT (sizeof refusals / sizeof refusals[0])

/* Keeps the refused text under a name that no inventory takes for a report, and describes it. */
static int describe(struct hf_phase *phase, size_t number, const char *text, const struct hf_error *reason,
                    cJSON *candidates, struct hf_error *err)
{
    char name[64], digest[HF_SHA256_HEX_SIZE];
    size_t length = strlen(text);
    snprintf(name, sizeof name, "rejected-candidate-%zu.txt", number + 1);
    hf_sha256_hex(text, length, digest);
    cJSON *candidate = hf_json_append(candidates, hf_json_new_object());
    hf_json_add_string(candidate, "kind", refusals[number].kind);
    hf_json_add_string(candidate, "reason", reason->code);
    hf_json_add_string(candidate, "field", refusals[number].field);
    hf_json_add_string(candidate, "file", name);
    hf_json_add_string(candidate, "sha256", digest);
    hf_json_add_int(candidate, "size_bytes", (int64_t)length);
    return hf_document_write(phase->run->host.output_dirfd, name, text, length, err);
}

static int refuse_one(struct hf_phase *phase, size_t number, cJSON *candidates, struct hf_error *err)
{
    const struct refusal *wanted = &refusals[number];
    cleanup_json cJSON *data = NULL, *accepted = NULL;
    struct hf_error reason = {0};
    if (next_report(phase, &data, err))
        return -1;
    const char *text = hf_json_get_string(data, "text"), *kind = hf_json_get_string(data, "kind");
    accepted = hf_guest_report_parse(text, strlen(text), &reason);
    bool right_field = !wanted->field || strcmp(reason.field, wanted->field) == 0;
    bool refused =
        !accepted && strcmp(reason.code, wanted->code) == 0 && right_field && strcmp(kind, wanted->kind) == 0;
    char name[96], expected[160];
    snprintf(name, sizeof name, "rejects-%s", wanted->kind);
    snprintf(expected, sizeof expected, "refused: %s%s%s", wanted->code,
             wanted->field && wanted->field[0] ? " at " : "", wanted->field ? wanted->field : "");
    hf_phase_check(phase, name, refused, expected, "%s%s", accepted ? "accepted" : reason.code,
                   right_field ? "" : " at another field");
    return accepted ? 0 : describe(phase, number, text, &reason, candidates, err);
}

/* A judge that refuses everything proves nothing: the last report is a good one. */
static int accept_control(struct hf_phase *phase, struct hf_error *err)
{
    cleanup_json cJSON *data = NULL, *response = NULL, *accepted = NULL;
    struct hf_error reason = {0};
    if (next_report(phase, &data, err) || hf_vm_run_end(&phase->vm, PROBE_TIMEOUT_MS, &response, err))
        return -1;
    const char *text = hf_json_get_string(data, "text"), *kind = hf_json_get_string(data, "kind");
    accepted = hf_guest_report_parse(text, strlen(text), &reason);
    hf_phase_check(phase, "accepts-control", accepted && strcmp(kind, HF_OUTCOME_KIND_CONTROL) == 0,
                   "the one acceptable report accepted", "%s", accepted ? "accepted" : reason.code);
    return 0;
}

static int reject_reports(struct hf_phase *phase, struct hf_error *err)
{
    cJSON *candidates = hf_json_add(phase->measurements, KEY_CANDIDATES, hf_json_new_array());
    if (hf_phase_boot(phase, err) || begin_probe(phase, "bad-reports", err))
        return -1;
    for (size_t i = 0; i < REFUSAL_COUNT; i++)
        if (refuse_one(phase, i, candidates, err))
            return -1;
    return accept_control(phase, err) ? -1 : hf_phase_request_end(phase, HF_GUEST_OP_POWEROFF, err);
}

/* --- table and documents --- */

#define DEVICES .processors = 1, .devices = {.control = true, .debug_exit = true, .panic_device = true}

static const struct hf_phase_plan plans[] = {
    {.name = "passed",
     .expected_end = HF_VM_END_DEBUG_EXIT,
     .exit_code = EXIT_VALUE_PASSED << 1 | 1,
     DEVICES,
     .script = report_and_exit,
     .argument = &class_passed},
    {.name = "test-failure",
     .expected_end = HF_VM_END_DEBUG_EXIT,
     .exit_code = EXIT_VALUE_FAILED << 1 | 1,
     DEVICES,
     .script = report_and_exit,
     .argument = &class_failed},
    {.name = "panic", .expected_end = HF_VM_END_PANIC, DEVICES, .script = panic},
    {.name = "timeout", .expected_end = HF_VM_END_TIMEOUT, DEVICES, .script = hang},
    {.name = "killed", .expected_end = HF_VM_END_KILLED, DEVICES, .script = kill_vmm},
    {.name = "rejected-reports", .expected_end = HF_VM_END_POWEROFF, DEVICES, .script = reject_reports},
};
#define PLAN_COUNT (sizeof plans / sizeof plans[0])

static int write_document(const struct hf_run *run, const char *name, const cJSON *document, struct hf_error *err)
{
    size_t length = 0;
    cleanup_free char *text = hf_json_canonical(document, &length);
    return hf_document_write(run->host.output_dirfd, name, text, length, err);
}

static void begin_document(const struct hf_run *run, cJSON *document, const char *status)
{
    hf_json_add_int(document, "schema_version", HF_OUTCOME_SCHEMA_VERSION);
    hf_json_add_string(document, "scenario", run->options.scenario);
    hf_json_add_string(document, "backend", hf_vm_backend_name(run->options.backend));
    hf_json_add_string(document, "status", status);
}

static void add_run(cJSON *runs, const struct hf_run *run, const cJSON *vm)
{
    const char *phase = hf_json_get_string(vm, "phase");
    const cJSON *report = hf_json_get(hf_json_get(run->measurements, phase), KEY_REPORT);
    cJSON *entry = hf_json_append(runs, hf_json_new_object());
    hf_json_add_string(entry, "outcome_class", phase);
    hf_json_add_string(entry, "classification", hf_json_get_string(vm, "classification"));
    hf_json_add(entry, "evidence", cJSON_Duplicate(hf_json_get(vm, "evidence"), true));
    hf_json_add(entry, "report", report ? cJSON_Duplicate(report, true) : cJSON_CreateNull());
    hf_json_add(entry, "teardown", cJSON_Duplicate(hf_json_get(vm, "teardown"), true));
}

static int write_outcomes(const struct hf_run *run, struct hf_error *err)
{
    cleanup_json cJSON *document = hf_json_new_object();
    begin_document(run, document, hf_report_passed(run) ? "passed" : "failed");
    cJSON *runs = hf_json_add(document, "runs", hf_json_new_array());
    const cJSON *vm = NULL;
    cJSON_ArrayForEach(vm, run->vms) add_run(runs, run, vm);
    cJSON *policy = hf_json_add(document, "policy_report", hf_json_new_object());
    hf_json_add_int(policy, "held", run->held);
    hf_json_add_int(policy, "broken", run->broken);
    hf_json_add(document, "teardown", hf_report_teardown(&run->teardown));
    return write_document(run, "structured-outcome.json", document, err);
}

static int write_rejected(const struct hf_run *run, struct hf_error *err)
{
    cleanup_json cJSON *document = hf_json_new_object();
    const cJSON *candidates = hf_json_get(hf_json_get(run->measurements, "rejected-reports"), KEY_CANDIDATES);
    bool all = cJSON_IsArray(candidates) && cJSON_GetArraySize(candidates) == (int)REFUSAL_COUNT;
    begin_document(run, document, all ? "rejected" : "failed");
    hf_json_add(document, KEY_CANDIDATES, candidates ? cJSON_Duplicate(candidates, true) : hf_json_new_array());
    hf_json_add(document, "teardown", hf_report_teardown(&run->teardown));
    return write_document(run, "structured-outcome-rejected.json", document, err);
}

int hf_scenario_structured_outcome(struct hf_run *run)
{
    hf_run_phases(run, plans, PLAN_COUNT);
    if (!run->error.code && write_outcomes(run, &run->error) == 0)
        write_rejected(run, &run->error);
    return run->broken || run->error.code ? -1 : 0;
}
