/*
 * JSON writer of the guest: appends to a buffer of fixed size, never allocates. Used by the agent for responses and by
 * probes for results and events.
 *
 * A writer that runs out of room, is nested too deep, or is closed once too often becomes `failed` and ignores all
 * further calls; whoever owns it looks at the flag once, at the end. Strings are cut to nothing else than valid UTF-8:
 * each byte that is not becomes U+FFFD, so that a line is always JSON whatever the guest's files contain.
 *
 * `key` is NULL for an element of an array and for the outermost value.
 */
#ifndef HF_GUEST_INIT_EMIT_H
#define HF_GUEST_INIT_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF_EMIT_DEPTH_MAX 16

struct hf_emit {
    char *bytes; /* owned by whoever called hf_emit_init() */
    size_t capacity;
    size_t length; /* not NUL-terminated */
    unsigned depth;
    char closers[HF_EMIT_DEPTH_MAX];
    bool need_comma;
    bool failed;
};

void hf_emit_init(struct hf_emit *emit, char *bytes, size_t capacity);
void hf_emit_object_begin(struct hf_emit *emit, const char *key);
void hf_emit_array_begin(struct hf_emit *emit, const char *key);
void hf_emit_end(struct hf_emit *emit); /* closes the innermost object or array */
void hf_emit_int(struct hf_emit *emit, const char *key, int64_t value);
void hf_emit_uint(struct hf_emit *emit, const char *key, uint64_t value);
void hf_emit_bool(struct hf_emit *emit, const char *key, bool value);
void hf_emit_string(struct hf_emit *emit, const char *key, const char *text);
void hf_emit_bytes(struct hf_emit *emit, const char *key, const void *text, size_t length); /* as a string */
void hf_emit_hex(struct hf_emit *emit, const char *key, const void *bytes, size_t length);
/* Copies text that is already one JSON value. */
void hf_emit_raw(struct hf_emit *emit, const char *key, const char *json, size_t length);
/* True when everything was closed and fitted. */
bool hf_emit_done(const struct hf_emit *emit);

#endif
