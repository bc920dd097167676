/*
 * The strategist_call machine: one strategist of one campaign, from its preflight over every choice to its end.
 *
 * The shell (server/strategist) owns one instance per campaign that has a strategist; a replay has none. Built-in
 * strategists take the same path as programs: `invoke` computes the answer at once and feeds process_answered, and the
 * same broker checks it.
 *
 * I4: `invoke`, `invoke_repair` and `run_smoke` stand only on rows guarded by a reservation of 30 credits;
 * charge_usage follows every one of them, whatever the process did. I9: the only thing reported is a choice that the
 * broker accepted.
 */
#ifndef HF_STATEMACHINES_STRATEGIST_CALL_H
#define HF_STATEMACHINES_STRATEGIST_CALL_H

#include "statemachines/engine.h"

#define HF_STRATEGIST_CALL_CREDITS  30
#define HF_STRATEGIST_CALL_ATTEMPTS 3 /* the first prompt and two repairs */

enum hf_strategist_call_state {
    HF_STRATEGIST_CALL_STATE_CREATED,
    HF_STRATEGIST_CALL_STATE_CHECKING_VERSION,
    HF_STRATEGIST_CALL_STATE_PROVING_TOOLS, /* tool-surface proof, offline */
    HF_STRATEGIST_CALL_STATE_SMOKE,
    HF_STRATEGIST_CALL_STATE_IDLE,
    HF_STRATEGIST_CALL_STATE_INVOKING,
    HF_STRATEGIST_CALL_STATE_PARSING,
    HF_STRATEGIST_CALL_STATE_REPAIRING,      /* invoked again with the rejection and the allowed ids */
    HF_STRATEGIST_CALL_STATE_ANSWERED,       /* a choice was delivered; may be asked again */
    HF_STRATEGIST_CALL_STATE_STOPPING,       /* a call overran; its process is being ended */
    HF_STRATEGIST_CALL_STATE_STOPPING_CHECK, /* the same for the version check and the proof, which cost nothing */
    HF_STRATEGIST_CALL_STATE_CANCELLING,     /* a call's process is being ended because no answer is needed any more */
    HF_STRATEGIST_CALL_STATE_CANCELLING_CHECK, /* the same for the two checks */
    HF_STRATEGIST_CALL_STATE_REFUSED,          /* failed, or never gave a valid answer */
    HF_STRATEGIST_CALL_STATE_EXHAUSTED,        /* no credits for a first prompt */
    HF_STRATEGIST_CALL_STATE_CLOSED,
    HF_STRATEGIST_CALL_STATE_COUNT
};

enum hf_strategist_call_event {
    HF_STRATEGIST_CALL_EVENT_START,
    HF_STRATEGIST_CALL_EVENT_ASK,
    HF_STRATEGIST_CALL_EVENT_VERSION_PASSED,
    HF_STRATEGIST_CALL_EVENT_TOOLS_PROVEN,
    HF_STRATEGIST_CALL_EVENT_SMOKE_PASSED,
    HF_STRATEGIST_CALL_EVENT_PROCESS_ANSWERED, /* it exited 0 within all bounds */
    HF_STRATEGIST_CALL_EVENT_PROCESS_FAILED,   /* any check failed; could not start, died, flooded */
    HF_STRATEGIST_CALL_EVENT_PROCESS_ENDED,    /* after stop_process: the whole tree is gone */
    HF_STRATEGIST_CALL_EVENT_ANSWER_ACCEPTED,  /* the broker's word on it */
    HF_STRATEGIST_CALL_EVENT_ANSWER_REJECTED,
    HF_STRATEGIST_CALL_EVENT_TIMED_OUT,
    HF_STRATEGIST_CALL_EVENT_CANCEL,
    HF_STRATEGIST_CALL_EVENT_COUNT
};

