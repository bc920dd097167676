/* outcome.json and the transcript; see report.h. */
#include "executor/scenario/report.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRANSCRIPT_PART_BYTES 2048 /* of the beginning and of the end of each console */

cJSON *hf_report_teardown(const struct hf_vm_teardown *teardown)
{
    cJSON *object = hf_json_new_object();
    hf_json_add_bool(object, "process_gone", teardown->process_gone);
    hf_json_add_bool(object, "no_descendants", teardown->no_descendants);
    hf_json_add_bool(object, "name_unclaimed", teardown->name_unclaimed);
    hf_json_add_bool(object, "monitor_closed", teardown->monitor_closed);
    hf_json_add_bool(object, "console_closed", teardown->console_closed);
    hf_json_add_bool(object, "control_closed", teardown->control_closed);
    hf_json_add_bool(object, "sockets_removed", teardown->sockets_removed);
    return object;
}

static void add_log(cJSON *logs, const char *stream, const struct hf_capture *capture)
{
    if (!capture->name[0])
        return;
    cJSON *log = hf_json_add(logs, stream, hf_json_new_object());
    hf_json_add_string(log, "file", capture->name);
    hf_json_add_int(log, "stored_bytes", (int64_t)capture->stored_bytes);
    hf_json_add_int(log, "total_bytes", (int64_t)capture->total_bytes);
    hf_json_add_bool(log, "truncated", capture->stored_bytes < capture->total_bytes);
}

static void add_end(cJSON *object, const struct hf_vm *vm)
{
    struct hf_vm_evidence evidence = hf_vm_evidence(vm);
    cJSON *seen = hf_json_add(object, "evidence", hf_json_new_object());
    hf_json_add_string(seen, "shutdown_reason", hf_vm_shutdown_name(evidence.shutdown));
    hf_json_add_bool(seen, "guest_panicked", evidence.guest_panicked);
    hf_json_add_bool(seen, "triple_fault", evidence.triple_fault);
    hf_json_add_bool(seen, "internal_error", evidence.internal_error);
    hf_json_add_bool(seen, "guest_code_ran", evidence.resumed);
    hf_json_add(seen, "exit_code", evidence.exited ? hf_json_new_int(evidence.exit_code) : cJSON_CreateNull());
    hf_json_add(seen, "term_signal", evidence.exited ? cJSON_CreateNull() : hf_json_new_int(evidence.term_signal));
}

cJSON *hf_report_vm(const struct hf_phase *phase)
{
    const struct hf_vm *vm = &phase->vm;
    cJSON *object = hf_json_new_object();
    hf_json_add_int(object, "index", phase->index);
    hf_json_add_string(object, "phase", phase->plan->name);
    hf_json_add_int(object, "processors", phase->plan->processors);
    hf_json_add_string(object, "classification", hf_vm_end_name(phase->end));
    hf_json_add_string(object, "expected_classification", hf_vm_end_name(phase->plan->expected_end));
    hf_json_add_int(object, "pid", vm->process.pid);
    hf_json_add_int(object, "duration_ms",
                    vm->ended_mono_ms >= vm->started_mono_ms ? (int64_t)(vm->ended_mono_ms - vm->started_mono_ms) : 0);
    add_end(object, vm);
    cJSON *logs = hf_json_add(object, "logs", hf_json_new_object());
    add_log(logs, "console", &vm->serial_log);
    add_log(logs, "control", &vm->control_log);
    add_log(logs, "monitor", &vm->qmp_log);
    add_log(logs, "diagnostics", &vm->stderr_log);
    hf_json_add(object, "teardown", hf_report_teardown(&phase->teardown));
    return object;
}

bool hf_report_passed(const struct hf_run *run)
{
    return run->vm_count > 0 && run->held > 0 && run->broken == 0 && !run->error.code &&
           hf_vm_teardown_complete(&run->teardown);
}

