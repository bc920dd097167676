/* The strategist_call's table, its guards (I4), its accounting and its timers. */
#include "statemachines/strategist_call.h"

#include "statemachines/table.h"

/* clang-format off */
#define HF_ROW_STATE(name)  HF_STRATEGIST_CALL_STATE_##name
#define HF_ROW_EVENT(name)  HF_STRATEGIST_CALL_EVENT_##name
#define HF_ROW_GUARD(name)  HF_STRATEGIST_CALL_GUARD_##name
#define HF_ROW_EFFECT(name) HF_STRATEGIST_CALL_EFFECT_##name

/* A program runs: it may fail, overrun or be called off. What it used is charged in every case that can charge. */
#define RUNNING_ROWS(state) \
    ROW(state, PROCESS_FAILED, ALWAYS, REFUSED, CHARGE_USAGE, REPORT_REFUSED), \
    ROW(state, TIMED_OUT, ALWAYS, STOPPING, STOP_PROCESS, ARM_TIMER), \
    ROW(state, CANCEL, ALWAYS, CANCELLING, STOP_PROCESS, ARM_TIMER)
/* The same for the two checks that cost nothing. */
#define CHECKING_ROWS(state) \
    ROW(state, PROCESS_FAILED, ALWAYS, REFUSED, REPORT_REFUSED), \
    ROW(state, TIMED_OUT, ALWAYS, STOPPING_CHECK, STOP_PROCESS, ARM_TIMER), \
    ROW(state, CANCEL, ALWAYS, CANCELLING_CHECK, STOP_PROCESS, ARM_TIMER)
/* Nobody waits for it: running out of patience here is told to the next one who asks. */
#define RESTING_ROWS(state) \
    ROW(state, ASK, CREDITS_LEFT, INVOKING, BEGIN_CHOICE, INVOKE, ARM_TIMER), \
    ROW(state, ASK, CREDITS_SPENT, EXHAUSTED, REPORT_EXHAUSTED), \
    ROW(state, TIMED_OUT, ALWAYS, REFUSED, NONE), \
    ROW(state, CANCEL, ALWAYS, CLOSED, NONE)

