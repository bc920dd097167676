/* Implementation of loop_child.h. */
#include "server/core/loop_child.h"
#include "server/core/loop_meter.h"

#include "common/catalog/profile.h"
#include "common/cleanup.h"
#include "common/protocol/protocol.h"

#include <string.h>

enum stream { STREAM_STDIN, STREAM_STDOUT, STREAM_STDERR, STREAM_COUNT };

struct hf_loop_child {
    uv_loop_t *loop;
    struct hf_read_scratch *scratch;
    struct hf_loop_child_options options;
    const struct hf_loop_child_events *events; /* NULL once the owner has let go */
    void *context;
    struct hf_child process;
    struct hf_child_report report;
    struct hf_error spawn_error;
    uv_work_t work;
    uv_pipe_t pipes[STREAM_COUNT];
    uv_poll_t control;
    uv_timer_t timer; /* waits for the report after the end of stdout, then for the pipes after the report */
    unsigned open_handles;
    bool ended[STREAM_COUNT]; /* stdout, stderr: end of file seen */
    bool output_end_given;
    bool running; /* the spawn succeeded and the report is not there yet */
    bool reported;
    bool delivered; /* `exited` was given, or nobody wants it */
    bool spawning;
    bool stop_asked; /* while spawning */
    uint32_t stop_grace_ms;
    bool closing;
    void (*freed)(void *context);
    void *freed_context;
};

/* A program that could not be executed closes its pipes a moment before its report says so; the owner hears of a closed
 * stdout only when the report does not come within this time. */
#define REPORT_AFTER_OUTPUT_MS 500

struct write_request {
    uv_write_t request;
    char *bytes;
};

static void start_closing(struct hf_loop_child *child);

static void finish(struct hf_loop_child *child)
{
    void (*freed)(void *context) = child->freed;
    void *context = child->freed_context;
    hf_argv_free(child->options.argv);
    hf_argv_free(child->options.envp);
    free(child->options.stdin_bytes);
    free(child);
    if (freed)
        freed(context);
}

static void reap(uv_work_t *work)
{
    struct hf_loop_child *child = work->data;
    hf_child_clear(&child->process);
}

static void on_reaped(uv_work_t *work, int status)
{
    HF_LOOP_CALLBACK(work->loop);
    (void)status;
    finish(work->data);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct hf_loop_child *child = handle->data;
    if (--child->open_handles == 0)
        uv_queue_work(child->loop, &child->work, reap, on_reaped);
}

static void start_closing(struct hf_loop_child *child)
{
    if (child->closing)
        return;
    child->closing = true;
    for (int i = 0; i < STREAM_COUNT; i++)
        if (!uv_is_closing((uv_handle_t *)&child->pipes[i]))
            uv_close((uv_handle_t *)&child->pipes[i], on_handle_closed);
    uv_close((uv_handle_t *)&child->control, on_handle_closed);
    uv_close((uv_handle_t *)&child->timer, on_handle_closed);
}

static void give_output_end(struct hf_loop_child *child)
{
    if (child->output_end_given || !child->events)
        return;
    child->output_end_given = true;
    child->events->output_end(child->context);
}

/* Gives `exited` once the tree is gone and both streams are read to their end; closes once the owner has let go. */
static void check_end(struct hf_loop_child *child)
{
    if (!child->reported)
        return;
    if (!child->events) {
        start_closing(child);
        return;
    }
    if (child->delivered || !child->ended[STREAM_STDOUT] || !child->ended[STREAM_STDERR])
        return;
    child->delivered = true;
    uv_timer_stop(&child->timer);
    if (child->report.started)
        give_output_end(child);
    if (!child->events) /* let go from inside the callback */
        start_closing(child);
    else
        child->events->exited(child->context, &child->report);
}

static void on_report_late(uv_timer_t *timer)
{
    HF_LOOP_CALLBACK(timer->loop);
    give_output_end(timer->data);
}

