/*
 * The strict reader of json.h. Every untrusted byte of JSON enters the project here, from files, stdio, HTTP and the
 * guest.
 *
 * One pass over the text, recursion bounded by HF_JSON_MAX_DEPTH, memory bounded by the limits and HF_JSON_MAX_NODES.
 * It never puts bytes of the input into a message (they may be a guest's, I7): it names their class. Out of memory
 * aborts, like the builders do.
 */
#include "common/json.h"

#include "common/cleanup.h"
#include "common/json_number.h"
#include "common/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define END_OF_INPUT (-1)

struct reader {
    const uint8_t *text;
    size_t length;
    size_t offset;
    unsigned max_depth;
    unsigned node_count;
    struct hf_error *err;
};

struct key {
    const char *text;
    size_t offset; /* of its opening quote, for the message */
};

struct key_list {
    struct key *keys;
    size_t count;
    size_t capacity;
};

static cJSON *read_value(struct reader *reader, unsigned depth);

static void *or_abort(void *allocated)
{
    if (!allocated)
        abort();
    return allocated;
}

static const char *describe_byte(const struct reader *reader, size_t offset)
{
    if (offset >= reader->length)
        return "the end of the input";
    uint8_t byte = reader->text[offset];
    if (byte == '"')
        return "a quotation mark";
    if (byte >= '0' && byte <= '9')
        return "a digit";
    if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z')
        return "a letter";
    if (byte < 0x20 || byte == 0x7f)
        return "a control character";
    return byte == ' ' ? "a space" : byte < 0x80 ? "punctuation" : "a byte above 0x7f";
}

/* Fills the reader's error; always NULL, so that callers can return it. */
static void *refuse(struct reader *reader, size_t offset, const char *expected, const char *found)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < offset && i < reader->length; i++) {
        bool newline = reader->text[i] == '\n';
        line += newline;
        column = newline ? 1 : column + 1;
    }
    hf_error_set(reader->err, "json-invalid", 0, NULL,
                 "invalid JSON at byte %zu (line %zu, column %zu): expected %s, found %s", offset, line, column,
                 expected, found);
    return NULL;
}

static void *refuse_here(struct reader *reader, const char *expected)
{
    return refuse(reader, reader->offset, expected, describe_byte(reader, reader->offset));
}

static int peek(const struct reader *reader)
{
    return reader->offset < reader->length ? reader->text[reader->offset] : END_OF_INPUT;
}

static bool accept(struct reader *reader, char byte)
{
    if (peek(reader) != byte)
        return false;
    reader->offset++;
    return true;
}

static void skip_whitespace(struct reader *reader)
{
    for (int byte = peek(reader); byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; byte = peek(reader))
        reader->offset++;
}

static cJSON *count_node(struct reader *reader, cJSON *item)
{
    or_abort(item);
    if (++reader->node_count <= HF_JSON_MAX_NODES)
        return item;
    cJSON_Delete(item);
    return refuse(reader, reader->offset, "at most " HF_JSON_TEXT(HF_JSON_MAX_NODES) " values in one document", "more");
}

static bool read_hex4(struct reader *reader, size_t end, uint32_t *out)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < 4; i++) {
        int byte = reader->offset < end ? reader->text[reader->offset] : END_OF_INPUT;
        uint32_t digit;
        if (byte >= '0' && byte <= '9')
            digit = (uint32_t)(byte - '0');
        else if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f')
            digit = (uint32_t)((byte | 0x20) - 'a' + 10);
        else
            return refuse_here(reader, "four hexadecimal digits after \\u") != NULL;
        value = value << 4 | digit;
        reader->offset++;
    }
    *out = value;
    return true;
}

