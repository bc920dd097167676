/* Implementation of session.h: the machine's events, its effects, deadlines and the owner's commands. */
#include "server/core/session.h"
#include "server/core/loop_meter.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "server/core/session_internal.h"

#include <stdarg.h>
#include <string.h>

void hf_session_fail(struct hf_session *session, const char *code, const char *format, ...)
{
    if (session->error.code)
        return;
    session->error.code = code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(session->error.message, sizeof session->error.message, format, arguments);
    va_end(arguments);
    session->fault_operation =
        hf_executor_session_awaits_response(session->machine.state) ? session->request.operation : HF_OP_ERROR;
}

static void refresh_facts(struct hf_session *session)
{
    uint64_t now_ms = hf_clock_mono_ms();
    session->facts.remaining_ms = session->last_moment_mono_ms > now_ms ? session->last_moment_mono_ms - now_ms : 0;
}

static void on_deadline(uv_timer_t *timer)
{
    HF_LOOP_CALLBACK(timer->loop);
    struct hf_session *session = timer->data;
    const char *state = hf_sm_state_name(&session->machine);
    if (hf_executor_session_awaits_response(session->machine.state))
        hf_session_fail(session, "executor-timeout", "the executor did not answer %s in time (state %s)",
                        hf_operation_name(session->request.operation), state);
    else
        hf_session_fail(session, "executor-timeout", "the executor session took too long in state %s", state);
    hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_DEADLINE);
}

static void arm_deadline(struct hf_session *session)
{
    uint64_t deadline_ms = hf_executor_session_deadline_ms(session->machine.state, &session->times);
    if (deadline_ms > 0)
        uv_timer_start(&session->deadline, on_deadline, deadline_ms, 0);
    else
        uv_timer_stop(&session->deadline);
}

static void send_quarantine(struct hf_session *session)
{
    struct hf_request request = {
        .operation = HF_OP_FINALIZE,
        .timeout_seconds = session->quarantine_timeout_seconds,
        .quarantine = true,
    };
    memcpy(request.run_id, session->initialize.run_id, sizeof request.run_id);
    hf_session_send(session, &request);
}

static void send_shutdown(struct hf_session *session)
{
    hf_session_send(session, &(struct hf_request){.operation = HF_OP_SHUTDOWN});
}

static void await_exit(struct hf_session *session)
{
    if (session->process_ended)
        hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_PROCESS_ENDED);
}

static void terminate_wrapper(struct hf_session *session)
{
    if (session->child)
        hf_loop_child_stop(session->child, (uint32_t)session->times.term_ms);
    await_exit(session);
}

/* The answer to a quarantine request. After a protocol failure it is kept under the name of what failed; after a
 * violation it is the target's finalization. */
static void record_quarantine_answer(struct hf_session *session)
{
    static const char *const names[] = {
        [HF_OP_INITIALIZE] = "initialize-protocol-failure-quarantine.json",
        [HF_OP_EXECUTE] = "execute-protocol-failure-quarantine.json",
        [HF_OP_FINALIZE] = "finalize-protocol-failure-quarantine.json",
        [HF_OP_SHUTDOWN] = "shutdown-protocol-failure-quarantine.json",
        [HF_OP_ERROR] = "target-finalize.json",
    };
    session->owner->keep_document(session->context, names[session->fault_operation], session->answer_text,
                                  session->answer_length);
}

static void perform(struct hf_session *session, enum hf_executor_session_effect effect)
{
    switch (effect) {
    case HF_EXECUTOR_SESSION_EFFECT_REGISTER_QUARANTINE:
        session->owner->register_quarantine(session->context);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_ARM_DEADLINE:
        arm_deadline(session);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_SEND_INITIALIZE:
        hf_session_send(session, &session->initialize);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_SEND_EXECUTE:
    case HF_EXECUTOR_SESSION_EFFECT_SEND_FINALIZE:
        hf_session_send(session, &session->next);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_SEND_QUARANTINE:
        send_quarantine(session);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_SEND_SHUTDOWN:
        send_shutdown(session);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_CLOSE_STDIN:
        hf_loop_child_close_stdin(session->child);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_AWAIT_EXIT:
        await_exit(session);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_TERMINATE_WRAPPER:
        terminate_wrapper(session);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_KILL_WRAPPER:
        hf_loop_child_stop(session->child, 0);
        break;
    case HF_EXECUTOR_SESSION_EFFECT_RECORD_QUARANTINE_ANSWER:
        record_quarantine_answer(session);
        break;
    default: /* the reports */
        session->owner->report(session->context, effect);
        break;
    }
}

