/* What session.c and session_wire.c share; nobody else includes it. */
#ifndef HF_SERVER_CORE_SESSION_INTERNAL_H
#define HF_SERVER_CORE_SESSION_INTERNAL_H

#include "server/core/session.h"

#define HF_SESSION_PENDING_EVENTS 16

/* Output of the executor that is not yet a whole line. Grows on demand and shrinks after each line. */
struct hf_session_line {
    char *bytes;
    size_t length, capacity;
    bool skipping; /* the present line was too long: what follows is dropped up to its newline */
};

struct hf_session {
    uv_loop_t *loop;
    const struct hf_session_owner *owner;
    void *context;
    const struct hf_dialect *dialect;
    struct hf_sm_instance machine;
    struct hf_executor_session_facts facts;
    struct hf_executor_session_times times;
    uint64_t grace_ms;
    bool external;
    struct hf_loop_child *child;
    struct hf_bounded_log *log;
    uv_timer_t deadline;
    uint64_t last_moment_mono_ms;

    uint8_t pending[HF_SESSION_PENDING_EVENTS]; /* ring of events; effects may feed further ones */
    unsigned pending_first, pending_count;
    bool stepping;

    struct hf_request initialize; /* sent once; also holds run id */
    struct hf_request request;    /* in flight, or the last one */
    struct hf_request next;       /* filled in by a command, sent by the machine's effect */
    int quarantine_timeout_seconds;
    enum hf_operation fault_operation; /* in flight when the session went wrong; HF_OP_ERROR: none */
    struct hf_session_line line;
    struct hf_response *response; /* owned; the last well-formed answer; NULL before the first */
    uint64_t response_wall_ms;
    char *answer_text; /* owned; canonical text of that answer */
    size_t answer_length;
    char artifact_root[HF_PROTOCOL_MAX_PATH];
    struct hf_error error; /* the first thing that went wrong */
    bool process_ended;

    unsigned open_parts; /* child, deadline handle and log, while closing */
    void (*freed)(void *context);
    void *freed_context;
};

void hf_session_feed(struct hf_session *session, enum hf_executor_session_event event);
/* Keeps the first error only. */
void hf_session_fail(struct hf_session *session, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* session_wire.c */
void hf_session_forget_response(struct hf_session *session);
void hf_session_send(struct hf_session *session, const struct hf_request *request);
void hf_session_take_output(struct hf_session *session, const char *bytes, size_t length);
#endif
