/*
 * Bounded lines out of a byte stream whose other end is hostile (QMP, control channel, serial console, QEMU's stderr).
 * Owned by one VM and used by its thread only. It never grows: what to do with a line that does not fit is the
 * owner's decision, told by `policy`.
 */
#ifndef HF_SCENARIO_VM_LINES_H
#define HF_SCENARIO_VM_LINES_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>

enum hf_lines_policy {
    HF_LINES_STRICT, /* a longer line is an error: the peer broke its protocol */
    HF_LINES_CUT,    /* a longer line is reported once, cut to the capacity; its rest is dropped */
};

/* `line` has no '\n' and is not NUL-terminated; `length` may be 0. -1 ends the feeding with the callback's error. */
typedef int (*hf_lines_callback)(void *context, const char *line, size_t length, struct hf_error *err);

struct hf_lines {
    char *bytes; /* owned */
    size_t capacity;
    size_t length;
    bool dropping; /* inside the rest of a line that was cut */
    enum hf_lines_policy policy;
};

void hf_lines_init(struct hf_lines *lines, size_t capacity, enum hf_lines_policy policy);
void hf_lines_clear(struct hf_lines *lines);

/* Takes `count` bytes and calls back for each line they complete. Code "line-too-long" under HF_LINES_STRICT. */
int hf_lines_feed(struct hf_lines *lines, const char *bytes, size_t count, hf_lines_callback callback, void *context,
                  struct hf_error *err);

#endif
