/* Implementation of print.h: walks the tables and emits text. All names are plain ASCII identifiers (a unit test says
 * so), hence nothing has to be escaped. */
#include "statemachines/print.h"

#include <string.h>

struct writer {
    hf_sm_emit emit;
    void *context;
};

static void put(const struct writer *out, const char *text)
{
    out->emit(out->context, text, strlen(text));
}

static void put_number(const struct writer *out, uint8_t number)
{
    char digits[4];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number = (uint8_t)(number / 10);
    } while (number > 0);
    put(out, digits + at);
}

static void put_string(const struct writer *out, const char *text)
{
    put(out, "\"");
    put(out, text);
    put(out, "\"");
}

static void put_member(const struct writer *out, const char *key, const char *value)
{
    put_string(out, key);
    put(out, ":");
    put_string(out, value);
}

static void put_names(const struct writer *out, const char *key, const char *const *names, uint8_t first, uint8_t count)
{
    put_string(out, key);
    put(out, ":[");
    for (uint8_t i = first; i < count; i++) {
        if (i > first)
            put(out, ",");
        put_string(out, names[i]);
    }
    put(out, "]");
}

static void put_state_set(const struct writer *out, const struct hf_sm_definition *machine, const char *key,
                          uint32_t states)
{
    bool first = true;
    put_string(out, key);
    put(out, ":[");
    for (uint8_t i = 0; i < machine->state_count; i++) {
        if (!(states & HF_SM_STATE(i)))
            continue;
        if (!first)
            put(out, ",");
        first = false;
        put_string(out, machine->state_names[i]);
    }
    put(out, "]");
}

static void put_guards(const struct writer *out, const struct hf_sm_definition *machine)
{
    put(out, "\"guards\":[");
    for (uint8_t i = 1; i < machine->guard_count; i++) {
        put(out, i > 1 ? ",{\"group\":" : "{\"group\":");
        put_number(out, machine->guard_groups[i]);
        put(out, ",");
        put_member(out, "name", machine->guard_names[i]);
        put(out, "}");
    }
    put(out, "]");
}

static void put_row(const struct writer *out, const struct hf_sm_definition *machine, const struct hf_sm_row *row)
{
    put(out, "{\"effects\":[");
    for (size_t i = 0; i < HF_SM_MAX_EFFECTS && row->effects[i] != HF_SM_EFFECT_NONE; i++) {
        if (i > 0)
            put(out, ",");
        put_string(out, machine->effect_names[row->effects[i]]);
    }
    put(out, "],");
    put_member(out, "event", machine->event_names[row->event]);
    put(out, ",");
    put_member(out, "guard", machine->guard_names[row->guard]);
    put(out, ",");
    put_member(out, "next", machine->state_names[row->next]);
    put(out, ",");
    put_member(out, "state", machine->state_names[row->state]);
    put(out, "}");
}

static void put_machine(const struct writer *out, const struct hf_sm_definition *machine)
{
    put(out, "{");
    put_state_set(out, machine, "closing", machine->closing_states);
    put(out, ",");
    put_names(out, "effects", machine->effect_names, 1, machine->effect_count);
    put(out, ",");
    put_names(out, "events", machine->event_names, 0, machine->event_count);
    put(out, ",");
    put_guards(out, machine);
    put(out, ",");
    put_member(out, "initial", machine->state_names[machine->initial]);
    put(out, ",");
    put_member(out, "name", machine->name);
    put(out, ",\"rows\":[");
    for (size_t i = 0; i < machine->row_count; i++) {
        if (i > 0)
            put(out, ",");
        put_row(out, machine, &machine->rows[i]);
    }
    put(out, "],");
    put_names(out, "states", machine->state_names, 0, machine->state_count);
    put(out, ",");
    put_state_set(out, machine, "terminal", machine->terminal_states);
    put(out, "}");
}

void hf_sm_print_json(hf_sm_emit emit, void *context)
{
    const struct writer out = {emit, context};
    size_t count;
    const struct hf_sm_definition *const *machines = hf_sm_all(&count);
    put(&out, "{\"machines\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            put(&out, ",");
        put_machine(&out, machines[i]);
    }
    put(&out, "],\"schema_version\":1}\n");
}

