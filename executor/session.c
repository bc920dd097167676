/*
 * The protocol loop: which request is heard in which state, what follows an answer, and how every way out ends. See
 * session.h. Waiting happens here and nowhere else; the steps run to their end or are interrupted.
 */
#include "executor/session.h"

#include "common/cleanup.h"
#include "common/json.h"
#include "common/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum session_state {
    SESSION_FRESH,     /* waits for initialize */
    SESSION_READY,     /* initialized: execute, or finalize */
    SESSION_FINALIZED, /* post-campaign VM is done, oracles are closed: shutdown */
    SESSION_OVER,      /* the response that is being sent is the last one */
};

enum { EXIT_ENDED = 0, EXIT_FAILED = 1 };

typedef int (*session_step)(struct executor *executor, const struct hf_request *request, struct hf_response *response,
                            struct hf_error *err);

static int shut_down(struct executor *executor, const struct hf_request *request, struct hf_response *response,
                     struct hf_error *err);

struct session_row {
    enum session_state state;
    enum hf_operation operation;
    session_step perform;
    enum session_state next;
};

static const struct session_row ROWS[] = {
    {SESSION_FRESH, HF_OP_INITIALIZE, executor_initialize, SESSION_READY},
    {SESSION_FRESH, HF_OP_SHUTDOWN, shut_down, SESSION_OVER},
    {SESSION_READY, HF_OP_EXECUTE, executor_execute, SESSION_READY},
    {SESSION_READY, HF_OP_FINALIZE, executor_finalize, SESSION_FINALIZED},
    {SESSION_READY, HF_OP_SHUTDOWN, shut_down, SESSION_OVER},
    {SESSION_FINALIZED, HF_OP_SHUTDOWN, shut_down, SESSION_OVER},
};

struct session {
    struct executor *executor;
    enum session_state state;
    int exit_status; /* once state is SESSION_OVER */
};

static int shut_down(struct executor *executor, const struct hf_request *request, struct hf_response *response,
                     struct hf_error *err)
{
    (void)request;
    (void)response;
    (void)err;
    executor_close_session(executor);
    return 0;
}

static const struct session_row *find_row(enum session_state state, enum hf_operation operation)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        if (ROWS[i].state == state && ROWS[i].operation == operation)
            return &ROWS[i];
    return NULL;
}

static void end(struct session *session, int exit_status)
{
    executor_close_session(session->executor);
    session->state = SESSION_OVER;
    session->exit_status = exit_status;
}

static void send_response(struct session *session, const struct hf_response *response)
{
    struct hf_error err = {0};
    size_t length;
    cleanup_free char *line = hf_response_build(response, &session->executor->profile.dialect, &length);
    if (channel_write(&session->executor->channel, line, length, &err) != 0) {
        hf_log_error(HF_LOG_ERROR, "response_not_sent", &err);
        end(session, EXIT_FAILED);
    }
}

/* Only an execute request may fail without ending the session. */
static void answer_error(struct session *session, enum hf_operation operation, const struct hf_error *err)
{
    struct hf_response *response = calloc(1, sizeof *response);
    if (!response)
        abort();
    const char *name = operation == HF_OP_ERROR ? "unknown" : hf_operation_name(operation);
    response->operation = HF_OP_ERROR;
    snprintf(response->error.request_operation, sizeof response->error.request_operation, "%s", name);
    response->error.error_type = strdup(err->code ? err->code : "internal");
    response->error.error = strdup(err->message);
    hf_log_error(HF_LOG_ERROR, "request_refused", err);
    if (operation != HF_OP_EXECUTE)
        end(session, EXIT_FAILED);
    send_response(session, response);
    hf_response_clear(response);
    free(response);
}

/* A step was cut short: by the end of the controller, by a signal, or by a controller that spoke out of turn. */
static void interrupted(struct session *session, enum hf_operation operation)
{
    enum channel_event event = channel_interruption(&session->executor->channel);
    hf_log(HF_LOG_WARNING, "interrupted", "by",
           event == CHANNEL_SIGNAL        ? "signal"
           : event == CHANNEL_OUT_OF_TURN ? "request out of turn"
                                          : "end of input",
           NULL);
    end(session, EXIT_FAILED);
    if (event != CHANNEL_OUT_OF_TURN)
        return;
    struct hf_error err = {0};
    hf_error_set(&err, "protocol-out-of-turn", 0, "",
                 "a request came before the response to the one before it; requests and responses alternate");
    answer_error(session, operation == HF_OP_EXECUTE ? HF_OP_ERROR : operation, &err);
}

