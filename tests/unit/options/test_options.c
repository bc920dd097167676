/* What common/options promises: bounds, messages and no silent acceptance. */
#include "common/options/options.h"
#include "common/options/paths.h"
#include "tests/run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct parsed {
    int64_t seconds;
    const char *name;
    bool json;
    bool minimize;
    int calls;
};

static int count_call(void *target, const char *value, struct hf_error *err)
{
    if (strcmp(value, "bad") == 0)
        return hf_error_set(err, "usage", 0, "tag", "--tag expects good");
    ((struct parsed *)target)->calls++;
    return 0;
}

static const char *const names[] = {"tcg", "kvm", NULL};

static int parse(struct parsed *parsed, int argc, const char **argv, struct hf_option_result *result,
                 struct hf_error *err)
{
    *parsed = (struct parsed){.seconds = 900, .minimize = true};
    const struct hf_option table[] = {
        {.name = "seconds", .kind = HF_OPTION_INT, .argument = "N", .target = &parsed->seconds, .min = 1, .max = 86400},
        {.name = "name", .kind = HF_OPTION_STRING, .argument = "NAME", .target = &parsed->name, .one_of = names},
        {.name = "json", .kind = HF_OPTION_FLAG, .target = &parsed->json},
        {.name = "no-minimize", .kind = HF_OPTION_NO_FLAG, .target = &parsed->minimize},
        {.name = "tag", .kind = HF_OPTION_CALL, .argument = "TAG", .target = parsed, .call = count_call},
    };
    return hf_options_parse(table, sizeof table / sizeof table[0], argc, (char **)argv, result, err);
}

#define PARSE(...)                                                                                                     \
    const char *argv[] = {"program", __VA_ARGS__, NULL};                                                               \
    struct parsed parsed;                                                                                              \
    struct hf_option_result result;                                                                                    \
    struct hf_error err = {0};                                                                                         \
    int status = parse(&parsed, (int)(sizeof argv / sizeof argv[0]) - 1, argv, &result, &err)

START_TEST(takes_separate_and_joined_values)
{
    PARSE("--seconds", "60", "--name=kvm", "--json", "--no-minimize", "--tag", "a", "--tag=b");
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(parsed.seconds, 60);
    ck_assert_str_eq(parsed.name, "kvm");
    ck_assert(parsed.json && !parsed.minimize);
    ck_assert_int_eq(parsed.calls, 2);
    ck_assert_int_eq(result.first_operand, (int)(sizeof argv / sizeof argv[0]) - 1);
}
END_TEST

static const char *const bad_numbers[] = {"0",   "-1",  "86401", "nan", "NaN", "inf",  "infinity",
                                          "1.5", "1e3", "",      " 1",  "1 ",  "0x10", "99999999999999999999",
                                          "--",  "six", "+"};

START_TEST(refuses_numbers_that_are_not_whole_or_out_of_bounds)
{
    PARSE("--seconds", bad_numbers[_i]);
    ck_assert_int_eq(status, -1);
    ck_assert_str_eq(err.code, "usage");
    ck_assert_str_eq(err.field, "seconds");
    ck_assert_ptr_nonnull(strstr(err.message, "a whole number from 1 to 86400"));
}
END_TEST

START_TEST(names_the_closed_list_when_a_word_is_not_in_it)
{
    PARSE("--name", "xen");
    ck_assert_int_eq(status, -1);
    ck_assert_str_eq(err.message, "--name expects one of tcg kvm, got 'xen'");
}
END_TEST

START_TEST(refuses_unknown_doubled_and_valueless_options)
{
    struct hf_error seen[4] = {0};
    struct parsed parsed;
    struct hf_option_result result;
    const char *unknown[] = {"program", "--secods", "1", NULL};
    const char *doubled[] = {"program", "--json", "--json", NULL};
    const char *missing[] = {"program", "--seconds", NULL};
    const char *given[] = {"program", "--json=yes", NULL};
    ck_assert_int_eq(parse(&parsed, 3, unknown, &result, &seen[0]), -1);
    ck_assert_int_eq(parse(&parsed, 3, doubled, &result, &seen[1]), -1);
    ck_assert_int_eq(parse(&parsed, 2, missing, &result, &seen[2]), -1);
    ck_assert_int_eq(parse(&parsed, 2, given, &result, &seen[3]), -1);
    ck_assert_str_eq(seen[0].message, "unknown option '--secods'; --help lists the options");
    ck_assert_str_eq(seen[1].message, "--json was given twice; give it once");
    ck_assert_str_eq(seen[2].message, "--seconds expects N, got nothing");
    ck_assert_str_eq(seen[3].message, "--json takes no value");
}
END_TEST

