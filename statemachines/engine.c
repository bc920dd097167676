/* Implementation of engine.h: table look-up and nothing else. */
#include "statemachines/engine.h"

#include <string.h>

static void count_up(uint32_t *counter)
{
    if (*counter < UINT32_MAX)
        (*counter)++;
}

void hf_sm_init(struct hf_sm_instance *instance, const struct hf_sm_definition *definition)
{
    *instance = (struct hf_sm_instance){
        .definition = definition,
        .state = definition->initial,
        .last_rejected_event = HF_SM_NO_EVENT,
        .last_rejected_state = definition->initial,
    };
}

const struct hf_sm_row *hf_sm_find(const struct hf_sm_instance *instance, uint8_t event, const void *facts)
{
    const struct hf_sm_definition *definition = instance->definition;
    for (size_t i = 0; i < definition->row_count; i++) {
        const struct hf_sm_row *row = &definition->rows[i];
        if (row->state != instance->state || row->event != event)
            continue;
        if (row->guard == HF_SM_GUARD_ALWAYS || definition->guard(row->guard, facts))
            return row;
    }
    return NULL;
}

static struct hf_sm_result take_row(struct hf_sm_instance *instance, const struct hf_sm_row *row, uint8_t event,
                                    void *facts)
{
    struct hf_sm_result result = {.from = instance->state, .to = instance->state, .event = event};
    if (!row) {
        count_up(&instance->rejected);
        instance->last_rejected_event = event;
        instance->last_rejected_state = instance->state;
        return result;
    }
    result.accepted = true;
    result.to = row->next;
    result.guard = row->guard;
    while (result.effect_count < HF_SM_MAX_EFFECTS && row->effects[result.effect_count] != HF_SM_EFFECT_NONE) {
        uint8_t effect = row->effects[result.effect_count];
        result.effects[result.effect_count++] = effect;
        if (instance->definition->apply)
            instance->definition->apply(effect, facts);
    }
    instance->state = row->next;
    count_up(&instance->accepted);
    return result;
}

struct hf_sm_result hf_sm_step(struct hf_sm_instance *instance, uint8_t event, void *facts)
{
    return take_row(instance, hf_sm_find(instance, event, facts), event, facts);
}

struct hf_sm_result hf_sm_replay(struct hf_sm_instance *instance, uint8_t event, uint8_t guard, void *facts)
{
    const struct hf_sm_definition *definition = instance->definition;
    const struct hf_sm_row *found = NULL;
    for (size_t i = 0; i < definition->row_count && !found; i++) {
        const struct hf_sm_row *row = &definition->rows[i];
        if (row->state == instance->state && row->event == event && row->guard == guard)
            found = row;
    }
    return take_row(instance, found, event, facts);
}

bool hf_sm_is_terminal(const struct hf_sm_instance *instance)
{
    return (instance->definition->terminal_states & HF_SM_STATE(instance->state)) != 0;
}

const char *hf_sm_state_name(const struct hf_sm_instance *instance)
{
    return instance->definition->state_names[instance->state];
}

static int index_of(const char *const *names, uint8_t count, const char *name)
{
    for (uint8_t i = 0; name && i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

int hf_sm_event_by_name(const struct hf_sm_definition *definition, const char *name)
{
    return index_of(definition->event_names, definition->event_count, name);
}

int hf_sm_guard_by_name(const struct hf_sm_definition *definition, const char *name)
{
    return index_of(definition->guard_names, definition->guard_count, name);
}
