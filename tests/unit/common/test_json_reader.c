/* Promises of the reader in common/json.h: the public suite, every refusal with its place, exact numbers, limits. */
#include "common/cleanup.h"
#include "common/json.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define SUITE       "tests/data/json-test-suite"
#define SUITE_FILES 318

static const struct hf_json_limits usual = {.max_bytes = 1 << 20, .max_depth = HF_JSON_MAX_DEPTH};

static bool is_listed(const char *const *list, const char *name)
{
    for (; *list; list++) {
        if (strcmp(*list, name) == 0)
            return true;
    }
    return false;
}

/* What tests/data/vectors/README.md says about a file of the suite. */
static bool must_accept(const char *name)
{
    static const char *const refused_y[] = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json",
                                            "y_object_escaped_null_in_key.json", "y_string_null_escape.json", NULL};
    static const char *const accepted_i[] = {"i_number_double_huge_neg_exp.json", "i_number_real_underflow.json", NULL};
    return name[0] == 'y' ? !is_listed(refused_y, name) : is_listed(accepted_i, name);
}

/* A copy of exactly `length` bytes, so that AddressSanitizer sees a read beyond the end. */
static cJSON *parse_exactly(const char *text, size_t length, const struct hf_json_limits *limits, struct hf_error *err)
{
    cleanup_free char *copy = malloc(length ? length : 1);
    memcpy(copy, text, length);
    return hf_json_parse(copy, length, limits, err);
}

START_TEST(every_file_of_the_public_suite_is_judged_as_documented)
{
    cleanup_close int dirfd = open(SUITE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *stream = opendir(SUITE);
    ck_assert_msg(stream != NULL, "run this test from the root of the tree");
    unsigned files = 0;
    for (const struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
        if (!strchr("iny", entry->d_name[0]))
            continue;
        files++;
        size_t length;
        struct hf_error err = {0};
        cleanup_free char *text = scratch_read(dirfd, entry->d_name, &length);
        cleanup_json cJSON *item = parse_exactly(text, length, &usual, &err);
        ck_assert_msg(!!item == must_accept(entry->d_name), "%s: %s", entry->d_name, item ? "accepted" : err.message);
        if (!item)
            ck_assert_str_eq(err.code, "json-invalid");
    }
    ck_assert_uint_eq(files, SUITE_FILES);
}
END_TEST

START_TEST(refusals_name_the_place_and_what_was_expected)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "byte 0 (line 1, column 1): expected a value, found the end of the input"},
        {"{\n  \"a\": 1,\n  \"b\" 2}", "byte 18 (line 3, column 7): expected a colon after the key, found a digit"},
        {"[1,]", "byte 3 (line 1, column 4): expected a value, found punctuation"},
        {"{\"a\":1,}", "byte 7 (line 1, column 8): expected a key in quotation marks, found punctuation"},
        {"[1 2]", "byte 3 (line 1, column 4): expected a comma or ']' after an array element, found a digit"},
        {"{\"a\":1 \"b\"", "expected a comma or '}' after an object member, found a quotation mark"},
        {"1 x", "byte 2 (line 1, column 3): expected the end of the input after one value, found a letter"},
        {"01", "byte 1 (line 1, column 2): expected no digit after a leading zero, found a digit"},
        {"1.", "expected a digit after the decimal point, found the end of the input"},
        {"1e+", "expected a digit in the exponent, found the end of the input"},
        {"-", "byte 1 (line 1, column 2): expected a digit, found the end of the input"},
        {"9223372036854775808", "expected an integer within -9223372036854775808..9223372036854775807"},
        {"-9223372036854775809", "expected an integer within"},
        {"1e400", "expected a finite number"},
        {"\"a\tb\"", "byte 2 (line 1, column 3): expected control characters in a string to be escaped"},
        {"\"\xc3(\"", "byte 1 (line 1, column 2): expected valid UTF-8, found a byte above 0x7f"},
        {"\"\\x\"", "byte 2 (line 1, column 3): expected one of \" \\ / b f n r t u after a backslash, found a letter"},
        {"\"\\u12g4\"", "byte 5 (line 1, column 6): expected four hexadecimal digits after \\u, found a letter"},
        {"\"\\u12\"", "expected four hexadecimal digits after \\u, found a quotation mark"},
        {"\"\\ud800\"", "byte 1 (line 1, column 2): expected a pair of surrogate escapes, found a lone surrogate"},
        {"\"\\udc00\\ud800\"", "byte 1 (line 1, column 2): expected a pair of surrogate escapes"},
        {"\"\\ud800\\u0041\"", "byte 1 (line 1, column 2): expected a pair of surrogate escapes"},
        {"\"\\u0000\"", "byte 1 (line 1, column 2): expected no U+0000 in a string or key"},
        {"{\"\\u0000\":1}", "byte 2 (line 1, column 3): expected no U+0000 in a string or key"},
        {"\"abc", "byte 4 (line 1, column 5): expected a closing quotation mark, found the end of the input"},
        {"\"abc\\", "expected a closing quotation mark, found the end of the input"},
        {"\"abc\\\"", "expected a closing quotation mark, found the end of the input"},
        {"\xef\xbb\xbf{}", "byte 0 (line 1, column 1): expected UTF-8 without a byte order mark"},
        {"nul", "byte 0 (line 1, column 1): expected a value, found a letter"},
        {"[\x01]", "expected a value, found a control character"},
        {"NaN", "expected a value, found a letter"},
        {"{\"a\":{\"k\":1,\"k\":2}}",
         "byte 12 (line 1, column 13): expected every key once in an object, found a repea"},
        {"{\"k\":1,\"\\u006b\":2}", "byte 7 (line 1, column 8): expected every key once in an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hf_error err = {0};
        cleanup_json cJSON *item = parse_exactly(cases[i].text, strlen(cases[i].text), &usual, &err);
        ck_assert_msg(item == NULL, "accepted: %s", cases[i].text);
        ck_assert_str_eq(err.code, "json-invalid");
        ck_assert_msg(strstr(err.message, cases[i].message) != NULL, "%s: %s", cases[i].text, err.message);
    }
}
END_TEST

