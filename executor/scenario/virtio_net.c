/*
 * Scenario "virtio-net". It has to show: "frames of every size class from a raw socket, including runts, jumbo, bad
 * checksums and floods, counted on both sides."
 *
 * The host is the other end of the wire: each frame is one datagram of the socket pair behind -netdev dgram. Both sides
 * know every frame in advance (guest/probes/frames.h) and compare to the last byte.
 */
#include "executor/scenario/scenarios.h"
#include "guest/probes/frames.h"
#include "guest/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_TIMEOUT_MS   120000
#define ARRIVAL_TIMEOUT_MS 5000 /* for what the guest says it has sent */

enum { STAGE_GUEST_SENDS = 1, STAGE_HOST_SENDS, STAGE_BOTH_SEND, STAGE_END };

/* --- the peer --- */

struct net_peer {
    uint64_t seed;
    struct hf_frame_tally tally;     /* of what the guest sends */
    struct hf_frame_cursor outgoing; /* of what the host sends */
    bool sending;
    bool then_too_short; /* after the last frame, those without a whole header */
    bool endless;        /* begin again after the last frame */
    uint64_t sent;
    unsigned too_short_sent;
    uint8_t scratch[HF_FRAME_LARGEST];
};

static int receive_frame(void *context, const uint8_t *frame, size_t length, struct hf_error *err)
{
    struct net_peer *peer = context;
    (void)err;
    hf_frame_tally_take(&peer->tally, frame, length);
    return 0;
}

/* Frames 1..13 bytes long: whatever a driver makes of them, it must not be a frame. */
static size_t too_short_frame(struct net_peer *peer, uint8_t *frame)
{
    if (peer->too_short_sent >= HF_FRAME_TOO_SHORT_COUNT)
        return 0;
    size_t length = ++peer->too_short_sent;
    memset(frame, 0xA5, length);
    return length;
}

static size_t transmit_frame(void *context, uint8_t *frame, size_t capacity)
{
    struct net_peer *peer = context;
    (void)capacity; /* HF_VM_FRAME_MAX, more than HF_FRAME_LARGEST */
    if (!peer->sending)
        return 0;
    if (hf_frame_cursor_at_end(&peer->outgoing)) {
        if (peer->endless)
            hf_frame_cursor_init(&peer->outgoing, peer->seed, HF_FLOOD_FROM_HOST);
        else
            return peer->then_too_short ? too_short_frame(peer, frame) : 0;
    }
    size_t length = hf_frame_build(&peer->outgoing, frame);
    hf_frame_cursor_advance(&peer->outgoing);
    peer->sent++;
    return length;
}

static void expect(struct net_peer *peer, enum hf_frame_direction direction)
{
    hf_frame_tally_init(&peer->tally, peer->seed, direction, peer->scratch);
}

static void send_frames(struct net_peer *peer, enum hf_frame_direction direction)
{
    hf_frame_cursor_init(&peer->outgoing, peer->seed, direction);
    peer->sent = 0;
    peer->sending = true;
}

/* --- the script --- */

static int begin_stage(struct hf_phase *phase, int stage, struct hf_error *err)
{
    cJSON *args = hf_json_new_object();
    hf_json_add_int(args, "stage", stage);
    return hf_vm_run_continue(&phase->vm, args, err);
}

/* The guest is ready for the next stage: it has sent and received all it wanted to of the one before. */
static int await_ready(struct hf_phase *phase, struct hf_error *err)
{
    return hf_vm_run_event(&phase->vm, PROBE_TIMEOUT_MS, HF_NET_EVENT_STAGE_READY, NULL, err);
}

static bool all_arrived(struct hf_vm *vm, void *context)
{
    const struct net_peer *peer = context;
    (void)vm;
    return peer->tally.received >= hf_frame_total(&peer->tally.missing);
}

/* What the guest has sent may still be in the VMM's queue. What is still missing after a while is missing for good, and
 * the tally says so: a timeout here is no error of its own. */
static int await_arrival(struct hf_phase *phase, struct net_peer *peer, struct hf_error *err)
{
    struct hf_error arrival = {0};
    if (hf_vm_wait(&phase->vm, ARRIVAL_TIMEOUT_MS, all_arrived, peer, "the guest's frames", &arrival) == 0 ||
        strcmp(arrival.code, "vm-timeout") == 0)
        return 0;
    if (err)
        *err = arrival;
    return -1;
}

static void check_tally(struct hf_phase *phase, const char *name, const struct net_peer *peer)
{
    const struct hf_frame_tally *tally = &peer->tally;
    uint64_t total = hf_frame_total(&tally->missing);
    char expected[96];
    snprintf(expected, sizeof expected, "%llu frames, each in order and equal to the last byte",
             (unsigned long long)total);
    hf_phase_check(phase, name, tally->received == total && tally->exact == total && tally->reordered == 0, expected,
                   "%llu received, %llu exact (first missing: %s), %llu reordered, %llu wrong (first: %zu bytes)",
                   (unsigned long long)tally->received, (unsigned long long)tally->exact,
                   hf_frame_tally_missing_class(tally), (unsigned long long)tally->reordered,
                   (unsigned long long)tally->wrong, tally->first_wrong_length);
}

