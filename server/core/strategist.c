/* Implementation of strategist.h: the machine, its effects, the built-in strategists and the broker's verdicts. */
#include "server/core/strategist.h"
#include "server/core/loop_meter.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/digest.h"
#include "server/core/strategist_internal.h"

#include <stdarg.h>
#include <string.h>

void hf_strategist_fail(struct hf_strategist *strategist, const char *code, const char *format, ...)
{
    if (strategist->error.code)
        return;
    strategist->error.code = code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(strategist->error.message, sizeof strategist->error.message, format, arguments);
    va_end(arguments);
}

static void on_timer(uv_timer_t *timer)
{
    HF_LOOP_CALLBACK(timer->loop);
    struct hf_strategist *strategist = timer->data;
    hf_strategist_fail(strategist, "strategist-timeout", "the strategist did not finish in time (state %s)",
                       hf_sm_state_name(&strategist->machine));
    hf_strategist_feed(strategist, HF_STRATEGIST_CALL_EVENT_TIMED_OUT);
}

static void arm_timer(struct hf_strategist *strategist)
{
    uint64_t timeout_ms = hf_strategist_call_timeout_ms(strategist->machine.state, &strategist->times);
    if (timeout_ms > 0)
        uv_timer_start(&strategist->timer, on_timer, timeout_ms, 0);
    else
        uv_timer_stop(&strategist->timer);
}

/* A built-in strategist answers in the form that a program would, so that the broker sees no difference. */
static void answer_at_once(struct hf_strategist *strategist, const struct hf_choice *choice)
{
    size_t chosen = strategist->type == HF_STRATEGIST_GREEDY ? hf_choice_greedy(choice) : hf_choice_random(choice);
    cleanup_json cJSON *answer = hf_json_new_object();
    hf_json_add_int(answer, "schema_version", 1);
    hf_json_add_string(answer, "case_id", choice->campaign->cases[chosen].id);
    free(strategist->process.answer);
    strategist->process.answer = hf_json_canonical(answer, &strategist->process.answer_length);
    hf_strategist_feed(strategist, HF_STRATEGIST_CALL_EVENT_PROCESS_ANSWERED);
}

static void invoke(struct hf_strategist *strategist, bool repair)
{
    struct hf_choice choice;
    strategist->owner->choice(strategist->context, &choice);
    if (strategist->type == HF_STRATEGIST_COMMAND)
        hf_strategist_command_run(strategist, &choice, repair);
    else
        answer_at_once(strategist, &choice);
}

static void parse_answer(struct hf_strategist *strategist)
{
    struct hf_choice choice;
    struct hf_strategist_process *process = &strategist->process;
    strategist->owner->choice(strategist->context, &choice);
    bool accepted =
        hf_broker_judge(&choice, process->answer, process->answer_length, &strategist->chosen, &strategist->refusal);
    hf_strategist_feed(strategist,
                       accepted ? HF_STRATEGIST_CALL_EVENT_ANSWER_ACCEPTED : HF_STRATEGIST_CALL_EVENT_ANSWER_REJECTED);
}

/* One line of rejections.jsonl. The answer itself lies beside it as a file; here only its digest. */
static void record_rejection(struct hf_strategist *strategist)
{
    char digest[HF_SHA256_HEX_SIZE], now[25];
    const struct hf_strategist_process *process = &strategist->process;
    hf_sha256_hex(process->answer ? process->answer : "", process->answer_length, digest);
    hf_clock_format_utc(hf_clock_wall_ms(), now);
    cleanup_json cJSON *line = hf_json_new_object();
    hf_json_add_int(line, "schema_version", 1);
    hf_json_add_int(line, "call", process->number);
    hf_json_add_int(line, "attempt", strategist->facts.attempts);
    hf_json_add_string(line, "kind", hf_refusal_name(strategist->refusal.kind));
    hf_json_add_string(line, "message", strategist->refusal.message);
    hf_json_add_string(line, "answer_sha256", digest);
    hf_json_add_int(line, "answer_size_bytes", (int64_t)process->answer_length);
    hf_json_add_string(line, "rejected_at", now);
    size_t length;
    cleanup_free char *text = hf_json_canonical(line, &length);
    strategist->owner->keep_rejection(strategist->context, text, length);
}

static void report_refused(struct hf_strategist *strategist)
{
    if (strategist->refusal.kind != HF_REFUSAL_NONE)
        hf_strategist_fail(strategist, "strategist-refused",
                           "the strategist never gave a valid answer; the last one was refused as "
                           "%s: %s",
                           hf_refusal_name(strategist->refusal.kind), strategist->refusal.message);
    strategist->owner->report(strategist->context, HF_STRATEGIST_CALL_EFFECT_REPORT_REFUSED);
}

