/* Bounded line splitting; see lines.h. */
#include "executor/scenario/vm/lines.h"

#include <stdlib.h>
#include <string.h>

void hf_lines_init(struct hf_lines *lines, size_t capacity, enum hf_lines_policy policy)
{
    *lines = (struct hf_lines){.bytes = malloc(capacity), .capacity = capacity, .policy = policy};
    if (!lines->bytes)
        abort();
}

void hf_lines_clear(struct hf_lines *lines)
{
    free(lines->bytes);
    *lines = (struct hf_lines){0};
}

static int take_part(struct hf_lines *lines, const char *bytes, size_t count, hf_lines_callback callback, void *context,
                     struct hf_error *err)
{
    if (lines->dropping)
        return 0;
    size_t room = lines->capacity - lines->length;
    size_t taken = count < room ? count : room;
    memcpy(lines->bytes + lines->length, bytes, taken);
    lines->length += taken;
    if (taken == count)
        return 0;
    if (lines->policy == HF_LINES_STRICT)
        return hf_error_set(err, "line-too-long", 0, "",
                            "expected lines of at most %zu bytes, the peer sent a longer one", lines->capacity);
    lines->dropping = true;
    size_t length = lines->length;
    lines->length = 0;
    return callback(context, lines->bytes, length, err);
}

static int finish_line(struct hf_lines *lines, hf_lines_callback callback, void *context, struct hf_error *err)
{
    size_t length = lines->length;
    bool already_reported = lines->dropping;
    lines->length = 0;
    lines->dropping = false;
    return already_reported ? 0 : callback(context, lines->bytes, length, err);
}

int hf_lines_feed(struct hf_lines *lines, const char *bytes, size_t count, hf_lines_callback callback, void *context,
                  struct hf_error *err)
{
    while (count) {
        const char *newline = memchr(bytes, '\n', count);
        size_t part = newline ? (size_t)(newline - bytes) : count;
        if (take_part(lines, bytes, part, callback, context, err))
            return -1;
        if (!newline)
            return 0;
        if (finish_line(lines, callback, context, err))
            return -1;
        bytes += part + 1;
        count -= part + 1;
    }
    return 0;
}
