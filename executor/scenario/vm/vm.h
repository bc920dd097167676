/*
 * One QEMU VM and every peer that its guest talks to: monitor, serial console, control channel, frame-level network.
 * Each VMM is a contained child (common/process/child.h); the guest's side of every peer is an unnamed socket pair, so
 * there is no socket file to leak and no path to guess.
 *
 * Called by the scenarios. A VM belongs to the thread that started it: everything happens inside hf_vm_pump(), which
 * the waiting functions call. Guest and VMM bytes are hostile: bounded, strictly parsed, never in an error message.
 *
 * Life: hf_vm_start() (VMM runs, guest does not) -> hf_vm_resume() -> wait, ask, ... -> hf_vm_await_end() or
 * hf_vm_stop() -> hf_vm_check_teardown() -> hf_vm_clear().
 */
#ifndef HF_SCENARIO_VM_VM_H
#define HF_SCENARIO_VM_VM_H

#include "common/process/child.h"
#include "executor/scenario/vm/args.h"
#include "executor/scenario/vm/capture.h"
#include "executor/scenario/vm/classify.h"
#include "executor/scenario/vm/control.h"
#include "executor/scenario/vm/pid_journal.h"
#include "executor/scenario/vm/process_view.h"
#include "executor/scenario/vm/qmp.h"

/* Shared by all VMs of a run; outlives them. */
struct hf_vm_host {
    const char *qemu_path;
    int output_dirfd; /* logs are created here */
    int interrupt_fd; /* readable: end everything now; never read here. -1 for none */
    struct hf_pid_journal *pids;
};

/* A stream consumer; -1 is an error that ends the VM. */
typedef int (*hf_vm_sink)(void *context, const uint8_t *bytes, size_t count, struct hf_error *err);

/* The host's network peer. `transmit` puts one frame into `frame` and returns its length, or 0 when it has none now. */
struct hf_vm_network_peer {
    void *context;
    hf_vm_sink receive; /* one whole frame per call */
    size_t (*transmit)(void *context, uint8_t *frame, size_t capacity);
};
#define HF_VM_FRAME_MAX 69632 /* QEMU's NET_BUFSIZE is 4096 + 65536 */

struct hf_vm_spec {
    struct hf_vm_machine machine;
    unsigned index;               /* 1..: N of serial-N.log; unique within the output directory */
    uint64_t timeout_ms;          /* phase timeout: start to end */
    uint64_t console_bound_bytes; /* bytes of the console that are kept; 0: HF_CAPTURE_LIMIT_BYTES */
    const char *ready_marker;     /* beginning of the console line that says the guest is up; NULL: none */
    hf_vm_sink console_sink;      /* sees every console byte as well; may be NULL */
    void *console_context;
};

/* What was looked at after the end; each is true only because it was seen. */
struct hf_vm_teardown {
    bool process_gone;    /* the VMM's pid is not that process any more */
    bool no_descendants;  /* its supervisor reaped everything in time */
    bool name_unclaimed;  /* no process on this host carries the VM's name */
    bool monitor_closed;  /* end of file on the monitor */
    bool console_closed;  /* end of file on the console */
    bool control_closed;  /* the same, or there never was a channel */
    bool sockets_removed; /* no socket file in the output directory */
};

struct hf_vm {
    struct hf_vm_spec spec; /* its strings are borrowed */
    const struct hf_vm_host *host;
    char token[HF_VM_TOKEN_SIZE];
    struct hf_child child;
    struct hf_child_report report;
    bool started;  /* the child was started */
    bool reported; /* `report` is filled in */
    bool resumed;
    enum hf_vm_stop stop;
    struct hf_process_identity process;
    int process_fd;                                           /* pidfd of the VMM */
    int qmp_fd, serial_fd, control_fd, network_fd, stderr_fd; /* host's ends; -1 once closed */
    struct hf_qmp qmp;
    struct hf_control control;
    struct hf_capture serial_log, qmp_log, control_log, stderr_log;
    struct hf_lines serial_lines, stderr_lines;
    bool hold_console;          /* do not read the console: the guest meets back-pressure */
    bool ready;                 /* the ready marker was seen */
    bool triple_fault;          /* QEMU's own diagnostics said so */
    long last_kvm_exit;         /* -1 until kvm_run_exit was traced */
    char first_diagnostic[256]; /* first error that QEMU reported before the guest ran */
    struct hf_vm_network_peer peer;
    uint8_t *frame; /* owned: one frame on its way; `frame_length` bytes wait to be sent */
    size_t frame_length;
    uint64_t started_mono_ms, deadline_mono_ms, ready_mono_ms, ended_mono_ms;
};

