/*
 * A whole target in a temporary directory: a git work tree with catalog and profile, a second one in the place of the
 * VMM, artifacts with provenance, and a real holdfast-executor over pipes. Used by the tests of this folder.
 */
#ifndef HF_TESTS_EXECUTOR_TARGET_H
#define HF_TESTS_EXECUTOR_TARGET_H

#include "common/catalog/catalog.h"
#include "common/protocol/protocol.h"

#include <stdbool.h>
#include <sys/types.h>

struct target {
    char root[256]; /* also the marker by which its processes are recognised */
    char source_root[300], guest_dir[300], profiles_dir[512], state_dir[300], control_dir[300];
    bool clean_required;    /* whether initialize asks for a clean tree */
    const char *small_disk; /* size= of a tmpfs that only the executor sees as its state directory, or NULL */
    struct hf_profile profile;
    struct hf_campaign campaign;
    char commit[65], vmm_commit[65];
    pid_t pid; /* of the executor, 0 when none runs */
    int to_fd, from_fd;
    int run_number;
    struct hf_request initialize; /* well-formed, of the present run id */
};

void target_create(struct target *target);
/* This very source tree with its built guest and the `qemu` profile; only the state is in a temporary directory. */
void target_create_from_build(struct target *target, const char *campaign);
void target_destroy(struct target *target);

/* Puts a file into the target; directories must exist. */
void target_write(const char *directory, const char *name, const char *text);
void target_command(const struct target *target, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* HEAD of a work tree below the target. */
void target_read_commit(const struct target *target, const char *tree, char out[65]);
/* Writes the four artifacts' provenance as a build would. */
void target_write_provenance(const struct target *target);

/* Starts an executor, with a fresh run id in target->initialize. */
void target_start(struct target *target);
void target_send(struct target *target, const char *bytes, size_t length);
void target_send_line(struct target *target, const char *line);
/* Owned; NULL at end of stream. Fails the test after timeout_ms. */
char *target_read_line(struct target *target, int timeout_ms);
/* Sends a request and parses the answer strictly. The test fails when it is not acceptable to the controller's parser.
 */
void target_ask(struct target *target, const struct hf_request *request, struct hf_response *response);
/* Expects an `error` answer of that type. */
void target_expect_error(struct target *target, const char *error_type);
/* Closes the pipes and waits for the end: exit status, or -signal. Fails the test after timeout_ms. */
int target_wait(struct target *target, int timeout_ms);
void target_close_input(struct target *target);

/* Shorthands over target_ask(). */
void target_initialize(struct target *target, struct hf_response *response); /* and expects status passed */
void target_execute(struct target *target, int sequence, const char *case_id, struct hf_response *response);
struct hf_request target_request(const struct target *target, enum hf_operation operation);
void target_shut_down(struct target *target); /* shutdown, exit 0, no process left */

/* Number of processes that have the target's directory on their command line. */
int target_process_count(const struct target *target);
/* Waits until there is none; fails the test after timeout_ms. */
void target_expect_no_process(const struct target *target, int timeout_ms);
bool target_has_file(const struct target *target, const char *path_in_run);
/* Owned text of a file below the present run's directory. */
char *target_read_file(const struct target *target, const char *path_in_run);

#endif
