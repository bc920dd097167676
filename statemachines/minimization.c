/* The minimization table, its guards (I8) and its fact-only effects. */
#include "statemachines/minimization.h"

#include "statemachines/table.h"

/* clang-format off */
#define HF_ROW_STATE(name)  HF_MINIMIZATION_STATE_##name
#define HF_ROW_EVENT(name)  HF_MINIMIZATION_EVENT_##name
#define HF_ROW_GUARD(name)  HF_MINIMIZATION_GUARD_##name
#define HF_ROW_EFFECT(name) HF_MINIMIZATION_EFFECT_##name

/* An attempt under way is called off: its target is not worth a clean end. */
#define STOP_ROWS(state) \
    ROW(state, CANCEL, ALWAYS, STOPPING, RECORD_ABORTED, TERMINATE_SESSION, ARM_TIMER), \
    ROW(state, TIMED_OUT, ALWAYS, STOPPING, RECORD_ABORTED, TERMINATE_SESSION, ARM_TIMER)
/* The attempt's result is being made durable; then the next candidate. */
#define RESULT_ROWS(state) \
    ROW(state, RESULT_DURABLE, ALWAYS, CHOOSING, CHOOSE_CANDIDATE, ARM_TIMER), \
    ROW(state, STORAGE_FAILED, ALWAYS, DONE, REPORT_STORAGE_FAILED, REPORT_DONE), \
    ROW(state, TIMED_OUT, ALWAYS, DONE, REPORT_STORAGE_FAILED, REPORT_DONE), \
    ROW(state, CANCEL, ALWAYS, CONCLUDING, WRITE_MINIMIZATION, ARM_TIMER)