/* Reads the digits after "\u", and the second half of a surrogate pair. */
static bool read_unicode_escape(struct reader *reader, size_t end, uint32_t *code_point)
{
    size_t start = reader->offset - 2;
    if (!read_hex4(reader, end, code_point))
        return false;
    if (*code_point == 0)
        return refuse(reader, start, "no U+0000 in a string or key", "an escaped U+0000") != NULL;
    if (*code_point < 0xd800 || *code_point > 0xdfff)
        return true;
    bool escape_follows = end - reader->offset >= 2 && memcmp(reader->text + reader->offset, "\\u", 2) == 0;
    if (*code_point > 0xdbff || !escape_follows)
        return refuse(reader, start, "a pair of surrogate escapes", "a lone surrogate") != NULL;
    uint32_t low = 0;
    reader->offset += 2;
    if (!read_hex4(reader, end, &low))
        return false;
    if (low < 0xdc00 || low > 0xdfff)
        return refuse(reader, start, "a pair of surrogate escapes", "a lone surrogate") != NULL;
    *code_point = 0x10000 + ((*code_point - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Reads one escape, the reader standing on its backslash, and adds what it means to *out. */
static bool read_escape(struct reader *reader, size_t end, char **out)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    reader->offset++;
    char name = (char)reader->text[reader->offset]; /* find_closing_quote() saw a byte after every backslash */
    if (name == 'u') {
        uint32_t code_point;
        reader->offset++;
        if (!read_unicode_escape(reader, end, &code_point))
            return false;
        *out += hf_utf8_encode(code_point, *out);
        return true;
    }
    const char *found = name ? strchr(names, name) : NULL;
    if (!found)
        return refuse_here(reader, "one of \" \\ / b f n r t u after a backslash") != NULL;
    *(*out)++ = values[found - names];
    reader->offset++;
    return true;
}

static bool find_closing_quote(struct reader *reader, size_t *end)
{
    size_t offset = reader->offset;
    while (offset < reader->length && reader->text[offset] != '"')
        offset += reader->text[offset] == '\\' ? 2 : 1;
    if (offset >= reader->length)
        return refuse(reader, reader->length, "a closing quotation mark", "the end of the input") != NULL;
    *end = offset;
    return true;
}

/* How many bytes from `text` on are printable ASCII and no escape: what needs no decoding. */
static size_t plain_run(const uint8_t *text, size_t length)
{
    size_t run = 0;
    while (run < length && text[run] >= 0x20 && text[run] < 0x80 && text[run] != '\\')
        run++;
    return run;
}

/* Reads a string, the reader standing on its opening quote. Owned (cJSON_free), NUL-terminated. */
static char *read_string(struct reader *reader)
{
    size_t end = 0;
    reader->offset++;
    if (!find_closing_quote(reader, &end))
        return NULL;
    /* No escape is shorter than the UTF-8 that it stands for. */
    char *string = or_abort(cJSON_malloc(end - reader->offset + 1));
    char *out = string;
    bool valid = true;
    while (valid && reader->offset < end) {
        uint8_t byte = reader->text[reader->offset];
        uint32_t code_point;
        size_t run = plain_run(reader->text + reader->offset, end - reader->offset);
        if (run > 0) {
            memcpy(out, reader->text + reader->offset, run);
            out += run;
            reader->offset += run;
            continue;
        }
        if (byte == '\\') {
            valid = read_escape(reader, end, &out);
            continue;
        }
        size_t size = hf_utf8_decode(reader->text + reader->offset, end - reader->offset, &code_point);
        if (size == 0)
            valid = refuse_here(reader, "valid UTF-8") != NULL;
        else if (byte < 0x20)
            valid = refuse_here(reader, "control characters in a string to be escaped") != NULL;
        memcpy(out, reader->text + reader->offset, size);
        out += size;
        reader->offset += size;
    }
    if (!valid) {
        cJSON_free(string);
        return NULL;
    }
    *out = '\0';
    reader->offset = end + 1;
    return string;
}

static bool skip_digits(struct reader *reader, const char *expected)
{
    size_t start = reader->offset;
    while (peek(reader) >= '0' && peek(reader) <= '9')
        reader->offset++;
    return reader->offset > start || refuse_here(reader, expected) != NULL;
}

/* Moves over a number as RFC 8259 section 6 writes it. */
static bool skip_number(struct reader *reader, bool *integer)
{
    *integer = true;
    accept(reader, '-');
    if (accept(reader, '0')) {
        if (peek(reader) >= '0' && peek(reader) <= '9')
            return refuse_here(reader, "no digit after a leading zero") != NULL;
    } else if (!skip_digits(reader, "a digit")) {
        return false;
    }
    if (accept(reader, '.')) {
        *integer = false;
        if (!skip_digits(reader, "a digit after the decimal point"))
            return false;
    }
    if (accept(reader, 'e') || accept(reader, 'E')) {
        *integer = false;
        if (!accept(reader, '-'))
            accept(reader, '+');
        return skip_digits(reader, "a digit in the exponent");
    }
    return true;
}

static cJSON *read_number(struct reader *reader)
{
    size_t start = reader->offset;
    bool integer;
    if (!skip_number(reader, &integer))
        return NULL;
    size_t length = reader->offset - start;
    char *text = or_abort(cJSON_malloc(length + 1));
    memcpy(text, reader->text + start, length);
    text[length] = '\0';
    int64_t exact = 0;
    double nearest = 0;
    bool in_range = integer ? hf_json_text_to_int64(text, &exact) : hf_json_text_to_double(text, &nearest);
    cJSON *item = in_range ? count_node(reader, cJSON_CreateNumber(integer ? (double)exact : nearest)) : NULL;
    if (!in_range && integer)
        refuse(reader, start, "an integer within -9223372036854775808..9223372036854775807", "one outside");
    else if (!in_range)
        refuse(reader, start, "a finite number (up to 1.8e308)", "a larger one");
    if (item)
        item->valuestring = text;
    else
        cJSON_free(text);
    return item;
}

static cJSON *read_literal(struct reader *reader)
{
    static const struct {
        const char *text;
        int type;
    } literals[] = {{"true", cJSON_True}, {"false", cJSON_False}, {"null", cJSON_NULL}};
    for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++) {
        size_t length = strlen(literals[i].text);
        if (reader->length - reader->offset < length ||
            memcmp(reader->text + reader->offset, literals[i].text, length) != 0)
            continue;
        cJSON *item = count_node(reader, cJSON_CreateNull());
        if (item)
            item->type = literals[i].type;
        reader->offset += length;
        return item;
    }
    return refuse_here(reader, "a value");
}

static cJSON *read_string_value(struct reader *reader)
{
    char *string = read_string(reader);
    if (!string)
        return NULL;
    cJSON *item = count_node(reader, cJSON_CreateNull());
    if (!item) {
        cJSON_free(string);
        return NULL;
    }
    item->type = cJSON_String;
    item->valuestring = string;
    return item;
}

/* Starts an array or object: checks the depth, takes the opening bracket. */
static cJSON *open_container(struct reader *reader, unsigned depth, cJSON *container)
{
    or_abort(container);
    if (depth >= reader->max_depth) {
        char expected[64];
        snprintf(expected, sizeof expected, "at most %u levels of arrays and objects", reader->max_depth);
        cJSON_Delete(container);
        return refuse(reader, reader->offset, expected, "one more");
    }
    reader->offset++;
    skip_whitespace(reader);
    return count_node(reader, container);
}

static cJSON *read_array(struct reader *reader, unsigned depth)
{
    cleanup_json cJSON *array = open_container(reader, depth, cJSON_CreateArray());
    if (!array)
        return NULL;
    if (accept(reader, ']'))
        return STEAL_PTR(array);
    do {
        skip_whitespace(reader);
        cJSON *element = read_value(reader, depth + 1);
        if (!element)
            return NULL;
        cJSON_AddItemToArray(array, element);
        skip_whitespace(reader);
    } while (accept(reader, ','));
    if (!accept(reader, ']'))
        return refuse_here(reader, "a comma or ']' after an array element");
    return STEAL_PTR(array);
}

static void remember_key(struct key_list *list, const char *text, size_t offset)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 16;
        list->keys = or_abort(reallocarray(list->keys, list->capacity, sizeof list->keys[0]));
    }
    list->keys[list->count++] = (struct key){text, offset};
}

