/* The two documents that a dispatch leaves, and the sentence that says what went wrong. Used by dispatch.c only. */
#ifndef HF_EXECUTOR_DISPATCH_RECORD_H
#define HF_EXECUTOR_DISPATCH_RECORD_H

#include "executor/dispatch.h"

/* Fills result->error with the first fault by precedence of the verdict. `reason` says why artifacts, storage or start
 * failed, when one did. */
void dispatch_describe(const struct executor *executor, const struct dispatch_spec *spec,
                       struct dispatch_result *result, const struct hf_error *reason);

/* `dispatch.json` / `dispatch-blocked.json` in the dispatch's directory. */
int dispatch_record_write(const struct executor *executor, const struct dispatch_spec *spec,
                          const struct dispatch_result *result, int dirfd, struct hf_error *err);

#endif
