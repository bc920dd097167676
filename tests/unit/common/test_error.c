/* Promises of common/error.h. */
#include "common/error.h"
#include "scratch.h"

#include <string.h>

START_TEST(set_fills_every_part_and_returns_minus_one)
{
    struct hf_error err;
    ck_assert_int_eq(hf_error_set(&err, "some-code", 5, "a.b", "expected %d", 7), -1);
    ck_assert_str_eq(err.code, "some-code");
    ck_assert_int_eq(err.saved_errno, 5);
    ck_assert_str_eq(err.field, "a.b");
    ck_assert_str_eq(err.message, "expected 7");
}
END_TEST

START_TEST(a_null_error_object_is_allowed)
{
    ck_assert_int_eq(hf_error_set(NULL, "some-code", 0, NULL, "x"), -1);
    ck_assert_int_eq(hf_error_prefix(NULL, "x"), -1);
}
END_TEST

START_TEST(prefix_keeps_code_errno_and_field)
{
    struct hf_error err;
    hf_error_set(&err, "some-code", 5, "a", "inner");
    ck_assert_int_eq(hf_error_prefix(&err, "outer %d", 1), -1);
    ck_assert_str_eq(err.message, "outer 1: inner");
    ck_assert_str_eq(err.code, "some-code");
    ck_assert_int_eq(err.saved_errno, 5);
    ck_assert_str_eq(err.field, "a");
}
END_TEST

START_TEST(messages_and_prefixes_are_cut_at_their_bound)
{
    struct hf_error err;
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    hf_error_set(&err, "some-code", 0, text, "%s", text);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    ck_assert_uint_eq(strlen(err.field), sizeof err.field - 1);
    hf_error_prefix(&err, "outer");
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    ck_assert_int_eq(strncmp(err.message, "outer: xxx", 10), 0);
    hf_error_prefix(&err, "%s", text); /* a prefix that leaves no room changes nothing */
    ck_assert_int_eq(strncmp(err.message, "outer: xxx", 10), 0);
}
END_TEST

START_TEST(quote_shows_printable_ascii_and_escapes_the_rest)
{
    char out[HF_ERROR_QUOTE_SIZE];
    ck_assert_str_eq(hf_error_quote("a\n\x1b[\\\xff", 6, out), "a\\x0a\\x1b[\\x5c\\xff");
    ck_assert_str_eq(hf_error_quote("", 0, out), "");
}
END_TEST

START_TEST(quote_of_the_longest_input_fits_its_buffer)
{
    char in[500], out[HF_ERROR_QUOTE_SIZE];
    memset(in, 0x80, sizeof in);
    hf_error_quote(in, sizeof in, out);
    ck_assert_uint_eq(strlen(out), 64 * 4 + 3);
    ck_assert_str_eq(out + 64 * 4, "...");
}
END_TEST

SCRATCH_MAIN("error", set_fills_every_part_and_returns_minus_one, a_null_error_object_is_allowed,
             prefix_keeps_code_errno_and_field, messages_and_prefixes_are_cut_at_their_bound,
             quote_shows_printable_ascii_and_escapes_the_rest, quote_of_the_longest_input_fits_its_buffer)
