/*
 * Mutation of the tables under the simulator: are its checks worth anything? Each mutant lacks one row, or one effect
 * of one row. A mutant that survives many seeds is printed, for somebody to say why it may.
 */
#include "sim.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 400 };

struct score {
    unsigned mutants, caught;
};

static bool is_caught(const struct sim_tables *tables, uint64_t seeds)
{
    static struct sim sim;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        if (!sim_run(&sim, tables, seed, false, NULL))
            return true;
    }
    return false;
}

static void count(struct score *score, const struct sim_tables *tables, uint64_t seeds,
                  const struct hf_sm_definition *machine, const struct hf_sm_row *row, const char *what)
{
    score->mutants++;
    if (is_caught(tables, seeds)) {
        score->caught++;
        return;
    }
    printf("survives: %s, %s on %s [%s] without %s\n", machine->name, machine->state_names[row->state],
           machine->event_names[row->event], machine->guard_names[row->guard], what);
}

/* `slot` is the place in *tables of the machine to break. */
static void mutate(struct score *score, const struct sim_tables *tables, const struct hf_sm_definition **slot,
                   uint64_t seeds)
{
    static struct hf_sm_row rows[MAX_ROWS];
    const struct hf_sm_definition *original = *slot;
    struct hf_sm_definition mutant = *original;
    mutant.rows = rows;
    *slot = &mutant;
    for (size_t i = 0; i < original->row_count && original->row_count <= MAX_ROWS; i++) {
        const struct hf_sm_row *row = &original->rows[i];
        memcpy(rows, original->rows, original->row_count * sizeof rows[0]);
        rows[i] = rows[original->row_count - 1];
        mutant.row_count = original->row_count - 1;
        count(score, tables, seeds, original, row, "the row itself");
        mutant.row_count = original->row_count;
        for (size_t e = 0; e < HF_SM_MAX_EFFECTS && row->effects[e] != HF_SM_EFFECT_NONE; e++) {
            memcpy(rows, original->rows, original->row_count * sizeof rows[0]);
            memmove(rows[i].effects + e, rows[i].effects + e + 1, HF_SM_MAX_EFFECTS - 1 - e);
            rows[i].effects[HF_SM_MAX_EFFECTS - 1] = HF_SM_EFFECT_NONE;
            count(score, tables, seeds, original, row, original->effect_names[row->effects[e]]);
        }
    }
    *slot = original;
}

unsigned sim_mutants(uint64_t seeds)
{
    struct score score = {0, 0};
    struct sim_tables tables = sim_real_tables;
    mutate(&score, &tables, &tables.campaign, seeds);
    mutate(&score, &tables, &tables.session, seeds);
    mutate(&score, &tables, &tables.strategist, seeds);
    printf("%u mutants, %u caught\n", score.mutants, score.caught);
    return score.mutants > 0 ? score.caught * 100 / score.mutants : 0;
}
