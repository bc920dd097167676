/* Promises of common/json_shape.h: every type, bound, flag and text rule, and the path in every refusal. */
#include "common/cleanup.h"
#include "common/json_shape.h"
#include "scratch.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char *const colours[] = {"red", "green", NULL};

static const struct hf_shape_field inner_fields[] = {
    {.name = "n", .type = HF_SHAPE_INT, .min = 1, .max = 9},
    {.name = "{vmm}_path", .type = HF_SHAPE_STRING, .flags = HF_SHAPE_OPTIONAL},
};
static const struct hf_shape inner = {"inner", inner_fields, COUNT(inner_fields)};
static const struct hf_shape_field inner_element = {.type = HF_SHAPE_OBJECT, .object = &inner};
static const struct hf_shape_field identifier_element = {.type = HF_SHAPE_STRING, .text = HF_TEXT_IDENTIFIER};
static const struct hf_shape_field row_element = {.type = HF_SHAPE_ARRAY, .max = 2, .element = &identifier_element};

#define OPTIONAL .flags = HF_SHAPE_OPTIONAL
static const struct hf_shape_field fields[] = {
    {.name = "id", .type = HF_SHAPE_STRING, .min = 1, .max = 8, .text = HF_TEXT_IDENTIFIER},
    {.name = "text", .type = HF_SHAPE_STRING, OPTIONAL},
    {.name = "count", .type = HF_SHAPE_INT, OPTIONAL, .min = -3, .max = 5},
    {.name = "seed", .type = HF_SHAPE_INT, OPTIONAL, .max = INT64_MAX},
    {.name = "any_int", .type = HF_SHAPE_INT, OPTIONAL},
    {.name = "yes", .type = HF_SHAPE_BOOL, OPTIONAL},
    {.name = "maybe", .type = HF_SHAPE_STRING, .flags = HF_SHAPE_OPTIONAL | HF_SHAPE_NULLABLE},
    {.name = "colour", .type = HF_SHAPE_STRING, OPTIONAL, .one_of = colours},
    {.name = "one", .type = HF_SHAPE_OBJECT, OPTIONAL, .object = &inner},
    {.name = "many", .type = HF_SHAPE_ARRAY, OPTIONAL, .min = 1, .max = 2, .element = &inner_element},
    {.name = "names",
     .type = HF_SHAPE_ARRAY,
     .flags = HF_SHAPE_OPTIONAL | HF_SHAPE_UNIQUE,
     .element = &identifier_element},
    {.name = "rows", .type = HF_SHAPE_ARRAY, OPTIONAL, .element = &row_element},
    {.name = "free", .type = HF_SHAPE_OBJECT, OPTIONAL, .min = 1, .max = 2},
    {.name = "list", .type = HF_SHAPE_ARRAY, OPTIONAL},
    {.name = "any", .type = HF_SHAPE_ANY, OPTIONAL},
    {.name = "{source}_commit", .type = HF_SHAPE_STRING, OPTIONAL},
};
static const struct hf_shape shape = {"sample document", fields, COUNT(fields)};
static const struct hf_shape_names names = {.source = "holdfast", .vmm = "qemu", .runtime = "libc"};

static int check(const char *text, struct hf_error *err)
{
    cleanup_json cJSON *item = scratch_parse(text);
    return hf_shape_check(&shape, &names, item, err);
}

START_TEST(what_the_table_allows_is_accepted)
{
    static const char *const texts[] = {
        "{\"id\":\"a\"}",
        "{\"id\":\"abcdefgh\",\"text\":\"\"}",
        "{\"id\":\"a\",\"count\":-3}",
        "{\"id\":\"a\",\"count\":5}",
        "{\"id\":\"a\",\"seed\":9223372036854775807,\"any_int\":-9223372036854775808}",
        "{\"id\":\"a\",\"seed\":0}",
        "{\"id\":\"a\",\"yes\":false}",
        "{\"id\":\"a\",\"maybe\":null}",
        "{\"id\":\"a\",\"maybe\":\"x\"}",
        "{\"id\":\"a\",\"colour\":\"green\"}",
        "{\"id\":\"a\",\"one\":{\"n\":9,\"qemu_path\":\"/\"}}",
        "{\"id\":\"a\",\"many\":[{\"n\":1},{\"n\":1}]}",
        "{\"id\":\"a\",\"names\":[]}",
        "{\"id\":\"a\",\"names\":[\"b\",\"a\"]}",
        "{\"id\":\"a\",\"rows\":[[],[\"a\",\"b\"]]}",
        "{\"id\":\"a\",\"free\":{\"x\":1,\"y\":[]}}",
        "{\"id\":\"a\",\"list\":[1,null,{}]}",
        "{\"id\":\"a\",\"any\":null}",
        "{\"id\":\"a\",\"any\":{\"deep\":[1]}}",
        "{\"holdfast_commit\":\"x\",\"id\":\"a\"}",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct hf_error err = {0};
        ck_assert_msg(check(texts[i], &err) == 0, "%s: %s", texts[i], err.message);
    }
}
END_TEST

