/*
 * The campaign machine: from the request to exactly one of passed or failed with both summaries on disk.
 *
 * The shell (server/campaign) owns one instance and one struct hf_campaign_facts per campaign. It refreshes the facts
 * of the second group before every step; the third group belongs to the machine. How its effects become events of
 * executor_session and strategist_call, and back, is in README.md.
 *
 * Invariants that this table carries: I1 (send_execute only on action_durable), I2 (nothing that starts a VM is
 * reachable after a violation), I3 at recovery, I6 (every path ends in passed or failed), I8 (guard may_minimize).
 */
#ifndef HF_STATEMACHINES_CAMPAIGN_H
#define HF_STATEMACHINES_CAMPAIGN_H

#include "statemachines/engine.h"

#define HF_CAMPAIGN_AI_CALL_CREDITS  30   /* reserved before each AI call, charged when usage is unknown */
#define HF_CAMPAIGN_MIN_ACTION_MS    1000 /* with less than this above the reserve no action is started */
#define HF_CAMPAIGN_STORAGE_ATTEMPTS 3    /* how often the summaries, and the register at recovery, are tried */

enum hf_campaign_state {
    HF_CAMPAIGN_STATE_CREATED,      /* accepted, not started */
    HF_CAMPAIGN_STATE_PREFLIGHT,    /* prerequisites, budgets, strategist */
    HF_CAMPAIGN_STATE_INITIALIZING, /* a session was started; initialize is in flight */
    HF_CAMPAIGN_STATE_SELECTING,    /* budgets are checked, then a case is being chosen; the session is idle */
    HF_CAMPAIGN_STATE_JOURNALING,   /* the action is being made durable; nothing was sent */
    HF_CAMPAIGN_STATE_EXECUTING,    /* the action is in flight */
    HF_CAMPAIGN_STATE_OBSERVING,    /* its observation is being made durable */
    HF_CAMPAIGN_STATE_DRAINING, /* no more dispatch; initialize or an action is in flight: finalize after its answer */
    HF_CAMPAIGN_STATE_FLUSHING, /* no more dispatch; an append is outstanding: finalize after it */
    HF_CAMPAIGN_STATE_PRESERVING,   /* violation: an append is outstanding, quarantine after it */
    HF_CAMPAIGN_STATE_DETACHED,     /* the session is gone; an append is outstanding */
    HF_CAMPAIGN_STATE_FINALIZING,   /* finalize is in flight */
    HF_CAMPAIGN_STATE_CLOSING,      /* finalized or refused; the session is shutting down */
    HF_CAMPAIGN_STATE_QUARANTINING, /* the session is being quarantined or terminated */
    HF_CAMPAIGN_STATE_SETTLING,     /* the session is gone; is there something to minimize? */
    HF_CAMPAIGN_STATE_MINIMIZING,   /* a minimization machine runs on fresh targets */
    HF_CAMPAIGN_STATE_UNWINDING,    /* it was told to stop */
    HF_CAMPAIGN_STATE_RECOVERING,   /* after a restart: the run's open targets are being put into the register */
    HF_CAMPAIGN_STATE_SUMMARIZING,  /* both summaries are being written; the verdict is sealed */
    HF_CAMPAIGN_STATE_RETRYING,     /* writing them failed; waiting before the next try */
    HF_CAMPAIGN_STATE_OVERDUE,      /* writing them hangs */
    HF_CAMPAIGN_STATE_PASSED,
    HF_CAMPAIGN_STATE_FAILED,
    HF_CAMPAIGN_STATE_COUNT
};

