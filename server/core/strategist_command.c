/*
 * The process of one strategist call: `command:PATH` with the prompt on stdin and the answer on stdout. The program is
 * contained; a flood, a crash, a hang and a fork bomb all end as a failed call, and everything it wrote is kept bounded
 * below copilot/NNN-<label>/.
 */
#include "common/cleanup.h"
#include "server/core/environment.h"
#include "server/core/prompt.h"
#include "server/core/strategist_internal.h"

#include <string.h>

static void append_bounded(char **bytes, size_t *length, const char *more, size_t more_length, size_t limit)
{
    size_t taken = more_length < limit - *length ? more_length : limit - *length;
    if (taken == 0)
        return;
    *bytes = realloc(*bytes, *length + taken);
    if (!*bytes)
        abort();
    memcpy(*bytes + *length, more, taken);
    *length += taken;
}

static void on_output(void *context, const char *bytes, size_t length)
{
    struct hf_strategist *strategist = context;
    struct hf_strategist_process *process = &strategist->process;
    bool too_much = length > HF_STRATEGIST_MAX_STDOUT - process->answer_length;
    append_bounded(&process->answer, &process->answer_length, bytes, length, HF_STRATEGIST_MAX_STDOUT);
    if (too_much && !process->overflowed) {
        process->overflowed = true;
        hf_loop_child_stop(process->child, 0);
    }
}

static void on_diagnostics(void *context, const char *bytes, size_t length)
{
    struct hf_strategist_process *process = &((struct hf_strategist *)context)->process;
    append_bounded(&process->diagnostics, &process->diagnostics_length, bytes, length, HF_STRATEGIST_MAX_STDERR);
}

static void on_output_end(void *context)
{
    (void)context; /* the exit follows and says more */
}

static void keep(struct hf_strategist *strategist, const char *file, const char *bytes, size_t length)
{
    char name[64];
    snprintf(name, sizeof name, "%03u-%s/%s", strategist->process.number,
             strategist->process.repair ? "repair" : "choice", file);
    strategist->owner->keep_document(strategist->context, name, bytes, length);
}

static void keep_accounting(struct hf_strategist *strategist, const struct hf_child_report *report)
{
    cleanup_json cJSON *accounting = hf_json_new_object();
    hf_json_add_int(accounting, "schema_version", 1);
    hf_json_add_int(accounting, "charged_ai_credits", 0); /* a command has no usage that could be charged */
    hf_json_add_int(accounting, "campaign_charged_ai_credits", strategist->facts.credits_charged);
    hf_json_add_int(accounting, "campaign_ai_credit_budget", strategist->facts.credits_budget);
    hf_json_add_int(accounting, "duration_ms", (int64_t)report->duration_ms);
    hf_json_add_int(accounting, "cpu_ms", (int64_t)report->cpu_ms);
    if (report->exited)
        hf_json_add_int(accounting, "exit_code", report->exit_code);
    else
        hf_json_add_null(accounting, "exit_code");
    hf_json_add_int(accounting, "descendants_killed", report->descendants_killed);
    hf_json_add_bool(accounting, "teardown_complete", report->teardown_complete);
    size_t length;
    cleanup_free char *text = hf_json_canonical(accounting, &length);
    keep(strategist, "accounting.json", text, length);
}

/* True when the program ended as it should; says otherwise why. */
static bool check_end(struct hf_strategist *strategist, const struct hf_child_report *report)
{
    if (!report->started)
        hf_strategist_fail(strategist, "strategist-failed", "the strategist's program cannot be executed: %s",
                           strerror(report->start_errno));
    else if (strategist->process.overflowed)
        hf_strategist_fail(strategist, "strategist-failed", "the strategist wrote more than %d bytes and was stopped",
                           HF_STRATEGIST_MAX_STDOUT);
    else if (!report->teardown_complete)
        hf_strategist_fail(strategist, "strategist-failed", "processes of the strategist could not be ended");
    else if (!report->exited)
        hf_strategist_fail(strategist, "strategist-failed", "the strategist was ended by signal %d",
                           report->term_signal);
    else if (report->exit_code != 0)
        hf_strategist_fail(strategist, "strategist-failed", "the strategist exited with status %d", report->exit_code);
    else
        return true;
    return false;
}

static void on_exited(void *context, const struct hf_child_report *report)
{
    struct hf_strategist *strategist = context;
    struct hf_strategist_process *process = &strategist->process;
    hf_loop_child_free(STEAL_PTR(process->child), NULL, NULL);
    if (process->answer_length > 0)
        keep(strategist, "answer.txt", process->answer, process->answer_length);
    if (process->diagnostics_length > 0)
        keep(strategist, "stderr.txt", process->diagnostics, process->diagnostics_length);
    keep_accounting(strategist, report);
    bool stopping = strategist->machine.state == HF_STRATEGIST_CALL_STATE_STOPPING ||
                    strategist->machine.state == HF_STRATEGIST_CALL_STATE_CANCELLING;
    if (stopping)
        hf_strategist_feed(strategist, HF_STRATEGIST_CALL_EVENT_PROCESS_ENDED);
    else if (check_end(strategist, report))
        hf_strategist_feed(strategist, HF_STRATEGIST_CALL_EVENT_PROCESS_ANSWERED);
    else
        hf_strategist_feed(strategist, HF_STRATEGIST_CALL_EVENT_PROCESS_FAILED);
}

static void on_started(void *context, const struct hf_error *err)
{
    struct hf_strategist *strategist = context;
    if (!err)
        return;
    hf_strategist_fail(strategist, err->code, "cannot start the strategist: %s", err->message);
    hf_loop_child_free(STEAL_PTR(strategist->process.child), NULL, NULL);
    hf_strategist_feed(strategist, HF_STRATEGIST_CALL_EVENT_PROCESS_FAILED);
}

static const struct hf_loop_child_events child_events = {
    .started = on_started,
    .output = on_output,
    .output_end = on_output_end,
    .diagnostics = on_diagnostics,
    .exited = on_exited,
};

void hf_strategist_command_run(struct hf_strategist *strategist, const struct hf_choice *choice, bool repair)
{
    struct hf_strategist_process *process = &strategist->process;
    free(STEAL_PTR(process->answer));
    free(STEAL_PTR(process->diagnostics));
    process->answer_length = process->diagnostics_length = 0;
    process->overflowed = false;
    process->repair = repair;
    process->number++;
    char **argv = calloc(2, sizeof *argv);
    if (!argv)
        abort();
    argv[0] = strdup(strategist->command);
    size_t length;
    struct hf_loop_child_options options = {
        .argv = argv,
        .envp = hf_environment_new(NULL),
        .stdin_bytes =
            repair ? hf_prompt_repair(choice, &strategist->refusal, &length) : hf_prompt_build(choice, &length),
    };
    options.stdin_length = length;
    process->child = hf_loop_child_new(strategist->loop, strategist->scratch, &options, &child_events, strategist);
}

void hf_strategist_command_stop(struct hf_strategist *strategist)
{
    if (strategist->process.child)
        hf_loop_child_stop(strategist->process.child, HF_CHILD_TERM_GRACE_MS);
    else
        hf_strategist_feed(strategist, HF_STRATEGIST_CALL_EVENT_PROCESS_ENDED);
}
