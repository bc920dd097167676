/*
 * Reader of the host's requests, and a well-formedness check of what probes hand over. The host is trusted by the
 * guest, yet a request is read as strictly as any other: exact syntax, ASCII, no repeated key, integers only, every
 * bound of guest/protocol.h. Pure: no system calls, no allocation.
 */
#ifndef HF_GUEST_INIT_SCAN_H
#define HF_GUEST_INIT_SCAN_H

#include "guest/protocol.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hf_field_type { HF_FIELD_STRING, HF_FIELD_INT, HF_FIELD_BOOL };

struct hf_field {
    const char *name; /* points into the scanned line */
    enum hf_field_type type;
    int64_t integer;
    bool boolean;
    const char *text; /* points into the scanned line, NUL-terminated */
};

struct hf_fields {
    struct hf_field list[HF_GUEST_ARGS_MAX];
    size_t count;
};

struct hf_request {
    struct hf_fields members; /* everything but "args" */
    struct hf_fields args;
    bool has_args;
};

/* Reads one request. `line` holds `length` bytes and room for one more; strings are decoded in place, so the line must
 * outlive the request. Returns NULL, or a sentence that says what is wrong. */
const char *hf_scan_request(char *line, size_t length, struct hf_request *request);

const struct hf_field *hf_fields_find(const struct hf_fields *fields, const char *name); /* NULL when absent */

/* True when the text is exactly one JSON value, nested at most HF_EMIT_DEPTH_MAX deep, without a control byte. */
bool hf_scan_is_json(const char *text, size_t length);

#endif
