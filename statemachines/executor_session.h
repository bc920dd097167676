/*
 * The executor_session machine: one target, one wrapper process, one request in flight (I5).
 *
 * The shell (server/session) owns one instance per spawned wrapper, for campaigns and for minimization attempts alike.
 * It parses and validates lines and tells this machine only what they were: `response` (well-formed, complete, bounded,
 * answers the request in flight), or `bad_response` (anything else, also output that nobody asked for).
 *
 * I3: every way out other than an orderly close goes through a registering_* state whose first effect is
 * register_quarantine; nothing else happens to the target until that write has come back.
 */
#ifndef HF_STATEMACHINES_EXECUTOR_SESSION_H
#define HF_STATEMACHINES_EXECUTOR_SESSION_H

#include "statemachines/engine.h"

#define HF_EXECUTOR_SESSION_QUARANTINE_MIN_MS 1000 /* with less time left no quarantine request is sent */

enum hf_executor_session_state {
    HF_EXECUTOR_SESSION_STATE_SPAWNING,
    HF_EXECUTOR_SESSION_STATE_INITIALIZING,
    HF_EXECUTOR_SESSION_STATE_READY,
    HF_EXECUTOR_SESSION_STATE_EXECUTING,
    HF_EXECUTOR_SESSION_STATE_FINALIZING,
    HF_EXECUTOR_SESSION_STATE_FINALIZED, /* answered; waits for shutdown */
    HF_EXECUTOR_SESSION_STATE_SHUTTING_DOWN,
    HF_EXECUTOR_SESSION_STATE_EXITING,               /* stopped was answered; waits for the process */
    HF_EXECUTOR_SESSION_STATE_DISMISSING,            /* initialize was refused; the executor exits by itself */
    HF_EXECUTOR_SESSION_STATE_REGISTERING_VIOLATION, /* evidence */
    HF_EXECUTOR_SESSION_STATE_REGISTERING_FAULT,     /* protocol failure; the transport may still work */
    HF_EXECUTOR_SESSION_STATE_REGISTERING_LOSS,      /* transport or process is gone, or has to go */
    HF_EXECUTOR_SESSION_STATE_CONDEMNED,             /* violation registered and reported; waits for quarantine */
    HF_EXECUTOR_SESSION_STATE_QUARANTINING,          /* quarantine request in flight */
    HF_EXECUTOR_SESSION_STATE_QUARANTINE_RETRYING,   /* the second and last one */
    HF_EXECUTOR_SESSION_STATE_QUARANTINE_EXITING,    /* quarantined was answered; waits for the process */
    HF_EXECUTOR_SESSION_STATE_TERMINATING,           /* TERM sent */
    HF_EXECUTOR_SESSION_STATE_KILLING,               /* KILL sent */
    HF_EXECUTOR_SESSION_STATE_CLOSED,
    HF_EXECUTOR_SESSION_STATE_QUARANTINED,
    HF_EXECUTOR_SESSION_STATE_LOST,
    HF_EXECUTOR_SESSION_STATE_COUNT
};

enum hf_executor_session_event {
    HF_EXECUTOR_SESSION_EVENT_SPAWNED,
    HF_EXECUTOR_SESSION_EVENT_SPAWN_FAILED, /* nothing ran (exec failed); may come after spawned */
    HF_EXECUTOR_SESSION_EVENT_EXECUTE,      /* commands of the owner: campaign or minimization */
    HF_EXECUTOR_SESSION_EVENT_FINALIZE,
    HF_EXECUTOR_SESSION_EVENT_SHUTDOWN,
    HF_EXECUTOR_SESSION_EVENT_QUARANTINE,
    HF_EXECUTOR_SESSION_EVENT_TERMINATE,
    HF_EXECUTOR_SESSION_EVENT_RESPONSE,         /* facts.answer says what it is */
    HF_EXECUTOR_SESSION_EVENT_BAD_RESPONSE,     /* facts.violation_evidence says whether it carries evidence */
    HF_EXECUTOR_SESSION_EVENT_TRANSPORT_CLOSED, /* end of the executor's stdout, or its stdin cannot be written */
    HF_EXECUTOR_SESSION_EVENT_PROCESS_ENDED,    /* facts.exit says how */
    HF_EXECUTOR_SESSION_EVENT_QUARANTINE_DURABLE,
    HF_EXECUTOR_SESSION_EVENT_QUARANTINE_NOT_DURABLE,
    HF_EXECUTOR_SESSION_EVENT_DEADLINE,
    HF_EXECUTOR_SESSION_EVENT_COUNT
};

