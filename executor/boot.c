/* Canary VMs; see boot.h. */
#include "executor/boot.h"

#include "executor/dispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(const struct dispatch_result *result, struct hf_boot_record *record, char *why)
{
    memset(record, 0, sizeof *record);
    record->category = verdict_boot_category(&result->facts);
    record->has_returncode = result->has_returncode;
    record->returncode = result->returncode;
    record->timed_out = result->facts.timed_out;
    record->duration_ms = (int64_t)result->duration_ms;
    record->teardown_complete = result->facts.teardown_complete;
    record->pid_count = result->journal.count;
    record->live_pid_count = result->journal.live_count;
    memcpy(record->pids, result->journal.pids, sizeof record->pids);
    memcpy(record->live_pids, result->journal.live, sizeof record->live_pids);
    snprintf(record->artifact_path, sizeof record->artifact_path, "%s", result->directory);
    snprintf(why, HF_PROTOCOL_MAX_ERROR, "%s", result->error);
    if (record->category == HF_CATEGORY_PASSED && record->pid_count == 0) {
        record->category = HF_CATEGORY_TEST_FAILURE;
        snprintf(why, HF_PROTOCOL_MAX_ERROR,
                 "the boot command recorded no VMM process, so nothing shows that a VM ran");
    }
}

int boot_run(struct executor *executor, const char *directory, int timeout_seconds, struct hf_boot_record *record,
             char *why, struct hf_error *err)
{
    const char *const reports[] = {executor->profile.boot_report};
    const struct dispatch_spec spec = {.command = &executor->profile.boot,
                                       .directory = directory,
                                       .timeout_ms = (uint64_t)timeout_seconds * 1000,
                                       .reports = reports,
                                       .report_count = executor->profile.boot_report[0] != '\0'};
    struct dispatch_result *result = calloc(1, sizeof *result);
    if (!result)
        abort();
    int status = dispatch_run(executor, &spec, result, err);
    if (status == 0)
        fill(result, record, why);
    dispatch_result_clear(result);
    free(result);
    return status;
}
