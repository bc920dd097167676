/* Promises of guest/init/scan.h: a request of guest/protocol.h is read exactly, everything else is refused, and the
 * well-formedness check agrees with the project's strict reader. */
#include "guest/init/scan.h"

#include "common/cleanup.h"
#include "common/json.h"
#include "tests/run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct hf_request request;

/* Scans a copy in an exact allocation, so that the sanitizer sees every byte too far. It lives until the next call. */
static const char *scan_bytes(const char *text, size_t length)
{
    static char *line;
    free(line);
    line = NULL;
    if (!text)
        return NULL;
    line = malloc(length + 1);
    memcpy(line, text, length);
    return hf_scan_request(line, length, &request);
}

static const char *scan(const char *text)
{
    return scan_bytes(text, strlen(text));
}

static void forget(void)
{
    scan_bytes(NULL, 0);
}

START_TEST(a_request_is_read_exactly)
{
    ck_assert_ptr_null(scan(" {\"id\" : 9007199254740992, \"op\":\"run\",\"args\":{\"on\":true,\"off\":false,\"n\":-12,"
                            "\"text\":\"a\\n\\u00e9\\ud83d\\ude00\\\"\"} } "));
    ck_assert_uint_eq(request.members.count, 2);
    ck_assert_int_eq(hf_fields_find(&request.members, "id")->integer, 9007199254740992);
    ck_assert_str_eq(hf_fields_find(&request.members, "op")->text, "run");
    ck_assert(request.has_args);
    ck_assert_uint_eq(request.args.count, 4);
    ck_assert(hf_fields_find(&request.args, "on")->boolean);
    ck_assert(!hf_fields_find(&request.args, "off")->boolean);
    ck_assert_int_eq(hf_fields_find(&request.args, "off")->type, HF_FIELD_BOOL);
    ck_assert_int_eq(hf_fields_find(&request.args, "n")->integer, -12);
    ck_assert_str_eq(hf_fields_find(&request.args, "text")->text, "a\n\xc3\xa9\xf0\x9f\x98\x80\"");
    ck_assert_ptr_null(hf_fields_find(&request.args, "id"));
}
END_TEST

START_TEST(empty_objects_are_requests_without_members)
{
    ck_assert_ptr_null(scan("{}"));
    ck_assert_uint_eq(request.members.count, 0);
    ck_assert(!request.has_args);
    ck_assert_ptr_null(scan("{\"args\":{}}"));
    ck_assert(request.has_args);
}
END_TEST