static const struct hf_sm_row rows[] = {
    ROW(CREATED, START, NEEDS_PROOF, CHECKING_VERSION, RUN_VERSION_CHECK, ARM_TIMER),
    ROW(CREATED, START, NEEDS_NO_PROOF, IDLE, REPORT_READY, ARM_TIMER),
    ROW(CREATED, TIMED_OUT, ALWAYS, REFUSED, NONE),
    ROW(CREATED, CANCEL, ALWAYS, CLOSED, NONE),

    /* preflight of an installed program: version, then what it offers the model, then whether it is logged in */
    ROW(CHECKING_VERSION, VERSION_PASSED, ALWAYS, PROVING_TOOLS, RUN_TOOL_SURFACE_PROOF, ARM_TIMER),
    CHECKING_ROWS(CHECKING_VERSION),
    ROW(PROVING_TOOLS, TOOLS_PROVEN, CREDITS_LEFT, SMOKE, RUN_SMOKE, ARM_TIMER),
    ROW(PROVING_TOOLS, TOOLS_PROVEN, CREDITS_SPENT, EXHAUSTED, REPORT_EXHAUSTED),
    CHECKING_ROWS(PROVING_TOOLS),
    ROW(SMOKE, SMOKE_PASSED, ALWAYS, IDLE, CHARGE_USAGE, REPORT_READY, ARM_TIMER),
    RUNNING_ROWS(SMOKE),

    RESTING_ROWS(IDLE),

    /* invoking and repairing: the answer is data for the broker, whoever gave it */
    ROW(INVOKING, PROCESS_ANSWERED, ALWAYS, PARSING, CHARGE_USAGE, PARSE_ANSWER, ARM_TIMER),
    RUNNING_ROWS(INVOKING),
    ROW(PARSING, ANSWER_ACCEPTED, ALWAYS, ANSWERED, REPORT_CHOICE, ARM_TIMER),
    ROW(PARSING, ANSWER_REJECTED, MAY_REPAIR, REPAIRING, RECORD_REJECTION, COUNT_ATTEMPT, INVOKE_REPAIR, ARM_TIMER),
    ROW(PARSING, ANSWER_REJECTED, MAY_NOT_REPAIR, REFUSED, RECORD_REJECTION, REPORT_REFUSED),
    ROW(PARSING, TIMED_OUT, ALWAYS, REFUSED, REPORT_REFUSED),
    ROW(PARSING, CANCEL, ALWAYS, CLOSED, NONE),
    ROW(REPAIRING, PROCESS_ANSWERED, ALWAYS, PARSING, CHARGE_USAGE, PARSE_ANSWER, ARM_TIMER),
    RUNNING_ROWS(REPAIRING),

    RESTING_ROWS(ANSWERED),

    /* an answer or a failure that was already under way when the process was stopped is not heard any more */
    ROW(STOPPING, PROCESS_ENDED, ALWAYS, REFUSED, CHARGE_USAGE, REPORT_REFUSED),
    ROW(STOPPING, TIMED_OUT, ALWAYS, REFUSED, CHARGE_USAGE, REPORT_REFUSED),
    ROW(STOPPING, CANCEL, ALWAYS, CANCELLING, ARM_TIMER),
    ROW(STOPPING_CHECK, PROCESS_ENDED, ALWAYS, REFUSED, REPORT_REFUSED),
    ROW(STOPPING_CHECK, TIMED_OUT, ALWAYS, REFUSED, REPORT_REFUSED),
    ROW(STOPPING_CHECK, CANCEL, ALWAYS, CANCELLING_CHECK, ARM_TIMER),
    ROW(CANCELLING, PROCESS_ENDED, ALWAYS, CLOSED, CHARGE_USAGE),
    ROW(CANCELLING, TIMED_OUT, ALWAYS, CLOSED, CHARGE_USAGE),
    ROW(CANCELLING, CANCEL, ALWAYS, CANCELLING, NONE),
    ROW(CANCELLING_CHECK, PROCESS_ENDED, ALWAYS, CLOSED, NONE),
    ROW(CANCELLING_CHECK, TIMED_OUT, ALWAYS, CLOSED, NONE),
    ROW(CANCELLING_CHECK, CANCEL, ALWAYS, CANCELLING_CHECK, NONE),
};

#define STATE(name) [HF_STRATEGIST_CALL_STATE_##name]
static const char *const state_names[HF_STRATEGIST_CALL_STATE_COUNT] = {
    STATE(CREATED) = "created", STATE(CHECKING_VERSION) = "checking_version", STATE(PROVING_TOOLS) = "proving_tools",
    STATE(SMOKE) = "smoke", STATE(IDLE) = "idle", STATE(INVOKING) = "invoking", STATE(PARSING) = "parsing",
    STATE(REPAIRING) = "repairing", STATE(ANSWERED) = "answered", STATE(STOPPING) = "stopping",
    STATE(STOPPING_CHECK) = "stopping_check", STATE(CANCELLING) = "cancelling",
    STATE(CANCELLING_CHECK) = "cancelling_check", STATE(REFUSED) = "refused", STATE(EXHAUSTED) = "exhausted",
    STATE(CLOSED) = "closed",
};

#define EVENT(name) [HF_STRATEGIST_CALL_EVENT_##name]
static const char *const event_names[HF_STRATEGIST_CALL_EVENT_COUNT] = {
    EVENT(START) = "start", EVENT(ASK) = "ask", EVENT(VERSION_PASSED) = "version_passed",
    EVENT(TOOLS_PROVEN) = "tools_proven", EVENT(SMOKE_PASSED) = "smoke_passed",
    EVENT(PROCESS_ANSWERED) = "process_answered", EVENT(PROCESS_FAILED) = "process_failed",
    EVENT(PROCESS_ENDED) = "process_ended", EVENT(ANSWER_ACCEPTED) = "answer_accepted",
    EVENT(ANSWER_REJECTED) = "answer_rejected", EVENT(TIMED_OUT) = "timed_out", EVENT(CANCEL) = "cancel",
};

