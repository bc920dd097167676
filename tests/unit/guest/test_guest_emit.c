/* Promises of guest/init/emit.h: whatever is written is JSON that the strict reader accepts, or the writer says that it
 * failed; it never writes past its buffer. */
#include "guest/init/emit.h"
#include "guest/init/scan.h"

#include "common/cleanup.h"
#include "common/json.h"
#include "tests/run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct hf_json_limits limits = {.max_bytes = 1 << 20, .max_depth = HF_JSON_MAX_DEPTH};

static void write_sample(struct hf_emit *emit)
{
    hf_emit_object_begin(emit, NULL);
    hf_emit_int(emit, "min", INT64_MIN);
    hf_emit_uint(emit, "big", 9007199254740993u);
    hf_emit_bool(emit, "yes", true);
    hf_emit_string(emit, "te\"xt", "quote\" slash\\ tab\t bell\a del\x7f \xc3\xa9 \xf0\x9f\x98\x80");
    hf_emit_array_begin(emit, "list");
    hf_emit_hex(emit, NULL, "\x00\xff", 2);
    hf_emit_object_begin(emit, NULL);
    hf_emit_end(emit);
    hf_emit_raw(emit, NULL, "[1]", 3);
    hf_emit_end(emit);
    hf_emit_end(emit);
}

START_TEST(a_document_reads_back_as_written)
{
    char bytes[512];
    struct hf_emit emit;
    struct hf_error err = {0};
    hf_emit_init(&emit, bytes, sizeof bytes);
    write_sample(&emit);
    ck_assert(hf_emit_done(&emit));
    ck_assert(hf_scan_is_json(bytes, emit.length));
    cleanup_json cJSON *tree = hf_json_parse(bytes, emit.length, &limits, &err);
    ck_assert_msg(tree != NULL, "%s", err.message);
    ck_assert_int_eq(hf_json_get_int_or(tree, "min", 0), INT64_MIN);
    ck_assert_int_eq(hf_json_get_int_or(tree, "big", 0), 9007199254740993);
    ck_assert(hf_json_get_bool_or(tree, "yes", false));
    ck_assert_str_eq(hf_json_get_string(tree, "te\"xt"),
                     "quote\" slash\\ tab\t bell\a del\x7f \xc3\xa9 \xf0\x9f\x98\x80");
    const cJSON *list = hf_json_get(tree, "list");
    ck_assert_int_eq(cJSON_GetArraySize(list), 3);
    ck_assert_str_eq(cJSON_GetArrayItem(list, 0)->valuestring, "00ff");
}
END_TEST

START_TEST(a_buffer_that_is_too_small_fails_and_is_not_overrun)
{
    char whole[512];
    struct hf_emit emit;
    hf_emit_init(&emit, whole, sizeof whole);
    write_sample(&emit);
    const size_t needed = emit.length;
    for (size_t capacity = 0; capacity <= needed; capacity++) {
        cleanup_free char *exact = malloc(capacity ? capacity : 1);
        hf_emit_init(&emit, exact, capacity);
        write_sample(&emit);
        ck_assert(hf_emit_done(&emit) == (capacity == needed));
        ck_assert_uint_le(emit.length, capacity);
    }
}
END_TEST

/* Bytes that are no UTF-8, and how many U+FFFD stand for them. */
static const struct {
    const char *bytes;
    size_t replacements;
} broken[] = {
    {"\x80", 1},
    {"\xc0\x80", 2},
    {"\xc3", 1},
    {"\xe0\x80\x80", 3},
    {"\xed\xa0\x80", 3},
    {"\xf0\x80\x80\x80", 4},
    {"\xf4\x90\x80\x80", 4},
    {"\xf8\x88\x80\x80\x80", 5},
    {"\xff", 1},
    {"\xe2\x82", 2},
};

START_TEST(bytes_that_are_no_utf8_become_replacement_characters)
{
    char bytes[128];
    struct hf_emit emit;
    struct hf_error err = {0};
    size_t seen = 0;
    hf_emit_init(&emit, bytes, sizeof bytes);
    hf_emit_string(&emit, NULL, broken[_i].bytes);
    ck_assert(hf_emit_done(&emit));
    cleanup_json cJSON *tree = hf_json_parse(bytes, emit.length, &limits, &err);
    ck_assert_msg(tree != NULL, "%s", err.message);
    for (const char *at = tree->valuestring; (at = strstr(at, "\xef\xbf\xbd")); at += 3)
        seen++;
    ck_assert_uint_eq(seen, broken[_i].replacements);
    ck_assert_uint_eq(strlen(tree->valuestring), 3 * seen);
}
END_TEST

START_TEST(unbalanced_and_too_deep_documents_fail)
{
    char bytes[256];
    struct hf_emit emit;
    hf_emit_init(&emit, bytes, sizeof bytes);
    ck_assert(!hf_emit_done(&emit));
    hf_emit_object_begin(&emit, NULL);
    ck_assert(!hf_emit_done(&emit));
    hf_emit_end(&emit);
    ck_assert(hf_emit_done(&emit));
    hf_emit_end(&emit);
    ck_assert(!hf_emit_done(&emit));
    hf_emit_init(&emit, bytes, sizeof bytes);
    for (int i = 0; i <= HF_EMIT_DEPTH_MAX; i++)
        hf_emit_array_begin(&emit, NULL);
    for (int i = 0; i <= HF_EMIT_DEPTH_MAX; i++)
        hf_emit_end(&emit);
    ck_assert(!hf_emit_done(&emit));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guest emit");
    TCase *tests = tcase_create("emit");
    tcase_add_test(tests, a_document_reads_back_as_written);
    tcase_add_test(tests, a_buffer_that_is_too_small_fails_and_is_not_overrun);
    tcase_add_loop_test(tests, bytes_that_are_no_utf8_become_replacement_characters, 0,
                        sizeof broken / sizeof broken[0]);
    tcase_add_test(tests, unbalanced_and_too_deep_documents_fail);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
