/*
 * The canonical writer of json.h: every byte of JSON that the project writes or hashes comes from here. Pure; recursion
 * follows the tree, whose depth the reader and the builders' callers bound. What can only be a programming error (two
 * equal keys, a number that json.h did not create, a raw node) aborts: a wrong document must never be written.
 */
#include "common/json.h"

#include "common/json_number.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct output {
    char *bytes;
    size_t used;
    size_t capacity;
};

static void write_value(struct output *out, const cJSON *item);

static void write_bytes(struct output *out, const char *bytes, size_t length)
{
    if (out->capacity - out->used <= length) { /* one byte stays free for the NUL */
        out->capacity = (out->used + length + 1) * 2;
        out->bytes = realloc(out->bytes, out->capacity);
        if (!out->bytes)
            abort();
    }
    memcpy(out->bytes + out->used, bytes, length);
    out->used += length;
}

static void write_text(struct output *out, const char *text)
{
    write_bytes(out, text, strlen(text));
}

static void write_unit(struct output *out, uint32_t utf16_unit)
{
    char escape[sizeof "\\uffff"];
    snprintf(escape, sizeof escape, "\\u%04x", utf16_unit & 0xffffU);
    write_bytes(out, escape, 6);
}

static void write_code_point(struct output *out, uint32_t code_point)
{
    if (code_point >= 0x10000) {
        write_unit(out, 0xd800 + ((code_point - 0x10000) >> 10));
        code_point = 0xdc00 + ((code_point - 0x10000) & 0x3ff);
    }
    write_unit(out, code_point);
}

static const char *short_escape(uint8_t byte)
{
    switch (byte) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        return NULL;
    }
}

static size_t plain_run(const char *text)
{
    size_t length = 0;
    while (text[length] >= 0x20 && text[length] < 0x7f && text[length] != '"' && text[length] != '\\')
        length++;
    return length;
}

static void write_string(struct output *out, const char *text)
{
    write_bytes(out, "\"", 1);
    const char *end = text + strlen(text);
    while (text < end) {
        size_t plain = plain_run(text);
        write_bytes(out, text, plain);
        text += plain;
        if (text == end)
            break;
        uint32_t code_point = 0xfffd; /* stays for a byte that is not UTF-8 */
        const char *escape = short_escape((uint8_t)*text);
        size_t size = hf_utf8_decode((const uint8_t *)text, (size_t)(end - text), &code_point);
        if (escape)
            write_bytes(out, escape, 2);
        else
            write_code_point(out, code_point);
        text += size ? size : 1;
    }
    write_bytes(out, "\"", 1);
}

static void write_number(struct output *out, const char *source)
{
    char text[HF_JSON_NUMBER_SIZE];
    int64_t exact;
    double nearest;
    if (!source)
        abort();
    if (hf_json_text_to_int64(source, &exact))
        snprintf(text, sizeof text, "%" PRId64, exact);
    else if (hf_json_text_to_double(source, &nearest))
        hf_json_double_to_text(nearest, text);
    else
        abort();
    write_text(out, text);
}

/* UTF-8 sorts bytewise as its code points do. */
static int compare_members(const void *a, const void *b)
{
    const cJSON *const *left = a, *const *right = b;
    return strcmp((*left)->string, (*right)->string);
}

static void write_object(struct output *out, const cJSON *object)
{
    size_t count = 0;
    for (const cJSON *member = object->child; member; member = member->next)
        count++;
    const cJSON **members = calloc(count ? count : 1, sizeof members[0]);
    if (!members)
        abort();
    count = 0;
    for (const cJSON *member = object->child; member; member = member->next)
        members[count++] = member;
    qsort(members, count, sizeof members[0], compare_members);
    write_bytes(out, "{", 1);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            if (compare_members(&members[i - 1], &members[i]) == 0)
                abort();
            write_bytes(out, ",", 1);
        }
        write_string(out, members[i]->string);
        write_bytes(out, ":", 1);
        write_value(out, members[i]);
    }
    write_bytes(out, "}", 1);
    free(members);
}

static void write_array(struct output *out, const cJSON *array)
{
    write_bytes(out, "[", 1);
    for (const cJSON *element = array->child; element; element = element->next) {
        if (element != array->child)
            write_bytes(out, ",", 1);
        write_value(out, element);
    }
    write_bytes(out, "]", 1);
}

static void write_value(struct output *out, const cJSON *item)
{
    if (cJSON_IsObject(item))
        write_object(out, item);
    else if (cJSON_IsArray(item))
        write_array(out, item);
    else if (cJSON_IsString(item))
        write_string(out, item->valuestring);
    else if (cJSON_IsNumber(item))
        write_number(out, item->valuestring);
    else if (cJSON_IsBool(item))
        write_text(out, cJSON_IsTrue(item) ? "true" : "false");
    else if (cJSON_IsNull(item))
        write_text(out, "null");
    else
        abort();
}

char *hf_json_canonical(const cJSON *item, size_t *length)
{
    struct output out = {0};
    write_value(&out, item);
    out.bytes[out.used] = '\0';
    if (length)
        *length = out.used;
    return out.bytes;
}
