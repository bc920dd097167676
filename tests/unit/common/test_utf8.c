/* Promises of common/utf8.h, over every code point and every short byte sequence. */
#include "common/utf8.h"
#include "scratch.h"

#include <string.h>

START_TEST(every_scalar_value_survives_encoding_and_decoding)
{
    for (uint32_t code_point = 0; code_point <= 0x10ffff; code_point++) {
        if (code_point == 0xd800)
            code_point = 0xe000;
        char bytes[HF_UTF8_MAX_BYTES];
        uint32_t back = 0xffffffff;
        size_t size = hf_utf8_encode(code_point, bytes);
        if (hf_utf8_decode((const uint8_t *)bytes, size, &back) != size || back != code_point)
            ck_abort_msg("U+%04X", code_point);
        if (hf_utf8_decode((const uint8_t *)bytes, size - 1, &back) != 0)
            ck_abort_msg("U+%04X cut short was accepted", code_point);
    }
}
END_TEST

/* Whatever is accepted must be what the encoder writes: this excludes overlong forms, surrogates and values too large.
 */
START_TEST(only_what_the_encoder_writes_is_accepted)
{
    static const uint8_t edges[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};
    for (unsigned first = 0; first < 0x100; first++) {
        for (unsigned second = 0; second < 0x100; second++) {
            for (unsigned tail = 0; tail < sizeof edges; tail++) {
                uint8_t bytes[4] = {(uint8_t)first, (uint8_t)second, edges[tail], edges[tail]};
                char again[HF_UTF8_MAX_BYTES];
                uint32_t code_point;
                size_t size = hf_utf8_decode(bytes, 4, &code_point);
                if (size > 0 && (hf_utf8_encode(code_point, again) != size || memcmp(again, bytes, size) != 0 ||
                                 (code_point >= 0xd800 && code_point <= 0xdfff) || code_point > 0x10ffff))
                    ck_abort_msg("%02x %02x %02x", first, second, edges[tail]);
            }
        }
    }
}
END_TEST

START_TEST(invalid_sequences_are_refused)
{
    static const char *const invalid[] = {"\x80",
                                          "\xbf",
                                          "\xc0\x80",
                                          "\xc1\xbf",
                                          "\xe0\x9f\xbf",
                                          "\xed\xa0\x80",
                                          "\xf0\x8f\xbf\xbf",
                                          "\xf4\x90\x80\x80",
                                          "\xf5\x80\x80",
                                          "\xff",
                                          "\xc3(",
                                          "\xe2\x82("};
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        uint32_t code_point;
        ck_assert_uint_eq(hf_utf8_decode((const uint8_t *)invalid[i], strlen(invalid[i]), &code_point), 0);
    }
}
END_TEST

SCRATCH_MAIN("utf8", every_scalar_value_survives_encoding_and_decoding, only_what_the_encoder_writes_is_accepted,
             invalid_sequences_are_refused)