static void on_reader_join(uv_timer_t *timer)
{
    HF_LOOP_CALLBACK(timer->loop);
    struct hf_loop_child *child = timer->data;
    for (int i = STREAM_STDOUT; i < STREAM_COUNT; i++) {
        uv_read_stop((uv_stream_t *)&child->pipes[i]);
        child->ended[i] = true;
    }
    check_end(child);
}

static void on_control(uv_poll_t *poll, int status, int readable)
{
    HF_LOOP_CALLBACK(poll->loop);
    struct hf_loop_child *child = poll->data;
    (void)status;
    (void)readable;
    struct hf_error err = {0};
    int got = hf_child_read_report(&child->process, &child->report, &err);
    if (got == 0)
        return;
    if (got < 0)
        child->report = (struct hf_child_report){.started = true, .supervisor_lost = true};
    uv_poll_stop(poll);
    child->running = false;
    child->reported = true;
    uv_timer_start(&child->timer, on_reader_join, HF_TIME_READER_JOIN * 1000, 0);
    check_end(child);
}

static void give_scratch(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct hf_loop_child *child = handle->data;
    (void)suggested;
    *buffer = uv_buf_init(child->scratch->bytes, sizeof child->scratch->bytes);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    HF_LOOP_CALLBACK(stream->loop);
    struct hf_loop_child *child = stream->data;
    enum stream which = stream == (uv_stream_t *)&child->pipes[STREAM_STDOUT] ? STREAM_STDOUT : STREAM_STDERR;
    if (count == 0)
        return;
    if (count > 0) {
        if (child->events && which == STREAM_STDOUT)
            child->events->output(child->context, buffer->base, (size_t)count);
        else if (child->events)
            child->events->diagnostics(child->context, buffer->base, (size_t)count);
        return;
    }
    uv_read_stop(stream);
    child->ended[which] = true;
    if (which == STREAM_STDOUT && !child->reported)
        uv_timer_start(&child->timer, on_report_late, REPORT_AFTER_OUTPUT_MS, 0);
    check_end(child);
}

static void open_pipe(struct hf_loop_child *child, enum stream which, int *fd)
{
    uv_pipe_open(&child->pipes[which], STEAL_FD(*fd));
    if (which != STREAM_STDIN)
        uv_read_start((uv_stream_t *)&child->pipes[which], give_scratch, on_read);
}

static void spawn(uv_work_t *work)
{
    struct hf_loop_child *child = work->data;
    struct hf_child_spec spec = {
        .argv = (const char *const *)child->options.argv,
        .envp = (const char *const *)child->options.envp,
        .stdin_fd = HF_CHILD_PIPE,
        .stdout_fd = HF_CHILD_PIPE,
        .stderr_fd = HF_CHILD_PIPE,
        .extra_fds = {-1, -1, -1, -1},
    };
    hf_child_start(&spec, &child->process, &child->spawn_error);
}

static void init_handles(struct hf_loop_child *child)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        uv_pipe_init(child->loop, &child->pipes[i], 0);
        child->pipes[i].data = child;
    }
    uv_timer_init(child->loop, &child->timer);
    uv_poll_init(child->loop, &child->control, child->process.control_fd);
    child->timer.data = child->control.data = child;
    child->open_handles = STREAM_COUNT + 2;
}