static const struct hf_sm_row rows[] = {
    /* I8 is checked here once more, by the machine that would do the harm */
    ROW(CREATED, START, MAY_MINIMIZE, CHOOSING, CHOOSE_CANDIDATE, ARM_TIMER),
    ROW(CREATED, START, FORBIDDEN, DONE, REPORT_DONE),
    ROW(CREATED, TIMED_OUT, ALWAYS, DONE, REPORT_DONE),
    ROW(CREATED, CANCEL, ALWAYS, DONE, REPORT_DONE),

    ROW(CHOOSING, CANDIDATE_CHECKED, CANDIDATE_LEFT, JOURNALING, BEGIN_ATTEMPT, APPEND_ATTEMPT, ARM_TIMER),
    ROW(CHOOSING, CANDIDATE_CHECKED, FINISHED, CONCLUDING, WRITE_MINIMIZATION, ARM_TIMER),
    ROW(CHOOSING, TIMED_OUT, ALWAYS, CONCLUDING, WRITE_MINIMIZATION, ARM_TIMER),
    ROW(CHOOSING, CANCEL, ALWAYS, CONCLUDING, WRITE_MINIMIZATION, ARM_TIMER),

    /* journaling: I1 holds for attempts too, no session exists before the sequence is durable */
    ROW(JOURNALING, ATTEMPT_DURABLE, ALWAYS, PROVISIONING, START_SESSION, ARM_TIMER),
    ROW(JOURNALING, STORAGE_FAILED, ALWAYS, DONE, REPORT_STORAGE_FAILED, REPORT_DONE),
    ROW(JOURNALING, TIMED_OUT, ALWAYS, DONE, REPORT_STORAGE_FAILED, REPORT_DONE),
    ROW(JOURNALING, CANCEL, ALWAYS, CONCLUDING, WRITE_MINIMIZATION, ARM_TIMER),

    ROW(PROVISIONING, SESSION_READY, MORE_ACTIONS, REPLAYING, SEND_EXECUTE, ARM_TIMER),
    ROW(PROVISIONING, SESSION_READY, SEQUENCE_ENDED, FINALIZING, RECORD_NOTHING, FINALIZE_SESSION, ARM_TIMER),
    ROW(PROVISIONING, SESSION_REFUSED, ALWAYS, FINALIZING, RECORD_ABORTED, ARM_TIMER),
    ROW(PROVISIONING, VIOLATION_ANSWERED, ALWAYS, FINALIZING, RECORD_ABORTED, QUARANTINE_SESSION, ARM_TIMER),
    ROW(PROVISIONING, SESSION_ENDED, ALWAYS, ABORTED, RECORD_ABORTED, WRITE_RESULT, ARM_TIMER),
    STOP_ROWS(PROVISIONING),

    ROW(REPLAYING, ACTION_PASSED, MORE_ACTIONS, REPLAYING, SEND_EXECUTE, ARM_TIMER),
    ROW(REPLAYING, ACTION_PASSED, SEQUENCE_ENDED, FINALIZING, RECORD_NOTHING, FINALIZE_SESSION, ARM_TIMER),
    ROW(REPLAYING, ACTION_FAILED, ALWAYS, FINALIZING, RECORD_ANOMALY, FINALIZE_SESSION, ARM_TIMER),
    ROW(REPLAYING, VIOLATION_ANSWERED, ALWAYS, FINALIZING, RECORD_ANOMALY, QUARANTINE_SESSION, ARM_TIMER),
    ROW(REPLAYING, SESSION_ENDED, SAME_ANOMALY, REPRODUCED, RECORD_ANOMALY, WRITE_RESULT, ARM_TIMER),
    ROW(REPLAYING, SESSION_ENDED, OTHER_ANOMALY, ABORTED, RECORD_ANOMALY, WRITE_RESULT, ARM_TIMER),
    STOP_ROWS(REPLAYING),

    /* finalizing: the outcome stands, unless a violation shows up only now */
    ROW(FINALIZING, FINALIZE_ANSWERED, ALWAYS, FINALIZING, SHUTDOWN_SESSION),
    ROW(FINALIZING, VIOLATION_ANSWERED, ALWAYS, FINALIZING, RECORD_ANOMALY, QUARANTINE_SESSION),
    ROW(FINALIZING, SESSION_ENDED, SHOWED_SAME, REPRODUCED, WRITE_RESULT, ARM_TIMER),
    ROW(FINALIZING, SESSION_ENDED, SHOWED_NOTHING, NOT_REPRODUCED, WRITE_RESULT, ARM_TIMER),
    ROW(FINALIZING, SESSION_ENDED, SHOWED_OTHER, ABORTED, WRITE_RESULT, ARM_TIMER),
    STOP_ROWS(FINALIZING),

    RESULT_ROWS(REPRODUCED),
    RESULT_ROWS(NOT_REPRODUCED),
    RESULT_ROWS(ABORTED),

    ROW(STOPPING, SESSION_ENDED, ALWAYS, CONCLUDING, WRITE_MINIMIZATION, ARM_TIMER),
    ROW(STOPPING, VIOLATION_ANSWERED, ALWAYS, STOPPING, QUARANTINE_SESSION),
    ROW(STOPPING, TIMED_OUT, ALWAYS, CONCLUDING, WRITE_MINIMIZATION, ARM_TIMER),
    ROW(STOPPING, CANCEL, ALWAYS, STOPPING, NONE),

    /* concluding: a write that was under way when the cancel came may still come back */
    ROW(CONCLUDING, MINIMIZATION_DURABLE, ALWAYS, DONE, REPORT_DONE),
    ROW(CONCLUDING, STORAGE_FAILED, ALWAYS, DONE, REPORT_STORAGE_FAILED, REPORT_DONE),
    ROW(CONCLUDING, TIMED_OUT, ALWAYS, DONE, REPORT_STORAGE_FAILED, REPORT_DONE),
    ROW(CONCLUDING, ATTEMPT_DURABLE, ALWAYS, CONCLUDING, NONE),
    ROW(CONCLUDING, RESULT_DURABLE, ALWAYS, CONCLUDING, NONE),
    ROW(CONCLUDING, CANCEL, ALWAYS, CONCLUDING, NONE),
};

#define STATE(name) [HF_MINIMIZATION_STATE_##name]
static const char *const state_names[HF_MINIMIZATION_STATE_COUNT] = {
    STATE(CREATED) = "created", STATE(CHOOSING) = "choosing", STATE(JOURNALING) = "journaling",
    STATE(PROVISIONING) = "provisioning", STATE(REPLAYING) = "replaying", STATE(FINALIZING) = "finalizing",
    STATE(REPRODUCED) = "reproduced", STATE(NOT_REPRODUCED) = "not_reproduced", STATE(ABORTED) = "aborted",
    STATE(STOPPING) = "stopping", STATE(CONCLUDING) = "concluding", STATE(DONE) = "done",
};

