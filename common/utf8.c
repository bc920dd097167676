/* Implementation of utf8.h: pure functions over bytes, no allocation, no I/O. */
#include "common/utf8.h"

size_t hf_utf8_decode(const uint8_t *text, size_t length, uint32_t *code_point)
{
    /* Smallest code point that needs as many bytes as the index says: anything below it is an overlong form. */
    static const uint32_t smallest[HF_UTF8_MAX_BYTES + 1] = {0, 0, 0x80, 0x800, 0x10000};
    if (length == 0)
        return 0;
    uint8_t lead = text[0];
    if (lead < 0x80) {
        *code_point = lead;
        return 1;
    }
    size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || size > length)
        return 0;
    uint32_t value = lead & (0x7fU >> size);
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (text[i] & 0x3fU);
    }
    if (value < smallest[size] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return 0;
    *code_point = value;
    return size;
}

size_t hf_utf8_encode(uint32_t code_point, char out[HF_UTF8_MAX_BYTES])
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    size_t size = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code_point & 0x3f));
        code_point >>= 6;
    }
    out[0] = (char)((0xf00U >> size & 0xf0) | code_point);
    return size;
}