enum hf_executor_session_effect {
    HF_EXECUTOR_SESSION_EFFECT_NONE,
    HF_EXECUTOR_SESSION_EFFECT_REGISTER_QUARANTINE, /* in memory at once, then durably; the memory entry always stays */
    HF_EXECUTOR_SESSION_EFFECT_ARM_DEADLINE, /* (re)start the one timer: hf_executor_session_deadline_ms() of the state
                                              */
    HF_EXECUTOR_SESSION_EFFECT_SEND_INITIALIZE,
    HF_EXECUTOR_SESSION_EFFECT_SEND_EXECUTE,
    HF_EXECUTOR_SESSION_EFFECT_SEND_FINALIZE,
    HF_EXECUTOR_SESSION_EFFECT_SEND_QUARANTINE, /* finalize with quarantine=true */
    HF_EXECUTOR_SESSION_EFFECT_SEND_SHUTDOWN,
    HF_EXECUTOR_SESSION_EFFECT_CLOSE_STDIN,
    HF_EXECUTOR_SESSION_EFFECT_AWAIT_EXIT,               /* feed process_ended; at once if it has ended before */
    HF_EXECUTOR_SESSION_EFFECT_TERMINATE_WRAPPER,        /* TERM; feed process_ended, at once if it has ended before */
    HF_EXECUTOR_SESSION_EFFECT_KILL_WRAPPER,             /* the whole tree */
    HF_EXECUTOR_SESSION_EFFECT_RECORD_QUARANTINE_ANSWER, /* execute-protocol-failure-quarantine.json or finalize-... */
    HF_EXECUTOR_SESSION_EFFECT_REPORT_READY,             /* reports become events of the owner, see README.md */
    HF_EXECUTOR_SESSION_EFFECT_REPORT_REFUSED,
    HF_EXECUTOR_SESSION_EFFECT_REPORT_EXECUTE_ANSWERED,
    HF_EXECUTOR_SESSION_EFFECT_REPORT_VIOLATION,
    HF_EXECUTOR_SESSION_EFFECT_REPORT_FINALIZE_ANSWERED,
    HF_EXECUTOR_SESSION_EFFECT_REPORT_STORAGE_FAILED,
    HF_EXECUTOR_SESSION_EFFECT_REPORT_CLOSED,
    HF_EXECUTOR_SESSION_EFFECT_REPORT_QUARANTINED,
    HF_EXECUTOR_SESSION_EFFECT_REPORT_LOST,
    HF_EXECUTOR_SESSION_EFFECT_COUNT
};

enum hf_executor_session_guard {
    HF_EXECUTOR_SESSION_GUARD_ALWAYS,
    /* group "answer" */
    HF_EXECUTOR_SESSION_GUARD_ANSWER_OK,
    HF_EXECUTOR_SESSION_GUARD_ANSWER_ERROR,
    HF_EXECUTOR_SESSION_GUARD_ANSWER_VIOLATION,
    /* group "evidence" */
    HF_EXECUTOR_SESSION_GUARD_EVIDENCE,
    HF_EXECUTOR_SESSION_GUARD_NO_EVIDENCE,
    /* group "reach": can the target be asked for quarantine? */
    HF_EXECUTOR_SESSION_GUARD_SELF_QUARANTINED, /* it said so by itself and exits */
    HF_EXECUTOR_SESSION_GUARD_REACHABLE,        /* transport open and time left */
    HF_EXECUTOR_SESSION_GUARD_UNREACHABLE,
    /* group "exit" */
    HF_EXECUTOR_SESSION_GUARD_EXIT_ZERO,
    HF_EXECUTOR_SESSION_GUARD_EXIT_NONZERO,
    HF_EXECUTOR_SESSION_GUARD_EXIT_UNREAPED,
    HF_EXECUTOR_SESSION_GUARD_COUNT
};

/* What a well-formed answer to the request in flight says. */
enum hf_executor_session_answer {
    /* initialize passed; any execute observation without violation (also `error`: it stays); finalize passed or failed;
     * finalize quarantined when quarantine was asked for; shutdown stopped */
    HF_EXECUTOR_SESSION_ANSWER_OK,
    /* initialize failed or error; finalize (also one that asked for quarantine) or shutdown error. After these the
     * executor exits by itself */
    HF_EXECUTOR_SESSION_ANSWER_ERROR,
    /* any of them with violation evidence, an unrequested `quarantined` with evidence among them */
    HF_EXECUTOR_SESSION_ANSWER_VIOLATION,
};

enum hf_executor_session_exit {
    HF_EXECUTOR_SESSION_EXIT_ZERO,     /* exit status 0, the whole tree reaped */
    HF_EXECUTOR_SESSION_EXIT_NONZERO,  /* other status or signal, the whole tree reaped */
    HF_EXECUTOR_SESSION_EXIT_UNREAPED, /* something of the tree is or may be alive */
};

/* All refreshed by the shell before a step; none belongs to the machine. */
struct hf_executor_session_facts {
    enum hf_executor_session_answer answer; /* of the response that is being fed */
    enum hf_executor_session_exit exit;
    bool violation_evidence; /* sticky: any answer, valid or not, that showed evidence */
    bool self_quarantined;   /* answered `quarantined` without having been asked */
    bool transport_open;
    uint64_t remaining_ms; /* until the owner's last moment for this session, protocol grace included */
};

extern const struct hf_sm_definition hf_executor_session_machine;

struct hf_executor_session_times {
    uint64_t spawn_ms;
    uint64_t initialize_ms; /* timeout told to the executor + overhead + protocol grace */
    uint64_t idle_ms;       /* longest time between two requests */
    uint64_t execute_ms;    /* timeout_seconds of the request + protocol grace */
    uint64_t finalize_ms;   /* the same */
    uint64_t quarantine_ms; /* the same, for each of the two requests */
    uint64_t shutdown_ms;
    uint64_t exit_ms;     /* answer to end of process */
    uint64_t register_ms; /* one durable write */
    uint64_t term_ms;     /* 5 s */
    uint64_t kill_ms;     /* 5 s */
};
/* Length of the deadline of a state, 0 for terminal states. */
/* `spawning` is entered without a row: the shell arms its deadline when it starts the process. */
uint64_t hf_executor_session_deadline_ms(uint8_t state, const struct hf_executor_session_times *times);

/* True in the states in which the shell waits for an answer (one request in flight). */
bool hf_executor_session_awaits_response(uint8_t state);

#endif