enum hf_campaign_event {
    HF_CAMPAIGN_EVENT_START,
    HF_CAMPAIGN_EVENT_PREFLIGHT_PASSED,
    HF_CAMPAIGN_EVENT_PREFLIGHT_FAILED,
    HF_CAMPAIGN_EVENT_SESSION_READY,      /* initialize passed and was validated */
    HF_CAMPAIGN_EVENT_SESSION_REFUSED,    /* could not be spawned, or initialize answered failed or error */
    HF_CAMPAIGN_EVENT_BUDGETS_CHECKED,    /* answer to check_budgets, fed before any other event */
    HF_CAMPAIGN_EVENT_CASE_CHOSEN,        /* by strategist, or taken from the replay */
    HF_CAMPAIGN_EVENT_STRATEGIST_REFUSED, /* it failed, or its repairs are spent */
    HF_CAMPAIGN_EVENT_STRATEGIST_EXHAUSTED,
    HF_CAMPAIGN_EVENT_ACTION_DURABLE, /* its line in actions.jsonl is on the disk (fdatasync) */
    HF_CAMPAIGN_EVENT_ACTION_NOT_DURABLE,
    HF_CAMPAIGN_EVENT_EXECUTE_ANSWERED,   /* a valid answer without violation; facts.answer_category says which */
    HF_CAMPAIGN_EVENT_VIOLATION_ANSWERED, /* evidence in any answer, valid or not; the target is already registered */
    HF_CAMPAIGN_EVENT_OBSERVATION_DURABLE,
    HF_CAMPAIGN_EVENT_OBSERVATION_NOT_DURABLE,
    HF_CAMPAIGN_EVENT_FINALIZE_ANSWERED, /* without violation; facts.finalization_category says whether clean */
    HF_CAMPAIGN_EVENT_SESSION_CLOSED,    /* ended in order */
    HF_CAMPAIGN_EVENT_SESSION_QUARANTINED,
    HF_CAMPAIGN_EVENT_SESSION_LOST,
    HF_CAMPAIGN_EVENT_QUARANTINE_DURABLE, /* answer to register_quarantine at recovery */
    HF_CAMPAIGN_EVENT_QUARANTINE_NOT_DURABLE,
    HF_CAMPAIGN_EVENT_MINIMIZATION_CHECKED, /* answer to check_minimization, fed before any other event */
    HF_CAMPAIGN_EVENT_MINIMIZATION_DONE,
    HF_CAMPAIGN_EVENT_SUMMARY_DURABLE,
    HF_CAMPAIGN_EVENT_SUMMARY_NOT_DURABLE,
    HF_CAMPAIGN_EVENT_STORAGE_FAILED, /* any other write of the run failed, transitions.jsonl among them */
    HF_CAMPAIGN_EVENT_CANCEL,
    HF_CAMPAIGN_EVENT_TIMED_OUT, /* the timer of the present state */
    HF_CAMPAIGN_EVENT_CONTROLLER_RESTARTED,
    HF_CAMPAIGN_EVENT_COUNT
};

enum hf_campaign_effect {
    HF_CAMPAIGN_EFFECT_NONE,
    HF_CAMPAIGN_EFFECT_ARM_TIMER, /* (re)start the one timer with hf_campaign_state_timeout_ms() of the new state */
    HF_CAMPAIGN_EFFECT_RUN_PREFLIGHT,
    HF_CAMPAIGN_EFFECT_STOP_PREFLIGHT, /* its completion, if one comes, is dropped by the shell */
    HF_CAMPAIGN_EFFECT_START_SESSION,
    HF_CAMPAIGN_EFFECT_CHECK_BUDGETS, /* refresh the facts, feed budgets_checked */
    HF_CAMPAIGN_EFFECT_ASK_STRATEGIST,
    HF_CAMPAIGN_EFFECT_TAKE_REPLAY_ACTION, /* feed case_chosen with the next action of the replay file */
    HF_CAMPAIGN_EFFECT_STOP_STRATEGIST,    /* cancel the strategist_call, if there is one; it reports nothing more */
    HF_CAMPAIGN_EFFECT_APPEND_ACTION,
    HF_CAMPAIGN_EFFECT_SEND_EXECUTE,
    HF_CAMPAIGN_EFFECT_APPEND_OBSERVATION, /* of a violation in an unreadable answer: what could be read */
    HF_CAMPAIGN_EFFECT_FINALIZE_SESSION,
    HF_CAMPAIGN_EFFECT_SHUTDOWN_SESSION,
    HF_CAMPAIGN_EFFECT_QUARANTINE_SESSION,
    HF_CAMPAIGN_EFFECT_TERMINATE_SESSION,
    HF_CAMPAIGN_EFFECT_PERSIST_FINALIZATION, /* target-finalize.json; a failure is storage_failed */
    HF_CAMPAIGN_EFFECT_REGISTER_QUARANTINE,  /* recovery: every target of the run whose session did not end closed */
    HF_CAMPAIGN_EFFECT_CHECK_MINIMIZATION,   /* refresh the facts, feed minimization_checked */
    HF_CAMPAIGN_EFFECT_START_MINIMIZATION,
    HF_CAMPAIGN_EFFECT_STOP_MINIMIZATION,
    HF_CAMPAIGN_EFFECT_RECORD_MINIMIZATION_SKIPPED, /* minimization-skipped.json; a failure is storage_failed */
    HF_CAMPAIGN_EFFECT_WRITE_SUMMARY,               /* summary.json, then public-summary.json, from facts.category */
    HF_CAMPAIGN_EFFECT_REPORT_TERMINAL,             /* stop timers, wake waiters, publish */
    /* Fact-only: hf_campaign_apply() performs them inside the step. The shell has nothing to do. */
    HF_CAMPAIGN_EFFECT_CONCLUDE_COVERAGE_CONVERGED,
    HF_CAMPAIGN_EFFECT_CONCLUDE_ACTION_BUDGET,
    HF_CAMPAIGN_EFFECT_CONCLUDE_TIME_BUDGET,
    HF_CAMPAIGN_EFFECT_CONCLUDE_AI_CREDIT_BUDGET,
    HF_CAMPAIGN_EFFECT_CONCLUDE_REPLAY_COMPLETE,
    HF_CAMPAIGN_EFFECT_CONCLUDE_REPLAY_INCOMPLETE,
    HF_CAMPAIGN_EFFECT_CONCLUDE_CANCELLED,
    HF_CAMPAIGN_EFFECT_CONCLUDE_PREFLIGHT_OR_EXECUTOR,
    HF_CAMPAIGN_EFFECT_CONCLUDE_STORAGE_FAILURE,
    HF_CAMPAIGN_EFFECT_CONCLUDE_CONTROLLER_RESTARTED,
    HF_CAMPAIGN_EFFECT_CONCLUDE_POLICY_VIOLATION,
    HF_CAMPAIGN_EFFECT_CONCLUDE_ANSWER,       /* facts.answer_category */
    HF_CAMPAIGN_EFFECT_CONCLUDE_FINALIZATION, /* facts.finalization_category; remembers a clean one */
    HF_CAMPAIGN_EFFECT_CONCLUDE_LOSS,         /* violation evidence, else by what had been sent */
    HF_CAMPAIGN_EFFECT_COUNT
};