#define EFFECT(name) [HF_STRATEGIST_CALL_EFFECT_##name]
static const char *const effect_names[HF_STRATEGIST_CALL_EFFECT_COUNT] = {
    EFFECT(NONE) = "none", EFFECT(ARM_TIMER) = "arm_timer", EFFECT(RUN_VERSION_CHECK) = "run_version_check",
    EFFECT(RUN_TOOL_SURFACE_PROOF) = "run_tool_surface_proof", EFFECT(RUN_SMOKE) = "run_smoke",
    EFFECT(INVOKE) = "invoke", EFFECT(INVOKE_REPAIR) = "invoke_repair", EFFECT(PARSE_ANSWER) = "parse_answer",
    EFFECT(RECORD_REJECTION) = "record_rejection", EFFECT(STOP_PROCESS) = "stop_process",
    EFFECT(REPORT_READY) = "report_ready", EFFECT(REPORT_CHOICE) = "report_choice",
    EFFECT(REPORT_REFUSED) = "report_refused", EFFECT(REPORT_EXHAUSTED) = "report_exhausted",
    EFFECT(BEGIN_CHOICE) = "begin_choice", EFFECT(COUNT_ATTEMPT) = "count_attempt",
    EFFECT(CHARGE_USAGE) = "charge_usage",
};

#define GUARD(name) [HF_STRATEGIST_CALL_GUARD_##name]
static const char *const guard_names[HF_STRATEGIST_CALL_GUARD_COUNT] = {
    GUARD(ALWAYS) = "always", GUARD(NEEDS_PROOF) = "needs_proof", GUARD(NEEDS_NO_PROOF) = "needs_no_proof",
    GUARD(CREDITS_LEFT) = "credits_left", GUARD(CREDITS_SPENT) = "credits_spent", GUARD(MAY_REPAIR) = "may_repair",
    GUARD(MAY_NOT_REPAIR) = "may_not_repair",
};

static const uint8_t guard_groups[HF_STRATEGIST_CALL_GUARD_COUNT] = {
    GUARD(NEEDS_PROOF) = 1, GUARD(NEEDS_NO_PROOF) = 1,
    GUARD(CREDITS_LEFT) = 2, GUARD(CREDITS_SPENT) = 2,
    GUARD(MAY_REPAIR) = 3, GUARD(MAY_NOT_REPAIR) = 3,
};
/* clang-format on */

static bool charges(const struct hf_strategist_call_facts *facts)
{
    return facts->kind == HF_STRATEGIST_KIND_COPILOT;
}

/* I4: charged + 30 <= budget, written without an addition that could wrap around. */
static bool credits_left(const struct hf_strategist_call_facts *facts)
{
    return !charges(facts) || (facts->credits_charged <= facts->credits_budget &&
                               facts->credits_budget - facts->credits_charged >= HF_STRATEGIST_CALL_CREDITS);
}

static bool may_repair(const struct hf_strategist_call_facts *facts)
{
    return facts->attempts < HF_STRATEGIST_CALL_ATTEMPTS && facts->time_left && credits_left(facts);
}

static bool guard_holds(uint8_t guard, const void *opaque)
{
    const struct hf_strategist_call_facts *facts = opaque;
    switch ((enum hf_strategist_call_guard)guard) {
    case HF_STRATEGIST_CALL_GUARD_ALWAYS:
        return true;
    case HF_STRATEGIST_CALL_GUARD_NEEDS_PROOF:
        return charges(facts);
    case HF_STRATEGIST_CALL_GUARD_NEEDS_NO_PROOF:
        return !charges(facts);
    case HF_STRATEGIST_CALL_GUARD_CREDITS_LEFT:
        return credits_left(facts);
    case HF_STRATEGIST_CALL_GUARD_CREDITS_SPENT:
        return !credits_left(facts);
    case HF_STRATEGIST_CALL_GUARD_MAY_REPAIR:
        return may_repair(facts);
    case HF_STRATEGIST_CALL_GUARD_MAY_NOT_REPAIR:
        return !may_repair(facts);
    case HF_STRATEGIST_CALL_GUARD_COUNT:
        break;
    }
    return false;
}

