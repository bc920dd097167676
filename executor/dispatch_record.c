/* Documents and sentence of one dispatch; see dispatch_record.h. No byte that a guest wrote gets into either. */
#include "executor/dispatch_record.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable.h"
#include "common/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void say(struct dispatch_result *result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->error, sizeof result->error, format, arguments);
    va_end(arguments);
}

static void say_teardown(struct dispatch_result *result, const struct hf_error *reason)
{
    const struct hf_child_report *report = &result->output.report;
    if (report->supervisor_lost)
        say(result,
            "teardown incomplete: the supervisor of the process tree was lost, so its processes are unaccounted for");
    else if (!report->teardown_complete)
        say(result, "teardown incomplete: %" PRIu32 " processes outlived the deadline of %d ms", report->survivors,
            HF_CHILD_REAP_DEADLINE_MS);
    else if (result->journal.live_count > 0)
        say(result, "teardown incomplete: %zu recorded VMM processes are still alive, first pid %" PRId64,
            result->journal.live_count, result->journal.live[0]);
    else if (report->descendants_killed > 0)
        say(result, "teardown incomplete: the command left %" PRIu32 " processes behind, which had to be killed",
            report->descendants_killed);
    else if (!result->inventory.teardown_complete)
        say(result, "teardown incomplete: %s", result->inventory.first_fault.message);
    else
        say(result, "teardown incomplete: %s", reason->message);
}

static void say_end(struct dispatch_result *result)
{
    if (!result->has_returncode)
        say(result, "how the command ended is unknown");
    else if (result->returncode < 0)
        say(result, "the command was ended by signal %d", -result->returncode);
    else
        say(result, "the command exited with %d; 0 was expected", result->returncode);
}

void dispatch_describe(const struct executor *executor, const struct dispatch_spec *spec,
                       struct dispatch_result *result, const struct hf_error *reason)
{
    const struct verdict_facts *facts = &result->facts;
    const struct watchdog_state *oracles = &executor->oracles.state;
    if (facts->violated)
        say(result, "%s: host canary %s, %" PRIu64 " connections to the network canary (see canary-access.jsonl)",
            result->dispatched ? "policy violation" : "nothing was dispatched, because violation evidence exists",
            oracles->host_canary_intact ? "intact" : "touched", oracles->network_canary_connections);
    else if (facts->oracle_lost)
        say(result, "%s", executor->oracles.lost);
    else if (facts->storage_failed || facts->artifact_changed || !facts->started)
        say(result, "%s", reason->message);
    else if (facts->timed_out)
        say(result, "the command did not end within %" PRIu64 " ms", spec->timeout_ms);
    else if (!facts->teardown_complete)
        say_teardown(result, reason);
    else if (!facts->returned_zero)
        say_end(result);
    else if (!facts->reports_acceptable)
        say(result, "report %s", result->inventory.first_fault.message);
}

static void add_pids(cJSON *document, const char *name, const int64_t *pids, size_t count)
{
    cJSON *list = hf_json_add(document, name, hf_json_new_array());
    for (size_t i = 0; i < count; i++)
        hf_json_append(list, hf_json_new_int(pids[i]));
}

static void add_process(cJSON *document, const struct dispatch_result *result)
{
    const struct hf_child_report *report = &result->output.report;
    hf_json_add_bool(document, "started", result->facts.started);
    if (result->has_returncode)
        hf_json_add_int(document, "returncode", result->returncode);
    else
        hf_json_add_null(document, "returncode");
    hf_json_add_bool(document, "timed_out", result->facts.timed_out);
    hf_json_add_int(document, "cpu_ms", (int64_t)report->cpu_ms);
    hf_json_add_bool(document, "cgroup_used", report->cgroup_used);
    hf_json_add_int(document, "descendants_killed", report->descendants_killed);
    hf_json_add_int(document, "survivors", report->survivors);
    hf_json_add_bool(document, "supervisor_lost", report->supervisor_lost);
    hf_json_add_int(document, "stdout_bytes", (int64_t)result->output.stdout_total);
    hf_json_add_int(document, "stderr_bytes", (int64_t)result->output.stderr_total);
    hf_json_add_bool(document, "logs_truncated", result->output.file_truncated);
    add_pids(document, "vmm_pids", result->journal.pids, result->journal.count);
    add_pids(document, "live_vmm_pids", result->journal.live, result->journal.live_count);
}

static void add_oracles(cJSON *document, const struct oracles *oracles)
{
    cJSON *item = hf_json_add(document, "oracles", hf_json_new_object());
    hf_json_add_bool(item, "host_canary_intact", oracles->state.host_canary_intact);
    hf_json_add_int(item, "network_canary_connections", (int64_t)oracles->state.network_canary_connections);
    hf_json_add_int(item, "samples", (int64_t)oracles->state.samples);
    hf_json_add_string(item, "lost", oracles->lost[0] ? oracles->lost : NULL);
}

int dispatch_record_write(const struct executor *executor, const struct dispatch_spec *spec,
                          const struct dispatch_result *result, int dirfd, struct hf_error *err)
{
    char time[25];
    size_t length;
    cleanup_json cJSON *document = hf_json_new_object();
    hf_clock_format_utc(hf_clock_wall_ms(), time);
    hf_json_add_int(document, "schema_version", 1);
    hf_json_add_string(document, "run_id", executor->settings.run_id);
    hf_json_add_string(document, "scenario", spec->scenario);
    hf_json_add_string(document, "time", time);
    hf_json_add_string(document, "category", hf_category_name(verdict_category(&result->facts)));
    hf_json_add_string(document, "error", result->error[0] ? result->error : NULL);
    add_oracles(document, &executor->oracles);
    if (result->dispatched) {
        hf_json_add_int(document, "timeout_ms", (int64_t)spec->timeout_ms);
        hf_json_add_int(document, "duration_ms", (int64_t)result->duration_ms);
        hf_json_add_bool(document, "teardown_complete", result->facts.teardown_complete);
        add_process(document, result);
        const cJSON *reports = result->inventory.reports; /* none are taken of a command that did not start */
        hf_json_add(document, "reports", reports ? cJSON_Duplicate(reports, true) : hf_json_new_array());
    }
    cleanup_free char *text = hf_json_canonical(document, &length);
    return hf_document_write(dirfd, result->dispatched ? "dispatch.json" : "dispatch-blocked.json", text, length, err);
}