enum hf_campaign_guard {
    HF_CAMPAIGN_GUARD_ALWAYS,
    /* group "violation": is there evidence? */
    HF_CAMPAIGN_GUARD_VIOLATION,
    HF_CAMPAIGN_GUARD_NO_VIOLATION,
    /* group "verdict so far": did something end the loop? */
    HF_CAMPAIGN_GUARD_CONCLUDED,
    HF_CAMPAIGN_GUARD_OPEN,
    /* group "flight": does the violation belong to an action? */
    HF_CAMPAIGN_GUARD_ACTION_IN_FLIGHT,
    HF_CAMPAIGN_GUARD_NO_ACTION_IN_FLIGHT,
    /* group "budgets", in this order of precedence */
    HF_CAMPAIGN_GUARD_LOOP_ENDED, /* concluded or violation: never expected here, fails closed */
    HF_CAMPAIGN_GUARD_REPLAY_FINISHED,
    HF_CAMPAIGN_GUARD_REPLAY_CUT_SHORT,
    HF_CAMPAIGN_GUARD_MAY_REPLAY,
    HF_CAMPAIGN_GUARD_COVERAGE_CONVERGED,
    HF_CAMPAIGN_GUARD_ACTIONS_SPENT,
    HF_CAMPAIGN_GUARD_TIME_SPENT,
    HF_CAMPAIGN_GUARD_CREDITS_SPENT,
    HF_CAMPAIGN_GUARD_MAY_CHOOSE,
    /* group "minimization" */
    HF_CAMPAIGN_GUARD_MAY_MINIMIZE,       /* target anomaly, wanted, time and attempts left, and I8 */
    HF_CAMPAIGN_GUARD_MUST_SKIP_MINIMIZE, /* target anomaly, wanted, but one of the others does not hold */
    HF_CAMPAIGN_GUARD_NOTHING_TO_MINIMIZE,
    /* group "summary attempts" */
    HF_CAMPAIGN_GUARD_SUMMARY_RETRY_LEFT,
    HF_CAMPAIGN_GUARD_SUMMARY_RETRY_SPENT,
    /* group "register attempts" */
    HF_CAMPAIGN_GUARD_REGISTER_RETRY_LEFT,
    HF_CAMPAIGN_GUARD_REGISTER_RETRY_SPENT,
    /* group "verdict" */
    HF_CAMPAIGN_GUARD_VERDICT_PASSED,
    HF_CAMPAIGN_GUARD_VERDICT_FAILED,
    HF_CAMPAIGN_GUARD_COUNT
};

