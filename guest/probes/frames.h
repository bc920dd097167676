/*
 * The frames of the probe "virtio-net": both sides compute the same sequence from the seed, so each can say which frame
 * of the other is missing, doubled or changed. Included by the probe and by executor/scenario/virtio_net.c.
 *
 * The host is the peer HF_FRAME_HOST_MAC, the guest HF_FRAME_GUEST_MAC. Apart from the checksum classes, which are IPv4
 * over UDP, every frame has the local experimental EtherType 0x88B5 (IEEE 802) and a payload of pattern bytes.
 *
 * Stages, each begun by the host's "continue" {"stage": N} after the probe's event "stage-ready" {"stage": N}:
 *     1 guest to host: every class      2 host to guest: every class, then frames too short for a header
 *     3 both ways at once: floods       4 end
 */
#ifndef HF_GUEST_PROBES_FRAMES_H
#define HF_GUEST_PROBES_FRAMES_H

#include "guest/probes/pattern.h"

#include <stdbool.h>
#include <string.h>

#define HF_NET_PROBE             "virtio-net"
#define HF_NET_EVENT_STAGE_READY "stage-ready"

#define HF_FRAME_HEADER_SIZE 14
#define HF_FRAME_MTU         65535 /* the largest that virtio-net offers without a bound from the host */
#define HF_FRAME_LARGEST     (HF_FRAME_MTU + HF_FRAME_HEADER_SIZE)
#define HF_FRAME_ETHERTYPE   0x88B5

enum hf_frame_direction {
    HF_FRAMES_FROM_GUEST = 16,
    HF_FRAMES_FROM_HOST = 17,
    HF_FLOOD_FROM_GUEST = 18,
    HF_FLOOD_FROM_HOST = 19
};

enum hf_frame_kind { HF_FRAME_PLAIN, HF_FRAME_BAD_IP_CHECKSUM, HF_FRAME_BAD_UDP_CHECKSUM };

struct hf_frame_class {
    const char *name;
    unsigned length; /* bytes from destination address to the end of the payload, no checksum sequence */
    unsigned count;
    enum hf_frame_kind kind;
};

static const struct hf_frame_class hf_frame_classes[] = {
    {"runt-header-only", 14, 16, HF_FRAME_PLAIN},
    {"runt-one-byte", 15, 16, HF_FRAME_PLAIN},
    {"runt-below-minimum", 59, 16, HF_FRAME_PLAIN},
    {"minimum", 60, 16, HF_FRAME_PLAIN},
    {"small", 128, 16, HF_FRAME_PLAIN},
    {"medium", 512, 16, HF_FRAME_PLAIN},
    {"full", 1514, 16, HF_FRAME_PLAIN},
    {"above-standard", 1515, 16, HF_FRAME_PLAIN},
    {"jumbo", 9014, 8, HF_FRAME_PLAIN},
    {"jumbo-large", 32768, 4, HF_FRAME_PLAIN},
    {"jumbo-largest", HF_FRAME_LARGEST, 4, HF_FRAME_PLAIN},
    {"bad-ip-checksum", 98, 16, HF_FRAME_BAD_IP_CHECKSUM},
    {"bad-udp-checksum", 98, 16, HF_FRAME_BAD_UDP_CHECKSUM},
    {"flood-minimum", 60, 1500, HF_FRAME_PLAIN},
    {"flood-full", 1514, 500, HF_FRAME_PLAIN},
};
#define HF_FRAME_CLASS_COUNT (sizeof hf_frame_classes / sizeof hf_frame_classes[0])

/* Stage 3 sends only this class, in both directions at once. */
static const struct hf_frame_class hf_duplex_class = {"flood-duplex", 256, 1500, HF_FRAME_PLAIN};

/* Frames that no driver may hand on: shorter than an Ethernet header. Sent by the host at the end of stage 2, one of
 * each length 1..13. */
#define HF_FRAME_TOO_SHORT_COUNT 13

