/* What the steps of a session share; see executor.h. */
#include "executor/executor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void executor_placeholders_fill(const struct executor *executor, struct executor_placeholders *placeholders)
{
    const struct hf_request *settings = &executor->settings;
    snprintf(placeholders->memory_mib, sizeof placeholders->memory_mib, "%d", settings->memory_mib);
    snprintf(placeholders->phase_timeout, sizeof placeholders->phase_timeout, "%d", settings->phase_timeout_seconds);
    snprintf(placeholders->seed, sizeof placeholders->seed, "%" PRId64, settings->seed);
    placeholders->values = (struct hf_placeholders){.backend = settings->backend,
                                                    .memory_mib = placeholders->memory_mib,
                                                    .phase_timeout = placeholders->phase_timeout,
                                                    .seed = placeholders->seed,
                                                    .source_root = executor->paths.source_root,
                                                    .bin_dir = executor->paths.bin_dir,
                                                    .guest_dir = executor->paths.guest_dir};
}

int executor_path_join(char out[HF_PATH_SIZE], const char *directory, const char *below, struct hf_error *err)
{
    int length = snprintf(out, HF_PATH_SIZE, "%s/%s", directory, below);
    if (length >= 0 && length < HF_PATH_SIZE)
        return 0;
    return hf_error_set(err, "path-too-long", 0, "", "%.512s is too long a path for a directory of the executor",
                        directory);
}

void executor_close_session(struct executor *executor)
{
    oracles_close(&executor->oracles);
}
