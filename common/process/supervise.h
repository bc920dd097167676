/*
 * What hf_child_start() and holdfast-supervise say to each other. Private to common/process/.
 *
 * Command line: holdfast-supervise VERSION EXTRA_FDS MODE -- PROGRAM [ARGUMENT...]
 *   EXTRA_FDS  how many descriptors from 3 on belong to the program (0..HF_CHILD_MAX_EXTRA_FDS)
 *   MODE       "once" (the tree ends with its main child) or "wait" (with its last process)
 * Environment and working directory are the program's. Descriptors 0, 1, 2 and the extra ones are the program's;
 * HF_SUPERVISE_CONTROL_FD is the control socket (AF_UNIX, SOCK_SEQPACKET). Everything above it is closed unseen.
 *
 * Control socket: the caller may send any number of stop messages; end of file is a stop without grace. The supervisor
 * sends one report and exits. Both sides are built from one tree, so the structures travel in host layout; version and
 * size are checked because an upgrade may replace the supervisor below a running controller.
 */
#ifndef HF_COMMON_PROCESS_SUPERVISE_H
#define HF_COMMON_PROCESS_SUPERVISE_H

#include "common/process/child.h"

#include <stdint.h>

#define HF_SUPERVISE_PROGRAM      "holdfast-supervise"
#define HF_SUPERVISE_VERSION      1u
#define HF_SUPERVISE_VERSION_TEXT "1"
#define HF_SUPERVISE_CONTROL_FD   (3 + HF_CHILD_MAX_EXTRA_FDS)
#define HF_SUPERVISE_MAX_GRACE_MS 600000u

struct hf_supervise_stop {
    uint32_t version;
    uint32_t grace_ms; /* 0..HF_SUPERVISE_MAX_GRACE_MS */
};

enum hf_supervise_report_flags {
    HF_SUPERVISE_STARTED = 1,
    HF_SUPERVISE_EXITED = 2,
    HF_SUPERVISE_STOP_REQUESTED = 4,
    HF_SUPERVISE_TEARDOWN_COMPLETE = 8,
    HF_SUPERVISE_CGROUP_USED = 16,
};

/* The members mean what those of struct hf_child_report mean. No padding: every byte is set. */
struct hf_supervise_report {
    uint32_t version;
    uint32_t size; /* sizeof(struct hf_supervise_report) */
    uint32_t flags;
    int32_t start_errno;
    int32_t exit_code;
    int32_t term_signal;
    uint32_t descendants_killed;
    uint32_t survivors;
    uint64_t duration_ms;
    uint64_t cpu_ms;
};
_Static_assert(sizeof(struct hf_supervise_report) == 48, "the report has no padding");

#endif