START_TEST(a_raw_nul_is_refused_inside_and_outside_strings)
{
    struct hf_error err = {0};
    ck_assert_ptr_null(parse_exactly("\"a\0b\"", 5, &usual, &err));
    ck_assert_ptr_null(parse_exactly("1\0", 2, &usual, &err));
    ck_assert_ptr_null(parse_exactly("\"\\\0\"", 4, &usual, &err));
}
END_TEST

START_TEST(only_a_repeated_key_is_marked_eexist)
{
    struct hf_error err = {0};
    ck_assert_ptr_null(parse_exactly("{\"a\":1,\"a\":1}", 13, &usual, &err));
    ck_assert_int_eq(err.saved_errno, EEXIST);
    ck_assert_ptr_null(parse_exactly("{\"a\":1,\"b\":}", 12, &usual, &err));
    ck_assert_int_eq(err.saved_errno, 0);
}
END_TEST

START_TEST(equal_keys_in_different_objects_are_allowed)
{
    cleanup_json cJSON *item = scratch_parse("{\"k\":{\"k\":[{\"k\":1},{\"k\":2}]}}");
    ck_assert_ptr_nonnull(item);
}
END_TEST

START_TEST(no_byte_of_the_input_reaches_a_message)
{
    static const char *const texts[] = {"{\"GUEST\":1,\"GUEST\":2}", "GUEST",       "\"GUEST",
                                        "[\"GUEST\" GUEST]",         "\"\\GUEST\"", "{\"a\":GUEST}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct hf_error err = {0};
        ck_assert_ptr_null(parse_exactly(texts[i], strlen(texts[i]), &usual, &err));
        ck_assert_ptr_null(strstr(err.message, "GUEST"));
        ck_assert_str_eq(err.field, "");
    }
}
END_TEST

START_TEST(integers_are_exact_to_64_bits)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {{"9223372036854775807", INT64_MAX},
                 {"-9223372036854775808", INT64_MIN},
                 {"9007199254740993", 9007199254740993},
                 {"-0", 0},
                 {"0", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = 1;
        cleanup_json cJSON *item = scratch_parse(cases[i].text);
        ck_assert_str_eq(item->valuestring, cases[i].text);
        ck_assert(hf_json_get_int64(item, &value));
        ck_assert_int_eq(value, cases[i].value);
    }
}
END_TEST

START_TEST(what_is_not_written_as_an_integer_is_none)
{
    static const char *const texts[] = {"1.0", "1e2", "1E0", "-0.0", "\"1\"", "true", "null", "[]", "{}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t value;
        cleanup_json cJSON *item = scratch_parse(texts[i]);
        ck_assert_msg(!hf_json_get_int64(item, &value), "%s", texts[i]);
    }
    ck_assert(!hf_json_get_int64(NULL, &(int64_t){0}));
}
END_TEST

START_TEST(strings_come_out_decoded)
{
    cleanup_json cJSON *item = scratch_parse("\"\\u00e9\xc3\xa9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\x7f\"");
    ck_assert_str_eq(item->valuestring, "\xc3\xa9\xc3\xa9\xf0\x9f\x98\x80\"\\/\b\f\n\r\t\x7f");
}
END_TEST

