/*
 * Violation evidence in bytes of any form. Called by the controller on every answer, before and whatever the strict
 * parser says of it: an executor under attack may be able to garble its answer, but not to take back what it has
 * written. Pure; reads the bytes once per quotation mark, never beyond `length`.
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

#define MAX_WORD 64

static void skip_space(struct cursor *cursor)
{
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) && *cursor->at)
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

/* Reads the string whose opening quotation mark is at the cursor into word, escapes undone. False when it does not end,
 * or is longer than any name that matters. */
static bool read_word(struct cursor *cursor, char word[MAX_WORD])
{
    size_t length = 0;
    cursor->at++;
    while (cursor->at < cursor->end && length < MAX_WORD - 1) {
        char character = *cursor->at++;
        if (character == '"') {
            word[length] = '\0';
            return true;
        }
        if (character == '\\' && cursor->at < cursor->end) {
            character = *cursor->at++;
            if (character == 'u')
                character = unescape_unicode(cursor);
        }
        word[length++] = character ? character : '?';
    }
    return false;
}

static bool is_value_character(char character)
{
    return (character >= '0' && character <= '9') || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z') || (character && strchr("+-._", character));
}

/* The value at the cursor as text: a string without its quotation marks, or the bare characters of a number or name. */
static void read_value(struct cursor *cursor, char word[MAX_WORD])
{
    if (cursor->at < cursor->end && *cursor->at == '"') {
        if (!read_word(cursor, word))
            word[0] = '\0';
        return;
    }
    size_t length = 0;
    while (cursor->at < cursor->end && length < MAX_WORD - 1 && is_value_character(*cursor->at))
        word[length++] = *cursor->at++;
    word[length] = '\0';
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

static bool is_evidence(const char *key, const char *value)
{
    if (strcmp(key, "host_canary_intact") == 0)
        return is_false(value);
    if (strcmp(key, "network_canary_connections") == 0)
        return is_positive(value);
    if (strcmp(key, "category") == 0 || strcmp(key, "status") == 0 || strcmp(key, "error_type") == 0)
        return strcmp(value, "policy-violation") == 0;
    return false;
}

bool hf_response_has_violation_evidence(const char *line, size_t length)
{
    const char *end = line + length;
    for (const char *quote = line; (quote = memchr(quote, '"', (size_t)(end - quote))) != NULL; quote++) {
        struct cursor cursor = {quote, end};
        char key[MAX_WORD], value[MAX_WORD];
        if (!read_word(&cursor, key))
            continue;
        skip_space(&cursor);
        if (cursor.at == end || *cursor.at != ':')
            continue;
        cursor.at++;
        skip_space(&cursor);
        read_value(&cursor, value);
        if (is_evidence(key, value))
            return true;
    }
    return false;
}
