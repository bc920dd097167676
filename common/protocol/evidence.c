/*
 * Violation evidence in bytes of any form (I2). Called by the controller on every answer, before and whatever the
 * strict parser says of it: an executor under attack may be able to garble its answer, but not to take back what it has
 * written. Pure; takes linear time (no key holds a quotation mark, so attempts never overlap) and never reads beyond
 * `length`.
 *
 * Every quotation mark is tried as the start of a key, so that no stray one earlier in the line can hide a later field.
 * In a well-formed line that cannot misread text as fields: inside a string each quotation mark follows a backslash, so
 * that a key starting there would have to end in one, and between strings there are no names.
 */
#include "common/protocol/protocol.h"

#include <string.h>
#include <strings.h>

struct cursor {
    const char *at, *end;
};

#define MAX_VALUE 64

enum key { KEY_HOST_CANARY, KEY_CONNECTIONS, KEY_CATEGORY, KEY_STATUS, KEY_ERROR_TYPE, KEY_COUNT };

static const char *const keys[] = {
    [KEY_HOST_CANARY] = "host_canary_intact",
    [KEY_CONNECTIONS] = "network_canary_connections",
    [KEY_CATEGORY] = "category",
    [KEY_STATUS] = "status",
    [KEY_ERROR_TYPE] = "error_type",
};

static void skip_space(struct cursor *cursor)
{
    while (cursor->at < cursor->end && *cursor->at && strchr(" \t\r\n", *cursor->at))
        cursor->at++;
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

/* The character of "\uXXXX" at the cursor (behind "\u"), '?' when it is not ASCII or not hexadecimal. */
static char unescape_unicode(struct cursor *cursor)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = cursor->at < cursor->end ? hex_digit(*cursor->at) : -1;
        if (digit < 0)
            return '?';
        value = value * 16 + digit;
        cursor->at++;
    }
    return value > 0 && value < 128 ? (char)value : '?';
}

/* The next character of a string, with an escape undone; never NUL. The cursor is not at the end. */
static char read_character(struct cursor *cursor)
{
    char character = *cursor->at++;
    if (character == '\\' && cursor->at < cursor->end) {
        character = *cursor->at++;
        if (character == 'u')
            return unescape_unicode(cursor);
    }
    return character ? character : '?';
}

/* Which key the string is whose opening quotation mark is at the cursor; KEY_COUNT for none. Gives up at the first
 * character that no key has in that place. */
static enum key read_key(struct cursor *cursor)
{
    unsigned possible = (1u << KEY_COUNT) - 1;
    cursor->at++;
    for (size_t i = 0; possible != 0 && cursor->at < cursor->end; i++) {
        char character = '\0';
        if (*cursor->at == '"')
            cursor->at++; /* the end of the string stands for the end of the key */
        else
            character = read_character(cursor);
        for (unsigned key = 0; key < KEY_COUNT; key++) {
            if (!(possible & 1u << key))
                continue;
            if (keys[key][i] != character)
                possible &= ~(1u << key);
            else if (character == '\0')
                return (enum key)key;
        }
    }
    return KEY_COUNT;
}

/* Reads the string whose opening quotation mark is at the cursor; the empty text when it does not end, or is longer
 * than any value that matters. */
static void read_string(struct cursor *cursor, char value[MAX_VALUE])
{
    size_t length = 0;
    cursor->at++;
    while (cursor->at < cursor->end && length < MAX_VALUE - 1) {
        if (*cursor->at == '"') {
            value[length] = '\0';
            return;
        }
        value[length++] = read_character(cursor);
    }
    value[0] = '\0';
}

static bool is_bare_character(char character)
{
    return (character >= '0' && character <= '9') || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z') || (character && strchr("+-._", character));
}

/* The value at the cursor as text: a string without its quotation marks, or the characters of a number or name. */
static void read_value(struct cursor *cursor, char value[MAX_VALUE])
{
    if (cursor->at < cursor->end && *cursor->at == '"') {
        read_string(cursor, value);
        return;
    }
    size_t length = 0;
    while (cursor->at < cursor->end && length < MAX_VALUE - 1 && is_bare_character(*cursor->at))
        value[length++] = *cursor->at++;
    value[length] = '\0';
}

/* true, and any number above zero; a number is above zero when it has no minus and a digit other than 0 before its
 * exponent. */
static bool is_positive(const char *value)
{
    if (strcasecmp(value, "true") == 0)
        return true;
    for (const char *at = value; *at && strchr("+.0123456789", *at); at++)
        if (*at >= '1' && *at <= '9')
            return true;
    return false;
}

/* false in any spelling, also one that the end of the line cut short; or a number that is zero. */
static bool is_false(const char *value)
{
    size_t length = strlen(value);
    if (length > 0 && length <= 5 && strncasecmp(value, "false", length) == 0)
        return true;
    return length > 0 && strspn(value, "-+.0") == length && strchr(value, '0');
}

static bool is_evidence(enum key key, const char *value)
{
    switch (key) {
    case KEY_HOST_CANARY:
        return is_false(value);
    case KEY_CONNECTIONS:
        return is_positive(value);
    case KEY_CATEGORY:
    case KEY_STATUS:
    case KEY_ERROR_TYPE:
        return strcmp(value, "policy-violation") == 0;
    case KEY_COUNT:
        break;
    }
    return false;
}

static bool field_is_evidence(struct cursor cursor)
{
    char value[MAX_VALUE];
    enum key key = read_key(&cursor);
    if (key == KEY_COUNT)
        return false;
    skip_space(&cursor);
    if (cursor.at == cursor.end || *cursor.at != ':')
        return false;
    cursor.at++;
    skip_space(&cursor);
    read_value(&cursor, value);
    return is_evidence(key, value);
}

bool hf_response_has_violation_evidence(const char *line, size_t length)
{
    const char *end = line + length;
    for (const char *at = line; at < end; at++)
        if (*at == '"' && field_is_evidence((struct cursor){at, end}))
            return true;
    return false;
}