START_TEST(members_and_elements_keep_their_order)
{
    cleanup_json cJSON *item = scratch_parse("{\"z\":1,\"a\":[3,1,2]}");
    ck_assert_str_eq(item->child->string, "z");
    const cJSON *array = hf_json_get(item, "a");
    ck_assert_int_eq(cJSON_GetArraySize(array), 3);
    ck_assert_str_eq(cJSON_GetArrayItem(array, 0)->valuestring, "3");
    ck_assert_str_eq(cJSON_GetArrayItem(array, 2)->valuestring, "2");
}
END_TEST

/* "[[...]]" with `depth` opening brackets, or objects. */
static cJSON *parse_nested(unsigned depth, bool objects, unsigned max_depth, struct hf_error *err)
{
    const struct hf_json_limits limits = {.max_bytes = 1 << 20, .max_depth = max_depth};
    cleanup_free char *text = calloc(depth, 8);
    for (unsigned i = 0; i < depth; i++)
        strcat(text, objects ? i + 1 < depth ? "{\"a\":" : "{" : "[");
    for (unsigned i = 0; i < depth; i++)
        strcat(text, objects ? "}" : "]");
    return parse_exactly(text, strlen(text), &limits, err);
}

START_TEST(nesting_is_allowed_exactly_to_the_limit)
{
    static const unsigned limits[] = {1, 2, 3, 16, HF_JSON_MAX_DEPTH};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        for (int objects = 0; objects <= 1; objects++) {
            struct hf_error err = {0};
            cleanup_json cJSON *at_limit = parse_nested(limits[i], objects, limits[i], &err);
            ck_assert_msg(at_limit != NULL, "%s", err.message);
            ck_assert_ptr_null(parse_nested(limits[i] + 1, objects, limits[i], &err));
            ck_assert_ptr_nonnull(strstr(err.message, "levels of arrays and objects"));
        }
    }
}
END_TEST

START_TEST(a_larger_limit_than_the_maximum_is_cut_to_it)
{
    struct hf_error err = {0};
    ck_assert_ptr_null(parse_nested(HF_JSON_MAX_DEPTH + 1, false, 1000000, &err));
    ck_assert_ptr_nonnull(strstr(err.message, "at most 64 levels"));
}
END_TEST

START_TEST(bytes_are_allowed_exactly_to_the_limit)
{
    const struct hf_json_limits limits = {.max_bytes = 6, .max_depth = 4};
    struct hf_error err = {0};
    cleanup_json cJSON *item = parse_exactly("[1,23]", 6, &limits, &err);
    ck_assert_ptr_nonnull(item);
    ck_assert_ptr_null(parse_exactly("[1,23] ", 7, &limits, &err));
    ck_assert_str_eq(err.message, "JSON text too long: expected at most 6 bytes, found 7");
}
END_TEST

START_TEST(values_are_allowed_exactly_to_the_limit)
{
    struct hf_error err = {0};
    size_t elements = HF_JSON_MAX_NODES - 1; /* the array itself is one value */
    cleanup_free char *text = malloc(2 * elements + 16);
    memset(text, '1', 2 * elements + 16);
    for (size_t i = 0; i < elements; i++)
        text[2 * i] = i == 0 ? '[' : ',';
    text[2 * elements] = ']';
    cleanup_json cJSON *item = parse_exactly(text, 2 * elements + 1, &usual, &err);
    ck_assert_msg(item != NULL, "%s", err.message);
    memcpy(text + 2 * elements, ",1]", 3);
    ck_assert_ptr_null(parse_exactly(text, 2 * elements + 3, &usual, &err));
    ck_assert_ptr_nonnull(strstr(err.message, "at most 65536 values in one document"));
}
END_TEST

SCRATCH_MAIN("json reader", every_file_of_the_public_suite_is_judged_as_documented,
             refusals_name_the_place_and_what_was_expected, a_raw_nul_is_refused_inside_and_outside_strings,
             only_a_repeated_key_is_marked_eexist, equal_keys_in_different_objects_are_allowed,
             no_byte_of_the_input_reaches_a_message, integers_are_exact_to_64_bits,
             what_is_not_written_as_an_integer_is_none, strings_come_out_decoded, members_and_elements_keep_their_order,
             nesting_is_allowed_exactly_to_the_limit, a_larger_limit_than_the_maximum_is_cut_to_it,
             bytes_are_allowed_exactly_to_the_limit, values_are_allowed_exactly_to_the_limit)
