/*
 * Contained child processes.
 *
 * Every program that holdfast starts (scenario, QEMU, strategist, wrapper, local executor, watchdog) runs below a
 * supervisor of its own, the small program `holdfast-supervise` that sits beside the calling executable. The supervisor
 * is the child subreaper of the tree, so a descendant that double-forks or calls setsid() still belongs to exactly one
 * tree, and controllers with a thousand trees never confuse them. It owns a process group and, where cgroup v2 can be
 * had, a cgroup. When the main child ends, when a stop is asked for, or when the control socket closes (the caller
 * died), the supervisor freezes every remaining descendant, re-scans until nothing new appears, kills and reaps, all
 * under one deadline of HF_CHILD_REAP_DEADLINE_MS, and then reports.
 *
 * Event-driven use: hf_child_start(), watch control_fd (readable = report ready or supervisor gone), hf_child_stop(),
 * hf_child_read_report(), hf_child_clear(). Blocking use: hf_child_run().
 * Sources: prctl(2) PR_SET_CHILD_SUBREAPER, pidfd_open(2), cgroups(7).
 */
#ifndef HF_COMMON_PROCESS_CHILD_H
#define HF_COMMON_PROCESS_CHILD_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HF_CHILD_TERM_GRACE_MS    5000 /* TERM to KILL */
#define HF_CHILD_REAP_DEADLINE_MS 5000 /* freeze, kill and reap of all descendants together */
#define HF_CHILD_MAX_EXTRA_FDS    4

/* What to start. Everything is borrowed for the duration of hf_child_start() only. */
struct hf_child_spec {
    const char *const *argv; /* argv[0] is an absolute path or is looked up in the PATH of envp; NULL-terminated */
    const char *const *envp; /* the whole environment of the child, NULL-terminated; nothing is inherited */
    const char *cwd;         /* NULL keeps the caller's */
    int stdin_fd;            /* descriptor given to the child, or HF_CHILD_NULL, or HF_CHILD_PIPE */
    int stdout_fd;           /* the same */
    int stderr_fd;           /* the same */
    int extra_fds[HF_CHILD_MAX_EXTRA_FDS]; /* become descriptors 3, 4, ... in the child; unused entries are -1 */
    unsigned extra_fd_count;
    bool wait_for_descendants; /* false (usual): when the main child ends, whatever is left is killed */
};
#define HF_CHILD_NULL (-1) /* /dev/null */
#define HF_CHILD_PIPE (-2) /* a pipe; the caller's end is in struct hf_child, non-blocking, close-on-exec */

struct hf_child {
    pid_t supervisor_pid; /* the caller's direct child */
    int supervisor_pidfd;
    int control_fd; /* SOCK_SEQPACKET, non-blocking; closing it kills the tree */
    int stdin_fd;   /* caller's end when HF_CHILD_PIPE was asked for, else -1 */
    int stdout_fd;
    int stderr_fd;
    bool reported; /* the report was read, or the supervisor is known to be lost */
};

/* How the tree ended. `exit_code` and `term_signal` are the main child's own end, never the supervisor's. */
struct hf_child_report {
    bool started; /* false: exec failed, start_errno says why, nothing ran */
    int start_errno;
    bool exited;            /* true: exit_code is valid; false: term_signal is valid (or the supervisor was lost) */
    int exit_code;          /* 0..255 */
    int term_signal;        /* 1..64, 0 when exited */
    bool stop_requested;    /* hf_child_stop() was called or the control socket closed before the child ended */
    bool supervisor_lost;   /* the supervisor itself died: the main child and, if there was one, the cgroup were killed,
                               but nothing is known about the tree; teardown_complete is false */
    bool teardown_complete; /* every descendant was seen dead and reaped within the deadline */
    bool cgroup_used;       /* the tree ran in a cgroup v2 of its own */
    uint32_t descendants_killed; /* processes found alive in teardown, main child not counted */
    uint32_t survivors;          /* processes still alive (or unreadable) at the deadline */
    uint64_t duration_ms;        /* exec to end of teardown, monotonic */
    uint64_t cpu_ms;             /* user+system of the main child and of all reaped descendants */
};

