/*
 * The engine: one table format, one step function, for every machine of the project.
 *
 * A machine is a constant array of rows { state, event, guard, next, effects }. hf_sm_step() is pure: it looks a row
 * up, moves the instance and hands back the row's effects. It reads no clock, allocates nothing and performs no I/O;
 * the shell in server/ performs the effects, in order, and feeds their results back as events. README.md has the
 * contract.
 *
 * This directory includes nothing but itself and the headers of a freestanding C implementation plus <string.h>.
 */
#ifndef HF_STATEMACHINES_ENGINE_H
#define HF_STATEMACHINES_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF_SM_MAX_EFFECTS 6
#define HF_SM_MAX_STATES  32 /* sets of states and of events are bits of a uint32_t and of a uint64_t */
#define HF_SM_MAX_EVENTS  64

#define HF_SM_EFFECT_NONE  0 /* ends an effect list */
#define HF_SM_GUARD_ALWAYS 0 /* a row without condition */
#define HF_SM_NO_EVENT     UINT8_MAX

#define HF_SM_STATE(state) (UINT32_C(1) << (state))
#define HF_SM_EVENT(event) (UINT64_C(1) << (event))

struct hf_sm_row {
    uint8_t state;
    uint8_t event;
    uint8_t guard; /* HF_SM_GUARD_ALWAYS, or a predicate that must hold for the row to match */
    uint8_t next;
    uint8_t effects[HF_SM_MAX_EFFECTS]; /* in the order of performance, ended by HF_SM_EFFECT_NONE */
};

struct hf_sm_definition {
    const char *name;
    const char *const *state_names; /* all names are lower case with underscores, have static lifetime */
    const char *const *event_names;
    const char *const *effect_names; /* [0] is "none" */
    const char *const *guard_names;  /* [0] is "always" */
    uint8_t state_count, event_count, effect_count, guard_count;
    /* The guards of one group partition all facts: exactly one of them holds. Rows that share state and event use
     * guards of one group only, which is what makes them exclusive. [0] is 0, groups count from 1. */
    const uint8_t *guard_groups;
    const struct hf_sm_row *rows;
    size_t row_count;
    uint8_t initial;
    uint32_t terminal_states; /* HF_SM_STATE() bits */
    /* States that are already on the way out: they may answer a cancel by staying, bounded by their timer. */
    uint32_t closing_states;
    uint32_t peerless_states; /* states that wait for nobody, or for the shell alone: there is no peer to lose */
    uint64_t timeout_events;  /* HF_SM_EVENT() bits: what a timer of this machine feeds */
    uint64_t loss_events;     /* the peer of the present state (process, disk, another machine) failed or went away */
    uint64_t cancel_events;
    size_t facts_size; /* of the plain struct that guard and apply read */
    bool (*guard)(uint8_t guard, const void *facts);
    /* Performs the effects that only change facts (for example a verdict). Others are left alone. May be NULL. */
    void (*apply)(uint8_t effect, void *facts);
};

struct hf_sm_instance {
    const struct hf_sm_definition *definition;
    uint8_t state;
    uint32_t accepted; /* saturating counters */
    uint32_t rejected;
    uint8_t last_rejected_event; /* HF_SM_NO_EVENT when none was */
    uint8_t last_rejected_state;
};

struct hf_sm_result {
    bool accepted;
    uint8_t from, to; /* equal when rejected */
    uint8_t event;
    uint8_t guard;        /* of the matched row; journal it, hf_sm_replay() needs it */
    uint8_t effect_count; /* 0 when rejected */
    uint8_t effects[HF_SM_MAX_EFFECTS];
};

void hf_sm_init(struct hf_sm_instance *instance, const struct hf_sm_definition *definition);

/* The row that would match, or NULL. Lets the shell journal a transition before it happens. */
const struct hf_sm_row *hf_sm_find(const struct hf_sm_instance *instance, uint8_t event, const void *facts);

/* Takes one event. When no row accepts it, counts and remembers it and changes nothing else; an event number out of
 * range is such an event. When one does, applies the row's fact-only effects to *facts and moves the instance. */
struct hf_sm_result hf_sm_step(struct hf_sm_instance *instance, uint8_t event, void *facts);

/* Repeats a journaled transition at recovery: the row is taken by state, event and recorded guard, no guard is
 * evaluated, the effects are for information only (they were performed before the crash, or are lost with it).
 * Rejected when the table has no such row, which means the journal is damaged or of another version. */
struct hf_sm_result hf_sm_replay(struct hf_sm_instance *instance, uint8_t event, uint8_t guard, void *facts);

bool hf_sm_is_terminal(const struct hf_sm_instance *instance);
const char *hf_sm_state_name(const struct hf_sm_instance *instance);

/* Numbers of names in the journal. The lookups return -1 for a name that the machine does not have. */
int hf_sm_event_by_name(const struct hf_sm_definition *definition, const char *name);
int hf_sm_guard_by_name(const struct hf_sm_definition *definition, const char *name);

/* Every machine of the project, in a fixed order. */
#define HF_SM_MACHINE_COUNT 5
const struct hf_sm_definition *const *hf_sm_all(size_t *count);

#endif
