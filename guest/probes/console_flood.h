/*
 * What the probe "console-flood" writes to the serial console and how it ends; included by the probe and by
 * executor/scenario/console_exit.c.
 *
 *     marker (HF_FLOOD_MARKER_SIZE bytes of stream HF_FLOOD_STREAM_MARKER)
 *     flood  (argument "bytes", stream HF_FLOOD_STREAM_FLOOD)
 *     last words (argument "last_bytes", stream HF_FLOOD_STREAM_LAST), only after the host's "continue"
 *
 * All bytes are of any value, so nothing on the way may translate them. After the last words were drained the probe
 * itself ends QEMU through the debug-exit port with argument "value".
 * Events: "flood-begins" (before the first byte; waits for "continue"), "flood-written" {"written_bytes"} (after
 * tcdrain; waits for "continue").
 */
#ifndef HF_GUEST_PROBES_CONSOLE_FLOOD_H
#define HF_GUEST_PROBES_CONSOLE_FLOOD_H

#define HF_FLOOD_PROBE         "console-flood"
#define HF_FLOOD_EVENT_BEGINS  "flood-begins"
#define HF_FLOOD_EVENT_WRITTEN "flood-written"

enum { HF_FLOOD_STREAM_MARKER = 1, HF_FLOOD_STREAM_FLOOD = 2, HF_FLOOD_STREAM_LAST = 3 };
enum { HF_FLOOD_MARKER_SIZE = 16 };

#endif
