/* Implementation of scan.h. */
#include "guest/init/scan.h"

#include "guest/init/emit.h"

#include <stdlib.h>
#include <string.h>

struct cursor {
    char *at;
    char *end; /* *end is NUL while a request is scanned */
    const char *problem;
};

static bool fail(struct cursor *cursor, const char *problem)
{
    if (!cursor->problem)
        cursor->problem = problem;
    return false;
}

static void skip_space(struct cursor *cursor)
{
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\t' || *cursor->at == '\r'))
        cursor->at++;
}

static bool take(struct cursor *cursor, char wanted)
{
    skip_space(cursor);
    if (cursor->at == cursor->end || *cursor->at != wanted)
        return false;
    cursor->at++;
    return true;
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

static bool take_four_hex(struct cursor *cursor, unsigned *unit)
{
    *unit = 0;
    if (cursor->end - cursor->at < 4)
        return fail(cursor, "expected four hexadecimal digits after \\u");
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*cursor->at++);
        if (digit < 0)
            return fail(cursor, "expected four hexadecimal digits after \\u");
        *unit = *unit << 4 | (unsigned)digit;
    }
    return true;
}

static char *put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    *out++ = (char)(lead[tail] | code >> (6 * tail));
    while (tail-- > 0)
        *out++ = (char)(0x80 | (code >> (6 * tail) & 0x3f));
    return out;
}

/* After "\u": a code point, of two units above U+FFFF. The decoded form is never longer than the escape. */
static bool decode_unicode(struct cursor *cursor, char **out)
{
    unsigned unit, low;
    if (!take_four_hex(cursor, &unit))
        return false;
    if (unit == 0)
        return fail(cursor, "U+0000 is not allowed in a string");
    if (unit >= 0xd800 && unit <= 0xdfff) {
        if (unit > 0xdbff || cursor->end - cursor->at < 6 || cursor->at[0] != '\\' || cursor->at[1] != 'u')
            return fail(cursor, "lone surrogate in a string");
        cursor->at += 2;
        if (!take_four_hex(cursor, &low) || low < 0xdc00 || low > 0xdfff)
            return fail(cursor, "lone surrogate in a string");
        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
    *out = put_utf8(*out, unit);
    return true;
}

static bool decode_escape(struct cursor *cursor, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (cursor->at == cursor->end)
        return fail(cursor, "string ends inside an escape");
    char escape = *cursor->at++;
    if (escape == 'u')
        return decode_unicode(cursor, out);
    const char *found = escape ? strchr(names, escape) : NULL;
    if (!found)
        return fail(cursor, "unknown escape in a string");
    *(*out)++ = values[found - names];
    return true;
}

/* Decodes in place: what is written never overtakes what is read. */
static bool take_string(struct cursor *cursor, size_t max, const char **text)
{
    if (!take(cursor, '"'))
        return fail(cursor, "expected a string");
    char *start = cursor->at, *out = start;
    while (cursor->at < cursor->end && *cursor->at != '"') {
        unsigned char byte = (unsigned char)*cursor->at++;
        if (byte < 0x20 || byte > 0x7e)
            return fail(cursor, "byte outside printable ASCII in a string; escape it as \\uXXXX");
        if (byte != '\\')
            *out++ = (char)byte;
        else if (!decode_escape(cursor, &out))
            return false;
    }
    if (cursor->at == cursor->end)
        return fail(cursor, "string without its closing quote");
    cursor->at++;
    if ((size_t)(out - start) > max)
        return fail(cursor, "name or string longer than guest/protocol.h allows");
    *out = '\0';
    *text = start;
    return true;
}

static bool take_integer(struct cursor *cursor, int64_t *value)
{
    const bool negative = *cursor->at == '-';
    cursor->at += negative;
    const char *start = cursor->at;
    uint64_t magnitude = 0;
    for (; *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        if (cursor->at - start > 18)
            return fail(cursor, "integer above 18 digits");
        magnitude = magnitude * 10 + (uint64_t)(*cursor->at - '0');
    }
    if (cursor->at == start || (*start == '0' && cursor->at - start > 1) || cursor->at - start > 18)
        return fail(cursor, "expected an integer of at most 18 digits without leading zero");
    *value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static bool take_word(struct cursor *cursor, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

static bool take_scalar(struct cursor *cursor, struct hf_field *field)
{
    skip_space(cursor);
    if (*cursor->at == '"') {
        field->type = HF_FIELD_STRING;
        return take_string(cursor, HF_GUEST_TEXT_MAX, &field->text);
    }
    field->boolean = take_word(cursor, "true");
    if (field->boolean || take_word(cursor, "false")) {
        field->type = HF_FIELD_BOOL;
        return true;
    }
    field->type = HF_FIELD_INT;
    return take_integer(cursor, &field->integer);
}

/* An object of scalars; at the outer level (request not NULL) "args" may be one more object. */
static bool take_object(struct cursor *cursor, struct hf_fields *fields, struct hf_request *request)
{
    if (!take(cursor, '{'))
        return fail(cursor, "expected an object");
    if (take(cursor, '}'))
        return true;
    do {
        struct hf_field field = {0};
        if (!take_string(cursor, HF_GUEST_NAME_MAX, &field.name))
            return false;
        if (!take(cursor, ':'))
            return fail(cursor, "expected ':' after a name");
        if (request && strcmp(field.name, "args") == 0) {
            if (request->has_args)
                return fail(cursor, "the same name twice");
            request->has_args = true;
            if (!take_object(cursor, &request->args, NULL))
                return false;
            continue;
        }
        if (hf_fields_find(fields, field.name))
            return fail(cursor, "the same name twice");
        if (fields->count == HF_GUEST_ARGS_MAX)
            return fail(cursor, "more members than guest/protocol.h allows");
        if (!take_scalar(cursor, &field))
            return false;
        fields->list[fields->count++] = field;
    } while (take(cursor, ','));
    return take(cursor, '}') || fail(cursor, "expected ',' or '}'");
}

const char *hf_scan_request(char *line, size_t length, struct hf_request *request)
{
    struct cursor cursor = {.at = line, .end = line + length};
    line[length] = '\0';
    request->members.count = request->args.count = 0;
    request->has_args = false;
    if (take_object(&cursor, &request->members, request)) {
        skip_space(&cursor);
        if (cursor.at != cursor.end)
            fail(&cursor, "bytes after the request");
    }
    return cursor.problem;
}

const struct hf_field *hf_fields_find(const struct hf_fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->count; i++)
        if (strcmp(fields->list[i].name, name) == 0)
            return &fields->list[i];
    return NULL;
}
