/* What strategist.c and strategist_command.c share; nobody else includes it. */
#ifndef HF_SERVER_CORE_STRATEGIST_INTERNAL_H
#define HF_SERVER_CORE_STRATEGIST_INTERNAL_H

#include "server/core/strategist.h"

#define HF_STRATEGIST_PENDING_EVENTS 8

/* The process of one call. */
struct hf_strategist_process {
    struct hf_loop_child *child; /* NULL when none runs */
    char *answer;                /* owned, at most HF_STRATEGIST_MAX_STDOUT bytes */
    size_t answer_length;
    char *diagnostics; /* owned */
    size_t diagnostics_length;
    bool overflowed;
    unsigned number; /* of the call within the run, 1.. */
    bool repair;
};

struct hf_strategist {
    uv_loop_t *loop;
    struct hf_read_scratch *scratch;
    const struct hf_strategist_owner *owner;
    void *context;
    enum hf_strategist_type type;
    char *command; /* owned */
    struct hf_sm_instance machine;
    struct hf_strategist_call_facts facts;
    struct hf_strategist_call_times times;
    uv_timer_t timer;
    uint8_t pending[HF_STRATEGIST_PENDING_EVENTS]; /* self-checks go to the front */
    unsigned pending_count;
    bool stepping;
    bool ended;
    struct hf_strategist_process process;
    struct hf_refusal refusal; /* of the last answer */
    size_t chosen;
    struct hf_error error;
    void (*freed)(void *context);
    void *freed_context;
};

void hf_strategist_feed(struct hf_strategist *strategist, enum hf_strategist_call_event event);
void hf_strategist_fail(struct hf_strategist *strategist, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Starts the program with the prompt of the present choice, or with the repair prompt. */
void hf_strategist_command_run(struct hf_strategist *strategist, const struct hf_choice *choice, bool repair);
/* Ends the process; process_ended follows, at once when none runs. */
void hf_strategist_command_stop(struct hf_strategist *strategist);

#endif
