/* Where a session keeps its state: <state_dir>/<run_id>, created for it alone. Used by initialize.c. */
#ifndef HF_EXECUTOR_RUN_DIRECTORY_H
#define HF_EXECUTOR_RUN_DIRECTORY_H

#include "common/error.h"

/* Creates missing directories above `state_dir` and in it, 0700, then `run_id`, which must not be there yet: evidence
 * of an earlier session is never written over. A state directory that others may write to is refused. Returns the
 * descriptor of the run directory, or -1: "state-unsafe", "run-exists", "storage-failed". */
int run_directory_create(const char *state_dir, const char *run_id, struct hf_error *err);

#endif