static const char *const refused[] = {
    "",
    " ",
    "null",
    "[]",
    "{",
    "{}x",
    "{} {}",
    "{,}",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{\"a\":1 \"b\":2}",
    "{a:1}",
    "{'a':1}",
    "{\"a\":1,\"a\":2}",
    "{\"args\":{},\"args\":{}}",
    "{\"args\":{\"x\":1,\"x\":1}}",
    "{\"args\":1}",
    "{\"args\":{\"args\":{}}}",
    "{\"a\":{}}",
    "{\"a\":[1]}",
    "{\"a\":null}",
    "{\"a\":01}",
    "{\"a\":-}",
    "{\"a\":+1}",
    "{\"a\":1.0}",
    "{\"a\":1e3}",
    "{\"a\":1000000000000000000}",
    "{\"a\":truE}",
    "{\"a\":\"}",
    "{\"a\":\"\\\"}",
    "{\"a\":\"\\x\"}",
    "{\"a\":\"\\u12\"}",
    "{\"a\":\"\\u0000\"}",
    "{\"a\":\"\\ud800\"}",
    "{\"a\":\"\\udc00\"}",
    "{\"a\":\"\\ud800\\u0041\"}",
    "{\"a\":\"\xc3\xa9\"}",
    "{\"a\":\"\t\"}",
    "{\"a\":\"\x7f\"}",
    "\xef\xbb\xbf{}",
};

START_TEST(what_is_no_request_is_refused_with_a_reason)
{
    const char *problem = scan(refused[_i]);
    ck_assert_msg(problem != NULL && problem[0], "accepted: %s", refused[_i]);
}
END_TEST

START_TEST(a_byte_of_zero_is_refused_anywhere)
{
    static const char line[] = "{\"id\":12,\"op\":\"ping\"}";
    for (size_t at = 0; at < sizeof line - 1; at++) {
        char changed[sizeof line];
        memcpy(changed, line, sizeof line);
        changed[at] = '\0';
        ck_assert_ptr_nonnull(scan_bytes(changed, sizeof line - 1));
    }
}
END_TEST

START_TEST(a_request_cut_anywhere_is_refused)
{
    static const char line[] = "{\"id\":1,\"op\":\"run\",\"args\":{\"a\":\"\\ud83d\\ude00\",\"b\":true}}";
    for (size_t length = 0; length < sizeof line - 1; length++)
        ck_assert_ptr_nonnull(scan_bytes(line, length));
    ck_assert_ptr_null(scan_bytes(line, sizeof line - 1));
}
END_TEST

static char *with_text(size_t name_length, size_t text_length)
{
    char *line = malloc(name_length + text_length + 16), *out = line;
    out += sprintf(out, "{\"");
    memset(out, 'n', name_length);
    out += name_length;
    out += sprintf(out, "\":\"");
    memset(out, 't', text_length);
    out += text_length;
    strcpy(out, "\"}");
    return line;
}

START_TEST(lengths_are_bounded_exactly)
{
    cleanup_free char *longest = with_text(HF_GUEST_NAME_MAX, HF_GUEST_TEXT_MAX);
    cleanup_free char *long_name = with_text(HF_GUEST_NAME_MAX + 1, 1);
    cleanup_free char *long_text = with_text(1, HF_GUEST_TEXT_MAX + 1);
    ck_assert_ptr_null(scan(longest));
    ck_assert_ptr_nonnull(scan(long_name));
    ck_assert_ptr_nonnull(scan(long_text));
}
END_TEST

START_TEST(the_number_of_arguments_is_bounded_exactly)
{
    for (int extra = 0; extra < 2; extra++) {
        char line[1024] = "{\"args\":{";
        for (int i = 0; i < HF_GUEST_ARGS_MAX + extra; i++)
            sprintf(line + strlen(line), "%s\"a%d\":%d", i ? "," : "", i, i);
        strcat(line, "}}");
        ck_assert((scan(line) == NULL) == (extra == 0));
    }
}
END_TEST

static const char *const documents[] = {
    "{}",
    "[]",
    "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
    "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]",
    "{\"a\":[1,2.5,-0,1e9,true,false,null,\"x\\n\\u0041\"]}",
    "-",
    "01",
    "1.",
    ".5",
    "1e",
    "+1",
    "tru",
    "nulll",
    "{\"a\" :1}",
    "{\"a\":1,}",
    "[1,]",
    "[,1]",
    "{1:2}",
    "{\"a\"}",
    "\"\\q\"",
    "\"\\u12g4\"",
    "\"",
    "",
    "[1]x",
    "[1}",
    "\"a\nb\"",
    "[1,\n2]",
};

START_TEST(what_passes_the_check_the_strict_reader_reads)
{
    const struct hf_json_limits limits = {.max_bytes = 4096, .max_depth = HF_JSON_MAX_DEPTH};
    struct hf_error err = {0};
    const size_t length = strlen(documents[_i]);
    cleanup_free char *exact = malloc(length ? length : 1);
    memcpy(exact, documents[_i], length);
    cleanup_json cJSON *tree = hf_json_parse(exact, length, &limits, &err);
    const bool accepted = hf_scan_is_json(exact, length);
    if (accepted)
        ck_assert_msg(tree != NULL, "only the check accepts %s", documents[_i]);
    else /* it is narrower in three ways: no spaces, no newline, less deep */
        ck_assert_msg(tree == NULL || strpbrk(documents[_i], " \n") || strlen(documents[_i]) == 34,
                      "only the reader accepts %s", documents[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guest scan");
    TCase *tests = tcase_create("scan");
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_add_test(tests, a_request_is_read_exactly);
    tcase_add_test(tests, empty_objects_are_requests_without_members);
    tcase_add_loop_test(tests, what_is_no_request_is_refused_with_a_reason, 0, sizeof refused / sizeof refused[0]);
    tcase_add_test(tests, a_byte_of_zero_is_refused_anywhere);
    tcase_add_test(tests, a_request_cut_anywhere_is_refused);
    tcase_add_test(tests, lengths_are_bounded_exactly);
    tcase_add_test(tests, the_number_of_arguments_is_bounded_exactly);
    tcase_add_loop_test(tests, what_passes_the_check_the_strict_reader_reads, 0,
                        sizeof documents / sizeof documents[0]);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