START_TEST(refusals_name_the_path_and_what_was_expected_and_found)
{
    static const struct {
        const char *text, *field, *message;
    } cases[] = {
        {"[]", "", "sample document: expected an object, found an array"},
        {"{}", "id", "sample document: id: expected this key, found an object without it"},
        {"{\"id\":7}", "id", "sample document: id: expected a string, found a number"},
        {"{\"id\":\"\"}", "id", "sample document: id: expected 1..8 bytes of text, found 0"},
        {"{\"id\":\"abcdefghi\"}", "id", "sample document: id: expected 1..8 bytes of text, found 9"},
        {"{\"id\":\"A\"}", "id",
         "sample document: id: expected an identifier ([a-z][a-z0-9-]{0,63}), found a string of 1 bytes that is not"},
        {"{\"id\":\"a\",\"text\":null}", "text", "sample document: text: expected a string, found null"},
        {"{\"id\":\"a\",\"count\":6}", "count", "sample document: count: expected an integer -3..5, found 6"},
        {"{\"id\":\"a\",\"count\":-4}", "count", "sample document: count: expected an integer -3..5, found -4"},
        {"{\"id\":\"a\",\"count\":true}", "count", "sample document: count: expected an integer, found a boolean"},
        {"{\"id\":\"a\",\"count\":\"1\"}", "count", "sample document: count: expected an integer, found a string"},
        {"{\"id\":\"a\",\"count\":1.0}", "count",
         "sample document: count: expected an integer, found a number with a fraction or an exponent"},
        {"{\"id\":\"a\",\"count\":1e0}", "count",
         "sample document: count: expected an integer, found a number with a fraction or an exponent"},
        {"{\"id\":\"a\",\"seed\":-1}", "seed", "sample document: seed: expected an integer at least 0, found -1"},
        {"{\"id\":\"a\",\"yes\":1}", "yes", "sample document: yes: expected a boolean, found a number"},
        {"{\"id\":\"a\",\"maybe\":{}}", "maybe", "sample document: maybe: expected a string, found an object"},
        {"{\"id\":\"a\",\"colour\":\"blue\"}", "colour",
         "sample document: colour: expected one of red, green, found another string"},
        {"{\"id\":\"a\",\"one\":[]}", "one", "sample document: one: expected an object, found an array"},
        {"{\"id\":\"a\",\"one\":{}}", "one.n", "sample document: one.n: expected this key, found an object without it"},
        {"{\"id\":\"a\",\"one\":{\"n\":0}}", "one.n", "sample document: one.n: expected an integer 1..9, found 0"},
        {"{\"id\":\"a\",\"one\":{\"n\":1,\"nvx_path\":\"/\"}}", "one",
         "sample document: one: expected no other keys than n, qemu_path; found another one (member 2 of 2)"},
        {"{\"id\":\"a\",\"many\":{}}", "many", "sample document: many: expected an array, found an object"},
        {"{\"id\":\"a\",\"many\":[]}", "many", "sample document: many: expected 1..2 elements, found 0"},
        {"{\"id\":\"a\",\"many\":[{\"n\":1},{\"n\":1},{\"n\":1}]}", "many",
         "sample document: many: expected 1..2 elements, found 3"},
        {"{\"id\":\"a\",\"many\":[{\"n\":1},{\"n\":10}]}", "many[1].n",
         "sample document: many[1].n: expected an integer 1..9, found 10"},
        {"{\"id\":\"a\",\"many\":[{\"n\":1},3]}", "many[1]",
         "sample document: many[1]: expected an object, found a number"},
        {"{\"id\":\"a\",\"names\":[\"a\",\"b\",\"a\"]}", "names",
         "sample document: names: expected elements that are all different, found the same string twice"},
        {"{\"id\":\"a\",\"rows\":[[\"a\"],[\"a\",\"-\"]]}", "rows[1][1]",
         "sample document: rows[1][1]: expected an iden"},
        {"{\"id\":\"a\",\"rows\":[[\"a\",\"a\",\"a\"]]}", "rows[0]",
         "sample document: rows[0]: expected 0..2 elements, found 3"},
        {"{\"id\":\"a\",\"free\":{}}", "free", "sample document: free: expected 1..2 members, found 0"},
        {"{\"id\":\"a\",\"list\":{}}", "list", "sample document: list: expected an array, found an object"},
        {"{\"id\":\"a\",\"other\":1}", "", "found another one (member 2 of 2)"},
        {"{\"id\":\"a\",\"Id\":1}", "", "found another one (member 2 of 2)"},
        {"{\"id\":\"a\",\"{source}_commit\":\"x\"}", "", "found another one (member 2 of 2)"},
        {"null", "", "sample document: expected an object, found null"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf_error err = {0};
        ck_assert_msg(check(cases[i].text, &err) == -1, "accepted: %s", cases[i].text);
        ck_assert_str_eq(err.code, "shape-invalid");
        ck_assert_str_eq(err.field, cases[i].field);
        ck_assert_msg(strstr(err.message, cases[i].message) != NULL, "%s: %s", cases[i].text, err.message);
    }
}
END_TEST

START_TEST(no_byte_of_the_document_reaches_an_error)
{
    static const char *const texts[] = {"{\"id\":\"GUEST\"}", "{\"id\":\"a\",\"GUEST\":1}",
                                        "{\"id\":\"a\",\"colour\":\"GUEST\"}", "{\"id\":\"a\",\"names\":[\"GUEST\"]}",
                                        "{\"id\":\"a\",\"one\":{\"GUEST\":1}}"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct hf_error err = {0};
        ck_assert_int_eq(check(texts[i], &err), -1);
        ck_assert_ptr_null(strstr(err.message, "GUEST"));
        ck_assert_ptr_null(strstr(err.field, "GUEST"));
    }
}
END_TEST

START_TEST(a_shape_may_contain_itself_and_long_paths_are_cut)
{
    static struct hf_shape_field self[] = {
        {.name = "a-rather-long-name-of-a-member", .type = HF_SHAPE_OBJECT, .flags = HF_SHAPE_OPTIONAL}};
    static const struct hf_shape recursive = {"recursive", self, 1};
    self[0].object = &recursive;
    char text[4096] = "";
    for (int i = 0; i < 40; i++)
        strcat(text, "{\"a-rather-long-name-of-a-member\":");
    strcat(text, "1");
    for (int i = 0; i < 40; i++)
        strcat(text, "}");
    struct hf_error err = {0};
    cleanup_json cJSON *item = scratch_parse(text);
    ck_assert_int_eq(hf_shape_check(&recursive, NULL, item, &err), -1);
    ck_assert_uint_eq(strlen(err.field), sizeof err.field - 1);
    ck_assert_ptr_nonnull(strstr(err.message, "expected an object, found a number"));
}
END_TEST

START_TEST(a_long_list_of_allowed_values_is_cut_in_the_message)
{
    static char words[200][16];
    static const char *allowed[201];
    for (size_t i = 0; i < 200; i++) {
        snprintf(words[i], sizeof words[i], "word-%03zu", i);
        allowed[i] = words[i];
    }
    const struct hf_shape_field field = {.name = "w", .type = HF_SHAPE_STRING, .one_of = allowed};
    const struct hf_shape small = {"small", &field, 1};
    struct hf_error err = {0};
    cleanup_json cJSON *item = scratch_parse("{\"w\":\"x\"}");
    ck_assert_int_eq(hf_shape_check(&small, NULL, item, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "word-000, word-001"));
    ck_assert_ptr_nonnull(strstr(err.message, ", ..., found another string"));
}
END_TEST

START_TEST(unique_is_checked_in_bounded_time)
{
    const struct hf_shape_field field = {.name = "w", .type = HF_SHAPE_ARRAY, .flags = HF_SHAPE_UNIQUE};
    const struct hf_shape small = {"small", &field, 1};
    cleanup_json cJSON *item = hf_json_new_object();
    cJSON *array = hf_json_add(item, "w", hf_json_new_array());
    for (int i = 0; i < 100000; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        hf_json_append(array, hf_json_new_string(text));
    }
    double start = scratch_cpu_seconds();
    ck_assert_int_eq(hf_shape_check(&small, NULL, item, NULL), 0);
    ck_assert(scratch_cpu_seconds() - start < 5.0);
    hf_json_append(array, hf_json_new_string("0"));
    ck_assert_int_eq(hf_shape_check(&small, NULL, item, NULL), -1);
}
END_TEST

START_TEST(placeholders_are_replaced_where_a_name_is_given)
{
    char out[96];
    ck_assert_str_eq(hf_shape_name(&names, "{source}_commit", out, sizeof out), "holdfast_commit");
    ck_assert_str_eq(hf_shape_name(&names, "the_{vmm}_path", out, sizeof out), "the_qemu_path");
    ck_assert_str_eq(hf_shape_name(&names, "{runtime}", out, sizeof out), "libc");
    ck_assert_str_eq(hf_shape_name(&names, "plain", out, sizeof out), "plain");
    ck_assert_str_eq(hf_shape_name(NULL, "{vmm}_path", out, sizeof out), "{vmm}_path");
}
END_TEST

static void expand_too_long(void *context)
{
    char out[8];
    (void)context;
    hf_shape_name(&names, "{source}_commit", out, sizeof out);
}

START_TEST(a_name_that_does_not_fit_aborts_instead_of_being_cut)
{
    ck_assert(scratch_aborts(expand_too_long, NULL));
}
END_TEST

#define X63 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define A64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

START_TEST(text_rules_draw_their_lines_exactly)
{
    static const struct {
        enum hf_shape_text rule;
        const char *text;
        bool expected;
    } cases[] = {
        {HF_TEXT_ANY, "", true},
        {HF_TEXT_ANY, "\x01", true},
        {HF_TEXT_IDENTIFIER, "a", true},
        {HF_TEXT_IDENTIFIER, "a-9", true},
        {HF_TEXT_IDENTIFIER, "a" X63, true},
        {HF_TEXT_IDENTIFIER, "ab" X63, false},
        {HF_TEXT_IDENTIFIER, "", false},
        {HF_TEXT_IDENTIFIER, "9a", false},
        {HF_TEXT_IDENTIFIER, "-a", false},
        {HF_TEXT_IDENTIFIER, "a_b", false},
        {HF_TEXT_IDENTIFIER, "aB", false},
        {HF_TEXT_IDENTIFIER, "a\n", false},
        {HF_TEXT_IDENTIFIER, "a/../b", false},
        {HF_TEXT_RUN_ID, "9", true},
        {HF_TEXT_RUN_ID, "20260131-a" X63, true},
        {HF_TEXT_RUN_ID, "-9", false},
        {HF_TEXT_RUN_ID, "", false},
        {HF_TEXT_RUN_ID, "..", false},
        {HF_TEXT_RUN_ID, X63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true},
        {HF_TEXT_RUN_ID, X63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
        {HF_TEXT_SHA256, A64, true},
        {HF_TEXT_SHA256, A64 "0", false},
        {HF_TEXT_SHA256, X63 "0", false},
        {HF_TEXT_SHA256, "ABCDEF", false},
        {HF_TEXT_BASE64, "", true},
        {HF_TEXT_BASE64, "YQ==", true},
        {HF_TEXT_BASE64, "YR==", false},
        {HF_TEXT_BASE64, "YQ", false},
        {HF_TEXT_PRINTABLE, "", true},
        {HF_TEXT_PRINTABLE, "na\xc3\xafve \xf0\x9f\x98\x80", true},
        {HF_TEXT_PRINTABLE, "a\nb", false},
        {HF_TEXT_PRINTABLE, "a\tb", false},
        {HF_TEXT_PRINTABLE, "\x1b[0m", false},
        {HF_TEXT_PRINTABLE, "\x7f", false},
        {HF_TEXT_PRINTABLE, "\xc2\x9b", false},
        {HF_TEXT_PRINTABLE, "\xc2\xa0", true},
        {HF_TEXT_PRINTABLE, "\xff", false},
        {HF_TEXT_FIELD_NAME, "a_9", true},
        {HF_TEXT_FIELD_NAME, "a" X63, true},
        {HF_TEXT_FIELD_NAME, "aa" X63, false},
        {HF_TEXT_FIELD_NAME, "_a", false},
        {HF_TEXT_FIELD_NAME, "a-b", false},
        {HF_TEXT_FIELD_NAME, "", false},
        {HF_TEXT_ENV_NAME, "PATH", true},
        {HF_TEXT_ENV_NAME, "_A9", true},
        {HF_TEXT_ENV_NAME, "9A", false},
        {HF_TEXT_ENV_NAME, "Path", false},
        {HF_TEXT_ENV_NAME, "A=B", false},
        {HF_TEXT_ENV_NAME, "", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_msg(hf_text_is(cases[i].rule, cases[i].text) == cases[i].expected, "%s: \"%s\"",
                      hf_text_describe(cases[i].rule), cases[i].text);
}
END_TEST

SCRATCH_MAIN("json shape", what_the_table_allows_is_accepted, refusals_name_the_path_and_what_was_expected_and_found,
             no_byte_of_the_document_reaches_an_error, a_shape_may_contain_itself_and_long_paths_are_cut,
             a_long_list_of_allowed_values_is_cut_in_the_message, unique_is_checked_in_bounded_time,
             placeholders_are_replaced_where_a_name_is_given, a_name_that_does_not_fit_aborts_instead_of_being_cut,
             text_rules_draw_their_lines_exactly)