static void step(struct hf_session *session, uint8_t event)
{
    refresh_facts(session);
    struct hf_sm_result result = hf_sm_step(&session->machine, event, &session->facts);
    session->owner->stepped(session->context, &result);
    for (uint8_t i = 0; i < result.effect_count; i++)
        perform(session, (enum hf_executor_session_effect)result.effects[i]);
}

void hf_session_feed(struct hf_session *session, enum hf_executor_session_event event)
{
    if (session->pending_count == HF_SESSION_PENDING_EVENTS)
        abort(); /* effects feed at most one event each; a fuller ring is a defect of this file */
    session->pending[(session->pending_first + session->pending_count++) % HF_SESSION_PENDING_EVENTS] = (uint8_t)event;
    if (session->stepping)
        return;
    session->stepping = true;
    while (session->pending_count > 0) {
        uint8_t next = session->pending[session->pending_first];
        session->pending_first = (session->pending_first + 1) % HF_SESSION_PENDING_EVENTS;
        session->pending_count--;
        step(session, next);
    }
    session->stepping = false;
}

static void on_started(void *context, const struct hf_error *err)
{
    struct hf_session *session = context;
    if (err) {
        hf_session_fail(session, err->code, "cannot start the executor: %s", err->message);
        hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_SPAWN_FAILED);
        return;
    }
    session->facts.transport_open = true;
    hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_SPAWNED);
}

static void on_output(void *context, const char *bytes, size_t length)
{
    hf_session_take_output(context, bytes, length);
}

static void on_output_end(void *context)
{
    struct hf_session *session = context;
    session->facts.transport_open = false;
    if (hf_executor_session_awaits_response(session->machine.state))
        hf_session_fail(session, "executor-lost", "the executor closed its output instead of answering %s",
                        hf_operation_name(session->request.operation));
    else if (session->machine.state == HF_EXECUTOR_SESSION_STATE_READY)
        hf_session_fail(session, "executor-lost", "the executor closed its output between two requests");
    hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_TRANSPORT_CLOSED);
}

static void on_diagnostics(void *context, const char *bytes, size_t length)
{
    struct hf_session *session = context;
    hf_bounded_log_write(session->log, bytes, length);
}

/* Says how the process ended when that was not in order; a reason that is known already stays. */
static enum hf_executor_session_exit judge_exit(struct hf_session *session, const struct hf_child_report *report)
{
    if (report->supervisor_lost)
        hf_session_fail(session, "executor-lost",
                        "the supervisor of the executor was killed; its processes may be alive");
    else if (!report->teardown_complete)
        hf_session_fail(session, "executor-lost", "%u processes of the executor could not be ended", report->survivors);
    else if (!report->exited)
        hf_session_fail(session, "executor-lost", "the executor was ended by signal %d", report->term_signal);
    else if (report->exit_code != 0)
        hf_session_fail(session, "executor-lost", "the executor exited with status %d", report->exit_code);
    else
        return HF_EXECUTOR_SESSION_EXIT_ZERO;
    return report->teardown_complete ? HF_EXECUTOR_SESSION_EXIT_NONZERO : HF_EXECUTOR_SESSION_EXIT_UNREAPED;
}

static void on_exited(void *context, const struct hf_child_report *report)
{
    struct hf_session *session = context;
    session->facts.transport_open = false;
    session->process_ended = true;
    if (!report->started) {
        hf_session_fail(session, "executor-not-started", "cannot execute the executor's program: %s",
                        strerror(report->start_errno));
        hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_SPAWN_FAILED);
        return;
    }
    session->facts.exit = judge_exit(session, report);
    hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_PROCESS_ENDED);
}

static const struct hf_loop_child_events child_events = {
    .started = on_started,
    .output = on_output,
    .output_end = on_output_end,
    .diagnostics = on_diagnostics,
    .exited = on_exited,
};

