/*
 * A contained child process (common/process/child.h) on the loop: pipes as uv streams, the end of the tree as one
 * event. Spawning and reaping run on the thread pool, so that no callback of the loop waits for a fork.
 *
 * Used for executor sessions (session.c) and command strategists (strategist_command.c). It knows nothing about
 * protocols, deadlines or budgets; its owner does.
 */
#ifndef HF_SERVER_CORE_LOOP_CHILD_H
#define HF_SERVER_CORE_LOOP_CHILD_H

#include "common/error.h"
#include "common/process/child.h"

#include <stddef.h>
#include <uv.h>

struct hf_loop_child;

/* One scratch buffer for all reads of a loop: libuv hands it out and takes it back within one callback. */
struct hf_read_scratch {
    char bytes[65536];
};

struct hf_loop_child_events {
    /* The tree runs (err NULL) or never will; after an error nothing else comes. */
    void (*started)(void *context, const struct hf_error *err);
    void (*output)(void *context, const char *bytes, size_t length);      /* from stdout */
    void (*output_end)(void *context);                                    /* stdout is closed */
    void (*diagnostics)(void *context, const char *bytes, size_t length); /* from stderr */
    /* The whole tree is gone and everything that it wrote was delivered; the last event. */
    void (*exited)(void *context, const struct hf_child_report *report);
};

struct hf_loop_child_options {
    char **argv;       /* taken, NULL-terminated, elements owned */
    char **envp;       /* taken, the same */
    char *stdin_bytes; /* taken; written to stdin, which is then closed; NULL leaves stdin open for
                          hf_loop_child_write() */
    size_t stdin_length;
};

/* Starts the spawn. Events never come from inside this call. `events`, `scratch` and `context` outlive the child. */
struct hf_loop_child *hf_loop_child_new(uv_loop_t *loop, struct hf_read_scratch *scratch,
                                        struct hf_loop_child_options *options,
                                        const struct hf_loop_child_events *events, void *context);

/* Queues bytes for stdin; takes `bytes` (free()). A child that does not read costs this memory and nothing else; a
 * child that closed its stdin shows in how it ends, so a failed write is no event. */
void hf_loop_child_write(struct hf_loop_child *child, char *bytes, size_t length);
void hf_loop_child_close_stdin(struct hf_loop_child *child); /* after what is queued */

/* TERM, then KILL for the whole tree after grace_ms; `exited` follows, also when the spawn is still under way. */
void hf_loop_child_stop(struct hf_loop_child *child, uint32_t grace_ms);

/* No event comes any more. A tree that still runs is killed and reaped first; `freed` (may be NULL) follows on the loop
 * when that is done and nothing of the child is left, memory included. */
void hf_loop_child_free(struct hf_loop_child *child, void (*freed)(void *context), void *context);

#endif
