/*
 * hf_child_run(): one contained child from start to end, for programs without a loop (child.h).
 *
 * One poll(2) loop over the control socket, the child's stdio and the caller's interrupt descriptor. Nothing here waits
 * for the child itself: a child that does not read, does not write, floods, or closes its stdio and lives on meets the
 * same timeout. After the report nothing of the tree is alive, so what the pipes hold is all that is ever read.
 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/process/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define READ_CHUNK_BYTES         65536
#define DEFAULT_POLL_INTERVAL_MS 100
#define READER_JOIN_MS           5000 /* draining after the report, while some foreign process keeps writing */
/* A supervisor keeps its own deadlines; one that is this late was stopped or starved, and is killed. */
#define SUPERVISOR_LATE_MS 5000

/* Where the bytes of stdout or stderr go. */
struct stream {
    int *fd; /* the caller's end in struct hf_child; -1 once it ended */
    char **bytes;
    size_t *length;
    uint64_t *total;
    size_t capacity;
    size_t limit;
    int file_fd; /* -1: none */
    uint64_t file_bytes;
};

struct run {
    const struct hf_child_run_options *options;
    struct hf_child_output *output;
    struct hf_child child;
    struct stream streams[2];
    size_t stdin_sent;
    bool failed; /* the host failed: *err says how, the child is being killed */
    uint64_t timeout_at_ms;
    uint64_t poll_at_ms;
    uint64_t late_at_ms; /* when the supervisor should have reported; UINT64_MAX before a stop */
    struct hf_error *err;
};

static void stop(struct run *run, uint32_t grace_ms)
{
    uint64_t late_at_ms = hf_clock_mono_ms() + grace_ms + HF_CHILD_REAP_DEADLINE_MS + SUPERVISOR_LATE_MS;

    if (late_at_ms < run->late_at_ms)
        run->late_at_ms = late_at_ms;
    hf_child_stop(&run->child, grace_ms);
}

/* The first failure counts; what follows from it does not hide it. */
static void fail(struct run *run, const char *code, const char *what)
{
    int number = errno;

    if (!run->failed)
        hf_error_set(run->err, code, number, "", "%s: %s; the child process was stopped", what, strerror(number));
    run->failed = true;
    stop(run, 0);
}

/* ---- output ---- */

static int keep(struct stream *stream, const char *bytes, size_t length)
{
    size_t room = stream->limit - *stream->length;

    if (length > room)
        length = room;
    if (*stream->length + length + 1 > stream->capacity) {
        size_t capacity =
            stream->capacity * 2 > *stream->length + length + 1 ? stream->capacity * 2 : *stream->length + length + 1;
        char *grown = realloc(*stream->bytes, capacity);
        if (!grown)
            return -1;
        *stream->bytes = grown;
        stream->capacity = capacity;
    }
    memcpy(*stream->bytes + *stream->length, bytes, length);
    *stream->length += length;
    (*stream->bytes)[*stream->length] = '\0';
    return 0;
}

