/* Character rules of json_shape.h, one row per rule. Pure. */
#include "common/digest.h"
#include "common/json_shape.h"
#include "common/utf8.h"

#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

static bool is_any(const char *text)
{
    (void)text;
    return true;
}

static bool is_base64(const char *text)
{
    size_t decoded_length;
    return hf_base64_is_canonical(text, &decoded_length);
}

/* General category Cc: C0, DEL and C1. Text that is not UTF-8 has no characters at all. */
static bool is_printable(const char *text)
{
    size_t length = strlen(text);
    for (size_t offset = 0; offset < length;) {
        uint32_t code_point;
        size_t size = hf_utf8_decode((const uint8_t *)text + offset, length - offset, &code_point);
        if (size == 0 || code_point < 0x20 || (code_point >= 0x7f && code_point <= 0x9f))
            return false;
        offset += size;
    }
    return true;
}

static const struct {
    const char *description;         /* completes "expected ..." */
    const char *first, *rest;        /* allowed characters, for the rules that are a character class */
    size_t min_length, max_length;   /* bytes */
    bool (*check)(const char *text); /* for the others */
} rules[] = {
    [HF_TEXT_ANY] = {.description = "any text", .check = is_any},
    [HF_TEXT_IDENTIFIER] = {"an identifier ([a-z][a-z0-9-]{0,63})", LOWER, LOWER DIGIT "-", 1, 64, NULL},
    [HF_TEXT_RUN_ID] = {"a run id ([a-z0-9][a-z0-9-]{0,95})", LOWER DIGIT, LOWER DIGIT "-", 1, 96, NULL},
    [HF_TEXT_SHA256] = {"a SHA-256 of 64 lower-case hexadecimal digits", DIGIT "abcdef", DIGIT "abcdef", 64, 64, NULL},
    [HF_TEXT_BASE64] = {.description = "canonical base64 (RFC 4648, with padding)", .check = is_base64},
    [HF_TEXT_PRINTABLE] = {.description = "text without control characters", .check = is_printable},
    [HF_TEXT_FIELD_NAME] = {"a field name ([a-z][a-z0-9_]{0,63})", LOWER, LOWER DIGIT "_", 1, 64, NULL},
    [HF_TEXT_ENV_NAME] = {"a variable name ([A-Z_][A-Z0-9_]{0,63})", UPPER "_", UPPER DIGIT "_", 1, 64, NULL},
};

bool hf_text_is(enum hf_shape_text rule, const char *text)
{
    if (rules[rule].check)
        return rules[rule].check(text);
    size_t length = strlen(text);
    return length >= rules[rule].min_length && length <= rules[rule].max_length &&
           strspn(text, rules[rule].first) > 0 && strspn(text, rules[rule].rest) == length;
}

const char *hf_text_describe(enum hf_shape_text rule)
{
    return rules[rule].description;
}
