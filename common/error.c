/* Implementation of error.h: formatting only, no I/O. */
#include "common/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int hf_error_set(struct hf_error *err, const char *code, int saved_errno, const char *field, const char *format, ...)
{
    if (!err)
        return -1;
    err->code = code;
    err->saved_errno = saved_errno;
    snprintf(err->field, sizeof err->field, "%s", field ? field : "");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err->message, sizeof err->message, format, arguments);
    va_end(arguments);
    return -1;
}

int hf_error_prefix(struct hf_error *err, const char *format, ...)
{
    if (!err)
        return -1;
    char prefixed[sizeof err->message];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(prefixed, sizeof prefixed, format, arguments);
    va_end(arguments);
    if (written < 0 || (size_t)written >= sizeof prefixed - 3)
        return -1;
    size_t used = (size_t)written;
    prefixed[used++] = ':';
    prefixed[used++] = ' ';
    size_t room = sizeof prefixed - used - 1;
    size_t kept = strnlen(err->message, room);
    memcpy(prefixed + used, err->message, kept);
    prefixed[used + kept] = '\0';
    memcpy(err->message, prefixed, used + kept + 1);
    return -1;
}

const char *hf_error_quote(const void *bytes, size_t length, char *out)
{
    static const char hex[] = "0123456789abcdef";
    enum { SHOWN = 64 };
    const unsigned char *in = bytes;
    size_t used = 0;
    for (size_t i = 0; i < length && i < SHOWN; i++) {
        if (in[i] >= 0x20 && in[i] < 0x7f && in[i] != '\\') {
            out[used++] = (char)in[i];
            continue;
        }
        out[used++] = '\\';
        out[used++] = 'x';
        out[used++] = hex[in[i] >> 4];
        out[used++] = hex[in[i] & 15];
    }
    if (length > SHOWN) {
        memcpy(out + used, "...", 3);
        used += 3;
    }
    out[used] = '\0';
    return out;
}
