/*
 * The strategist of one run: the strategist_call machine, the built-in strategists (answered at once through the same
 * broker) and `command:PATH` programs (contained, prompt on stdin, answer on stdout, all bounded).
 *
 * It decides nothing but which offered case comes next (I9). It never blocks the loop, never reads a file that an
 * answer names, and what a program wrote is kept only below copilot/ in the run directory.
 *
 * strategist.c: machine and broker. strategist_command.c: the process of one call.
 */
#ifndef HF_SERVER_CORE_STRATEGIST_H
#define HF_SERVER_CORE_STRATEGIST_H

#include "server/controller.h"
#include "server/core/broker.h"
#include "server/core/choice.h"
#include "server/core/loop_child.h"
#include "statemachines/strategist_call.h"

#define HF_STRATEGIST_MAX_STDOUT                                                                                       \
    65536 /* more ends the call; an answer above HF_BROKER_MAX_ANSWER is refused by the broker */
#define HF_STRATEGIST_MAX_STDERR 16384 /* kept; the rest is dropped */

struct hf_strategist;

/* What a strategist needs from its owner, a run. */
struct hf_strategist_owner {
    /* One of the REPORT_* effects of the machine. */
    void (*report)(void *context, enum hf_strategist_call_effect report);
    void (*stepped)(void *context, const struct hf_sm_result *result);
    /* Fills in the facts of the present choice; pointers stay valid until the call is over. */
    void (*choice)(void *context, struct hf_choice *choice);
    /* Milliseconds that a call may take now, 0 when there is no time for one. */
    uint64_t (*call_ms)(void *context);
    /* Files below copilot/: "001-choice/answer.txt" and so on, and lines of rejections.jsonl. */
    void (*keep_document)(void *context, const char *name, const char *bytes, size_t length);
    void (*keep_rejection)(void *context, const char *line, size_t length);
    /* The machine is in a final state and no process of it is left. */
    void (*ended)(void *context);
};

struct hf_strategist_options {
    uv_loop_t *loop;
    struct hf_read_scratch *scratch;
    enum hf_strategist_type strategist;
    const char *command; /* absolute path of the program, for HF_STRATEGIST_COMMAND; copied */
    uint32_t credits_budget;
    struct hf_strategist_call_times times;
    const struct hf_strategist_owner *owner;
    void *context;
};

struct hf_strategist *hf_strategist_new(const struct hf_strategist_options *options);
void hf_strategist_start(struct hf_strategist *strategist); /* preflight */
void hf_strategist_ask(struct hf_strategist *strategist);
void hf_strategist_cancel(struct hf_strategist *strategist);

size_t hf_strategist_chosen(const struct hf_strategist *strategist); /* case index, after REPORT_CHOICE */
const struct hf_error *hf_strategist_error(const struct hf_strategist *strategist);
uint32_t hf_strategist_credits_charged(const struct hf_strategist *strategist);

bool hf_strategist_has_ended(const struct hf_strategist *strategist);
/* Only after `ended`. */
void hf_strategist_free(struct hf_strategist *strategist, void (*freed)(void *context), void *context);

#endif
