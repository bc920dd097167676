/*
 * The executor's side of the watchdog: starts it, asks it, and notices when it falls silent. The executor never decides
 * what the oracles say; it remembers the worst that was said and refuses to go on.
 */
#ifndef HF_EXECUTOR_ORACLES_H
#define HF_EXECUTOR_ORACLES_H

#include "common/error.h"
#include "common/process/child.h"
#include "executor/watchdog/message.h"

#include <stdbool.h>
#include <stdint.h>

#define ORACLES_ANSWER_DEADLINE_MS 5000 /* a synchronous sample; also the longest silence (20 samples) */
#define ORACLES_START_DEADLINE_MS  10000

struct oracles {
    struct hf_child child;
    bool started;
    int socket_fd; /* readable: the watchdog said something or died */
    int canary_dirfd;
    int interrupt_fd;               /* borrowed: ends any waiting */
    uint32_t sequence;              /* of the last request */
    uint64_t heard_mono_ms;         /* last word of the watchdog */
    struct watchdog_state state;    /* worst of everything said: flags and counts only get worse */
    char lost[WATCHDOG_ERROR_SIZE]; /* why the oracles can no longer be relied on; "" while they can */
};

struct oracles_options {
    const char *program; /* absolute path of holdfast-watchdog */
    const char *run_dir;
    int run_dirfd;
    const char *run_id;
    int64_t seed;
    int interrupt_fd;
    const char *const *envp;
};

void oracles_init(struct oracles *oracles);
/* Starts the watchdog and waits until its canaries are planted. Codes: "oracle-unavailable", "interrupted". */
int oracles_start(struct oracles *oracles, const struct oracles_options *options, struct hf_error *err);

/* Each asks and waits for the answer. 0 also when the answer is bad news: look at oracles_violated() and
 * oracles->lost. -1 only with "interrupted". */
int oracles_sample(struct oracles *oracles, struct hf_error *err);
int oracles_plant(struct oracles *oracles, const char *directory, struct hf_error *err);
int oracles_retire(struct oracles *oracles, struct hf_error *err);

/* Takes in what was said unasked and judges the silence. Never blocks. */
void oracles_listen(struct oracles *oracles);

bool oracles_violated(const struct oracles *oracles);

/* The `poll` of hf_child_run() with the oracles as its context: true ends the command, because there is evidence or no
 * witness any more. */
bool oracles_object(void *oracles);

/* Last sample, orderly end, then the process tree is gone whatever it did. Safe when never started, and twice. */
void oracles_close(struct oracles *oracles);

#endif