/* Where holdfast-supervise is, when it is not beside the caller's executable (tests, programs installed elsewhere). An
 * absolute path, or NULL for the usual place. Process-wide: call it before the first start and before any thread. */
int hf_child_set_supervisor_path(const char *path, struct hf_error *err);

/* Starts the tree. On success *child owns descriptors and one process; on failure nothing was left behind. A relative
 * path with a '/' in argv[0] is refused; PATH is searched for its absolute entries only, and a script needs its #!
 * line. A program that cannot be executed is not an error here: it is a report with started=false. Errors:
 * "child-supervisor-missing" (holdfast-supervise not found beside the caller's executable), "child-spawn-failed". */
int hf_child_start(const struct hf_child_spec *spec, struct hf_child *child, struct hf_error *err);

/* Asks for the end of the tree: TERM to the process group, grace_ms later the freeze-then-kill. 0 kills at once.
 * Never blocks; calling it again can only shorten the grace. */
void hf_child_stop(struct hf_child *child, uint32_t grace_ms);

/* Reads the report, once. Returns 1 when *report was filled in, 0 when it is not there yet (control_fd not readable),
 * -1 on error ("child-report-failed"). When the supervisor vanished without a report, that is a report with
 * supervisor_lost. A supervisor keeps its own deadlines; a caller that gets no report within grace_ms +
 * HF_CHILD_REAP_DEADLINE_MS + a few seconds of its stop should take it for lost: hf_child_kill_supervisor(), which
 * makes the report readable at once. */
int hf_child_read_report(struct hf_child *child, struct hf_child_report *report, struct hf_error *err);

/* SIGKILL to a supervisor that is overdue. The main child dies with it; the report will say supervisor_lost. */
void hf_child_kill_supervisor(struct hf_child *child);

/* Closes everything and reaps the supervisor process (waiting at most a moment: after a report it is already exiting).
 * Before the report this asks for the end of the tree and does not wait; a later start or clear reaps the supervisor.
 * Safe on an all-zero or already cleared object set up by hf_child_init(). */
void hf_child_init(struct hf_child *child);
void hf_child_clear(struct hf_child *child);

/* Blocking convenience for programs without a loop. */
struct hf_child_run_options {
    const void *stdin_bytes; /* written to the child; a child that never reads cannot block the timeout. May be NULL */
    size_t stdin_length;
    size_t stdout_limit; /* bytes kept in memory of each stream; the rest is counted */
    size_t stderr_limit;
    int stdout_file_fd; /* additionally, a file that receives up to file_limit bytes; -1 for none */
    int stderr_file_fd;
    size_t file_limit;   /* bytes per file, the rest is counted and flagged as truncated */
    uint64_t timeout_ms; /* after it: stop with HF_CHILD_TERM_GRACE_MS; 0 for none */
    int interrupt_fd;    /* becomes readable (or hangs up): kill at once and report interrupted; -1 for none */
    /* Called at least every poll_interval_ms (0: 100 ms) while the child runs; returning true stops the child with
     * HF_CHILD_TERM_GRACE_MS and is not asked again. May be NULL. */
    bool (*poll)(void *context);
    void *poll_context;
    uint32_t poll_interval_ms;
};

struct hf_child_output {
    struct hf_child_report report;
    bool timed_out;
    bool interrupted;
    bool stopped_by_poll;
    char *stdout_bytes; /* owned; NUL-terminated for convenience, may contain NULs */
    size_t stdout_length;
    uint64_t stdout_total; /* bytes the child wrote, kept or not */
    char *stderr_bytes;
    size_t stderr_length;
    uint64_t stderr_total;
    bool file_truncated;
};

/* Runs to the end. Returns -1 only when the child could not be started or the host failed ("child-output-failed": no
 * memory, or a log file could not be written; the tree was killed); how the child ended is in *output, which must be
 * cleared. stdio members of spec other than HF_CHILD_PIPE are honoured. */
int hf_child_run(const struct hf_child_spec *spec, const struct hf_child_run_options *options,
                 struct hf_child_output *output, struct hf_error *err);
void hf_child_output_clear(struct hf_child_output *output);

#endif
