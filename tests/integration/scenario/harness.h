/*
 * What the integration tests of the scenario runner share: a private output directory, the program under test as a
 * contained child, and its outcome document. Paths come from HF_BIN_DIR and HF_GUEST_DIR.
 */
#ifndef HF_TESTS_INTEGRATION_SCENARIO_HARNESS_H
#define HF_TESTS_INTEGRATION_SCENARIO_HARNESS_H

#include "common/json.h"
#include "common/process/child.h"

#define PHASE_TIMEOUT_SECONDS 120 /* far beyond what a boot takes on a busy machine */

struct sandbox {
    char path[64];
    char output[96]; /* the runner's output directory, not created yet */
    char journal[96];
};

void sandbox_create(struct sandbox *sandbox);
void sandbox_remove(struct sandbox *sandbox); /* with everything below it */

const char *guest_dir(void);

/* Runs holdfast-scenario with these arguments (NULL-terminated) and the pid journal of the sandbox; output is cleared
 * by the caller. */
void run_program(const struct sandbox *sandbox, const char *const arguments[], struct hf_child_output *output);
/* The usual arguments: one scenario on one backend. */
void run_scenario(const struct sandbox *sandbox, const char *scenario, const char *backend, const char *timeout_seconds,
                  struct hf_child_output *output);

cJSON *read_document(const char *directory, const char *name); /* owned; fails the test when it is not strict JSON */
/* The check of that phase (NULL: of the run) and name, or NULL. Borrowed. */
const cJSON *find_check(const cJSON *checks, const char *phase, const char *name);
/* VMs in the pid journal, and how many of them are still there (a reused pid does not count). */
unsigned journaled_vms(const struct sandbox *sandbox, unsigned *alive);

#endif
