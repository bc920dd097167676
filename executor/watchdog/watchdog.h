/*
 * The watchdog itself: canaries, samples, and the socket to its executor. Runs in a process of its own (main.c), so
 * that whatever befalls the executor or a scenario, the evidence is gathered and judged elsewhere. It consults nobody.
 */
#ifndef HF_EXECUTOR_WATCHDOG_WATCHDOG_H
#define HF_EXECUTOR_WATCHDOG_WATCHDOG_H

#include "common/durable.h"
#include "common/error.h"
#include "executor/watchdog/host_canary.h"
#include "executor/watchdog/message.h"
#include "executor/watchdog/network_canary.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WATCHDOG_MAX_LOGGED_CONNECTIONS 10000 /* each has a line in the access log; the rest is only counted */

struct watchdog {
    const char *run_id;
    int64_t seed;
    pid_t executor_pid;
    int control_fd; /* SOCK_SEQPACKET */
    int run_dirfd;
    struct host_canaries host;
    struct network_canary network;
    struct hf_journal samples; /* watchdog-samples.jsonl */
    struct hf_journal access;  /* canary-access.jsonl */
    uint64_t sample_count;
    bool access_logged;              /* the loss of the host canary has its line */
    char error[WATCHDOG_ERROR_SIZE]; /* first failure of the watchdog itself; sticky */
};

/* Takes control_fd. Plants the canaries and opens both journals in `run_dir`. */
int watchdog_init(struct watchdog *watchdog, const char *run_dir, const char *run_id, int64_t seed, pid_t executor_pid,
                  int control_fd, struct hf_error *err);
/* Serves until the executor asks for the end (returns 0) or vanishes (returns -1, "executor-vanished"). */
int watchdog_serve(struct watchdog *watchdog, struct hf_error *err);
void watchdog_clear(struct watchdog *watchdog);

#endif
