/*
 * The pid journal: the file in which a scenario records every VMM that it starts, and the question whether those
 * processes are gone. The file is hostile input.
 */
#ifndef HF_EXECUTOR_PID_JOURNAL_H
#define HF_EXECUTOR_PID_JOURNAL_H

#include "common/error.h"
#include "common/protocol/protocol.h"

#include <stdint.h>
#include <sys/types.h>

#define PID_JOURNAL_NAME      "pid-journal.jsonl"
#define PID_JOURNAL_MAX_BYTES 65536

struct pid_journal {
    int64_t pids[HF_PROTOCOL_MAX_PIDS];            /* distinct, in the order of their first line */
    uint64_t recorded_at_ns[HF_PROTOCOL_MAX_PIDS]; /* of their last line, wall clock */
    size_t count;
    int64_t live[HF_PROTOCOL_MAX_PIDS];
    size_t live_count;
};

/* Reads the journal in a directory; a missing one is empty. Lines hold exactly `pid` and `recorded_at_ns`; an
 * unfinished last line is malformed. Code "pid-journal-invalid". What was read before the fault stays in *journal. */
int pid_journal_read(int dirfd, struct pid_journal *journal, struct hf_error *err);

/* Finds those still alive. A zombie has exited, unless other threads of it run. A process whose state cannot be read
 * counts as alive. A process that started after its pid was recorded is another one that was given the same number; a
 * time of recording outside the run proves nothing, and then any process with that number counts. */
void pid_journal_find_live(struct pid_journal *journal, uint64_t run_started_wall_ns);

/* Alive in the above sense; visible for tests. */
bool pid_journal_is_alive(pid_t pid, uint64_t recorded_at_ns);

#endif