static void on_spawned(uv_work_t *work, int status)
{
    HF_LOOP_CALLBACK(work->loop);
    struct hf_loop_child *child = work->data;
    (void)status;
    child->spawning = false;
    if (child->spawn_error.code) {
        struct hf_error err = child->spawn_error;
        const struct hf_loop_child_events *events = child->events;
        void *context = child->context;
        child->delivered = true;
        if (events)
            events->started(context, &err);
        else
            finish(child);
        return;
    }
    init_handles(child);
    child->running = true;
    open_pipe(child, STREAM_STDIN, &child->process.stdin_fd);
    open_pipe(child, STREAM_STDOUT, &child->process.stdout_fd);
    open_pipe(child, STREAM_STDERR, &child->process.stderr_fd);
    uv_poll_start(&child->control, UV_READABLE | UV_DISCONNECT, on_control);
    if (!child->events)
        hf_child_stop(&child->process, 0);
    else if (child->stop_asked)
        hf_child_stop(&child->process, child->stop_grace_ms);
    if (child->options.stdin_bytes) {
        hf_loop_child_write(child, STEAL_PTR(child->options.stdin_bytes), child->options.stdin_length);
        hf_loop_child_close_stdin(child);
    }
    if (child->events)
        child->events->started(child->context, NULL);
}

struct hf_loop_child *hf_loop_child_new(uv_loop_t *loop, struct hf_read_scratch *scratch,
                                        struct hf_loop_child_options *options,
                                        const struct hf_loop_child_events *events, void *context)
{
    struct hf_loop_child *child = calloc(1, sizeof *child);
    if (!child)
        abort();
    child->loop = loop;
    child->scratch = scratch;
    child->options.argv = STEAL_PTR(options->argv);
    child->options.envp = STEAL_PTR(options->envp);
    child->options.stdin_bytes = STEAL_PTR(options->stdin_bytes);
    child->options.stdin_length = options->stdin_length;
    child->events = events;
    child->context = context;
    child->work.data = child;
    child->spawning = true;
    hf_child_init(&child->process);
    uv_queue_work(loop, &child->work, spawn, on_spawned);
    return child;
}

static void on_written(uv_write_t *request, int status)
{
    struct write_request *writing = request->data;
    (void)status;
    free(writing->bytes);
    free(writing);
}

void hf_loop_child_write(struct hf_loop_child *child, char *bytes, size_t length)
{
    struct write_request *writing = calloc(1, sizeof *writing);
    if (!writing)
        abort();
    writing->bytes = bytes;
    writing->request.data = writing;
    uv_buf_t buffer = uv_buf_init(bytes, (unsigned)length);
    if (!child->running || uv_is_closing((uv_handle_t *)&child->pipes[STREAM_STDIN]) ||
        uv_write(&writing->request, (uv_stream_t *)&child->pipes[STREAM_STDIN], &buffer, 1, on_written) != 0)
        on_written(&writing->request, UV_EPIPE);
}

static void on_stdin_flushed(uv_shutdown_t *request, int status)
{
    struct hf_loop_child *child = request->handle->data;
    (void)status;
    free(request);
    if (!uv_is_closing((uv_handle_t *)&child->pipes[STREAM_STDIN]))
        uv_close((uv_handle_t *)&child->pipes[STREAM_STDIN], on_handle_closed);
}

void hf_loop_child_close_stdin(struct hf_loop_child *child)
{
    uv_shutdown_t *request = calloc(1, sizeof *request);
    if (!request)
        abort();
    if (!child->running || uv_is_closing((uv_handle_t *)&child->pipes[STREAM_STDIN]) ||
        uv_shutdown(request, (uv_stream_t *)&child->pipes[STREAM_STDIN], on_stdin_flushed) != 0)
        free(request);
}

void hf_loop_child_stop(struct hf_loop_child *child, uint32_t grace_ms)
{
    if (child->running)
        hf_child_stop(&child->process, grace_ms);
    child->stop_asked = child->spawning;
    child->stop_grace_ms = grace_ms;
}

void hf_loop_child_free(struct hf_loop_child *child, void (*freed)(void *context), void *context)
{
    child->events = NULL;
    child->freed = freed;
    child->freed_context = context;
    if (child->spawning)
        return; /* on_spawned() goes on */
    if (child->spawn_error.code) {
        /* Nothing runs; a trip over the thread pool keeps `freed` out of this call. */
        uv_queue_work(child->loop, &child->work, reap, on_reaped);
        return;
    }
    hf_loop_child_stop(child, 0);
    check_end(child);
}