static void perform(struct hf_strategist *strategist, enum hf_strategist_call_effect effect)
{
    switch (effect) {
    case HF_STRATEGIST_CALL_EFFECT_ARM_TIMER:
        arm_timer(strategist);
        break;
    case HF_STRATEGIST_CALL_EFFECT_INVOKE:
        strategist->refusal.kind = HF_REFUSAL_NONE;
        invoke(strategist, false);
        break;
    case HF_STRATEGIST_CALL_EFFECT_INVOKE_REPAIR:
        invoke(strategist, true);
        break;
    case HF_STRATEGIST_CALL_EFFECT_PARSE_ANSWER:
        parse_answer(strategist);
        break;
    case HF_STRATEGIST_CALL_EFFECT_RECORD_REJECTION:
        record_rejection(strategist);
        break;
    case HF_STRATEGIST_CALL_EFFECT_STOP_PROCESS:
        hf_strategist_command_stop(strategist);
        break;
    case HF_STRATEGIST_CALL_EFFECT_REPORT_REFUSED:
        report_refused(strategist);
        break;
    case HF_STRATEGIST_CALL_EFFECT_REPORT_READY:
    case HF_STRATEGIST_CALL_EFFECT_REPORT_CHOICE:
    case HF_STRATEGIST_CALL_EFFECT_REPORT_EXHAUSTED:
        strategist->owner->report(strategist->context, effect);
        break;
    default: /* fact-only, or a step of the Copilot preflight that guard needs_proof keeps away from these kinds */
        break;
    }
}

static void end_if_terminal(struct hf_strategist *strategist)
{
    if (strategist->ended || !hf_sm_is_terminal(&strategist->machine) || strategist->process.child)
        return;
    strategist->ended = true;
    uv_timer_stop(&strategist->timer);
    strategist->owner->ended(strategist->context);
}

static void step(struct hf_strategist *strategist, uint8_t event)
{
    strategist->times.call_ms = strategist->owner->call_ms(strategist->context);
    strategist->facts.time_left = strategist->times.call_ms > 0;
    struct hf_sm_result result = hf_sm_step(&strategist->machine, event, &strategist->facts);
    strategist->owner->stepped(strategist->context, &result);
    for (uint8_t i = 0; i < result.effect_count; i++)
        perform(strategist, (enum hf_strategist_call_effect)result.effects[i]);
}

void hf_strategist_feed(struct hf_strategist *strategist, enum hf_strategist_call_event event)
{
    bool self_check =
        event == HF_STRATEGIST_CALL_EVENT_ANSWER_ACCEPTED || event == HF_STRATEGIST_CALL_EVENT_ANSWER_REJECTED;
    if (strategist->pending_count == HF_STRATEGIST_PENDING_EVENTS)
        abort(); /* every effect feeds at most one event */
    size_t at = self_check ? 0 : strategist->pending_count;
    memmove(strategist->pending + at + 1, strategist->pending + at, strategist->pending_count - at);
    strategist->pending[at] = (uint8_t)event;
    strategist->pending_count++;
    if (strategist->stepping)
        return;
    strategist->stepping = true;
    while (strategist->pending_count > 0) {
        uint8_t next = strategist->pending[0];
        memmove(strategist->pending, strategist->pending + 1, --strategist->pending_count);
        step(strategist, next);
    }
    strategist->stepping = false;
    end_if_terminal(strategist);
}

struct hf_strategist *hf_strategist_new(const struct hf_strategist_options *options)
{
    struct hf_strategist *strategist = calloc(1, sizeof *strategist);
    if (!strategist)
        abort();
    strategist->loop = options->loop;
    strategist->scratch = options->scratch;
    strategist->owner = options->owner;
    strategist->context = options->context;
    strategist->type = options->strategist;
    strategist->command = options->command ? strdup(options->command) : NULL;
    strategist->times = options->times;
    hf_sm_init(&strategist->machine, &hf_strategist_call_machine);
    bool program = options->strategist == HF_STRATEGIST_COMMAND;
    hf_strategist_call_facts_init(&strategist->facts,
                                  program ? HF_STRATEGIST_KIND_COMMAND : HF_STRATEGIST_KIND_BUILT_IN,
                                  options->credits_budget);
    uv_timer_init(options->loop, &strategist->timer);
    strategist->timer.data = strategist;
    return strategist;
}

void hf_strategist_start(struct hf_strategist *strategist)
{
    hf_strategist_feed(strategist, HF_STRATEGIST_CALL_EVENT_START);
}

void hf_strategist_ask(struct hf_strategist *strategist)
{
    hf_strategist_feed(strategist, HF_STRATEGIST_CALL_EVENT_ASK);
}

void hf_strategist_cancel(struct hf_strategist *strategist)
{
    if (!hf_sm_is_terminal(&strategist->machine))
        hf_strategist_feed(strategist, HF_STRATEGIST_CALL_EVENT_CANCEL);
}

size_t hf_strategist_chosen(const struct hf_strategist *strategist)
{
    return strategist->chosen;
}

const struct hf_error *hf_strategist_error(const struct hf_strategist *strategist)
{
    return &strategist->error;
}

uint32_t hf_strategist_credits_charged(const struct hf_strategist *strategist)
{
    return strategist->facts.credits_charged;
}

bool hf_strategist_has_ended(const struct hf_strategist *strategist)
{
    return strategist->ended;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct hf_strategist *strategist = handle->data;
    void (*freed)(void *context) = strategist->freed;
    void *context = strategist->freed_context;
    free(strategist->process.answer);
    free(strategist->process.diagnostics);
    free(strategist->command);
    free(strategist);
    if (freed)
        freed(context);
}

void hf_strategist_free(struct hf_strategist *strategist, void (*freed)(void *context), void *context)
{
    strategist->freed = freed;
    strategist->freed_context = context;
    uv_close((uv_handle_t *)&strategist->timer, on_timer_closed);
}
