/* Probe "structured-outcome": reports true, failing and unacceptable; modes and format: structured_outcome.h. */
#include "guest/probes/structured_outcome.h"
#include "guest/init/file.h"
#include "guest/probes/probes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORK_FILE "/tmp/structured-outcome"

/* What the work below found, and what it left behind. */
struct work {
    bool file_kept_its_bytes;
    bool child_ended_well;
    bool files_removed;
    bool processes_gone;
};

static struct work do_work(void)
{
    struct work work = {0};
    char seen[32] = "";
    FILE *file = fopen(WORK_FILE, "we");
    if (file && fputs("evidence", file) >= 0 && fclose(file) == 0)
        work.file_kept_its_bytes = hf_file_read(WORK_FILE, seen, sizeof seen) > 0 && strcmp(seen, "evidence") == 0;
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child)
        work.child_ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 7;
    work.files_removed = unlink(WORK_FILE) == 0 && access(WORK_FILE, F_OK) != 0;
    work.processes_gone = child > 0 && kill(child, 0) != 0 && errno == ESRCH;
    return work;
}

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void write_report(const struct work *work, bool failing, char *out, size_t size)
{
    bool passed = work->file_kept_its_bytes && work->child_ended_well && !failing;
    snprintf(
        out, size,
        "{\"schema_version\":1,\"outcome\":\"%s\",\"checks\":[{\"name\":\"file-kept-its-bytes\",\"held\":%s},"
        "{\"name\":\"child-ended-well\",\"held\":%s}%s],\"teardown\":{\"files_removed\":%s,\"processes_gone\":%s}}",
        passed ? "passed" : "test-failure", truth(work->file_kept_its_bytes), truth(work->child_ended_well),
        failing ? ",{\"name\":\"planted-failure\",\"held\":false}" : "", truth(work->files_removed),
        truth(work->processes_gone));
}

static int send_report(struct hf_probe *probe, const char *kind, const char *text)
{
    struct hf_emit *event = hf_probe_event_begin(probe, HF_OUTCOME_EVENT_REPORT);
    hf_emit_string(event, "kind", kind);
    hf_emit_string(event, "text", text);
    return hf_probe_event_send(probe) ? hf_probe_cannot_run(probe, "a report cannot be sent") : 0;
}

static int report_truth(struct hf_probe *probe, bool failing)
{
    char text[HF_OUTCOME_REPORT_MAX];
    struct work work = do_work();
    write_report(&work, failing, text, sizeof text);
    hf_probe_check(probe, "work-done", work.file_kept_its_bytes && work.child_ended_well, "file and child");
    if (failing)
        hf_probe_check(probe, "planted-failure", false, "this check cannot hold");
    return send_report(probe, HF_OUTCOME_KIND_TRUE, text);
}

static int hang(struct hf_probe *probe)
{
    hf_emit_bool(hf_probe_event_begin(probe, HF_OUTCOME_EVENT_HANGING), "forever", true);
    if (hf_probe_event_send(probe))
        return hf_probe_cannot_run(probe, "the announcement cannot be sent");
    for (;;)
        pause();
}

#define CHECKS        "\"checks\":[{\"name\":\"work-done\",\"held\":true}]"
#define TEARDOWN      "\"teardown\":{\"files_removed\":true,\"processes_gone\":true}"
#define PASSED        "\"outcome\":\"passed\","
#define REPORT_PREFIX "{\"schema_version\":1," PASSED

static const struct {
    const char *kind, *text;
} bad_reports[] = {
    {"wrong-schema-version", "{\"schema_version\":2," PASSED CHECKS "," TEARDOWN "}"},
    {"boolean-schema-version", "{\"schema_version\":true," PASSED CHECKS "," TEARDOWN "}"},
    {"unknown-key", REPORT_PREFIX "\"verdict\":\"trust me\"," CHECKS "," TEARDOWN "}"},
    {"unknown-outcome", "{\"schema_version\":1,\"outcome\":\"excellent\"," CHECKS "," TEARDOWN "}"},
    {"missing-teardown", REPORT_PREFIX CHECKS "}"},
    {"empty-checks", REPORT_PREFIX "\"checks\":[]," TEARDOWN "}"},
    {"false-teardown-field", REPORT_PREFIX CHECKS ",\"teardown\":{\"files_removed\":true,\"processes_gone\":false}}"},
    {"text-teardown-field", REPORT_PREFIX CHECKS ",\"teardown\":{\"files_removed\":true,\"processes_gone\":\"true\"}}"},
    {"passed-with-broken-check", REPORT_PREFIX "\"checks\":[{\"name\":\"work-done\",\"held\":false}]," TEARDOWN "}"},
    {"duplicate-key", REPORT_PREFIX CHECKS "," TEARDOWN "," TEARDOWN "}"},
    {"not-a-number", "{\"schema_version\":NaN," PASSED CHECKS "," TEARDOWN "}"},
    {"cut-short", REPORT_PREFIX CHECKS ",\"teardown\":{\"files_rem"},
    {"trailing-bytes", REPORT_PREFIX CHECKS "," TEARDOWN "}{}"},
    {"no-report", ""},
};

static int send_oversized(struct hf_probe *probe)
{
    static char text[2 * HF_OUTCOME_REPORT_MAX];
    int used = snprintf(text, sizeof text, REPORT_PREFIX CHECKS "," TEARDOWN);
    memset(text + used, ' ', HF_OUTCOME_REPORT_MAX);
    text[used + HF_OUTCOME_REPORT_MAX] = '}';
    return send_report(probe, "too-long", text);
}

static int report_badly(struct hf_probe *probe)
{
    char text[HF_OUTCOME_REPORT_MAX];
    for (size_t i = 0; i < sizeof bad_reports / sizeof bad_reports[0]; i++)
        if (send_report(probe, bad_reports[i].kind, bad_reports[i].text))
            return -1;
    struct work work = do_work();
    write_report(&work, false, text, sizeof text);
    hf_probe_check(probe, "work-done", work.file_kept_its_bytes && work.child_ended_well, "file and child");
    return send_oversized(probe) || send_report(probe, HF_OUTCOME_KIND_CONTROL, text) ? -1 : 0;
}

static int structured_outcome(struct hf_probe *probe)
{
    const char *mode;
    if (hf_probe_arg_string(probe, "mode", &mode))
        return -1;
    if (strcmp(mode, "passed") == 0)
        return report_truth(probe, false);
    if (strcmp(mode, "test-failure") == 0)
        return report_truth(probe, true);
    if (strcmp(mode, "hang") == 0)
        return hang(probe);
    if (strcmp(mode, "bad-reports") == 0)
        return report_badly(probe);
    return hf_probe_cannot_run(probe, "argument mode is none of passed, test-failure, hang, bad-reports");
}

HF_PROBE(HF_OUTCOME_PROBE, structured_outcome);
