/*
 * The minimization machine: shorter and shorter sequences of an anomaly, each on a fresh target.
 *
 * The shell owns one instance per campaign in its minimizing state, and one executor_session per attempt. Which
 * candidate comes next is computed by the shell (halves, then one by one, the failing case last, the empty prefix too,
 * the final one confirmed twice); this table carries the order of things. I8: its first row refuses a policy violation
 * in local mode, whatever the campaign machine decided.
 */
#ifndef HF_STATEMACHINES_MINIMIZATION_H
#define HF_STATEMACHINES_MINIMIZATION_H

#include "statemachines/engine.h"

enum hf_minimization_state {
    HF_MINIMIZATION_STATE_CREATED,
    HF_MINIMIZATION_STATE_CHOOSING,
    HF_MINIMIZATION_STATE_JOURNALING,   /* the attempt's action list is being made durable */
    HF_MINIMIZATION_STATE_PROVISIONING, /* a fresh session is being started and initialized */
    HF_MINIMIZATION_STATE_REPLAYING,
    HF_MINIMIZATION_STATE_FINALIZING, /* the attempt's session is finalized, or quarantined, and ends */
    HF_MINIMIZATION_STATE_REPRODUCED, /* the attempt's result is being made durable, here and in the next two */
    HF_MINIMIZATION_STATE_NOT_REPRODUCED,
    HF_MINIMIZATION_STATE_ABORTED,    /* the attempt says nothing: its target failed in another way */
    HF_MINIMIZATION_STATE_STOPPING,   /* told to stop; the attempt's session is being ended */
    HF_MINIMIZATION_STATE_CONCLUDING, /* minimization.json and minimized-actions.jsonl are being written */
    HF_MINIMIZATION_STATE_DONE,
    HF_MINIMIZATION_STATE_COUNT
};

enum hf_minimization_event {
    HF_MINIMIZATION_EVENT_START,
    HF_MINIMIZATION_EVENT_CANDIDATE_CHECKED, /* answer to choose_candidate, fed before any other event */
    HF_MINIMIZATION_EVENT_ATTEMPT_DURABLE,
    HF_MINIMIZATION_EVENT_SESSION_READY,
    HF_MINIMIZATION_EVENT_SESSION_REFUSED,
    HF_MINIMIZATION_EVENT_ACTION_PASSED,
    HF_MINIMIZATION_EVENT_ACTION_FAILED, /* any category other than passed, without violation */
    HF_MINIMIZATION_EVENT_VIOLATION_ANSWERED,
    HF_MINIMIZATION_EVENT_FINALIZE_ANSWERED,
    HF_MINIMIZATION_EVENT_SESSION_ENDED, /* closed, quarantined or lost */
    HF_MINIMIZATION_EVENT_RESULT_DURABLE,
    HF_MINIMIZATION_EVENT_MINIMIZATION_DURABLE,
    HF_MINIMIZATION_EVENT_STORAGE_FAILED,
    HF_MINIMIZATION_EVENT_CANCEL,
    HF_MINIMIZATION_EVENT_TIMED_OUT,
    HF_MINIMIZATION_EVENT_COUNT
};

enum hf_minimization_effect {
    HF_MINIMIZATION_EFFECT_NONE,
    HF_MINIMIZATION_EFFECT_ARM_TIMER,
    HF_MINIMIZATION_EFFECT_CHOOSE_CANDIDATE, /* refresh the facts, feed candidate_checked */
    HF_MINIMIZATION_EFFECT_APPEND_ATTEMPT,   /* minimization/NN-actions.json, durable */
    HF_MINIMIZATION_EFFECT_START_SESSION,
    HF_MINIMIZATION_EFFECT_SEND_EXECUTE,
    HF_MINIMIZATION_EFFECT_FINALIZE_SESSION,
    HF_MINIMIZATION_EFFECT_SHUTDOWN_SESSION,
    HF_MINIMIZATION_EFFECT_QUARANTINE_SESSION,
    HF_MINIMIZATION_EFFECT_TERMINATE_SESSION,
    HF_MINIMIZATION_EFFECT_WRITE_RESULT,       /* minimization/NN-result.json */
    HF_MINIMIZATION_EFFECT_WRITE_MINIMIZATION, /* minimization.json, and minimized-actions.jsonl when one was confirmed
                                                */
    HF_MINIMIZATION_EFFECT_REPORT_DONE,        /* minimization_done of the campaign */
    HF_MINIMIZATION_EFFECT_REPORT_STORAGE_FAILED,
    /* Fact-only. */
    HF_MINIMIZATION_EFFECT_BEGIN_ATTEMPT,  /* attempts_left - 1, forgets the last attempt's anomaly */
    HF_MINIMIZATION_EFFECT_RECORD_ANOMALY, /* outcome from facts.same_anomaly */
    HF_MINIMIZATION_EFFECT_RECORD_NOTHING, /* outcome: not reproduced */
    HF_MINIMIZATION_EFFECT_RECORD_ABORTED, /* outcome: aborted */
    HF_MINIMIZATION_EFFECT_COUNT
};

enum hf_minimization_guard {
    HF_MINIMIZATION_GUARD_ALWAYS,
    /* group "permission" (I8) */
    HF_MINIMIZATION_GUARD_MAY_MINIMIZE,
    HF_MINIMIZATION_GUARD_FORBIDDEN, /* policy violation in local mode */
    /* group "candidate" */
    HF_MINIMIZATION_GUARD_CANDIDATE_LEFT, /* a candidate or a confirmation, an attempt and the time for it */
    HF_MINIMIZATION_GUARD_FINISHED,
    /* group "sequence" */
    HF_MINIMIZATION_GUARD_MORE_ACTIONS,
    HF_MINIMIZATION_GUARD_SEQUENCE_ENDED,
    /* group "anomaly": what the event that is being fed shows */
    HF_MINIMIZATION_GUARD_SAME_ANOMALY,
    HF_MINIMIZATION_GUARD_OTHER_ANOMALY,
    /* group "outcome": what the attempt has shown */
    HF_MINIMIZATION_GUARD_SHOWED_SAME,
    HF_MINIMIZATION_GUARD_SHOWED_NOTHING,
    HF_MINIMIZATION_GUARD_SHOWED_OTHER,
    HF_MINIMIZATION_GUARD_COUNT
};

enum hf_minimization_outcome {
    HF_MINIMIZATION_OUTCOME_NOT_REPRODUCED,
    HF_MINIMIZATION_OUTCOME_REPRODUCED,
    HF_MINIMIZATION_OUTCOME_ABORTED,
};

struct hf_minimization_facts {
    /* 1. Fixed. */
    bool local_executor;
    bool policy_violation; /* of the original anomaly */

    /* 2. Refreshed by the shell before every step. */
    bool candidate_available; /* a shorter sequence to try, or a confirmation still owed */
    bool time_left;           /* for one attempt */
    uint32_t actions_left;    /* of the present sequence, not yet sent */
    bool same_anomaly;        /* category, failing case and escape flag of the answer equal the original's */

    /* 3. attempts_left is set by the shell at the start, then owned by the machine like `outcome`. */
    uint32_t attempts_left;
    enum hf_minimization_outcome outcome; /* of the present attempt */
};

extern const struct hf_sm_definition hf_minimization_machine;

#endif
