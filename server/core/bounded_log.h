/*
 * A bounded file for what a child writes to stderr. Bytes are written by the thread pool, not durably: it is diagnosis,
 * not evidence. Once the bound is reached the rest is counted, and the last line of the file says so.
 *
 * Owned by a session; nothing reads it back.
 */
#ifndef HF_SERVER_CORE_BOUNDED_LOG_H
#define HF_SERVER_CORE_BOUNDED_LOG_H

#include <stddef.h>
#include <uv.h>

#define HF_BOUNDED_LOG_MAX_BYTES (1024 * 1024) /* of the child's, in the file */
#define HF_BOUNDED_LOG_BUFFER                                                                                          \
    (64 * 1024) /* waiting in memory while a write is in flight; more is dropped and counted */

struct hf_bounded_log;

/* <directory>/<label>/stderr.log below dirfd, created on the first byte; dirfd stays open until the log is freed. */
struct hf_bounded_log *hf_bounded_log_new(uv_loop_t *loop, int dirfd, const char *directory, const char *label);
void hf_bounded_log_write(struct hf_bounded_log *log, const char *bytes, size_t length);
/* Writes what is waiting, then frees; `freed` (may be NULL) follows on the loop. */
void hf_bounded_log_free(struct hf_bounded_log *log, void (*freed)(void *context), void *context);

#endif
