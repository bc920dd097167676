/* Implementation of bounded_log.h. */
#include "server/core/bounded_log.h"

#include "common/cleanup.h"
#include "common/durable.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct hf_bounded_log {
    uv_loop_t *loop;
    int dirfd;
    char directory[32];
    char label[32];
    int fd; /* -1 before the first write, and after a failure */
    bool failed;
    bool busy;
    bool closing;
    char *waiting; /* owned, NULL when empty */
    size_t waiting_length;
    char *writing; /* the worker's while busy */
    size_t writing_length;
    uint64_t accepted;
    uint64_t dropped;
    uv_work_t work;
    void (*freed)(void *context);
    void *freed_context;
};

struct hf_bounded_log *hf_bounded_log_new(uv_loop_t *loop, int dirfd, const char *directory, const char *label)
{
    struct hf_bounded_log *log = calloc(1, sizeof *log);
    if (!log)
        abort();
    log->loop = loop;
    log->dirfd = dirfd;
    log->fd = -1;
    log->work.data = log;
    snprintf(log->directory, sizeof log->directory, "%s", directory);
    snprintf(log->label, sizeof log->label, "%s", label);
    return log;
}

static int open_file(const struct hf_bounded_log *log)
{
    cleanup_close int directory_fd = hf_dir_open(log->dirfd, log->directory, true, NULL);
    if (directory_fd < 0)
        return -1;
    cleanup_close int label_fd = hf_dir_open(directory_fd, log->label, true, NULL);
    if (label_fd < 0)
        return -1;
    return openat(label_fd, "stderr.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* On the thread pool. A failure ends the log: diagnosis must never fail a campaign. */
static void write_out(uv_work_t *work)
{
    struct hf_bounded_log *log = work->data;
    if (log->writing_length > 0 && log->fd < 0 && !log->failed)
        log->fd = open_file(log);
    size_t written = 0;
    while (log->fd >= 0 && written < log->writing_length) {
        ssize_t count = write(log->fd, log->writing + written, log->writing_length - written);
        if (count <= 0)
            break;
        written += (size_t)count;
    }
    log->failed = log->failed || written < log->writing_length;
}

static void start_write(struct hf_bounded_log *log);

static void finish(struct hf_bounded_log *log)
{
    void (*freed)(void *context) = log->freed;
    void *context = log->freed_context;
    if (log->fd >= 0)
        close(log->fd);
    free(log->waiting);
    free(log);
    if (freed)
        freed(context);
}

static void on_written(uv_work_t *work, int status)
{
    struct hf_bounded_log *log = work->data;
    (void)status;
    log->busy = false;
    free(STEAL_PTR(log->writing));
    if (log->waiting)
        start_write(log);
    else if (log->closing)
        finish(log);
}

static void start_write(struct hf_bounded_log *log)
{
    log->busy = true;
    log->writing = STEAL_PTR(log->waiting);
    log->writing_length = log->waiting_length;
    log->waiting_length = 0;
    uv_queue_work(log->loop, &log->work, write_out, on_written);
}

static void add_waiting(struct hf_bounded_log *log, const char *bytes, size_t length)
{
    log->waiting = realloc(log->waiting, log->waiting_length + length);
    if (!log->waiting)
        abort();
    memcpy(log->waiting + log->waiting_length, bytes, length);
    log->waiting_length += length;
    if (!log->busy)
        start_write(log);
}

void hf_bounded_log_write(struct hf_bounded_log *log, const char *bytes, size_t length)
{
    size_t room = HF_BOUNDED_LOG_BUFFER - log->waiting_length;
    uint64_t left = HF_BOUNDED_LOG_MAX_BYTES - log->accepted;
    size_t taken = length < room ? length : room;
    taken = taken < left ? taken : (size_t)left;
    log->accepted += taken;
    log->dropped += length - taken;
    if (taken > 0)
        add_waiting(log, bytes, taken);
}

void hf_bounded_log_free(struct hf_bounded_log *log, void (*freed)(void *context), void *context)
{
    log->closing = true;
    log->freed = freed;
    log->freed_context = context;
    if (log->dropped > 0) {
        char note[96];
        int length = snprintf(note, sizeof note, "\n[holdfast: %" PRIu64 " more bytes were not kept]\n", log->dropped);
        log->dropped = 0;
        add_waiting(log, note, (size_t)length);
    } else if (!log->busy) {
        /* Also without anything in flight the end comes from the loop, not from inside this call. */
        start_write(log);
    }
}
