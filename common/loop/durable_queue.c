/*
 * Implementation of durable_queue.h.
 *
 * Ownership across threads: while `busy`, the batch, the journals and `outcome` belong to the worker and `failure` does
 * not change; everything else, and all of it while not busy, belongs to the loop's thread. uv_queue_work() and its
 * completion are the only hand-over, so there is no lock.
 */
#include "common/loop/durable_queue.h"

#include "common/cleanup.h"
#include "common/durable.h"
#include "common/durable_io.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A batch stops growing here, so that one fdatasync never waits for megabytes of a busy run. */
#define BATCH_MAX_BYTES (1024 * 1024)

struct item {
    struct item *next;
    bool is_append;
    hf_durable_done done;
    void *context;
    const char *bytes; /* inside storage, after the name */
    size_t length;
    char storage[]; /* the name, NUL, the bytes */
};

struct open_journal {
    struct open_journal *next;
    struct hf_journal journal;
};

struct hf_durable_queue {
    uv_loop_t *loop;
    int dirfd;
    bool busy;
    bool freeing;
    uv_work_t work;
    struct item *batch;
    struct item *pending;
    struct item **pending_end;
    struct open_journal *journals;
    struct hf_error *outcome; /* of the batch in flight; NULL: it succeeded */
    struct hf_error *failure; /* of the queue; owned; large, so it exists only when it is needed */
    void (*freed)(void *context);
    void *freed_context;
};

static void start_next(struct hf_durable_queue *queue);

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        abort();
    return memory;
}

static struct hf_journal *find_journal(struct hf_durable_queue *queue, const char *name, struct hf_error *err)
{
    for (struct open_journal *open = queue->journals; open; open = open->next) {
        if (strcmp(open->journal.name, name) == 0)
            return &open->journal;
    }
    struct open_journal *open = allocate(sizeof *open);
    if (hf_journal_open(&open->journal, queue->dirfd, name, err) < 0) {
        free(open);
        return NULL;
    }
    open->next = queue->journals;
    queue->journals = open;
    return &open->journal;
}

/* A line with a newline inside would become two. It gets a batch of its own and is refused without taking others along.
 */
static bool is_one_line(const struct item *item)
{
    return item->length > 0 && memchr(item->bytes, '\n', item->length) == NULL;
}

static int perform_appends(struct hf_durable_queue *queue, struct hf_error *err)
{
    if (!is_one_line(queue->batch))
        return hf_error_set(err, "storage-failed", EINVAL, NULL,
                            "%s: expected one journal line that is not empty, found an empty one or a newline inside",
                            queue->batch->storage);
    struct hf_journal *journal = find_journal(queue, queue->batch->storage, err);
    if (!journal)
        return -1;
    if (!queue->batch->next)
        return hf_journal_append(journal, queue->batch->bytes, queue->batch->length, err);
    size_t total = 0, used = 0;
    for (const struct item *item = queue->batch; item; item = item->next)
        total += item->length + 1;
    cleanup_free char *lines = allocate(total);
    for (const struct item *item = queue->batch; item; item = item->next) {
        memcpy(lines + used, item->bytes, item->length);
        used += item->length;
        lines[used++] = '\n';
    }
    return hf_journal_append(journal, lines, used - 1, err); /* which adds the last newline */
}

static int perform_document(const struct hf_durable_queue *queue, struct hf_error *err)
{
    const struct item *item = queue->batch;
    const char *slash = strchr(item->storage, '/');
    if (!slash)
        return hf_document_write(queue->dirfd, item->storage, item->bytes, item->length, err);
    cleanup_free char *directory = strndup(item->storage, (size_t)(slash - item->storage));
    if (!directory)
        abort();
    if (hf_io_check_name(directory, err) < 0) /* ".." would leave the run directory */
        return -1;
    cleanup_close int subdirfd = hf_dir_open(queue->dirfd, directory, true, err);
    if (subdirfd < 0)
        return -1;
    return hf_document_write(subdirfd, slash + 1, item->bytes, item->length, err);
}

/* On a thread of the pool. */
static void perform_batch(uv_work_t *work)
{
    struct hf_durable_queue *queue = work->data;
    if (queue->failure)
        return;
    struct hf_error err = {0};
    int result = queue->batch->is_append ? perform_appends(queue, &err) : perform_document(queue, &err);
    if (result == 0)
        return;
    queue->outcome = allocate(sizeof err);
    *queue->outcome = err;
}

