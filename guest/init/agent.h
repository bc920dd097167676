/*
 * The agent: answers the host's requests of guest/protocol.h, one at a time, for as long as the guest lives. Called by
 * main() of process 1 once the control port is open.
 */
#ifndef HF_GUEST_INIT_AGENT_H
#define HF_GUEST_INIT_AGENT_H

#include "guest/init/control.h"
#include "guest/init/runner.h"

struct hf_agent {
    struct hf_control control;
    struct hf_runner runner;
    int child_fd;                  /* signalfd of SIGCHLD */
    char line[HF_GUEST_LINE_MAX];  /* the request being read; decoded in place */
    char whole[HF_GUEST_LINE_MAX]; /* its copy as it came, for a probe's "continue" */
    char answer[HF_GUEST_LINE_MAX - 1];
};

/* Never returns. The control port has to be open and child_fd set. */
_Noreturn void hf_agent_serve(struct hf_agent *agent);

#endif