static int compare_keys(const void *a, const void *b)
{
    const struct key *left = a, *right = b;
    int order = strcmp(left->text, right->text);
    if (order != 0)
        return order;
    return left->offset < right->offset ? -1 : left->offset > right->offset;
}

/* Sorting keeps hostile objects at n log n; glibc's qsort is a merge sort at these sizes. */
static bool keys_are_unique(struct reader *reader, struct key_list *list)
{
    if (list->count > 1)
        qsort(list->keys, list->count, sizeof list->keys[0], compare_keys);
    for (size_t i = 1; i < list->count; i++) {
        if (strcmp(list->keys[i - 1].text, list->keys[i].text) != 0)
            continue;
        refuse(reader, list->keys[i].offset, "every key once in an object", "a repeated key");
        if (reader->err)
            reader->err->saved_errno = EEXIST;
        return false;
    }
    return true;
}

static bool read_member(struct reader *reader, unsigned depth, cJSON *object, struct key_list *keys)
{
    size_t key_offset = reader->offset;
    if (peek(reader) != '"')
        return refuse_here(reader, "a key in quotation marks") != NULL;
    char *key = read_string(reader);
    if (!key)
        return false;
    skip_whitespace(reader);
    bool colon = accept(reader, ':');
    if (!colon)
        refuse_here(reader, "a colon after the key");
    skip_whitespace(reader);
    cJSON *value = colon ? read_value(reader, depth + 1) : NULL;
    if (!value) {
        cJSON_free(key);
        return false;
    }
    value->string = key;
    cJSON_AddItemToArray(object, value); /* constant time, unlike a look-up of the key first */
    remember_key(keys, key, key_offset);
    return true;
}

