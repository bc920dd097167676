/*
 * Runs one probe in a process of its own, forwards its events, and answers for it whatever it does: the agent is
 * process 1, so that kill(-1) ends everything that a probe left in the guest, forks included. Owned by the agent's
 * loop.
 */
#ifndef HF_GUEST_INIT_RUNNER_H
#define HF_GUEST_INIT_RUNNER_H

#include "guest/init/control.h"
#include "guest/init/probe.h"

#include <sys/types.h>

struct hf_runner {
    bool active;
    bool hung_up; /* the probe closed its end; its own end is still to come */
    bool ended;   /* everything was killed; only packets that were already sent are left */
    const struct hf_probe_entry *entry;
    int64_t run_id;
    pid_t pid;
    int fd; /* the agent's end of the pair, non-blocking */
    int wait_status;
    bool main_reaped;
    uint64_t started_ms, deadline_ms; /* monotonic */
    unsigned event_count, processes_killed, processes_left;
    const char *error_code; /* first failure, NULL while there is none */
    char error_message[HF_PROBE_REASON_MAX];
    char verdict; /* HF_PACKET_HELD, HF_PACKET_BROKEN, or 0 */
    bool has_result;
    size_t checks_length, result_length;
    char checks[HF_PROBE_CHECKS_MAX], result[HF_PROBE_RESULT_MAX];
};

const struct hf_probe_entry *hf_probe_find(const char *name);
void hf_probe_emit_names(struct hf_emit *emit, const char *key);

/* -1 with a sentence in `why` when no process could be made. */
int hf_runner_start(struct hf_runner *runner, const struct hf_probe_entry *entry, const struct hf_request *request,
                    int64_t run_id, uint64_t timeout_ms, char *why, size_t why_size);
/* Hands the host's "continue" line on. -1: the probe does not read. */
int hf_runner_continue(struct hf_runner *runner, const char *line, size_t length);
void hf_runner_cancel(struct hf_runner *runner);

/* To be called after each poll: reaps, watches the deadline, moves packets while the control port has room, and queues
 * the response at the end. */
void hf_runner_advance(struct hf_runner *runner, struct hf_control *control);
/* The descriptor to poll for packets, -1 when none is wanted now. */
int hf_runner_poll_fd(const struct hf_runner *runner, const struct hf_control *control);
int hf_runner_timeout_ms(const struct hf_runner *runner); /* until the deadline, -1 when idle */

uint64_t hf_agent_now_ms(void); /* CLOCK_BOOTTIME */

#endif
