/*
 * Durable writes off the loop: one queue per run directory carries journal appends and document writes to the uv thread
 * pool (common/durable.h does the writing) and brings the outcomes back to the loop.
 *
 * Order. Items of one queue are performed strictly in the order of submission, one batch in flight at a time. A batch
 * is either one document, or the run of consecutive appends to one journal that had gathered when the batch began:
 * these share one write and one fdatasync(2) (group commit), and succeed or fail together. Queues do not wait for each
 * other.
 *
 * Failure. The first item that fails fails the queue: that item and every later one, also those submitted afterwards,
 * complete with the same error and nothing more is written. There is no way back: the caller ends the run (category
 * controller-storage-failure) and frees the queue.
 *
 * Threading. Every function is called on the loop's thread and returns at once; every callback runs on the loop's
 * thread, never from inside one of these functions. Callbacks may submit further items and may free the queue.
 *
 * Memory. A queue is a few hundred bytes and two hundred more for each journal that it has open (kept open, one
 * descriptor each). An item is its copy of the bytes plus about 100 bytes, until its callback has returned. Out of
 * memory aborts. The number of items is not bounded here: a caller waits for the outcome of what it submitted before it
 * accepts more work for that run.
 */
#ifndef HF_COMMON_LOOP_DURABLE_QUEUE_H
#define HF_COMMON_LOOP_DURABLE_QUEUE_H

#include "common/error.h"

#include <stddef.h>
#include <uv.h>

struct hf_durable_queue;

/* Outcome of one item. err is NULL when it is durable; else borrowed for the duration of the call, with err->code
 * "storage-failed". Called exactly once for each item, in order of submission. */
typedef void (*hf_durable_done)(void *context, const struct hf_error *err);

/* A queue for the directory dirfd, which stays the caller's and must stay open until `freed` is called. Nothing is
 * opened or written yet. Never NULL. */
struct hf_durable_queue *hf_durable_queue_new(uv_loop_t *loop, int dirfd);

/* Appends one line, given without its newline, to a journal that is opened (or created) on first use. The line is
 * copied; it must not be empty nor contain control characters, which fails the queue like a disk error does. */
void hf_durable_queue_append(struct hf_durable_queue *queue, const char *journal_name, const char *line, size_t length,
                             hf_durable_done done, void *context);

/* Replaces a document atomically. `name` may have one subdirectory ("checkpoints/3.json"), which is created 0700 when
 * it is missing. The bytes are copied. */
void hf_durable_queue_document(struct hf_durable_queue *queue, const char *name, const char *bytes, size_t length,
                               hf_durable_done done, void *context);

/* Frees the queue once everything submitted has completed and the journals are closed; then calls freed(context),
 * unless it is NULL. Nothing may be submitted after this call (that aborts). */
void hf_durable_queue_free(struct hf_durable_queue *queue, void (*freed)(void *context), void *context);

#endif
