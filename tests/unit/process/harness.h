/*
 * What the tests of common/process share: a contained probe with a lifeline.
 *
 * The lifeline is a pipe whose write end is descriptor 3 of the probe, inherited by everything that comes of it and by
 * nobody else. Its read end reports the end of file exactly when the last process of the tree is gone, whatever it did
 * to its pid, parent, session or cgroup: the tests need not trust what they test.
 */
#ifndef HF_TESTS_UNIT_PROCESS_HARNESS_H
#define HF_TESTS_UNIT_PROCESS_HARNESS_H

#include "common/process/child.h"

#include <check.h>
#include <stdbool.h>

struct harness {
    char probe[4200];
    char number[24];
    const char *argv[4];
    struct hf_child_spec spec;
    struct hf_child_run_options options; /* no limits, 20 s timeout */
    struct hf_child_output output;
    struct hf_child child;
    struct hf_error err;
    int lifeline; /* read end */
};

/* How this process runs: the promises are the same, except for cgroup_used. */
enum harness_mode { HARNESS_PLAIN, HARNESS_WITHOUT_CGROUP, HARNESS_UNPRIVILEGED };
extern enum harness_mode harness_mode;

void harness_init(struct harness *harness, const char *behaviour, long number);
/* Runs to the end; fails the test when the child cannot be started. */
void harness_run(struct harness *harness);
void harness_start(struct harness *harness);
/* Waits for the report of a started child. Fails the test after timeout_ms. Clears the child. */
struct hf_child_report harness_report(struct harness *harness, int timeout_ms);
/* True when every process of the tree is gone within timeout_ms. */
bool harness_tree_is_gone(const struct harness *harness, int timeout_ms);
/* Waits until the started probe has said "ready" on its stdout. */
void harness_wait_ready(const struct harness *harness);
void harness_clear(struct harness *harness);

int harness_count_fds(void);
/* Cgroups that the supervisor with this pid left behind. */
int harness_count_cgroups_of(pid_t supervisor_pid);
uint64_t harness_now_ms(void);

/* Each file of tests is one case. */
TCase *case_end(void);
TCase *case_teardown(void);
TCase *case_loss(void);
TCase *case_run(void);

#endif
