/*
 * The invariants of the architecture as far as a table alone can carry them, as checks in the walker's form. The
 * simulator checks them again on composed, running machines.
 */
#ifndef HF_TESTS_STATEMACHINES_INVARIANTS_H
#define HF_TESTS_STATEMACHINES_INVARIANTS_H

#include "walker.h"

struct invariant {
    const char *name; /* "I1: ..." */
    const struct hf_sm_definition *machine;
    walker_check holds;
};

const struct invariant *invariants_all(size_t *count);

#endif