struct hf_session *hf_session_new(struct hf_session_options *options)
{
    struct hf_session *session = calloc(1, sizeof *session);
    if (!session)
        abort();
    session->loop = options->loop;
    session->owner = options->owner;
    session->context = options->context;
    session->dialect = options->dialect;
    session->times = options->times;
    session->grace_ms = options->grace_ms;
    session->external = options->external;
    session->initialize = options->initialize;
    session->quarantine_timeout_seconds = options->quarantine_timeout_seconds;
    session->last_moment_mono_ms = options->last_moment_mono_ms;
    session->fault_operation = HF_OP_ERROR;
    hf_sm_init(&session->machine, &hf_executor_session_machine);
    session->log = hf_bounded_log_new(options->loop, options->run_dirfd, "executor-clients", options->label);
    uv_timer_init(options->loop, &session->deadline);
    session->deadline.data = session;
    struct hf_loop_child_options child = {.argv = STEAL_PTR(options->argv), .envp = STEAL_PTR(options->envp)};
    session->child = hf_loop_child_new(options->loop, options->scratch, &child, &child_events, session);
    arm_deadline(session);
    return session;
}

/* An answer has tens of kilobytes; a thousand sessions that wait for the next one shall not hold the last. */
void hf_session_execute(struct hf_session *session, int sequence, const char *case_id, int timeout_seconds)
{
    hf_session_forget_response(session);
    session->next = (struct hf_request){
        .operation = HF_OP_EXECUTE,
        .timeout_seconds = timeout_seconds,
        .sequence = sequence,
    };
    memcpy(session->next.run_id, session->initialize.run_id, sizeof session->next.run_id);
    snprintf(session->next.case_id, sizeof session->next.case_id, "%s", case_id);
    session->times.execute_ms = (uint64_t)timeout_seconds * 1000 + session->grace_ms;
    hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_EXECUTE);
}

void hf_session_finalize(struct hf_session *session, int timeout_seconds)
{
    hf_session_forget_response(session);
    session->next = (struct hf_request){.operation = HF_OP_FINALIZE, .timeout_seconds = timeout_seconds};
    memcpy(session->next.run_id, session->initialize.run_id, sizeof session->next.run_id);
    session->times.finalize_ms = (uint64_t)timeout_seconds * 1000 + session->grace_ms;
    hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_FINALIZE);
}

void hf_session_shutdown(struct hf_session *session)
{
    hf_session_forget_response(session);
    hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_SHUTDOWN);
}

void hf_session_quarantine(struct hf_session *session)
{
    hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_QUARANTINE);
}

void hf_session_terminate(struct hf_session *session)
{
    hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_TERMINATE);
}

void hf_session_quarantine_stored(struct hf_session *session, const struct hf_error *err)
{
    if (err)
        hf_session_fail(session, err->code, "%s", err->message);
    hf_session_feed(session, err ? HF_EXECUTOR_SESSION_EVENT_QUARANTINE_NOT_DURABLE
                                 : HF_EXECUTOR_SESSION_EVENT_QUARANTINE_DURABLE);
}

struct hf_response *hf_session_response(struct hf_session *session)
{
    return session->response;
}

uint64_t hf_session_response_wall_ms(const struct hf_session *session)
{
    return session->response_wall_ms;
}

bool hf_session_violation_evidence(const struct hf_session *session)
{
    return session->facts.violation_evidence;
}

const struct hf_error *hf_session_error(const struct hf_session *session)
{
    return &session->error;
}

const char *hf_session_artifact_root(const struct hf_session *session)
{
    return session->artifact_root;
}

const struct hf_sm_instance *hf_session_machine(const struct hf_session *session)
{
    return &session->machine;
}

const char *hf_session_answer_text(const struct hf_session *session, size_t *length)
{
    *length = session->answer_length;
    return session->answer_text;
}

static void on_part_closed(void *context)
{
    struct hf_session *session = context;
    if (--session->open_parts > 0)
        return;
    void (*freed)(void *context_of_owner) = session->freed;
    void *freed_context = session->freed_context;
    hf_session_forget_response(session);
    free(session->line.bytes);
    free(session->answer_text);
    free(session);
    if (freed)
        freed(freed_context);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

void hf_session_free(struct hf_session *session, void (*freed)(void *context), void *context)
{
    session->freed = freed;
    session->freed_context = context;
    session->open_parts = 3;
    hf_loop_child_free(STEAL_PTR(session->child), on_part_closed, session);
    uv_close((uv_handle_t *)&session->deadline, on_timer_closed);
    hf_bounded_log_free(session->log, on_part_closed, session);
}