enum hf_strategist_call_effect {
    HF_STRATEGIST_CALL_EFFECT_NONE,
    HF_STRATEGIST_CALL_EFFECT_ARM_TIMER, /* (re)start the one timer: hf_strategist_call_timeout_ms() of the new state */
    HF_STRATEGIST_CALL_EFFECT_RUN_VERSION_CHECK,
    HF_STRATEGIST_CALL_EFFECT_RUN_TOOL_SURFACE_PROOF,
    HF_STRATEGIST_CALL_EFFECT_RUN_SMOKE,
    HF_STRATEGIST_CALL_EFFECT_INVOKE,
    HF_STRATEGIST_CALL_EFFECT_INVOKE_REPAIR,
    HF_STRATEGIST_CALL_EFFECT_PARSE_ANSWER, /* the broker; feeds answer_accepted or answer_rejected at once */
    HF_STRATEGIST_CALL_EFFECT_RECORD_REJECTION,
    HF_STRATEGIST_CALL_EFFECT_STOP_PROCESS, /* feed process_ended; at once if nothing runs */
    HF_STRATEGIST_CALL_EFFECT_REPORT_READY, /* reports become events of the campaign, see README.md */
    HF_STRATEGIST_CALL_EFFECT_REPORT_CHOICE,
    HF_STRATEGIST_CALL_EFFECT_REPORT_REFUSED,
    HF_STRATEGIST_CALL_EFFECT_REPORT_EXHAUSTED,
    /* Fact-only. */
    HF_STRATEGIST_CALL_EFFECT_BEGIN_CHOICE,  /* attempts = 1 */
    HF_STRATEGIST_CALL_EFFECT_COUNT_ATTEMPT, /* attempts + 1 */
    HF_STRATEGIST_CALL_EFFECT_CHARGE_USAGE,  /* credits_charged grows by the usage, or by 30 when it is not known */
    HF_STRATEGIST_CALL_EFFECT_COUNT
};

enum hf_strategist_call_guard {
    HF_STRATEGIST_CALL_GUARD_ALWAYS,
    /* group "kind" */
    HF_STRATEGIST_CALL_GUARD_NEEDS_PROOF,    /* Copilot CLI: version, tool surface, smoke */
    HF_STRATEGIST_CALL_GUARD_NEEDS_NO_PROOF, /* built in, or command:PATH */
    /* group "reservation" (I4) */
    HF_STRATEGIST_CALL_GUARD_CREDITS_LEFT,
    HF_STRATEGIST_CALL_GUARD_CREDITS_SPENT,
    /* group "repair" */
    HF_STRATEGIST_CALL_GUARD_MAY_REPAIR, /* attempts, time and credits left */
    HF_STRATEGIST_CALL_GUARD_MAY_NOT_REPAIR,
    HF_STRATEGIST_CALL_GUARD_COUNT
};

enum hf_strategist_kind {
    HF_STRATEGIST_KIND_BUILT_IN,
    HF_STRATEGIST_KIND_COMMAND,
    HF_STRATEGIST_KIND_COPILOT, /* the only one that charges credits */
};

struct hf_strategist_call_facts {
    /* 1. Fixed. */
    enum hf_strategist_kind kind;
    uint32_t credits_budget;

    /* 2. Refreshed by the shell before every step. */
    bool time_left;         /* the campaign has time for one more call above its reserve */
    bool usage_known;       /* of the call that just ended: complete, bounded, well-formed */
    uint32_t usage_credits; /* ceil(totalNanoAiu / 10^9), when known */

    /* 3. Owned by the machine. */
    uint32_t credits_charged; /* copy it into the campaign's facts */
    uint32_t attempts;        /* of the present choice */
};

extern const struct hf_sm_definition hf_strategist_call_machine;

void hf_strategist_call_facts_init(struct hf_strategist_call_facts *facts, enum hf_strategist_kind kind,
                                   uint32_t credits_budget);

struct hf_strategist_call_times {
    uint64_t version_ms; /* 30 s */
    uint64_t proof_ms;
    uint64_t smoke_ms;
    uint64_t idle_ms; /* longest time that a campaign may take between two choices */
    uint64_t call_ms;
    uint64_t parse_ms;
    uint64_t stop_ms; /* TERM, KILL and reaping */
};
/* Length of the timer of a state, 0 for terminal states. */
uint64_t hf_strategist_call_timeout_ms(uint8_t state, const struct hf_strategist_call_times *times);

#endif