static void add_error(cJSON *outcome, const struct hf_error *error)
{
    if (!error->code) {
        hf_json_add_null(outcome, "error");
        return;
    }
    cJSON *object = hf_json_add(outcome, "error", hf_json_new_object());
    hf_json_add_string(object, "code", error->code);
    hf_json_add_string(object, "message", error->message);
}

cJSON *hf_report_outcome(const struct hf_run *run)
{
    const struct hf_run_options *options = &run->options;
    cJSON *outcome = hf_json_new_object();
    hf_json_add_int(outcome, "schema_version", HF_OUTCOME_SCHEMA_VERSION);
    hf_json_add_string(outcome, "scenario", options->scenario);
    hf_json_add_string(outcome, "backend", hf_vm_backend_name(options->backend));
    hf_json_add_string(outcome, "status", hf_report_passed(run) ? "passed" : "failed");
    hf_json_add_int(outcome, "seed", (int64_t)options->seed);
    hf_json_add_int(outcome, "memory_mib", options->memory_mib);
    hf_json_add_int(outcome, "phase_timeout_ms", (int64_t)options->timeout_ms);
    hf_json_add_int(outcome, "duration_ms", (int64_t)(hf_clock_mono_ms() - run->started_mono_ms));
    add_error(outcome, &run->error);
    hf_json_add(outcome, "vms", cJSON_Duplicate(run->vms, true));
    cJSON *policy = hf_json_add(outcome, "policy_report", hf_json_new_object());
    hf_json_add_int(policy, "held", run->held);
    hf_json_add_int(policy, "broken", run->broken);
    hf_json_add(policy, "checks", cJSON_Duplicate(run->checks, true));
    hf_json_add(outcome, "measurements", cJSON_Duplicate(run->measurements, true));
    hf_json_add(outcome, "teardown", hf_report_teardown(&run->teardown));
    return outcome;
}

int hf_report_write(const struct hf_run *run, struct hf_error *err)
{
    size_t length = 0;
    cleanup_json cJSON *outcome = hf_report_outcome(run);
    cleanup_free char *text = hf_json_canonical(outcome, &length);
    return hf_document_write(run->host.output_dirfd, "outcome.json", text, length, err);
}

/* Copies up to one part of the file from `offset` to `out_fd`. A reader that went away ends the copying. */
static void copy_part(int fd, off_t offset, int out_fd)
{
    char bytes[TRANSCRIPT_PART_BYTES];
    ssize_t count = pread(fd, bytes, sizeof bytes, offset);
    for (ssize_t done = 0; done < count;) {
        ssize_t written = write(out_fd, bytes + done, (size_t)(count - done));
        if (written <= 0)
            return;
        done += written;
    }
}

static void print_console(const struct hf_run *run, const cJSON *vm, int out_fd)
{
    const char *name = hf_json_get_string(hf_json_get(hf_json_get(vm, "logs"), "console"), "file");
    cleanup_close int fd = name ? openat(run->host.output_dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return;
    dprintf(out_fd, "--- console of vm %d (%s), %lld bytes ---\n", (int)hf_json_get_int_or(vm, "index", 0),
            hf_json_get_string(vm, "phase"), (long long)status.st_size);
    copy_part(fd, 0, out_fd);
    if (status.st_size > TRANSCRIPT_PART_BYTES) {
        off_t tail = status.st_size - TRANSCRIPT_PART_BYTES;
        dprintf(out_fd, "\n--- ... ---\n");
        copy_part(fd, tail > TRANSCRIPT_PART_BYTES ? tail : TRANSCRIPT_PART_BYTES, out_fd);
    }
    dprintf(out_fd, "\n");
}

void hf_report_transcript(const struct hf_run *run, int out_fd)
{
    const cJSON *vm = NULL;
    dprintf(out_fd, "scenario %s: %s, %u checks held, %u broken\n", run->options.scenario,
            hf_report_passed(run) ? "passed" : "failed", run->held, run->broken);
    cJSON_ArrayForEach(vm, run->vms) print_console(run, vm, out_fd);
}
