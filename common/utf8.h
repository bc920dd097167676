/*
 * UTF-8, one code point at a time (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF). Used by the
 * JSON reader and writer and by the text rules of shapes; pure, never reads past `length`.
 */
#ifndef HF_COMMON_UTF8_H
#define HF_COMMON_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define HF_UTF8_MAX_BYTES 4

/* Decodes the code point at the start of text. Returns its length in bytes (1..4), or 0 when the bytes are not valid
 * UTF-8 or `length` is 0. */
size_t hf_utf8_decode(const uint8_t *text, size_t length, uint32_t *code_point);

/* Encodes a Unicode scalar value (never a surrogate) into out. Returns its length in bytes (1..4). */
size_t hf_utf8_encode(uint32_t code_point, char out[HF_UTF8_MAX_BYTES]);

#endif