#define EVENT(name) [HF_MINIMIZATION_EVENT_##name]
static const char *const event_names[HF_MINIMIZATION_EVENT_COUNT] = {
    EVENT(START) = "start", EVENT(CANDIDATE_CHECKED) = "candidate_checked", EVENT(ATTEMPT_DURABLE) = "attempt_durable",
    EVENT(SESSION_READY) = "session_ready", EVENT(SESSION_REFUSED) = "session_refused",
    EVENT(ACTION_PASSED) = "action_passed", EVENT(ACTION_FAILED) = "action_failed",
    EVENT(VIOLATION_ANSWERED) = "violation_answered", EVENT(FINALIZE_ANSWERED) = "finalize_answered",
    EVENT(SESSION_ENDED) = "session_ended", EVENT(RESULT_DURABLE) = "result_durable",
    EVENT(MINIMIZATION_DURABLE) = "minimization_durable", EVENT(STORAGE_FAILED) = "storage_failed",
    EVENT(CANCEL) = "cancel", EVENT(TIMED_OUT) = "timed_out",
};

#define EFFECT(name) [HF_MINIMIZATION_EFFECT_##name]
static const char *const effect_names[HF_MINIMIZATION_EFFECT_COUNT] = {
    EFFECT(NONE) = "none", EFFECT(ARM_TIMER) = "arm_timer", EFFECT(CHOOSE_CANDIDATE) = "choose_candidate",
    EFFECT(APPEND_ATTEMPT) = "append_attempt", EFFECT(START_SESSION) = "start_session",
    EFFECT(SEND_EXECUTE) = "send_execute", EFFECT(FINALIZE_SESSION) = "finalize_session",
    EFFECT(SHUTDOWN_SESSION) = "shutdown_session", EFFECT(QUARANTINE_SESSION) = "quarantine_session",
    EFFECT(TERMINATE_SESSION) = "terminate_session", EFFECT(WRITE_RESULT) = "write_result",
    EFFECT(WRITE_MINIMIZATION) = "write_minimization", EFFECT(REPORT_DONE) = "report_done",
    EFFECT(REPORT_STORAGE_FAILED) = "report_storage_failed", EFFECT(BEGIN_ATTEMPT) = "begin_attempt",
    EFFECT(RECORD_ANOMALY) = "record_anomaly", EFFECT(RECORD_NOTHING) = "record_nothing",
    EFFECT(RECORD_ABORTED) = "record_aborted",
};

#define GUARD(name) [HF_MINIMIZATION_GUARD_##name]
static const char *const guard_names[HF_MINIMIZATION_GUARD_COUNT] = {
    GUARD(ALWAYS) = "always", GUARD(MAY_MINIMIZE) = "may_minimize", GUARD(FORBIDDEN) = "forbidden",
    GUARD(CANDIDATE_LEFT) = "candidate_left", GUARD(FINISHED) = "finished", GUARD(MORE_ACTIONS) = "more_actions",
    GUARD(SEQUENCE_ENDED) = "sequence_ended", GUARD(SAME_ANOMALY) = "same_anomaly",
    GUARD(OTHER_ANOMALY) = "other_anomaly", GUARD(SHOWED_SAME) = "showed_same",
    GUARD(SHOWED_NOTHING) = "showed_nothing", GUARD(SHOWED_OTHER) = "showed_other",
};

static const uint8_t guard_groups[HF_MINIMIZATION_GUARD_COUNT] = {
    GUARD(MAY_MINIMIZE) = 1, GUARD(FORBIDDEN) = 1,
    GUARD(CANDIDATE_LEFT) = 2, GUARD(FINISHED) = 2,
    GUARD(MORE_ACTIONS) = 3, GUARD(SEQUENCE_ENDED) = 3,
    GUARD(SAME_ANOMALY) = 4, GUARD(OTHER_ANOMALY) = 4,
    GUARD(SHOWED_SAME) = 5, GUARD(SHOWED_NOTHING) = 5, GUARD(SHOWED_OTHER) = 5,
};
/* clang-format on */

static bool forbidden(const struct hf_minimization_facts *facts)
{
    return facts->local_executor && facts->policy_violation;
}

static bool candidate_left(const struct hf_minimization_facts *facts)
{
    return facts->candidate_available && facts->time_left && facts->attempts_left > 0;
}