static cJSON *read_members(struct reader *reader, unsigned depth, cJSON *container, struct key_list *keys)
{
    cleanup_json cJSON *object = container;
    do {
        skip_whitespace(reader);
        if (!read_member(reader, depth, object, keys))
            return NULL;
        skip_whitespace(reader);
    } while (accept(reader, ','));
    if (!accept(reader, '}'))
        return refuse_here(reader, "a comma or '}' after an object member");
    return keys_are_unique(reader, keys) ? STEAL_PTR(object) : NULL;
}

static cJSON *read_object(struct reader *reader, unsigned depth)
{
    cJSON *object = open_container(reader, depth, cJSON_CreateObject());
    if (!object || accept(reader, '}'))
        return object;
    struct key_list keys = {0};
    object = read_members(reader, depth, object, &keys);
    free(keys.keys);
    return object;
}

static cJSON *read_value(struct reader *reader, unsigned depth)
{
    int byte = peek(reader);
    if (byte == '{')
        return read_object(reader, depth);
    if (byte == '[')
        return read_array(reader, depth);
    if (byte == '"')
        return read_string_value(reader);
    if (byte == '-' || (byte >= '0' && byte <= '9'))
        return read_number(reader);
    return read_literal(reader);
}

cJSON *hf_json_parse(const void *text, size_t length, const struct hf_json_limits *limits, struct hf_error *err)
{
    struct reader reader = {.text = text, .length = length, .max_depth = limits->max_depth, .err = err};
    if (reader.max_depth > HF_JSON_MAX_DEPTH)
        reader.max_depth = HF_JSON_MAX_DEPTH;
    if (length > limits->max_bytes) {
        hf_error_set(err, "json-invalid", 0, NULL, "JSON text too long: expected at most %zu bytes, found %zu",
                     limits->max_bytes, length);
        return NULL;
    }
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return refuse(&reader, 0, "UTF-8 without a byte order mark", "a byte order mark");
    skip_whitespace(&reader);
    cleanup_json cJSON *value = read_value(&reader, 0);
    if (!value)
        return NULL;
    skip_whitespace(&reader);
    if (reader.offset != length)
        return refuse_here(&reader, "the end of the input after one value");
    return STEAL_PTR(value);
}
