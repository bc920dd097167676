/*
 * One executor session: a contained wrapper (or local executor), the executor_session machine, line framing, deadlines.
 * It turns bytes into `response` or `bad_response`, performs the machine's effects, and reports to its owner, a run.
 *
 * It never dispatches by itself (the owner asks), never has two requests in flight (I5), never uses a target again that
 * was registered for quarantine (I3), and never puts guest bytes into a message (I7).
 *
 * session.c: machine, effects, commands. session_wire.c: lines, responses, evidence.
 */
#ifndef HF_SERVER_CORE_SESSION_H
#define HF_SERVER_CORE_SESSION_H

#include "common/catalog/profile.h"
#include "common/protocol/protocol.h"
#include "server/core/bounded_log.h"
#include "server/core/loop_child.h"
#include "statemachines/executor_session.h"

struct hf_session;

/* What a session needs from its owner. Called on the loop's thread, possibly from inside a session function. */
struct hf_session_owner {
    /* One of the REPORT_* effects of the machine. The session's accessors tell the rest. */
    void (*report)(void *context, enum hf_executor_session_effect report);
    /* The machine took or refused an event: for transitions.jsonl. */
    void (*stepped)(void *context, const struct hf_sm_result *result);
    /* Make the target's quarantine durable, then call hf_session_quarantine_stored(). */
    void (*register_quarantine)(void *context);
    /* initialize was answered: false and *err when this target must not be used (it is in the quarantine register). */
    bool (*admit_target)(void *context, const struct hf_initialize_response *response, struct hf_error *err);
    /* Any answer to initialize or finalize, valid or not, and the answer to a quarantine request: to be kept as
     * documents. */
    void (*keep_document)(void *context, const char *name, char *text, size_t length);
};

struct hf_session_options {
    uv_loop_t *loop;
    struct hf_read_scratch *scratch;
    char **argv; /* taken */
    char **envp; /* taken */
    const struct hf_dialect *dialect;
    struct hf_request initialize;           /* complete */
    struct hf_executor_session_times times; /* execute_ms and finalize_ms follow from the requests */
    uint64_t grace_ms;                      /* protocol grace: added to the timeout that a request tells the executor */
    int quarantine_timeout_seconds;
    uint64_t last_moment_mono_ms; /* of the owner's budget, protocol grace included */
    bool external;                /* the executor runs on a target of its own, behind a wrapper */
    int run_dirfd;                /* for the stderr log */
    const char *label;            /* "campaign" */
    const struct hf_session_owner *owner;
    void *context;
};

struct hf_session *hf_session_new(struct hf_session_options *options);

/* Commands. One that the machine does not take in its present state is counted as rejected, nothing else. */
void hf_session_execute(struct hf_session *session, int sequence, const char *case_id, int timeout_seconds);
void hf_session_finalize(struct hf_session *session, int timeout_seconds);
void hf_session_shutdown(struct hf_session *session);
void hf_session_quarantine(struct hf_session *session);
void hf_session_terminate(struct hf_session *session);
void hf_session_quarantine_stored(struct hf_session *session, const struct hf_error *err);

/* The last well-formed answer to the request of that report; valid until the next command. */
struct hf_response *hf_session_response(struct hf_session *session);
uint64_t hf_session_response_wall_ms(const struct hf_session *session);
bool hf_session_violation_evidence(const struct hf_session *session);
/* Why the session ended badly; code NULL when it did not. */
const struct hf_error *hf_session_error(const struct hf_session *session);
const char *hf_session_artifact_root(const struct hf_session *session); /* "" before initialize was answered */
const struct hf_sm_instance *hf_session_machine(const struct hf_session *session);

/* Canonical text of the last well-formed answer; NULL before the first. */
const char *hf_session_answer_text(const struct hf_session *session, size_t *length);
/* What a message may say of an executor's error text (I7). Of the local executor, which is this build's own program:
 * the text as printable ASCII, cut to the size of out, NULL is "". Of an external one, whose target may be hostile:
 * only where its words are kept. Returns out. */
const char *hf_session_target_words(const struct hf_session *session, const char *text, char *out, size_t size);

/* Kills what still runs; `freed` (may be NULL) follows when process, pipes and log are gone. */
void hf_session_free(struct hf_session *session, void (*freed)(void *context), void *context);

#endif