void hf_strategist_call_facts_init(struct hf_strategist_call_facts *facts, enum hf_strategist_kind kind,
                                   uint32_t credits_budget)
{
    *facts = (struct hf_strategist_call_facts){.kind = kind, .credits_budget = credits_budget};
}

static void apply(uint8_t effect, void *opaque)
{
    struct hf_strategist_call_facts *facts = opaque;
    if (effect == HF_STRATEGIST_CALL_EFFECT_BEGIN_CHOICE) {
        facts->attempts = 1;
    } else if (effect == HF_STRATEGIST_CALL_EFFECT_COUNT_ATTEMPT) {
        facts->attempts++;
    } else if (effect == HF_STRATEGIST_CALL_EFFECT_CHARGE_USAGE && charges(facts)) {
        uint32_t charge = facts->usage_known ? facts->usage_credits : HF_STRATEGIST_CALL_CREDITS;
        bool overflows = charge > UINT32_MAX - facts->credits_charged;
        facts->credits_charged = overflows ? UINT32_MAX : facts->credits_charged + charge;
    }
}

#define SET(name) HF_SM_STATE(HF_STRATEGIST_CALL_STATE_##name)
#define ON(name)  HF_SM_EVENT(HF_STRATEGIST_CALL_EVENT_##name)
const struct hf_sm_definition hf_strategist_call_machine = {
    .name = "strategist_call",
    .state_names = state_names,
    .event_names = event_names,
    .effect_names = effect_names,
    .guard_names = guard_names,
    .state_count = HF_STRATEGIST_CALL_STATE_COUNT,
    .event_count = HF_STRATEGIST_CALL_EVENT_COUNT,
    .effect_count = HF_STRATEGIST_CALL_EFFECT_COUNT,
    .guard_count = HF_STRATEGIST_CALL_GUARD_COUNT,
    .guard_groups = guard_groups,
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .initial = HF_STRATEGIST_CALL_STATE_CREATED,
    .terminal_states = SET(REFUSED) | SET(EXHAUSTED) | SET(CLOSED),
    .closing_states = SET(CANCELLING) | SET(CANCELLING_CHECK),
    /* created, idle and answered have no process, parsing is the shell's own work */
    .peerless_states = SET(CREATED) | SET(IDLE) | SET(ANSWERED) | SET(PARSING),
    .timeout_events = ON(TIMED_OUT),
    .loss_events = ON(PROCESS_FAILED) | ON(PROCESS_ENDED),
    .cancel_events = ON(CANCEL),
    .facts_size = sizeof(struct hf_strategist_call_facts),
    .guard = guard_holds,
    .apply = apply,
};

uint64_t hf_strategist_call_timeout_ms(uint8_t state, const struct hf_strategist_call_times *times)
{
    switch ((enum hf_strategist_call_state)state) {
    case HF_STRATEGIST_CALL_STATE_CREATED:
    case HF_STRATEGIST_CALL_STATE_IDLE:
    case HF_STRATEGIST_CALL_STATE_ANSWERED:
        return times->idle_ms;
    case HF_STRATEGIST_CALL_STATE_CHECKING_VERSION:
        return times->version_ms;
    case HF_STRATEGIST_CALL_STATE_PROVING_TOOLS:
        return times->proof_ms;
    case HF_STRATEGIST_CALL_STATE_SMOKE:
        return times->smoke_ms;
    case HF_STRATEGIST_CALL_STATE_INVOKING:
    case HF_STRATEGIST_CALL_STATE_REPAIRING:
        return times->call_ms;
    case HF_STRATEGIST_CALL_STATE_PARSING:
        return times->parse_ms;
    case HF_STRATEGIST_CALL_STATE_STOPPING:
    case HF_STRATEGIST_CALL_STATE_STOPPING_CHECK:
    case HF_STRATEGIST_CALL_STATE_CANCELLING:
    case HF_STRATEGIST_CALL_STATE_CANCELLING_CHECK:
        return times->stop_ms;
    case HF_STRATEGIST_CALL_STATE_REFUSED:
    case HF_STRATEGIST_CALL_STATE_EXHAUSTED:
    case HF_STRATEGIST_CALL_STATE_CLOSED:
    case HF_STRATEGIST_CALL_STATE_COUNT:
        break;
    }
    return 0;
}