/* What an answer means for the session, beyond the row's next state. */
static void settle(struct session *session, const struct hf_response *response, enum session_state next)
{
    session->state = next;
    if (response->operation == HF_OP_INITIALIZE && !response->initialize.passed)
        end(session, EXIT_FAILED);
    if (response->operation == HF_OP_FINALIZE && response->finalize.status == HF_FINALIZE_QUARANTINED)
        end(session, EXIT_ENDED);
    if (response->operation == HF_OP_SHUTDOWN)
        end(session, EXIT_ENDED);
}

static void perform(struct session *session, const struct session_row *row, const struct hf_request *request)
{
    struct hf_error err = {0};
    struct hf_response *response = calloc(1, sizeof *response);
    if (!response)
        abort();
    response->operation = request->operation;
    if (row->perform(session->executor, request, response, &err) == 0) {
        settle(session, response, row->next);
        send_response(session, response);
    } else if (err.code && strcmp(err.code, "interrupted") == 0) {
        interrupted(session, request->operation);
    } else {
        answer_error(session, request->operation, &err);
    }
    hf_response_clear(response);
    free(response);
}

static void handle_line(struct session *session, const char *line, size_t length)
{
    struct hf_request request = {.operation = HF_OP_ERROR};
    struct hf_error err = {0};
    if (hf_request_parse(line, length, &session->executor->profile.dialect, &request, &err) != 0) {
        answer_error(session, request.operation, &err);
        return;
    }
    const struct session_row *row = find_row(session->state, request.operation);
    if (row) {
        perform(session, row, &request);
        return;
    }
    hf_error_set(&err, "protocol-order", 0, "operation",
                 "%s was not expected now: initialize comes first and once, "
                 "finalize ends the executes, and after it only shutdown is heard",
                 hf_operation_name(request.operation));
    answer_error(session, request.operation, &err);
}

static void refuse_stream(struct session *session, enum channel_event event)
{
    struct hf_error err = {0};
    if (event == CHANNEL_TOO_LONG)
        hf_error_set(&err, "request-too-large", 0, "", "a request of at most %d bytes was expected",
                     HF_PROTOCOL_MAX_LINE);
    else
        hf_error_set(&err, "protocol-out-of-turn", 0, "",
                     "bytes followed the request before its response; requests and responses alternate");
    answer_error(session, HF_OP_ERROR, &err);
}

static void turn(struct session *session)
{
    struct executor *executor = session->executor;
    struct oracles *oracles = &executor->oracles;
    struct hf_error err = {0};
    const char *line = NULL;
    size_t length = 0;
    int wake_fd = oracles->started && oracles->lost[0] == '\0' ? oracles->socket_fd : -1;
    enum channel_event event = channel_read(&executor->channel, wake_fd, &line, &length, &err);
    switch (event) {
    case CHANNEL_LINE:
        handle_line(session, line, length);
        return;
    case CHANNEL_WAKE:
        oracles_listen(oracles);
        return;
    case CHANNEL_TOO_LONG:
    case CHANNEL_OUT_OF_TURN:
        refuse_stream(session, event);
        return;
    case CHANNEL_FAILED:
        hf_log_error(HF_LOG_ERROR, "channel_failed", &err);
        end(session, EXIT_FAILED);
        return;
    case CHANNEL_END:
    case CHANNEL_SIGNAL:
        hf_log(HF_LOG_WARNING, "controller_gone", "by", event == CHANNEL_END ? "end of input" : "signal", NULL);
        end(session, EXIT_FAILED);
        return;
    }
}

int session_serve(struct executor *executor)
{
    struct session session = {.executor = executor, .state = SESSION_FRESH, .exit_status = EXIT_FAILED};
    while (session.state != SESSION_OVER)
        turn(&session);
    return session.exit_status;
}