/* "of every size class": one row per class, so that the report shows which one is damaged */
static void check_classes(struct hf_phase *phase, const struct net_peer *peer)
{
    for (size_t i = 0; i < HF_FRAME_CLASS_COUNT; i++) {
        const struct hf_frame_class *class = &hf_frame_classes[i];
        char name[96], expected[64];
        snprintf(name, sizeof name, "from-guest-%s", class->name);
        snprintf(expected, sizeof expected, "%u frames of %u bytes", class->count, class->length);
        hf_phase_check(phase, name, peer->tally.exact_of_class[i] == class->count, expected, "%llu exact",
                       (unsigned long long)peer->tally.exact_of_class[i]);
    }
}

static int stage_guest_sends(struct hf_phase *phase, struct net_peer *peer, struct hf_error *err)
{
    expect(peer, HF_FRAMES_FROM_GUEST);
    if (await_ready(phase, err) || begin_stage(phase, STAGE_GUEST_SENDS, err) || await_ready(phase, err) ||
        await_arrival(phase, peer, err))
        return -1;
    check_tally(phase, "from-guest", peer);
    check_classes(phase, peer);
    return 0;
}

static int stage_host_sends(struct hf_phase *phase, struct net_peer *peer, struct hf_error *err)
{
    expect(peer, HF_FLOOD_FROM_GUEST); /* of which nothing may come yet */
    peer->then_too_short = true;
    send_frames(peer, HF_FRAMES_FROM_HOST);
    if (begin_stage(phase, STAGE_HOST_SENDS, err) || await_ready(phase, err))
        return -1;
    peer->sending = false;
    uint64_t total = hf_frame_total(&peer->outgoing);
    hf_phase_check(phase, "from-host-sent", peer->sent == total && peer->too_short_sent == HF_FRAME_TOO_SHORT_COUNT,
                   "every frame handed to the VMM", "%llu of %llu, and %u without a header",
                   (unsigned long long)peer->sent, (unsigned long long)total, peer->too_short_sent);
    hf_phase_check(phase, "guest-silent", peer->tally.received == 0, "0 frames from the guest meanwhile", "%llu",
                   (unsigned long long)peer->tally.received);
    return 0;
}

static int stage_both_send(struct hf_phase *phase, struct net_peer *peer, struct hf_error *err)
{
    expect(peer, HF_FLOOD_FROM_GUEST);
    send_frames(peer, HF_FLOOD_FROM_HOST);
    peer->then_too_short = false;
    if (begin_stage(phase, STAGE_BOTH_SEND, err) || await_ready(phase, err) || await_arrival(phase, peer, err))
        return -1;
    peer->sending = false;
    check_tally(phase, "duplex-from-guest", peer);
    return begin_stage(phase, STAGE_END, err);
}

/* The guest's own counts ("counted on both sides") are the checks of its probe, see guest/probes/virtio_net.c. */
static int exchange_frames(struct hf_phase *phase, struct hf_error *err)
{
    struct net_peer *peer = phase->state;
    cJSON *response = NULL;
    cJSON *args = hf_json_new_object();
    hf_json_add_int(args, "seed", (int64_t)peer->seed);
    if (hf_phase_boot(phase, err) || hf_vm_run_begin(&phase->vm, PROBE_TIMEOUT_MS, HF_NET_PROBE, args, err) ||
        stage_guest_sends(phase, peer, err) || stage_host_sends(phase, peer, err) ||
        stage_both_send(phase, peer, err) || hf_vm_run_end(&phase->vm, PROBE_TIMEOUT_MS, &response, err))
        return -1;
    hf_phase_take_verdict(phase, HF_NET_PROBE, response);
    cJSON_Delete(response);
    /* network-teardown: the flood goes on while the interface is down and the guest powers off */
    peer->endless = true;
    send_frames(peer, HF_FLOOD_FROM_HOST);
    return hf_phase_request_end(phase, HF_GUEST_OP_POWEROFF, err);
}

static int prepare(struct hf_phase *phase, struct hf_error *err)
{
    struct net_peer *peer = calloc(1, sizeof *peer);
    (void)err;
    if (!peer)
        abort();
    peer->seed = phase->run->options.seed;
    phase->peer = (struct hf_vm_network_peer){.context = peer, .receive = receive_frame, .transmit = transmit_frame};
    phase->state = peer;
    return 0;
}

const struct hf_phase_plan hf_virtio_net_plan = {
    .name = "frames",
    .expected_end = HF_VM_END_POWEROFF,
    .processors = 1,
    .devices = {.control = true, .network = true},
    .prepare = prepare,
    .script = exchange_frames,
};

int hf_scenario_virtio_net(struct hf_run *run)
{
    return hf_run_phases(run, &hf_virtio_net_plan, 1);
}
