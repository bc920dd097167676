/*
 * Between the agent's runner and a probe's process: one SOCK_SEQPACKET pair, one message per packet, the first byte
 * tells its kind. The probe side (probe.c) implements guest/probes/probes.h; the agent side (runner.c) trusts none of
 * it.
 */
#ifndef HF_GUEST_INIT_PROBE_H
#define HF_GUEST_INIT_PROBE_H

#include "guest/init/scan.h"
#include "guest/probes/probes.h"

/* Bounds that make the longest response fit HF_GUEST_LINE_MAX. */
#define HF_PROBE_CHECKS_MAX (24 << 10)
#define HF_PROBE_RESULT_MAX (36 << 10)
#define HF_PROBE_PACKET_MAX HF_GUEST_LINE_MAX
#define HF_PROBE_REASON_MAX 512

enum hf_probe_packet {
    HF_PACKET_EVENT = 'E',      /* a whole event line */
    HF_PACKET_HELD = 'H',       /* array of checks, all held */
    HF_PACKET_BROKEN = 'B',     /* array of checks, not all held or none */
    HF_PACKET_RESULT = 'R',     /* result object; the last packet of a run that came to its end */
    HF_PACKET_CANNOT_RUN = 'N', /* reason as plain text; the last packet */
    HF_PACKET_TOO_LONG = 'L',   /* checks, result or event above its bound; the last packet */
    HF_PACKET_CONTINUE = 'C',   /* agent to probe: the whole request line */
};

/* Runs the probe in the calling process, which was forked for it, and never returns. `fd` is its end of the pair. */
_Noreturn void hf_probe_process(const struct hf_probe_entry *entry, const struct hf_request *request, int64_t run_id,
                                int fd);

#endif
