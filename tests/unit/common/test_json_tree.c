/* Promises of the builders and look-ups of common/json.h. */
#include "common/cleanup.h"
#include "common/json.h"
#include "scratch.h"

START_TEST(a_built_tree_is_written_as_it_was_built)
{
    cleanup_json cJSON *object = hf_json_new_object();
    hf_json_add_int(object, "int", INT64_MIN);
    hf_json_add_bool(object, "yes", true);
    hf_json_add_bool(object, "no", false);
    hf_json_add_string(object, "text", "x\"y");
    hf_json_add_string(object, "absent", NULL);
    hf_json_add_null(object, "null");
    cJSON *array = hf_json_add(object, "array", hf_json_new_array());
    hf_json_append(array, hf_json_new_int(1));
    hf_json_append(array, hf_json_new_string("two"));
    cleanup_free char *text = hf_json_canonical(object, NULL);
    ck_assert_str_eq(text, "{\"absent\":null,\"array\":[1,\"two\"],\"int\":-9223372036854775808,\"no\":false,"
                           "\"null\":null,\"text\":\"x\\\"y\",\"yes\":true}");
}
END_TEST

START_TEST(built_integers_read_back_exactly)
{
    static const int64_t values[] = {0, 1, -1, INT64_MAX, INT64_MIN, 9007199254740993};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        int64_t value;
        cleanup_json cJSON *item = hf_json_new_int(values[i]);
        ck_assert(hf_json_get_int64(item, &value));
        ck_assert_int_eq(value, values[i]);
    }
}
END_TEST

START_TEST(a_duplicate_of_a_tree_keeps_exact_integers)
{
    cleanup_json cJSON *item = scratch_parse("{\"n\":9007199254740993}");
    cleanup_json cJSON *copy = cJSON_Duplicate(item, true);
    ck_assert_int_eq(hf_json_get_int_or(copy, "n", 0), 9007199254740993);
}
END_TEST

START_TEST(a_duplicated_member_can_be_added_under_another_key)
{
    cleanup_json cJSON *item = scratch_parse("{\"n\":1,\"a\":[]}");
    hf_json_add(item, "m", cJSON_Duplicate(item->child, true));
    hf_json_append(item->child->next, cJSON_Duplicate(item->child, true));
    cleanup_free char *text = hf_json_canonical(item, NULL);
    ck_assert_str_eq(text, "{\"a\":[1],\"m\":1,\"n\":1}");
}
END_TEST

START_TEST(invalid_utf8_in_text_and_keys_becomes_the_replacement_character)
{
    cleanup_json cJSON *object = hf_json_new_object();
    hf_json_add_string(object, "k\xff", "a\xc3(\xed\xa0\x80");
    ck_assert_str_eq(object->child->string, "k\xef\xbf\xbd");
    ck_assert_str_eq(object->child->valuestring, "a\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}
END_TEST

START_TEST(look_ups_find_keys_exactly)
{
    cleanup_json cJSON *object = scratch_parse("{\"Key\":\"v\",\"n\":5,\"t\":true}");
    ck_assert_str_eq(hf_json_get_string(object, "Key"), "v");
    ck_assert_ptr_null(hf_json_get(object, "key"));
    ck_assert_ptr_null(hf_json_get(object, "Ke"));
    ck_assert_int_eq(hf_json_get_int_or(object, "n", -1), 5);
    ck_assert(hf_json_get_bool_or(object, "t", false));
}
END_TEST

START_TEST(look_ups_of_a_wrong_type_give_the_fallback)
{
    cleanup_json cJSON *object = scratch_parse("{\"s\":\"5\",\"f\":1.5,\"n\":null,\"a\":[1]}");
    ck_assert_ptr_null(hf_json_get_string(object, "a"));
    ck_assert_ptr_null(hf_json_get_string(object, "f")); /* a number's source text is not a string value */
    ck_assert_int_eq(hf_json_get_int_or(object, "s", -1), -1);
    ck_assert_int_eq(hf_json_get_int_or(object, "f", -1), -1);
    ck_assert_int_eq(hf_json_get_int_or(object, "absent", -1), -1);
    ck_assert(hf_json_get_bool_or(object, "n", true));
    ck_assert_ptr_null(hf_json_get(hf_json_get(object, "a"), "s"));
    ck_assert_ptr_null(hf_json_get(NULL, "s"));
}
END_TEST

static void add_to_array(void *context)
{
    hf_json_add_int(context, "k", 1);
}

static void append_to_object(void *context)
{
    hf_json_append(context, hf_json_new_int(1));
}

static void add_twice(void *context)
{
    hf_json_add(context, "again", ((cJSON *)context)->child);
}

START_TEST(misuse_that_would_free_a_node_twice_aborts)
{
    cleanup_json cJSON *array = hf_json_new_array();
    cleanup_json cJSON *object = hf_json_new_object();
    hf_json_add_int(object, "k", 1);
    ck_assert(scratch_aborts(add_to_array, array));
    ck_assert(scratch_aborts(append_to_object, object));
    ck_assert(scratch_aborts(add_twice, object));
}
END_TEST

SCRATCH_MAIN("json tree", a_built_tree_is_written_as_it_was_built, built_integers_read_back_exactly,
             a_duplicate_of_a_tree_keeps_exact_integers, a_duplicated_member_can_be_added_under_another_key,
             invalid_utf8_in_text_and_keys_becomes_the_replacement_character, look_ups_find_keys_exactly,
             look_ups_of_a_wrong_type_give_the_fallback, misuse_that_would_free_a_node_twice_aborts)
