/*
 * The control protocol between the host (executor/scenario) and the agent inside the VM (guest/init). Included by both
 * sides; it defines names and bounds and nothing else.
 *
 * Transport: the virtio-serial port HF_GUEST_CONTROL_PORT. One JSON object per line, ended by '\n', at most
 * HF_GUEST_LINE_MAX bytes with the '\n'. Empty lines are ignored by both sides: each starts a connection with a '\n',
 * so that the rest of a line cut by a lost peer is never taken for the beginning of a new one.
 *
 * The host asks, the agent answers; one request is under way at a time. The guest is hostile to the host: the host
 * reads every line with the strict reader of common/json.h, under its own deadline, and believes only what it counted
 * itself.
 *
 * Request   {"id":N,"op":"OP"}                                      N: 1..2^53, chosen by the host, never reused
 *           {"id":N,"op":"exit","value":V}                          V: 0..255, QEMU then exits with (V << 1) | 1
 *           {"id":N,"op":"load","module":"NAME"}                    with everything that NAME depends on
 *           {"id":N,"op":"run","probe":"NAME","timeout_ms":T,"args":{...}}
 *                                                                   T: 1..HF_GUEST_RUN_TIMEOUT_MAX_MS; args: flat, at
 *                                                                   most HF_GUEST_ARGS_MAX strings, integers, booleans
 * Unknown, missing or repeated keys are refused.
 *
 * Response  {"id":N,"op":"OP","status":"ok",...}                    members per operation, see below
 *           {"id":N,"op":"OP","status":"error","code":"CODE","message":"..."}   codes: HF_GUEST_ERROR_*
 *           A line that is not a request is answered with id 0 and op "".
 *
 * ping      "uptime_ms", "boot_id" (new at each boot; differs between restores only if the guest draws it again)
 * info      "version", "kernel_release", "cpus_online", "cpus_possible", "memory_total_kib", "memory_available_kib",
 *           "cmdline", "modules" [...], "devices" [virtio modaliases], "probes" [...]
 * poweroff  ACPI power-off                  } the answer is sent first, and HF_GUEST_FAREWELL_MS later the agent acts;
 * reboot    orderly reset                   } the host waits for the VMM's own event, never for the answer alone
 * panic     sysrq c                         }
 * triple_fault  empty IDT, then int3        }
 * exit      the isa-debug-exit port 0xf4    }
 * run       "probe", "duration_ms", "verdict" ("held"|"broken"), "checks" [{"name","held","detail"}], "result" {...},
 *           "processes_killed" (what the probe left behind)
 *
 * While a probe runs the agent may send events, and accepts just two operations, with the id of the run:
 * Event     {"id":N,"event":"NAME","data":{...}}                    at most HF_GUEST_EVENTS_MAX per run
 * Request   {"id":N,"op":"continue","args":{...}}                   wakes hf_probe_wait_continue(); no answer
 *           {"id":N,"op":"cancel"}                                  kills the probe: "probe-cancelled"
 *
 * Serial console: when the agent is ready it prints a newline (the firmware leaves its last line open),
 * HF_GUEST_READY_MARKER, a space, its version, and a newline.
 */
#ifndef HF_GUEST_PROTOCOL_H
#define HF_GUEST_PROTOCOL_H

#define HF_GUEST_CONTROL_PORT "org.holdfast.control"
#define HF_GUEST_READY_MARKER "holdfast-guest ready"

/* The kernel's command line for a short boot; what each option saves is in guest/README.md. More may follow it. */
#define HF_GUEST_COMMAND_LINE "console=ttyS0 quiet panic=-1 no_timer_check noreplace-smp cryptomgr.notests"

#define HF_GUEST_LINE_MAX           65536 /* bytes of a line with its '\n', both directions */
#define HF_GUEST_NAME_MAX           63    /* bytes of an operation, probe, module, event, check or argument name */
#define HF_GUEST_ARGS_MAX           32
#define HF_GUEST_TEXT_MAX           4096 /* bytes of one string argument */
#define HF_GUEST_EVENTS_MAX         4096
#define HF_GUEST_RUN_TIMEOUT_MAX_MS 3600000
#define HF_GUEST_FAREWELL_MS        20

#define HF_GUEST_DEBUG_EXIT_PORT 0xf4 /* -device isa-debug-exit,iobase=0xf4,iosize=0x04 */

#define HF_GUEST_OP_PING         "ping"
#define HF_GUEST_OP_INFO         "info"
#define HF_GUEST_OP_POWEROFF     "poweroff"
#define HF_GUEST_OP_REBOOT       "reboot"
#define HF_GUEST_OP_PANIC        "panic"
#define HF_GUEST_OP_TRIPLE_FAULT "triple_fault"
#define HF_GUEST_OP_EXIT         "exit"
#define HF_GUEST_OP_LOAD         "load"
#define HF_GUEST_OP_RUN          "run"
#define HF_GUEST_OP_CONTINUE     "continue"
#define HF_GUEST_OP_CANCEL       "cancel"

#define HF_GUEST_ERROR_REQUEST        "request-invalid" /* not a request, or a member out of bounds */
#define HF_GUEST_ERROR_OPERATION      "operation-unknown"
#define HF_GUEST_ERROR_BUSY           "busy"             /* another request while a probe runs */
#define HF_GUEST_ERROR_FAILED         "operation-failed" /* the kernel refused; the message has the reason */
#define HF_GUEST_ERROR_PROBE_UNKNOWN  "probe-unknown"
#define HF_GUEST_ERROR_CANNOT_RUN     "probe-cannot-run" /* module, device or tool missing: never counts as held */
#define HF_GUEST_ERROR_PROBE_TIMEOUT  "probe-timeout"
#define HF_GUEST_ERROR_PROBE_CRASHED  "probe-crashed"        /* ended without a result */
#define HF_GUEST_ERROR_PROBE_OUTPUT   "probe-output-invalid" /* too long, too many events, or not JSON */
#define HF_GUEST_ERROR_PROBE_CANCELED "probe-cancelled"

#endif
