/* Protocol input and output; see channel.h. */
#include "executor/channel.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { WRITE_DEADLINE_MS = 10000 };

static int fail(struct hf_error *err, const char *what)
{
    return hf_error_set(err, "channel-failed", errno, "", "%s: %s", what, strerror(errno));
}

/* hf_program_begin() leaves something unusable where a descriptor was closed. */
static bool is_open(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && !(flags & O_PATH);
}

static int take_standard_streams(struct channel *channel, struct hf_error *err)
{
    if (!is_open(STDIN_FILENO) || !is_open(STDOUT_FILENO))
        return hf_error_set(err, "channel-failed", EBADF, "",
                            "standard input and output have to be open: they carry the protocol");
    channel->in_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    channel->out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (channel->in_fd < 0 || channel->out_fd < 0)
        return fail(err, "cannot duplicate standard input and output");
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0)
        return fail(err, "cannot replace standard input");
    if (!is_open(STDERR_FILENO))
        dup2(null_fd, STDERR_FILENO);
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return fail(err, "cannot replace standard output");
    close(null_fd);
    return 0;
}

static int open_interrupt(struct channel *channel, struct hf_error *err)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return fail(err, "cannot set up signals");
    channel->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    channel->interrupt_fd = epoll_create1(EPOLL_CLOEXEC);
    if (channel->signal_fd < 0 || channel->interrupt_fd < 0)
        return fail(err, "cannot set up signals");
    struct epoll_event input = {.events = EPOLLIN | EPOLLRDHUP};
    struct epoll_event ending = {.events = EPOLLIN};
    if (epoll_ctl(channel->interrupt_fd, EPOLL_CTL_ADD, channel->signal_fd, &ending) != 0)
        return fail(err, "cannot wait for signals");
    if (epoll_ctl(channel->interrupt_fd, EPOLL_CTL_ADD, channel->in_fd, &input) != 0)
        return hf_error_set(err, "channel-input", errno, "",
                            "standard input cannot be waited for (%s): a pipe, a socket or a terminal was expected, "
                            "because requests and responses alternate",
                            strerror(errno));
    return 0;
}

int channel_open(struct channel *channel, struct hf_error *err)
{
    *channel = (struct channel){.in_fd = -1, .out_fd = -1, .signal_fd = -1, .interrupt_fd = -1};
    channel->buffer = malloc(HF_PROTOCOL_MAX_LINE + 1);
    if (!channel->buffer)
        return hf_error_set(err, "channel-failed", ENOMEM, "", "out of memory");
    return take_standard_streams(channel, err) != 0 ? -1 : open_interrupt(channel, err);
}

void channel_close(struct channel *channel)
{
    const int fds[] = {channel->in_fd, channel->out_fd, channel->signal_fd, channel->interrupt_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(channel->buffer);
    *channel = (struct channel){.in_fd = -1, .out_fd = -1, .signal_fd = -1, .interrupt_fd = -1};
}

/* Reads once what is there. */
static enum channel_event fill(struct channel *channel, struct hf_error *err)
{
    size_t room = HF_PROTOCOL_MAX_LINE + 1 - channel->length;
    ssize_t got = read(channel->in_fd, channel->buffer + channel->length, room);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return CHANNEL_WAKE;
    if (got < 0) {
        fail(err, "cannot read a request");
        return CHANNEL_FAILED;
    }
    if (got == 0)
        return CHANNEL_END;
    const char *newline = memchr(channel->buffer + channel->length, '\n', (size_t)got);
    channel->length += (size_t)got;
    if (newline)
        return newline + 1 == channel->buffer + channel->length ? CHANNEL_LINE : CHANNEL_OUT_OF_TURN;
    return channel->length > HF_PROTOCOL_MAX_LINE ? CHANNEL_TOO_LONG : CHANNEL_WAKE;
}

enum channel_event channel_read(struct channel *channel, int wake_fd, const char **line, size_t *length,
                                struct hf_error *err)
{
    for (;;) {
        struct pollfd polls[] = {{.fd = channel->signal_fd, .events = POLLIN},
                                 {.fd = channel->in_fd, .events = POLLIN},
                                 {.fd = wake_fd, .events = POLLIN}};
        if (poll(polls, 3, -1) < 0) {
            if (errno == EINTR)
                continue;
            fail(err, "poll failed");
            return CHANNEL_FAILED;
        }
        if (polls[0].revents)
            return CHANNEL_SIGNAL;
        if (polls[2].revents)
            return CHANNEL_WAKE;
        enum channel_event event = fill(channel, err);
        if (event == CHANNEL_WAKE)
            continue;
        *line = channel->buffer;
        *length = channel->length > 0 ? channel->length - 1 : 0;
        if (event == CHANNEL_LINE || event == CHANNEL_OUT_OF_TURN)
            channel->length = 0;
        return event;
    }
}

enum channel_event channel_interruption(struct channel *channel)
{
    struct pollfd polls[] = {{.fd = channel->signal_fd, .events = POLLIN}, {.fd = channel->in_fd, .events = POLLIN}};
    char byte;
    if (poll(polls, 2, 0) < 0)
        return CHANNEL_FAILED;
    if (polls[0].revents)
        return CHANNEL_SIGNAL;
    if (!polls[1].revents)
        return CHANNEL_WAKE;
    return read(channel->in_fd, &byte, 1) > 0 ? CHANNEL_OUT_OF_TURN : CHANNEL_END;
}

static int write_some(struct channel *channel, const char *bytes, size_t *at, size_t length, uint64_t deadline_ms,
                      struct hf_error *err)
{
    uint64_t now_ms = hf_clock_mono_ms();
    struct pollfd polls[] = {{.fd = channel->out_fd, .events = POLLOUT}, {.fd = channel->signal_fd, .events = POLLIN}};
    int ready = poll(polls, 2, now_ms < deadline_ms ? (int)(deadline_ms - now_ms) : 0);
    if (ready < 0 && errno == EINTR)
        return 0;
    if (ready == 0)
        return hf_error_set(err, "channel-failed", ETIMEDOUT, "", "the controller did not read its response for %d s",
                            WRITE_DEADLINE_MS / 1000);
    if (polls[1].revents)
        return hf_error_set(err, "channel-failed", EINTR, "", "asked to end while the controller did not read");
    /* pipe(7): after POLLOUT a write of up to PIPE_BUF bytes does not block. */
    size_t chunk = length - *at < PIPE_BUF ? length - *at : PIPE_BUF;
    ssize_t written = ready < 0 ? -1 : write(channel->out_fd, bytes + *at, chunk);
    if (written < 0 && errno != EINTR && errno != EAGAIN)
        return fail(err, "cannot write the response");
    *at += written > 0 ? (size_t)written : 0;
    return 0;
}

int channel_write(struct channel *channel, const char *line, size_t length, struct hf_error *err)
{
    char *whole = malloc(length + 1);
    if (!whole)
        return hf_error_set(err, "channel-failed", ENOMEM, "", "out of memory");
    memcpy(whole, line, length);
    whole[length] = '\n';
    uint64_t deadline_ms = hf_clock_mono_ms() + WRITE_DEADLINE_MS;
    int status = 0;
    for (size_t at = 0; status == 0 && at < length + 1;)
        status = write_some(channel, whole, &at, length + 1, deadline_ms, err);
    free(whole);
    return status;
}
