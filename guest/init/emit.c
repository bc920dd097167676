/* Implementation of emit.h. Pure: no system calls, no allocation. */
#include "guest/init/emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void hf_emit_init(struct hf_emit *emit, char *bytes, size_t capacity)
{
    *emit = (struct hf_emit){.bytes = bytes, .capacity = capacity};
}

static void put(struct hf_emit *emit, const void *bytes, size_t length)
{
    if (emit->failed || length > emit->capacity - emit->length) {
        emit->failed = true;
        return;
    }
    memcpy(emit->bytes + emit->length, bytes, length);
    emit->length += length;
}

static void put_text(struct hf_emit *emit, const char *text)
{
    put(emit, text, strlen(text));
}

/* Length of the valid UTF-8 sequence at `in`, 0 when there is none (RFC 3629: no overlong forms, no surrogates). */
static size_t utf8_length(const unsigned char *in, size_t left)
{
    static const struct {
        unsigned char lead_min, lead_max, second_min, second_max, length;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (in[0] < forms[i].lead_min || in[0] > forms[i].lead_max)
            continue;
        if (left < forms[i].length || in[1] < forms[i].second_min || in[1] > forms[i].second_max)
            return 0;
        for (size_t at = 2; at < forms[i].length; at++)
            if ((in[at] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

static void put_quoted(struct hf_emit *emit, const unsigned char *in, size_t length)
{
    put_text(emit, "\"");
    for (size_t i = 0; i < length && !emit->failed;) {
        if (in[i] == '"' || in[i] == '\\') {
            const char escaped[2] = {'\\', (char)in[i++]};
            put(emit, escaped, sizeof escaped);
        } else if (in[i] < 0x20 || in[i] == 0x7f) {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", in[i++]);
            put(emit, escaped, 6);
        } else if (in[i] < 0x80) {
            put(emit, in + i++, 1);
        } else {
            size_t sequence = utf8_length(in + i, length - i);
            if (sequence)
                put(emit, in + i, sequence);
            else
                put_text(emit, "\\ufffd");
            i += sequence ? sequence : 1;
        }
    }
    put_text(emit, "\"");
}

static void begin_value(struct hf_emit *emit, const char *key)
{
    if (emit->need_comma)
        put_text(emit, ",");
    emit->need_comma = true;
    if (!key)
        return;
    put_quoted(emit, (const unsigned char *)key, strlen(key));
    put_text(emit, ":");
}

static void begin_nested(struct hf_emit *emit, const char *key, const char *opener, char closer)
{
    begin_value(emit, key);
    if (emit->depth == HF_EMIT_DEPTH_MAX) {
        emit->failed = true;
        return;
    }
    put_text(emit, opener);
    emit->closers[emit->depth++] = closer;
    emit->need_comma = false;
}

void hf_emit_object_begin(struct hf_emit *emit, const char *key)
{
    begin_nested(emit, key, "{", '}');
}

void hf_emit_array_begin(struct hf_emit *emit, const char *key)
{
    begin_nested(emit, key, "[", ']');
}

void hf_emit_end(struct hf_emit *emit)
{
    if (emit->depth == 0) {
        emit->failed = true;
        return;
    }
    put(emit, &emit->closers[--emit->depth], 1);
    emit->need_comma = true;
}

void hf_emit_int(struct hf_emit *emit, const char *key, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    begin_value(emit, key);
    put_text(emit, digits);
}

void hf_emit_uint(struct hf_emit *emit, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    begin_value(emit, key);
    put_text(emit, digits);
}

void hf_emit_bool(struct hf_emit *emit, const char *key, bool value)
{
    begin_value(emit, key);
    put_text(emit, value ? "true" : "false");
}

void hf_emit_string(struct hf_emit *emit, const char *key, const char *text)
{
    hf_emit_bytes(emit, key, text, strlen(text));
}

void hf_emit_bytes(struct hf_emit *emit, const char *key, const void *text, size_t length)
{
    begin_value(emit, key);
    put_quoted(emit, text, length);
}

void hf_emit_hex(struct hf_emit *emit, const char *key, const void *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *in = bytes;
    begin_value(emit, key);
    put_text(emit, "\"");
    for (size_t i = 0; i < length; i++) {
        const char pair[2] = {digits[in[i] >> 4], digits[in[i] & 15]};
        put(emit, pair, sizeof pair);
    }
    put_text(emit, "\"");
}

void hf_emit_raw(struct hf_emit *emit, const char *key, const char *json, size_t length)
{
    begin_value(emit, key);
    put(emit, json, length);
}

bool hf_emit_done(const struct hf_emit *emit)
{
    return !emit->failed && emit->depth == 0 && emit->length > 0;
}