/* `category` of the summaries. Names: hf_campaign_category_name(). */
enum hf_campaign_category {
    HF_CAMPAIGN_CATEGORY_NONE, /* nothing concluded; also "passed" as the category of an answer */
    HF_CAMPAIGN_CATEGORY_COVERAGE_CONVERGED,
    HF_CAMPAIGN_CATEGORY_ACTION_BUDGET_EXHAUSTED,
    HF_CAMPAIGN_CATEGORY_TIME_BUDGET_EXHAUSTED,
    HF_CAMPAIGN_CATEGORY_AI_CREDIT_BUDGET_EXHAUSTED,
    HF_CAMPAIGN_CATEGORY_REPLAY_COMPLETE, /* the last one that passes */
    HF_CAMPAIGN_CATEGORY_REPLAY_INCOMPLETE,
    HF_CAMPAIGN_CATEGORY_CANCELLED,
    HF_CAMPAIGN_CATEGORY_TEST_FAILURE,
    HF_CAMPAIGN_CATEGORY_TIMEOUT,
    HF_CAMPAIGN_CATEGORY_EXECUTOR_ERROR,
    HF_CAMPAIGN_CATEGORY_AVAILABILITY_FAILURE,
    HF_CAMPAIGN_CATEGORY_ORACLE_UNAVAILABLE,
    HF_CAMPAIGN_CATEGORY_PREFLIGHT_OR_EXECUTOR_FAILURE,
    HF_CAMPAIGN_CATEGORY_CONTROLLER_STORAGE_FAILURE,
    HF_CAMPAIGN_CATEGORY_CONTROLLER_RESTARTED,
    HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION,
    HF_CAMPAIGN_CATEGORY_COUNT
};

struct hf_campaign_facts {
    /* 1. Fixed when the campaign is created. */
    bool replay;
    bool local_executor;
    bool minimize_wanted;
    bool strategist_charges_credits;
    uint32_t actions_budget;
    uint32_t credits_budget;
    uint64_t finalization_reserve_ms; /* min(action_timeout, 2 × phase_timeout) + 25 s */
    uint64_t minimization_reserve_ms; /* least time that one minimization attempt needs */

    /* 2. Refreshed by the shell before every step. */
    uint64_t remaining_ms; /* of the campaign's time budget, 0 when spent */
    uint32_t actions_done;
    uint32_t candidates_left; /* cases not yet completed; in a replay: actions of the file not yet run */
    uint32_t credits_charged;
    uint32_t minimize_attempts_left;
    bool violation_evidence;                         /* the session has ever seen evidence; never set back */
    bool failed_case_known;                          /* an action failed, so there is a failed_case */
    enum hf_campaign_category answer_category;       /* of the last execute answer, NONE when it passed */
    enum hf_campaign_category finalization_category; /* NONE when status passed, clean boot, oracles alive */

    /* 3. Owned by the machine. */
    enum hf_campaign_category category; /* worst so far, see hf_campaign_conclude() */
    bool action_sent;                   /* an execute was ever sent */
    bool action_in_flight;
    bool finalization_begun;
    bool finalized_clean; /* no pass without it */
    uint8_t summary_attempts_left;
    uint8_t register_attempts_left;
};

extern const struct hf_sm_definition hf_campaign_machine;

/* Zeroes the facts and sets group 3 to its start values; the caller then fills in group 1. */
void hf_campaign_facts_init(struct hf_campaign_facts *facts);

/* Precedence: policy-violation > controller-restarted > controller-storage-failure > other failures > passes > none.
 * A higher rank replaces the present category, an equal one does not: the first failure is the one that is told.
 * Also restores `category` from the journal at recovery. */
void hf_campaign_conclude(struct hf_campaign_facts *facts, enum hf_campaign_category category);

/* True for the categories that pass; the campaign passes only if it was finalized cleanly as well. */
bool hf_campaign_category_passes(enum hf_campaign_category category);
bool hf_campaign_verdict_passed(const struct hf_campaign_facts *facts);

/* "coverage-converged" and so on; NONE is "none", out of range is NULL. The lookup returns -1 for an unknown name. */
const char *hf_campaign_category_name(enum hf_campaign_category category);
int hf_campaign_category_by_name(const char *name);

/* What the timers are made of; all in milliseconds. */
struct hf_campaign_times {
    uint64_t queue_ms;        /* created */
    uint64_t preflight_ms;    /* everything that preflight may take */
    uint64_t initialize_ms;   /* deadline of initialize */
    uint64_t strategist_ms;   /* all attempts of one choice together */
    uint64_t action_ms;       /* deadline of the present action */
    uint64_t finalize_ms;     /* deadline of finalize */
    uint64_t minimization_ms; /* all of minimization */
    uint64_t storage_ms;      /* one durable write */
    uint64_t storage_retry_ms;
};
/* Length of the timer of a state. The session and the strategist have deadlines of their own; where they act first this
 * one is a backstop: it adds the time that they need to clean up, for a session two quarantine requests (finalize_ms
 * each) and 60 s. 0 for terminal states. */
#define HF_CAMPAIGN_BACKSTOP_MS 60000
uint64_t hf_campaign_state_timeout_ms(uint8_t state, const struct hf_campaign_times *times);

#endif
