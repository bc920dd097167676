/* Implementation of walker.h: graph walks over constant tables; prints nothing. */
#include "walker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FACTS_SIZE = 512 };

static bool __attribute__((format(printf, 2, 3))) found(struct walker_finding *finding, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_terminal(const struct hf_sm_definition *machine, uint8_t state)
{
    return (machine->terminal_states & HF_SM_STATE(state)) != 0;
}

bool walker_row_has(const struct hf_sm_row *row, uint64_t effects)
{
    for (size_t i = 0; i < HF_SM_MAX_EFFECTS && row->effects[i] != HF_SM_EFFECT_NONE; i++) {
        if (effects & EFFECT_BIT(row->effects[i]))
            return true;
    }
    return false;
}

static bool names_are_good(const struct hf_sm_definition *machine, const char *what, const char *const *names,
                           uint8_t count, struct walker_finding *finding)
{
    for (uint8_t i = 0; i < count; i++) {
        if (!names[i] || !names[i][0] || strspn(names[i], "abcdefghijklmnopqrstuvwxyz_") != strlen(names[i]))
            return found(finding, "%s: %s %u has no good name", machine->name, what, i);
        for (uint8_t j = 0; j < i; j++) {
            if (strcmp(names[i], names[j]) == 0)
                return found(finding, "%s: two %ss are called %s", machine->name, what, names[i]);
        }
    }
    return true;
}

static bool row_is_in_range(const struct hf_sm_definition *machine, const struct hf_sm_row *row)
{
    if (row->state >= machine->state_count || row->next >= machine->state_count || row->event >= machine->event_count ||
        row->guard >= machine->guard_count)
        return false;
    bool ended = false;
    for (size_t i = 0; i < HF_SM_MAX_EFFECTS; i++) {
        if (row->effects[i] >= machine->effect_count || (ended && row->effects[i] != HF_SM_EFFECT_NONE))
            return false;
        ended = row->effects[i] == HF_SM_EFFECT_NONE;
    }
    return true;
}

bool walker_shape(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    if (machine->state_count > HF_SM_MAX_STATES || machine->event_count > HF_SM_MAX_EVENTS ||
        machine->effect_count > 64 || machine->guard_count > 64)
        return found(finding, "%s: more states, events, effects or guards than a set can hold", machine->name);
    if (!names_are_good(machine, "state", machine->state_names, machine->state_count, finding) ||
        !names_are_good(machine, "event", machine->event_names, machine->event_count, finding) ||
        !names_are_good(machine, "effect", machine->effect_names, machine->effect_count, finding) ||
        !names_are_good(machine, "guard", machine->guard_names, machine->guard_count, finding))
        return false;
    for (uint8_t guard = 0; guard < machine->guard_count; guard++) {
        if ((machine->guard_groups[guard] == 0) != (guard == HF_SM_GUARD_ALWAYS))
            return found(finding, "%s: guard %s has no group", machine->name, machine->guard_names[guard]);
    }
    for (size_t i = 0; i < machine->row_count; i++) {
        if (!row_is_in_range(machine, &machine->rows[i]))
            return found(finding, "%s: row %zu is out of range or has a hole in its effects", machine->name, i);
    }
    if (machine->initial >= machine->state_count || is_terminal(machine, machine->initial))
        return found(finding, "%s: bad initial state", machine->name);
    return true;
}

uint32_t walker_reachable_from(const struct hf_sm_definition *machine, uint32_t from)
{
    uint32_t seen = from, before;
    do {
        before = seen;
        for (size_t i = 0; i < machine->row_count; i++) {
            if (seen & HF_SM_STATE(machine->rows[i].state))
                seen |= HF_SM_STATE(machine->rows[i].next);
        }
    } while (seen != before);
    return seen;
}

bool walker_all_states_reachable(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    uint32_t seen = walker_reachable_from(machine, HF_SM_STATE(machine->initial));
    for (uint8_t state = 0; state < machine->state_count; state++) {
        if (!(seen & HF_SM_STATE(state)))
            return found(finding, "%s: state %s cannot be reached", machine->name, machine->state_names[state]);
    }
    return true;
}

bool walker_everything_ends(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    for (size_t i = 0; i < machine->row_count; i++) {
        if (is_terminal(machine, machine->rows[i].state))
            return found(finding, "%s: terminal state %s has a row", machine->name,
                         machine->state_names[machine->rows[i].state]);
    }
    for (uint8_t state = 0; state < machine->state_count; state++) {
        if (!(walker_reachable_from(machine, HF_SM_STATE(state)) & machine->terminal_states))
            return found(finding, "%s: no end can be reached from %s", machine->name, machine->state_names[state]);
    }
    return true;
}

static bool state_has_row(const struct hf_sm_definition *machine, uint8_t state, uint64_t events, bool must_leave)
{
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if (row->state == state && (events & HF_SM_EVENT(row->event)) && (!must_leave || row->next != state))
            return true;
    }
    return false;
}

