/*
 * The agent's end of the control port: whole lines in, whole lines out, without ever blocking. Owned by the agent's
 * loop.
 *
 * A host that vanishes is not an error: what was half read or half sent is forgotten, and the next connection starts
 * with an empty line. The port cannot be polled for the host's return (drivers/char/virtio_console.c reports POLLHUP at
 * once while nobody listens), so the loop looks again every HF_CONTROL_ABSENT_POLL_MS.
 */
#ifndef HF_GUEST_INIT_CONTROL_H
#define HF_GUEST_INIT_CONTROL_H

#include "guest/protocol.h"

#include <stdbool.h>
#include <stddef.h>

#define HF_CONTROL_ABSENT_POLL_MS 10

struct hf_control {
    int fd;
    bool connected;
    bool overlong; /* the rest of a line above HF_GUEST_LINE_MAX is being dropped */
    size_t in_length;
    size_t out_start;
    size_t out_length;
    char in[HF_GUEST_LINE_MAX];
    char out[3 * HF_GUEST_LINE_MAX];
};

/* Waits until the port HF_GUEST_CONTROL_PORT is there and opens it. -1 with a sentence in `why` after timeout_ms. */
int hf_control_open(struct hf_control *control, unsigned timeout_ms, char *why, size_t why_size);

/* True when one more line of the greatest length can be queued: the agent starts nothing that may answer before. */
bool hf_control_has_room(const struct hf_control *control);
/* Queues a line (without its newline); it has to fit. */
void hf_control_queue(struct hf_control *control, const char *line, size_t length);

short hf_control_poll_events(const struct hf_control *control);
/* Moves bytes as far as they go now. `revents` is what poll(2) said. */
void hf_control_move(struct hf_control *control, short revents);
/* Cuts the next whole line out of the input into `line` (HF_GUEST_LINE_MAX bytes). False when there is none.
 * A line that was too long is given as a line of length HF_GUEST_LINE_MAX, which no request has. */
bool hf_control_take_line(struct hf_control *control, char *line, size_t *length);

#endif