START_TEST(escapes_hostile_bytes_in_messages)
{
    PARSE("--name", "\033[31m\n");
    ck_assert_int_eq(status, -1);
    ck_assert_ptr_null(strchr(err.message, '\033'));
    ck_assert_ptr_nonnull(strstr(err.message, "\\x1b[31m\\x0a"));
}
END_TEST

START_TEST(stops_at_operands_and_at_a_double_dash)
{
    struct parsed parsed;
    struct hf_option_result result;
    struct hf_error err = {0};
    const char *operand[] = {"program", "--json", "file", "--seconds", NULL};
    const char *dashes[] = {"program", "--", "--json", NULL};
    ck_assert_int_eq(parse(&parsed, 4, operand, &result, &err), 0);
    ck_assert_int_eq(result.first_operand, 2);
    ck_assert_int_eq(parse(&parsed, 3, dashes, &result, &err), 0);
    ck_assert_int_eq(result.first_operand, 2);
    ck_assert(!parsed.json);
}
END_TEST

START_TEST(help_wins_over_what_follows)
{
    PARSE("--help", "--nonsense");
    ck_assert_int_eq(status, 0);
    ck_assert(result.help);
}
END_TEST

START_TEST(a_callback_error_is_the_parsers_error)
{
    PARSE("--tag", "bad");
    ck_assert_int_eq(status, -1);
    ck_assert_str_eq(err.message, "--tag expects good");
}
END_TEST

START_TEST(makes_paths_absolute_and_refuses_long_ones)
{
    char out[HF_PATH_SIZE], working[HF_PATH_SIZE], expected[HF_PATH_SIZE + 8];
    struct hf_error err = {0};
    ck_assert_int_eq(hf_path_absolute("/a/b", out, &err), 0);
    ck_assert_str_eq(out, "/a/b");
    ck_assert_ptr_nonnull(getcwd(working, sizeof working));
    snprintf(expected, sizeof expected, "%s/a", working);
    ck_assert_int_eq(hf_path_absolute("a", out, &err), 0);
    ck_assert_str_eq(out, expected);
    char *long_path = calloc(1, HF_PATH_SIZE + 2);
    memset(long_path, 'a', HF_PATH_SIZE + 1);
    long_path[0] = '/';
    ck_assert_int_eq(hf_path_absolute(long_path, out, &err), -1);
    ck_assert_str_eq(err.code, "path-too-long");
    free(long_path);
}
END_TEST

START_TEST(finds_the_source_tree_above_the_program)
{
    struct hf_paths paths;
    struct hf_error err = {0};
    ck_assert_int_eq(hf_paths_find(&paths, NULL, &err), 0);
    char campaigns[HF_PATH_SIZE + 32];
    snprintf(campaigns, sizeof campaigns, "%s/catalog/campaigns", paths.source_root);
    ck_assert_int_eq(access(campaigns, R_OK), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *tcase = tcase_create("options");
    tcase_add_test(tcase, takes_separate_and_joined_values);
    tcase_add_loop_test(tcase, refuses_numbers_that_are_not_whole_or_out_of_bounds, 0,
                        (int)(sizeof bad_numbers / sizeof bad_numbers[0]));
    tcase_add_test(tcase, names_the_closed_list_when_a_word_is_not_in_it);
    tcase_add_test(tcase, refuses_unknown_doubled_and_valueless_options);
    tcase_add_test(tcase, escapes_hostile_bytes_in_messages);
    tcase_add_test(tcase, stops_at_operands_and_at_a_double_dash);
    tcase_add_test(tcase, help_wins_over_what_follows);
    tcase_add_test(tcase, a_callback_error_is_the_parsers_error);
    tcase_add_test(tcase, makes_paths_absolute_and_refuses_long_ones);
    tcase_add_test(tcase, finds_the_source_tree_above_the_program);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