static void batch_performed(uv_work_t *work, int status)
{
    struct hf_durable_queue *queue = work->data;
    (void)status; /* only uv_cancel() makes it non-zero, and nothing else knows this request */
    if (queue->outcome)
        queue->failure = STEAL_PTR(queue->outcome);
    struct item *item = STEAL_PTR(queue->batch);
    while (item) {
        struct item *next = item->next;
        item->done(item->context, queue->failure);
        free(item);
        item = next;
    }
    start_next(queue);
}

/* On a thread of the pool: closing can block like any other call on a file. */
static void close_journals(uv_work_t *work)
{
    struct hf_durable_queue *queue = work->data;
    while (queue->journals) {
        struct open_journal *open = queue->journals;
        queue->journals = open->next;
        hf_journal_close(&open->journal);
        free(open);
    }
}

static void journals_closed(uv_work_t *work, int status)
{
    struct hf_durable_queue *queue = work->data;
    (void)status;
    void (*freed)(void *context) = queue->freed;
    void *context = queue->freed_context;
    free(queue->failure);
    free(queue);
    if (freed)
        freed(context);
}

static bool shares_batch(const struct item *first, const struct item *next)
{
    return first->is_append && next->is_append && strcmp(first->storage, next->storage) == 0 && is_one_line(first) &&
           is_one_line(next);
}

/* Moves the next batch from `pending` to `batch`. After a failure that is everything: it only has to be told. */
static void take_batch(struct hf_durable_queue *queue)
{
    struct item *last = queue->pending;
    size_t bytes = last->length;
    while (last->next && (queue->failure || (shares_batch(queue->pending, last->next) && bytes < BATCH_MAX_BYTES))) {
        last = last->next;
        bytes += last->length;
    }
    queue->batch = queue->pending;
    queue->pending = last->next;
    last->next = NULL;
    if (!queue->pending)
        queue->pending_end = &queue->pending;
}

static void start_next(struct hf_durable_queue *queue)
{
    queue->busy = true;
    int result = 0;
    if (queue->pending) {
        take_batch(queue);
        result = uv_queue_work(queue->loop, &queue->work, perform_batch, batch_performed);
    } else if (queue->freeing) {
        result = uv_queue_work(queue->loop, &queue->work, close_journals, journals_closed);
    } else {
        queue->busy = false;
    }
    if (result != 0)
        abort(); /* libuv documents no failure for a non-NULL callback */
}

static void submit(struct hf_durable_queue *queue, struct item *item)
{
    if (queue->freeing)
        abort();
    *queue->pending_end = item;
    queue->pending_end = &item->next;
    if (!queue->busy)
        start_next(queue);
}

static struct item *new_item(const char *name, const char *bytes, size_t length, hf_durable_done done, void *context)
{
    size_t name_size = strlen(name) + 1;
    struct item *item = allocate(sizeof *item + name_size + length);
    item->done = done;
    item->context = context;
    item->length = length;
    memcpy(item->storage, name, name_size);
    if (length > 0)
        memcpy(item->storage + name_size, bytes, length);
    item->bytes = item->storage + name_size;
    return item;
}

struct hf_durable_queue *hf_durable_queue_new(uv_loop_t *loop, int dirfd)
{
    struct hf_durable_queue *queue = allocate(sizeof *queue);
    queue->loop = loop;
    queue->dirfd = dirfd;
    queue->pending_end = &queue->pending;
    queue->work.data = queue;
    return queue;
}

void hf_durable_queue_append(struct hf_durable_queue *queue, const char *journal_name, const char *line, size_t length,
                             hf_durable_done done, void *context)
{
    struct item *item = new_item(journal_name, line, length, done, context);
    item->is_append = true;
    submit(queue, item);
}

void hf_durable_queue_document(struct hf_durable_queue *queue, const char *name, const char *bytes, size_t length,
                               hf_durable_done done, void *context)
{
    submit(queue, new_item(name, bytes, length, done, context));
}

void hf_durable_queue_free(struct hf_durable_queue *queue, void (*freed)(void *context), void *context)
{
    if (queue->freeing)
        abort();
    queue->freeing = true;
    queue->freed = freed;
    queue->freed_context = context;
    if (!queue->busy)
        start_next(queue);
}
