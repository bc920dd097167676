/*
 * Probe "console-flood": floods the serial console with reproducible bytes while the host does not read, then leaves
 * last words and ends QEMU at once with an exact status. Protocol with the host: console_flood.h.
 */
#include "guest/probes/console_flood.h"
#include "guest/probes/pattern.h"
#include "guest/probes/probes.h"
#include "guest/protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/io.h>
#include <sys/klog.h>
#include <termios.h>
#include <unistd.h>

#define HOST_TIMEOUT_MS 120000
#define CHUNK_BYTES     4096

struct flood {
    int64_t seed, bytes, last_bytes, value;
};

/* No translation, no echo: byte for byte what is written. Kernel messages are kept off the console. */
static int make_raw(struct hf_probe *probe)
{
    struct termios settings;
    if (tcgetattr(STDOUT_FILENO, &settings) != 0)
        return hf_probe_cannot_run(probe, "standard output is no terminal: %s", strerror(errno));
    cfmakeraw(&settings);
    if (tcsetattr(STDOUT_FILENO, TCSANOW, &settings) != 0)
        return hf_probe_cannot_run(probe, "the console cannot be made raw: %s", strerror(errno));
    if (klogctl(6 /* SYSLOG_ACTION_CONSOLE_OFF */, NULL, 0) != 0)
        return hf_probe_cannot_run(probe, "kernel messages cannot be kept off the console: %s", strerror(errno));
    return 0;
}

/* Writes `count` bytes of a stream; returns how many the terminal took. */
static int64_t write_stream(int64_t seed, unsigned stream, int64_t count)
{
    uint8_t chunk[CHUNK_BYTES];
    struct hf_pattern pattern;
    int64_t written = 0;
    hf_pattern_init(&pattern, (uint64_t)seed, stream);
    while (written < count) {
        size_t size = count - written < CHUNK_BYTES ? (size_t)(count - written) : CHUNK_BYTES;
        hf_pattern_fill(&pattern, chunk, size);
        for (size_t done = 0; done < size;) {
            ssize_t taken = write(STDOUT_FILENO, chunk + done, size - done);
            if (taken < 0 && errno == EINTR)
                continue;
            if (taken <= 0)
                return written + (int64_t)done;
            done += (size_t)taken;
        }
        written += (int64_t)size;
    }
    return written;
}

static int announce(struct hf_probe *probe, const char *event, int64_t written)
{
    hf_emit_int(hf_probe_event_begin(probe, event), "written_bytes", written);
    if (hf_probe_event_send(probe) || hf_probe_wait_continue(probe, HOST_TIMEOUT_MS))
        return hf_probe_cannot_run(probe, "the host did not answer the announcement");
    return 0;
}

static int console_flood(struct hf_probe *probe)
{
    struct flood flood;
    if (hf_probe_arg_int(probe, "seed", 0, INT64_MAX, &flood.seed) ||
        hf_probe_arg_int(probe, "bytes", 1, 16 << 20, &flood.bytes) ||
        hf_probe_arg_int(probe, "last_bytes", 1, 4096, &flood.last_bytes) ||
        hf_probe_arg_int(probe, "value", 1, 127, &flood.value) || make_raw(probe))
        return -1;
    if (ioperm(HF_GUEST_DEBUG_EXIT_PORT, 4, 1) != 0)
        return hf_probe_cannot_run(probe, "no access to the debug-exit port: %s", strerror(errno));
    if (announce(probe, HF_FLOOD_EVENT_BEGINS, 0))
        return -1;
    int64_t written = write_stream(flood.seed, HF_FLOOD_STREAM_MARKER, HF_FLOOD_MARKER_SIZE) +
                      write_stream(flood.seed, HF_FLOOD_STREAM_FLOOD, flood.bytes);
    tcdrain(STDOUT_FILENO);
    if (announce(probe, HF_FLOOD_EVENT_WRITTEN, written))
        return -1;
    write_stream(flood.seed, HF_FLOOD_STREAM_LAST, flood.last_bytes);
    tcdrain(STDOUT_FILENO); /* the UART is empty: every byte has left the guest */
    outb((unsigned char)flood.value, HF_GUEST_DEBUG_EXIT_PORT);
    hf_probe_check(probe, "debug-exit", false, "the guest outlived a write to the debug-exit port");
    return 0;
}

HF_PROBE(HF_FLOOD_PROBE, console_flood);
