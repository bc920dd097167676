/*
 * The executor's line to its controller: one descriptor to read, one to write, and the signals that end a session.
 * Owned by session.c; whatever runs meanwhile only looks at `interrupt_fd`.
 *
 * Reading is bounded and never ahead of the protocol: a controller that sends anything while its request is being
 * worked on has broken the alternation, and that, the end of its stream and SIGTERM, SIGINT or SIGHUP all make
 * interrupt_fd readable.
 */
#ifndef HF_EXECUTOR_CHANNEL_H
#define HF_EXECUTOR_CHANNEL_H

#include "common/error.h"
#include "common/protocol/protocol.h"

#include <stddef.h>

enum channel_event {
    CHANNEL_LINE,        /* a whole request is there */
    CHANNEL_END,         /* end of stream; an unfinished line is not a request */
    CHANNEL_SIGNAL,      /* asked to end */
    CHANNEL_WAKE,        /* the extra descriptor is readable */
    CHANNEL_TOO_LONG,    /* more than HF_PROTOCOL_MAX_LINE bytes without a newline */
    CHANNEL_OUT_OF_TURN, /* bytes after the request, or while one is being worked on */
    CHANNEL_FAILED,
};

struct channel {
    int in_fd, out_fd;
    int signal_fd;
    int interrupt_fd; /* epoll over in_fd and signal_fd */
    char *buffer;     /* HF_PROTOCOL_MAX_LINE + 1 bytes */
    size_t length;
};

/* Takes the process's standard input and output for the protocol: both move to private descriptors, 0 becomes /dev/null
 * and 1 a copy of 2, so that no library or child can ever write into the protocol. Blocks the signals named above.
 * Codes: "channel-input" (input that cannot be waited for, such as a regular file), "channel-failed". */
int channel_open(struct channel *channel, struct hf_error *err);
void channel_close(struct channel *channel);

/* Waits for the next request. On CHANNEL_LINE *line (valid until the next call) and *length are set. wake_fd may be -1.
 */
enum channel_event channel_read(struct channel *channel, int wake_fd, const char **line, size_t *length,
                                struct hf_error *err);
/* Which event is behind a readable interrupt_fd; CHANNEL_WAKE when none is. Reads nothing away but one byte at most. */
enum channel_event channel_interruption(struct channel *channel);

/* Writes one line and its newline. A controller that takes none of it for 10 s is given up. */
int channel_write(struct channel *channel, const char *line, size_t length, struct hf_error *err);

#endif