static int store(struct run *run, struct stream *stream, const char *bytes, size_t length)
{
    uint64_t room = run->options->file_limit - stream->file_bytes;

    if (stream->file_fd < 0)
        return 0;
    if (length > room) {
        length = (size_t)room;
        run->output->file_truncated = true;
    }
    while (length > 0) {
        ssize_t written = write(stream->file_fd, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        stream->file_bytes += (uint64_t)written;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

static void stream_close(const struct stream *stream)
{
    if (*stream->fd >= 0)
        close(*stream->fd);
    *stream->fd = -1;
}

/* Reads one chunk. Returns false when there is nothing to read now or ever again. */
static bool stream_read(struct run *run, struct stream *stream)
{
    char chunk[READ_CHUNK_BYTES];
    ssize_t length;

    if (*stream->fd < 0)
        return false;
    do {
        length = read(*stream->fd, chunk, sizeof chunk);
    } while (length < 0 && errno == EINTR);
    if (length < 0 && errno == EAGAIN)
        return false;
    if (length <= 0) {
        stream_close(stream);
        return false;
    }
    *stream->total += (uint64_t)length;
    if (run->failed)
        return true;
    if (keep(stream, chunk, (size_t)length) < 0)
        fail(run, "child-output-failed", "cannot keep the output of a child process in memory");
    else if (store(run, stream, chunk, (size_t)length) < 0)
        fail(run, "child-output-failed", "cannot write the output of a child process to its log file");
    return true;
}

/* Whoever still holds the pipes after the report is a foreign process: it is never waited for. */
static void drain(struct run *run)
{
    uint64_t deadline_ms = hf_clock_mono_ms() + READER_JOIN_MS;

    for (unsigned i = 0; i < 2; i++) {
        while (stream_read(run, &run->streams[i]) && hf_clock_mono_ms() < deadline_ms)
            continue;
        stream_close(&run->streams[i]);
    }
}

/* ---- input ---- */

/* write(2) to a pipe whose reader may be gone, whatever the program does about SIGPIPE: blocked for this thread, and
 * taken back if it was raised by us. */
static ssize_t write_pipe(int fd, const void *bytes, size_t length)
{
    const struct timespec at_once = {0};
    sigset_t sigpipe, before, pending;

    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
    ssize_t written = write(fd, bytes, length);
    int saved_errno = errno;
    if (written < 0 && saved_errno == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&sigpipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved_errno;
    return written;
}

static void feed_stdin(struct run *run)
{
    size_t left = run->options->stdin_length - run->stdin_sent;
    bool done = left == 0;

    if (run->child.stdin_fd < 0)
        return;
    if (!done) {
        const char *next = (const char *)run->options->stdin_bytes + run->stdin_sent;
        ssize_t written = write_pipe(run->child.stdin_fd, next, left);
        if (written > 0)
            run->stdin_sent += (size_t)written;
        /* EPIPE is the child's right: it need not read. */
        done = run->stdin_sent == run->options->stdin_length || (written < 0 && errno != EAGAIN && errno != EINTR);
    }
    if (done) {
        close(run->child.stdin_fd);
        run->child.stdin_fd = -1;
    }
}

/* ---- the loop ---- */

static void check_clocks(struct run *run)
{
    uint64_t now_ms = hf_clock_mono_ms();
    uint32_t interval_ms = run->options->poll_interval_ms ? run->options->poll_interval_ms : DEFAULT_POLL_INTERVAL_MS;

    if (now_ms >= run->timeout_at_ms) {
        run->output->timed_out = true;
        run->timeout_at_ms = UINT64_MAX;
        stop(run, HF_CHILD_TERM_GRACE_MS);
    }
    if (now_ms >= run->poll_at_ms) {
        run->poll_at_ms = now_ms + interval_ms;
        if (run->options->poll(run->options->poll_context)) {
            run->output->stopped_by_poll = true;
            run->poll_at_ms = UINT64_MAX;
            stop(run, HF_CHILD_TERM_GRACE_MS);
        }
    }
    if (now_ms >= run->late_at_ms) {
        run->late_at_ms = UINT64_MAX; /* its end closes the control socket: reported as supervisor_lost */
        hf_child_kill_supervisor(&run->child);
    }
}

static int next_timeout_ms(const struct run *run)
{
    uint64_t now_ms = hf_clock_mono_ms(), at_ms = run->timeout_at_ms;

    if (run->poll_at_ms < at_ms)
        at_ms = run->poll_at_ms;
    if (run->late_at_ms < at_ms)
        at_ms = run->late_at_ms;
    if (at_ms <= now_ms)
        return 0;
    return at_ms - now_ms < 60000 ? (int)(at_ms - now_ms) : 60000;
}

/* Waits once and serves whatever is ready. Returns true when the report is there or can never be. */
static bool turn(struct run *run)
{
    bool interruptible = run->options->interrupt_fd >= 0 && !run->output->interrupted;
    struct pollfd fds[5] = {
        {.fd = run->child.control_fd, .events = POLLIN},
        {.fd = run->child.stdin_fd, .events = POLLOUT},
        {.fd = run->child.stdout_fd, .events = POLLIN},
        {.fd = run->child.stderr_fd, .events = POLLIN},
        {.fd = interruptible ? run->options->interrupt_fd : -1, .events = POLLIN},
    };

    if (poll(fds, 5, next_timeout_ms(run)) < 0) {
        if (errno != EINTR) {
            fail(run, "child-run-failed", "cannot wait for a child process");
            return true;
        }
        memset(fds, 0, sizeof fds);
    }
    if (fds[1].revents != 0)
        feed_stdin(run);
    for (unsigned i = 0; i < 2; i++) {
        if (fds[2 + i].revents != 0)
            stream_read(run, &run->streams[i]);
    }
    if (fds[4].revents != 0) {
        run->output->interrupted = true;
        stop(run, 0);
    }
    if (fds[0].revents != 0) {
        struct hf_error ignored;
        int got = hf_child_read_report(&run->child, &run->output->report, run->failed ? &ignored : run->err);
        run->failed = run->failed || got < 0;
        return got != 0;
    }
    check_clocks(run);
    return false;
}

static int stream_init(struct stream *stream)
{
    *stream->bytes = calloc(1, 1); /* "" for callers that print it */
    stream->capacity = 1;
    return *stream->bytes ? 0 : -1;
}

int hf_child_run(const struct hf_child_spec *spec, const struct hf_child_run_options *options,
                 struct hf_child_output *output, struct hf_error *err)
{
    struct run run = {.options = options, .output = output, .late_at_ms = UINT64_MAX, .err = err};

    *output = (struct hf_child_output){0};
    run.streams[0] = (struct stream){.fd = &run.child.stdout_fd,
                                     .bytes = &output->stdout_bytes,
                                     .length = &output->stdout_length,
                                     .total = &output->stdout_total,
                                     .limit = options->stdout_limit,
                                     .file_fd = options->stdout_file_fd};
    run.streams[1] = (struct stream){.fd = &run.child.stderr_fd,
                                     .bytes = &output->stderr_bytes,
                                     .length = &output->stderr_length,
                                     .total = &output->stderr_total,
                                     .limit = options->stderr_limit,
                                     .file_fd = options->stderr_file_fd};
    if (stream_init(&run.streams[0]) < 0 || stream_init(&run.streams[1]) < 0) {
        hf_child_output_clear(output);
        return hf_error_set(err, "child-output-failed", ENOMEM, "",
                            "cannot keep the output of a child process: no memory");
    }
    if (hf_child_start(spec, &run.child, err) < 0) {
        hf_child_output_clear(output);
        return -1;
    }
    uint64_t now_ms = hf_clock_mono_ms();
    run.timeout_at_ms = options->timeout_ms == 0 || options->timeout_ms > UINT64_MAX - now_ms
                            ? UINT64_MAX
                            : now_ms + options->timeout_ms;
    run.poll_at_ms = options->poll ? now_ms : UINT64_MAX;
    while (!turn(&run))
        continue;
    drain(&run);
    hf_child_clear(&run.child);
    return run.failed ? -1 : 0;
}

void hf_child_output_clear(struct hf_child_output *output)
{
    free(output->stdout_bytes);
    free(output->stderr_bytes);
    *output = (struct hf_child_output){0};
}
