/*
 * What /proc says about the VMM's process: its pid below the supervisor, whether it is still the same process, and
 * whether anything on the host still carries the VM's name. Independent of what the supervisor reports. Reads only.
 */
#ifndef HF_SCENARIO_VM_PROCESS_VIEW_H
#define HF_SCENARIO_VM_PROCESS_VIEW_H

#include "common/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hf_process_identity {
    pid_t pid;                      /* 0: none */
    unsigned long long start_ticks; /* field 22 of /proc/PID/stat, tells a reused pid from the same process */
};

/* Finds the one child of `supervisor` whose command line has `token` as an argument. Code "vm-process-missing". */
int hf_process_find(pid_t supervisor, const char *token, struct hf_process_identity *identity, struct hf_error *err);

/* False once that process is gone or a zombie; a process whose state cannot be read counts as alive. */
bool hf_process_alive(const struct hf_process_identity *identity);

/* How many processes on this host have `token` as an argument; -1 when /proc cannot be read. */
int hf_process_count_by_token(const char *token);

#endif