static void put_condition(const struct writer *out, const struct hf_sm_definition *machine, const struct hf_sm_row *row)
{
    put(out, machine->event_names[row->event]);
    if (row->guard == HF_SM_GUARD_ALWAYS)
        return;
    put(out, " [");
    put(out, machine->guard_names[row->guard]);
    put(out, "]");
}

static void put_effects(const struct writer *out, const struct hf_sm_definition *machine, const struct hf_sm_row *row)
{
    for (size_t i = 0; i < HF_SM_MAX_EFFECTS && row->effects[i] != HF_SM_EFFECT_NONE; i++) {
        put(out, i == 0 ? " / " : ", ");
        put(out, machine->effect_names[row->effects[i]]);
    }
}

/* All rows between two states are one edge; this is true for the first of them, which draws it. */
static bool is_first_of_edge(const struct hf_sm_definition *machine, size_t index)
{
    const struct hf_sm_row *row = &machine->rows[index];
    for (size_t i = 0; i < index; i++) {
        if (machine->rows[i].state == row->state && machine->rows[i].next == row->next)
            return false;
    }
    return true;
}

static void put_edge_label(const struct writer *out, const struct hf_sm_definition *machine, size_t index,
                           const char *line_end, bool with_effects)
{
    const struct hf_sm_row *edge = &machine->rows[index];
    for (size_t i = index; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if (row->state != edge->state || row->next != edge->next)
            continue;
        if (i > index)
            put(out, line_end);
        put_condition(out, machine, row);
        if (with_effects)
            put_effects(out, machine, row);
    }
}

void hf_sm_print_dot_one(const struct hf_sm_definition *machine, hf_sm_emit emit, void *context)
{
    const struct writer out = {emit, context};
    put(&out, "digraph ");
    put(&out, machine->name);
    put(&out, " {\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n"
              "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (uint8_t i = 0; i < machine->state_count; i++) {
        put(&out, "  ");
        put(&out, machine->state_names[i]);
        if (machine->terminal_states & HF_SM_STATE(i))
            put(&out, " [peripheries=2]");
        else if (machine->closing_states & HF_SM_STATE(i))
            put(&out, " [style=\"rounded,dashed\"]");
        put(&out, i == machine->initial ? "; // initial\n" : ";\n");
    }
    for (size_t i = 0; i < machine->row_count; i++) {
        if (!is_first_of_edge(machine, i))
            continue;
        put(&out, "  ");
        put(&out, machine->state_names[machine->rows[i].state]);
        put(&out, " -> ");
        put(&out, machine->state_names[machine->rows[i].next]);
        put(&out, " [label=\"");
        put_edge_label(&out, machine, i, "\\l", true);
        put(&out, "\\l\"];\n");
    }
    put(&out, "}\n");
}

void hf_sm_print_dot(hf_sm_emit emit, void *context)
{
    size_t count;
    const struct hf_sm_definition *const *machines = hf_sm_all(&count);
    for (size_t i = 0; i < count; i++)
        hf_sm_print_dot_one(machines[i], emit, context);
}

void hf_sm_print_mermaid_one(const struct hf_sm_definition *machine, hf_sm_emit emit, void *context)
{
    const struct writer out = {emit, context};
    put(&out, "stateDiagram-v2\n    [*] --> ");
    put(&out, machine->state_names[machine->initial]);
    put(&out, "\n");
    for (size_t i = 0; i < machine->row_count; i++) {
        if (!is_first_of_edge(machine, i))
            continue;
        put(&out, "    ");
        put(&out, machine->state_names[machine->rows[i].state]);
        put(&out, " --> ");
        put(&out, machine->state_names[machine->rows[i].next]);
        put(&out, ": ");
        put_edge_label(&out, machine, i, "<br/>", false);
        put(&out, "\n");
    }
    for (uint8_t i = 0; i < machine->state_count; i++) {
        if (!(machine->terminal_states & HF_SM_STATE(i)))
            continue;
        put(&out, "    ");
        put(&out, machine->state_names[i]);
        put(&out, " --> [*]\n");
    }
}
