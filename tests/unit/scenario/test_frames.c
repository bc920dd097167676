/* The frame sequences of virtio-net: what they are, and that a tally tells loss, doubling, damage and reordering. */
#include "guest/probes/frames.h"
#include "tests/unit/scenario/suite.h"

#define SEED 42

static uint8_t frame[HF_FRAME_LARGEST], scratch[HF_FRAME_LARGEST];
static struct hf_frame_tally tally;
static struct hf_frame_cursor sender;

static void set_up(void)
{
    hf_frame_tally_init(&tally, SEED, HF_FRAMES_FROM_GUEST, scratch);
    hf_frame_cursor_init(&sender, SEED, HF_FRAMES_FROM_GUEST);
}

static size_t next(void)
{
    size_t length = hf_frame_build(&sender, frame);
    hf_frame_cursor_advance(&sender);
    return length;
}

static void send_rest(void)
{
    while (!hf_frame_cursor_at_end(&sender)) {
        size_t length = next();
        hf_frame_tally_take(&tally, frame, length);
    }
}

START_TEST(an_undisturbed_sequence_is_exact)
{
    uint64_t total = hf_frame_total(&sender);
    ck_assert_uint_le(total, HF_FRAME_TOTAL_MAX);
    send_rest();
    ck_assert_uint_eq(tally.exact, total);
    ck_assert_uint_eq(tally.wrong + tally.reordered, 0);
    ck_assert_str_eq(hf_frame_tally_missing_class(&tally), "none");
    for (size_t i = 0; i < HF_FRAME_CLASS_COUNT; i++)
        ck_assert_uint_eq(tally.exact_of_class[i], hf_frame_classes[i].count);
}
END_TEST

START_TEST(a_lost_frame_is_missing_and_named)
{
    uint64_t total = hf_frame_total(&sender);
    for (int i = 0; i < 20; i++) {
        size_t length = next();
        hf_frame_tally_take(&tally, frame, length);
    }
    next(); /* the 21st, of the second class */
    send_rest();
    ck_assert_uint_eq(tally.exact, total - 1);
    ck_assert_uint_eq(tally.wrong, 0);
    ck_assert_str_eq(hf_frame_tally_missing_class(&tally), hf_frame_classes[1].name);
}
END_TEST

START_TEST(a_doubled_frame_is_wrong)
{
    for (int i = 0; i < 40; i++) /* past the header-only runts, which are all equal */
        hf_frame_tally_take(&tally, frame, next());
    hf_frame_tally_take(&tally, frame, hf_frame_classes[2].length);
    ck_assert_uint_eq(tally.wrong, 1);
    ck_assert_uint_eq(tally.exact, 40);
}
END_TEST

START_TEST(one_changed_bit_is_wrong)
{
    for (int i = 0; i < 60; i++)
        hf_frame_tally_take(&tally, frame, next());
    size_t length = next();
    frame[length - 1] ^= 1;
    hf_frame_tally_take(&tally, frame, length);
    ck_assert_uint_eq(tally.wrong, 1);
    ck_assert_uint_eq(tally.first_wrong_length, length);
}
END_TEST

START_TEST(a_frame_that_is_a_byte_shorter_or_longer_is_wrong)
{
    for (int i = 0; i < 60; i++)
        hf_frame_tally_take(&tally, frame, next());
    size_t length = next();
    hf_frame_tally_take(&tally, frame, length - 1);
    frame[length] = 0;
    hf_frame_tally_take(&tally, frame, length + 1);
    ck_assert_uint_eq(tally.wrong, 2);
}
END_TEST

START_TEST(swapped_frames_are_exact_but_reordered)
{
    static uint8_t held[HF_FRAME_LARGEST];
    uint64_t total = hf_frame_total(&sender);
    for (int i = 0; i < 60; i++)
        hf_frame_tally_take(&tally, frame, next());
    size_t held_length = next();
    memcpy(held, frame, held_length);
    hf_frame_tally_take(&tally, frame, next());
    hf_frame_tally_take(&tally, held, held_length);
    send_rest();
    ck_assert_uint_eq(tally.exact, total);
    ck_assert_uint_eq(tally.reordered, 1);
    ck_assert_uint_eq(tally.wrong, 0);
}
END_TEST

START_TEST(frames_of_the_other_direction_are_wrong)
{
    struct hf_frame_cursor other;
    hf_frame_cursor_init(&other, SEED, HF_FRAMES_FROM_HOST);
    for (int i = 0; i < 100; i++) {
        hf_frame_tally_take(&tally, frame, hf_frame_build(&other, frame));
        hf_frame_cursor_advance(&other);
    }
    ck_assert_uint_eq(tally.wrong, 100);
}
END_TEST

START_TEST(checksum_classes_have_exactly_one_wrong_checksum)
{
    for (; !hf_frame_cursor_at_end(&sender); hf_frame_cursor_advance(&sender)) {
        enum hf_frame_kind kind = sender.classes[sender.class_index].kind;
        if (kind == HF_FRAME_PLAIN)
            continue;
        unsigned length = hf_frame_build(&sender, frame);
        const uint8_t *ip = frame + HF_FRAME_HEADER_SIZE, *udp = ip + 20;
        unsigned udp_length = length - HF_FRAME_HEADER_SIZE - 20;
        bool ip_right = hf_frame_sum(ip, 20, 0) == 0xFFFF;
        bool udp_right = hf_frame_sum(udp, udp_length, hf_frame_sum(ip + 12, 8, 17 + udp_length)) == 0xFFFF;
        ck_assert_int_eq(ip_right, kind != HF_FRAME_BAD_IP_CHECKSUM);
        ck_assert_int_eq(udp_right, kind != HF_FRAME_BAD_UDP_CHECKSUM);
    }
}
END_TEST

TCase *frames_case(void)
{
    TCase *tcase = tcase_create("frames");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, an_undisturbed_sequence_is_exact);
    tcase_add_test(tcase, a_lost_frame_is_missing_and_named);
    tcase_add_test(tcase, a_doubled_frame_is_wrong);
    tcase_add_test(tcase, one_changed_bit_is_wrong);
    tcase_add_test(tcase, a_frame_that_is_a_byte_shorter_or_longer_is_wrong);
    tcase_add_test(tcase, swapped_frames_are_exact_but_reordered);
    tcase_add_test(tcase, frames_of_the_other_direction_are_wrong);
    tcase_add_test(tcase, checksum_classes_have_exactly_one_wrong_checksum);
    return tcase;
}
