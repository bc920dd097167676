/* Bounded lines: whatever the cuts between reads, the same lines come out, and never more than fits. */
#include "executor/scenario/vm/lines.h"
#include "tests/unit/scenario/suite.h"

#include <string.h>

struct seen {
    char text[512];
    unsigned count;
};

static int record(void *context, const char *line, size_t length, struct hf_error *err)
{
    struct seen *seen = context;
    (void)err;
    strncat(seen->text, line, length);
    strcat(seen->text, "|");
    seen->count++;
    return 0;
}

static int refuse(void *context, const char *line, size_t length, struct hf_error *err)
{
    (void)context, (void)line, (void)length;
    return hf_error_set(err, "refused", 0, "", "refused");
}

START_TEST(lines_are_the_same_for_every_cut)
{
    static const char stream[] = "one\n\ntwo three\nfour\nrest";
    for (size_t step = 1; step <= sizeof stream; step++) {
        struct hf_lines lines;
        struct seen seen = {0};
        struct hf_error err = {0};
        hf_lines_init(&lines, 16, HF_LINES_STRICT);
        for (size_t at = 0; at < sizeof stream - 1; at += step) {
            size_t left = sizeof stream - 1 - at;
            ck_assert_int_eq(hf_lines_feed(&lines, stream + at, left < step ? left : step, record, &seen, &err), 0);
        }
        ck_assert_str_eq(seen.text, "one||two three|four|");
        hf_lines_clear(&lines);
    }
}
END_TEST

START_TEST(a_line_that_just_fits_is_taken)
{
    struct hf_lines lines;
    struct seen seen = {0};
    hf_lines_init(&lines, 4, HF_LINES_STRICT);
    ck_assert_int_eq(hf_lines_feed(&lines, "abcd\n", 5, record, &seen, NULL), 0);
    ck_assert_str_eq(seen.text, "abcd|");
    hf_lines_clear(&lines);
}
END_TEST

START_TEST(a_longer_line_is_an_error_when_strict)
{
    struct hf_lines lines;
    struct seen seen = {0};
    struct hf_error err = {0};
    hf_lines_init(&lines, 4, HF_LINES_STRICT);
    ck_assert_int_eq(hf_lines_feed(&lines, "abcde", 5, record, &seen, &err), -1);
    ck_assert_str_eq(err.code, "line-too-long");
    ck_assert_uint_eq(seen.count, 0);
    hf_lines_clear(&lines);
}
END_TEST

START_TEST(a_longer_line_is_cut_once_and_the_next_is_whole)
{
    struct hf_lines lines;
    struct seen seen = {0};
    hf_lines_init(&lines, 4, HF_LINES_CUT);
    ck_assert_int_eq(hf_lines_feed(&lines, "abcdefghijkl", 12, record, &seen, NULL), 0);
    ck_assert_int_eq(hf_lines_feed(&lines, "mnop\nxy\n", 8, record, &seen, NULL), 0);
    ck_assert_str_eq(seen.text, "abcd|xy|");
    hf_lines_clear(&lines);
}
END_TEST

START_TEST(an_error_of_the_callback_ends_the_feeding)
{
    struct hf_lines lines;
    struct hf_error err = {0};
    hf_lines_init(&lines, 4, HF_LINES_CUT);
    ck_assert_int_eq(hf_lines_feed(&lines, "a\nb\n", 4, refuse, NULL, &err), -1);
    ck_assert_str_eq(err.code, "refused");
    hf_lines_clear(&lines);
}
END_TEST

TCase *lines_case(void)
{
    TCase *tcase = tcase_create("lines");
    tcase_add_test(tcase, lines_are_the_same_for_every_cut);
    tcase_add_test(tcase, a_line_that_just_fits_is_taken);
    tcase_add_test(tcase, a_longer_line_is_an_error_when_strict);
    tcase_add_test(tcase, a_longer_line_is_cut_once_and_the_next_is_whole);
    tcase_add_test(tcase, an_error_of_the_callback_ends_the_feeding);
    return tcase;
}
