/*
 * Facts for the table tests: every field drawn from values at and around its borders, from a seed, so that a finding
 * can be repeated. The values of enums include one that the shell never sets.
 */
#ifndef HF_TESTS_STATEMACHINES_FACTS_SAMPLE_H
#define HF_TESTS_STATEMACHINES_FACTS_SAMPLE_H

#include "statemachines/engine.h"

/* splitmix64: the next number of the sequence that *seed stands for. */
uint64_t facts_sample_next(uint64_t *seed);

/* Fills *facts, which has machine->facts_size bytes, for any of the machines of hf_sm_all(). */
void facts_sample(const struct hf_sm_definition *machine, uint64_t *seed, void *facts);

#endif