static bool guard_holds(uint8_t guard, const void *opaque)
{
    const struct hf_minimization_facts *facts = opaque;
    switch ((enum hf_minimization_guard)guard) {
    case HF_MINIMIZATION_GUARD_ALWAYS:
        return true;
    case HF_MINIMIZATION_GUARD_MAY_MINIMIZE:
        return !forbidden(facts);
    case HF_MINIMIZATION_GUARD_FORBIDDEN:
        return forbidden(facts);
    case HF_MINIMIZATION_GUARD_CANDIDATE_LEFT:
        return candidate_left(facts);
    case HF_MINIMIZATION_GUARD_FINISHED:
        return !candidate_left(facts);
    case HF_MINIMIZATION_GUARD_MORE_ACTIONS:
        return facts->actions_left > 0;
    case HF_MINIMIZATION_GUARD_SEQUENCE_ENDED:
        return facts->actions_left == 0;
    case HF_MINIMIZATION_GUARD_SAME_ANOMALY:
        return facts->same_anomaly;
    case HF_MINIMIZATION_GUARD_OTHER_ANOMALY:
        return !facts->same_anomaly;
    case HF_MINIMIZATION_GUARD_SHOWED_SAME:
        return facts->outcome == HF_MINIMIZATION_OUTCOME_REPRODUCED;
    case HF_MINIMIZATION_GUARD_SHOWED_NOTHING:
        return facts->outcome == HF_MINIMIZATION_OUTCOME_NOT_REPRODUCED;
    case HF_MINIMIZATION_GUARD_SHOWED_OTHER:
        return facts->outcome != HF_MINIMIZATION_OUTCOME_REPRODUCED &&
               facts->outcome != HF_MINIMIZATION_OUTCOME_NOT_REPRODUCED;
    case HF_MINIMIZATION_GUARD_COUNT:
        break;
    }
    return false;
}

static void apply(uint8_t effect, void *opaque)
{
    struct hf_minimization_facts *facts = opaque;
    switch ((enum hf_minimization_effect)effect) {
    case HF_MINIMIZATION_EFFECT_BEGIN_ATTEMPT:
        facts->attempts_left -= facts->attempts_left > 0;
        facts->outcome = HF_MINIMIZATION_OUTCOME_NOT_REPRODUCED;
        break;
    case HF_MINIMIZATION_EFFECT_RECORD_ANOMALY:
        facts->outcome = facts->same_anomaly ? HF_MINIMIZATION_OUTCOME_REPRODUCED : HF_MINIMIZATION_OUTCOME_ABORTED;
        break;
    case HF_MINIMIZATION_EFFECT_RECORD_NOTHING:
        facts->outcome = HF_MINIMIZATION_OUTCOME_NOT_REPRODUCED;
        break;
    case HF_MINIMIZATION_EFFECT_RECORD_ABORTED:
        facts->outcome = HF_MINIMIZATION_OUTCOME_ABORTED;
        break;
    default:
        break;
    }
}

#define SET(name) HF_SM_STATE(HF_MINIMIZATION_STATE_##name)
#define ON(name)  HF_SM_EVENT(HF_MINIMIZATION_EVENT_##name)
const struct hf_sm_definition hf_minimization_machine = {
    .name = "minimization",
    .state_names = state_names,
    .event_names = event_names,
    .effect_names = effect_names,
    .guard_names = guard_names,
    .state_count = HF_MINIMIZATION_STATE_COUNT,
    .event_count = HF_MINIMIZATION_EVENT_COUNT,
    .effect_count = HF_MINIMIZATION_EFFECT_COUNT,
    .guard_count = HF_MINIMIZATION_GUARD_COUNT,
    .guard_groups = guard_groups,
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .initial = HF_MINIMIZATION_STATE_CREATED,
    .terminal_states = SET(DONE),
    .closing_states = SET(STOPPING) | SET(CONCLUDING),
    .peerless_states = SET(CREATED) | SET(CHOOSING),
    .timeout_events = ON(TIMED_OUT),
    .loss_events = ON(SESSION_REFUSED) | ON(SESSION_ENDED) | ON(STORAGE_FAILED),
    .cancel_events = ON(CANCEL),
    .facts_size = sizeof(struct hf_minimization_facts),
    .guard = guard_holds,
    .apply = apply,
};
