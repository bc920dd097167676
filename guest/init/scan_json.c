/* hf_scan_is_json() of scan.h: syntax only, nothing is decoded or kept. Used on what a probe hands to the agent. */
#include "guest/init/scan.h"

#include "guest/init/emit.h"

#include <string.h>

struct text {
    const char *at;
    const char *end;
};

static bool take(struct text *text, char wanted)
{
    if (text->at == text->end || *text->at != wanted)
        return false;
    text->at++;
    return true;
}

static bool take_any(struct text *text, const char *set)
{
    if (text->at == text->end || !*text->at || !strchr(set, *text->at))
        return false;
    text->at++;
    return true;
}

static bool string(struct text *text)
{
    if (!take(text, '"'))
        return false;
    while (text->at < text->end && *text->at != '"') {
        if ((unsigned char)*text->at < 0x20)
            return false;
        if (*text->at++ != '\\')
            continue;
        if (take(text, 'u')) {
            for (int i = 0; i < 4; i++)
                if (!take_any(text, "0123456789abcdefABCDEF"))
                    return false;
        } else if (!take_any(text, "\"\\/bfnrt")) {
            return false;
        }
    }
    return take(text, '"');
}

static bool digits(struct text *text)
{
    if (!take_any(text, "0123456789"))
        return false;
    while (take_any(text, "0123456789"))
        ;
    return true;
}

static bool number(struct text *text)
{
    take(text, '-');
    if (!take(text, '0') && !digits(text))
        return false;
    if (take(text, '.') && !digits(text))
        return false;
    if (!take_any(text, "eE"))
        return true;
    take_any(text, "+-");
    return digits(text);
}

static bool word(struct text *text, const char *expected)
{
    size_t length = strlen(expected);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, expected, length) != 0)
        return false;
    text->at += length;
    return true;
}

static bool value(struct text *text, unsigned depth);

static bool members(struct text *text, unsigned depth, bool named, char closer)
{
    if (take(text, closer))
        return true;
    do {
        if (named && (!string(text) || !take(text, ':')))
            return false;
        if (!value(text, depth))
            return false;
    } while (take(text, ','));
    return take(text, closer);
}

static bool value(struct text *text, unsigned depth)
{
    if (text->at == text->end)
        return false;
    if (*text->at == '"')
        return string(text);
    if (*text->at == '{' || *text->at == '[') {
        bool named = *text->at++ == '{';
        return depth > 0 && members(text, depth - 1, named, named ? '}' : ']');
    }
    return word(text, "true") || word(text, "false") || word(text, "null") || number(text);
}

bool hf_scan_is_json(const char *text, size_t length)
{
    struct text whole = {text, text + length};
    return value(&whole, HF_EMIT_DEPTH_MAX) && whole.at == whole.end;
}
