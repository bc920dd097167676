/* Promises of hf_json_canonical(): the independent vectors, escapes, number forms, and what aborts. */
#include "common/cleanup.h"
#include "common/digest.h"
#include "common/json.h"
#include "scratch.h"

#include <fcntl.h>
#include <string.h>

static void assert_canonical(const char *text, const char *expected)
{
    size_t length;
    cleanup_json cJSON *item = scratch_parse(text);
    cleanup_free char *canonical = hf_json_canonical(item, &length);
    ck_assert_str_eq(canonical, expected);
    ck_assert_uint_eq(length, strlen(expected));
}

START_TEST(the_independent_vectors_come_out_byte_for_byte)
{
    cleanup_free char *text = scratch_read(AT_FDCWD, "tests/data/vectors/canonical-json.json", NULL);
    cleanup_json cJSON *document = scratch_parse(text);
    const cJSON *vectors = hf_json_get(document, "vectors");
    ck_assert_int_ge(cJSON_GetArraySize(vectors), 11);
    for (const cJSON *vector = vectors->child; vector; vector = vector->next) {
        char hex[HF_SHA256_HEX_SIZE];
        size_t length;
        cleanup_json cJSON *item = scratch_parse(hf_json_get_string(vector, "input"));
        cleanup_free char *canonical = hf_json_canonical(item, &length);
        ck_assert_str_eq(canonical, hf_json_get_string(vector, "canonical"));
        hf_sha256_hex(canonical, length, hex);
        ck_assert_str_eq(hex, hf_json_get_string(vector, "sha256"));
    }
}
END_TEST

START_TEST(keys_sort_by_code_point)
{
    assert_canonical("{\"\xf0\x9f\x98\x80\":1,\"\xef\xbf\xbf\":2,\"a\":3,\"\":4,\"A\":5,\"aa\":6,\"\\u0001\":7}",
                     "{\"\":4,\"\\u0001\":7,\"A\":5,\"a\":3,\"aa\":6,\"\\uffff\":2,\"\\ud83d\\ude00\":1}");
}
END_TEST

START_TEST(only_ascii_is_written)
{
    assert_canonical("\"\\u0001\\u001f\\u007f\\u0080\xc3\xa9\\u2028\\ud83d\\ude00\\/<>&'\"",
                     "\"\\u0001\\u001f\\u007f\\u0080\\u00e9\\u2028\\ud83d\\ude00/<>&'\"");
}
END_TEST

START_TEST(short_escapes_are_used_where_they_exist)
{
    assert_canonical("\"\\u0008\\u000c\\u000a\\u000d\\u0009\\u0022\\u005c\"", "\"\\b\\f\\n\\r\\t\\\"\\\\\"");
}
END_TEST

START_TEST(integers_lose_signed_zero_and_nothing_else)
{
    assert_canonical("[-0,0,9223372036854775807,-9223372036854775808,9007199254740993]",
                     "[0,0,9223372036854775807,-9223372036854775808,9007199254740993]");
}
END_TEST

START_TEST(other_numbers_take_their_shortest_form_and_never_become_integers)
{
    static const char *const pairs[][2] = {
        {"1.0", "1.0"},
        {"1.500", "1.5"},
        {"1e2", "100.0"},
        {"1E+2", "100.0"},
        {"0.1", "0.1"},
        {"-0.0", "-0.0"},
        {"0e5", "0.0"},
        {"1e-400", "0.0"},
        {"-1e-400", "-0.0"},
        {"0.0001", "0.0001"},
        {"0.00001", "1e-05"},
        {"0.000012345", "1.2345e-05"},
        {"1e15", "1000000000000000.0"},
        {"9007199254740993.0", "9007199254740992.0"},
        {"1e16", "1e+16"},
        {"123456789012345680000.0", "1.2345678901234568e+20"},
        {"5e-324", "5e-324"},
        {"2.2250738585072014e-308", "2.2250738585072014e-308"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"3.141592653589793238462643383279", "3.141592653589793"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_canonical(pairs[i][0], pairs[i][1]);
}
END_TEST

START_TEST(white_space_and_order_of_the_source_do_not_matter)
{
    assert_canonical(" { \"b\" : [ 1 , { } , [ ] ] ,\n\"a\" : null , \"c\":false,\"d\":true}\t",
                     "{\"a\":null,\"b\":[1,{},[]],\"c\":false,\"d\":true}");
}
END_TEST

START_TEST(invalid_utf8_in_a_built_tree_is_replaced)
{
    cleanup_json cJSON *item = cJSON_CreateString("a\xff\xc3z");
    cleanup_free char *canonical = hf_json_canonical(item, NULL);
    ck_assert_str_eq(canonical, "\"a\\ufffd\\ufffdz\"");
}
END_TEST

static void write_tree(void *context)
{
    free(hf_json_canonical(context, NULL));
}

START_TEST(two_equal_keys_in_a_built_tree_abort)
{
    cleanup_json cJSON *object = hf_json_new_object();
    hf_json_add_int(object, "k", 1);
    ck_assert(!scratch_aborts(write_tree, object));
    hf_json_add_int(object, "k", 2);
    ck_assert(scratch_aborts(write_tree, object));
}
END_TEST

START_TEST(a_number_that_this_module_did_not_create_aborts)
{
    cleanup_json cJSON *number = cJSON_CreateNumber(1);
    ck_assert(scratch_aborts(write_tree, number));
}
END_TEST

SCRATCH_MAIN("canonical json", the_independent_vectors_come_out_byte_for_byte, keys_sort_by_code_point,
             only_ascii_is_written, short_escapes_are_used_where_they_exist, integers_lose_signed_zero_and_nothing_else,
             other_numbers_take_their_shortest_form_and_never_become_integers,
             white_space_and_order_of_the_source_do_not_matter, invalid_utf8_in_a_built_tree_is_replaced,
             two_equal_keys_in_a_built_tree_abort, a_number_that_this_module_did_not_create_aborts)
