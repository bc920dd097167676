/*
 * What must hold of the run directories and the register after a controller has come back (docs/invariants.md: I1, I3,
 * I6), whatever happened before. Reads files and index.sqlite itself and asks no controller. A breach aborts the test.
 */
#ifndef HF_TESTS_RESTART_EVIDENCE_H
#define HF_TESTS_RESTART_EVIDENCE_H

#include <stdbool.h>

struct evidence {
    char runs[128];     /* directory of the run directories */
    char index[160];    /* index.sqlite */
    char seen_log[160]; /* every request that an executor received */
    /* Counted by evidence_check(): */
    int ended;       /* run directories, all with both summaries */
    int passed;      /* of these */
    int interrupted; /* controller-restarted */
    int quarantined; /* runs with a row in the register */
};

/* Every run directory: both summaries, agreeing with each other, with the index and with the last transition; each
 * observation and each execute that an executor saw has its line in actions.jsonl; an interrupted run that had a
 * session has its target in the register; no reserve, no temporary. */
void evidence_check(struct evidence *evidence);
/* The parts of it that hold of any run that has ended, however it ended: both summaries agree and say this. */
void evidence_expect_summaries(const struct evidence *evidence, const char *run_id, const char *status,
                               const char *category);
/* I1 of every run: for each observation and for each execute that an executor saw. */
void evidence_expect_actions(const struct evidence *evidence);
/* True when the run has a directory (which evidence_check() then looks at). */
bool evidence_has_run(const struct evidence *evidence, const char *run_id);
/* Category in the public summary of a run; the buffer is overwritten by the next call. */
const char *evidence_category(const struct evidence *evidence, const char *run_id);

#endif