bool walker_leaves_on_timeout(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    for (uint8_t state = 0; state < machine->state_count; state++) {
        if (!is_terminal(machine, state) && !state_has_row(machine, state, machine->timeout_events, true))
            return found(finding, "%s: %s does not leave on a timeout", machine->name, machine->state_names[state]);
    }
    return true;
}

bool walker_leaves_on_loss(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    for (uint8_t state = 0; state < machine->state_count; state++) {
        bool exempt = is_terminal(machine, state) || (machine->peerless_states & HF_SM_STATE(state));
        if (!exempt && !state_has_row(machine, state, machine->loss_events, true))
            return found(finding, "%s: %s does not leave on loss of its peer", machine->name,
                         machine->state_names[state]);
    }
    return true;
}

bool walker_leaves_on_cancel(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    for (uint8_t state = 0; state < machine->state_count; state++) {
        bool must_leave = !(machine->closing_states & HF_SM_STATE(state));
        if (!is_terminal(machine, state) && !state_has_row(machine, state, machine->cancel_events, must_leave))
            return found(finding, "%s: %s does not %s cancel", machine->name, machine->state_names[state],
                         must_leave ? "leave on" : "accept a");
    }
    return true;
}

static uint64_t guards_of_group(const struct hf_sm_definition *machine, uint8_t group)
{
    uint64_t guards = 0;
    for (uint8_t guard = 0; guard < machine->guard_count; guard++) {
        if (machine->guard_groups[guard] == group)
            guards |= UINT64_C(1) << guard;
    }
    return guards;
}

static bool pair_partitions(const struct hf_sm_definition *machine, uint8_t state, uint8_t event,
                            struct walker_finding *finding)
{
    uint64_t used = 0;
    uint8_t group = 0;
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if (row->state != state || row->event != event)
            continue;
        uint64_t bit = UINT64_C(1) << row->guard;
        if (used != 0 && ((used & bit) || machine->guard_groups[row->guard] != group))
            return found(finding, "%s: %s has two rows for %s that may both match", machine->name,
                         machine->state_names[state], machine->event_names[event]);
        used |= bit;
        group = machine->guard_groups[row->guard];
    }
    if (used != 0 && used != guards_of_group(machine, group))
        return found(finding, "%s: %s does not take %s under every guard of its group", machine->name,
                     machine->state_names[state], machine->event_names[event]);
    return true;
}

bool walker_rows_partition(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    for (uint8_t state = 0; state < machine->state_count; state++) {
        for (uint8_t event = 0; event < machine->event_count; event++) {
            if (!pair_partitions(machine, state, event, finding))
                return false;
        }
    }
    return true;
}

bool walker_nothing_unused(const struct hf_sm_definition *machine, struct walker_finding *finding)
{
    uint64_t events = 0, guards = 1;
    uint64_t effects = EFFECT_BIT(HF_SM_EFFECT_NONE);
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        events |= HF_SM_EVENT(row->event);
        guards |= UINT64_C(1) << row->guard;
        for (size_t j = 0; j < HF_SM_MAX_EFFECTS; j++)
            effects |= EFFECT_BIT(row->effects[j]);
    }
    for (uint8_t i = 0; i < machine->event_count; i++) {
        if (!(events & HF_SM_EVENT(i)))
            return found(finding, "%s: event %s is never used", machine->name, machine->event_names[i]);
    }
    for (uint8_t i = 0; i < machine->guard_count; i++) {
        if (!(guards & (UINT64_C(1) << i)))
            return found(finding, "%s: guard %s is never used", machine->name, machine->guard_names[i]);
    }
    for (uint8_t i = 0; i < machine->effect_count; i++) {
        if (!(effects & EFFECT_BIT(i)))
            return found(finding, "%s: effect %s is never used", machine->name, machine->effect_names[i]);
    }
    return true;
}