static const uint8_t HF_FRAME_HOST_MAC[6] = {0x52, 0x54, 0x00, 0x48, 0x46, 0x02};
static const uint8_t HF_FRAME_GUEST_MAC[6] = {0x52, 0x54, 0x00, 0x48, 0x46, 0x01};

/* Position in a sequence of classes. */
struct hf_frame_cursor {
    uint64_t seed;
    enum hf_frame_direction direction;
    const struct hf_frame_class *classes;
    size_t class_count;
    size_t class_index;
    unsigned index;    /* within the class */
    uint64_t position; /* frames passed so far */
};

static inline void hf_frame_cursor_init(struct hf_frame_cursor *cursor, uint64_t seed,
                                        enum hf_frame_direction direction)
{
    bool flood = direction == HF_FLOOD_FROM_GUEST || direction == HF_FLOOD_FROM_HOST;
    *cursor = (struct hf_frame_cursor){.seed = seed,
                                       .direction = direction,
                                       .classes = flood ? &hf_duplex_class : hf_frame_classes,
                                       .class_count = flood ? 1 : HF_FRAME_CLASS_COUNT};
}

static inline bool hf_frame_cursor_at_end(const struct hf_frame_cursor *cursor)
{
    return cursor->class_index >= cursor->class_count;
}

static inline void hf_frame_cursor_advance(struct hf_frame_cursor *cursor)
{
    cursor->position++;
    if (++cursor->index < cursor->classes[cursor->class_index].count)
        return;
    cursor->index = 0;
    cursor->class_index++;
}

static inline uint64_t hf_frame_total(const struct hf_frame_cursor *cursor)
{
    uint64_t total = 0;
    for (size_t i = 0; i < cursor->class_count; i++)
        total += cursor->classes[i].count;
    return total;
}

static inline void hf_frame_put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* Internet checksum, RFC 1071, over big-endian words. */
static inline unsigned hf_frame_sum(const uint8_t *bytes, size_t length, unsigned sum)
{
    for (size_t i = 0; i < length; i++)
        sum += i & 1 ? bytes[i] : (unsigned)bytes[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return sum;
}

/* Turns a patterned frame into IPv4/UDP between documentation addresses (RFC 5737) with exactly one wrong checksum. */
static inline void hf_frame_make_ip(uint8_t *frame, unsigned length, enum hf_frame_kind kind)
{
    uint8_t *ip = frame + HF_FRAME_HEADER_SIZE, *udp = ip + 20;
    unsigned ip_length = length - HF_FRAME_HEADER_SIZE, udp_length = ip_length - 20;
    static const uint8_t head[20] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2};
    hf_frame_put16(frame + 12, 0x0800);
    memcpy(ip, head, sizeof head);
    hf_frame_put16(ip + 2, ip_length);
    hf_frame_put16(ip + 10, ~hf_frame_sum(ip, 20, 0) & 0xFFFF);
    hf_frame_put16(udp + 4, udp_length);
    hf_frame_put16(udp + 6, 0);
    unsigned sum = hf_frame_sum(udp, udp_length, hf_frame_sum(ip + 12, 8, 17 + udp_length));
    hf_frame_put16(udp + 6, ~sum & 0xFFFF ? ~sum & 0xFFFF : 0xFFFF);
    if (kind == HF_FRAME_BAD_IP_CHECKSUM)
        ip[10] ^= 0x55;
    else
        udp[6] ^= 0x55;
}

/* Writes the frame at the cursor (at most HF_FRAME_LARGEST bytes) and returns its length. */
static inline unsigned hf_frame_build(const struct hf_frame_cursor *cursor, uint8_t *frame)
{
    const struct hf_frame_class *class = &cursor->classes[cursor->class_index];
    bool from_guest = cursor->direction == HF_FRAMES_FROM_GUEST || cursor->direction == HF_FLOOD_FROM_GUEST;
    struct hf_pattern pattern;
    hf_pattern_init(&pattern, cursor->seed + cursor->position, (uint64_t)cursor->direction);
    memcpy(frame, from_guest ? HF_FRAME_HOST_MAC : HF_FRAME_GUEST_MAC, 6);
    memcpy(frame + 6, from_guest ? HF_FRAME_GUEST_MAC : HF_FRAME_HOST_MAC, 6);
    hf_frame_put16(frame + 12, HF_FRAME_ETHERTYPE);
    hf_pattern_fill(&pattern, frame + HF_FRAME_HEADER_SIZE, class->length - HF_FRAME_HEADER_SIZE);
    if (class->kind != HF_FRAME_PLAIN)
        hf_frame_make_ip(frame, class->length, class->kind);
    return class->length;
}

