/* Copying of checked text into fixed buffers; internal to common/catalog and common/protocol. */
#ifndef HF_COMMON_CATALOG_TEXT_H
#define HF_COMMON_CATALOG_TEXT_H

#include <stddef.h>
#include <string.h>

/* The caller has checked the length against a shape; a text that does not fit anyway is cut, never written past out. */
static inline void hf_text_copy(char *out, size_t out_size, const char *text)
{
    size_t length = strnlen(text, out_size - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}

#endif