void hf_vm_init(struct hf_vm *vm);

/* Starts QEMU with the guest paused, reads the monitor's greeting, and records the pid durably. Codes: those of
 * hf_child_start(), "vm-never-ran" (QEMU refused; the message has its first diagnostic), "vm-timeout". */
int hf_vm_start(struct hf_vm *vm, const struct hf_vm_host *host, const struct hf_vm_spec *spec, struct hf_error *err);
/* KVM only: makes QEMU log each exit of the guest from now on, which tells a triple fault from a reset. */
int hf_vm_trace_exits(struct hf_vm *vm, struct hf_error *err);
int hf_vm_resume(struct hf_vm *vm, struct hf_error *err);

/* Handles whatever arrives until `until_mono_ms`, at most once around. Errors: "interrupted", a protocol violation, or
 * the host's storage. They are final: stop the VM. */
int hf_vm_pump(struct hf_vm *vm, uint64_t until_mono_ms, struct hf_error *err);

/* True when the VMM is gone and nothing is left to read from any of its streams (a console on hold does not count). */
bool hf_vm_drained(const struct hf_vm *vm);

/* Pumps until `done` says so. Codes besides hf_vm_pump()'s: "vm-ended" (it ended first), "vm-timeout" (timeout_ms or
 * the phase timeout passed; `what` names what was awaited, in both messages). */
int hf_vm_wait(struct hf_vm *vm, uint64_t timeout_ms, bool (*done)(struct hf_vm *vm, void *context), void *context,
               const char *what, struct hf_error *err);
int hf_vm_wait_ready(struct hf_vm *vm, struct hf_error *err); /* marker and, where there is one, open control port */

/* Asks and waits for the answer (owned). An error answer is code "guest-refused", err->field the guest's error code. */
int hf_vm_request(struct hf_vm *vm, uint64_t timeout_ms, const char *operation, cJSON *more, cJSON **response,
                  struct hf_error *err);
/* The parts of a probe run: begin, wait for events, continue, end. `args` is taken and may be NULL. */
int hf_vm_run_begin(struct hf_vm *vm, uint64_t timeout_ms, const char *probe, cJSON *args, struct hf_error *err);
int hf_vm_run_event(struct hf_vm *vm, uint64_t timeout_ms, const char *event, cJSON **data, struct hf_error *err);
int hf_vm_run_continue(struct hf_vm *vm, cJSON *args, struct hf_error *err);
int hf_vm_run_end(struct hf_vm *vm, uint64_t timeout_ms, cJSON **response, struct hf_error *err);

/* Monitor command; *reply (may be NULL) is its "return" value, owned. Code "qmp-refused". */
int hf_vm_command(struct hf_vm *vm, const char *command, cJSON *arguments, cJSON **reply, struct hf_error *err);

/* Waits until the VMM is gone and every stream is drained. After the phase timeout it stops the VM itself and returns
 * 0: the end is then classified as timeout. */
int hf_vm_await_end(struct hf_vm *vm, struct hf_error *err);
/* SIGKILL to the VMM itself, as a stranger would. */
int hf_vm_kill(struct hf_vm *vm, struct hf_error *err);
/* Ends it for `reason` and waits. Safe at any time, also after errors and when nothing was started. */
void hf_vm_stop(struct hf_vm *vm, enum hf_vm_stop reason);

/* After the end. */
struct hf_vm_evidence hf_vm_evidence(const struct hf_vm *vm);
enum hf_vm_end hf_vm_end(const struct hf_vm *vm);
struct hf_vm_teardown hf_vm_check_teardown(const struct hf_vm *vm);
bool hf_vm_teardown_complete(const struct hf_vm_teardown *teardown);

void hf_vm_clear(struct hf_vm *vm); /* stops it first when it still runs */

#endif