/* What arrived, measured against the sequence that was sent. A frame counts once, wherever it comes up to
 * HF_FRAME_LOOKAHEAD frames ahead: Linux may hand a packet socket a frame of a protocol that it knows before an earlier
 * one of a protocol that it does not (net/core/dev.c, __netif_receive_skb_list_core). A frame that comes twice is a
 * wrong one.
 */
#define HF_FRAME_LOOKAHEAD 64
#define HF_FRAME_TOTAL_MAX 4096

struct hf_frame_tally {
    struct hf_frame_cursor missing; /* the first frame that has not arrived */
    uint64_t received;              /* frames, right or wrong */
    uint64_t exact;                 /* equal to the last byte to one that had not arrived yet */
    uint64_t reordered;             /* of these, the ones that came after a later one */
    uint64_t wrong;                 /* equal to none that could still come */
    uint64_t exact_of_class[HF_FRAME_CLASS_COUNT];
    size_t first_wrong_length; /* of the first wrong frame */
    uint64_t highest;          /* position behind the latest that has arrived */
    uint8_t seen[HF_FRAME_TOTAL_MAX / 8];
    uint8_t *scratch; /* HF_FRAME_LARGEST bytes, borrowed */
};

static inline void hf_frame_tally_init(struct hf_frame_tally *tally, uint64_t seed, enum hf_frame_direction direction,
                                       uint8_t *scratch)
{
    memset(tally, 0, sizeof *tally);
    tally->scratch = scratch;
    hf_frame_cursor_init(&tally->missing, seed, direction);
}

/* Class of the first frame that has not arrived, "none" when all have. */
static inline const char *hf_frame_tally_missing_class(const struct hf_frame_tally *tally)
{
    return hf_frame_cursor_at_end(&tally->missing) ? "none" : tally->missing.classes[tally->missing.class_index].name;
}

static inline bool hf_frame_tally_seen(const struct hf_frame_tally *tally, uint64_t position)
{
    return tally->seen[position / 8] >> position % 8 & 1;
}

static inline void hf_frame_tally_accept(struct hf_frame_tally *tally, const struct hf_frame_cursor *at)
{
    tally->exact++;
    tally->exact_of_class[at->class_index]++;
    tally->seen[at->position / 8] |= (uint8_t)(1u << at->position % 8);
    if (at->position < tally->highest)
        tally->reordered++;
    else
        tally->highest = at->position + 1;
    while (!hf_frame_cursor_at_end(&tally->missing) && hf_frame_tally_seen(tally, tally->missing.position))
        hf_frame_cursor_advance(&tally->missing);
}

static inline void hf_frame_tally_take(struct hf_frame_tally *tally, const uint8_t *frame, size_t length)
{
    struct hf_frame_cursor candidate = tally->missing;
    tally->received++;
    while (!hf_frame_cursor_at_end(&candidate) && candidate.position < tally->highest + HF_FRAME_LOOKAHEAD) {
        if (candidate.classes[candidate.class_index].length == length &&
            !hf_frame_tally_seen(tally, candidate.position) && hf_frame_build(&candidate, tally->scratch) == length &&
            memcmp(frame, tally->scratch, length) == 0) {
            hf_frame_tally_accept(tally, &candidate);
            return;
        }
        hf_frame_cursor_advance(&candidate);
    }
    if (tally->wrong++ == 0)
        tally->first_wrong_length = length;
}

#endif
