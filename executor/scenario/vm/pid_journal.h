/*
 * The pid journal: one durable JSON line {"pid":N,"recorded_at_ns":N} for every VMM, written before its guest may run,
 * so that the executor can tell after any crash which processes must be gone. The file is named by the environment
 * variable HOLDFAST_QEMU_PID_JOURNAL (executor-protocol: at most 64 KiB, exactly these keys). Safe for several threads.
 */
#ifndef HF_SCENARIO_VM_PID_JOURNAL_H
#define HF_SCENARIO_VM_PID_JOURNAL_H

#include "common/durable.h"
#include "common/error.h"

#include <pthread.h>
#include <sys/types.h>

#define HF_PID_JOURNAL_VARIABLE  "HOLDFAST_QEMU_PID_JOURNAL"
#define HF_PID_JOURNAL_MAX_BYTES 65536

struct hf_pid_journal {
    pthread_mutex_t lock;
    struct hf_journal journal;
    bool wanted; /* false: no journal was asked for, recording is a no-op */
};

/* `path` NULL: no journal. Codes "storage-failed", "pid-journal-full". */
int hf_pid_journal_open(struct hf_pid_journal *pids, const char *path, struct hf_error *err);
int hf_pid_journal_record(struct hf_pid_journal *pids, pid_t pid, struct hf_error *err);
void hf_pid_journal_close(struct hf_pid_journal *pids);

#endif
