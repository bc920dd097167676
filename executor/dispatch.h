/*
 * One dispatch: one run of a profile's trusted command in a directory of its own, between two samples of the oracles.
 * The only place from which anything is started that may start a VM. Used by boot.c (canary VMs) and execute.c
 * (repetitions).
 *
 * Below the run directory each dispatch leaves: `out/` (the command's own), `stdout.log`, `stderr.log` (16 MiB each),
 * `pid-journal.jsonl`, `host-canary.bin`, and `dispatch.json` (how it went, with the inventory of reports), or
 * `dispatch-blocked.json` when it was refused.
 */
#ifndef HF_EXECUTOR_DISPATCH_H
#define HF_EXECUTOR_DISPATCH_H

#include "common/process/child.h"
#include "executor/executor.h"
#include "executor/inventory.h"
#include "executor/pid_journal.h"
#include "executor/verdict.h"

#define DISPATCH_STREAM_FILE_BYTES (16 << 20)

struct dispatch_spec {
    const struct hf_command_template *command;
    const struct hf_command_template *extra; /* may be NULL */
    const char *scenario;                    /* {scenario}; NULL for a canary VM */
    const char *directory;                   /* below the run directory; its parent exists, it does not */
    uint64_t timeout_ms;
    const char *const *reports; /* names that have to be left */
    size_t report_count;
};

struct dispatch_result {
    bool dispatched; /* false: refused, nothing was started */
    struct verdict_facts facts;
    bool ran;                      /* the command was watched to its end */
    struct hf_child_output output; /* its report is valid when it ran */
    uint64_t duration_ms;
    struct pid_journal journal;
    struct inventory inventory;
    bool has_returncode;
    int32_t returncode;                /* exit code, or minus the signal's number */
    char error[HF_PROTOCOL_MAX_ERROR]; /* the first thing that went wrong, by precedence; "" when nothing did */
    char directory[HF_PATH_SIZE];      /* absolute */
};

/* -1 only with "interrupted". Everything else that can go wrong is in *result. Clear *result in every case. */
int dispatch_run(struct executor *executor, const struct dispatch_spec *spec, struct dispatch_result *result,
                 struct hf_error *err);
void dispatch_result_clear(struct dispatch_result *result);

#endif
