/*
 * The wire of a session: bounded line framing, strict parsing, evidence. Every byte here was chosen by a target that
 * may be hostile; nothing is believed before common/protocol has checked it against the request in flight.
 */
#include "server/core/session_internal.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <string.h>

const char *hf_session_target_words(const struct hf_session *session, const char *text, char *out, size_t size)
{
    size_t used = 0;
    if (session->external && text)
        text = "its words are kept in the run directory only";
    for (; text && *text && used + 1 < size; text++)
        out[used++] = *text >= 0x20 && *text < 0x7f ? *text : '?';
    out[used] = '\0';
    return out;
}

void hf_session_send(struct hf_session *session, const struct hf_request *request)
{
    size_t length;
    session->request = *request;
    char *line = hf_request_build(request, session->dialect, &length);
    line[length++] = '\n'; /* takes the place of the NUL */
    hf_loop_child_write(session->child, line, length);
}

static void note_bad_response(struct hf_session *session, const struct hf_error *err, const char *line, size_t length)
{
    if (hf_response_has_violation_evidence(line, length))
        session->facts.violation_evidence = true;
    hf_session_fail(session, err->code, "the executor's answer to %s was refused: %s",
                    hf_operation_name(session->request.operation), err->message);
    hf_session_feed(session, HF_EXECUTOR_SESSION_EVENT_BAD_RESPONSE);
}

