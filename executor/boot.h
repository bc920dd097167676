/* A canary VM: one boot and stop by the profile's boot command, before the campaign (baseline) and after it. */
#ifndef HF_EXECUTOR_BOOT_H
#define HF_EXECUTOR_BOOT_H

#include "executor/executor.h"

/* Boots in `directory` ("baseline", "post-campaign") below the run directory. 0: *record says how it went, and `why`
 * (HF_PROTOCOL_MAX_ERROR bytes) what was wrong, "" when nothing was. -1: "interrupted". */
int boot_run(struct executor *executor, const char *directory, int timeout_seconds, struct hf_boot_record *record,
             char *why, struct hf_error *err);

#endif
