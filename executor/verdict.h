/*
 * From what was seen to one category: a pure function, so that its precedence can be tested row by row. Called for
 * every repetition (execute.c) and for every canary VM (boot.c).
 */
#ifndef HF_EXECUTOR_VERDICT_H
#define HF_EXECUTOR_VERDICT_H

#include "common/protocol/protocol.h"

#include <stdbool.h>

/* What one dispatch showed. */
struct verdict_facts {
    bool violated;         /* an oracle has evidence */
    bool oracle_lost;      /* the watchdog died, fell silent or failed */
    bool storage_failed;   /* evidence could not be written */
    bool artifact_changed; /* a measured file is another one now */
    bool started;          /* the command could be executed */
    bool timed_out;
    bool teardown_complete; /* every process gone, nothing had to be killed, no `teardown` field false */
    bool returned_zero;
    bool reports_acceptable;
};

/* Violation, then whatever makes the rest unreliable (executor-error), timeout, incomplete teardown, non-zero or
 * unacceptable reports (test-failure), passed. */
enum hf_category verdict_category(const struct verdict_facts *facts);

/* The same for a canary VM, whose record knows neither violation nor executor-error: those are availability-failure. */
enum hf_category verdict_boot_category(const struct verdict_facts *facts);

#endif