/* Names of exception classes and kebab-case codes; anything else is not a name. */
static bool is_error_type(const char *type)
{
    size_t length = strspn(type, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
    return length > 0 && length <= 64 && type[length] == '\0';
}

/* Failed or refused initialize, finalize, shutdown: says why, mostly in words of our own. */
static void explain_refusal(struct hf_session *session, const struct hf_response *response)
{
    char text[512];
    const char *type = response->operation == HF_OP_ERROR ? response->error.error_type : NULL;
    if (type) {
        session->owner->keep_document(session->context, "target-refusal.json", session->answer_text,
                                      session->answer_length);
        hf_session_fail(session, "executor-refused", "the executor refused %s: %s: %s",
                        hf_operation_name(session->request.operation), is_error_type(type) ? type : "error",
                        hf_session_target_words(session, response->error.error, text, sizeof text));
    } else if (response->initialize.verify_timed_out || response->initialize.verify_returncode != 0) {
        hf_session_fail(session, "executor-refused",
                        "initialize failed: the profile's verify command ended with %lld%s",
                        (long long)response->initialize.verify_returncode,
                        response->initialize.verify_timed_out ? " after its timeout" : "");
    } else {
        hf_session_fail(session, "executor-refused", "initialize failed: the baseline VM ended with category %s",
                        hf_category_name(response->initialize.baseline.category));
    }
}

static enum hf_executor_session_answer classify(struct hf_session *session, const struct hf_response *response,
                                                const char *line, size_t length)
{
    bool evidence = hf_response_has_violation_evidence(line, length);
    bool finalize = response->operation == HF_OP_FINALIZE;
    bool quarantined = finalize && response->finalize.status == HF_FINALIZE_QUARANTINED;
    session->facts.violation_evidence = session->facts.violation_evidence || evidence;
    if (quarantined && session->request.quarantine)
        return HF_EXECUTOR_SESSION_ANSWER_OK;
    session->facts.self_quarantined = session->facts.self_quarantined || quarantined;
    if (evidence || quarantined)
        return HF_EXECUTOR_SESSION_ANSWER_VIOLATION;
    bool refused = response->operation == HF_OP_ERROR
                       ? session->request.operation != HF_OP_EXECUTE
                       : response->operation == HF_OP_INITIALIZE && !response->initialize.passed;
    if (refused)
        explain_refusal(session, response);
    return refused ? HF_EXECUTOR_SESSION_ANSWER_ERROR : HF_EXECUTOR_SESSION_ANSWER_OK;
}

void hf_session_forget_response(struct hf_session *session)
{
    if (!session->response)
        return;
    hf_response_clear(session->response);
    free(STEAL_PTR(session->response));
}

static void keep_answer(struct hf_session *session, struct hf_response *response)
{
    hf_session_forget_response(session);
    session->response = response;
    session->response_wall_ms = hf_clock_wall_ms();
    free(session->answer_text);
    session->answer_text = hf_json_canonical(response->document, &session->answer_length);
}

/* False when the initialize answer is valid but its target must not be used. */
static bool admit(struct hf_session *session, const struct hf_response *response)
{
    if (response->operation != HF_OP_INITIALIZE)
        return true;
    snprintf(session->artifact_root, sizeof session->artifact_root, "%s", response->initialize.artifact_root);
    session->owner->keep_document(session->context, "target-initialize.json", session->answer_text,
                                  session->answer_length);
    struct hf_error err = {0};
    if (session->owner->admit_target(session->context, &response->initialize, &err))
        return true;
    hf_session_fail(session, err.code, "%s", err.message);
    return false;
}

static void take_line(struct hf_session *session, const char *line, size_t length)
{
    struct hf_error err = {0};
    if (!hf_executor_session_awaits_response(session->machine.state)) {
        hf_error_set(&err, "protocol-unsolicited", 0, NULL, "it sent a line that nobody had asked for");
        note_bad_response(session, &err, line, length);
        return;
    }
    struct hf_response *response = calloc(1, sizeof *response);
    if (!response)
        abort();
    if (hf_response_parse(line, length, &session->request, session->dialect, response, &err) != 0) {
        hf_response_clear(response);
        free(response);
        note_bad_response(session, &err, line, length);
        return;
    }
    keep_answer(session, response);
    session->facts.answer = classify(session, response, line, length);
    bool admitted = admit(session, response);
    hf_session_feed(session, admitted ? HF_EXECUTOR_SESSION_EVENT_RESPONSE : HF_EXECUTOR_SESSION_EVENT_BAD_RESPONSE);
}

static void append(struct hf_session_line *line, const char *bytes, size_t length)
{
    if (line->length + length > line->capacity) {
        size_t capacity = line->capacity ? line->capacity : 4096;
        while (capacity < line->length + length)
            capacity *= 2;
        line->bytes = realloc(line->bytes, capacity);
        if (!line->bytes)
            abort();
        line->capacity = capacity;
    }
    memcpy(line->bytes + line->length, bytes, length);
    line->length += length;
}

static void release(struct hf_session_line *line)
{
    free(STEAL_PTR(line->bytes));
    line->length = line->capacity = 0;
}

static void refuse_oversized(struct hf_session *session)
{
    struct hf_error err = {0};
    hf_error_set(&err, "protocol-oversized", 0, NULL, "expected a line of at most %d bytes, it is longer",
                 HF_PROTOCOL_MAX_LINE);
    session->line.skipping = true;
    struct hf_session_line line = session->line;
    session->line.bytes = NULL;
    session->line.length = session->line.capacity = 0;
    note_bad_response(session, &err, line.bytes, line.length);
    release(&line);
}

/* Takes one piece that ends a line, or the whole rest of a chunk when `ends` is false. */
static void take_piece(struct hf_session *session, const char *bytes, size_t length, bool ends)
{
    struct hf_session_line *line = &session->line;
    if (line->skipping) {
        line->skipping = !ends;
        return;
    }
    if (line->length + length > HF_PROTOCOL_MAX_LINE) {
        append(line, bytes, HF_PROTOCOL_MAX_LINE - line->length);
        refuse_oversized(session);
        line->skipping = !ends;
    } else if (!ends) {
        append(line, bytes, length);
    } else if (line->length == 0) {
        take_line(session, bytes, length);
    } else {
        append(line, bytes, length);
        struct hf_session_line whole = *line;
        *line = (struct hf_session_line){0};
        take_line(session, whole.bytes, whole.length);
        release(&whole);
    }
}

void hf_session_take_output(struct hf_session *session, const char *bytes, size_t length)
{
    while (length > 0) {
        const char *newline = memchr(bytes, '\n', length);
        size_t piece = newline ? (size_t)(newline - bytes) : length;
        take_piece(session, bytes, piece, newline != NULL);
        bytes += newline ? piece + 1 : piece;
        length -= newline ? piece + 1 : piece;
    }
}
