/*
 * What a probe may use. A probe is one file guest/probes/NAME.c, compiled into /init; it registers itself with
 * HF_PROBE() and is started by the agent for the operation "run" of guest/protocol.h.
 *
 * The probe runs as root in a process of its own (session leader, /dev/null on stdin, the serial console on stdout and
 * stderr), so it may crash, hang, flood or kill what it likes: the agent is process 1, answers for it, and afterwards
 * kills and reaps every other process of the guest. A probe never talks to the control port itself.
 *
 *     static int console_flood(struct hf_probe *probe)
 *     {
 *         int64_t bytes;
 *         if (hf_probe_arg_int(probe, "bytes", 1, 16 << 20, &bytes))
 *             return -1;
 *         ...
 *         hf_probe_check(probe, "all-bytes-written", written == bytes, "wrote %lld of %lld", ...);
 *         hf_emit_int(hf_probe_result(probe), "written_bytes", written);
 *         return 0;
 *     }
 *     HF_PROBE("console-flood", console_flood);
 *
 * A probe returns 0 when it ran to its end, whatever its checks found ("broken" when one did not hold, or when there
 * was no check at all), and -1 after hf_probe_cannot_run() or a failed argument lookup: a probe that could not run
 * never counts as held.
 */
#ifndef HF_GUEST_PROBES_PROBES_H
#define HF_GUEST_PROBES_PROBES_H

#include "guest/init/emit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf_probe; /* one run: arguments, checks, result; owned by the agent's runner */

typedef int (*hf_probe_function)(struct hf_probe *probe);

struct hf_probe_entry {
    const char *name; /* [a-z][a-z0-9-]*, at most HF_GUEST_NAME_MAX */
    hf_probe_function run;
};

/* Registers a probe in the table that the linker collects; there is no list to keep in step. Once per line. */
#define HF_PROBE(probe_name, function)         HF_PROBE_ON_LINE(probe_name, function, __LINE__)
#define HF_PROBE_ON_LINE(name, function, line) HF_PROBE_ENTRY(name, function, line)
#define HF_PROBE_ENTRY(probe_name, function, line)                                                                     \
    static const struct hf_probe_entry hf_probe_entry_##line = {probe_name, function};                                 \
    static const struct hf_probe_entry *const hf_probe_pointer_##line __attribute__((used, section("hf_probes"))) =    \
        &hf_probe_entry_##line

/* Arguments. Each returns 0, or -1 with the run's error set ("probe-cannot-run": argument missing, of another type or
 * out of bounds). The _or forms accept an absent argument. Strings are borrowed and live as long as the run. */
int hf_probe_arg_int(struct hf_probe *probe, const char *name, int64_t min, int64_t max, int64_t *value);
int hf_probe_arg_int_or(struct hf_probe *probe, const char *name, int64_t min, int64_t max, int64_t fallback,
                        int64_t *value);
int hf_probe_arg_string(struct hf_probe *probe, const char *name, const char **value);
int hf_probe_arg_bool_or(struct hf_probe *probe, const char *name, bool fallback, bool *value);

/* Records one claim that the probe tested. `detail` is one line of at most 256 bytes for the report. */
void hf_probe_check(struct hf_probe *probe, const char *name, bool held, const char *detail_format, ...)
    __attribute__((format(printf, 4, 5)));

/* The open object that becomes "result" of the response; add members with the hf_emit_* functions. */
struct hf_emit *hf_probe_result(struct hf_probe *probe);

/* Ends the probe as not runnable: returns -1, so that `return hf_probe_cannot_run(probe, "...")` reads well. */
int hf_probe_cannot_run(struct hf_probe *probe, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Announces a point to the host. begin opens the event's "data" object, send closes it and sends it at once. Blocks
 * while the host does not read. -1: the agent is gone or the event is too long. */
struct hf_emit *hf_probe_event_begin(struct hf_probe *probe, const char *event_name);
int hf_probe_event_send(struct hf_probe *probe);

/* Waits for the host's "continue" and makes its args the ones that hf_probe_arg_*() see. 0; 1 when timeout_ms passed;
 * -1 when the agent is gone. Survives capture and restore of the VM between announcement and continue. */
int hf_probe_wait_continue(struct hf_probe *probe, uint32_t timeout_ms);

/* Loads a kernel module of the initramfs with its dependencies. -1 with a reason in `why`. Already loaded is success.
 */
int hf_guest_load_module(const char *name, char *why, size_t why_size);

#endif