static bool report_row(const struct hf_sm_definition *machine, const struct hf_sm_row *row, const char *complaint,
                       struct walker_finding *finding)
{
    return found(finding, "%s: %s, on %s [%s]: %s", machine->name, machine->state_names[row->state],
                 machine->event_names[row->event], machine->guard_names[row->guard], complaint);
}

bool walker_effects_unreachable(const struct hf_sm_definition *machine, uint32_t from, uint64_t effects,
                                struct walker_finding *finding)
{
    uint32_t states = walker_reachable_from(machine, from);
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if ((states & HF_SM_STATE(row->state)) && walker_row_has(row, effects))
            return report_row(machine, row, "an effect that must not be reachable any more", finding);
    }
    return true;
}

bool walker_effects_only_on(const struct hf_sm_definition *machine, uint64_t effects, uint64_t events,
                            struct walker_finding *finding)
{
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if (walker_row_has(row, effects) && !(events & HF_SM_EVENT(row->event)))
            return report_row(machine, row, "an effect that this event must not have", finding);
    }
    return true;
}

bool walker_effects_only_under(const struct hf_sm_definition *machine, uint64_t effects, uint64_t guards,
                               struct walker_finding *finding)
{
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if (walker_row_has(row, effects) && !(guards & (UINT64_C(1) << row->guard)))
            return report_row(machine, row, "an effect without its guard", finding);
    }
    return true;
}

bool walker_arms_timer(const struct hf_sm_definition *machine, uint8_t timer, uint32_t sharing,
                       struct walker_finding *finding)
{
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        bool enters = row->next != row->state && !is_terminal(machine, row->next);
        bool shared = (sharing & HF_SM_STATE(row->state)) && (sharing & HF_SM_STATE(row->next));
        if (enters && !shared && !walker_row_has(row, EFFECT_BIT(timer)))
            return report_row(machine, row, "enters a state without arming its timer", finding);
    }
    return true;
}

bool walker_guards_partition(const struct hf_sm_definition *machine, const void *facts, struct walker_finding *finding)
{
    uint8_t holding[64] = {0};
    uint8_t groups = 0;
    for (uint8_t guard = 1; guard < machine->guard_count; guard++) {
        uint8_t group = machine->guard_groups[guard];
        groups = group > groups ? group : groups;
        holding[group] = (uint8_t)(holding[group] + machine->guard(guard, facts));
    }
    for (uint8_t group = 1; group <= groups; group++) {
        if (holding[group] != 1)
            return found(finding, "%s: %u guards of group %u hold at once", machine->name, holding[group], group);
    }
    return true;
}

static uint8_t only_event_of(uint64_t events)
{
    uint8_t event = 0;
    while (!(events & HF_SM_EVENT(event)))
        event++;
    return event;
}

bool walker_timers_alone_end_it(const struct hf_sm_definition *machine, const void *facts, unsigned limit,
                                struct walker_finding *finding)
{
    const uint8_t timeout = only_event_of(machine->timeout_events);
    for (uint8_t state = 0; state < machine->state_count; state++) {
        unsigned char copy[MAX_FACTS_SIZE] __attribute__((aligned(16)));
        if (machine->facts_size > sizeof copy)
            return found(finding, "%s: facts are larger than the walker's copy", machine->name);
        memcpy(copy, facts, machine->facts_size);
        struct hf_sm_instance instance;
        hf_sm_init(&instance, machine);
        instance.state = state;
        for (unsigned i = 0; i < limit && !hf_sm_is_terminal(&instance); i++)
            hf_sm_step(&instance, timeout, copy);
        if (!hf_sm_is_terminal(&instance))
            return found(finding, "%s: from %s, timers alone do not end it", machine->name,
                         machine->state_names[state]);
    }
    return true;
}

const walker_check *walker_all(size_t *count)
{
    static const walker_check checks[] = {
        walker_shape,          walker_all_states_reachable, walker_everything_ends, walker_leaves_on_timeout,
        walker_leaves_on_loss, walker_leaves_on_cancel,     walker_rows_partition,  walker_nothing_unused,
    };
    *count = sizeof checks / sizeof checks[0];
    return checks;
}
